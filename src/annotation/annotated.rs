//! The data of an annotation: hot code with costs. `text` and `json` write it.

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
    /// Which measure percentages are based on: the samples' weights or their number.
    pub weight: Weight,
    /// The events that have samples (in a callgrind file, that have costs).
    pub events: Vec<EventTotal>,
    /// The time of the first sample. Times in the output are relative to it. `None` for a callgrind file.
    pub first: Option<Nanos>,
    /// The functions whose code is listed, grouped by name, hottest first.
    pub names: Vec<NameSummary>,
    /// How many functions (distinct names) and how many code ranges have samples, whether listed or not.
    pub all: (usize, usize),
    /// The listed code, hottest first.
    pub listings: Vec<Listing>,
    /// The names of the hottest functions, for a hint if the requested function isn't found.
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
    /// How precisely the address of a sample identifies the instruction that caused it.
    pub precision: Precision,
}

impl EventTotal {
    /// The number to show for a cost of the event: the number of samples, or the exact cost, which may be negative.
    pub(crate) fn figure(&self, cost: Cost) -> i64 {
        match self.precision {
            Precision::Exact => cost.weight,
            _ => i64::try_from(cost.count).unwrap_or(i64::MAX),
        }
    }
}

/// How precisely the address of a sample identifies the instruction that caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// The processor recorded the instruction that caused the event, or one next to it. The value is the event's
    /// `precise_ip`.
    Precise(u8),
    /// A timer's interrupt. The address is that of the next instruction to execute.
    Timer,
    /// Costs are exact: callgrind counted every execution.
    Exact,
    /// The interrupt of a hardware counter, which arrives some instructions after the one that caused the event.
    Skids,
}

/// The total cost of all code ranges with the same function name. Runtimes may compile a function many times.
#[derive(Debug)]
pub struct NameSummary {
    /// The function's name.
    pub name: Vec<u8>,
    /// The file with its hottest code range, or a placeholder such as `[kernel.kallsyms]`; `None` if unknown.
    pub module: Option<Vec<u8>>,
    /// The cost of all code ranges of this name.
    pub costs: Costs,
    /// The cost of each code range, hottest first.
    pub codes: Vec<Costs>,
}

/// The listed code of a function: one compiled version, or several versions merged.
#[derive(Debug)]
pub struct Listing {
    /// The function's name.
    pub name: Vec<u8>,
    /// The file with the function's code, or a placeholder such as `[kernel.kallsyms]`; `None` if unknown.
    pub module: Option<Vec<u8>>,
    /// The versions in this listing, hottest first. There is at least one.
    pub versions: Vec<Version>,
    /// How many versions of the function have samples, listed or not.
    pub all_versions: usize,
    /// The cost of the versions in this listing.
    pub costs: Costs,
    /// The inclusive costs that the input states. There is one for each name that the input has for this function,
    /// because callgrind may name each level of recursion separately.
    pub inclusive: Vec<Inclusive>,
    /// The code of the listing: instructions or source lines.
    pub code: Code,
}

/// The inclusive cost of a function as the input states it: the cost of all calls to the function. If there are none,
/// its self cost plus the cost of its calls.
#[derive(Debug, Clone)]
pub struct Inclusive {
    /// The function's name in the input.
    pub name: Vec<u8>,
    /// The function's source file, if known.
    pub file: Option<Vec<u8>>,
    /// The function's inclusive cost.
    pub costs: Costs,
}

/// The calls from one instruction or source line to one function, as the input states them.
#[derive(Debug, Clone)]
pub struct Calls {
    /// The callee's name.
    pub callee: Vec<u8>,
    /// The callee's source file, if known.
    pub file: Option<Vec<u8>>,
    /// The file with the callee's machine code, if known.
    pub module: Option<Vec<u8>>,
    /// How often the calls were executed.
    pub count: u64,
    /// The inclusive cost of the callee in these calls.
    pub costs: Costs,
}

impl Calls {
    /// Adds calls made elsewhere to `all`. Calls to the same function are added up.
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

    /// What identifies the callee: its name, source file and module.
    fn function(&self) -> (Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>) {
        (self.callee.clone(), self.file.clone(), self.module.clone())
    }

