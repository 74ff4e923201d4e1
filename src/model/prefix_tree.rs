//! Sequences that share their beginnings, such as call chains: a sequence is a node, and each node is numbered once.
//!
//! A node's children are a list, newest first. Nearly all nodes have one or two, and those of one sequence stand side
//! by side in memory: that is several times faster than one hash table for all. Children further back in the list of a
//! node with many children are found by hash.

use super::interner::MOST;
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// The number of children that are looked at one by one. With fewer, wide nodes cost less and all others more.
const LISTED: usize = 8;

/// Stands for no node.
const NONE: u32 = MOST;

/// Nodes, numbered by first appearance.
#[derive(Debug, Clone)]
pub struct PrefixTree<K> {
    nodes: Vec<TreeNode<K>>,
    /// The newest sequence of one item.
    first: u32,
    /// The children of a node behind the first [`LISTED`], by node and key.
    others: FxHashMap<(u32, K), u32>,
    most: u32,
    full: bool,
}

#[derive(Debug, Clone, Copy)]
struct TreeNode<K> {
    parent: u32,
    key: K,
    /// Its newest child.
    first: u32,
    /// Its parent's next older child.
    next: u32,
}

impl<K> Default for PrefixTree<K> {
    fn default() -> Self {
        Self { nodes: Vec::new(), first: NONE, others: FxHashMap::default(), most: MOST, full: false }
    }
}

impl<K: Copy + Eq + Hash> PrefixTree<K> {
    /// The number of the sequence that continues `parent` (`None`: the empty one) with `key`; if there is no number
    /// left, that of `parent` or of any.
    pub fn child(&mut self, parent: Option<u32>, key: K) -> u32 {
        let parent = parent.unwrap_or(NONE);
        let first = self.first_of(parent);
        let (mut at, mut last) = (first, NONE);
        for _ in 0..LISTED {
            let Some(node) = self.nodes.get(at as usize) else { return self.push(parent, key, first) };
            if node.key == key {
                return at;
            }
            (last, at) = (at, node.next);
        }
        if let Some(&found) = self.others.get(&(parent, key)) {
            return found;
        }
        // The last one looked at is pushed out of sight.
        self.others.insert((parent, self.nodes[last as usize].key), last);
        self.push(parent, key, first)
    }

    /// The newest sequences that continue `parent`, and with what: as many as are looked at one by one.
    pub fn newest(&self, parent: Option<u32>) -> impl Iterator<Item = (u32, K)> + '_ {
        self.from(self.first_of(parent.unwrap_or(NONE))).take(LISTED)
    }

    /// All sequences that continue a sequence, and with what, newest first.
    pub fn children(&self, parent: u32) -> impl Iterator<Item = (u32, K)> + '_ {
        self.from(self.first_of(parent))
    }

    /// A sequence, and the older ones that continue the same.
    fn from(&self, mut at: u32) -> impl Iterator<Item = (u32, K)> + '_ {
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            Some((std::mem::replace(&mut at, node.next), node.key))
        })
    }

    fn first_of(&self, parent: u32) -> u32 {
        if parent == NONE { self.first } else { self.nodes[parent as usize].first }
    }

    fn push(&mut self, parent: u32, key: K, next: u32) -> u32 {
        let new = u32::try_from(self.nodes.len()).ok().filter(|&new| new < self.most);
        let Some(new) = new else {
            self.full = true;
            return if parent == NONE { self.first } else { parent };
        };
        self.nodes.push(TreeNode { parent, key, first: NONE, next });
        if parent == NONE {
            self.first = new;
        } else {
            self.nodes[parent as usize].first = new;
        }
        new
    }

    /// Removes all, and keeps the room.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.others.clear();
        (self.first, self.full) = (NONE, false);
    }

    /// The number of them; their numbers run from 0.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True if it is empty.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// True if a sequence got no number of its own.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// The smaller number that a sequence continues, and the element that it adds.
    pub fn get(&self, number: u32) -> (Option<u32>, K) {
        let node = &self.nodes[number as usize];
        ((node.parent != NONE).then_some(node.parent), node.key)
    }

    /// All, in the order of their numbers, as [`PrefixTree::get`] gives them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Option<u32>, K)> + DoubleEndedIterator + '_ {
        self.since(0)
    }

    /// The same from a number on.
    pub fn since(&self, first: usize) -> impl ExactSizeIterator<Item = (Option<u32>, K)> + DoubleEndedIterator + '_ {
        (first..self.nodes.len()).map(|number| self.get(number as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_tree_still_has_what_it_has() {
        let mut tree = PrefixTree { most: 2, ..PrefixTree::default() };
        let root = tree.child(None, 'a');
        let child = tree.child(Some(root), 'b');
        assert!(!tree.is_full());
        assert_eq!((tree.child(None, 'a'), tree.child(Some(root), 'b')), (root, child));
        assert!(!tree.is_full());
        assert_eq!((tree.child(Some(child), 'c'), tree.child(None, 'd')), (child, root));
        assert!(tree.is_full());
        assert_eq!(tree.len(), 2);
    }

    #[test]
    fn a_node_is_found_again_among_few_and_many() {
        let mut tree = PrefixTree::default();
        let root = tree.child(None, 0);
        let wide: Vec<u32> = (0..100).map(|key| tree.child(Some(root), key)).collect();
        let below: Vec<u32> = wide.iter().map(|&node| tree.child(Some(node), 7)).collect();
        let roots: Vec<u32> = (0..100).map(|key| tree.child(None, key)).collect();
        assert_eq!(roots[0], root);
        assert_eq!(tree.len(), 1 + 100 + 100 + 99);
        for key in (0..100).rev() {
            assert_eq!(tree.child(Some(root), key), wide[key as usize]);
            assert_eq!(tree.child(Some(wide[key as usize]), 7), below[key as usize]);
            assert_eq!(tree.child(None, key), roots[key as usize]);
        }
        assert_eq!(tree.len(), 1 + 100 + 100 + 99);
        assert_eq!(tree.get(below[3]), (Some(wide[3]), 7));
        let newest: Vec<(u32, u64)> = tree.newest(Some(root)).collect();
        let is_child = |&(node, key): &(u32, u64)| wide[key as usize] == node;
        assert!(newest.len() == LISTED && newest.iter().all(is_child), "{newest:?}");
        assert_eq!(tree.newest(Some(below[3])).count(), 0);
        assert!(tree.children(root).map(|(node, _)| node).eq(wide.iter().rev().copied()));
        assert_eq!(tree.iter().nth(root as usize), Some((None, 0)));
    }
}
