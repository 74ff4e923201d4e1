//! Lays out a call tree as the boxes of a flame graph.

use super::{CallTree, FrameLabel, LabelStart, NO_LABEL, ROOT};
use crate::analysis::category::Category;
use crate::analysis::namesakes::{StartPlace, namesake_locations};
use crate::analysis::tier_shares::TierShares;
use crate::model::stacks::TRUNCATED;

/// A box of a flame graph: its horizontal range and depth. It shows one node of the tree, or several merged ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedBox {
    /// The box's node, or the first of several merged ones. Node 0 is the root, which is drawn at the bottom.
    pub node: u32,
    /// The label of the box, to be looked up with [`CallTree::name`]; `None` for the root.
    pub label: Option<u32>,
    /// The number of boxes between this one and the bottom of the flame graph; 0 for the root.
    pub depth: u32,
    /// The left edge: the total weight of everything to the left of the box.
    pub start: u64,
    /// The right edge: `start` plus the weight of the box.
    pub end: u64,
}

/// A box that several nodes share, because they only differ in the tier of their JIT code.
#[derive(Debug)]
pub struct MergedBox {
    /// Where the box is.
    pub placed: PlacedBox,
    /// The self weight of all its nodes.
    pub own: u64,
    /// The weight of the box, divided by tier. Empty if the box isn't JIT code.
    pub tiers: TierShares,
}

impl CallTree {
    /// The number of labels. Label IDs are `0..label_count()`.
    pub fn label_count(&self) -> usize {
        self.labels.items().len()
    }

    /// The number of nodes. Node IDs are `0..node_count()`.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The text of a label.
    pub fn name(&self, label: u32) -> &str {
        &self.labels.items()[label as usize].text
    }

    /// The source location where the function of a label starts; `None` if unknown.
    pub fn start(&self, label: u32) -> Option<StartPlace<'_>> {
        self.labels.items()[label as usize].start.as_ref().map(LabelStart::place)
    }

    /// For each label, its function's start location (`db.py:10`) if another function in the tree has the same name;
    /// otherwise `None`.
    pub fn namesake_locations(&self) -> Vec<Option<String>> {
        namesake_locations((0..self.labels.items().len() as u32).map(|label| (self.name(label), self.start(label))))
    }

    /// How many consecutive frames a node stands for: 1 for most nodes, more if unnamed frames with the same label were
    /// joined (`Spelling::join_unnamed`). If it differs from stack to stack, the highest number.
    pub fn longest_run(&self, node: u32) -> u32 {
        self.runs.get(&node).map_or(1, |frames| *frames)
    }

    /// The category of a label's frames; `None` for labels that identify a process or thread.
    pub fn category(&self, label: u32) -> Option<Category> {
        self.labels.items()[label as usize].category
    }

    /// A node's self weight.
    pub fn self_weight(&self, node: u32) -> u64 {
        self.own[node as usize]
    }

    /// A node's total weight.
    pub fn total_weight(&self, node: u32) -> u64 {
        self.total[node as usize]
    }

    /// The parent of a node; the root is its own parent.
    pub fn parent_node(&self, node: u32) -> u32 {
        self.parent(node)
    }

    /// All nodes except the root, with their labels. Parents come before their children.
    pub fn labeled_nodes(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (1..self.nodes.len() as u32).map(|node| {
            let (_, label) = self.nodes.get(node);
            (node, label)
        })
    }

    /// The root's children, with their labels: the outermost frames, or the innermost ones if the tree is reversed.
    pub fn outermost_nodes(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.nodes.children(ROOT)
    }

    /// Lays out the tree as boxes. A node that weighs less than `narrow` gets no box, nor do the nodes below it.
    /// Parents come before their children, and siblings are sorted by name.
    pub fn boxes(&self, narrow: u64) -> Vec<PlacedBox> {
        let mut boxes = Vec::new();
        self.each_box(narrow, &self.ranks(FrameLabel::clone), |placed, _| boxes.push(placed));
        boxes
    }

    /// Like [`boxes`](Self::boxes), but JIT functions of the same name share a box, whatever their tier. No merged tree
    /// is built for this, because most nodes are too narrow to be drawn.
    pub fn boxes_merging_tiers(&self, narrow: u64) -> Vec<MergedBox> {
        let mut boxes = Vec::new();
        self.each_box(narrow, &self.ranks(FrameLabel::without_tier), |placed, nodes| {
            let mut merged = MergedBox { placed, own: 0, tiers: TierShares::default() };
            for &node in nodes {
                merged.own = merged.own.saturating_add(self.self_weight(node));
                if let Some(Category::Jit(tier)) = self.node_label(node).and_then(|label| self.category(label)) {
                    merged.tiers.add(tier, self.total_weight(node));
                }
            }
            boxes.push(merged);
        });
        boxes
    }

    /// The rank of each label when labels are sorted by name. Labels that `simplify` maps to the same label get the
    /// same rank, so that their nodes share a box.
    fn ranks(&self, simplify: impl Fn(&FrameLabel) -> FrameLabel) -> Vec<u32> {
        let mut order: Vec<(FrameLabel, u32)> = self.labels.items().iter().map(simplify).zip(0..).collect();
        // By name, but with `[truncated]` (`is_cut`) after all other names.
        order.sort_unstable_by(|one, other| {
            let is_last = |(label, _): &(FrameLabel, u32)| is_cut(label);
            is_last(one).cmp(&is_last(other)).then_with(|| one.cmp(other))
        });
        let mut ranks = vec![0; order.len()];
        for (rank, same_label) in (0..).zip(order.chunk_by(|(a, _), (b, _)| a == b)) {
            for &(_, label) in same_label {
                ranks[label as usize] = rank;
            }
        }
        ranks
    }

    /// Calls `each` with every box that weighs at least `narrow`, together with the nodes in the box. Sibling nodes
    /// whose labels have the same rank share a box. Parents come before their children, and siblings are sorted by the
    /// rank of their labels.
    fn each_box(&self, narrow: u64, ranks: &[u32], mut each: impl FnMut(PlacedBox, &[u32])) {
        // A box without weight would have no width.
        let narrow = narrow.max(1);
        // The nodes of all boxes so far, one box after the other. `todo` has each box with its range in this list.
        let mut nodes = vec![ROOT];
        let mut todo = vec![(PlacedBox { node: ROOT, label: None, depth: 0, start: 0, end: self.total() }, 0..1)];
        // The children of a box's nodes, each with the rank of its label. A flame graph draws them above the box.
        let mut above: Vec<(u32, u32)> = Vec::new();
        while let Some((below, node_range)) = todo.pop() {
            each(below, &nodes[node_range.clone()]);
            above.clear();
            for &node in &nodes[node_range] {
                above.extend(self.nodes.children(node).map(|(child, label)| (ranks[label as usize], child)));
            }
            above.sort_unstable();
            // The boxes above start where the box below them starts, and follow each other from left to right.
            let (mut next_start, first_above) = (below.start, todo.len());
            for same_label in above.chunk_by(|(a, _), (b, _)| a == b) {
                let total = same_label.iter().fold(0u64, |sum, &(_, node)| sum.saturating_add(self.total_weight(node)));
                let (start, (_, node)) = (next_start, same_label[0]);
                next_start = start.saturating_add(total);
                if total >= narrow {
                    let node_range = nodes.len()..nodes.len() + same_label.len();
                    nodes.extend(same_label.iter().map(|(_, node)| node));
                    let placed = PlacedBox {
                        node,
                        label: self.node_label(node),
                        depth: below.depth + 1,
                        start,
                        end: next_start,
                    };
                    todo.push((placed, node_range));
                }
            }
            // Boxes are taken from the end of `todo`, and the leftmost must be the next one.
            todo[first_above..].reverse();
        }
    }

    fn node_label(&self, node: u32) -> Option<u32> {
        let (_, label) = self.nodes.get(node);
        (label != NO_LABEL).then_some(label)
    }
}

