//! perf script's text as stacks.
//!
//! A text can be read in parts ([`cut`]), side by side; what the record lines before a part told of threads is given
//! with it.
//!
//! Stacks share most of their callers with the stack before, and nearly all lines were seen before: a stack is compared
//! with the one before from its end on, where its callers are (`callers`), and each distinct line is taken apart once.

mod callers;
#[cfg(test)]
mod tests;

use super::frame::{Frame, Place, UNKNOWN};
use super::header::Header;
use super::known::{Known, is_record_line};
use crate::error::{Error, Result, Skipped, Warnings};
use crate::formats::format::ReadOptions;
use crate::model::backing::Backing;
use crate::model::java_calls;
use crate::model::runtimes::{RuntimeSet, Tiers};
use crate::model::stacks::{self, FrameId, FrameKind, Keep, Profile, Row, StackId, Track, TrackId, Unit};
use crate::model::{Nanos, Pid, Tid};
use callers::{Callers, Paragraphs};
use memchr::memmem;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Reads a whole text. Each event is a series; a sample without a period weighs 1, as with inferno-collapse-perf.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let part = read_part(bytes, &Known::default(), options.keep);
    warnings.extend(part.skipped.into_warning());
    Ok(part.profile)
}

/// What a part of a text holds.
#[derive(Debug)]
pub struct TextPart {
    /// Its samples.
    pub profile: Profile,
    /// Lines that are none of a sample.
    pub skipped: Skipped,
}

/// Reads a part that begins where a text was [`cut`]; `known` is what the lines before it told.
pub fn read_part(text: &[u8], known: &Known, keep: Keep) -> TextPart {
    let mut reader = reader(text, known, keep);
    reader.run();
    let TextReader { profile, skipped, .. } = reader;
    TextPart { profile, skipped }
}

fn reader<'t>(text: &'t [u8], known: &'t Known, keep: Keep) -> TextReader<'t> {
    let mut profile = Profile::keeping(keep);
    profile.perf_names = true;
    TextReader {
        text,
        profile,
        tiers: Tiers::default(),
        before: known,
        known: Known::default(),
        sample: None,
        skipped: Skipped::new("line"),
        of_lines: FxHashMap::default(),
        joined: Vec::new(),
        paragraphs: Paragraphs::default(),
        callers: Callers::default(),
        lines: Vec::new(),
        thread: None,
        event: None,
    }
}

/// How much of a buffer can be read as a part: no sample goes on behind it. 0 if there is no such place.
pub fn cut(buffer: &[u8]) -> usize {
    let sample_end = memmem::rfind(buffer, b"\n\n").map(|at| at + 2);
    let windows_end = || memmem::rfind(buffer, b"\n\r\n").map(|at| at + 3);
    sample_end.or_else(windows_end).unwrap_or_else(|| last_header(buffer))
}

/// Where the last sample begins whose first line is whole.
fn last_header(buffer: &[u8]) -> usize {
    let mut end = memchr::memrchr(b'\n', buffer).unwrap_or(0);
    while end > 0 {
        let start = memchr::memrchr(b'\n', &buffer[..end]).map_or(0, |at| at + 1);
        let line = buffer[start..end].trim_ascii_end();
        if !is_record_line(line) && Header::parse(line).is_some_and(|header| header.event().is_some()) {
            return start;
        }
        end = start.saturating_sub(1);
    }
    0
}

struct TextReader<'t> {
    text: &'t [u8],
    profile: Profile,
    tiers: Tiers,
    /// What the lines before the text told, and what its own did.
    before: &'t Known,
    known: Known,
    sample: Option<OpenSample<'t>>,
    skipped: Skipped,
    /// The frames of each distinct line.
    of_lines: FxHashMap<&'t [u8], LineFrames>,
    /// Those of lines that have several, leaf first.
    joined: Vec<FrameId>,
    paragraphs: Paragraphs,
    callers: Callers,
    /// The stack's own lines, by how many bytes there are from the begin of each to the stack's end.
    lines: Vec<(usize, LineFrames)>,
    /// The last sample's thread, as its first line tells it.
    thread: Option<(Thread<'t>, TrackId)>,
    /// The last sample's event, and its series.
    event: Option<(&'t [u8], usize)>,
}

/// The frames that a line tells, leaf first.
#[derive(Debug, Clone)]
enum LineFrames {
    One(FrameId),
    /// Where they stand in [`TextReader::joined`].
    Several(Range<usize>),
}

/// Whose sample it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thread<'t> {
    comm: &'t [u8],
    pid: Option<Pid>,
    tid: Option<Tid>,
}

