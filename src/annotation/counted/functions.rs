//! Assigns the costs in a callgrind file to functions, by looking up each address in JIT code or in the ELF files that
//! were mapped.

use super::super::annotated::{Calls, Inclusive, SourceLine};
use super::super::costs::{Cost, Costs};
use super::super::functions::{CodePlace, Function, Moment, without_code};
use super::super::options::AnnotateOptions;
use crate::analysis::category::Category;
use crate::error::Warnings;
use crate::model::stacks::{Frame, FrameKind, NameId, UNKNOWN, Weight};
use crate::model::{Addr, Nanos, Pid};
use crate::pipeline::Job;
use crate::records::callgrind::{CostedCalls, CostedFunction, CostedInstruction, InstructionCosts, StatedFunction};
use crate::resolve::code_map::CodeId;
use crate::resolve::dso::{Dso, DsoId, DsoKind, Dsos};
use crate::resolve::symbols::functions::extents;
use crate::resolve::symbols::image::Image;
use crate::resolve::symbols::images::Images;
use crate::resolve::symbols::{Base, Request};
use crate::sources::Loaded;
use object::{Object, ObjectSection};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The costs in a callgrind file, and everything needed to find the machine code that caused them.
pub(super) struct Booked<'a, 'data> {
    pub(super) costs: &'a InstructionCosts,
    pub(super) loaded: &'a Loaded<'data>,
    /// The machine code of JIT functions that a runtime wrote to separate files, next to its perf map.
    pub(super) raw: &'a FxHashMap<CodeId, &'a [u8]>,
    pub(super) objects: &'a Objects,
    pub(super) images: &'a Images<'a>,
    pub(super) pid: Pid,
}

/// What a callgrind file states about a function in addition to its costs.
#[derive(Debug, Default)]
pub(super) struct Stated {
    /// The source line of each instruction, by the instruction's offset in the function. The line's file is an index
    /// into the files of the callgrind file.
    pub(super) lines: BTreeMap<u64, SourceLine>,
    /// The calls that each instruction makes, by the instruction's offset in the function.
    pub(super) calls: BTreeMap<u64, Vec<Calls>>,
    /// The inclusive costs that the callgrind file states for this function.
    pub(super) inclusive: Vec<Inclusive>,
}

/// Address ranges of functions in files, as linked, by file and an address in the function.
type Extents = FxHashMap<(DsoId, u64), Range<u64>>;

/// What identifies a function: its code, name and module.
type FunctionKey = (CodePlace, Vec<u8>, Option<Vec<u8>>);

/// callgrind's placeholder for an unknown file, and for memory that no file backs.
const UNKNOWN_FILE: &[u8] = b"???";

/// A function at an address, and the offset of the address in it. Costs are added to the function with the same key, if
/// there is already one.
struct FirstAddress {
    function: Function,
    offset: u64,
}

