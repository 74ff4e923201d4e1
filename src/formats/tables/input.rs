//! What the rows of one input have in common, with every name spelled once.

use crate::analysis::category::Category;
use crate::analysis::label;
use crate::contract::rows;
use crate::contract::rows::RowOrigin;
use crate::model::stacks::{Frame, FrameId, FrameKind, Profile, Row, TRUNCATED, Track, TrackId, UNKNOWN};
use crate::runtimes::jit_names::{JitNames, ReadableNames};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The number of a text of an input.
pub(super) type TextNo = u32;

/// The texts of an input, each once.
#[derive(Debug, Default)]
pub(super) struct TextList {
    texts: Vec<Box<str>>,
    numbers: FxHashMap<Box<str>, TextNo>,
}

impl TextList {
    pub(super) fn add(&mut self, text: &str) -> TextNo {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.texts.len() as TextNo;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    pub(super) fn text(&self, number: TextNo) -> &str {
        &self.texts[number as usize]
    }
}

/// A frame as its row tells of it.
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
    /// Whether its function is not known.
    pub(super) unnamed: bool,
    /// Whether it is no frame, but says that there are more.
    pub(super) is_mark: bool,
}

/// A thread as its row tells of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrackCells {
    pub(super) comm: Option<TextNo>,
    pub(super) pid: Option<i32>,
    pub(super) tid: Option<i32>,
    pub(super) cpu: Option<i32>,
}

/// An event as its row tells of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventCells {
    pub(super) name: TextNo,
    pub(super) unit: TextNo,
}

/// The recording as every row tells of it.
#[derive(Debug, Default)]
pub(super) struct RecordingCells {
    pub(super) hash: Option<TextNo>,
    pub(super) host: Option<TextNo>,
    pub(super) arch: Option<TextNo>,
    pub(super) kernel: Option<TextNo>,
    pub(super) command: Option<TextNo>,
    /// Nanoseconds since 1970 of its clock's 0.
    pub(super) epoch: Option<i128>,
    /// Microseconds since 1970 of its first sample.
    pub(super) start: Option<i64>,
    pub(super) share_named: Option<f64>,
}

/// All that rows of an input refer to.
#[derive(Debug)]
pub(super) struct TableInput {
    pub(super) texts: TextList,
    pub(super) recording: RecordingCells,
    frames: Vec<FrameCells>,
    tracks: Vec<TrackCells>,
    pub(super) events: Vec<EventCells>,
    jit_names: JitNames,
    readable: ReadableNames,
}

impl TableInput {
    pub(super) fn new(origin: &RowOrigin, profile: &Profile) -> Self {
        let names = profile.frames().filter(|(_, frame)| frame.kind == FrameKind::Jit);
        let names = names.map(|(_, frame)| profile.name_of(frame.name));
        let readable = match origin.jit_names {
            JitNames::Raw => ReadableNames::default(),
            asked => ReadableNames::new(names, asked == JitNames::Merged),
        };
        let mut texts = TextList::default();
        let recording = recording(origin, profile, &mut texts);
        let (frames, tracks, events, jit_names) = (Vec::new(), Vec::new(), Vec::new(), origin.jit_names);
        let mut input = Self { texts, recording, frames, tracks, events, jit_names, readable };
        input.extend(profile);
        input
    }

    /// Spells what came since the last time.
    pub(super) fn extend(&mut self, profile: &Profile) {
        for (_, frame) in profile.frames().skip(self.frames.len()) {
            let cells = self.spelled(profile, frame);
            self.frames.push(cells);
        }
        for track in &profile.tracks()[self.tracks.len()..] {
            let cells = self.thread(track);
            self.tracks.push(cells);
        }
        for series in &profile.series[self.events.len()..] {
            let (name, unit) = (self.texts.add(&series.name), self.texts.add(series.unit.name()));
            self.events.push(EventCells { name, unit });
        }
    }

    pub(super) fn frame(&self, id: FrameId) -> &FrameCells {
        &self.frames[id.index()]
    }

    pub(super) fn track(&self, id: TrackId) -> &TrackCells {
        &self.tracks[id.index()]
    }

