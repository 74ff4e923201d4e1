//! Finds which of many ranges that come one after the other overlap a range: the last one before a position, and the
//! first one from there on.
//!
//! The starts and ends of all ranges cut the addresses into stretches, the leaves of a tree without pointers. Each range
//! is listed at the few nodes that cover it together, in the order in which the ranges come:
//!
//! ```text
//! order ↑ 2        ├──── c ────┤              nodes that list    c              the last one before 2 at this
//!         1  ├─ b ─┤                          the ranges       b   a  c         address: of each list on the way from
//!         0  ├──────── a ──┤                                 b a  a c  ·        its leaf to the root, one
//!                     ↑
//! ```
//!
//! So a search takes steps by the logarithm of their number (squared), however many of them lie over each other.

use super::Span;
use std::ops::Range;

/// Ranges in the order in which they come.
#[derive(Debug, Clone)]
pub struct OrderedRanges<T> {
    list: Vec<T>,
    /// The starts of the stretches, in order.
    edges: Vec<u64>,
    /// By node, the ranges that cover it, but not the node above.
    over: NodeLists,
    /// By node, the ranges that cover a node below it, but not itself. Empty if only single addresses are requested.
    below: NodeLists,
}

/// Lists of positions, each in order, one behind the other.
#[derive(Debug, Clone, Default)]
struct NodeLists {
    /// The start of each node's list; one more for the end of the last.
    starts: Vec<u32>,
    positions: Vec<u32>,
    /// The first node with a list that is not empty.
    first: usize,
}

impl<T> Default for OrderedRanges<T> {
    fn default() -> Self {
        let (over, below) = Default::default();
        Self { list: Vec::new(), edges: Vec::new(), over, below }
    }
}

impl<T: Span> OrderedRanges<T> {
    /// For searches for what overlaps a range.
    pub fn new(list: Vec<T>) -> Self {
        let mut ranges = Self::for_addresses(list);
        ranges.below = NodeLists::new(ranges.leaf_count(), &ranges.leaves(), above);
        ranges
    }

    /// For searches for what holds an address: takes less memory.
    pub fn for_addresses(list: Vec<T>) -> Self {
        let ranges = list.iter().map(Span::range).filter(|range| range.start < range.end);
        let mut edges: Vec<u64> = ranges.flat_map(|range| [range.start, range.end]).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut ranges = Self { list, edges, ..Self::default() };
        ranges.over = NodeLists::new(ranges.leaf_count(), &ranges.leaves(), cover);
        ranges
    }

    /// A power of two: then the leaves below a node stand side by side.
    fn leaf_count(&self) -> usize {
        self.edges.len().next_power_of_two()
    }

    /// The leaves that each of the ranges covers.
    fn leaves(&self) -> Vec<Range<u32>> {
        let leaf = |addr: u64| self.edges.partition_point(|edge| *edge < addr) as u32;
        let leaves =
            |range: Range<u64>| if range.start < range.end { leaf(range.start)..leaf(range.end) } else { 0..0 };
        self.list.iter().map(|item| leaves(item.range())).collect()
    }

    /// Those that come before something else: a prefix of all.
    pub fn position(&self, is_before: impl Fn(&T) -> bool) -> usize {
        self.list.partition_point(is_before)
    }

    /// The position of the last one before `position` that holds an address.
    #[inline]
    pub fn last_at(&self, addr: u64, position: usize) -> Option<usize> {
        let mut last = None;
        self.each_list_at(addr, |list| last = last.max(before(list, position)));
        last
    }

    /// The position of the first one from `position` on that holds an address.
    #[inline]
    pub fn first_at(&self, addr: u64, position: usize) -> Option<usize> {
        let mut first = usize::MAX;
        self.each_list_at(addr, |list| first = first.min(from(list, position)));
        (first < self.list.len()).then_some(first)
    }

    /// The position of the last one before `position` that overlaps a range.
    pub fn last_over(&self, range: Range<u64>, position: usize) -> Option<usize> {
        let mut last = None;
        self.each_list_over(range, |list| last = last.max(before(list, position)));
        last
    }

    /// The position of the first one from `position` on that overlaps a range.
    pub fn first_over(&self, range: Range<u64>, position: usize) -> Option<usize> {
        let mut first = usize::MAX;
        self.each_list_over(range, |list| first = first.min(from(list, position)));
        (first < self.list.len()).then_some(first)
    }

