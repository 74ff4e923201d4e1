//! Remembers call chains that have been resolved, so that a sample with the same chain needn't be resolved again.
//! Programs return to the same stacks: in a long recording, most samples repeat an earlier call chain. Comparing all
//! words of a chain takes a tenth of the time of looking up each frame.
//!
//! The memo saves a third of the CPU time of a flame graph if stacks repeat (129 MB of tsc on node), and two fifths for
//! `inject` (1 GB of the same). If no chain repeats, only the first few thousand chains are kept, and for all others
//! one bit each is set; this costs a few percent.

use crate::formats::perf_data::Sample;
use crate::model::lasting::{Lasting, LastingCache};
use crate::model::process::CpuMode;
use crate::model::{Addr, Nanos, Pid};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::ops::Range;

/// The maximum number of chains in the memo. When it is reached, the memo is cleared.
const MAX_CHAINS: usize = 1 << 16;

/// The number of bits in the set of hash values that have been seen. The set takes 64 KiB.
const SEEN_BITS: usize = 1 << 19;

/// The number of chains that are kept when they are first seen. After that, unless enough chains have repeated, a chain
/// is only kept when it is seen for the second time.
const TRIAL_CHAINS: u64 = 1 << 12;

/// A call chain with everything that determines its frames, except for the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChainKey<'data> {
    /// A hash of all other fields of this key.
    hash: u64,
    words: &'data [u8],
    ip: Addr,
    pid: Pid,
    event: u32,
    mode: CpuMode,
    /// The caller of the innermost function, if it was determined separately because the chain doesn't contain it.
    leaf_caller: Option<Addr>,
}

impl<'data> ChainKey<'data> {
    /// The key for a sample's call chain; `None` if the sample has none.
    #[inline]
    pub(crate) fn from_sample(sample: &Sample<'data>, pid: Pid, leaf_caller: Option<Addr>) -> Option<Self> {
        let words = sample.callchain.bytes();
        let ip = sample.ip.filter(|_| !words.is_empty())?;
        Some(Self::new(words, ip, leaf_caller, pid, sample.event as u32, sample.cpumode))
    }

    #[inline]
    fn new(words: &'data [u8], ip: Addr, leaf_caller: Option<Addr>, pid: Pid, event: u32, mode: CpuMode) -> Self {
        let mut hasher = FxHasher::default();
        (words, ip, pid, event, mode, leaf_caller).hash(&mut hasher);
        Self { hash: hasher.finish(), words, ip, pid, event, mode, leaf_caller }
    }
}

impl Hash for ChainKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Resolved call chains. Each is valid for a time range.
#[derive(Debug)]
pub(crate) struct ChainMemo<'data, V> {
    resolved: LastingCache<ChainKey<'data>, V>,
    /// A bit for each hash value (modulo [`SEEN_BITS`]): 1 if a chain with it has been seen. Empty until the first
    /// chain.
    seen_bits: Vec<u64>,
    /// True if a chain is never kept when it is first seen.
    only_repeated: bool,
    /// How many chains were added so far. Those that were removed since are counted, too.
    kept: u64,
    /// How many lookups found their chain.
    found: u64,
}

impl<V> Default for ChainMemo<'_, V> {
    fn default() -> Self {
        Self { resolved: LastingCache::default(), seen_bits: Vec::new(), only_repeated: false, kept: 0, found: 0 }
    }
}

impl<'data, V> ChainMemo<'data, V> {
    /// A memo that keeps a chain only when it is seen for the second time. For callers to whom keeping a chain costs
    /// about as much as resolving it.
    pub(crate) fn only_repeated() -> Self {
        Self { only_repeated: true, ..Self::default() }
    }

    /// The value of a chain, if it is in the memo and valid at this time.
    #[inline]
    pub(crate) fn get(&mut self, key: &ChainKey<'data>, time: Nanos) -> Option<&mut V> {
        let resolved = self.resolved.get_mut(key, time)?;
        self.found += 1;
        Some(&mut resolved.answer)
    }

