//! What shadows code, so that perf no longer sees it: records that map something over it, the recording's own and
//! inserted ones.

use super::jit_ranges::JitRanges;
use crate::commands::inject::survey::record_order::RecordOrder;
use crate::model::process::Processes;
use crate::model::{Addr, Pid};
use crate::resolve::code_map::{Segment, SegmentId};
use rustc_hash::FxHashMap;

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
    by_pid: FxHashMap<Pid, IntervalTree>,
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
        for (pid, shadowing) in more {
            self.by_pid.entry(pid).or_default().list.push(shadowing);
        }
        self.by_pid.values_mut().for_each(IntervalTree::build);
    }

    /// How many a process has.
    pub(in crate::commands::inject) fn count(&self, pid: Pid) -> usize {
        self.by_pid.get(&pid).map_or(0, |tree| tree.list.len())
    }

    /// The records that map something else over any of a segment, in order.
    pub(in crate::commands::inject) fn over(&self, pid: Pid, id: SegmentId, segment: &Segment) -> Vec<RecordOrder> {
        let mut found = Vec::new();
        if let Some(tree) = self.by_pid.get(&pid) {
            let mut note = |shadowing: &Shadowing| {
                if shadowing.by != Some(id) {
                    found.push(shadowing.from);
                }
            };
            tree.visit(0..tree.list.len(), segment, &mut note);
        }
        found.sort_unstable();
        found
    }
}

/// The shadowings of one process by their starts. The middle of each half, quarter and so on knows the highest end in
/// it: an interval tree without pointers, since insertions may shadow each other by the hundred thousand.
#[derive(Debug, Default)]
struct IntervalTree {
    list: Vec<Shadowing>,
    /// At the middle of a stretch of the list: the highest end in the stretch.
    highest: Vec<Addr>,
}

impl IntervalTree {
    fn build(&mut self) {
        self.list.sort_by_key(|shadowing| (shadowing.start, shadowing.from));
        self.highest = vec![Addr(0); self.list.len()];
        highest(&self.list, &mut self.highest);
    }

    /// Shows `each` what overlaps a segment.
    fn visit(&self, among: std::ops::Range<usize>, segment: &Segment, each: &mut impl FnMut(&Shadowing)) {
        let middle = among.start.midpoint(among.end);
        if among.is_empty() || self.highest[middle] <= segment.start {
            return;
        }
        self.visit(among.start..middle, segment, each);
        let shadowing = &self.list[middle];
        if shadowing.start < segment.end {
            if segment.start < shadowing.end {
                each(shadowing);
            }
            self.visit(middle + 1..among.end, segment, each);
        }
    }
}

/// Fills the middles of a stretch and gives the highest end in it.
fn highest(list: &[Shadowing], into: &mut [Addr]) -> Addr {
    let middle = list.len() / 2;
    let Some(shadowing) = list.get(middle) else { return Addr(0) };
    let before = highest(&list[..middle], &mut into[..middle]);
    let behind = highest(&list[middle + 1..], &mut into[middle + 1..]);
    into[middle] = before.max(behind).max(shadowing.end);
    into[middle]
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
