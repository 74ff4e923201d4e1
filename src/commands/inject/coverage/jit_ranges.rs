//! Address ranges in which a process has JIT code at any time: a fast filter for the words of copied stacks. A word is
//! a 64-bit value on a stack, which may be a return address. Most aren't, and looking up each would take too long.

use crate::model::ancestry::{Ancestry, ForkEvent};
use crate::model::process::Processes;
use crate::model::{Addr, Pid};
use crate::symbolize::code_map::CodeMap;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The address ranges of JIT code, by process. With these ranges, most words of a stack can be rejected cheaply.
#[derive(Debug, Default)]
pub(in crate::commands::inject) struct JitRanges {
    /// The ranges of each process. A forked process that adds no ranges of its own shares those of its parent.
    by_pid: FxHashMap<Pid, Arc<AddrRanges>>,
}

/// The address ranges of one process, with two coarser filters in front of the exact list.
#[derive(Debug, Default)]
pub(super) struct AddrRanges {
    /// Sorted, with gaps between all ranges.
    list: Vec<Range<Addr>>,
    /// A bitmap for each group of neighboring ranges, to reject most stack words quickly: stacks have millions of
    /// words, and few of them point to JIT code.
    regions: Vec<Region>,
    /// The interval from the first to the last range of each region, cut at multiples of 4 GiB. `None` if that gives
    /// more than [`MAX_HULLS`] pieces.
    hulls: Option<Vec<Hull>>,
}

/// A hull is an interval of addresses around the ranges of a region, including the gaps between them, or a part of such
/// an interval: it is cut so that no hull crosses a multiple of 4 GiB. All its addresses have the same upper half, so
/// several words can be compared with it at once (SIMD). This saves a fifth of the CPU time of `inject` on recordings
/// with copied stacks (1 GB of node).
#[derive(Debug)]
struct Hull {
    /// The upper 32 bits of all addresses in the hull.
    high: u32,
    /// The lower 32 bits of the hull's first address.
    first: u32,
    /// The distance from the first to the last address, which is in the hull, too.
    extent: u32,
}

/// A bitmap over a group of neighboring ranges. Each bit stands for a block of addresses; all blocks have the same
/// size.
#[derive(Debug)]
struct Region {
    /// The first address of the first block.
    first: u64,
    /// log2 of the block size in bytes.
    shift: u32,
    /// One bit per block. It is set if one of the ranges has an address in the block or ends directly before it: the
    /// address after a range may be the return address of a call at the range's end.
    used: Vec<u64>,
}

/// Maximum number of blocks in a region. The bitmap of a region then fits the L1 cache.
const MAX_BLOCKS: u64 = 1 << 16;

/// log2 of the smallest block size: 4 KiB, a page.
const PAGE_SHIFT: u32 = 12;

/// Ranges with a gap of at least this many bytes between them go into separate regions. The usual regions are the
/// executable, the heap and mapped memory.
const REGION_GAP: u64 = 1 << 30;

/// Maximum number of regions per process. Each stack word is compared with all of them.
const MAX_REGIONS: usize = 4;

/// Maximum number of hulls (enclosing intervals) per process. With more, comparing a stack word with all of them would
/// cost more than it saves.
const MAX_HULLS: usize = 6;

static NO_RANGES: AddrRanges = AddrRanges { list: Vec::new(), regions: Vec::new(), hulls: Some(Vec::new()) };

impl JitRanges {
    /// Collects the JIT ranges of all processes except those in `excluded`. The ranges of a process are those of its
    /// own code and those of the code that it inherited when it was forked.
    pub(in crate::commands::inject) fn new(codes: &CodeMap<'_>, processes: &Processes, excluded: &[Pid]) -> Self {
        let mut own: BTreeMap<Pid, Vec<Range<Addr>>> = BTreeMap::new();
        for (pid, start, end) in codes.extents() {
            own.entry(pid).or_default().push(start..end);
        }
        own.values_mut().for_each(merge);
        Self::with_inherited(own, processes, excluded)
    }

