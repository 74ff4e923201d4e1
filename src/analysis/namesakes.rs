//! Tells apart functions that have the same name but start at different source locations.

use crate::model::mapping_kind::base_name;
use crate::model::stacks::{Frame, FunctionStart, NameId, Profile, UNKNOWN};
use rustc_hash::{FxHashMap, FxHashSet};

/// The source location where a function starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StartPlace<'a> {
    /// The source file.
    pub file: &'a [u8],
    /// The line; 0 if unknown.
    pub line: u32,
    /// The column; 0 if unknown.
    pub column: u32,
}

/// How much of a source location is shown.
#[derive(Clone, Copy)]
enum LocationDetail {
    /// File name and line.
    Line,
    /// File name, line and column.
    Column,
    /// Path, line and column.
    Path,
}

impl<'a> StartPlace<'a> {
    /// The location of a function of this profile; `None` if its file is unknown.
    pub fn new(profile: &'a Profile, start: FunctionStart) -> Option<Self> {
        let FunctionStart { file, line, column } = start;
        Some(Self { file: profile.name_of(file?), line, column })
    }

    /// The location as text, in this much detail.
    fn text(&self, detail: LocationDetail) -> String {
        let file = if matches!(detail, LocationDetail::Path) { self.file } else { base_name(self.file) };
        let mut text = String::from_utf8_lossy(file).into_owned();
        if self.line > 0 {
            text += &format!(":{}", self.line);
        }
        if self.column > 0 && !matches!(detail, LocationDetail::Line) {
            text += &format!(":{}", self.column);
        }
        text
    }
}

/// The functions of a profile that share their name with others, and the location that distinguishes each. Formats that
/// only have names (folded stacks, tables) append it, so that all of them spell a function alike: `__init__
/// (db.py:10)`.
#[derive(Debug, Default)]
pub struct Namesakes {
    /// By name and start. Functions with a unique name aren't in here.
    locations: FxHashMap<(NameId, FunctionStart), String>,
}

impl Namesakes {
    /// Finds the functions of a profile that have the same name but start at different locations.
    pub fn new(profile: &Profile) -> Self {
        let mut starts: FxHashMap<NameId, FxHashSet<FunctionStart>> = FxHashMap::default();
        for (_, frame) in profile.frames() {
            starts.entry(frame.name).or_default().insert(frame.start);
        }
        let mut locations = FxHashMap::default();
        for (name, starts) in starts {
            if starts.len() < 2 || profile.name_of(name) == UNKNOWN {
                continue;
            }
            let starts: Vec<FunctionStart> = starts.into_iter().collect();
            // `namesake_locations` compares functions of the same name. All functions here have the same name, so they
            // are passed with an empty one.
            let texts = namesake_locations(starts.iter().map(|start| ("", StartPlace::new(profile, *start))));
            for (start, text) in starts.into_iter().zip(texts) {
                if let Some(text) = text {
                    locations.insert((name, start), text);
                }
            }
        }
        Self { locations }
    }

    /// The location to append to the name of a frame's function; `None` if its name is unique or its start is unknown.
    pub fn location(&self, frame: &Frame) -> Option<&str> {
        self.locations.get(&(frame.name, frame.start)).map(String::as_str)
    }
}

/// For each function, given by name and start, the location that distinguishes it from others of the same name:
/// `db.py:10`, with the column or the whole path only if needed. `None` if its name is unique or its start is unknown.
pub fn namesake_locations<'a>(
    functions: impl Iterator<Item = (&'a str, Option<StartPlace<'a>>)> + Clone,
) -> Vec<Option<String>> {
    let mut starts: FxHashMap<&str, FxHashSet<Option<StartPlace<'_>>>> = FxHashMap::default();
    for (name, start) in functions.clone() {
        starts.entry(name).or_default().insert(start);
    }
    let mut details: FxHashMap<&str, LocationDetail> = FxHashMap::default();
    for (name, starts) in &starts {
        if starts.len() < 2 {
            continue;
        }
        let least_detail =
            [LocationDetail::Line, LocationDetail::Column].into_iter().find(|detail| tells_apart(*detail, starts));
        details.insert(name, least_detail.unwrap_or(LocationDetail::Path));
    }
    functions.map(|(name, start)| Some(start?.text(*details.get(name)?))).collect()
}

/// True if this much detail is enough to tell all `starts` apart: their texts differ.
fn tells_apart(detail: LocationDetail, starts: &FxHashSet<Option<StartPlace<'_>>>) -> bool {
    let texts: FxHashSet<Option<String>> = starts.iter().map(|start| start.map(|start| start.text(detail))).collect();
    texts.len() == starts.len()
}

/// True for the names that JavaScript profilers give to anonymous functions.
pub fn is_anonymous(name: &str) -> bool {
    name.is_empty() || name.starts_with("(anonymous") || name.starts_with("<anonymous")
}

