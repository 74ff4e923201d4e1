//! The data of an annotation, which `text` and `json` write.

use super::costs::{Cost, Costs};
use crate::analysis::category::Category;
use crate::analysis::quantity::{counted, grouped};
use crate::model::code::ExpandedCall;
use crate::model::printable::readable;
use crate::model::stacks::{Unit, Weight};
use crate::model::{Nanos, Pid};
use crate::resolve::disasm::TargetKind;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The hot code of a profile, with costs per instruction.
#[derive(Debug)]
pub struct Annotation {
    /// What percentages are based on: the weights of the samples, or their number.
    pub weight: Weight,
    /// The events with samples, or with costs in a callgrind file.
    pub events: Vec<EventTotal>,
    /// The time of the first sample; times in the output are relative to it. `None` for a callgrind file.
    pub first: Option<Nanos>,
    /// The functions of the listings, by name, hottest first.
    pub names: Vec<NameSummary>,
    /// The total numbers of functions (by name) and of code ranges that have samples, whether listed or not.
    pub all: (usize, usize),
    /// The listed code of the functions, hottest first.
    pub listings: Vec<Listing>,
    /// The names of the hottest functions overall, for hints when the requested one isn't found.
    pub hottest: Vec<Vec<u8>>,
}

/// An event and its total cost.
#[derive(Debug)]
pub struct EventTotal {
    /// The event's index in [`Costs`].
    pub number: usize,
    /// The event's name in the recording.
    pub name: String,
    /// The unit of the event's weights.
    pub unit: Unit,
    /// The event's sum over all samples.
    pub total: Cost,
    /// How exactly a sample's address says which instruction caused it.
    pub precision: Precision,
}

/// How exactly a sample's address says which instruction caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// The processor recorded the instruction that caused the event, or one next to it. The value is `precise_ip` of
    /// the event.
    Precise(u8),
    /// A timer's interrupt: the address is the next instruction to execute.
    Timer,
    /// Costs are exact: callgrind counted every execution.
    Exact,
    /// An interrupt of a hardware counter, which arrives some instructions after the one that caused the event.
    Skids,
}

/// The costs of all code ranges that have the same function name. A function may be compiled several times.
#[derive(Debug)]
pub struct NameSummary {
    /// The function's name.
    pub name: Vec<u8>,
    /// The file of its hottest code range, or a placeholder such as `[kernel.kallsyms]`.
    pub module: Option<Vec<u8>>,
    /// The cost of all code ranges of this name.
    pub costs: Costs,
    /// The cost of each code range, hottest first.
    pub codes: Vec<Costs>,
}

/// The code of a function: one compiled version, or several versions merged.
#[derive(Debug)]
pub struct Listing {
    /// The function's name.
    pub name: Vec<u8>,
    /// The file that the function is in, or a placeholder such as `[kernel.kallsyms]`.
    pub module: Option<Vec<u8>>,
    /// The versions in this listing, hottest first. There is at least one.
    pub versions: Vec<Version>,
    /// How many versions of the function have samples, listed or not.
    pub all_versions: usize,
    /// The cost of the versions in this listing.
    pub costs: Costs,
    /// The inclusive costs that the input states, one for each of its names for this function. callgrind may name each
    /// level of recursion separately.
    pub inclusive: Vec<Inclusive>,
    /// The code of the listing: instructions or source lines.
    pub code: Code,
}

/// The inclusive cost of a function as the input states it: the cost of all calls to it or, if there are none, its own
/// cost plus that of its calls.
#[derive(Debug, Clone)]
pub struct Inclusive {
    /// The function's name in the input.
    pub name: Vec<u8>,
    /// The function's source file, if known.
    pub file: Option<Vec<u8>>,
    /// The function's inclusive cost.
    pub costs: Costs,
}

/// The calls from one place to one function, as the input states them.
#[derive(Debug, Clone)]
pub struct Calls {
    /// The callee's name.
    pub callee: Vec<u8>,
    /// The callee's source file, if known.
    pub file: Option<Vec<u8>>,
    /// The file that has the callee's code, if known.
    pub module: Option<Vec<u8>>,
    /// How often these calls were executed.
    pub count: u64,
    /// The inclusive cost of these calls.
    pub costs: Costs,
}

