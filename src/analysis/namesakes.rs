//! Tells apart functions that have the same name but start at different source locations.

use crate::model::mapping_kind::base_name;
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
    Line,
    Column,
    Path,
}

impl StartPlace<'_> {
    /// The location as text, with as much detail as is needed to tell it from others.
    fn text(&self, shown: LocationDetail) -> String {
        let file = if matches!(shown, LocationDetail::Path) { self.file } else { base_name(self.file) };
        let mut text = String::from_utf8_lossy(file).into_owned();
        if self.line > 0 {
            text += &format!(":{}", self.line);
        }
        if self.column > 0 && !matches!(shown, LocationDetail::Line) {
            text += &format!(":{}", self.column);
        }
        text
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
    let mut shown: FxHashMap<&str, LocationDetail> = FxHashMap::default();
    for (name, starts) in &starts {
        if starts.len() < 2 {
            continue;
        }
        let least =
            [LocationDetail::Line, LocationDetail::Column].into_iter().find(|shown| tells_apart(*shown, starts));
        shown.insert(name, least.unwrap_or(LocationDetail::Path));
    }
    functions.map(|(name, start)| Some(start?.text(*shown.get(name)?))).collect()
}

/// True if all `starts` are shown as different texts when only this much of them is shown.
fn tells_apart(shown: LocationDetail, starts: &FxHashSet<Option<StartPlace<'_>>>) -> bool {
    let texts: FxHashSet<Option<String>> = starts.iter().map(|start| start.map(|start| start.text(shown))).collect();
    texts.len() == starts.len()
}

/// True for the names that JavaScript profilers give to anonymous functions.
pub fn is_anonymous(name: &str) -> bool {
    name.is_empty() || name.starts_with("(anonymous") || name.starts_with("<anonymous")
}

/// The system name for an anonymous function: name, line and column. It is for formats that have the line where a
/// function starts but not the column, since several functions may start on the same line. `None` for functions with a
/// name or an unknown start.
/// [`column_in_system_name`] reverses it.
pub fn system_name(name: &str, line: u32, column: u32) -> Option<String> {
    (line > 0 && column > 0 && is_anonymous(name)).then(|| format!("{name}:{line}:{column}"))
}

/// The column in a name written by [`system_name`]; 0 for other names.
pub fn column_in_system_name(system_name: &[u8], name: &[u8], line: u32) -> u32 {
    let rest = system_name.strip_prefix(name).and_then(|rest| rest.strip_prefix(format!(":{line}:").as_bytes()));
    rest.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_name_keeps_the_column_of_functions_without_a_name() {
        let name = system_name("(anonymous)", 5, 31).unwrap();
        assert_eq!((name.as_str(), system_name("get", 5, 31)), ("(anonymous):5:31", None));
        assert_eq!(column_in_system_name(name.as_bytes(), b"(anonymous)", 5), 31);
        assert_eq!(column_in_system_name(b"_ZN1fEv", b"f", 5), 0);
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
