//! Statistics about the rewriting of a callgrind file.

use super::misattributed::Misattributed;
use crate::error::Skipped;

/// Statistics about the rewriting of a file. Costs are in the first event.
#[derive(Debug)]
pub struct RewriteStats {
    /// Blocks of unknown objects that were written anew: with a name, or split into several.
    pub blocks: u64,
    /// Those of `blocks` that were split because they contained code of several functions.
    pub split: u64,
    /// Calls that were added to split blocks, so that functions keep their inclusive costs.
    pub synthetic_calls: u64,
    /// Self cost of code that got a name.
    pub named_cost: u64,
    /// Self cost in unknown objects that stays unnamed.
    pub unnamed_cost: u64,
    /// The named functions with self cost, as entries in [`super::jit_functions::JitFunctions`].
    pub functions: EntrySet,
    /// Costs of JIT code that callgrind attributed to functions of known objects. They stay there.
    pub misattributed: Misattributed,
    /// Blocks that could not be decoded and were copied unchanged.
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
            functions: EntrySet::default(),
            misattributed: Misattributed::default(),
            skipped,
        }
    }
}

impl RewriteStats {
    /// Adds the statistics of a later chunk.
    pub fn append(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.split += other.split;
        self.synthetic_calls += other.synthetic_calls;
        self.named_cost = self.named_cost.saturating_add(other.named_cost);
        self.unnamed_cost = self.unnamed_cost.saturating_add(other.unnamed_cost);
        self.functions.append(&other.functions);
        self.misattributed.append(other.misattributed);
        self.skipped.append(other.skipped);
    }
}

/// A set of small numbers such as entries, as a bit set.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct EntrySet {
    words: Vec<u64>,
}

impl EntrySet {
    /// Adds a number.
    pub(super) fn insert(&mut self, entry: usize) {
        let word = entry / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (entry % 64);
    }

    /// Removes a number. True if it was in the set.
    pub(super) fn remove(&mut self, entry: usize) -> bool {
        let Some(word) = self.words.get_mut(entry / 64) else { return false };
        let bit = 1 << (entry % 64);
        let was_there = *word & bit != 0;
        *word &= !bit;
        was_there
    }

    /// The numbers in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| index * 64 + bit)
        })
    }

    fn append(&mut self, other: &Self) {
        if other.words.len() > self.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, others) in self.words.iter_mut().zip(&other.words) {
            *word |= others;
        }
    }
}
