//! Names the unnamed JIT frames in a block of text and leaves every other byte unchanged.
//!
//! Blocks are cut between samples ([`cut`](super::cut)). All that the rewriter needs from the text before a block are
//! the facts from its record lines, so blocks can be rewritten in parallel.

pub mod memo;
mod naming;
mod style;

pub use naming::{Answer, Counts, FrameName, FrameQuery, Needs};
pub use style::Style;

use super::frame::{DsoKind, Frame, UNKNOWN};
use super::header::Header;
use super::layout::Layout;
use super::lines::{Line, Lines};
use super::record_lines::RecordLineFacts;
use super::sample_memo::FramesText;
use crate::model::lasting::{ALWAYS, UNTIMED, intersect};
use crate::model::{Addr, FrameAddr, Nanos, Pid, Tid};
use memchr::memmem;
use memo::{FrameKey, KnownFrame, LookupState, Memo, Object, RewrittenFrames};
use std::ops::Range;

/// Rewrites blocks of one text. A block is a part of the text that begins and ends between samples.
pub(crate) struct Rewriter<'a, 'n> {
    /// The layout of the text.
    pub(crate) layout: &'a Layout,
    /// Which frames to name, and how.
    pub(crate) style: Style,
    /// Looks up the names of frames.
    pub(crate) namer: &'a (dyn Fn(FrameQuery<'_>) -> Answer<'n> + Sync),
}

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

impl Rewriter<'_, '_> {
    /// Rewrites a block into `out`, which must be empty. `facts` is what the record lines before the block (of records
    /// other than samples) say about processes and mappings. The memo remembers the namer's answers from earlier
    /// blocks, and must only be used with the same rewriter.
    pub(crate) fn rewrite(
        &self,
        block: &[u8],
        facts: &RecordLineFacts,
        memo: &mut Memo,
        out: &mut Vec<u8>,
    ) -> Rewritten {
        let mut block_rewriter = BlockRewriter {
            rewriter: self,
            block,
            memo,
            edited: EditedBlock { block, out, copied: 0 },
            facts: facts.clone(),
            sample: Sample::default(),
            new_frames: None,
            is_below_user_frame: false,
            last_dso: None,
            counts: Counts::default(),
            needs: Needs::default(),
        };
        let mut lines = Lines::new(block, self.layout);
        while let Some((range, line)) = lines.next() {
            block_rewriter.rewrite_line(range, &line);
            // If an earlier sample had the same text of frames, the result for it is copied, and the lines are skipped.
            if matches!(line, Line::Header(_, None))
                && let Some(frames) = lines.frames_below()
                && block_rewriter.rewrite_known_sample(frames)
            {
                lines.skip_sample(&frames);
            }
        }
        block_rewriter.finish()
    }
}

struct BlockRewriter<'b, 'a, 'n, 'o> {
    rewriter: &'a Rewriter<'a, 'n>,
    block: &'b [u8],
    memo: &'o mut Memo,
    edited: EditedBlock<'b, 'o>,
    /// What the lines of records other than samples have said so far about processes and mappings.
    facts: RecordLineFacts,
    sample: Sample,
    /// The frames of the sample, if what becomes of them can be remembered for samples with the same text.
    new_frames: Option<NewFrames<'b>>,
    /// True if the last frame of the sample is in user space. The next frame is then its caller, whose address is a
    /// return address.
    is_below_user_frame: bool,
    /// The object of the last frame and the object's kind; the next frame usually has the same object.
    last_dso: Option<(&'b [u8], DsoKind)>,
    counts: Counts,
    /// What must be loaded before the block can be rewritten. If it isn't empty at the end, the new text is thrown
    /// away.
    needs: Needs,
}

/// The sample to which the current line belongs.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    pid: Option<Pid>,
    tid: Option<Tid>,
    /// The time as of which code is looked up ([`Header::lookup_time`]).
    time: Option<Nanos>,
    /// True if the sample began with a header. False between samples, and in a text without headers.
    has_header: bool,
    /// True if the sample has a frame on a line of its own, or if text follows the event's name in its header: without
    /// call chains, perf prints the sample's only frame there.
    has_frame: bool,
}

impl From<&Header<'_>> for Sample {
    fn from(header: &Header<'_>) -> Self {
        let (pid, tid, time) = (header.pid, header.tid, header.lookup_time());
        let ends_with_event = header.rest.is_empty() || header.rest.ends_with(b":");
        Self { pid, tid, time, has_header: true, has_frame: !ends_with_event }
    }
}