impl Calls {
    /// Adds calls from other places. Calls to the same function are summed.
    pub(super) fn join(all: &mut Vec<Self>, others: &[Self]) {
        let mut places: FxHashMap<_, usize> =
            all.iter().enumerate().map(|(at, calls)| (calls.function(), at)).collect();
        for other in others {
            match places.entry(other.function()) {
                Entry::Occupied(place) => {
                    let calls = &mut all[*place.get()];
                    calls.count = calls.count.saturating_add(other.count);
                    calls.costs.join(&other.costs);
                }
                Entry::Vacant(place) => {
                    place.insert(all.len());
                    all.push(other.clone());
                }
            }
        }
    }

    /// The callee's name, source file and module, which together tell it from other functions of the same name.
    fn function(&self) -> (Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>) {
        (self.callee.clone(), self.file.clone(), self.module.clone())
    }

    /// The callee and the number of calls, in the style of callgrind_annotate.
    pub(super) fn label(&self) -> String {
        label(self.file.as_deref(), &self.callee, Some(self.count))
    }
}

impl Inclusive {
    /// The function as `file:name`, for text output.
    pub(super) fn label(&self) -> String {
        label(self.file.as_deref(), &self.name, None)
    }
}

/// `file:function`, with the number of calls if given.
fn label(file: Option<&[u8]>, name: &[u8], count: Option<u64>) -> String {
    let file = file.map_or_else(String::new, |file| format!("{}:", readable(file)));
    let count = count.map_or_else(String::new, |count| format!(" ({}x)", grouped(count)));
    format!("{file}{}{count}", readable(name))
}

impl Listing {
    /// Describes a version except for its cost: number, tier, file, process, address, and when it was written relative
    /// to the first sample.
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

/// One of the code ranges that a runtime compiled for a function.
#[derive(Debug, Clone)]
pub struct Version {
    /// The version's rank by cost among all versions of the function, starting at 1.
    pub number: usize,
    /// The kind of code, and the compiler tier if the runtime states it.
    pub category: Category,
    /// The process that executed this version last.
    pub pid: Pid,
    /// The version's address in the listing and its size in bytes; `None` if unknown.
    pub extent: Option<(u64, u64)>,
    /// When the runtime wrote the code. `None` if this is unknown, or for code from a file.
    pub loaded: Option<Nanos>,
    /// The cost of the samples in this version.
    pub costs: Costs,
    /// The calls that were inlined into this version. Only set if their addresses in the code are unknown.
    pub expanded: Vec<ExpandedCall>,
    /// The BPF program that the code belongs to; `None` for other code.
    pub bpf: Option<BpfSource>,
}

/// The BPF program of a function. Several programs may have functions of the same name.
#[derive(Debug, Clone)]
pub struct BpfSource {
    /// The program's ID.
    pub program: u32,
    /// The program's name, at most 15 bytes.
    pub program_name: Vec<u8>,
    /// The function's name in the source, if known.
    pub function: Option<Vec<u8>>,
}

impl BpfSource {
    /// The program and the function in words: `BPF program 7 NAME, function F`.
    fn text(&self) -> String {
        let function = self.function.as_ref().map(|name| format!(", function {}", readable(name)));
        let name =
            if self.program_name.is_empty() { String::new() } else { format!(" {}", readable(&self.program_name)) };
        format!("BPF program {}{name}{}", self.program, function.unwrap_or_default())
    }
}

impl Version {
    /// The inlined calls as a tree, one per line, in the style of HotSpot's `PrintInlining`: the bytecode offset of the
    /// call in its caller, and the callee's name.
    pub fn expansion(&self) -> impl Iterator<Item = String> {
        self.expanded.iter().map(|call| {
            let indent = "  ".repeat(call.depth as usize);
            format!("{indent}@ {} {}", call.bytecode, readable(&call.function))
        })
    }
}

/// The code of a listing.
#[derive(Debug)]
pub enum Code {
    /// All instructions of the code, with their costs.
    Listed {
        /// The address of the first byte: at run time for JIT code, otherwise as linked.
        addr: u64,
        /// The machine code.
        bytes: Vec<u8>,
        /// The instructions in order.
        lines: Vec<Line>,
        /// The source files to which the lines refer.
        files: Vec<SourceFile>,
    },
    /// Only the source lines, with the cost of each.
    SourceLines {
        /// The source files to which the lines refer.
        files: Vec<SourceFile>,
        /// Sorted by file and line. Code without a known line comes first.
        lines: Vec<SourceLineCosts>,
    },
    /// No code is available; the text says why.
    Missing(String),
}

/// The cost of a source line's instructions.
#[derive(Debug)]
pub struct SourceLineCosts {
    /// The source line; `None` for instructions whose line is unknown.
    pub source: Option<SourceLine>,
    /// The cost of all instructions of this line.
    pub costs: Costs,
    /// The calls that this line makes, if the input states them.
    pub calls: Vec<Calls>,
}

/// An instruction and its cost.
#[derive(Debug)]
pub struct Line {
    /// Offset from the start of the function, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    /// The disassembly.
    pub text: String,
    /// The cost of this instruction. `None` if it has no samples.
    pub costs: Option<Costs>,
    /// The address that the instruction refers to, if any.
    pub target: Option<LineTarget>,
    /// The instruction's source line; `None` if unknown.
    pub source: Option<SourceLine>,
    /// The calls that this instruction makes, if the input states them.
    pub calls: Vec<Calls>,
}

/// An address to which an instruction refers.
#[derive(Debug, Clone)]
pub struct LineTarget {
    /// The address, in the same form as the listing's.
    pub addr: u64,
    /// Whether the instruction jumps to the address, calls it, accesses it, or merely contains it as an immediate
    /// value.
    pub kind: TargetKind,
    /// What is at the address.
    pub place: TargetPlace,
}

/// What is at the address of a [`LineTarget`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetPlace {
    /// This offset in the same function.
    Inside(u64),
    /// The function with this name, and the offset in it.
    Function(Vec<u8>, u64),
    /// Unknown memory.
    Unknown,
}

