//! Where there can be JIT code, whatever the time.

use crate::model::ancestry::Ancestry;
use crate::model::process::Processes;
use crate::model::{Addr, Pid};
use crate::resolve::code_map::CodeMap;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// The addresses at which a process may run JIT code: a quick no for most words of a stack.
#[derive(Debug, Default)]
pub(in crate::commands::inject) struct JitRanges {
    by_pid: FxHashMap<Pid, Vec<Range<Addr>>>,
}

impl JitRanges {
    /// Those of every process with code of its own or of those it was forked from, but for those in `without`.
    pub(in crate::commands::inject) fn new(codes: &CodeMap<'_>, processes: &Processes, without: &[Pid]) -> Self {
        let mut own: BTreeMap<Pid, Vec<Range<Addr>>> = BTreeMap::new();
        for (pid, start, end) in codes.extents() {
            own.entry(pid).or_default().push(start..end);
        }
        own.values_mut().for_each(merge);
        Self::inherited(own, processes, without)
    }

    /// Where files were mapped, at any time, near these ranges.
    pub(super) fn with_files(&self, processes: &Processes) -> Self {
        let mut own: BTreeMap<Pid, Vec<Range<Addr>>> = BTreeMap::new();
        for (&pid, process) in &processes.by_pid {
            let files = process.mappings.iter().filter(|mapping| mapping.backing().ends_jit_code());
            let files = files.map(|file| file.addr..Addr(file.addr.0.saturating_add(file.len)));
            let mut near: Vec<_> = files.filter(|file| self.overlaps(pid, file.start, file.end)).collect();
            merge(&mut near);
            own.insert(pid, near);
        }
        Self::inherited(own, processes, &[])
    }

    /// What every process has of its own and of those it was forked from, but for those in `without`.
    fn inherited(own: BTreeMap<Pid, Vec<Range<Addr>>>, processes: &Processes, without: &[Pid]) -> Self {
        let ancestry = Ancestry::new(processes);
        let mut ranges = Self::default();
        for &pid in processes.by_pid.keys().chain(own.keys()) {
            if without.contains(&pid) {
                continue;
            }
            let ancestors = ancestry.ancestors(pid).filter(|pid| !without.contains(pid));
            let mut all: Vec<_> = ancestors.filter_map(|pid| own.get(&pid)).flatten().cloned().collect();
            merge(&mut all);
            if !all.is_empty() {
                ranges.by_pid.insert(pid, all);
            }
        }
        ranges
    }

    /// Whether a process may run JIT code anywhere between two addresses.
    pub(in crate::commands::inject) fn overlaps(&self, pid: Pid, start: Addr, end: Addr) -> bool {
        let Some(ranges) = self.by_pid.get(&pid) else { return false };
        let at = ranges.partition_point(|range| range.end <= start);
        ranges.get(at).is_some_and(|range| range.start < end)
    }

    /// The ranges of one process, in order.
    pub(super) fn of(&self, pid: Pid) -> &[Range<Addr>] {
        self.by_pid.get(&pid).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Whether an address is in one of some ranges, which are in order. Most words of a stack are no address near them.
#[inline]
pub(super) fn contains(ranges: &[Range<Addr>], addr: Addr) -> bool {
    let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return false };
    addr >= first.start && addr < last.end && contains_near(ranges, addr)
}

fn contains_near(ranges: &[Range<Addr>], addr: Addr) -> bool {
    let at = ranges.partition_point(|range| range.end <= addr);
    ranges.get(at).is_some_and(|range| range.start <= addr)
}

/// Sorts ranges and joins those between which there is less than a page.
fn merge(ranges: &mut Vec<Range<Addr>>) {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    ranges.dedup_by(|next, kept| {
        let joined = next.start.0.saturating_sub(kept.end.0) < 4096;
        if joined {
            kept.end = kept.end.max(next.end);
        }
        joined
    });
}
