//! Statistics about the rewriting of a callgrind file.

use super::block::Block;
use crate::error::Skipped;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Statistics about the rewriting of a file. Costs are those in the first event, without their signs.
#[derive(Debug)]
pub struct RewriteStats {
    /// Number of blocks of unknown objects that contain JIT code and were written anew: with a name, or split into
    /// several.
    pub blocks: u64,
    /// How many of `blocks` were split, because they contained code of several functions.
    pub split: u64,
    /// Calls that were added to split blocks, so that functions keep their inclusive costs.
    pub synthetic_calls: u64,
    /// Self cost of code that got a name.
    pub named_cost: u64,
    /// Self cost in unknown objects that stays unnamed.
    pub unnamed_cost: u64,
    /// The named functions with self cost, given by their numbers in [`JitFunctions`](super::JitFunctions).
    pub functions: BTreeSet<usize>,
    /// Costs of JIT code that callgrind attributed to functions of known objects. They stay there.
    pub misattributed: Misattributed,
    /// Blocks that could not be decoded and were copied unchanged.
    pub skipped: Skipped,
}

impl Default for RewriteStats {
    fn default() -> Self {
        Self {
            blocks: 0,
            split: 0,
            synthetic_calls: 0,
            named_cost: 0,
            unnamed_cost: 0,
            functions: BTreeSet::new(),
            misattributed: Misattributed::default(),
            skipped: Skipped::new("callgrind block"),
        }
    }
}

/// Self costs of JIT code in functions of known objects, in the first event and without their signs.
///
/// callgrind begins a function only at a call. If an object's code *jumps* into JIT code (as V8's interpreter entry
/// does), the costs of the JIT code are in the object's function, at absolute addresses. They are counted but left
/// there: all other addresses in such a block are relative to the object, and without the object's file the two kinds
/// can't be distinguished with certainty.
#[derive(Debug, Default)]
pub struct Misattributed {
    /// The self cost of each JIT function, by its number in [`JitFunctions`](super::JitFunctions).
    costs: FxHashMap<usize, u64>,
    /// JIT functions (by number) in which a function of a known object starts. They are code of that object: perf maps
    /// also list code of the program itself, such as V8's embedded builtins. Their costs are not misattributed.
    native_entries: FxHashSet<usize>,
}

impl Misattributed {
    /// The number of JIT functions with misattributed costs, and the sum of these costs.
    pub fn total(&self) -> (usize, u64) {
        let misattributed = self.costs.iter().filter(|(entry, _)| !self.native_entries.contains(entry));
        misattributed.fold((0, 0), |(count, sum), (_, cost)| (count + 1, sum.saturating_add(*cost)))
    }

    /// Adds the self costs at addresses of JIT code in a block of a known object. If the block's function itself starts
    /// in a JIT function, that JIT function is really code of the object ([`Self::native_entries`]).
    pub(super) fn examine(&mut self, block: &Block<'_>) {
        let Some(column) = block.columns.instr else { return };
        let groups = &block.lines.groups;
        for group in groups {
            if let Some(entry) = group.entry {
                let sum = self.costs.entry(entry).or_default();
                *sum = sum.saturating_add(group.self_cost);
            }
        }
        // The function starts at its lowest address.
        let lowest = groups.iter().min_by_key(|group| group.lowest.map(|(position, _)| position.0[column]));
        self.native_entries.extend(lowest.and_then(|group| group.entry));
    }
}
