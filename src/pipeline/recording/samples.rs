//! The samples of a recording: rows, and call chains of code locations.
//!
//! Each worker assigns its own IDs ([`super::reading`]). Chunks are merged in the order of the file, so the result
//! doesn't depend on the number of threads.

use super::frame_location::FrameLocation;
use crate::error::{Result, Skipped};
use crate::formats::perf_data::{Registers as SampledRegisters, Sample};
use crate::model::about::{self, TimeExtent};
use crate::model::chains::{ChainId, Chains, ChainsPart, PlaceId, RenumberedChains, TakenChains};
use crate::model::interner::{self, Interner};
use crate::model::process::CpuMode;
use crate::model::stacks::{Keep, Track};
use crate::model::{Addr, Nanos};
use rustc_hash::FxHashMap;

/// A sample or, with [`Keep::Sums`], the sum of all samples with the same event, thread and stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleRow {
    /// The index of the event in the recording.
    pub(crate) event: u32,
    /// The index of the thread in [`Samples::tracks`].
    pub(crate) track: u32,
    /// The time of the sample; `None` for sums and for samples without a time.
    pub(crate) time: Option<Nanos>,
    /// The weight, in the unit of the event.
    pub(crate) period: u64,
    /// The number of samples that the row stands for.
    pub(crate) count: u64,
    /// The call chain; `None` if the stack has no frames.
    pub(crate) chain: Option<ChainId>,
    /// The address of the innermost frame; 0 if the stack has no frames. In a sum, that of the first sample.
    pub(crate) ip: Addr,
    /// The CPU that the sample was taken on; `None` for sums and if it wasn't recorded.
    pub(crate) cpu: Option<u32>,
    /// The range of the sample's branches in [`Samples::branches`]; empty if branches aren't kept.
    pub(crate) branches: (u32, u32),
    /// Why the stack ends where it does. In a sum, that of the first sample.
    pub(crate) end: StackEnd,
}

/// Why a stack has no frames beyond its outermost one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StackEnd {
    /// Neither the kernel nor perf found more frames. Whether frames are missing depends on whether threads start in
    /// the outermost function.
    Recorded,
    /// The stack has as many frames as perf records at most. Holds that maximum. Whether frames are missing depends on
    /// whether threads start in the outermost function.
    Limit(u16),
    /// No frames are missing: the stack copy was unwound up to the function in which the thread started.
    Whole,
    /// Unwinding reached the end of the stack copy, so outer frames are missing.
    CopyEnd,
    /// Nothing says how to unwind the outermost frame, although the stack copy has more data.
    NoWayOn,
    /// The stack has more frames than jitgraft unwinds at most.
    TooDeep,
}

/// A branch that the CPU took and recorded (`perf record -b`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct TakenBranch {
    /// The code location of the branch instruction.
    pub(crate) from: PlaceId,
    /// The code location to which it branched.
    pub(crate) to: PlaceId,
    /// Flags of the branch as recorded; see [`crate::formats::perf_data::Branch`].
    pub(crate) flags: u64,
}

/// Fields of a sample that aren't needed for stacks, but for commands that print them.
#[derive(Debug, Clone, Default)]
pub(crate) struct OtherFields {
    /// The address of the data that the sampled instruction accessed; `None` if it wasn't recorded.
    pub(crate) addr: Option<Addr>,
    /// The location of the data address; `None` if perf wouldn't symbolize it.
    pub(crate) addr_place: Option<PlaceId>,
    /// The raw data of a tracepoint.
    pub(crate) trace: Option<Box<[u8]>>,
    /// The registers of the code that was interrupted; `None` if they weren't recorded.
    pub(crate) interrupted: Option<KeptRegisters>,
    /// The registers of the user-space code; `None` if they weren't recorded.
    pub(crate) user: Option<KeptRegisters>,
    /// Whether the sample was taken in the kernel, in user space or in a guest.
    pub(crate) mode: CpuMode,
    /// What the processor measured about the memory access or instruction.
    pub(crate) access: Access,
    /// The ID of the control group; `None` if it wasn't recorded.
    pub(crate) cgroup: Option<u64>,
}

