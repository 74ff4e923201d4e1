//! A trace's spans and instants with their nesting depth, as a trace viewer shows them, for answering questions about
//! the trace.

use super::calls::CallSums;
use super::lanes::{Lanes, Span};
use super::{CallOptions, Clock};
use crate::model::stacks::{Profile, Track, Unit};
use crate::model::texts::Texts;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The ID of a name in [`SliceNames`].
pub type NameNumber = u32;

/// Stands for a missing name, in place of the name's number.
pub const NO_NAME: NameNumber = NameNumber::MAX;

/// The name shown for spans without one.
pub const UNNAMED: &str = "[unnamed]";

/// Stored as the duration of a span that never ended.
pub const UNFINISHED: i64 = -1;

/// The interned names of a trace.
#[derive(Debug, Default, Clone)]
pub struct SliceNames {
    texts: Texts<NameNumber>,
}

impl SliceNames {
    /// Interns a name.
    #[inline]
    pub fn number(&mut self, text: &[u8]) -> NameNumber {
        self.texts.intern(text)
    }

    /// The number of names. IDs run from 0.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// True if there are no names.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The ID of a name, if it has been interned.
    pub fn find(&self, text: &[u8]) -> Option<NameNumber> {
        self.texts.find(text)
    }

    /// The name with this ID; empty for [`NO_NAME`].
    pub fn text(&self, number: NameNumber) -> &[u8] {
        if number == NO_NAME { b"" } else { self.texts.get(number) }
    }
}

/// A span or an instant of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// The start, in nanoseconds on the clock of the slice's thread. It may be before the clock's zero, and so
    /// negative.
    pub start: i64,
    /// The duration in nanoseconds; 0 for an instant, [`UNFINISHED`] if the span never ended.
    pub duration: i64,
    /// The slice's name, as an ID in [`Timeline::names`].
    pub name: NameNumber,
    /// The action: what exactly the slice did, as stated in its arguments. For example, clang's slice `ParseClass`
    /// states the name of the class. An ID in [`Timeline::names`], or [`NO_NAME`] if the arguments state no action.
    pub action: NameNumber,
    /// The thread that the slice started on, as an index into [`Timeline::tracks`].
    pub track: u32,
    /// The track with an ID of its own (async track) that the slice belongs to; 0 for the thread's own track.
    pub lane: u32,
    /// The number of spans around the slice on its track; 0 for an outermost span.
    pub depth: u16,
    /// Whether it is a span or an instant.
    pub kind: SliceKind,
    /// The offset in the file of the event that starts the slice.
    pub origin: u64,
}

/// The kind of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SliceKind {
    /// A span on the track of its thread.
    Span,
    /// A span on a track that is identified by an ID rather than a thread (async track).
    Async,
    /// An event without a duration.
    Instant,
}

impl Slice {
    /// The time when the slice ended. For a span that never ended, it is one nanosecond before its start, because trace
    /// viewers give such spans the duration -1.
    #[inline]
    pub fn end(&self) -> i64 {
        self.start.saturating_add(self.duration)
    }

    /// The time when the slice ended; the maximum for a span that never ended.
    #[inline]
    fn end_or_never(&self) -> i64 {
        if self.duration == UNFINISHED { i64::MAX } else { self.end() }
    }

    /// The sort key for the slices of a thread: by start, enclosing slices before those inside of them.
    #[inline]
    fn outer_first(&self) -> (i64, Reverse<i64>) {
        (self.start, Reverse(self.end_or_never()))
    }
}

/// The slices of a thread that are open while depths are computed.
#[derive(Debug, Default, Clone)]
struct Nesting {
    /// The start and end of each open slice, outermost first.
    open: Vec<(i64, i64)>,
    /// The sort key of the previous slice, to notice a slice that is out of order.
    last: Option<(i64, Reverse<i64>)>,
}

impl Nesting {
    /// Sets the depth of the next slice. Returns true if the slice overlaps another one without being nested in it; its
    /// depth is then 0.
    #[inline]
    fn place(&mut self, slice: &mut Slice) -> bool {
        let end = slice.end_or_never();
        // `nest_in_order` compares the next slice with this one. `nest` doesn't need it.
        self.last = Some(slice.outer_first());
        // Remove slices that have ended. A slice that ends where this one starts has ended, too, unless it has no
        // duration: of several instants at the same time, each counts as nested in the one before.
        while let Some(&(open_start, open_end)) = self.open.last()
            && (open_end < slice.start || (open_end == slice.start && open_start < open_end))
        {
            self.open.pop();
        }
        if self.open.last().is_some_and(|&(_, open_end)| open_end < end) {
            slice.depth = 0;
            return true;
        }
        slice.depth = self.open.len().min(usize::from(u16::MAX)) as u16;
        self.open.push((slice.start, end));
        false
    }
}

