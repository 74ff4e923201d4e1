//! Assigns the costs in a callgrind file to functions, by looking up each address in JIT code or in the ELF files that
//! were mapped.

use super::super::costs::{Cost, Costs};
use super::super::functions::{Function, FunctionCode, FunctionList, InputFacts, Moment, without_code};
use super::super::lister::{TargetNames, UnknownTarget};
use super::super::listing::{Callee, Calls, Inclusive, SourceLine, TargetOwner};
use super::super::machine_code::{CodeFiles, linked_bytes};
use super::super::source_lines::UNKNOWN_FILE;
use crate::analysis::category::Category;
use crate::error::Warnings;
use crate::formats::callgrind::{
    CostedCalls, CostedFunction, CostedInstruction, InstructionCosts, StatedFunction, function_kind,
};
use crate::model::stacks::{Frame, FrameKind, NameId, UNKNOWN, Weight};
use crate::model::{Addr, Nanos, Pid};
use crate::pipeline::Job;
use crate::symbolize::disasm::TargetKind;
use crate::symbolize::dso::{Dso, DsoId, DsoKind, Dsos};
use crate::symbolize::symbols::functions::extents;
use crate::symbolize::symbols::{self, Base, Request, SymbolOptions};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The costs in a callgrind file, and where the machine code that caused them is.
pub(super) struct CallgrindCosts<'a> {
    pub(super) costs: &'a InstructionCosts,
    /// The files with machine code and source lines.
    pub(super) code: &'a CodeFiles<'a>,
    pub(super) objects: &'a Objects,
    pub(super) pid: Pid,
    /// The kind of unnamed code in memory without a file.
    pub(super) anonymous: FrameKind,
}

/// For the object file and an address in it, the address range of the function there. All addresses are as linked.
type Extents = FxHashMap<(DsoId, u64), Range<u64>>;

/// A function at an address, and the offset of the address in it.
struct FoundFunction {
    function: Function,
    offset: u64,
}

