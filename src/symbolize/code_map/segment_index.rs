//! Finds the segment that contains an address at a time. Segments are rectangles (addresses × time) that don't overlap.
//!
//! Segments are in groups by address; no segment crosses from one group into the next. The segments of a small group
//! are scanned one by one. A large group, where addresses were reused again and again, has a k-d tree without pointers:
//! its segments are reordered so that each node of the tree is a slice of the array, split in halves down to [`LEAF`]
//! segments. The bounding boxes of the nodes are in an array laid out like a binary heap. Each split uses the axis on
//! which it cuts fewer rectangles: address where code lies side by side, time where the same addresses were reused.

use super::list::CodeId;
use crate::model::lasting::{QuietPeriod, UNTIMED};
use crate::model::{Addr, Nanos, Pid};
use crate::parallel;
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// The maximum number of segments in a leaf of a tree. With fewer there would be more bounding boxes; with more, longer
/// scans (measured by `benches/code_map.rs`).
const LEAF: usize = 16;

/// A group with more segments than this gets a tree. In a smaller group, all segments are scanned.
const TREE: usize = 64;

/// The size up to which the two halves of a tree are sorted one after the other, while the tree is built. Larger halves
/// are sorted in parallel.
const PARALLEL: usize = 1 << 14;

/// The index of a [`Segment`] in its code map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u32);

/// A range of addresses that held one piece of code during a range of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The process that loaded the code. A child process that inherited the code at a fork has another ID.
    pub pid: Pid,
    /// The code that was at these addresses.
    pub code: CodeId,
    /// The first address.
    pub start: Addr,
    /// One past the last address.
    pub end: Addr,
    /// When the code appeared at these addresses, on the recording's clock; 0 for untimed entries.
    pub from: Nanos,
    /// When the code ended at these addresses, exclusive; `Nanos(u64::MAX)` if it never did.
    pub until: Nanos,
    /// How far `start` is from the start of the code, in bytes. 0 unless the first part of the code was overwritten.
    pub offset: u64,
}

/// A range of addresses, and the segments of one process that lie in it.
#[derive(Debug, Clone)]
struct SegmentGroup {
    /// One past the group's last address. The first address is in [`SegmentIndex::starts`].
    end: Addr,
    /// The indices of the group's segments among all segments of the map.
    segments: Range<u32>,
    /// The index of the group's tree in [`SegmentIndex::trees`]; [`NO_TREE`] if it has none.
    tree: u32,
    /// The index in [`SegmentIndex::reaches`] of the entry for the group's first segment.
    reaches: u32,
}

/// The first and last address of a segment, relative to the start of its group. A lookup reads a `Reach` for every
/// segment that it passes, so it is much smaller than the segment. Distances that don't fit are clamped; a match must
/// therefore be checked against the segment itself.
#[derive(Debug, Clone, Copy)]
struct Reach {
    first: u32,
    last: u32,
}

impl Reach {
    /// Computes the reach of a segment that covers at least one byte. `start` is the start of the segment's group.
    fn new(segment: &Segment, start: Addr) -> Self {
        Self { first: distance(segment.start, start), last: distance(Addr(segment.end.0.saturating_sub(1)), start) }
    }
}

/// How far an address is after the start of its group, in bytes, clamped to `u32::MAX`.
fn distance(addr: Addr, start: Addr) -> u32 {
    u32::try_from(addr.0.saturating_sub(start.0)).unwrap_or(u32::MAX)
}

const NO_TREE: u32 = u32::MAX;

/// Batches of groups are replayed in parallel, and each thread builds the trees of its groups. A group with more
/// segments than this would keep one thread busy for too long. Its tree is built at the end, by all threads together.
const LARGE: usize = 1 << 16;

/// Finds the segments of one process.
#[derive(Debug, Clone, Default)]
pub(super) struct SegmentIndex {
    /// The first address of each group, sorted. Stored apart from `groups` because the binary search reads only these.
    starts: Vec<Addr>,
    groups: Vec<SegmentGroup>,
    /// The trees of the groups that have one; see [`SegmentGroup::tree`].
    trees: Vec<SegmentTree>,
    /// One entry per segment, in the order of the groups.
    reaches: Vec<Reach>,
    index: GroupIndex,
}

