//! Sums the two halves of a file in parallel.
//!
//! ```text
//! file        ├──────── earlier ────────┼──────── later ─────────┤   in the order in which calls end
//! calls           b b   a c c   b           b  c   a  b   main
//!                                       cut   calls that begin before it are open there: main, a
//! ```
//!
//! Events are read backwards, so the callers of the earlier half's last intervals are in the later half. The thread
//! that sums the earlier half first scans the later half for the calls that are open at the cut. When both halves are
//! done, it turns out whether these were the right calls. They may not be if calls overlap; then everything is summed
//! again in one pass.

use super::event::Payload;
use super::profile::MeasuremeFile;
use super::summing::{LabelledSums, Summing};
use crate::analysis::timeline::{CallOptions, OpenCalls, Span};
use crate::contract::spans::{Done, Workers};
use crate::error::Result;
use crate::model::texts::Texts;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Files with fewer pages than this aren't cut: one thread sums them before a second thread could even start.
const FEWEST: usize = 8;

/// The number of pages that are sampled to estimate the work.
const TRIED: usize = 24;

/// The cost of summing an interval, in units of the cost of scanning an event.
const INTERVAL: usize = 10;

/// The page at which to cut a file so that both threads take equally long. `None` if cutting doesn't pay. The middle
/// wouldn't do: the thread for the earlier half also scans the later one, and in rustc's profiles some regions are
/// mostly intervals and others mostly instants.
pub(super) fn cut(profile: &MeasuremeFile<'_>) -> Option<usize> {
    let pages = profile.pages().len();
    if pages < FEWEST {
        return None;
    }
    let page_of = |part: usize| part * pages / TRIED;
    let costs: Vec<(usize, usize)> = (0..TRIED).map(|part| costs(profile, page_of(part))).collect();
    let mut earlier: usize = costs.iter().map(|(_, sum)| sum).sum();
    let (mut looked_through, mut later) = (0, 0);
    let is_enough = |&part: &usize| {
        let (look, sum) = costs[part];
        (earlier, looked_through, later) = (earlier - sum, looked_through + look, later + sum);
        later >= looked_through + earlier
    };
    (0..TRIED).rev().find(is_enough).map(page_of).filter(|cut| *cut > 0)
}

/// The costs of scanning a page and of summing it, in units of the cost of scanning an event.
fn costs(profile: &MeasuremeFile<'_>, page: usize) -> (usize, usize) {
    let (mut events, mut intervals) = (0, 0);
    profile.for_each_event(page..page + 1, |event| {
        events += 1;
        intervals += usize::from(matches!(event.payload, Payload::Interval { .. }));
    });
    (events, events + INTERVAL * intervals)
}

/// The sums of one half.
struct Half {
    of: LabelledSums,
    /// For the earlier half, the calls that were open at its end. `None` for the later half, or if they couldn't be
    /// found.
    begun: Option<OpenCalls>,
}

/// Sums both halves in parallel. `None` if overlapping calls require that everything is summed in one pass.
pub(super) fn sums(
    profile: &MeasuremeFile<'_>,
    cut: usize,
    calls: CallOptions,
    workers: &dyn Workers,
    done: &Done,
) -> Result<Option<LabelledSums>> {
    let later = cut..profile.pages().end;
    let half = |is_later: bool| {
        let mut summing = Summing::new(profile, calls);
        if is_later {
            summing.add_reversed(profile, later.clone(), done);
            return Half { of: summing.finish(), begun: None };
        }
        let begun = open_at_begin(profile, later.clone());
        for &(thread, id, span) in &begun {
            summing.call(thread, id, span);
        }
        // If the numbers differ, one of these calls didn't contain the next one, so the guess was wrong.
        let begun = summing.sums.open_calls().filter(|open| open.count() == begun.len());
        summing.add_reversed(profile, 0..cut, done);
        Half { of: summing.finish(), begun }
    };
    workers.map([true, false].into_iter(), half, |halves| {
        let joined = halves.next().zip(halves.next()).and_then(|(later, earlier)| join(later, earlier));
        Ok(joined)
    })
}

/// For each thread, its first interval in these pages and the intervals that contain it, outermost first. These are the
/// candidates for calls that are open where the pages begin.
fn open_at_begin(profile: &MeasuremeFile<'_>, pages: Range<usize>) -> Vec<(u32, u64, Span)> {
    let mut chains: FxHashMap<u32, Vec<(u64, Span)>> = FxHashMap::default();
    // Usually a thread writes many events in a row, and most don't contain its first interval.
    let mut last: Option<(u32, Span)> = None;
    profile.for_each_event(pages, |event| {
        let Payload::Interval { start, end } = event.payload else { return };
        if last.is_some_and(|(thread, first)| thread == event.thread && start > first.start) {
            return;
        }
        let chain = chains.entry(event.thread).or_default();
        let (_, first) = *chain.first().unwrap_or(&(event.id, Span { start, end }));
        if start <= first.start && end >= first.end {
            chain.push((event.id, Span { start, end }));
        }
        last = Some((event.thread, first));
    });
    let calls =
        |(thread, chain): (u32, Vec<(u64, Span)>)| chain.into_iter().rev().map(move |(id, span)| (thread, id, span));
    chains.into_iter().flat_map(calls).collect()
}

fn join(later: Half, earlier: Half) -> Option<LabelledSums> {
    let LabelledSums { sums, labels, mut threads } = later.of;
    let mut texts: Texts<u32> = Texts::default();
    labels.iter().for_each(|text| {
        texts.intern(text);
    });
    let labels: Vec<u32> = earlier.of.labels.iter().map(|text| texts.intern(text)).collect();
    let tracks = threads.join(&earlier.of.threads);
    let sums = sums.join(earlier.of.sums, &earlier.begun?, &tracks, &labels)?;
    Some(LabelledSums { sums, labels: texts.list().clone(), threads })
}
