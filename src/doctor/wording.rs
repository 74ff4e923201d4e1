//! Phrases that the causes and remedies of several findings use. Names from the recording are escaped so that they are
//! printable.

use crate::model::Pid;
use crate::model::printable::readable;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Advice to build programs with frame pointers.
pub(super) const BUILD: &str = "build with -fno-omit-frame-pointer (Rust: -C force-frame-pointers=yes)";

/// Advice to copy stacks instead of following frame pointers.
pub(super) const DWARF: &str = "record with jitgraft record --call-graph dwarf";

pub(super) fn printable(text: &str) -> String {
    readable(text.as_bytes()).into_owned()
}

pub(super) fn printable_path(path: &Path) -> String {
    readable(path.as_os_str().as_bytes()).into_owned()
}

/// The process ID as shown in a message: `none` for negative IDs, because they stand for no process.
pub(super) fn printable_pid(pid: Pid) -> String {
    if pid.0 < 0 { "none".to_owned() } else { pid.to_string() }
}

/// Lists names for use in a sentence, such as `a, b and c`. Names beyond the first four are only counted. An empty list
/// becomes `code`.
pub(super) fn list(names: &[String]) -> String {
    /// Maximum number of names in the list. Further names are only counted.
    const SHOWN: usize = 4;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| printable(name)).collect();
    match (names.len(), &shown[..]) {
        (0, _) => "code".to_owned(),
        (1..=SHOWN, [one]) => one.clone(),
        (1..=SHOWN, [first @ .., last]) => format!("{} and {last}", first.join(", ")),
        (all, _) => format!("{} and {} more", shown.join(", "), all - SHOWN),
    }
}

/// Lists names, followed by the form of the verb (`singular` or `plural`) that agrees with their number, such as `a and
/// b are`.
pub(super) fn list_with_verb(names: &[String], singular: &str, plural: &str) -> String {
    format!("{} {}", list(names), if names.len() == 1 { singular } else { plural })
}
