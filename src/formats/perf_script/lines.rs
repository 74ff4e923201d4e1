//! Splits perf script's text into lines, and classifies each line. Both the rewriter and the reader use it.
//!
//! Most lines show by themselves what they are. Some depend on the lines around them: a line that only holds a command
//! name is a header if a frame follows, and a number is a frame or another field depending on how the frames above it
//! are indented. Texts come with frames indented by a tab (as perf prints them), by blanks (terminals, editors,
//! `expand`) or not at all, and with line ends of Windows.

use super::fields::{is_field_line, is_source_line, is_source_line_without_indent};
use super::frame::{Frame, UNKNOWN, parse_eventless_sample, parse_one_line_header};
use super::header::{ADDRESS_WIDTH, Header};
use super::layout::{Layout, SampleStart};
use super::record_lines::is_record_line;
use super::sample_memo::FramesText;
use crate::bytes::lines::strip_mark;
use memchr::memmem::Finder;
use std::ops::Range;

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'t> {
    /// An empty line. perf prints one after each call chain.
    Empty,
    /// The first line of a sample and, if the sample is printed on one line, its frame. The header is empty if the text
    /// only shows frames.
    Header(Header<'t>, Option<Frame<'t>>),
    /// A frame on a line of its own. [`Frame::parse`] parses this text.
    Frame(&'t [u8]),
    /// The source line of the frame above, without the blanks before it: `file.c:12`, `file.c:12 (inlined)`.
    Source(&'t [u8]),
    /// A record that is no sample (`PERF_RECORD_…`).
    Record,
    /// A comment, or another field of the sample above, such as its registers.
    Other,
    /// None of these kinds. Holds what is wrong with the line.
    Noise(&'static str),
}

/// An iterator over the lines of a text, with their byte ranges. A range excludes the line end, white space before it,
/// a byte order mark, and the indentation that all lines have ([`Layout::indent`]).
pub(super) struct Lines<'t, 'l> {
    text: &'t [u8],
    layout: &'l Layout,
    /// Offset of the next line.
    next: usize,
    /// True between a header and the next empty line, and everywhere in a text without headers.
    in_sample: bool,
    /// True if the current sample has had a frame, in its header or on a line of its own.
    has_frame: bool,
    /// How the current sample's frames are indented; `None` before the first one that is on a line of its own.
    indent: Option<Indent>,
    /// True if the line above the next line holds a field of the sample other than a frame, such as registers.
    is_below_field: bool,
    /// True between the empty line that ended a sample and the next empty line. With `-F srccode`, perf prints source
    /// code there.
    is_below_sample: bool,
    /// Offset of the first of two consecutive line feeds, the last time that they were searched for; the length of the
    /// text if there were none.
    double_line_feed: usize,
    double_line_feeds: Finder<'static>,
}

/// Limit in bytes for the text of a sample's frames. Longer texts aren't remembered, which bounds the time that is lost
/// where texts don't repeat.
const MAX_FRAMES_TEXT: usize = 1 << 15;

/// How frames are indented. All frames of a stack are indented like its first one, which helps to recognize them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Indent {
    /// A tab, as perf prints it.
    Tab,
    /// Blanks, and the frames have symbols. A line that could be either a frame or another field of the sample is taken
    /// for the field.
    Blanks,
    /// Blanks, and the frames are addresses without symbols (`-F ip`). Nearly every frame could also be another field
    /// then, but isn't: perf prints other fields only below frames that are indented by a tab.
    BlanksOfAddresses,
    /// No indentation.
    Nothing,
}

impl Indent {
    /// The indentation of a frame's line.
    fn detect(line: &[u8]) -> Self {
        match line.first() {
            Some(b'\t') => Self::Tab,
            Some(b' ') if line.trim_ascii().iter().all(u8::is_ascii_hexdigit) => Self::BlanksOfAddresses,
            Some(b' ') => Self::Blanks,
            _ => Self::Nothing,
        }
    }
}

impl<'t> Iterator for Lines<'t, '_> {
    type Item = (Range<usize>, Line<'t>);

    /// The next line: its range in the text without the document's indentation, and what the line is.
    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.text.len() {
            return None;
        }
        let range = line_range(self.text, self.next, self.layout);
        self.next = line_end(self.text, range.end) + 1;
        let line = self.classify(&self.text[range.clone()]);
        Some((range, line))
    }
}

