//! Spans and instants with their depth, as a trace viewer keeps them. Questions about a trace are answered from them.

use super::calls::CallSums;
use super::lanes::{Lanes, Span};
use super::{CallOptions, Clock};
use crate::model::stacks::{Profile, Track, Unit};
use crate::model::texts::Texts;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The number of a text in [`SliceNames`].
pub type NameNo = u32;

/// Stands for no name.
pub const NO_NAME: NameNo = NameNo::MAX;

/// How a span without a name is called.
pub const UNNAMED: &str = "[unnamed]";

/// The duration of a span that never ended.
pub const UNFINISHED: i64 = -1;

/// Texts, numbered by first appearance.
#[derive(Debug, Default, Clone)]
pub struct SliceNames {
    texts: Texts<NameNo>,
}

impl SliceNames {
    /// The number of a text.
    #[inline]
    pub fn number(&mut self, text: &[u8]) -> NameNo {
        self.texts.intern(text)
    }

    /// The number of them; their numbers run from 0.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// True if it is empty.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The number of a text, if it was seen.
    pub fn find(&self, text: &[u8]) -> Option<NameNo> {
        self.texts.find(text)
    }

    /// The text of a number; empty for [`NO_NAME`].
    pub fn text(&self, number: NameNo) -> &[u8] {
        if number == NO_NAME { b"" } else { self.texts.get(number) }
    }
}

/// A span or an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// When it begins, in nanoseconds of its thread's clock; may be negative.
    pub start: i64,
    /// The duration; 0 for an instant, [`UNFINISHED`] if it never ended.
    pub duration: i64,
    /// Its name.
    pub name: NameNo,
    /// The name of its action, if its arguments state it; [`NO_NAME`] if not.
    pub sub: NameNo,
    /// Position in [`Timeline::tracks`] of the thread that it began on.
    pub track: u32,
    /// The number of the track by id that it is on; 0 for its thread's own.
    pub lane: u32,
    /// The number of spans that enclose it on its track.
    pub depth: u16,
    /// Its kind.
    pub kind: SliceKind,
    /// Its place in its file: file: the offset of the event that begins it.
    pub origin: u64,
}

/// The kind of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SliceKind {
    /// On its thread's own track.
    Span,
    /// On a track of its own, by id.
    Async,
    /// Something that took no time.
    Instant,
}

impl Slice {
    /// When it ended; an unfinished one just before it began, as viewers count it.
    #[inline]
    pub fn end(&self) -> i64 {
        self.start.saturating_add(self.duration)
    }

    #[inline]
    fn end_or_never(&self) -> i64 {
        if self.duration == UNFINISHED { i64::MAX } else { self.end() }
    }

    /// The order of slices of a thread in which each comes after those around it.
    #[inline]
    fn outer_first(&self) -> (i64, Reverse<i64>) {
        (self.start, Reverse(self.end_or_never()))
    }
}

/// The open slices of a thread while they are nested.
#[derive(Debug, Default, Clone)]
struct Nesting {
    /// Start and end, the outermost first.
    around: Vec<(i64, i64)>,
    last: Option<(i64, Reverse<i64>)>,
}

impl Nesting {
    /// Gives the next slice its depth. True if it overlaps another one without lying in it: it is beside it.
    #[inline]
    fn place(&mut self, slice: &mut Slice) -> bool {
        let end = slice.end_or_never();
        self.last = Some(slice.outer_first());
        // Instants of one time lie in each other.
        while let Some(&(begun, over)) = self.around.last()
            && (over < slice.start || (over == slice.start && begun < over))
        {
            self.around.pop();
        }
        if self.around.last().is_some_and(|&(_, over)| over < end) {
            slice.depth = 0;
            return true;
        }
        slice.depth = self.around.len().min(usize::from(u16::MAX)) as u16;
        self.around.push((slice.start, end));
        false
    }
}

/// Everything that a trace states about time.
#[derive(Debug, Default, Clone)]
pub struct Timeline {
    /// Names and sub-names.
    pub names: SliceNames,
    /// The threads.
    pub tracks: Vec<Track>,
    /// In the order of their starts in the file; [`Timeline::sort`] orders them by time.
    pub slices: Vec<Slice>,
    /// For each of the arguments asked for, positions of slices and the text that they have for it.
    pub by_arg: Vec<Vec<(u32, NameNo)>>,
    /// True if Miri wrote it: its interpreted calls (`frame`, `step`) each have a track by id, though they call each other.
    pub is_miri: bool,
    /// The spans that did not fit.
    pub oddities: Oddities,
}

