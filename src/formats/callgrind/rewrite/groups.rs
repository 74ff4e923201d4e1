//! Splits a block of an unknown object (`ob=???`) by the addresses of its lines.
//!
//! callgrind begins a function only at a call. Code that is reached by a jump is attributed to the function that
//! jumped, so one of callgrind's functions may contain several of the JIT compiler's. The lines of a block are grouped
//! by the JIT function that covers their address, and each group becomes a block of its own. The *head* is the group of
//! the function that callgrind named. To keep its inclusive cost, it gets a synthetic call to each of the other groups.

use super::block::{Block, Callee, Item, ItemKind};
use super::input_names::{InputContext, InputNames, NewName, ObjectKind};
use super::jit_functions::CodeLookup;
use super::stats::RewriteStats;
use crate::error::{Error, Result};
use crate::formats::callgrind::grammar::{NameField, add_costs, first_cost};
use rustc_hash::FxHashMap;

/// The lines of a block of an unknown object, grouped by JIT function.
pub(super) struct BlockGroups<'a, 'b> {
    pub(super) block: &'b Block<'a>,
    pub(super) names: &'b InputNames<'a>,
    /// The object and files in effect at the start of the block.
    pub(super) context: InputContext<'a>,
    /// The first group is the head: that of the function that callgrind named (`fn=`).
    pub(super) groups: Vec<Group<'a, 'b>>,
    /// True if a function in the block, or one that it calls, gets a new name.
    pub(super) has_new_names: bool,
}

/// The lines of a block that belong to the same JIT function, or to no known code.
pub(super) struct Group<'a, 'b> {
    /// Number of the JIT function (see `JitFunctions`); `None` if no code is known at the addresses of these lines.
    pub(super) entry: Option<usize>,
    pub(super) function: GroupName<'a>,
    pub(super) items: Vec<&'b Item<'a>>,
    /// For each event, the sum of the self costs of these lines and of the inclusive costs of their calls.
    pub(super) sums: Vec<i64>,
}

/// The name of a group's function.
pub(super) enum GroupName<'a> {
    /// The function keeps the name that it has in the input.
    Input(NameField<'a>),
    /// The name of a JIT function, given by its number (see `JitFunctions`), followed by a suffix.
    Jit(usize, Vec<u8>),
    /// A new name for code that isn't in any JIT function: either the input's name with its callers replaced, or one
    /// that says that the map lacks this code.
    New(Vec<u8>),
}

impl<'a, 'b> BlockGroups<'a, 'b> {
    /// Groups the lines of a block. `names` must know the IDs that the block defines. Fails if a cost is not a number
    /// or a sum overflows.
    pub(super) fn new(block: &'b Block<'a>, names: &'b InputNames<'a>, context: InputContext<'a>) -> Result<Self> {
        // Only blocks of an unknown object are grouped.
        let head = names.resolve(block.function, ObjectKind::Unknown);
        // The names of all groups get the ending of the function that callgrind named: its recursion level and callers.
        let (head_entry, tail) = match &head {
            NewName::Jit(entry, tail) => (Some(*entry), tail.clone()),
            _ => (None, names.name_callers(names.callers(block.function))),
        };
        let has_new_names = head != NewName::Unchanged;
        let mut groups = Self { block, names, context, groups: Vec::new(), has_new_names };
        let head_name = match head {
            NewName::Jit(entry, tail) => GroupName::Jit(entry, tail),
            // `None`: the name has no ID, so it is written here with its callers replaced. If it has one, the group
            // keeps the input's name, and `GroupWriter` replaces the callers when it writes the name next to the ID.
            NewName::CallersReplaced(None, name) => GroupName::New(name),
            _ => GroupName::Input(block.function),
        };
        groups.push_group(head_entry, head_name);
        groups.add_items(head_entry, &tail);
        for group in &mut groups.groups {
            for item in &group.items {
                let added = add_costs(item.costs(), &mut group.sums);
                added.ok_or_else(|| Error::new("a cost is not a number, or a sum is too large"))?;
            }
        }
        // The rewriter copies the block unchanged if neither its function, nor a group, nor a callee gets a new name.
        groups.has_new_names |= groups.groups.iter().any(|group| group.entry.is_some()) || groups.calls_new_names();
        Ok(groups)
    }

