//! `drop_frames` and `keep_frames`: regular expressions for functions that viewers should hide, together with
//! everything that they call. This way the callers of an allocator show up, rather than the allocator.
//!
//! The rules are those of `go tool pprof` (`Prune` in google/pprof's profile/prune.go): the expression must match the
//! whole name without its arguments, and frames are dropped only if one of their callers stays.

use super::messages::PprofLocation;
use super::tables::Tables;
use crate::error::{Warning, Warnings};
use regex::bytes::{Regex, RegexBuilder};
use rustc_hash::FxHashMap;

/// How much of a location is dropped. All locations further in, which it called, are dropped with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dropped {
    /// Everything, because the function that contains the code matches `drop_frames`.
    Whole,
    /// The innermost inlined calls, up to the outermost one that matches. The function that contains the code stays.
    Inner,
}

/// The compiled expressions `drop_frames` and `keep_frames` of a profile.
#[derive(Debug, Default)]
pub(super) struct DroppedFunctions {
    drop_frames: Option<Regex>,
    keep_frames: Option<Regex>,
}

/// Size limit for a compiled expression, in bytes.
const LARGEST: usize = 1 << 20;

impl DroppedFunctions {
    /// Compiles the expressions of a profile. An invalid one is ignored with a warning.
    pub(super) fn compile(tables: &Tables<'_>, warnings: &mut Warnings) -> Self {
        Self {
            drop_frames: compile_one("drop_frames", &tables.text(tables.profile.drop_frames), warnings),
            keep_frames: compile_one("keep_frames", &tables.text(tables.profile.keep_frames), warnings),
        }
    }

    /// Whether the function with this name is dropped.
    fn drops(&self, name: &[u8]) -> bool {
        let name = without_arguments(name);
        let is_dropped = self.drop_frames.as_ref().is_some_and(|regex| regex.is_match(name));
        let is_kept = self.keep_frames.as_ref().is_some_and(|regex| regex.is_match(name));
        !name.is_empty() && is_dropped && !is_kept
    }

    /// The number of lines to drop from a location, starting with the innermost inlined call: all up to the outermost
    /// one whose function is to be dropped.
    fn matching_lines(&self, location: &PprofLocation, tables: &Tables<'_>) -> usize {
        if self.drop_frames.is_none() {
            return 0;
        }
        let mut lines = 0;
        for (number, line) in (1..).zip(&location.line) {
            let Some(function) = tables.function(line.function_id) else { continue };
            // Lines are listed from the innermost call outward, so the last match decides.
            if self.drops(tables.string(function.name)) {
                lines = number;
            }
        }
        lines
    }

    /// The number of lines to leave out when the location's frames are made. A location that is dropped as a whole
    /// keeps all its frames, because stacks in which none of its callers stay still show it ([`kept_locations`]).
    pub(super) fn dropped_lines(&self, location: &PprofLocation, tables: &Tables<'_>) -> usize {
        let dropped = self.matching_lines(location, tables);
        if dropped == location.line.len() { 0 } else { dropped }
    }

    /// What to drop of each location, by ID. Locations that stay as they are have no entry.
    pub(super) fn locations(&self, tables: &Tables<'_>) -> FxHashMap<u64, Dropped> {
        let mut locations = FxHashMap::default();
        for location in &tables.profile.location {
            let lines = self.matching_lines(location, tables);
            if lines == 0 {
                continue;
            }
            // The last line is the compiled function; the lines before it are calls inlined into it. Without that
            // function, nothing of the location is left.
            let dropped = if lines == location.line.len() { Dropped::Whole } else { Dropped::Inner };
            locations.insert(location.id, dropped);
        }
        locations
    }
}

/// Compiles the expression of a field; `None` if it is empty or invalid.
fn compile_one(field: &str, text: &str, warnings: &mut Warnings) -> Option<Regex> {
    if text.is_empty() {
        return None;
    }
    // The expression must match whole names. The size limit keeps a hostile file from taking much memory.
    let regex = RegexBuilder::new(&format!("^(?:{})$", without_quotes(text))).size_limit(LARGEST).build();
    if regex.is_err() {
        warnings.push(Warning::new(format!("{field} was ignored: its regular expression is invalid or too large")));
    }
    regex.ok()
}

