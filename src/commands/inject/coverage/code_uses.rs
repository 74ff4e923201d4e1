//! The JIT code that some samples use, as each worker finds it.
//!
//! perf finds what is at an address by the mapping records that it has seen up to a sample's time. So code needs one
//! before the first sample that uses it, and another one before the first that does so after something else was mapped
//! over it: runtimes let their anonymous memory grow, and every growth is a record that covers all of it.
//!
//! The stretches of time between such records are *epochs* of a segment. Each worker notes the earliest use of
//! every (process, segment, epoch): as much as there is distinct code, whatever the length of the recording.

use crate::commands::inject::survey::RecordOrder;
use crate::model::Pid;
use crate::parallel::{self, Pool};
use crate::resolve::code_map::SegmentId;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// Code of one process in one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::commands::inject) struct CodeEpoch {
    pub(in crate::commands::inject) pid: Pid,
    pub(in crate::commands::inject) segment: SegmentId,
    pub(super) number: u32,
}

/// The first and the last sample that uses code in an epoch.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands::inject) struct CodeUse {
    pub(in crate::commands::inject) first: RecordOrder,
    pub(in crate::commands::inject) last: RecordOrder,
}

impl CodeUse {
    #[inline]
    pub(super) fn join(&mut self, other: Self) {
        // Mostly nothing changes.
        if other.first < self.first {
            self.first = other.first;
        }
        if other.last > self.last {
            self.last = other.last;
        }
    }
}

/// The numbers of samples and frames.
#[derive(Debug, Default)]
pub(in crate::commands::inject) struct SampleCounts {
    pub(in crate::commands::inject) samples: u64,
    /// Samples that have at least one frame in JIT code, with a name or without.
    pub(in crate::commands::inject) with_jit: u64,
    /// Frames in code that the dumps and maps know.
    pub(in crate::commands::inject) resolved: u64,
    /// By process: frames in memory that no file backs and that no dump or map covers.
    pub(in crate::commands::inject) unresolved: BTreeMap<Pid, u64>,
    /// Those of them that were sampled when the process's dump had its last record.
    pub(in crate::commands::inject) late: BTreeMap<Pid, u64>,
    /// Those of them where the dumps and maps know code of other times only.
    pub(in crate::commands::inject) other_time: BTreeMap<Pid, u64>,
    /// Samples whose call chains perf drops whole.
    pub(in crate::commands::inject) bad_chains: u64,
    /// The entries in them that make it do so.
    pub(in crate::commands::inject) bad_entries: u64,
    /// Samples that could not be read.
    pub(in crate::commands::inject) unreadable: u64,
}

impl SampleCounts {
    fn append(&mut self, more: Self) {
        self.samples += more.samples;
        self.with_jit += more.with_jit;
        self.resolved += more.resolved;
        let by_process = [
            (&mut self.unresolved, more.unresolved),
            (&mut self.late, more.late),
            (&mut self.other_time, more.other_time),
        ];
        for (all, more) in by_process {
            for (pid, count) in more {
                *all.entry(pid).or_default() += count;
            }
        }
        self.bad_chains += more.bad_chains;
        self.bad_entries += more.bad_entries;
        self.unreadable += more.unreadable;
    }
}

/// The code that the samples of some records use.
#[derive(Debug, Default)]
pub(super) struct CodeUses {
    by_epoch: FxHashMap<CodeEpoch, UseId>,
    list: Vec<CodeUse>,
    pub(super) counts: SampleCounts,
}

/// A place in the list of [`CodeUses`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UseId(NonZeroU32);

impl CodeUses {
    /// Adds what another worker found.
    pub(super) fn append(&mut self, other: Self) {
        for (epoch, id) in other.by_epoch {
            self.note(epoch, other.list[id.index()]);
        }
        self.counts.append(other.counts);
    }

    pub(super) fn note(&mut self, epoch: CodeEpoch, found: CodeUse) -> UseId {
        let next = UseId::new(self.list.len());
        let id = *self.by_epoch.entry(epoch).or_insert(next);
        if id == next {
            self.list.push(found);
        } else {
            self.list[id.index()].join(found);
        }
        id
    }

    /// Samples use once more what is known.
    #[inline]
    pub(super) fn note_again(&mut self, id: UseId, found: CodeUse) {
        self.list[id.index()].join(found);
    }

    /// All uses, in the order of their first samples.
    pub(super) fn in_order(self, pool: &Pool) -> Vec<(CodeEpoch, CodeUse)> {
        let mut list: Vec<_> = self.by_epoch.into_iter().map(|(epoch, id)| (epoch, self.list[id.index()])).collect();
        pool.install(|| parallel::sort_unstable_by_key(&mut list, |(epoch, of)| (of.first, *epoch)));
        list
    }
}

impl UseId {
    /// Uses never run out of numbers: every epoch of a segment has one of 32 bits already.
    fn new(index: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(index as u32))
    }

    #[inline]
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}
