//! Address ranges in which a process has JIT code at any time: a fast filter for the words of copied stacks.

use crate::model::ancestry::{Ancestry, Descent};
use crate::model::process::Processes;
use crate::model::{Addr, Pid};
use crate::resolve::code_map::CodeMap;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The address ranges of JIT code, by process. Most words of a stack can be rejected with it cheaply.
#[derive(Debug, Default)]
pub(in crate::commands::inject) struct JitRanges {
    /// A forked process that adds no ranges of its own shares its parent's.
    by_pid: FxHashMap<Pid, Arc<AddrRanges>>,
}

/// The address ranges of one process, with two coarser filters in front of the exact list.
#[derive(Debug, Default)]
pub(super) struct AddrRanges {
    /// Sorted, with gaps between all ranges.
    list: Vec<Range<Addr>>,
    /// Coarse bitmaps of the ranges. Stacks have millions of words, and most of them point elsewhere.
    regions: Vec<Region>,
    /// The intervals that enclose each region, cut at multiples of 4 GiB. `None` if there are more than [`HULLS`].
    hulls: Option<Vec<Hull>>,
}

/// A part of a region that doesn't cross a multiple of 4 GiB. All its addresses have the same upper half, so several
/// words can be compared with it at once (SIMD). This saves a fifth of the CPU time of `inject` on recordings with
/// copied stacks (1 GB of node).
#[derive(Debug)]
struct Hull {
    /// The upper 32 bits of its addresses.
    high: u32,
    /// The lower 32 bits of its first address.
    first: u32,
    /// The distance from the first to the last address.
    last: u32,
}

/// A bitmap over a group of neighboring ranges. Each bit stands for a block of addresses; all blocks have the same
/// size.
#[derive(Debug)]
struct Region {
    first: u64,
    /// log2 of the block size in bytes.
    shift: u32,
    /// One bit per block: set if the block, or the byte just before it, is in one of the ranges.
    used: Vec<u64>,
}

/// Maximum number of blocks in a region, so that its bitmap fits the L1 cache.
const STRETCHES: u64 = 1 << 16;

/// log2 of the smallest block size: 4 KiB, a page.
const PAGE_SHIFT: u32 = 12;

/// Ranges with at least this gap between them go into separate regions: those in the executable, the heap and mapped
/// memory.
const FAR: u64 = 1 << 30;

/// Maximum number of regions per process. Each word is compared with all of them.
const REGIONS: usize = 4;

/// Maximum number of hulls per process. Comparing with more costs more than it saves.
const HULLS: usize = 6;

static NO_RANGES: AddrRanges = AddrRanges { list: Vec::new(), regions: Vec::new(), hulls: Some(Vec::new()) };

impl JitRanges {
    /// Collects the ranges of every process from its own code and the code inherited at its fork, except for the
    /// processes in `without`.
    pub(in crate::commands::inject) fn new(codes: &CodeMap<'_>, processes: &Processes, without: &[Pid]) -> Self {
        let mut own: BTreeMap<Pid, Vec<Range<Addr>>> = BTreeMap::new();
        for (pid, start, end) in codes.extents() {
            own.entry(pid).or_default().push(start..end);
        }
        own.values_mut().for_each(merge);
        Self::inherited(own, processes, without)
    }

    /// The address ranges where files were mapped at any time, limited to mappings that overlap these JIT ranges.
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

    /// Adds to each process's own ranges the ones it inherited by fork, and leaves out the processes in `without`.
    fn inherited(own: BTreeMap<Pid, Vec<Range<Addr>>>, processes: &Processes, without: &[Pid]) -> Self {
        let ancestry = Ancestry::new(processes);
        let without: FxHashSet<Pid> = without.iter().copied().collect();
        let with = |pid: Pid, inherited: Option<&Arc<AddrRanges>>| match own.get(&pid) {
            Some(own) if !own.is_empty() && !without.contains(&pid) => {
                let inherited = inherited.map_or(&[][..], |inherited| &inherited.list);
                let mut all = [own, inherited].concat();
                merge(&mut all);
                Some(Arc::new(AddrRanges::new(all)))
            }
            _ => inherited.cloned(),
        };
        // The ranges that each forked process starts with. Siblings often have the same, so `passed_on` lets them share
        // one.
        let mut forked_with: FxHashMap<Pid, Arc<AddrRanges>> = FxHashMap::default();
        let mut passed_on: FxHashMap<(Pid, bool), Option<Arc<AddrRanges>>> = FxHashMap::default();
        for Descent { child, parent, at } in ancestry.descents() {
            let is_older = ancestry.forked(parent).is_some_and(|forked| forked <= at);
            let inherited = || forked_with.get(&parent).filter(|_| is_older);
            let passed_on = passed_on.entry((parent, is_older)).or_insert_with(|| with(parent, inherited())).clone();
            passed_on.and_then(|ranges| forked_with.insert(child, ranges));
        }
        let own = processes.by_pid.keys().chain(own.keys()).filter(|pid| !without.contains(pid));
        let by_pid = own.filter_map(|&pid| Some((pid, with(pid, forked_with.get(&pid))?)));
        Self { by_pid: by_pid.collect() }
    }

