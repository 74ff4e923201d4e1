//! Computes what measureme's own `summarize` prints: time, invocations and cache hits by label.
//!
//! The kinds of events are those of rustc (measureme, `src/rustc.rs`). Other kinds count as ordinary activities.

use super::event::Payload;
use super::profile::MeasuremeFile;
use super::strings::Labels;
use super::threads::ThreadNumbers;
use crate::analysis::timeline::{LabelSummary, LabelTotals, Lanes, Span};
use crate::contract::spans::SpanInput;
use crate::error::{Result, Warning, Warnings};
use crate::model::texts::TextList;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SummaryKind {
    Activity,
    Blocked,
    Load,
    Hash,
    CacheHit,
    CacheHitCount,
    ArtifactSize,
    Other,
}

impl SummaryKind {
    /// Parses the category of an event, as rustc names it.
    fn parse(text: &[u8]) -> Self {
        match text {
            b"Query" | b"GenericActivity" => Self::Activity,
            b"QueryBlocked" => Self::Blocked,
            b"IncrementalLoadResult" => Self::Load,
            b"IncrementalResultHashing" => Self::Hash,
            b"QueryCacheHit" => Self::CacheHit,
            b"QueryCacheHitCount" => Self::CacheHitCount,
            b"ArtifactSize" => Self::ArtifactSize,
            _ => Self::Other,
        }
    }
}

/// Summarizes a profile in one backward pass.
pub(super) fn summarize(input: SpanInput<'_>, warnings: &mut Warnings) -> Result<LabelSummary> {
    let (bytes, done) = input.into_whole()?;
    let profile = MeasuremeFile::open(&bytes)?;
    let mut sums = Sums::default();
    let mut labels = Labels::new(&profile.strings);
    let mut kinds = Labels::new(&profile.strings);
    // The parsed category for each number of `kinds`.
    let mut summary_kinds = Vec::new();
    let mut threads = ThreadNumbers::default();
    profile.for_each_event_reversed(&done, |event| {
        let kind = kinds.number(event.kind) as usize;
        // New categories are numbered in sequence, so this adds at most one.
        while summary_kinds.len() <= kind {
            summary_kinds.push(SummaryKind::parse(kinds.text(summary_kinds.len() as u32)));
        }
        let (kind, label) = (summary_kinds[kind], labels.number(event.id));
        match event.payload {
            Payload::Interval { start, end } => {
                let thread = threads.number(event.thread, || sums.add_thread());
                sums.add_interval(thread, kind, label, Span { start, end });
            }
            Payload::Instant(_) if kind == SummaryKind::CacheHit => sums.add_cache_hit(label),
            Payload::Instant(_) => {}
            Payload::Integer(value) => sums.add_number(kind, label, value),
        }
    });
    let overlaps: u64 = sums.threads.iter().map(|thread| thread.lanes.overlaps()).sum();
    if overlaps > 0 {
        warnings.push(Warning::new(format!(
            "calls that partly overlap another call with the same thread ID: {overlaps}; time in which calls overlap \
             counts for each of them"
        )));
    }
    let summary = sums.finish(labels.texts.list());
    warnings.extend(profile.skipped.into_warning());
    Ok(summary)
}

#[derive(Debug, Default)]
struct Sums {
    items: Vec<LabelTotals>,
    /// For each label, whether the total number of its cache hits was read. If so, the events for single cache hits are
    /// ignored, so that they don't count twice. The total is at the end of the file, but is read first, because the
    /// file is read backwards.
    has_hit_count: Vec<bool>,
    /// For each label, the size in bytes of the files that the compiler wrote.
    artifacts: BTreeMap<u32, u64>,
    threads: Vec<ThreadSummary>,
}

#[derive(Debug)]
struct ThreadSummary {
    lanes: Lanes<(u32, SummaryKind)>,
    start: u64,
    end: u64,
}

impl Sums {
    /// Adds a thread and returns its index.
    fn add_thread(&mut self) -> usize {
        self.threads.push(ThreadSummary { lanes: Lanes::default(), start: u64::MAX, end: 0 });
        self.threads.len() - 1
    }

    /// The totals of a label.
    #[inline]
    fn item(&mut self, label: u32) -> &mut LabelTotals {
        let index = label as usize;
        if index >= self.items.len() {
            self.items.resize(index + 1, LabelTotals::default());
            self.has_hit_count.resize(index + 1, false);
        }
        &mut self.items[index]
    }

    /// Adds an interval to the totals of its label, and subtracts it from the self time of its caller.
    #[inline]
    fn add_interval(&mut self, thread: usize, kind: SummaryKind, label: u32, span: Span) {
        let duration = span.duration() as i64;
        let ThreadSummary { lanes, start, end } = &mut self.threads[thread];
        (*start, *end) = ((*start).min(span.start), (*end).max(span.end));
        // The lane whose open calls contain this one. The file is read backwards, so callers come before their callees.
        // `place` passes each call that can have no more callees to the closure; here, nothing is left to do for such
        // calls.
        let lane = lanes.place(span, |_| {});
        let caller = lanes.top(lane).map(|(_, caller)| *caller);
        lanes.open(lane, span, (label, kind));
        if let Some((caller_label, caller_kind)) = caller {
            let caller = self.item(caller_label);
            caller.self_time -= duration;
            // `hash` and `load` are self times, too.
            match caller_kind {
                SummaryKind::Hash => caller.hash -= duration,
                SummaryKind::Load => caller.load -= duration,
                _ => {}
            }
        }
        let item = self.item(label);
        item.self_time += duration;
        // Hashing is part of a query with the same label, whose interval already counts this time.
        if kind != SummaryKind::Hash {
            item.time += duration;
        }
        match kind {
            SummaryKind::Blocked => item.blocked += duration,
            SummaryKind::Load => item.load += duration,
            SummaryKind::Hash => item.hash += duration,
            // Waiting, loading and hashing are parts of a query, so they don't count as calls.
            _ => item.count += 1,
        }
        // If a query ran, its result wasn't in the cache.
        item.cache_misses += u64::from(kind == SummaryKind::Activity);
    }

    fn add_cache_hit(&mut self, label: u32) {
        let is_counted = self.has_hit_count.get(label as usize) == Some(&true);
        self.item(label).cache_hits += u64::from(!is_counted);
    }

    /// Adds an event that is a number instead of a span of time.
    fn add_number(&mut self, kind: SummaryKind, label: u32, value: u64) {
        match kind {
            SummaryKind::CacheHitCount => {
                self.item(label).cache_hits += value;
                // From now on, single cache hits of this label are ignored, because they are in this total.
                self.has_hit_count[label as usize] = true;
            }
            // Here, the label is the kind of file that the compiler wrote.
            SummaryKind::ArtifactSize => *self.artifacts.entry(label).or_default() += value,
            _ => {}
        }
    }

    /// Converts the sums to a summary with the texts of labels. Labels without any totals are left out. The summary's
    /// `total` is the sum over all threads of the time from the thread's start to its end.
    fn finish(self, texts: &TextList) -> LabelSummary {
        let text = |label: usize| texts.get(label).map_or_else(Vec::new, <[u8]>::to_vec);
        let used = self.items.iter().enumerate().filter(|(_, item)| **item != LabelTotals::default());
        let mut total = 0u64;
        for thread in &self.threads {
            total = total.saturating_add(thread.end.saturating_sub(thread.start));
        }
        LabelSummary {
            labels: used.map(|(label, item)| (text(label), *item)).collect(),
            artifacts: self.artifacts.iter().map(|(&label, &size)| (text(label as usize), size)).collect(),
            total,
        }
    }
}
