//! The common cells of the rows of one input, with every name spelled once.

use crate::analysis::category::Category;
use crate::analysis::label;
use crate::contract::rows::{RowOrigin, WrittenNames};
use crate::model::backing::base_name;
use crate::model::interner::Interner;
use crate::model::recorded::{Labels, Recording, micros};
use crate::model::stacks::{Frame, FrameKind, Profile, StackId, TRUNCATED, Track, TrackId, UNKNOWN};
use parquet::data_type::ByteArray;
use sha1::{Digest, Sha1};
use std::sync::Arc;

/// The number of a text of an input.
pub(super) type TextNo = u32;

/// The texts of an input, each once.
pub(super) type TextList = Interner<Box<str>, TextNo>;

/// A frame as its row reports it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameCells {
    pub(super) function: TextNo,
    pub(super) module: Option<TextNo>,
    pub(super) build_id: Option<TextNo>,
    pub(super) file: Option<TextNo>,
    pub(super) line: Option<i32>,
    pub(super) kind: TextNo,
    pub(super) tier: Option<TextNo>,
    /// Those of the kernel are above what the column holds: they are negative.
    pub(super) address: Option<i64>,
    /// True if its function is not known.
    pub(super) unnamed: bool,
    /// True if it is not a frame, but states that there are more.
    pub(super) is_mark: bool,
}

/// A thread as its row reports it.
#[derive(Debug, Clone)]
pub(super) struct TrackCells {
    pub(super) comm: Option<TextNo>,
    pub(super) pid: Option<i32>,
    pub(super) tid: Option<i32>,
    pub(super) cpu: Option<i32>,
    pub(super) labels: Labels,
}

/// A stack as its row reports it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StackCells {
    /// See [`stack_id`].
    pub(super) id: i64,
    /// The number of frames, and of those without a name.
    pub(super) depth: i32,
    pub(super) unnamed: i32,
    caller: Option<StackId>,
    /// The place of the innermost frame.
    frame: u32,
}

/// An event as its row reports it.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventCells {
    pub(super) name: TextNo,
    pub(super) unit: TextNo,
}

/// The recording as every row reports it.
#[derive(Debug, Default)]
pub(super) struct RecordingCells {
    pub(super) input: Option<TextNo>,
    pub(super) host: Option<TextNo>,
    pub(super) arch: Option<TextNo>,
    pub(super) kernel: Option<TextNo>,
    pub(super) command: Option<TextNo>,
    /// Columns that are not text, as they are.
    pub(super) rest: Recording,
}

/// All that rows of an input refer to; the profile that they were read into need not stay.
#[derive(Debug)]
pub(super) struct TableInput {
    pub(super) texts: TextList,
    /// The texts as they are written.
    written: Vec<ByteArray>,
    pub(super) recording: RecordingCells,
    frames: Vec<FrameCells>,
    /// The place among them of each frame of the profile, plus one; 0 for those that no row had.
    places: Vec<u32>,
    /// By the profile's numbers; those that no row had have the ID 0.
    stacks: Vec<StackCells>,
    tracks: Vec<TrackCells>,
    labels: Labels,
    pub(super) events: Vec<EventCells>,
    names: WrittenNames,
}

impl TableInput {
    pub(super) fn new(origin: &RowOrigin, profile: &Profile) -> Self {
        let mut texts = TextList::default();
        let recording = recording(&origin.recording, &mut texts);
        Self {
            texts,
            written: Vec::new(),
            recording,
            frames: Vec::new(),
            places: Vec::new(),
            stacks: Vec::new(),
            tracks: Vec::new(),
            labels: origin.labels.clone(),
            events: Vec::new(),
            names: WrittenNames::new(origin.jit_names, profile),
        }
    }

    /// Spells what rows of the profile refer to that were not there before.
    pub(super) fn extend(&mut self, profile: &Profile) {
        self.places.resize(profile.frame_count(), 0);
        self.stacks.resize(profile.stack_count(), StackCells::default());
        for track in &profile.tracks()[self.tracks.len()..] {
            let cells = self.thread(track);
            self.tracks.push(cells);
        }
        for series in &profile.series[self.events.len().min(profile.series.len())..] {
            let (name, unit) = (self.texts.number(&series.name), self.texts.number(series.unit.name()));
            self.events.push(EventCells { name, unit });
        }
        let rows = profile.series.iter().flat_map(|series| &series.rows);
        rows.filter_map(|row| row.stack).for_each(|stack| self.add_stack(profile, stack));
        let new = &self.texts.items()[self.written.len()..];
        self.written.extend(new.iter().map(|text| ByteArray::from(&**text)));
    }

    /// Spells the frames of a stack, and gives it and its callers their numbers.
    fn add_stack(&mut self, profile: &Profile, stack: StackId) {
        let mut new = Vec::new();
        let mut next = Some(stack);
        while let Some(stack) = next.filter(|stack| self.stacks[stack.index()].id == 0) {
            new.push(stack);
            next = profile.stack_of(stack).0;
        }
        for stack in new.into_iter().rev() {
            let (caller, frame) = profile.stack_of(stack);
            if self.places[frame.index()] == 0 {
                let cells = self.spelled(profile, profile.frame_of(frame));
                self.frames.push(cells);
                self.places[frame.index()] = self.frames.len() as u32;
            }
            let frame = self.places[frame.index()] - 1;
            let (cells, above) = (self.frames[frame as usize], self.stack(caller));
            let module = cells.module.map_or("", |module| &self.texts.items()[module as usize]);
            self.stacks[stack.index()] = StackCells {
                id: stack_id(above.id, &self.texts.items()[cells.function as usize], module),
                depth: above.depth + i32::from(!cells.is_mark),
                unnamed: above.unnamed + i32::from(cells.unnamed),
                caller,
                frame,
            };
        }
    }

