//! `--relocate`: code gets addresses of its own, where nothing else ever was, and each image is mapped once, as a
//! whole, like any library.
//!
//! perf follows what is mapped where at each moment; other readers do not. hotspot, for one, remembers names by file
//! and distance from the start of the *mapping*, whatever was mapped later: of an image that is mapped piece by piece
//! it shows the names of the pieces that it saw first. With this the ips, call chains and branches of samples are
//! rewritten: what ran at an address at that time decides where it is now. Programs that are mapped a second time
//! (node maps its builtins again, near its JIT code) are told of where they were first.

use crate::commands::inject::coverage::search::Search;
use crate::commands::inject::images::Images;
use crate::commands::inject::survey::input::Input;
use crate::formats::cursor::Endian;
use crate::formats::perf_data::{Edit, RawRecord, Recording, Records, kind};
use crate::model::process::{CpuMode, Processes};
use crate::model::{Addr, FrameAddr, Nanos, Pid};
use crate::pipeline::Job;
use crate::pipeline::recording::streams::RecordChunks;
use crate::resolve::address_space::AddressSpaces;
use crate::resolve::code_map::{self, SegmentId};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A word of a sample that gets another address.
#[derive(Debug, Clone, Copy)]
struct Move {
    /// The offset of the sample's record in the stream.
    record: u64,
    /// The offset of the word in the record.
    at: u32,
    to: To,
}

/// Where a word leads after the move.
#[derive(Debug, Clone, Copy)]
enum To {
    /// So far behind the start of JIT code, wherever that will be: at its end, for what a call there returns to.
    Code(SegmentId, u64),
    /// Where the same byte of the same file was mapped first.
    File(Addr),
}

/// All words that get another address, in the order of the stream.
#[derive(Debug, Default)]
pub(in crate::commands) struct Moves(Vec<Move>);

/// Finds them. Samples that `edits` replace are looked at as they will be.
pub(in crate::commands) fn find(
    search: Search<'_, '_>,
    recording: &Recording,
    pieces: &RecordChunks<'_>,
    edits: &[Edit],
    job: &Job,
) -> Moves {
    let again = &mapped_again(search.processes);
    let replaced: FxHashMap<u64, &Edit> =
        edits.iter().filter(|edit| edit.remove > 0).map(|edit| (edit.at, edit)).collect();
    let moves = job.pool.map(pieces.list(), |records| {
        let mut moves = Vec::new();
        for raw in records.filter(|raw| raw.kind == kind::SAMPLE) {
            let now =
                replaced.get(&raw.offset).and_then(|edit| Records::new(&edit.insert, raw.offset, raw.endian).next());
            of_sample((search, recording), again, &now.unwrap_or(raw), &mut moves);
        }
        moves
    });
    Moves(moves.into_iter().flatten().collect())
}

fn of_sample(
    (search, recording): (Search<'_, '_>, &Recording),
    again: &Again,
    raw: &RawRecord<'_>,
    moves: &mut Vec<Move>,
) {
    let Search { codes, spaces, injected, .. } = search;
    // Damaged samples are counted where touched code is looked for; they stay as they are.
    let (Ok(sample), Ok(words)) = (recording.sample(raw), recording.code_addresses(raw)) else { return };
    let Some((pid, _)) = sample.pid_tid.filter(|(pid, _)| !injected.contains(pid)) else { return };
    for word in words.into_iter().filter(|word| word.mode == CpuMode::User) {
        let addr = word.frame.raw();
        let hit = codes.lookup(pid, word.frame.for_lookup(), sample.time);
        // As perf does: a return address may be the first of code that has no call before it.
        let hit = hit.or_else(|| codes.lookup(pid, addr, sample.time));
        let to = match hit {
            Some(hit) => Some(To::Code(hit.segment, addr.0.wrapping_sub(codes.segment(hit.segment).start.0))),
            None => again.get(&pid).and_then(|list| first_place(spaces, list, pid, (word.frame, sample.time))),
        };
        moves.extend(to.map(|to| Move { record: raw.offset, at: word.at as u32, to }));
    }
}

