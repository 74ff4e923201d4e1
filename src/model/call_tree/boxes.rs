//! A tree as the boxes of a flame graph: which stretch of the whole each node takes, and how far up it stands.
//!
//! Places and order are those of inferno, which draws from sorted lines: a box ends where the next line has no such
//! frame. Names that begin alike can stand between a node's own line and the lines below it (`a 1`, `a b 1`,
//! `a;c 1`): the node has two boxes then.

use super::{CallTree, Children, ROOT};
use std::cmp::Ordering;

/// A stretch of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// What stands in it: to be asked for with [`CallTree::name`]; `None` for the one below all others.
    pub label: Option<u32>,
    /// How many others are below it.
    pub depth: u32,
    /// The weight of all that is left of it.
    pub start: u64,
    /// `start` and its own weight.
    pub end: u64,
}

enum BoxStep {
    /// The node's own line, which weighs so much.
    Own(u32, u64),
    /// All above the node.
    Enter(u32),
}

impl CallTree {
    /// How many labels there are; their numbers run from 0.
    pub fn label_count(&self) -> usize {
        self.labels.len()
    }

    /// The label of that number.
    pub fn name(&self, label: u32) -> &str {
        &self.labels[label as usize]
    }

    /// All boxes that weigh at least `narrow`, in the order of their ends; what is above narrower ones is counted
    /// as their caller's own.
    pub fn boxes(&self, narrow: u64) -> Vec<Placed> {
        let children = self.children();
        let mut row =
            BoxRow { tree: self, narrow: narrow.max(1), open: Vec::new(), path: Vec::new(), at: 0, boxes: Vec::new() };
        let mut todo = vec![BoxStep::Enter(ROOT)];
        while let Some(step) = todo.pop() {
            match step {
                BoxStep::Own(node, own) => row.line(node, own),
                BoxStep::Enter(node) => self.queue_lines(node, &children, narrow, &mut todo),
            }
        }
        row.close(0);
        row.boxes
    }

    /// Puts the steps of a node's children on the pile so that they come off in the order of their lines.
    fn queue_lines(&self, node: u32, children: &Children, narrow: u64, todo: &mut Vec<BoxStep>) {
        let first = todo.len();
        for &child in children.of(node) {
            if self.is_left_out(child, narrow) {
                continue;
            }
            let own = self.own[child as usize].saturating_add(self.narrow_children(child, children, narrow));
            if own > 0 {
                todo.push(BoxStep::Own(child, own));
            }
            todo.push(BoxStep::Enter(child));
        }
        todo[first..].sort_unstable_by(|a, b| self.by_line(b, a));
    }

    /// Which of two siblings' steps has its lines first.
    fn by_line(&self, a: &BoxStep, b: &BoxStep) -> Ordering {
        let (a_name, b_name) = (self.label(a.node()).as_bytes(), self.label(b.node()).as_bytes());
        let common = a_name.len().min(b_name.len());
        a_name[..common].cmp(&b_name[..common]).then_with(|| {
            let rest = |name: &[u8], step: &BoxStep| [&name[common..], step.separator().as_bytes()].concat();
            match (a, b) {
                (BoxStep::Own(a, _), BoxStep::Enter(b)) if a == b => Ordering::Less,
                (BoxStep::Enter(a), BoxStep::Own(b, _)) if a == b => Ordering::Greater,
                _ => rest(a_name, a).cmp(&rest(b_name, b)),
            }
        })
    }
}

impl BoxStep {
    fn node(&self) -> u32 {
        match *self {
            Self::Own(node, _) | Self::Enter(node) => node,
        }
    }

    /// What follows the node's label in its lines.
    fn separator(&self) -> String {
        match self {
            Self::Own(_, own) => format!(" {own}"),
            Self::Enter(_) => ";".to_owned(),
        }
    }
}

/// Boxes from left to right.
struct BoxRow<'a> {
    tree: &'a CallTree,
    narrow: u64,
    /// Nodes of the line before, outermost first, each with its box's start.
    open: Vec<(u32, u64)>,
    path: Vec<u32>,
    at: u64,
    boxes: Vec<Placed>,
}

impl BoxRow<'_> {
    fn line(&mut self, node: u32, own: u64) {
        self.path.clear();
        let mut at = node;
        while at != ROOT {
            self.path.push(at);
            at = self.tree.parent(at);
        }
        self.path.push(ROOT);
        self.path.reverse();
        let shared = self.open.iter().zip(&self.path).take_while(|((open, _), node)| open == *node).count();
        self.close(shared);
        let at = self.at;
        self.open.extend(self.path[shared..].iter().map(|&node| (node, at)));
        self.at = at.saturating_add(own);
    }

    /// Ends the boxes of all but the outermost `shared` nodes.
    fn close(&mut self, shared: usize) {
        let end = self.at;
        for (depth, &(node, start)) in self.open.iter().enumerate().skip(shared) {
            if end - start >= self.narrow {
                let label = (node != ROOT).then(|| self.tree.nodes.get(node).1);
                self.boxes.push(Placed { label, depth: depth as u32, start, end });
            }
        }
        self.open.truncate(shared);
    }
}
