//! Source maps (ECMA-426): map positions in a generated script to positions in the files that people wrote.
//!
//! In this file, lines and columns count from 0, and columns are in UTF-16 units, as in source maps.

use super::file_bytes::FileBytes;
use super::script_scopes::ScriptScopes;
pub use super::script_scopes::{NONE, Place};
use super::texts::TextList;
use std::ops::Range;

/// The source map of one generated script.
#[derive(Debug, Default)]
pub struct ScriptMap {
    /// Sorted by generated position.
    segments: Vec<Segment>,
    /// The names that authors gave to identifiers that are called differently in the script.
    names: TextList,
    /// The authored files.
    pub sources: Vec<AuthoredFile>,
    /// The functions in the script and the authored files, if the source map lists them.
    pub scopes: ScriptScopes,
    /// An ID of the build. The script contains the same ID in a comment, so it shows that script and map belong
    /// together.
    pub debug_id: Option<String>,
    /// The script's file name according to the source map, without directories.
    pub script: Option<String>,
}

/// A file that somebody wrote.
#[derive(Debug, Default)]
pub struct AuthoredFile {
    /// The path in the source map, with `sourceRoot` prepended; empty if the map doesn't name the file.
    pub path: String,
    /// The text of the file, if the source map contains it.
    pub content: Option<JsonString>,
    /// True if the source map marks the file as third-party code (`ignoreList`).
    pub is_third_party: bool,
}

/// A JSON string that stays quoted and escaped in the source map's file until it is needed: authored texts are large,
/// and few of them are ever shown.
#[derive(Debug, Clone)]
pub struct JsonString {
    file: FileBytes,
    range: Range<usize>,
}

impl JsonString {
    /// Refers to a part of a file. `json` must be a slice of the file's bytes; `None` if it isn't.
    pub fn new(file: &FileBytes, json: &str) -> Option<Self> {
        let start = (json.as_ptr() as usize).checked_sub(file.bytes().as_ptr() as usize)?;
        let range = start..start.checked_add(json.len())?;
        if range.end > file.bytes().len() {
            return None;
        }
        Some(Self { file: file.clone(), range })
    }

    /// The unescaped text; `None` if it is invalid, for example half of a surrogate pair.
    pub fn text(&self) -> Option<String> {
        unescape(self.escaped()?, |_, _| {})
    }

    /// Like [`text`](Self::text). Also calls `escaped` with each character that was written as an escape sequence, and
    /// with the position after it in the unescaped text.
    pub fn text_with_escapes(&self, escaped: impl FnMut(char, usize)) -> Option<String> {
        unescape(self.escaped()?, escaped)
    }

    /// Returns only the end of the text, from the last line for which `begins` is true. If there is no such line,
    /// returns the whole text. What comes before isn't unescaped, which saves time. `None` if the text is invalid.
    pub fn ending(&self, begins: impl Fn(&str) -> bool) -> Option<String> {
        let text = self.escaped()?;
        let mut line_end = text.len();
        loop {
            let start = last_line_start(&text[..line_end]);
            if start == 0 || begins(&unescape(&text[start..line_end], |_, _| {})?) {
                return unescape(&text[start..], |_, _| {});
            }
            line_end = start - NEW_LINE.len();
        }
    }

    /// The text between the quotes.
    fn escaped(&self) -> Option<&[u8]> {
        self.file.bytes().get(self.range.clone())?.strip_prefix(b"\"")?.strip_suffix(b"\"")
    }
}

/// The escape sequence for a line break.
const NEW_LINE: &[u8] = b"\\n";

/// The offset of the start of the last line in an escaped text.
fn last_line_start(text: &[u8]) -> usize {
    for line_break in memchr::memmem::rfind_iter(text, NEW_LINE) {
        // After an odd number of backslashes, this isn't a line break: its backslash is escaped, and the letter n
        // follows.
        let backslashes = text[..line_break].iter().rev().take_while(|byte| **byte == b'\\').count();
        if backslashes.is_multiple_of(2) {
            return line_break + NEW_LINE.len();
        }
    }
    0
}

/// Unescapes a JSON string. Calls `escaped` with each character that was written as an escape sequence, and with the
/// position after it in the result. `None` if the string is invalid.
fn unescape(text: &[u8], mut escaped: impl FnMut(char, usize)) -> Option<String> {
    let mut rest = std::str::from_utf8(text).ok()?;
    let mut unescaped = String::with_capacity(rest.len());
    while let Some(backslash) = memchr::memchr(b'\\', rest.as_bytes()) {
        unescaped.push_str(&rest[..backslash]);
        rest = &rest[backslash..];
        // Handle the most frequent escape sequences first: line breaks, quotes and backslashes.
        let (letter, len) = match rest.as_bytes().get(1)? {
            b'n' => ('\n', 2),
            b'"' => ('"', 2),
            b'\\' => ('\\', 2),
            _ => parse_escape(rest)?,
        };
        unescaped.push(letter);
        escaped(letter, unescaped.len());
        rest = rest.get(len..)?;
    }
    unescaped.push_str(rest);
    Some(unescaped)
}

/// The character for the escape sequence at the start of `text`, and the sequence's length in bytes. A surrogate pair
/// is one character. `None` if the sequence is invalid.
fn parse_escape(text: &str) -> Option<(char, usize)> {
    // An escape sequence with one half of a surrogate pair (`\uD83D`) is only valid together with the next one, which
    // has the other half.
    let lens = if text.starts_with("\\u") { &[6, 12][..] } else { &[2] };
    for &len in lens {
        let Some(escape) = text.get(..len) else { continue };
        let Ok(unescaped) = serde_json::from_str::<String>(&format!("\"{escape}\"")) else { continue };
        let mut chars = unescaped.chars();
        if let (Some(letter), None) = (chars.next(), chars.next()) {
            return Some((letter, len));
        }
    }
    None
}

