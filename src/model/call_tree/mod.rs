//! The stacks of one event as a tree of labels with self and total weights: what folded stacks and flame graphs
//! are written from.
//!
//! Stacks that are spelled alike are one node, whatever addresses or lines they differ in. Nothing is built for
//! each sample: every stack of the profile is placed once, then weights are summed by node.

mod boxes;
mod chart;
mod rehang;

pub use boxes::Placed;
pub use chart::{Chart, Lane};

use super::category::Category;
use super::label::{Annotate, By, is_java, label, roots};
use super::prefix_tree::PrefixTree;
use super::stacks::{FrameId, Profile, Row, Series, StackId, TrackId, Weight};
use rustc_hash::FxHashMap;

/// How stacks are spelled and which way they hang.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spelling {
    /// What gets a root of its own.
    pub by: By,
    /// What is appended to names.
    pub annotate: Annotate,
    /// Leaves first: what was running at the root, its callers above it.
    pub reversed: bool,
    /// Frames that are spelled alike but are of different categories are two.
    pub by_category: bool,
}

/// A tree of labels.
#[derive(Debug)]
pub struct CallTree {
    labels: Vec<Label>,
    label_ids: FxHashMap<Label, u32>,
    /// By label; the first is the root.
    nodes: PrefixTree<u32>,
    /// By node.
    own: Vec<u64>,
    total: Vec<u64>,
}

/// What is written for a frame, and what it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Label {
    text: String,
    /// `None` where it is not asked for, and for the frames that say whose stack it is.
    category: Option<Category>,
}

/// The node above all: it has no label.
const ROOT: u32 = 0;
const NO_LABEL: u32 = u32::MAX;
const NO_ROOT: u32 = u32::MAX;

/// Places the stacks of a profile in a [`CallTree`], each once.
struct Placing<'a> {
    profile: &'a Profile,
    spelling: Spelling,
    tree: CallTree,
    /// The label of each frame, by whether Java's rules hold.
    spelled: [Vec<Option<u32>>; 2],
    /// Where each stack hangs, below which root.
    placed: Vec<(u32, u32)>,
    /// The labels of a root, and whether Java's rules hold there; tracks that are spelled alike share one.
    roots: Vec<(Box<[u32]>, bool)>,
    root_ids: FxHashMap<Box<[u32]>, u32>,
    root_of: FxHashMap<TrackId, u32>,
}

impl CallTree {
    fn new_empty() -> Self {
        let mut nodes = PrefixTree::default();
        nodes.child(None, NO_LABEL);
        Self { labels: Vec::new(), label_ids: FxHashMap::default(), nodes, own: Vec::new(), total: Vec::new() }
    }

    /// The tree of one event.
    pub fn new(profile: &Profile, series: &Series, weight: Weight, spelling: Spelling) -> Self {
        let (mut tree, places) = Placing::new(profile, spelling).place(series.rows.iter());
        tree.own = vec![0; tree.nodes.len()];
        for (row, node) in series.rows.iter().zip(places) {
            let own = &mut tree.own[node as usize];
            *own = own.saturating_add(weight.of(row));
        }
        tree.sum();
        tree
    }

