//! The addresses of code of the modules in memory, for formats whose mappings have addresses (pprof, OTLP): the
//! program's own file first, as readers want it.
//!
//! Frames of all processes share their places, so each piece of a file has one address here: where the first process
//! that mapped it had it.

use crate::model::about::{MappedRange, Module};
use crate::model::stacks::{Frame, NameId, Profile};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::ops::Range;

/// A place as a location names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The number of the mapping, counted from 1; 0 for none.
    pub mapping: u64,
    /// In the memory of the process that the mapping is of.
    pub address: u64,
}

/// A mapping as a profile lists it.
#[derive(Debug, Clone)]
pub struct Piece<'p> {
    /// The file, or what stands for one.
    pub name: &'p [u8],
    /// Its module.
    pub module: Option<&'p Module>,
    /// The build ID of the file, in hexadecimal digits, if it is known.
    pub build: Option<Cow<'p, [u8]>>,
    /// Its address range, if that is known.
    pub range: Option<MappedRange>,
}

/// A module, the build that its frames state, and the part of it; `None` where its mappings are unknown.
type PieceKey = (Option<NameId>, Option<NameId>, Option<usize>);

/// The mappings of a profile, numbered as they are requested.
#[derive(Debug, Default)]
pub struct MappedPieces {
    numbers: FxHashMap<PieceKey, u64>,
}

impl MappedPieces {
    /// With the program's own file; `add` takes each mapping that gets a number, in their order.
    pub fn new<'p>(profile: &'p Profile, add: &mut dyn FnMut(Piece<'p>)) -> Self {
        let mut pieces = Self::default();
        let program = profile.about.program_module();
        let is_main = |frame: &Frame| frame.module.map(|module| profile.name_of(module)) == program;
        let main = program.and_then(|_| profile.frames().map(|(_, frame)| frame).find(|frame| is_main(frame)));
        if let (Some(main), Some(program)) = (main, program) {
            let has_ranges = profile.about.modules.get(program).is_some_and(|module| !module.mapped.is_empty());
            pieces.number(profile, main, has_ranges.then_some(0), add);
        }
        pieces
    }

    /// The place of a frame.
    pub fn place<'p>(&mut self, profile: &'p Profile, frame: &Frame, add: &mut dyn FnMut(Piece<'p>)) -> Place {
        let addr = frame.addr.unwrap_or(0);
        let Some(module) = frame.module else { return Place { mapping: 0, address: addr } };
        match piece(profile, module, addr) {
            Some((piece, range)) => {
                let address = addr.wrapping_sub(range.file_offset).wrapping_add(range.addr.0);
                Place { mapping: self.number(profile, frame, Some(piece), add), address }
            }
            None => Place { mapping: self.number(profile, frame, None, add), address: addr },
        }
    }

    /// Removes all numbers.
    pub fn clear(&mut self) {
        self.numbers.clear();
    }

    fn number<'p>(
        &mut self,
        profile: &'p Profile,
        frame: &Frame,
        piece: Option<usize>,
        add: &mut dyn FnMut(Piece<'p>),
    ) -> u64 {
        let next = self.numbers.len() as u64 + 1;
        let number = *self.numbers.entry((frame.module, frame.build, piece)).or_insert(next);
        if number == next {
            let module = frame.module.and_then(|module| module_of(profile, module));
            let range = piece.and_then(|piece| module?.mapped.get(piece).copied());
            let name = frame.module.map_or(&[][..], |module| profile.name_of(module));
            add(Piece { name, module, build: profile.build_of(frame), range });
        }
        number
    }
}

/// The place in its file of an address in memory; of one that is outside of the mapping, itself.
pub fn place_in_file(address: u64, mapped: Range<u64>, file_offset: u64) -> u64 {
    if mapped.contains(&address) { file_offset.saturating_add(address - mapped.start) } else { address }
}

/// The first range that shows this place of the file.
fn piece(profile: &Profile, module: NameId, offset: u64) -> Option<(usize, MappedRange)> {
    let ranges = &module_of(profile, module)?.mapped;
    let shows = |range: &MappedRange| offset.checked_sub(range.file_offset).is_some_and(|at| at < range.len);
    ranges.iter().position(shows).map(|at| (at, ranges[at]))
}

fn module_of(profile: &Profile, module: NameId) -> Option<&Module> {
    profile.about.modules.get(profile.name_of(module))
}
