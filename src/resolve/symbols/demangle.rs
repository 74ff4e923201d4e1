//! Readable names: Rust (legacy and v0) and C++ (Itanium ABI), without parameters, as perf prints them.

use cpp_demangle::DemangleOptions;

/// The readable form of a linker name; `None` if it is not a mangled one.
pub fn demangle(name: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(name).ok()?;
    // Mach-O and some assemblers add an underscore.
    if !(text.starts_with("_Z") || text.starts_with("_R") || text.starts_with("__Z") || text.starts_with("__R")) {
        return None;
    }
    if let Ok(rust) = rustc_demangle::try_demangle(text) {
        return Some(format!("{rust:#}"));
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let symbol = cpp_demangle::Symbol::new(name).ok()?;
    symbol.demangle_with_options(&options).ok()
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
        assert_eq!(name("main"), None);
        assert_eq!(name("_Z"), None);
    }
}