    /// The callee and the number of calls, as text in the style of callgrind_annotate.
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
    /// Describes a version except for its cost: number, tier, file, process, address, and when its code was written,
    /// relative to `first` (the time of the first sample).
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

/// One compiled version of a function: a code range.
#[derive(Debug, Clone)]
pub struct Version {
    /// The version's rank by cost among all versions of the function, starting at 1.
    pub number: usize,
    /// The kind of code, and the compiler tier if the runtime states it.
    pub category: Category,
    /// The process that was last sampled in this version.
    pub pid: Pid,
    /// The start address, as in the listing, and the size in bytes; `None` if unknown.
    pub extent: Option<(u64, u64)>,
    /// When the runtime wrote the code. `None` if unknown, and for code in a file.
    pub loaded: Option<Nanos>,
    /// The cost of the samples in this version.
    pub costs: Costs,
    /// The calls that were inlined into this version. Empty if their addresses in the code are known.
    pub expanded: Vec<ExpandedCall>,
    /// The BPF program that the code belongs to; `None` for other code.
    pub bpf: Option<BpfSource>,
}

/// The BPF program to which a function belongs. Several programs may have functions of the same name.
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
    /// The inlined calls as an indented tree in the style of HotSpot's `PrintInlining`. Each line has the bytecode
    /// offset of the call in its caller and the callee's name.
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
        /// The address of the first byte: at run time for JIT code, otherwise as linked in its file.
        addr: u64,
        /// The machine code.
        bytes: Vec<u8>,
        /// The instructions in order.
        lines: Vec<Line>,
        /// The source files that the lines refer to.
        files: Vec<SourceFile>,
    },
    /// Only source lines, with the cost of each. No instructions.
    SourceLines {
        /// The source files that the lines refer to.
        files: Vec<SourceFile>,
        /// Source lines sorted by file and line. Instructions without a known line come first.
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
    /// The offset from the start of the function, in bytes.
    pub offset: u64,
    /// The length of the instruction in bytes.
    pub len: u64,
    /// The instruction as assembly text.
    pub text: String,
    /// The cost of this instruction. `None` if it has no samples.
    pub costs: Option<Costs>,
    /// The address that the instruction refers to; `None` if it refers to none.
    pub target: Option<LineTarget>,
    /// The instruction's source line; `None` if unknown.
    pub source: Option<SourceLine>,
    /// The calls that this instruction makes, if the input states them.
    pub calls: Vec<Calls>,
}

/// An address that an instruction refers to, such as the target of a jump.
#[derive(Debug, Clone)]
pub struct LineTarget {
    /// The address: at run time or as linked, like that of the listing.
    pub addr: u64,
    /// Whether the instruction jumps to the address, calls it, accesses data there, or only contains it as an immediate
    /// value.
    pub kind: TargetKind,
    /// What is at the address.
    pub place: TargetPlace,
}

/// What is at the address of a [`LineTarget`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetPlace {
    /// An offset in the same function, in bytes.
    Inside(u64),
    /// A function by name, and the offset in it in bytes.
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
    /// Only lines of this code, by line number. The compiler stored them in the BPF program, and the recording contains
    /// them.
    Recorded(BTreeMap<u32, String>),
}

/// A line of a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// An index into the files of the [`Code`] that the line belongs to.
    pub file: usize,
    /// The line number, starting at 1.
    pub line: u32,
}

impl Precision {
    /// A sentence about the precision, for text output.
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

/// The words for costs in the output, which depend on whether costs are samples or exact counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words {
    /// The name of a function's self cost: `self samples` or `self costs`.
    pub(crate) own: &'static str,
    /// The name of costs in general: `samples` or `costs`.
    pub(crate) any: &'static str,
    /// The heading of the column with numbers of samples or exact costs.
    pub(crate) head: &'static str,
}

impl Annotation {
    /// True if the costs were counted rather than sampled.
    pub(crate) fn is_exact(&self) -> bool {
        self.events.first().is_some_and(|event| event.precision == Precision::Exact)
    }

    /// The words for this annotation's costs.
    pub(crate) fn words(&self) -> Words {
        match self.is_exact() {
            true => Words { own: "self costs", any: "costs", head: "count" },
            false => Words { own: "self samples", any: "samples", head: "samples" },
        }
    }

    /// The number to show for a cost: the number of samples. For exact costs, it is the cost in the first event, since
    /// costs of different events can't be added.
    pub(crate) fn number(&self, costs: &Costs) -> i64 {
        match self.events.first().filter(|_| self.is_exact()) {
            Some(first) => first.figure(costs.get(first.number)),
            None => i64::try_from(costs.samples()).unwrap_or(i64::MAX),
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
    /// A source file: with all its lines, or with unknown text if `lines` is `None`.
    pub(super) fn new(name: &[u8], lines: Option<Arc<[String]>>) -> Self {
        Self { name: name.to_vec(), text: lines.map(SourceText::File) }
    }

    /// The text of the line with this number, if known.
    pub fn line(&self, line: u32) -> Option<&str> {
        let text = match self.text.as_ref()? {
            SourceText::File(lines) => lines.get(usize::try_from(line).ok()?.checked_sub(1)?),
            SourceText::Recorded(lines) => lines.get(&line),
        };
        text.map(String::as_str)
    }
}
