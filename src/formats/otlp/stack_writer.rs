//! Writes stacks, locations, functions and mappings into the dictionary of an outgoing message.

use super::draft::{DictionaryTables, TableKind};
use super::messages::{FunctionMessage, LineMessage, LocationMessage, MappingMessage, StackMessage, text};
use super::modules::{GNU_BUILD_ID, HTL_HASH};
use crate::analysis::function_files::FunctionFiles;
use crate::analysis::label;
use crate::analysis::mapped_pieces::{MappedPiece, MappedPieces};
use crate::analysis::namesakes::{is_anonymous, system_name};
use crate::contract::rows::WrittenNames;
use crate::model::stacks::{Frame, FrameId, FrameKind, Profile, StackId, UNKNOWN};
use crate::runtimes::{RuntimeSet, frame_type};
use rustc_hash::FxHashMap;

/// Adds stacks and locations to the dictionary of the current message, and remembers their indices, so that each is
/// added once. The indices are only valid for one input and one message.
#[derive(Debug, Default)]
pub(super) struct StackWriter {
    pieces: MappedPieces,
    /// The index in the message of each mapping. `pieces` numbers the mapped pieces of modules from 1, so the mapping
    /// of piece `n` is element `n - 1`.
    mappings: Vec<i32>,
    /// Location indices, by the frames at the location: the innermost inlined call first, the function that contains
    /// the code last. Split by runtime, because a JIT frame's `profile.frame.type` depends on the process's runtimes.
    locations: FxHashMap<RuntimeSet, FxHashMap<Box<[FrameId]>, i32>>,
    stacks: FxHashMap<(StackId, RuntimeSet), i32>,
    files: FunctionFiles,
}

impl StackWriter {
    /// Forgets the indices in the previous message. The table of functions' files is kept: rebuilding it for each
    /// message would visit all frames of the profile again.
    pub(super) fn forget_message(&mut self) {
        *self = Self { files: std::mem::take(&mut self.files), ..Self::default() };
    }

    /// The index of a stack in a process with these runtimes; 0 for an empty stack. Adds the stack if it is new.
    pub(super) fn stack(
        &mut self,
        stack: Option<StackId>,
        runtimes: RuntimeSet,
        profile: &Profile,
        names: &WrittenNames,
        tables: &mut DictionaryTables,
    ) -> i32 {
        let Some(id) = stack else { return 0 };
        if let Some(&number) = self.stacks.get(&(id, runtimes)) {
            return number;
        }
        let frames: Vec<FrameId> = profile.frames_up(stack).collect();
        let mut message = StackMessage::default();
        // Inlined calls share a location with the function that contains their code.
        for location in frames.chunk_by(|inner, outer| is_inlined_in(profile, *inner, *outer)) {
            message.location_indices.push(self.location(location, runtimes, profile, names, tables));
        }
        let number = tables.message(TableKind::Stacks, &message);
        self.stacks.insert((id, runtimes), number);
        number
    }

    /// Whether this stack was already added to the current message.
    pub(super) fn has(&self, stack: Option<StackId>, runtimes: RuntimeSet) -> bool {
        stack.is_none_or(|stack| self.stacks.contains_key(&(stack, runtimes)))
    }

    /// The index of the location of these frames: the innermost inlined call first, the function that contains the code
    /// last. Adds the location if it is new.
    fn location(
        &mut self,
        frames: &[FrameId],
        runtimes: RuntimeSet,
        profile: &Profile,
        names: &WrittenNames,
        tables: &mut DictionaryTables,
    ) -> i32 {
        let Some(frame) = frames.last().map(|frame| profile.frame_of(*frame)) else { return 0 };
        // Only the locations of JIT frames depend on the runtimes. Any other frame has the same location for all
        // runtimes.
        let runtimes = if frame.kind.is_jit() { runtimes } else { RuntimeSet::default() };
        if let Some(&number) = self.locations.get(&runtimes).and_then(|known| known.get(frames)) {
            return number;
        }
        // `pieces` numbers the mapped pieces of modules from 1 in the order of their first use, and `place` reports the
        // new ones. A mapping is appended to `mappings` for each, so `mappings` has the same order.
        let mut new_pieces = Vec::new();
        let place = self.pieces.place(profile, frame, &mut |piece| new_pieces.push(piece));
        self.mappings.extend(new_pieces.iter().map(|piece| mapping(piece, tables)));
        // Mapping 0 stands for none.
        let mapping_index = if place.mapping == 0 { 0 } else { self.mappings[place.mapping as usize - 1] };
        let attribute_indices = attributes(profile, frame, runtimes, tables);
        // Frames that were added to the profile since the last call aren't in `files` yet.
        self.files.update(profile);
        let lines = lines(frames, profile, names, &self.files, tables);
        let location = LocationMessage { mapping_index, address: place.address, lines, attribute_indices };
        let number = tables.message(TableKind::Locations, &location);
        self.locations.entry(runtimes).or_default().insert(frames.into(), number);
        number
    }
}

/// Whether `inner` is a call that was inlined in `outer`.
fn is_inlined_in(profile: &Profile, inner: FrameId, outer: FrameId) -> bool {
    let (inner, outer) = (profile.frame_of(inner), profile.frame_of(outer));
    inner.kind == FrameKind::Inlined && (inner.module, inner.addr) == (outer.module, outer.addr)
}

