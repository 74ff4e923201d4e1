//! A tree of the labels in one event's stacks, with self and total weights. Folded stacks and flame graphs are written
//! from it.
//!
//! Stacks with the same labels share a node, even if they differ in addresses or lines. Each distinct stack of the
//! profile is placed in the tree once; then weights are added up per node.

mod boxes;
mod chart;
mod placing;
mod rehang;

pub use boxes::{MergedBox, PlacedBox};
pub use chart::{Chart, Lane};

use crate::analysis::category::Category;
use crate::analysis::label::{Annotate, RootFrame, Shortening};
use crate::model::interner::Interner;
use crate::model::lists::Lists;
use crate::model::prefix_tree::PrefixTree;
use rustc_hash::FxHashMap;
use std::cmp::{Ordering, Reverse};

/// How stacks are labeled and arranged in a call tree.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spelling {
    /// Which property of the thread (name, ID, CPU) is added as the outermost frame.
    pub by: RootFrame,
    /// What to append to the names of frames, such as marks for JIT code.
    pub annotate: Annotate,
    /// Which names of functions to shorten.
    pub shortening: Shortening,
    /// True for a reversed tree: innermost frames at the root, their callers above them.
    pub reversed: bool,
    /// True if frames of different categories are kept apart even if their labels are equal.
    pub by_category: bool,
    /// True if labels hold where functions start, and so keep functions of the same name apart. Otherwise the location
    /// is part of the text, for functions that share their name with others ([`Namesakes`]): folded stacks only contain
    /// names.
    ///
    /// [`Namesakes`]: crate::analysis::namesakes::Namesakes
    pub by_start: bool,
    /// True if consecutive frames without a name that have the same label share a node. In pictures, a long run of them
    /// would take much room and tell nothing. Folded stacks keep every frame.
    pub join_unnamed: bool,
}

/// A tree of labels with weights.
#[derive(Debug)]
pub struct CallTree {
    /// All labels, by ID.
    labels: Interner<FrameLabel, u32>,
    /// All nodes by label. The first one is the root.
    nodes: PrefixTree<u32>,
    /// The self weight of each node.
    own: Vec<u64>,
    /// The total weight of each node; empty until the tree is complete.
    total: Vec<u64>,
    /// The nodes that stand for several frames in a row ([`Spelling::join_unnamed`]), each with the number of frames in
    /// the longest run.
    runs: FxHashMap<u32, u32>,
}

/// A label: the text for a frame, and what else distinguishes frames with the same text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct FrameLabel {
    text: String,
    /// Where the function starts; `None` if unknown, or if starts aren't distinguished ([`Spelling::by_start`]).
    start: Option<LabelStart>,
    /// `None` if categories aren't distinguished ([`Spelling::by_category`]), and for frames that identify a process or
    /// thread.
    category: Option<Category>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct LabelStart {
    file: Box<str>,
    line: u32,
    column: u32,
}

/// The node ID of the root, which has no label.
const ROOT: u32 = 0;
/// Stands for the label of the root, and for labels that aren't known yet.
const NO_LABEL: u32 = u32::MAX;

impl CallTree {
    fn new_empty() -> Self {
        let mut nodes = PrefixTree::default();
        // The first node is the root.
        nodes.child(None, NO_LABEL);
        Self { labels: Interner::default(), nodes, own: Vec::new(), total: Vec::new(), runs: FxHashMap::default() }
    }

    /// The weight of the whole tree.
    pub fn total(&self) -> u64 {
        self.total.first().map_or(0, |total| *total)
    }

    /// Calls `stack` with each stack that has self weight: its labels joined by `;`, and the self weight. Stacks come
    /// in the byte order of their texts. A node whose total weight is less than `narrow` is omitted, and its weight is
    /// added to the self weight of its caller. Outermost frames have no caller, so they are never omitted.
    pub fn stacks<E>(&self, narrow: u64, mut stack: impl FnMut(&str, u64) -> Result<(), E>) -> Result<(), E> {
        let (children, order) = (self.children(), LineOrder::from_labels(self.labels.items()));
        let mut path = String::new();
        // Each step has the length of its parent's path, which is still at the start of `path` when the step is taken.
        // `extend_path` then replaces the rest of `path` by the label of the step's node.
        let mut todo = vec![TreeStep::Enter(ROOT, 0)];
        while let Some(step) = todo.pop() {
            match step {
                TreeStep::Own(node, length, own) => {
                    self.extend_path(node, length, &mut path);
                    stack(&path, own)?;
                }
                TreeStep::Enter(node, length) => {
                    self.extend_path(node, length, &mut path);
                    self.push_steps(&children[node as usize], path.len(), &children, &order, narrow, &mut todo);
                }
            }
        }
        Ok(())
    }

