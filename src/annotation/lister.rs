//! Converts functions to listings: finds their machine code, disassembles it, and names jump targets.

use super::annotated::{BpfSource, Code, Line, LineTarget, Listing, TargetPlace, Version};
use super::costs::Costs;
use super::functions::{CodePlace, Function, Places};
use super::names::Names;
use super::sources::Sources;
use crate::error::{Warning, Warnings};
use crate::model::abi::machine_name;
use crate::model::bpf::{BpfFunction, BpfFunctionId};
use crate::model::chains::PlaceId;
use crate::model::{Addr, Nanos};
use crate::pipeline::Job;
use crate::pipeline::recording::Resolution;
use crate::resolve::code_map::CodeId;
use crate::resolve::disasm::{Disassembler, Instruction, Syntax, Target, TargetKind};
use crate::resolve::dso::DsoKind;
use crate::resolve::symbols::SymbolOptions;
use crate::resolve::symbols::image::Image;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// For each piece of JIT code, when it was first loaded.
fn loads(resolution: &Resolution<'_>) -> FxHashMap<CodeId, Nanos> {
    let mut loads = FxHashMap::default();
    for segment in resolution.sources.map.segments().iter().filter(|segment| segment.from.0 > 0) {
        let first = loads.entry(segment.code).or_insert(segment.from);
        *first = segment.from.min(*first);
    }
    loads
}

/// Makes listings of sampled functions.
pub(super) struct Lister<'a> {
    resolution: &'a Resolution<'a>,
    syntax: Syntax,
    symbols: &'a SymbolOptions,
    names: &'a Names,
    loads: FxHashMap<CodeId, Nanos>,
}

impl<'a> Lister<'a> {
    pub(super) fn new(
        resolution: &'a Resolution<'a>,
        syntax: Syntax,
        symbols: &'a SymbolOptions,
        names: &'a Names,
    ) -> Self {
        Self { resolution, syntax, symbols, names, loads: loads(resolution) }
    }

    /// Makes the listings of the functions with the indexes `picked`, in this order.
    pub(super) fn listings(
        &self,
        picked: &[usize],
        functions: &[Function],
        job: &Job,
        warnings: &mut Warnings,
    ) -> Vec<Listing> {
        let mut machines: BTreeSet<u16> = picked.iter().filter_map(|&index| self.machine(&functions[index])).collect();
        machines.retain(|&machine| !Disassembler::new(machine, self.syntax).is_known());
        for machine in machines {
            warnings.push(Warning::new(format!(
                "{} code is shown as bytes; jitgraft disassembles only x86, AArch64 and 32-bit Arm",
                machine_name(machine)
            )));
        }
        if picked.iter().any(|&index| self.is_in_kernel(&functions[index])) {
            warnings.push(Warning::new(
                "kernel code is shown as linked; a running kernel patches itself (alternatives, static branches, \
                 tracing)",
            ));
        }
        let mut listings: Vec<Listing> = picked.iter().map(|&index| self.listing(index, &functions[index])).collect();
        self.name_targets(picked, functions, &mut listings, job, warnings);
        let mut listed: Vec<(&Function, &mut Listing)> =
            picked.iter().map(|&index| &functions[index]).zip(&mut listings).collect();
        let mut sources = Sources::new(self.resolution, self.symbols, &listed, job, warnings);
        for (function, listing) in &mut listed {
            sources.add_to(function, listing);
        }
        warnings.append(sources.into_warnings());
        listings
    }

    fn is_in_kernel(&self, function: &Function) -> bool {
        matches!(function.place, CodePlace::File(dso, _) if self.resolution.spaces.dsos().get(dso).kind == DsoKind::Kernel)
    }

    /// The machine type of a function's code (ELF's `e_machine`), as stated by its file or source. It may differ from
    /// the recording's.
    fn machine(&self, function: &Function) -> Option<u16> {
        match &function.place {
            CodePlace::Jit(code) => {
                let sources = &self.resolution.sources;
                let origin = sources.map.code(*code).origin;
                let own = sources.machines.get(origin.0 as usize).copied().flatten();
                Some(own.unwrap_or_else(|| self.resolution.machine()))
            }
            CodePlace::File(dso, _) => self.resolution.images.get(*dso).map(Image::machine),
            CodePlace::Bpf(_) => Some(self.resolution.machine()),
            CodePlace::Unknown(_) => None,
        }
    }

