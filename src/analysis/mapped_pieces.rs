//! Converts file offsets of frames to memory addresses, for formats in which mappings and locations have addresses
//! (pprof, OTLP). The mapping of the program's own file comes first, as readers of these formats expect.
//!
//! In a [`Profile`], all processes share frames. Each mapped part of a file can therefore only have one address here:
//! the one in the first process that mapped it.

use crate::model::about::{MappedRange, Module};
use crate::model::stacks::{Frame, NameId, Profile};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The location of a frame as pprof and OTLP describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedAddress {
    /// The ID of the mapping that contains the location, starting at 1; 0 for none.
    pub mapping: u64,
    /// The memory address in the process to which the mapping belongs.
    pub address: u64,
}

/// A mapping as pprof and OTLP list it.
#[derive(Debug, Clone)]
pub struct MappedPiece<'p> {
    /// The path of the mapped file, or a name such as `[vdso]` if no file was mapped.
    pub name: &'p [u8],
    /// The module, if known.
    pub module: Option<&'p Module>,
    /// The file's build ID in hexadecimal digits, if known.
    pub build: Option<Cow<'p, [u8]>>,
    /// The range of memory addresses and where it starts in the file, if known.
    pub range: Option<MappedRange>,
}

/// Identifies a mapping by its module, the build ID that frames state, and the mapping's index within the module
/// (`None` for frames whose offset is in no known mapping).
type PieceKey = (Option<NameId>, Option<NameId>, Option<usize>);

/// The mappings of a profile. Each gets an ID when it is first used.
#[derive(Debug, Default)]
pub struct MappedPieces {
    /// The IDs of the mappings used so far, counted from 1.
    numbers: FxHashMap<PieceKey, u64>,
    /// For each module used so far, an index for finding the mapping that contains a file offset.
    range_indexes: FxHashMap<NameId, RangeIndex>,
}

/// An index of a module's mappings by file offset. Each entry has a file offset and the mapping, by its index within
/// the module, that contains the offsets from there up to the next entry (`None`: no mapping does). If mappings
/// overlap, the first one counts.
type RangeIndex = Vec<(u64, Option<usize>)>;

impl MappedPieces {
    /// Prepares for assigning IDs to mappings. If the program's own file is known, its mapping gets ID 1, and is passed
    /// to `add`.
    pub fn new<'p>(profile: &'p Profile, add: &mut dyn FnMut(MappedPiece<'p>)) -> Self {
        let mut pieces = Self::default();
        let Some(program) = profile.about.program_module() else { return pieces };
        // Frames of the program that state different build IDs are in different mappings. The mapping of the first such
        // frame gets ID 1.
        for (_, frame) in profile.frames() {
            if frame.module.is_some_and(|module| profile.name_of(module) == program) {
                let has_ranges = profile.about.modules.get(program).is_some_and(|module| !module.mapped.is_empty());
                // The first mapped range of the program's file, if it is known which ranges were mapped.
                let first_range = if has_ranges { Some(0) } else { None };
                pieces.number(profile, frame, first_range, add);
                break;
            }
        }
        pieces
    }

    /// The location of a frame. If this is the first frame in its mapping, the mapping gets an ID, and is passed to
    /// `add`.
    pub fn place<'p>(
        &mut self,
        profile: &'p Profile,
        frame: &Frame,
        add: &mut dyn FnMut(MappedPiece<'p>),
    ) -> MappedAddress {
        let addr = frame.addr.unwrap_or(0);
        let Some(module) = frame.module else { return MappedAddress { mapping: 0, address: addr } };
        match self.find_piece(profile, module, addr) {
            // In the profile, the frame's address is its offset in the file; pprof and OTLP want the address in memory.
            Some((piece, range)) => {
                let address = addr.wrapping_sub(range.file_offset).wrapping_add(range.addr.0);
                MappedAddress { mapping: self.number(profile, frame, Some(piece), add), address }
            }
            None => MappedAddress { mapping: self.number(profile, frame, None, add), address: addr },
        }
    }

