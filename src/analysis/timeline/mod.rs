//! Time intervals on tracks (threads): reconstructs their nesting from their times, and computes self time, active time
//! and gaps.
//!
//! Readers of interval formats push what their file contains. Times are plain integers in the recording's unit, usually
//! nanoseconds, because a track may count instructions instead.

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

/// How calls are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// From start to end, independently for each track.
    #[default]
    Wall,
    /// Only while the call's track was running: for tracks that take turns on one CPU. Each interval between two
    /// consecutive starts or ends, of any track, belongs to one track.
    Active(Owner),
}

/// Which track an interval between two edges belongs to. When execution switched tracks wasn't recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Owner {
    /// The track of the edge at its end, which it must have been running to reach.
    #[default]
    Next,
    /// The track of the edge at its start, which was running then.
    Previous,
}

/// How intervals become stacks.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallOptions {
    /// Only this time range counts; calls that extend beyond it are cut.
    pub within: Option<Span>,
    /// How calls are measured.
    pub clock: Clock,
    /// Which calls stand for others.
    pub sampling: Sampling,
    /// Shorter calls are merged into their caller.
    pub min_duration: u64,
    /// If there are at most this many rows, each row is an interval in which a call itself ran. `None`: rows are sums.
    /// Only available for wall time without sampling.
    pub timed: Option<usize>,
}

/// The totals of a label, as the recorder's own tools show them. In rustc's profiles, labels are queries with caches.
/// Times are in the recording's unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LabelTotals {
    /// Time without callees.
    pub self_time: i64,
    /// Time from start to end; recursive calls count again.
    pub time: i64,
    /// How often it ran.
    pub count: u64,
    /// How often its result was cached.
    pub cache_hits: u64,
    /// How often a query's result wasn't cached, or an activity ran.
    pub cache_misses: u64,
    /// Time spent waiting for another thread that computes the same result.
    pub blocked: i64,
    /// Time spent loading results from the incremental cache.
    pub load: i64,
    /// Time spent hashing results for the incremental cache.
    pub hash: i64,
}

/// The totals of a whole recording.
#[derive(Debug, Clone, Default)]
pub struct LabelSummary {
    /// By label.
    pub labels: BTreeMap<Vec<u8>, LabelTotals>,
    /// Sizes of artifacts, by name.
    pub artifacts: BTreeMap<Vec<u8>, u64>,
    /// The time from each thread's first start to its last end, summed over threads.
    pub total: u64,
}
