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

pub use calls::{CallSums, Label};
pub use gaps::{Gap, GapRule, Selection};
pub use lanes::{Lanes, Span};
pub use sampling::Sampling;
pub use slices::{
    MIRI_FRAMES, NO_NAME, NameNumber, Oddities, Slice, SliceKind, SliceNames, Stacked, Timeline, UNFINISHED, UNNAMED,
};
pub use span_sink::{
    Arguments, EmitSpan, NumberOrName, OtherEvent, OtherKind, SpanFile, SpanHead, SpanId, SpanRecord, SpanSink,
    SpanWriter,
};
pub use tally::Tally;

use std::collections::BTreeMap;

/// Which time counts as a call's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// All time from the call's start to its end, independently for each track.
    #[default]
    Wall,
    /// Only the time during which the call's track was running, for tracks that take turns on one CPU. Starts and ends
    /// of calls on all tracks divide time into intervals, and each interval belongs to one track.
    Active(Owner),
}

/// To which track an interval between two edges (starts or ends of calls) belongs. Recordings don't say when execution
/// switched from one track to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Owner {
    /// The track of the edge at the end of the interval: it must have been running to get there.
    #[default]
    Next,
    /// The track of the edge at the start of the interval: it was running then.
    Previous,
}

/// How to convert intervals to stacks.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallOptions {
    /// Only count this time range, and cut calls that extend beyond it. `None`: all time.
    pub within: Option<Span>,
    /// Which time counts as a call's time.
    pub clock: Clock,
    /// Which calls become stacks. Each kept call gets the weight of the dropped ones before it.
    pub sampling: Sampling,
    /// Calls shorter than this, in the recording's unit, are merged into their callers.
    pub min_duration: u64,
    /// The maximum number of rows with times. A call's self time consists of the intervals in which none of its callees
    /// ran. If all calls together have at most this many such intervals, each interval becomes a row of its own, with
    /// its start time. If there are more, or if this is `None`, rows are sums per stack. Ignored unless `clock` is wall
    /// time and all calls are kept (no sampling).
    pub timed: Option<usize>,
}

/// The totals of all calls with the same label, as the recorder's own tools show them. In rustc's profiles, labels are
/// queries, whose results are cached. Times are in the recording's unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LabelTotals {
    /// The time without callees.
    pub self_time: i64,
    /// The time from start to end; a recursive call counts again.
    pub time: i64,
    /// The number of calls.
    pub count: u64,
    /// How often the result of a query was taken from the cache.
    pub cache_hits: u64,
    /// How often the result of a query wasn't in the cache. For activities of the compiler, which have no results: how
    /// often they ran.
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
    /// The totals of each label.
    pub labels: BTreeMap<Vec<u8>, LabelTotals>,
    /// The size of each artifact in bytes, by its name.
    pub artifacts: BTreeMap<Vec<u8>, u64>,
    /// The time from each thread's first start to its last end, summed over threads.
    pub total: u64,
}
