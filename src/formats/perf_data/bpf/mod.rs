//! Machine code, source lines and names of the BPF programs in a recording.
//!
//! KSYMBOL records show where the code of each function was, and when. The rest is in two features that perf writes at
//! the end: BPF_PROG_INFO has the kernel's description of each program ([`info`]), BPF_BTF has names and source text
//! ([`btf`]). Neither has times. BPF_EVENT records show when a program with some ID and hash (tag) was loaded; each
//! directly follows the KSYMBOL records of the program's functions. [`lives`] matches the symbols with the programs.
//!
//! perf asks the kernel about a program when it sees its BPF_EVENT. A program that is already gone by then is only
//! known by name; so are all programs if perf didn't run as root or ran with `--no-bpf-event`. Code that belongs to no
//! program (trampolines, dispatchers) only has a KSYMBOL record.
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
use lives::{KnownFunction, ProgramLives, SymbolMoment};
use std::sync::Arc;

/// Collects program events and kernel symbols with their times, record by record.
#[derive(Debug, Default)]
pub(super) struct BpfSurvey {
    /// KSYMBOL and BPF_EVENT records with their times, in file order.
    events: Vec<(Nanos, SurveyEvent)>,
}

#[derive(Debug, Clone, Copy)]
enum SurveyEvent {
    /// A kernel symbol was added or removed. Holds its index in the list of kernel symbols.
    Symbol(usize),
    Program(BpfEvent),
}

impl BpfSurvey {
    /// Adds a KSYMBOL record. `index` is the symbol's index in the list of kernel symbols.
    pub(super) fn add_symbol(&mut self, time: Nanos, index: usize) {
        self.events.push((time, SurveyEvent::Symbol(index)));
    }

    pub(super) fn add_event(&mut self, time: Nanos, event: BpfEvent) {
        self.events.push((time, SurveyEvent::Program(event)));
    }

    /// Returns the functions of all programs, and a count of the tables that could not be read. Also sets the field
    /// `bpf` of the kernel symbols to the function that each refers to. `symbols` must be in the order in which they
    /// were added.
    pub(super) fn finish(self, recording: &Recording, symbols: &mut [KernelSymbol]) -> (Vec<BpfFunction>, Skipped) {
        let mut skipped = Skipped::new("BPF table");
        let (functions, known_functions) = read_functions(recording, &mut skipped);
        if functions.is_empty() {
            return (functions, skipped);
        }
        // From here on, an event's position in this list, which is sorted by time, is used instead of its time.
        let mut events = self.events;
        events.sort_by_key(|(time, _)| *time);
        let (mut lives, mut moments) = (ProgramLives::default(), Vec::new());
        for (position, (_, event)) in events.into_iter().enumerate() {
            match event {
                SurveyEvent::Program(event) => lives.add_event(position, event),
                SurveyEvent::Symbol(index) => {
                    if let Some(symbol) = symbols.get(index) {
                        moments.push(SymbolMoment { addr: symbol.addr.0, position, index });
                    }
                }
            }
        }
        lives.add_functions(&known_functions);
        moments.sort_unstable();
        // A symbol is valid until the next one at the same address.
        for (index, moment) in moments.iter().enumerate() {
            let next = moments.get(index + 1).filter(|next| next.addr == moment.addr);
            let next_position = next.map_or(usize::MAX, |next| next.position);
            let symbol = &mut symbols[moment.index];
            // A record that removes a symbol has no function of its own. It is in `moments` only because it ends the
            // time of the symbol before it.
            if !symbol.unregistered {
                symbol.bpf = lives.find_function(moment, next_position, &symbol.name);
            }
        }
        (functions, skipped)
    }
}

/// Reads the functions of all programs in file order, and for each the values by which KSYMBOL records identify it.
fn read_functions(recording: &Recording, skipped: &mut Skipped) -> (Vec<BpfFunction>, Vec<KnownFunction>) {
    let (mut functions, mut known_functions) = (Vec::new(), Vec::new());
    let endian = recording.header.endian;
    let find_section =
        |feature| recording.features.get(&feature).map(|section| Cursor::new(&section.bytes, section.offset, endian));
    let Some(programs) = find_section(Feature::BPF_PROG_INFO) else { return (functions, known_functions) };
    let types_by_id = find_section(Feature::BPF_BTF).map(|section| btf::read(section, skipped)).unwrap_or_default();
    info::for_each_program(programs, skipped, |info| {
        let types = types_by_id.get(&info.btf);
        let strings = types.map(|types| Arc::clone(&types.strings)).unwrap_or_default();
        let program = Arc::new(BpfProgram { id: info.id, name: info.name.to_vec(), strings });
        // Source lines are offsets in the strings of the BTF object, so they mean nothing without it.
        let lines = if types.is_some() { info.lines() } else { vec![Vec::new(); info.functions.len()] };
        for (index, (function, lines)) in info.functions.iter().zip(lines).enumerate() {
            let FunctionInfo { addr, bytes, tag, type_id } = *function;
            // The symbol of a program's first function contains the program's hash if the kernel wrote it, but the
            // function's own hash if perf wrote it for a program that was already loaded.
            let tags = [tag, (index == 0).then_some(info.tag)];
            let id = BpfFunctionId(functions.len() as u32);
            known_functions.push(KnownFunction { id, program: (info.id, info.tag), addr, tags });
            let name = type_id.zip(types).and_then(|(id, types)| types.function(id));
            let (program, bytes) = (Arc::clone(&program), bytes.to_vec());
            functions.push(BpfFunction { program, name, addr: Addr(addr), bytes, lines });
        }
    });
    (functions, known_functions)
}
