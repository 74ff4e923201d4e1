//! Answers together with the time range in which they hold, so that callers needn't ask again.

use super::Nanos;
use std::ops::Range;

/// An answer to a question about a moment, and the time range around the moment in which the answer is the same.
#[derive(Debug, Clone)]
pub struct Lasting<T> {
    /// The answer.
    pub answer: T,
    /// Empty if the answer may change at any time, even at the moment itself.
    pub holds: Range<Nanos>,
}

/// The whole time axis.
pub const ALWAYS: Range<Nanos> = Nanos(0)..Nanos(u64::MAX);

/// The time for questions about entries that have none. The answer may differ from the answers for all other times.
pub const UNTIMED: Nanos = Nanos(u64::MAX - 1);

/// The intersection of two time ranges.
pub fn both(a: Range<Nanos>, b: Range<Nanos>) -> Range<Nanos> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// Narrows down the time range around a moment in which nothing starts or ends.
#[derive(Debug, Clone)]
pub struct Quiet {
    moment: Nanos,
    /// The range in which no start or end has been found so far.
    pub stretch: Range<Nanos>,
}

impl Quiet {
    /// Starts with the whole time axis.
    pub fn around(moment: Nanos) -> Self {
        Self { moment, stretch: ALWAYS }
    }

    /// True if something that exists during `by` might start or end in the range. If not, [`cut`](Self::cut) needn't be
    /// called.
    pub fn may_be_cut(&self, by: &Range<Nanos>) -> bool {
        by.end > self.stretch.start && by.start < self.stretch.end
    }

    /// Narrows the range: something starts at `by.start` and ends at `by.end`.
    pub fn cut(&mut self, by: Range<Nanos>) {
        for edge in [by.start, by.end] {
            if edge <= self.moment {
                self.stretch.start = self.stretch.start.max(edge);
            } else {
                self.stretch.end = self.stretch.end.min(edge);
            }
        }
    }
}
