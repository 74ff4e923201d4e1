//! Spells the names of code as V8's `--perf-prof` does.

use super::records::Creation;
use crate::bytes::digits::hex;
use crate::bytes::escapes::{utf16_letter, utf16_unit};

/// What to add to the number of the kind "builtin" to get that of WebAssembly code (src/objects/code-kind.h).
const WASM: i64 = 2;

/// How the location after a function's name may begin.
const LOCATIONS: &[&[u8]] = &[b" /", b" file:", b" node:"];

/// Writes the name of code: its tag, the mark of its tier, and the function's name. `builtin_kind` is the number that
/// the log uses for the kind "builtin".
pub(super) fn spell(creation: &Creation<'_>, builtin_kind: i64, name: &mut Vec<u8>) {
    name.clear();
    name.extend_from_slice(creation.tag);
    name.push(b':');
    if is_wasm(creation, builtin_kind) {
        return spell_wasm(creation, name);
    }
    name.extend_from_slice(creation.tier);
    // V8 doesn't escape the names of functions, but all other names.
    match creation.function {
        Some(_) => spell_function(creation.name, name),
        None => unescape(creation.name, name),
    }
}

/// True for machine code that V8 generated. Bytecode isn't machine code, and a negative kind means a native function of
/// the program itself.
pub(super) fn is_native(creation: &Creation<'_>, builtin_kind: i64) -> bool {
    let is_bytecode = creation.tier == b"~" && creation.kind != builtin_kind;
    creation.kind >= 0 && creation.size > 0 && !is_bytecode
}

/// True for WebAssembly code.
pub(super) fn is_wasm(creation: &Creation<'_>, builtin_kind: i64) -> bool {
    creation.function.is_some() && creation.kind == builtin_kind + WASM && matches!(creation.tier, b"" | b"*")
}

/// Appends the name of a WebAssembly function as V8's jitdumps spell it: with its number, if it has no other name, and
/// with the compiler, such as `wasm-function[3]-3-liftoff`.
fn spell_wasm(creation: &Creation<'_>, name: &mut Vec<u8>) {
    name.extend_from_slice(creation.name);
    let number = creation.name.strip_prefix(b"wasm-function[").and_then(|rest| rest.strip_suffix(b"]"));
    if let Some(number) = number
        && number.iter().all(u8::is_ascii_digit)
    {
        name.push(b'-');
        name.extend_from_slice(number);
    }
    name.extend_from_slice(if creation.tier.is_empty() { b"-liftoff" } else { b"-turbofan" });
}

/// Appends a function's name as the log has it, with escapes, and then its location with all escapes resolved.
pub(super) fn spell_function(text: &[u8], name: &mut Vec<u8>) {
    let first_location = LOCATIONS.iter().filter_map(|start| memchr::memmem::find(text, start)).min();
    let end = first_location.or_else(|| memchr::memrchr(b' ', text)).unwrap_or(text.len());
    let (function, location) = text.split_at(end);
    name.extend_from_slice(function);
    unescape(location, name);
}

/// Unescapes a text to UTF-8. Invalid escapes stay unchanged.
pub(super) fn unescape(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(escape) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..escape]);
        rest = &rest[escape..];
        let (letter, len) = parse_escape(rest);
        let mut bytes = [0; 4];
        out.extend_from_slice(letter.encode_utf8(&mut bytes).as_bytes());
        rest = &rest[len..];
    }
    out.extend_from_slice(rest);
}

/// The character at the start of a text that begins with a backslash, and the length of its escape.
fn parse_escape(text: &[u8]) -> (char, usize) {
    if let Some((letter, len)) = utf16_letter(text) {
        return (letter.unwrap_or(char::REPLACEMENT_CHARACTER), len);
    }
    let (unit, len) = unit(text);
    (char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER), len)
}

/// The UTF-16 unit at the start of a text, and the length of its escape. A backslash that isn't an escape stands for
/// itself.
pub(super) fn unit(text: &[u8]) -> (u16, usize) {
    let escape = match text {
        [b'\\', b'n', ..] => Some((u16::from(b'\n'), 2)),
        [b'\\', b'\\', ..] => Some((u16::from(b'\\'), 2)),
        [b'\\', b'x', high, low, ..] => hex(&[*high, *low]).map(|unit| (unit as u16, 4)),
        [b'\\', b'u', ..] => utf16_unit(text).map(|unit| (unit, 6)),
        _ => None,
    };
    escape.unwrap_or((text.first().copied().unwrap_or_default().into(), 1))
}
