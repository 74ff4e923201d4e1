//! Reads `/tmp/perf-PID.map`: names of JIT code without times. A line is `START SIZE name`; both numbers are
//! hexadecimal.
//!
//! Producers vary: with or without `0x`, upper or lower case, one or more blanks, names of any bytes (spaces,
//! parentheses, a single character), CRLF, and an incomplete last line. If two lines overlap, the later one is right:
//! the memory was reused.
//!
//! See `tools/perf/Documentation/jit-interface.txt` of Linux.

use crate::bytes::digits::hex;
use crate::error::{Error, Skipped};

/// A line of a perf map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'data> {
    /// First address of the code.
    pub start: u64,
    /// Length of the code in bytes.
    pub size: u64,
    /// The function's name; never empty.
    pub name: &'data [u8],
}

/// True if `head` begins a perf map: nearly all of its lines consist of start, size and name.
pub fn sniff(head: &[u8]) -> bool {
    // `head` may end in the middle of a line, which is left out.
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..=end]);
    let (entries, skipped) = read(whole);
    !entries.is_empty() && skipped.count() * 10 <= entries.len() as u64
}

/// Reads all lines in file order. Lines that cannot be parsed are counted, except blank lines and comments (`#`).
pub fn read<'data>(bytes: &'data [u8]) -> (Vec<Entry<'data>>, Skipped) {
    let mut skipped = Skipped::new("line");
    let mut entries = Vec::new();
    // Skip a UTF-8 byte order mark.
    let (bytes, mut offset) = bytes.strip_prefix(b"\xef\xbb\xbf").map_or((bytes, 0), |bytes| (bytes, 3));
    for (number, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        match parse(text) {
            Ok(entry) => entries.push(entry),
            Err(_) if text.trim_ascii().is_empty() || text.starts_with(b"#") => {}
            Err(why) => skipped.add(Error::new(format!("line {} {why}", number + 1)).at_offset(offset)),
        }
        offset += line.len() as u64;
    }
    (entries, skipped)
}

/// Parses a line of a perf map: start, size and name. The error says what is wrong with the line.
fn parse(line: &[u8]) -> Result<Entry<'_>, &'static str> {
    let (start, rest) = number(line).ok_or("does not start with a hexadecimal address")?;
    let (size, rest) = number(rest).ok_or("has no hexadecimal code size")?;
    // Further blanks before the name are only for alignment: no producer has names that begin with a blank.
    let name = rest.trim_ascii_start();
    if name.is_empty() {
        return Err("has no function name");
    }
    if start.checked_add(size).is_none() {
        return Err("describes code that extends beyond the address space");
    }
    Ok(Entry { start, size, name })
}

/// Parses a hexadecimal number with or without `0x`, and returns the text after the blank that must follow it.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text);
    let end = digits.iter().position(|byte| !byte.is_ascii_hexdigit()).filter(|end| *end <= 16)?;
    let value = hex(&digits[..end])?;
    matches!(digits[end], b' ' | b'\t').then(|| (value, &digits[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &[u8]) -> (Vec<(u64, u64, String)>, Option<String>) {
        let (entries, skipped) = read(text);
        let mut warnings = crate::error::Warnings::new();
        skipped.report(std::path::Path::new("perf-7.map"), &mut warnings);
        let shown =
            entries.iter().map(|entry| (entry.start, entry.size, String::from_utf8_lossy(entry.name).into_owned()));
        (shown.collect(), warnings.iter().next().map(ToString::to_string))
    }

    #[test]
    fn every_form_of_line() {
        let text = b"7f00 10 f\n0x7f10 0x8 void W.quick(java.util.List, int)\n00000000000007F20 1 no\r\n\
            00007F20 00A0   [T] <T as Trait>::f\r\n\n7fc0 1 (block)\n7fd0 0 \xff\xfe\n7fe0 2 cut";
        let (entries, said) = names(text);
        let expected = [
            (0x7f00, 0x10, "f"),
            (0x7f10, 8, "void W.quick(java.util.List, int)"),
            (0x7f20, 0xa0, "[T] <T as Trait>::f"),
            (0x7fc0, 1, "(block)"),
            (0x7fd0, 0, "\u{fffd}\u{fffd}"),
            (0x7fe0, 2, "cut"),
        ];
        assert_eq!(entries, expected.map(|(start, size, name)| (start, size, name.to_owned())));
        assert_eq!(
            said.unwrap(),
            "perf-7.map: at byte 0x37: 1 line skipped: line 3 does not start with a hexadecimal address"
        );
    }

    #[test]
    fn broken_lines_are_counted_and_named() {
        let text = b"nonsense\n7f00\n7f00 \n7f00 10\n7f00 10 \nffffffffffffffff 2 wraps\n7f00 10 good\n";
        let (entries, said) = names(text);
        assert_eq!(entries, [(0x7f00, 0x10, "good".to_owned())]);
        let expected = "perf-7.map: at byte 0x0: 6 lines skipped; the first one: line 1 does not start with a \
                        hexadecimal address";
        assert_eq!(said.unwrap(), expected);
    }

    #[test]
    fn every_prefix_and_every_flipped_byte_is_read() {
        let text = b"7f00 10 f\n0x7f10 0x8 g\n";
        for at in 0..text.len() {
            assert!(read(&text[..at]).0.len() <= 2);
            for bit in 0..8 {
                let mut bent = text.to_vec();
                bent[at] ^= 1 << bit;
                assert!(read(&bent).0.len() <= 3);
            }
        }
    }
}
