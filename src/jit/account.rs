//! What became of each source of names: it was loaded, is missing, was refused, or is only offered to the user, because
//! it isn't certain that it belongs to the process.

use crate::error::{RefusalReason, Warnings};
use crate::jit::engine_logs::LogId;
use crate::model::{Nanos, Pid};
use crate::symbolize::code_map::CodeList;
use std::fmt;
use std::path::PathBuf;

/// The code that was read from one source.
pub(super) struct SourceEvents<'data> {
    pub(super) list: CodeList<'data>,
    pub(super) state: SourceState,
    /// The machine (ELF's `e_machine`) that the source states; `None` if it states none.
    pub(super) machine: Option<u16>,
}

/// A source that has been read: the code in it, and what became of it.
pub(super) struct ReadSource<'data> {
    pub(super) list: CodeList<'data>,
    pub(super) account: Account,
    pub(super) machine: Option<u16>,
    pub(super) warnings: Warnings,
}

/// The kind of a source, a file that names JIT code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A jitdump.
    JitDump,
    /// A perf map.
    PerfMap,
    /// An ELF object that the user placed at an address (`--elf`).
    PlacedElf,
    /// A runtime's log.
    Log(LogId),
}

impl Kind {
    /// The name to show to people.
    pub fn name(self) -> &'static str {
        self.words()[0]
    }

    /// The name in machine-readable output.
    pub fn id(self) -> &'static str {
        self.words()[1]
    }

    /// The command-line option that passes a file of this kind.
    pub fn option(self) -> &'static str {
        self.words()[2]
    }

    /// The kind's name for people, its name in machine-readable output, and the command-line option that passes such a
    /// file.
    fn words(self) -> [&'static str; 3] {
        match self {
            Self::JitDump => ["jitdump", "jitdump", "--jitdump"],
            Self::PerfMap => ["perf map", "perf-map", "--perf-map"],
            Self::PlacedElf => ["ELF object", "elf", "--elf"],
            Self::Log(id) => [id.log().name, id.log().id, "--jit-log"],
        }
    }
}

/// What became of one source of names, such as a jitdump or perf map.
#[derive(Debug, Clone)]
pub struct Account {
    /// The path of the source. If it is missing, the path where it should have been.
    pub path: PathBuf,
    /// The kind of source.
    pub kind: Kind,
    /// The recorded ID of the process whose code the source names.
    pub pid: Pid,
    /// Whether the source was used, and if not, why.
    pub state: SourceState,
    /// A one-line remark that users always see. There is one if the file was used although neither its name nor the
    /// user says which process it belongs to, or if it couldn't be matched to a process.
    pub remark: Option<String>,
}

impl Account {
    /// True if the source was used.
    pub fn is_loaded(&self) -> bool {
        matches!(self.state, SourceState::Loaded { .. })
    }
}

/// Whether a source of names was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceState {
    /// The source was loaded.
    Loaded {
        /// How many functions the source names: loads in a jitdump, or lines of a perf map.
        codes: u64,
        /// Records or lines that were skipped as unusable.
        skipped: u64,
        /// How the source's times were converted to the recording's clock; `None` if it has no times.
        clock: Option<ClockUse>,
        /// True if the file ends in the middle of a record or line.
        torn: bool,
        /// The times of the source's first and last record, on the recording's clock; `None` if they couldn't be
        /// converted.
        times: Option<(Nanos, Nanos)>,
        /// For a log: how many functions of the same process's jitdump got source lines and inlined calls from this
        /// log.
        lent: u64,
    },
    /// The recording mentions the source, but no such file was found.
    Missing {
        /// The paths that were tried, in order.
        looked_at: Vec<PathBuf>,
    },
    /// The file exists but wasn't used.
    Refused {
        /// A message that says why.
        why: String,
        /// The reason, as far as it matters for what the user can do.
        reason: RefusalReason,
    },
    /// The file seems to belong to this process, but not with certainty. It isn't used unless the user passes it with
    /// an option. Holds the reason.
    Offered(String),
}

/// How a source's times were converted to the recording's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockUse {
    /// The source and the recording use the same clock.
    Same,
    /// The CPU's time-stamp counter was converted as the recording says.
    Tsc,
    /// The difference between the two clocks was estimated, and added to the source's times.
    Estimated {
        /// The maximum error in nanoseconds; `None` if unknown.
        error: Option<u64>,
    },
    /// The times couldn't be used, so each address got the last code that was there.
    Dropped,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for SourceState {
    /// Says what became of a source, for a list of sources.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loaded { codes, skipped, clock, torn, lent, .. } => {
                write!(f, "loaded, {codes} function{}", if *codes == 1 { "" } else { "s" })?;
                if *skipped > 0 {
                    write!(f, ", {skipped} skipped")?;
                }
                if *torn {
                    f.write_str(", truncated")?;
                }
                if *lent > 0 {
                    let s = if *lent == 1 { "" } else { "s" };
                    write!(f, ", adds source lines and inlined calls to {lent} function{s} of the jitdump")?;
                }
                if let Some(clock) = clock {
                    write!(f, "; {clock}")?;
                }
                Ok(())
            }
            Self::Missing { looked_at } => {
                let places: Vec<_> = looked_at.iter().map(|place| place.display().to_string()).collect();
                write!(f, "not found (looked at {})", places.join(", "))
            }
            Self::Refused { why, .. } | Self::Offered(why) => write!(f, "not used: {why}"),
        }
    }
}

impl fmt::Display for ClockUse {
    /// Says how a source's times relate to the clock of the recording.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => f.write_str("same clock as the recording"),
            Self::Tsc => f.write_str("its times were converted from the processor's time stamp counter"),
            Self::Estimated { error: Some(error) } => {
                write!(f, "its times were estimated to within {} ms", error.div_ceil(1_000_000))
            }
            Self::Estimated { error: None } => f.write_str("its times were estimated, with an unknown error"),
            Self::Dropped => f.write_str("its times are unusable"),
        }
    }
}
