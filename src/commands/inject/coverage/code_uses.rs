//! Records which JIT code the samples use, and when each piece of code is first and last used.
//!
//! perf resolves an address with the mapping records that precede the sample in time. So a piece of code needs a
//! mapping record before the first sample that uses it, and another one before the first use after something else was
//! mapped over it. That happens often: runtimes grow their anonymous memory, and each growth is a mapping record that
//! covers all of it.
//!
//! A *segment* of the code map is a code range at one address for some time. The time between two mappings over it is
//! an *epoch* of the segment. Each worker keeps the first and last use of every (process, segment, epoch), so memory
//! grows with the amount of distinct code and not with the length of the recording.

use crate::commands::inject::survey::RecordOrder;
use crate::model::Pid;
use crate::parallel::{self, Pool};
use crate::symbolize::code_map::SegmentId;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// What kind of memory a frame is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FramePlace {
    /// In code that a jitdump, perf map or other source describes.
    Known,
    /// In memory that no file backs, at an address where no source ever has code.
    Unknown,
    /// In memory that no file backs, at an address where a source has code at other times, but not at the sample's.
    OtherTime,
    /// In a file, or in no mapping at all.
    Elsewhere,
}

/// A segment of JIT code in one process, limited to an uninterrupted period (an epoch) in which no mapping hides it.
/// Whenever a mapping covers the segment, the epoch ends, and another one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::commands::inject) struct CodeEpoch {
    pub(in crate::commands::inject) pid: Pid,
    pub(in crate::commands::inject) segment: SegmentId,
    /// Tells the epochs of the same segment apart.
    pub(super) number: u32,
}

/// The first and the last sample with a frame in one segment of JIT code, during one [`CodeEpoch`].
#[derive(Debug, Clone, Copy)]
pub(in crate::commands::inject) struct CodeUse {
    /// The first sample that uses the code.
    pub(in crate::commands::inject) first: RecordOrder,
    /// The last sample that uses the code.
    pub(in crate::commands::inject) last: RecordOrder,
}

impl CodeUse {
    /// Extends this use by another use of the same code.
    #[inline]
    pub(super) fn join(&mut self, other: Self) {
        // Compare before writing: nearly always neither the first nor the last use changes.
        if other.first < self.first {
            self.first = other.first;
        }
        if other.last > self.last {
            self.last = other.last;
        }
    }
}

/// Counts of samples and frames, for the summary.
#[derive(Debug, Default)]
pub(in crate::commands::inject) struct SampleCounts {
    pub(in crate::commands::inject) samples: u64,
    /// For each event of the recording, the weight of its samples, by the kind of memory that their innermost frame is
    /// in.
    pub(in crate::commands::inject) innermost: Vec<InnermostWeights>,
    /// The number of frames in code that a jitdump, perf map or other source describes.
    pub(in crate::commands::inject) resolved: u64,
    /// The number of frames, by process, in memory that no file backs and where no source has code at the sample's
    /// time.
    pub(in crate::commands::inject) unresolved: BTreeMap<Pid, u64>,
    /// Of the frames in `unresolved`, the number sampled after the last record of the process's jitdump.
    pub(in crate::commands::inject) late: BTreeMap<Pid, u64>,
    /// Of the frames in `unresolved`, the number at addresses where a source has code at other times.
    pub(in crate::commands::inject) other_time: BTreeMap<Pid, u64>,
    /// The number of samples whose whole call chain perf drops because of a bad entry.
    pub(in crate::commands::inject) bad_chains: u64,
    /// The number of call chain entries that make perf drop the chain.
    pub(in crate::commands::inject) bad_entries: u64,
    /// The number of samples that could not be parsed.
    pub(in crate::commands::inject) unreadable: u64,
}

/// The weights of an event's samples, by the kind of memory that their innermost frame is in. The command `report`
/// divides samples into the same kinds.
#[derive(Debug, Default)]
pub(in crate::commands::inject) struct InnermostWeights {
    /// The weight of all samples.
    pub(in crate::commands::inject) whole: u64,
    /// The weight of samples in code that a jitdump, perf map or other source describes.
    pub(in crate::commands::inject) known: u64,
    /// The weight of samples, by process, in other memory that no file backs.
    pub(in crate::commands::inject) unknown: BTreeMap<Pid, u64>,
}