/// What the processor measured about a sample's memory access or instruction, as recorded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Access {
    pub(crate) data_src: Option<u64>,
    pub(crate) weight: Option<u64>,
    pub(crate) phys_addr: Option<u64>,
    pub(crate) data_page_size: Option<u64>,
    pub(crate) code_page_size: Option<u64>,
}

/// A copy of sampled registers; see [`crate::formats::perf_data::Registers`] for the fields.
#[derive(Debug, Clone)]
pub(crate) struct KeptRegisters {
    pub(crate) abi: u64,
    pub(crate) mask: u64,
    pub(crate) values: Vec<u64>,
}

/// The samples of a recording, or the samples that one worker has read.
#[derive(Debug)]
pub(crate) struct Samples {
    keep: Keep,
    /// For sums: the index of the row for each event, thread and call chain.
    sums: FxHashMap<(u32, u32, Option<ChainId>), u32>,
    /// The rows in the order of the file.
    pub(crate) rows: Vec<SampleRow>,
    /// The times of the first and the last sample; `None` if no sample has a time.
    pub(crate) sampled: Option<TimeExtent>,
    /// The call chains that rows refer to.
    pub(crate) chains: Chains<FrameLocation>,
    /// The threads that rows refer to.
    pub(crate) tracks: Interner<Track, u32>,
    /// The branches that rows refer to. Those of a sample are in order, newest first.
    pub(crate) branches: Vec<TakenBranch>,
    /// For each row, its other fields; empty if they aren't kept.
    pub(crate) other_fields: Vec<OtherFields>,
    /// The samples that could not be read.
    pub(super) skipped: Skipped,
}

impl Samples {
    /// Creates an empty set of samples. `keep` says whether it keeps single rows or adds them up.
    pub(super) fn keeping(keep: Keep) -> Self {
        Self {
            keep,
            sums: FxHashMap::default(),
            rows: Vec::new(),
            sampled: None,
            chains: Chains::default(),
            tracks: Interner::default(),
            branches: Vec::new(),
            other_fields: Vec::new(),
            skipped: Skipped::new("sample"),
        }
    }

    /// Adds a row. Its IDs must be those of this object's own tables of threads, call chains and branches. For sums,
    /// adds the row to the one with the same event, thread and stack.
    #[inline]
    pub(super) fn push(&mut self, row: SampleRow) {
        if self.keep == Keep::EachRow {
            self.rows.push(row);
            return;
        }
        let index = *self.sums.entry((row.event, row.track, row.chain)).or_insert(self.rows.len() as u32);
        match self.rows.get_mut(index as usize) {
            Some(sum) => {
                sum.period = sum.period.saturating_add(row.period);
                sum.count = sum.count.saturating_add(row.count);
            }
            // A sum has neither time nor CPU. Its other fields are those of its first row.
            None => self.rows.push(SampleRow { time: None, cpu: None, ..row }),
        }
    }

    /// Fails if there were more chains, threads or branches than there are IDs.
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

