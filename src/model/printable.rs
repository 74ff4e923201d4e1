//! Escapes names so that they are safe to show on a terminal, in a picture, on a page or in a spreadsheet.
//!
//! A runtime may choose any bytes as a name, and so may whoever names a file. Characters that a program would obey
//! instead of showing are escaped: for example escape sequences that repaint a terminal, marks that reverse the
//! direction of text, and characters that XML forbids.
//!
//! * A byte that isn't UTF-8, and a control character below U+0080, becomes two hexadecimal digits: `\x1b`.
//! * Every other character that has to be escaped becomes its code point: `\u{202e}`.
//!
//! Backslashes aren't escaped. PHP namespaces and Windows paths therefore stay readable, and escaping a name twice
//! doesn't change it. Different names stay different as long as they contain no backslashes.
//!
//! Names for people ([`readable`]) are also limited in length; other programs get the whole name.

use std::borrow::Cow;
use std::fmt::Write;

/// Escapes a name. Borrowed if nothing had to be escaped.
pub fn printable(name: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(text) if !text.chars().any(is_active) => Cow::Borrowed(text),
        _ => Cow::Owned(escape(name)),
    }
}

/// The maximum length, in characters, of a name for people. Longer names lose their middle. The longest names that
/// compilers usually produce have some 4,000 characters; more would fill screens and widen tables.
pub const LONGEST: usize = 4096;

/// How many characters are kept of the beginning and of the end of a name that is too long. Together with the remark
/// between them, these have fewer than [`LONGEST`] characters.
const SIDE: usize = 2000;

/// Escapes a name for people and shortens it to at most [`LONGEST`] characters.
pub fn readable(name: &[u8]) -> Cow<'_, str> {
    match printable(name) {
        text if text.len() > LONGEST && text.chars().count() > LONGEST => {
            Cow::Owned(without_middle(&text, LONGEST, SIDE))
        }
        text => text,
    }
}

/// Shortens a text of more than `longest` characters: keeps `side` characters at either end, and states between them
/// how many were left out.
pub fn without_middle(text: &str, longest: usize, side: usize) -> String {
    let count = text.chars().count();
    if count <= longest {
        return text.to_owned();
    }
    let head_end = text.char_indices().nth(side).map_or(text.len(), |(position, _)| position);
    let tail_start = text.char_indices().nth_back(side - 1).map_or(0, |(position, _)| position);
    format!("{}…[{} more]…{}", &text[..head_end], count - 2 * side, &text[tail_start..])
}

/// A name as a CSV cell: escaped, quoted where necessary (RFC 4180), and never a formula. What a spreadsheet would take
/// for a formula gets a leading apostrophe, which means "this is text". In locales with a decimal comma, spreadsheets
/// end a cell at `;` even within quotes, so the text after each `;` is treated the same way.
pub fn csv_cell(name: &[u8]) -> Cow<'_, str> {
    let mut text = printable(name);
    if text.split(';').any(is_formula) {
        let parts = text.split(';').map(|part| if is_formula(part) { format!("'{part}") } else { part.to_owned() });
        text = Cow::Owned(parts.collect::<Vec<_>>().join(";"));
    }
    if text.contains(['"', ',']) { Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))) } else { text }
}

/// True if a spreadsheet would evaluate the cell. Some trim leading whitespace and treat full-width characters like
/// ASCII.
fn is_formula(cell: &str) -> bool {
    cell.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠'])
}

/// True for a character that affects the text around it, that nobody can see, or that XML forbids.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}') // bidirectional
        || matches!(c, '\u{2028}' | '\u{2029}') // line and paragraph separators
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}') // byte order mark, interlinear annotations
        || is_invisible(c)
        || matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe // noncharacters
}

/// True for invisible characters, which make a name look like another one: all that Unicode lets programs ignore
/// (`Default_Ignorable_Code_Point` in DerivedCoreProperties.txt), and the blank Braille pattern.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}')
        || matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}')
        || matches!(c, '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Escapes all active characters, and all bytes that aren't UTF-8.
fn escape(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len() + 16);
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            push_escaped(&mut text, c);
        }
        for byte in chunk.invalid() {
            push_hex(&mut text, format_args!("\\x{byte:02x}"));
        }
    }
    text
}

/// Appends a character, escaped if necessary.
fn push_escaped(text: &mut String, c: char) {
    match c {
        c if !is_active(c) => text.push(c),
        c if c.is_ascii() => push_hex(text, format_args!("\\x{:02x}", u32::from(c))),
        c => push_hex(text, format_args!("\\u{{{:x}}}", u32::from(c))),
    }
}

fn push_hex(text: &mut String, number: std::fmt::Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = text.write_fmt(number);
}

