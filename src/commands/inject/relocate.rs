//! `--relocate`: code gets addresses of its own, where nothing else ever was, and each image is mapped once, as a
//! whole, like any library.
//!
//! perf follows what is mapped where at each moment; other readers do not. hotspot, for one, remembers names by file
//! and distance from the start of the *mapping*, whatever was mapped later: of an image that is mapped piece by piece
//! it shows the names of the pieces that it saw first. With this the ips, call chains and branches of samples are
//! rewritten: what ran at an address at that time decides where it is now.

use super::images::Images;
use super::input::Input;
use super::{Job, Pieces};
use crate::error::{Error, Result};
use crate::formats::cursor::Endian;
use crate::formats::perf_data::{Edit, RawRecord, Recording, Records, kind};
use crate::model::process::{CpuMode, Processes};
use crate::model::{Addr, Pid};
use crate::resolve::code_map::{self, CodeMap, SegmentId};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A word of a sample that gets another address.
#[derive(Debug, Clone, Copy)]
struct Move {
    /// The offset of the sample's record in the stream.
    record: u64,
    /// The offset of the word in the record.
    at: u32,
    /// What ran there.
    segment: SegmentId,
    /// How far behind the segment's start the address is: at its end, for what a call there returns to.
    distance: u64,
}

/// All words that get another address, in the order of the stream.
#[derive(Debug, Default)]
pub(super) struct Moves(Vec<Move>);