impl<'t, 'l> Lines<'t, 'l> {
    /// The lines of a text, or of a part of it that begins with a sample.
    pub(super) fn new(text: &'t [u8], layout: &'l Layout) -> Self {
        Self {
            text,
            layout,
            next: 0,
            // Where samples have no headers, the text may begin with a frame.
            in_sample: layout.sample_start != SampleStart::Header,
            has_frame: false,
            indent: None,
            is_below_field: false,
            is_below_sample: false,
            double_line_feed: 0,
            double_line_feeds: Finder::new(b"\n\n"),
        }
    }

    /// Returns the lines of the current sample's frames as one text, up to the empty line. Call this after a header
    /// without a frame was read. `None` if there are no frames, or if they are too long to be remembered. Two samples
    /// with the same such text have the same frames, unless the text contains the line of a record.
    pub(super) fn frames_below(&mut self) -> Option<FramesText<'t>> {
        let start = self.next;
        if self.text.get(start).is_none_or(|byte| *byte == b'\n') {
            return None;
        }
        // `double_line_feed` is where the search for an earlier header has found an empty line. Search again only if
        // that empty line is above this sample.
        if self.double_line_feed < start {
            let found = self.double_line_feeds.find(&self.text[start..]);
            self.double_line_feed = found.map_or(self.text.len(), |len| start + len);
        }
        let end = self.double_line_feed;
        // Without an empty line, only the kinds of the lines show where the frames end.
        if end == self.text.len() || end - start > MAX_FRAMES_TEXT {
            return None;
        }
        Some(FramesText::new(&self.text[start..end], start))
    }

    /// Skips the frames below a header, which [`Self::frames_below`] has returned, and the empty line that ends the
    /// sample.
    pub(super) fn skip_sample(&mut self, frames: &FramesText<'t>) {
        self.next = frames.end_of_sample() + 1;
        self.end_sample();
    }

    /// Updates what is known about the current sample when an empty line has ended it.
    fn end_sample(&mut self) {
        self.is_below_sample = self.in_sample;
        self.in_sample = self.layout.sample_start != SampleStart::Header;
        (self.has_frame, self.indent, self.is_below_field) = (false, None, false);
    }

    /// Classifies a line, and updates what is known about the current sample. Several kinds of lines can look alike. So
    /// the kinds are tested in a fixed order: first those that can't be mistaken for others, last those that depend
    /// most on the lines above.
    fn classify(&mut self, line: &'t [u8]) -> Line<'t> {
        // `is_below_field` tells about the line above, so it is reset here. It is set again below if this line holds a
        // field.
        let is_below_field = std::mem::replace(&mut self.is_below_field, false);
        if line.is_empty() {
            self.end_sample();
            return Line::Empty;
        }
        // Test for the usual form of a frame first: it is cheap to recognize and never a record.
        let is_usual = is_usual_frame(line);
        if !is_usual && is_record_line(line) {
            return Line::Record;
        }
        if self.layout.sample_start == SampleStart::EventlessSample
            && let Some(sample) = parse_eventless_sample(line)
        {
            return Line::Header(sample.header, Some(sample.frame));
        }
        if is_usual || self.is_frame(line) {
            // If samples have neither headers nor call chains, each line is a sample with one frame.
            if self.layout.sample_start == SampleStart::OnlyFrame {
                return Line::Header(Header { rest: line, tail: line, ..Header::default() }, Frame::parse(line));
            }
            (self.has_frame, self.indent) = (true, Some(Indent::detect(line)));
            return Line::Frame(line);
        }
        if let Some((header, frame)) = self.parse_header(line, is_below_field) {
            self.in_sample = true;
            (self.has_frame, self.indent) = (frame.is_some(), None);
            return Line::Header(header, frame);
        }
        if self.in_sample && is_source_line(line) {
            // perf prints two blanks before the source line, which aren't part of it.
            return Line::Source(&line[2..]);
        }
        // A source line that lost its indentation is less distinctive. So it is only recognized if the sample's frames
        // lost their indentation, too.
        if matches!(self.indent, Some(Indent::Nothing)) && is_source_line_without_indent(line) {
            return Line::Source(line);
        }
        let is_field = (self.in_sample || self.is_below_sample) && is_field_line(line);
        self.is_below_field = is_field;
        if is_field || line.trim_ascii_start().starts_with(b"#") {
            Line::Other
        } else if line[0] == b'\t' {
            Line::Noise("a frame must start with a hexadecimal address")
        } else {
            Line::Noise("the line is neither a sample's first line nor a frame")
        }
    }

    /// True if a line is a frame. If it doesn't begin with a tab, it must be in a sample, and indented as the sample's
    /// other frames are ([`Indent`]).
    fn is_frame(&self, line: &[u8]) -> bool {
        if line[0] == b'\t' {
            return Frame::parse_indented(line).is_some();
        }
        if !self.in_sample {
            return false;
        }
        let begins_with_blank = line[0] == b' ';
        match self.indent {
            // The line would be the first frame of its sample, so its indentation can be of any kind.
            None => Frame::parse_indented(line).or_else(|| Frame::parse_unindented(line)).is_some(),
            // All frames of the sample begin with a tab, and this line doesn't.
            Some(Indent::Tab) => false,
            // Lines that look like another field of the sample (`is_field_line`), such as registers, aren't frames.
            Some(Indent::Blanks) if begins_with_blank => Frame::parse_indented(line).is_some() && !is_field_line(line),
            // The sample's frames are addresses without symbols. `is_field_line` would be true for most of them, so it
            // isn't called. No other field is mistaken for a frame, because perf prints none below such frames.
            Some(Indent::BlanksOfAddresses) if begins_with_blank => Frame::parse_indented(line).is_some(),
            // The sample's frames have no indentation, or they have blanks and only this line doesn't: an address of
            // sixteen digits fills its column.
            Some(Indent::Blanks | Indent::BlanksOfAddresses | Indent::Nothing) => {
                Frame::parse_unindented(line).is_some()
            }
        }
    }

    /// Parses a header and, if the sample is printed on one line, its frame. `is_below_field` is true if the line above
    /// holds a field other than a frame: the previous sample may have ended with that line.
    fn parse_header(&self, line: &'t [u8], is_below_field: bool) -> Option<(Header<'t>, Option<Frame<'t>>)> {
        let below = &self.text[line_range(self.text, self.next, self.layout)];
        if let Some(header) = parse_full_header(line, below) {
            // If frames follow on lines of their own, the text after the event isn't a frame but something else, such
            // as the fields of a tracepoint.
            let frame = if begins_stack(below) { None } else { Frame::parse_in_line(header.tail) };
            return Some((header, frame));
        }
        // A line of a stack may look like a command name. So within a stack no line is taken for a header, unless the
        // line above holds another field: without an empty line, only other fields can end a stack.
        if self.in_sample && self.has_frame && !is_below_field {
            return None;
        }
        let header = parse_header_above_stack(line, below, self.in_sample)?;
        Some((header, None))
    }
}