    /// Keeps the value of a chain, so that `get` finds it during the time `holds`. A chain that is unlikely to repeat
    /// isn't kept; `value`, which computes the value, isn't called then. `discard` gets the values that are removed to
    /// make room: the chain's previous value and, if the memo is full, those of all chains.
    pub(crate) fn put(
        &mut self,
        key: ChainKey<'data>,
        holds: Range<Nanos>,
        value: impl FnOnce() -> V,
        mut discard: impl FnMut(V),
    ) {
        let was_seen = self.was_seen(key.hash);
        // A chain that is seen for the first time is kept only if that has paid so far: lookups have found at least a
        // quarter as many chains as were kept.
        let keeps_new = !self.only_repeated && (self.kept < TRIAL_CHAINS || self.found >= self.kept / 4);
        let is_worth_keeping = was_seen || keeps_new;
        if holds.is_empty() || !is_worth_keeping {
            return;
        }
        self.kept += 1;
        if self.resolved.len() >= MAX_CHAINS {
            self.resolved.drain().for_each(&mut discard);
        }
        if let Some(previous) = self.resolved.insert(key, Lasting { answer: value(), holds }) {
            discard(previous);
        }
    }

    /// Removes all chains, and returns their values.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = V> {
        self.resolved.drain()
    }

    /// Marks a chain as seen, by setting the bit that its hash selects. Returns true if the bit was set already: then
    /// the same chain was most likely seen before.
    fn was_seen(&mut self, hash: u64) -> bool {
        if self.seen_bits.is_empty() {
            self.seen_bits = vec![0; SEEN_BITS / 64];
        }
        let index = hash as usize % SEEN_BITS;
        let word = &mut self.seen_bits[index / 64];
        let bit = 1 << (index % 64);
        let was_seen = *word & bit != 0;
        *word |= bit;
        was_seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(words: &[u8], pid: i32, leaf_caller: Option<u64>) -> ChainKey<'_> {
        ChainKey::new(words, Addr(1), leaf_caller.map(Addr), Pid(pid), 0, CpuMode::User)
    }

    #[test]
    fn a_chain_is_known_while_it_holds_and_for_its_process_only() {
        let mut memo = ChainMemo::default();
        let words = key(b"words", 1, None);
        assert_eq!(memo.get(&words, Nanos(5)), None);
        let mut dropped = Vec::new();
        memo.put(words, Nanos(5)..Nanos(9), || "first", |value| dropped.push(value));
        assert_eq!(memo.get(&words, Nanos(8)), Some(&mut "first"));
        assert!([4, 9].iter().all(|time| memo.get(&words, Nanos(*time)).is_none()));
        for other in [key(b"words", 2, None), key(b"other", 1, None), key(b"words", 1, Some(7))] {
            assert_eq!(memo.get(&other, Nanos(5)), None);
        }
        memo.put(words, Nanos(9)..Nanos(20), || "second", |value| dropped.push(value));
        assert_eq!(memo.get(&words, Nanos(9)), Some(&mut "second"));
        assert_eq!((dropped, memo.drain().collect()), (vec!["first"], vec!["second"]));
    }

    #[test]
    fn a_chain_is_kept_when_it_repeats_though_others_do_not() {
        let mut memo = ChainMemo::default();
        let words: Vec<[u8; 4]> = (0..TRIAL_CHAINS as u32 + 1).map(u32::to_le_bytes).collect();
        words.iter().for_each(|words| memo.put(key(words, 1, None), Nanos(0)..Nanos(9), || "once", |_| ()));
        assert_eq!(memo.get(&key(&words[0], 1, None), Nanos(5)), Some(&mut "once"));
        let last = key(words.last().unwrap(), 1, None);
        assert_eq!(memo.get(&last, Nanos(5)), None);
        memo.put(last, Nanos(0)..Nanos(9), || "twice", |_| ());
        assert_eq!(memo.get(&last, Nanos(5)), Some(&mut "twice"));
    }

    #[test]
    fn a_chain_that_is_seen_once_need_not_be_kept() {
        let (mut memo, words) = (ChainMemo::only_repeated(), key(b"words", 1, None));
        memo.put(words, Nanos(0)..Nanos(9), || "once", |_| ());
        assert_eq!(memo.get(&words, Nanos(5)), None);
        memo.put(words, Nanos(0)..Nanos(9), || "twice", |_| ());
        assert_eq!(memo.get(&words, Nanos(5)), Some(&mut "twice"));
    }

    #[test]
    fn its_memory_is_bounded() {
        let mut memo = ChainMemo::default();
        let words: Vec<[u8; 4]> = (0..MAX_CHAINS as u32 + 10).map(u32::to_le_bytes).collect();
        for words in words.iter().flat_map(|words| [words, words]) {
            memo.put(key(words, 1, None), Nanos(0)..Nanos(1), || (), |()| ());
        }
        assert!(!memo.resolved.is_empty() && memo.resolved.len() <= MAX_CHAINS);
    }
}
