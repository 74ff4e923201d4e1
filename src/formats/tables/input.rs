//! The table cells that rows of one input have in common, such as the names of functions and threads. Every text is
//! converted only once.

use crate::analysis::category::Category;
use crate::analysis::label;
use crate::contract::rows::{RowOrigin, WrittenNames};
use crate::model::interner::Interner;
use crate::model::mapping_kind::base_name;
use crate::model::recorded::{Labels, Recording, micros};
use crate::model::stacks::{Frame, FrameKind, Profile, StackId, TRUNCATED, Track, TrackId, UNKNOWN};
use parquet::data_type::ByteArray;
use sha1::{Digest, Sha1};
use std::sync::Arc;

/// The index of a text in [`TextList`].
pub(super) type TextNo = u32;

/// The distinct texts of an input.
pub(super) type TextList = Interner<Box<str>, TextNo>;

/// The cells of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameCells {
    pub(super) function: TextNo,
    pub(super) module: Option<TextNo>,
    pub(super) build_id: Option<TextNo>,
    pub(super) file: Option<TextNo>,
    pub(super) line: Option<i32>,
    /// Where the function starts. It distinguishes functions of the same name and module.
    pub(super) start_file: Option<TextNo>,
    pub(super) start_line: Option<i32>,
    pub(super) start_column: Option<i32>,
    pub(super) kind: TextNo,
    pub(super) tier: Option<TextNo>,
    /// The frame's address. Kernel addresses exceed the column's signed type and become negative.
    pub(super) address: Option<i64>,
    /// True if the function is unknown.
    pub(super) is_unnamed: bool,
    /// True if this isn't a frame but marks that the stack's outermost frames are missing. It doesn't count as a frame
    /// of the stack.
    pub(super) is_truncation: bool,
}

/// The cells of a thread.
#[derive(Debug, Clone)]
pub(super) struct TrackCells {
    pub(super) comm: Option<TextNo>,
    pub(super) pid: Option<i32>,
    pub(super) tid: Option<i32>,
    pub(super) cpu: Option<i32>,
    pub(super) labels: Labels,
}

/// The cells of a stack.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StackCells {
    /// The value of the column `stack_id`: see [`TableInput::hash_stack`]. 0 for the empty stack.
    pub(super) id: i64,
    /// The number of frames.
    pub(super) depth: i32,
    /// The number of frames whose function is unknown.
    pub(super) unnamed: i32,
    /// The stack of the innermost frame's caller.
    caller: Option<StackId>,
    /// Index of the innermost frame in [`TableInput::frames`].
    frame: u32,
}

/// The cells of an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventCells {
    pub(super) name: TextNo,
    pub(super) unit: TextNo,
}

/// The cells of a recording, the same in each of its rows.
#[derive(Debug, Default)]
pub(super) struct RecordingCells {
    pub(super) input: Option<TextNo>,
    pub(super) host: Option<TextNo>,
    pub(super) arch: Option<TextNo>,
    pub(super) kernel: Option<TextNo>,
    pub(super) command: Option<TextNo>,
    /// The whole recording. Columns that aren't text are computed from it.
    pub(super) facts: Recording,
}

/// Everything to which the rows of an input refer, so that they can be written when their profile no longer exists.
#[derive(Debug)]
pub(super) struct TableInput {
    pub(super) texts: TextList,
    /// The texts in the form that the Parquet library takes, with the same indices as in `texts`.
    byte_arrays: Vec<ByteArray>,
    pub(super) recording: RecordingCells,
    frames: Vec<FrameCells>,
    /// For each frame of the profile: its index in `frames` plus one, or 0 if no row contained it yet.
    frame_numbers: Vec<u32>,
    /// For each stack of the profile: its cells. For a stack that no row contained yet, these are placeholders, in
    /// which [`StackCells::id`] is 0.
    stacks: Vec<StackCells>,
    tracks: Vec<TrackCells>,
    /// The labels of the recording, which all its rows get.
    labels: Labels,
    pub(super) events: Vec<EventCells>,
    names: WrittenNames,
}

impl TableInput {
    /// Prepares the cells of an input, still without any threads, stacks and frames. [`Self::extend`] adds those.
    pub(super) fn new(origin: &RowOrigin, profile: &Profile) -> Self {
        let mut texts = TextList::default();
        let recording = recording_cells(&origin.recording, &mut texts);
        Self {
            texts,
            byte_arrays: Vec::new(),
            recording,
            frames: Vec::new(),
            frame_numbers: Vec::new(),
            stacks: Vec::new(),
            tracks: Vec::new(),
            labels: origin.labels.clone(),
            events: Vec::new(),
            names: WrittenNames::new(origin.jit_names, profile),
        }
    }

