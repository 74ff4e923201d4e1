//! Parses V8's names for JIT code of scripts: `JS:*i /app/dist/app.min.js:1:679`. Some profilers leave out the tag and
//! the mark.
//!
//! Such a name consists of a tag, the mark of the tier, the function's name, the script, and the line and column where
//! the function's parameter list starts, both from 1 (`SharedFunctionInfo`; `AppendFunctionName` in V8's
//! src/logging/log.cc).

use std::fmt::Write;

/// The parts of V8's name for a function of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptName<'n> {
    /// The whole name.
    pub whole: &'n [u8],
    /// The tag and the mark of the tier, such as `JS:*`.
    pub head: &'n str,
    /// The function's name. Empty if it has none.
    pub function: &'n str,
    /// The path or URL of the script.
    pub script: &'n str,
    /// The line where the function's parameter list starts, counted from 1.
    pub line: u32,
    /// The column where the function's parameter list starts, in UTF-16 units, counted from 1.
    pub column: u32,
}

/// The tags of functions in V8's names. The tags `Script:` and `Eval:` are missing, because such code isn't a function
/// in a file.
const TAGS: &[&str] = &["JS:", "LazyCompile:", "Function:"];

/// What precedes a script's path or URL in a name if the script may be a file.
const SCRIPTS: &[&str] = &[" /", " file:///", " https://", " http://"];

impl<'n> ScriptName<'n> {
    /// Splits a name into its parts. `None` if it isn't the name of a function in a file.
    pub fn parse(name: &'n [u8]) -> Option<Self> {
        let tag_len = TAGS.iter().find(|tag| name.starts_with(tag.as_bytes())).map_or(0, |tag| tag.len());
        // The name must end with a column, which most names of other code don't. This check is quick.
        if !name.last()?.is_ascii_digit() {
            return None;
        }
        let name = std::str::from_utf8(name).ok()?;
        let (rest, column) = name.rsplit_once(':')?;
        let (rest, line) = rest.rsplit_once(':')?;
        // The script's path or URL starts after a space. Spaces before that one are part of the function's name.
        let starts_script =
            |space: &usize| SCRIPTS.iter().any(|start| rest.as_bytes()[*space..].starts_with(start.as_bytes()));
        let space = memchr::memchr_iter(b' ', rest.as_bytes()).find(starts_script)?;
        let (marked_function, script) = (&rest[..space], &rest[space + 1..]);
        // Without a tag, the name may be in another notation, in which colons are part of a function's name.
        if tag_len == 0 && (marked_function.is_empty() || marked_function.contains(':')) {
            return None;
        }
        let head_len = tag_len + mark_len(&marked_function[tag_len..]);
        Some(Self {
            whole: name.as_bytes(),
            head: &marked_function[..head_len],
            function: &marked_function[head_len..],
            script,
            line: number(line)?,
            column: number(column)?,
        })
    }

    /// Composes a name in V8's notation: tag and mark are those of this name, function and location are the given ones.
    pub fn spell(&self, function: &str, script: &str, line: u32, column: u32) -> String {
        let mut name = String::with_capacity(self.head.len() + function.len() + script.len() + 24);
        // Writing to a string can't fail.
        let _ = write!(name, "{}{function} {script}:{line}:{column}", self.head);
        name
    }
}

/// The length of V8's mark for the tier (`CodeKindToMarker`) at the start of a name without its tag. It includes `o`
/// for on-stack replacement before the mark, and `'` after it. 0 if there is no mark.
fn mark_len(untagged: &str) -> usize {
    let from_mark =
        untagged.strip_prefix('o').filter(|after_mark| after_mark.starts_with(['*', '+'])).unwrap_or(untagged);
    let after_mark = from_mark.strip_prefix(['*', '+', '^', '~']);
    after_mark.map_or(0, |after_mark| untagged.len() - after_mark.strip_prefix('\'').unwrap_or(after_mark).len())
}

/// Parses a number of digits only. `parse` alone would accept a sign.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(name: &str) -> Option<(&str, &str, &str, u32, u32)> {
        let name = ScriptName::parse(name.as_bytes())?;
        Some((name.head, name.function, name.script, name.line, name.column))
    }

    #[test]
    fn a_name_has_a_tier_a_function_and_a_place() {
        assert_eq!(parts("JS:*i /d/app.js:1:679"), Some(("JS:*", "i", "/d/app.js", 1, 679)));
        assert_eq!(parts("JS:o*'i /d/app.js:1:679"), Some(("JS:o*'", "i", "/d/app.js", 1, 679)));
        assert_eq!(parts("JS:open /a b/c:d.js:2:3"), Some(("JS:", "open", "/a b/c:d.js", 2, 3)));
        assert_eq!(
            parts("LazyCompile:~get size file:///a/m.mjs:2:3"),
            Some(("LazyCompile:~", "get size", "file:///a/m.mjs", 2, 3))
        );
        assert_eq!(parts("JS:^ /a.js:2:3"), Some(("JS:^", "", "/a.js", 2, 3)));
        assert_eq!(parts("i /d/app.js:1:679"), Some(("", "i", "/d/app.js", 1, 679)));
        assert_eq!(parts("*i https://a.org/app.js:1:9"), Some(("*", "i", "https://a.org/app.js", 1, 9)));
        for other in ["Script:~ /a.js:1:1", " /a.js:1:1", "std::f /a.rs:1:1"] {
            assert_eq!(parts(other), None, "{other}");
        }
        for other in
            ["JS:*f node:fs:1:2", "Builtin:Add", "JS:*f /a.js:1", "JS:*f /a.js:x:1", "RegExp: /a:1:2", "JS:*f a.js:1:2"]
        {
            assert_eq!(parts(other), None, "{other}");
        }
        let name = ScriptName::parse(b"JS:*i /d/app.js:1:679").unwrap();
        assert_eq!(name.spell("splitWords", "/src/words.ts", 8, 10), "JS:*splitWords /src/words.ts:8:10");
    }
}
