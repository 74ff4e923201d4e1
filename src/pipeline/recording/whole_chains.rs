//! Call chains that were read before, word for word.
//!
//! Programs come back to the same stacks: of a long recording, most samples have a call chain that another one had. One
//! look at all of its words costs a tenth of a look at each of its frames.

use crate::model::process::CpuMode;
use crate::model::{Addr, Nanos, Pid};
use crate::records::perf_data::Sample;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::ops::Range;

/// With so many chains one begins anew.
const MOST: usize = 1 << 16;

/// One bit for each chain that was seen once, by its hash: 64 KiB.
const ONCE_BITS: usize = 1 << 19;

/// All that the frames of a call chain depend on, beside the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChainKey<'data> {
    /// Of all that follows: chains are long, and looked for more than once.
    hash: u64,
    words: &'data [u8],
    ip: Addr,
    pid: Pid,
    event: u32,
    mode: CpuMode,
    /// The caller that the chain itself does not have.
    leaf_caller: Option<Addr>,
}

impl<'data> ChainKey<'data> {
    /// That of a sample with a call chain.
    #[inline]
    pub(crate) fn of(sample: &Sample<'data>, pid: Pid) -> Option<Self> {
        let words = sample.callchain.bytes();
        let ip = sample.ip.filter(|_| !words.is_empty())?;
        Some(Self::new(words, ip, pid, sample.event as u32, sample.cpumode))
    }

    /// With a caller that the chain itself does not have.
    #[inline]
    pub(crate) fn with_leaf_caller(self, caller: Option<Addr>) -> Self {
        let Some(Addr(addr)) = caller else { return self };
        let mut hasher = FxHasher::default();
        (self.hash, addr).hash(&mut hasher);
        Self { hash: hasher.finish(), leaf_caller: caller, ..self }
    }

    #[inline]
    fn new(words: &'data [u8], ip: Addr, pid: Pid, event: u32, mode: CpuMode) -> Self {
        let mut hasher = FxHasher::default();
        (words, ip, pid, event, mode).hash(&mut hasher);
        Self { hash: hasher.finish(), words, ip, pid, event, mode, leaf_caller: None }
    }

    /// For tests: one of these words.
    #[cfg(test)]
    pub(super) fn of_test(words: &'data [u8]) -> Self {
        Self::new(words, Addr(1), Pid(1), 0, CpuMode::User)
    }
}

impl Hash for ChainKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// So many are kept when they come first; after that it must have been of use, or else only those that were seen twice are
/// kept: of chains that all differ nearly nothing.
const ON_TRIAL: u64 = 1 << 12;

/// What is known of them.
#[derive(Debug)]
pub(crate) struct WholeChains<'data, K> {
    known: FxHashMap<ChainKey<'data>, (K, Range<Nanos>)>,
    once: Vec<u64>,
    /// Whether one is kept when it comes first.
    at_first: bool,
    /// How many were kept, and how often one of them came again.
    kept: u64,
    again: u64,
}

impl<K> WholeChains<'_, K> {
    /// Keeps what comes, as long as that is of use.
    pub(crate) fn that_come() -> Self {
        Self { at_first: true, ..Self::that_come_again() }
    }

    /// Keeps what comes twice: where it is dear to keep.
    pub(crate) fn that_come_again() -> Self {
        Self { known: FxHashMap::default(), once: Vec::new(), at_first: false, kept: 0, again: 0 }
    }
}

impl<'data, K> WholeChains<'data, K> {
    /// What is known of a call chain at that time, if it was seen before.
    #[inline]
    pub(crate) fn find(&mut self, key: &ChainKey<'data>, time: Nanos) -> Option<&mut K> {
        let (known, holds) = self.known.get_mut(key)?;
        let holds = holds.contains(&time);
        self.again += u64::from(holds);
        holds.then_some(known)
    }

    /// Learns what `is` known of a call chain as long as that holds. What this pushes out is given to `out`.
    pub(crate) fn add(
        &mut self,
        key: ChainKey<'data>,
        holds: Range<Nanos>,
        is: impl FnOnce() -> K,
        out: impl FnMut(K),
    ) {
        let was_seen = self.was_seen(key.hash);
        let is_worth = self.at_first && (self.kept < ON_TRIAL || self.again >= self.kept / 4);
        if !holds.is_empty() && (was_seen || is_worth) {
            self.keep(key, holds, is(), out);
        }
    }

