//! The open spans of one track.

use crate::analysis::timeline::{NO_NAME, NameNo, Slice, UNFINISHED};

/// Spans that are still open above one that an event is about: where there are more, that one is not looked for.
/// Perfetto keeps no more spans in each other.
const FAR: usize = 512;

/// A span on the stack: still open, or closed while others in it were open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    slice: usize,
    name: NameNo,
    cat: NameNo,
    start: i64,
    duration: i64,
}

impl Open {
    pub(super) fn new(slice: usize, name: NameNo, cat: NameNo, start: i64, duration: i64) -> Self {
        Self { slice, name, cat, start, duration }
    }

    fn end(&self) -> i64 {
        self.start.saturating_add(self.duration)
    }

    /// True if it is over for an event at `time`. Instants of one time lie in each other.
    fn over(&self, time: i64) -> bool {
        self.end() < time || (self.end() == time && self.duration > 0)
    }
}

/// Spans, outermost first.
#[derive(Debug, Default)]
pub(super) struct Stack {
    open: Vec<Open>,
    /// The number of them that are closed: mostly none is, and nothing has to be looked for.
    closed: usize,
}

impl Stack {
    pub(super) fn depth(&self) -> u16 {
        self.open.len().min(usize::from(u16::MAX)) as u16
    }

    pub(super) fn begin(&mut self, span: Open) {
        self.closed += usize::from(span.duration != UNFINISHED);
        self.open.push(span);
    }

    /// True if the innermost span is closed and ends before `end`.
    pub(super) fn top_ends_before(&self, end: i64) -> bool {
        self.open.last().is_some_and(|top| top.duration != UNFINISHED && top.end() < end)
    }

    /// Takes away what is over at `time`. Spans still open in one that is over end with it; gives how often.
    #[inline]
    pub(super) fn pass(&mut self, time: i64, slices: &mut [Slice]) -> u64 {
        let mut misplaced = 0;
        let mut open_inside = false;
        let mut kept = 0;
        for at in (0..self.open.len()).rev() {
            if self.closed == 0 || kept == FAR {
                break;
            }
            kept += 1;
            let span = self.open[at];
            if span.duration == UNFINISHED {
                open_inside = true;
            } else if open_inside {
                if span.end() < time {
                    misplaced += 1;
                    self.cut(at, span.end(), slices);
                    (open_inside, kept) = (false, 0);
                }
            } else if span.over(time) {
                self.open.pop();
                self.closed -= 1;
                kept -= 1;
            } else if span.duration > 0 {
                // It lasts beyond this time, and so does everything around it.
                break;
            }
        }
        misplaced
    }

    /// Ends everything inside the span at a place, and takes it all away.
    fn cut(&mut self, at: usize, end: i64, slices: &mut [Slice]) {
        self.closed -= 1;
        for inner in self.open.drain(at..).skip(1).filter(|inner| inner.duration == UNFINISHED) {
            slices[inner.slice].duration = end.saturating_sub(inner.start);
        }
    }

    /// Ends the innermost open span of that name and category; without either, of any. Gives the slice's place. `None` if
    /// there is none, or it is too far out.
    #[inline]
    pub(super) fn end(&mut self, time: i64, name: NameNo, cat: NameNo, slices: &mut [Slice]) -> Option<usize> {
        let same = |one: NameNo, other: NameNo| one == other || one == NO_NAME || other == NO_NAME;
        let wanted = |span: &Open| span.duration == UNFINISHED && same(span.name, name) && same(span.cat, cat);
        let near = self.open.len().saturating_sub(FAR);
        let at = near + self.open[near..].iter().rposition(wanted)?;
        let span = &mut self.open[at];
        // An end before its start comes from events that are out of order: no time passed.
        span.duration = time.saturating_sub(span.start).max(0);
        slices[span.slice].duration = span.duration;
        let slice = span.slice;
        if at + 1 == self.open.len() {
            self.open.pop();
        } else {
            self.closed += 1;
        }
        Some(slice)
    }
}