/// The names of the spans in which Miri shows what it interprets.
pub const MIRI_FRAMES: [&str; 2] = ["frame", "step"];

/// The number of spans of a trace that nest badly, by kind.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Oddities {
    /// Ends that closed a span with others still open in it: these end there, too.
    pub misplaced_ends: u64,
    /// Ends of nothing that is open.
    pub unmatched_ends: u64,
    /// Whole spans that overlap another of their thread without lying in it.
    pub overlaps: u64,
    /// Events written so much later than others of their thread that they could not be put in order.
    pub late: u64,
    /// Events without a time.
    pub timeless: u64,
    /// Whole spans that don't say how long they are.
    pub endless: u64,
    /// Instants with call stacks of their own.
    pub stacks: u64,
}

impl Timeline {
    /// Orders the slices by time; equal ones stay as the file has them.
    pub fn sort(&mut self) {
        if !self.slices.is_sorted_by_key(|slice| slice.start) {
            self.slices.sort_by_key(|slice| slice.start);
        }
    }

    /// Gives the slices of some threads the depths that their times state; of slices with equal times the first is the
    /// outer one. Spans that overlap another without lying in it are beside it, at depth 0, and are counted.
    pub fn nest(&mut self, threads: &[bool]) {
        if let Some(overlaps) = self.nest_in_order(threads) {
            self.oddities.overlaps += overlaps;
            return;
        }
        let slices = &mut self.slices;
        let wanted = |slice: &Slice| threads[slice.track as usize] && slice.kind != SliceKind::Async;
        let mut order: Vec<u32> = (0..slices.len() as u32).filter(|&at| wanted(&slices[at as usize])).collect();
        order.sort_by_key(|&at| (slices[at as usize].track, slices[at as usize].outer_first()));
        let mut nesting = vec![Nesting::default(); threads.len()];
        for at in order {
            let slice = &mut slices[at as usize];
            self.oddities.overlaps += u64::from(nesting[slice.track as usize].place(slice));
        }
    }

    /// The same where the slices of each thread are in the order of their starts already, the outer ones first; gives
    /// how many overlap others. `None` if they do not.
    fn nest_in_order(&mut self, threads: &[bool]) -> Option<u64> {
        let mut nesting = vec![Nesting::default(); threads.len()];
        let mut overlaps = 0;
        for slice in &mut self.slices {
            if !threads[slice.track as usize] || slice.kind == SliceKind::Async {
                continue;
            }
            let nesting = &mut nesting[slice.track as usize];
            if nesting.last.is_some_and(|last| last > slice.outer_first()) {
                return None;
            }
            overlaps += u64::from(nesting.place(slice));
        }
        Some(overlaps)
    }

    /// The earliest begin and the latest end; 0 without slices.
    pub fn bounds(&self) -> (i64, i64) {
        let first = self.slices.iter().map(|slice| slice.start).min();
        let last = self.slices.iter().map(|slice| slice.end().max(slice.start)).max();
        (first.unwrap_or(0), last.unwrap_or(0))
    }

    /// Spans that never ended.
    pub fn unfinished(&self) -> u64 {
        self.slices.iter().filter(|slice| slice.duration == UNFINISHED).count() as u64
    }