/// The spans and instants of a trace, and their threads.
#[derive(Debug, Default, Clone)]
pub struct Timeline {
    /// All names of slices, actions and arguments.
    pub names: SliceNames,
    /// The threads and other tracks, as [`Slice::track`] refers to them.
    pub tracks: Vec<Track>,
    /// All slices, in the order in which the file has the events that start them. [`Timeline::sort`] sorts them by
    /// start time.
    pub slices: Vec<Slice>,
    /// For each argument that the reader was asked to look for, the slices that have it: the index of the slice, and
    /// the argument's value as an ID in `names`.
    pub by_arg: Vec<Vec<(u32, NameNumber)>>,
    /// True if Miri wrote the trace. Each of its interpreted calls (`frame`, `step`) is on an async track of its own,
    /// although they call each other.
    pub is_miri: bool,
    /// Some names of arguments that spans have, collected if time is to be summed by an argument. If no span has that
    /// argument, a message lists these.
    pub argument_names: BTreeSet<String>,
    /// The number of events that don't nest properly or lack a time.
    pub oddities: Oddities,
}

/// The names of the spans of code that Miri interprets.
pub const MIRI_FRAMES: [&str; 2] = ["frame", "step"];

/// How many events of a trace don't nest properly or can't be placed in time.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Oddities {
    /// The number of end events that closed a span while other spans were still open inside of it. The inner spans were
    /// closed at the same time.
    pub misplaced_ends: u64,
    /// The number of end events without an open span.
    pub unmatched_ends: u64,
    /// The number of complete spans (with start and duration) that overlap another span of their thread without being
    /// nested in it.
    pub overlaps: u64,
    /// The number of events that are in the file so long after later events of the same thread that the reader, which
    /// sorts only nearby events, had already passed their time.
    pub late: u64,
    /// The number of events without a time.
    pub timeless: u64,
    /// The number of complete spans without a duration.
    pub endless: u64,
    /// The number of complete spans that state a CPU time but no duration. The CPU time is used as their duration.
    pub cpu_durations: u64,
    /// The number of instants that have call stacks of their own.
    pub stacks: u64,
    /// The number of events whose phase isn't one of the format's.
    pub unknown: u64,
}

impl Timeline {
    /// Sorts the slices by start time. Slices with equal times stay in file order.
    pub fn sort(&mut self) {
        if !self.slices.is_sorted_by_key(|slice| slice.start) {
            self.slices.sort_by_key(|slice| slice.start);
        }
    }

    /// Computes the depths of slices from their times, for the threads for which `threads` is true. Async slices aren't
    /// changed. Of slices with equal times, the first is the outer one. A span that overlaps another one without being
    /// nested gets depth 0 and is counted in `oddities`.
    pub fn nest(&mut self, threads: &[bool]) {
        if let Some(overlaps) = self.nest_in_order(threads) {
            self.oddities.overlaps += overlaps;
            return;
        }
        let slices = &mut self.slices;
        let mut order: Vec<u32> = Vec::new();
        for (index, slice) in slices.iter().enumerate() {
            if threads[slice.track as usize] && slice.kind != SliceKind::Async {
                order.push(index as u32);
            }
        }
        order.sort_by_key(|&index| (slices[index as usize].track, slices[index as usize].outer_first()));
        let mut nesting = vec![Nesting::default(); threads.len()];
        for index in order {
            let slice = &mut slices[index as usize];
            self.oddities.overlaps += u64::from(nesting[slice.track as usize].place(slice));
        }
    }

    /// Like [`nest`](Self::nest) (only for the threads for which `threads` is true), but requires that each thread's
    /// slices are sorted by time, outer ones first. Returns the number of spans that overlap without being nested;
    /// `None` if the slices aren't sorted.
    fn nest_in_order(&mut self, threads: &[bool]) -> Option<u64> {
        let mut nesting = vec![Nesting::default(); threads.len()];
        let mut overlaps = 0;
        for slice in &mut self.slices {
            if !threads[slice.track as usize] || slice.kind == SliceKind::Async {
                continue;
            }
            let nesting = &mut nesting[slice.track as usize];
            if nesting.last.is_some_and(|last| last > slice.outer_first()) {
                // The slice is out of order. `nest` then sets all depths again, also those that were set here.
                return None;
            }
            overlaps += u64::from(nesting.place(slice));
        }
        Some(overlaps)
    }

    /// The earliest start and the latest end; zeros if there are no slices.
    pub fn bounds(&self) -> (i64, i64) {
        let first = self.slices.iter().map(|slice| slice.start).min();
        let last = self.slices.iter().map(|slice| slice.end().max(slice.start)).max();
        (first.unwrap_or(0), last.unwrap_or(0))
    }

    /// The number of spans that never ended.
    pub fn unfinished_count(&self) -> u64 {
        self.slices.iter().filter(|slice| slice.duration == UNFINISHED).count() as u64
    }

