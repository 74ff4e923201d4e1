//! Names the unnamed JIT frames in a block of text and leaves every other byte unchanged.
//!
//! Blocks may be cut after any line. [`State`] holds what a block must know of the text before it, so blocks can be
//! rewritten in parallel:
//!
//! ```text
//! feeder:  cut ── State at its start, advance past it ── cut ── …
//! workers: rewrite(block, state, namer) → the same bytes, or new ones, and counts
//! ```

mod column;
mod frameless;
pub mod memo;
mod naming;
mod one_line;
mod samples;
mod state;
mod style;

pub use naming::{Answer, Counts, Named, Needs, Wanted};
pub use state::{State, cut};
pub use style::Style;

use super::frame::{DsoKind, Frame, UNKNOWN, address};
use super::header::Header;
use crate::model::{Addr, FrameAddr, Pid};
use column::FrameBelow;
use frameless::LastLine;
use memchr::memmem::Finder;
use memo::{Key, KnownFrame, Memo, Object, When};
use one_line::{find_named_frame, first_word, object_end, previous_word};
use samples::Frames;
use state::{Sample, last_paragraph, lines};
use std::ops::Range;

/// The result of rewriting a block.
#[derive(Debug, PartialEq, Eq)]
pub enum Rewritten {
    /// Nothing was renamed; use the block's own bytes.
    Unchanged(Counts),
    /// Some frames were renamed; the output buffer holds the new text.
    Changed(Counts),
    /// Some names are not loaded yet. Load them and rewrite the block again.
    Needs(Needs),
}

/// Rewrites a block into `out`, which must be empty. `records` are the block's record lines, from [`State::advance`].
/// The memo remembers the namer's answers from earlier blocks, and must only be used with the same namer.
pub fn rewrite<'n>(
    (block, records): (&[u8], &[Range<usize>]),
    state: &State,
    style: Style,
    namer: &(dyn Fn(Wanted<'_>) -> Answer<'n> + Sync),
    memo: &mut Memo,
    out: &mut Vec<u8>,
) -> Rewritten {
    let mut job = RewriteJob {
        block,
        style,
        namer,
        memo,
        edited: Edited { block, out, copied: 0 },
        state: state.clone(),
        line_before: state.last_line,
        searched: 0,
        counted: 0,
        last_frame: None,
        last_dso: None,
        unknown: Finder::new(UNKNOWN),
        empty_line: Finder::new(b"\n\n"),
        counts: Counts::default(),
        needs: Needs::default(),
    };
    let mut done = 0;
    for record in records {
        job.rewrite_lines(done..record.start);
        job.state.known.apply(&block[record.clone()]);
        done = record.end;
    }
    job.rewrite_lines(done..block.len());
    job.count_samples(block.len());
    job.finish()
}

struct RewriteJob<'b, 'n, 'f> {
    block: &'b [u8],
    style: Style,
    namer: &'f (dyn Fn(Wanted<'_>) -> Answer<'n> + Sync),
    memo: &'f mut Memo,
    edited: Edited<'b, 'f>,
    state: State,
    /// The kind of the last line before the block.
    line_before: LastLine,
    /// Offset up to which the block was searched for headers.
    searched: usize,
    /// Offset in the block. Samples that end before it were counted.
    counted: usize,
    /// End of the last line with an unnamed user-space frame; `None` before the first one.
    last_frame: Option<usize>,
    /// The last frame's object and its kind; the next frame usually has the same.
    last_dso: Option<(&'b [u8], DsoKind)>,
    unknown: Finder<'static>,
    empty_line: Finder<'static>,
    counts: Counts,
    needs: Needs,
}

/// The answer for a frame, with the key by which the memo remembers it.
enum FrameAnswer {
    Named(Key),
    Unknown(Key),
    NotLoaded,
}

/// A block with some ranges replaced.
struct Edited<'b, 'f> {
    block: &'b [u8],
    out: &'f mut Vec<u8>,
    /// Offset up to which the block was copied to `out`.
    copied: usize,
}

