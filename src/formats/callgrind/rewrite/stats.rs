//! What a rewrite did, in figures.

use super::misattributed::Misattributed;
use crate::error::Skipped;
use rustc_hash::FxHashSet;

/// What was stats, in figures.
#[derive(Debug)]
pub struct RewriteStats {
    /// Blocks of code in unknown memory that were named or taken apart.
    pub blocks: u64,
    /// Of these, blocks that had code of several functions.
    pub split: u64,
    /// Synthetic calls, which keep inclusive costs.
    pub synthetic_calls: u64,
    /// Self cost that was named, of the first event.
    pub named_cost: u64,
    /// Self cost in unknown memory that stays without a name, of the first event.
    pub unnamed_cost: u64,
    /// Functions with self cost that were named: their numbers in [`super::jit_functions::JitFunctions`].
    pub functions: FxHashSet<usize>,
    /// Costs of named code in functions of known objects, which stay there.
    pub misattributed: Misattributed,
    /// Blocks that could not be decoded and are passed on as they are.
    pub skipped: Skipped,
}

impl Default for RewriteStats {
    fn default() -> Self {
        let skipped = Skipped::new("callgrind block");
        Self {
            blocks: 0,
            split: 0,
            synthetic_calls: 0,
            named_cost: 0,
            unnamed_cost: 0,
            functions: FxHashSet::default(),
            misattributed: Misattributed::default(),
            skipped,
        }
    }
}

impl RewriteStats {
    /// Adds what was done in a later chunk.
    pub fn append(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.split += other.split;
        self.synthetic_calls += other.synthetic_calls;
        self.named_cost = self.named_cost.saturating_add(other.named_cost);
        self.unnamed_cost = self.unnamed_cost.saturating_add(other.unnamed_cost);
        self.functions.extend(other.functions);
        self.misattributed.append(other.misattributed);
        self.skipped.append(other.skipped);
    }
}
