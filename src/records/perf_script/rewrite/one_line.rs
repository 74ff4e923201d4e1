//! One-line samples: the frame follows the event, and more fields may follow the frame.
//!
//! ```text
//! node 16014   477.666805:    1001001 cpu-clock:      7f1 f+0x1 (/tmp/perf-16014.map)
//! node 16014   477.666805:          1 branches:u:     7f1 [unknown] (//anon) =>  7f2 [unknown] (//anon)
//! ```

use crate::records::perf_script::frame::Frame;
use crate::records::perf_script::header::Header;
use memchr::memmem;

/// The end of the object after a frame's symbol, if more fields follow it: `=>` and a branch target, or branches.
/// `None` if nothing follows or no object is shown.
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

/// The start of a named frame in a one-line sample. Because fields may follow a frame and names may contain anything,
/// only a frame whose object ends the line counts.
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

/// The start of the word that ends one space before `offset`. `None` if there isn't exactly one space between.
pub(super) fn previous_word(text: &[u8], offset: usize) -> Option<usize> {
    let end = offset.checked_sub(1).filter(|&end| text[end] == b' ')?;
    let start = text[..end].iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1);
    (start < end).then_some(start)
}

/// The offset of the first word.
pub(super) fn first_word(text: &[u8]) -> Option<usize> {
    text.iter().position(|byte| !byte.is_ascii_whitespace())
}