/// A name for a function that also contains the line and column of its start: several functions may start on the same
/// line. For formats that store, beside the name, a "system name" and the start line, but no column. `None` if the
/// column is unknown. [`column_in_system_name`] gets the column back.
pub fn system_name(name: &str, line: u32, column: u32) -> Option<String> {
    if line > 0 && column > 0 { Some(format!("{name}:{line}:{column}")) } else { None }
}

/// A line and a column of a function, as formats with lines and columns per frame state them. 0 if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineAndColumn {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// The two source positions that [`read_position`] finds for a frame of an input file: the line and column that were
/// executed, and where the frame's function starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadPosition {
    /// The executed position.
    pub executed: LineAndColumn,
    /// Where the function starts.
    pub start: LineAndColumn,
}

/// Determines the executed position and the function's start, given the position that the file states for a frame, the
/// function's start line (0 if the file has none), its name and its system name.
///
/// Usually, the stated position is the executed one, and the system name may contain the column of the start
/// ([`system_name`]). But if the function is anonymous, and the file states no start line but a column, the position is
/// the function's start: pprof-nodejs writes that, because nothing else distinguishes anonymous functions.
pub fn read_position(stated: LineAndColumn, start_line: u32, name: &[u8], system_name: &[u8]) -> ReadPosition {
    let is_nameless = !name.is_empty() && std::str::from_utf8(name).is_ok_and(is_anonymous);
    if start_line == 0 && is_nameless && stated.line > 0 && stated.column > 0 {
        return ReadPosition { executed: LineAndColumn::default(), start: stated };
    }
    let column = column_in_system_name(system_name, name, start_line);
    ReadPosition { executed: stated, start: LineAndColumn { line: start_line, column } }
}

/// Gets back the column where a function starts from a name that [`system_name`] made: 7 from `f:12:7`, if `name` is
/// `f` and `line` is 12. 0 if `system_name` doesn't have this form.
pub fn column_in_system_name(system_name: &[u8], name: &[u8], line: u32) -> u32 {
    let rest = system_name.strip_prefix(name).and_then(|rest| rest.strip_prefix(format!(":{line}:").as_bytes()));
    rest.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::FrameKind;

    #[test]
    fn a_system_name_keeps_the_column_where_a_function_starts() {
        for function in ["(anonymous)", "get"] {
            let name = system_name(function, 5, 31).unwrap();
            assert_eq!(column_in_system_name(name.as_bytes(), function.as_bytes(), 5), 31);
            assert_eq!(system_name(function, 5, 0), None);
        }
        assert_eq!(column_in_system_name(b"_ZN1fEv", b"f", 5), 0);
    }

    #[test]
    fn a_position_of_a_frame_is_its_line_or_the_start_of_its_function() {
        let at = |line, column| LineAndColumn { line, column };
        let named = read_position(at(5, 0), 5, b"get", b"get:5:31");
        assert_eq!(named, ReadPosition { executed: at(5, 0), start: at(5, 31) });
        let nameless = read_position(at(7, 3), 0, b"(anonymous)", b"");
        assert_eq!(nameless, ReadPosition { executed: at(0, 0), start: at(7, 3) });
        let elsewhere = read_position(at(7, 3), 2, b"f", b"f");
        assert_eq!(elsewhere, ReadPosition { executed: at(7, 3), start: at(2, 0) });
    }

    #[test]
    fn only_functions_that_share_their_name_get_a_location() {
        let mut profile = Profile::new();
        let mut locations = Vec::new();
        for (name, file) in
            [("init", Some("/a/db.py")), ("init", Some("/a/cache.py")), ("init", None), ("run", Some("x.py"))]
        {
            let name = profile.name(name.as_bytes());
            let file = file.map(|file| profile.name(file.as_bytes()));
            let start = FunctionStart { file, line: 3, column: 0 };
            let frame = profile.frame(Frame { start, ..Frame::new(name, FrameKind::User) });
            locations.push(frame);
        }
        let namesakes = Namesakes::new(&profile);
        let locations = locations.into_iter().map(|frame| namesakes.location(profile.frame_of(frame)));
        assert_eq!(locations.collect::<Vec<_>>(), [Some("db.py:3"), Some("cache.py:3"), None, None]);
    }

    #[test]
    fn a_place_is_as_long_as_it_must_be() {
        let start = |file: &'static str, line, column| Some(StartPlace { file: file.as_bytes(), line, column });
        let functions = [
            ("init", start("/a/db.py", 10, 1)),
            ("init", start("/a/cache.py", 44, 1)),
            ("get", start("a.js", 5, 3)),
            ("get", start("a.js", 5, 30)),
            ("run", start("x/index.js", 1, 1)),
            ("run", start("y/index.js", 1, 1)),
            ("main", start("a.js", 1, 1)),
            ("f", None),
            ("f", start("a.c", 0, 0)),
        ];
        let expected =
            ["db.py:10", "cache.py:44", "a.js:5:3", "a.js:5:30", "x/index.js:1:1", "y/index.js:1:1", "", "", "a.c"];
        let places = namesake_locations(functions.into_iter());
        assert_eq!(places.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>(), expected);
    }
}
