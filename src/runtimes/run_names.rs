//! Removes from function names what differs between runs of a program or between build directories: addresses, numbers
//! that the runtime assigns, directories and lines. Used for comparing profiles.
//!
//! | runtime | in one run | compared as |
//! |---|---|---|
//! | HotSpot | `L$$Lambda$14/0x00007f01e4000a08.run`, `LambdaForm$MH/0x…`, `LambdaForm$DMH/12345` | `L$$Lambda.run`, `LambdaForm$MH`, `LambdaForm$DMH` |
//! | HotSpot | `GeneratedMethodAccessor12`, `$Proxy7`, `Foo$$EnhancerBySpringCGLIB$$1a2b3c4d` | the same without the number |
//! | Julia | `julia_f_1234`, `jfptr_f_1234`, `japi1_f_1234` | `julia_f` … |
//! | PHP, LuaJIT | `TRACE-8$App\f$5`, `TRACE_12::f.lua:3` | `TRACE-$App\f$5` … |
//! | PostgreSQL | `evalexpr_0_12`, `deform_0_3` | `evalexpr`, `deform` |
//! | LLVM's ThinLTO | `f.llvm.1234567890` | `f` |
//! | .NET | `lambda_method12`, `Regex3_Scan` | `lambda_method`, `Regex_Scan` |

use std::borrow::Cow;
use std::ops::Range;

/// A name that contains the function's source location: `JS:*f /app/src/a.js:8:10`, `py::f:/app/a.py`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedName<'n> {
    /// The text before the path.
    pub before: &'n str,
    /// The path or URL of the file.
    pub path: &'n str,
    /// The line, counted from 1; 0 if the name contains none.
    pub line: u32,
    /// The column, counted from 1; 0 if the name contains none.
    pub column: u32,
    /// The text after the location, usually a closing bracket.
    pub after: &'n str,
}

impl<'n> LocatedName<'n> {
    /// Splits a name into its parts. `None` if it contains no path.
    pub fn parse(name: &'n str) -> Option<Self> {
        let Some(start) = path_start(name) else { return Self::parse_file(name) };
        let (before, rest) = name.split_at(start);
        // The path ends before a colon and a digit, or at the end of the name. Skip the colon of a URL's scheme or of a
        // Windows drive.
        let is_url = rest.starts_with("http") || rest.starts_with("file:");
        let skip = if is_url { rest.find("//")? } else { rest.len().min(2) };
        let mut colons = rest.match_indices(':').map(|(colon, _)| colon).filter(|colon| *colon >= skip);
        let line_colon = colons.find(|colon| rest[colon + 1..].starts_with(|digit: char| digit.is_ascii_digit()));
        let Some(path_len) = line_colon else {
            // Only CPython's names have a path without a line.
            let is_python = before.starts_with("py::");
            return is_python.then_some(Self { before, path: rest, line: 0, column: 0, after: "" });
        };
        let (line, after) = leading_number(&rest[path_len + 1..])?;
        let (column, after) = after.strip_prefix(':').and_then(leading_number).unwrap_or((0, after));
        Some(Self { before, path: &rest[..path_len], line, column, after })
    }
}

impl<'n> LocatedName<'n> {
    /// Splits a name that has a file name instead of a path: it ends with file name, line and column (`f a.js:8:10`,
    /// `JS:*f node:fs:8:10`), perhaps followed by a word for the tier. `None` for other names.
    fn parse_file(name: &'n str) -> Option<Self> {
        // If the last word has no colon, it is the tier, and the location is the word before it.
        let without_tier = match name.rsplit_once(' ') {
            Some((without_tier, tier)) if !tier.contains(':') => without_tier,
            _ => name,
        };
        let after = &name[without_tier.len()..];
        let (rest, column) = without_tier.rsplit_once(':')?;
        let (rest, line) = rest.rsplit_once(':')?;
        let start = rest.rfind(' ')? + 1;
        let (line, column) = (line.parse().ok()?, column.parse().ok()?);
        Some(Self { before: &name[..start], path: &rest[start..], line, column, after })
    }
}

