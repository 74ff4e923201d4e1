//! Functions that are called alike but start elsewhere: what to show behind their names.

use crate::model::backing::base_name;
use rustc_hash::{FxHashMap, FxHashSet};

/// Where a function starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StartPlace<'a> {
    /// Its file.
    pub file: &'a [u8],
    /// Its line, 0 if unknown.
    pub line: u32,
    /// Its column, 0 if unknown.
    pub column: u32,
}

/// How much of a place is shown.
#[derive(Clone, Copy)]
enum Shown {
    Line,
    Column,
    Path,
}

impl StartPlace<'_> {
    fn text(&self, shown: Shown) -> String {
        let file = if matches!(shown, Shown::Path) { self.file } else { base_name(self.file) };
        let mut text = String::from_utf8_lossy(file).into_owned();
        if self.line > 0 {
            text += &format!(":{}", self.line);
        }
        if self.column > 0 && !matches!(shown, Shown::Line) {
            text += &format!(":{}", self.column);
        }
        text
    }
}

/// For each function, given by name and start, the place that tells it from those called alike (`db.py:10`, with the
/// column or the whole path if it takes these); `None` if no other is called so, or its start is unknown.
pub fn places_of_namesakes<'a>(
    functions: impl Iterator<Item = (&'a str, Option<StartPlace<'a>>)> + Clone,
) -> Vec<Option<String>> {
    let mut starts: FxHashMap<&str, FxHashSet<Option<StartPlace<'_>>>> = FxHashMap::default();
    for (name, start) in functions.clone() {
        starts.entry(name).or_default().insert(start);
    }
    let tells_apart = |starts: &FxHashSet<Option<StartPlace<'_>>>, shown: Shown| {
        let texts: FxHashSet<Option<String>> =
            starts.iter().map(|start| start.map(|start| start.text(shown))).collect();
        texts.len() == starts.len()
    };
    let mut shown: FxHashMap<&str, Shown> = FxHashMap::default();
    for (name, starts) in starts.iter().filter(|(_, starts)| starts.len() > 1) {
        let least = [Shown::Line, Shown::Column].into_iter().find(|shown| tells_apart(starts, *shown));
        shown.insert(name, least.unwrap_or(Shown::Path));
    }
    functions.map(|(name, start)| Some(start?.text(*shown.get(name)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let places = places_of_namesakes(functions.into_iter());
        assert_eq!(places.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>(), expected);
    }
}
