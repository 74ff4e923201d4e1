//! Reads perf script output into a profile.
//!
//! For reading in parallel, a text can be cut into parts ([`cut`](super::cut)). The reader of a part also needs the
//! facts from the record lines before it ([`RecordLineFacts`]).
//!
//! For speed, if the frames of a sample have the same text as those of an earlier sample, the sample gets the earlier
//! one's stack. In other samples, each distinct frame line is parsed only once, and callers that a stack shares with
//! the previous one aren't looked up again.

#[cfg(test)]
mod tests;

use super::frame::{DsoKind, Frame, INLINED, UNKNOWN};
use super::header::Header;
use super::layout::{Layout, SampleStart};
use super::lines::{Line, Lines};
use super::record_lines::RecordLineFacts;
use super::sample_memo::{FramesText, SampleMemo};
use crate::analysis::named_frames::kind_of_unnamed;
use crate::error::{Error, Skipped};
use crate::model::mapping_kind::{MappingKind, base_name};
use crate::model::stacks::{self, FrameId, FrameKind, Keep, Profile, Row, StackId, Track, TrackId, Unit};
use crate::model::{Nanos, Pid, Tid};
use crate::runtimes::java_calls;
use crate::runtimes::{RuntimeSet, Tiers};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Reads a whole text. Each event becomes a series. Samples without a period have weight 1, as in
/// inferno-collapse-perf.
#[cfg(any(test, fuzzing))]
pub fn read(
    bytes: &[u8],
    options: &crate::contract::format::ReadOptions,
    warnings: &mut crate::error::Warnings,
) -> crate::error::Result<Profile> {
    let mut reader = PartReader::new(options.keep, Layout::detect(bytes));
    warnings.extend(reader.read(bytes, &RecordLineFacts::default()).into_warning());
    Ok(reader.into_profile())
}

/// Reads parts of a text one after the other into one profile. Frame lines are remembered from part to part.
#[derive(Debug)]
pub struct PartReader {
    layout: Layout,
    profile: Profile,
    tiers: Tiers,
    /// The frames of the lines that were read so far.
    lines: LineMemo,
    /// The stacks of samples that repeat.
    samples: SampleMemo<Option<StackId>>,
    /// Demangles symbols. Until [`Self::with_readable_names`] is called, symbols stay as they are.
    demangle: Demangler,
}

/// A function that demangles a symbol; it returns `None` if the symbol isn't mangled.
pub type Demangler = fn(&[u8]) -> Option<String>;

impl PartReader {
    /// Creates a reader with an empty profile, for a text of this layout.
    pub fn new(keep: Keep, layout: Layout) -> Self {
        let mut profile = Profile::empty(keep);
        // Only Linux has perf.
        profile.about.os = Some(b"Linux".to_vec());
        profile.perf_names = true;
        let (tiers, lines, samples) = (Tiers::default(), LineMemo::default(), SampleMemo::default());
        Self { layout, profile, tiers, lines, samples, demangle: |_| None }
    }

    /// Demangles function names with `demangle`. To be called before the first part is read.
    pub fn with_readable_names(mut self, demangle: Demangler) -> Self {
        self.demangle = demangle;
        self
    }

    /// Reads the next part of a text, which must end where [`cut`](super::cut) says. `facts` is what the record lines
    /// before the part (of records other than samples) say about processes and mappings. Returns a count of the lines
    /// that were skipped because they are neither a part of a sample nor a record.
    pub fn read(&mut self, text: &[u8], facts: &RecordLineFacts) -> Skipped {
        // The memo of frame lines grows from part to part, so it is emptied if it is too large.
        self.lines.make_room();
        let layout = self.layout.clone();
        let mut reader = TextReader::new(self, text, facts);
        let mut lines = Lines::new(text, &layout);
        while let Some((range, line)) = lines.next() {
            let is_above_frames = matches!(line, Line::Header(_, None));
            reader.read_line(line, range);
            // If an earlier sample had the same text of frames, this one gets its stack, and the frames aren't read
            // again.
            if is_above_frames
                && let Some(frames) = lines.frames_below()
                && reader.end_known_sample(&frames)
            {
                lines.skip_sample(&frames);
            }
        }
        reader.end_sample();
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

/// Remembers the frames of each distinct frame line.
#[derive(Debug, Default)]
struct LineMemo {
    /// For each line, the range of its frames in `frames`.
    lines: FxHashMap<Box<[u8]>, Range<u32>>,
    /// The frames of all remembered lines. Most lines have one frame, but a Java symbol can list inlined calls; the
    /// innermost frame is then first.
    frames: Vec<FrameId>,
    /// Total length of the lines in bytes.
    len: usize,
}

impl LineMemo {
    /// Empties the memo if it is too large.
    fn make_room(&mut self) {
        const MAX_BYTES: usize = 4 << 20;
        const MAX_FRAMES: usize = 1 << 16;
        if self.len > MAX_BYTES || self.frames.len() > MAX_FRAMES {
            *self = Self::default();
        }
    }

    /// The frames of a line, leaf first; `None` if the line isn't remembered.
    fn get(&self, line: &[u8]) -> Option<&[FrameId]> {
        let Range { start, end } = self.lines.get(line)?;
        Some(&self.frames[*start as usize..*end as usize])
    }

    /// Remembers the frames of a line, leaf first.
    fn add(&mut self, line: &[u8], frames: &[FrameId]) {
        let (start, end) = (self.frames.len(), self.frames.len() + frames.len());
        if let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end)) {
            self.frames.extend_from_slice(frames);
            self.len += line.len();
            self.lines.insert(line.into(), start..end);
        }
    }
}