impl Edited<'_, '_> {
    fn replace(&mut self, range: Range<usize>, text: &[u8]) {
        if self.copied == 0 {
            // Names are longer than `[unknown]`; half as much again is enough for most blocks.
            self.out.reserve(self.block.len() + self.block.len() / 2);
        }
        self.out.extend_from_slice(&self.block[self.copied..range.start]);
        self.out.extend_from_slice(text);
        self.copied = range.end;
    }
}

impl<'b> RewriteJob<'b, '_, '_> {
    /// Names the frames in a range of the block that contains no record lines.
    fn rewrite_lines(&mut self, range: Range<usize>) {
        if !self.style.rename {
            return self.name_unnamed(range);
        }
        for line in lines(&self.block[..range.end], range.start) {
            let text = &self.block[line.clone()];
            if !is_frame_line(text) && self.unknown.find(text).is_some() {
                self.name_unnamed(line);
            } else {
                self.rewrite_line(line, find_named_frame(text));
            }
        }
    }

    /// Names the unnamed frames in a range of the block.
    fn name_unnamed(&mut self, range: Range<usize>) {
        let text = &self.block[..range.end];
        let mut done = range.start;
        while let Some(hit) = self.unknown.find(&text[done..]).map(|hit| done + hit) {
            let mut sample_end = None;
            if self.memo.samples.is_worthwhile() {
                sample_end = self.rewrite_sample(text, done..hit);
            }
            done = sample_end.unwrap_or_else(|| self.rewrite_hit(text, hit));
        }
    }

    /// Names all frames of a sample at once, if the same stack was named before. `before` is the text from where the
    /// last step ended up to the sample's first unnamed frame. Returns the end of the sample's frames. `None` if the
    /// sample must be processed frame by frame.
    fn rewrite_sample(&mut self, text: &'b [u8], before: Range<usize>) -> Option<usize> {
        // With record lines in the text, the same frame can mean different code later.
        if !self.state.known.is_empty() {
            return None;
        }
        let header = before.start + last_paragraph(&text[before.clone()])?;
        let start = header + memchr::memchr(b'\n', &text[header..before.end])? + 1;
        if text[start] != b'\t' {
            return None;
        }
        // The frames belong to this header if all lines below it begin with a tab, which is checked below.
        let sample = Sample::from(&Header::parse(&text[header..start - 1])?);
        let end = before.end + self.empty_line.find(&text[before.end..])?;
        let frames = Frames::new(&sample, &text[start..end]);
        if self.counted < header {
            self.count_samples(header);
        }
        let counted_before = self.counted;
        self.counted = end + self.empty_line.needle().len();
        if let Some((new_text, counts)) = self.memo.samples.get(frames, sample.time) {
            if let Some(new_text) = new_text {
                self.edited.replace(start..end, new_text);
            }
            self.counts += counts.clone();
            self.state.sample = sample;
            self.searched = end;
            return Some(end);
        }
        let mut line_feeds = memchr::memchr_iter(b'\n', &text[start..end]);
        if !line_feeds.all(|line_feed| text[start + line_feed + 1] == b'\t') {
            // Some lines are not frames. One of them may be the header of another sample without an empty line before
            // it.
            self.counted = counted_before;
            return None;
        }
        // From here on, `self.counts` is that of this sample only.
        let other_counts = std::mem::take(&mut self.counts);
        let (copied_before, len_before) = (self.edited.copied, self.edited.out.len());
        self.memo.begin_sample();
        let mut done = before.end;
        while let Some(hit) = self.unknown.find(&text[done..end]).map(|hit| done + hit) {
            done = self.rewrite_hit(&text[..=end], hit);
        }
        self.counts += frameless::count_one(&text[start..end]);
        if self.needs.is_empty() {
            let Edited { out, copied, .. } = &self.edited;
            let mut new_text = None;
            if *copied != copied_before {
                // What was already written for this sample, followed by the rest of its frames, which isn't copied yet.
                new_text = Some([&out[len_before + (start - copied_before)..], &text[*copied..end]]);
            }
            self.memo.add_sample(frames, new_text, self.counts.clone());
        }
        self.counts += other_counts;
        Some(end)
    }

