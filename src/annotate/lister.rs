//! Converts functions with costs to listings: finds their machine code, disassembles it, and names jump targets. This
//! works in the same way for samples and for callgrind's exact costs.

use super::costs::Costs;
use super::functions::{Function, FunctionCode};
use super::listing::{BpfSource, Calls, Code, Instruction, Listing, Row, Target, TargetOwner, Version};
use super::machine_code::{CodeFiles, Decoder, MachineCode};
use super::names::Names;
use super::source_lines::SourceLines;
use crate::error::{Warning, Warnings};
use crate::model::abi::machine_name;
use crate::pipeline::Job;
use crate::symbolize::disasm::{self, Disassembler, Syntax, TargetKind};
use crate::symbolize::dso::DsoKind;
use std::collections::{BTreeMap, BTreeSet};

/// Names the addresses outside of a function to which its instructions refer. Each kind of input needs its own way: a
/// recording states what was at an address at which time, a callgrind file only which files were mapped.
pub(super) trait TargetNames {
    /// Sets the owner of each target, if it can be found out.
    fn name_targets(&self, targets: Vec<UnknownTarget<'_>>, job: &Job, warnings: &mut Warnings);
}

/// An address to which an instruction refers, and which is outside of the instruction's own function.
pub(super) struct UnknownTarget<'a> {
    /// The function with the instruction.
    pub(super) function: &'a Function,
    /// The address of the first byte of `function` in the listing: as linked for code in a file, otherwise at run time.
    pub(super) code_addr: u64,
    pub(super) kind: TargetKind,
    /// The address to name. It is as linked if `code_addr` is, and otherwise a run-time address.
    pub(super) addr: u64,
    /// Where to store what is at the address.
    pub(super) owner: &'a mut TargetOwner,
}

/// Makes listings of functions.
pub(super) struct Lister<'a> {
    pub(super) code: &'a CodeFiles<'a>,
    pub(super) names: &'a Names,
    pub(super) targets: &'a dyn TargetNames,
    pub(super) syntax: Syntax,
}