/// A sample whose frames are being read.
struct OpenSample<'t> {
    event: &'t [u8],
    track: TrackId,
    weight: u64,
    unit: Unit,
    time: Option<Nanos>,
    /// Leaf first, as printed.
    frames: Vec<FrameId>,
}

impl<'t> TextReader<'t> {
    fn run(&mut self) {
        let mut at = 0;
        while at < self.text.len() {
            let end = memchr::memchr(b'\n', &self.text[at..]).map_or(self.text.len(), |len| at + len);
            let begins = self.line(self.text[at..end].trim_ascii_end(), at as u64);
            at = end + 1;
            if begins && self.text.get(at) == Some(&b'\t') {
                at = self.stack(at).unwrap_or(at);
            }
        }
        self.end_sample();
    }

    /// Whether a sample begins that has no frame yet.
    fn line(&mut self, line: &'t [u8], at: u64) -> bool {
        if line.is_empty() {
            self.end_sample();
        } else if line.starts_with(b"\t") {
            self.frame_line(line, at);
        } else if is_record_line(line) {
            self.known.apply(line);
        } else if let Some(header) = Header::parse(line).filter(|header| header.event().is_some()) {
            self.end_sample();
            return self.begin_sample(&header);
        } else if let Some(source) = line.strip_prefix(b"  ").filter(|_| self.sample.is_some()) {
            self.source_line(source);
        } else if !line.starts_with(b"#") {
            self.skipped.add(Error::new("neither a sample's first line nor a frame").at(at));
        }
        false
    }

    /// Reads the frames of the sample that has begun, from here to its end, if there is nothing else; where that is.
    fn stack(&mut self, start: usize) -> Option<usize> {
        let end = self.paragraphs.end(self.text, start)?;
        let shared = self.callers.shared(self.text, &(start..end));
        self.lines.clear();
        let mut at = start;
        while at < shared.own_end {
            let line = &self.text[at..shared.own_end];
            let line = &line[..memchr::memchr(b'\n', line).unwrap_or(line.len())];
            let frames = self.frames_of(line)?;
            self.lines.push((end - at, frames));
            at += line.len() + 1;
        }
        self.callers.begin(start..end, &shared);
        let mut stack = shared.stack;
        for (to_end, frames) in self.lines.drain(..).rev() {
            let frames = match &frames {
                LineFrames::One(frame) => std::slice::from_ref(frame),
                LineFrames::Several(range) => &self.joined[range.clone()],
            };
            for &frame in frames.iter().rev() {
                stack = Some(self.profile.stack(stack, frame));
            }
            self.callers.push(to_end, stack);
        }
        let sample = self.sample.take()?;
        self.push_row(&sample, stack);
        Some(end + 2)
    }

    /// The frames of a line, which was mostly seen before; `None` if it is no frame's.
    fn frames_of(&mut self, line: &'t [u8]) -> Option<LineFrames> {
        if let Some(known) = self.of_lines.get(line) {
            return Some(known.clone());
        }
        if line.first() != Some(&b'\t') {
            return None;
        }
        let start = self.joined.len();
        let mut frames = std::mem::take(&mut self.joined);
        let frame = Frame::parse(line.trim_ascii_end());
        frame.iter().for_each(|frame| self.push(frame, &mut frames));
        self.joined = frames;
        let told = match self.joined[start..] {
            [] => return None,
            [one] => {
                self.joined.pop();
                LineFrames::One(one)
            }
            _ => LineFrames::Several(start..self.joined.len()),
        };
        self.of_lines.insert(line, told.clone());
        Some(told)
    }

    /// Whether it has no frame yet.
    fn begin_sample(&mut self, header: &Header<'t>) -> bool {
        let track = self.track(header);
        let event = header.event().unwrap_or_default();
        let unit = header.period().map_or(Unit::Samples, |_| Unit::of_event(&String::from_utf8_lossy(event)));
        let weight = header.period().unwrap_or(1);
        let mut sample = OpenSample { event, track, weight, unit, time: header.time, frames: Vec::new() };
        // One-line samples have their frame behind the event.
        let behind = memmem::find(header.rest, event).and_then(|start| {
            let behind = header.rest.get(start + event.len() + 1..)?;
            Frame::parse(behind)
        });
        if let Some(frame) = behind {
            self.push(&frame, &mut sample.frames);
        }
        let begins = sample.frames.is_empty();
        self.sample = Some(sample);
        begins
    }

    fn track(&mut self, header: &Header<'t>) -> TrackId {
        let of_thread = |tid| self.known.process_of(tid).or_else(|| self.before.process_of(tid));
        let pid = header.pid.or_else(|| header.tid.and_then(of_thread)).or(header.tid.map(|tid| Pid(tid.0)));
        let thread = Thread { comm: header.comm, pid, tid: header.tid };
        if let Some((_, track)) = self.thread.filter(|(last, _)| *last == thread) {
            return track;
        }
        let track = self.profile.track(Track { comm: header.comm.to_vec(), pid, tid: header.tid, cpu: None });
        self.thread = Some((thread, track));
        track
    }

