//! Frames as perf lays them out: a tab, the address in sixteen columns, and what is the same for most of a stack.
//!
//! ```text
//! ⇥    7f94270c9cef [unknown] (/tmp/perf-29971.map)
//! ⇥    7f94270bb3ce [unknown] (/tmp/perf-29971.map)
//! ```

use std::ops::Range;

/// An address as it stands there, blanks and all: what it is a number of need not be known to find it again.
pub(in crate::formats::perf_script) type Column = [u8; 16];

/// Where the address ends in its line.
pub(super) const END: usize = 1 + size_of::<Column>();

/// What stands behind the address of a frame without a name; `None` if the line is laid out in another way.
pub(super) fn tail(line: &[u8]) -> Option<&[u8]> {
    let (address, tail) = line.split_at_checked(END)?;
    let laid_out = address[0] == b'\t' && tail.starts_with(b" [unknown] (") && tail.ends_with(b")");
    laid_out.then_some(tail)
}

/// The line behind the line feed at `end`, if it is such a frame with the same tail.
pub(super) fn next(text: &[u8], end: usize, tail: &[u8]) -> Option<(Column, Range<usize>)> {
    let (address, rest) = text.get(end + 1..)?.split_first_chunk::<END>()?;
    let ([b'\t', ..], [b'\n', ..]) = (address, rest.strip_prefix(tail)?) else { return None };
    let column = *address.last_chunk()?;
    Some((column, end + 1..end + 1 + END + tail.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_in_the_address_only_follow_each_other() {
        let first = "\t    7f94270c9cef [unknown] (//anon)";
        let tail = tail(first.as_bytes()).unwrap();
        let next = |second: &str| next(format!("{first}\n{second}").as_bytes(), first.len(), tail);
        let (column, line) = next("\t              1f [unknown] (//anon)\n").unwrap();
        assert_eq!((&column, line), (b"              1f", 37..73));
        for other in [
            "",
            "\t",
            "\t              1f [unknown] (//anon)",
            "\t              1f [unknown] (//anon)\r\n",
            "\t              1f [unknown] (//ano)\n",
            "               1ff [unknown] (//anon)\n",
        ] {
            assert_eq!(next(other), None, "{other:?}");
        }
    }

    #[test]
    fn other_layouts_have_no_columns() {
        for line in
            ["", "\t 7f [unknown] (//anon)", "\t    7f94270c9cef f (//anon)", "\t    7f94270c9cef [unknown] (x)\r"]
        {
            assert_eq!(tail(line.as_bytes()), None, "{line:?}");
        }
    }
}
