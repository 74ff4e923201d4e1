//! Reads perf script output into a profile.
//!
//! For reading in parallel, a text can be cut into parts ([`cut`]). The reader of a part also needs the facts from the
//! record lines before it ([`RecordLineFacts`]).
//!
//! For speed: most stacks are exact repetitions and are looked up by their text (`seen`). Others share most callers
//! with the previous stack; the two are compared from the end, where the callers are (`callers`). Each distinct frame
//! line is parsed only once.

mod callers;
mod seen;
#[cfg(test)]
mod tests;

use super::fields::{is_field_line, is_source_line};
use super::frame::{DsoKind, Frame, INLINED, UNKNOWN};
use super::header::Header;
use super::known::{RecordLineFacts, is_record_line};
use super::{has_no_headers, hash_text, parse_one_line_header, sample_end};
use crate::analysis::named_frames::kind_of_unnamed;
use crate::bytes::lines::without_mark;
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::backing::{Backing, base_name};
use crate::model::stacks::{self, FrameId, FrameKind, Keep, Profile, Row, StackId, Track, TrackId, Unit};
use crate::model::{Nanos, Pid, Tid};
use crate::runtimes::java_calls;
use crate::runtimes::{RuntimeSet, Tiers};
use callers::{Callers, Paragraphs};
use rustc_hash::FxHashMap;
use seen::{LineFrames, LineMemo, StackMemo};

/// Reads a whole text. Each event becomes a series. Samples without a period have weight 1, as in
/// inferno-collapse-perf.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let mut reader = PartReader::new(options.keep).without_headers(has_no_headers(bytes));
    warnings.extend(reader.read(bytes, &RecordLineFacts::default()).into_warning());
    Ok(reader.into_profile())
}

/// Reads parts of a text one after the other into one profile. Lines and stacks of earlier parts are remembered.
#[derive(Debug)]
pub struct PartReader {
    profile: Profile,
    tiers: Tiers,
    lines: LineMemo,
    stacks: StackMemo,
    /// True if the text has frames but no headers, with an empty line between samples (`perf script -F ip,sym`).
    has_no_headers: bool,
    readable: Readable,
}

/// A function that demangles a symbol; it returns `None` if the symbol isn't mangled.
pub type Readable = fn(&[u8]) -> Option<String>;

impl PartReader {
    /// Creates a reader with an empty profile.
    pub fn new(keep: Keep) -> Self {
        let mut profile = Profile::keeping(keep);
        // perf runs on no other system.
        profile.about.os = Some(b"Linux".to_vec());
        profile.perf_names = true;
        let (lines, stacks) = (LineMemo::default(), StackMemo::default());
        Self { profile, tiers: Tiers::default(), lines, stacks, has_no_headers: false, readable: |_| None }
    }

    /// Demangles function names with `readable`.
    pub fn with_readable_names(mut self, readable: Readable) -> Self {
        self.readable = readable;
        self
    }

    /// Sets whether the text has frames but no headers; see [`has_no_headers`].
    pub fn without_headers(mut self, has_no_headers: bool) -> Self {
        self.has_no_headers = has_no_headers;
        self
    }

    /// Reads the next part of a text, which must end where [`cut`] says. `known` holds the facts from record lines
    /// before it. Returns a count of the lines that were skipped because they belong to no sample.
    pub fn read(&mut self, text: &[u8], known: &RecordLineFacts) -> Skipped {
        self.lines.make_room();
        let mut reader = TextReader::new(text, known, self);
        reader.run();
        reader.skipped
    }

    /// The profile of all parts read so far.
    pub fn profile(&mut self) -> &mut Profile {
        &mut self.profile
    }

    /// Ends reading and returns the profile.
    pub fn into_profile(self) -> Profile {
        self.profile
    }
}

/// Length in bytes of the longest part at the start of a buffer that contains no incomplete sample. 0 if nothing can be
/// cut off.
pub fn cut(buffer: &[u8]) -> usize {
    sample_end(buffer).unwrap_or_else(|| last_header(buffer))
}

/// Offset of the last header in the buffer that is a complete line; 0 if there is none.
fn last_header(buffer: &[u8]) -> usize {
    let mut end = memchr::memrchr(b'\n', buffer).unwrap_or(0);
    while end > 0 {
        let start = memchr::memrchr(b'\n', &buffer[..end]).map_or(0, |at| at + 1);
        let line = buffer[start..end].trim_ascii_end();
        let is_header = || match Header::parse(line) {
            Some(header) => header.event().is_some() || header.time.is_some(),
            None => parse_one_line_header(line).is_some(),
        };
        if !is_record_line(line) && is_header() {
            return start;
        }
        end = start.saturating_sub(1);
    }
    0
}