/// The range of the line that begins at an offset of the text, as [`Lines`] defines it. Empty at the end of the text.
fn line_range(text: &[u8], start: usize, layout: &Layout) -> Range<usize> {
    let start = start.min(text.len());
    let end = line_end(text, start);
    let line = strip_mark(&text[start..end]);
    let line = if layout.indent.is_empty() { line } else { line.strip_prefix(&*layout.indent).unwrap_or(line) };
    let start = end - line.len();
    start..start + line.trim_ascii_end().len()
}

/// Offset of the first line feed from `start` on, or of the end of the text.
fn line_end(text: &[u8], start: usize) -> usize {
    memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |len| start + len)
}

/// True for a frame in perf's own layout: a tab, and an address padded to sixteen columns. Nearly all lines of a text
/// look like this, so they are recognized without parsing.
fn is_usual_frame(line: &[u8]) -> bool {
    let Some((indent, rest)) = line.split_first_chunk::<{ 1 + ADDRESS_WIDTH }>() else { return false };
    if indent[0] != b'\t' || rest.first().is_some_and(|byte| *byte != b' ') {
        return false;
    }
    let blanks = indent[1..].iter().take_while(|byte| **byte == b' ').count();
    blanks < ADDRESS_WIDTH && indent[1 + blanks..].iter().all(u8::is_ascii_hexdigit)
}