    /// The stacks of one event one by one, in the order of their times, each with its weight; equal neighbours are
    /// one. For flame charts.
    pub fn in_time(
        profile: &Profile,
        series: &Series,
        weight: Weight,
        spelling: Spelling,
        mut stack: impl FnMut(&str, u64),
    ) {
        let mut rows: Vec<&Row> = series.rows.iter().collect();
        rows.sort_by_key(|row| row.time);
        let (tree, places) = Placing::new(profile, spelling).place(rows.iter().copied());
        let mut run: Option<(u32, u64)> = None;
        let mut line = String::new();
        for (row, node) in rows.into_iter().zip(places) {
            match &mut run {
                Some((same, sum)) if *same == node => *sum = sum.saturating_add(weight.of(row)),
                _ => {
                    if let Some((node, sum)) = run.replace((node, weight.of(row))) {
                        tree.path(node, &mut line);
                        stack(&line, sum);
                    }
                }
            }
        }
        if let Some((node, sum)) = run {
            tree.path(node, &mut line);
            stack(&line, sum);
        }
    }

    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.total.first().map_or(0, |total| *total)
    }

    /// Every stack that has weight of its own, in the byte order of its spelling, frames joined by `;`. Nodes that
    /// weigh less than `narrow` are not entered: their weight is counted as their caller's own, or, for a root, as
    /// its own.
    pub fn stacks<E>(&self, narrow: u64, mut stack: impl FnMut(&str, u64) -> Result<(), E>) -> Result<(), E> {
        let children = self.children();
        let mut path = String::new();
        let mut todo = vec![Step::Enter(ROOT, 0)];
        while let Some(step) = todo.pop() {
            match step {
                Step::Own(node, length) => {
                    let own = self.own[node as usize] + self.narrow_children(node, &children, narrow);
                    if own > 0 && node != ROOT {
                        self.open(node, length, &mut path);
                        stack(&path, own)?;
                    }
                }
                Step::Enter(node, length) => {
                    self.open(node, length, &mut path);
                    let inside = children.of(node).iter().filter(|child| !self.is_left_out(**child, narrow));
                    self.queue(inside.copied(), path.len(), &mut todo);
                }
            }
        }
        Ok(())
    }

    /// Puts the steps of siblings on the pile so that they come off in the order of their lines: `a` before `a b`
    /// before `a;c`, for `;` comes behind the blank.
    fn queue(&self, nodes: impl Iterator<Item = u32>, length: usize, todo: &mut Vec<Step>) {
        let first = todo.len();
        for node in nodes {
            todo.push(Step::Own(node, length));
            todo.push(Step::Enter(node, length));
        }
        let key = |step: &Step| match *step {
            Step::Own(node, _) => (self.label(node).as_bytes(), None),
            Step::Enter(node, _) => (self.label(node).as_bytes(), Some(b';')),
        };
        todo[first..].sort_unstable_by(|a, b| {
            let ((a, a_end), (b, b_end)) = (key(a), key(b));
            b.iter().chain(&b_end).cmp(a.iter().chain(&a_end))
        });
    }

    fn open(&self, node: u32, length: usize, path: &mut String) {
        path.truncate(length);
        if node != ROOT {
            if length > 0 {
                path.push(';');
            }
            path.push_str(self.label(node));
        }
    }

    /// Whether a node is counted as its caller's own. A root has no caller: it would be missing from the whole.
    fn is_left_out(&self, node: u32, narrow: u64) -> bool {
        let total = self.total[node as usize];
        total < narrow && self.parent(node) != ROOT || total == 0
    }

    fn narrow_children(&self, node: u32, children: &Children, narrow: u64) -> u64 {
        let totals = children.of(node).iter().map(|&child| self.total[child as usize]);
        totals.filter(|total| *total < narrow).sum()
    }

    fn label(&self, node: u32) -> &str {
        self.labels.get(self.nodes.get(node).1 as usize).map_or("", |label| &label.text)
    }

    /// The root is its own.
    fn parent(&self, node: u32) -> u32 {
        self.nodes.get(node).0.unwrap_or(ROOT)
    }

    /// The whole path of a node into `line`.
    fn path(&self, node: u32, line: &mut String) {
        let mut up = Vec::new();
        let mut at = node;
        while at != ROOT {
            up.push(self.label(at));
            at = self.parent(at);
        }
        line.clear();
        for label in up.iter().rev() {
            if !line.is_empty() {
                line.push(';');
            }
            line.push_str(label);
        }
    }

    fn child(&mut self, parent: u32, label: u32) -> u32 {
        self.nodes.child(Some(parent), label)
    }

    fn label_id(&mut self, label: Label) -> u32 {
        let next = self.labels.len() as u32;
        *self.label_ids.entry(label).or_insert_with_key(|label| {
            self.labels.push(label.clone());
            next
        })
    }

    /// A parent's number is smaller than its children's: one pass from the end sums all.
    fn sum(&mut self) {
        self.total = self.own.clone();
        for at in (1..self.total.len()).rev() {
            let (parent, total) = (self.parent(at as u32) as usize, self.total[at]);
            self.total[parent] = self.total[parent].saturating_add(total);
        }
    }

    fn children(&self) -> Children {
        let mut starts = vec![0u32; self.nodes.len() + 1];
        let parents = || self.nodes.iter().map(|(parent, _)| parent.unwrap_or(ROOT)).enumerate().skip(1);
        for (_, parent) in parents() {
            starts[parent as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut list = vec![0; self.nodes.len() - 1];
        for (at, parent) in parents() {
            let place = &mut next[parent as usize];
            list[*place as usize] = at as u32;
            *place += 1;
        }
        Children { starts, list }
    }
}

enum Step {
    /// The node's own line, its path beginning behind so many bytes.
    Own(u32, usize),
    /// All below the node.
    Enter(u32, usize),
}

/// The children of every node, side by side in one list.
struct Children {
    starts: Vec<u32>,
    list: Vec<u32>,
}

impl Children {
    fn of(&self, node: u32) -> &[u32] {
        &self.list[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }
}

impl<'a> Placing<'a> {
    fn new(profile: &'a Profile, spelling: Spelling) -> Self {
        let unspelled = || vec![None; profile.frame_count()];
        Self {
            profile,
            spelling,
            tree: CallTree::new_empty(),
            spelled: [unspelled(), unspelled()],
            placed: vec![(NO_ROOT, ROOT); profile.stack_count()],
            roots: Vec::new(),
            root_ids: FxHashMap::default(),
            root_of: FxHashMap::default(),
        }
    }

    /// The tree, and the node of each row. The stacks of one root are placed together: what is known of another
    /// root's can be forgotten then.
    fn place<'r>(mut self, rows: impl Iterator<Item = &'r Row>) -> (CallTree, Vec<u32>) {
        let mut wanted: Vec<(u32, usize, Option<StackId>)> = Vec::new();
        for (at, row) in rows.enumerate() {
            wanted.push((self.root(row.track), at, row.stack));
        }
        wanted.sort_unstable_by_key(|&(root, at, _)| (root, at));
        let mut places = vec![ROOT; wanted.len()];
        for (root, at, stack) in wanted {
            places[at] = if self.spelling.reversed { self.hang_reversed(root, stack) } else { self.hang(root, stack) };
        }
        (self.tree, places)
    }

    /// Where a stack hangs below a root, if it is known.
    fn placed(&self, root: u32, stack: StackId) -> Option<u32> {
        let (below, node) = self.placed[stack.index()];
        (below == root).then_some(node)
    }

    fn root(&mut self, id: TrackId) -> u32 {
        if let Some(&root) = self.root_of.get(&id) {
            return root;
        }
        let track = self.profile.track_of(id);
        let spelled = roots(track, self.spelling.by, self.spelling.annotate);
        let labels = spelled.into_iter().map(|text| self.tree.label_id(Label { text, category: None }));
        let labels: Box<[u32]> = labels.collect();
        let next = self.roots.len() as u32;
        let root = *self.root_ids.entry(labels.clone()).or_insert(next);
        if root == next {
            self.roots.push((labels, is_java(&track.comm)));
        }
        self.root_of.insert(id, root);
        root
    }

    fn hang(&mut self, root: u32, stack: Option<StackId>) -> u32 {
        // Up to the nearest caller that is already placed, then down again.
        let mut down = Vec::new();
        let mut at = stack;
        let mut node = loop {
            let Some(id) = at else { break self.hang_root(ROOT, root) };
            if let Some(placed) = self.placed(root, id) {
                break placed;
            }
            let (parent, frame) = self.profile.stack_of(id);
            down.push((id, frame));
            at = parent;
        };
        for (stack, frame) in down.into_iter().rev() {
            node = self.step(node, frame, root);
            self.placed[stack.index()] = (root, node);
        }
        node
    }

    fn hang_reversed(&mut self, root: u32, stack: Option<StackId>) -> u32 {
        if let Some(placed) = stack.and_then(|stack| self.placed(root, stack)) {
            return placed;
        }
        let profile = self.profile;
        let node = profile.frames_up(stack).fold(ROOT, |node, frame| self.step(node, frame, root));
        let node = self.hang_root(node, root);
        if let Some(stack) = stack {
            self.placed[stack.index()] = (root, node);
        }
        node
    }

    fn hang_root(&mut self, node: u32, root: u32) -> u32 {
        let labels = &self.roots[root as usize].0;
        let tree = &mut self.tree;
        if self.spelling.reversed {
            labels.iter().rev().fold(node, |node, &label| tree.child(node, label))
        } else {
            labels.iter().fold(node, |node, &label| tree.child(node, label))
        }
    }

    fn step(&mut self, node: u32, frame: FrameId, root: u32) -> u32 {
        let (profile, spelling, java) = (self.profile, self.spelling, self.roots[root as usize].1);
        let tree = &mut self.tree;
        let spelled = self.spelled[usize::from(java)][frame.index()].get_or_insert_with(|| {
            let frame = profile.frame_of(frame);
            let category = spelling.by_category.then(|| Category::of(frame));
            tree.label_id(Label { text: label(profile, frame, java, spelling.annotate), category })
        });
        tree.child(node, *spelled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Nanos;
    use crate::model::stacks::{Frame, FrameKind, Track, Unit};

    fn profile(stacks: &[(&str, u64)]) -> Profile {
        let mut profile = Profile::new();
        let track = profile.track(Track { comm: b"p q".to_vec(), ..Track::default() });
        for (at, &(names, weight)) in stacks.iter().enumerate() {
            let mut stack = None;
            for name in names.split(';') {
                let name = profile.name(name.as_bytes());
                // Equal labels at unequal addresses must become one node.
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