struct TextReader<'t> {
    text: &'t [u8],
    /// The reader of all parts, which remembers lines and stacks of earlier ones.
    part: &'t mut PartReader,
    /// Facts from record lines before this part. Those from lines of this part are in `known`.
    before: &'t RecordLineFacts,
    known: RecordLineFacts,
    sample: Option<OpenSample<'t>>,
    /// True if the last sample has ended and only its empty line has been read since. With `-F srccode`, perf prints
    /// source code below the empty line.
    last_was_sample: bool,
    skipped: Skipped,
    paragraphs: Paragraphs,
    callers: Callers,
    /// The lines of the current stack that it doesn't share with the previous one, and the frames of each. A line is
    /// identified by the number of bytes from its start to the end of the stack.
    lines: Vec<(usize, LineFrames)>,
    /// The last sample's thread, as printed in its header, and the thread's track.
    thread: Option<(TextThread<'t>, TrackId)>,
    /// The index of each event's series, for the events of this part.
    events: FxHashMap<&'t [u8], usize>,
    /// The event of the last sample, and the index of its series.
    last_event: Option<(&'t [u8], usize)>,
}

/// A sample's thread as printed in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TextThread<'t> {
    comm: &'t [u8],
    pid: Option<Pid>,
    tid: Option<Tid>,
}

/// A sample whose frames are being read.
struct OpenSample<'t> {
    event: &'t [u8],
    track: TrackId,
    /// The sampling period; `None` if the text doesn't show periods.
    period: Option<u64>,
    time: Option<Nanos>,
    /// The frames read so far, leaf first, as printed.
    frames: Vec<FrameId>,
    /// How the sample's frames are indented; `None` before the first frame.
    indent: Option<Indent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Indent {
    Tab,
    Blanks,
    /// Blanks, and the frames are addresses without symbols (`-F ip`). Lines of other fields may look the same, but
    /// perf prints those only below frames that are indented by a tab.
    BlanksOfAddresses,
    Nothing,
}

impl Indent {
    fn detect(line: &[u8]) -> Self {
        match line.first() {
            Some(b'\t') => Self::Tab,
            Some(b' ') if line.trim_ascii().iter().all(u8::is_ascii_hexdigit) => Self::BlanksOfAddresses,
            Some(b' ') => Self::Blanks,
            _ => Self::Nothing,
        }
    }
}

/// Name of the series for samples without an event name.
const NO_EVENT: &[u8] = b"samples";

/// True if the first line of `text` is a frame.
fn begins_with_frame(text: &[u8]) -> bool {
    let line = &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())];
    let line = line.trim_ascii_end();
    match line.first() {
        Some(b'\t' | b' ') => Frame::parse_indented(line).is_some() && !is_field_line(line),
        _ => Frame::parse_unindented(line).is_some(),
    }
}

impl<'t> TextReader<'t> {
    fn new(text: &'t [u8], before: &'t RecordLineFacts, part: &'t mut PartReader) -> Self {
        Self {
            text,
            part,
            before,
            known: RecordLineFacts::default(),
            sample: None,
            last_was_sample: false,
            skipped: Skipped::new("line"),
            paragraphs: Paragraphs::default(),
            callers: Callers::default(),
            lines: Vec::new(),
            thread: None,
            events: FxHashMap::default(),
            last_event: None,
        }
    }

    fn run(&mut self) {
        let mut start = 0;
        while start < self.text.len() {
            let end = memchr::memchr(b'\n', &self.text[start..]).map_or(self.text.len(), |len| start + len);
            let below = self.text.get(end + 1..).unwrap_or_default();
            let line = without_mark(&self.text[start..end]).trim_ascii_end();
            let begins_sample = self.read_line(line, below, start as u64);
            start = end + 1;
            if begins_sample
                && matches!(below.first(), Some(b'\t' | b' '))
                && let Some(next) = self.read_stack(start)
            {
                start = next;
            }
        }
        self.end_sample();
    }

