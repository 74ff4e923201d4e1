//! Words that causes and remedies are made of. All names in them are printable.

use crate::diagnosis::problem::{NamedFile, SourceFile, Who};
use crate::model::Pid;
use crate::model::printable::readable;
use crate::sources::{Account, ClockUse, SourceState};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A process in words.
pub(in super::super) fn who(process: &Who) -> String {
    let runtime = process.runtime.map_or_else(String::new, |runtime| format!(", {}", runtime.name));
    let comm = text(&process.comm);
    match process.others {
        0 => format!("process {} ({comm}{runtime})", process.pid),
        others => format!("process {} and {others} more ({comm}{runtime})", process.pid),
    }
}

/// The outcome for a dump or map.
pub(in super::super) fn source(account: &Account, covered: Option<SourceFile>) -> String {
    let state = match &account.state {
        SourceState::Missing { looked_at } => {
            let places: Vec<_> = looked_at.iter().map(|path| file(path)).collect();
            format!("missing; looked for at {}", places.join(", "))
        }
        SourceState::Refused(why) | SourceState::Offered(why) => format!("not used: {}", text(why)),
        SourceState::Loaded { codes, skipped, clock, torn, lent, .. } => {
            let lent = if *lent > 0 {
                format!(", lines and inlined calls for {lent} functions of the jitdump")
            } else {
                String::new()
            };
            let skipped = if *skipped > 0 { format!(", {skipped} records skipped") } else { String::new() };
            let torn = if *torn { ", cut at its end" } else { "" };
            let doubtful = covered.as_ref().map_or(0, |source| source.doubtful);
            let doubtful = match doubtful {
                0 => String::new(),
                frames => format!(" ({frames} of them perhaps of other code)"),
            };
            let covered = covered.map_or_else(String::new, |source| format!(", names {} frames", source.covered));
            format!("{codes} functions{skipped}{torn}{}{covered}{doubtful}{lent}", clock_used(*clock))
        }
    };
    format!("{} {}: {state}", account.kind.name(), file(&account.path))
}

fn clock_used(clock: Option<ClockUse>) -> String {
    match clock {
        Some(ClockUse::Same) => String::new(),
        None => ", without times".to_owned(),
        Some(ClockUse::Tsc) => ", times converted from the processor's counter".to_owned(),
        Some(ClockUse::Estimated { error: Some(error) }) => {
            format!(", times estimated to within {:.3} ms", error as f64 / 1e6)
        }
        Some(ClockUse::Estimated { error: None }) => ", times estimated, with an unknown error".to_owned(),
        Some(ClockUse::Dropped) => ", times not usable".to_owned(),
    }
}

pub(super) fn covers(source: &SourceFile) -> String {
    format!("it names {} of {} frames ({:.1}%)", source.covered, source.frames, source.percent())
}

pub(super) fn text(text: &str) -> String {
    readable(text.as_bytes()).into_owned()
}

pub(in super::super) fn file(path: &Path) -> String {
    readable(path.as_os_str().as_bytes()).into_owned()
}

pub(super) fn list(names: &[String]) -> String {
    /// More are only counted.
    const SHOWN: usize = 4;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| text(name)).collect();
    match (names.len(), &shown[..]) {
        (0, _) => "code".to_owned(),
        (1..=SHOWN, [one]) => one.clone(),
        (1..=SHOWN, [first @ .., last]) => format!("{} and {last}", first.join(", ")),
        (all, _) => format!("{} and {} more", shown.join(", "), all - SHOWN),
    }
}

fn paths(files: &[NamedFile]) -> String {
    list(&files.iter().map(|file| file.path.clone()).collect::<Vec<_>>())
}

pub(super) fn is(files: &[NamedFile]) -> String {
    format!("{} {}", paths(files), if files.len() == 1 { "is" } else { "are" })
}

pub(super) fn was(files: &[NamedFile]) -> String {
    format!("{} {}", paths(files), if files.len() == 1 { "was" } else { "were" })
}

pub(super) fn have(files: &[NamedFile]) -> String {
    format!("{} {}", paths(files), if files.len() == 1 { "has" } else { "have" })
}

/// The process that a file's number names, for messages.
pub(in super::super) fn number(pid: Pid) -> String {
    if pid.0 < 0 { "none".to_owned() } else { pid.to_string() }
}
