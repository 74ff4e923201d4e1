//! Finds ranges by address and by their position in a given order: the last one before a position, or the first one
//! from it on, that contains an address or overlaps a range.
//!
//! The starts and ends of all ranges cut the address space into segments. The segments are the leaves of a binary tree
//! without pointers. Each range is listed at the few nodes that together cover it, in the order of the ranges. For the
//! ranges `a`, `b` and `c`, at the positions 0, 1 and 2:
//!
//! ```text
//! position 2        ├──── c ────┤
//!          1  ├─ b ─┤
//!          0  ├──────── a ──┤
//!                      ↑ an address
//! ```
//!
//! To find the last range before position 2 at this address, start at the leaf for the address and walk up to the root.
//! In the list of each node on the way, look for the last position below 2; the highest one found is the answer: `a`.
//!
//! A search takes O(log² n) steps, no matter how many ranges overlap.

use super::Span;
use std::ops::Range;

/// Ranges in a given order, prepared for searches. A position is an index in this order.
#[derive(Debug, Clone)]
pub struct OrderedRanges<T> {
    list: Vec<T>,
    /// The start addresses of the segments, sorted.
    edges: Vec<u64>,
    /// For each tree node, the positions of the ranges that cover all of the node's segments, but not all segments of
    /// the node's parent.
    covering: NodeLists,
    /// For each tree node, the positions of the ranges that cover only a part of the node's segments: those that
    /// `covering` lists at one of the node's descendants. A search for all ranges that overlap given addresses needs
    /// these lists. They are empty if the ranges are only searched by a single address.
    below: NodeLists,
}

/// For each tree node, a sorted list of range positions. All lists are in one allocation.
#[derive(Debug, Clone, Default)]
struct NodeLists {
    /// Where each node's list starts, and where the last one ends.
    starts: Vec<u32>,
    /// All lists, one after the other.
    positions: Vec<u32>,
    /// The first tree node whose list isn't empty; `usize::MAX` if there is none. A parent comes before its children,
    /// so a search on the way to the root can stop at this node: all lists above it are empty.
    first_node: usize,
}

impl<T> Default for OrderedRanges<T> {
    fn default() -> Self {
        Self { list: Vec::new(), edges: Vec::new(), covering: NodeLists::default(), below: NodeLists::default() }
    }
}

impl<T: Span> OrderedRanges<T> {
    /// Prepares for searches by range and by address.
    pub fn new(list: Vec<T>) -> Self {
        let mut ranges = Self::for_addresses(list);
        ranges.below = NodeLists::new(ranges.leaf_count(), &ranges.leaves(), for_each_ancestor);
        ranges
    }

    /// Prepares for searches by address only, which takes less memory than [`new`](Self::new). Cuts the address space
    /// into segments at the starts and ends of all ranges, and lists each range at the tree nodes that together cover
    /// it.
    pub fn for_addresses(list: Vec<T>) -> Self {
        let ranges = list.iter().map(Span::range).filter(|range| range.start < range.end);
        let mut edges: Vec<u64> = ranges.flat_map(|range| [range.start, range.end]).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut ordered = Self { list, edges, ..Self::default() };
        ordered.covering = NodeLists::new(ordered.leaf_count(), &ordered.leaves(), for_each_covering);
        ordered
    }

    /// The number of leaves of the tree: a power of two, so that the leaves below each node are adjacent.
    fn leaf_count(&self) -> usize {
        self.edges.len().next_power_of_two()
    }

    /// For each range, the leaves of the segments that it covers, as numbers from 0. Empty for an empty range.
    fn leaves(&self) -> Vec<Range<u32>> {
        let leaf = |addr: u64| self.edges.partition_point(|edge| *edge < addr) as u32;
        let mut all_leaves = Vec::with_capacity(self.list.len());
        for item in &self.list {
            let range = item.range();
            all_leaves.push(if range.start < range.end { leaf(range.start)..leaf(range.end) } else { 0..0 });
        }
        all_leaves
    }

    /// The number of ranges for which `is_before` is true. The ranges for which it is true must come first in the
    /// order.
    pub fn position(&self, is_before: impl Fn(&T) -> bool) -> usize {
        self.list.partition_point(is_before)
    }

    /// The position of the last range before `position` that contains an address.
    #[inline]
    pub fn last_at(&self, addr: u64, position: usize) -> Option<usize> {
        let mut last = None;
        self.for_each_list_at(addr, |list| last = last.max(last_before(list, position)));
        last
    }

