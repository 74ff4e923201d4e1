//! Recognizes perf script's text by its first lines, and detects its layout.

use super::fields::{is_field_line, is_source_line};
use super::frame::{FIRST_PAGE, Frame, UNKNOWN, is_padded_address, parse_eventless_sample, parse_one_line_header};
use super::header::{ADDRESS_WIDTH, Header};
use super::record_lines::is_record_line;

/// What all samples of a text have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// White space before each line, in a text that was pasted from an indented document. Empty in most texts.
    pub indent: Box<[u8]>,
    /// What each sample begins with.
    pub sample_start: SampleStart,
}

/// What each sample of a text begins with. It depends on `-F`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SampleStart {
    /// A header: the line with the sample's thread, time and event.
    #[default]
    Header,
    /// The sample's first frame, because samples have no headers. There is an empty line after each sample (`perf
    /// script -F ip,sym`).
    Frame,
    /// The sample's only frame: each line is a sample (`perf script -G -F ip,sym`).
    OnlyFrame,
    /// Fields other than the event, with the only frame on the same line: each line is a sample (`perf script -G -F
    /// comm,ip,sym`).
    EventlessSample,
}

impl Layout {
    /// Detects the layout of a text that begins with `head`: the indentation of all its lines, and with what a sample
    /// begins.
    pub fn detect(head: &[u8]) -> Self {
        // Each of the first lines, with the line below it.
        let mut lines: Vec<(&[u8], &[u8])> = Vec::new();
        for line in first_lines(complete_lines(head)) {
            if let Some((_, below)) = lines.last_mut() {
                *below = line;
            }
            lines.push((line, &b""[..]));
        }
        let indent = lines.iter().find_map(|&(line, below)| document_indent(line, below)).unwrap_or_default();
        // Test for one-line samples without events first. Below, such a text would be taken for one with headers, as is
        // every text that isn't recognized.
        if are_eventless_samples(lines.iter().map(|(line, _)| line.strip_prefix(indent).unwrap_or(line))) {
            return Self { indent: indent.into(), sample_start: SampleStart::EventlessSample };
        }
        for (line, below) in &mut lines {
            *line = line.strip_prefix(indent).unwrap_or(line);
            *below = below.strip_prefix(indent).unwrap_or(below);
        }
        let sample_start = match frames_without_headers(&lines) {
            None => SampleStart::Header,
            // `EachAlone`: each frame may be the only one of a sample. So each line with a frame is taken for a sample,
            // unless the text has empty lines: these end samples, so a sample may have several lines.
            Some(FrameLines::EachAlone) if !has_empty_line(head) => SampleStart::OnlyFrame,
            // A sample begins with the first frame after an empty line.
            Some(_) => SampleStart::Frame,
        };
        Self { indent: indent.into(), sample_start }
    }
}

/// What the frames of a text without headers look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameLines {
    /// Each frame may be the only one of a sample, as perf prints it without a call chain.
    EachAlone,
    /// Some frames belong to a call chain.
    InChains,
}

/// Finds out whether a text has no headers, only frames with their source lines and other fields, and what these frames
/// look like. `lines` has each of the first lines, with the line below it. `None` if a line may be a header or is
/// something else, or if there are no frames.
fn frames_without_headers(lines: &[(&[u8], &[u8])]) -> Option<FrameLines> {
    let mut frames = None;
    for (line, below) in lines {
        // A header may begin with digits, as an address does: ` 4711 250000 cycles:`.
        if is_header_above_frame(line, below) {
            return None;
        }
        if parse_frame(line).is_some() {
            // A single frame that belongs to a call chain shows that all samples have call chains.
            if !is_frame_of_one_line(line) {
                frames = Some(FrameLines::InChains);
            }
            frames.get_or_insert(FrameLines::EachAlone);
        } else if !is_field_line(line) && !is_source_line(line) {
            return None;
        }
    }
    frames
}

/// True if a text has an empty line, with line ends of Linux or Windows. perf prints one after each call chain.
fn has_empty_line(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"\n\n").is_some() || memchr::memmem::find(text, b"\n\r\n").is_some()
}

