//! Rows and chains of spots: what samples become.
//!
//! Each thread that reads numbers what it meets by itself ([`super::reading`]); the chunks are merged in the order of
//! the file, so the result does not depend on the number of threads.

use super::locator::FrameLocation;
use crate::error::{Result, Skipped};
use crate::model::about::TimeExtent;
use crate::model::chains::{ChainId, Chains, PlaceId};
use crate::model::interner::{self, Interner};
use crate::model::process::CpuMode;
use crate::model::stacks::{Keep, Track};
use crate::model::{Addr, Nanos};
use crate::records::perf_data::{Registers as SampledRegisters, Sample};
use rustc_hash::FxHashMap;

/// One sample, or the sum of those of equal event, thread and stack ([`Keep::Sums`]).
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleRow {
    /// Index of the event.
    pub(crate) event: u32,
    /// Index into [`Samples::tracks`].
    pub(crate) track: u32,
    /// When; `None` for sums.
    pub(crate) time: Option<Nanos>,
    /// The weight.
    pub(crate) period: u64,
    /// The number of samples that it stands for.
    pub(crate) count: u64,
    /// Its stack.
    pub(crate) chain: Option<ChainId>,
    /// The innermost frame's address in the process; 0 without one; of sums, the first.
    pub(crate) ip: Addr,
    /// The processor.
    pub(crate) cpu: Option<u32>,
    /// Its branches, where they are kept: from and to in [`Samples::branches`].
    pub(crate) branches: (u32, u32),
    /// The way its stack ends; of sums, that of the first.
    pub(crate) end: StackEnd,
}

/// Why a stack has no more frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StackEnd {
    /// The recorder found no more: whether that is the thread's first function, its name must give.
    Recorded,
    /// The recorder may not give more than this many frames: whether the thread's first function was among them, the
    /// outermost one's name must give.
    Limit(u16),
    /// The copy was unwound to the thread's first function.
    Whole,
    /// The copy has no more bytes.
    CopyEnd,
    /// The copy goes on, but how to leave its outermost frame is not known.
    NoWayOn,
    /// This many frames are not unwound.
    TooDeep,
}

/// A taken branch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    /// The branch instruction.
    pub(crate) from: PlaceId,
    /// The target.
    pub(crate) to: PlaceId,
    /// See [`crate::records::perf_data::Branch`].
    pub(crate) flags: u64,
}

/// The other fields of a sample, for commands that print it.
#[derive(Debug, Clone, Default)]
pub(crate) struct OtherFields {
    /// The data address.
    pub(crate) addr: Option<Addr>,
    /// What is at the data address, where perf names it.
    pub(crate) addr_place: Option<PlaceId>,
    /// The data of a tracepoint or of a BPF program.
    pub(crate) trace: Option<Box<[u8]>>,
    /// The registers at the interrupt.
    pub(crate) interrupted: Option<KeptRegisters>,
    /// The registers of the user's code.
    pub(crate) user: Option<KeptRegisters>,
    /// The mode of the sample.
    pub(crate) mode: CpuMode,
    /// What its event measures of an access.
    pub(crate) access: Access,
    /// The control group.
    pub(crate) cgroup: Option<u64>,
}

/// The fields of a sample that say more of the access to memory or the instruction, as recorded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Access {
    pub(crate) data_src: Option<u64>,
    pub(crate) weight: Option<u64>,
    pub(crate) phys_addr: Option<u64>,
    pub(crate) data_page_size: Option<u64>,
    pub(crate) code_page_size: Option<u64>,
}

/// The kept part of sampled registers; the fields are those of [`crate::records::perf_data::Registers`].
#[derive(Debug, Clone)]
pub(crate) struct KeptRegisters {
    pub(crate) abi: u64,
    pub(crate) mask: u64,
    pub(crate) values: Vec<u64>,
}

/// The samples of a recording, or those that a thread has read of it.
#[derive(Debug)]
pub(crate) struct Samples {
    keep: Keep,
    /// The places of the sums of each event, thread and stack, if sums are kept.
    sums: FxHashMap<(u32, u32, Option<ChainId>), u32>,
    /// In the order of the file.
    pub(crate) rows: Vec<SampleRow>,
    /// When the samples were taken, from the first to the last.
    pub(crate) sampled: Option<TimeExtent>,
    /// The stacks of all rows.
    pub(crate) chains: Chains<FrameLocation>,
    /// The threads of all rows.
    pub(crate) tracks: Interner<Track, u32>,
    /// The branches of all rows, newest first.
    pub(crate) branches: Vec<Taken>,
    /// The other fields of each row, if they are kept; else empty.
    pub(crate) beside: Vec<OtherFields>,
    /// Samples that could not be read.
    pub(super) skipped: Skipped,
}

impl Samples {
    /// None yet.
    pub(super) fn keeping(keep: Keep) -> Self {
        let (rows, branches, beside) = (Vec::new(), Vec::new(), Vec::new());
        let (chains, tracks, sums) = (Chains::default(), Interner::default(), FxHashMap::default());
        let skipped = Skipped::new("sample");
        Self { keep, sums, rows, sampled: None, chains, tracks, branches, beside, skipped }
    }

    /// Takes a row whose thread and stack have numbers here.
    #[inline]
    pub(super) fn push(&mut self, row: SampleRow) {
        if self.keep == Keep::EachRow {
            self.rows.push(row);
            return;
        }
        let at = *self.sums.entry((row.event, row.track, row.chain)).or_insert(self.rows.len() as u32);
        match self.rows.get_mut(at as usize) {
            Some(sum) => {
                sum.period = sum.period.saturating_add(row.period);
                sum.count = sum.count.saturating_add(row.count);
            }
            None => self.rows.push(SampleRow { time: None, cpu: None, ..row }),
        }
    }

    /// True if everything got a number of its own.
    pub(super) fn check(&self) -> Result<()> {
        self.chains.check()?;
        if self.tracks.is_full() {
            return Err(interner::full("threads"));
        }
        match u32::try_from(self.branches.len()) {
            Ok(_) => Ok(()),
            Err(_) => Err(interner::full("branches")),
        }
    }

    /// Takes the rows out, and what belongs to them alone; what their numbers mean is kept.
    pub(super) fn take_rows(&mut self) -> TakenRows {
        self.sums.clear();
        TakenRows {
            rows: std::mem::take(&mut self.rows),
            sampled: self.sampled.take(),
            branches: std::mem::take(&mut self.branches),
            beside: std::mem::take(&mut self.beside),
            skipped: std::mem::replace(&mut self.skipped, Skipped::new("sample")),
        }
    }
}

impl Access {
    pub(super) fn of(sample: &Sample<'_>) -> Self {
        let Sample { data_src, weight, phys_addr, data_page_size, code_page_size, .. } = *sample;
        Self { data_src, weight, phys_addr, data_page_size, code_page_size }
    }
}

impl KeptRegisters {
    pub(super) fn of(sampled: SampledRegisters<'_>) -> Self {
        Self { abi: sampled.abi, mask: sampled.mask, values: sampled.values.iter().collect() }
    }
}

/// Rows without what their numbers mean.
#[derive(Debug)]
pub(super) struct TakenRows {
    pub(super) rows: Vec<SampleRow>,
    pub(super) sampled: Option<TimeExtent>,
    pub(super) branches: Vec<Taken>,
    pub(super) beside: Vec<OtherFields>,
    pub(super) skipped: Skipped,
}
