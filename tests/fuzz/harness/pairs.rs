//! Every command over any file, as `tests/tools/pairs.py` runs them: for many runs in one process.

use super::scratch::{Scratch, parts};
use crate::internals::cli::Cli;
use std::ffi::OsString;

/// Runs a command. The bytes are its words, then the files that it finds: each part is a name, a NUL and the content,
/// and the first part has the words, separated by NULs. `{}` in a word stands for the directory of the files.
pub(super) fn pairs(bytes: &[u8]) {
    let [words, first, second, third] = parts::<4>(bytes);
    let scratch = Scratch::new();
    let directory = scratch.path("").to_string_lossy().into_owned();
    for part in [first, second, third] {
        let Some(end) = part.iter().position(|byte| *byte == 0) else { continue };
        let Ok(name) = std::str::from_utf8(&part[..end]) else { continue };
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if is_plain && name.starts_with(|first: char| first.is_ascii_alphanumeric()) {
            scratch.put(name, &part[end + 1..]);
        }
    }
    let Ok(words) = std::str::from_utf8(words) else { return };
    let mut words: Vec<OsString> = words.split('\0').map(|word| word.replace("{}", &directory).into()).collect();
    if words.first().is_some_and(|word| COMMANDS.contains(&&*word.to_string_lossy())) {
        words.insert(0, "jitgraft".into());
        let _ = Cli::from_words(words).map(Cli::run);
    }
}

/// The commands that read profiles. `record` starts programs, which no input may do.
const COMMANDS: &[&str] = &[
    "annotate",
    "callgrind",
    "collapse",
    "doctor",
    "export",
    "flamegraph",
    "inject",
    "merge",
    "pack",
    "report",
    "script",
    "stats",
    "view",
];