/// True if every line is a one-line sample without an event, the source line below one, or a record. At least one
/// sample must have a form that hardly any other text has.
fn are_eventless_samples<'t>(lines: impl Iterator<Item = &'t [u8]>) -> bool {
    let mut has_sure_sample = false;
    for line in lines {
        let line = line.trim_ascii_end();
        match parse_eventless_sample(line) {
            // perf prints a blank after each field, and another one before the frame. So several blanks before the
            // address also show that the line is perf's.
            Some(sample) => has_sure_sample |= is_unmistakable(&sample.frame) || sample.blanks > 1,
            None if is_source_line(line) || is_record_line(line) => {}
            None => return false,
        }
    }
    has_sure_sample
}

/// True for a frame that perf printed without a tab, because its sample has no call chain: a blank, and the address in
/// sixteen columns.
fn is_frame_of_one_line(line: &[u8]) -> bool {
    let address_end = 1 + ADDRESS_WIDTH;
    line.starts_with(b" ")
        && line.get(address_end - 1).is_some_and(u8::is_ascii_hexdigit)
        && !line.get(address_end).is_some_and(u8::is_ascii_hexdigit)
}

/// The white space before a header or record, if it can only be the indentation of a document into which the text was
/// pasted: either the frame below is indented by the same white space and more, or the line begins with tabs, which
/// perf doesn't print there. `below` is the line below. `None` if the line is a frame, or shows no such indentation.
fn document_indent<'t>(line: &'t [u8], below: &[u8]) -> Option<&'t [u8]> {
    let text = line.trim_ascii();
    if parse_frame(line).is_some() {
        return None;
    }
    let indent = &line[..line.len() - line.trim_ascii_start().len()];
    if let Some(below) = below.strip_prefix(indent)
        && is_header_above_frame(text, below)
    {
        return Some(indent);
    }
    // perf pads the command name of a one-line sample with blanks, but doesn't begin the line with a tab.
    let tabs = &line[..line.iter().take_while(|byte| **byte == b'\t').count()];
    let is_shifted = !tabs.is_empty() && (is_record_line(text) || is_one_line_sample(text));
    if is_shifted { Some(tabs) } else { None }
}

/// True if a text looks like perf script output. Of its first lines (see `first_lines`), a single one of these kinds
/// is enough: a record line, a header with a time, a one-line sample with an event, a header directly above a frame, or
/// a frame that nothing but perf prints. One-line samples without an event resemble lines of other texts, so they only
/// count if all of the first lines are of the kinds in `are_eventless_samples`.
pub fn sniff(head: &[u8]) -> bool {
    let Layout { indent, sample_start } = Layout::detect(head);
    if sample_start == SampleStart::EventlessSample {
        return true;
    }
    let lines = first_lines(complete_lines(head));
    let mut lines = lines.map(|line| line.strip_prefix(&*indent).unwrap_or(line)).peekable();
    while let Some(line) = lines.next() {
        if is_record_line(line) || Header::has_time(line) || is_one_line_sample(line) {
            return true;
        }
        if is_padded_frame(line) || lines.peek().is_some_and(|below| is_header_above_frame(line, below)) {
            return true;
        }
        // Many texts contain numbers and words that look like a frame. So a frame, here or on the next line, only
        // counts if nothing but perf prints such a line.
        let frame = lines.peek().and_then(|below| parse_frame(below)).or_else(|| parse_frame(line));
        if frame.is_some_and(|frame| is_unmistakable(&frame)) {
            return true;
        }
    }
    false
}

/// True if a text that starts like this may be perf script output of any layout. Other texts are copied unchanged.
pub fn may_be_text(head: &[u8]) -> bool {
    // Without a complete line, the text may still become anything.
    let Some(end) = memchr::memrchr(b'\n', head) else { return true };
    let mut lines = first_lines(&head[..end]).peekable();
    // So far, there are only blank lines and comments.
    if lines.peek().is_none() {
        return true;
    }
    // A header may end with a colon, and a frame begins with an address. `sniff` recognizes the other kinds of lines.
    lines.any(|line| line.trim_ascii_end().ends_with(b":") || begins_with_address(line)) || sniff(head)
}

/// True if a text has lines that are neither blank nor comments.
pub fn has_lines(head: &[u8]) -> bool {
    first_lines(head).next().is_some()
}

/// The lines of a text, without the last one if its end is missing.
pub(super) fn complete_lines(head: &[u8]) -> &[u8] {
    memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end])
}

