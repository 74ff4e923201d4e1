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
    let mut depth = text.strip_prefix(b" (").map(|_| 0usize)?;
    let end = text.iter().position(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        *byte == b')' && depth == 0
    })?;
    Some(end + 1).filter(|&end| !text[end..].trim_ascii().is_empty())
}

/// The start of a named frame in a one-line sample. Because fields may follow a frame and names may contain anything,
/// only a frame whose object ends the line counts.
pub(super) fn named_frame(line: &[u8]) -> Option<usize> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let header = Header::parse(line).filter(|_| line.ends_with(b")"))?;
    let sure = |at: &usize| {
        let frame = Frame::parse(&line[*at..]);
        frame.is_some_and(|frame| frame.dso.is_some() && memmem::find(frame.symbol, b" => ").is_none())
    };
    let behind_header = line.len() - header.rest.len();
    let at_word = |at: usize| first_word(&line[at..]).map(|blanks| at + blanks);
    let behind_event = header.event_end().and_then(|end| at_word(behind_header + end));
    behind_event.filter(sure).or_else(|| at_word(behind_header).filter(sure))
}

/// The start of the word before `at`, if exactly one space separates them.
pub(super) fn word_before(text: &[u8], at: usize) -> Option<usize> {
    let end = at.checked_sub(1).filter(|&end| text[end] == b' ')?;
    let start = text[..end].iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1);
    (start < end).then_some(start)
}

/// The start of the first word.
pub(super) fn first_word(text: &[u8]) -> Option<usize> {
    text.iter().position(|byte| !byte.is_ascii_whitespace())
}