    /// Adds to each process's own address ranges of JIT code the ones that it inherited when it was forked. Leaves out
    /// the processes in `excluded`.
    fn with_inherited(mut own: BTreeMap<Pid, Vec<Range<Addr>>>, processes: &Processes, excluded: &[Pid]) -> Self {
        let ancestry = Ancestry::new(processes);
        let excluded: FxHashSet<Pid> = excluded.iter().copied().collect();
        let pids: Vec<Pid> = processes.by_pid.keys().chain(own.keys()).copied().collect();
        // Remove the ranges of excluded processes before the forks are handled below, so that these processes pass none
        // of them on.
        own.retain(|pid, _| !excluded.contains(pid));
        // `inherited_by` has the ranges that each forked process inherited. `passed_on` has those that each parent
        // passes on, and is a cache: siblings mostly inherit the same ranges, and then share one list.
        let mut inherited_by: FxHashMap<Pid, Arc<AddrRanges>> = FxHashMap::default();
        let mut passed_on: FxHashMap<(Pid, bool), Option<Arc<AddrRanges>>> = FxHashMap::default();
        for ForkEvent { child, parent, at } in ancestry.forks() {
            // The parent passes on ranges that it inherited itself only if it was forked before this fork. If the
            // process with the parent's ID was forked later, it is another process that reuses the ID.
            let parent_was_forked = ancestry.forked(parent).is_some_and(|forked| forked <= at);
            let ranges = passed_on.entry((parent, parent_was_forked)).or_insert_with(|| {
                let inherited = if parent_was_forked { inherited_by.get(&parent) } else { None };
                join_ranges(own.get(&parent), inherited)
            });
            if let Some(ranges) = ranges {
                inherited_by.insert(child, ranges.clone());
            }
        }
        let mut by_pid = FxHashMap::default();
        for pid in pids {
            if !excluded.contains(&pid)
                && let Some(ranges) = join_ranges(own.get(&pid), inherited_by.get(&pid))
            {
                by_pid.insert(pid, ranges);
            }
        }
        Self { by_pid }
    }

    /// True if the process has JIT code anywhere in `start..end`, at any time.
    pub(in crate::commands::inject) fn overlaps(&self, pid: Pid, start: Addr, end: Addr) -> bool {
        let list = &self.get(pid).list;
        let index = list.partition_point(|range| range.end <= start);
        list.get(index).is_some_and(|range| range.start < end)
    }

    pub(super) fn get(&self, pid: Pid) -> &AddrRanges {
        self.by_pid.get(&pid).map_or(&NO_RANGES, |ranges| ranges)
    }
}

/// Joins a process's own ranges and those that it inherited by fork. `None` if it has neither. A process without own
/// ranges shares the list that it inherited.
fn join_ranges(own: Option<&Vec<Range<Addr>>>, inherited: Option<&Arc<AddrRanges>>) -> Option<Arc<AddrRanges>> {
    let Some(own) = own.filter(|own| !own.is_empty()) else { return inherited.cloned() };
    let mut all = own.clone();
    if let Some(inherited) = inherited {
        all.extend_from_slice(&inherited.list);
    }
    merge(&mut all);
    Some(Arc::new(AddrRanges::new(all)))
}

impl AddrRanges {
    /// Builds two filters for the ranges in `list`, which must be sorted and have gaps between all ranges: a bitmap for
    /// each region (a group of neighboring ranges), and the hulls, which are the intervals around the regions.
    fn new(list: Vec<Range<Addr>>) -> Self {
        // Cut the list into regions at its widest gaps.
        let gap_before = |index: usize| list[index].start.0 - list[index - 1].end.0;
        let mut starts: Vec<usize> = (1..list.len()).filter(|&index| gap_before(index) >= REGION_GAP).collect();
        starts.sort_unstable_by_key(|&index| std::cmp::Reverse(gap_before(index)));
        // Keep only the widest gaps if there are too many. `starts` has the range after each gap, but not yet the first
        // range of the list, which also starts a region.
        starts.truncate(MAX_REGIONS - 1);
        starts.push(0);
        starts.sort_unstable();
        let mut regions = Vec::new();
        let mut hulls = Vec::new();
        for (region, &start) in starts.iter().enumerate() {
            let end = starts.get(region + 1).copied().unwrap_or(list.len());
            let ranges = &list[start..end];
            regions.extend(Region::new(ranges));
            // `cut` yields the interval around the region in pieces of at most 4 GiB. A wide interval has billions of
            // pieces. Stop at one more than the maximum, which is enough to know that there are too many.
            hulls.extend(Hull::cut(ranges).take(MAX_HULLS + 1));
        }
        // Without hulls, no block of stack words is skipped at once; each word is then looked up in the regions.
        let hulls = (hulls.len() <= MAX_HULLS).then_some(hulls);
        Self { list, regions, hulls }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns true if `addr` or the address before it may be in one of the ranges. False is certain, true isn't.
    #[inline]
    pub(super) fn may_reach(&self, addr: Addr) -> bool {
        self.regions.iter().any(|region| region.may_reach(addr))
    }

    /// Returns true if any of the addresses, or the address before any of them, may be in one of the ranges. False is
    /// certain, true isn't. Faster than [`Self::may_reach`], but with more false positives.
    #[inline]
    pub(super) fn may_reach_any<const N: usize>(&self, addrs: &[u64; N]) -> bool {
        let Some(hulls) = &self.hulls else { return true };
        hulls.iter().any(|hull| hull.has_any(addrs))
    }

    /// True if the address is in one of the ranges. This is exact.
    #[inline]
    pub(super) fn contains(&self, addr: Addr) -> bool {
        self.may_reach(addr) && self.is_in_list(addr)
    }

    fn is_in_list(&self, addr: Addr) -> bool {
        let index = self.list.partition_point(|range| range.end <= addr);
        self.list.get(index).is_some_and(|range| range.start <= addr)
    }
}

impl Hull {
    /// Takes the interval from the first range to one byte after the last range of a sorted list, and cuts it at
    /// multiples of 4 GiB. The byte after a range belongs to it, because it may be a return address.
    fn cut(list: &[Range<Addr>]) -> impl Iterator<Item = Self> {
        let interval = match (list.first(), list.last()) {
            (Some(first), Some(last)) => Some((first.start.0, last.end.0)),
            _ => None,
        };
        interval.into_iter().flat_map(|(first, last)| {
            (first >> 32..=last >> 32).map(move |high| {
                // The part of the interval whose addresses have `high` as their upper half.
                let first = first.max(high << 32);
                let last = last.min(high << 32 | u64::from(u32::MAX));
                Self { high: high as u32, first: first as u32, extent: (last - first) as u32 }
            })
        })
    }