    /// Takes over what is known of a call chain as long as that holds. What this pushes out is given to `out`.
    pub(crate) fn keep(&mut self, key: ChainKey<'data>, holds: Range<Nanos>, known: K, mut out: impl FnMut(K)) {
        self.kept += 1;
        if self.known.len() >= MOST {
            self.known.drain().for_each(|(_, (old, _))| out(old));
        }
        if let Some((old, _)) = self.known.insert(key, (known, holds)) {
            out(old);
        }
    }

    /// All that is known.
    pub(crate) fn into_known(self) -> impl Iterator<Item = K> {
        self.known.into_values().map(|(known, _)| known)
    }

    /// Whether a chain of that hash was seen, which it is from now on.
    fn was_seen(&mut self, hash: u64) -> bool {
        if self.once.is_empty() {
            self.once = vec![0; ONCE_BITS / 64];
        }
        let at = hash as usize % ONCE_BITS;
        let (word, bit) = (&mut self.once[at / 64], 1 << (at % 64));
        let was_seen = *word & bit != 0;
        *word |= bit;
        was_seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(words: &[u8], pid: i32) -> ChainKey<'_> {
        ChainKey::new(words, Addr(1), Pid(pid), 0, CpuMode::User)
    }

    #[test]
    fn a_chain_is_known_from_its_second_time_on_as_long_as_that_holds() {
        let mut chains = WholeChains::that_come();
        let mut out = Vec::new();
        assert_eq!(chains.find(&key(b"words", 1), Nanos(5)), None);
        chains.add(key(b"words", 1), Nanos(5)..Nanos(9), || "first", |old| out.push(old));
        assert_eq!(chains.find(&key(b"words", 1), Nanos(8)), Some(&mut "first"));
        for (words, pid, time) in [(&b"words"[..], 1, 4), (b"words", 1, 9), (b"words", 2, 5), (b"other", 1, 5)] {
            assert_eq!(chains.find(&key(words, pid), Nanos(time)), None);
        }
        chains.add(key(b"words", 1), Nanos(9)..Nanos(20), || "second", |old| out.push(old));
        assert_eq!(chains.find(&key(b"words", 1), Nanos(9)), Some(&mut "second"));
        assert_eq!(out, ["first"]);
        assert_eq!(chains.into_known().collect::<Vec<_>>(), ["second"]);
    }

    #[test]
    fn where_chains_do_not_come_again_one_is_kept_when_it_does() {
        let mut chains = WholeChains::that_come();
        let words: Vec<[u8; 4]> = (0..ON_TRIAL as u32 + 1).map(u32::to_le_bytes).collect();
        words.iter().for_each(|words| chains.add(key(words, 1), Nanos(0)..Nanos(9), || "once", |_| ()));
        assert_eq!(chains.find(&key(&words[0], 1), Nanos(5)), Some(&mut "once"));
        let last = words.last().unwrap();
        assert_eq!(chains.find(&key(last, 1), Nanos(5)), None);
        chains.add(key(last, 1), Nanos(0)..Nanos(9), || "twice", |_| ());
        assert_eq!(chains.find(&key(last, 1), Nanos(5)), Some(&mut "twice"));
        let mut chains = WholeChains::that_come_again();
        for kept in [None, Some(&mut "words")] {
            chains.add(key(b"words", 1), Nanos(0)..Nanos(9), || "words", |_| ());
            assert_eq!(chains.find(&key(b"words", 1), Nanos(5)), kept);
        }
    }

    #[test]
    fn what_is_too_much_is_pushed_out_and_none_of_it_is_lost() {
        let mut chains = WholeChains::that_come();
        let words: Vec<[u8; 4]> = (0..MOST as u32 + 10).map(u32::to_le_bytes).collect();
        let mut out = 0;
        for (words, _) in words.iter().flat_map(|words| [(words, 0), (words, 1)]) {
            chains.add(key(words, 1), Nanos(0)..Nanos(1), || 1, |old| out += old);
        }
        assert!(out >= MOST as i32);
        assert!(out + chains.into_known().sum::<i32>() >= words.len() as i32);
    }
}
