//! Merges the samples that several workers have read, chunk by chunk in the order of the file.

use super::frame_location::FrameLocation;
use super::samples::{SampleRow, Samples, TakenBranch, TakenRows};
use crate::error::Result;
use crate::model::about;
use crate::model::chains::{ChainsPart, RenumberedChains};
use crate::model::stacks::Track;

/// One worker's chunk: its samples, and the table entries that are new since its previous chunk.
#[derive(Debug)]
pub(super) struct SampleChunk {
    /// The index of the worker that read the chunk.
    pub(super) worker: usize,
    /// True if the worker started new tables for this chunk, so that its IDs start from 0 again.
    pub(super) has_new_tables: bool,
    /// An error if the worker ran out of IDs.
    pub(super) id_check: Result<()>,
    /// The samples. Their IDs of chains and threads are those of the worker's tables. Their ranges of branches refer to
    /// the chunk's own branches.
    pub(super) taken: TakenRows,
    /// The call chains and code locations that are new since the worker's previous chunk.
    pub(super) chains: ChainsPart<FrameLocation>,
    /// The threads that are new since the worker's previous chunk.
    pub(super) tracks: Vec<Track>,
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

    /// Adds the next chunk, in the order of the file.
    pub(super) fn append(&mut self, mut chunk: SampleChunk) -> Result<()> {
        for row in self.translate(&mut chunk)? {
            self.samples.push(row);
        }
        self.samples.sampled = about::join_extents(self.samples.sampled, chunk.taken.sampled);
        self.samples.other_fields.append(&mut chunk.taken.other_fields);
        self.samples.skipped.append(chunk.taken.skipped);
        Ok(())
    }

    /// Takes the rows out of the next chunk, and replaces its worker's IDs of call chains, threads and branches by
    /// merged ones. The branches themselves are moved to the merged samples; the other fields stay in the chunk. Fails
    /// if there are more chains, threads or branches than IDs.
    pub(super) fn translate(&mut self, chunk: &mut SampleChunk) -> Result<Vec<SampleRow>> {
        std::mem::replace(&mut chunk.id_check, Ok(()))?;
        if self.renumberings.len() <= chunk.worker {
            self.renumberings.resize_with(chunk.worker + 1, Renumbering::default);
        }
        let Self { samples, renumberings } = self;
        let renumbering = &mut renumberings[chunk.worker];
        if chunk.has_new_tables {
            *renumbering = Renumbering::default();
        }
        samples.chains.add_part(&chunk.chains, &mut renumbering.chains);
        let RenumberedChains { places, chains } = &renumbering.chains;
        renumbering.tracks.extend(chunk.tracks.drain(..).map(|track| samples.tracks.intern(track)));
        let first_branch = samples.branches.len() as u32;
        for TakenBranch { from, to, flags } in chunk.taken.branches.drain(..) {
            let from = places[from.0 as usize];
            let to = places[to.0 as usize];
            samples.branches.push(TakenBranch { from, to, flags });
        }
        for other_fields in &mut chunk.taken.other_fields {
            if let Some(place) = &mut other_fields.addr_place {
                *place = places[place.0 as usize];
            }
        }
        samples.check()?;
        let mut rows = std::mem::take(&mut chunk.taken.rows);
        for row in &mut rows {
            row.track = renumbering.tracks[row.track as usize];
            row.chain = row.chain.map(|chain| chains[chain.0 as usize]);
            row.branches = (first_branch + row.branches.0, first_branch + row.branches.1);
        }
        Ok(rows)
    }
}