/// Reads one part of a text.
struct TextReader<'t, 'p> {
    part: &'p mut PartReader,
    /// The part's text.
    text: &'t [u8],
    /// What the lines of records other than samples have said so far about processes and mappings.
    facts: RecordLineFacts,
    sample: Option<OpenSample<'t>>,
    /// The text of the open sample's frames, if its stack can be remembered for samples with the same text.
    new_frames: Option<FramesText<'t>>,
    /// The frames of the current sample, leaf first, as printed.
    frames: Vec<FrameId>,
    /// The frames of the last sample, outermost first, each with the stack that ends with it.
    last_stack: Vec<(FrameId, StackId)>,
    /// The last sample's thread, as printed in its header, and the thread's track.
    thread: Option<(TextThread<'t>, TrackId)>,
    /// The index of each event's series, for the events of this part.
    events: FxHashMap<&'t [u8], usize>,
    /// The event of the last sample, and the index of its series.
    last_event: Option<(&'t [u8], usize)>,
    skipped: Skipped,
}

/// A sample's thread as printed in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TextThread<'t> {
    comm: &'t [u8],
    pid: Option<Pid>,
    tid: Option<Tid>,
}

/// A sample whose frames are being read.
#[derive(Debug, Clone, Copy)]
struct OpenSample<'t> {
    event: &'t [u8],
    track: TrackId,
    /// The sampling period; `None` if the text doesn't show periods.
    period: Option<u64>,
    time: Option<Nanos>,
}

/// Name of the series for samples without an event name.
const NO_EVENT: &[u8] = b"samples";

impl<'t, 'p> TextReader<'t, 'p> {
    /// Creates a reader for `text`, one part of a text. `facts` is what the record lines before that part say.
    fn new(part: &'p mut PartReader, text: &'t [u8], facts: &RecordLineFacts) -> Self {
        Self {
            part,
            text,
            facts: facts.clone(),
            sample: None,
            new_frames: None,
            frames: Vec::new(),
            last_stack: Vec::new(),
            thread: None,
            events: FxHashMap::default(),
            last_event: None,
            skipped: Skipped::new("line"),
        }
    }

    /// Reads a line of the part. `range` is the line's range of bytes in the part.
    fn read_line(&mut self, line: Line<'t>, range: Range<usize>) {
        let offset = range.start as u64;
        match line {
            Line::Empty => self.end_sample_at(range.start),
            Line::Header(header, frame) => {
                self.end_sample();
                self.begin_sample(&header);
                if let Some(frame) = frame {
                    self.push_frames(&frame);
                }
            }
            Line::Frame(frame) => {
                // In a text without headers, the first frame after an empty line begins a sample.
                if self.sample.is_none() && self.part.layout.sample_start == SampleStart::Frame {
                    self.begin_sample(&Header::default());
                }
                match self.sample {
                    Some(_) => self.read_frame_line(frame),
                    None => {
                        self.skipped.add(Error::new("a line with a frame has no sample above it").at_offset(offset))
                    }
                }
            }
            Line::Source(source) => self.read_source_line(source),
            Line::Record => {
                // A stack is remembered so that a later sample with the same text gets it, and its lines needn't be
                // read. This text contains a record, which has to be applied each time, so its stack isn't remembered.
                self.new_frames = None;
                self.facts.apply(&self.text[range]);
            }
            Line::Other => {}
            Line::Noise(why) => {
                // As with a record, the stack isn't remembered, because this line has to be counted each time.
                self.new_frames = None;
                self.skipped.add(Error::new(why).at_offset(offset));
            }
        }
    }

    /// Starts the sample that a header line announces.
    fn begin_sample(&mut self, header: &Header<'t>) {
        self.frames.clear();
        self.sample = Some(OpenSample {
            event: header.event.unwrap_or(NO_EVENT),
            track: self.find_track(header),
            period: header.period,
            time: header.time.filter(|time| time.is_valid()),
        });
    }