    /// The listing of one function, in which targets have no names and instructions no source lines yet.
    fn listing(&self, at: usize, function: &Function) -> Listing {
        let loaded = match function.place {
            CodePlace::Jit(code) => self.loads.get(&code).copied(),
            CodePlace::Bpf(id) => self.resolution.survey.processes.bpf_loaded(id),
            _ => None,
        };
        let (number, all_versions) = self.names.version(at);
        let mut listing = new_listing(function, number, all_versions, self.code(function), loaded);
        match (&function.place, listing.versions.first_mut()) {
            (CodePlace::Jit(code), Some(version)) => {
                let code = self.resolution.sources.map.code(*code);
                version.expanded = code.lines.expanded();
                version.extent = version.extent.or(Some((function.last.base, code.size)));
            }
            (CodePlace::Bpf(id), Some(version)) => {
                version.bpf = self.bpf(*id).map(|function| BpfSource {
                    program: function.program.id,
                    program_name: function.program.name.clone(),
                    function: function.source_name().map(<[u8]>::to_vec),
                });
            }
            _ => {}
        }
        listing
    }

    fn bpf(&self, id: BpfFunctionId) -> Option<&'a BpfFunction> {
        self.resolution.survey.processes.bpf_functions.get(id.0 as usize)
    }

    /// Disassembles a function, or says why its code is missing.
    fn code(&self, function: &Function) -> Code {
        let (bytes, addr) = match &function.place {
            CodePlace::Jit(code) => (self.resolution.sources.map.code(*code).bytes, function.last.base),
            CodePlace::File(dso, extent) => {
                let image = self.resolution.images.get(*dso);
                (image.and_then(|image| image.loaded(extent.clone())), extent.start)
            }
            CodePlace::Bpf(id) => (self.bpf(*id).map(|function| &function.bytes[..]), function.last.base),
            CodePlace::Unknown(why) => return Code::Missing((*why).to_owned()),
        };
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else {
            let why = match function.place {
                CodePlace::Jit(_) => "a log has names but no code; record with a jitdump",
                _ => "the function has no bytes",
            };
            return Code::Missing(why.to_owned());
        };
        let image = match &function.place {
            CodePlace::File(dso, _) => self.resolution.images.get(*dso),
            _ => None,
        };
        let instructions = match image {
            Some(image) => Disassembler::decode_file(image, self.syntax, bytes, addr),
            None => {
                let machine = self.machine(function).unwrap_or_else(|| self.resolution.machine());
                Disassembler::new(machine, self.syntax).decode(bytes, addr)
            }
        };
        let lines = lines(instructions, bytes.len(), addr, &function.at);
        Code::Listed { addr, bytes: bytes.to_vec(), lines, files: Vec::new() }
    }

    /// Sets the names of addresses outside of a function to which its instructions refer. They are looked up in the
    /// process of the function's last sample, and at its time.
    fn name_targets(
        &self,
        picked: &[usize],
        functions: &[Function],
        listings: &mut [Listing],
        job: &Job,
        warnings: &mut Warnings,
    ) {
        let mut places = Places::default();
        let mut wanted: Vec<PlaceId> = Vec::new();
        each_unknown_target(picked, functions, listings, |function, shift, target_addr, _| {
            let (addr, last) = (Addr(target_addr.wrapping_add(shift)), function.last);
            wanted.push(self.resolution.place_at(&mut places, last.pid, last.mode, addr, last.time));
        });
        let named = self.resolution.name(&places, job, warnings);
        let mut wanted = wanted.into_iter();
        each_unknown_target(picked, functions, listings, |_, _, _, place| {
            let Some(at) = wanted.next() else { return };
            named.each(at, |frame| {
                if let Some(name) = frame.name {
                    *place = TargetPlace::Function(name.to_vec(), frame.offset);
                }
            });
        });
    }
}

