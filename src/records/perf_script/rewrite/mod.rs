//! Names the unnamed JIT frames in a block of text and leaves every other byte unchanged.
//!
//! Blocks may be cut at any line. [`State`] holds what the lines before a block say, so blocks can be rewritten in
//! parallel:
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

use super::frame::{Frame, Place, UNKNOWN, address};
use super::header::Header;
use crate::model::{Addr, FrameAddr, Pid};
use column::Below;
use frameless::LastLine;
use memchr::memmem::Finder;
use memo::{Key, KnownFrame, Memo, Object, When};
use one_line::{first_word, named_frame, object_end, word_before};
use samples::Frames;
use state::{Sample, last_paragraph, lines};
use std::ops::Range;

/// The result for a block.
#[derive(Debug, PartialEq, Eq)]
pub enum Rewritten {
    /// Nothing was renamed; use the block's own bytes.
    Unchanged(Counts),
    /// The output buffer holds the new text.
    Changed(Counts),
    /// Some names are not loaded yet. Load them and rewrite the block again.
    Needs(Needs),
}

/// Rewrites a block into an empty buffer. `records` are the block's record lines, from [`State::advance`]. The memo
/// remembers the namer's answers from earlier blocks and must only be used with the same namer.
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
        seen: 0,
        counted: 0,
        last_frame: None,
        last_place: None,
        unknown: Finder::new(UNKNOWN),
        empty_line: Finder::new(b"\n\n"),
        counts: Counts::default(),
        needs: Needs::default(),
    };
    let mut from = 0;
    for record in records {
        job.stretch(from..record.start);
        job.state.known.apply(&block[record.clone()]);
        from = record.end;
    }
    job.stretch(from..block.len());
    job.count_ends(block.len());
    job.finish()
}

struct RewriteJob<'b, 'n, 'f> {
    block: &'b [u8],
    style: Style,
    namer: &'f (dyn Fn(Wanted<'_>) -> Answer<'n> + Sync),
    memo: &'f mut Memo,
    edited: Edited<'b, 'f>,
    state: State,
    /// What kind of line precedes the block.
    line_before: LastLine,
    /// The block was searched for headers up to here.
    seen: usize,
    /// Ends of samples were counted up to here.
    counted: usize,
    /// End of the last line that was an unnamed user-space frame.
    last_frame: Option<usize>,
    /// The last frame's object and its class; the next frame usually has the same.
    last_place: Option<(&'b [u8], Place)>,
    unknown: Finder<'static>,
    empty_line: Finder<'static>,
    counts: Counts,
    needs: Needs,
}

/// The answer for a frame. The key is the frame's key in the memo.
enum FrameAnswer {
    Named(Key),
    Unknown(Key),
    NotLoaded,
}

/// A block with some ranges replaced.
struct Edited<'b, 'f> {
    block: &'b [u8],
    out: &'f mut Vec<u8>,
    /// The block was copied to `out` up to here.
    copied: usize,
}

impl Edited<'_, '_> {
    fn replace(&mut self, range: Range<usize>, text: &[u8]) {
        if self.copied == 0 {
            // Names are longer than `[unknown]`; this is enough for most blocks.
            self.out.reserve(self.block.len() + self.block.len() / 2);
        }
        self.out.extend_from_slice(&self.block[self.copied..range.start]);
        self.out.extend_from_slice(text);
        self.copied = range.end;
    }
}

impl<'b> RewriteJob<'b, '_, '_> {
    /// Processes the lines between two record lines.
    fn stretch(&mut self, range: Range<usize>) {
        if !self.style.rename {
            return self.unnamed(range);
        }
        for line in lines(&self.block[..range.end], range.start) {
            let text = &self.block[line.clone()];
            if !is_frame_line(text) && self.unknown.find(text).is_some() {
                self.unnamed(line);
            } else {
                self.line(line, named_frame(text));
            }
        }
    }

    /// Names the unnamed frames in a range.
    fn unnamed(&mut self, range: Range<usize>) {
        let text = &self.block[..range.end];
        let mut at = range.start;
        while let Some(hit) = self.unknown.find(&text[at..]).map(|hit| at + hit) {
            let whole = if self.memo.samples.pays() { self.sample(text, at..hit) } else { None };
            at = whole.unwrap_or_else(|| self.at_hit(text, hit));
        }
    }

