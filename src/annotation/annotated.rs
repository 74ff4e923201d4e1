//! The result of annotate, before it is written.

use super::costs::{Cost, Costs};
use crate::analysis::category::Category;
use crate::analysis::quantity::{counted, grouped};
use crate::model::code::ExpandedCall;
use crate::model::printable::readable;
use crate::model::stacks::{Unit, Weight};
use crate::model::{Nanos, Pid};
use crate::resolve::disasm::TargetKind;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything.
#[derive(Debug)]
pub struct Annotation {
    /// The base of percentages.
    pub weight: Weight,
    /// The events that have samples.
    pub events: Vec<EventTotal>,
    /// The first sample of the recording: times are reported from here on.
    pub first: Option<Nanos>,
    /// The functions that are reported for, hottest first.
    pub names: Vec<NameSummary>,
    /// The number of functions by name, and of code ranges, in all.
    pub all: (usize, usize),
    /// Their code, hottest first.
    pub listings: Vec<Listing>,
    /// The names of the hottest functions of all, whatever was asked for.
    pub hottest: Vec<Vec<u8>>,
}

/// An event and all of its samples.
#[derive(Debug)]
pub struct EventTotal {
    /// Its number in [`Costs`].
    pub number: usize,
    /// Its name.
    pub name: String,
    /// The unit of its samples' periods.
    pub unit: Unit,
    /// All of its samples.
    pub total: Cost,
    /// The meaning of a sample's instruction.
    pub precision: Precision,
}

/// The instruction that a sample is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// The processor recorded the instruction that caused the event, or its neighbor (`precise_ip`).
    Precise(u8),
    /// A timer's interrupt: the next instruction to run.
    Timer,
    /// Every execution of the instruction was counted: these are not samples.
    Exact,
    /// The instruction at which the overflow's interrupt arrived: some way behind the one that caused it.
    Skids,
}

/// The code ranges of one name.
#[derive(Debug)]
pub struct NameSummary {
    /// Their name.
    pub name: Vec<u8>,
    /// The file of the hottest, or what stands for one.
    pub module: Option<Vec<u8>>,
    /// The samples of all of them.
    pub costs: Costs,
    /// Those of each of its code ranges, hottest first.
    pub codes: Vec<Costs>,
}

/// The code of a function: one version of it, or what is reported for several together.
#[derive(Debug)]
pub struct Listing {
    /// The function.
    pub name: Vec<u8>,
    /// The file that it is in, or what stands for one.
    pub module: Option<Vec<u8>>,
    /// The numbers of the versions, hottest first; at least one.
    pub versions: Vec<Version>,
    /// The number of versions of it have samples.
    pub all_versions: usize,
    /// The samples of these.
    pub costs: Costs,
    /// The inclusive cost, cost if the input states that: by the input's name, each level of recursion on its own.
    pub inclusive: Vec<Inclusive>,
    /// The instructions.
    pub code: Code,
}

/// The inclusive cost of a function as the input states it: that of the calls to it, or if there
/// are none, its own and that of its calls.
#[derive(Debug, Clone)]
pub struct Inclusive {
    /// Its name in the input.
    pub name: Vec<u8>,
    /// Its source file, if it is known.
    pub file: Option<Vec<u8>>,
    /// Its cost.
    pub costs: Costs,
}

/// Calls of one function from one place, as the input states them.
#[derive(Debug, Clone)]
pub struct Calls {
    /// The callee's name.
    pub callee: Vec<u8>,
    /// Its source file, if it is known.
    pub file: Option<Vec<u8>>,
    /// The file that holds its code, if it is known.
    pub module: Option<Vec<u8>>,
    /// The number.
    pub count: u64,
    /// Their inclusive cost.
    pub costs: Costs,
}

impl Calls {
    /// Adds calls of other places, of the same functions or others.
    pub(super) fn join(all: &mut Vec<Self>, others: &[Self]) {
        for other in others {
            let is_same = |calls: &&mut Self| {
                (&calls.callee, &calls.file, &calls.module) == (&other.callee, &other.file, &other.module)
            };
            match all.iter_mut().find(is_same) {
                Some(calls) => {
                    calls.count = calls.count.saturating_add(other.count);
                    calls.costs.join(&other.costs);
                }
                None => all.push(other.clone()),
            }
        }
    }

