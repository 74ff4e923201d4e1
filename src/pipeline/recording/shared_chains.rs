//! What threads that read samples learn from each other: call chains that were seen as a whole.
//!
//! Each thread reads every so manieth chunk; what others have met meanwhile it would have to look up frame by frame once
//! more. Who merges the chunks tells what came of a chain. That decides how fast samples are read, not what comes of them.

use super::samples::StackEnd;
use super::whole_chains::ChainKey;
use crate::model::chains::ChainId;
use crate::model::{Addr, Nanos};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// So many chains are told of at a time: who was away for longer learns by itself.
const MOST: usize = 1 << 16;

/// Numbers of chains from here on are those of the whole; a thread's own are smaller.
const SHARED: u32 = 1 << 31;

/// What the call chain of a sample is.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownChain {
    pub(super) chain: Option<ChainId>,
    pub(super) end: StackEnd,
    /// The address of the innermost frame.
    pub(super) ip: Addr,
}

/// A call chain, what it is, and while it is that.
#[derive(Debug, Clone)]
pub(super) struct SharedChain<'data> {
    pub(super) key: ChainKey<'data>,
    pub(super) known: KnownChain,
    pub(super) holds: Range<Nanos>,
}

/// The number in the whole that a thread's number stands for, if it is none of its own.
pub(super) fn shared(chain: ChainId) -> Option<ChainId> {
    chain.0.checked_sub(SHARED).map(ChainId)
}

/// What was told last.
#[derive(Debug, Default)]
pub(super) struct SharedChains<'data>(Mutex<Told<'data>>);

#[derive(Debug, Default)]
struct Told<'data> {
    /// Who told, and what.
    batches: VecDeque<(usize, Arc<[SharedChain<'data>]>)>,
    /// How many batches were forgotten.
    gone: usize,
    /// How many chains there are in those that were not.
    chains: usize,
}

impl<'data> SharedChains<'data> {
    /// What one thread has learnt, with the numbers of the whole.
    pub(super) fn tell(&self, reader: usize, learnt: Vec<SharedChain<'data>>) {
        let can_be_told = |chain: &SharedChain<'_>| chain.known.chain.is_none_or(|chain| chain.0 < SHARED);
        if learnt.is_empty() || !learnt.iter().all(can_be_told) {
            return;
        }
        let as_shared = |chain: ChainId| ChainId(chain.0 | SHARED);
        let learnt = learnt.into_iter().map(|SharedChain { key, known, holds }| {
            let known = KnownChain { chain: known.chain.map(as_shared), ..known };
            SharedChain { key, known, holds }
        });
        let batch: Arc<[SharedChain<'data>]> = learnt.collect();
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.chains += batch.len();
        told.batches.push_back((reader, batch));
        while told.chains > MOST
            && let Some((_, oldest)) = told.batches.pop_front()
        {
            told.chains -= oldest.len();
            told.gone += 1;
        }
    }

    /// What the other threads have told since, counted in batches, and how many there are by now.
    pub(super) fn since(&self, heard: usize, reader: usize) -> (Vec<Arc<[SharedChain<'data>]>>, usize) {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = told.batches.iter().skip(heard.saturating_sub(told.gone));
        let others = new.filter(|(of, _)| *of != reader).map(|(_, batch)| Arc::clone(batch));
        (others.collect(), told.gone + told.batches.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(chains: usize) -> Vec<SharedChain<'static>> {
        let known = KnownChain { chain: Some(ChainId(7)), end: StackEnd::Whole, ip: Addr(1) };
        vec![SharedChain { key: ChainKey::of_test(b"words"), known, holds: Nanos(0)..Nanos(9) }; chains]
    }

    #[test]
    fn a_thread_hears_once_what_the_others_told() {
        let shared_chains = SharedChains::default();
        shared_chains.tell(0, batch(1));
        shared_chains.tell(1, batch(2));
        let (new, heard) = shared_chains.since(0, 0);
        assert_eq!(new.iter().map(|batch| batch.len()).collect::<Vec<_>>(), [2]);
        assert_eq!(new[0][0].known.chain.and_then(shared), Some(ChainId(7)));
        shared_chains.tell(1, batch(3));
        assert_eq!(shared_chains.since(heard, 0).0.len(), 1);
        assert_eq!(shared_chains.since(heard, 1).0.len(), 0);
        assert_eq!(shared(ChainId(7)), None);
    }

    #[test]
    fn what_was_told_long_ago_is_forgotten() {
        let shared_chains = SharedChains::default();
        (0..5).for_each(|_| shared_chains.tell(0, batch(MOST / 2)));
        let (new, heard) = shared_chains.since(1, 1);
        assert_eq!((new.len(), heard), (2, 5));
        shared_chains.tell(0, batch(1));
        assert_eq!(shared_chains.since(heard, 1).0[0].len(), 1);
    }
}
