//! Calls as an input recorded them, for inputs that record calls instead of stacks.
//!
//! A call graph records each function's self cost, and for each pair of functions the number of calls and their
//! inclusive cost. It doesn't record on whose behalf a function called its callees, so stacks derived from it are an
//! estimate. Tables of functions, callers and callees therefore use the calls themselves.

use super::ids::{FrameId, TrackId};

/// The calls of one thread, or of all threads if the input doesn't tell them apart.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadCalls {
    /// The track of the stacks that were estimated from these calls.
    pub track: TrackId,
    /// The names of the series that costs belong to. Each `costs` array has one value per series, in this order.
    pub events: Vec<String>,
    /// The self cost of every function that occurs in the calls; 0 if the input states none.
    pub functions: Vec<SelfCost>,
    /// One entry per pair of caller and callee.
    pub calls: Vec<Calls>,
}

/// A function's self cost.
#[derive(Debug, Clone, PartialEq)]
pub struct SelfCost {
    /// The function. If the input distinguishes levels of recursion (`f`, `f'2`), each level is a function here.
    pub function: FrameId,
    /// The frame of this function in stacks. If each level of recursion is a function (`f`, `f'2`), all of them have
    /// the same frame there (`f;f`).
    pub stack_frame: FrameId,
    /// One value per event. Negative if the function released more than it acquired, for example memory.
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
    /// The inclusive cost of the callee in these calls, one value per event.
    pub costs: Box<[i64]>,
}

impl ThreadCalls {
    /// Replaces IDs and event names by those of another profile. `frames` and `tracks` contain the new ID for each old
    /// one, and `events` are the new event names.
    pub(super) fn translate(&self, frames: &[FrameId], tracks: &[TrackId], events: Vec<String>) -> Self {
        let mut translated = Self { track: tracks[self.track.index()], events, ..self.clone() };
        for cost in &mut translated.functions {
            cost.function = frames[cost.function.index()];
            cost.stack_frame = frames[cost.stack_frame.index()];
        }
        for calls in &mut translated.calls {
            calls.caller = frames[calls.caller.index()];
            calls.callee = frames[calls.callee.index()];
        }
        translated
    }
}
