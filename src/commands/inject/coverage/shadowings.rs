//! Mappings that shadow JIT code: after such a mapping record, perf finds something else at the code's address. The
//! records come from the recording itself, or we insert them.

use super::jit_ranges::JitRanges;
use crate::commands::inject::survey::RecordOrder;
use crate::model::process::Processes;
use crate::model::ranges::{OrderedRanges, Span};
use crate::model::{Addr, Pid};
use crate::symbolize::code_map::{Segment, SegmentId};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A mapping over an address range of a process, which hides what was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands::inject) struct Shadowing {
    /// The position of the mapping record in the recording. The mapping hides what was there before from this record
    /// on.
    pub(super) from: RecordOrder,
    pub(super) start: Addr,
    pub(super) end: Addr,
    /// The segment whose image is mapped, if we insert the mapping. `None` for the recording's own mappings.
    pub(super) inserted: Option<SegmentId>,
}

/// The mappings that hide JIT code, by process.
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
    /// Collects the recording's own mappings that overlap JIT ranges.
    pub(in crate::commands::inject) fn new(processes: &Processes, jit_ranges: &JitRanges) -> Self {
        let mut recorded = Vec::new();
        for (&pid, process) in &processes.by_pid {
            for mapping in &process.mappings {
                let (start, end) = (mapping.addr, Addr(mapping.addr.0.saturating_add(mapping.len)));
                if jit_ranges.overlaps(pid, start, end) {
                    let from = RecordOrder::from_mapping(mapping);
                    recorded.push((pid, Shadowing { from, start, end, inserted: None }));
                }
            }
        }
        let mut shadowings = Self::default();
        shadowings.extend(recorded);
        shadowings
    }

    /// Adds mappings: those of the recording itself, or more that will be inserted. Keeps them in the order of the
    /// recording, which lookups by time rely on.
    pub(in crate::commands::inject) fn extend(&mut self, more: Vec<(Pid, Shadowing)>) {
        let mut by_pid: FxHashMap<Pid, Vec<Shadowing>> = FxHashMap::default();
        for (pid, shadowing) in more {
            by_pid.entry(pid).or_default().push(shadowing);
        }
        for (pid, added) in by_pid {
            let process = self.by_pid.entry(pid).or_default();
            let mut all = std::mem::take(&mut process.0).into_vec();
            all.extend(added);
            all.sort_by_key(|shadowing| shadowing.from);
            process.0 = OrderedRanges::new(all);
        }
    }

    pub(super) fn get(&self, pid: Pid) -> Option<&ProcessShadowings> {
        self.by_pid.get(&pid)
    }
}

impl ProcessShadowings {
    /// Finds the epoch of a segment (a range of JIT code) at the moment `now`: the time between two mappings that hide
    /// the segment. A mapping that is inserted for the segment itself doesn't hide it, and so doesn't begin an epoch.
    pub(super) fn find_epoch(&self, id: SegmentId, segment: &Segment, now: RecordOrder) -> Epoch {
        // The mappings that may hide JIT code of the process, in the order of the recording.
        let shadowings = self.0.as_slice();
        let range = segment.start.0..segment.end.0;
        // The index of the first mapping that isn't before `now`.
        let next_index = self.0.position(|shadowing| shadowing.from < now);
        // The last mapping before `now` that hides the segment, and then the first one from `now` on. Mappings that are
        // inserted for the segment itself are skipped.
        let mut last = self.0.last_over(range.clone(), next_index);
        while let Some(index) = last
            && shadowings[index].inserted == Some(id)
        {
            last = self.0.last_over(range.clone(), index);
        }
        let mut next = self.0.first_over(range.clone(), next_index);
        while let Some(index) = next
            && shadowings[index].inserted == Some(id)
        {
            next = self.0.first_over(range.clone(), index + 1);
        }
        Epoch {
            // Before the first mapping over the segment, the epoch has number 0.
            number: last.map_or(0, |last| last as u32 + 1),
            last: last.map(|last| shadowings[last].from),
            next: next.map(|next| shadowings[next].from),
        }
    }
}

/// The time between two mappings that hide any part of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Epoch {
    /// The epoch's number. Two moments have the same number if and only if no mapping between them hides a part of the
    /// segment. Numbers can only be compared as long as no mappings are added.
    pub(super) number: u32,
    /// The last mapping that hides part of the segment before the moment for which the epoch was looked up. `None` if
    /// there is none.
    pub(super) last: Option<RecordOrder>,
    /// The first mapping that hides part of the segment after that moment. `None` if there is none.
    pub(super) next: Option<RecordOrder>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Nanos;
    use crate::symbolize::code_map::CodeId;

    fn shadowing(time: u64, start: u64, end: u64, inserted: Option<u32>) -> (Pid, Shadowing) {
        let from = RecordOrder { time: Nanos(time), offset: time };
        (Pid(1), Shadowing { from, start: Addr(start), end: Addr(end), inserted: inserted.map(SegmentId) })
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
                shadowing.start < end && start < shadowing.end && shadowing.inserted != Some(SegmentId(1))
            });
            let expected: Vec<RecordOrder> = over.map(|shadowing| shadowing.from).collect();
            for time in [0, 150, 299, 300] {
                let now = RecordOrder { time: Nanos(time), offset: time };
                let (before, behind) = expected.split_at(expected.partition_point(|order| *order < now));
                let number = before.last().map_or(0, |last| last.offset as u32 + 1);
                let epoch = Epoch { number, last: before.last().copied(), next: behind.first().copied() };
                assert_eq!(all.find_epoch(SegmentId(1), &segment, now), epoch, "{start:?}");
            }
        }
        assert!(shadowings.get(Pid(2)).is_none());
    }
}
