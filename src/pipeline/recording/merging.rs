//! Merges the samples that several workers have read, chunk by chunk in the order of the file.

use super::samples::{SampleChunk, SampleRow, Samples, TakenBranch};
use crate::error::Result;
use crate::model::about;
use crate::model::chains::RenumberedChains;

/// Merges the chunks of all workers into one set of samples.
#[derive(Debug)]
pub(super) struct Merging {
    pub(super) samples: Samples,
    /// One for each worker, by its index.
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
        self.samples.sampled = about::join_extents(self.samples.sampled, chunk.sampled);
        self.samples.other_fields.append(&mut chunk.other_fields);
        self.samples.skipped.append(chunk.skipped);
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
