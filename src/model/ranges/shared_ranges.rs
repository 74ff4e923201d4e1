//! A map from address ranges to values, in which later ranges overwrite earlier ones. Copying the map costs nothing.
//!
//! A copy shares everything with the original until one of them changes. The entries form a treap: a binary search tree
//! by address, in which each node has a random rank and no child ranks below its parent. The tree therefore stays
//! shallow even if somebody chooses the addresses in bad faith.

use super::Entry;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

/// Ranges that don't overlap, each with a value.
#[derive(Debug, Clone)]
pub struct SharedRanges<V> {
    root: Tree<V>,
}

type Tree<V> = Option<Arc<RangeNode<V>>>;

#[derive(Debug, Clone)]
struct RangeNode<V> {
    entry: Entry<V>,
    /// A random number, which isn't larger than the rank of either child.
    rank: u64,
    /// The entries at lower addresses.
    left: Tree<V>,
    /// The entries at higher addresses.
    right: Tree<V>,
}

/// Generates the random ranks of tree nodes. An attacker can't predict them.
#[derive(Debug, Clone, Default)]
pub struct Ranks {
    random: RandomState,
    count: u64,
}

impl Ranks {
    fn next(&mut self) -> u64 {
        self.count += 1;
        self.random.hash_one(self.count)
    }
}

impl<V> Default for SharedRanges<V> {
    fn default() -> Self {
        Self { root: None }
    }
}

impl<V: Copy> SharedRanges<V> {
    /// Inserts a range, and overwrites whatever the map has there. Does nothing for an empty range.
    pub fn insert(&mut self, range: Range<u64>, value: V, ranks: &mut Ranks) {
        let Range { start, end } = range;
        if start < end {
            self.put(Entry { start, end, skipped: 0, value }, ranks);
        }
    }

    /// Inserts all entries of another map, and overwrites whatever this map has there. `ranks` generates the random
    /// ranks of the new nodes, which keep the tree balanced.
    pub fn overlay(&mut self, other: &Self, ranks: &mut Ranks) {
        // Visit the nodes by address. `waiting` has the nodes whose left subtree is being visited.
        let (mut waiting, mut next) = (Vec::new(), &other.root);
        loop {
            if let Some(node) = next {
                waiting.push(node);
                next = &node.left;
            } else if let Some(node) = waiting.pop() {
                self.put(node.entry, ranks);
                next = &node.right;
            } else {
                return;
            }
        }
    }

    /// The entry that contains an address.
    #[inline]
    pub fn get(&self, addr: u64) -> Option<Entry<V>> {
        let mut next = &self.root;
        while let Some(node) = next {
            let Entry { start, end, .. } = node.entry;
            if (start..end).contains(&addr) {
                return Some(node.entry);
            }
            next = if addr < start { &node.left } else { &node.right };
        }
        None
    }

    /// True if the map has no entries.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Puts an entry in place of whatever the map has in its range.
    fn put(&mut self, entry: Entry<V>, ranks: &mut Ranks) {
        let (below, from_start) = split(self.root.take(), entry.start);
        let (_, above) = split(from_start, entry.end);
        let node = Some(Arc::new(RangeNode { entry, rank: ranks.next(), left: None, right: None }));
        self.root = join(join(below, node), above);
    }
}

/// Splits a tree in two: the entries below an address, and those at or above it. An entry that contains the address is
/// cut in two.
fn split<V: Copy>(tree: Tree<V>, addr: u64) -> (Tree<V>, Tree<V>) {
    let Some(node) = tree else { return (None, None) };
    let RangeNode { entry, rank, left, right } = Arc::unwrap_or_clone(node);
    let new_root = |entry, left, right| Some(Arc::new(RangeNode { entry, rank, left, right }));
    if entry.end <= addr {
        let (low, high) = split(right, addr);
        (new_root(entry, left, low), high)
    } else if addr <= entry.start {
        let (low, high) = split(left, addr);
        (low, new_root(entry, high, right))
    } else {
        let low_part = Entry { end: addr, ..entry };
        // `skipped` is how far the part's start is from that of the whole entry.
        let high_part = Entry { start: addr, skipped: entry.skipped + (addr - entry.start), ..entry };
        (new_root(low_part, left, None), new_root(high_part, None, right))
    }
}

/// Joins two trees. All addresses in the first must be below those in the second.
fn join<V: Copy>(low: Tree<V>, high: Tree<V>) -> Tree<V> {
    let (low, high) = match (low, high) {
        (Some(low), Some(high)) => (low, high),
        // At least one of the trees is empty.
        (low, high) => return low.or(high),
    };
    // The node with the smaller rank becomes the root.
    if low.rank <= high.rank {
        let low = Arc::unwrap_or_clone(low);
        Some(Arc::new(RangeNode { right: join(low.right, Some(high)), ..low }))
    } else {
        let high = Arc::unwrap_or_clone(high);
        Some(Arc::new(RangeNode { left: join(Some(low), high.left), ..high }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::RangeMap;
    use super::*;
    use proptest::prelude::proptest;

    proptest! {
        #[test]
        fn each_copy_is_what_a_map_was_when_it_was_made(ranges in proptest::collection::vec((0..100u64, 0..30u64), 0..60)) {
            let (mut shared, mut ranks, mut copies) = (SharedRanges::default(), Ranks::default(), Vec::new());
            let mut map = RangeMap::default();
            for (number, (start, len)) in ranges.into_iter().enumerate() {
                shared.insert(start..start + len, number, &mut ranks);
                map.insert(start..start + len, number, |_| {});
                copies.push((shared.clone(), map.clone()));
            }
            for (shared, map) in &copies {
                for addr in 0..140 {
                    assert_eq!(shared.get(addr), map.get(addr));
                }
            }
            let Some(((first, _), (last, map))) = copies.first().zip(copies.last()) else { return Ok(()) };
            let mut both = first.clone();
            both.overlay(last, &mut ranks);
            for addr in 0..140 {
                assert_eq!(both.get(addr), map.get(addr).or(first.get(addr)));
            }
            assert_eq!(both.is_empty(), map.iter().count() == 0);
        }
    }

    #[test]
    fn a_tree_of_many_entries_is_low() {
        let (mut shared, mut ranks) = (SharedRanges::default(), Ranks::default());
        (0..10_000).for_each(|n| shared.insert(n..n + 1, n, &mut ranks));
        let (mut depth, mut level) = (0, vec![&shared.root]);
        while !level.is_empty() {
            level = level.iter().filter_map(|tree| tree.as_ref()).flat_map(|node| [&node.left, &node.right]).collect();
            depth += 1;
        }
        assert!(depth < 80, "{depth}");
    }
}
