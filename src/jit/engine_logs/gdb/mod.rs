//! Reads GDB's JIT interface: objects that a process registered for debuggers, found in a core dump of it.
//!
//! A program with a JIT compiler that supports this interface (LLVM's MCJIT and ORC, and thus PostgreSQL, Julia and
//! others; Wasmtime with debug information) keeps a list of ELF objects in its memory, one for each compiled piece:
//!
//! ```c
//! struct jit_descriptor { uint32_t version, action_flag; struct jit_code_entry *relevant_entry, *first_entry; };
//! struct jit_code_entry { struct jit_code_entry *next, *prev; const char *symfile_addr; uint64_t symfile_size; };
//! extern struct jit_descriptor __jit_debug_descriptor; // version 1
//! ```
//!
//! What to know about it:
//! * **There are no times.** The list shows what was registered when the core was made. It doesn't contain objects that
//!   were unregistered before (LLVM does that when it frees their code), nor say since when the others exist. New
//!   entries are usually added at the front, so of two objects at the same address, the one nearer to the head is
//!   newer.
//! * The descriptor is found by its content, not by its symbol. It is in the writable data of some file, which every
//!   core contains, and it leads to an entry that leads to an ELF header. Thus neither the program nor its libraries
//!   are needed.
//! * Objects may be relocatable, with the final addresses of the code in `sh_addr` (MCJIT, ORC). Symbols are then
//!   relative to their section, and references to other sections must still be relocated, as GDB does. Or they are
//!   linked images of which some symbols are relative to their section nevertheless (Wasmtime).
//! * The machine code is in the core's memory, at the addresses of the symbols.
//! * A core may be sparse and many gigabytes long. Only headers, writable data of files, the list and the objects are
//!   read. Processing an object takes at most about 100 times its size in memory; what is kept of all objects is at
//!   most the size of the core.
//!
//! See "JIT Compilation Interface" in GDB's documentation, `elf(5)` and `core(5)`; for notes, Linux's
//! `fs/binfmt_elf.c`.

mod core_file;
#[cfg(test)]
mod core_tests;
mod lines;
mod list;
mod snapshot;
mod symfile;
#[cfg(test)]
mod tests;
mod unwind;

pub use list::Memory;
pub use snapshot::{SnapshotProcess, snapshot};

use super::code_log::{CodeLog, JitLog, LogClock, LogCode, LogProcess};
use crate::error::{Error, Result};
use core_file::Core;
use lines::ObjectsWithLines;
use symfile::Symfile;
use unwind::UnwindRecords;

/// The table entry for GDB's JIT interface. Its files are core dumps, or copies of the relevant memory of a running
/// process.
pub(super) const CORE: JitLog = JitLog {
    name: "GDB JIT objects",
    id: "core",
    about: "core dumps (gcore PID, or from a crash) with objects registered with GDB's JIT interface (LLVM: lli, \
            PostgreSQL; Wasmtime with debug info): names, lines, inlined calls and machine code",
    files: &["core", "core.PID", "core-PID", "core.*.PID", "core.*.PID.*"],
    sniff: core_file::is_core,
    read,
    find_process: Some(find_process),
};

/// Reads the objects that the process of a core dump had registered. Fails if there are none.
fn read(bytes: &[u8]) -> Result<CodeLog> {
    let core = Core::parse(bytes)?;
    let mut log = CodeLog::new(LogClock::None, "registered object");
    let list = list::find(&core, &core.ranges_to_search());
    (log.pid, log.machine, log.torn) = (core.pid, Some(core.machine), core.is_cut);
    for damage in list.damage {
        log.skipped.add(damage);
    }
    // If a list was damaged from its first entry on, the log is empty, and the damage is reported instead.
    if list.entries.is_empty() && log.skipped.count() == 0 {
        return Err(Error::new("contains no code that was registered with GDB's JIT interface"));
    }
    // The objects together may not be larger than the file, so that a damaged list can't refer to the same bytes again
    // and again.
    let (mut budget, mut with_lines) = (bytes.len(), ObjectsWithLines::default());
    // The list begins with the newest entry. It has to be added last, because code that is added later replaces earlier
    // code at the same address.
    for entry in list.entries.iter().rev() {
        let range = core.range(entry.symfile, entry.size).filter(|range| range.len() <= budget);
        let Some(range) = range else {
            let message = format!(
                "the object at {:#x} is incomplete in the core dump, or its entry in the list is damaged",
                entry.symfile
            );
            log.skipped.add(Error::new(message));
            continue;
        };
        budget -= range.len();
        match Symfile::parse(&bytes[range.clone()], core.machine) {
            Ok(symfile) => {
                let number = symfile.has_lines().then(|| with_lines.push(range, core.machine));
                add_object(&symfile, number, &core, &mut log);
            }
            Err(error) => log.skipped.add(error.at_offset(range.start as u64)),
        }
    }
    if !with_lines.objects.is_empty() {
        log.line_decoder = Some(Box::new(with_lines));
    }
    Ok(log)
}

/// Adds the functions of an object to the log. `number` is the object's number in [`ObjectsWithLines`] if it has lines.
fn add_object(symfile: &Symfile<'_>, number: Option<u32>, core: &Core<'_>, log: &mut CodeLog) {
    let mut records = UnwindRecords::read(symfile);
    for function in symfile.functions() {
        let unwind = records.as_mut().and_then(|records| records.convert(&function));
        let unwind = unwind.map(|unwind| log.texts.push(&unwind));
        // The key has the object's number and the function's address. By these, the function's lines are found when
        // they are needed.
        let position_key = number.map(|number| log.texts.push(&lines::encode_key(number, function.addr)));
        let name = log.texts.intern(function.name);
        // Where the function's machine code is in the core dump; an empty range if it isn't there.
        let memory = core.range(function.addr, function.size).unwrap_or_default();
        let memory = (memory.start as u64, memory.end as u64);
        let code = LogCode { memory, position_key, unwind, ..LogCode::new(name, function.addr, function.size) };
        log.load(None, code);
    }
}

/// Finds the process of a core dump, without reading the registered objects.
fn find_process(bytes: &[u8]) -> Option<LogProcess> {
    let core = Core::parse(bytes).ok()?;
    Some(LogProcess { pid: core.pid, files: core.files })
}
