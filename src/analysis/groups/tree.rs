//! Trees of groups: whole stacks, the callees of chosen functions, or their callers.

use super::keys::Grouping;
use super::walk::{Step, Sum, Walk};
use crate::model::prefix_tree::PrefixTree;
use crate::model::stacks::{Profile, Series, StackId, Weight};
use rustc_hash::FxHashSet;

/// Which frames are the roots of a tree, and whether it grows towards callees or callers.
#[derive(Debug, Clone, Copy)]
pub enum Roots<'a> {
    /// Roots are the outermost frames, children are callees.
    Stacks,
    /// Roots are these groups (frame part IDs), children are callees. If a stack contains several of them, it starts at
    /// the outermost.
    Callees(&'a FxHashSet<u32>),
    /// Roots are these groups (frame part IDs), children are callers. If a stack contains several of them, it starts at
    /// the outermost.
    Callers(&'a FxHashSet<u32>),
}

/// A tree of groups with weights.
#[derive(Debug, Default)]
pub struct GroupTree {
    /// All nodes by frame part ID. Roots have no parent.
    nodes: PrefixTree<u32>,
    /// The self weight of each node.
    own: Vec<Sum>,
    /// The total weight of each node.
    total: Vec<Sum>,
}

impl GroupTree {
    /// Builds the tree of one event. Stacks of all threads are merged.
    pub fn new(profile: &Profile, series: &Series, weight: Weight, grouping: &Grouping, roots: Roots<'_>) -> Self {
        let mut walk = Walk::new(profile);
        for (row, weight) in series.signed_rows(weight) {
            if let Some(stack) = row.stack {
                walk.add(stack, Sum { weight, count: row.count });
            }
        }
        let part_of = |stack: StackId| {
            let (_, frame) = profile.stack_of(stack);
            grouping.frame_part_ids()[frame.index()]
        };
        let mut tree = Self::default();
        match roots {
            Roots::Callers(groups) => tree.add_callers(profile, &mut walk, groups, part_of),
            Roots::Callees(groups) => tree.add_callees(&mut walk, |part| groups.contains(&part), part_of),
            Roots::Stacks => tree.add_callees(&mut walk, |_| true, part_of),
        }
        tree.sum();
        tree
    }

    /// Adds a part of each stack: from the outermost frame whose group `begins` accepts to the innermost frame. Stacks
    /// without such a frame are skipped. `part_of` returns the group of a stack's innermost frame, as the ID of its
    /// frame part. Frames with the same values of the grouping's keys have the same ID.
    fn add_callees(&mut self, walk: &mut Walk<'_>, begins: impl Fn(u32) -> bool, part_of: impl Fn(StackId) -> u32) {
        let mut path: Vec<u32> = Vec::new();
        walk.run(|walk, step| match step {
            Step::Enter(stack) => {
                let part = part_of(stack);
                if !path.is_empty() || begins(part) {
                    let node = self.child(path.last().copied(), part);
                    // Only the self weight, because the stack's callees get nodes of their own.
                    let (self_weight, _) = walk.sums(stack);
                    self.own[node as usize] += self_weight;
                    path.push(node);
                }
            }
            // If the path is empty, it hasn't begun yet: the stack isn't on it, and `pop` does nothing. Otherwise, the
            // stack is the last on the path, because all its callees have been left.
            Step::Leave(_) => {
                path.pop();
            }
        });
    }

    /// Adds paths that start with functions of `groups`, and go on to their callers. If a stack contains several such
    /// functions (recursion), only the outermost counts, so that no weight counts twice. `part_of` returns the group of
    /// a stack's innermost frame (frame part ID).
    fn add_callers(
        &mut self,
        profile: &Profile,
        walk: &mut Walk<'_>,
        groups: &FxHashSet<u32>,
        part_of: impl Fn(StackId) -> u32,
    ) {
        // How many frames of the current stack belong to `groups`. Only the first of them begins a path.
        let mut open = 0u32;
        walk.run(|walk, step| {
            let (Step::Enter(stack) | Step::Leave(stack)) = step;
            if !groups.contains(&part_of(stack)) {
                return;
            }
            if matches!(step, Step::Leave(_)) {
                open -= 1;
                return;
            }
            open += 1;
            if open == 1 {
                // Add a path from the function itself up to the outermost caller. The last node gets the weight of the
                // whole call, with that of its callees.
                let caller_of = |callee: &StackId| {
                    let (caller, _) = profile.stack_of(*callee);
                    caller
                };
                let mut node = None;
                for caller in std::iter::successors(Some(stack), caller_of) {
                    node = Some(self.child(node, part_of(caller)));
                }
                if let Some(node) = node {
                    let (_, with_callees) = walk.sums(stack);
                    self.own[node as usize] += with_callees;
                }
            }
        });
    }

    fn child(&mut self, parent: Option<u32>, part: u32) -> u32 {
        let node = self.nodes.child(parent, part);
        self.own.resize(self.nodes.len(), Sum::default());
        node
    }

    /// Computes total weights from self weights. A parent's ID is smaller than its children's, so one backward pass is
    /// enough.
    fn sum(&mut self) {
        self.total.clone_from(&self.own);
        for node in (0..self.total.len()).rev() {
            let total = self.total[node];
            if let Some(parent) = self.parent(node as u32) {
                self.total[parent as usize] += total;
            }
        }
    }

    /// The number of nodes. Node IDs are `0..len()`.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True if the tree has no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The parent of a node; `None` for roots.
    pub fn parent(&self, node: u32) -> Option<u32> {
        self.nodes.get(node).0
    }

    /// The group of a node, as a frame part ID of the [`Grouping`].
    pub fn part(&self, node: u32) -> u32 {
        self.nodes.get(node).1
    }

    /// The self weight of a node. In a tree of callers, this is the weight of stacks that end at this caller.
    pub fn own(&self, node: u32) -> Sum {
        self.own[node as usize]
    }

    /// The total weight of a node.
    pub fn total(&self, node: u32) -> Sum {
        self.total[node as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::groups::{Key, Unnamed};
    use crate::model::stacks::profile_of;

    /// The tree as lines with indented names and total weights.
    fn tree(stacks: &[(&str, u64)], of: &str, roots: impl Fn(&FxHashSet<u32>) -> Roots<'_>) -> String {
        let profile = profile_of(stacks);
        let grouping = Grouping::new(&profile, &[Key::Function], Unnamed::ByModule);
        let parts = 0..grouping.frame_parts() as u32;
        let groups = parts.filter(|part| grouping.frame_values(*part)[0].text() == of).collect();
        let tree = GroupTree::new(&profile, &profile.series[0], Weight::Period, &grouping, roots(&groups));
        let line = |node: u32| {
            let depth = std::iter::successors(tree.parent(node), |node| tree.parent(*node)).count();
            let name = grouping.frame_values(tree.part(node))[0].text();
            format!("{depth}{name} {}/{}", tree.own(node).weight, tree.total(node).weight)
        };
        (0..tree.len() as u32).map(line).collect::<Vec<_>>().join(", ")
    }

    const STACKS: &[(&str, u64)] = &[("a;b;c", 1), ("d;b;c", 2), ("d;b;x;b;c", 4), ("a;x", 8), ("a;b", 16)];

    #[test]
    fn all_stacks_are_one_tree() {
        let seen = tree(STACKS, "", |_| Roots::Stacks);
        assert_eq!(seen, "0a 0/25, 1b 16/17, 2c 1/1, 1x 8/8, 0d 0/6, 1b 0/6, 2c 2/2, 2x 0/4, 3b 0/4, 4c 4/4");
    }

    #[test]
    fn callees_of_recursion_begin_at_the_outermost_call() {
        let seen = tree(STACKS, "b", |groups| Roots::Callees(groups));
        assert_eq!(seen, "0b 16/23, 1c 3/3, 1x 0/4, 2b 0/4, 3c 4/4");
    }

    #[test]
    fn callers_are_those_of_the_outermost_call() {
        let seen = tree(STACKS, "b", |groups| Roots::Callers(groups));
        assert_eq!(seen, "0b 0/23, 1a 17/17, 1d 6/6");
        assert_eq!(tree(STACKS, "x", |groups| Roots::Callers(groups)), "0x 0/12, 1a 8/8, 1b 0/4, 2d 4/4");
    }
}
