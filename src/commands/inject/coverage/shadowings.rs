//! What may hide code from perf: records that map something over it, the recording's own and inserted ones.

use super::jit_ranges::JitRanges;
use crate::model::process::Processes;
use crate::model::{Addr, Nanos, Pid};
use crate::resolve::code_map::{Segment, SegmentId};
use rustc_hash::FxHashMap;

/// A place in the order in which perf applies records: by time, equal times (or none) as they stand in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::commands) struct When {
    /// The record's time; 0 if it has none.
    pub(in crate::commands) time: Nanos,
    /// Its offset in the stream.
    pub(in crate::commands) offset: u64,
}

/// A stretch of a process's addresses that shows something else from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) struct Cover {
    pub(super) when: When,
    pub(super) start: Addr,
    pub(super) end: Addr,
    /// The segment that is shown there from then on, if it is one.
    pub(super) by: Option<SegmentId>,
}

/// What may hide code, by process.
#[derive(Debug, Default)]
pub(in crate::commands) struct Covers {
    by_pid: FxHashMap<Pid, Index>,
}

impl Covers {
    /// The mappings of all processes, as far as JIT code can be there.
    pub(in crate::commands) fn new(processes: &Processes, jit_ranges: &JitRanges) -> Self {
        let mut own = Vec::new();
        for (&pid, process) in &processes.by_pid {
            for mapping in &process.mappings {
                let (start, end) = (mapping.addr, Addr(mapping.addr.0.saturating_add(mapping.len)));
                if jit_ranges.overlaps(pid, start, end) {
                    let when = When { time: mapping.time, offset: mapping.offset };
                    own.push((pid, Cover { when, start, end, by: None }));
                }
            }
        }
        let mut covers = Self::default();
        covers.extend(own);
        covers
    }

    /// Adds what inserted records hide.
    pub(in crate::commands) fn extend(&mut self, more: Vec<(Pid, Cover)>) {
        for (pid, cover) in more {
            self.by_pid.entry(pid).or_default().list.push(cover);
        }
        self.by_pid.values_mut().for_each(Index::build);
    }

    /// How many there are of a process.
    pub(in crate::commands) fn count(&self, pid: Pid) -> usize {
        self.by_pid.get(&pid).map_or(0, |index| index.list.len())
    }

    /// When something else was mapped over any of a segment, in order.
    pub(in crate::commands) fn over(&self, pid: Pid, id: SegmentId, segment: &Segment) -> Vec<When> {
        let mut found = Vec::new();
        if let Some(index) = self.by_pid.get(&pid) {
            let mut note = |cover: &Cover| {
                if cover.by != Some(id) {
                    found.push(cover.when);
                }
            };
            index.visit(0..index.list.len(), segment, &mut note);
        }
        found.sort_unstable();
        found
    }
}

/// Intervals by their starts. The middle of each half, quarter and so on knows the highest end in it: an interval
/// tree without pointers, since insertions may hide each other by the hundred thousand.
#[derive(Debug, Default)]
struct Index {
    list: Vec<Cover>,
    /// At the middle of a stretch of the list: the highest end in the stretch.
    highest: Vec<Addr>,
}

impl Index {
    fn build(&mut self) {
        self.list.sort_by_key(|cover| (cover.start, cover.when));
        self.highest = vec![Addr(0); self.list.len()];
        highest(&self.list, &mut self.highest);
    }

    /// Shows `each` what overlaps a segment.
    fn visit(&self, among: std::ops::Range<usize>, segment: &Segment, each: &mut impl FnMut(&Cover)) {
        let middle = among.start.midpoint(among.end);
        if among.is_empty() || self.highest[middle] <= segment.start {
            return;
        }
        self.visit(among.start..middle, segment, each);
        let cover = &self.list[middle];
        if cover.start < segment.end {
            if segment.start < cover.end {
                each(cover);
            }
            self.visit(middle + 1..among.end, segment, each);
        }
    }
}

/// Fills the middles of a stretch and gives the highest end in it.
fn highest(list: &[Cover], into: &mut [Addr]) -> Addr {
    let middle = list.len() / 2;
    let Some(cover) = list.get(middle) else { return Addr(0) };
    let before = highest(&list[..middle], &mut into[..middle]);
    let behind = highest(&list[middle + 1..], &mut into[middle + 1..]);
    into[middle] = before.max(behind).max(cover.end);
    into[middle]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::code_map::CodeId;

    fn cover(time: u64, start: u64, end: u64, by: Option<u32>) -> (Pid, Cover) {
        let when = When { time: Nanos(time), offset: time };
        (Pid(1), Cover { when, start: Addr(start), end: Addr(end), by: by.map(SegmentId) })
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
                cover(time, start, start + random(if time % 50 == 0 { 1000 } else { 20 }), Some((time % 3) as u32))
            })
            .collect();
        let mut covers = Covers::default();
        covers.extend(list[..100].to_vec());
        covers.extend(list[100..].to_vec());
        for start in 0..1000 {
            let (start, end) = (Addr(start), Addr(start + 1 + start % 30));
            let (from, until) = (Nanos(0), Nanos(u64::MAX));
            let segment = Segment { pid: Pid(1), code: CodeId(0), start, end, from, until, offset: 0 };
            let each = list.iter().map(|(_, cover)| cover);
            let over = each.filter(|cover| cover.start < end && start < cover.end && cover.by != Some(SegmentId(1)));
            let expected: Vec<When> = over.map(|cover| cover.when).collect();
            assert_eq!(covers.over(Pid(1), SegmentId(1), &segment), expected, "{start:?}");
        }
        assert_eq!(covers.count(Pid(1)), 300);
        assert_eq!(covers.count(Pid(2)), 0);
    }
}