    /// For a person, as callgrind_annotate has it; the costs are beside it.
    pub(super) fn label(&self) -> String {
        label(self.file.as_deref(), &self.callee, Some(self.count))
    }
}

impl Inclusive {
    /// The function, for a person.
    pub(super) fn label(&self) -> String {
        label(self.file.as_deref(), &self.name, None)
    }
}

/// `file:function`, and how many calls.
fn label(file: Option<&[u8]>, name: &[u8], count: Option<u64>) -> String {
    let file = file.map_or_else(String::new, |file| format!("{}:", readable(file)));
    let count = count.map_or_else(String::new, |count| format!(" ({}x)", grouped(count)));
    format!("{file}{}{count}", readable(name))
}

impl Listing {
    /// The facts about one of its versions except its cost: which it is, tier, file, process, place and time, counted
    /// from the first sample.
    pub(super) fn about(&self, version: &Version, first: Option<Nanos>) -> Vec<String> {
        let Version { number, category, pid, extent, loaded, .. } = *version;
        let mut parts = Vec::new();
        if self.all_versions > 1 {
            parts.push(format!("code {number} of {}", self.all_versions));
        }
        parts.push(category.name().to_owned());
        parts.extend(self.module.as_ref().map(|module| readable(module).into_owned()));
        parts.extend(version.bpf.as_ref().map(BpfSource::text));
        parts.push(format!("pid {pid}"));
        if let Some((addr, size)) = extent {
            parts.push(format!("{addr:#x}, {}", counted(size, "byte")));
        }
        if let (Some(loaded), Some(first)) = (loaded, first) {
            let after = loaded.0 as f64 - first.0 as f64;
            let side = if after < 0.0 { "before" } else { "after" };
            parts.push(format!("written {:.3} s {side} the first sample", after.abs() / 1e9));
        }
        parts
    }
}

/// A runtime compiles one function again and again: one such code range.
#[derive(Debug, Clone)]
pub struct Version {
    /// Its place among those of its name by heat, counted from 1.
    pub number: usize,
    /// The maker: compiler's tier, if it gives it.
    pub category: Category,
    /// The process it ran in last.
    pub pid: Pid,
    /// The address of its code as listed, and its size in bytes; `None` if that is not known.
    pub extent: Option<(u64, u64)>,
    /// When its code was written; `None` where it is not known, or always was there.
    pub loaded: Option<Nanos>,
    /// The samples in it.
    pub costs: Costs,
    /// The calls that were expanded in it, where their addresses are not known.
    pub expanded: Vec<ExpandedCall>,
    /// The BPF program that it is of.
    pub bpf: Option<BpfSource>,
}

/// The function and its program: program: several programs may have functions of one name.
#[derive(Debug, Clone)]
pub struct BpfSource {
    /// The program's number.
    pub program: u32,
    /// The program's name, at most 15 bytes.
    pub program_name: Vec<u8>,
    /// The function's name in its source, if it is known.
    pub function: Option<Vec<u8>>,
}

impl BpfSource {
    /// In words, for a person.
    fn text(&self) -> String {
        let function = self.function.as_ref().map(|name| format!(", function {}", readable(name)));
        let name =
            if self.program_name.is_empty() { String::new() } else { format!(" {}", readable(&self.program_name)) };
        format!("BPF program {}{name}{}", self.program, function.unwrap_or_default())
    }
}

impl Version {
    /// Its expanded calls as a tree for people, a line each, as HotSpot's `PrintInlining` shows them: where in its
    /// caller's bytecode each stands, and its name.
    pub fn expansion(&self) -> impl Iterator<Item = String> {
        self.expanded.iter().map(|call| {
            let indent = "  ".repeat(call.depth as usize);
            format!("{indent}@ {} {}", call.bytecode, readable(&call.function))
        })
    }
}

/// The instructions of a function.
#[derive(Debug)]
pub enum Code {
    /// All of them.
    Listed {
        /// The address of the first byte, as listed: at run time for JIT code, else as linked.
        addr: u64,
        /// The machine code.
        bytes: Vec<u8>,
        /// Its instructions, in order.
        lines: Vec<Line>,
        /// Source files, by their numbers in the lines.
        files: Vec<SourceFile>,
    },
    /// The source lines that they were made of alone, with what was sampled in each.
    SourceLines {
        /// Source files, by their numbers in the lines.
        files: Vec<SourceFile>,
        /// By file and line; first what is of no known line.
        lines: Vec<SourceLineCosts>,
    },
    /// The reason why they are missing.
    Missing(String),
}