    /// Adds each item to the group of its JIT function, which is created if necessary. `head_entry` is the JIT function
    /// of the first group, `tail` the suffix of the names of new groups.
    fn add_items(&mut self, head_entry: Option<usize>, tail: &[u8]) {
        // The group of each JIT function; `None` is the key of code that isn't in any JIT function.
        let mut indices = FxHashMap::from_iter([(head_entry, 0)]);
        let mut lookup = CodeLookup { range: 0..0, entry: None };
        for item in &self.block.items {
            let entry = self.find_entry(item, head_entry, &mut lookup);
            let index = *indices.entry(entry).or_insert(self.groups.len());
            if index == self.groups.len() {
                let name = match entry {
                    Some(entry) => GroupName::Jit(entry, tail.to_vec()),
                    // The address that names the block is in a JIT function, but that of this line isn't in any. The
                    // group's name tells the user so.
                    None => GroupName::New([b"[not in map] ", self.names.full_name(self.block.function)].concat()),
                };
                self.push_group(entry, name);
            }
            self.groups[index].items.push(item);
        }
    }

    /// The JIT function that contains an item's address; `None` if none does. Lines without an address belong to the
    /// head (`head_entry`): those that weren't understood, and all lines in a file without addresses. `lookup` is the
    /// last answer, which is reused as long as it holds.
    fn find_entry(&self, item: &Item<'_>, head_entry: Option<usize>, lookup: &mut CodeLookup) -> Option<usize> {
        let (Some(position), Some(column)) = (item.position, self.block.columns.instr) else { return head_entry };
        let addr = position.0[column];
        if !lookup.range.contains(&addr) {
            *lookup = self.names.jit.find_range(addr);
        }
        lookup.entry
    }

    fn push_group(&mut self, entry: Option<usize>, function: GroupName<'a>) {
        self.groups.push(Group { entry, function, items: Vec::new(), sums: Vec::new() });
    }

    /// True if the block calls a function that gets a new name.
    fn calls_new_names(&self) -> bool {
        self.block.items.iter().any(|item| match &item.kind {
            ItemKind::Call(call) => self.callee_name(call.callee) != NewName::Unchanged,
            _ => false,
        })
    }

    /// The name to write for a function that the block calls.
    pub(super) fn callee_name(&self, callee: Callee<'a>) -> NewName<'a> {
        let object = self.names.object_kind(callee.object.or(self.context.object));
        self.names.resolve(callee.function, object)
    }

    /// Adds the block's self costs to the statistics, by the first event and without signs, so that negative costs
    /// don't cancel others out. If the block has JIT code, counts it as one of the blocks that were rewritten.
    pub(super) fn count(&self, stats: &mut RewriteStats) {
        let mut has_code = false;
        for group in &self.groups {
            let mut cost = 0u64;
            for item in &group.items {
                if let ItemKind::SelfCost(costs) = item.kind {
                    cost = cost.saturating_add(first_cost(costs).unsigned_abs());
                }
            }
            match group.entry {
                Some(entry) => {
                    stats.named_cost = stats.named_cost.saturating_add(cost);
                    stats.functions.insert(entry);
                    has_code = true;
                }
                None => stats.unnamed_cost = stats.unnamed_cost.saturating_add(cost),
            }
        }
        if has_code {
            // The first group (the head) gets one synthetic call to each other group.
            let others = self.groups.len() as u64 - 1;
            stats.blocks += 1;
            stats.split += u64::from(others > 0);
            stats.synthetic_calls += others;
        }
    }
}