    /// Converts spans to stacks. Spans on a thread's own track are nested by time. Spans on an async track (with an ID)
    /// are nested by time as well, apart from the thread and from other IDs. There is an exception for Miri: its
    /// interpreted calls, each of which has an ID of its own, are nested into their thread, whose track shows what Miri
    /// did while it interpreted a function. If `only` isn't empty, spans with other names are left out. `label` returns
    /// the name to show for a span.
    pub fn stacks(&self, options: CallOptions, only: &[NameNumber], label: impl Fn(&Slice) -> NameNumber) -> Stacked {
        let spans = self.spans_by_end(|slice| only.is_empty() || only.contains(&slice.name));
        // The IDs of the names that Miri gives to interpreted calls; empty for other traces.
        let mut frame_names: Vec<NameNumber> = Vec::new();
        if self.is_miri {
            frame_names.extend(MIRI_FRAMES.iter().filter_map(|name| self.names.find(name.as_bytes())));
        }
        let is_frame = |slice: &Slice| slice.kind == SliceKind::Async && frame_names.contains(&slice.name);
        let is_mixed_up = self.find_mixed_up(&spans, is_frame);
        let async_rows = self.async_rows(&spans, is_frame);
        // The times in `spans` count from the first start in the trace. Convert the requested time range as well.
        let (first, _) = self.bounds();
        let since_first = |time: u64| (i128::from(time) - i128::from(first)).clamp(0, i128::from(u64::MAX)) as u64;
        let within = options.within.map(|span| Span { start: since_first(span.start), end: since_first(span.end) });
        let mut sums = CallSums::new(CallOptions { within, ..options });
        let mut tracks = Vec::new();
        let mut track_numbers = FxHashMap::default();
        for &(span, index) in &spans {
            let slice = &self.slices[index as usize];
            let (thread, row) = match slice.kind {
                // Row 0 is the thread itself. Row 1 is for Miri's interpreted calls, if they don't nest properly in the
                // thread. The rows from 2 on are for other async tracks.
                SliceKind::Async if is_frame(slice) => (slice.track, u32::from(is_mixed_up[slice.track as usize])),
                SliceKind::Async => {
                    let (thread, row) = async_rows[slice.lane as usize];
                    (thread, 2 + row)
                }
                _ => (slice.track, 0),
            };
            let track = *track_numbers.entry((thread, row)).or_insert_with(|| {
                tracks.push(self.tracks[thread as usize].clone());
                sums.track()
            });
            sums.call(track, label(slice), span);
        }
        let overlaps = sums.overlaps();
        let series = if options.clock == Clock::Wall { "wall-time" } else { "active-time" };
        let mut profile = sums.into_profile(&tracks, self.names.texts.list(), series, Unit::Nanos);
        // So far, the profile's times count from the start of the first span. Restore the original times, unless the
        // first start is negative, because a profile has no negative times.
        let first = u64::try_from(first).unwrap_or(0);
        for time in profile.series.iter_mut().flat_map(|series| &mut series.rows).filter_map(|row| row.time.as_mut()) {
            time.0 = time.0.saturating_add(first);
        }
        Stacked { profile, overlaps }
    }

    /// For each async track, the thread where it started, and the number of a row in that thread, counted from 0. Async
    /// tracks that don't overlap in time share a row, so that there are only as many rows as simultaneous operations.
    /// Interpreted calls of Miri (`is_frame`) have no rows.
    fn async_rows(&self, spans: &[(Span, u32)], is_frame: impl Fn(&Slice) -> bool) -> Vec<(u32, u32)> {
        /// An async track (identified by an ID).
        #[derive(Clone, Copy)]
        struct AsyncTrack {
            /// The thread where it started; `None` if the track has no spans.
            thread: Option<u32>,
            /// From the track's first start to its last end.
            extent: Span,
        }
        let is_operation = |slice: &Slice| slice.kind == SliceKind::Async && !is_frame(slice);
        let operations = self.slices.iter().filter(|slice| is_operation(slice));
        let count = operations.map(|slice| slice.lane as usize + 1).max().unwrap_or(0);
        let mut tracks = vec![AsyncTrack { thread: None, extent: Span { start: u64::MAX, end: 0 } }; count];
        for &(span, index) in spans {
            let slice = &self.slices[index as usize];
            if is_operation(slice) {
                let AsyncTrack { thread, extent } = &mut tracks[slice.lane as usize];
                // If the span is outermost, it determines the operation's thread. Spans inside of it may have started
                // on other threads.
                if slice.depth == 0 || thread.is_none() {
                    *thread = Some(slice.track);
                }
                *extent = Span { start: extent.start.min(span.start), end: extent.end.max(span.end) };
            }
        }
        // The async tracks with spans, by thread and start.
        let mut order: Vec<(u32, u64, usize)> = Vec::new();
        for (index, track) in tracks.iter().enumerate() {
            order.extend(track.thread.map(|thread| (thread, track.extent.start, index)));
        }
        order.sort_unstable();
        let mut rows = vec![(0, 0); count];
        // For each row of the current thread, when it becomes free; earliest first.
        let mut free: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        let mut current_thread = None;
        for (thread, start, index) in order {
            if current_thread != Some(thread) {
                free.clear();
                current_thread = Some(thread);
            }
            let row = match free.peek() {
                // The next track must start strictly later (`<`): an empty span directly at the end of another one
                // would be nested in it.
                Some(&Reverse((end, row))) if end < start => {
                    free.pop();
                    row
                }
                _ => free.len() as u32,
            };
            free.push(Reverse((tracks[index].extent.end, row)));
            rows[index] = (thread, row);
        }
        rows
    }