impl<'a> Booked<'a, '_> {
    /// All functions that have costs, hottest first, and what the callgrind file states about each.
    pub(super) fn functions(
        &self,
        options: &AnnotateOptions,
        job: &Job,
        warnings: &mut Warnings,
    ) -> (Vec<Function>, Vec<Stated>) {
        let extents = self.extents(options, job, warnings);
        let mut list: Vec<(Function, Stated)> = Vec::new();
        let mut numbers = FxHashMap::default();
        for costed in &self.costs.functions {
            for (&addr, instruction) in &costed.at {
                let FirstAddress { function, offset } = self.find(costed, addr, &extents);
                let number = *numbers.entry(key(&function)).or_insert(list.len());
                if number == list.len() {
                    list.push((function, Stated::default()));
                }
                add(&mut list[number], offset, instruction);
            }
        }
        // Calls and inclusive costs are only kept for functions that have self costs.
        let place = |costed: &CostedFunction, addr: u64| {
            let FirstAddress { function, offset } = self.find(costed, addr, &extents);
            numbers.get(&key(&function)).map(|number| (*number, offset))
        };
        for costed in &self.costs.functions {
            for (&addr, calls) in &costed.calls_at {
                if let Some((number, offset)) = place(costed, addr) {
                    let calls: Vec<Calls> = calls.iter().map(|calls| self.calls(calls)).collect();
                    Calls::join(list[number].1.calls.entry(offset).or_default(), &calls);
                }
            }
        }
        for stated in &self.costs.stated {
            let costed = &self.costs.functions[stated.function];
            let entry = stated.entry.or_else(|| costed.at.keys().next().copied());
            if let Some((number, _)) = entry.and_then(|entry| place(costed, entry)) {
                let (name, costs) = (stated.name.clone(), costs_of(stated.inclusive()));
                list[number].1.inclusive.push(Inclusive { name, file: self.file(stated), costs });
            }
        }
        list.sort_by_cached_key(|(function, _)| Reverse(function.costs.heat(Weight::Period)));
        list.into_iter().unzip()
    }

    /// The source file of a function, if known.
    fn file(&self, stated: &StatedFunction) -> Option<Vec<u8>> {
        let file = self.costs.files.get(stated.file)?;
        Some(file).filter(|file| *file != UNKNOWN_FILE).cloned()
    }

    /// Converts calls, and names the callee. callgrind can't name JIT code; such a callee gets the name of the code at
    /// its address.
    fn calls(&self, calls: &CostedCalls) -> Calls {
        let stated = &self.costs.stated[calls.callee];
        let costed = &self.costs.functions[stated.function];
        let is_jit = self.objects.number(&costed.object).is_none();
        let jit = stated.entry.filter(|_| is_jit).and_then(|entry| self.jit(entry));
        Calls {
            callee: jit.map_or_else(|| stated.name.clone(), |found| found.function.name),
            file: self.file(stated),
            module: (!is_jit).then(|| costed.object.clone()),
            count: calls.count,
            costs: costs_of(&calls.costs),
        }
    }

    /// Looks up the address range of each function with costs, in files that exist on this machine.
    fn extents(&self, options: &AnnotateOptions, job: &Job, warnings: &mut Warnings) -> Extents {
        let mut by_file: BTreeMap<DsoId, BTreeSet<u64>> = BTreeMap::new();
        for function in &self.costs.functions {
            if let Some(dso) = self.objects.number(&function.object).filter(|dso| self.images.get(*dso).is_some()) {
                by_file.entry(dso).or_default().extend(function.at.keys().chain(function.calls_at.keys()));
            }
        }
        let mut all = Extents::default();
        for (dso, addresses) in by_file {
            let request = Request { dso, offsets: addresses.into_iter().collect(), base: Base::Linked(0) };
            let found = extents(&request, self.images, &options.recording.symbols, &job.pool, warnings);
            let found = request.offsets.iter().zip(found);
            all.extend(found.filter_map(|(&addr, extent)| Some(((dso, addr), extent?))));
        }
        all
    }

    /// Finds the function at an address for which callgrind recorded costs in `costed`. Looks in the file that was
    /// mapped there, otherwise in JIT code.
    fn find(&self, costed: &CostedFunction, addr: u64, extents: &Extents) -> FirstAddress {
        let Some(dso) = self.objects.number(&costed.object) else {
            return self.jit(addr).unwrap_or_else(|| {
                let place = CodePlace::Unknown("no dump or map covers its addresses");
                FirstAddress { function: self.function(&costed.name, None, FrameKind::Anonymous, place), offset: addr }
            });
        };
        let (place, offset) = match (self.images.get(dso), extents.get(&(dso, addr))) {
            (_, Some(extent)) => (CodePlace::File(dso, extent.clone()), addr - extent.start),
            (Some(image), None) => {
                // If a function jumps into JIT code, callgrind assigns the cost of that code to the function. Addresses
                // of JIT code then occur among those of the function.
                let is_outside = code(image, addr..addr.saturating_add(1)).is_none();
                if let Some(found) = is_outside.then(|| self.jit(addr)).flatten() {
                    return found;
                }
                (CodePlace::Unknown("no symbol marks the start of the function"), addr)
            }
            (None, None) => (CodePlace::Unknown("its file is missing"), addr),
        };
        FirstAddress { function: self.function(&costed.name, Some(&costed.object), FrameKind::User, place), offset }
    }

    /// The JIT code at an address; `None` if no source of JIT code has any there.
    fn jit(&self, addr: u64) -> Option<FirstAddress> {
        let hit = self.loaded.map.lookup(self.pid, Addr(addr), None)?;
        let piece = self.loaded.map.code(hit.code);
        let place = match self.jit_bytes(hit.code) {
            Some(_) => CodePlace::Jit(hit.code),
            None => CodePlace::Unknown(without_code(&self.loaded.accounts, piece.origin)),
        };
        let mut function = self.function(piece.name, None, FrameKind::Jit, place);
        function.last.base = addr.wrapping_sub(hit.offset);
        Some(FirstAddress { function, offset: hit.offset })
    }

    /// The machine code of a JIT function; `None` if unknown.
    pub(super) fn jit_bytes(&self, id: CodeId) -> Option<&'a [u8]> {
        self.loaded.map.code(id).bytes.or_else(|| self.raw.get(&id).copied())
    }

    /// Creates a function that has no costs yet.
    fn function(&self, name: &[u8], module: Option<&[u8]>, kind: FrameKind, place: CodePlace) -> Function {
        Function {
            name: if name.is_empty() { UNKNOWN } else { name }.to_vec(),
            module: module.map(<[u8]>::to_vec),
            category: Category::of(&Frame::new(NameId(0), kind)),
            place,
            costs: Costs::default(),
            at: BTreeMap::new(),
            last: Moment { pid: self.pid, time: Nanos(0), ..Moment::default() },
        }
    }
}