/// The offset where a path or URL starts in a name: after a space, colon, parenthesis or `@`. `None` if there is none.
fn path_start(name: &str) -> Option<usize> {
    // In `py::f:/app/a.py`, `f:/` isn't a Windows drive: `f` is the end of the function's name.
    if let Some(python) = name.strip_prefix("py::")
        && let Some(colon) = python.find(":/")
    {
        return Some("py::".len() + colon + 1);
    }
    let is_url = |text: &str| ["file://", "http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
    let is_windows_path = |text: &str| match text.as_bytes() {
        [drive, b':', b'\\' | b'/', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    };
    // A name that is a URL as a whole names a script, not a function in the script.
    if is_url(name) {
        return None;
    }
    for (separator, _) in name.match_indices([' ', ':', '(', '@']) {
        let rest = &name[separator + 1..];
        if rest.starts_with('/') || is_url(rest) || is_windows_path(rest) {
            return Some(separator + 1);
        }
    }
    None
}

/// Splits the number at the start of a text off. `None` if there is none, or if it is too large.
fn leading_number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Replaces addresses in a name by `0x`: hexadecimal numbers with `0x`, hexadecimal numbers of 12 or 16 digits without
/// it, and the hash that rustc appends. Only whole words are replaced.
pub fn without_addresses(name: &str) -> Cow<'_, str> {
    let bytes = name.as_bytes();
    let mut text = String::new();
    // The offset up to which the name was copied to `text`, with its addresses replaced.
    let mut copied_to = 0;
    let mut start = 0;
    while start < bytes.len() {
        // No word starts with this byte.
        if !bytes[start].is_ascii_alphanumeric() && bytes[start] < 0x80 {
            start += 1;
            continue;
        }
        let end = word_end(bytes, start);
        if is_address(&bytes[start..end]) {
            text.push_str(&name[copied_to..start]);
            text.push_str("0x");
            copied_to = end;
        }
        start = end;
    }
    if copied_to == 0 {
        return Cow::Borrowed(name);
    }
    text.push_str(&name[copied_to..]);
    Cow::Owned(text)
}

/// The offset where the word that starts at `start` ends.
fn word_end(bytes: &[u8], start: usize) -> usize {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    start + bytes[start..].iter().take_while(|byte| is_word(byte)).count()
}

/// True if the word is an address, or rustc's hash (`h` and 16 digits). Without `0x`, it must contain a decimal digit,
/// because a word of the letters `a` to `f` may be an ordinary one.
fn is_address(word: &[u8]) -> bool {
    let is_hex = |digits: &[u8]| digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    match word {
        [b'0', b'x', digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit),
        [b'h', hash @ ..] if hash.len() == 16 => is_hex(hash),
        _ => matches!(word.len(), 12 | 16) && is_hex(word) && word.iter().any(u8::is_ascii_digit),
    }
}

/// Texts before a number that the runtime assigns, and that differs between runs.
const COUNTED: &[&str] = &[
    "jdk.proxy",
    "jdk/proxy",
    "GeneratedMethodAccessor",
    "GeneratedConstructorAccessor",
    "GeneratedSerializationConstructorAccessor",
    "$Proxy",
    "lambda_method",
    "TRACE-",
    "TRACE_",
];

/// Texts before a word of random letters and digits.
const RANDOM: &[&str] = &["CGLIB$$", "ByGuice$$", "$ByteBuddy$", "$MockitoMock$", "$HibernateProxy$"];

/// Prefixes of names of Julia's functions. Such a name ends with a number that differs between runs.
const JULIA: &[&str] = &["julia_", "jlsys_", "jfptr_", "japi1_", "jlplt_", "gfptr_", "jlcapi_"];

/// Removes addresses, and numbers that a runtime assigns differently in each run.
pub fn without_run_numbers(name: &str) -> Cow<'_, str> {
    // A name without digits has nothing to remove, unless it contains a random word, which may have no digits.
    if !name.bytes().any(|byte| byte.is_ascii_digit()) && !RANDOM.iter().any(|marker| name.contains(marker)) {
        return Cow::Borrowed(name);
    }
    // Remove addresses first, because the steps below expect `0x` in place of each.
    let mut text = without_addresses(name).into_owned();
    for prefix in JULIA {
        // Names of Julia's functions consist of a prefix, which ends with `_`, the function and `_NUMBER`. In
        // `julia_12`, the number is the function, so it stays.
        if text.starts_with(prefix)
            && let Some((rest, number)) = text.rsplit_once('_')
            && is_number(number)
            && rest.len() >= prefix.len()
        {
            text.truncate(rest.len());
        }
    }
    // PostgreSQL numbers the functions that it compiles: `evalexpr_0_1`.
    for prefix in ["evalexpr_", "deform_"] {
        if text.strip_prefix(prefix).is_some_and(|rest| rest.split('_').all(is_number)) {
            text.truncate(prefix.len() - 1);
        }
    }
    // .NET numbers compiled regular expressions: `Regex12_Match`.
    if let Some(rest) = text.strip_prefix("Regex") {
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        if rest[end..].starts_with('_') {
            text.replace_range("Regex".len().."Regex".len() + end, "");
        }
    }
    // In the closures below, `rest` is the text after the marker.
    for marker in COUNTED {
        remove_after(&mut text, marker, |rest| count_leading(rest, |byte| byte.is_ascii_digit()));
    }
    // In `TRACE-8/2$f$5`, also remove the number of the trace that this side trace starts from (2).
    remove_after(&mut text, "TRACE-", |rest| {
        rest.strip_prefix('/').map_or(0, |rest| 1 + count_leading(rest, |byte| byte.is_ascii_digit()))
    });
    // LLVM appends a number to the names of functions that it made local.
    if let Some((function, hash)) = text.rsplit_once(".llvm.")
        && is_number(hash)
    {
        text.truncate(function.len());
    }
    for marker in RANDOM {
        remove_after(&mut text, marker, |rest| count_leading(rest, |byte| byte.is_ascii_alphanumeric()));
    }
    // The class of a Java lambda: `$$Lambda$14/0x…` or `$$Lambda/0x…`.
    remove_after(&mut text, "$$Lambda", |rest| {
        let number = rest.strip_prefix('$').map_or(0, |rest| match count_leading(rest, |byte| byte.is_ascii_digit()) {
            0 => 0,
            digits => 1 + digits,
        });
        number + class_id_len(&rest[number..])
    });
    // Java's method handles: `LambdaForm$MH12/0x…`. The kind in capital letters (`MH`) stays.
    remove_range_after(&mut text, "LambdaForm$", |rest| {
        let kind = count_leading(rest, |byte| byte.is_ascii_uppercase());
        let digits = count_leading(&rest[kind..], |byte| byte.is_ascii_digit());
        kind..kind + digits + class_id_len(&rest[kind + digits..])
    });
    // Before JDK 15, hidden classes had decimal numbers after the class's name: `Foo/1234567.run`.
    remove_decimal_class_id(&mut text);
    Cow::Owned(text)
}