impl CallgrindCosts<'_> {
    /// All functions that have costs, hottest first. Each address with costs is looked up to find its function, because
    /// callgrind may have added costs of JIT code to another function.
    pub(super) fn functions(&self, job: &Job, warnings: &mut Warnings) -> Vec<Function> {
        let extents = self.extents(job, warnings);
        let mut functions = FunctionList::default();
        for recorded in &self.costs.functions {
            for (&addr, instruction) in &recorded.instructions {
                let FoundFunction { function, offset } = self.find_function(recorded, addr, &extents);
                let index = functions.insert(function);
                add_costs(&mut functions.list[index], offset, instruction);
            }
        }
        // Only functions with self costs are listed, so calls and inclusive costs of other functions are left out.
        for recorded in &self.costs.functions {
            for (&addr, calls) in &recorded.calls {
                let FoundFunction { function, offset } = self.find_function(recorded, addr, &extents);
                if let Some(function) = functions.find(&function) {
                    let calls: Vec<Calls> = calls.iter().map(|calls| self.convert_calls(calls)).collect();
                    Calls::join(function.facts.calls.entry(offset).or_default(), &calls);
                }
            }
        }
        // The file lists the parts of a function that come from different source files or recursion levels one by one,
        // each with inclusive costs of its own.
        for part in &self.costs.stated {
            let recorded = &self.costs.functions[part.function];
            // The file only states a part's entry address if something calls the part. If not, any address with costs
            // will do, because all of them are in the same function.
            let Some(addr) = part.entry.or_else(|| recorded.instructions.keys().next().copied()) else { continue };
            let FoundFunction { function, .. } = self.find_function(recorded, addr, &extents);
            if let Some(function) = functions.find(&function) {
                let costs = exact_costs(part.inclusive());
                let inclusive = Inclusive { name: part.name.clone(), file: self.source_file(part), costs };
                function.facts.inclusive.push(inclusive);
            }
        }
        let mut list = functions.list;
        list.sort_by_cached_key(|function| Reverse(function.costs.heat(Weight::Period)));
        list
    }

    /// The source file of a function, if known.
    fn source_file(&self, stated: &StatedFunction) -> Option<Vec<u8>> {
        let file = self.costs.files.get(stated.file)?;
        Some(file).filter(|file| *file != UNKNOWN_FILE).cloned()
    }

    /// Converts the calls from one instruction to one callee. callgrind can't name JIT code; such a callee gets the
    /// name of the code at its address.
    fn convert_calls(&self, calls: &CostedCalls) -> Calls {
        let stated = &self.costs.stated[calls.callee];
        let object = &self.costs.functions[stated.function].object;
        // Memory that no file backs can only contain JIT code.
        let is_jit = self.objects.id(object).is_none();
        let mut name = stated.name.clone();
        if is_jit
            && let Some(entry) = stated.entry
            && let Some(found) = self.find_jit(entry)
        {
            name = found.function.name;
        }
        let module = if is_jit { None } else { Some(object.clone()) };
        let callee = Callee { name, file: self.source_file(stated), module };
        Calls { callee, count: calls.count, costs: exact_costs(&calls.costs) }
    }

    /// Looks up the address range of the function at each address with costs or calls. Addresses that aren't in a file
    /// on this machine, or for which no symbol states a range, are left out.
    fn extents(&self, job: &Job, warnings: &mut Warnings) -> Extents {
        let mut by_file: BTreeMap<DsoId, BTreeSet<u64>> = BTreeMap::new();
        for function in &self.costs.functions {
            if let Some(dso) = self.objects.id(&function.object)
                && self.code.images.get(dso).is_some()
            {
                by_file.entry(dso).or_default().extend(function.instructions.keys().chain(function.calls.keys()));
            }
        }
        let mut all = Extents::default();
        for (dso, addresses) in by_file {
            // `Linked(0)`: callgrind's addresses are as linked already.
            let request = Request { dso, offsets: addresses.into_iter().collect(), base: Base::Linked(0) };
            // One result for each offset; `None` where no symbol covers it.
            let results = extents(&request, self.code.images, self.code.symbols, &job.pool, warnings);
            for (&addr, extent) in request.offsets.iter().zip(results) {
                if let Some(extent) = extent {
                    all.insert((dso, addr), extent);
                }
            }
        }
        all
    }

    /// Finds the function at an address for which callgrind recorded costs in the function `recorded`. Looks in the
    /// object file that was mapped there, otherwise in JIT code. If the code isn't found, the `code` of the returned
    /// function says why, and the returned offset is the address itself.
    fn find_function(&self, recorded: &CostedFunction, addr: u64, extents: &Extents) -> FoundFunction {
        let CostedFunction { name, object, .. } = recorded;
        let Some(dso) = self.objects.id(object) else {
            if let Some(found) = self.find_jit(addr) {
                return found;
            }
            let code = FunctionCode::Unknown("no dump or map covers its addresses");
            let kind = function_kind(name, None, self.anonymous);
            return FoundFunction { function: self.new_function(name, None, kind, code), offset: addr };
        };
        let mut offset = addr;
        let code = if let Some(extent) = extents.get(&(dso, addr)) {
            offset = addr - extent.start;
            FunctionCode::File(dso, extent.clone())
        } else if let Some(image) = self.code.images.get(dso) {
            // If a function jumps into JIT code, callgrind adds the cost of that code to the function, under the
            // addresses of the JIT code. Those aren't in the function's object file.
            let is_outside = linked_bytes(image, addr..addr.saturating_add(1)).is_none();
            if is_outside && let Some(found) = self.find_jit(addr) {
                return found;
            }
            FunctionCode::Unknown("no symbol marks the start of the function")
        } else {
            FunctionCode::Unknown("its file is missing")
        };
        let kind = function_kind(name, Some(object), self.anonymous);
        FoundFunction { function: self.new_function(name, Some(object), kind, code), offset }
    }

    /// The JIT code at an address; `None` if no source of JIT code has any there.
    fn find_jit(&self, addr: u64) -> Option<FoundFunction> {
        // callgrind records no times, so the last code at the address is taken.
        let hit = self.code.sources.map.lookup(self.pid, Addr(addr), None)?;
        let code_range = self.code.sources.map.code(hit.code);
        let code = match self.code.jit_bytes(hit.code) {
            Some(_) => FunctionCode::Jit(hit.code),
            None => FunctionCode::Unknown(without_code(&self.code.sources.accounts, code_range.origin)),
        };
        let mut function = self.new_function(code_range.name, None, FrameKind::Jit, code);
        // The address of the function's first byte.
        function.last.base = addr.wrapping_sub(hit.offset);
        Some(FoundFunction { function, offset: hit.offset })
    }

    /// Creates a function that has no costs yet.
    fn new_function(&self, name: &[u8], module: Option<&[u8]>, kind: FrameKind, code: FunctionCode) -> Function {
        Function {
            name: if name.is_empty() { UNKNOWN } else { name }.to_vec(),
            module: module.map(<[u8]>::to_vec),
            // The category doesn't depend on the frame's name, so any name will do.
            category: Category::from_frame(&Frame::new(NameId(0), kind)),
            code,
            costs: Costs::default(),
            costs_at: BTreeMap::new(),
            last: Moment { pid: self.pid, time: Nanos(0), ..Moment::default() },
            facts: InputFacts { is_exact: true, ..InputFacts::default() },
        }
    }

    /// Names the functions at addresses (as linked) of a file. Addresses at which no symbol states a name are left out.
    fn file_functions(
        &self,
        dso: DsoId,
        addresses: BTreeSet<u64>,
        job: &Job,
        warnings: &mut Warnings,
    ) -> BTreeMap<u64, TargetOwner> {
        let options = SymbolOptions { lines: false, inlines: false, ..self.code.symbols.clone() };
        // `Linked(0)`: the addresses are as linked already.
        let request = [Request { dso, offsets: addresses.into_iter().collect(), base: Base::Linked(0) }];
        let parts = symbols::resolve(&request, self.code.images, &options, &job.pool, warnings);
        // `parts` are consecutive pieces of one list, which has the frames of each requested address. In `zip`, the
        // range must come before the addresses: when it ends, `zip` stops without taking an address, which belongs to
        // the next part.
        let mut addresses = request[0].offsets.iter();
        let mut owners = BTreeMap::new();
        for part in &parts {
            for (index, &addr) in (0..part.len()).zip(&mut addresses) {
                if let Some(frame) = part.get(index).outermost()
                    && let (Some(name), Some(offset)) = (frame.name, frame.offset)
                {
                    owners.insert(addr, TargetOwner::Function(part.text(name).to_vec(), offset));
                }
            }
        }
        owners
    }
}