    fn frame_line(&mut self, line: &'t [u8], at: u64) {
        match (Frame::parse(line), self.sample.take()) {
            (Some(frame), Some(mut sample)) => {
                self.push(&frame, &mut sample.frames);
                self.sample = Some(sample);
            }
            (Some(_), None) => self.skipped.add(Error::new("a frame without a sample above it").at(at)),
            (None, sample) => {
                self.sample = sample;
                self.skipped.add(Error::new("a frame begins with a hexadecimal address").at(at));
            }
        }
    }

    /// `  file.c:12` tells where the frame above is.
    fn source_line(&mut self, text: &[u8]) {
        let Some(colon) = memchr::memrchr(b':', text) else { return };
        let line = std::str::from_utf8(&text[colon + 1..]).ok().and_then(|line| line.parse().ok());
        let last = self.sample.as_mut().and_then(|sample| sample.frames.last_mut());
        if let (Some(line), Some(last)) = (line, last) {
            let file = self.profile.name(&text[..colon]);
            let frame = stacks::Frame { file: Some(file), line, ..*self.profile.frame_of(*last) };
            *last = self.profile.frame(frame);
        }
    }

    /// A line's frame, behind those that its name tells of to have been expanded in it.
    fn push(&mut self, frame: &Frame<'_>, frames: &mut Vec<FrameId>) {
        let calls = Some(frame)
            .filter(|frame| kind(frame) == FrameKind::Jit)
            .and_then(|frame| java_calls::joined(frame.symbol));
        let Some(calls) = calls else { return frames.push(self.frame(frame)) };
        for symbol in calls.expanded.iter().rev() {
            frames.push(self.frame(&Frame { symbol, inlined: true, ..*frame }));
        }
        frames.push(self.frame(&Frame { symbol: calls.root, ..*frame }));
    }

    fn frame(&mut self, frame: &Frame<'_>) -> FrameId {
        let name = self.profile.name(frame.symbol);
        let dso = frame.dso.filter(|dso| *dso != UNKNOWN);
        let module = dso.map(|dso| self.profile.name(dso));
        let kind = match kind(frame) {
            // As of recordings: what was expanded in JIT code is JIT code.
            kind if !frame.inlined || kind == FrameKind::Jit => kind,
            _ => FrameKind::Inlined,
        };
        // The address decides nothing once the function is known; kept, it would tell equal stacks apart.
        let addr = (frame.symbol == UNKNOWN).then_some(frame.addr);
        // A text does not tell what its processes run.
        let jit = kind == FrameKind::Jit;
        let tier = jit.then(|| self.tiers.of(name, frame.symbol, RuntimeSet::default())).flatten();
        let joined = frame.inlined && kind == FrameKind::Jit;
        self.profile.frame(stacks::Frame { module, addr, tier, joined, ..stacks::Frame::new(name, kind) })
    }

    fn end_sample(&mut self) {
        let Some(sample) = self.sample.take() else { return };
        let mut stack = None;
        for &frame in sample.frames.iter().rev() {
            stack = Some(self.profile.stack(stack, frame));
        }
        self.push_row(&sample, stack);
    }

    fn push_row(&mut self, sample: &OpenSample<'t>, stack: Option<StackId>) {
        let series = match self.event {
            Some((event, series)) if event == sample.event => series,
            _ => {
                let name = String::from_utf8_lossy(sample.event);
                let series = self.profile.series_named(&name, sample.unit.clone());
                self.event = Some((sample.event, series));
                series
            }
        };
        let row = Row { track: sample.track, stack, weight: sample.weight, count: 1, time: sample.time };
        self.profile.push(series, row);
    }
}

fn kind(frame: &Frame<'_>) -> FrameKind {
    // Whatever code it was expanded in, it is a Java method.
    if frame.inlined && java_calls::is_method(frame.symbol) {
        return FrameKind::Jit;
    }
    let Some(dso) = frame.dso.filter(|dso| *dso != UNKNOWN) else {
        return if frame.symbol == UNKNOWN { FrameKind::Unknown } else { FrameKind::User };
    };
    let anonymous = matches!(Place::of(Some(dso)), Place::Anonymous(_) | Place::FileBacked);
    match () {
        () if anonymous && frame.symbol != UNKNOWN => FrameKind::Jit,
        () if anonymous => FrameKind::Unknown,
        () if Backing::of(dso).is_kernel_object() => FrameKind::Kernel,
        () => FrameKind::User,
    }
}