    /// The position of the first range from `position` on that contains an address.
    #[inline]
    pub fn first_at(&self, addr: u64, position: usize) -> Option<usize> {
        let mut first = usize::MAX;
        self.for_each_list_at(addr, |list| first = first.min(first_from(list, position)));
        (first < self.list.len()).then_some(first)
    }

    /// The position of the last range before `position` that overlaps the range `range`.
    pub fn last_over(&self, range: Range<u64>, position: usize) -> Option<usize> {
        let mut last = None;
        self.for_each_list_over(range, |list| last = last.max(last_before(list, position)));
        last
    }

    /// The position of the first range from `position` on that overlaps the range `range`.
    pub fn first_over(&self, range: Range<u64>, position: usize) -> Option<usize> {
        let mut first = usize::MAX;
        self.for_each_list_over(range, |list| first = first.min(first_from(list, position)));
        (first < self.list.len()).then_some(first)
    }

    /// Calls `each` with lists of positions. Together, these lists contain the position of each range that contains
    /// `addr`.
    #[inline]
    fn for_each_list_at(&self, addr: u64, mut each: impl FnMut(&[u32])) {
        // No range contains an address before the first edge.
        let Some(leaf) = self.edges.partition_point(|edge| *edge <= addr).checked_sub(1) else { return };
        let mut node = self.leaf_count() + leaf;
        while node >= self.covering.first_node {
            each(self.covering.list(node));
            node /= 2;
        }
    }

    /// Calls `each` with lists of positions. Together, these lists contain the position of each range that overlaps
    /// `range`. Such a range is listed at one of the nodes that cover `range`, at one above these, or at one below.
    fn for_each_list_over(&self, range: Range<u64>, mut each: impl FnMut(&[u32])) {
        // The leaves that overlap `range`. No leaf has addresses below the first edge, so a range from there begins
        // with leaf 0.
        let start = self.edges.partition_point(|edge| *edge <= range.start).saturating_sub(1) as u32;
        let end = self.edges.partition_point(|edge| *edge < range.end) as u32;
        if range.is_empty() || start >= end {
            return;
        }
        let count = self.leaf_count();
        for_each_covering(start..end, count, &mut |node| {
            // The ranges that are listed at this node, and those that are listed at its descendants.
            each(self.covering.list(node));
            each(self.below.list(node));
        });
        for_each_ancestor(start..end, count, &mut |node| each(self.covering.list(node)));
    }
}

impl<T> OrderedRanges<T> {
    /// All ranges in their order.
    pub fn as_slice(&self) -> &[T] {
        &self.list
    }

    /// Returns all ranges in their order.
    pub fn into_vec(self) -> Vec<T> {
        self.list
    }
}

impl NodeLists {
    /// Lists each range at the nodes that `for_each_node` passes to its callback, given the range's leaves.
    /// `leaf_count` is the number of leaves in the tree, and `leaves_of_ranges` has the leaves of each range.
    fn new(
        leaf_count: usize,
        leaves_of_ranges: &[Range<u32>],
        for_each_node: impl Fn(Range<u32>, usize, &mut dyn FnMut(usize)),
    ) -> Self {
        // Element `node + 1` counts the ranges of `node`. After the counts are added up, element `node` is the sum over
        // all nodes before it, which is where its own list starts.
        let mut starts = vec![0; 2 * leaf_count + 1];
        for leaves in leaves_of_ranges {
            for_each_node(leaves.clone(), leaf_count, &mut |node| starts[node + 1] += 1);
        }
        // The first node with a list. Its count is in the element after it.
        let first_counted = starts.iter().position(|count| *count > 0);
        let first_node = first_counted.map_or(usize::MAX, |index| index - 1);
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        // Where to put the next position of each node.
        let (mut next, mut positions) = (starts.clone(), vec![0; sum as usize]);
        for (position, leaves) in (0..).zip(leaves_of_ranges) {
            for_each_node(leaves.clone(), leaf_count, &mut |node| {
                positions[next[node] as usize] = position;
                next[node] += 1;
            });
        }
        // Node 0 doesn't exist: 1 is the root, where `for_each_list_at` ends at the latest.
        Self { starts, positions, first_node: first_node.max(1) }
    }

