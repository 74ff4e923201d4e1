//! Reads the text output of `perf script` and of simpleperf's `report_sample.py`, and rewrites it frame by frame.
//!
//! ```text
//! node 15670   477.666805:    1001001 cpu-clock:
//! ⇥    7f710cede099 [unknown] (/tmp/perf-15670.map)
//! ⇥           2724a __libc_start_call_main+0x7a (/usr/lib/x86_64-linux-gnu/libc.so.6)
//!
//! ```
//!
//! What to know about the format:
//! * The fields of a sample's first line (the header) depend on `-F`. Without `pid`, the number is a *thread* ID.
//!   Command names may contain spaces and digits.
//! * Times are truncated to microseconds unless `--ns` was given.
//! * perf up to at least 6.1 prints addresses in files relative to the file, 7.x prints them absolute. Addresses in
//!   anonymous memory and unknown objects (`[unknown]`) are always absolute.
//! * Nothing is quoted: a symbol may contain anything, including spaces and parentheses.
//!
//! Printed by `tools/perf/builtin-script.c` and `tools/perf/util/evsel_fprintf.c`.

pub mod branches;
mod fields;
pub mod frame;
pub mod header;
pub mod known;
pub mod measured;
mod output_fields;
pub mod read;
pub mod registers;
pub mod rewrite;
pub mod write;

use rustc_hash::FxHasher;
use std::hash::Hasher;

/// True if a text looks like perf script output: among its first lines, apart from comments and blank lines, there is a
/// record line, a sample's header with a time, a one-line sample, a header directly above a frame, or an unmistakable
/// frame.
pub fn sniff(head: &[u8]) -> bool {
    let complete = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    let mut lines = first_lines(complete).peekable();
    while let Some(line) = lines.next() {
        if known::is_record_line(line) || header::Header::has_time(line) || is_one_line_sample(line) {
            return true;
        }
        if is_padded_frame(line) || lines.peek().is_some_and(|below| is_header_above_frame(line, below)) {
            return true;
        }
        // Numbers and words occur in many texts, so a frame only counts if nothing but perf prints such a line.
        let frame = lines.peek().and_then(|below| parse_frame(below)).or_else(|| parse_frame(line));
        if frame.is_some_and(|frame| is_unmistakable(&frame)) {
            return true;
        }
    }
    false
}

/// True if a text has frames but no headers, as `perf script -F ip,sym` prints it.
pub fn has_no_headers(head: &[u8]) -> bool {
    let complete = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    let mut has_frames = false;
    for line in first_lines(complete) {
        let is_frame = parse_frame(line).is_some();
        if !is_frame && !fields::is_field_line(line) && !fields::is_source_line(line) {
            return false;
        }
        has_frames |= is_frame;
    }
    has_frames
}

fn parse_frame(line: &[u8]) -> Option<frame::Frame<'_>> {
    let line = line.trim_ascii_end();
    frame::Frame::parse_indented(line).or_else(|| frame::Frame::parse_unindented(line))
}

/// True if a frame can hardly be another kind of line: it has an object in parentheses, an offset, or `[unknown]` as
/// its symbol.
fn is_unmistakable(frame: &frame::Frame<'_>) -> bool {
    let has_object = frame.dso.is_some_and(|dso| dso.starts_with(b"/") || dso.starts_with(b"["));
    has_object || frame.symbol == frame::UNKNOWN && frame.addr > frame::FIRST_PAGE || frame.offset.is_some()
}

/// True for a frame with a symbol whose address is padded as perf pads it: to sixteen columns after a tab, or after the
/// blanks that replaced the tab. If objects weren't printed, nothing else distinguishes frames from other lines with a
/// number.
fn is_padded_frame(line: &[u8]) -> bool {
    let columns = match line.first() {
        Some(b'\t') => 1 + frame::ADDRESS_WIDTH,
        Some(b' ') => TAB_WIDTH + frame::ADDRESS_WIDTH,
        _ => return false,
    };
    frame::is_padded_address(line, columns) && parse_frame(line).is_some_and(|frame| frame.symbol != frame::UNKNOWN)
}

