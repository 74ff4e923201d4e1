//! Lays out sums of stacks as if they had times: callees one after the other, in the order of their first sample. If
//! the weight isn't time, one unit of it takes a microsecond.

use crate::contract::rows::clamp;
use crate::model::stacks::{FrameId, Profile, Row, StackId, Weight};
use std::collections::BTreeMap;

/// The event of the profile that is written, and how the weights of its samples become durations.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventWriting<'p> {
    pub(super) profile: &'p Profile,
    pub(super) weight: Weight,
    /// Whether weights are nanoseconds.
    pub(super) counts_time: bool,
    /// The duration of each sample in nanoseconds. Only used if the event doesn't count time and samples have times.
    pub(super) sample_duration: i64,
}

/// A span of a thread: a frame, and when it was on the stack. Times are in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct StackSpan {
    pub(super) frame: FrameId,
    pub(super) start: i64,
    pub(super) duration: i64,
    /// The number of samples during the span.
    pub(super) samples: u64,
    /// The sum of the weights of the samples during the span, in the event's unit.
    pub(super) weight: u64,
}

/// Sums over all samples with a certain stack, including those in which the stack goes on with callees.
#[derive(Debug, Clone, Copy, Default)]
struct ValueSum {
    /// How long the stack's span will be, in nanoseconds.
    duration: i64,
    samples: u64,
    weight: u64,
}

/// The call tree of a thread.
struct EventLayout<'p> {
    writing: EventWriting<'p>,
    /// The sum for each stack, including the stacks of its callees.
    sums: BTreeMap<StackId, ValueSum>,
    /// The stacks of the callees of each stack, in the order in which they were first seen. `None` is the key of the
    /// outermost frames.
    callees: BTreeMap<Option<StackId>, Vec<StackId>>,
}

/// Lays out the sums of a thread's rows as spans from time 0 on, outer ones first.
pub(super) fn lay_out_spans(writing: EventWriting<'_>, rows: &[&Row]) -> Vec<StackSpan> {
    let mut layout = EventLayout { writing, sums: BTreeMap::new(), callees: BTreeMap::new() };
    rows.iter().for_each(|row| layout.add(row));
    layout.lay_out()
}

impl EventLayout<'_> {
    /// Adds a row's weight to the sums of its stack and of all its callers' stacks.
    fn add(&mut self, row: &Row) {
        let weight = self.writing.weight.value(row);
        // Durations are in nanoseconds. A weight in another unit is shown as that many microseconds.
        let unit = if self.writing.counts_time { 1 } else { 1000 };
        let duration = clamp(weight.saturating_mul(unit));
        let mut next = row.stack;
        while let Some(stack) = next {
            let (parent, _) = self.writing.profile.stack_of(stack);
            let callees = &mut self.callees;
            let sum = self.sums.entry(stack).or_insert_with(|| {
                // A stack that is seen for the first time becomes a callee of its caller. `lay_out` keeps the order of
                // callees.
                callees.entry(parent).or_default().push(stack);
                ValueSum::default()
            });
            sum.duration = sum.duration.saturating_add(duration);
            sum.samples = sum.samples.saturating_add(row.count);
            sum.weight = sum.weight.saturating_add(weight);
            next = parent;
        }
    }

    /// Lays out all stacks, callers before their callees. The callees of a stack start where it starts, and follow each
    /// other.
    fn lay_out(&self) -> Vec<StackSpan> {
        // The stacks that are still to be laid out, the next one last.
        let mut waiting: Vec<StackId> = self.callees(None).iter().rev().copied().collect();
        // For each caller, the time at which its next callee starts.
        let mut next_starts = BTreeMap::<Option<StackId>, i64>::new();
        let mut spans = Vec::new();
        while let Some(stack) = waiting.pop() {
            let ValueSum { duration, samples, weight } = self.sums.get(&stack).copied().unwrap_or_default();
            let (caller, frame) = self.writing.profile.stack_of(stack);
            let start = next_starts.get(&caller).copied().unwrap_or(0);
            // The caller's next callee starts where this span ends. This span's own first callee starts together with
            // the span.
            next_starts.insert(caller, start.saturating_add(duration));
            next_starts.insert(Some(stack), start);
            spans.push(StackSpan { frame, start, duration, samples, weight });
            waiting.extend(self.callees(Some(stack)).iter().rev());
        }
        spans
    }

    fn callees(&self, caller: Option<StackId>) -> &[StackId] {
        self.callees.get(&caller).map_or(&[], Vec::as_slice)
    }
}