/// Narrows the binary search for a group. The address range of all groups is divided into slots of equal length, about
/// as many as there are groups. The index tells for each slot which groups start in it.
#[derive(Debug, Clone, Default)]
struct GroupIndex {
    /// The start of the first group, which is also the start of the first slot.
    first: Addr,
    /// A slot covers 2 to the power of `shift` bytes.
    shift: u32,
    /// For each slot, the number of groups that start before it; at the end, the number of all groups.
    before: Vec<u32>,
}

impl GroupIndex {
    /// Builds the index from the sorted start addresses of the groups. Divides the addresses from the first start to
    /// the last into slots of equal length, and notes how many groups start before each slot (`before`). The length of
    /// a slot is the smallest power of two with which there are at most as many slots as groups.
    fn new(starts: &[Addr]) -> Self {
        let (Some(&first), Some(last)) = (starts.first(), starts.last()) else { return Self::default() };
        let span = last.0 - first.0;
        let shift = (0..u64::BITS).find(|shift| span >> shift < starts.len() as u64).unwrap_or(u64::BITS - 1);
        // For each slot, `before` gets the number of groups that start before it. One more entry at the end is the
        // number of all groups.
        let mut before = Vec::with_capacity((span >> shift) as usize + 2);
        for (number, start) in starts.iter().enumerate() {
            let slot = ((start.0 - first.0) >> shift) as usize;
            // If this group is the first in its slot, `number` groups start before the slot, and before any empty slots
            // that precede it. If not, the slot already has its entry, and nothing is added.
            before.resize(before.len().max(slot + 1), number as u32);
        }
        before.push(starts.len() as u32);
        Self { first, shift, before }
    }

    /// The index of the last group that starts at or before `addr`; `None` if there is none. `starts` has the start
    /// address of each group.
    fn find(&self, starts: &[Addr], addr: Addr) -> Option<usize> {
        let slot = usize::try_from(addr.0.checked_sub(self.first.0)? >> self.shift).unwrap_or(usize::MAX);
        // `before` has the number of groups that start before each slot. So the groups from `first` to `end` are those
        // that start in this slot. There are none if `addr` is past the last slot.
        let end = *self.before.get(slot.saturating_add(1)).or(self.before.last())? as usize;
        let first = self.before.get(slot).map_or(end, |before| *before as usize);
        // The number of groups that start at or before `addr`. The last of these may start in an earlier slot.
        let started = first + starts.get(first..end)?.partition_point(|start| *start <= addr);
        started.checked_sub(1)
    }
}

/// The tree of a group with more than [`TREE`] segments: the bounding boxes of its halves, quarters and so on.
#[derive(Debug, Clone)]
struct SegmentTree {
    boxes: Vec<Extent>,
}

/// The bounding box of some segments: lowest start, highest end, earliest `from`, latest `until`.
#[derive(Debug, Clone, Copy)]
struct Extent {
    start: Addr,
    end: Addr,
    from: Nanos,
    until: Nanos,
}

/// The bounding box of no segments. Its union with another box is the other box.
const NOTHING: Extent = Extent { start: Addr(u64::MAX), end: Addr(0), from: Nanos(u64::MAX), until: Nanos(0) };

impl Extent {
    fn from_segments(segments: &[Segment]) -> Self {
        segments.iter().fold(NOTHING, |extent, &Segment { start, end, from, until, .. }| {
            extent.union(Self { start, end, from, until })
        })
    }

    fn union(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
            from: self.from.min(other.from),
            until: self.until.max(other.until),
        }
    }

    fn contains(&self, addr: Addr) -> bool {
        self.start <= addr && addr < self.end
    }
}

