//! Files with names of JIT code: how they were used, and how many frames they name.

use super::tally::percent;
use super::wording::{printable, printable_path};
use crate::analysis::quantity::counted;
use crate::jit::{Account, ClockUse, Kind, SourceState};
use std::path::PathBuf;

/// A file with names of JIT code (a jitdump, a perf map, a log, or an ELF object that was placed at an address), and
/// how many frames it names.
#[derive(Debug, Clone)]
pub(super) struct SourceFile {
    /// The path of the file, which may be missing.
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// The number of frames that the file names.
    pub(super) covered: u64,
    /// The number of these frames whose name may be wrong: the file's times are inexact, and other code was at the same
    /// address shortly before or after the sample.
    pub(super) doubtful: u64,
    /// The number of JIT frames of the process, whether they have a name or not.
    pub(super) frames: u64,
}

impl SourceFile {
    pub(super) fn printable_path(&self) -> String {
        printable_path(&self.path)
    }

    /// A clause with the share of the process's JIT frames that the file names, such as
    /// `the file names 90 of 120 JIT frames (75.0%)`.
    pub(super) fn coverage(&self) -> String {
        let share = percent(self.covered as f64, self.frames);
        format!("the file names {} of {} JIT frames ({share:.1}%)", self.covered, self.frames)
    }
}

/// A clause with the share of a process's JIT code that a file names, for callgrind files, which have costs instead of
/// frames: `the file only names code with 75.0% of the JIT code's cost`.
pub(super) fn cost_coverage(covered: u64, all: u64) -> String {
    format!("the file only names code with {:.1}% of the JIT code's cost", percent(covered as f64, all))
}

/// Describes a file with names of JIT code in one line: its kind and path, and either why it wasn't used, or how many
/// functions it has and what is wrong with them. If `coverage` is given, also says how many frames the file names.
pub(super) fn describe_source(account: &Account, coverage: Option<&SourceFile>) -> String {
    let state = match &account.state {
        SourceState::Missing { looked_at } => {
            let places: Vec<_> = looked_at.iter().map(|path| printable_path(path)).collect();
            format!("missing (looked at {})", places.join(", "))
        }
        SourceState::Refused { why, .. } | SourceState::Offered(why) => format!("not used: {}", printable(why)),
        SourceState::Loaded { codes, skipped, clock, torn, lent, .. } => {
            let mut state = counted(*codes, "function");
            if *skipped > 0 {
                state += &format!(", skipped {}", counted(*skipped, "record"));
            }
            if *torn {
                state += ", truncated";
            }
            state += &describe_clock(*clock);
            if let Some(source) = coverage {
                state += &format!(", names {}", counted(source.covered, "frame"));
                if source.doubtful > 0 {
                    state += &format!(" ({} of them perhaps wrong)", source.doubtful);
                }
            }
            if *lent > 0 {
                let functions = counted(*lent, "function");
                state += &format!(", adds source lines and inlined calls to {functions} of the jitdump");
            }
            state
        }
    };
    format!("{} {}: {state}", account.kind.name(), printable_path(&account.path))
}

/// How a file's times relate to those of the recording, as an appendix to a sentence. Empty if both use the same clock.
fn describe_clock(clock: Option<ClockUse>) -> String {
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