    /// The cells of a stack; the ID of the empty one is 0.
    fn stack(&self, stack: Option<StackId>) -> StackCells {
        stack.map_or_else(StackCells::default, |stack| self.stacks[stack.index()])
    }

    /// The number of stacks that it keeps.
    pub(super) fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    pub(super) fn track(&self, id: TrackId) -> &TrackCells {
        &self.tracks[id.index()]
    }

    /// The innermost frame of a stack, if it has any.
    pub(super) fn leaf(&self, stack: Option<StackId>) -> Option<&FrameCells> {
        stack.map(|stack| &self.frames[self.stacks[stack.index()].frame as usize])
    }

    /// A text, which is copied by reference.
    pub(super) fn written(&self, text: TextNo) -> ByteArray {
        self.written[text as usize].clone()
    }

    fn spelled(&mut self, profile: &Profile, frame: &Frame) -> FrameCells {
        let name = profile.name_of(frame.name);
        let module = frame.module.map(|module| profile.name_of(module));
        let function = self.texts.number(&label::called(&self.names.of(frame, name), module));
        let build_id = profile.build_of(frame);
        let place = profile.place_of(frame);
        let texts = &mut self.texts;
        FrameCells {
            function,
            module: module.map(|module| texts.number(&String::from_utf8_lossy(told_module(frame.kind, module)))),
            build_id: build_id.map(|id| texts.number(&String::from_utf8_lossy(&id))),
            file: place.map(|(file, _)| texts.number(&String::from_utf8_lossy(profile.name_of(file)))),
            line: place.and_then(|(_, line)| i32::try_from(line).ok()).filter(|line| *line != 0),
            // Its tier is in the next column.
            kind: texts.number(Category::of(frame).of_any_tier().name()),
            tier: frame.tier.map(|tier| texts.number(tier.name())),
            address: frame.addr.map(u64::cast_signed),
            unnamed: name == UNKNOWN,
            is_mark: name == TRUNCATED,
        }
    }

    fn thread(&mut self, track: &Track) -> TrackCells {
        let comm = String::from_utf8_lossy(&track.comm);
        TrackCells {
            comm: (!comm.is_empty()).then(|| self.texts.number(&comm)),
            pid: track.pid.map(|pid| pid.0),
            tid: track.tid.map(|tid| tid.0),
            cpu: track.cpu.and_then(|cpu| i32::try_from(cpu).ok()),
            labels: both(&self.labels, &track.labels),
        }
    }
}

/// The module of JIT code is named after its dump, which is here or there: rows give no place that a second run, or
/// another machine, would give otherwise.
fn told_module(kind: FrameKind, module: &[u8]) -> &[u8] {
    match kind {
        FrameKind::Jit => base_name(module),
        _ => module,
    }
}

/// The labels of a recording and of a row; the row's own win.
fn both(all: &Labels, own: &Labels) -> Labels {
    match (all, own) {
        (Some(all), Some(own)) => {
            Some(Arc::new(all.iter().chain(&**own).map(|(k, v)| (k.clone(), v.clone())).collect()))
        }
        (one, other) => other.clone().or_else(|| one.clone()),
    }
}

/// The number of a stack, equal for equal functions and modules in every file: the first eight bytes of the SHA-1 of its
/// caller's number, the function, a zero byte and the module. 0 is that of the empty stack.
fn stack_id(caller: i64, function: &str, module: &str) -> i64 {
    let hash = Sha1::new().chain_update(caller.to_be_bytes()).chain_update(function).chain_update([0_u8]);
    let hash = hash.chain_update(module).finalize();
    hash.first_chunk().map_or(1, |bytes| i64::from_be_bytes(*bytes)).saturating_abs().max(1)
}

fn recording(recording: &Recording, texts: &mut TextList) -> RecordingCells {
    let Recording { input, host, arch, kernel, command, .. } = recording;
    let mut number = |text: &Option<Box<str>>| text.as_ref().map(|text| texts.number(&**text));
    RecordingCells {
        input: number(input),
        host: number(host),
        arch: number(arch),
        kernel: number(kernel),
        command: number(command),
        rest: recording.clone(),
    }
}

/// A sample, or the sum of several.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableRow {
    /// An index into the input's events.
    pub(super) event: usize,
    pub(super) track: TrackId,
    pub(super) stack: Option<StackId>,
    pub(super) weight: i64,
    pub(super) count: i64,
    /// In nanoseconds of the recording's clock, but before its 0 where a stretch of the wall clock begins there.
    pub(super) time: Option<i64>,
}

/// A row, and what it refers to.
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

    /// When it was, by the wall clock, if that is known, in microseconds since 1970.
    pub(super) fn wall_time(&self) -> Option<i64> {
        let epoch = self.input.recording.rest.epoch?;
        micros(i128::from(epoch) + i128::from(self.row.time?))
    }

    /// The frames of its stack, innermost first.
    pub(super) fn frames_up(&self) -> impl Iterator<Item = &'a FrameCells> + use<'a> {
        let input = self.input;
        let stacks = std::iter::successors(self.row.stack, move |stack| input.stacks[stack.index()].caller);
        stacks.map(move |stack| &input.frames[input.stacks[stack.index()].frame as usize])
    }
}
