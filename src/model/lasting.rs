//! Answers that come with the time range in which they hold, so that callers needn't ask again for other times in that
//! range.

use super::Nanos;
use std::ops::Range;

/// The answer to a question about a certain time, and the range around that time in which the answer is the same.
#[derive(Debug, Clone)]
pub struct Lasting<T> {
    /// The answer.
    pub answer: T,
    /// The time range in which the answer is the same. Empty if it can't be reused, even for the same time.
    pub holds: Range<Nanos>,
}

/// The whole time axis.
pub const ALWAYS: Range<Nanos> = Nanos(0)..Nanos(u64::MAX);

/// The time to use for questions about entries that have no time. The answer may differ from the answers for all real
/// times.
pub const UNTIMED: Nanos = Nanos(u64::MAX - 1);

/// The intersection of two time ranges.
pub fn intersect(a: Range<Nanos>, b: Range<Nanos>) -> Range<Nanos> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// A time range around a moment, which is narrowed down until nothing starts or ends within it.
#[derive(Debug, Clone)]
pub struct QuietPeriod {
    moment: Nanos,
    /// The range in which no start or end has been found so far.
    pub range: Range<Nanos>,
}

impl QuietPeriod {
    /// Starts with the whole time axis.
    pub fn new(moment: Nanos) -> Self {
        Self { moment, range: ALWAYS }
    }

    /// True if the start or end of `by` may be in the range. If false, calling [`cut`](Self::cut) with `by` would
    /// change nothing.
    pub fn may_be_cut(&self, by: &Range<Nanos>) -> bool {
        by.end > self.range.start && by.start < self.range.end
    }

    /// Narrows the range so that it contains neither the start nor the end of `by`.
    pub fn cut(&mut self, by: Range<Nanos>) {
        for edge in [by.start, by.end] {
            if edge <= self.moment {
                self.range.start = self.range.start.max(edge);
            } else {
                self.range.end = self.range.end.min(edge);
            }
        }
    }
}