    /// Forgets which mappings were used, so that their IDs start at 1 again.
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.range_indexes.clear();
    }

    /// Finds the first mapping of a module that contains this file offset: its index within the module and its range.
    fn find_piece(&mut self, profile: &Profile, module: NameId, offset: u64) -> Option<(usize, MappedRange)> {
        let ranges = &find_module(profile, module)?.mapped;
        let range_index = self.range_indexes.entry(module).or_insert_with(|| build_range_index(ranges));
        let after = range_index.partition_point(|(start, _)| *start <= offset);
        let piece = range_index[..after].last()?.1?;
        Some((piece, *ranges.get(piece)?))
    }

    /// The ID of the mapping with index `piece` in the module of a frame (`None` if the mapping is unknown). Calls
    /// `add` with the mapping when it gets its ID.
    fn number<'p>(
        &mut self,
        profile: &'p Profile,
        frame: &Frame,
        piece: Option<usize>,
        add: &mut dyn FnMut(MappedPiece<'p>),
    ) -> u64 {
        let next = self.numbers.len() as u64 + 1;
        let number = *self.numbers.entry((frame.module, frame.build, piece)).or_insert(next);
        if number == next {
            let module = frame.module.and_then(|module| find_module(profile, module));
            let range = piece.and_then(|piece| module?.mapped.get(piece).copied());
            let name = frame.module.map_or(&[][..], |module| profile.name_of(module));
            add(MappedPiece { name, module, build: profile.build_of(frame), range });
        }
        number
    }
}

/// Converts a memory address to a file offset. Addresses outside of the mapped range are returned unchanged.
pub fn place_in_file(address: u64, mapped: Range<u64>, file_offset: u64) -> u64 {
    if mapped.contains(&address) { file_offset.saturating_add(address - mapped.start) } else { address }
}

/// Builds the index: for each file offset at which a range starts or ends, the first of the ranges that contain this
/// offset.
fn build_range_index(ranges: &[MappedRange]) -> RangeIndex {
    let mut starts: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut ends: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (number, range) in ranges.iter().enumerate().filter(|(_, range)| range.len > 0) {
        starts.entry(range.file_offset).or_default().push(number);
        ends.entry(range.file_offset.saturating_add(range.len)).or_default().push(number);
    }
    let offsets: BTreeSet<u64> = starts.keys().chain(ends.keys()).copied().collect();
    let mut index = RangeIndex::new();
    // The ranges that contain the current offset.
    let mut open: BTreeSet<usize> = BTreeSet::new();
    for offset in offsets {
        for number in ends.get(&offset).into_iter().flatten() {
            open.remove(number);
        }
        open.extend(starts.get(&offset).into_iter().flatten());
        index.push((offset, open.first().copied()));
    }
    index
}

fn find_module(profile: &Profile, module: NameId) -> Option<&Module> {
    profile.about.modules.get(profile.name_of(module))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Addr, Nanos, Pid};

    #[test]
    fn the_first_range_that_shows_a_place_is_found() {
        let range =
            |file_offset, len| MappedRange { pid: Pid(1), time: Nanos(0), addr: Addr(0x1000), len, file_offset };
        let ranges = [range(10, 10), range(5, 30), range(0, 6), range(50, 0), range(u64::MAX - 1, 9)];
        let index = build_range_index(&ranges);
        let shows = |offset: u64| {
            let behind = index.partition_point(|(start, _)| *start <= offset);
            index[..behind].last().and_then(|(_, at)| *at)
        };
        for offset in (0..60).chain([u64::MAX - 2, u64::MAX - 1]) {
            let first =
                ranges.iter().position(|range| offset.checked_sub(range.file_offset).is_some_and(|at| at < range.len));
            assert_eq!(shows(offset), first, "{offset}");
        }
    }
}
