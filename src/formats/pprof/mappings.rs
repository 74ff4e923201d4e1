//! `Mapping`: where code of the modules was in memory, the program's own file first, as readers want it.
//!
//! Frames of all processes share their places, so each piece of a file has one address here: where the first process
//! that mapped it had it.

use super::messages::{MappingMessage, StringTable};
use crate::model::about::{MappedRange, Module};
use crate::model::stacks::{Frame, NameId, Profile};
use rustc_hash::FxHashMap;

/// A place as a location names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// 0 for none.
    pub(super) mapping_id: u64,
    /// In the memory of the process that the mapping is of.
    pub(super) address: u64,
}

/// The mappings of a profile.
pub(super) struct Mappings<'p> {
    profile: &'p Profile,
    /// By module and piece of it; `None` where nothing is known of what it mapped.
    ids: FxHashMap<(NameId, Option<usize>), u64>,
    list: Vec<MappingMessage>,
}

impl<'p> Mappings<'p> {
    /// With the program's own file.
    pub(super) fn new(profile: &'p Profile, strings: &mut StringTable) -> Self {
        let mut mappings = Self { profile, ids: FxHashMap::default(), list: Vec::new() };
        let program = profile.about.program_module();
        let modules = profile.frames().filter_map(|(_, frame)| frame.module);
        let main = modules.into_iter().find(|module| Some(profile.name_of(*module)) == program);
        if let (Some(main), Some(program)) = (main, program) {
            let has_ranges = profile.about.modules.get(program).is_some_and(|module| !module.mapped.is_empty());
            mappings.id(main, has_ranges.then_some(0), strings);
        }
        mappings
    }

    /// Where a frame is.
    pub(super) fn place(&mut self, frame: &Frame, strings: &mut StringTable) -> Place {
        let addr = frame.addr.unwrap_or(0);
        let Some(module) = frame.module else { return Place { mapping_id: 0, address: addr } };
        match self.piece(module, addr) {
            Some((piece, range)) => {
                let address = addr.wrapping_sub(range.file_offset).wrapping_add(range.addr.0);
                Place { mapping_id: self.id(module, Some(piece), strings), address }
            }
            None => Place { mapping_id: self.id(module, None, strings), address: addr },
        }
    }

    pub(super) fn into_list(self) -> Vec<MappingMessage> {
        self.list
    }

    /// The first range that shows this place of the file.
    fn piece(&self, module: NameId, offset: u64) -> Option<(usize, MappedRange)> {
        let ranges = &self.module(module)?.mapped;
        let shows = |range: &MappedRange| offset.checked_sub(range.file_offset).is_some_and(|at| at < range.len);
        ranges.iter().position(shows).map(|at| (at, ranges[at]))
    }

    fn module(&self, module: NameId) -> Option<&'p Module> {
        self.profile.about.modules.get(self.profile.name_of(module))
    }

    fn id(&mut self, module: NameId, piece: Option<usize>, strings: &mut StringTable) -> u64 {
        if let Some(&id) = self.ids.get(&(module, piece)) {
            return id;
        }
        let id = self.list.len() as u64 + 1;
        let known = self.module(module);
        let range = piece.and_then(|piece| known?.mapped.get(piece).copied());
        let build_id = known.and_then(|module| module.build_id);
        self.list.push(MappingMessage {
            id,
            memory_start: range.map_or(0, |range| range.addr.0),
            memory_limit: range.map_or(0, |range| range.addr.0.saturating_add(range.len)),
            file_offset: range.map_or(0, |range| range.file_offset),
            filename: strings.id_of(self.profile.name_of(module)),
            build_id: build_id.map_or(0, |id| strings.id(&id.to_string())),
            // Told that everything is known, readers do not look for the binaries.
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
        });
        self.ids.insert((module, piece), id);
        id
    }
}