    /// Adds the profile's new threads and events, and the stacks and frames of its rows that weren't added before.
    pub(super) fn extend(&mut self, profile: &Profile) {
        self.frame_numbers.resize(profile.frame_count(), 0);
        self.stacks.resize(profile.stack_count(), StackCells::default());
        // Threads and events are only appended to a profile from one part to the next, so those after the known ones
        // are new.
        for track in &profile.tracks()[self.tracks.len()..] {
            let cells = self.track_cells(track);
            self.tracks.push(cells);
        }
        for series in &profile.series[self.events.len().min(profile.series.len())..] {
            let (name, unit) = (self.texts.number(&series.name), self.texts.number(series.unit.name()));
            self.events.push(EventCells { name, unit });
        }
        for series in &profile.series {
            for stack in series.rows.iter().chain(&series.negative).filter_map(|row| row.stack) {
                self.add_stack(profile, stack);
            }
        }
        let new_texts = &self.texts.items()[self.byte_arrays.len()..];
        self.byte_arrays.extend(new_texts.iter().map(|text| ByteArray::from(&**text)));
    }

    /// Adds a stack, its callers and their frames.
    fn add_stack(&mut self, profile: &Profile, stack: StackId) {
        // Walk up to the nearest caller whose cells are known (their `id` isn't 0). Then add the new stacks, the
        // outermost first, because the cells of a stack depend on those of its caller.
        let mut new_stacks = Vec::new();
        let mut next = Some(stack);
        while let Some(stack) = next
            && self.stacks[stack.index()].id == 0
        {
            new_stacks.push(stack);
            (next, _) = profile.stack_of(stack);
        }
        for stack in new_stacks.into_iter().rev() {
            let (caller, frame) = profile.stack_of(stack);
            // The number of a frame is the index of its cells plus one, or 0 if it has none yet.
            if self.frame_numbers[frame.index()] == 0 {
                let cells = self.frame_cells(profile, profile.frame_of(frame));
                self.frames.push(cells);
                self.frame_numbers[frame.index()] = self.frames.len() as u32;
            }
            let frame_index = self.frame_numbers[frame.index()] - 1;
            let (cells, caller_cells) = (self.frames[frame_index as usize], self.stack(caller));
            self.stacks[stack.index()] = StackCells {
                id: self.hash_stack(caller_cells.id, &cells),
                depth: caller_cells.depth + i32::from(!cells.is_truncation),
                unnamed: caller_cells.unnamed + i32::from(cells.is_unnamed),
                caller,
                frame: frame_index,
            };
        }
    }

    /// Computes the ID of a stack from its caller's ID (0 if there is no caller) and the cells of its innermost frame.
    /// Equal functions give the same ID in all files: the first eight bytes of a SHA-1, made positive (and not 0, which
    /// is the ID of the empty stack). The hashed bytes are the caller's ID, the function, a zero byte and the module.
    /// If anything is known about where the function starts, a zero byte and the file follow, and the line and the
    /// column as four bytes each.
    fn hash_stack(&self, caller: i64, frame: &FrameCells) -> i64 {
        let text = |number: TextNo| &*self.texts.items()[number as usize];
        let mut hash = Sha1::new();
        hash.update(caller.to_be_bytes());
        hash.update(text(frame.function));
        hash.update([0]);
        hash.update(frame.module.map_or("", text));
        if frame.start_file.is_some() || frame.start_line.is_some() || frame.start_column.is_some() {
            hash.update([0]);
            hash.update(frame.start_file.map_or("", text));
            hash.update(frame.start_line.unwrap_or(0).to_be_bytes());
            hash.update(frame.start_column.unwrap_or(0).to_be_bytes());
        }
        let hash = hash.finalize();
        hash.first_chunk().map_or(1, |bytes| i64::from_be_bytes(*bytes)).saturating_abs().max(1)
    }

    /// The cells of a stack. An empty stack has ID 0.
    fn stack(&self, stack: Option<StackId>) -> StackCells {
        stack.map_or_else(StackCells::default, |stack| self.stacks[stack.index()])
    }

    /// The number of stacks in the profile, including those that no row has had yet.
    pub(super) fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    pub(super) fn track(&self, id: TrackId) -> &TrackCells {
        &self.tracks[id.index()]
    }

    /// The innermost frame of a stack; `None` for an empty stack.
    pub(super) fn leaf(&self, stack: Option<StackId>) -> Option<&FrameCells> {
        stack.map(|stack| &self.frames[self.stacks[stack.index()].frame as usize])
    }

    /// A text for the Parquet library. Only counts a reference; the bytes aren't copied.
    pub(super) fn byte_array(&self, text: TextNo) -> ByteArray {
        self.byte_arrays[text as usize].clone()
    }

