//! Puts spans that are on tracks with an ID of their own onto synthetic threads.
//!
//! Miri gives each `frame` a track of its own, because a frame begins in one span of its thread and ends in another.
//! Perfetto then doesn't know which frame called which, and speedscope shows no frames at all. Frames do nest among
//! themselves, so on a separate thread every viewer draws them as calls.

use crate::analysis::timeline::{Lanes, NameNumber, Span, SpanHead, UNFINISHED};
use crate::model::stacks::Track;
use rustc_hash::FxHashMap;

/// Assigns spans to synthetic threads, and numbers these threads.
#[derive(Debug, Default)]
pub(super) struct SyntheticThreads {
    /// The number of the next synthetic thread.
    next: i64,
    /// For each thread and span name: the lanes, within each of which spans nest, and the ID of the synthetic thread
    /// for each lane.
    known: FxHashMap<(u32, NameNumber), (Lanes<()>, Vec<i64>)>,
}

/// The synthetic thread that a span goes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntheticThread {
    /// The thread ID to write.
    pub(super) tid: i64,
    /// True if this is the first span of the thread.
    pub(super) is_new: bool,
}

impl SyntheticThreads {
    /// Starts without any synthetic threads. Their numbers will be above those of the trace's `threads`.
    pub(super) fn new(threads: &[Track]) -> Self {
        let tids = threads.iter().filter_map(|thread| thread.tid);
        let next = tids.map(|tid| i64::from(tid.0)).max().unwrap_or(0).max(0) + 1;
        Self { next, known: FxHashMap::default() }
    }

    /// Assigns a span to a thread. Spans must come ordered by start, and with equal starts the longest first. All spans
    /// of a thread and name share one synthetic thread unless they overlap without nesting.
    pub(super) fn place(&mut self, head: &SpanHead<'_>) -> SyntheticThread {
        let (lanes, tids) = self.known.entry((head.thread_no, head.name_no)).or_default();
        let end = if head.duration == Some(UNFINISHED) { i64::MAX } else { head.end() };
        // `Lanes` expects the spans that end last first, but these spans come in order of their starts. Mirroring the
        // time axis turns one order into the other.
        let span = Span { start: i64::MAX.abs_diff(end), end: i64::MAX.abs_diff(head.start) };
        // A span is all that a lane stores (the value is `()`), so nothing is done for the spans that `place` closes.
        let lane = lanes.place(span, |()| {});
        lanes.open(lane, span, ());
        if let Some(&tid) = tids.get(lane) {
            return SyntheticThread { tid, is_new: false };
        }
        let tid = self.next;
        self.next += 1;
        tids.push(tid);
        SyntheticThread { tid, is_new: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Tid;

    #[test]
    fn calls_share_a_thread_and_what_only_overlaps_gets_another() {
        let track = |tid| Track { tid: Some(Tid(tid)), ..Track::default() };
        let tracks = [track(0), track(7)];
        let mut threads = SyntheticThreads::new(&tracks);
        let mut place = |thread_no, name_no, start, duration| {
            let (thread, duration) = (&tracks[0], Some(duration));
            let head = SpanHead { thread_no, thread, name_no, name: b"frame", action: None, start, duration };
            let SyntheticThread { tid, is_new } = threads.place(&head);
            (tid, is_new)
        };
        assert_eq!(place(0, 1, -5, 105), (8, true));
        assert_eq!(place(0, 1, 0, 50), (8, false));
        assert_eq!(place(1, 1, 0, UNFINISHED), (9, true));
        assert_eq!(place(0, 1, 40, 20), (10, true));
        assert_eq!(place(0, 2, 45, 5), (11, true));
        assert_eq!(place(0, 1, 50, 50), (8, false));
        assert_eq!(place(1, 1, 60, 1), (9, false));
        assert_eq!(place(0, 1, 60, 20), (8, false));
        assert_eq!(place(0, 1, 100, 1), (8, false));
    }
}