    /// Pushes the steps for sibling nodes so that they are popped in the byte order of their output lines. For example,
    /// `a` comes before `a b` and `a b` before `a;c`, because a space sorts before `;`. `length` is the length of their
    /// parent's path in bytes.
    fn push_steps(
        &self,
        nodes: &[u32],
        length: usize,
        children: &Lists<u32>,
        order: &LineOrder,
        narrow: u64,
        todo: &mut Vec<TreeStep>,
    ) {
        let first_new = todo.len();
        for &node in nodes {
            // Omit a light node: its weight is added to its caller. But an outermost frame has no caller, so that its
            // weight would be lost.
            let total = self.total[node as usize];
            if total == 0 || total < narrow && self.parent(node) != ROOT {
                continue;
            }
            if !children[node as usize].is_empty() {
                todo.push(TreeStep::Enter(node, length));
            }
            let self_weight = self.own[node as usize] + self.sum_narrow_children(node, children, narrow);
            if self_weight > 0 {
                todo.push(TreeStep::Own(node, length, self_weight));
            }
        }
        if nodes.len() > 1 {
            // Sort the new steps in reverse order, because the last step is popped first.
            let label = |node: u32| {
                let (_, label) = self.nodes.get(node);
                label as usize
            };
            todo[first_new..].sort_unstable_by_key(|step| match *step {
                TreeStep::Own(node, ..) => Reverse(order.own[label(node)]),
                TreeStep::Enter(node, _) => Reverse(order.entered[label(node)]),
            });
        }
    }

    /// Turns `path`, some labels from the root joined by `;`, into the path of this node. The first `length` bytes of
    /// `path` are the path of the node's parent; what follows them is replaced by the node's label.
    fn extend_path(&self, node: u32, length: usize, path: &mut String) {
        path.truncate(length);
        if node != ROOT {
            if length > 0 {
                path.push(';');
            }
            path.push_str(self.label(node));
        }
    }

    /// The total weight of those children of a node that are omitted because they weigh less than `narrow`.
    fn sum_narrow_children(&self, node: u32, children: &Lists<u32>, narrow: u64) -> u64 {
        if narrow == 0 {
            return 0;
        }
        let totals = children[node as usize].iter().map(|&child| self.total[child as usize]);
        totals.filter(|total| *total < narrow).sum()
    }

    fn label(&self, node: u32) -> &str {
        self.labels.items().get(self.nodes.get(node).1 as usize).map_or("", |label| &label.text)
    }

    /// The parent of a node. The root is its own parent.
    fn parent(&self, node: u32) -> u32 {
        self.nodes.get(node).0.unwrap_or(ROOT)
    }

    /// Writes the labels from the root to a node to `line`, joined by `;`.
    fn write_path(&self, node: u32, line: &mut String) {
        let mut labels = Vec::new();
        let mut ancestor = node;
        while ancestor != ROOT {
            labels.push(self.label(ancestor));
            ancestor = self.parent(ancestor);
        }
        line.clear();
        for label in labels.iter().rev() {
            if !line.is_empty() {
                line.push(';');
            }
            line.push_str(label);
        }
    }

    fn child(&mut self, parent: u32, label: u32) -> u32 {
        self.nodes.child(Some(parent), label)
    }

    /// Records that a node stands for a run of this many frames in some stack. The longest run is kept.
    fn add_run(&mut self, node: u32, frames: u32) {
        let longest = self.runs.entry(node).or_default();
        *longest = (*longest).max(frames);
    }

    /// Computes total weights from self weights. A parent's ID is smaller than its children's, so one backward pass is
    /// enough.
    fn sum(&mut self) {
        self.total = self.own.clone();
        for node in (1..self.total.len()).rev() {
            let (parent, total) = (self.parent(node as u32) as usize, self.total[node]);
            self.total[parent] = self.total[parent].saturating_add(total);
        }
    }

    /// The children of each node.
    fn children(&self) -> Lists<u32> {
        let nodes = 1..self.nodes.len() as u32;
        Lists::new(self.nodes.len(), nodes.map(|node| (self.parent(node), node)))
    }
}

/// The order in which the lines of sibling nodes are output. Each label has two ranks, because it occurs in two kinds
/// of lines: at the end of its node's own line, and before `;` in the lines of the node's callees. Both are indexed by
/// label ID.
struct LineOrder {
    /// The rank of a node's own line, which ends with the label.
    own: Vec<u32>,
    /// The rank of the lines of a node's callees, in which `;` follows the label.
    entered: Vec<u32>,
}

