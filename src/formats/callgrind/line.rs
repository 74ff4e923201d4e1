//! One line of a callgrind file: which statement it is, and what its name field says.
//!
//! Names are compressed per id space: `(id) name` defines, `(id)` refers, anything else is the name itself. A plain
//! name that begins with a parenthesis and a digit cannot be told from an id, which is why writers put an id in
//! front of every name.

use memchr::memchr2_iter;
use std::borrow::Cow;

/// The three id spaces of compressed names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Space {
    /// `ob`, `cob`
    Object,
    /// `fl`, `fi`, `fe`, `cfi`, `cfl`, `jfi`
    File,
    /// `fn`, `cfn`, `jfn`, `frfn`
    Function,
}

/// The statements that a reader of functions and calls must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Fn,
    Fl,
    Fi,
    Fe,
    Ob,
    Cob,
    Cfi,
    Cfn,
    Calls,
    Jump,
    Jcnd,
    Jfi,
    Jfn,
    Frfn,
    Rec,
}

impl Key {
    /// The id space of the name behind it; `None` if there is no name.
    pub(super) fn space(self) -> Option<Space> {
        match self {
            Self::Ob | Self::Cob => Some(Space::Object),
            Self::Fl | Self::Fi | Self::Fe | Self::Cfi | Self::Jfi => Some(Space::File),
            Self::Fn | Self::Cfn | Self::Jfn | Self::Frfn => Some(Space::Function),
            Self::Calls | Self::Jump | Self::Jcnd | Self::Rec => None,
        }
    }
}

/// A line, as far as it must be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// `key=value`
    Spec(Key, &'a [u8]),
    /// Begins with a digit, `+`, `-` or `*`: positions and costs.
    Cost(&'a [u8]),
    /// `word: value` of a header or part.
    Header(&'a [u8], &'a [u8]),
    /// Empty, a comment, or unknown.
    Other,
}

/// What a line (without its line feed) is.
pub(super) fn line(text: &[u8]) -> Line<'_> {
    let text = text.trim_ascii_end();
    match text.first() {
        Some(b'0'..=b'9' | b'+' | b'-' | b'*') => Line::Cost(text),
        Some(b'a'..=b'z') => match text.iter().position(|&byte| byte == b'=' || byte == b':') {
            Some(at) if text[at] == b'=' => {
                key(&text[..at]).map_or(Line::Other, |key| Line::Spec(key, &text[at + 1..]))
            }
            Some(at) => Line::Header(&text[..at], text[at + 1..].trim_ascii_start()),
            None => Line::Other,
        },
        _ => Line::Other,
    }
}

fn key(word: &[u8]) -> Option<Key> {
    Some(match word {
        b"fn" => Key::Fn,
        b"fl" => Key::Fl,
        b"fi" => Key::Fi,
        b"fe" => Key::Fe,
        b"ob" => Key::Ob,
        b"cob" => Key::Cob,
        b"cfi" | b"cfl" => Key::Cfi,
        b"cfn" => Key::Cfn,
        b"calls" => Key::Calls,
        b"jump" => Key::Jump,
        b"jcnd" => Key::Jcnd,
        b"jfi" => Key::Jfi,
        b"jfn" => Key::Jfn,
        b"frfn" => Key::Frfn,
        b"rec" => Key::Rec,
        _ => return None,
    })
}

/// The statements of a text, without its cost lines, at the speed of memory: a cost line holds neither `=` nor `:`.
/// Yields the offset of each line and the line without its line feed.
pub(super) fn statements(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut done = 0;
    memchr2_iter(b'=', b':', text).filter_map(move |mark| {
        if mark < done {
            return None;
        }
        let start = memchr::memrchr(b'\n', &text[done..mark]).map_or(done, |at| done + at + 1);
        let end = memchr::memchr(b'\n', &text[mark..]).map_or(text.len(), |at| mark + at);
        done = end;
        Some((start, &text[start..end]))
    })
}

/// All lines of a text with their offsets, without their line feeds.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let start = at;
        at += len + 1;
        Some((start, &rest[..len]))
    })
}

/// The value of a statement that names something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameField<'a> {
    /// `(id) name`
    Define(u32, &'a [u8]),
    /// `(id)`
    Refer(u32),
    /// `name`
    Plain(&'a [u8]),
}

/// Splits a name field.
pub(super) fn name_field(value: &[u8]) -> NameField<'_> {
    let Some((id, name)) = split_id(value) else { return NameField::Plain(value) };
    if name.is_empty() { NameField::Refer(id) } else { NameField::Define(id, name) }
}