/// The first 64 lines of a text that are neither blank nor comments.
fn first_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(|&byte| byte == b'\n');
    lines.filter(|line| !matches!(line.trim_ascii_start().first(), None | Some(b'#'))).take(64)
}

fn parse_frame(line: &[u8]) -> Option<Frame<'_>> {
    let line = line.trim_ascii_end();
    Frame::parse_indented(line).or_else(|| Frame::parse_unindented(line))
}

/// True if a frame can hardly be another kind of line: it has an object in parentheses, an offset, or `[unknown]` as
/// its symbol.
fn is_unmistakable(frame: &Frame<'_>) -> bool {
    let has_object = frame.dso.is_some_and(|dso| dso.starts_with(b"/") || dso.starts_with(b"["));
    let is_unnamed = frame.symbol == UNKNOWN && frame.addr > FIRST_PAGE;
    has_object || is_unnamed || frame.offset.is_some()
}

/// True for a frame with a symbol whose address is padded as perf pads it: to sixteen columns after a tab, or after the
/// blanks that replaced the tab. If objects weren't printed, nothing else distinguishes frames from other lines with a
/// number.
fn is_padded_frame(line: &[u8]) -> bool {
    let columns = match line.first() {
        Some(b'\t') => 1 + ADDRESS_WIDTH,
        Some(b' ') => TAB_WIDTH + ADDRESS_WIDTH,
        _ => return false,
    };
    is_padded_address(line, columns) && parse_frame(line).is_some_and(|frame| frame.symbol != UNKNOWN)
}

/// The number of blanks that editors and `expand` put in place of a tab at the start of a line.
const TAB_WIDTH: usize = 8;

/// True for a header that ends with an event or a time and has a frame below it: `shop 4711 cycles:` above
/// `⇥ 401136 pack`.
fn is_header_above_frame(line: &[u8], below: &[u8]) -> bool {
    let Some(header) = Header::parse(line.trim_ascii_end()) else { return false };
    let is_whole = (header.event.is_some() || header.time.is_some()) && header.tail.is_empty();
    let is_indented = below.first().is_some_and(u8::is_ascii_whitespace);
    is_whole && is_indented && parse_frame(below).is_some_and(|frame| frame.addr > FIRST_PAGE)
}

/// True for a one-line sample with an event: header and frame on the same line. The header need not have a time.
fn is_one_line_sample(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let Some(header) = Header::parse(line) else { return parse_one_line_header(line).is_some() };
    header.event.is_some()
        && Frame::parse_in_line(header.tail)
            .is_some_and(|frame| is_unmistakable(&frame) || is_padded_address(header.tail, ADDRESS_WIDTH))
}

