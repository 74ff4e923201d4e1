//! Sums by label, as a recorder's own tools have them: rustc's, whose labels are queries with caches.

use std::collections::BTreeMap;

/// The totals of one label. Times are in the recording's unit.
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
