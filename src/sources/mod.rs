//! Everything that names JIT code, for every command alike: find → trust → clock → pid mapping → load → one
//! [`CodeMap`](crate::resolve::code_map::CodeMap).
//!
//! A command says what its input knows ([`Processes`]) and what the user asked for ([`SourceOptions`]). It gets the
//! files that were found ([`Found`], which owns them), from these the code map, and an account of what became of
//! every dump and map. One that is missing, foreign or broken never stops the others.
//!
//! ```text
//! let found = sources::find(&processes, &options, beside, &pool, &mut warnings);
//! let loaded = found.load(&processes, &pool, &mut warnings);
//! loaded.map.lookup(pid, addr, time)
//! ```

mod clock;
mod discover;
mod load;
mod placed_elf;
mod trust;

pub use discover::{Found, find};
pub use load::Loaded;

use crate::model::process::Processes;
use crate::model::{Addr, Pid};
use std::path::PathBuf;

/// Where to look for names, and what to believe. From the command line; the same flags for every command.
#[derive(Debug, Clone, Default)]
pub struct SourceOptions {
    /// `--jitdump PATH|DIR`: looked at before the runtimes' usual places.
    pub jitdump: Vec<PathBuf>,
    /// `--perf-map PATH|DIR`.
    pub perf_map: Vec<PathBuf>,
    /// `--elf FILE@ADDR`: an ELF object placed at an address.
    pub elf: Vec<(PathBuf, Addr)>,
    /// `--map-pid INNER=OUTER`.
    pub map_pid: Vec<(Pid, Pid)>,
    /// `-f`: use files of other owners too.
    pub force: bool,
}

impl SourceOptions {
    /// The recording's number of a process that calls itself `inner`, if the user said so.
    fn outer_of(&self, inner: Pid) -> Option<Pid> {
        self.map_pid.iter().find(|(from, _)| *from == inner).map(|(_, to)| *to)
    }
}

/// What sort of source a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A jitdump.
    JitDump,
    /// A perf map.
    PerfMap,
    /// An ELF object that the user placed.
    PlacedElf,
}

/// What became of one source.
#[derive(Debug, Clone)]
pub struct Account {
    /// The file; for one that was not found, the path where it was expected.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// The process it speaks for, by the recording's number.
    pub pid: Pid,
    /// Whether it could be used, and why not.
    pub state: SourceState,
}

/// Whether a source could be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceState {
    /// It was loaded: how many pieces of code it names, and how many records of it were skipped.
    Loaded {
        /// Loads, or lines.
        codes: u64,
        /// Records or lines that could not be used.
        skipped: u64,
        /// How its times were brought to the recording's clock; `None` for sources without times.
        clock: Option<ClockUse>,
    },
    /// The recording says that it exists, but it is in none of the places that were looked at.
    Missing {
        /// The places, in order.
        looked_at: Vec<PathBuf>,
    },
    /// It is there, but not used, for this reason.
    Refused(String),
}

/// How a dump's times became the recording's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockUse {
    /// Both use the same clock.
    Same,
    /// The processor's counter was converted as the recording says.
    Tsc,
    /// By an estimated offset; the error in nanoseconds, as far as it can be told.
    Estimated {
        /// Estimated error, ns.
        error: u64,
    },
    /// The times could not be used: each address has the last code that was there.
    Dropped,
}

/// The number by which the recording knows a process that a dump or map calls `inner`: as the user said, else the
/// same number if that process may run JIT code, else the process whose namespace shows it so, else the same number.
fn outer_pid(inner: Pid, processes: &Processes, options: &SourceOptions) -> Pid {
    let by_namespace = || {
        let mut same = processes.by_pid.iter().filter(|(_, process)| process.inner_pid == Some(inner));
        same.next().map(|(pid, _)| *pid)
    };
    let by_number = processes.by_pid.get(&inner).filter(|process| process.has_jit_memory).map(|_| inner);
    options.outer_of(inner).or(by_number).or_else(by_namespace).unwrap_or(inner)
}
