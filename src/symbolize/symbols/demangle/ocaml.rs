//! Demangles OCaml names: `camlList__map_123` is the function `map` of the module `List`.

/// The demangled form of a name made by ocamlopt; `None` for other names. The number at the end tells apart functions
/// of the same name. It is kept, as in perf.
pub(super) fn demangle(mangled: &str) -> Option<String> {
    let mut rest = mangled.strip_prefix("caml")?.as_bytes();
    let starts_with_module = rest.first().is_some_and(u8::is_ascii_uppercase);
    if !starts_with_module {
        return None;
    }
    let mut name = Vec::with_capacity(rest.len());
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            // Two underscores stand for the dot between a module and what is in it.
            (b'_', [b'_', after @ ..]) => (b'.', after),
            // A byte that can't be in a symbol's name is written as `$` and two hexadecimal digits.
            (b'$', [high, low, after @ ..]) if let Some(byte) = from_hex(*high, *low) => (byte, after),
            _ => (first, after),
        };
        name.push(byte);
        rest = after;
    }
    String::from_utf8(name).ok()
}

fn from_hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}