impl Lister<'_> {
    /// Makes the listings of the functions with the indexes `picked`, in this order.
    pub(super) fn list(
        &self,
        picked: &[usize],
        functions: &[Function],
        job: &Job,
        warnings: &mut Warnings,
    ) -> Vec<Listing> {
        let listed: Vec<&Function> = picked.iter().map(|&index| &functions[index]).collect();
        self.warn_about_code(&listed, warnings);
        let mut listings = Vec::with_capacity(picked.len());
        for (&index, function) in picked.iter().zip(&listed) {
            let (number, all_versions) = self.names.version(index);
            listings.push(self.listing(function, number, all_versions));
        }
        // Targets and source lines are looked up for all listings at once, so that there is one lookup per file.
        self.targets.name_targets(unknown_targets(&listed, &mut listings), job, warnings);
        let mut sources = SourceLines::new(self.code, &listed, &listings, job, warnings);
        for (function, listing) in listed.iter().zip(&mut listings) {
            sources.add_to(function, listing);
        }
        warnings.append(sources.into_warnings());
        listings
    }

    /// Warns about code that can't be disassembled, and about kernel code: the running kernel patches itself, so that
    /// code in its file may not be what ran.
    fn warn_about_code(&self, listed: &[&Function], warnings: &mut Warnings) {
        let mut machines: BTreeSet<u16> = BTreeSet::new();
        for function in listed {
            if let Ok(code) = self.code.machine_code(function) {
                machines.insert(code.decoder.machine());
            }
        }
        for machine in machines {
            if !Disassembler::new(machine, self.syntax).is_known() {
                warnings.push(Warning::new(format!(
                    "{} code is shown as bytes; jitgraft disassembles only x86, AArch64 and 32-bit Arm",
                    machine_name(machine)
                )));
            }
        }
        let is_kernel = |function: &&Function| match &function.code {
            FunctionCode::File(dso, _) => self.code.dsos.get(*dso).kind == DsoKind::Kernel,
            _ => false,
        };
        if listed.iter().any(is_kernel) {
            warnings.push(Warning::new(
                "kernel code is shown as it is in the kernel's file, which may differ from what ran: a running kernel \
                 patches itself (alternatives, static branches, tracing)",
            ));
        }
    }

    /// The listing of one version of a function. Names of call targets and source lines are added later. `number` is
    /// the version's rank by cost among the `all_versions` versions of the function. Address and size are taken from
    /// the disassembled code or, if the bytes of JIT code are missing, from the source that names the code.
    fn listing(&self, function: &Function, number: usize, all_versions: usize) -> Listing {
        let (code, rows) = match self.disassemble(function) {
            Ok((code, rows)) => (code, rows),
            Err(why) => (Code::Missing(why), Vec::new()),
        };
        let mut version = Version {
            number,
            category: function.category,
            pid: function.last.pid,
            extent: None,
            loaded: None,
            costs: function.costs.clone(),
            expanded: Vec::new(),
            bpf: None,
        };
        if let Code::Instructions { addr, bytes } = &code {
            version.extent = Some((*addr, bytes.len() as u64));
        }
        match function.code {
            FunctionCode::Jit(id) => {
                let code = self.code.sources.map.code(id);
                version.loaded = self.code.load_times.get(&id).copied();
                version.expanded = code.lines.expanded_calls();
                version.extent = version.extent.or(Some((function.last.base, code.size)));
            }
            FunctionCode::Bpf(id) => {
                version.loaded = self.code.processes.bpf_loaded(id);
                version.bpf = self.code.bpf_function(id).map(|function| BpfSource {
                    program: function.program.id,
                    program_name: function.program.name.clone(),
                    function: function.source_name().map(<[u8]>::to_vec),
                });
            }
            FunctionCode::File(..) | FunctionCode::Unknown(_) => {}
        }
        Listing {
            name: function.name.clone(),
            module: function.module.clone(),
            versions: vec![version],
            all_versions,
            costs: function.costs.clone(),
            inclusive: function.facts.inclusive.clone(),
            code,
            rows,
            files: Vec::new(),
        }
    }

    /// Disassembles a function. The error says why that isn't possible.
    fn disassemble(&self, function: &Function) -> Result<(Code, Vec<Row>), String> {
        let MachineCode { bytes, addr, decoder } = self.code.machine_code(function)?;
        let instructions = match decoder {
            Decoder::Machine(machine) => Disassembler::new(machine, self.syntax).decode(bytes, addr),
            Decoder::File(image) => Disassembler::decode_file(image, self.syntax, bytes, addr),
        };
        let mut rows = rows(instructions, bytes.len(), addr, &function.costs_at);
        // callgrind counts costs at the first byte of an instruction, so its costs show whether the disassembled
        // instructions are those that ran. Samples can't show this: their addresses may be inside an instruction.
        if function.facts.is_exact {
            check_starts(&rows, &function.costs_at)?;
        }
        add_calls(&mut rows, &function.facts.calls);
        Ok((Code::Instructions { addr, bytes: bytes.to_vec() }, rows))
    }
}

/// Fails if the instructions can't be those that were executed, because too many exact costs are at addresses inside
/// an instruction. A few (here: one in 16) are normal: code may jump over a `lock` prefix.
fn check_starts(rows: &[Row], costs_at: &BTreeMap<u64, Costs>) -> Result<(), String> {
    let starts: BTreeSet<u64> = rows.iter().filter_map(|row| Some(row.instruction.as_ref()?.offset)).collect();
    let inside = costs_at.keys().filter(|offset| !starts.contains(offset)).count();
    let all = costs_at.len();
    if inside > all / 16 {
        return Err(format!(
            "the code in the file is not the code that ran: {inside} of {all} addresses with costs are not at the \
             start of an instruction"
        ));
    }
    Ok(())
}

