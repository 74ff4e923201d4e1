//! Demangles names in profiles that were symbolized by other tools: `_ZN3foo3barEi` becomes `foo::bar`, as in
//! recordings that jitgraft symbolizes itself.

use crate::analysis::label::marked;
use crate::model::stacks::Profile;
use crate::symbolize::symbols::demangle::{demangle, demangle_rust_printed_as_cpp, is_rust_printed_as_cpp};
use std::borrow::Cow;

/// Demangles all names of a profile.
pub(super) fn apply(profile: &mut Profile) {
    if profile.frames().any(|(_, frame)| may_be_mangled(profile.name_of(frame.name))) {
        profile.rename_functions(|_, name| match readable(name) {
            Some(demangled) => Cow::Owned(demangled.into_bytes()),
            None => Cow::Borrowed(name),
        });
    }
}

/// True if a name looks like a mangled C++ or Rust name. On macOS, such names begin with an additional underscore.
fn may_be_mangled(name: &[u8]) -> bool {
    let name = &name[module_len(name)..];
    // A tool may have demangled Rust's names as if they were C++. That removed the prefix of mangled names, but left
    // Rust's hash and escapes in them.
    if is_rust_printed_as_cpp(bare(name)) {
        return true;
    }
    // A mangled name starts with `_Z` (C++) or `_R` (Rust); on macOS, another underscore comes first.
    let name = name.strip_prefix(b"_").unwrap_or_default();
    let name = name.strip_prefix(b"_").unwrap_or(name);
    matches!(name.first(), Some(b'Z' | b'R'))
}

/// The demangled name. A suffix that marks the kind of code, such as `_[k]`, is kept. `None` if the name isn't mangled.
pub(super) fn readable(name: &[u8]) -> Option<String> {
    if !may_be_mangled(name) {
        return None;
    }
    let (module, name) = name.split_at(module_len(name));
    let bare = bare(name);
    let readable = demangle(bare).or_else(|| demangle_rust_printed_as_cpp(bare))?;
    Some(format!("{}{readable}{}", String::from_utf8_lossy(module), String::from_utf8_lossy(&name[bare.len()..])))
}

/// In DTrace's notation (``libc.so.1`malloc``), the length of the module including the separator; 0 if there is no
/// module.
fn module_len(name: &[u8]) -> usize {
    memchr::memchr(b'`', name).map_or(0, |separator| separator + 1)
}

/// A name without the suffix that marks the kind of code, such as `_[k]`.
fn bare(name: &[u8]) -> &[u8] {
    marked(name).map_or(name, |(bare, _)| bare)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::format::{ReadOptions, WriteOptions};
    use crate::error::Skipped;
    use crate::formats::folded;

    /// Reads folded stacks, demangles their names, and writes them again.
    fn demangled(text: &str) -> String {
        let mut reader = folded::open(&ReadOptions::default(), text.as_bytes());
        reader.read(text.as_bytes(), &mut Skipped::new("line"));
        let profile = reader.profile();
        apply(profile);
        let mut out = Vec::new();
        folded::write(profile, &WriteOptions::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_in_folded_stacks_become_readable() {
        let text = "_ZN3foo3barEi_[k];_RNvCs1234_7mycrate3foo 7\n_Zonk;__Zero 1\nlibx.so`_ZN3foo3barEi+0x12;a`b 5\nmain 2\nmain;_ZN3foo3barEi 5\n";
        let wanted = "_Zonk;__Zero 1\nfoo::bar_[k];mycrate::foo 7\nlibx.so`foo::bar;a`b 5\nmain 2\nmain;foo::bar 5\n";
        assert_eq!(demangled(text), wanted);
        assert_eq!(demangled("main;Z;R_x 5\n"), "main;Z;R_x 5\n");
        let printed = demangled("a::b::h0123456789abcdef 5\nVec$LT$T$GT$::f_[i];main::hello 1\n");
        assert_eq!(printed, "Vec<T>::f_[i];main::hello 1\na::b 5\n");
        // `[u8; 8]` in the demangled name contains a semicolon, which would separate frames.
        let array = demangled("_RINvCs1234_7mycrate3fooAhj8_E 3\n");
        assert!(!array.contains(';'), "{array}");
    }
}
