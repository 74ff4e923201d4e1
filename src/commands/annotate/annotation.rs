//! What annotate tells, before it is written.

use super::costs::{Cost, Costs};
use crate::model::category::Category;
use crate::model::stacks::{Unit, Weight};
use crate::model::{Nanos, Pid};
use crate::resolve::disasm::TargetKind;

/// Everything.
#[derive(Debug)]
pub(super) struct Annotation {
    /// What percentages are of.
    pub(super) weight: Weight,
    /// The events that have samples.
    pub(super) events: Vec<EventTotal>,
    /// The first sample of the recording: times are told from here on.
    pub(super) first: Option<Nanos>,
    /// The functions that are told of, hottest first.
    pub(super) names: Vec<NameSummary>,
    /// How many functions by name, and how many codes, there are in all.
    pub(super) all: (usize, usize),
    /// Their code, hottest first.
    pub(super) listings: Vec<Listing>,
}

/// An event and all of its samples.
#[derive(Debug)]
pub(super) struct EventTotal {
    /// Its number in [`Costs`].
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) unit: Unit,
    pub(super) total: Cost,
    /// What a sample's instruction is.
    pub(super) precision: Precision,
}

/// Which instruction a sample stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    /// The processor recorded the instruction that caused the event, or its neighbour (`precise_ip`).
    Precise(u8),
    /// A timer's interrupt: the next instruction to run.
    Timer,
    /// The instruction at which the overflow's interrupt arrived: some way behind the one that caused it.
    Skids,
}

/// The codes of one name.
#[derive(Debug)]
pub(super) struct NameSummary {
    pub(super) name: Vec<u8>,
    pub(super) module: Option<Vec<u8>>,
    pub(super) costs: Costs,
    /// Those of each of its codes, hottest first.
    pub(super) codes: Vec<Costs>,
}

/// One function in one version.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) name: Vec<u8>,
    pub(super) module: Option<Vec<u8>>,
    pub(super) category: Category,
    /// Which of the codes of its name it is, counted from 1, and how many there are.
    pub(super) version: (usize, usize),
    /// The process it ran in last.
    pub(super) pid: Pid,
    /// When its code was written; `None` where it is not known, or always was there.
    pub(super) loaded: Option<Nanos>,
    pub(super) costs: Costs,
    pub(super) code: Code,
}

/// The instructions of a function.
#[derive(Debug)]
pub(super) enum Code {
    Listed {
        /// The address of the first byte, as listed: at run time for JIT code, else as linked.
        addr: u64,
        bytes: Vec<u8>,
        lines: Vec<Line>,
        /// Source files, by their numbers in the lines.
        files: Vec<SourceFile>,
    },
    /// Why there are none.
    Missing(String),
}

/// One instruction.
#[derive(Debug)]
pub(super) struct Line {
    /// Bytes from the start of the function.
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) text: String,
    /// `None` without samples.
    pub(super) costs: Option<Costs>,
    pub(super) target: Option<LineTarget>,
    pub(super) source: Option<SourceLine>,
}

/// The address that an instruction names.
#[derive(Debug, Clone)]
pub(super) struct LineTarget {
    /// As listed.
    pub(super) addr: u64,
    pub(super) kind: TargetKind,
    pub(super) place: TargetPlace,
}

/// What is at a [`LineTarget`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TargetPlace {
    /// The same function, so many bytes from its start.
    Inside(u64),
    /// So far into another function.
    Function(Vec<u8>, u64),
    /// Memory of which nothing more is known.
    Unknown,
}

/// A file that source lines are in.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// As the runtime or compiler named it.
    pub(super) name: Vec<u8>,
    /// Its lines, if it is here.
    pub(super) lines: Option<Vec<String>>,
}

/// A source position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SourceLine {
    /// Index into [`Code::Listed::files`].
    pub(super) file: usize,
    /// Counted from 1.
    pub(super) line: u32,
}

impl Precision {
    /// In words, for a person.
    pub(super) fn said(self) -> &'static str {
        match self {
            Self::Precise(_) => "at the instruction that the processor recorded for the event (precise)",
            Self::Timer => {
                "at the instruction that was to run next when the timer fired: the slow one may be the one before"
            }
            Self::Skids => {
                "where the counter's interrupt arrived, some instructions behind the one that caused it (skid); record with :pp if the processor can"
            }
        }
    }

    /// The word for it in files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Precise(_) => "precise",
            Self::Timer => "timer",
            Self::Skids => "skids",
        }
    }
}

impl SourceFile {
    /// The text of a line, if the file is here and has it.
    pub(super) fn text(&self, line: u32) -> Option<&str> {
        let at = usize::try_from(line).ok()?.checked_sub(1)?;
        self.lines.as_ref()?.get(at).map(String::as_str)
    }
}