    /// True if any of the addresses is in the hull. The code has no branches, so that the compiler vectorizes it.
    #[inline]
    fn has_any<const N: usize>(&self, addrs: &[u64; N]) -> bool {
        let is_in = |addr: u64| {
            let (high, low) = ((addr >> 32) as u32, addr as u32);
            // If `low` is less than `first`, the difference wraps around and is larger than any extent.
            (high == self.high) & (low.wrapping_sub(self.first) <= self.extent)
        };
        addrs.iter().fold(false, |found, addr| found | is_in(*addr))
    }
}

impl Region {
    /// Builds the bitmap for neighboring ranges. Blocks are as small as possible, so that [`MAX_BLOCKS`] of them cover
    /// all ranges. `None` if the list is empty.
    fn new(list: &[Range<Addr>]) -> Option<Self> {
        let (first, last) = (list.first()?.start.0, list.last()?.end.0);
        // A block has `1 << shift` bytes.
        let shift = (PAGE_SHIFT..).find(|shift| (last - first) >> shift < MAX_BLOCKS).unwrap_or(u64::BITS - 1);
        let last_block = (last - first) >> shift;
        let mut used = vec![0; (last_block / u64::from(u64::BITS)) as usize + 1];
        for range in list {
            // The block of the byte after the range is marked, too, because that byte may be a return address.
            for block in (range.start.0 - first) >> shift..=(range.end.0 - first) >> shift {
                // Set the block's bit, in one of the bitmap's 64-bit words.
                used[(block / u64::from(u64::BITS)) as usize] |= 1 << (block % u64::from(u64::BITS));
            }
        }
        Some(Self { first, shift, used })
    }

    #[inline]
    fn may_reach(&self, addr: Addr) -> bool {
        let block = addr.0.wrapping_sub(self.first) >> self.shift;
        let word = self.used.get((block / u64::from(u64::BITS)) as usize);
        word.is_some_and(|word| word >> (block % u64::from(u64::BITS)) & 1 != 0)
    }
}

/// Sorts the ranges, and joins ranges with less than a page between them, so that the list stays short. An address in
/// such a small gap then counts as in a range, and is looked up in vain later.
fn merge(ranges: &mut Vec<Range<Addr>>) {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    // `dedup_by` removes the range `next` if the closure returns true.
    ranges.dedup_by(|next, previous| {
        let is_close = next.start.0.saturating_sub(previous.end.0) < 4096;
        if is_close {
            previous.end = previous.end.max(next.end);
        }
        is_close
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

    /// Start addresses that are close to each other, close to 4 GiB on either side, or anywhere.
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
            prop_assert!(ranges.regions.len() <= MAX_REGIONS);
            prop_assert!(ranges.regions.iter().all(|region| region.used.len() <= (MAX_BLOCKS / 64) as usize));
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