    /// The track of the thread in a header. If nothing shows the thread's process, the thread's ID is taken for the
    /// process ID.
    fn find_track(&mut self, header: &Header<'t>) -> TrackId {
        let mut pid = header.pid;
        if pid.is_none()
            && let Some(tid) = header.tid
        {
            pid = self.facts.process_of(tid).or(Some(Pid(tid.0)));
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

    /// Adds the frames of a line to the open sample. Lines that were seen before aren't parsed again.
    fn read_frame_line(&mut self, line: &[u8]) {
        if let Some(known) = self.part.lines.get(line) {
            return self.frames.extend_from_slice(known);
        }
        let Some(frame) = Frame::parse(line) else { return };
        let known_len = self.frames.len();
        self.push_frames(&frame);
        self.part.lines.add(line, &self.frames[known_len..]);
    }

    /// Reads a source line, such as `file.c:12`, which belongs to the last frame so far. `file.c:12 (inlined)` also
    /// says that this frame was inlined into its caller.
    fn read_source_line(&mut self, text: &[u8]) {
        let (text, is_inlined) = match text.strip_suffix(INLINED) {
            Some(text) => (text, true),
            None => (text, false),
        };
        // A source line without a frame above it has nothing to describe.
        let Some(last) = self.frames.last_mut() else { return };
        let mut frame = *self.part.profile.frame_of(*last);
        // A call that is inlined into JIT code stays JIT code.
        if is_inlined && !frame.kind.is_jit() {
            frame.kind = FrameKind::Inlined;
        }
        // Where perf knows no source line, it prints object and address, `libc.so.6[28150]`, which aren't kept.
        if let Some(colon) = memchr::memrchr(b':', text)
            && let Some(line) = str::from_utf8(&text[colon + 1..]).ok().and_then(|line| line.parse().ok())
        {
            frame.file = Some(self.part.profile.name(&text[..colon]));
            frame.line = line;
        }
        *last = self.part.profile.frame(frame);
    }

    /// Adds the frame of a line to the sample. The frame of a JIT-compiled Java method becomes several if its symbol
    /// lists inlined calls; their order is then innermost first, as in the text.
    fn push_frames(&mut self, frame: &Frame<'_>) {
        if frame_kind(frame) == FrameKind::Jit
            && let Some(calls) = java_calls::split_joined(frame.symbol)
        {
            for symbol in calls.expanded.iter().rev() {
                let inlined = self.add_frame(&Frame { symbol, inlined: true, ..*frame });
                self.frames.push(inlined);
            }
            let root = self.add_frame(&Frame { symbol: calls.root, ..*frame });
            self.frames.push(root);
        } else {
            let frame = self.add_frame(frame);
            self.frames.push(frame);
        }
    }

    /// Adds a frame to the profile.
    fn add_frame(&mut self, frame: &Frame<'_>) -> FrameId {
        // simpleperf's `libc.so[+4f2b0]` names no function; as a symbol, each address would be a function of its own.
        let symbol = if is_module_and_offset(frame) { UNKNOWN } else { frame.symbol };
        // Mangled symbols begin with an underscore. Most symbols don't, so this test saves time.
        let demangled = if symbol.starts_with(b"_") { (self.part.demangle)(symbol) } else { None };
        let symbol = demangled.as_ref().map_or(symbol, String::as_bytes);
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
        let addr = if frame.symbol == UNKNOWN { Some(frame.addr) } else { None };
        let is_jit = kind == FrameKind::Jit;
        // The text doesn't show which runtimes the processes use, so the tier is only found if the name alone shows it.
        let tier = if is_jit { self.part.tiers.find(name, frame.symbol, RuntimeSet::default()) } else { None };
        // A Java symbol may list the calls that were inlined into its method, and `push_frames` makes a frame of each.
        // These are the only inlined calls whose kind is `Jit`. `from_joined_name` makes labels show that they are
        // inlined.
        let from_joined_name = frame.inlined && is_jit;
        self.part.profile.frame(stacks::Frame {
            module,
            addr,
            tier,
            from_joined_name,
            ..stacks::Frame::new(name, kind)
        })
    }

    /// If the frames of an earlier sample have the same text, ends the open sample with that sample's stack and returns
    /// true. Otherwise, returns false: the frames must be read, and their stack will be remembered.
    fn end_known_sample(&mut self, frames: &FramesText<'t>) -> bool {
        let Some((&stack, _)) = self.part.samples.get(frames) else {
            self.new_frames = Some(*frames);
            return false;
        };
        if let Some(sample) = self.sample.take() {
            self.add_row(&sample, stack);
        }
        true
    }

    /// Ends the open sample at an empty line, and remembers its stack if possible. `offset` is where the line is.
    fn end_sample_at(&mut self, offset: usize) {
        let frames = self.new_frames.take();
        let stack = self.end_sample();
        // `frames` extends to the next line without any bytes. A line of blanks also ends a sample, so this sample may
        // have ended before `frames` does. Then its stack isn't the one of `frames`.
        if let Some(frames) = frames
            && frames.end_of_sample() == offset
            && let Some(stack) = stack
        {
            // The stack is all that has to be remembered. Only rewriting needs a text as well.
            self.part.samples.add(&frames, stack, [b"", b""]);
        }
    }

    /// Ends the open sample and adds its row to the profile. Returns the sample's stack, which is `None` for a sample
    /// without frames; returns `None` if no sample is open.
    fn end_sample(&mut self) -> Option<Option<StackId>> {
        self.new_frames = None;
        let sample = self.sample.take()?;
        let stack = self.make_stack();
        self.frames.clear();
        self.add_row(&sample, stack);
        Some(stack)
    }

    /// Adds the row of a sample to the profile.
    fn add_row(&mut self, sample: &OpenSample<'t>, stack: Option<StackId>) {
        let series = self.find_series(sample);
        let weight = sample.period.unwrap_or(1);
        let row = Row { track: sample.track, stack, weight, count: 1, time: sample.time };
        self.part.profile.push(series, row);
    }

    /// The stack of the current sample's frames; `None` if there are none. Most stacks have the same callers as the
    /// previous one, so only the frames that differ are looked up.
    fn make_stack(&mut self) -> Option<StackId> {
        // The number of frames, counted from the outermost one, that are the same in this stack and the last one.
        let mut shared = 0;
        for (frame, (last_frame, _)) in self.frames.iter().rev().zip(&self.last_stack) {
            if frame != last_frame {
                break;
            }
            shared += 1;
        }
        self.last_stack.truncate(shared);
        let mut stack = self.last_stack.last().map(|(_, stack)| *stack);
        for &frame in self.frames.iter().rev().skip(shared) {
            let next = self.part.profile.stack(stack, frame);
            self.last_stack.push((frame, next));
            stack = Some(next);
        }
        stack
    }

    /// The index of the series for a sample's event. The event's first sample in a part decides the unit of the series:
    /// if the text shows no period, samples are counted; otherwise, the event's name tells what a period measures.
    fn find_series(&mut self, sample: &OpenSample<'t>) -> usize {
        if let Some((event, series)) = self.last_event
            && event == sample.event
        {
            return series;
        }
        let series = *self.events.entry(sample.event).or_insert_with(|| {
            let name = String::from_utf8_lossy(sample.event);
            let unit = sample.period.map_or(Unit::Samples, |_| Unit::from_event_name(&name));
            self.part.profile.series_with_unit(&name, &unit)
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

/// The kind of code of a frame, judged by its symbol, its object, and its address.
fn frame_kind(frame: &Frame<'_>) -> FrameKind {
    // An inlined Java method is JIT code even if the object suggests otherwise.
    if frame.inlined && java_calls::is_method(frame.symbol) {
        return FrameKind::Jit;
    }
    let Some(dso) = frame.dso.filter(|dso| *dso != UNKNOWN) else {
        // If perf found neither a symbol nor a mapping (`[unknown] ([unknown])`), the address may be any word that a
        // broken call chain led to, so it tells nothing.
        let is_nowhere = frame.symbol == UNKNOWN && frame.dso.is_some();
        if frame.is_in_kernel() && !is_nowhere {
            return FrameKind::Kernel;
        }
        return if frame.symbol == UNKNOWN { FrameKind::Unknown } else { FrameKind::User };
    };
    // An address in the kernel's half of the memory shows that the code is the kernel's. But `Anonymous` and
    // `FileBacked` objects contain nothing but JIT code, so that their frames are JIT code at any address.
    let dso_kind = DsoKind::classify(Some(dso));
    if matches!(dso_kind, DsoKind::Other | DsoKind::MaybeJit) && frame.is_in_kernel() {
        return FrameKind::Kernel;
    }
    if frame.symbol == UNKNOWN {
        return kind_of_unnamed(dso);
    }
    match dso_kind {
        DsoKind::Anonymous(_) | DsoKind::FileBacked => FrameKind::Jit,
        DsoKind::Other if MappingKind::from_path(dso).is_kernel_object() => FrameKind::Kernel,
        // If perf could name code in a file that may hold JIT code, the name is from the file's symbols, so the file is
        // a library.
        DsoKind::MaybeJit | DsoKind::Other => FrameKind::User,
    }
}