    /// Shows `each` the lists of all that holds an address.
    #[inline]
    fn each_list_at(&self, addr: u64, mut each: impl FnMut(&[u32])) {
        let Some(leaf) = self.edges.partition_point(|edge| *edge <= addr).checked_sub(1) else { return };
        let mut node = self.leaf_count() + leaf;
        while node >= self.over.first {
            each(self.over.of(node));
            node /= 2;
        }
    }

    /// Shows `each` the lists of all that overlaps a range. Entries that overlap it are listed at a node above, at or
    /// below one of those that cover the range.
    fn each_list_over(&self, range: Range<u64>, mut each: impl FnMut(&[u32])) {
        let start = self.edges.partition_point(|edge| *edge <= range.start).saturating_sub(1) as u32;
        let end = self.edges.partition_point(|edge| *edge < range.end) as u32;
        if range.is_empty() || start >= end {
            return;
        }
        let count = self.leaf_count();
        cover(start..end, count, &mut |node| {
            each(self.over.of(node));
            each(self.below.of(node));
        });
        above(start..end, count, &mut |node| each(self.over.of(node)));
    }
}

impl<T> OrderedRanges<T> {
    /// All of them, by position.
    pub fn as_slice(&self) -> &[T] {
        &self.list
    }

    /// Takes all of them out.
    pub fn into_vec(self) -> Vec<T> {
        self.list
    }
}

impl NodeLists {
    /// Lists each range at the nodes that `nodes` shows of its leaves.
    fn new(count: usize, leaves: &[Range<u32>], nodes: impl Fn(Range<u32>, usize, &mut dyn FnMut(usize))) -> Self {
        let mut starts = vec![0; 2 * count + 1];
        for leaves in leaves {
            nodes(leaves.clone(), count, &mut |node| starts[node + 1] += 1);
        }
        let first = starts.iter().position(|len| *len > 0).map_or(usize::MAX, |behind| behind - 1);
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let (mut next, mut positions) = (starts.clone(), vec![0; sum as usize]);
        for (position, leaves) in (0..).zip(leaves) {
            nodes(leaves.clone(), count, &mut |node| {
                positions[next[node] as usize] = position;
                next[node] += 1;
            });
        }
        Self { starts, positions, first: first.max(1) }
    }

    #[inline]
    fn of(&self, node: usize) -> &[u32] {
        &self.positions[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}

/// Shows `each` the nodes that cover some leaves together, each once. Leaf N is node `count` + N, and above node N is
/// node N / 2.
fn cover(leaves: Range<u32>, count: usize, each: &mut dyn FnMut(usize)) {
    let (mut low, mut high) = (leaves.start as usize + count, leaves.end as usize + count);
    while low < high {
        if low % 2 == 1 {
            each(low);
            low += 1;
        }
        if high % 2 == 1 {
            high -= 1;
            each(high);
        }
        low /= 2;
        high /= 2;
    }
}

/// Shows `each` the nodes above those that cover some leaves, each once. They are above the first leaf or the last.
fn above(leaves: Range<u32>, count: usize, each: &mut dyn FnMut(usize)) {
    let (start, end) = (leaves.start as usize + count, leaves.end as usize + count);
    let (mut low, mut high, mut level) = (start, end - usize::from(start < end), 0);
    while start < end && low > 1 {
        (low, high, level) = (low / 2, high / 2, level + 1);
        let covers_others = |node: usize| node << level < start || (node + 1) << level > end;
        if covers_others(low) {
            each(low);
        }
        if high != low && covers_others(high) {
            each(high);
        }
    }
}

/// The last position of a list before another one.
#[inline]
fn before(list: &[u32], position: usize) -> Option<usize> {
    let count = list.partition_point(|at| (*at as usize) < position);
    count.checked_sub(1).map(|last| list[last] as usize)
}

/// The first position of a list from another one on; behind all if absent.
#[inline]
fn from(list: &[u32], position: usize) -> usize {
    let count = list.partition_point(|at| (*at as usize) < position);
    list.get(count).map_or(usize::MAX, |at| *at as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, proptest};

    impl Span for Range<u64> {
        fn range(&self) -> Range<u64> {
            self.clone()
        }
    }

    /// Mostly short ones, a few long, some empty.
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
        ranges.each_list_at(10_000, |_| lists += 1);
        ranges.each_list_over(5_000..15_000, |_| lists += 1);
        assert!(lists < 200, "{lists} lists");
        assert!(ranges.over.positions.len() + ranges.below.positions.len() < 10_000 * 64);
    }
}
