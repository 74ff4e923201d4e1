//! Shortens a name so that it fits its box.
//!
//! The function's own name matters most, so namespaces and packages before it are left out first. If the name is still
//! too long, its end is replaced by `…`. If the user asked to cut off the start ([`Cut::Begin`]), the name's start is
//! replaced by `…` instead, however much of it that is. After zooming, the page's script does the same.

use std::borrow::Cow;

/// Which end of a long name is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cut {
    /// Shorten the end, but leave out namespaces and packages at the start first.
    #[default]
    End,
    /// Shorten the start.
    Begin,
}

/// The number of letters that a box must have room for to show a name. With less room, shortened names could not be
/// told apart.
const FEWEST: usize = 3;

/// Shortens a name to at most `room` letters. `None` if there is too little room for any name. With [`Cut::End`],
/// qualifiers such as `std::` are left out one by one until the name fits; `dots_qualify` says whether a dot ends a
/// qualifier, too, as in `java.util.`.
pub(super) fn shorten(name: &str, room: usize, dots_qualify: bool, cut: Cut) -> Option<Cow<'_, str>> {
    let letters = name.chars().count();
    if room < FEWEST {
        return None;
    }
    if letters <= room {
        return Some(Cow::Borrowed(name));
    }
    if cut == Cut::Begin {
        // One of the `room` letters is the `…`.
        let end = name.char_indices().nth(letters - (room - 1)).map_or("", |(offset, _)| &name[offset..]);
        return Some(Cow::Owned(format!("…{end}")));
    }
    let mut shortest = name;
    for offset in offsets_of_parts(name, dots_qualify) {
        shortest = &name[offset..];
        if shortest.chars().count() <= room {
            return Some(Cow::Borrowed(shortest));
        }
    }
    // Even without qualifiers, the name is too long, so replace its end.
    let start = shortest.char_indices().nth(room - 1).map_or(shortest, |(offset, _)| &shortest[..offset]);
    Some(Cow::Owned(format!("{start}…")))
}

/// The offsets at which the parts of a qualified name start: after each `::` and, if `dots_qualify`, after each `.`.
/// Text in brackets isn't divided. The search stops at the first space outside of brackets, where the function's name
/// ends.
fn offsets_of_parts(name: &str, dots_qualify: bool) -> Vec<usize> {
    let bytes = name.as_bytes();
    // The number of open brackets.
    let mut depth = 0usize;
    let mut offsets = Vec::new();
    for (index, &byte) in bytes.iter().enumerate() {
        let ends_double_colon = byte == b':' && index > 0 && bytes[index - 1] == b':';
        match byte {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 => break,
            b':' if depth == 0 && ends_double_colon && index + 1 < bytes.len() => offsets.push(index + 1),
            b'.' if depth == 0 && dots_qualify && separates_names(bytes, index) => offsets.push(index + 1),
            _ => {}
        }
    }
    offsets
}

/// True if the dot at index `dot` of a qualified name separates two names. A dot at either end doesn't, and neither do
/// two dots in a row: V8's `Module._extensions..js` is the function `_extensions..js` of `Module`.
fn separates_names(name: &[u8], dot: usize) -> bool {
    let before = dot.checked_sub(1).and_then(|index| name.get(index));
    let after = name.get(dot + 1);
    before.is_some_and(|&byte| byte != b'.') && after.is_some_and(|&byte| byte != b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(name: &str, room: usize) -> String {
        shorten(name, room, true, Cut::End).map_or_else(String::new, Cow::into_owned)
    }

    #[test]
    fn the_functions_name_is_kept() {
        assert_eq!(cut("java.util.concurrent.Pool.runWorker", 40), "java.util.concurrent.Pool.runWorker");
        assert_eq!(cut("java.util.concurrent.Pool.runWorker", 20), "Pool.runWorker");
        assert_eq!(cut("java.util.concurrent.Pool.runWorker", 8), "runWork…");
        assert_eq!(cut("v8::internal::(anonymous namespace)::Invoke", 10), "Invoke");
        assert_eq!(cut("<alloc::vec::Vec<T> as Deref>::deref", 10), "deref");
        assert_eq!(cut("push list.js:10:5", 12), "push list.j…");
        assert_eq!(cut("größer::als", 5), "als");
        assert_eq!(cut("Module._extensions..js loader:1:2", 16), "_extensions..js…");
        assert_eq!(cut("main", 2), "");
    }

    #[test]
    fn dots_are_part_of_native_names() {
        assert_eq!(shorten("memmove.cold.part.0", 9, false, Cut::End).unwrap(), "memmove.…");
    }

    #[test]
    fn the_start_is_cut_where_asked_for() {
        assert_eq!(shorten("java.util.List.add", 9, true, Cut::Begin).unwrap(), "…List.add");
    }
}