impl LabelStart {
    fn place(&self) -> StartPlace<'_> {
        StartPlace { file: self.file.as_bytes(), line: self.line, column: self.column }
    }
}

impl FrameLabel {
    /// The label without the tier of JIT code.
    pub(super) fn without_tier(&self) -> Self {
        Self { category: self.category.map(Category::without_tier), ..self.clone() }
    }
}

/// True for the label `[truncated]`, which stands for the missing outermost frames of a stack. It sorts after all
/// siblings.
fn is_cut(label: &FrameLabel) -> bool {
    label.text.as_bytes() == TRUNCATED
}

#[cfg(test)]
mod tests {
    use super::super::Spelling;
    use super::*;
    use crate::model::stacks::{Weight, profile_of};

    fn boxes(stacks: &[(&str, u64)], narrow: u64) -> Vec<String> {
        let profile = profile_of(stacks);
        let tree = CallTree::new(&profile, &profile.series[0], Weight::Period, Spelling::default());
        let told = |placed: PlacedBox| {
            let name = placed.label.map_or("all", |label| tree.name(label));
            format!("{}{name} {}-{}", " ".repeat(placed.depth as usize), placed.start, placed.end)
        };
        tree.boxes(narrow).into_iter().map(told).collect()
    }

    #[test]
    fn a_box_is_on_its_caller_and_siblings_by_name() {
        let stacks = [("b;y", 10), ("a", 1), ("b;x", 4), ("a;z", 2), ("b", 100)];
        assert_eq!(boxes(&stacks, 0), ["all 0-117", " a 0-3", "  z 0-2", " b 3-117", "  x 3-7", "  y 7-17"]);
    }

    #[test]
    fn stacks_without_their_outer_part_come_last() {
        let stacks = [("[truncated];f", 3), ("main", 1), ("[truncatedly]", 1)];
        let order = boxes(&stacks, 1);
        let place = |name: &str| order.iter().position(|one| one.contains(name)).unwrap();
        assert!(place("[truncatedly]") < place("main") && place("main") < place("[truncated]"), "{order:?}");
    }

    #[test]
    fn a_narrow_box_leaves_its_place_free() {
        let stacks = [("b;y", 10), ("a;z", 2), ("b;x", 4), ("c", 7)];
        assert_eq!(boxes(&stacks, 5), ["all 0-23", " b 2-16", "  y 6-16", " c 16-23"]);
    }
}