    /// Reads a line; `below` is the text after it. Returns true if the line begins a sample and its frames follow on
    /// the next lines.
    fn read_line(&mut self, line: &'t [u8], below: &[u8], offset: u64) -> bool {
        if line.is_empty() {
            self.end_sample();
            if self.part.has_no_headers && begins_with_frame(below) {
                return self.begin_sample(&Header::parse_above_frames(line), None, below);
            }
        } else if line.starts_with(b"\t") {
            self.read_frame_line(line, offset);
        } else if is_record_line(line) {
            self.known.apply(line);
        } else if let Some(frame) = self.parse_frame_without_tab(line) {
            self.push_to_sample(&frame, line);
        } else if let Some((header, event_end)) = self.parse_header(line, below) {
            self.end_sample();
            return self.begin_sample(&header, event_end, below);
        } else if self.sample.is_some() && is_source_line(line) {
            self.read_source_line(&line[2..]);
        } else if !line.trim_ascii_start().starts_with(b"#") && !self.is_field(line) {
            self.skipped.add(Error::new("neither a sample's first line nor a frame").at(offset));
        }
        false
    }

    /// Parses a header, and returns it with the end of its event ([`Header::event_end`]). A header without time and
    /// event is only recognized if a frame follows. `None` if the line is not a header.
    fn parse_header(&self, line: &'t [u8], below: &[u8]) -> Option<(Header<'t>, Option<usize>)> {
        if line.starts_with(b"#") {
            return None;
        }
        if let Some(header) = Header::parse(line) {
            let event_end = header.event_end();
            let has_frames =
                || begins_with_frame(below) || Frame::parse_in_line(header.after_event(event_end)).is_some();
            if header.event_up_to(event_end).is_some() || header.time.is_some() && has_frames() {
                return Some((header, event_end));
            }
        }
        if let Some(header) = parse_one_line_header(line) {
            return Some((header, header.event_end()));
        }
        let is_below_header = self.sample.is_some() && (is_field_line(line) || is_source_line(line));
        if is_below_header || self.has_frames() || !begins_with_frame(below) {
            return None;
        }
        let header = Header::parse_above_frames(line);
        Some((header, header.event_end()))
    }

    fn has_frames(&self) -> bool {
        self.sample.as_ref().is_some_and(|sample| !sample.frames.is_empty())
    }

    /// True if the line holds a field that perf prints below the frames, such as registers, and a sample is above it.
    fn is_field(&self, line: &[u8]) -> bool {
        (self.sample.is_some() || self.last_was_sample) && is_field_line(line)
    }