/// Joins the first few distinct values with commas, for messages that say which values a filter could have selected
/// instead. `none` if there are no values.
pub fn list_some(values: impl Iterator<Item = String>) -> String {
    /// Maximum number of values to list.
    const LISTED: usize = 5;
    let mut listed: Vec<String> = Vec::new();
    for value in values {
        // Quote a value that contains a comma, so that the comma isn't taken for the end of the value.
        let value = if value.contains(", ") { format!("'{value}'") } else { value };
        if listed.len() < LISTED && !value.is_empty() && !listed.contains(&value) {
            listed.push(value);
        }
    }
    if listed.is_empty() { "none".to_owned() } else { listed.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_harmless_name_is_borrowed() {
        for name in
            ["", "main", "Türme::größer()", "App\\Deep\\mandel", "函数 <é>", "LazyCompile:~f a.js:1", "\u{fffd}"]
        {
            assert!(matches!(printable(name.as_bytes()), Cow::Borrowed(same) if same == name), "{name}");
        }
    }

    #[test]
    fn characters_that_would_be_obeyed_are_escaped() {
        let cases: [(&[u8], &str); 9] = [
            (b"\x1b[2Jgone", "\\x1b[2Jgone"),
            (b"two\nlines\r\t\0\x7f", "two\\x0alines\\x0d\\x09\\x00\\x7f"),
            (b"torn \xc3", "torn \\xc3"),
            (b"\x9b31m", "\\x9b31m"),
            ("\u{9b}31m".as_bytes(), "\\u{9b}31m"),
            ("a\u{202e}b\u{2066}c\u{200f}d\u{61c}".as_bytes(), "a\\u{202e}b\\u{2066}c\\u{200f}d\\u{61c}"),
            ("\u{2028}\u{2029}".as_bytes(), "\\u{2028}\\u{2029}"),
            ("\u{feff}\u{fffe}\u{ffff}".as_bytes(), "\\u{feff}\\u{fffe}\\u{ffff}"),
            (
                "\u{206e}\u{fffa}\u{e0041}\u{fdd0}\u{1fffe}".as_bytes(),
                "\\u{206e}\\u{fffa}\\u{e0041}\\u{fdd0}\\u{1fffe}",
            ),
        ];
        for (name, text) in cases {
            assert_eq!(printable(name), text);
        }
    }

    #[test]
    fn a_name_with_a_character_that_nobody_sees_does_not_look_like_another() {
        for c in "\u{200b}\u{ad}\u{180e}\u{200c}\u{200d}\u{2060}\u{2064}\u{feff}\u{e0041}\u{fe0f}\u{3164}".chars() {
            let shown = format!("ma\\u{{{:x}}}in", u32::from(c));
            assert_eq!(printable(format!("ma{c}in").as_bytes()), shown);
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
            (" =1", "' =1"),
            ("＝1", "'＝1"),
            ("main;=1;-[NSObject init];f;", "main;'=1;'-[NSObject init];f;"),
            ("say \"no\"", "\"say \"\"no\"\"\""),
            ("a=b", "a=b"),
            ("", ""),
        ];
        for (name, cell) in cases {
            assert_eq!(csv_cell(name.as_bytes()), cell);
        }
    }

    #[test]
    fn texts_for_people_are_bounded_and_marked() {
        let long = "é".repeat(1 << 20);
        let text = readable(long.as_bytes());
        assert_eq!(text, format!("{0}…[{1} more]…{0}", "é".repeat(SIDE), (1 << 20) - 2 * SIDE));
        assert!(text.chars().count() <= LONGEST);
        assert!(matches!(readable(text.as_bytes()), Cow::Borrowed(same) if same == text));
        let fits = "é".repeat(LONGEST);
        assert_eq!(readable(fits.as_bytes()), fits);
    }

    /// The list of forbidden characters, written down independently of the code under test.
    fn is_forbidden(c: char) -> bool {
        let code = u32::from(c);
        let ranges = [0..=0x1f, 0x7f..=0x9f, 0x61c..=0x61c, 0x200e..=0x200f, 0x2028..=0x202e, 0x2066..=0x206f];
        let later = [0xfdd0..=0xfdef, 0xfeff..=0xfeff, 0xfff9..=0xfffb, 0xfffe..=0xffff, 0xe0000..=0xe007f];
        let no_character = (0..=0x10).any(|plane| [0xfffe, 0xffff].contains(&(code - code.min(plane << 16))));
        ranges.iter().chain(&later).any(|range| range.contains(&code)) || no_character
    }

    /// Byte strings with much invalid UTF-8 and many characters that must be escaped.
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
            prop_assert!(!value.split(';').any(|part| part.starts_with(['=', '+', '-', '@'])));
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
