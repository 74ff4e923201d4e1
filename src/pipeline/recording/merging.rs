//! Puts what several threads have read together, chunk by chunk in the order of the file.

use super::locator::FrameLocation;
use super::samples::{SampleRow, Samples, Taken, TakenRows};
use crate::error::Result;
use crate::model::about;
use crate::model::chains::{ChainId, PlaceId};
use crate::model::stacks::Track;

/// The part of a thread has read: rows with the thread's own numbers, and what these mean, as far as its chunks before
/// have not reported.
#[derive(Debug)]
pub(super) struct SampleChunk {
    /// The thread.
    pub(super) reader: usize,
    /// True if its numbers begin with this chunk.
    pub(super) begins: bool,
    /// True if everything got a number of its own.
    pub(super) checked: Result<()>,
    pub(super) taken: TakenRows,
    pub(super) places: Vec<FrameLocation>,
    pub(super) chains: Vec<(Option<ChainId>, PlaceId)>,
    pub(super) tracks: Vec<Track>,
}

/// Puts the chunks of all threads together.
#[derive(Debug)]
pub(super) struct Merging {
    pub(super) samples: Samples,
    readers: Vec<Renumbering>,
}

/// The numbers that a thread's have in the whole.
#[derive(Debug, Default)]
struct Renumbering {
    places: Vec<PlaceId>,
    chains: Vec<ChainId>,
    tracks: Vec<u32>,
}

impl Merging {
    /// Chunks are added to these samples.
    pub(super) fn into(samples: Samples) -> Self {
        Self { samples, readers: Vec::new() }
    }

    /// Takes over a later chunk.
    pub(super) fn append(&mut self, mut chunk: SampleChunk) -> Result<()> {
        let rows = self.translate(&mut chunk)?;
        rows.into_iter().for_each(|row| self.samples.push(row));
        self.samples.sampled = about::joined(self.samples.sampled, chunk.taken.sampled);
        self.samples.beside.append(&mut chunk.taken.beside);
        self.samples.skipped.append(chunk.taken.skipped);
        Ok(())
    }

    /// Takes the rows out of a later chunk, with the numbers that their stacks, threads and branches have here.
    pub(super) fn translate(&mut self, chunk: &mut SampleChunk) -> Result<Vec<SampleRow>> {
        std::mem::replace(&mut chunk.checked, Ok(()))?;
        if self.readers.len() <= chunk.reader {
            self.readers.resize_with(chunk.reader + 1, Renumbering::default);
        }
        let Self { samples, readers } = self;
        let numbers = &mut readers[chunk.reader];
        if chunk.begins {
            *numbers = Renumbering::default();
        }
        numbers.places.extend(chunk.places.iter().map(|&place| samples.chains.place(place)));
        numbers.chains.reserve(chunk.chains.len());
        for &(caller, place) in &chunk.chains {
            let caller = caller.map(|caller| numbers.chains[caller.0 as usize]);
            numbers.chains.push(samples.chains.chain(caller, numbers.places[place.0 as usize]));
        }
        numbers.tracks.extend(chunk.tracks.drain(..).map(|track| samples.tracks.intern(track)));
        let before = samples.branches.len() as u32;
        let renumbered = |Taken { from, to, flags }: Taken| {
            let [from, to] = [from, to].map(|place| numbers.places[place.0 as usize]);
            Taken { from, to, flags }
        };
        for place in chunk.taken.beside.iter_mut().filter_map(|beside| beside.addr_place.as_mut()) {
            *place = numbers.places[place.0 as usize];
        }
        samples.branches.extend(chunk.taken.branches.drain(..).map(renumbered));
        samples.check()?;
        let mut rows = std::mem::take(&mut chunk.taken.rows);
        for row in &mut rows {
            row.track = numbers.tracks[row.track as usize];
            row.chain = row.chain.map(|chain| numbers.chains[chain.0 as usize]);
            row.branches = (before + row.branches.0, before + row.branches.1);
        }
        Ok(rows)
    }
}
