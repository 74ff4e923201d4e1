//! Writes stacks, locations, functions and mappings into the dictionary of an outgoing message.

use super::draft::{Tables, Which};
use super::messages::{FunctionMessage, LineMessage, LocationMessage, MappingMessage, StackMessage, text};
use super::modules::{GNU_BUILD_ID, HTL_HASH};
use crate::analysis::function_files::FunctionFiles;
use crate::analysis::label;
use crate::analysis::mapped_pieces::{MappedPieces, Piece};
use crate::analysis::namesakes::system_name;
use crate::contract::rows::WrittenNames;
use crate::model::stacks::{Frame, FrameId, FrameKind, Profile, StackId, UNKNOWN};
use crate::runtimes::{RuntimeSet, frame_type};
use rustc_hash::FxHashMap;

/// The indices of stacks and locations that the current message already holds, for the current input.
#[derive(Debug, Default)]
pub(super) struct Places {
    pieces: MappedPieces,
    /// Mapping indices, by the number of the piece.
    mappings: Vec<i32>,
    /// Location indices, by the frames at the location: the innermost inlined call first, the function that contains
    /// the code last. Split by runtime, because a JIT frame's `profile.frame.type` depends on the process's runtimes.
    locations: FxHashMap<RuntimeSet, FxHashMap<Box<[FrameId]>, i32>>,
    stacks: FxHashMap<(StackId, RuntimeSet), i32>,
    files: FunctionFiles,
}

impl Places {
    /// The index of a stack in a process with these runtimes; 0 for an empty stack. Adds the stack if it is new.
    pub(super) fn stack(
        &mut self,
        (stack, runtimes): (Option<StackId>, RuntimeSet),
        (profile, names): (&Profile, &WrittenNames),
        tables: &mut Tables,
    ) -> i32 {
        let Some(id) = stack else { return 0 };
        if let Some(&number) = self.stacks.get(&(id, runtimes)) {
            return number;
        }
        let frames: Vec<FrameId> = profile.frames_up(stack).collect();
        let mut message = StackMessage::default();
        for place in frames.chunk_by(|inner, outer| is_expanded_in(profile, *inner, *outer)) {
            message.location_indices.push(self.location(place, runtimes, (profile, names), tables));
        }
        let number = tables.message(Which::Stacks, &message);
        self.stacks.insert((id, runtimes), number);
        number
    }

    /// Whether the message already holds a stack.
    pub(super) fn has(&self, stack: Option<StackId>, runtimes: RuntimeSet) -> bool {
        stack.is_none_or(|stack| self.stacks.contains_key(&(stack, runtimes)))
    }

    fn location(
        &mut self,
        place: &[FrameId],
        runtimes: RuntimeSet,
        (profile, names): (&Profile, &WrittenNames),
        tables: &mut Tables,
    ) -> i32 {
        let Some(frame) = place.last().map(|frame| profile.frame_of(*frame)) else { return 0 };
        let is_of_runtime = matches!(frame.kind, FrameKind::Jit | FrameKind::JitUnnamed);
        let runtimes = if is_of_runtime { runtimes } else { RuntimeSet::default() };
        if let Some(&number) = self.locations.get(&runtimes).and_then(|known| known.get(place)) {
            return number;
        }
        let mut new = Vec::new();
        let at = self.pieces.place(profile, frame, &mut |piece| new.push(piece));
        self.mappings.extend(new.iter().map(|piece| mapping(piece, tables)));
        let mapping_index = at.mapping.checked_sub(1).map_or(0, |at| self.mappings[at as usize]);
        let attribute_indices = attributes(profile, frame, runtimes, tables);
        self.files.update(profile);
        let lines = lines(place, (profile, names), &self.files, tables);
        let location = LocationMessage { mapping_index, address: at.address, lines, attribute_indices };
        let number = tables.message(Which::Locations, &location);
        self.locations.entry(runtimes).or_default().insert(place.into(), number);
        number
    }
}