/// The frames of a sample, while they are being rewritten for the first time.
struct NewFrames<'b> {
    frames: FramesText<'b>,
    /// The time range in which all names hold that were looked up so far.
    holds: Range<Nanos>,
    /// The length of the new text, and how much of the block it covers, before these frames.
    edited_before: (usize, usize),
    /// What was counted before these frames.
    counts_before: Counts,
}

/// A frame's position in its stack. It decides what the frame's address means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameRole {
    /// The function that ran in user space. Its address is the instruction pointer.
    Innermost,
    /// A function that called another one in user space. Its address is a return address.
    Caller,
}

impl FrameRole {
    /// The address of a frame in this role.
    fn frame_addr(self, addr: Addr) -> FrameAddr {
        match self {
            Self::Innermost => FrameAddr::Ip(addr),
            Self::Caller => FrameAddr::Return(addr),
        }
    }
}

/// What the memo or the namer says about a frame.
enum FrameAnswer {
    Named,
    Unknown,
    NotLoaded,
}

/// A block with some ranges replaced.
struct EditedBlock<'b, 'o> {
    block: &'b [u8],
    out: &'o mut Vec<u8>,
    /// Offset up to which the block was copied to `out`.
    copied: usize,
}

impl EditedBlock<'_, '_> {
    /// Replaces a range of the block by a text. Ranges must be given in ascending order.
    fn replace(&mut self, range: Range<usize>, text: &[u8]) {
        if self.copied == 0 {
            // Names are longer than `[unknown]`. For most blocks, one and a half times their length is enough room.
            self.out.reserve(self.block.len() + self.block.len() / 2);
        }
        self.out.extend_from_slice(&self.block[self.copied..range.start]);
        self.out.extend_from_slice(text);
        self.copied = range.end;
    }
}