fn split_id(value: &[u8]) -> Option<(u32, &[u8])> {
    let inner = value.strip_prefix(b"(")?;
    let len = inner.iter().position(|&byte| byte == b')')?;
    let digits = inner.get(..len).filter(|digits| !digits.is_empty() && digits.len() <= 10)?;
    let id =
        digits.iter().try_fold(0u64, |id, digit| digit.is_ascii_digit().then(|| id * 10 + u64::from(digit - b'0')))?;
    Some((u32::try_from(id).ok()?, inner[len + 1..].trim_ascii_start()))
}

/// What `ob=` says where callgrind knew no object: memory that no file backs.
pub(super) const UNKNOWN: &[u8] = b"???";

/// The address of a function that callgrind had no name for, and what follows it (` [PLT]`, `'2`, `'caller…`).
/// callgrind writes `%#0*lx` of the first basic block that was entered by a call.
pub(super) fn raw_name(name: &[u8]) -> Option<(u64, &[u8])> {
    let digits = name.strip_prefix(b"0x")?;
    let len = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let rest = &digits[len..];
    let ends = matches!(rest.first(), None | Some(b'\'' | b' '));
    if !(len == 16 || len == 8) || !ends {
        return None;
    }
    Some((hex(&digits[..len])?, rest))
}

/// Whether a name has a raw address anywhere: as its own, or among the callers that `--separate-callers` appends.
pub(super) fn has_raw_part(name: &[u8]) -> bool {
    raw_name(name).is_some() || memchr::memmem::find(name, b"'0x").is_some()
}

/// Replaces raw addresses among the callers of a name (`callee'caller'caller`); the head is left alone.
pub(super) fn replace_callers<'a>(tail: &'a [u8], resolve: impl Fn(u64) -> Option<Vec<u8>>) -> Cow<'a, [u8]> {
    if memchr::memmem::find(tail, b"'0x").is_none() {
        return Cow::Borrowed(tail);
    }
    let mut parts = tail.split(|&byte| byte == b'\'');
    let mut out = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        out.push(b'\'');
        match raw_name(part).and_then(|(addr, rest)| Some((resolve(addr)?, rest))) {
            Some((name, rest)) => {
                out.extend_from_slice(&name);
                out.extend_from_slice(rest);
            }
            None => out.extend_from_slice(part),
        }
    }
    Cow::Owned(out)
}

/// A hexadecimal number without prefix; `None` if it is empty, odd or does not fit.
pub(super) fn hex(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        value.checked_mul(16)?.checked_add(u64::from(digit))
    })
}

/// A decimal number; `None` if it is empty, odd or does not fit.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_ids_and_without() {
        assert_eq!(name_field(b"(12) foo (int)"), NameField::Define(12, b"foo (int)"));
        assert_eq!(name_field(b"(12)"), NameField::Refer(12));
        assert_eq!(name_field(b"(below main)"), NameField::Plain(b"(below main)"));
        assert_eq!(name_field(b"(99999999999)"), NameField::Plain(b"(99999999999)"));
        assert_eq!(name_field(b"main"), NameField::Plain(b"main"));
    }

    #[test]
    fn raw_names_and_their_tails() {
        assert_eq!(raw_name(b"0x00000000090cb000'2"), Some((0x90c_b000, &b"'2"[..])));
        assert_eq!(raw_name(b"0x00000000090cb000 [PLT]"), Some((0x90c_b000, &b" [PLT]"[..])));
        assert_eq!(raw_name(b"0x90cb000"), None);
        assert_eq!(raw_name(b"0x00000000090cb000x"), None);
        let resolve = |addr| (addr == 16).then(|| b"jit'f".to_vec());
        let tail = replace_callers(b"'0x0000000000000010'2'0x0000000000000020", resolve);
        assert_eq!(&tail[..], b"'jit'f'2'0x0000000000000020");
    }

    #[test]
    fn statements_skip_cost_lines_only() {
        let text = b"events: Ir\nfn=(1) a=b::c\n0x10 1 2\n+3 * 4\ncfn=x\ncalls=1 2\n";
        let found: Vec<_> = statements(text).map(|(_, line)| line).collect();
        assert_eq!(found, [&b"events: Ir"[..], b"fn=(1) a=b::c", b"cfn=x", b"calls=1 2"]);
        assert_eq!(line(b"fn=(1) a=b::c"), Line::Spec(Key::Fn, b"(1) a=b::c"));
        assert_eq!(line(b"events: Ir Dr"), Line::Header(b"events", b"Ir Dr"));
        assert_eq!(line(b"xyz=1"), Line::Other);
        assert_eq!(line(b"calls=1 2 "), Line::Spec(Key::Calls, b"1 2"));
    }
}