/// Whether `inner` is a call that was inlined in `outer`.
fn is_expanded_in(profile: &Profile, inner: FrameId, outer: FrameId) -> bool {
    let (inner, outer) = (profile.frame_of(inner), profile.frame_of(outer));
    inner.kind == FrameKind::Inlined && (inner.module, inner.addr) == (outer.module, outer.addr)
}

/// The lines of a location. An unknown function gets none, unless the location would then say nothing at all.
fn lines(
    place: &[FrameId],
    (profile, names): (&Profile, &WrittenNames),
    files: &FunctionFiles,
    tables: &mut Tables,
) -> Vec<LineMessage> {
    let is_known = |frame: &Frame| {
        profile.name_of(frame.name) != UNKNOWN || place.len() > 1 || frame.module.is_none() && frame.addr.is_none()
    };
    let frames = place.iter().map(|frame| profile.frame_of(*frame)).filter(|frame| is_known(frame));
    let line = |frame: &Frame| {
        let own = profile.name_of(frame.name);
        let module = frame.module.map(|module| profile.name_of(module));
        let name = names.of(frame, own);
        let name_strindex = tables.text(label::function_name(&name, module).as_bytes());
        // The system name carries the start column if there is one, else the runtime's own name if that differs.
        let of_column = system_name(&String::from_utf8_lossy(&name), frame.start.line, frame.start.column);
        let system_name_strindex = match of_column {
            Some(text) => tables.text(text.as_bytes()),
            None if *name == *own => 0,
            None => tables.text(own),
        };
        let file = files.file_of(profile, frame);
        let filename_strindex = file.map_or(0, |file| tables.text(profile.name_of(file)));
        let start_line = frame.start.line.into();
        let function = FunctionMessage { name_strindex, system_name_strindex, filename_strindex, start_line };
        LineMessage { function_index: tables.message(Which::Functions, &function), line: frame.line.into() }
    };
    frames.map(line).collect()
}

/// The attributes for the kind of code and, for JIT code, the tier.
fn attributes(profile: &Profile, frame: &Frame, runtimes: RuntimeSet, tables: &mut Tables) -> Vec<i32> {
    let kind = match frame.kind {
        FrameKind::Kernel => Some("kernel"),
        FrameKind::User | FrameKind::NativeUnnamed => Some("native"),
        FrameKind::Jit => Some(frame_type(profile.name_of(frame.name), runtimes)),
        FrameKind::JitUnnamed => Some(frame_type(b"", runtimes)),
        // An inlined call whose caller is missing.
        FrameKind::Inlined => Some("inlined"),
        FrameKind::Anonymous | FrameKind::Unknown => None,
    };
    let kind = kind.map(|kind| tables.attribute("profile.frame.type", text(kind)));
    let tier = frame.tier.map(|tier| tables.attribute("jitgraft.tier", text(tier.name())));
    kind.into_iter().chain(tier).collect()
}

fn mapping(piece: &Piece<'_>, tables: &mut Tables) -> i32 {
    let build_id = piece.build.as_deref().map(|id| (GNU_BUILD_ID, String::from_utf8_lossy(id).into_owned()));
    let digits = |hash: [u8; 16]| format!("{:032x}", u128::from_be_bytes(hash));
    let htl_hash = piece.module.and_then(|module| module.htl_hash.into_option()).map(|hash| (HTL_HASH, digits(hash)));
    let ids = build_id.into_iter().chain(htl_hash);
    let range = piece.range;
    let message = MappingMessage {
        memory_start: range.map_or(0, |range| range.addr.0),
        memory_limit: range.map_or(0, |range| range.addr.0.saturating_add(range.len)),
        file_offset: range.map_or(0, |range| range.file_offset),
        filename_strindex: tables.text(piece.name),
        attribute_indices: ids.map(|(key, id)| tables.attribute(key, text(id))).collect(),
    };
    tables.message(Which::Mappings, &message)
}