    /// Counts the samples that end before `end`.
    fn count_samples(&mut self, end: usize) {
        let before = if self.counted == 0 { self.line_before } else { LastLine::Open };
        self.counts += frameless::count(&self.block[self.counted..end], before);
        self.counted = end;
    }

    /// Names the frame whose `[unknown]` is at offset `hit`, and frames below it that only differ in their address.
    /// Returns the offset at which to continue.
    fn rewrite_hit(&mut self, text: &[u8], hit: usize) -> usize {
        let start = memchr::memrchr(b'\n', &text[..hit]).map_or(0, |end| end + 1);
        let mut end = memchr::memchr(b'\n', &text[hit..]).map_or(text.len(), |len| hit + len);
        let symbol_end = hit + UNKNOWN.len();
        if !is_frame_line(&text[start..end])
            && let Some(object_len) = object_end(&text[symbol_end..end])
        {
            if self.style.srcline {
                // A source line would separate the frame from the fields that follow it.
                return end;
            }
            end = symbol_end + object_len;
        }
        match self.rewrite_line(start..end, previous_word(&text[start..], hit - start)) {
            Some(key) => self.rewrite_frames_below(start..end, key, text),
            None => end,
        }
    }

    /// Names the frames below one whose answer is in the memo (`key`). Most of them differ from it only in their
    /// address and need no parsing; frames that have a name are skipped. Returns the offset at which to continue.
    fn rewrite_frames_below(&mut self, line: Range<usize>, key: Key, text: &[u8]) -> usize {
        // This only works for absolute addresses: relative ones mean different code in each file.
        let Some((_, DsoKind::Anonymous(_))) = self.last_dso else { return line.end };
        let block = self.block;
        let Some((column, tail)) = column::split(&block[line.clone()]) else { return line.end };
        self.memo.add_column(key, column);
        let pid = key.0;
        let when = When { time: self.state.sample.time, markers: self.state.known.marker_count(pid) };
        let mut end = line.end;
        // True if the frame directly above is in user space, so that the current address is a return address.
        let mut is_caller = true;
        while let Some(below) = column::parse_below(text, end, tail) {
            let (column, line_end) = match below {
                FrameBelow::Named { end: line_end, is_user } => {
                    (end, is_caller) = (line_end, is_user);
                    continue;
                }
                FrameBelow::Unnamed { column, end: line_end } => (column, line_end),
            };
            let known = self.memo.get_column(pid, column, when);
            match known.filter(|_| is_caller) {
                Some(KnownFrame::Named { text, is_one_of_several }) => {
                    self.counts.named += 1;
                    self.counts.ambiguous += u64::from(is_one_of_several);
                    let line_start = end + 1;
                    self.edited.replace(line_start + column::END..line_end, text);
                }
                Some(KnownFrame::Unknown) => self.counts.unresolved += 1,
                None => break,
            }
            self.last_frame = Some(line_end);
            (end, is_caller) = (line_end, true);
        }
        self.searched = end;
        end
    }

    /// Names the frame in a line, if it is one. `one_line_frame` is the offset in the line at which the frame of a
    /// one-line sample begins. Returns the frame's key in the memo if it is JIT code and its answer is known.
    fn rewrite_line(&mut self, line: Range<usize>, one_line_frame: Option<usize>) -> Option<Key> {
        let end = line.end - usize::from(self.block[line.clone()].ends_with(b"\r"));
        let block = self.block;
        let text = &block[line.start..end];
        let in_stack = is_frame_line(text);
        let frame_start = if in_stack { first_word(text) } else { one_line_frame }?;
        let frame_text = &text[frame_start..];
        let frame = Frame::parse_unknown(frame_text).or_else(|| Frame::parse(frame_text))?;
        if (frame.symbol != UNKNOWN && !self.style.rename) || frame.inlined || frame.addr >> 63 != 0 {
            return None;
        }
        let dso_kind = self.classify_dso(frame.dso);
        let is_native = frame.symbol == UNKNOWN && frame.dso.is_some_and(|dso| dso.starts_with(b"/"));
        if dso_kind == DsoKind::Other && !(self.style.native && is_native) {
            return None;
        }
        // Directly below another unnamed frame, the sample is the same, and the address is a return address.
        let follows_frame = in_stack && self.last_frame.is_some_and(|end| end + 1 == line.start);
        let is_caller = follows_frame || (in_stack && self.is_below_caller(line.start));
        if in_stack {
            self.last_frame = Some(line.end);
            if follows_frame {
                self.searched = line.start;
            } else {
                self.enter_sample(line.start);
            }
        } else {
            self.state.sample = Sample::from(&Header::parse(text)?);
        }
        let digits = frame_text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        self.name_frame(line.start + frame_start + digits..end, frame, dso_kind, is_caller)
    }

