//! Measures the error of estimated stacks: some inputs only record calls, and stacks are estimated from them. Inclusive
//! costs computed from these stacks may deviate from the recorded ones.

use super::CallGraph;
use crate::analysis::groups::{Step, Sum, Walk};
use crate::model::stacks::{Frame, FrameId, Profile, Series, Weight};
use rustc_hash::FxHashMap;

/// The largest differences between a function's inclusive cost in the estimated stacks and in the recorded calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deviations {
    /// The largest difference among functions that never call themselves, directly or not; `None` if there are no such
    /// functions.
    pub outside_cycles: Option<Deviation>,
    /// The largest difference among recursive functions; `None` if there are none. If the input doesn't distinguish
    /// levels of recursion, a function's recorded inclusive cost counts the recursion again at each level. It is
    /// therefore capped at the event's total.
    pub in_cycles: Option<Deviation>,
}

/// A function, and the difference between its inclusive costs in stacks and in recorded calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deviation {
    /// The function.
    pub frame: FrameId,
    /// The absolute difference, in the event's unit.
    pub cost: u64,
}

impl CallGraph {
    /// Compares the inclusive costs of functions in the recorded calls with those in the estimated stacks of the same
    /// event. Returns the largest deviation among functions in cycles, and the largest among all others.
    pub fn deviations(&self, profile: &Profile, series: &Series) -> Deviations {
        let (totals, cycles) = (totals(profile, series), self.cycles());
        let event_total = self.functions.iter().fold(0i64, |sum, function| sum.saturating_add(function.own));
        let mut largest_found = Deviations::default();
        for (function, cycle) in self.functions.iter().zip(&cycles) {
            // If the input has a function for each level of recursion (`f`, `f'2`), compare only the first level.
            // Stacks use its frame for all levels, so its cost in stacks contains the deeper ones.
            if function.frame != function.stack_frame {
                continue;
            }
            // `total` is the cost of the recorded calls to the function. `with_calls` is the function's own cost and
            // that of the calls it makes. The first function of a thread, for instance, runs once without a recorded
            // call to it. If it is also called, its `total` is too low.
            let inclusive = function.total.max(function.with_calls);
            // A recorded cost may count recursion again at each level, and so exceed the event's total. A cost in
            // stacks can't.
            let recorded = inclusive.min(event_total);
            let estimated = totals[function.frame.index()];
            let deviation = Deviation { frame: function.frame, cost: recorded.abs_diff(estimated) };
            let largest =
                if cycle.is_some() { &mut largest_found.in_cycles } else { &mut largest_found.outside_cycles };
            if largest.is_none_or(|largest| largest.cost < deviation.cost) {
                *largest = Some(deviation);
            }
        }
        largest_found
    }
}

/// A list by frame ID of inclusive costs in stacks. The cost of a function is stored at its first frame without an
/// executed line. If all frames of a function have a line, each has its own cost. A function that occurs several times
/// in a stack (recursion) counts once.
fn totals(profile: &Profile, series: &Series) -> Vec<i64> {
    let mut walk = Walk::new(profile);
    for (row, weight) in series.signed_rows(Weight::Period) {
        if let Some(stack) = row.stack {
            walk.add(stack, Sum { weight, count: row.count });
        }
    }
    // Frames that differ only in the executed line belong to the same function. Their costs go to the function's first
    // frame without a line, because call graphs refer to this frame.
    let mut first_frames: FxHashMap<Frame, usize> = FxHashMap::default();
    let without_line = |frame: &Frame| Frame { file: frame.start.file, line: 0, ..*frame };
    for (id, frame) in profile.frames().filter(|(_, frame)| frame.line == 0) {
        first_frames.entry(without_line(frame)).or_insert(id.index());
    }
    // For each frame, the index of the frame that stands for its function.
    let mut function_at: Vec<usize> = Vec::with_capacity(profile.frame_count());
    for (id, frame) in profile.frames() {
        let first_frame = if frame.line > 0 { first_frames.get(&without_line(frame)).copied() } else { None };
        function_at.push(first_frame.unwrap_or(id.index()));
    }
    let mut totals = vec![0i64; profile.frame_count()];
    // For each function, how often it is in the current stack.
    let mut open = vec![0u32; profile.frame_count()];
    walk.run(|walk, step| {
        let (Step::Enter(stack) | Step::Leave(stack)) = step;
        let (_, innermost_frame) = profile.stack_of(stack);
        let function_index = function_at[innermost_frame.index()];
        if step == Step::Leave(stack) {
            open[function_index] -= 1;
            return;
        }
        if open[function_index] == 0 {
            let (_, with_callees) = walk.sums(stack);
            totals[function_index] = totals[function_index].saturating_add(with_callees.weight);
        }
        open[function_index] += 1;
    });
    totals
}
