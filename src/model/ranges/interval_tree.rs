//! An interval tree without pointers: finds all ranges that overlap a given range. The stored ranges may overlap each
//! other.
//!
//! The ranges are sorted by start. The tree is implicit: its root is the middle of the list, and the roots of its
//! subtrees are the middles of the two halves, and so on. Each node stores the largest end in its subtree, so that a
//! search can skip subtrees that end too early.

use std::ops::Range;

/// Something that covers a range of addresses.
pub trait Span {
    /// The addresses from the first one up to, but not including, the end.
    fn range(&self) -> Range<u64>;
}

impl Span for Range<u64> {
    fn range(&self) -> Range<u64> {
        self.clone()
    }
}

/// Items sorted by the start of their range.
#[derive(Debug, Clone)]
pub struct IntervalTree<T> {
    list: Vec<T>,
    /// For the root of each subtree, the largest end of any range in that subtree.
    ends: Vec<u64>,
}

impl<T> Default for IntervalTree<T> {
    fn default() -> Self {
        Self { list: Vec::new(), ends: Vec::new() }
    }
}

impl<T: Span> IntervalTree<T> {
    /// Builds the tree. Items with the same start keep their order.
    pub fn new(mut list: Vec<T>) -> Self {
        list.sort_by_key(|item| item.range().start);
        let mut ends = vec![0; list.len()];
        fill_largest_ends(&list, &mut ends);
        Self { list, ends }
    }

    /// Calls `each` with every item that overlaps a range, in the order of their starts. If the range is empty, these
    /// are the items that begin before it and end after it.
    pub fn visit(&self, range: Range<u64>, mut each: impl FnMut(&T)) {
        self.visit_subtree(0..self.list.len(), &range, &mut each);
    }

    /// Visits the items of a subtree that overlap `range`, in the order of their starts. `indices` are the indices of
    /// the subtree's items in `list`.
    fn visit_subtree(&self, indices: Range<usize>, range: &Range<u64>, each: &mut impl FnMut(&T)) {
        let middle = indices.start.midpoint(indices.end);
        // The subtree has no items, or its largest end (`ends[middle]`) is before the range.
        if indices.is_empty() || self.ends[middle] <= range.start {
            return;
        }
        self.visit_subtree(indices.start..middle, range, each);
        let item = &self.list[middle];
        let item_range = item.range();
        // If this item begins after the range, so do those after it.
        if item_range.start < range.end {
            if range.start < item_range.end {
                each(item);
            }
            self.visit_subtree(middle + 1..indices.end, range, each);
        }
    }
}

/// Fills in the largest end of each subtree of a sublist, and returns the largest end in the whole sublist.
fn fill_largest_ends<T: Span>(list: &[T], ends: &mut [u64]) -> u64 {
    let middle = list.len() / 2;
    let Some(item) = list.get(middle) else { return 0 };
    let before = fill_largest_ends(&list[..middle], &mut ends[..middle]);
    let behind = fill_largest_ends(&list[middle + 1..], &mut ends[middle + 1..]);
    ends[middle] = before.max(behind).max(item.range().end);
    ends[middle]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, proptest};

    /// A range and a number that identifies it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Item(Range<u64>, usize);

    impl Span for Item {
        fn range(&self) -> Range<u64> {
            self.0.clone()
        }
    }

    /// Mostly short ranges, a few long ones, some empty.
    fn items() -> impl Strategy<Value = Vec<Item>> {
        let len = proptest::prop_oneof![8 => 0..6u64, 1 => 0..100u64];
        let ranges = proptest::collection::vec((0..100u64, len), 0..60);
        ranges.prop_map(|ranges| {
            let item = |(number, (start, len))| Item(start..start + len, number);
            ranges.into_iter().enumerate().map(item).collect()
        })
    }

    proptest! {
        #[test]
        fn it_finds_what_looking_at_each_finds(items in items(), start in 0..110u64, len in 1..20u64) {
            let tree = IntervalTree::new(items.clone());
            let mut sorted = items.clone();
            sorted.sort_by_key(|item| item.0.start);
            let range = start..start + len;
            let over = |item: &&Item| item.0.start < range.end && range.start < item.0.end;
            let expected: Vec<&Item> = sorted.iter().filter(over).collect();
            let mut found = Vec::new();
            tree.visit(range.clone(), |item| found.push(item.clone()));
            assert_eq!(found.iter().collect::<Vec<_>>(), expected);
        }
    }
}
