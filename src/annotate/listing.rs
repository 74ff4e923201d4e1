//! A listing: the code of a function as rows of instructions or source lines, with the cost of each row. Text, JSON and
//! the page of `view` are written from these rows.

use super::costs::Costs;
use crate::analysis::category::Category;
use crate::analysis::quantity::{counted, grouped};
use crate::model::code::ExpandedCall;
use crate::model::printable::readable;
use crate::model::{Nanos, Pid};
use crate::symbolize::disasm::TargetKind;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The listed code of a function: one compiled version, or several versions merged.
#[derive(Debug)]
pub struct Listing {
    /// The function's name.
    pub name: Vec<u8>,
    /// The file with the function's code, or a placeholder such as `[kernel.kallsyms]`; `None` if unknown.
    pub module: Option<Vec<u8>>,
    /// The versions in this listing, hottest first. There is at least one.
    pub versions: Vec<Version>,
    /// How many versions of the function have costs, listed or not.
    pub all_versions: usize,
    /// The cost of the versions in this listing.
    pub costs: Costs,
    /// The inclusive costs that the input states. There is one for each name that the input has for this function,
    /// because callgrind may name each level of recursion separately.
    pub inclusive: Vec<Inclusive>,
    /// What the rows stand for.
    pub code: Code,
    /// The rows: all instructions in order of their addresses; or source lines sorted by file and line, after a row for
    /// the instructions whose line is unknown.
    pub rows: Vec<Row>,
    /// The source files that the rows refer to.
    pub files: Vec<SourceFile>,
}

/// What the rows of a listing stand for.
#[derive(Debug)]
pub enum Code {
    /// Every row is an instruction.
    Instructions {
        /// The address of the first byte: at run time for JIT code, otherwise as linked in its file.
        addr: u64,
        /// The machine code.
        bytes: Vec<u8>,
    },
    /// Every row is a source line.
    SourceLines,
    /// There are no rows; the text says why the code isn't available.
    Missing(String),
}

/// An instruction or a source line, with its cost.
#[derive(Debug)]
pub struct Row {
    /// The instruction. `None` if the row stands for a source line.
    pub instruction: Option<Instruction>,
    /// The source line; `None` if unknown.
    pub source: Option<SourceLine>,
    /// The cost of this instruction or line. `None` if it has none.
    pub costs: Option<Costs>,
    /// The calls that this instruction or line makes, if the input states them.
    pub calls: Vec<Calls>,
}

/// A disassembled instruction.
#[derive(Debug)]
pub struct Instruction {
    /// The offset from the start of the function, in bytes.
    pub offset: u64,
    /// The length in bytes.
    pub len: u64,
    /// The assembly text.
    pub text: String,
    /// The address that the instruction refers to; `None` if it refers to none.
    pub target: Option<Target>,
}

/// An address that an instruction refers to, such as the target of a jump.
#[derive(Debug, Clone)]
pub struct Target {
    /// The address: at run time or as linked, like that of the listing.
    pub addr: u64,
    /// Whether the instruction jumps to the address, calls it, accesses data there, or only contains it as an immediate
    /// value.
    pub kind: TargetKind,
    /// What is at the address.
    pub owner: TargetOwner,
}

/// The function to which the address of a [`Target`] belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetOwner {
    /// The listed function itself. Holds the offset of the address from the function's start, in bytes.
    Inside(u64),
    /// Another function. Holds that function's name, and the offset of the address from its start, in bytes.
    Function(Vec<u8>, u64),
    /// Unknown memory.
    Unknown,
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
    /// The start address (at run time for JIT code, otherwise as linked) and the size in bytes; `None` if unknown.
    pub extent: Option<(u64, u64)>,
    /// When the runtime wrote the code. `None` if unknown, and for code in a file.
    pub loaded: Option<Nanos>,
    /// The cost of the samples in this version.
    pub costs: Costs,
    /// The calls that were inlined into this version, if their addresses in the code are unknown. Inlined calls with
    /// known addresses aren't listed here, because the source lines of the instructions show them.
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

/// The inclusive cost of a function as the input states it: the cost of all calls to the function. For a function that
/// nothing calls, it is the self cost plus the cost of the calls that it makes.
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
    /// The called function.
    pub callee: Callee,
    /// How often the calls were executed.
    pub count: u64,
    /// The inclusive cost of the callee in these calls.
    pub costs: Costs,
}

/// A called function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Callee {
    /// The function's name.
    pub name: Vec<u8>,
    /// The callee's source file, if known.
    pub file: Option<Vec<u8>>,
    /// The file with the callee's machine code, if known.
    pub module: Option<Vec<u8>>,
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
    /// Only some lines of the file, by line number: those that the compiler stored in a BPF program along with the code
    /// made from them. The recording contains them.
    Recorded(BTreeMap<u32, String>),
}

/// A line of a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// An index into the files of the [`Listing`] that the line belongs to.
    pub file: usize,
    /// The line number, starting at 1.
    pub line: u32,
}

