//! Splits a block of an unknown object (`ob=???`) by the addresses of its lines.
//!
//! callgrind begins a function only at a call. Code that is reached by a jump is attributed to the function that
//! jumped, so one of callgrind's functions may contain several of the JIT compiler's. The lines of a block are grouped
//! by the code that covers their address, and each group becomes a block of its own. The called function keeps its
//! inclusive cost by one synthetic call to each other group.

use super::jit_functions::Covered;
use super::name_resolver::{NameResolver, ResolvedName};
use super::stats::RewriteStats;
use crate::error::Error;
use crate::records::callgrind::grammar::{
    BlockContext, BlockItem, Callee, FunctionBlock, ItemKind, NameField, cannot_overflow,
};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The lines of a block of an unknown object, grouped by JIT function.
pub(super) struct LineGroups<'a, 'b> {
    pub(super) block: &'b FunctionBlock<'a>,
    pub(super) names: NameResolver<'a>,
    pub(super) context: BlockContext<'a>,
    /// File offset as of which IDs are looked up: the end of the block, which may define some itself.
    pub(super) offset: u64,
    /// The groups. The first one belongs to the function that callgrind named (`fn=`).
    pub(super) groups: Vec<LineGroup<'a, 'b>>,
}

/// The lines of a block that belong to the same JIT function, or to no known code.
pub(super) struct LineGroup<'a, 'b> {
    /// The JIT function's entry; `None` if no code is known at these addresses.
    pub(super) code: Option<usize>,
    pub(super) function: GroupName<'a>,
    pub(super) items: Vec<&'b BlockItem<'a>>,
    /// Sums of self and inclusive costs, per event. May be empty for the first group, where they aren't needed.
    pub(super) sums: Vec<u64>,
}

/// The name of a group's function.
pub(super) enum GroupName<'a> {
    /// The function keeps the name that it has in the input.
    Input(NameField<'a>),
    /// The name of a JIT function, given by its entry, followed by a suffix.
    Jit(usize, Vec<u8>),
    /// A new name for code that isn't in any JIT function.
    New(Vec<u8>),
}

impl<'a, 'b> LineGroups<'a, 'b> {
    /// Groups the lines of a block. `range` is the block's range in the file. `covered` is the result of the last
    /// address lookup. Returns `None` if nothing in the block gets a name.
    pub(super) fn new(
        block: &'b FunctionBlock<'a>,
        names: NameResolver<'a>,
        context: BlockContext<'a>,
        range: Range<u64>,
        covered: &mut Covered,
        stats: &mut RewriteStats,
    ) -> Option<Self> {
        let offset = range.end;
        let head = names.resolve_near(block.function, offset, covered);
        let (head_code, tail) = match &head {
            ResolvedName::Jit(entry, tail) => (Some(*entry), tail.clone()),
            _ => (None, names.name_callers(names.callers(block.function, offset))),
        };
        let mut groups = Self { block, names, context, offset, groups: Vec::new() };
        groups.push_group(head_code, &tail, true);
        groups.groups[0].items.reserve(block.items.len());
        // Indices of all groups but the first, by JIT function.
        let mut indices = FxHashMap::default();
        // Most lines belong to the same code as the line before.
        let (mut last_code, mut last_index) = (head_code, 0);
        for item in &block.items {
            let code = groups.item_code(item, head_code, covered);
            if code != last_code {
                last_code = code;
                last_index = if code == head_code {
                    0
                } else {
                    *indices.entry(code).or_insert_with(|| {
                        groups.push_group(code, &tail, false);
                        groups.groups.len() - 1
                    })
                };
            }
            groups.groups[last_index].items.push(item);
        }
        if groups.add_costs().is_none() {
            stats.skipped.add(Error::new("a cost is not a number, or the sum too large").at(range.start));
            return None;
        }
        let has_names = groups.groups.iter().any(|group| group.code.is_some())
            || groups.calls_code()
            || head != ResolvedName::Unchanged;
        groups.count(stats, has_names);
        has_names.then_some(groups)
    }

    /// The JIT function of an item. Unknown lines belong to `head`, the function that callgrind named, and so do all
    /// lines in a file without addresses.
    fn item_code(&self, item: &BlockItem<'_>, head: Option<usize>, covered: &mut Covered) -> Option<usize> {
        let (Some(position), Some(column)) = (item.position, self.context.columns.instr) else { return head };
        let addr = position.0[column];
        if !covered.range.contains(&addr) {
            *covered = self.names.jit.find_range(addr);
        }
        covered.entry
    }

    /// Adds up the costs of each group. The sums of the first group are not needed; usually it is clear that they don't
    /// overflow. `None` if a cost is not a number or a sum overflows.
    fn add_costs(&mut self) -> Option<()> {
        for (index, LineGroup { items, sums, .. }) in self.groups.iter_mut().enumerate() {
            let lines: Option<usize> = items.iter().map(|item| item.short_costs()).sum();
            if index == 0 && lines.is_some_and(cannot_overflow) {
                continue;
            }
            for item in items {
                item.add_costs(sums)?;
            }
        }
        Some(())
    }

    fn push_group(&mut self, code: Option<usize>, tail: &[u8], is_head: bool) {
        let function = match code {
            Some(entry) => GroupName::Jit(entry, tail.to_vec()),
            None if is_head => match self.names.resolve(self.block.function, true, self.offset) {
                ResolvedName::CallersReplaced(None, name) => GroupName::New(name),
                _ => GroupName::Input(self.block.function),
            },
            None => GroupName::New([b"[not in map] ", self.names.full_name(self.block.function, self.offset)].concat()),
        };
        self.groups.push(LineGroup { code, function, items: Vec::new(), sums: Vec::new() });
    }

    fn calls_code(&self) -> bool {
        self.block.items.iter().any(|item| match item.kind {
            ItemKind::Call { callee, .. } => self.callee(callee) != ResolvedName::Unchanged,
            _ => false,
        })
    }

    pub(super) fn callee(&self, callee: Callee<'a>) -> ResolvedName<'a> {
        let in_unknown = self.names.index.is_unknown_object(callee.ob, self.offset);
        self.names.resolve(callee.function, in_unknown, self.offset)
    }

    fn count(&self, stats: &mut RewriteStats, rewritten: bool) {
        for group in &self.groups {
            let costs = group.items.iter().filter_map(|item| item.self_cost());
            let cost = costs.fold(0, u64::saturating_add);
            match group.code {
                Some(entry) => {
                    stats.named_cost = stats.named_cost.saturating_add(cost);
                    stats.functions.insert(entry);
                }
                None => stats.unnamed_cost = stats.unnamed_cost.saturating_add(cost),
            }
        }
        if rewritten && self.groups.iter().any(|group| group.code.is_some()) {
            stats.blocks += 1;
            stats.split += u64::from(self.groups.len() > 1);
            stats.synthetic_calls += self.groups.len() as u64 - 1;
        }
    }
}
