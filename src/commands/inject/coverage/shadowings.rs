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

/// All of them, by process. Insertions may shadow each other by the hundred thousand.
#[derive(Debug, Default)]
pub(in crate::commands::inject) struct Shadowings {
    by_pid: FxHashMap<Pid, IntervalTree<Shadowing>>,
}

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
            let mut all = std::mem::take(tree).into_vec();
            all.extend(more);
            *tree = IntervalTree::new(all);
        }
    }

    /// How many a process has.
    pub(in crate::commands::inject) fn count(&self, pid: Pid) -> usize {
        self.by_pid.get(&pid).map_or(0, IntervalTree::len)
    }

    /// The records that map something else over any of a segment, in order.
    pub(in crate::commands::inject) fn over(&self, pid: Pid, id: SegmentId, segment: &Segment) -> Vec<RecordOrder> {
        let mut found = Vec::new();
        if let Some(tree) = self.by_pid.get(&pid) {
            tree.visit(segment.start.0..segment.end.0, |shadowing| {
                if shadowing.by != Some(id) {
                    found.push(shadowing.from);
                }
            });
        }
        found.sort_unstable();
        found
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
        for start in 0..1000 {
            let (start, end) = (Addr(start), Addr(start + 1 + start % 30));
            let (from, until) = (Nanos(0), Nanos(u64::MAX));
            let segment = Segment { pid: Pid(1), code: CodeId(0), start, end, from, until, offset: 0 };
            let each = list.iter().map(|(_, shadowing)| shadowing);
            let over = each.filter(|shadowing| {
                shadowing.start < end && start < shadowing.end && shadowing.by != Some(SegmentId(1))
            });
            let expected: Vec<RecordOrder> = over.map(|shadowing| shadowing.from).collect();
            assert_eq!(shadowings.over(Pid(1), SegmentId(1), &segment), expected, "{start:?}");
        }
        assert_eq!(shadowings.count(Pid(1)), 300);
        assert_eq!(shadowings.count(Pid(2)), 0);
    }
}