    /// The spans as stacks: those on a thread's own track are nested by time; those of one id likewise, beside the thread
    /// and beside those of other ids. Only Miri's interpreted calls, each of which has an id of its own, are nested into
    /// their thread: what Miri did while it ran a function is written on the thread's track. Spans of other names than
    /// `only` are left out, if there are any; `label` gives what a span is called.
    pub fn stacks(&self, options: CallOptions, only: &[NameNo], label: impl Fn(&Slice) -> NameNo) -> Stacked {
        let spans = self.by_end(|slice| only.is_empty() || only.contains(&slice.name));
        let frames: Vec<NameNo> = match self.is_miri {
            true => MIRI_FRAMES.iter().filter_map(|name| self.names.find(name.as_bytes())).collect(),
            false => Vec::new(),
        };
        let is_frame = |slice: &Slice| slice.kind == SliceKind::Async && frames.contains(&slice.name);
        let own = self.mixed_up(&spans, is_frame);
        let rows = self.async_rows(&spans, is_frame);
        let (first, _) = self.bounds();
        let from_first = |time: u64| (i128::from(time) - i128::from(first)).clamp(0, i128::from(u64::MAX)) as u64;
        let within = options.within.map(|span| Span { start: from_first(span.start), end: from_first(span.end) });
        let mut sums = CallSums::new(CallOptions { within, ..options });
        let mut tracks = Vec::new();
        let mut numbers = FxHashMap::default();
        for &(span, at) in &spans {
            let slice = &self.slices[at as usize];
            let (thread, row) = match slice.kind {
                // Row 1 is for frames that don't fit into their thread.
                SliceKind::Async if is_frame(slice) => (slice.track, u32::from(own[slice.track as usize])),
                SliceKind::Async => {
                    let (thread, row) = rows[slice.lane as usize];
                    (thread, 2 + row)
                }
                _ => (slice.track, 0),
            };
            let track = *numbers.entry((thread, row)).or_insert_with(|| {
                tracks.push(self.tracks[thread as usize].clone());
                sums.track()
            });
            sums.call(track, label(slice), span);
        }
        let overlaps = sums.overlaps();
        let series = if options.clock == Clock::Wall { "wall-time" } else { "active-time" };
        let mut profile = sums.into_profile(&tracks, self.names.texts.list(), series, Unit::Nanos);
        // No time is below 0: then the first start is 0.
        let first = u64::try_from(first).unwrap_or(0);
        for time in profile.series.iter_mut().flat_map(|series| &mut series.rows).filter_map(|row| row.time.as_mut()) {
            time.0 = time.0.saturating_add(first);
        }
        Stacked { profile, overlaps }
    }

    /// For each track by id, the thread that it began on, and the row of that thread that it is laid on: tracks on a row don't
    /// overlap, so that as many rows suffice as there are operations at a time.
    fn async_rows(&self, spans: &[(Span, u32)], is_frame: impl Fn(&Slice) -> bool) -> Vec<(u32, u32)> {
        let is_operation = |slice: &Slice| slice.kind == SliceKind::Async && !is_frame(slice);
        let slices = self.slices.iter().filter(|slice| is_operation(slice));
        let count = slices.map(|slice| slice.lane as usize + 1).max().unwrap_or(0);
        // The thread of each track by id, and its time from its first start to its last end.
        let mut lanes = vec![(u32::MAX, Span { start: u64::MAX, end: 0 }); count];
        for &(span, at) in spans {
            let slice = &self.slices[at as usize];
            if is_operation(slice) {
                let (track, whole) = &mut lanes[slice.lane as usize];
                // What it began on another thread is a part of it.
                if slice.depth == 0 || *track == u32::MAX {
                    *track = slice.track;
                }
                *whole = Span { start: whole.start.min(span.start), end: whole.end.max(span.end) };
            }
        }
        let mut order: Vec<u32> = (0..count as u32).filter(|lane| lanes[*lane as usize].0 != u32::MAX).collect();
        order.sort_unstable_by_key(|lane| {
            let (track, whole) = lanes[*lane as usize];
            (track, whole.start, *lane)
        });
        let mut rows = vec![(0, 0); count];
        // When each row of the thread is free again, the first first.
        let mut free: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        let mut of_track = None;
        for lane in order {
            let (track, whole) = lanes[lane as usize];
            if of_track != Some(track) {
                free.clear();
                of_track = Some(track);
            }
            let row = match free.peek() {
                // An empty span at the end of another would lie in it.
                Some(Reverse((end, row))) if *end < whole.start => {
                    let row = *row;
                    free.pop();
                    row
                }
                _ => free.len() as u32,
            };
            free.push(Reverse((whole.end, row)));
            rows[lane as usize] = (track, row);
        }
        rows
    }

