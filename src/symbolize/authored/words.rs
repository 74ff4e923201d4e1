//! Recognizes JavaScript identifiers, and finds words and blanks before an offset in a text.

use std::ops::Range;

/// True if a character can be part of an identifier. `#` starts a private name.
pub(super) fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '$' | '#' | '\u{200c}' | '\u{200d}')
}

/// True if `text` consists of exactly one identifier.
pub(super) fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_word) && !text.starts_with(|first: char| first.is_ascii_digit())
}

/// The part of a text around `offset`: up to `before` bytes before it and up to `after` bytes after it, which limits
/// how much is read for one position. The second value is where `offset` is within the part.
pub(super) fn text_around(text: &str, offset: usize, before: usize, after: usize) -> (&str, usize) {
    let (begin, end) = (
        text.ceil_char_boundary(offset.saturating_sub(before)),
        text.floor_char_boundary(offset.saturating_add(after)),
    );
    (&text[begin..end.max(offset)], offset - begin)
}

/// The text from `offset` on, but at most `most` bytes of it.
pub(super) fn text_after(text: &str, offset: usize, most: usize) -> &str {
    &text[offset..text.floor_char_boundary(offset.saturating_add(most)).max(offset)]
}

/// The identifier with which a text starts; empty if it doesn't start with one.
pub(super) fn first_word(text: &str) -> &str {
    let is_ascii_word = |byte: &u8| IS_ASCII_WORD[usize::from(*byte)];
    let len = text.as_bytes().iter().take_while(|byte| is_ascii_word(byte)).count();
    match text.as_bytes().get(len) {
        // The word may go on with a character that isn't ASCII, so all characters are examined.
        Some(128..) => &text[..text.find(|letter| !is_word(letter)).unwrap_or(text.len())],
        _ => &text[..len],
    }
}

/// For each value of a byte: true if it is an ASCII character of identifiers.
const IS_ASCII_WORD: [bool; 256] = ascii_word_bytes();

const fn ascii_word_bytes() -> [bool; 256] {
    let (mut is_ascii_word, mut byte) = ([false; 256], 0);
    while byte < 128 {
        is_ascii_word[byte] = (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'_' | b'$' | b'#');
        byte += 1;
    }
    is_ascii_word
}

/// The range of the identifier that ends at offset `end`; an empty range if there is none.
pub(super) fn word_before(text: &str, end: usize) -> Range<usize> {
    let begin = text[..end].char_indices().rev().take_while(|(_, letter)| is_word(*letter)).last();
    begin.map_or(end, |(begin, _)| begin)..end
}

/// Skips blanks and comments backwards from `offset`. Returns the offset where the text before them ends.
pub(super) fn skip_blanks_before(text: &str, offset: usize) -> usize {
    let mut end = offset;
    loop {
        end = text[..end].trim_end().len();
        // Only block comments are looked for: a line comment reaches to the end of its line, so no token can follow it
        // on the same line.
        let comment = text[..end].strip_suffix("*/").and_then(|comment| comment.rfind("/*"));
        match comment {
            Some(begin) => end = begin,
            None => return end,
        }
    }
}

/// True for keywords after which an expression comes, or which start a statement. If such a word stands before a
/// function's parameters, the function has no name.
pub(super) fn is_keyword(word: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "await",
        "case",
        "catch",
        "default",
        "delete",
        "do",
        "else",
        "extends",
        "for",
        "if",
        "in",
        "instanceof",
        "new",
        "of",
        "return",
        "switch",
        "throw",
        "typeof",
        "void",
        "while",
        "with",
        "yield",
    ];
    KEYWORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_ends_where_no_letter_of_it_follows() {
        for (text, word) in [
            ("ab$_#9(", "ab$_#9"),
            ("aäb.c", "aäb"),
            ("ä", "ä"),
            ("a€", "a"),
            ("", ""),
            ("(a", ""),
            ("a\u{200d}b c", "a\u{200d}b"),
        ] {
            assert_eq!(first_word(text), word, "{text}");
        }
    }
}
