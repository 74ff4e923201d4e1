//! A tree as the boxes of a flame graph: which stretch of the whole each node takes, and how far up it stands.

use super::{CallTree, Children, ROOT};
use crate::model::category::Category;

/// The stretch of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// The node: 0 is the one below all others.
    pub node: u32,
    /// What stands in it: to be asked for with [`CallTree::name`]; `None` for the one below all others.
    pub label: Option<u32>,
    /// How many others are below it.
    pub depth: u32,
    /// The weight of all that is left of it.
    pub start: u64,
    /// `start` and its own weight.
    pub end: u64,
}

impl CallTree {
    /// How many labels there are; their numbers run from 0.
    pub fn label_count(&self) -> usize {
        self.labels.len()
    }

    /// How many nodes there are; their numbers run from 0.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The label of that number.
    pub fn name(&self, label: u32) -> &str {
        &self.labels[label as usize].text
    }

    /// What the frames of that label are; `None` for those that say whose stack it is.
    pub fn category(&self, label: u32) -> Option<Category> {
        self.labels[label as usize].category
    }

    /// The weight of a node itself.
    pub fn own_of(&self, node: u32) -> u64 {
        self.own[node as usize]
    }

    /// The weight of a node and all above it.
    pub fn total_of(&self, node: u32) -> u64 {
        self.total[node as usize]
    }

    /// The node below a node; that below all others is below itself.
    pub fn parent_of(&self, node: u32) -> u32 {
        self.parent(node)
    }

    /// The nodes with their labels, those below before those above.
    pub fn labelled_nodes(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (1..self.nodes.len() as u32).map(|node| (node, self.nodes.get(node).1))
    }

    /// All boxes that weigh at least `narrow`, each before those above it, and siblings in the order of their names.
    pub fn boxes(&self, narrow: u64) -> Vec<Placed> {
        let narrow = narrow.max(1);
        let children = self.children(|node| self.total[node as usize] >= narrow);
        let ranks = self.ranks();
        let mut boxes = Vec::new();
        let mut todo = vec![Placed { node: ROOT, label: None, depth: 0, start: 0, end: self.total() }];
        while let Some(placed) = todo.pop() {
            boxes.push(placed);
            self.place_children(placed, narrow, (&children, &ranks), &mut todo);
        }
        boxes
    }

    /// Where each label stands in the order of their names.
    fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.labels.len() as u32).collect();
        order.sort_unstable_by_key(|&label| &self.labels[label as usize]);
        let mut ranks = vec![0; order.len()];
        order.into_iter().zip(0..).for_each(|(label, rank)| ranks[label as usize] = rank);
        ranks
    }

    /// Puts the boxes above one on the pile, so that they come off from left to right.
    fn place_children(&self, below: Placed, narrow: u64, by: (&Children, &[u32]), todo: &mut Vec<Placed>) {
        let (children, ranks) = by;
        let ranked = |&node: &u32| {
            let label = self.nodes.get(node).1;
            (ranks[label as usize], label, node)
        };
        let mut nodes: Vec<(u32, u32, u32)> = children.of(below.node).iter().map(ranked).collect();
        nodes.sort_unstable();
        let (mut at, first) = (below.start, todo.len());
        for (_, label, node) in nodes {
            let (start, total) = (at, self.total[node as usize]);
            at = start.saturating_add(total);
            if total >= narrow {
                todo.push(Placed { node, label: Some(label), depth: below.depth + 1, start, end: at });
            }
        }
        todo[first..].reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Spelling;
    use super::*;
    use crate::model::stacks::{Weight, profile_of};

    fn boxes(stacks: &[(&str, u64)], narrow: u64) -> Vec<String> {
        let profile = profile_of(stacks);
        let tree = CallTree::new(&profile, &profile.series[0], Weight::Period, Spelling::default());
        let told = |placed: Placed| {
            let name = placed.label.map_or("all", |label| tree.name(label));
            format!("{}{name} {}-{}", " ".repeat(placed.depth as usize), placed.start, placed.end)
        };
        tree.boxes(narrow).into_iter().map(told).collect()
    }

    #[test]
    fn a_box_stands_on_its_caller_and_siblings_by_name() {
        let stacks = [("b;y", 10), ("a", 1), ("b;x", 4), ("a;z", 2), ("b", 100)];
        assert_eq!(boxes(&stacks, 0), ["all 0-117", " a 0-3", "  z 0-2", " b 3-117", "  x 3-7", "  y 7-17"]);
    }

    #[test]
    fn a_narrow_box_leaves_its_place_free() {
        let stacks = [("b;y", 10), ("a;z", 2), ("b;x", 4), ("c", 7)];
        assert_eq!(boxes(&stacks, 5), ["all 0-23", " b 2-16", "  y 6-16", " c 16-23"]);
    }
}