/// Parses a header that shows by itself what it is: it has an event, or a time and a frame. The frame may be on the
/// line below it (`below`).
fn parse_full_header<'t>(line: &'t [u8], below: &[u8]) -> Option<Header<'t>> {
    if let Some(header) = Header::parse(line) {
        let has_frame = || begins_stack(below) || Frame::parse_in_line(header.tail).is_some();
        if header.event.is_some() || header.time.is_some() && has_frame() {
            return Some(header);
        }
    }
    parse_one_line_header(line)
}

/// Parses a header that is only recognized by the frame on the line below it. Depending on `-F`, it may hold little
/// more than a command name. `in_sample` says that the line comes after the header of another sample; then it isn't a
/// header if it can be a field or a source line of that sample.
fn parse_header_above_stack<'t>(line: &'t [u8], below: &[u8], in_sample: bool) -> Option<Header<'t>> {
    let is_of_sample = in_sample && (is_field_line(line) || is_source_line(line));
    let is_frame = Frame::parse_indented(line).is_some_and(|frame| frame.symbol != UNKNOWN || frame.dso.is_some());
    if is_of_sample || is_frame || line.starts_with(b"\t") || line.starts_with(b"#") || !begins_stack(below) {
        return None;
    }
    Some(Header::parse_above_frames(line))
}

/// True if a line below a header is a frame.
fn begins_stack(line: &[u8]) -> bool {
    match line.first() {
        Some(b'\t' | b' ') => Frame::parse_indented(line).is_some() && !is_field_line(line),
        _ => Frame::parse_unindented(line).is_some(),
    }
}

/// Length in bytes of the longest part at the start of a buffer that contains only complete samples. It ends after the
/// last empty line or, in a text without empty lines, before the last header. 0 if there is no such position.
pub fn cut(buffer: &[u8], layout: &Layout) -> usize {
    if let Some(line_end) = memchr::memmem::rfind(buffer, b"\n\n") {
        return line_end + b"\n\n".len();
    }
    // In a file from Windows, lines end with CR and LF.
    if let Some(line_end) = memchr::memmem::rfind(buffer, b"\n\r\n") {
        return line_end + b"\n\r\n".len();
    }
    match layout.sample_start {
        SampleStart::Header | SampleStart::EventlessSample => last_header(buffer, layout),
        // A sample that starts with a frame may have several frames, so only an empty line ends it.
        SampleStart::Frame => 0,
        SampleStart::OnlyFrame => memchr::memrchr(b'\n', buffer).map_or(0, |line_feed| line_feed + 1),
    }
}

/// Like [`cut`], but if the buffer ends with a one-line sample, that sample counts as complete. So text from a pipe is
/// passed on without waiting for a source line that may follow.
pub fn cut_without_source_lines(buffer: &[u8], layout: &Layout) -> usize {
    let Some(end) = memchr::memrchr(b'\n', buffer) else { return 0 };
    let line = &buffer[line_range(buffer, line_start(buffer, end), layout)];
    let is_eventless_sample =
        layout.sample_start == SampleStart::EventlessSample && parse_eventless_sample(line).is_some();
    let has_frame = |header: Header<'_>| Frame::parse_in_line(header.tail).is_some();
    let is_one_line_sample = is_eventless_sample || parse_full_header(line, b"").is_some_and(has_frame);
    if is_one_line_sample { end + 1 } else { cut(buffer, layout) }
}