impl SegmentIndex {
    /// Adds the next group: its address range, and where its segments are in `segments`. Also stores the reach of each
    /// segment, which is a short form of its address range. Does nothing for a group without segments. If the group
    /// gets a tree, reorders its segments. The trees of groups with more than [`LARGE`] segments are built later, by
    /// [`Self::finish`].
    pub(super) fn push(&mut self, addresses: Range<Addr>, indices: Range<usize>, segments: &mut [Segment]) {
        let group_segments = &mut segments[indices.clone()];
        if group_segments.is_empty() {
            return;
        }
        let mut tree = NO_TREE;
        if group_segments.len() > TREE && group_segments.len() <= LARGE {
            tree = self.trees.len() as u32;
            self.trees.push(SegmentTree::build(group_segments));
        }
        self.starts.push(addresses.start);
        self.groups.push(SegmentGroup {
            end: addresses.end,
            segments: indices.start as u32..indices.end as u32,
            tree,
            reaches: self.reaches.len() as u32,
        });
        // The reaches must be in the order of the segments, which building the tree may just have changed.
        self.reaches.extend(group_segments.iter().map(|segment| Reach::new(segment, addresses.start)));
    }

    /// Adds all groups of `other`, which must have higher addresses. The caller appends the segments of `other` to
    /// those of the map. `first_segment` is the index in the map of the first segment that is appended.
    pub(super) fn append(&mut self, other: Self, first_segment: usize) {
        let first_segment = first_segment as u32;
        let first_tree = self.trees.len() as u32;
        let first_reach = self.reaches.len() as u32;
        self.starts.extend(other.starts);
        for group in other.groups {
            self.groups.push(SegmentGroup {
                end: group.end,
                segments: group.segments.start + first_segment..group.segments.end + first_segment,
                tree: if group.tree == NO_TREE { NO_TREE } else { group.tree + first_tree },
                reaches: group.reaches + first_reach,
            });
        }
        self.trees.extend(other.trees);
        self.reaches.extend(other.reaches);
    }

    /// Completes the index: builds the trees of the groups with more than [`LARGE`] segments, which [`Self::push`] left
    /// out, and the group index, without which lookups find nothing. `segments` are all segments of the map.
    pub(super) fn finish(&mut self, segments: &mut [Segment]) {
        for (start, group) in self.starts.iter().zip(&mut self.groups) {
            if group.segments.len() <= LARGE {
                continue;
            }
            let group_segments = &mut segments[group.segments.start as usize..group.segments.end as usize];
            group.tree = self.trees.len() as u32;
            self.trees.push(SegmentTree::build(group_segments));
            // Building the tree has reordered the segments, so their reaches are computed again.
            for (reach, segment) in self.reaches[group.reaches as usize..].iter_mut().zip(group_segments) {
                *reach = Reach::new(segment, *start);
            }
        }
        self.index = GroupIndex::new(&self.starts);
    }

