//! Readable names: Rust (legacy and v0) and C++ (Itanium ABI), without parameters, as perf prints them.

use cpp_demangle::DemangleOptions;

/// The readable form of a linker name; `None` if it is not a mangled one. `@plt` and the like stay.
pub fn demangle(name: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(name).ok()?;
    // Mach-O and some assemblers add an underscore.
    if !(text.starts_with("_Z") || text.starts_with("_R") || text.starts_with("__Z") || text.starts_with("__R")) {
        return None;
    }
    let (text, suffix) = text.split_at(text.find('@').unwrap_or(text.len()));
    if let Ok(rust) = rustc_demangle::try_demangle(text) {
        return Some(strip_number(format!("{rust:#}")) + suffix);
    }
    let symbol = cpp_demangle::Symbol::new(text).ok()?;
    let spell = |options: DemangleOptions| symbol.demangle_with_options(&options).ok();
    let name = spell(DemangleOptions::new().no_params().no_return_type())?;
    let name = match thunk(&name) {
        // Thunks are told apart by the parameters of what they lead to.
        Some(_) => spell(DemangleOptions::new()).as_deref().and_then(thunk).unwrap_or(name),
        None => strip_qualifiers(&name).to_owned(),
    };
    Some(as_binutils(&name) + suffix)
}

/// Link-time optimisation numbers local functions of one name (`.1234`): they are the same to a reader.
fn strip_number(mut name: String) -> String {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.len() < name.len() && stem.ends_with('.') {
        name.truncate(stem.len() - 1);
    }
    name
}

/// `{virtual override thunk({offset(-8)}, A::f(int))}` → `non-virtual thunk to A::f(int)`
fn thunk(name: &str) -> Option<String> {
    let (adjustment, target) = name.strip_prefix("{virtual override thunk({")?.split_once("}, ")?;
    let kind = if adjustment.starts_with("virtual") { "virtual" } else { "non-virtual" };
    Some(format!("{kind} thunk to {}", target.strip_suffix(")}")?))
}

/// Qualifiers belong to the parameters, which are left out.
fn strip_qualifiers(mut name: &str) -> &str {
    const QUALIFIERS: [&str; 4] = [" const", " volatile", " &&", " &"];
    while let Some(shorter) = QUALIFIERS.iter().find_map(|qualifier| name.strip_suffix(qualifier)) {
        name = shorter;
    }
    name
}

/// Spells what `cpp_demangle` spells in its own way like c++filt, gdb and perf: an empty pack of template arguments
/// leaves no comma, numbers have suffixes.
fn as_binutils(name: &str) -> String {
    const SUFFIXES: [(&str, &str); 6] = [
        ("(unsigned long)", "ul"),
        ("(unsigned int)", "u"),
        ("(unsigned long long)", "ull"),
        ("(long long)", "ll"),
        ("(long)", "l"),
        ("(int)", ""),
    ];
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find(['(', ',']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if let Some(after) = from.strip_prefix(", >") {
            out.push('>');
            rest = after;
            continue;
        }
        let cast = SUFFIXES.iter().find_map(|&(cast, suffix)| Some((from.strip_prefix(cast)?, suffix)));
        let number = cast.and_then(|(after, suffix)| {
            let digits = after.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(after.len());
            (digits > 0).then(|| (after.split_at(digits), suffix))
        });
        rest = match number {
            Some(((digits, after), suffix)) => {
                out.push_str(digits);
                out.push_str(suffix);
                after
            }
            None => {
                out.push_str(&from[..1]);
                &from[1..]
            }
        };
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_schemes_of_rust_and_cpp() {
        let name = |mangled: &str| demangle(mangled.as_bytes());
        assert_eq!(name("_ZN4core3fmt5write17h0123456789abcdefE").as_deref(), Some("core::fmt::write"));
        assert_eq!(name("_RNvCs1234_7mycrate3foo").as_deref(), Some("mycrate::foo"));
        assert_eq!(
            name("_ZNSt6vectorIiSaIiEE9push_backEOi").as_deref(),
            Some("std::vector<int, std::allocator<int> >::push_back")
        );
        assert_eq!(name("_ZdlPvm@plt").as_deref(), Some("operator delete@plt"));
        assert_eq!(name("_ZNK1A1fEv").as_deref(), Some("A::f"));
        assert_eq!(name("_ZThn8_N1A1fEi").as_deref(), Some("non-virtual thunk to A::f(int)"));
        assert_eq!(name("_Z1fILm256EEvv").as_deref(), Some("f<256ul>"));
        assert_eq!(name("_Z1fIiJEEvv").as_deref(), Some("f<int>"));
        assert_eq!(name("main"), None);
        assert_eq!(name("_Z"), None);
    }
}