    /// True if the process has JIT code anywhere in `start..end`, at any time.
    pub(in crate::commands::inject) fn overlaps(&self, pid: Pid, start: Addr, end: Addr) -> bool {
        let list = &self.of(pid).list;
        let at = list.partition_point(|range| range.end <= start);
        list.get(at).is_some_and(|range| range.start < end)
    }

    pub(super) fn of(&self, pid: Pid) -> &AddrRanges {
        self.by_pid.get(&pid).map_or(&NO_RANGES, |ranges| ranges)
    }
}

impl AddrRanges {
    /// `list` must be sorted and free of overlaps.
    fn new(list: Vec<Range<Addr>>) -> Self {
        let gap = |at: usize| list[at].start.0 - list[at - 1].end.0;
        let mut far: Vec<usize> = (1..list.len()).filter(|&at| gap(at) >= FAR).collect();
        far.sort_unstable_by_key(|&at| std::cmp::Reverse(gap(at)));
        far.truncate(REGIONS - 1);
        far.sort_unstable();
        let ends = far.iter().copied().chain(std::iter::once(list.len()));
        let starts = std::iter::once(0).chain(far.iter().copied());
        let near = || starts.clone().zip(ends.clone()).map(|(start, end)| &list[start..end]);
        let regions = near().filter_map(Region::new).collect();
        let hulls: Vec<_> = near().flat_map(Hull::all).take(HULLS + 1).collect();
        let hulls = (hulls.len() <= HULLS).then_some(hulls);
        Self { list, regions, hulls }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// False only if neither `addr` nor the address before it is in one of the ranges.
    #[inline]
    pub(super) fn may_reach(&self, addr: Addr) -> bool {
        self.regions.iter().any(|region| region.may_reach(addr))
    }

    /// False only if none of the addresses, nor the ones just before them, is in one of the ranges. Coarser than
    /// [`Self::may_reach`], but faster.
    #[inline]
    pub(super) fn may_reach_any<const N: usize>(&self, addrs: &[u64; N]) -> bool {
        let Some(hulls) = &self.hulls else { return true };
        hulls.iter().any(|hull| hull.has_any(addrs))
    }

    #[inline]
    pub(super) fn contains(&self, addr: Addr) -> bool {
        self.may_reach(addr) && self.contains_near(addr)
    }

    fn contains_near(&self, addr: Addr) -> bool {
        let at = self.list.partition_point(|range| range.end <= addr);
        self.list.get(at).is_some_and(|range| range.start <= addr)
    }
}

impl Hull {
    /// Cuts the interval around a sorted list of ranges at multiples of 4 GiB. The byte after the last range is
    /// included.
    fn all(list: &[Range<Addr>]) -> impl Iterator<Item = Self> {
        let ends = list.first().zip(list.last()).map(|(first, last)| (first.start.0, last.end.0));
        ends.into_iter().flat_map(|(first, last)| {
            (first >> 32..=last >> 32).map(move |high| {
                let (first, last) = (first.max(high << 32), last.min(high << 32 | u64::from(u32::MAX)));
                Self { high: high as u32, first: first as u32, last: (last - first) as u32 }
            })
        })
    }

