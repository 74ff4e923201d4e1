//! The text of a script or an authored file, with conversion between positions and byte offsets.
//!
//! Engines and source maps count columns in UTF-16 units. Lines end as in JavaScript (`\n`, `\r\n`, `\r`, U+2028,
//! U+2029).

use crate::model::script_map::{JsonString, Place};

/// A text in which lines and columns are found fast. Needed because minified scripts have lines of megabytes.
#[derive(Debug)]
pub(super) struct Text {
    text: String,
    /// The byte offset where each line starts. Scripts and source maps have at most 1 GiB, so 32 bits are enough.
    lines: Vec<u32>,
    /// The number of UTF-16 units before byte 0, before byte [`STEP`], before byte 2·[`STEP`] and so on. If such a byte
    /// is inside a character, the whole character counts as before it. Empty for ASCII texts, where each byte is one
    /// unit.
    units: Vec<usize>,
}

/// The interval in bytes at which the number of UTF-16 units so far is stored ([`Text::units`]).
const STEP: usize = 1 << 10;

impl Text {
    /// Stores a text without its byte order mark, and finds its lines.
    pub(super) fn new(mut text: String) -> Self {
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        let lines = line_starts(&text);
        Self::with_lines(text, lines)
    }

    /// Decodes a text stored in a source map. Line ends are noticed while decoding, because most of them are escaped
    /// (`\n`); that saves a second pass over the text. `None` if the text can't be decoded.
    pub(super) fn from_json(json: &JsonString) -> Option<Self> {
        let mut lines = vec![0];
        let text = json.text_with_escapes(|letter, end| {
            if letter == '\n' {
                lines.push(end as u32);
            }
        })?;
        // A second pass is only needed if the text has other kinds of line ends (`\r`, or characters that begin with
        // 0xe2), or a byte order mark, which shifts all offsets.
        let has_others = memchr::memchr2(b'\r', 0xe2, text.as_bytes()).is_some() || text.starts_with('\u{feff}');
        Some(if has_others { Self::new(text) } else { Self::with_lines(text, lines) })
    }

    /// Stores a text whose line starts are known, and counts its UTF-16 units at every [`STEP`]th byte.
    fn with_lines(text: String, lines: Vec<u32>) -> Self {
        let mut units = Vec::new();
        // In a text of ASCII only, offsets in bytes and in units are equal, so no counts are needed.
        if !text.is_ascii() {
            let mut count = 0;
            for (offset, letter) in text.char_indices() {
                // `count` is the number of units before this character.
                while units.len() * STEP <= offset {
                    units.push(count);
                }
                count += letter.len_utf16();
            }
        }
        Self { text, lines, units }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// The byte offset of a line and column; `None` if the text has no such position.
    pub(super) fn byte_offset(&self, place: Place) -> Option<usize> {
        let line = place.line as usize;
        let column = place.column as usize;
        let start = *self.lines.get(line)? as usize;
        let end = self.lines.get(line + 1).map_or(self.text.len(), |next| *next as usize);
        // Columns are UTF-16 units. In ASCII, these are bytes.
        let byte = if self.is_ascii(start, start + column) {
            start + column
        } else {
            self.byte_of_unit(self.unit_of_byte(start) + column)?
        };
        (byte <= end).then_some(byte)
    }

    /// True if the text from offset `from` to offset `to` is known to be ASCII, so that each byte is one UTF-16 unit.
    /// May be false for an ASCII text if the offsets are far apart.
    fn is_ascii(&self, from: usize, to: usize) -> bool {
        if self.units.is_empty() {
            return true;
        }
        self.text.as_bytes().get(from..to).is_some_and(|bytes| bytes.len() <= STEP && bytes.is_ascii())
    }

    /// The line and column of a byte offset.
    pub(super) fn place(&self, byte: usize) -> Place {
        let line = self.lines.partition_point(|start| *start as usize <= byte).saturating_sub(1);
        let start = self.lines.get(line).map_or(0, |start| *start as usize);
        let column =
            if self.is_ascii(start, byte) { byte - start } else { self.unit_of_byte(byte) - self.unit_of_byte(start) };
        Place { line: line as u32, column: column as u32 }
    }

    /// The number of UTF-16 units before a byte offset.
    fn unit_of_byte(&self, byte: usize) -> usize {
        let step = (byte / STEP).min(self.units.len().saturating_sub(1));
        let before_step = self.units.get(step).copied().unwrap_or_default();
        let in_step = self.text.get(self.step_start(step)..byte).unwrap_or_default();
        before_step + in_step.chars().map(char::len_utf16).sum::<usize>()
    }

    /// The byte offset of the character that starts at or after this UTF-16 unit; `None` beyond the end of the text.
    fn byte_of_unit(&self, unit: usize) -> Option<usize> {
        // Starts at the last step whose stored count isn't above `unit`, and counts characters from there.
        let step = self.units.partition_point(|units| *units <= unit).checked_sub(1)?;
        let mut byte = self.step_start(step);
        let mut count = self.units[step];
        for letter in self.text[byte..].chars() {
            if count >= unit {
                return Some(byte);
            }
            byte += letter.len_utf8();
            count += letter.len_utf16();
        }
        (count >= unit).then_some(byte)
    }

    /// The start of the step with this index: the first character boundary at or after byte `step * STEP`.
    fn step_start(&self, step: usize) -> usize {
        let mut start = (step * STEP).min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start += 1;
        }
        start
    }
}