/// The lines of a location. A function with an unknown name gets a line only if calls are inlined in the location, or
/// if the location has neither module nor address and would be empty without the line.
fn lines(
    frames: &[FrameId],
    profile: &Profile,
    names: &WrittenNames,
    files: &FunctionFiles,
    tables: &mut DictionaryTables,
) -> Vec<LineMessage> {
    let mut lines = Vec::with_capacity(frames.len());
    for id in frames {
        let frame = profile.frame_of(*id);
        let is_unknown = profile.name_of(frame.name) == UNKNOWN;
        let is_needed = frames.len() > 1 || frame.module.is_none() && frame.addr.is_none();
        if is_unknown && !is_needed {
            continue;
        }
        let function = function(frame, profile, names, files, tables);
        let function_index = tables.message(TableKind::Functions, &function);
        lines.push(LineMessage { function_index, line: frame.line.into(), column: 0 });
    }
    lines
}

/// The message for the function of a frame. Its name is the one that readers show: the runtime's name for the function,
/// or a more readable form of that. Its system name, a second name, preserves what the message has no field for. This
/// is the column where the function starts, in the form `NAME:LINE:COLUMN`, or the runtime's name if another name is
/// shown. The system name is empty if there is neither.
fn function(
    frame: &Frame,
    profile: &Profile,
    names: &WrittenNames,
    files: &FunctionFiles,
    tables: &mut DictionaryTables,
) -> FunctionMessage {
    let runtime_name = profile.name_of(frame.name);
    let module = frame.module.map(|module| profile.name_of(module));
    let shown_name = names.spell(frame, runtime_name);
    let name_strindex = tables.text(label::function_name(&shown_name, module).as_bytes());
    let shown_text = String::from_utf8_lossy(&shown_name);
    // `None` if the column is unknown.
    let name_with_column = system_name(&shown_text, frame.start.line, frame.start.column);
    let is_runtime_name = *shown_name == *runtime_name;
    let system_name_strindex = match name_with_column {
        // The column is the only difference between anonymous functions on the same line, so for these it is preferred
        // to the runtime's name.
        Some(with_column) if is_runtime_name || is_anonymous(&shown_text) => tables.text(with_column.as_bytes()),
        _ if is_runtime_name => 0,
        _ => tables.text(runtime_name),
    };
    let file = files.file_of(profile, frame);
    let filename_strindex = file.map_or(0, |file| tables.text(profile.name_of(file)));
    FunctionMessage { name_strindex, system_name_strindex, filename_strindex, start_line: frame.start.line.into() }
}

/// The attributes for the kind of code and, for JIT code, the tier.
fn attributes(profile: &Profile, frame: &Frame, runtimes: RuntimeSet, tables: &mut DictionaryTables) -> Vec<i32> {
    let kind = match frame.kind {
        FrameKind::Kernel => Some("kernel"),
        FrameKind::User | FrameKind::NativeUnnamed => Some("native"),
        FrameKind::Jit => Some(frame_type(profile.name_of(frame.name), runtimes)),
        FrameKind::JitUnnamed => Some(frame_type(b"", runtimes)),
        // `frame` is the outermost one of its location. It is only an inlined call if the stack lacks the function that
        // contains the code.
        FrameKind::Inlined => Some("inlined"),
        FrameKind::Anonymous | FrameKind::Unknown => None,
    };
    let mut attributes = Vec::new();
    if let Some(kind) = kind {
        attributes.push(tables.attribute("profile.frame.type", text(kind)));
    }
    if let Some(tier) = frame.tier {
        attributes.push(tables.attribute("jitgraft.tier", text(tier.name())));
    }
    attributes
}

/// The index of the mapping for a piece of a module. Adds the mapping if it is new.
fn mapping(piece: &MappedPiece<'_>, tables: &mut DictionaryTables) -> i32 {
    let filename_strindex = tables.text(piece.name);
    let mut attribute_indices = Vec::new();
    if let Some(id) = &piece.build {
        attribute_indices.push(tables.attribute(GNU_BUILD_ID, text(String::from_utf8_lossy(id))));
    }
    if let Some(hash) = piece.module.and_then(|module| module.htl_hash.into_option()) {
        let digits = format!("{:032x}", u128::from_be_bytes(hash));
        attribute_indices.push(tables.attribute(HTL_HASH, text(digits)));
    }
    let range = piece.range;
    let message = MappingMessage {
        memory_start: range.map_or(0, |range| range.addr.0),
        memory_limit: range.map_or(0, |range| range.addr.0.saturating_add(range.len)),
        file_offset: range.map_or(0, |range| range.file_offset),
        filename_strindex,
        attribute_indices,
    };
    tables.message(TableKind::Mappings, &message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_functions_are_not_looked_for_again_in_each_message() {
        let (mut profile, mut writer) = (Profile::new(), StackWriter::default());
        let (name, file) = (profile.name(b"f"), Some(profile.name(b"a.c")));
        let bare = Frame::new(name, FrameKind::User);
        profile.frame(Frame { file, line: 3, ..bare });
        writer.files.update(&profile);
        writer.stacks.insert((StackId(0), RuntimeSet::default()), 1);
        writer.forget_message();
        assert_eq!(writer.files.file_of(&profile, &bare), file);
        assert!(!writer.has(Some(StackId(0)), RuntimeSet::default()));
    }
}