    /// Has no branches, so that the compiler vectorizes it.
    #[inline]
    fn has_any<const N: usize>(&self, addrs: &[u64; N]) -> bool {
        let is_in = |addr: u64| {
            let (high, low) = ((addr >> 32) as u32, addr as u32);
            (high == self.high) & (low.wrapping_sub(self.first) <= self.last)
        };
        addrs.iter().fold(false, |found, addr| found | is_in(*addr))
    }
}

impl Region {
    /// Returns `None` if the list is empty.
    fn new(list: &[Range<Addr>]) -> Option<Self> {
        let (first, last) = (list.first()?.start.0, list.last()?.end.0);
        let shift = (PAGE_SHIFT..).find(|shift| (last - first) >> shift < STRETCHES).unwrap_or(u64::BITS - 1);
        let mut used = vec![0; (((last - first) >> shift) / u64::from(u64::BITS)) as usize + 1];
        for range in list {
            for stretch in (range.start.0 - first) >> shift..=(range.end.0 - first) >> shift {
                used[(stretch / u64::from(u64::BITS)) as usize] |= 1 << (stretch % u64::from(u64::BITS));
            }
        }
        Some(Self { first, shift, used })
    }

    #[inline]
    fn may_reach(&self, addr: Addr) -> bool {
        let stretch = addr.0.wrapping_sub(self.first) >> self.shift;
        let word = self.used.get((stretch / u64::from(u64::BITS)) as usize);
        word.is_some_and(|word| word >> (stretch % u64::from(u64::BITS)) & 1 != 0)
    }
}

/// Sorts the ranges and joins those with less than a page between them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

    /// Addresses close to each other, close to 4 GiB on either side, and anywhere.
    fn start() -> impl Strategy<Value = u64> {
        prop_oneof![0..1u64 << 20, (1u64 << 32) - 20_000..1 << 32, any::<u64>()]
    }

    proptest! {
        #[test]
        fn the_possible_words_include_the_near_ones(
            ranges in prop::collection::vec((start(), 0..20_000u64), 0..20),
            others in prop::collection::vec(any::<u64>(), 0..20),
        ) {
            let range = |(start, len): (u64, u64)| Addr(start)..Addr(start.saturating_add(len));
            let mut list: Vec<_> = ranges.into_iter().map(range).filter(|range| !range.is_empty()).collect();
            merge(&mut list);
            let ranges = AddrRanges::new(list.clone());
            prop_assert!(ranges.regions.len() <= REGIONS);
            prop_assert!(ranges.regions.iter().all(|region| region.used.len() <= (STRETCHES / 64) as usize));
            let edges = list.iter().flat_map(|range| [range.start.0, range.end.0]);
            let near = edges.flat_map(|edge| [edge.wrapping_sub(1), edge, edge.wrapping_add(1)]);
            for addr in near.chain(others) {
                let is_in = |addr: u64| list.iter().any(|range| range.contains(&Addr(addr)));
                prop_assert_eq!(ranges.contains(Addr(addr)), is_in(addr));
                let is_reached = is_in(addr) || is_in(addr.wrapping_sub(1));
                prop_assert!(ranges.may_reach(Addr(addr)) || !is_reached);
                prop_assert!(ranges.may_reach_any(&[0, addr]) || !is_reached);
            }
        }
    }

    #[test]
    fn ranges_that_are_far_apart_do_not_make_each_other_coarse() {
        let page = |addr: u64| Addr(addr)..Addr(addr + 0x1000);
        let ranges = AddrRanges::new([0x18c_4000, 0x7f4b_1693_b000, 0x7f4b_1800_0000].map(page).to_vec());
        assert_eq!(ranges.regions.len(), 2);
        for addr in [0x18c_4000, 0x7f4b_1693_b000, 0x7f4b_1693_c000, 0x7f4b_1800_0fff] {
            assert!(ranges.may_reach(Addr(addr)), "{addr:#x}");
        }
        for addr in [0, 0x18c_7000, 0x565_d000, 0x2f4c_0000_0000, 0x7f4b_1000_0000, 0x7f4b_1700_0000, 0x7ffc_0000_0000]
        {
            assert!(!ranges.may_reach(Addr(addr)), "{addr:#x}");
        }
        let others = [0, 0x2f4c_0000_0000, 0x7f4b_1000_0000, 0x7ffc_0000_0000];
        assert!(!ranges.may_reach_any(&others));
        assert!(ranges.may_reach_any(&[others[0], others[1], 0x7f4b_1693_c000, others[3]]));
    }
}