    /// Converts a frame to cells. Adds the texts of the cells to `texts`.
    fn frame_cells(&mut self, profile: &Profile, frame: &Frame) -> FrameCells {
        let name = profile.name_of(frame.name);
        let module = frame.module.map(|module| profile.name_of(module));
        let function = self.texts.number(&label::function_name(&self.names.spell(frame, name), module));
        let build_id = profile.build_of(frame);
        let place = profile.place_of(frame);
        let texts = &mut self.texts;
        FrameCells {
            function,
            module: module.map(|module| texts.number(&String::from_utf8_lossy(written_module(frame.kind, module)))),
            build_id: build_id.map(|id| texts.number(&String::from_utf8_lossy(&id))),
            file: place.map(|(file, _)| texts.number(&String::from_utf8_lossy(profile.name_of(file)))),
            line: place.and_then(|(_, line)| known(line)),
            start_file: frame.start.file.map(|file| texts.number(&String::from_utf8_lossy(profile.name_of(file)))),
            start_line: known(frame.start.line),
            start_column: known(frame.start.column),
            // The tier has a column of its own, so it is left out of the kind.
            kind: texts.number(Category::from_frame(frame).without_tier().name()),
            tier: frame.tier.map(|tier| texts.number(tier.name())),
            address: frame.addr.map(u64::cast_signed),
            is_unnamed: name == UNKNOWN,
            is_truncation: name == TRUNCATED,
        }
    }

    /// The values of the columns that describe a thread.
    fn track_cells(&mut self, track: &Track) -> TrackCells {
        let comm = String::from_utf8_lossy(&track.comm);
        TrackCells {
            comm: (!comm.is_empty()).then(|| self.texts.number(&comm)),
            pid: track.pid.map(|pid| pid.0),
            tid: track.tid.map(|tid| tid.0),
            cpu: track.cpu.and_then(|cpu| i32::try_from(cpu).ok()),
            labels: merge_labels(&self.labels, &track.labels),
        }
    }
}

/// A line or column as a cell; zero means that it is unknown.
fn known(number: u32) -> Option<i32> {
    i32::try_from(number).ok().filter(|number| *number != 0)
}

/// The module name to write. The module of JIT code is its jitdump, whose directory depends on the run and the machine.
/// So the directory is left out; otherwise, rows of different recordings couldn't be compared.
fn written_module(kind: FrameKind, module: &[u8]) -> &[u8] {
    match kind {
        FrameKind::Jit => base_name(module),
        _ => module,
    }
}

/// The labels of a recording and a row together. The row's value wins if both have a label.
fn merge_labels(of_recording: &Labels, of_row: &Labels) -> Labels {
    match (of_recording, of_row) {
        (Some(of_recording), Some(of_row)) => {
            let mut labels = (**of_recording).clone();
            labels.extend(of_row.iter().map(|(key, value)| (key.clone(), value.clone())));
            Some(Arc::new(labels))
        }
        (Some(labels), None) | (None, Some(labels)) => Some(labels.clone()),
        (None, None) => None,
    }
}

/// The values of the columns that describe the recording.
fn recording_cells(recording: &Recording, texts: &mut TextList) -> RecordingCells {
    let Recording { input, host, arch, kernel, command, .. } = recording;
    let mut number = |text: &Option<Box<str>>| text.as_ref().map(|text| texts.number(&**text));
    RecordingCells {
        input: number(input),
        host: number(host),
        arch: number(arch),
        kernel: number(kernel),
        command: number(command),
        facts: recording.clone(),
    }
}

/// A sample, or the sum of several samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableRow {
    /// An index into the input's events.
    pub(super) event: usize,
    pub(super) track: TrackId,
    pub(super) stack: Option<StackId>,
    pub(super) weight: i64,
    pub(super) count: i64,
    /// Nanoseconds on the recording's clock. Negative if the row is for a time bucket that begins before the clock's
    /// zero, since buckets are aligned to the wall clock.
    pub(super) time: Option<i64>,
}

/// A row with the input that it belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowCells<'a> {
    pub(super) input: &'a TableInput,
    pub(super) row: &'a TableRow,
}

impl<'a> RowCells<'a> {
    pub(super) fn event(&self) -> EventCells {
        self.input.events[self.row.event]
    }

    pub(super) fn track(&self) -> &'a TrackCells {
        self.input.track(self.row.track)
    }

    pub(super) fn stack(&self) -> StackCells {
        self.input.stack(self.row.stack)
    }

    pub(super) fn leaf(&self) -> Option<&'a FrameCells> {
        self.input.leaf(self.row.stack)
    }

    /// Wall-clock time in microseconds since 1970, if known.
    pub(super) fn wall_time(&self) -> Option<i64> {
        let epoch = self.input.recording.facts.epoch?;
        micros(i128::from(epoch) + i128::from(self.row.time?))
    }

    /// The frames of the stack, innermost first.
    pub(super) fn frames_up(&self) -> impl Iterator<Item = &'a FrameCells> + use<'a> {
        let input = self.input;
        let stacks = std::iter::successors(self.row.stack, move |stack| input.stacks[stack.index()].caller);
        stacks.map(move |stack| &input.frames[input.stacks[stack.index()].frame as usize])
    }
}
