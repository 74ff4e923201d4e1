//! Finds the frame in a one-line sample. It follows the event, and more fields may follow it.
//!
//! ```text
//! node 16014   477.666805:    1001001 cpu-clock:      7f1 f+0x1 (/tmp/perf-16014.map)
//! node 16014   477.666805:          1 branches:u:     7f1 [unknown] (//anon) =>  7f2 [unknown] (//anon)
//! ```

use crate::records::perf_script::frame::Frame;
use crate::records::perf_script::header::Header;
use memchr::memmem;

/// The end of the object in a one-line sample, given the text after the frame's symbol. `None` if no object is shown,
/// or if nothing follows it. Otherwise `=>` and a branch target, or branches, follow.
pub(super) fn object_end(text: &[u8]) -> Option<usize> {
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
            return has_more.then_some(end);
        }
    }
    None
}

/// Offset in a one-line sample at which its named frame begins. Fields may follow a frame and names may contain
/// anything, so the line must end with the frame's object; otherwise `None`.
pub(super) fn find_named_frame(line: &[u8]) -> Option<usize> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !line.ends_with(b")") {
        return None;
    }
    let header = Header::parse(line)?;
    let header_end = line.len() - header.rest.len();
    let event_end = header.event_end().map(|end| header_end + end);
    for fields_end in event_end.into_iter().chain([header_end]) {
        if let Some(blanks) = first_word(&line[fields_end..])
            && let Some(frame) = Frame::parse(&line[fields_end + blanks..])
            && frame.dso.is_some()
            && memmem::find(frame.symbol, b" => ").is_none()
        {
            return Some(fields_end + blanks);
        }
    }
    None
}

/// The start of the word before `offset`. `None` unless exactly one space is between the word's end and `offset`.
pub(super) fn previous_word(text: &[u8], offset: usize) -> Option<usize> {
    let end = offset.checked_sub(1).filter(|&end| text[end] == b' ')?;
    let start = text[..end].iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1);
    (start < end).then_some(start)
}

/// Offset of the first word; `None` if there is none.
pub(super) fn first_word(text: &[u8]) -> Option<usize> {
    text.iter().position(|byte| !byte.is_ascii_whitespace())
}
