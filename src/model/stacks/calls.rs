//! Calls as an input states them, beside the stacks that were made of them.
//!
//! A call graph holds what each function cost itself, and for each pair of functions the number and the inclusive cost
//! of the calls between them. Stacks made of it are an estimate: it doesn't record which caller a function's own callees
//! worked for. So tables of functions, callers and callees are made of the calls.

use super::ids::{FrameId, TrackId};

/// The calls of one thread, or of all threads of an input that doesn't distinguish them.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadCalls {
    /// The thread: that of its stacks.
    pub track: TrackId,
    /// The names of the series whose costs are stated, in the order of the costs below.
    pub events: Vec<String>,
    /// The self cost of each function that is named, 0 where none is stated.
    pub functions: Vec<SelfCost>,
    /// The calls between each pair of functions.
    pub calls: Vec<Calls>,
}

/// The self cost of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct SelfCost {
    /// The function. Levels of recursion that the input distinguishes (`f`, `f'2`) are functions of their own.
    pub function: FrameId,
    /// Its name in stacks, where recursion is the function again (`f;f`).
    pub in_stacks: FrameId,
    /// By event; below zero where more is freed than taken.
    pub costs: Box<[i64]>,
}

/// All calls from one function to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Calls {
    /// The caller.
    pub caller: FrameId,
    /// The callee.
    pub callee: FrameId,
    /// The number of calls.
    pub count: u64,
    /// By event, the cost of the callee and of all that it called.
    pub costs: Box<[i64]>,
}

impl ThreadCalls {
    /// The same calls in another profile, given what its frames, threads and events became there.
    pub(super) fn renumbered(&self, frames: &[FrameId], tracks: &[TrackId], events: Vec<String>) -> Self {
        let frame = |id: FrameId| frames[id.index()];
        let own = |own: &SelfCost| SelfCost {
            function: frame(own.function),
            in_stacks: frame(own.in_stacks),
            costs: own.costs.clone(),
        };
        let calls = |calls: &Calls| Calls {
            caller: frame(calls.caller),
            callee: frame(calls.callee),
            count: calls.count,
            costs: calls.costs.clone(),
        };
        Self {
            track: tracks[self.track.index()],
            events,
            functions: self.functions.iter().map(own).collect(),
            calls: self.calls.iter().map(calls).collect(),
        }
    }
}