    /// For each slice, its self time: its duration without that of the spans directly inside of it on the same track. 0
    /// for instants and unfinished spans.
    pub fn self_times(&self) -> Vec<i64> {
        let track = |slice: &Slice| (slice.track, if slice.kind == SliceKind::Async { slice.lane } else { 0 });
        let mut order: Vec<u32> = Vec::new();
        for (index, slice) in self.slices.iter().enumerate() {
            if slice.duration > 0 && slice.kind != SliceKind::Instant {
                order.push(index as u32);
            }
        }
        order.sort_by_key(|index| {
            let slice = &self.slices[*index as usize];
            (track(slice), slice.outer_first(), *index)
        });
        let mut self_times = vec![0; self.slices.len()];
        // The spans around the current one, outermost first.
        let mut enclosing: Vec<u32> = Vec::new();
        for index in order {
            let slice = &self.slices[index as usize];
            // Remove the spans that don't contain this one: those on other tracks, and those that end before this one
            // does.
            while let Some(outer) = enclosing.last() {
                let outer = &self.slices[*outer as usize];
                if track(outer) == track(slice) && outer.end() > slice.start && outer.end() >= slice.end() {
                    break;
                }
                enclosing.pop();
            }
            self_times[index as usize] = slice.duration;
            if let Some(outer) = enclosing.last() {
                self_times[*outer as usize] -= slice.duration;
            }
            enclosing.push(index);
        }
        self_times
    }

    /// The wanted spans, each with the index of its slice, by descending end and outer ones first. Unfinished spans end
    /// with their thread's last slice. Times count from the first start in the trace.
    fn spans_by_end(&self, is_wanted: impl Fn(&Slice) -> bool) -> Vec<(Span, u32)> {
        let (first, _) = self.bounds();
        let mut thread_ends = vec![first; self.tracks.len()];
        for slice in &self.slices {
            let end = &mut thread_ends[slice.track as usize];
            // The end of an unfinished slice is before its start, so the slice counts with its start.
            *end = slice.end().max(slice.start).max(*end);
        }
        let mut spans = Vec::new();
        for (index, slice) in self.slices.iter().enumerate() {
            if slice.kind == SliceKind::Instant || !is_wanted(slice) {
                continue;
            }
            let end = if slice.duration == UNFINISHED { thread_ends[slice.track as usize] } else { slice.end() };
            let span = Span { start: slice.start.abs_diff(first), end: end.max(slice.start).abs_diff(first) };
            spans.push((span, index as u32));
        }
        spans.sort_unstable_by_key(|&(span, index)| (Reverse(span.end), span.start, index));
        spans
    }

    /// For each thread, whether its spans, together with Miri's interpreted calls, overlap without being nested. The
    /// calls must then be kept out of the thread's own stacks. Miri's interpreted calls are the async slices for which
    /// `is_frame` is true.
    fn find_mixed_up(&self, spans: &[(Span, u32)], is_frame: impl Fn(&Slice) -> bool) -> Vec<bool> {
        let mut lanes: Vec<Lanes<()>> = self.tracks.iter().map(|_| Lanes::default()).collect();
        for &(span, index) in spans {
            let slice = &self.slices[index as usize];
            // Skip async spans that aren't interpreted calls: they are on tracks of their own.
            if slice.kind == SliceKind::Async && !is_frame(slice) {
                continue;
            }
            let lanes = &mut lanes[slice.track as usize];
            // If the span overlaps another one without being nested, `place` also increments the count that `overlaps`
            // returns.
            let lane = lanes.place(span, |()| {});
            lanes.open(lane, span, ());
        }
        lanes.iter().map(|lanes| lanes.overlaps() > 0).collect()
    }
}

/// The result of converting spans to stacks.
#[derive(Debug)]
pub struct Stacked {
    /// The spans as weighted stacks.
    pub profile: Profile,
    /// The number of spans that overlapped another one on their track without being nested in it.
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
            action: NO_NAME,
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