    #[inline]
    fn list(&self, node: usize) -> &[u32] {
        &self.positions[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}

/// Covers some adjacent leaves with as few nodes as possible, and calls `each` with each of these nodes. `leaf_count`
/// is the number of leaves in the tree; leaf N is node `leaf_count` + N, and the parent of node N is node N / 2.
fn for_each_covering(leaves: Range<u32>, leaf_count: usize, each: &mut dyn FnMut(usize)) {
    // Go up level by level. `low..high` are the nodes of the current level that are still to be covered. If the parent
    // of the first or last one also has a child outside the range, that node itself is taken. All others are covered by
    // their parents, on the next level.
    let (mut low, mut high) = (leaves.start as usize + leaf_count, leaves.end as usize + leaf_count);
    while low < high {
        // The first node is a right child (an odd number): its sibling is before the range.
        if low % 2 == 1 {
            each(low);
            low += 1;
        }
        // The last node, `high - 1`, is a left child: its sibling is after the range.
        if high % 2 == 1 {
            high -= 1;
            each(high);
        }
        low /= 2;
        high /= 2;
    }
}

/// Calls `each` once with each node that is an ancestor of nodes which [`for_each_covering`] finds for these leaves.
/// All such ancestors are also ancestors of the first or the last leaf.
fn for_each_ancestor(leaves: Range<u32>, leaf_count: usize, each: &mut dyn FnMut(usize)) {
    let (start, end) = (leaves.start as usize + leaf_count, leaves.end as usize + leaf_count);
    if start >= end {
        return;
    }
    let (mut low, mut high, mut level) = (start, end - 1, 0);
    while low > 1 {
        // Go up one level: from the first and the last leaf to their parents.
        (low, high, level) = (low / 2, high / 2, level + 1);
        // Skip a node if all leaves below it are in `leaves`: then `for_each_covering` finds the node itself or one
        // above it, and none below it. The leaves are `level` levels below the node, and have the numbers from
        // `node << level` up to, but not including, `(node + 1) << level`.
        let has_other_leaves = |node: usize| node << level < start || (node + 1) << level > end;
        if has_other_leaves(low) {
            each(low);
        }
        if high != low && has_other_leaves(high) {
            each(high);
        }
    }
}

/// The last position in a list that is smaller than `position`.
#[inline]
fn last_before(list: &[u32], position: usize) -> Option<usize> {
    let count = list.partition_point(|other| (*other as usize) < position);
    count.checked_sub(1).map(|last| list[last] as usize)
}

/// The first position in a list that is at least `position`; `usize::MAX` if there is none.
#[inline]
fn first_from(list: &[u32], position: usize) -> usize {
    let count = list.partition_point(|other| (*other as usize) < position);
    list.get(count).map_or(usize::MAX, |first| *first as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, proptest};

    /// Mostly short ranges, a few long ones, some empty.
    fn items() -> impl Strategy<Value = Vec<Range<u64>>> {
        let len = proptest::prop_oneof![8 => 0..6u64, 1 => 0..100u64];
        let ranges = proptest::collection::vec((0..100u64, len), 0..60);
        ranges.prop_map(|ranges| ranges.into_iter().map(|(start, len)| start..start + len).collect())
    }

    proptest! {
        #[test]
        fn it_finds_what_looking_at_each_finds(items in items(), start in 0..210u64, len in 0..120u64, position in 0..70usize) {
            let range = start..start + len;
            let over = |range: &Range<u64>| {
                let range = range.clone();
                let overlaps = move |item: &Range<u64>| item.start.max(range.start) < item.end.min(range.end);
                items.iter().enumerate().filter(move |(_, item)| overlaps(item)).map(|(at, _)| at)
            };
            let last = |range| over(range).take_while(|at| *at < position).last();
            let first = |range| over(range).find(|at| *at >= position);
            let ranges = OrderedRanges::new(items.clone());
            assert_eq!(ranges.last_over(range.clone(), position), last(&range));
            assert_eq!(ranges.first_over(range.clone(), position), first(&range));
            let ranges = OrderedRanges::for_addresses(items.clone());
            let address = start..start + 1;
            assert_eq!(ranges.last_at(start, position), last(&address));
            assert_eq!(ranges.first_at(start, position), first(&address));
            assert_eq!(ranges.as_slice(), items);
        }
    }

    #[test]
    fn a_search_looks_at_few_lists_however_many_ranges_lie_over_each_other() {
        let nested: Vec<_> = (0..10_000).map(|n| n..20_000 - n).collect();
        let ranges = OrderedRanges::new(nested);
        let mut lists = 0;
        ranges.for_each_list_at(10_000, |_| lists += 1);
        ranges.for_each_list_over(5_000..15_000, |_| lists += 1);
        assert!(lists < 200, "{lists} lists");
        assert!(ranges.covering.positions.len() + ranges.below.positions.len() < 10_000 * 64);
    }
}
