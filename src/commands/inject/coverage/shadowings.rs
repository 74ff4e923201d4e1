//! What shadows code, so that perf no longer sees it: records that map something over it, the recording's own and
//! inserted ones.

use super::jit_ranges::JitRanges;
use crate::commands::inject::survey::record_order::RecordOrder;
use crate::model::process::Processes;
use crate::model::ranges::{IntervalTree, Span};
use crate::model::{Addr, Pid};
use crate::resolve::code_map::{Segment, SegmentId};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A range of a process's addresses at which something else is mapped from a record on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands::inject) struct Shadowing {
    pub(super) from: RecordOrder,
    pub(super) start: Addr,
    pub(super) end: Addr,
    /// The segment that is mapped there from then on, if it is one.
    pub(super) by: Option<SegmentId>,
}

/// All of them, by process.
#[derive(Debug, Default)]
pub(in crate::commands::inject) struct Shadowings {
    by_pid: FxHashMap<Pid, ProcessShadowings>,
}

/// Those of one process. Insertions may shadow each other by the hundred thousand.
#[derive(Debug, Default)]
pub(super) struct ProcessShadowings(IntervalTree<Shadowing>);

impl Span for Shadowing {
    fn range(&self) -> Range<u64> {
        self.start.0..self.end.0
    }
}

impl Shadowings {
    /// The mappings of all processes, as far as JIT code can be there.
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

    /// Adds further ones.
    pub(in crate::commands::inject) fn extend(&mut self, more: Vec<(Pid, Shadowing)>) {
        let mut by_pid: FxHashMap<Pid, Vec<Shadowing>> = FxHashMap::default();
        for (pid, shadowing) in more {
            by_pid.entry(pid).or_default().push(shadowing);
        }
        for (pid, more) in by_pid {
            let tree = self.by_pid.entry(pid).or_default();
            let mut all = std::mem::take(&mut tree.0).into_vec();
            all.extend(more);
            tree.0 = IntervalTree::new(all);
        }
    }

    /// Those of a process, if it has any.
    pub(super) fn of(&self, pid: Pid) -> Option<&ProcessShadowings> {
        self.by_pid.get(&pid)
    }
}

impl ProcessShadowings {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The records that map something else over any of a segment, in order.
    pub(super) fn over(&self, id: SegmentId, segment: &Segment) -> Vec<RecordOrder> {
        let mut found = Vec::new();
        self.0.visit(segment.start.0..segment.end.0, |shadowing| {
            if shadowing.by != Some(id) {
                found.push(shadowing.from);
            }
        });
        found.sort_unstable();
        found
    }

    /// The last of them before a moment, the first one from then on, and how many come before: found by looking at each.
    pub(super) fn around(
        &self,
        id: SegmentId,
        segment: &Segment,
        now: RecordOrder,
    ) -> (Option<RecordOrder>, Option<RecordOrder>, u32) {
        let (mut last, mut next, mut count) = (None, None, 0);
        for shadowing in self.0.iter() {
            let overlaps = shadowing.start < segment.end && segment.start < shadowing.end;
            if !overlaps || shadowing.by == Some(id) {
                continue;
            }
            if shadowing.from < now {
                last = last.max(Some(shadowing.from));
                count += 1;
            } else {
                next = Some(next.map_or(shadowing.from, |next: RecordOrder| next.min(shadowing.from)));
            }
        }
        (last, next, count)
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
    fn what_lies_over_a_segment_is_found_as_by_looking_at_each() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let list: Vec<_> = (0..300)
            .map(|time| {
                let start = random(1000);
                shadowing(time, start, start + random(if time % 50 == 0 { 1000 } else { 20 }), Some((time % 3) as u32))
            })
            .collect();
        let mut shadowings = Shadowings::default();
        shadowings.extend(list[..100].to_vec());
        shadowings.extend(list[100..].to_vec());
        let all = shadowings.of(Pid(1)).unwrap();
        for start in 0..1000 {
            let (start, end) = (Addr(start), Addr(start + 1 + start % 30));
            let (from, until) = (Nanos(0), Nanos(u64::MAX));
            let segment = Segment { pid: Pid(1), code: CodeId(0), start, end, from, until, offset: 0 };
            let each = list.iter().map(|(_, shadowing)| shadowing);
            let over = each.filter(|shadowing| {
                shadowing.start < end && start < shadowing.end && shadowing.by != Some(SegmentId(1))
            });
            let expected: Vec<RecordOrder> = over.map(|shadowing| shadowing.from).collect();
            assert_eq!(all.over(SegmentId(1), &segment), expected, "{start:?}");
            for time in [0, 150, 299, 300] {
                let now = RecordOrder { time: Nanos(time), offset: time };
                let (before, behind) = expected.split_at(expected.partition_point(|order| *order < now));
                let around = (before.last().copied(), behind.first().copied(), before.len() as u32);
                assert_eq!(all.around(SegmentId(1), &segment, now), around, "{start:?}");
            }
        }
        assert_eq!(all.count(), 300);
        assert!(shadowings.of(Pid(2)).is_none());
    }
}