    /// The address range of each group, in order.
    pub(super) fn extents(&self) -> impl Iterator<Item = (Addr, Addr)> + '_ {
        self.starts.iter().zip(&self.groups).map(|(start, group)| (*start, group.end))
    }

    /// The index of the segment that contains `addr` and is live at `time`. Without a time, the segment that contains
    /// `addr` and ends last. `None` if there is none.
    pub(super) fn find_live(&self, segments: &[Segment], addr: Addr, time: Option<Nanos>) -> Option<usize> {
        // If no time is given, first look for the segment at `addr` that is live at `UNTIMED`, a time later than all
        // samples. There is at most one: only a segment that never ends is live then. If there is none, `find_last`
        // (below) compares when the segments at `addr` end.
        let moment = time.unwrap_or(UNTIMED);
        let mut found = None;
        // The first closure tells which nodes of a tree may have a segment that is live at `moment`. The second closure
        // gets each segment in these nodes that contains `addr`, and ends the visit by returning true.
        self.visit(
            segments,
            addr,
            |extent| extent.from <= moment && moment < extent.until,
            |index, segment| {
                let is_live = segment.from <= moment && moment < segment.until;
                if is_live {
                    found = Some(index);
                }
                is_live
            },
        );
        if found.is_none() && time.is_none() {
            return self.find_last(segments, addr);
        }
        found
    }

    /// The index of the segment that contains `addr` and ends last; `None` if no segment contains it.
    fn find_last(&self, segments: &[Segment], addr: Addr) -> Option<usize> {
        // The best match so far: when it ends, and its index. It is in a cell because both closures need it.
        let last: Cell<Option<(Nanos, usize)>> = Cell::new(None);
        self.visit(
            segments,
            addr,
            // Addresses may have been reused thousands of times. Skips nodes in which everything ends no later than the
            // best match so far.
            |extent| last.get().is_none_or(|(until, _)| extent.until > until),
            |index, segment| {
                last.set(last.get().max(Some((segment.until, index))));
                false
            },
        );
        let (_, index) = last.into_inner()?;
        Some(index)
    }

    /// True if `matches` returns true for a segment that contains `addr`, at whatever time.
    pub(super) fn any(&self, segments: &[Segment], addr: Addr, matches: impl Fn(&Segment) -> bool) -> bool {
        let mut found = false;
        self.visit(
            segments,
            addr,
            |_| true,
            |_, segment| {
                found = matches(segment);
                found
            },
        );
        found
    }

    /// The longest period around `time` in which no segment begins or ends at `addr`.
    pub(super) fn quiet_period(&self, segments: &[Segment], addr: Addr, time: Nanos) -> Range<Nanos> {
        let quiet = RefCell::new(QuietPeriod::new(time));
        self.visit(
            segments,
            addr,
            // Skips the nodes of a tree whose segments can't shorten the period.
            |extent| quiet.borrow().may_be_cut(&(extent.from..extent.until)),
            |_, segment| {
                quiet.borrow_mut().cut(segment.from..segment.until);
                false
            },
        );
        quiet.into_inner().range
    }

    /// Calls `each` with every segment that contains `addr`, at whatever time, and with its index, until `each` returns
    /// true. In a group with a tree, skips the nodes whose bounding box `enter` rejects. A group without a tree has no
    /// boxes, so `each` must not rely on `enter`.
    fn visit(
        &self,
        segments: &[Segment],
        addr: Addr,
        enter: impl Fn(&Extent) -> bool,
        mut each: impl FnMut(usize, &Segment) -> bool,
    ) {
        let Some(group_index) = self.index.find(&self.starts, addr) else { return };
        let group = &self.groups[group_index];
        if addr >= group.end {
            return;
        }
        let first_segment = group.segments.start as usize;
        let reaches = &self.reaches[group.reaches as usize..group.reaches as usize + group.segments.len()];
        let distance = distance(addr, self.starts[group_index]);
        // Of the segments with these indices in the group, passes those at `addr` to `each`. Returns true as soon as
        // `each` returns true.
        let mut scan = |indices: Range<usize>| {
            for index in indices {
                // The reach decides most cases without reading the segment. It may be clamped, so a match is checked
                // again.
                let Reach { first, last } = reaches[index];
                if first <= distance && distance <= last {
                    let segment = &segments[first_segment + index];
                    if segment.start <= addr && addr < segment.end && each(first_segment + index, segment) {
                        return true;
                    }
                }
            }
            false
        };
        match self.trees.get(group.tree as usize) {
            Some(tree) => tree.visit(reaches.len(), |extent| extent.contains(addr) && enter(extent), scan),
            None => _ = scan(0..reaches.len()),
        }
    }
}

impl SegmentTree {
    /// Reorders the segments of a group and builds the tree over them. The number of levels is the smallest with which
    /// no leaf has much more than [`LEAF`] segments.
    fn build(segments: &mut [Segment]) -> Self {
        let mut levels = 0;
        while segments.len() >> levels > LEAF {
            levels += 1;
        }
        // A complete binary tree with 2^levels leaves has 2^(levels + 1) - 1 nodes, which are stored level by level.
        // The boxes are filled in a separate pass, because `arrange` works on halves of the segments in parallel.
        let mut boxes = vec![NOTHING; (2 << levels) - 1];
        arrange(segments, levels);
        fill_boxes(segments, levels, &mut boxes);
        Self { boxes }
    }