impl<'b> BlockRewriter<'b, '_, '_, '_> {
    /// Handles one line of the block: begins or ends a sample, names the line's frames, or takes in what a record says.
    /// `range` is the line's range in the block.
    fn rewrite_line(&mut self, range: Range<usize>, line: &Line<'b>) {
        match line {
            Line::Empty => {
                self.remember_frames(range.start);
                self.end_sample();
            }
            Line::Header(header, _) => {
                self.new_frames = None;
                // A header also ends the previous sample if no empty line does. Such a sample isn't counted, because
                // perf prints an empty line after each sample with a call chain.
                (self.sample, self.is_below_user_frame) = (Sample::from(header), false);
                self.name_frames_after_event(header, range);
            }
            Line::Frame(_) => self.name_frame_line(range),
            Line::Record => {
                // The text of the sample's frames contains this record. If the result for the text were remembered,
                // the lines of a later sample with the same text would be skipped, and a record among them missed.
                self.new_frames = None;
                self.facts.apply(&self.block[range]);
            }
            Line::Source(_) | Line::Other | Line::Noise(_) => {}
        }
    }

    /// Counts the sample that an empty line ends. It may have no frames: perf prints none if the call chain contains a
    /// number that is in the range of context markers, but isn't one of the known markers.
    fn end_sample(&mut self) {
        let Sample { has_header, has_frame, .. } = self.sample;
        self.counts.samples += u64::from(has_header || has_frame);
        self.counts.frameless += u64::from(has_header && !has_frame);
        (self.sample, self.is_below_user_frame) = (Sample::default(), false);
    }

    /// If an earlier sample of the same thread had frames with the same text, copies the result for these frames, ends
    /// the current sample and returns true. Otherwise, returns false: the frames must be rewritten one by one. If
    /// possible, `new_frames` is set, so that the result will be remembered.
    fn rewrite_known_sample(&mut self, frames: FramesText<'b>) -> bool {
        // If there are record lines, what they say about processes and mappings also decides how a frame is named. The
        // same text may then have another result, so nothing is remembered.
        if !self.facts.is_empty() {
            return false;
        }
        let owner = (self.sample.pid, self.sample.tid);
        if let Some((known, text)) = self.memo.samples.get(&frames)
            && known.owner == owner
            && known.holds.contains(&self.sample.time.unwrap_or(UNTIMED))
        {
            if known.has_new_text {
                self.edited.replace(frames.range(), text);
            }
            self.sample.has_frame |= known.has_frame;
            self.counts += known.counts.clone();
            self.end_sample();
            return true;
        }
        // The result must say whether these lines contain a frame. `remember_frames` takes that from the sample's
        // `has_frame`, which doesn't show it if the header has a frame already.
        if self.sample.has_frame {
            return false;
        }
        let edited_before = (self.edited.out.len(), self.edited.copied);
        let counts_before = self.counts.clone();
        self.new_frames = Some(NewFrames { frames, holds: ALWAYS, edited_before, counts_before });
        false
    }

    /// Remembers the new text and the counts of the current sample's frames. A later sample whose frames have the same
    /// text then gets both without being rewritten. Called when an empty line ends the sample; `offset` is where that
    /// line begins in the block.
    fn remember_frames(&mut self, offset: usize) {
        let Some(NewFrames { frames, holds, edited_before, counts_before }) = self.new_frames.take() else { return };
        // `frames` extends to the next line without any bytes. A line of blanks also ends a sample, so this sample may
        // have ended before `frames` does. Then there is no result for all of `frames`.
        if frames.end_of_sample() != offset {
            return;
        }
        // Some names aren't loaded yet, so this result is incomplete, and the block will be rewritten.
        if !self.needs.is_empty() {
            return;
        }
        let (out_before, copied_before) = edited_before;
        let Range { start, end } = frames.range();
        let has_new_text = self.edited.copied > start;
        let new_text = if has_new_text {
            // Before these frames, `out` had the block up to `copied_before`. The first replacement in them also copied
            // the bytes from there to `start`, which don't belong to the frames.
            let new_text_start = out_before + (start - copied_before);
            // The bytes after the last replacement aren't in `out` yet. They are unchanged, so the block has them.
            [&self.edited.out[new_text_start..], &self.block[self.edited.copied..end]]
        } else {
            [&b""[..], &b""[..]]
        };
        let owner = (self.sample.pid, self.sample.tid);
        let counts = self.counts.since(&counts_before);
        let has_frame = self.sample.has_frame;
        let rewritten = RewrittenFrames { owner, holds, has_new_text, has_frame, counts };
        self.memo.samples.add(&frames, rewritten, new_text);
    }

    /// Notes that a name which was looked up for the current sample only holds in this time range.
    fn narrow(&mut self, holds: Range<Nanos>) {
        if let Some(new) = &mut self.new_frames {
            new.holds = intersect(new.holds.clone(), holds);
        }
    }

    /// Names the frame on a line that contains nothing else.
    fn name_frame_line(&mut self, line: Range<usize>) {
        self.sample.has_frame = true;
        let text = &self.block[line.clone()];
        let start = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let digits = text[start..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        // Sixteen digits, of which the first is 8 or more: the highest bit of the address is set.
        let is_in_kernel_half = digits == 16 && text[start] >= b'8';
        let role = if self.is_below_user_frame { FrameRole::Caller } else { FrameRole::Innermost };
        self.is_below_user_frame = !is_in_kernel_half;
        let after_address = &text[start + digits..];
        // Most frames have names. Find them by their first characters, before parsing the line.
        let may_be_unnamed = after_address.is_empty()
            // texts of simpleperf separate address and symbol by a tab
            || after_address.starts_with(b"\t")
            || after_address.starts_with(b" [unknown]")
            || after_address.starts_with(b" (");
        if may_be_unnamed || self.rewriter.style.rename {
            self.name_frame(line.start + start..line.end, role);
        }
    }

    /// Names the frames that follow the event on the line of a header. Usually there is one. With branches there are
    /// two: `7f1 [unknown] (//anon) =>  7f2 [unknown] (//anon)`.
    fn name_frames_after_event(&mut self, header: &Header<'b>, line: Range<usize>) {
        let text = &self.block[..line.end];
        // Where to look for the next frame. `header.rest` ends where the line ends, so its length tells where it
        // begins.
        let mut done = line.end - header.rest.len();
        let mut shows_unknown = false;
        while let Some(hit) = memmem::find(&text[done..], UNKNOWN) {
            shows_unknown = true;
            // The offset of the symbol in the block.
            let symbol = done + hit;
            let symbol_end = symbol + UNKNOWN.len();
            // The object `(…)` that follows the symbol, if more fields follow the object; otherwise the frame ends with
            // the line.
            let object = object_len(&text[symbol_end..]);
            if object.is_some() && self.rewriter.style.srcline {
                // Leave the line as it is: the source line of the new name would stand between the frame and its other
                // fields.
                return;
            }
            done = object.map_or(line.end, |len| symbol_end + len);
            // The frame extends from the address, which is the word before the symbol, to the end of the object.
            if let Some(address) = previous_word(&text[line.start..], symbol - line.start) {
                self.name_frame(line.start + address..done, FrameRole::Innermost);
            }
        }
        if !shows_unknown && let Some(len) = last_frame_len(header) {
            self.name_frame(line.end - len..line.end, FrameRole::Innermost);
        }
    }

    /// Names the frame in this range of the block, if it is one that the style asks for: unnamed or to be renamed, in
    /// user space, not inlined, and either in JIT code or, with [`Style::native`], in a file.
    fn name_frame(&mut self, range: Range<usize>, role: FrameRole) {
        let block = self.block;
        let text = &block[range.clone()];
        // `parse_unknown` only knows the most frequent form, but is faster.
        let Some(frame) = Frame::parse_unknown(text).or_else(|| Frame::parse(text)) else { return };
        let style = self.rewriter.style;
        if (frame.symbol != UNKNOWN && !style.rename) || frame.inlined || frame.addr >> 63 != 0 {
            return;
        }
        let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        // A name replaces everything after the address.
        let tail = range.start + digits..range.end;
        let dso_kind = self.classify_dso(frame.dso);
        // `DsoKind::Other` are objects without JIT code.
        if dso_kind != DsoKind::Other {
            self.name_jit_frame(tail, frame, dso_kind, role);
        } else if style.native
            && frame.symbol == UNKNOWN
            // other objects, such as `[vdso]`, aren't files that could be opened
            && let Some(dso) = frame.dso.filter(|dso| dso.starts_with(b"/"))
        {
            self.name_native_frame(tail, dso, &frame, role);
        }
    }

    /// The kind of a frame's object. Consecutive frames often have the same object, so the last answer is kept.
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

    /// The process of the current sample: as printed in the header, as record lines say, or as the object's name says.
    /// If nothing shows the process, the thread's ID is taken for the process ID. `None` if the thread is unknown, too.
    fn process(&self, dso_kind: DsoKind) -> Option<Pid> {
        let Sample { pid, tid, .. } = self.sample;
        if pid.is_some() {
            return pid;
        }
        if let Some(pid) = tid.and_then(|tid| self.facts.process_of(tid)) {
            return Some(pid);
        }
        if let DsoKind::Anonymous(Some(pid)) = dso_kind {
            return Some(Pid(pid));
        }
        tid.map(|tid| Pid(tid.0))
    }

    /// Names a frame of JIT code by replacing the range `tail`, the text after its address.
    fn name_jit_frame(&mut self, tail: Range<usize>, frame: Frame<'_>, dso_kind: DsoKind, role: FrameRole) {
        // Frames that may be something other than JIT code don't count as unresolved: unnamed frames in files that may
        // be libraries, and addresses in a text without symbols and objects.
        let is_surely_jit = dso_kind != DsoKind::MaybeJit && !tail.is_empty();
        let counted = u64::from(is_surely_jit); // 1 or 0
        let Some(pid) = self.process(dso_kind) else {
            self.counts.unresolved += counted;
            self.counts.process_unknown += counted;
            return;
        };
        let addr = match dso_kind {
            // JIT code is looked up by its address in the process, but perf may have printed its offset in the file.
            DsoKind::FileBacked | DsoKind::MaybeJit => {
                self.facts.to_process_address(Some(pid), frame.dso.unwrap_or_default(), frame.addr)
            }
            _ => Some(frame.addr),
        };
        let Some(addr) = addr.map(Addr) else {
            self.counts.unresolved += counted;
            self.counts.relative += counted;
            return;
        };
        let addr = role.frame_addr(addr);
        let object = if frame.dso.is_some() { Object::Jit } else { Object::NotShown };
        // The number of jitdumps that the process has mapped so far. If the frame has no name, that is only remembered
        // until this number changes.
        let markers = self.facts.marker_count(pid);
        let wanted = FrameQuery { pid, addr, time: self.sample.time, file: None, markers };
        match self.replace_by_name(tail, object, wanted) {
            FrameAnswer::Named => self.counts.named += 1,
            FrameAnswer::Unknown if frame.symbol == UNKNOWN => self.counts.unresolved += counted,
            // The frame keeps the name that it has.
            FrameAnswer::Unknown => {}
            // The frame isn't counted now: the block is rewritten again once the names are loaded.
            FrameAnswer::NotLoaded => {
                self.needs.pids.insert(pid);
            }
        }
    }

    /// Names a frame of native code in a file by replacing the range `tail`, the text after its address.
    fn name_native_frame(&mut self, tail: Range<usize>, dso: &[u8], frame: &Frame<'_>, role: FrameRole) {
        // A name is looked up by the offset in the file. Older versions of perf print this offset, newer ones print the
        // address in the process, which has to be converted.
        let (pid, file_addresses) = (self.process(DsoKind::Other), self.rewriter.style.file_addresses);
        let offset = frame.dso_offset.or_else(|| self.facts.to_file_offset(pid, dso, frame.addr, file_addresses));
        let Some(offset) = offset.map(Addr) else {
            self.counts.native_left += 1;
            return;
        };
        let addr = role.frame_addr(offset);
        let object = self.memo.file(dso);
        // A file has the same symbols in every process, at any time and whichever jitdumps are mapped, so one entry of
        // the memo serves all.
        let wanted = FrameQuery { pid: Pid(0), addr, time: None, file: Some(dso), markers: 0 };
        match self.replace_by_name(tail, object, wanted) {
            FrameAnswer::Named => self.counts.native += 1,
            FrameAnswer::Unknown => self.counts.native_left += 1,
            FrameAnswer::NotLoaded => {
                self.needs.places.insert((dso.to_vec(), addr));
            }
        }
    }

    /// Looks up a frame in the memo, or else asks the namer and remembers the answer. If there is a name, it replaces
    /// the range `tail`. If the name isn't loaded yet, nothing is remembered, because the block will be rewritten after
    /// loading it.
    fn replace_by_name(&mut self, tail: Range<usize>, object: Object, wanted: FrameQuery<'_>) -> FrameAnswer {
        let key = FrameKey { pid: wanted.pid, addr: wanted.addr, object };
        if let Some(known) = self.memo.get(&key, LookupState { time: wanted.time, markers: wanted.markers }) {
            let answer = match known.answer {
                KnownFrame::Named { text, is_one_of_several } => {
                    self.counts.ambiguous += u64::from(is_one_of_several);
                    self.edited.replace(tail, text);
                    FrameAnswer::Named
                }
                KnownFrame::Unknown => FrameAnswer::Unknown,
            };
            // The result for all frames of the sample is only remembered for the times at which each answer holds.
            self.narrow(known.holds);
            return answer;
        }
        match (self.rewriter.namer)(wanted) {
            Answer::Named(named, valid) => {
                self.counts.ambiguous += u64::from(named.is_one_of_several);
                let text = self.memo.add(key, &named, valid.clone(), self.rewriter.style);
                self.edited.replace(tail, text);
                self.narrow(valid);
                FrameAnswer::Named
            }
            Answer::Unknown(valid) => {
                self.memo.add_unknown(key, valid.clone(), wanted.markers);
                self.narrow(valid);
                FrameAnswer::Unknown
            }
            Answer::NotLoaded => FrameAnswer::NotLoaded,
        }
    }

    /// Ends the block: returns what must be loaded, if anything, or else what happened to the frames.
    fn finish(self) -> Rewritten {
        if !self.needs.is_empty() {
            return Rewritten::Needs(self.needs);
        }
        let EditedBlock { block, out, copied } = self.edited;
        if copied == 0 {
            return Rewritten::Unchanged(self.counts);
        }
        out.extend_from_slice(&block[copied..]);
        Rewritten::Changed(self.counts)
    }
}

