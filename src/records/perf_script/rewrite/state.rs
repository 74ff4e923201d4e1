//! What a block must know of the text before it, and where a text can be cut into blocks.

use super::frameless::LastLine;
use crate::model::{Nanos, Pid, Tid};
use crate::records::perf_script::fields::{is_field_line, is_source_line};
use crate::records::perf_script::frame::Frame;
use crate::records::perf_script::header::Header;
use crate::records::perf_script::known::{RecordLineFacts, is_record_line};
use crate::records::perf_script::sample_end;
use memchr::memmem;
use std::ops::Range;

/// The state at the start of a block: the sample to which the next frames belong, facts from record lines, and the kind
/// of the last line.
#[derive(Debug, Clone, Default)]
pub struct State {
    pub(super) sample: Sample,
    pub(super) known: RecordLineFacts,
    pub(super) last_line: LastLine,
}

/// The thread and time of the sample to which the next frames belong.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    pub(super) pid: Option<Pid>,
    pub(super) tid: Option<Tid>,
    pub(super) time: Option<Nanos>,
}

/// Length in bytes of the next block in a buffer. The block ends after the last complete sample, else after the last
/// complete line, else with the buffer. 0 only for an empty buffer.
pub fn cut(buffer: &[u8]) -> usize {
    if let Some(end) = sample_end(buffer) {
        return end;
    }
    memchr::memrchr(b'\n', buffer).map_or(buffer.len(), |line_end| line_end + 1)
}

impl State {
    /// The facts from record lines before the block.
    pub fn known(&self) -> &RecordLineFacts {
        &self.known
    }

    /// Moves past a block without rewriting it. Returns the ranges of its record lines.
    pub fn advance(&mut self, block: &[u8]) -> Vec<Range<usize>> {
        let records: Vec<Range<usize>> = record_lines(block).collect();
        for line in &records {
            self.known.apply(&block[line.clone()]);
        }
        self.enter_sample(block);
        self.last_line = LastLine::classify(block);
        records
    }

    /// Updates `sample` for the end of `text`: the sample of the last header in it. If there is no header, the sample
    /// stays; after an empty line there is no sample. Samples need not have an empty line between them, because other
    /// fields such as registers may be printed below the frames.
    pub(super) fn enter_sample(&mut self, text: &[u8]) {
        let mut end = text.strip_suffix(b"\n").map_or(text.len(), <[u8]>::len);
        if text.is_empty() {
            return;
        }
        // A line without time and event is a header if frames follow directly.
        let mut below_is_frame = true;
        loop {
            let start = memchr::memrchr(b'\n', &text[..end]).map_or(0, |at| at + 1);
            let line = text[start..end].trim_ascii_end();
            match line.first() {
                // `text` may begin with the line feed of a line before it. This is no empty line.
                None if start == 0 => return,
                None => return self.sample = Sample::default(),
                Some(b'\t') => below_is_frame = true,
                Some(_) if is_record_line(line) => below_is_frame = false,
                Some(_) if Frame::parse_indented(line).or_else(|| Frame::parse_unindented(line)).is_some() => {
                    below_is_frame = true;
                }
                Some(_) => {
                    if let Some(header) = Header::parse(line)
                        && (header.time.is_some() || header.event().is_some())
                    {
                        return self.sample = Sample::from(&header);
                    }
                    let is_field = is_field_line(line) || is_source_line(line);
                    if below_is_frame && line[0] != b'#' && !is_field {
                        return self.sample = Sample::from(&Header::parse_above_frames(line));
                    }
                    below_is_frame &= is_field;
                }
            }
            let Some(above) = start.checked_sub(1) else { return };
            end = above;
        }
    }
}

/// Offset at which the last paragraph starts, after the last empty line. `None` if there is no empty line.
pub(super) fn last_paragraph(text: &[u8]) -> Option<usize> {
    let mut end = text.len();
    while let Some(line_feed) = memchr::memrchr(b'\n', &text[..end]) {
        let before = &text[..line_feed];
        if before.ends_with(b"\n") || before.ends_with(b"\n\r") {
            return Some(line_feed + 1);
        }
        end = line_feed;
    }
    None
}

impl From<&Header<'_>> for Sample {
    fn from(header: &Header<'_>) -> Self {
        Self { pid: header.pid, tid: header.tid, time: header.lookup_time() }
    }
}

/// The lines of a text from `offset` on, as ranges of the text without the line feed.
pub(super) fn lines(text: &[u8], offset: usize) -> impl Iterator<Item = Range<usize>> {
    let mut next = offset;
    std::iter::from_fn(move || {
        let start = next;
        let end = memchr::memchr(b'\n', text.get(start..)?).map_or(text.len(), |len| start + len);
        next = end + 1;
        (start < text.len()).then_some(start..end)
    })
}

/// The ranges of a block's record lines, in order.
fn record_lines(block: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut searched = 0;
    std::iter::from_fn(move || {
        let hit = searched + memmem::find(&block[searched..], b"PERF_RECORD_")?;
        let start = memchr::memrchr(b'\n', &block[..hit]).map_or(0, |end| end + 1);
        let end = memchr::memchr(b'\n', &block[hit..]).map_or(block.len(), |len| hit + len);
        searched = end;
        Some(start..end)
    })
    .filter(|line| !block[line.clone()].starts_with(b"\t"))
}
