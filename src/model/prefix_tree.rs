//! A prefix tree for sequences with common beginnings, such as call chains. Each sequence is a node with an ID.
//!
//! A node's children are a linked list, newest first. Nearly all nodes have one or two children, and the nodes of a
//! sequence are close together in memory, which makes this several times faster than one hash table for everything.
//! Only the children of a "wide" node, which has many, are found by hash.

use super::interner::MOST;
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// The maximum number of children that are compared one by one. If a node has more, its children are found by hash:
/// comparing waits for memory once per child, hashing only once.
const LISTED: usize = 4;

/// Means "no node".
const NONE: u32 = MOST;

/// A set of sequences of keys `K`. IDs are assigned in order of first appearance.
#[derive(Debug, Clone)]
pub struct PrefixTree<K> {
    nodes: Vec<TreeNode<K>>,
    /// The newest sequence with a single key; [`NONE`] if there is none.
    newest_root: u32,
    /// True if there are more than [`LISTED`] sequences with a single key.
    has_many_roots: bool,
    /// The children of wide nodes, which have more than [`LISTED`] children, by parent and key.
    by_key: FxHashMap<(u32, K), u32>,
    /// The maximum number of nodes.
    most: u32,
    /// True if IDs ran out.
    full: bool,
}

#[derive(Debug, Clone, Copy)]
struct TreeNode<K> {
    /// [`NONE`] for a sequence with a single key.
    parent: u32,
    key: K,
    /// The newest child; [`NONE`] if there is none.
    newest_child: u32,
    /// The next older child of the same parent; [`NONE`] if there is none.
    older_sibling: u32,
    /// True if there are more than [`LISTED`] children.
    is_wide: bool,
}

impl<K> Default for PrefixTree<K> {
    /// A tree without sequences.
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            newest_root: NONE,
            has_many_roots: false,
            by_key: FxHashMap::default(),
            most: MOST,
            full: false,
        }
    }
}

impl<K: Copy + Eq + Hash> PrefixTree<K> {
    /// Returns the ID of the sequence `parent` (`None`: the empty sequence) extended by `key`, and adds the sequence if
    /// it is new. If IDs ran out, returns the ID of `parent` or, for the empty sequence, of any other sequence.
    pub fn child(&mut self, parent: Option<u32>, key: K) -> u32 {
        let parent = parent.unwrap_or(NONE);
        // The children of a wide node are found by hash, those of other nodes by comparing them one by one.
        let found = if self.is_wide(parent) {
            self.by_key.get(&(parent, key)).copied()
        } else {
            self.siblings(self.newest_child(parent)).find(|&(_, known)| known == key).map(|(child, _)| child)
        };
        found.unwrap_or_else(|| self.push(parent, key))
    }

    /// All sequences that extend `parent` by one key, each with that key, newest first.
    pub fn children(&self, parent: u32) -> impl Iterator<Item = (u32, K)> + '_ {
        self.siblings(self.newest_child(parent))
    }

    /// The node `newest` and its older siblings, each with its key. Empty if `newest` is [`NONE`].
    fn siblings(&self, newest: u32) -> impl Iterator<Item = (u32, K)> + '_ {
        let mut next = newest;
        std::iter::from_fn(move || {
            let node = self.nodes.get(next as usize)?;
            Some((std::mem::replace(&mut next, node.older_sibling), node.key))
        })
    }

    /// The newest child of a node; [`NONE`] if it has none. For the parent [`NONE`], the newest sequence with a single
    /// key.
    fn newest_child(&self, parent: u32) -> u32 {
        if parent == NONE { self.newest_root } else { self.nodes[parent as usize].newest_child }
    }

    fn is_wide(&self, parent: u32) -> bool {
        if parent == NONE { self.has_many_roots } else { self.nodes[parent as usize].is_wide }
    }

    /// Adds a child that `parent` doesn't have yet, and returns its ID. For the parent [`NONE`], adds a sequence with a
    /// single key. If IDs ran out, adds nothing and returns `parent` (for [`NONE`], the newest sequence with a single
    /// key).
    fn push(&mut self, parent: u32, key: K) -> u32 {
        let Some(new) = u32::try_from(self.nodes.len()).ok().filter(|new| *new < self.most) else {
            self.full = true;
            return if parent == NONE { self.newest_root } else { parent };
        };
        let older_sibling = self.newest_child(parent);
        self.nodes.push(TreeNode { parent, key, newest_child: NONE, older_sibling, is_wide: false });
        // If `parent` is `NONE`, which is the index of no node, the new node goes to the sequences with a single key.
        let (newest_child, is_wide) = match self.nodes.get_mut(parent as usize) {
            Some(node) => (&mut node.newest_child, &mut node.is_wide),
            None => (&mut self.newest_root, &mut self.has_many_roots),
        };
        *newest_child = new;
        if *is_wide {
            self.by_key.insert((parent, key), new);
        } else if self.siblings(new).nth(LISTED).is_some() {
            // There are more than `LISTED` children now, including the new one.
            self.make_wide(parent);
        }
        new
    }

    /// Adds the children of `parent` to `by_key`, so that they are found by hash from now on.
    fn make_wide(&mut self, parent: u32) {
        let mut child = self.newest_child(parent);
        while let Some(node) = self.nodes.get(child as usize) {
            self.by_key.insert((parent, node.key), child);
            child = node.older_sibling;
        }
        match self.nodes.get_mut(parent as usize) {
            Some(node) => node.is_wide = true,
            // `parent` is `NONE`: its children are the sequences with a single key.
            None => self.has_many_roots = true,
        }
    }

    /// Removes all sequences but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.by_key.clear();
        self.newest_root = NONE;
        self.has_many_roots = false;
        self.full = false;
    }

    /// The number of sequences. Their IDs are 0 up to, but not including, this number.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True if the tree has no sequences.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// True if IDs ran out, so that some sequence got another one's ID.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// A sequence as two parts: the ID of the sequence without its last key (`None`: the empty sequence), and the last
    /// key. The returned ID is always smaller than `number`.
    pub fn get(&self, number: u32) -> (Option<u32>, K) {
        let node = &self.nodes[number as usize];
        ((node.parent != NONE).then_some(node.parent), node.key)
    }

    /// All sequences in the order of their IDs, as [`PrefixTree::get`] returns them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Option<u32>, K)> + DoubleEndedIterator + '_ {
        self.since(0)
    }

    /// The sequences from ID `first` on, in the order of their IDs, as [`PrefixTree::get`] returns them.
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
        assert_eq!(tree.children(below[3]).count(), 0);
        assert!(tree.children(root).map(|(node, _)| node).eq(wide.iter().rev().copied()));
        assert_eq!(tree.iter().nth(root as usize), Some((None, 0)));
    }
}