/// The samples in the instructions of one source line.
#[derive(Debug)]
pub struct SourceLineCosts {
    /// `None`: no line is known.
    pub source: Option<SourceLine>,
    /// The samples.
    pub costs: Costs,
    /// Its calls, where the input states them.
    pub calls: Vec<Calls>,
}

/// One instruction.
#[derive(Debug)]
pub struct Line {
    /// Bytes from the start of the function.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Its text.
    pub text: String,
    /// `None` without samples.
    pub costs: Option<Costs>,
    /// The address that it names.
    pub target: Option<LineTarget>,
    /// The source line that it was made of.
    pub source: Option<SourceLine>,
    /// Its calls, where the input states them.
    pub calls: Vec<Calls>,
}

/// The address that an instruction names.
#[derive(Debug, Clone)]
pub struct LineTarget {
    /// As listed.
    pub addr: u64,
    /// Its outcome.
    pub kind: TargetKind,
    /// The target.
    pub place: TargetPlace,
}

/// The target of a [`LineTarget`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetPlace {
    /// The same function, this many bytes from its start.
    Inside(u64),
    /// So far into another function.
    Function(Vec<u8>, u64),
    /// Memory of which nothing more is known.
    Unknown,
}

/// A file that source lines are in.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// As the runtime or compiler named it.
    pub name: Vec<u8>,
    /// Its text, as far as it is known.
    pub text: Option<SourceText>,
}

/// The text of a source file.
#[derive(Debug, Clone)]
pub enum SourceText {
    /// All of its lines, from the file itself.
    File(Arc<[String]>),
    /// Some of its lines, by their numbers: those that the code was made of, as its compiler wrote them down.
    Recorded(BTreeMap<u32, String>),
}

/// A source position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// Index into the files of its [`Code`].
    pub file: usize,
    /// Counted from 1.
    pub line: u32,
}

impl Precision {
    /// In words, for a person.
    pub fn text(self) -> &'static str {
        match self {
            Self::Precise(_) => "at the instruction that the processor recorded for the event (precise)",
            Self::Exact => "counted exactly, at each instruction",
            Self::Timer => {
                "at the instruction that was to run next when the timer fired: the slow one may be the one before"
            }
            Self::Skids => {
                "where the counter's interrupt arrived, some instructions behind the one that caused it (skid); record with :pp if the processor can"
            }
        }
    }

    /// The word for it in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Precise(_) => "precise",
            Self::Exact => "exact",
            Self::Timer => "timer",
            Self::Skids => "skids",
        }
    }
}

/// The words for costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words {
    /// The words for a function's own cost.
    pub(crate) own: &'static str,
    /// The words for instructions without cost.
    pub(crate) any: &'static str,
    /// The head of a column of numbers.
    pub(crate) head: &'static str,
}

impl Annotation {
    /// True if costs are counted, not sampled.
    pub(crate) fn is_exact(&self) -> bool {
        self.events.first().is_some_and(|event| event.precision == Precision::Exact)
    }

    /// The words for costs.
    pub(crate) fn words(&self) -> Words {
        match self.is_exact() {
            true => Words { own: "costs of its own", any: "costs", head: "count" },
            false => Words { own: "samples of its own", any: "samples", head: "samples" },
        }
    }

    /// The number of times that something was sampled, or its cost by the first event: costs of different events do not
    /// add up.
    pub(crate) fn number(&self, costs: &Costs) -> u64 {
        match self.events.first().filter(|_| self.is_exact()) {
            Some(first) => costs.get(first.number).count,
            None => costs.samples(),
        }
    }
}

impl Listing {
    /// The hottest of its versions.
    pub(super) fn hottest(&self) -> &Version {
        &self.versions[0]
    }
}

impl SourceFile {
    /// A file whose text is its lines, if it is here.
    pub(super) fn new(name: &[u8], lines: Option<Arc<[String]>>) -> Self {
        Self { name: name.to_vec(), text: lines.map(SourceText::File) }
    }

    /// The text of a line, if it is known.
    pub fn line(&self, line: u32) -> Option<&str> {
        let text = match self.text.as_ref()? {
            SourceText::File(lines) => lines.get(usize::try_from(line).ok()?.checked_sub(1)?),
            SourceText::Recorded(lines) => lines.get(&line),
        };
        text.map(String::as_str)
    }
}
