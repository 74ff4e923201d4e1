//! Names of functions, files and objects. Names are compressed by IDs, and a function without a symbol is named by its
//! address.
//!
//! `(id) name` defines an ID, `(id)` refers to it, anything else is the name itself. A plain name that begins with
//! parentheses around a number is indistinguishable from an ID, which is why writers put an ID before every name.
//!
//! callgrind names a function without a symbol, such as JIT code, by an address in it: `0x0000000004001090`. With
//! `--separate-callers`, such addresses also occur among the callers that follow a function's name.

use crate::bytes::decimal::push_decimal;
use crate::bytes::digits::hex;
use std::borrow::Cow;

/// The three namespaces of IDs, each with the keywords whose values use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) enum IdSpace {
    /// IDs of objects, in `ob=` and `cob=`.
    Object,
    /// IDs of source files, in `fl=`, `fi=`, `fe=`, `cfi=`, `cfl=` and `jfi=`.
    File,
    /// IDs of functions, in `fn=`, `cfn=`, `jfn=` and `frfn=`.
    Function,
}

/// The value of a statement that names something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum NameField<'a> {
    /// `(id) name`: defines the ID.
    Define(u32, &'a [u8]),
    /// `(id)`: refers to an ID that is defined elsewhere.
    Refer(u32),
    /// `name`: a name without an ID.
    Plain(&'a [u8]),
}

/// Parses the value of a naming statement.
pub(in super::super) fn name_field(value: &[u8]) -> NameField<'_> {
    let Some((id, name)) = split_id(value) else { return NameField::Plain(value) };
    if name.is_empty() { NameField::Refer(id) } else { NameField::Define(id, name) }
}

/// Number of decimal digits of the largest possible ID.
const MAX_DIGITS: usize = 10;

/// Splits a value such as `(7) main` into its ID and the name, which is empty if the value only refers to the ID.
/// `None` if the value doesn't start with an ID.
fn split_id(value: &[u8]) -> Option<(u32, &[u8])> {
    let inner = value.strip_prefix(b"(")?;
    let (mut id, mut len) = (0, 0);
    while let Some(digit) = inner.get(len).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        id = id * 10 + u64::from(digit);
        len += 1;
        if len > MAX_DIGITS {
            return None;
        }
    }
    if len == 0 || *inner.get(len)? != b')' {
        return None;
    }
    Some((u32::try_from(id).ok()?, inner[len + 1..].trim_ascii_start()))
}

/// Appends an ID in parentheses.
pub(in super::super) fn push_id(id: u32, out: &mut Vec<u8>) {
    out.push(b'(');
    push_decimal(id.into(), out);
    out.push(b')');
}

/// The name that callgrind writes for an unknown object: memory without a file.
pub(in super::super) const UNKNOWN: &[u8] = b"???";

/// Splits a *raw* name: that of a function without a symbol, which callgrind could only name by an address. Returns the
/// address and the suffix, such as ` [PLT]`, `'2` or `'caller…`; `None` for any other name. The address is that of the
/// first basic block that a call entered, printed with `%#0*lx`.
pub(in super::super) fn raw_name(name: &[u8]) -> Option<(u64, &[u8])> {
    let digits = name.strip_prefix(b"0x")?;
    // Number of hexadecimal digits of an address in 64-bit and in 32-bit programs.
    for len in [16, 8] {
        if let Some((digits, rest)) = digits.split_at_checked(len)
            && matches!(rest, [] | [b'\'' | b' ', ..])
            && let Some(addr) = hex(digits)
        {
            return Some((addr, rest));
        }
    }
    None
}

/// True if a name contains an address among the callers that `--separate-callers` appends. `tail` is the whole name, or
/// the part after the function's own name.
pub(in super::super) fn has_raw_caller(tail: &[u8]) -> bool {
    memchr::memchr_iter(b'\'', tail).any(|quote| tail[quote..].starts_with(b"'0x"))
}

/// Replaces addresses among the callers in a name (`callee'caller'caller`). The callee itself, before the first quote,
/// stays. `tail` is the whole name, or the part that begins with the first quote. `resolve` returns the name for a
/// caller's address; an address for which it returns `None` stays.
pub(in super::super) fn replace_callers<'a>(tail: &'a [u8], resolve: impl Fn(u64) -> Option<Vec<u8>>) -> Cow<'a, [u8]> {
    if !has_raw_caller(tail) {
        return Cow::Borrowed(tail);
    }
    let mut parts = tail.split(|&byte| byte == b'\'');
    let mut out = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        out.push(b'\'');
        if let Some((addr, rest)) = raw_name(part)
            && let Some(name) = resolve(addr)
        {
            out.extend_from_slice(&name);
            out.extend_from_slice(rest);
        } else {
            out.extend_from_slice(part);
        }
    }
    Cow::Owned(out)
}

/// Removes the recursion level that callgrind appends to a recursive function: `fib'2` becomes `fib`.
pub(in super::super) fn strip_recursion(name: &[u8]) -> &[u8] {
    match memchr::memrchr(b'\'', name) {
        Some(quote) if quote > 0 && quote + 1 < name.len() && name[quote + 1..].iter().all(u8::is_ascii_digit) => {
            &name[..quote]
        }
        _ => name,
    }
}

/// How a file refers to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) enum NameRef<'a> {
    /// The name is referred to by its ID.
    Id(u32),
    /// The name is written out.
    Name(&'a [u8]),
}

impl<'a> From<NameField<'a>> for NameRef<'a> {
    fn from(field: NameField<'a>) -> Self {
        match field {
            NameField::Define(id, _) | NameField::Refer(id) => Self::Id(id),
            NameField::Plain(name) => Self::Name(name),
        }
    }
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
}
