//! Mappings that shadow JIT code: after such a record, perf finds something else at the code's address. They come from
//! the recording itself or from records that we insert.

use super::jit_ranges::JitRanges;
use crate::commands::inject::survey::RecordOrder;
use crate::model::process::Processes;
use crate::model::ranges::{OrderedRanges, Span};
use crate::model::{Addr, Pid};
use crate::resolve::code_map::{Segment, SegmentId};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A mapping over an address range of a process, which hides what was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands::inject) struct Shadowing {
    pub(super) from: RecordOrder,
    pub(super) start: Addr,
    pub(super) end: Addr,
    /// The segment that this mapping shows, if it is one that we insert; `None` for the recording's own mappings.
    pub(super) by: Option<SegmentId>,
}

/// All shadowing mappings, by process.
#[derive(Debug, Default)]
pub(in crate::commands::inject) struct Shadowings {
    by_pid: FxHashMap<Pid, ProcessShadowings>,
}

/// The shadowing mappings of one process. There can be hundreds of thousands, as inserted mappings shadow each other,
/// so lookups must not be linear.
#[derive(Debug, Default)]
pub(super) struct ProcessShadowings(OrderedRanges<Shadowing>);

impl Span for Shadowing {
    fn range(&self) -> Range<u64> {
        self.start.0..self.end.0
    }
}

impl Shadowings {
    /// Collects the recording's own mappings that overlap JIT code.
    pub(in crate::commands::inject) fn new(processes: &Processes, jit_ranges: &JitRanges) -> Self {
        let mut own = Vec::new();
        for (&pid, process) in &processes.by_pid {
            for mapping in &process.mappings {
                let (start, end) = (mapping.addr, Addr(mapping.addr.0.saturating_add(mapping.len)));
                if jit_ranges.overlaps(pid, start, end) {
                    let from = RecordOrder::of(mapping);
                    own.push((pid, Shadowing { from, start, end, by: None }));
                }
            }
        }
        let mut shadowings = Self::default();
        shadowings.extend(own);
        shadowings
    }

    /// Adds mappings that will be inserted.
    pub(in crate::commands::inject) fn extend(&mut self, more: Vec<(Pid, Shadowing)>) {
        let mut by_pid: FxHashMap<Pid, Vec<Shadowing>> = FxHashMap::default();
        for (pid, shadowing) in more {
            by_pid.entry(pid).or_default().push(shadowing);
        }
        for (pid, more) in by_pid {
            let tree = self.by_pid.entry(pid).or_default();
            let mut all = std::mem::take(&mut tree.0).into_vec();
            all.extend(more);
            all.sort_by_key(|shadowing| shadowing.from);
            tree.0 = OrderedRanges::new(all);
        }
    }

    pub(super) fn get(&self, pid: Pid) -> Option<&ProcessShadowings> {
        self.by_pid.get(&pid)
    }
}

impl ProcessShadowings {
    /// Returns the last mapping before `now` that hides any part of the segment, the first such mapping from `now` on,
    /// and the number of the epoch between the two. Mappings of the segment itself don't count.
    ///
    /// Two moments have the same epoch number exactly if no such mapping lies between them.
    pub(super) fn around(
        &self,
        id: SegmentId,
        segment: &Segment,
        now: RecordOrder,
    ) -> (Option<RecordOrder>, Option<RecordOrder>, u32) {
        let (all, range) = (self.0.as_slice(), || segment.start.0..segment.end.0);
        let is_other = |at: &usize| all[*at].by != Some(id);
        let now = self.0.position(|shadowing| shadowing.from < now);
        let before = |at: usize| self.0.last_over(range(), at);
        let last = std::iter::successors(before(now), |at| before(*at)).find(is_other);
        let from = |at: usize| self.0.first_over(range(), at);
        let next = std::iter::successors(from(now), |at| from(at + 1)).find(is_other);
        let order = |at: usize| all[at].from;
        (last.map(order), next.map(order), last.map_or(0, |last| last as u32 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Nanos;
    use crate::resolve::code_map::CodeId;

    fn shadowing(time: u64, start: u64, end: u64, by: Option<u32>) -> (Pid, Shadowing) {
        let from = RecordOrder { time: Nanos(time), offset: time };
        (Pid(1), Shadowing { from, start: Addr(start), end: Addr(end), by: by.map(SegmentId) })
    }

    #[test]
    fn mappings_over_a_segment_are_found_as_by_looking_at_each() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let list: Vec<_> = (0..300)
            .map(|time| {
                let start = random(1000);
                shadowing(
                    time,
                    start,
                    start + 1 + random(if time % 50 == 0 { 1000 } else { 20 }),
                    Some((time % 3) as u32),
                )
            })
            .collect();
        let mut shadowings = Shadowings::default();
        shadowings.extend(list[..100].to_vec());
        shadowings.extend(list[100..].to_vec());
        let all = shadowings.get(Pid(1)).unwrap();
        for start in 0..1000 {
            let (start, end) = (Addr(start), Addr(start + 1 + start % 30));
            let (from, until) = (Nanos(0), Nanos(u64::MAX));
            let segment = Segment { pid: Pid(1), code: CodeId(0), start, end, from, until, offset: 0 };
            let each = list.iter().map(|(_, shadowing)| shadowing);
            let over = each.filter(|shadowing| {
                shadowing.start < end && start < shadowing.end && shadowing.by != Some(SegmentId(1))
            });
            let expected: Vec<RecordOrder> = over.map(|shadowing| shadowing.from).collect();
            for time in [0, 150, 299, 300] {
                let now = RecordOrder { time: Nanos(time), offset: time };
                let (before, behind) = expected.split_at(expected.partition_point(|order| *order < now));
                let number = before.last().map_or(0, |last| last.offset as u32 + 1);
                let around = (before.last().copied(), behind.first().copied(), number);
                assert_eq!(all.around(SegmentId(1), &segment, now), around, "{start:?}");
            }
        }
        assert!(shadowings.get(Pid(2)).is_none());
    }
}
