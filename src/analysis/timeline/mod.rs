//! Intervals of time on tracks (threads): nesting rebuilt from the times alone, self and active time, gaps.
//!
//! Readers of interval formats push the file's content; code that needs times calls this. Times are plain numbers in
//! the recording's unit (nanoseconds, mostly), because a track may count instructions instead.

mod active;
mod calls;
mod gaps;
mod lanes;
mod sampling;
mod slices;
mod span_sink;
mod summary;
mod tally;

pub use calls::{CallSums, Label, OpenCalls};
pub use gaps::{Gap, Selection};
pub use lanes::{Lanes, Span};
pub use sampling::Sampling;
pub use slices::{NO_NAME, NameNo, Oddities, Slice, SliceKind, SliceNames, Stacked, Timeline, UNFINISHED};
pub use span_sink::{
    Arguments, NumberOrName, OtherEvent, OtherKind, SpanFile, SpanHead, SpanId, SpanRecord, SpanSink, SpanWriter,
    TellSpan,
};
pub use summary::{LabelSummary, LabelTotals};
pub use tally::Tally;

/// The measure of each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// From begin to end, on each track by itself.
    #[default]
    Wall,
    /// Only while the track was the one that ran: for tracks that take turns on one processor. Each stretch between two
    /// neighboring start or end, over all tracks, belongs to one track alone.
    Active(Owner),
}

/// The owner of a stretch of time between two edges. The moment of the switch inside it was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Owner {
    /// The track of the edge at its end: it must have run to get there.
    #[default]
    Next,
    /// The track of the edge at its start: it ran then.
    Previous,
}

/// The way intervals become stacks.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallOptions {
    /// Only what lies within this stretch of time; calls that reach out of it are cut.
    pub within: Option<Span>,
    /// The clock of the times that are summed.
    pub clock: Clock,
    /// The calls of a track that stand for the others.
    pub sampling: Sampling,
    /// Calls that took less are their caller's time.
    pub min_duration: u64,
    /// Rows show when calls ran themselves, unless there are more than that; `None`: rows are sums. Wall time of all
    /// calls only.
    pub timed: Option<usize>,
}