    /// Names all frames of a sample at once, if the same stack was named before. `before` extends up to the sample's
    /// first unnamed frame. Returns the end of the sample's frames, or `None` if the sample must be processed frame by
    /// frame.
    fn sample(&mut self, text: &'b [u8], before: Range<usize>) -> Option<usize> {
        // Record lines may change the meaning of a frame.
        if !self.state.known.is_empty() {
            return None;
        }
        let header = before.start + last_paragraph(&text[before.clone()])?;
        let start = header + memchr::memchr(b'\n', &text[header..before.end])? + 1;
        if text[start] != b'\t' {
            return None;
        }
        // Between the header and the first unnamed frame nothing matters.
        let sample = Sample::from(&Header::parse(&text[header..start - 1])?);
        let end = before.end + self.empty_line.find(&text[before.end..])?;
        let frames = Frames::new(&sample, &text[start..end]);
        if self.counted < header {
            self.count_ends(header);
        }
        let counted = self.counted;
        self.counted = end + self.empty_line.needle().len();
        if let Some((text, counts)) = self.memo.samples.get(frames, sample.time) {
            text.into_iter().for_each(|text| self.edited.replace(start..end, text));
            self.counts += counts.clone();
            (self.state.sample, self.seen) = (sample, end);
            return Some(end);
        }
        let mut lines = memchr::memchr_iter(b'\n', &text[start..end]);
        if !lines.all(|feed| text[start + feed + 1] == b'\t') {
            // There are lines other than frames; another sample may begin without an empty line before it.
            self.counted = counted;
            return None;
        }
        let (counts, copied, len) = (std::mem::take(&mut self.counts), self.edited.copied, self.edited.out.len());
        self.memo.begin();
        let mut at = before.end;
        while let Some(hit) = self.unknown.find(&text[at..end]).map(|hit| at + hit) {
            at = self.at_hit(&text[..=end], hit);
        }
        self.counts += frameless::count_one(&text[start..end]);
        if self.needs.is_empty() {
            let Edited { out, copied: behind, .. } = &self.edited;
            let after = (*behind != copied).then(|| [&out[len + (start - copied)..], &text[*behind..end]]);
            self.memo.keep(frames, after, self.counts.clone());
        }
        self.counts += counts;
        Some(end)
    }

    /// Counts the samples that end before `end`.
    fn count_ends(&mut self, end: usize) {
        let before = if self.counted == 0 { self.line_before } else { LastLine::Open };
        self.counts += frameless::count(&self.block[self.counted..end], before);
        self.counted = end;
    }

    /// Names the frame at an occurrence of `[unknown]`, and similar frames below it. Returns where to continue.
    fn at_hit(&mut self, text: &[u8], hit: usize) -> usize {
        let start = memchr::memrchr(b'\n', &text[..hit]).map_or(0, |end| end + 1);
        let mut end = memchr::memchr(b'\n', &text[hit..]).map_or(text.len(), |len| hit + len);
        if !is_frame_line(&text[start..end]) {
            let behind = object_end(&text[hit + UNKNOWN.len()..end]).map(|len| hit + UNKNOWN.len() + len);
            if self.style.srcline && behind.is_some() {
                // A source line would separate the frame from the fields that follow it.
                return end;
            }
            end = behind.unwrap_or(end);
        }
        match self.line(start..end, word_before(&text[start..], hit - start)) {
            Some(key) => self.frames_below(start..end, key, text),
            None => end,
        }
    }