/// A source file.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The file's name as stated by the runtime or compiler.
    pub name: Vec<u8>,
    /// The file's text, as far as available.
    pub text: Option<SourceText>,
}

/// The text of a source file.
#[derive(Debug, Clone)]
pub enum SourceText {
    /// All lines of the file.
    File(Arc<[String]>),
    /// Only the lines that belong to the code, by line number, as the compiler stored them in the recording.
    Recorded(BTreeMap<u32, String>),
}

/// A line of a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// Index into the files of its [`Code`].
    pub file: usize,
    /// The line number, starting at 1.
    pub line: u32,
}

impl Precision {
    /// Describes the precision in a sentence, for text output.
    pub fn text(self) -> &'static str {
        match self {
            Self::Precise(_) => "Samples land on the instruction that the processor recorded for the event (precise).",
            Self::Exact => "Costs are exact, counted per instruction.",
            Self::Timer => {
                "Samples land on the next instruction to execute; the slow one is often the one just before."
            }
            Self::Skids => {
                "Samples land a few instructions after the one that caused the event (skid); record with :pp if the \
                 processor supports it."
            }
        }
    }

    /// The keyword for the precision in JSON and on the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Precise(_) => "precise",
            Self::Exact => "exact",
            Self::Timer => "timer",
            Self::Skids => "skids",
        }
    }
}

/// The words that the output uses for costs, which are either samples or exact counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words {
    /// What the cost of a function itself, without its callees, is called: `self samples` or `self costs`.
    pub(crate) own: &'static str,
    /// What costs in general are called: `samples` or `costs`.
    pub(crate) any: &'static str,
    /// The heading of the column with sample counts or costs.
    pub(crate) head: &'static str,
}

impl Annotation {
    /// True if the costs were counted rather than sampled.
    pub(crate) fn is_exact(&self) -> bool {
        self.events.first().is_some_and(|event| event.precision == Precision::Exact)
    }

    /// The words that the output uses for costs.
    pub(crate) fn words(&self) -> Words {
        match self.is_exact() {
            true => Words { own: "self costs", any: "costs", head: "count" },
            false => Words { own: "self samples", any: "samples", head: "samples" },
        }
    }

    /// The number of samples or, for exact costs, the cost in the first event, because costs of different events can't
    /// be added.
    pub(crate) fn number(&self, costs: &Costs) -> u64 {
        match self.events.first().filter(|_| self.is_exact()) {
            Some(first) => costs.get(first.number).count,
            None => costs.samples(),
        }
    }
}

impl Listing {
    /// The hottest version in this listing.
    pub(super) fn hottest(&self) -> &Version {
        &self.versions[0]
    }
}

impl SourceFile {
    /// A file with all its lines, or without text.
    pub(super) fn new(name: &[u8], lines: Option<Arc<[String]>>) -> Self {
        Self { name: name.to_vec(), text: lines.map(SourceText::File) }
    }

    /// The text of a line, if known.
    pub fn line(&self, line: u32) -> Option<&str> {
        let text = match self.text.as_ref()? {
            SourceText::File(lines) => lines.get(usize::try_from(line).ok()?.checked_sub(1)?),
            SourceText::Recorded(lines) => lines.get(&line),
        };
        text.map(String::as_str)
    }
}
