//! Calls as an input recorded them, in addition to the stacks that were estimated from them.
//!
//! A call graph records each function's self cost, and for each pair of functions the number of calls and their
//! inclusive cost. It doesn't record on whose behalf a function called its callees, so stacks derived from it are an
//! estimate. Tables of functions, callers and callees therefore use the calls themselves.

use super::ids::{FrameId, TrackId};

/// The calls of one thread, or of all threads if the input doesn't tell them apart.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadCalls {
    /// The track that the stacks of these calls have.
    pub track: TrackId,
    /// Names of the series that the costs belong to, in the order of the `costs` arrays.
    pub events: Vec<String>,
    /// Self cost of every function that occurs in the calls; zeros if the input has none.
    pub functions: Vec<SelfCost>,
    /// One entry per pair of caller and callee.
    pub calls: Vec<Calls>,
}

/// A function's self cost.
#[derive(Debug, Clone, PartialEq)]
pub struct SelfCost {
    /// The function. If the input distinguishes levels of recursion (`f`, `f'2`), each is a function of its own.
    pub function: FrameId,
    /// The frame that stacks contain instead: there, recursion repeats the function (`f;f`).
    pub in_stacks: FrameId,
    /// One value per event; negative if more is released than acquired, such as memory.
    pub costs: Box<[i64]>,
}

/// All calls from one function to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Calls {
    /// The function that calls.
    pub caller: FrameId,
    /// The function that is called.
    pub callee: FrameId,
    /// The number of calls.
    pub count: u64,
    /// Inclusive cost of the callee, one value per event.
    pub costs: Box<[i64]>,
}

impl ThreadCalls {
    /// Translates the calls to another profile's IDs and event names.
    pub(super) fn translate(&self, frames: &[FrameId], tracks: &[TrackId], events: Vec<String>) -> Self {
        let mut translated = Self { track: tracks[self.track.index()], events, ..self.clone() };
        for cost in &mut translated.functions {
            cost.function = frames[cost.function.index()];
            cost.in_stacks = frames[cost.in_stacks.index()];
        }
        for calls in &mut translated.calls {
            calls.caller = frames[calls.caller.index()];
            calls.callee = frames[calls.callee.index()];
        }
        translated
    }
}
