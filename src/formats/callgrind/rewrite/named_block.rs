//! Gives a block of an unknown object (`ob=???`) its names: that of each group of lines, and those of callees.
//!
//! The *head* is the group of the function that callgrind named. To keep its inclusive cost, it gets a synthetic call to
//! each of the other groups.

use super::block::Block;
use super::groups::{Callee, Group, GroupedLines, Target};
use super::input_names::{InputContext, InputNames, NewName, ObjectKind};
use super::stats::RewriteStats;
use crate::error::Result;
use crate::formats::callgrind::grammar::NameField;

/// A block of an unknown object, with the names that will be written.
pub(super) struct NamedBlock<'a, 'b> {
    /// The block as it is in the input. Its lines have been moved to `groups`.
    pub(super) input: &'b Block<'a>,
    pub(super) names: &'b InputNames<'a>,
    /// The object and files in effect at the start of the block.
    pub(super) context: InputContext<'a>,
    /// The lines before the first cost line that aren't understood.
    pub(super) leading: Vec<u8>,
    /// True if relative positions may be written.
    pub(super) has_relative: bool,
    /// The first group is the head. It may have no lines.
    pub(super) groups: Vec<NamedGroup<'a>>,
    /// True if a function in the block, or one that it calls, gets a new name.
    pub(super) has_new_names: bool,
}

/// A group of lines, and the name of its function.
pub(super) struct NamedGroup<'a> {
    pub(super) function: GroupName<'a>,
    pub(super) lines: Group<'a>,
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

impl<'a, 'b> NamedBlock<'a, 'b> {
    /// Names the groups of a block. `names` must know the IDs that the block defines. Fails if a line of the block is
    /// malformed.
    pub(super) fn new(block: &'b mut Block<'a>, names: &'b InputNames<'a>, context: InputContext<'a>) -> Result<Self> {
        let GroupedLines { groups: mut others, leading, has_relative, error } = std::mem::take(&mut block.lines);
        let block = &*block;
        if let Some(error) = error {
            return Err(error);
        }
        // Only blocks of an unknown object are grouped.
        let head = names.resolve(block.function, ObjectKind::Unknown);
        // The names of all groups get the ending of the function that callgrind named: its recursion level and callers.
        let (head_entry, tail) = match &head {
            NewName::Jit(entry, tail) => (Some(*entry), tail.clone()),
            _ => (None, names.name_callers(names.callers(block.function))),
        };
        let is_head_new = head != NewName::Unchanged;
        let head_name = match head {
            NewName::Jit(entry, tail) => GroupName::Jit(entry, tail),
            // `None`: the name has no ID, so it is written here with its callers replaced. If it has one, the group
            // keeps the input's name, and `GroupWriter` replaces the callers when it writes the name next to the ID.
            NewName::CallersReplaced(None, name) => GroupName::New(name),
            _ => GroupName::Input(block.function),
        };
        let head_lines = take_head(&mut others, head_entry, block, names);
        let mut groups = vec![NamedGroup { function: head_name, lines: head_lines }];
        for lines in others {
            let function = match lines.entry {
                Some(entry) => GroupName::Jit(entry, tail.clone()),
                // The address that names the block is in a JIT function, but that of these lines isn't in any. The
                // group's name tells the user so.
                None => GroupName::New([b"[not in map] ", names.full_name(block.function)].concat()),
            };
            groups.push(NamedGroup { function, lines });
        }
        let has_jit_code = groups.iter().any(|group| group.lines.entry.is_some());
        let mut named = Self { input: block, names, context, leading, has_relative, groups, has_new_names: false };
        // The rewriter copies the block unchanged if neither its function, nor a group, nor a callee gets a new name.
        named.has_new_names = is_head_new || has_jit_code || named.calls_new_names();
        Ok(named)
    }

    /// True if the block calls a function that gets a new name.
    fn calls_new_names(&self) -> bool {
        let mut pieces = self.groups.iter().flat_map(|group| &group.lines.pieces);
        pieces.any(|piece| match &piece.target {
            Some(Target::Call(callee)) => self.callee_name(*callee) != NewName::Unchanged,
            _ => false,
        })
    }

    /// The name to write for a function that the block calls.
    pub(super) fn callee_name(&self, callee: Callee<'a>) -> NewName<'a> {
        let object = self.names.object_kind(callee.object.or(self.context.object));
        self.names.resolve(callee.function, object)
    }

    /// Adds the block's self costs to the statistics. If the block has JIT code, counts it as one of the blocks that
    /// were rewritten.
    pub(super) fn count(&self, stats: &mut RewriteStats) {
        let mut has_code = false;
        for NamedGroup { lines, .. } in &self.groups {
            match lines.entry {
                Some(entry) => {
                    stats.named_cost = stats.named_cost.saturating_add(lines.self_cost);
                    stats.functions.insert(entry);
                    has_code = true;
                }
                None => stats.unnamed_cost = stats.unnamed_cost.saturating_add(lines.self_cost),
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

/// Takes the group of the function that callgrind named, which is in the JIT function `head_entry`. If the file has no
/// addresses, all lines are of that function. An empty group if the function has no lines.
fn take_head<'a>(
    groups: &mut Vec<Group<'a>>,
    head_entry: Option<usize>,
    block: &Block<'a>,
    names: &InputNames<'a>,
) -> Group<'a> {
    let is_head = |group: &Group<'_>| block.columns.instr.is_none() || group.entry == head_entry;
    match groups.iter().position(is_head) {
        Some(index) => {
            let mut head = groups.remove(index);
            head.entry = head_entry;
            head
        }
        None => Group::new(head_entry, block.columns, names.jit),
    }
}
