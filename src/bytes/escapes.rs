//! Escape sequences: `\u00df` as in JSON, JavaScript and Java (one UTF-16 unit each), and `&amp;` and others of XML and
//! HTML.

use super::digits::hex;

/// Escapes text for XML or HTML, both between tags and in double-quoted attributes.
pub(crate) fn escape_markup(text: impl IntoIterator<Item = char>) -> String {
    let mut escaped = String::new();
    for letter in text {
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Decodes the `\uXXXX` escape that a text starts with; `None` if it doesn't start with one.
pub(crate) fn utf16_unit(text: &[u8]) -> Option<u16> {
    hex(text.get(..6)?.strip_prefix(b"\\u")?)?.try_into().ok()
}

/// Decodes the `\uXXXX` escape at the start of a text, or the first two if they are a surrogate pair. Returns the
/// character (`None` for a lone surrogate) and the length of its escapes in bytes. `None` if the text doesn't start
/// with an escape.
pub(crate) fn utf16_letter(text: &[u8]) -> Option<(Option<char>, usize)> {
    let first = utf16_unit(text)?;
    let pair = utf16_unit(&text[6..]).and_then(|second| char::decode_utf16([first, second]).next()?.ok());
    let pair = pair.filter(|letter| letter.len_utf16() == 2).map(|letter| (Some(letter), 12));
    Some(pair.unwrap_or((char::from_u32(first.into()), 6)))
}
