//! Answers that hold for a stretch of time: a caller with the same question need not look it up again.

use super::Nanos;
use std::ops::Range;

/// An answer for a moment, and the stretch of time around the moment in which it is the same.
#[derive(Debug, Clone)]
pub struct Lasting<T> {
    /// The answer.
    pub answer: T,
    /// When it holds. Empty if that is not even known of the moment itself.
    pub holds: Range<Nanos>,
}

/// All the time there is.
pub const ALWAYS: Range<Nanos> = Nanos(0)..Nanos(u64::MAX);

/// The moment of entries without a time of their own: the answer may be another one than at any other time.
pub const UNTIMED: Nanos = Nanos(u64::MAX - 1);

/// The range that both have in common.
pub fn both(a: Range<Nanos>, b: Range<Nanos>) -> Range<Nanos> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// The stretch of time around a moment in which nothing begins and nothing ends.
#[derive(Debug, Clone)]
pub struct Quiet {
    moment: Nanos,
    /// The period for which it is known.
    pub stretch: Range<Nanos>,
}

impl Quiet {
    /// No start and no end is known.
    pub fn around(moment: Nanos) -> Self {
        Self { moment, stretch: ALWAYS }
    }

    /// True if something may start or end in the stretch, if that is not before and not after a stretch of its own.
    pub fn may_be_cut(&self, by: &Range<Nanos>) -> bool {
        by.end > self.stretch.start && by.start < self.stretch.end
    }

    /// Something starts and ends.
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