impl LineOrder {
    /// Gives each label two ranks in the byte order of output lines: one for a line that ends with the label (`own`),
    /// and one for lines in which `;` follows the label (`entered`).
    fn from_labels(labels: &[FrameLabel]) -> Self {
        let mut lines: Vec<LineEnd<'_>> = Vec::with_capacity(2 * labels.len());
        // Each label may be the last one of a line, or be followed by `;`.
        for (label_id, label) in labels.iter().enumerate() {
            lines.extend([None, Some(b';')].map(|end| LineEnd { label: label.text.as_bytes(), end, label_id }));
        }
        lines.sort_unstable_by(LineEnd::cmp);
        let mut order = Self { own: vec![0; labels.len()], entered: vec![0; labels.len()] };
        // Labels with the same text, which only differ in category or start, get the same rank.
        let mut rank = 0;
        for (index, line) in lines.iter().enumerate() {
            if index > 0 && lines[index - 1].cmp(line).is_ne() {
                rank += 1;
            }
            let ranks = if line.end.is_none() { &mut order.own } else { &mut order.entered };
            ranks[line.label_id] = rank;
        }
        order
    }
}

/// A label as it occurs in a line: at the end (`None`), or followed by `;`.
struct LineEnd<'a> {
    label: &'a [u8],
    end: Option<u8>,
    label_id: usize,
}

impl LineEnd<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let common_len = self.label.len().min(other.label.len());
        // The byte that follows the common length in each line: a byte of the longer label; `;` or nothing after the
        // shorter one.
        let next_byte = |line: &Self| line.label[common_len..].iter().copied().chain(line.end).next();
        // The byte after the common length only matters if one label is a prefix of the other.
        self.label[..common_len].cmp(&other.label[..common_len]).then_with(|| next_byte(self).cmp(&next_byte(other)))
    }
}

/// A step in writing the lines of a tree.
enum TreeStep {
    /// Output the line for a node's self weight: the node, the length of its caller's line in bytes, and the weight.
    Own(u32, usize, u64),
    /// Visit a node's children: the node, and the length of its caller's line in bytes.
    Enter(u32, usize),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Nanos;
    use crate::model::stacks::{Frame, FrameKind, Profile, Row, Track, Unit, Weight};

    fn profile(stacks: &[(&str, u64)]) -> Profile {
        let mut profile = Profile::new();
        let track = profile.track(Track { comm: b"p q".to_vec(), ..Track::default() });
        for (at, &(names, weight)) in stacks.iter().enumerate() {
            let mut stack = None;
            for name in names.split(';') {
                let name = profile.name(name.as_bytes());
                // Equal labels with different addresses must share a node.
                let addr = Some(at as u64);
                let frame = profile.frame(Frame { addr, ..Frame::new(name, FrameKind::User) });
                stack = Some(profile.stack(stack, frame));
            }
            let row = Row { track, stack, weight, count: 1, time: Some(Nanos(100 - at as u64)) };
            let series = profile.series_named("cycles", Unit::Samples);
            profile.push(series, row);
        }
        profile
    }

    fn stacks(profile: &Profile, spelling: Spelling, narrow: u64) -> Vec<String> {
        let tree = CallTree::new(profile, &profile.series[0], Weight::Period, spelling);
        let mut lines = Vec::new();
        tree.stacks::<()>(narrow, |stack, weight| {
            lines.push(format!("{stack} {weight}"));
            Ok(())
        })
        .unwrap();
        lines
    }

    #[test]
    fn lines_are_summed_and_sorted_as_text() {
        let profile = profile(&[("a;c", 1), ("a b", 2), ("a;c", 4), ("a", 8), ("a;c;d", 16)]);
        let lines = stacks(&profile, Spelling::default(), 0);
        assert_eq!(lines, ["p_q;a 8", "p_q;a b 2", "p_q;a;c 5", "p_q;a;c;d 16"]);
        assert_eq!(CallTree::new(&profile, &profile.series[0], Weight::Samples, Spelling::default()).total(), 5);
    }

    #[test]
    fn narrow_nodes_are_left_to_their_caller() {
        let profile = profile(&[("a;b;x", 1), ("a;b;y", 2), ("a;c", 9)]);
        assert_eq!(stacks(&profile, Spelling::default(), 3), ["p_q;a;b 3", "p_q;a;c 9"]);
        assert_eq!(stacks(&profile, Spelling::default(), 4), ["p_q;a 3", "p_q;a;c 9"]);
    }

    #[test]
    fn reversed_stacks_begin_with_what_ran() {
        let profile = profile(&[("a;x", 1), ("b;x", 2)]);
        assert_eq!(stacks(&profile, Spelling { reversed: true, ..Spelling::default() }, 0), ["x;a;p_q 1", "x;b;p_q 2"]);
    }

    #[test]
    fn a_chart_keeps_the_order_of_time() {
        let profile = profile(&[("z", 1), ("a", 2), ("a", 4), ("z", 8)]);
        let mut lines = Vec::new();
        CallTree::in_time(&profile, &profile.series[0], Weight::Period, Spelling::default(), |stack, weight| {
            lines.push(format!("{stack} {weight}"));
        });
        assert_eq!(lines, ["p_q;z 8", "p_q;a 6", "p_q;z 1"]);
    }
}
