//! Counts samples for which perf printed no frame: their header is directly followed by an empty line.
//!
//! perf prints an empty line after each call chain and nowhere else. It prints no frames at all if a word of the call
//! chain is in the range of the context markers but is none of them.

use super::naming::Counts;
use crate::records::perf_script::header::Header;
use crate::records::perf_script::known::is_record_line;
use memchr::memmem;

/// Counts one sample, given the lines between its header and its empty line.
pub(super) fn count_one(frames: &[u8]) -> Counts {
    let frameless = u64::from(is_bare_header(&frames[line_start(frames)..]));
    Counts { samples: 1, frameless, ..Counts::default() }
}

/// The kind of the last line before a block. It decides whether an empty line at the start of the block ends a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LastLine {
    /// There is no line, or it is empty or unfinished: no sample ends after it.
    #[default]
    Open,
    /// The last line is a header without a frame.
    Header,
    /// The last line is neither empty nor a header without a frame.
    Other,
}

impl LastLine {
    /// Classifies the last line of a text.
    pub(super) fn classify(text: &[u8]) -> Self {
        let Some(text) = text.strip_suffix(b"\n") else { return Self::Open };
        match &text[line_start(text)..] {
            b"" => Self::Open,
            line if is_bare_header(line) => Self::Header,
            _ => Self::Other,
        }
    }
}

/// Counts the samples that end in a block, and those of them without frames.
pub(super) fn count(block: &[u8], before: LastLine) -> Counts {
    let mut ends = Counts::default();
    if block.starts_with(b"\n") && before != LastLine::Open {
        (ends.samples, ends.frameless) = (1, u64::from(before == LastLine::Header));
    }
    for end in memmem::find_iter(block, b"\n\n") {
        ends.samples += 1;
        ends.frameless += u64::from(is_bare_header(&block[line_start(&block[..end])..end]));
    }
    ends
}

/// Offset at which the last line of a text starts.
fn line_start(text: &[u8]) -> usize {
    memchr::memrchr(b'\n', text).map_or(0, |end| end + 1)
}

/// True if a line is a header without a frame.
fn is_bare_header(line: &[u8]) -> bool {
    // A cheap test first: most samples end with a frame, which is indented by a tab.
    let may_be = !line.starts_with(b"\t") && line.trim_ascii_end().ends_with(b":");
    may_be && !is_record_line(line) && Header::parse(line).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "php 27930 35804.338135:    2004008 cpu-clock: \n";
    const FRAME: &str = "\t            2234 f+0x54 (/x)\n";

    fn counted(text: &str) -> (u64, u64) {
        let ends = count(text.as_bytes(), LastLine::Open);
        (ends.samples, ends.frameless)
    }

    #[test]
    fn samples_whose_header_nothing_follows_are_frameless() {
        assert_eq!(counted(&format!("{HEADER}{FRAME}\n{HEADER}\n{HEADER}{FRAME}{FRAME}\n")), (3, 1));
        let record = "php 27930 35804.338135: PERF_RECORD_COMM: php:27930/27930\n";
        assert_eq!(counted(&format!("{record}{HEADER}\n")), (1, 1));
        // No samples are counted: each sample is one line with its only frame, a file header, an empty text.
        for text in [
            "php 27930 35804.3381:  1 c:  2234 f (/x)\n".repeat(3),
            "# captured on: \n#\n#\n".to_owned(),
            String::new(),
        ] {
            assert_eq!(counted(&text), (0, 0), "{text}");
        }
        assert_eq!(counted(&format!("{HEADER}{FRAME}  a.c:\n\n")), (1, 0));
    }

    #[test]
    fn the_count_does_not_depend_on_where_the_text_is_cut() {
        let text = format!("{HEADER}{FRAME}\n{HEADER}\n{HEADER}\n{HEADER}{FRAME}\n");
        let lines: Vec<usize> = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1).collect();
        for cut in lines {
            let (first, second) = text.as_bytes().split_at(cut);
            let [first, second] = [count(first, LastLine::Open), count(second, LastLine::classify(first))];
            assert_eq!((first.samples + second.samples, first.frameless + second.frameless), (4, 2), "cut at {cut}");
        }
    }
}
