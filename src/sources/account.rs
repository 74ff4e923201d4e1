//! The outcome for each source.

use crate::model::{Nanos, Pid};
use crate::records::jit_logs::LogId;
use std::fmt;
use std::path::PathBuf;

/// The kind of source of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A jitdump.
    JitDump,
    /// A perf map.
    PerfMap,
    /// An ELF object that the user placed.
    PlacedElf,
    /// An engine's log.
    Log(LogId),
}

impl Kind {
    /// As people call it.
    pub fn name(self) -> &'static str {
        self.words()[0]
    }

    /// For programs.
    pub fn id(self) -> &'static str {
        self.words()[1]
    }

    /// The option that names a file of the kind.
    pub fn option(self) -> &'static str {
        self.words()[2]
    }

    /// What people and programs call it, and its option.
    fn words(self) -> [&'static str; 3] {
        match self {
            Self::JitDump => ["jitdump", "jitdump", "--jitdump"],
            Self::PerfMap => ["perf map", "perf-map", "--perf-map"],
            Self::PlacedElf => ["ELF object", "elf", "--elf"],
            Self::Log(id) => [id.log().name, id.log().id, "--jit-log"],
        }
    }
}

/// The outcome for one source.
#[derive(Debug, Clone)]
pub struct Account {
    /// The file; for one that was not found, the path where it was expected.
    pub path: PathBuf,
    /// Its kind.
    pub kind: Kind,
    /// The process it speaks for, by the recording's number.
    pub pid: Pid,
    /// True if it could be used, and why not.
    pub state: SourceState,
    /// The remark for users without a request, as one line: that it was used though neither its number nor the user
    /// shows whose it is, or that it was not matched to any process.
    pub remark: Option<String>,
}

/// True if a source could be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceState {
    /// It was loaded: how many code ranges it names, and how many records of it were skipped.
    Loaded {
        /// Loads, or lines.
        codes: u64,
        /// Records or lines that could not be used.
        skipped: u64,
        /// The way its times were brought to the recording's clock; `None` for sources without times.
        clock: Option<ClockUse>,
        /// True if it ends in the middle of a record or line.
        torn: bool,
        /// The times of the first and the last record, on the recording's clock, as far as they can be determined.
        times: Option<(Nanos, Nanos)>,
        /// The number of the dump's functions for which it gives lines and inlined calls.
        lent: u64,
    },
    /// The recording states that it exists, but it is in none of the places that were looked at.
    Missing {
        /// The places, in order.
        looked_at: Vec<PathBuf>,
    },
    /// It is there, but not used, for this reason.
    Refused(String),
    /// It may be this process's by what it holds, but that is not sure, for this reason: the user must confirm it.
    Offered(String),
}

/// The way a dump's times became the recording's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockUse {
    /// Both use the same clock.
    Same,
    /// The processor's counter was converted as the recording states.
    Tsc,
    /// By an estimated offset.
    Estimated {
        /// In nanoseconds; `None` if nobody can give it.
        error: Option<u64>,
    },
    /// The times could not be used: each address has the last code that was there.
    Dropped,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for SourceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loaded { codes, skipped, clock, torn, lent, .. } => {
                write!(f, "loaded, {codes} function{}", if *codes == 1 { "" } else { "s" })?;
                if *skipped > 0 {
                    write!(f, ", {skipped} skipped")?;
                }
                if *torn {
                    f.write_str(", torn at its end")?;
                }
                if *lent > 0 {
                    write!(f, ", lines for {lent} functions of the jitdump")?;
                }
                clock.iter().try_for_each(|clock| write!(f, "; {clock}"))
            }
            Self::Missing { looked_at } => {
                let places: Vec<_> = looked_at.iter().map(|place| place.display().to_string()).collect();
                write!(f, "not found; looked for at {}", places.join(", "))
            }
            Self::Refused(why) | Self::Offered(why) => write!(f, "not used: {why}"),
        }
    }
}

impl fmt::Display for ClockUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => f.write_str("its clock is the recording's"),
            Self::Tsc => f.write_str("its processor time stamps were converted"),
            Self::Estimated { error: Some(error) } => {
                write!(f, "its times are estimated to {} ms", error.div_ceil(1_000_000))
            }
            Self::Estimated { error: None } => f.write_str("its times are estimated, with an unknown error"),
            Self::Dropped => f.write_str("its times could not be used"),
        }
    }
}
