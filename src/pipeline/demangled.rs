//! Demangles names in profiles that were symbolized by other tools: `_ZN3foo3barEi` becomes `foo::bar`, as in
//! recordings that jitgraft symbolizes itself.

use crate::analysis::label::marked;
use crate::model::stacks::Profile;
use crate::resolve::symbols::demangle::{demangle, demangle_rust_printed_as_cpp, is_rust_printed_as_cpp};
use rustc_hash::FxHashMap;

/// Demangles all names of a profile.
pub(super) fn apply(profile: &mut Profile) {
    if profile.frames().any(|(_, frame)| may_be_mangled(profile.name_of(frame.name))) {
        profile.rename_functions(|name| readable(name).map(String::into_bytes));
    }
}

/// True if a name looks like a mangled C++ or Rust name, also with the underscore that Mach-O adds.
fn may_be_mangled(name: &[u8]) -> bool {
    let name = &name[module_len(name)..];
    if is_rust_printed_as_cpp(bare(name)) {
        return true;
    }
    let name = name.strip_prefix(b"_").unwrap_or_default();
    let name = name.strip_prefix(b"_").unwrap_or(name);
    matches!(name.first(), Some(b'Z' | b'R'))
}

/// The demangled name, still with its mark such as `_[k]`. `None` if the name isn't mangled.
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

/// A name without its mark such as `_[k]`.
fn bare(name: &[u8]) -> &[u8] {
    marked(name).map_or(name, |(bare, _)| bare)
}

/// Folded stacks with demangled names; `None` if no name is mangled.
pub(super) fn lines(folded: &[u8]) -> Option<Vec<u8>> {
    let may_be = |beginning: &[u8]| memchr::memmem::find(folded, beginning).is_some();
    if !may_be(b"_Z") && !may_be(b"_R") && !may_be(b"::h") && !may_be(b"$LT$") && !may_be(b"$u7b$") {
        return None;
    }
    let mut known: FxHashMap<&[u8], Option<String>> = FxHashMap::default();
    let (mut out, mut copied, mut at) = (Vec::with_capacity(folded.len()), 0, 0);
    while at < folded.len() {
        let end = memchr::memchr2(b';', b'\n', &folded[at..]).map_or(folded.len(), |len| at + len);
        let mut name = &folded[at..end];
        if folded.get(end) != Some(&b';') {
            // A stack's last name is followed by a space and the weight.
            name = &name[..memchr::memrchr(b' ', name).unwrap_or(name.len())];
        }
        if may_be_mangled(name)
            && let Some(readable) = known.entry(name).or_insert_with(|| readable(name))
        {
            out.extend_from_slice(&folded[copied..at]);
            out.extend(readable.bytes().map(|byte| if byte == b';' { b':' } else { byte }));
            copied = at + name.len();
        }
        at = end + 1;
    }
    out.extend_from_slice(&folded[copied..]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_lines_become_readable() {
        let text = "libx.so`_ZN3foo3barEi+0x12;a`b 5\nmain;_ZN3foo3barEi 5\n_ZN3foo3barEi_[k];_RNvCs1234_7mycrate3foo 7\n_Zonk;__Zero 1\nmain 2";
        let wanted = "libx.so`foo::bar;a`b 5\nmain;foo::bar 5\nfoo::bar_[k];mycrate::foo 7\n_Zonk;__Zero 1\nmain 2";
        assert_eq!(String::from_utf8(lines(text.as_bytes()).unwrap()).unwrap(), wanted);
        assert_eq!(lines(b"main;Z;R_x 5\n"), None);
        let printed = lines(b"a::b::h0123456789abcdef 5\nVec$LT$T$GT$::f_[i];main::hello 1\n").unwrap();
        assert_eq!(String::from_utf8(printed).unwrap(), "a::b 5\nVec<T>::f_[i];main::hello 1\n");
        // `[u8; 8]` in the demangled name contains a semicolon, which would separate frames.
        let array = lines(b"_RINvCs1234_7mycrate3fooAhj8_E 3\n").unwrap();
        assert!(!array.contains(&b';'), "{}", String::from_utf8_lossy(&array));
    }
}