    /// The innermost frame of a row, if it has any.
    pub(super) fn leaf(&self, profile: &Profile, row: &Row) -> Option<&FrameCells> {
        row.stack.map(|stack| self.frame(profile.stack_of(stack).1))
    }

    fn spelled(&mut self, profile: &Profile, frame: &Frame) -> FrameCells {
        let name = profile.name_of(frame.name);
        let module = frame.module.map(|module| profile.name_of(module));
        let readable = match frame.kind {
            FrameKind::Jit if self.jit_names != JitNames::Raw => self.readable.of(name),
            _ => Cow::Borrowed(name),
        };
        let function = self.texts.add(&label::called(&readable, module));
        let texts = &mut self.texts;
        let build_id = module.and_then(|module| profile.about.modules.get(module)?.build_id);
        FrameCells {
            function,
            module: module.map(|module| texts.add(&String::from_utf8_lossy(told_module(frame.kind, module)))),
            build_id: build_id.map(|id| texts.add(&id.to_string())),
            file: frame.file.map(|file| texts.add(&String::from_utf8_lossy(profile.name_of(file)))),
            line: i32::try_from(frame.line).ok().filter(|line| *line != 0),
            // Its tier stands in the next column.
            kind: texts.add(Category::of(frame).of_any_tier().name()),
            tier: frame.tier.map(|tier| texts.add(tier.name())),
            address: frame.addr.map(u64::cast_signed),
            unnamed: name == UNKNOWN,
            is_mark: name == TRUNCATED,
        }
    }

    fn thread(&mut self, track: &Track) -> TrackCells {
        let comm = String::from_utf8_lossy(&track.comm);
        TrackCells {
            comm: (!comm.is_empty()).then(|| self.texts.add(&comm)),
            pid: track.pid.map(|pid| pid.0),
            tid: track.tid.map(|tid| tid.0),
            cpu: track.cpu.and_then(|cpu| i32::try_from(cpu).ok()),
        }
    }
}

/// The module of JIT code is named after its dump, which is here or there: rows tell no place that a second run, or
/// another machine, would tell otherwise.
fn told_module(kind: FrameKind, module: &[u8]) -> &[u8] {
    match kind {
        FrameKind::Jit => module.rsplit(|byte| *byte == b'/').next().unwrap_or(module),
        _ => module,
    }
}

fn recording(origin: &RowOrigin, profile: &Profile, texts: &mut TextList) -> RecordingCells {
    let about = &profile.about;
    let mut text = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| texts.add(&String::from_utf8_lossy(bytes)));
    let (host, arch, kernel) = (text(&about.host), text(&about.arch), text(&about.os_release));
    let words: Vec<_> = about.command.iter().map(|word| String::from_utf8_lossy(word)).collect();
    RecordingCells {
        hash: origin.hash.as_ref().map(|hash| texts.add(hash)),
        host,
        arch,
        kernel,
        command: (!words.is_empty()).then(|| texts.add(&words.join(" "))),
        epoch: about.epoch,
        start: rows::start(profile).and_then(micros),
        share_named: share_named(profile),
    }
}

/// Microseconds of nanoseconds, since 1970.
pub(super) fn micros(nanos: i128) -> Option<i64> {
    i64::try_from(nanos.div_euclid(1000)).ok()
}

/// How much of all frames has a name: where the reader did not count them, those of the rows that are here.
fn share_named(profile: &Profile) -> Option<f64> {
    let counted = profile.about.frames;
    let (mut frames, mut unnamed) = (counted.frames, counted.unnamed);
    if frames == 0 {
        let rows = profile.series.iter().flat_map(|series| &series.rows);
        for (row, frame) in rows.flat_map(|row| profile.frames_up(row.stack).map(move |frame| (row, frame))) {
            let name = profile.name_of(profile.frame_of(frame).name);
            if name != TRUNCATED {
                frames = frames.saturating_add(row.count);
                unnamed = unnamed.saturating_add(if name == UNKNOWN { row.count } else { 0 });
            }
        }
    }
    (frames > 0).then(|| 1.0 - unnamed as f64 / frames as f64)
}
