//! The functions that have costs, with the cost of each address. Samples ([`super::samples`]) and callgrind files
//! ([`super::callgrind`]) are both turned into these.

use super::costs::Costs;
use super::listing::{Calls, Inclusive, SourceLine};
use crate::analysis::category::Category;
use crate::jit::{Account, Kind};
use crate::model::bpf::BpfFunctionId;
use crate::model::code::OriginId;
use crate::model::process::CpuMode;
use crate::model::{Nanos, Pid};
use crate::symbolize::code_map::CodeId;
use crate::symbolize::dso::DsoId;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// One compiled version of a function: a code range of JIT code, or a symbol in a file.
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub(super) name: Vec<u8>,
    pub(super) module: Option<Vec<u8>>,
    pub(super) category: Category,
    pub(super) code: FunctionCode,
    /// The cost of the whole function, without its callees.
    pub(super) costs: Costs,
    /// The cost of each address, by its offset in the function in bytes.
    pub(super) costs_at: BTreeMap<u64, Costs>,
    /// When and where the function was sampled last. For callgrind files, which have no samples, only process and
    /// address are set.
    pub(super) last: Moment,
    /// What the input states about the function in addition to costs. Empty for samples.
    pub(super) facts: InputFacts,
}

/// Where a function's machine code is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum FunctionCode {
    /// In a jitdump or another source of JIT code.
    Jit(CodeId),
    /// In an ELF file, at these addresses as linked.
    File(DsoId, Range<u64>),
    /// In the recording itself: it contains the code of BPF programs.
    Bpf(BpfFunctionId),
    /// Not available; the text says why.
    Unknown(&'static str),
}

/// The process, time, address and CPU mode of a function's last sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Moment {
    pub(super) pid: Pid,
    pub(super) time: Nanos,
    /// The run-time address of the function's first byte.
    pub(super) base: u64,
    pub(super) mode: CpuMode,
}

/// What a callgrind file states about a function in addition to its costs.
#[derive(Debug, Clone, Default)]
pub(super) struct InputFacts {
    /// True if the costs were counted and not sampled, so that each belongs to the first byte of an instruction.
    pub(super) is_exact: bool,
    /// The source line of each instruction, by the instruction's offset in the function. The line's file is an index
    /// into the files of the callgrind file.
    pub(super) lines: BTreeMap<u64, SourceLine>,
    /// The calls that each instruction makes, by the instruction's offset in the function.
    pub(super) calls: BTreeMap<u64, Vec<Calls>>,
    /// The inclusive costs of the function, one entry for each name under which the file lists it.
    pub(super) inclusive: Vec<Inclusive>,
}

/// An offset in the code of one of the functions that have costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FunctionOffset {
    /// The function's index in the list of functions.
    pub(super) function: usize,
    /// The offset from the function's start, in bytes.
    pub(super) offset: u64,
}

/// A list in which each function occurs once. Two functions are the same if they have the same code, name and module.
#[derive(Debug, Default)]
pub(super) struct FunctionList {
    pub(super) list: Vec<Function>,
    indexes: FxHashMap<FunctionKey, usize>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FunctionKey {
    code: FunctionCode,
    name: Vec<u8>,
    module: Option<Vec<u8>>,
}

impl FunctionKey {
    fn new(function: &Function) -> Self {
        let Function { code, name, module, .. } = function;
        Self { code: code.clone(), name: name.clone(), module: module.clone() }
    }
}

impl FunctionList {
    /// The index of this function. Adds the function if it isn't in the list yet.
    pub(super) fn insert(&mut self, function: Function) -> usize {
        let index = *self.indexes.entry(FunctionKey::new(&function)).or_insert(self.list.len());
        if index == self.list.len() {
            self.list.push(function);
        }
        index
    }

    /// The function in the list that is the same as this one. `None` if there is none.
    pub(super) fn find(&mut self, function: &Function) -> Option<&mut Function> {
        let index = *self.indexes.get(&FunctionKey::new(function))?;
        self.list.get_mut(index)
    }
}

/// Explains why the machine code of a JIT function isn't available, although a source (`origin`) lists the function.
pub(super) fn without_code(accounts: &[Account], origin: OriginId) -> &'static str {
    match accounts.get(origin.0 as usize).map(|account| account.kind) {
        Some(Kind::Log(_)) => "the log that names this function has no code; record with a jitdump",
        _ => "the perf map that names this function has no code; record with a jitdump",
    }
}
