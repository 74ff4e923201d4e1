//! The stack of spans on one track while events are read.

use crate::analysis::timeline::{NO_NAME, NameNumber, Slice, UNFINISHED};

/// How many of the innermost spans of a stack are searched for the span that an end closes, or for spans that have
/// ended. Ends of spans further outside aren't matched. Perfetto nests spans no deeper either.
const MAX_SEARCHED: usize = 512;

/// A span on the stack. It stays there after its end while spans inside it are still open.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenSpan {
    /// The index of the span in [`Timeline::slices`](crate::analysis::timeline::Timeline::slices).
    slice: usize,
    name: NameNumber,
    cat: NameNumber,
    start: i64,
    /// The span's duration; [`UNFINISHED`] until its end is known.
    duration: i64,
}

impl OpenSpan {
    pub(super) fn new(slice: usize, name: NameNumber, cat: NameNumber, start: i64, duration: i64) -> Self {
        Self { slice, name, cat, start, duration }
    }

    fn end(&self) -> i64 {
        self.start.saturating_add(self.duration)
    }

    /// True if the span, whose end is known, is over for an event at `time`. A span is over at the time of its end
    /// already. So is an instant, unless the event is an instant, too: instants at the same time are nested, as in
    /// Perfetto.
    fn is_over_at(&self, time: i64, for_instant: bool) -> bool {
        self.end() < time || (self.end() == time && (self.duration > 0 || !for_instant))
    }

    /// True if the span is still open, and an end with this name and category may close it.
    fn is_ended_by(&self, name: NameNumber, cat: NameNumber) -> bool {
        self.duration == UNFINISHED && is_match(self.name, name) && is_match(self.cat, cat)
    }
}

/// True if two names or categories are equal or one is missing.
fn is_match(one: NameNumber, other: NameNumber) -> bool {
    one == other || one == NO_NAME || other == NO_NAME
}

/// The spans of a track that contain the current time, outermost first.
#[derive(Debug, Default)]
pub(super) struct SpanStack {
    /// The spans, including those that have ended but contain open ones.
    open: Vec<OpenSpan>,
    /// The number of spans on the stack whose end is known. Usually 0, so that nothing needs to be searched.
    closed: usize,
}

impl SpanStack {
    pub(super) fn depth(&self) -> u16 {
        self.open.len().min(usize::from(u16::MAX)) as u16
    }

    /// Adds a span inside all others.
    pub(super) fn begin(&mut self, span: OpenSpan) {
        self.closed += usize::from(span.duration != UNFINISHED);
        self.open.push(span);
    }

    /// True if the end of the innermost span is known and is before the time `end`.
    pub(super) fn top_ends_before(&self, end: i64) -> bool {
        self.open.last().is_some_and(|top| top.duration != UNFINISHED && top.end() < end)
    }

    /// Removes the spans that are over at `time`, when the next event happens. `for_instant` is true if that event is
    /// an instant (or a span of no duration), false if it starts or ends a span. If a span that is over still contains
    /// open spans, these end with it, and its end counts as misplaced. Returns the number of misplaced ends. `slices`
    /// are all spans of the timeline.
    #[inline]
    pub(super) fn remove_finished(&mut self, time: i64, for_instant: bool, slices: &mut [Slice]) -> u64 {
        let mut misplaced = 0;
        // True if one of the spans that the loop has kept hasn't ended. The loop goes from the innermost span outwards.
        let mut contains_open = false;
        // The number of spans that stay on the stack inside the next one.
        let mut kept = 0;
        for index in (0..self.open.len()).rev() {
            // Nothing more can be over if no span with a known end is left on the stack (`closed` counts these). If too
            // many spans stay inside the next one, the search is given up.
            if self.closed == 0 || kept == MAX_SEARCHED {
                break;
            }
            kept += 1;
            let span = self.open[index];
            if span.duration == UNFINISHED {
                contains_open = true;
                continue;
            }
            if contains_open {
                // The open spans inside this span may still end in order at the very time of its end. So it is only
                // over after that time.
                if span.end() < time {
                    misplaced += 1;
                    self.remove_with_inner_spans(index, span.end(), slices);
                    // Nothing is left inside the next span.
                    (contains_open, kept) = (false, 0);
                }
                continue;
            }
            // An instant isn't over for another instant at the same time (`for_instant`): these are nested, as in
            // Perfetto.
            if span.is_over_at(time, for_instant) {
                self.open.remove(index);
                self.closed -= 1;
                kept -= 1;
            } else if span.duration > 0 {
                // This span lasts longer, and so do all spans around it. (An instant that isn't over yet says nothing
                // about the spans around it, so the loop goes on after one.)
                break;
            }
        }
        misplaced
    }

    /// Removes the span at this index, which has ended, and all spans inside it. These must still be open, and are
    /// ended at the time `end`. So `closed`, the number of ended spans on the stack, only changes by one.
    fn remove_with_inner_spans(&mut self, index: usize, end: i64, slices: &mut [Slice]) {
        self.closed -= 1;
        for inner in self.open.drain(index..).skip(1) {
            if inner.duration == UNFINISHED {
                slices[inner.slice].duration = end.saturating_sub(inner.start);
            }
        }
    }

    /// Ends the innermost open span with this name and category. A missing name or category matches any. Returns the
    /// index of the span's slice; `None` if there is no such span, or if too many others are open inside it.
    #[inline]
    pub(super) fn end(&mut self, time: i64, name: NameNumber, cat: NameNumber, slices: &mut [Slice]) -> Option<usize> {
        let first_searched = self.open.len().saturating_sub(MAX_SEARCHED);
        let index_in_searched = self.open[first_searched..].iter().rposition(|span| span.is_ended_by(name, cat))?;
        let index = first_searched + index_in_searched;
        let is_innermost = index + 1 == self.open.len();
        let span = &mut self.open[index];
        // If an end comes before its start because events are out of order, the duration is 0.
        span.duration = time.saturating_sub(span.start).max(0);
        let slice = span.slice;
        slices[slice].duration = span.duration;
        if is_innermost {
            self.open.pop();
        } else {
            // The span stays on the stack until the spans inside it are over.
            self.closed += 1;
        }
        Some(slice)
    }
}