    fn classify_dso(&mut self, dso: Option<&'b [u8]>) -> DsoKind {
        let Some(dso) = dso else { return DsoKind::classify(None) };
        if let Some((last, kind)) = self.last_dso
            && last == dso
        {
            return kind;
        }
        let kind = DsoKind::classify(Some(dso));
        self.last_dso = Some((dso, kind));
        kind
    }

    /// Updates the current sample before the frame at offset `line` is named. Only lines that weren't searched before
    /// are searched for headers.
    fn enter_sample(&mut self, line: usize) {
        self.state.enter_sample(&self.block[self.searched..line]);
        self.searched = line;
    }

    /// True if the frame at offset `line` is a caller, so that its address is a return address. False for the first
    /// frame of a stack and for the first user-space frame below kernel frames.
    fn is_below_caller(&self, line: usize) -> bool {
        let mut end = line;
        // There may be a source line between two frames.
        for _ in 0..2 {
            let Some(stop) = end.checked_sub(1) else { return false };
            let start = memchr::memrchr(b'\n', &self.block[..stop]).map_or(0, |at| at + 1);
            let above = &self.block[start..stop];
            if is_frame_line(above) {
                return is_user_frame(above);
            }
            if above.first() != Some(&b' ') {
                return false;
            }
            end = start;
        }
        false
    }

    /// The process of the current sample. If nothing shows it, the thread's ID is taken for the process ID. `None` if
    /// the thread is unknown too.
    fn process(&self, dso_kind: DsoKind) -> Option<Pid> {
        let Sample { pid, tid, .. } = self.state.sample;
        if pid.is_some() {
            return pid;
        }
        if let Some(pid) = tid.and_then(|tid| self.state.known.process_of(tid)) {
            return Some(pid);
        }
        if let DsoKind::Anonymous(Some(pid)) = dso_kind {
            return Some(Pid(pid));
        }
        tid.map(|tid| Pid(tid.0))
    }

    /// Names a frame by replacing the range `tail`, the text after its address. Returns the frame's key in the memo if
    /// it is JIT code and its answer is known.
    fn name_frame(&mut self, tail: Range<usize>, frame: Frame<'_>, dso_kind: DsoKind, is_caller: bool) -> Option<Key> {
        let pid = self.process(dso_kind);
        if let (DsoKind::Other, Some(dso)) = (dso_kind, frame.dso) {
            self.name_native(tail, pid, dso, &frame, is_caller);
            return None;
        }
        // Not all unnamed frames in such a file are JIT code, so they aren't counted as unresolved.
        let counted = u64::from(dso_kind != DsoKind::MaybeJit);
        let Some(pid) = pid else {
            self.counts.unresolved += counted;
            self.counts.nobodys += counted;
            return None;
        };
        let addr = match dso_kind {
            DsoKind::FileBacked | DsoKind::MaybeJit => {
                self.state.known.absolute(Some(pid), frame.dso.unwrap_or_default(), frame.addr)
            }
            _ => Some(frame.addr),
        };
        let Some(addr) = addr.map(Addr) else {
            self.counts.unresolved += counted;
            self.counts.relative += counted;
            return None;
        };
        let addr = if is_caller { FrameAddr::Return(addr) } else { FrameAddr::Ip(addr) };
        let object = if frame.dso.is_some() { Object::Jit } else { Object::NotShown };
        let markers = self.state.known.marker_count(pid);
        let wanted = Wanted { pid, addr, time: self.state.sample.time, file: None, markers };
        match self.ask(tail, object, wanted) {
            FrameAnswer::Named(key) => {
                self.counts.named += 1;
                Some(key)
            }
            FrameAnswer::Unknown(key) => {
                if frame.symbol == UNKNOWN {
                    self.counts.unresolved += counted;
                }
                Some(key)
            }
            FrameAnswer::NotLoaded => {
                self.needs.pids.insert(pid);
                None
            }
        }
    }