impl TargetNames for CallgrindCosts<'_> {
    /// Names what is at the addresses to which code refers. Code in a file refers to addresses as linked, which can
    /// only be looked up in that file. Other code refers to run-time addresses, which are looked up in JIT code.
    fn name_targets(&self, targets: Vec<UnknownTarget<'_>>, job: &Job, warnings: &mut Warnings) {
        let mut by_file: BTreeMap<DsoId, BTreeSet<u64>> = BTreeMap::new();
        for target in &targets {
            // An immediate value may not be an address at all, so it isn't looked up.
            if let FunctionCode::File(dso, _) = target.function.code
                && target.kind != TargetKind::Immediate
            {
                by_file.entry(dso).or_default().insert(target.addr);
            }
        }
        let mut owners: FxHashMap<DsoId, BTreeMap<u64, TargetOwner>> = FxHashMap::default();
        for (dso, addresses) in by_file {
            owners.insert(dso, self.file_functions(dso, addresses, job, warnings));
        }
        let map = &self.code.sources.map;
        for target in targets {
            if let FunctionCode::File(dso, _) = target.function.code {
                if let Some(owner) = owners.get(&dso).and_then(|owners| owners.get(&target.addr)) {
                    *target.owner = owner.clone();
                }
            } else if let Some(hit) = map.lookup(self.pid, Addr(target.addr), None) {
                let name = self.code.symbols.display_name(map.code(hit.code).name);
                *target.owner = TargetOwner::Function(name.into_owned(), hit.offset);
            }
        }
    }
}

/// Adds the costs of an instruction to its function.
fn add_costs(function: &mut Function, offset: u64, instruction: &CostedInstruction) {
    let costs = exact_costs(&instruction.costs);
    function.costs.join(&costs);
    function.costs_at.entry(offset).or_default().join(&costs);
    if let Ok(line) = u32::try_from(instruction.line)
        && line > 0
    {
        function.facts.lines.insert(offset, SourceLine { file: instruction.file, line });
    }
}

/// Converts the costs of an instruction in a callgrind file. The file has no samples, so numbers of samples are set to
/// the absolute costs, which are above 0 wherever there is a cost. Costs are negative where the file is the difference
/// of two profiles.
fn exact_costs(costs: &[i64]) -> Costs {
    let mut sum = Costs::default();
    for (event, &cost) in costs.iter().enumerate() {
        sum.add(event, Cost { weight: cost, count: cost.unsigned_abs() });
    }
    sum
}

/// The object files that the `ob=` lines of a callgrind file name.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) dsos: Dsos,
    ids: FxHashMap<Vec<u8>, DsoId>,
}

impl Objects {
    /// Interns all object files. Object names without a slash are looked up in `directory`, the callgrind file's own:
    /// that is where `jitgraft callgrind` writes the object with the JIT code.
    pub(super) fn new(costs: &InstructionCosts, directory: Option<&Path>) -> Self {
        let mut objects = Self::default();
        for function in &costs.functions {
            let name = &function.object;
            if name.is_empty() || name == UNKNOWN_FILE {
                continue;
            }
            let path = match directory {
                Some(directory) if !name.contains(&b'/') => {
                    directory.join(std::ffi::OsStr::from_bytes(name)).as_os_str().as_bytes().to_vec()
                }
                _ => name.clone(),
            };
            let id = objects.dsos.intern(Dso { path, build_id: None, file: None, kind: DsoKind::File });
            objects.ids.insert(name.clone(), id);
        }
        objects
    }

    /// The ID of the object file with this name; `None` for memory that no file backs.
    pub(super) fn id(&self, name: &[u8]) -> Option<DsoId> {
        self.ids.get(name).copied()
    }
}
