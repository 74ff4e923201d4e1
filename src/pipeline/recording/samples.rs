//! The samples of a recording: rows, and call chains of locations.
//!
//! Each worker assigns its own IDs ([`super::reading`]). Chunks are merged in the order of the file, so that the result
//! doesn't depend on the number of threads.

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

/// A sample, or with [`Keep::Sums`] the sum of all samples of the same event, thread and stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleRow {
    pub(crate) event: u32,
    pub(crate) track: u32,
    /// The sample's time; `None` for sums, and for samples without one.
    pub(crate) time: Option<Nanos>,
    /// The weight, in the unit of the event.
    pub(crate) period: u64,
    /// The number of samples that the row stands for.
    pub(crate) count: u64,
    /// The call chain; `None` if there are no frames.
    pub(crate) chain: Option<ChainId>,
    /// The address of the innermost frame; 0 if there is none. In a sum, the address of its first sample.
    pub(crate) ip: Addr,
    /// The CPU that the sample was taken on; `None` if it wasn't recorded.
    pub(crate) cpu: Option<u32>,
    /// The range of its branches in [`Samples::branches`], if they are kept.
    pub(crate) branches: (u32, u32),
    /// Why the stack has no more frames. In a sum, the reason for its first sample.
    pub(crate) end: StackEnd,
}

/// Why a stack has no more frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StackEnd {
    /// perf found no more frames. Only the name of the outermost function can tell whether the thread started there.
    Recorded,
    /// perf's limit of this many frames was reached. Only the name of the outermost function can tell whether frames
    /// are missing.
    Limit(u16),
    /// The stack copy was unwound to the thread's first function.
    Whole,
    /// Unwinding reached the end of the stack copy.
    CopyEnd,
    /// The stack copy has more data, but nothing says how to unwind its outermost frame.
    NoWayOn,
    /// The stack has more frames than jitgraft unwinds.
    TooDeep,
}

/// A branch that the CPU took and recorded (`perf record -b`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    /// The location of the branch instruction.
    pub(crate) from: PlaceId,
    pub(crate) to: PlaceId,
    /// Flags of the branch as recorded; see [`crate::records::perf_data::Branch`].
    pub(crate) flags: u64,
}

/// Further fields of a sample, for commands that print them.
#[derive(Debug, Clone, Default)]
pub(crate) struct OtherFields {
    /// The address of the data that the sampled instruction accessed; `None` if it wasn't recorded.
    pub(crate) addr: Option<Addr>,
    /// The location of the data address, if perf would symbolize it.
    pub(crate) addr_place: Option<PlaceId>,
    /// The raw data of a tracepoint.
    pub(crate) trace: Option<Box<[u8]>>,
    /// The registers of the interrupted code, if they were recorded.
    pub(crate) interrupted: Option<KeptRegisters>,
    /// The registers of the user-space code, if they were recorded.
    pub(crate) user: Option<KeptRegisters>,
    /// Whether the sample was taken in the kernel, in user space or in a guest.
    pub(crate) mode: CpuMode,
    /// What the event measured about a memory access.
    pub(crate) access: Access,
    /// The ID of the control group; `None` if it wasn't recorded.
    pub(crate) cgroup: Option<u64>,
}

/// Details of a sample's memory access or instruction, as recorded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Access {
    pub(crate) data_src: Option<u64>,
    pub(crate) weight: Option<u64>,
    pub(crate) phys_addr: Option<u64>,
    pub(crate) data_page_size: Option<u64>,
    pub(crate) code_page_size: Option<u64>,
}

/// A copy of sampled registers; see [`crate::records::perf_data::Registers`] for the fields.
#[derive(Debug, Clone)]
pub(crate) struct KeptRegisters {
    pub(crate) abi: u64,
    pub(crate) mask: u64,
    pub(crate) values: Vec<u64>,
}

/// The samples of a recording, or those that a worker has read.
#[derive(Debug)]
pub(crate) struct Samples {
    keep: Keep,
    /// For each event, thread and stack, the index of its row; only used for sums.
    sums: FxHashMap<(u32, u32, Option<ChainId>), u32>,
    /// The rows in the order of the file.
    pub(crate) rows: Vec<SampleRow>,
    /// The times of the first and last sample.
    pub(crate) sampled: Option<TimeExtent>,
    /// The call chains of all rows.
    pub(crate) chains: Chains<FrameLocation>,
    /// The threads of all rows.
    pub(crate) tracks: Interner<Track, u32>,
    /// The branches of all rows; those of a sample are newest first.
    pub(crate) branches: Vec<Taken>,
    /// The other fields of each row, if they are kept; otherwise empty.
    pub(crate) beside: Vec<OtherFields>,
    /// Samples that could not be read.
    pub(super) skipped: Skipped,
}

impl Samples {
    /// An empty set of samples.
    pub(super) fn keeping(keep: Keep) -> Self {
        Self {
            keep,
            sums: FxHashMap::default(),
            rows: Vec::new(),
            sampled: None,
            chains: Chains::default(),
            tracks: Interner::default(),
            branches: Vec::new(),
            beside: Vec::new(),
            skipped: Skipped::new("sample"),
        }
    }

    /// Adds a row with IDs from these tables.
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

    /// Fails if IDs ran out.
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

    /// Takes the rows and what belongs only to them. The tables that their IDs refer to stay.
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
    pub(super) fn from_sample(sample: &Sample<'_>) -> Self {
        let Sample { data_src, weight, phys_addr, data_page_size, code_page_size, .. } = *sample;
        Self { data_src, weight, phys_addr, data_page_size, code_page_size }
    }
}

impl KeptRegisters {
    pub(super) fn copy(sampled: SampledRegisters<'_>) -> Self {
        Self { abi: sampled.abi, mask: sampled.mask, values: sampled.values.iter().collect() }
    }
}

/// Rows without the tables that their IDs refer to.
#[derive(Debug)]
pub(super) struct TakenRows {
    pub(super) rows: Vec<SampleRow>,
    pub(super) sampled: Option<TimeExtent>,
    pub(super) branches: Vec<Taken>,
    pub(super) beside: Vec<OtherFields>,
    pub(super) skipped: Skipped,
}
