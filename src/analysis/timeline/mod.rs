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
mod tally;

pub use calls::{CallSums, Label, OpenCalls};
pub use gaps::{Gap, Selection};
pub use lanes::{Lanes, Span};
pub use sampling::Sampling;
pub use slices::{
    MIRI_FRAMES, NO_NAME, NameNo, Oddities, Slice, SliceKind, SliceNames, Stacked, Timeline, UNFINISHED, UNNAMED,
};
pub use span_sink::{
    Arguments, NumberOrName, OtherEvent, OtherKind, SpanFile, SpanHead, SpanId, SpanRecord, SpanSink, SpanWriter,
    TellSpan,
};
pub use tally::Tally;

use std::collections::BTreeMap;

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

/// The totals of one label, as a recorder's own tools have them: of rustc's, labels are queries with caches. Times are in the recording's unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LabelTotals {
    /// Time in it and in nothing that it called.
    pub self_time: i64,
    /// Time from begin to end; a recursive call counts again.
    pub time: i64,
    /// The number of times that it ran.
    pub count: u64,
    /// The number of times that its result was known already.
    pub cache_hits: u64,
    /// The number of times that it was not, of queries and activities.
    pub cache_misses: u64,
    /// Time waiting for another thread that computes the same.
    pub blocked: i64,
    /// Time loading its result from the incremental cache.
    pub load: i64,
    /// Time hashing its result for the incremental cache.
    pub hash: i64,
}

/// The whole of a recording.
#[derive(Debug, Clone, Default)]
pub struct LabelSummary {
    /// By label.
    pub labels: BTreeMap<Vec<u8>, LabelTotals>,
    /// Sizes of artifacts, by name.
    pub artifacts: BTreeMap<Vec<u8>, u64>,
    /// From the first begin to the last end of each thread, summed.
    pub total: u64,
}