fn key(function: &Function) -> FunctionKey {
    (function.place.clone(), function.name.clone(), function.module.clone())
}

fn add((function, stated): &mut (Function, Stated), offset: u64, instruction: &CostedInstruction) {
    let costs = costs_of(&instruction.costs);
    function.costs.join(&costs);
    function.at.entry(offset).or_default().join(&costs);
    if let Some(line) = u32::try_from(instruction.line).ok().filter(|line| *line > 0) {
        stated.lines.insert(offset, SourceLine { file: instruction.file, line });
    }
}

/// Converts a callgrind file's costs of an instruction. Costs are exact, so each is also stored as the number of
/// samples. Negative costs are those of a difference.
fn costs_of(costs: &[i64]) -> Costs {
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
    of: FxHashMap<Vec<u8>, DsoId>,
}

impl Objects {
    /// Interns all object files. A name without a directory is that of a file in `beside`, the callgrind file's
    /// directory, where `jitgraft callgrind` writes its own object.
    pub(super) fn new(costs: &InstructionCosts, beside: Option<&Path>) -> Self {
        let mut objects = Self::default();
        let names = costs.functions.iter().map(|function| &function.object);
        for name in names.filter(|name| !name.is_empty() && *name != UNKNOWN_FILE) {
            let path = match beside.filter(|_| !name.contains(&b'/')) {
                Some(beside) => beside.join(std::ffi::OsStr::from_bytes(name)).as_os_str().as_bytes().to_vec(),
                None => name.clone(),
            };
            let id = objects.dsos.intern(Dso { path, build_id: None, file: None, kind: DsoKind::File });
            objects.of.insert(name.clone(), id);
        }
        objects
    }

    /// The ID of the object file with this name; `None` for memory that no file backs.
    pub(super) fn number(&self, name: &[u8]) -> Option<DsoId> {
        self.of.get(name).copied()
    }
}

/// The machine code at an address range as linked. Objects that `jitgraft callgrind` wrote have only sections and no
/// segments, so both are tried.
pub(super) fn code(image: &Image, extent: Range<u64>) -> Option<&[u8]> {
    image.loaded(extent.clone()).or_else(|| {
        let object = image.object().ok()?;
        let sections = object.sections().filter(|section| section.address() > 0);
        sections.into_iter().find_map(|section| {
            let len = extent.end.checked_sub(extent.start)?;
            section.data_range(extent.start, len).ok().flatten()
        })
    })
}