    /// Continues below a frame that is in the memo. Most frames below differ from it only in their address and need no
    /// parsing; named frames are skipped. Returns where to continue.
    fn frames_below(&mut self, line: Range<usize>, key: Key, text: &[u8]) -> usize {
        // Only absolute addresses: relative ones mean something else in each file.
        let absolute = matches!(self.last_place, Some((_, Place::Anonymous(_))));
        let block = self.block;
        let Some((column, tail)) = column::split(&block[line.clone()]).filter(|_| absolute) else { return line.end };
        self.memo.know_column(key, column);
        let pid = key.0;
        let when = When { time: self.state.sample.time, markers: self.state.known.markers_of(pid) };
        // True if the frame directly above is in user space, so that the current address is a return address.
        let (mut end, mut is_called) = (line.end, true);
        while let Some(below) = column::below(text, end, tail) {
            match below {
                Below::Named { end: behind, is_user } => (end, is_called) = (behind, is_user),
                Below::Unnamed { column, end: behind } => {
                    let known = self.memo.get_column(pid, column, when).filter(|_| is_called);
                    let start = end + 1;
                    match known {
                        Some(KnownFrame::Named { text, is_one_of_several }) => {
                            self.counts.named += 1;
                            self.counts.ambiguous += u64::from(is_one_of_several);
                            self.edited.replace(start + column::END..behind, text);
                        }
                        Some(KnownFrame::Unknown) => self.counts.unresolved += 1,
                        None => break,
                    }
                    self.last_frame = Some(behind);
                    (end, is_called) = (behind, true);
                }
            }
        }
        self.seen = end;
        end
    }