/// By process: where files were mapped that had been mapped elsewhere before, and what is to be added to get there.
type Again = FxHashMap<Pid, Vec<(Range<u64>, u64)>>;

fn mapped_again(processes: &Processes) -> Again {
    let mut again = Again::default();
    for (&pid, process) in &processes.by_pid {
        let mut first: FxHashMap<&[u8], u64> = FxHashMap::default();
        for map in process.mappings.iter().filter(|map| map.executable && map.backing().is_file()) {
            let base = map.addr.0.wrapping_sub(map.pgoff);
            let first = *first.entry(&map.path).or_insert(base);
            if base != first {
                let range = map.addr.0..map.addr.0.saturating_add(map.len);
                again.entry(pid).or_default().push((range, first.wrapping_sub(base)));
            }
        }
    }
    again
}

/// Where an address leads in the first mapping of its file, if that is there at the time.
fn first_place(
    spaces: &AddressSpaces,
    again: &[(Range<u64>, u64)],
    pid: Pid,
    (frame, time): (FrameAddr, Option<Nanos>),
) -> Option<To> {
    let at = |addr: u64| spaces.lookup(pid, Addr(addr), time.unwrap_or(Nanos(u64::MAX)), CpuMode::User);
    let addr = frame.for_lookup().0;
    let inside = again.iter().filter(|(range, _)| range.contains(&addr));
    let shift = inside.map(|(_, shift)| *shift).find(|shift| {
        let places = at(addr).zip(at(addr.wrapping_add(*shift)));
        places.is_some_and(|(now, first)| (now.dso, now.offset) == (first.dso, first.offset))
    });
    Some(To::File(Addr(frame.raw().0.wrapping_add(shift?))))
}

impl Moves {
    /// Gives segments their new numbers. What has none stays where it is.
    pub(in crate::commands) fn renumber(&mut self, numbers: &[Option<SegmentId>]) {
        self.0.retain_mut(|of| match &mut of.to {
            To::File(_) => true,
            To::Code(segment, _) => {
                let number = numbers.get(segment.0 as usize).copied().flatten();
                *segment = number.unwrap_or(*segment);
                number.is_some()
            }
        });
    }

    /// Writes the new addresses into the samples: into what `edits` put in their place, or as further edits.
    pub(in crate::commands) fn apply(
        &self,
        input: &Input,
        codes: &code_map::Pieces<'_>,
        images: &Images,
        edits: &mut Vec<Edit>,
    ) {
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
                let Some(addr) = of.to.addr(codes, images) else { continue };
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

impl To {
    /// The address, if there is one: code may have got no place.
    fn addr(self, codes: &code_map::Pieces<'_>, images: &Images) -> Option<u64> {
        let (segment, distance) = match self {
            Self::File(addr) => return Some(addr.0),
            Self::Code(segment, distance) => (segment, distance),
        };
        let (image, offset) = images.place(codes, segment)?;
        Some(image.base?.0.wrapping_add(offset).wrapping_add(distance))
    }
}

/// An edit that puts a record in its own place.
fn as_it_is(input: &Input, record: u64) -> Option<Edit> {
    let bytes = input.records().get(usize::try_from(record.checked_sub(input.base())?).ok()?..)?;
    let raw = Records::new(bytes, record, input.recording.header.endian).next()?;
    Some(Edit { at: record, remove: raw.bytes.len() as u64, insert: raw.bytes.to_vec() })
}

#[cfg(test)]
mod tests {
    use crate::model::backing::{Backing, tests::those};

    #[test]
    fn files_may_be_mapped_again_elsewhere() {
        let expected = [
            "/lib/modules/6.1/kernel/fs/ext4.ko",
            "/usr/bin/node",
            "/usr/lib/libc.so.6 (deleted)",
            "/dev/shm/code",
            "/tmp/jit-77.dump",
            "/usr/lib/jit-helper.so",
            "/x/core.dump",
            "/tmp/perf-77.map",
            "/run/jitted-77.so",
            "/run/jitted-77-3.so",
        ];
        assert_eq!(those(|path| Backing::of(path).is_file()), expected);
    }
}
