//! Names as text that is safe to show: on a terminal, in a picture, on a page, in a spreadsheet.
//!
//! A name is whatever bytes a runtime wrote, and a path whatever bytes a file is called. What a reader's program would
//! obey instead of showing it is written out: an escape sequence that repaints a terminal, a mark that turns the rest
//! of a line around, a character that XML forbids.
//!
//! * A byte that is no UTF-8, and a control character below U+0080, is `\x1b`: two hexadecimal digits.
//! * Every other character that is not shown as it is, is `\u{202e}`.
//!
//! Backslashes stay as they are, so that PHP's namespaces and Windows' paths can be read, and text that was made
//! printable can be made so again. Names without backslashes stay different from each other.

use std::borrow::Cow;
use std::fmt::Write;

/// A name as text that does nothing but be read; borrowed if it is that already.
pub fn printable(name: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(text) if !text.chars().any(is_active) => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(name)),
    }
}

/// A name as a cell of CSV: printable, quoted where it must be (RFC 4180), and no formula to a spreadsheet: what one
/// would take for a formula gets an apostrophe in front, which spreadsheets read as "this is text".
pub fn csv_cell(name: &[u8]) -> Cow<'_, str> {
    let mut text = printable(name);
    if text.starts_with(['=', '+', '-', '@']) {
        text.to_mut().insert(0, '\'');
    }
    if text.contains(['"', ',']) { Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))) } else { text }
}

/// Whether a character does something to what surrounds it, or may not stand in XML.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') // bidirectional
        || matches!(c, '\u{2028}' | '\u{2029}') // separators of lines and paragraphs
        || matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}') // the mark of byte order, and no characters
}

fn escaped(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len() + 16);
    for chunk in name.utf8_chunks() {
        chunk.valid().chars().for_each(|c| push(&mut text, c));
        chunk.invalid().iter().for_each(|byte| push_hex(&mut text, format_args!("\\x{byte:02x}")));
    }
    text
}

fn push(text: &mut String, c: char) {
    match c {
        c if !is_active(c) => text.push(c),
        c if c.is_ascii() => push_hex(text, format_args!("\\x{:02x}", u32::from(c))),
        c => push_hex(text, format_args!("\\u{{{:x}}}", u32::from(c))),
    }
}

fn push_hex(text: &mut String, number: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(number);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_harmless_is_borrowed() {
        for name in
            ["", "main", "Türme::größer()", "App\\Deep\\mandel", "函数 <é>", "LazyCompile:~f a.js:1", "\u{fffd}"]
        {
            assert!(matches!(printable(name.as_bytes()), Cow::Borrowed(same) if same == name), "{name}");
        }
    }

    #[test]
    fn what_would_be_obeyed_is_written_out() {
        let cases: [(&[u8], &str); 8] = [
            (b"\x1b[2Jgone", "\\x1b[2Jgone"),
            (b"two\nlines\r\t\0\x7f", "two\\x0alines\\x0d\\x09\\x00\\x7f"),
            (b"torn \xc3", "torn \\xc3"),
            (b"\x9b31m", "\\x9b31m"),
            ("\u{9b}31m".as_bytes(), "\\u{9b}31m"),
            ("a\u{202e}b\u{2066}c\u{200f}d\u{61c}".as_bytes(), "a\\u{202e}b\\u{2066}c\\u{200f}d\\u{61c}"),
            ("\u{2028}\u{2029}".as_bytes(), "\\u{2028}\\u{2029}"),
            ("\u{feff}\u{fffe}\u{ffff}".as_bytes(), "\\u{feff}\\u{fffe}\\u{ffff}"),
        ];
        for (name, text) in cases {
            assert_eq!(printable(name), text);
        }
    }

    #[test]
    fn a_cell_is_never_a_formula() {
        let cases = [
            ("=1+1", "'=1+1"),
            ("+a", "'+a"),
            ("-[NSObject init]", "'-[NSObject init]"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "\\x09=1"),
            ("\r=1", "\\x0d=1"),
            ("=a,b", "\"'=a,b\""),
            ("say \"no\"", "\"say \"\"no\"\"\""),
            ("a=b", "a=b"),
            ("", ""),
        ];
        for (name, cell) in cases {
            assert_eq!(csv_cell(name.as_bytes()), cell);
        }
    }

    /// The list once more, as ranges, and not as the code has it.
    fn is_forbidden(c: char) -> bool {
        let code = u32::from(c);
        let ranges = [0..=0x1f, 0x7f..=0x9f, 0x61c..=0x61c, 0x200e..=0x200f, 0x2028..=0x202e, 0x2066..=0x2069];
        ranges.iter().any(|range| range.contains(&code)) || [0xfeff, 0xfffe, 0xffff].contains(&code)
    }

    /// Bytes among which there are many that are no UTF-8, and many characters that must not get through.
    fn name() -> impl Strategy<Value = Vec<u8>> {
        let odd = prop::sample::select(vec![
            '\u{1b}', '\n', '\u{9b}', '\u{202e}', '\u{2069}', '\u{ffff}', '=', '"', ',', 'é',
        ]);
        let part = prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            odd.prop_map(|c| c.to_string().into_bytes()),
            any::<char>().prop_map(|c| c.to_string().into_bytes()),
        ];
        prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn nothing_that_is_obeyed_gets_through(name in name()) {
            prop_assert!(!printable(&name).chars().any(is_forbidden));
            let cell = csv_cell(&name);
            prop_assert!(!cell.chars().any(is_forbidden));
            let value = cell.strip_prefix('"').unwrap_or(&cell);
            prop_assert!(!value.starts_with(['=', '+', '-', '@']));
        }

        #[test]
        fn text_that_was_made_printable_stays_as_it_is(name in name()) {
            let text = printable(&name).into_owned();
            prop_assert!(matches!(printable(text.as_bytes()), Cow::Borrowed(same) if same == text));
        }

        #[test]
        fn names_without_backslashes_stay_different(one in name(), other in name()) {
            prop_assume!(one != other && !one.contains(&b'\\') && !other.contains(&b'\\'));
            prop_assert_ne!(printable(&one), printable(&other));
        }
    }
}
