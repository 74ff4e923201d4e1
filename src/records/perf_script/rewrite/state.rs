//! The state that the text before a place gives it, and the places where a text can be cut.

use super::frameless::LastLine;
use crate::model::{Nanos, Pid, Tid};
use crate::records::perf_script::header::Header;
use crate::records::perf_script::known::{RecordLineFacts, is_record_line};
use crate::records::perf_script::sample_end;
use memchr::memmem;
use std::ops::Range;

/// The state that the text before a block gives it.
#[derive(Debug, Clone, Default)]
pub struct State {
    pub(super) sample: Sample,
    pub(super) known: RecordLineFacts,
    pub(super) last_line: LastLine,
}

/// The process of the following frames.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sample {
    pub(super) pid: Option<Pid>,
    pub(super) tid: Option<Tid>,
    pub(super) time: Option<Nanos>,
}

/// The part of a buffer makes the next block: up to the last end of a sample, else the last line's end; all of it if it
/// that is one endless line. 0 only for an empty buffer.
pub fn cut(buffer: &[u8]) -> usize {
    let line_end = || memchr::memrchr(b'\n', buffer).map(|at| at + 1);
    sample_end(buffer).or_else(line_end).unwrap_or(buffer.len())
}

impl State {
    /// The facts from the record lines so far.
    pub fn known(&self) -> &RecordLineFacts {
        &self.known
    }

    /// Goes past a block without rewriting it. Reports where its record lines are.
    pub fn advance(&mut self, block: &[u8]) -> Vec<Range<usize>> {
        let records: Vec<Range<usize>> = record_lines(block).collect();
        records.iter().for_each(|line| self.known.apply(&block[line.clone()]));
        self.enter_sample(block);
        self.last_line = LastLine::of(block);
        records
    }

    /// The sample that is open at the end of `text`, if one begins in it.
    pub(super) fn enter_sample(&mut self, text: &[u8]) {
        let paragraph = last_paragraph(text);
        // At the very start of a text the first paragraph has no blank line before it. A continued one begins with a
        // frame, which is not a header.
        let header = lines(text, paragraph.unwrap_or(0)).find_map(|line| {
            let line = &text[line];
            if is_record_line(line) { None } else { Header::parse(line) }
        });
        match header {
            Some(header) => self.sample = Sample::from(&header),
            None if paragraph.is_some() => self.sample = Sample::default(),
            None => {}
        }
    }
}

/// The start of the last paragraph: behind the last empty line. `None` if there is no empty line.
pub(super) fn last_paragraph(text: &[u8]) -> Option<usize> {
    let mut end = text.len();
    while let Some(at) = memchr::memrchr(b'\n', &text[..end]) {
        let before = &text[..at];
        if before.ends_with(b"\n") || before.ends_with(b"\n\r") {
            return Some(at + 1);
        }
        end = at;
    }
    None
}

impl From<&Header<'_>> for Sample {
    fn from(header: &Header<'_>) -> Self {
        Self { pid: header.pid, tid: header.tid, time: header.lookup_time() }
    }
}

/// Lines of a text from a place on, as ranges without the line feed.
pub(super) fn lines(text: &[u8], mut at: usize) -> impl Iterator<Item = Range<usize>> {
    std::iter::from_fn(move || {
        let start = at;
        let end = memchr::memchr(b'\n', text.get(start..)?).map_or(text.len(), |len| start + len);
        at = end + 1;
        (start < text.len()).then_some(start..end)
    })
}

/// The record lines of a block, in order.
fn record_lines(block: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let hit = at + memmem::find(&block[at..], b"PERF_RECORD_")?;
        let start = memchr::memrchr(b'\n', &block[..hit]).map_or(0, |end| end + 1);
        let end = memchr::memchr(b'\n', &block[hit..]).map_or(block.len(), |len| hit + len);
        at = end;
        Some(start..end)
    })
    .filter(|line| !block[line.clone()].starts_with(b"\t"))
}