    /// Parses a frame that is indented by blanks or not at all. All frames of a stack are indented the same way.
    fn parse_frame_without_tab(&self, line: &'t [u8]) -> Option<Frame<'t>> {
        let sample = self.sample.as_ref()?;
        match sample.indent {
            None => Frame::parse_indented(line).or_else(|| Frame::parse_unindented(line)),
            Some(Indent::Blanks) if line.starts_with(b" ") => {
                Frame::parse_indented(line).filter(|_| !is_field_line(line))
            }
            Some(Indent::BlanksOfAddresses) if line.starts_with(b" ") => Frame::parse_indented(line),
            // An address of sixteen digits fills its column, so its line may have no indentation.
            Some(Indent::Blanks | Indent::BlanksOfAddresses | Indent::Nothing) => Frame::parse_unindented(line),
            Some(Indent::Tab) => None,
        }
    }

    /// Reads all frames of the current sample at once, from offset `start` on. Returns where the next sample may begin.
    /// `None` if the stack can't be read this way; then it must be read line by line.
    fn read_stack(&mut self, start: usize) -> Option<usize> {
        let end = self.paragraphs.find_end(self.text, start)?;
        let text = &self.text[start..end];
        let hash = hash_text(text);
        let stack = match self.part.stacks.get(hash, text) {
            Some(known) => known,
            None => {
                let stack = self.read_new_stack(start, end)?;
                self.part.stacks.add(hash, text, stack);
                stack
            }
        };
        let sample = self.sample.take()?;
        self.push_row(&sample, stack);
        self.last_was_sample = true;
        Some(end + 2)
    }

    /// Reads a stack that isn't remembered. `None` if any of its lines is not a frame. `Some(None)` is an empty stack.
    fn read_new_stack(&mut self, start: usize, end: usize) -> Option<Option<StackId>> {
        let shared = self.callers.find_shared(self.text, &(start..end));
        self.lines.clear();
        let mut line_start = start;
        let indent = self.text[start];
        while line_start < shared.new_end {
            let rest = &self.text[line_start..shared.new_end];
            let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
            let frames = self.line_frames(line)?;
            if line.first() != Some(&indent) {
                return None;
            }
            self.lines.push((end - line_start, frames));
            line_start += line.len() + 1;
        }
        self.callers.begin(start..end, &shared);
        let mut stack = shared.stack;
        for (to_end, frames) in self.lines.drain(..).rev() {
            for &frame in self.part.lines.frames(&frames).iter().rev() {
                stack = Some(self.part.profile.stack(stack, frame));
            }
            self.callers.push(to_end, stack);
        }
        Some(stack)
    }

    /// Returns the frames of a line, and remembers them for the next time. `None` if the line is not a frame.
    fn line_frames(&mut self, line: &'t [u8]) -> Option<LineFrames> {
        let known = self.part.lines.get(line);
        if known.is_some() {
            return known;
        }
        let text = line.trim_ascii_end();
        let frame = Frame::parse_indented(text)?;
        if is_field_line(text) {
            return None;
        }
        let mut frames = Vec::new();
        self.push_frames(&frame, &mut frames);
        self.part.lines.add(line, &frames)
    }

    /// Begins a sample. Returns true if the header's line contains no frame, so that frames can follow on lines of
    /// their own. If the next line is a frame, the text after the event isn't taken for one.
    fn begin_sample(&mut self, header: &Header<'t>, event_end: Option<usize>, below: &[u8]) -> bool {
        let track = self.track(header);
        let mut sample = OpenSample {
            event: header.event_up_to(event_end).unwrap_or(NO_EVENT),
            track,
            period: header.period_up_to(event_end),
            time: header.time.filter(|time| time.is_valid()),
            frames: Vec::new(),
            indent: None,
        };
        // In a one-line sample, the frame follows the event.
        if let Some(frame) = Frame::parse_in_line(header.after_event(event_end))
            && !begins_with_frame(below)
        {
            self.push_frames(&frame, &mut sample.frames);
        }
        let frames_follow = sample.frames.is_empty();
        self.sample = Some(sample);
        frames_follow
    }

    /// The track of the thread in a header. If nothing shows the thread's process, the thread's ID is taken for the
    /// process ID.
    fn track(&mut self, header: &Header<'t>) -> TrackId {
        let mut pid = header.pid;
        if pid.is_none()
            && let Some(tid) = header.tid
        {
            pid = self.known.process_of(tid).or_else(|| self.before.process_of(tid)).or(Some(Pid(tid.0)));
        }
        let thread = TextThread { comm: header.comm, pid, tid: header.tid };
        if let Some((last, track)) = self.thread
            && last == thread
        {
            return track;
        }
        let track =
            self.part.profile.track(Track { comm: header.comm.to_vec(), pid, tid: header.tid, ..Track::default() });
        self.thread = Some((thread, track));
        track
    }

    /// Reads a line that begins with a tab.
    fn read_frame_line(&mut self, line: &'t [u8], offset: u64) {
        match Frame::parse_indented(line) {
            Some(frame) if self.sample.is_some() => self.push_to_sample(&frame, line),
            Some(frame) if self.part.has_no_headers => {
                self.begin_sample(&Header::parse_above_frames(b""), None, line);
                self.push_to_sample(&frame, line);
            }
            Some(_) => self.skipped.add(Error::new("a frame without a sample above it").at(offset)),
            None if self.is_field(line) => {}
            None => self.skipped.add(Error::new("a frame must start with a hexadecimal address").at(offset)),
        }
    }

    fn push_to_sample(&mut self, frame: &Frame<'_>, line: &[u8]) {
        let Some(mut sample) = self.sample.take() else { return };
        sample.indent = Some(Indent::detect(line));
        self.push_frames(frame, &mut sample.frames);
        self.sample = Some(sample);
    }

    /// Reads the source line of the frame above it, such as `file.c:12`. In `file.c:12 (inlined)`, it also says that
    /// the frame is inlined.
    fn read_source_line(&mut self, text: &[u8]) {
        let (text, is_inlined) = match text.strip_suffix(INLINED) {
            Some(text) => (text, true),
            None => (text, false),
        };
        let Some(last) = self.sample.as_mut().and_then(|sample| sample.frames.last_mut()) else { return };
        let mut frame = *self.part.profile.frame_of(*last);
        if is_inlined && !frame.kind.is_jit() {
            frame.kind = FrameKind::Inlined;
        }
        if let Some(colon) = memchr::memrchr(b':', text)
            && let Some(line) = str::from_utf8(&text[colon + 1..]).ok().and_then(|line| line.parse().ok())
        {
            frame.file = Some(self.part.profile.name(&text[..colon]));
            frame.line = line;
        }
        *last = self.part.profile.frame(frame);
    }

    /// Adds the frame of a line. A Java frame may become several, because its symbol can list inlined calls.
    fn push_frames(&mut self, frame: &Frame<'_>, frames: &mut Vec<FrameId>) {
        if frame_kind(frame) == FrameKind::Jit
            && let Some(calls) = java_calls::split_joined(frame.symbol)
        {
            for symbol in calls.expanded.iter().rev() {
                frames.push(self.frame(&Frame { symbol, inlined: true, ..*frame }));
            }
            frames.push(self.frame(&Frame { symbol: calls.root, ..*frame }));
        } else {
            frames.push(self.frame(frame));
        }
    }

    /// Adds a frame to the profile.
    fn frame(&mut self, frame: &Frame<'_>) -> FrameId {
        let symbol = if is_module_and_offset(frame) { UNKNOWN } else { frame.symbol };
        // Most symbols are not mangled and don't begin with an underscore.
        let readable = if symbol.starts_with(b"_") { (self.part.readable)(symbol) } else { None };
        let symbol = readable.as_ref().map_or(symbol, String::as_bytes);
        let frame = &Frame { symbol, ..*frame };
        let name = self.part.profile.name(frame.symbol);
        let dso = frame.dso.filter(|dso| *dso != UNKNOWN);
        let module = dso.map(|dso| self.part.profile.name(dso));
        let mut kind = frame_kind(frame);
        // A call that is inlined into JIT code is JIT code too, as in perf.data.
        if frame.inlined && !kind.is_jit() {
            kind = FrameKind::Inlined;
        }
        // Addresses of named functions are dropped; otherwise stacks of the same functions would differ.
        let addr = (frame.symbol == UNKNOWN).then_some(frame.addr);
        let is_jit = kind == FrameKind::Jit;
        // The text doesn't show which runtimes the processes use.
        let tier = if is_jit { self.part.tiers.find(name, frame.symbol, RuntimeSet::default()) } else { None };
        let joined = frame.inlined && is_jit;
        self.part.profile.frame(stacks::Frame { module, addr, tier, joined, ..stacks::Frame::new(name, kind) })
    }

    fn end_sample(&mut self) {
        let Some(sample) = self.sample.take() else {
            self.last_was_sample = false;
            return;
        };
        self.last_was_sample = true;
        let mut stack = None;
        for &frame in sample.frames.iter().rev() {
            stack = Some(self.part.profile.stack(stack, frame));
        }
        self.push_row(&sample, stack);
    }

    fn push_row(&mut self, sample: &OpenSample<'t>, stack: Option<StackId>) {
        let series = self.series(sample);
        let weight = sample.period.unwrap_or(1);
        let row = Row { track: sample.track, stack, weight, count: 1, time: sample.time };
        self.part.profile.push(series, row);
    }

    /// The index of the series for a sample's event. The event's first sample in a part decides the unit of the series.
    fn series(&mut self, sample: &OpenSample<'t>) -> usize {
        if let Some((event, series)) = self.last_event
            && event == sample.event
        {
            return series;
        }
        let series = *self.events.entry(sample.event).or_insert_with(|| {
            let name = String::from_utf8_lossy(sample.event);
            let unit = sample.period.map_or(Unit::Samples, |_| Unit::of_event(&name));
            self.part.profile.series_of((&name, &unit))
        });
        self.last_event = Some((sample.event, series));
        series
    }
}

/// True if the symbol is only a file and an offset, as simpleperf prints unknown functions: `libc.so[+4f2b0]`.
fn is_module_and_offset(frame: &Frame<'_>) -> bool {
    let (Some(dso), Some(symbol)) = (frame.dso, frame.symbol.strip_suffix(b"]")) else { return false };
    let name_len = memchr::memmem::rfind(symbol, b"[+");
    name_len.is_some_and(|len| symbol[..len] == *base_name(dso))
}

fn frame_kind(frame: &Frame<'_>) -> FrameKind {
    // An inlined Java method is JIT code even if the object suggests otherwise.
    if frame.inlined && java_calls::is_method(frame.symbol) {
        return FrameKind::Jit;
    }
    let Some(dso) = frame.dso.filter(|dso| *dso != UNKNOWN) else {
        if frame.is_in_kernel() {
            return FrameKind::Kernel;
        }
        return if frame.symbol == UNKNOWN { FrameKind::Unknown } else { FrameKind::User };
    };
    let dso_kind = DsoKind::classify(Some(dso));
    if dso_kind == DsoKind::Other && frame.is_in_kernel() {
        return FrameKind::Kernel;
    }
    if frame.symbol == UNKNOWN {
        return kind_of_unnamed(dso);
    }
    match dso_kind {
        DsoKind::Anonymous(_) | DsoKind::FileBacked => FrameKind::Jit,
        DsoKind::Other if Backing::of(dso).is_kernel_object() => FrameKind::Kernel,
        DsoKind::MaybeJit | DsoKind::Other => FrameKind::User,
    }
}