    /// Names a frame of native code in a file by replacing the range `tail`, the text after its address.
    fn name_native(&mut self, tail: Range<usize>, pid: Option<Pid>, dso: &[u8], frame: &Frame<'_>, is_caller: bool) {
        let printed = self.style.file_addresses;
        let offset = frame.dso_offset.or_else(|| self.state.known.file_offset(pid, dso, frame.addr, printed));
        let Some(offset) = offset.map(Addr) else {
            self.counts.native_left += 1;
            return;
        };
        let addr = if is_caller { FrameAddr::Return(offset) } else { FrameAddr::Ip(offset) };
        let object = self.memo.file(dso);
        match self.ask(tail, object, Wanted { pid: Pid(0), addr, time: None, file: Some(dso), markers: 0 }) {
            FrameAnswer::Named(_) => self.counts.native += 1,
            FrameAnswer::Unknown(_) => self.counts.native_left += 1,
            FrameAnswer::NotLoaded => {
                self.needs.places.insert((dso.to_vec(), addr.for_lookup().0));
            }
        }
    }

    /// Looks up a frame in the memo, or else asks the namer. If there is a name, it replaces the range `tail`.
    fn ask(&mut self, tail: Range<usize>, object: Object, wanted: Wanted<'_>) -> FrameAnswer {
        let key = (wanted.pid, wanted.addr, object);
        match self.memo.get(&key, When { time: wanted.time, markers: wanted.markers }) {
            Some(KnownFrame::Named { text, is_one_of_several }) => {
                self.counts.ambiguous += u64::from(is_one_of_several);
                self.edited.replace(tail, text);
                return FrameAnswer::Named(key);
            }
            Some(KnownFrame::Unknown) => return FrameAnswer::Unknown(key),
            None => {}
        }
        match (self.namer)(wanted) {
            Answer::Named(named, valid) => {
                self.counts.ambiguous += u64::from(named.is_one_of_several);
                let text = self.memo.add(key, &named, valid, self.style);
                self.edited.replace(tail, text);
                FrameAnswer::Named(key)
            }
            Answer::Unknown(valid) => {
                self.memo.add_unknown(key, valid, wanted.markers);
                FrameAnswer::Unknown(key)
            }
            Answer::NotLoaded => FrameAnswer::NotLoaded,
        }
    }

    fn finish(self) -> Rewritten {
        if !self.needs.is_empty() {
            return Rewritten::Needs(self.needs);
        }
        let Edited { block, out, copied } = self.edited;
        if copied == 0 {
            return Rewritten::Unchanged(self.counts);
        }
        out.extend_from_slice(&block[copied..]);
        Rewritten::Changed(self.counts)
    }
}

/// True if a line is a frame on a line of its own. It is indented by a tab, or by blanks if the text went through a
/// terminal, or not at all if the indentation was lost.
fn is_frame_line(line: &[u8]) -> bool {
    match line.first() {
        Some(b'\t') => true,
        Some(b' ') => Frame::parse_indented(line.trim_ascii_end()).is_some(),
        _ => Frame::parse_unindented(line.trim_ascii_end()).is_some(),
    }
}

/// True if a frame line has a user-space address, so that the frame below it has a return address.
fn is_user_frame(line: &[u8]) -> bool {
    let addr = first_word(line).and_then(|start| address(&line[start..]));
    addr.is_some_and(|(addr, _)| addr >> 63 == 0)
}

#[cfg(test)]
mod tests;