/// The number of blanks that editors and `expand` put in place of a tab at the start of a line.
const TAB_WIDTH: usize = 8;

/// True for a header that ends with an event and has a frame below it: `shop 4711 cycles:` above `⇥ 401136 pack`.
fn is_header_above_frame(line: &[u8], below: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let is_header = header::Header::parse(line).is_some_and(|header| {
        let event_end = header.event_end();
        header.event_up_to(event_end).is_some() && header.after_event(event_end).is_empty()
    });
    let is_indented = below.first().is_some_and(u8::is_ascii_whitespace);
    is_header && is_indented && parse_frame(below).is_some_and(|frame| frame.addr > frame::FIRST_PAGE)
}

/// True for a one-line sample: header and frame on the same line. The header need not have a time.
fn is_one_line_sample(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let Some(header) = header::Header::parse(line) else { return parse_one_line_header(line).is_some() };
    let event_end = header.event_end();
    let text = header.after_event(event_end);
    header.event_up_to(event_end).is_some()
        && frame::Frame::parse_in_line(text)
            .is_some_and(|frame| is_unmistakable(&frame) || frame::is_padded_address(text, frame::ADDRESS_WIDTH))
}

/// Parses the header of a one-line sample that has no thread ID: `shop cycles:u:           401136 pack (/bin/shop)`.
/// Only the padded address after the event distinguishes such a line from other text. `None` for other lines.
fn parse_one_line_header(line: &[u8]) -> Option<header::Header<'_>> {
    if line.starts_with(b"\t") || line.starts_with(b"#") {
        return None;
    }
    let header = header::Header::parse_above_frames(line);
    let event_end = header.event_end();
    let text = header.after_event(event_end);
    let is_sample = header.event_up_to(event_end).is_some()
        && frame::is_padded_address(text, frame::ADDRESS_WIDTH)
        && frame::Frame::parse_in_line(text).is_some();
    if is_sample { Some(header) } else { None }
}

/// The first 64 lines of a text that are neither blank nor comments.
fn first_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(|&byte| byte == b'\n');
    lines.filter(|line| !line.starts_with(b"#") && !line.trim_ascii().is_empty()).take(64)
}

/// Offset after the last empty line in the buffer, which ends a sample. `None` if there is no empty line.
fn sample_end(buffer: &[u8]) -> Option<usize> {
    if let Some(line_end) = memchr::memmem::rfind(buffer, b"\n\n") {
        return Some(line_end + b"\n\n".len());
    }
    // In a file from Windows, lines end with CR and LF.
    memchr::memmem::rfind(buffer, b"\n\r\n").map(|line_end| line_end + b"\n\r\n".len())
}

fn hash_text(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    hasher.finish()
}

/// True if a text that starts like this may be perf script output of any layout. Other texts are copied unchanged.
pub fn may_be_text(head: &[u8]) -> bool {
    let Some(end) = memchr::memrchr(b'\n', head) else { return true };
    let mut lines = first_lines(&head[..end]).peekable();
    lines.peek().is_none()
        || lines.any(|line| line.trim_ascii_end().ends_with(b":") || begins_with_address(line))
        || sniff(head)
}

/// True if a line can belong to a call chain: blanks, then a hexadecimal number.
fn begins_with_address(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    text.len() < line.len() && digits > 0 && text.get(digits).is_none_or(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::{has_no_headers, may_be_text, sniff};

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
        assert!(has_no_headers(b"\n\t          401136 pack\n\n\n\t     401136 pack (inlined)\n  x.c:3\n"));
        assert!(
            !has_no_headers(b"shop 1\n\t          401136 pack\n") && !has_no_headers(b"") && !has_no_headers(b"a\n")
        );
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