/// The length of a hidden class's ID at the start of `rest`: `/0x` (all that is left of an address) or `/12345`; a `.`
/// or `+` may stand for the `/`. 0 if there is no ID.
fn class_id_len(rest: &str) -> usize {
    let Some(id) = rest.strip_prefix(['/', '.', '+']) else { return 0 };
    if id.starts_with("0x") {
        return 3;
    }
    match count_leading(id, |byte| byte.is_ascii_digit()) {
        0 => 0,
        digits => 1 + digits,
    }
}

/// Removes the numbers of hidden classes, such as `/47110815` in `Foo/47110815.run`. They differ from run to run. A
/// number must follow the class's name and be followed by a method or nothing, and must have at least 5 digits: shorter
/// numbers may be part of an ordinary name.
fn remove_decimal_class_id(text: &mut String) {
    let mut from = 0;
    while let Some(distance) = text[from..].find('/') {
        let slash = from + distance;
        let digits = count_leading(&text[slash + 1..], |byte| byte.is_ascii_digit());
        let next = text.as_bytes().get(slash + 1 + digits);
        let follows_class = slash > 0 && text.as_bytes()[slash - 1].is_ascii_alphanumeric();
        if follows_class && digits > 4 && matches!(next, None | Some(b'.' | b':')) {
            text.replace_range(slash..=slash + digits, "");
        }
        from = slash + 1;
        // If the removed number was at the end of the text, nothing is left to search.
        if from > text.len() {
            return;
        }
    }
}

/// Removes some bytes after each `marker` in the text. `len` gets the text after the marker, and returns how many bytes
/// to remove.
fn remove_after(text: &mut String, marker: &str, len: impl Fn(&str) -> usize) {
    remove_range_after(text, marker, |rest| 0..len(rest));
}

/// Removes a range of bytes after each `marker` in the text. `range` gets the text after the marker, and returns which
/// range of it to remove.
fn remove_range_after(text: &mut String, marker: &str, range: impl Fn(&str) -> Range<usize>) {
    let mut from = 0;
    while let Some(distance) = text.get(from..).and_then(|rest| rest.find(marker)) {
        let after_marker = from + distance + marker.len();
        let removed = range(&text[after_marker..]);
        text.replace_range(after_marker + removed.start..after_marker + removed.end, "");
        from = after_marker + removed.start;
    }
}

