//! Escapes: letters as JSON, JavaScript and Java have them (`\u00df`, a unit of UTF-16 each), and markup.

use super::digits::hex;

/// Text in which nothing is markup of XML or HTML, between tags and in an attribute in double quotes.
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

/// The unit whose escape a text begins with.
pub(crate) fn utf16_unit(text: &[u8]) -> Option<u16> {
    hex(text.get(..6)?.strip_prefix(b"\\u")?)?.try_into().ok()
}

/// The letter whose escape a text begins with, of one unit or a pair, and the length of that; half of a pair alone is no
/// letter.
pub(crate) fn utf16_letter(text: &[u8]) -> Option<(Option<char>, usize)> {
    let first = utf16_unit(text)?;
    let pair = utf16_unit(&text[6..]).and_then(|second| char::decode_utf16([first, second]).next()?.ok());
    let pair = pair.filter(|letter| letter.len_utf16() == 2).map(|letter| (Some(letter), 12));
    Some(pair.unwrap_or((char::from_u32(first.into()), 6)))
}
