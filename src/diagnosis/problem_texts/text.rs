//! The texts about one problem, and functions to phrase them. Names in the texts are escaped so that they are
//! printable.

use crate::analysis::quantity::counted;
use crate::diagnosis::problem::{NamedFile, SourceFile, Who};
use crate::model::Pid;
use crate::model::printable::readable;
use crate::sources::{Account, ClockUse, SourceState};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The texts about a problem.
pub(crate) struct ProblemText {
    /// The key that identifies the problem in JSON. It never changes.
    pub(crate) key: &'static str,
    /// A line about the problem, the same as in `docs/doctor.md`.
    pub(crate) about: &'static str,
    /// A percentage of the recording. If the problem affects at least this much, it is a finding; otherwise it is a
    /// minor problem.
    pub(crate) threshold: f64,
    /// A text about what happened in this recording.
    pub(crate) cause: String,
    /// What the user can do, apart from running the corrected command.
    pub(crate) remedy: String,
}

impl ProblemText {
    /// The texts about a problem that is a finding even if it affects only 1% of the recording.
    pub(super) fn new(
        key: &'static str,
        about: &'static str,
        cause: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { key, about, threshold: 1.0, cause: cause.into(), remedy: remedy.into() }
    }

    /// Sets the percentage of the recording below which the problem is a minor one.
    pub(super) fn above(self, threshold: f64) -> Self {
        Self { threshold, ..self }
    }
}

/// Threshold in percent for problems with code that normally has only few frames, such as a library.
pub(super) const SOME: f64 = 8.0;

/// Threshold in percent for problems with code that is only one part of a program.
pub(super) const PART: f64 = 10.0;

/// Threshold in percent for problems that some recordings always have, such as with leaf functions, libraries without
/// frame pointers, and threads that begin in assembly code.
pub(super) const ORDINARY: f64 = 15.0;

/// Threshold in percent for problems that nobody can fix, or that a runtime always has. They are findings only if they
/// affect a lot.
pub(super) const MUCH: f64 = 25.0;

/// Advice to build programs with frame pointers.
pub(super) const BUILD: &str = "build with -fno-omit-frame-pointer (Rust: -C force-frame-pointers=yes)";

/// Names a process and its runtime, for use in a sentence.
pub(in super::super) fn who(process: &Who) -> String {
    let runtime = process.runtime.map_or_else(String::new, |runtime| format!(", {}", runtime.name));
    let comm = text(&process.comm);
    match process.others {
        0 => format!("process {} ({comm}{runtime})", process.pid),
        others => format!("process {} and {others} more ({comm}{runtime})", process.pid),
    }
}

/// Describes a dump or map, and how it was used. `covered` adds the number of frames that the file names.
pub(in super::super) fn source(account: &Account, covered: Option<SourceFile>) -> String {
    let state = match &account.state {
        SourceState::Missing { looked_at } => {
            let places: Vec<_> = looked_at.iter().map(|path| file(path)).collect();
            format!("missing (looked at {})", places.join(", "))
        }
        SourceState::Refused(why) | SourceState::Offered(why) => format!("not used: {}", text(why)),
        SourceState::Loaded { codes, skipped, clock, torn, lent, .. } => {
            let lent = if *lent > 0 {
                format!(", adds lines and inlined calls to {lent} functions of the jitdump")
            } else {
                String::new()
            };
            let skipped =
                if *skipped > 0 { format!(", skipped {}", counted(*skipped, "record")) } else { String::new() };
            let torn = if *torn { ", truncated" } else { "" };
            let doubtful = covered.as_ref().map_or(0, |source| source.doubtful);
            let doubtful = match doubtful {
                0 => String::new(),
                frames => format!(" ({frames} of them perhaps wrong)"),
            };
            let covered = covered.map_or_else(String::new, |source| format!(", names {} frames", source.covered));
            format!("{}{skipped}{torn}{}{covered}{doubtful}{lent}", counted(*codes, "function"), clock_used(*clock))
        }
    };
    format!("{} {}: {state}", account.kind.name(), file(&account.path))
}

fn clock_used(clock: Option<ClockUse>) -> String {
    match clock {
        Some(ClockUse::Same) => String::new(),
        None => ", without times".to_owned(),
        Some(ClockUse::Tsc) => ", times converted from the processor's time stamp counter".to_owned(),
        Some(ClockUse::Estimated { error: Some(error) }) => {
            format!(", times estimated to within {:.3} ms", error as f64 / 1e6)
        }
        Some(ClockUse::Estimated { error: None }) => ", times estimated, with an unknown error".to_owned(),
        Some(ClockUse::Dropped) => ", times unusable".to_owned(),
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
    /// Maximum number of names in the list. Further names are only counted.
    const SHOWN: usize = 4;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| text(name)).collect();
    match (names.len(), &shown[..]) {
        (0, _) => "code".to_owned(),
        (1..=SHOWN, [one]) => one.clone(),
        (1..=SHOWN, [first @ .., last]) => format!("{} and {last}", first.join(", ")),
        (all, _) => format!("{} and {} more", shown.join(", "), all - SHOWN),
    }
}

/// Lists the files, followed by a verb: `one` is its singular, `several` its plural.
pub(super) fn listed(files: &[NamedFile], one: &str, several: &str) -> String {
    let paths: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
    format!("{} {}", list(&paths), if files.len() == 1 { one } else { several })
}

/// The process ID as shown in a message. Negative IDs stand for no process.
pub(in super::super) fn number(pid: Pid) -> String {
    if pid.0 < 0 { "none".to_owned() } else { pid.to_string() }
}