/// Calls `each` for every target outside of its own function. Arguments: the function, the difference between the
/// run-time address and the listed one, the listed address, and where to store the target's name.
fn each_unknown_target(
    picked: &[usize],
    functions: &[Function],
    listings: &mut [Listing],
    mut each: impl FnMut(&Function, u64, u64, &mut TargetPlace),
) {
    for (&at, listing) in picked.iter().zip(listings) {
        let Code::Listed { addr, lines, .. } = &mut listing.code else { continue };
        let shift = functions[at].last.base.wrapping_sub(*addr);
        for target in lines.iter_mut().filter_map(|line: &mut Line| line.target.as_mut()) {
            // An immediate value may not be an address, so it is taken as it is.
            let shift = if target.kind == TargetKind::Immediate { 0 } else { shift };
            if !matches!(target.place, TargetPlace::Inside(_)) {
                each(&functions[at], shift, target.addr, &mut target.place);
            }
        }
    }
}

/// Creates the listing of one version of a function. `number` is its rank by cost among the function's `all_versions`
/// versions, and `loaded` is when its code was written.
pub(super) fn new_listing(
    function: &Function,
    number: usize,
    all_versions: usize,
    code: Code,
    loaded: Option<Nanos>,
) -> Listing {
    let Function { category, ref costs, last, .. } = *function;
    let extent = match &code {
        Code::Listed { addr, bytes, .. } => Some((*addr, bytes.len() as u64)),
        _ => None,
    };
    let (pid, costs) = (last.pid, costs.clone());
    let version = Version { number, category, pid, extent, loaded, costs, expanded: Vec::new(), bpf: None };
    Listing {
        name: function.name.clone(),
        module: function.module.clone(),
        costs: version.costs.clone(),
        versions: vec![version],
        all_versions,
        inclusive: Vec::new(),
        code,
    }
}

/// Converts `instructions`, which are `len` bytes of code at `addr`, to lines with costs. `at` has the costs by offset;
/// costs at an offset inside an instruction count for that instruction.
pub(super) fn lines(instructions: Vec<Instruction>, len: usize, addr: u64, at: &BTreeMap<u64, Costs>) -> Vec<Line> {
    let code_len = len as u64;
    let mut lines = Vec::with_capacity(instructions.len());
    for Instruction { offset, len, text, target } in instructions {
        let mut sum: Option<Costs> = None;
        for (_, costs) in at.range(offset..offset + len) {
            sum.get_or_insert_default().join(costs);
        }
        let target = target.map(|target| line_target(target, addr, code_len));
        lines.push(Line { offset, len, text, costs: sum, target, source: None, calls: Vec::new() });
    }
    lines
}

/// Classifies what an instruction refers to: an offset in its own function, or an address that is still unknown.
fn line_target(target: Target, code_addr: u64, code_len: u64) -> LineTarget {
    let offset = target.addr.wrapping_sub(code_addr);
    let place = if offset < code_len { TargetPlace::Inside(offset) } else { TargetPlace::Unknown };
    LineTarget { addr: target.addr, kind: target.kind, place }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::costs::Cost;
    use crate::resolve::disasm::{Disassembler, Syntax};

    #[test]
    fn samples_are_at_the_instruction_that_they_are_in() {
        // push %rbp; mov %rsp,%rbp; jmp to the start; call outside the code
        let code = [0x55, 0x48, 0x89, 0xe5, 0xeb, 0xfa, 0xe8, 0, 0, 1, 0];
        let mut costs = Costs::default();
        costs.add(0, Cost { weight: 7, count: 1 });
        let at = BTreeMap::from([(0, costs.clone()), (1, costs.clone()), (3, costs.clone())]);
        let instructions = Disassembler::new(62, Syntax::Att).decode(&code, 0x4000);
        let lines = lines(instructions, code.len(), 0x4000, &at);
        let counts: Vec<_> = lines.iter().map(|line| line.costs.as_ref().map_or(0, Costs::samples)).collect();
        assert_eq!(counts, [1, 2, 0, 0]);
        assert_eq!(lines[2].target.as_ref().unwrap().place, TargetPlace::Inside(0));
        let call = lines[3].target.as_ref().unwrap();
        assert_eq!((call.addr, &call.place), (0x1400b, &TargetPlace::Unknown));
    }
}