/// True if a line can belong to a call chain: blanks, then a hexadecimal number.
fn begins_with_address(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    text.len() < line.len() && digits > 0 && text.get(digits).is_none_or(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_fields_and_a_frame_are_samples() {
        let frame = "     556200401937 f+0x1f (/bin/x)";
        for fields in ["             php ", "   V8 Worker 7 ", "31795 ", "php 31795/31795 ", "php 31795 1.000001: "] {
            let text = format!("{fields}{frame}\n{fields} ffffffff815fd615 [unknown] ([kernel.kallsyms])\n");
            assert_eq!(Layout::detect(text.as_bytes()).sample_start, SampleStart::EventlessSample, "{text}");
            assert!(sniff(text.as_bytes()), "{text}");
            let with_stack = format!("{fields}\n\t{frame}\n\n");
            assert_ne!(
                Layout::detect(with_stack.as_bytes()).sample_start,
                SampleStart::EventlessSample,
                "{with_stack}"
            );
        }
        for text in [
            "0000000000001139 0000000000001026 T main\n0000000000002160 0000000000002026 T run\n",
            "php cycles:u:     556200401937 f (/bin/x)\n",
            "-rw-r--r-- 1 root root            1254 a\ntotal 2\n",
        ] {
            assert_ne!(Layout::detect(text.as_bytes()).sample_start, SampleStart::EventlessSample, "{text}");
        }
    }

    fn is_headerless(text: &[u8]) -> bool {
        Layout::detect(text).sample_start == SampleStart::Frame
    }

    #[test]
    fn samples_of_one_frame_are_distinguished_from_stacks() {
        let lines = "     556200401937 [unknown]\n ffffffff815fd615 f (/bin/x)\n             1234 main\n";
        for text in [lines.to_owned(), lines.replace('\n', "\r\n"), lines.replace(" [unknown]", "")] {
            assert_eq!(Layout::detect(text.as_bytes()).sample_start, SampleStart::OnlyFrame, "{text}");
        }
        for text in [lines.replace('\n', "\n\n"), lines.replace("\n ", "\n         "), format!("\t{lines}\n")] {
            assert_ne!(Layout::detect(text.as_bytes()).sample_start, SampleStart::OnlyFrame, "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_and_frames_alone_are_not() {
        assert!(may_be_text(b"php 1/1 cpu-clock: \n\t    55 [unknown]\n") && may_be_text(b"\t  7f00a0 main\n"));
        assert!(may_be_text(b"# ========\n# captured on\n") && may_be_text(b"a first line without an end"));
        assert!(
            !may_be_text(b"main;work 17\n") && !may_be_text(b"hello world\n") && !may_be_text(b"{\n  \"a\": 1\n}\n")
        );
    }

    #[test]
    fn perf_script_text_is_distinguished_from_other_text() {
        assert!(sniff(b"# ========\n# captured on\n#\nnode 1 2.000000: 100 cycles: \n\t1 a (b)\n"));
        assert!(sniff(b"swapper 0 0.000000: PERF_RECORD_MMAP -1/0: [0x0(0x1) @ 0]: x [kernel]\n"));
        assert!(sniff(b"app main 77/78 [001] 2.000000123: cpu-clock:u: \n"));
        for text in [
            "shop 4711/4712 cpu-clock:\n\t          401136 pack+0x6 (/opt/shop/bin/shop)\n\n",
            "[worker 0] 77/78 [001] 11371.483014: 201198 cycles:u: \n        7f00 f+0x14 (/opt/srv)\n",
            "shop 4711\n\t          401136 pack\n\t          401200 [unknown]\n\n",
            "\n\t          401136 pack+0x6 (/bin/shop)\n\n\n",
            "php\t31795 [001] 14983.371:\t\t1001001 cpu-clock:\n    556200401937\tf (/bin/php)\n",
            "            shop  4711 cpu-clock:      401136 pack (/opt/shop)\n",
            "shop 4711 cycles: \n\t  401136 pack\n\t  401200 main\n\n",
            "shop 4711/4712 cycles: \n          401136 pack\n\n",
            " 4711     250000 cpu-clock: \n\t          401136 pack\n\n",
            "cpu-clock: \n\tffffffff815fd615 __pte_offset_map_lock\n\n",
            "cpu-clock: \n        ffffffff815fd615 __pte_offset_map_lock\n\n",
            "\n\t    7fe72345862a handle_amd\n\t          401136 pack\n\n",
            "            shop  4711 cpu-clock:            401136 pack\n",
            " 4711 cpu-clock:  ffffffff821f464b __pi_memset\n",
            "            shop cpu-clock:      7fe72345862a handle_amd (/lib/ld.so.2)\n",
        ] {
            assert!(sniff(text.as_bytes()), "{text}");
        }
        for header in [" 4711     250000 cycles: ", " 4711 cycles:u: ", " 4711 1.000001: "] {
            for frame in ["\t          401136 pack", "                  401136 pack", "\t401136 pack (/bin/shop)"] {
                let text = format!("{header}\n{frame}\n\n");
                assert_eq!(Layout::detect(text.as_bytes()).sample_start, SampleStart::Header, "{text}");
            }
        }
        assert!(is_headerless(b"\n\t          401136 pack\n\n\n\t     401136 pack (inlined)\n  x.c:3\n"));
        assert!(!is_headerless(b"shop 1\n\t          401136 pack\n") && !is_headerless(b"") && !is_headerless(b"a\n"));
        for text in [
            "7f00 40 f\n7f40 20 LazyCompile:*g a.js:1\n",
            "   1234 counted lines\n      7 more\n",
            "commits:\n    1a2b3c4 Fix the reader\n",
            "0000000000001139 <main>:\n    1139:\t55 push\n",
            "0000000000401136 T main\n                 U puts\n",
        ] {
            assert!(!sniff(text.as_bytes()), "{text}");
        }
        assert!(!sniff(b"main;work;more 17\nmain;idle 3\n"));
        assert!(!sniff(b"PERFILE2 and then binary"));
        assert!(!sniff(b""));
    }
}
