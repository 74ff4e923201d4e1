//! Recognizes frames in perf's usual layout without parsing them: a tab, the address in sixteen columns, and a tail
//! that is the same for most frames of a stack.
//!
//! ```text
//! ⇥    7f94270c9cef [unknown] (/tmp/perf-29971.map)
//! ⇥    7f94270bb3ce [unknown] (/tmp/perf-29971.map)
//! ```

/// An address as printed, with the blanks that pad it. It is looked up as it is, without parsing the number.
pub(super) type Column = [u8; 16];

/// Offset in the line at which the address ends.
pub(super) const END: usize = 1 + size_of::<Column>();

/// Splits the line of an unnamed frame into the address and what follows it. `None` if the line has a different layout.
pub(super) fn split(line: &[u8]) -> Option<(Column, &[u8])> {
    let (address, tail) = line.split_first_chunk::<END>()?;
    if address[0] != b'\t' || !tail.starts_with(b" [unknown] (") || !tail.ends_with(b")") {
        return None;
    }
    Some((*address.last_chunk()?, tail))
}

/// The frame on the next line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FrameBelow {
    /// An unnamed frame whose line has the same tail (the text after the address).
    Unnamed {
        column: Column,
        /// Offset in the text at which its line ends.
        end: usize,
    },
    /// A frame that already has a name.
    Named {
        /// Offset in the text at which its line ends.
        end: usize,
        /// True if the frame is in user space.
        is_user: bool,
    },
}

/// Recognizes the frame on the next line. `end` is the offset of the line feed before that line. `None` if the line is
/// no frame, has a different layout, is an unnamed frame that doesn't end with `tail`, or has no line feed.
#[inline]
pub(super) fn parse_below(text: &[u8], end: usize, tail: &[u8]) -> Option<FrameBelow> {
    let (address, rest) = text.get(end + 1..)?.split_first_chunk::<END>()?;
    let ([b'\t', column @ ..], [b' ', symbol, ..]) = (address, rest) else { return None };
    let address_end = end + 1 + END;
    // An unknown symbol begins with a bracket.
    if *symbol == b'[' {
        let [b'\n', ..] = rest.strip_prefix(tail)? else { return None };
        return Some(FrameBelow::Unnamed { column: *column, end: address_end + tail.len() });
    }
    let is_user = is_user(column)?;
    Some(FrameBelow::Named { end: address_end + memchr::memchr(b'\n', rest)?, is_user })
}

/// True for a user-space address, false for a kernel address. `None` if the column isn't an address.
fn is_user(column: &Column) -> Option<bool> {
    // No early exit, so that all sixteen columns are tested at once: blanks, then digits.
    let is_plain = column.iter().fold(true, |all, byte| all & (*byte == b' ' || byte.is_ascii_hexdigit()));
    let has_gap = column.windows(2).fold(false, |any, pair| any | (pair[0] != b' ' && pair[1] == b' '));
    let is_address = is_plain && !has_gap && column[column.len() - 1] != b' ';
    is_address.then(|| column[0] < b'8')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_in_the_address_only_have_one_tail() {
        let first = "\t    7f94270c9cef [unknown] (//anon)";
        let (column, tail) = split(first.as_bytes()).unwrap();
        assert_eq!(&column, b"    7f94270c9cef");
        let next = |second: &str| parse_below(format!("{first}\n{second}").as_bytes(), first.len(), tail);
        let unnamed = FrameBelow::Unnamed { column: *b"              1f", end: 73 };
        assert_eq!(next("\t              1f [unknown] (//anon)\n"), Some(unnamed));
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
    fn frames_that_have_names_are_distinguished_from_all_else() {
        let next = |line: &str| parse_below(format!("\n{line}").as_bytes(), 0, b" [unknown] (//anon)");
        let named = |end, is_user| Some(FrameBelow::Named { end, is_user });
        assert_eq!(next("\t              1f f (a)\n\n"), named(24, true));
        assert_eq!(next("\t7fffffffffffffff f ([unknown])\n"), named(32, true));
        assert_eq!(next("\tffffffffffffffff f\n"), named(20, false));
        for other in [
            "\t              1f f (a)",
            "\t                 f (a)\n",
            "\t            1 1f f (a)\n",
            "\t              1g f (a)\n",
            "\t              1f [f] (a)\n",
            "\t              1f\tf (a)\n",
            "\t 1f [unknown] (//anon)\n",
            "\n",
            "  a.js:17           f\n",
        ] {
            assert_eq!(next(other), None, "{other:?}");
        }
    }

    #[test]
    fn other_layouts_have_no_columns() {
        for line in
            ["", "\t 7f [unknown] (//anon)", "\t    7f94270c9cef f (//anon)", "\t    7f94270c9cef [unknown] (x)\r"]
        {
            assert_eq!(split(line.as_bytes()), None, "{line:?}");
        }
    }
}