/// Length in bytes of the object ` (…)` that follows a frame's symbol, if more fields follow the object on the same
/// line: `=>` and a branch target, or branches. `text` is the line after the symbol. `None` if no object is shown, or
/// if it ends the line, so that the frame simply ends with the line.
fn object_len(text: &[u8]) -> Option<usize> {
    if !text.starts_with(b" (") {
        return None;
    }
    let mut depth = 0usize;
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if *byte == b')' && depth == 0 {
            let end = index + 1;
            let has_more = !text[end..].trim_ascii().is_empty();
            return if has_more { Some(end) } else { None };
        }
    }
    None
}

/// Length in bytes of the frame at the end of a one-line sample. Only called if the line doesn't contain `[unknown]`:
/// the frame has a symbol, or the text shows no symbols. Fields may follow a frame and symbols may contain anything, so
/// the line must end with the frame's object; otherwise `None`.
fn last_frame_len(header: &Header<'_>) -> Option<usize> {
    // The frame follows the event (`tail`). If the header has no event, the beginning of a symbol such as `Eval: main`
    // may have been taken for one. Then try all that follows the time (`rest`).
    for text in [header.tail, header.rest] {
        let text = text.trim_ascii_start();
        if text.ends_with(b")")
            && let Some(frame) = Frame::parse(text)
            && frame.dso.is_some()
            // A text with `=>` shows a branch: it consists of two frames, the second of which is the target.
            && memmem::find(frame.symbol, b" => ").is_none()
        {
            return Some(text.len());
        }
    }
    None
}

/// The start of the word before `offset`. `None` unless exactly one space is between the word's end and `offset`.
fn previous_word(text: &[u8], offset: usize) -> Option<usize> {
    let end = offset.checked_sub(1).filter(|&end| text[end] == b' ')?;
    let start = text[..end].iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1);
    (start < end).then_some(start)
}

#[cfg(test)]
mod tests;