    /// Names the frame in a line, if it is one. `in_sample` is where the frame begins in a one-line sample. Returns its
    /// key in the memo if it is JIT code and the namer was asked.
    fn line(&mut self, line: Range<usize>, in_sample: Option<usize>) -> Option<Key> {
        let end = line.end - usize::from(self.block[line.clone()].ends_with(b"\r"));
        let block = self.block;
        let text = &block[line.start..end];
        let in_stack = is_frame_line(text);
        let frame_at = if in_stack { first_word(text) } else { in_sample }?;
        let frame = Frame::parse_unknown(&text[frame_at..]).or_else(|| Frame::parse(&text[frame_at..]))?;
        if (frame.symbol != UNKNOWN && !self.style.rename) || frame.inlined || frame.addr >> 63 != 0 {
            return None;
        }
        let place = self.place(frame.dso);
        let native = self.style.native && frame.symbol == UNKNOWN && frame.dso.is_some_and(|dso| dso.starts_with(b"/"));
        if place == Place::Elsewhere && !native {
            return None;
        }
        // Directly below another unnamed frame, sample and process are known.
        let continues = in_stack && self.last_frame.is_some_and(|end| end + 1 == line.start);
        let returns = continues || (in_stack && self.returns(line.start));
        if in_stack {
            self.last_frame = Some(line.end);
            if continues {
                self.seen = line.start;
            } else {
                self.enter_sample(line.start);
            }
        } else {
            self.state.sample = Sample::from(&Header::parse(text)?);
        }
        let digits = text[frame_at..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        self.name(line.start + frame_at + digits..end, frame, place, returns)
    }

    fn place(&mut self, dso: Option<&'b [u8]>) -> Place {
        let Some(dso) = dso else { return Place::of(None) };
        match self.last_place {
            Some((last, place)) if last == dso => place,
            _ => {
                let place = Place::of(Some(dso));
                self.last_place = Some((dso, place));
                place
            }
        }
    }

    /// Updates the current sample for a frame at `line`, looking only at lines not looked at before.
    fn enter_sample(&mut self, line: usize) {
        self.state.enter_sample(&self.block[self.seen..line]);
        self.seen = line;
    }

    /// True if the frame at `line` is a caller, so that its address is a return address. The first frame of a stack and
    /// the first one below the kernel's are not.
    fn returns(&self, line: usize) -> bool {
        let mut end = line;
        // There may be a source line between two frames.
        for _ in 0..2 {
            let Some(stop) = end.checked_sub(1) else { return false };
            let start = memchr::memrchr(b'\n', &self.block[..stop]).map_or(0, |at| at + 1);
            let above = &self.block[start..stop];
            if is_frame_line(above) {
                return is_caller(above);
            }
            if above.first() != Some(&b' ') {
                return false;
            }
            end = start;
        }
        false
    }

    /// Names a frame by replacing the text after its address. Returns its key in the memo.
    fn name(&mut self, behind_address: Range<usize>, frame: Frame<'_>, place: Place, returns: bool) -> Option<Key> {
        let Sample { pid, tid, time } = self.state.sample;
        let known = |tid| self.state.known.process_of(tid);
        let of_place = match place {
            Place::Anonymous(pid) => pid.map(Pid),
            _ => None,
        };
        let of_thread = || tid.and_then(known).or(of_place).or(tid.map(|tid| Pid(tid.0)));
        let pid = pid.or_else(of_thread);
        if let (Place::Elsewhere, Some(dso)) = (place, frame.dso) {
            self.name_native(behind_address, pid, dso, &frame, returns);
            return None;
        }
        // An unnamed frame in such a file need not be JIT code.
        let counted = u64::from(place != Place::MaybeJit);
        let Some(pid) = pid else {
            self.counts.unresolved += counted;
            self.counts.nobodys += counted;
            return None;
        };
        let addr = match place {
            Place::FileBacked | Place::MaybeJit => {
                self.state.known.absolute(Some(pid), frame.dso.unwrap_or_default(), frame.addr)
            }
            _ => Some(frame.addr),
        };
        let Some(addr) = addr.map(Addr) else {
            self.counts.unresolved += counted;
            self.counts.relative += counted;
            return None;
        };
        let addr = if returns { FrameAddr::Return(addr) } else { FrameAddr::Ip(addr) };
        let object = if frame.dso.is_some() { Object::Jit } else { Object::NotShown };
        let known = frame.symbol != UNKNOWN;
        let markers = self.state.known.markers_of(pid);
        match self.ask(behind_address, object, Wanted { pid, addr, time, file: None, markers }) {
            FrameAnswer::Named(key) => {
                self.counts.named += 1;
                return Some(key);
            }
            FrameAnswer::Unknown(key) => {
                self.counts.unresolved += u64::from(!known) * counted;
                return Some(key);
            }
            FrameAnswer::NotLoaded => {
                self.needs.pids.insert(pid);
            }
        }
        None
    }

    fn name_native(
        &mut self,
        behind_address: Range<usize>,
        pid: Option<Pid>,
        dso: &[u8],
        frame: &Frame<'_>,
        returns: bool,
    ) {
        let from_address = || self.state.known.file_offset(pid, dso, frame.addr, self.style.file_addresses);
        let Some(offset) = frame.dso_offset.or_else(from_address).map(Addr) else {
            self.counts.native_left += 1;
            return;
        };
        let addr = if returns { FrameAddr::Return(offset) } else { FrameAddr::Ip(offset) };
        let object = self.memo.file(dso);
        match self.ask(behind_address, object, Wanted { pid: Pid(0), addr, time: None, file: Some(dso), markers: 0 }) {
            FrameAnswer::Named(_) => self.counts.native += 1,
            FrameAnswer::Unknown(_) => self.counts.native_left += 1,
            FrameAnswer::NotLoaded => {
                self.needs.places.insert((dso.to_vec(), addr.for_lookup().0));
            }
        }
    }

    /// Names a frame if the memo or the namer knows its name.
    fn ask(&mut self, behind_address: Range<usize>, object: Object, wanted: Wanted<'_>) -> FrameAnswer {
        let key = (wanted.pid, wanted.addr, object);
        match self.memo.get(&key, When { time: wanted.time, markers: wanted.markers }) {
            Some(KnownFrame::Named { text, is_one_of_several }) => {
                self.counts.ambiguous += u64::from(is_one_of_several);
                self.edited.replace(behind_address, text);
                return FrameAnswer::Named(key);
            }
            Some(KnownFrame::Unknown) => return FrameAnswer::Unknown(key),
            None => {}
        }
        match (self.namer)(wanted) {
            Answer::Named(named, valid) => {
                self.counts.ambiguous += u64::from(named.is_one_of_several);
                let text = self.memo.add(key, &named, valid, self.style);
                self.edited.replace(behind_address, text);
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

/// True if a line is a frame of a stack. It is indented by a tab, or by blanks if the text went through a terminal, or
/// not at all if the indentation was lost.
fn is_frame_line(line: &[u8]) -> bool {
    match line.first() {
        Some(b'\t') => true,
        Some(b' ') => Frame::parse_indented(line.trim_ascii_end()).is_some(),
        _ => Frame::parse_unindented(line.trim_ascii_end()).is_some(),
    }
}

/// True if a line is a user-space frame, so that the frame below it holds a return address.
fn is_caller(frame: &[u8]) -> bool {
    let addr = first_word(frame).and_then(|at| address(&frame[at..]));
    addr.is_some_and(|(addr, _)| addr >> 63 == 0)
}

#[cfg(test)]
mod tests;
