//! The BPF programs of a recording: machine code, source lines, names.
//!
//! KSYMBOL records show where the code of each function lay, and when. Everything else is in two features that perf
//! writes when it ends: BPF_PROG_INFO has what the kernel reported each program ([`info`]), BPF_BTF the names and the
//! source text ([`btf`]). They know no times; BPF_EVENT records show when a program of a number and hash (tag) was
//! loaded, right behind the KSYMBOL records of its functions ([`lives`] puts the three together).
//!
//! perf queries the kernel for a program when it sees its BPF_EVENT: one that was gone by then there is no more than a
//! name, and so of all where it did not run as root or was reported `--no-bpf-event`. Code that belongs to no program
//! (trampolines, dispatchers) has a KSYMBOL record only.
//!
//! Layouts: `write_bpf_prog_info` and `write_bpf_btf` in tools/perf/util/header.c, `struct bpf_prog_info` in
//! include/uapi/linux/bpf.h, Documentation/bpf/btf.rst.

mod btf;
mod info;
mod lives;
#[cfg(test)]
mod tests;

use super::record::BpfEvent;
use super::{Feature, Recording};
use crate::bytes::cursor::Cursor;
use crate::error::Skipped;
use crate::model::bpf::{BpfFunction, BpfFunctionId, BpfProgram};
use crate::model::process::KernelSymbol;
use crate::model::{Addr, Nanos};
use info::FunctionInfo;
use lives::{KnownFunction, Lives, SymbolMoment};
use std::sync::Arc;

/// Collects the order of events of programs and symbols, record by record.
#[derive(Debug, Default)]
pub(super) struct BpfSurvey {
    happened: Vec<(Nanos, Happened)>,
}

/// The content of a record.
#[derive(Debug, Clone, Copy)]
enum Happened {
    /// The kernel's symbol, by the order of their records.
    Symbol(usize),
    Program(BpfEvent),
}

impl BpfSurvey {
    /// The symbol that is at this place of the list.
    pub(super) fn symbol(&mut self, time: Nanos, index: usize) {
        self.happened.push((time, Happened::Symbol(index)));
    }

    pub(super) fn event(&mut self, time: Nanos, event: BpfEvent) {
        self.happened.push((time, Happened::Program(event)));
    }

    /// All functions, noted at the symbols that they have; tables that could not be read, beside them. The symbols are
    /// as they were reported for.
    pub(super) fn finish(self, recording: &Recording, symbols: &mut [KernelSymbol]) -> (Vec<BpfFunction>, Skipped) {
        let mut skipped = Skipped::new("BPF table");
        let (functions, known) = functions(recording, &mut skipped);
        if functions.is_empty() {
            return (functions, skipped);
        }
        let mut happened = self.happened;
        happened.sort_by_key(|(time, _)| *time);
        let (mut lives, mut moments) = (Lives::default(), Vec::new());
        for (position, (_, what)) in happened.into_iter().enumerate() {
            match what {
                Happened::Program(event) => lives.event(position, event),
                Happened::Symbol(index) => {
                    if let Some(symbol) = symbols.get(index) {
                        moments.push(SymbolMoment { addr: symbol.addr.0, position, index });
                    }
                }
            }
        }
        lives.settle(&known);
        moments.sort_unstable();
        for (at, moment) in moments.iter().enumerate() {
            let next = moments.get(at + 1).filter(|next| next.addr == moment.addr);
            let until = next.map_or(usize::MAX, |next| next.position);
            let symbol = &mut symbols[moment.index];
            if !symbol.unregistered {
                symbol.bpf = lives.function(moment, until, &symbol.name);
            }
        }
        (functions, skipped)
    }
}

/// The functions of all programs, in the order of the file.
fn functions(recording: &Recording, skipped: &mut Skipped) -> (Vec<BpfFunction>, Vec<KnownFunction>) {
    let (mut functions, mut known) = (Vec::new(), Vec::new());
    let endian = recording.header.endian;
    let section =
        |feature| recording.features.get(&feature).map(|section| Cursor::new(&section.bytes, section.offset, endian));
    let Some(programs) = section(Feature::BPF_PROG_INFO) else { return (functions, known) };
    let types = section(Feature::BPF_BTF).map(|section| btf::read(section, skipped)).unwrap_or_default();
    info::each(programs, skipped, |info| {
        let types = types.get(&info.btf);
        let strings = types.map(|types| Arc::clone(&types.strings)).unwrap_or_default();
        let program = Arc::new(BpfProgram { id: info.id, name: info.name.to_vec(), strings });
        let lines = types.map(|_| info.lines()).unwrap_or_default();
        let lines = lines.into_iter().chain(std::iter::repeat_with(Vec::new));
        for (at, (function, lines)) in info.functions.iter().zip(lines).enumerate() {
            let FunctionInfo { addr, bytes, tag, type_id } = *function;
            // For the first one the kernel writes the program's hash; perf its own, of programs that were there before.
            let tags = [tag, (at == 0).then_some(info.tag)];
            let id = BpfFunctionId(functions.len() as u32);
            known.push(KnownFunction { id, program: (info.id, info.tag), addr, tags });
            let name = type_id.zip(types).and_then(|(id, types)| types.function(id));
            let (program, bytes) = (Arc::clone(&program), bytes.to_vec());
            functions.push(BpfFunction { program, name, addr: Addr(addr), bytes, lines });
        }
    });
    (functions, known)
}