impl Listing {
    /// The hottest version in this listing.
    pub fn hottest(&self) -> &Version {
        &self.versions[0]
    }

    /// The machine code. Empty if the rows aren't instructions.
    pub fn bytes(&self) -> &[u8] {
        match &self.code {
            Code::Instructions { bytes, .. } => bytes,
            Code::SourceLines | Code::Missing(_) => &[],
        }
    }

    /// Finds the row of the instruction that contains this offset, in bytes from the start of the function. `None` if
    /// the rows aren't instructions, or if the offset is after the last instruction.
    pub fn find_row(&self, offset: u64) -> Option<usize> {
        // The number of rows before the one with the offset. If rows aren't instructions, the number of all rows.
        let row = self.rows.partition_point(|row| match &row.instruction {
            Some(instruction) => instruction.offset + instruction.len <= offset,
            None => true,
        });
        (row < self.rows.len()).then_some(row)
    }

    /// Finds the row of the instruction that starts at this offset. `None` if there is none.
    pub fn find_start(&self, offset: u64) -> Option<usize> {
        let row = self.find_row(offset)?;
        let instruction = self.rows[row].instruction.as_ref()?;
        (instruction.offset == offset).then_some(row)
    }

    /// Describes a version except for its cost: number, tier, file, process, address, and when its code was written,
    /// relative to `first` (the time of the first sample).
    pub(super) fn describe_version(&self, version: &Version, first: Option<Nanos>) -> Vec<String> {
        let Version { number, category, pid, extent, loaded, .. } = *version;
        let mut parts = Vec::new();
        if self.all_versions > 1 {
            parts.push(format!("version {number} of {}", self.all_versions));
        }
        parts.push(category.name().to_owned());
        parts.extend(self.module.as_ref().map(|module| readable(module).into_owned()));
        parts.extend(version.bpf.as_ref().map(BpfSource::text));
        parts.push(format!("pid {pid}"));
        if let Some((addr, size)) = extent {
            parts.push(format!("{addr:#x}, {}", counted(size, "byte")));
        }
        if let (Some(loaded), Some(first)) = (loaded, first) {
            let nanos = loaded.0 as f64 - first.0 as f64;
            let side = if nanos < 0.0 { "before" } else { "after" };
            parts.push(format!("written {:.3} s {side} the first sample", nanos.abs() / 1e9));
        }
        parts
    }
}

impl Row {
    /// True if the input states a cost or a call for this row.
    pub(super) fn has_data(&self) -> bool {
        self.costs.is_some() || !self.calls.is_empty()
    }
}

impl Version {
    /// The inlined calls as an indented tree in the style of HotSpot's `PrintInlining`. Each line has the bytecode
    /// offset of the call in its caller and the callee's name.
    pub fn inlined_call_lines(&self) -> impl Iterator<Item = String> {
        self.expanded.iter().map(|call| {
            let indent = "  ".repeat(call.depth as usize);
            format!("{indent}@ {} {}", call.bytecode, readable(&call.function))
        })
    }
}

impl BpfSource {
    /// The BPF program and the function in words: `BPF program 7 NAME, function F`.
    fn text(&self) -> String {
        let mut text = format!("BPF program {}", self.program);
        if !self.program_name.is_empty() {
            text += &format!(" {}", readable(&self.program_name));
        }
        if let Some(function) = &self.function {
            text += &format!(", function {}", readable(function));
        }
        text
    }
}

impl Inclusive {
    /// The function as `file:name`, for text output.
    pub(super) fn label(&self) -> String {
        function_label(self.file.as_deref(), &self.name)
    }
}

impl Calls {
    /// Adds the calls in `others` to those in `all`. Calls to the same function are added up.
    pub(super) fn join(all: &mut Vec<Self>, others: &[Self]) {
        // For each callee, the index of its calls in `all`.
        let mut indexes: FxHashMap<Callee, usize> = FxHashMap::default();
        indexes.extend(all.iter().enumerate().map(|(index, calls)| (calls.callee.clone(), index)));
        for other in others {
            let index = *indexes.entry(other.callee.clone()).or_insert(all.len());
            match all.get_mut(index) {
                Some(calls) => {
                    calls.count = calls.count.saturating_add(other.count);
                    calls.costs.join(&other.costs);
                }
                None => all.push(other.clone()),
            }
        }
    }

    /// The callee and the number of calls, as text in the style of callgrind_annotate.
    pub(super) fn label(&self) -> String {
        format!("{} ({}x)", function_label(self.callee.file.as_deref(), &self.callee.name), grouped(self.count))
    }
}

/// `file:function`, or only the function if its file is unknown.
fn function_label(file: Option<&[u8]>, name: &[u8]) -> String {
    match file {
        Some(file) => format!("{}:{}", readable(file), readable(name)),
        None => readable(name).into_owned(),
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
