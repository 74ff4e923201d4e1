//! The figures of a rewrite.

use super::misattributed::Misattributed;
use crate::error::Skipped;

/// The figures.
#[derive(Debug)]
pub struct RewriteStats {
    /// Blocks of code in unknown memory that were named or taken apart.
    pub blocks: u64,
    /// The blocks among them that had code of several functions.
    pub split: u64,
    /// Synthetic calls, which keep inclusive costs.
    pub synthetic_calls: u64,
    /// Self cost that was named, of the first event.
    pub named_cost: u64,
    /// Self cost in unknown memory that stays unnamed, of the first event.
    pub unnamed_cost: u64,
    /// Functions with self cost that were named: their numbers in [`super::jit_functions::JitFunctions`].
    pub functions: EntrySet,
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
            functions: EntrySet::default(),
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
        self.functions.append(&other.functions);
        self.misattributed.append(other.misattributed);
        self.skipped.append(other.skipped);
    }
}

/// Some of the numbered functions, or of other small numbers: a bit for each.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct EntrySet {
    words: Vec<u64>,
}

impl EntrySet {
    /// Adds one.
    pub(super) fn insert(&mut self, entry: usize) {
        let at = entry / 64;
        if at >= self.words.len() {
            self.words.resize(at + 1, 0);
        }
        self.words[at] |= 1 << (entry % 64);
    }

    /// Takes one out; whether it was there.
    pub(super) fn remove(&mut self, entry: usize) -> bool {
        let Some(word) = self.words.get_mut(entry / 64) else { return false };
        let bit = 1 << (entry % 64);
        let was_there = *word & bit != 0;
        *word &= !bit;
        was_there
    }

    /// Their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        let of_word = |(at, word): (usize, &u64)| {
            let word = *word;
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit)
        };
        self.words.iter().enumerate().flat_map(of_word)
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