/// Finds them. Samples that `edits` replace are looked at as they will be.
pub(super) fn find(
    recording: &Recording,
    pieces: &Pieces<'_>,
    edits: &[Edit],
    (codes, without): (&CodeMap<'_>, &[Pid]),
    job: &Job,
) -> Moves {
    let replaced: FxHashMap<u64, &Edit> =
        edits.iter().filter(|edit| edit.remove > 0).map(|edit| (edit.at, edit)).collect();
    let moves = job.pool.map(pieces.list(), |records| {
        let mut moves = Vec::new();
        for raw in records.filter(|raw| raw.kind == kind::SAMPLE) {
            let now =
                replaced.get(&raw.offset).and_then(|edit| Records::new(&edit.insert, raw.offset, raw.endian).next());
            of_sample(recording, &now.unwrap_or(raw), (codes, without), &mut moves);
        }
        moves
    });
    Moves(moves.into_iter().flatten().collect())
}

fn of_sample(
    recording: &Recording,
    raw: &RawRecord<'_>,
    (codes, without): (&CodeMap<'_>, &[Pid]),
    moves: &mut Vec<Move>,
) {
    // Damaged samples are counted where touched code is looked for; they stay as they are.
    let (Ok(sample), Ok(words)) = (recording.sample(raw), recording.code_addresses(raw)) else { return };
    let Some((pid, _)) = sample.pid_tid.filter(|(pid, _)| !without.contains(pid)) else { return };
    for word in words.into_iter().filter(|word| word.mode == CpuMode::User) {
        let addr = word.frame.raw();
        let hit = codes.lookup(pid, word.frame.for_lookup(), sample.time);
        // As perf does: a return address may be the first of code that has no call before it.
        let Some(hit) = hit.or_else(|| codes.lookup(pid, addr, sample.time)) else { continue };
        let distance = addr.0.wrapping_sub(codes.segment(hit.segment).start.0);
        moves.push(Move { record: raw.offset, at: word.at as u32, segment: hit.segment, distance });
    }
}

impl Moves {
    /// Gives segments their new numbers. What has none stays where it is.
    pub(super) fn renumber(&mut self, numbers: &[Option<SegmentId>]) {
        self.0.retain_mut(|of| {
            let number = numbers.get(of.segment.0 as usize).copied().flatten();
            of.segment = number.unwrap_or(of.segment);
            number.is_some()
        });
    }

    /// Writes the new addresses into the samples: into what `edits` put in their place, or as further edits.
    pub(super) fn apply(&self, input: &Input, codes: &code_map::Pieces<'_>, images: &Images, edits: &mut Vec<Edit>) {
        let known: FxHashMap<u64, usize> = edits
            .iter()
            .enumerate()
            .filter(|(_, edit)| edit.remove > 0)
            .map(|(index, edit)| (edit.at, index))
            .collect();
        for moves in self.0.chunk_by(|a, b| a.record == b.record) {
            let record = moves[0].record;
            let index = known.get(&record).copied().or_else(|| {
                edits.push(as_it_is(input, record)?);
                Some(edits.len() - 1)
            });
            let Some(edit) = index.and_then(|index| edits.get_mut(index)) else { continue };
            for of in moves {
                let place = images.place(codes, of.segment);
                let Some((base, offset)) = place.and_then(|(image, offset)| Some((image.base?, offset))) else {
                    continue;
                };
                let addr = base.0.wrapping_add(offset).wrapping_add(of.distance);
                if let Some(word) = edit.insert.get_mut(of.at as usize..).and_then(|bytes| bytes.first_chunk_mut()) {
                    *word = match input.recording.header.endian {
                        Endian::Little => addr.to_le_bytes(),
                        Endian::Big => addr.to_be_bytes(),
                    };
                }
            }
        }
    }
}

/// An edit that puts a record in its own place.
fn as_it_is(input: &Input, record: u64) -> Option<Edit> {
    let bytes = input.records().get(usize::try_from(record.checked_sub(input.base())?).ok()?..)?;
    let raw = Records::new(bytes, record, input.recording.header.endian).next()?;
    Some(Edit { at: record, remove: raw.bytes.len() as u64, insert: raw.bytes.to_vec() })
}

/// Addresses where no process of the recording ever had anything.
#[derive(Debug)]
pub(super) struct Room {
    /// What is taken, by address.
    taken: Vec<Range<u64>>,
    at: u64,
    end: u64,
}

impl Room {
    pub(super) fn new(processes: &Processes, codes: &code_map::Pieces<'_>, is_64: bool) -> Self {
        let mappings = processes.by_pid.values().flat_map(|process| &process.mappings);
        let mappings = mappings.map(|map| map.addr.0..map.addr.0.saturating_add(map.len));
        let code = codes.segments().iter().map(|segment| segment.start.0..segment.end.0);
        let mut taken: Vec<Range<u64>> = mappings.chain(code).collect();
        taken.sort_unstable_by_key(|range| (range.start, range.end));
        // Above programs at fixed addresses and their heaps, and within what any 64-bit machine has for programs.
        let room = if is_64 { 1 << 36..1 << 38 } else { 1 << 28..3 << 30 };
        Self { taken, at: room.start, end: room.end }
    }

    /// So many bytes, in whole pages.
    pub(super) fn take(&mut self, len: u64) -> Result<Addr> {
        /// Of the machines with the largest.
        const PAGE: u64 = 1 << 16;
        let mut start = self.at;
        for taken in &self.taken {
            if taken.start < start.saturating_add(len) && start < taken.end {
                start = taken.end.min(self.end).next_multiple_of(PAGE);
            }
        }
        let end = start.saturating_add(len.min(self.end)).next_multiple_of(PAGE);
        if end > self.end {
            return Err(Error::new(format!("there is no room for {len} bytes of code between what the processes had")));
        }
        self.at = end;
        Ok(Addr(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_found_between_what_is_taken_and_each_time_elsewhere() {
        let taken = vec![0x400_0000..0x1000_4000, 0x1002_0000..0x1003_0001, 0x7fff_0000..u64::MAX];
        let mut room = Room { taken, at: 0x1000_0000, end: 0x1100_0000 };
        let mut take = |len| room.take(len).map(|addr| addr.0).ok();
        assert_eq!(take(0x1_0000), Some(0x1001_0000));
        assert_eq!(take(0x1_0001), Some(0x1004_0000), "not before the range that would be touched");
        assert_eq!(take(1), Some(0x1006_0000), "whole pages");
        assert_eq!(take(0x1000_0000), None);
        assert_eq!(take(u64::MAX), None);
    }
}