    /// The time of each slice in which it ran nothing else of its track; 0 for instants and what never ended.
    pub fn own_times(&self) -> Vec<i64> {
        let track = |slice: &Slice| (slice.track, if slice.kind == SliceKind::Async { slice.lane } else { 0 });
        let spans =
            |at: &u32| self.slices[*at as usize].duration > 0 && self.slices[*at as usize].kind != SliceKind::Instant;
        let mut order: Vec<u32> = (0..self.slices.len() as u32).filter(spans).collect();
        order.sort_by_key(|at| {
            let slice = &self.slices[*at as usize];
            (track(slice), slice.outer_first(), *at)
        });
        let mut own = vec![0; self.slices.len()];
        let mut around: Vec<u32> = Vec::new();
        for at in order {
            let slice = &self.slices[at as usize];
            let encloses = |outer: &u32| {
                let outer = &self.slices[*outer as usize];
                track(outer) == track(slice) && outer.end() > slice.start && outer.end() >= slice.end()
            };
            while around.last().is_some_and(|outer| !encloses(outer)) {
                around.pop();
            }
            own[at as usize] = slice.duration;
            if let Some(outer) = around.last() {
                own[*outer as usize] -= slice.duration;
            }
            around.push(at);
        }
        own
    }

    /// Spans by descending ends, the outer one of equal ones first. Unfinished ones end with their thread.
    fn by_end(&self, wanted: impl Fn(&Slice) -> bool) -> Vec<(Span, u32)> {
        let (first, _) = self.bounds();
        let mut last = vec![first; self.tracks.len()];
        for slice in &self.slices {
            let last = &mut last[slice.track as usize];
            *last = slice.end().max(slice.start).max(*last);
        }
        let wanted = |slice: &Slice| slice.kind != SliceKind::Instant && wanted(slice);
        let spans = self.slices.iter().enumerate().filter(|(_, slice)| wanted(slice)).map(|(at, slice)| {
            let end = if slice.duration == UNFINISHED { last[slice.track as usize] } else { slice.end() };
            (Span { start: slice.start.abs_diff(first), end: end.max(slice.start).abs_diff(first) }, at as u32)
        });
        let mut spans: Vec<_> = spans.collect();
        spans.sort_unstable_by_key(|&(span, at)| (Reverse(span.end), span.start, at));
        spans
    }

    /// For each thread, whether interpreted calls overlap others: they are then no part of its stack.
    fn mixed_up(&self, spans: &[(Span, u32)], is_frame: impl Fn(&Slice) -> bool) -> Vec<bool> {
        let mut lanes: Vec<Lanes<()>> = self.tracks.iter().map(|_| Lanes::default()).collect();
        let is_nested = |slice: &Slice| slice.kind != SliceKind::Async || is_frame(slice);
        for &(span, at) in spans.iter().filter(|(_, at)| is_nested(&self.slices[*at as usize])) {
            let lanes = &mut lanes[self.slices[at as usize].track as usize];
            let lane = lanes.place(span, |()| {});
            lanes.open(lane, span, ());
        }
        lanes.iter().map(|lanes| lanes.overlaps() > 0).collect()
    }
}

/// Spans as stacks.
#[derive(Debug)]
pub struct Stacked {
    /// The stacks.
    pub profile: Profile,
    /// The number of spans that overlapped another of their thread without lying in it.
    pub overlaps: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_slices_makes_no_difference_to_their_depths() {
        let slice = |track: u32, start: i64, duration: i64| Slice {
            start,
            duration,
            name: 0,
            sub: NO_NAME,
            track,
            lane: 0,
            depth: 9,
            kind: SliceKind::Span,
            origin: 0,
        };
        let spans =
            [(0, 0, 100), (1, 0, 10), (0, 0, 50), (1, 5, 9), (0, 20, 30), (0, 20, 0), (0, 60, 10), (1, 20, UNFINISHED)];
        let mut timeline = Timeline::default();
        timeline.slices.extend(spans.map(|(track, start, duration)| slice(track, start, duration)));
        let mut backwards = timeline.clone();
        backwards.slices.reverse();
        let nested = |mut timeline: Timeline| {
            timeline.nest(&[true, true]);
            let depths = timeline.slices.iter().map(|slice| (slice.track, slice.start, slice.duration, slice.depth));
            (depths.collect::<Vec<_>>(), timeline.oddities.overlaps)
        };
        let (mut depths, overlaps) = nested(backwards);
        depths.reverse();
        assert_eq!(nested(timeline), (depths.clone(), overlaps));
        assert_eq!(depths.iter().map(|(.., depth)| *depth).collect::<Vec<_>>(), [0, 0, 1, 0, 2, 3, 1, 0]);
        assert_eq!(overlaps, 1);
    }
}
