//! Demangles names of Rust (legacy and v0), C++ (Itanium ABI) and OCaml. Parameters are left out, as in perf.

mod itanium;
mod ocaml;
#[cfg(test)]
mod tool_tests;

/// The demangled form of a name in a symbol table. `None` if the name isn't mangled, or if its mangling isn't
/// supported. A suffix such as `@plt` is kept.
pub fn demangle(name: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(name).ok()?;
    if text.starts_with("caml") {
        return ocaml::demangle(text);
    }
    // Mach-O and some assemblers add an underscore at the start, so that `_Z` becomes `__Z`.
    if !(text.starts_with("_Z") || text.starts_with("_R") || text.starts_with("__Z") || text.starts_with("__R")) {
        return None;
    }
    // The suffix isn't part of the mangled name.
    let (text, suffix) = text.split_at(text.find('@').unwrap_or(text.len()));
    let name = match rustc_demangle::try_demangle(text) {
        Ok(rust) => strip_number(format!("{rust:#}")),
        Err(_) => itanium::demangle(text)?,
    };
    Some(name + suffix)
}

/// Corrects a Rust name (legacy mangling) that another tool demangled as C++. For example,
/// `_$LT$T$u20$as$u20$a..B$GT$::f::h0123…` becomes `<T as a::B>::f`. `None` if the name isn't such a name.
pub fn demangle_rust_printed_as_cpp(name: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(name).ok().filter(|text| is_rust_printed_as_cpp(text.as_bytes()))?;
    // LLVM appends a number to the names of functions that it made local.
    let text = text.find(" (.llvm.").map_or(text, |end| &text[..end]);
    // Mangles the name again as Rust did: each part with its length.
    let mut mangled = "_ZN".to_owned();
    for part in text.split("::") {
        mangled += &format!("{}{part}", part.len());
    }
    mangled.push('E');
    let rust = rustc_demangle::try_demangle(&mangled).ok()?;
    Some(format!("{rust:#}"))
}

/// True if a tool demangled a Rust name as C++: the name ends with Rust's hash (`::h` and 16 digits), or has one of
/// Rust's spellings of special characters (`$LT$` for `<`).
pub fn is_rust_printed_as_cpp(name: &[u8]) -> bool {
    let has = |text: &str| memchr::memmem::find(name, text.as_bytes()).is_some();
    // LLVM appends a number to the names of functions that it made local.
    let without_number = memchr::memmem::find(name, b" (.llvm.").map_or(name, |end| &name[..end]);
    let has_hash = without_number.split_last_chunk::<16>().is_some_and(|(before, hash)| {
        before.ends_with(b"::h") && hash.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    });
    has_hash || has("$LT$") || has("$u7b$") || has("$RF$")
}

/// Removes the number (`.1234`) that link-time optimization appends to local functions with the same name. It means
/// nothing to readers.
fn strip_number(mut name: String) -> String {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.len() < name.len() && stem.ends_with('.') {
        name.truncate(stem.len() - 1);
    }
    name
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

    #[test]
    fn rust_by_the_rules_of_cpp() {
        let name = |printed: &str| demangle_rust_printed_as_cpp(printed.as_bytes());
        let closure = "gc::GcBox$LT$T$GT$::new::_$u7b$$u7b$closure$u7d$$u7d$::ha2ed0674a1c3dc9f";
        assert_eq!(name(closure).as_deref(), Some("gc::GcBox<T>::new::{{closure}}"));
        assert_eq!(name("std::io::read::h08ca64c12e8a9bb0 (.llvm.1551647)").as_deref(), Some("std::io::read"));
        let iterator = "_$LT$std..fs..ReadDir$u20$as$u20$core..iter..Iterator$GT$::next";
        assert_eq!(name(iterator).as_deref(), Some("<std::fs::ReadDir as core::iter::Iterator>::next"));
        for other in ["std::vector<int>::push_back", "a::h012", "Foo$bar::baz", "a::hxyz0674a1c3dc9f0"] {
            assert_eq!(name(other), None, "{other}");
        }
    }

    #[test]
    fn ocaml() {
        let name = |mangled: &str| demangle(mangled.as_bytes());
        assert_eq!(name("camlStdlib__List__map_123").as_deref(), Some("Stdlib.List.map_123"));
        assert_eq!(name("camlM__$2b$2b$2b_81").as_deref(), Some("M.+++_81"));
        assert_eq!(name("camlM__go$27_89").as_deref(), Some("M.go'_89"));
        assert_eq!(name("camlM__f$").as_deref(), Some("M.f$"));
        assert_eq!(name("camlM__f$+7").as_deref(), Some("M.f$+7"));
        assert_eq!(name("camlM__é$c3$a9").as_deref(), Some("M.éé"));
        assert_eq!(name("camlM__$ff"), None);
        for runtime in ["caml_main", "caml", "camlp4", "caml_alloc1@plt"] {
            assert_eq!(name(runtime), None);
        }
    }
}