/// Converts `instructions`, which are `code_len` bytes of code at `code_addr`, to rows with costs. Costs at an offset
/// inside an instruction count for that instruction.
fn rows(
    instructions: Vec<disasm::Instruction>,
    code_len: usize,
    code_addr: u64,
    costs_at: &BTreeMap<u64, Costs>,
) -> Vec<Row> {
    let mut rows = Vec::with_capacity(instructions.len());
    for disasm::Instruction { offset, len, text, target } in instructions {
        let mut sum: Option<Costs> = None;
        for (_, costs) in costs_at.range(offset..offset + len) {
            sum.get_or_insert_default().join(costs);
        }
        let target = target.map(|disasm::Target { addr, kind }| {
            let target_offset = addr.wrapping_sub(code_addr);
            let is_inside = target_offset < code_len as u64;
            let owner = if is_inside { TargetOwner::Inside(target_offset) } else { TargetOwner::Unknown };
            Target { addr, kind, owner }
        });
        let instruction = Some(Instruction { offset, len, text, target });
        rows.push(Row { instruction, source: None, costs: sum, calls: Vec::new() });
    }
    rows
}

/// Adds the calls that the input (a callgrind file) states to the rows of the instructions that make them. `calls_at`
/// has the calls by the instruction's offset in the function.
fn add_calls(rows: &mut [Row], calls_at: &BTreeMap<u64, Vec<Calls>>) {
    for row in rows {
        let Some(Instruction { offset, len, .. }) = row.instruction else { continue };
        for (_, calls) in calls_at.range(offset..offset + len) {
            Calls::join(&mut row.calls, calls);
        }
    }
}

/// All addresses to which instructions of the listings refer, except those in the instruction's own function. `listed`
/// has the function of each listing.
fn unknown_targets<'a>(listed: &[&'a Function], listings: &'a mut [Listing]) -> Vec<UnknownTarget<'a>> {
    let mut unknown = Vec::new();
    for (&function, listing) in listed.iter().zip(listings) {
        let Code::Instructions { addr: code_addr, .. } = listing.code else { continue };
        for row in &mut listing.rows {
            let Some(instruction) = &mut row.instruction else { continue };
            if let Some(Target { addr, kind, owner }) = &mut instruction.target
                && *owner == TargetOwner::Unknown
            {
                unknown.push(UnknownTarget { function, code_addr, kind: *kind, addr: *addr, owner });
            }
        }
    }
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotate::costs::Cost;

    #[test]
    fn samples_are_at_the_instruction_that_they_are_in() {
        // push %rbp; mov %rsp,%rbp; jmp to the start; call outside the code
        let code = [0x55, 0x48, 0x89, 0xe5, 0xeb, 0xfa, 0xe8, 0, 0, 1, 0];
        let mut costs = Costs::default();
        costs.add(0, Cost { weight: 7, count: 1 });
        let costs_at = BTreeMap::from([(0, costs.clone()), (1, costs.clone()), (3, costs.clone())]);
        let instructions = Disassembler::new(62, Syntax::Att).decode(&code, 0x4000);
        let rows = rows(instructions, code.len(), 0x4000, &costs_at);
        let counts: Vec<_> = rows.iter().map(|row| row.costs.as_ref().map_or(0, Costs::samples)).collect();
        assert_eq!(counts, [1, 2, 0, 0]);
        let target = |row: &Row| row.instruction.as_ref().and_then(|instruction| instruction.target.clone()).unwrap();
        assert_eq!(target(&rows[2]).owner, TargetOwner::Inside(0));
        let call = target(&rows[3]);
        assert_eq!((call.addr, call.owner), (0x1400b, TargetOwner::Unknown));
        assert!(check_starts(&rows, &BTreeMap::from([(0, costs.clone()), (4, costs.clone())])).is_ok());
        let message = check_starts(&rows, &costs_at).unwrap_err();
        assert!(message.contains("1 of 3 addresses"), "{message}");
    }
}