    /// Calls `each` with the range of segments in each leaf, in order, until `each` returns true. Skips nodes whose
    /// bounding box `enter` rejects. `len` is the number of segments in the tree.
    fn visit(&self, len: usize, enter: impl Fn(&Extent) -> bool, mut each: impl FnMut(Range<usize>) -> bool) {
        // The nodes that are still to be visited, each with the start and end of its segments. The children of node n
        // are 2n + 1 and 2n + 2. At most one node per level is waiting, and there are at most 32 levels because indices
        // have 32 bits.
        let mut waiting = [(0u32, 0u32, 0u32); u32::BITS as usize];
        waiting[0] = (0, 0, len as u32);
        let mut count = 1;
        while count > 0 {
            count -= 1;
            let (node, low, high) = waiting[count];
            if !enter(&self.boxes[node as usize]) {
                continue;
            }
            let has_children = 2 * (node as usize) + 2 < self.boxes.len();
            if has_children {
                let middle = low + (high - low) / 2;
                // The node put last is visited next, so the lower half comes first.
                waiting[count] = (2 * node + 2, middle, high);
                waiting[count + 1] = (2 * node + 1, low, middle);
                count += 2;
            } else if each(low as usize..high as usize) {
                return;
            }
        }
    }
}

/// Partitions the segments into a lower and an upper half, by address or by time, whichever cuts fewer segments in two.
/// Then does the same in each half, `levels` times in all. The order within the last halves, the leaves, is arbitrary.
fn arrange(segments: &mut [Segment], levels: usize) {
    if levels == 0 {
        return;
    }
    let middle = segments.len() / 2;
    let by_start = |segment: &Segment| (segment.start, segment.from);
    let by_time = |segment: &Segment| (segment.from, segment.start);
    // Tries a split by time, then one by address, and counts the segments that extend over each split.
    segments.select_nth_unstable_by_key(middle, by_time);
    let split = segments[middle].from;
    let cut_by_time = segments.iter().filter(|segment| segment.from < split && split < segment.until).count();
    segments.select_nth_unstable_by_key(middle, by_start);
    let split = segments[middle].start;
    let cut_by_start = segments.iter().filter(|segment| segment.start < split && split < segment.end).count();
    // Segments that start exactly at the split should all be in the upper half. Those that the partition left in the
    // lower half count as cut, too: lookups of their addresses must search both halves.
    let same_start = segments[..middle].iter().filter(|segment| segment.start == split).count();
    // The segments are now partitioned by address. If a split by time cuts fewer of them, they are partitioned by time
    // again.
    if cut_by_time < cut_by_start + same_start {
        segments.select_nth_unstable_by_key(middle, by_time);
    }
    let (low, high) = segments.split_at_mut(middle);
    if low.len() > PARALLEL {
        parallel::join(|| arrange(low, levels - 1), || arrange(high, levels - 1));
    } else {
        arrange(low, levels - 1);
        arrange(high, levels - 1);
    }
}

/// Computes the bounding boxes of all nodes: first of the leaves, then of the nodes above them, from the bottom up. The
/// children of node n are 2n + 1 and 2n + 2. The 2^levels leaves are the last nodes.
fn fill_boxes(segments: &[Segment], levels: usize, boxes: &mut [Extent]) {
    let leaves = 1usize << levels;
    for leaf in 0..leaves {
        // Finds the leaf's segments. The bits of the leaf's number, from the highest, are the way to it from the root:
        // 0 leads to the lower half. The halves must be the same as in `arrange`.
        let (mut low, mut high) = (0, segments.len());
        for level in (0..levels).rev() {
            let middle = low + (high - low) / 2;
            if leaf >> level & 1 == 0 { high = middle } else { low = middle }
        }
        boxes[leaves - 1 + leaf] = Extent::from_segments(&segments[low..high]);
    }
    for node in (0..leaves - 1).rev() {
        boxes[node] = boxes[2 * node + 1].union(boxes[2 * node + 2]);
    }
}
