//! Visits all stacks of a profile that have weight, callers before callees. Common callers are visited once, so the
//! time is proportional to the number of stacks and doesn't depend on their depth.

use crate::model::stacks::{Profile, StackId, Weight};
use std::ops::AddAssign;

/// A weight and a number of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum {
    /// The weight in the event's unit. It may be negative: for example, if more memory was freed than allocated.
    pub weight: i64,
    /// The number of samples.
    pub count: u64,
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.weight = self.weight.saturating_add(other.weight);
        self.count = self.count.saturating_add(other.count);
    }
}

impl Sum {
    /// True if weight and count are both 0.
    pub fn is_zero(self) -> bool {
        self == Self::default()
    }

    /// Returns the weight or the count, as `weight` selects.
    pub fn of(self, weight: Weight) -> i64 {
        match weight {
            Weight::Period => self.weight,
            Weight::Samples => i64::try_from(self.count).unwrap_or(i64::MAX),
        }
    }

    /// The weight or count as a percentage of that of `whole`; 0 if that is 0.
    pub fn percent_of(self, whole: Self, weight: Weight) -> f64 {
        match whole.of(weight) {
            0 => 0.0,
            whole => 100.0 * self.of(weight) as f64 / whole as f64,
        }
    }
}

/// In the links between stacks, this index stands for a stack that doesn't exist.
const NONE: u32 = u32::MAX;

/// The data of one stack during a walk.
#[derive(Debug, Clone, Copy)]
struct Node {
    own: Sum,
    total: Sum,
    /// The first stack that this one called; [`NONE`] if it called none.
    first_callee: u32,
    /// The next stack with the same caller; [`NONE`] for the last one.
    next_sibling: u32,
    /// True if the stack is in [`Walk::listed`].
    is_listed: bool,
}

/// The data of a stack that has no weight.
const UNLISTED: Node = Node {
    own: Sum { weight: 0, count: 0 },
    total: Sum { weight: 0, count: 0 },
    first_callee: NONE,
    next_sibling: NONE,
    is_listed: false,
};

/// Walks over those stacks of a profile to which weight was added. Can be reused: each run clears the weights.
#[derive(Debug)]
pub struct Walk<'a> {
    profile: &'a Profile,
    /// The data of each stack, by its ID.
    nodes: Vec<Node>,
    /// The IDs of stacks with weight and of all their callers.
    listed: Vec<u32>,
}

/// A step of the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Enter a stack, whose callers are all entered at this point.
    Enter(StackId),
    /// Leave a stack, whose callees have all been left.
    Leave(StackId),
}

impl<'a> Walk<'a> {
    /// Prepares a walk over the stacks of a profile. No stack has weight until [`add`](Self::add) is called, and the
    /// walk visits only stacks with weight.
    pub fn new(profile: &'a Profile) -> Self {
        Self { profile, nodes: vec![UNLISTED; profile.stack_count()], listed: Vec::new() }
    }

    /// Adds self weight to a stack.
    pub fn add(&mut self, stack: StackId, sum: Sum) {
        self.nodes[stack.index()].own += sum;
        // List the stack and its callers, up to the first that is already listed: the callers of that one are listed,
        // too.
        let mut next = Some(stack);
        while let Some(unlisted) = next.filter(|stack| !self.nodes[stack.index()].is_listed) {
            self.nodes[unlisted.index()].is_listed = true;
            self.listed.push(unlisted.0);
            let (caller, _) = self.profile.stack_of(unlisted);
            next = caller;
        }
    }

    /// The self and total weight of a stack. The total is only valid during [`run`](Self::run).
    pub fn sums(&self, stack: StackId) -> (Sum, Sum) {
        let node = &self.nodes[stack.index()];
        (node.own, node.total)
    }

    /// Enters and leaves all stacks that have weight, callers before callees, then clears all weights.
    pub fn run(&mut self, mut step: impl FnMut(&Self, Step)) {
        // Sort by ID: a caller's ID is smaller than its callees'.
        self.listed.sort_unstable();
        let mut stack = self.link();
        while stack != NONE {
            step(self, Step::Enter(StackId(stack)));
            let first_callee = self.nodes[stack as usize].first_callee;
            stack = if first_callee == NONE { self.leave(stack, &mut step) } else { first_callee };
        }
        for stack in self.listed.drain(..) {
            self.nodes[stack as usize] = UNLISTED;
        }
    }

    /// Leaves a stack, and then each caller whose last callee has been left. Returns the next sibling to enter, or
    /// `NONE` at the end.
    fn leave(&self, mut stack: u32, step: &mut impl FnMut(&Self, Step)) -> u32 {
        loop {
            step(self, Step::Leave(StackId(stack)));
            let next = self.nodes[stack as usize].next_sibling;
            let (caller, _) = self.profile.stack_of(StackId(stack));
            match caller {
                Some(caller) if next == NONE => stack = caller.0,
                _ => return next,
            }
        }
    }

    /// Computes total weights and links siblings in ID order. `listed` must be sorted. Returns the first stack without
    /// a caller, or `NONE` if no stack has weight.
    fn link(&mut self) -> u32 {
        let mut first_root = NONE;
        // From the last ID to the first, callees come before their callers. So a stack's total is complete when the
        // loop gets to the stack.
        for &stack in self.listed.iter().rev() {
            let node = &mut self.nodes[stack as usize];
            node.total += node.own;
            let total = node.total;
            let (caller, _) = self.profile.stack_of(StackId(stack));
            let first_sibling = match caller {
                Some(caller) => {
                    self.nodes[caller.index()].total += total;
                    &mut self.nodes[caller.index()].first_callee
                }
                None => &mut first_root,
            };
            // Put this stack in front of its siblings that are linked already, which have higher IDs.
            let next = std::mem::replace(first_sibling, stack);
            self.nodes[stack as usize].next_sibling = next;
        }
        first_root
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::profile_of;

    #[test]
    fn callers_are_entered_before_callees_and_left_behind_them() {
        let profile = profile_of(&[("a;b;c", 1), ("a;d", 2), ("e", 4), ("a;b", 8)]);
        let mut walk = Walk::new(&profile);
        for _ in 0..2 {
            for row in &profile.series[0].rows {
                walk.add(row.stack.unwrap(), Sum { weight: row.weight as i64, count: row.count });
            }
            let mut seen = String::new();
            walk.run(|walk, step| match step {
                Step::Enter(stack) => {
                    let name = profile.name_of(profile.frame_of(profile.stack_of(stack).1).name);
                    let (own, total) = walk.sums(stack);
                    seen += &format!("({} {}/{}", String::from_utf8_lossy(name), own.weight, total.weight);
                }
                Step::Leave(_) => seen.push(')'),
            });
            assert_eq!(seen, "(a 0/11(b 8/9(c 1/1))(d 2/2))(e 4/4)");
        }
    }
}