/// Offset of the last header in the buffer that is a complete line; 0 if there is none near the end.
fn last_header(buffer: &[u8], layout: &Layout) -> usize {
    /// The number of bytes at the end of the buffer to search. Samples are shorter; the limit bounds the time that is
    /// spent on texts without samples.
    const NEAR: usize = 1 << 17;
    let mut end = memchr::memrchr(b'\n', buffer).unwrap_or(0);
    let mut below: &[u8] = b"";
    while end > buffer.len().saturating_sub(NEAR) {
        let start = line_start(buffer, end);
        let line = &buffer[line_range(buffer, start, layout)];
        let is_sample = layout.sample_start == SampleStart::EventlessSample && parse_eventless_sample(line).is_some();
        if is_sample || is_header(line, below, line_above(buffer, start, layout)) {
            return start;
        }
        below = line;
        end = start.saturating_sub(1);
    }
    0
}

/// True if a line is a header, judged by the line itself and those directly above and below it. Stricter than
/// [`Lines`], which knows all lines above.
fn is_header(line: &[u8], below: &[u8], above: &[u8]) -> bool {
    if is_usual_frame(line)
        || is_record_line(line)
        || Frame::parse_indented(line).is_some()
        || Frame::parse_unindented(line).is_some()
    {
        return false;
    }
    // A line that is a header only because a frame follows could, within a stack, be anything else. So it is only taken
    // for a header if the line above holds another field than a frame, which is where a sample without an empty line
    // can end. Such a field belongs to a sample, hence `is_in_sample`.
    let is_in_sample = is_field_line(above);
    parse_full_header(line, below).is_some()
        || is_in_sample && parse_header_above_stack(line, below, is_in_sample).is_some()
}

/// Offset of the line that ends at `end`.
fn line_start(text: &[u8], end: usize) -> usize {
    memchr::memrchr(b'\n', &text[..end]).map_or(0, |line_feed| line_feed + 1)
}

/// The line above the one that begins at `start`; empty if there is none.
fn line_above<'t>(text: &'t [u8], start: usize, layout: &Layout) -> &'t [u8] {
    let Some(end) = start.checked_sub(1) else { return b"" };
    &text[line_range(text, line_start(text, end), layout)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_in_perfs_layout_are_recognized_at_once() {
        for line in ["\t              1f f (a)", "\tffffffffffffffff f", "\t    7f94270c9cef"] {
            assert!(is_usual_frame(line.as_bytes()) && Frame::parse_indented(line.as_bytes()).is_some(), "{line}");
        }
        for line in [
            "",
            "\t",
            "\t                 f (a)",
            "\t            1 1f f (a)",
            "\t              1g f (a)",
            "\t              1f\tf (a)",
            "               1ff f (a)",
            "\t 7f [unknown] (//anon)",
        ] {
            assert!(!is_usual_frame(line.as_bytes()), "{line:?}");
        }
    }

    #[test]
    fn blocks_end_with_samples() {
        const HEADER: &str = "app 5 1.000002: c: \n";
        const FRAME: &str = "\t 7f1 f (x)\n";
        const WEAK: &str = "app 5 \n\t 7f1 f (x)\n ABI:2    AX:0x1\n";
        let texts = [
            ("a\n\nb\nc".to_owned(), 3),
            ("a\r\n\r\nb".to_owned(), 5),
            ("a\nb\n".to_owned(), 0),
            ("endless".to_owned(), 0),
            (format!("{HEADER}{FRAME}{HEADER}"), HEADER.len() + FRAME.len()),
            (format!("{HEADER}{FRAME}{HEADER}{FRAME}"), HEADER.len() + FRAME.len()),
            (format!("{WEAK}{WEAK}"), WEAK.len()),
        ];
        for (text, expected) in texts {
            assert_eq!(cut(text.as_bytes(), &Layout::default()), expected, "{text}");
            assert_eq!(cut_without_source_lines(text.as_bytes(), &Layout::default()), expected, "{text}");
        }
        let one_line = "app 5 1.000002: c:  7f1 f (x)\n".repeat(2);
        assert_eq!(cut(one_line.as_bytes(), &Layout::default()), one_line.len() / 2);
        assert_eq!(cut_without_source_lines(one_line.as_bytes(), &Layout::default()), one_line.len());
    }
}
