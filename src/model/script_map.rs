//! A source map (ECMA-426): positions in a generated script → positions in the files that its authors wrote.
//!
//! Lines and columns count from 0 here, columns in UTF-16 units, as in the format.

pub use super::script_place::{NONE, Place};
use super::script_scopes::ScriptScopes;

/// The mappings of one generated script.
#[derive(Debug, Default)]
pub struct ScriptMap {
    /// Sorted by generated position.
    segments: Vec<Segment>,
    /// The identifiers that the authors used where the script has others.
    pub names: Vec<String>,
    /// The authored files.
    pub sources: Vec<AuthoredFile>,
    /// The functions, where the map lists them.
    pub scopes: ScriptScopes,
    /// The build that the map belongs to; the script has the same one in a comment.
    pub debug_id: Option<String>,
    /// The map's name for its script, without directories.
    pub script: Option<String>,
}

/// A file that an author wrote.
#[derive(Debug, Default)]
pub struct AuthoredFile {
    /// Its path as the map has it, after `sourceRoot`.
    pub path: String,
    /// Its text, where the map contains it.
    pub content: Option<String>,
    /// True if the map lists it as third-party code (`ignoreList`).
    pub is_third_party: bool,
}

/// From this generated position on, up to the next one on its line, code belongs to this authored position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Line and column in the script.
    pub generated: Place,
    /// Line and column in the authored file.
    pub authored: Place,
    /// The authored file; [`NONE`] if the code belongs to none.
    pub source: u32,
    /// The name that the authored file authored file has for the identifier that begins here; [`NONE`] if the map
    /// doesn't state.
    pub name: u32,
}

impl ScriptMap {
    /// Sets its segments, which may be in any order.
    pub fn set_segments(&mut self, segments: Vec<Segment>) {
        self.segments = segments;
        self.segments.sort_by_key(|segment| segment.generated);
    }

    /// All segments, by generated position.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The segment that a generated position is in: the last that begins on its line at it or before it. The first of
    /// several that begin at one position, as in other readers.
    pub fn at(&self, place: Place) -> Option<&Segment> {
        let before = &self.segments[..self.segments.partition_point(|segment| segment.generated <= place)];
        let begin = before.last().filter(|last| last.generated.line == place.line)?.generated;
        before.get(before.partition_point(|segment| segment.generated < begin))
    }

    /// The authored name of the identifier that begins exactly at a generated position.
    pub fn name_at(&self, place: Place) -> Option<&str> {
        self.exactly_at(place).find_map(|segment| self.names.get(segment.name as usize)).map(String::as_str)
    }

    /// The segments that begin exactly at a generated position.
    pub fn exactly_at(&self, place: Place) -> impl Iterator<Item = &Segment> {
        let from = self.segments.partition_point(|segment| segment.generated < place);
        self.segments[from..].iter().take_while(move |segment| segment.generated == place)
    }

    /// The authored file of a segment; `None` if its code belongs to none.
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
    fn a_position_is_in_the_last_segment_before_it_on_its_line() {
        let mut map = ScriptMap::default();
        map.set_segments(vec![segment(1, 4, 1), segment(0, 10, NONE), segment(0, 10, 0), segment(0, 3, NONE)]);
        map.names = vec!["words".into(), "count".into()];
        let at = |line, column| map.at(Place { line, column }).map(|segment| (segment.generated.column, segment.name));
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