/// Replaces `\Q…\E`, which quotes a part of an expression in Go and Java but not in the library used here, by escapes
/// for each character. Without `\E`, everything to the end is quoted.
fn without_quotes(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(backslash) = rest.find('\\') {
        let (before, escape) = rest.split_at(backslash);
        plain += before;
        if let Some(quoted) = escape.strip_prefix("\\Q") {
            let (quoted, after) = quoted.split_once("\\E").unwrap_or((quoted, ""));
            plain += &regex::escape(quoted);
            rest = after;
        } else {
            // Copy the backslash together with the character after it. That may be a backslash, too, which must not be
            // taken for the start of the next escape.
            let end = escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end);
            plain += &escape[..end];
            rest = &escape[end..];
        }
    }
    plain + rest
}

/// The locations of a sample that stay: from the outermost one inwards, up to the first that is dropped. That one and
/// everything that it called are left out. If only inlined calls of the location are dropped ([`Dropped::Inner`]), the
/// location itself stays. `locations` and the result start with the innermost location.
///
/// As in `go tool pprof`, a location is only dropped if some location further out stays.
pub(super) fn kept_locations<'l>(locations: &'l [u64], dropped: &FxHashMap<u64, Dropped>) -> &'l [u64] {
    let mut has_kept_caller = false;
    for (index, location) in locations.iter().enumerate().rev() {
        match dropped.get(location) {
            None => has_kept_caller = true,
            Some(Dropped::Whole) if has_kept_caller => return &locations[index + 1..],
            Some(Dropped::Inner) if has_kept_caller => return &locations[index..],
            // None of the location's callers stays, so the location isn't dropped.
            Some(_) => {}
        }
    }
    locations
}

/// Cuts a function name before its arguments. The parentheses of `(anonymous namespace)` and `operator()` belong to the
/// name.
fn without_arguments(name: &[u8]) -> &[u8] {
    // Like `go tool pprof`, leave out a leading dot.
    let name = name.strip_prefix(b".").unwrap_or(name);
    let mut searched = 0;
    while let Some(len) = memchr::memchr(b'(', &name[searched..]) {
        let (before, rest) = name.split_at(searched + len);
        if rest.starts_with(b"(anonymous namespace)") {
            searched = before.len() + b"(anonymous namespace)".len();
        } else if rest.starts_with(b"()") && before.ends_with(b"operator") {
            searched = before.len() + b"()".len();
        } else {
            return before;
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_parts_are_taken_literally() {
        for (text, expected) in [
            (r"\Qruntime.mallocgc\E|main\..*", r"runtime\.mallocgc|main\..*"),
            (r"\Qa(b)", r"a\(b\)"),
            (r"\\Qx\E", r"\\Qx\E"),
            (r"a\.b\", r"a\.b\"),
            (r"ä\ö.", r"ä\ö."),
            ("", ""),
        ] {
            assert_eq!(without_quotes(text), expected, "{text}");
        }
    }

    #[test]
    fn names_end_before_their_arguments() {
        for (name, expected) in [
            ("f(int)", "f"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("std::g::operator()(int) const", "std::g::operator()"),
            (".f", "f"),
            ("main.alloc", "main.alloc"),
        ] {
            assert_eq!(without_arguments(name.as_bytes()), expected.as_bytes());
        }
    }

    #[test]
    fn all_from_the_outermost_match_on_goes_but_nothing_before_a_function_that_stays() {
        let dropped = [(1, Dropped::Whole), (2, Dropped::Inner)].into_iter().collect();
        for (locations, kept) in [
            (&[9, 1, 8, 1, 7][..], &[7][..]),
            (&[9, 2, 7], &[2, 7]),
            (&[9, 1], &[9, 1]),
            (&[1, 9, 1], &[9, 1]),
            (&[9, 8], &[9, 8]),
            (&[], &[]),
        ] {
            assert_eq!(kept_locations(locations, &dropped), kept, "{locations:?}");
        }
    }
}