/// Maps the generated code from one position up to the next segment on the same line to a position in an authored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Position in the script.
    pub generated: Place,
    /// Position in the authored file.
    pub authored: Place,
    /// The index of the authored file; [`NONE`] if the code is from none.
    pub source: u32,
    /// The index of the name that the authors gave to the identifier at this position; [`NONE`] if the source map has
    /// no name for it.
    pub name: u32,
}

impl ScriptMap {
    /// Sets the segments, which may be in any order.
    pub fn set_segments(&mut self, segments: Vec<Segment>) {
        self.segments = segments;
        if !self.segments.is_sorted_by_key(|segment| segment.generated) {
            self.segments.sort_by_key(|segment| segment.generated);
        }
    }

    /// Appends a name.
    pub fn push_name(&mut self, name: &str) {
        self.names.push(name.as_bytes());
    }

    /// Appends all names of another map.
    pub fn push_names_of(&mut self, other: &Self) {
        other.names.iter().for_each(|name| self.names.push(name));
    }

    /// The name with this index; `None` if there is none, as for [`NONE`].
    pub fn name(&self, number: u32) -> Option<&str> {
        self.name_bytes(number).and_then(|name| std::str::from_utf8(name).ok())
    }

    /// Like [`name`](Self::name), as bytes for comparisons.
    pub fn name_bytes(&self, number: u32) -> Option<&[u8]> {
        self.names.get(number as usize)
    }

    /// The number of names.
    pub fn name_count(&self) -> usize {
        self.names.len()
    }

    /// All segments, by generated position.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The segment that contains a generated position: the last one on the same line that starts at or before the
    /// position. If several start at the same place, the first of them, as in other readers. `None` if there is none.
    pub fn segment_at(&self, place: Place) -> Option<&Segment> {
        self.segments.get(self.segment_index_at(place)?)
    }

    /// The index of the segment that contains a generated position: the last one on the same line that starts at or
    /// before the position. If several start at the same place, the first of them. `None` if there is none.
    pub fn segment_index_at(&self, place: Place) -> Option<usize> {
        let last = self.segments.partition_point(|segment| segment.generated <= place).checked_sub(1)?;
        let start = self.segments[last].generated;
        if start.line != place.line {
            return None;
        }
        // Usually no other segment starts at the same position.
        if last == 0 || self.segments[last - 1].generated < start {
            return Some(last);
        }
        // If several segments start there, take the first.
        Some(self.segments[..last].partition_point(|segment| segment.generated < start))
    }

    /// The authored name of the identifier that starts exactly at a generated position; `None` if the source map has no
    /// name for it.
    pub fn name_at(&self, place: Place) -> Option<&str> {
        self.segments_starting_at(place).find_map(|segment| self.name(segment.name))
    }

    /// The segments that start exactly at a generated position.
    pub fn segments_starting_at(&self, place: Place) -> impl Iterator<Item = &Segment> {
        let first = self.segments.partition_point(|segment| segment.generated < place);
        self.segments[first..].iter().take_while(move |segment| segment.generated == place)
    }

    /// The authored file of a segment; `None` if the code belongs to none.
    pub fn source_of(&self, segment: &Segment) -> Option<&AuthoredFile> {
        self.sources.get(segment.source as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(line: u32, column: u32, name: u32) -> Segment {
        let generated = Place { line, column };
        Segment { generated, authored: Place { line: column, column: 0 }, source: 0, name }
    }

    #[test]
    fn the_end_of_a_string_is_read_from_behind() {
        for (text, ending) in [
            ("", ""),
            ("a", "a"),
            ("code\na\n//b\n", "a\n//b\n"),
            ("//a\n//b", "//a\n//b"),
            ("code\n\\n //\\\nb", "b"),
            ("x\\\\\n//\\\\n\"ä", "x\\\\\n//\\\\n\"ä"),
        ] {
            let file = FileBytes::new(serde_json::to_vec(text).unwrap());
            let json = JsonString::new(&file, std::str::from_utf8(file.bytes()).unwrap()).unwrap();
            let is_code = |line: &str| !line.is_empty() && !line.starts_with("//");
            assert_eq!(json.ending(is_code).as_deref(), Some(ending), "{text:?}");
        }
    }

    #[test]
    fn a_position_is_in_the_last_segment_before_it_on_its_line() {
        let mut map = ScriptMap::default();
        map.set_segments(vec![segment(1, 4, 1), segment(0, 10, NONE), segment(0, 10, 0), segment(0, 3, NONE)]);
        ["words", "count"].iter().for_each(|name| map.push_name(name));
        let at = |line, column| {
            map.segment_at(Place { line, column }).map(|segment| (segment.generated.column, segment.name))
        };
        assert_eq!(at(0, 2), None);
        assert_eq!(at(0, 9), Some((3, NONE)));
        assert_eq!(at(0, 99), Some((10, NONE)), "the first of two");
        assert_eq!(at(1, 3), None, "the line before ended");
        assert_eq!(at(1, 4), Some((4, 1)));
        assert_eq!(map.name_at(Place { line: 0, column: 10 }), Some("words"), "of whichever has one");
        assert_eq!(map.name_at(Place { line: 0, column: 11 }), None);
        assert_eq!(map.name_at(Place { line: 0, column: 3 }), None);
    }
}