impl InnermostWeights {
    fn append(&mut self, more: Self) {
        self.whole = self.whole.saturating_add(more.whole);
        self.known = self.known.saturating_add(more.known);
        for (pid, weight) in more.unknown {
            let sum = self.unknown.entry(pid).or_default();
            *sum = sum.saturating_add(weight);
        }
    }
}

impl SampleCounts {
    /// Counts the weight of a sample of event number `event`. `innermost` is the process of the sample's innermost
    /// frame, and the kind of memory that frame is in. `None` means that the frame can't be in JIT code.
    pub(super) fn add_innermost(&mut self, event: usize, weight: u64, innermost: Option<(Pid, FramePlace)>) {
        if self.innermost.len() <= event {
            self.innermost.resize_with(event + 1, InnermostWeights::default);
        }
        let weights = &mut self.innermost[event];
        weights.whole = weights.whole.saturating_add(weight);
        match innermost {
            Some((_, FramePlace::Known)) => weights.known = weights.known.saturating_add(weight),
            // In the summary, both kinds count as unknown: no JIT code is known at this address at the sample's time.
            Some((pid, FramePlace::Unknown | FramePlace::OtherTime)) => {
                let sum = weights.unknown.entry(pid).or_default();
                *sum = sum.saturating_add(weight);
            }
            Some((_, FramePlace::Elsewhere)) | None => {}
        }
    }

    /// Adds the counts of another worker.
    fn append(&mut self, other: Self) {
        self.samples += other.samples;
        self.innermost.resize_with(self.innermost.len().max(other.innermost.len()), InnermostWeights::default);
        for (weights, added) in self.innermost.iter_mut().zip(other.innermost) {
            weights.append(added);
        }
        self.resolved += other.resolved;
        let counts_by_process = [
            (&mut self.unresolved, other.unresolved),
            (&mut self.late, other.late),
            (&mut self.other_time, other.other_time),
        ];
        for (counts, added) in counts_by_process {
            for (pid, count) in added {
                *counts.entry(pid).or_default() += count;
            }
        }
        self.bad_chains += other.bad_chains;
        self.bad_entries += other.bad_entries;
        self.unreadable += other.unreadable;
    }
}

/// All uses of JIT code found so far, and the counts.
#[derive(Debug, Default)]
pub(super) struct CodeUses {
    by_epoch: FxHashMap<CodeEpoch, UseId>,
    /// The uses, in the order in which they were found.
    list: Vec<CodeUse>,
    pub(super) counts: SampleCounts,
}

/// The index of a use in [`CodeUses::list`], plus one. As it is never 0, an `Option<UseId>` takes only four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UseId(NonZeroU32);

impl CodeUses {
    /// Merges the result of another worker.
    pub(super) fn append(&mut self, other: Self) {
        for (epoch, id) in other.by_epoch {
            self.note(epoch, other.list[id.index()]);
        }
        self.counts.append(other.counts);
    }

    /// Adds a use of the code in `epoch` (a code segment during a period in which no mapping hides it). If there is a
    /// use of this code already, extends that one instead. Returns the ID of the use.
    pub(super) fn note(&mut self, epoch: CodeEpoch, found: CodeUse) -> UseId {
        let next = UseId::new(self.list.len());
        let id = *self.by_epoch.entry(epoch).or_insert(next);
        // If `id` is `next`, the epoch was new.
        if id == next {
            self.list.push(found);
        } else {
            self.list[id.index()].join(found);
        }
        id
    }

    /// Extends a known use by another sample.
    #[inline]
    pub(super) fn note_again(&mut self, id: UseId, found: CodeUse) {
        self.list[id.index()].join(found);
    }

    /// All uses, ordered by their first samples.
    pub(super) fn into_ordered(self, pool: &Pool) -> Vec<(CodeEpoch, CodeUse)> {
        let mut list: Vec<_> = self.by_epoch.into_iter().map(|(epoch, id)| (epoch, self.list[id.index()])).collect();
        pool.install(|| parallel::sort_unstable_by_key(&mut list, |(epoch, code_use)| (code_use.first, *epoch)));
        list
    }
}

impl UseId {
    /// The ID of the use at this index of the list. There are fewer uses than 32 bits can count, because segments and
    /// epochs are numbered with 32 bits, too.
    fn new(index: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(index as u32))
    }

    #[inline]
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}