/// The byte offset of each line's first character. Lines end as in JavaScript.
fn line_starts(text: &str) -> Vec<u32> {
    let bytes = text.as_bytes();
    let mut lines = vec![0];
    // The UTF-8 forms of the line ends U+2028 and U+2029 begin with the byte 0xe2.
    for offset in memchr::memchr3_iter(b'\n', b'\r', 0xe2, bytes) {
        match bytes[offset] {
            // CR LF is a single line end, which counts at its line feed.
            b'\r' if bytes.get(offset + 1) == Some(&b'\n') => {}
            b'\n' | b'\r' => lines.push(offset as u32 + 1),
            _ if text[offset..].starts_with(['\u{2028}', '\u{2029}']) => lines.push(offset as u32 + 3),
            _ => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::file_bytes::FileBytes;

    fn place(line: u32, column: u32) -> Place {
        Place { line, column }
    }

    fn from(text: &Text, place: Place) -> Option<&str> {
        text.byte_offset(place).map(|byte| &text.as_str()[byte..])
    }

    #[test]
    fn columns_are_utf_16_units_and_lines_javascript_s() {
        let long = "ä😀".repeat(2000);
        let text = format!("ab\r\ncd\u{2028}{long}x\nlast");
        let text = Text::new(text);
        assert_eq!(from(&text, place(1, 1)).unwrap().chars().next(), Some('d'));
        assert_eq!(from(&text, place(2, 6000)).unwrap(), "x\nlast");
        assert_eq!(from(&text, place(3, 4)).unwrap(), "");
        assert_eq!(
            (from(&text, place(3, 5)), from(&text, place(4, 0)), text.byte_offset(place(0, 9))),
            (None, None, None)
        );
        for at in [place(0, 1), place(1, 0), place(2, 0), place(2, 3), place(2, 4500), place(2, 5998), place(3, 2)] {
            assert_eq!(text.place(text.byte_offset(at).unwrap()), at);
        }
        assert_eq!(Text::new("\u{feff}x".to_owned()).as_str(), "x");
        assert_eq!(from(&Text::new(String::new()), place(0, 0)), Some(""));
    }

    #[test]
    fn a_string_of_a_map_has_the_lines_of_its_text() {
        for text in ["", "a", "a\nb\n", "a\r\nb\rc", "\n\u{2028}ä\n", "\u{feff}a\nb", "\"\\n\\\n"] {
            let file = FileBytes::new(serde_json::to_vec(text).unwrap());
            let json = JsonString::new(&file, std::str::from_utf8(file.bytes()).unwrap()).unwrap();
            let (of_map, own) = (Text::from_json(&json).unwrap(), Text::new(text.to_owned()));
            assert_eq!((of_map.as_str(), &of_map.lines), (own.as_str(), &own.lines), "{text:?}");
        }
    }
}