    /// Takes out the rows of a worker's chunk, and copies the table entries that are new. The tables stay.
    pub(super) fn take_chunk(&mut self, worker: usize, sent: &mut Sent) -> SampleChunk {
        // The sums refer to rows by their indexes. The rows are taken out, so the next chunk starts new sums.
        self.sums.clear();
        // If nothing of these tables has been sent before, they are new. The receiver must then forget what it knows of
        // the worker's earlier tables.
        let has_new_tables = *sent == Sent::default();
        let chains = self.chains.take_part(&mut sent.chains);
        let tracks = self.tracks.items()[sent.tracks..].to_vec();
        sent.tracks = self.tracks.items().len();
        SampleChunk {
            worker,
            has_new_tables,
            id_check: self.check(),
            rows: std::mem::take(&mut self.rows),
            sampled: self.sampled.take(),
            branches: std::mem::take(&mut self.branches),
            other_fields: std::mem::take(&mut self.other_fields),
            skipped: std::mem::replace(&mut self.skipped, Skipped::new("sample")),
            chains,
            tracks,
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

/// One worker's chunk: its samples, and the table entries that are new since its previous chunk.
#[derive(Debug)]
pub(super) struct SampleChunk {
    /// The index of the worker that read the chunk.
    pub(super) worker: usize,
    /// True if the worker started new tables for this chunk, so that its IDs start from 0 again.
    pub(super) has_new_tables: bool,
    /// An error if the worker ran out of IDs.
    pub(super) id_check: Result<()>,
    /// The samples. Their IDs are the worker's; ranges of branches are indexes into the chunk's own branches.
    pub(super) rows: Vec<SampleRow>,
    pub(super) sampled: Option<TimeExtent>,
    pub(super) branches: Vec<TakenBranch>,
    pub(super) other_fields: Vec<OtherFields>,
    pub(super) skipped: Skipped,
    /// The call chains and code locations that are new since the worker's previous chunk.
    pub(super) chains: ChainsPart<FrameLocation>,
    /// The threads that are new since the worker's previous chunk.
    pub(super) tracks: Vec<Track>,
}

/// How much of a worker's tables has been passed on with earlier chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sent {
    chains: TakenChains,
    /// The number of tracks.
    tracks: usize,
}

/// Merges the chunks of all workers into one set of samples.
#[derive(Debug)]
pub(super) struct Merging {
    pub(super) samples: Samples,
    /// How to renumber the IDs of each worker, by the worker's index.
    renumberings: Vec<Renumbering>,
}

/// Maps the IDs in one worker's tables to IDs in the merged tables.
#[derive(Debug, Default)]
struct Renumbering {
    chains: RenumberedChains,
    /// For each thread of the worker, its index in the merged tables.
    tracks: Vec<u32>,
}

impl Merging {
    /// Starts with `samples`, to which the chunks are added.
    pub(super) fn new(samples: Samples) -> Self {
        Self { samples, renumberings: Vec::new() }
    }

    /// Adds a chunk to the merged samples, with the merged IDs. Chunks must come in the order of the file.
    pub(super) fn append(&mut self, mut chunk: SampleChunk) -> Result<()> {
        for row in self.translate(&mut chunk)? {
            self.samples.push(row);
        }
        self.samples.sampled = about::join_extents(self.samples.sampled, chunk.sampled);
        self.samples.other_fields.append(&mut chunk.other_fields);
        self.samples.skipped.append(chunk.skipped);
        Ok(())
    }

    /// Takes the rows out of the next chunk, and replaces its worker's IDs of call chains, threads and branches by
    /// merged ones. The branches themselves are moved to the merged samples; the other fields stay in the chunk. Fails
    /// if there are more chains, threads or branches than IDs.
    pub(super) fn translate(&mut self, chunk: &mut SampleChunk) -> Result<Vec<SampleRow>> {
        // Fails if the worker ran out of IDs for the chunk.
        std::mem::replace(&mut chunk.id_check, Ok(()))?;
        if self.renumberings.len() <= chunk.worker {
            self.renumberings.resize_with(chunk.worker + 1, Renumbering::default);
        }
        let Self { samples, renumberings } = self;
        let renumbering = &mut renumberings[chunk.worker];
        // The worker started with empty tables for this chunk, so the IDs of its earlier chunks stand for nothing any
        // more.
        if chunk.has_new_tables {
            *renumbering = Renumbering::default();
        }
        // Add the chunk's new code locations and call chains. `renumbering` then has the merged ID for each ID of the
        // worker.
        samples.chains.add_part(&chunk.chains, &mut renumbering.chains);
        let RenumberedChains { places, chains } = &renumbering.chains;
        renumbering.tracks.extend(chunk.tracks.drain(..).map(|track| samples.tracks.intern(track)));
        let first_branch = samples.branches.len() as u32;
        for TakenBranch { from, to, flags } in chunk.branches.drain(..) {
            let from = places[from.0 as usize];
            let to = places[to.0 as usize];
            samples.branches.push(TakenBranch { from, to, flags });
        }
        for other_fields in &mut chunk.other_fields {
            if let Some(place) = &mut other_fields.addr_place {
                *place = places[place.0 as usize];
            }
        }
        samples.check()?;
        let mut rows = std::mem::take(&mut chunk.rows);
        for row in &mut rows {
            row.track = renumbering.tracks[row.track as usize];
            row.chain = row.chain.map(|chain| chains[chain.0 as usize]);
            row.branches = (first_branch + row.branches.0, first_branch + row.branches.1);
        }
        Ok(rows)
    }
}