/// The number of bytes at the start of the text for which `is_part` is true.
fn count_leading(text: &str, is_part: impl Fn(&u8) -> bool) -> usize {
    text.bytes().take_while(|byte| is_part(byte)).count()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_two_runs_become_equal() {
        for (one, other, common) in [
            ("L$$Lambda$14/0x00007f01e4000a08.run", "L$$Lambda$15/0x00007fad04000c48.run", "L$$Lambda.run"),
            ("L$$Lambda/0x00007f01e4000a08.run()", "L$$Lambda/0x0000000800c03000.run()", "L$$Lambda.run()"),
            ("L$$Lambda$3/1234567.run", "L$$Lambda$3/7654321.run", "L$$Lambda.run"),
            (
                "java.lang.invoke.LambdaForm$MH/0x00007f01e4000a08.invoke",
                "java.lang.invoke.LambdaForm$MH/0x00007f01e4000c00.invoke",
                "java.lang.invoke.LambdaForm$MH.invoke",
            ),
            ("LambdaForm$DMH/12345.go", "LambdaForm$DMH/99.go", "LambdaForm$DMH.go"),
            (
                "jdk.internal.reflect.GeneratedMethodAccessor12.invoke",
                "jdk.internal.reflect.GeneratedMethodAccessor7.invoke",
                "jdk.internal.reflect.GeneratedMethodAccessor.invoke",
            ),
            ("com.sun.proxy.$Proxy7.get", "com.sun.proxy.$Proxy12.get", "com.sun.proxy.$Proxy.get"),
            (
                "Foo$$EnhancerBySpringCGLIB$$1a2b3c4d.f",
                "Foo$$EnhancerBySpringCGLIB$$deadbeef0.f",
                "Foo$$EnhancerBySpringCGLIB$$.f",
            ),
            (
                "A$$EnhancerBySpringCGLIB$$fadedbee.f",
                "A$$EnhancerBySpringCGLIB$$12345678.f",
                "A$$EnhancerBySpringCGLIB$$.f",
            ),
            ("jdk.proxy2.$Proxy33.get", "jdk.proxy1.$Proxy9.get", "jdk.proxy.$Proxy.get"),
            ("jdk/proxy2/$Proxy33.get", "jdk/proxy3/$Proxy9.get", "jdk/proxy/$Proxy.get"),
            ("f.llvm.1234567890", "f.llvm.77", "f"),
            ("julia_f_1234", "julia_f_99", "julia_f"),
            ("jfptr_my_f_1", "jfptr_my_f_22", "jfptr_my_f"),
            (r"TRACE-8$App\Deep\mandel$5", r"TRACE-11$App\Deep\mandel$5", r"TRACE-$App\Deep\mandel$5"),
            ("TRACE_12::f.lua:3", "TRACE_4::f.lua:3", "TRACE_::f.lua:3"),
            ("evalexpr_0_12", "evalexpr_7_1", "evalexpr"),
            ("DynamicClass::lambda_method12(x)", "DynamicClass::lambda_method3(x)", "DynamicClass::lambda_method(x)"),
            ("Regex3_Scan", "Regex12_Scan", "Regex_Scan"),
            ("core::f::h0123456789abcdef", "core::f::hfedcba9876543210", "core::f::0x"),
        ] {
            assert_eq!(without_run_numbers(one), common);
            assert_eq!(without_run_numbers(other), common);
        }
    }

    #[test]
    fn numbers_that_distinguish_functions_stay() {
        for name in [
            "lambda$main$0",
            "f_12",
            "f.llvm.x1",
            "Foo$1.run",
            "vec<int, 16>",
            "julia_set",
            "Regexp1",
            "deform_it",
            "utf8",
            "",
        ] {
            assert_eq!(without_run_numbers(name), name);
            assert_eq!(without_addresses(name), name);
        }
        assert_eq!(without_addresses("f<0x1f>, 0xAB 7f01e4000a08 é0x1"), "f<0x>, 0x 0x é0x1");
    }

    #[test]
    fn a_place_is_taken_off_a_name() {
        let parts =
            |name| LocatedName::parse(name).map(|name| (name.before, name.path, name.line, name.column, name.after));
        assert_eq!(parts("JS:*f /app/src/a.js:8:10"), Some(("JS:*f ", "/app/src/a.js", 8, 10, "")));
        assert_eq!(parts("JS:~ file:///app/a.mjs:1:2"), Some(("JS:~ ", "file:///app/a.mjs", 1, 2, "")));
        assert_eq!(parts("Ion: f (/app/a.js:3:4)"), Some(("Ion: f (", "/app/a.js", 3, 4, ")")));
        assert_eq!(parts("py::f:/app/a.py"), Some(("py::f:", "/app/a.py", 0, 0, "")));
        assert_eq!(parts("py::F:/app/a.py"), Some(("py::F:", "/app/a.py", 0, 0, "")));
        assert_eq!(parts(r"JS:*f C:\app\a.js:3:4"), Some(("JS:*f ", r"C:\app\a.js", 3, 4, "")));
        assert_eq!(parts("f a.js:3:4 turbofan"), Some(("f ", "a.js", 3, 4, " turbofan")));
        assert_eq!(parts("JS:*f node:fs:1:2"), Some(("JS:*f ", "node:fs", 1, 2, "")));
        assert_eq!(parts("https://x.org:8080/a.js"), None);
        for name in ["std::map<int, int>::operator/", "a / b", "f(/x)", "a 1:2", ":", "x:/", "", " "] {
            assert_eq!(parts(name), None, "{name}");
        }
    }
}
