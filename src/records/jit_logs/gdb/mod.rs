//! GDB's JIT interface: objects that a process registered for debuggers, in a core dump of it.
//!
//! A program with a JIT compiler that supports the interface (LLVM's MCJIT and ORC, and so PostgreSQL, Julia and
//! others; Wasmtime with debugging information) keeps a list of ELF objects in its memory, one for each piece that it
//! compiled:
//!
//! ```c
//! struct jit_descriptor { uint32_t version, action_flag; struct jit_code_entry *relevant_entry, *first_entry; };
//! struct jit_code_entry { struct jit_code_entry *next, *prev; const char *symfile_addr; uint64_t symfile_size; };
//! extern struct jit_descriptor __jit_debug_descriptor; // version 1
//! ```
//!
//! Facts that the reader must know:
//! * **There are not times.** It is what was registered when the core was made. Objects that were unregistered before
//!   (LLVM does when it frees their code) are not in it, and the list does not give since when the others are there. An
//!   entry is mostly put in front: of two objects for one address the one nearer to the head is the newer.
//! * The descriptor is found by its shape and not by its symbol: it is in a file's writable data, which is in every
//!   core, and leads to an entry that leads to an ELF header. So neither the program nor its libraries are needed.
//! * Objects are relocatable, with the addresses where the code went in `sh_addr`: symbols count from their section,
//!   and what refers to other sections has still to be relocated, as GDB does itself (MCJIT, ORC). Or they are
//!   linked images with some symbols that count from their section all the same (Wasmtime).
//! * Machine code is where the symbols state, in the core's own memory.
//! * A core may be sparse and of many gigabytes: only headers, the writable data of files, the list and the objects are
//!   looked at. The memory for an object is at most some 100 times its size, what is kept of all of them at most that
//!   of the core's bytes.
//!
//! See "JIT Compilation Interface" in GDB's documentation; `elf(5)` and `core(5)`; for notes, Linux' `fs/binfmt_elf.c`.

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
pub use snapshot::{SnapshotOf, snapshot};

use super::code_log::{CodeLog, JitLog, LogClock, LogCode, LogProcess};
use crate::error::{Error, Result};
use core_file::Core;
use lines::Registered;
use symfile::Symfile;
use unwind::UnwindRecords;

/// A core dump, or a copy of the same parts of a process that runs.
pub(super) const CORE: JitLog = JitLog {
    name: "GDB JIT objects",
    id: "core",
    about: "core dumps: objects that a process registered with GDB's JIT interface (LLVM: lli, PostgreSQL; Wasmtime with debug info), \
            by gcore PID or as the kernel leaves it; with lines, inlined calls and machine code",
    files: &["core", "core.PID", "core-PID", "core.*.PID", "core.*.PID.*"],
    sniff: core_file::is_core,
    read,
    process: Some(process),
};

/// Reads the objects of a core. It fails if absent.
fn read(bytes: &[u8]) -> Result<CodeLog> {
    let core = Core::parse(bytes)?;
    let mut log = CodeLog::new(LogClock::None, "registered object");
    let list = list::find(&core, &core.data_of_files());
    (log.pid, log.machine, log.torn) = (core.pid, Some(core.machine), core.is_cut);
    for damage in list.damage {
        log.skipped.add(damage);
    }
    if list.entries.is_empty() && log.skipped.count() == 0 {
        return Err(Error::new("nothing is registered in it with GDB's JIT interface"));
    }
    let (mut budget, mut registered) = (bytes.len(), Registered::default());
    // The newest is first.
    for entry in list.entries.iter().rev() {
        let range = core.range(entry.symfile, entry.size).filter(|range| range.len() <= budget);
        let Some(range) = range else {
            let said = format!("the object at {:#x} is not wholly in the core", entry.symfile);
            log.skipped.add(Error::new(said));
            continue;
        };
        budget -= range.len();
        match Symfile::parse(&bytes[range.clone()], core.machine) {
            Ok(symfile) => {
                let number = symfile.has_lines().then(|| registered.push(range, core.machine));
                add(&symfile, number, &core, &mut log);
            }
            Err(error) => log.skipped.add(error.at(range.start as u64)),
        }
    }
    if !registered.objects.is_empty() {
        log.positions = Some(Box::new(registered));
    }
    Ok(log)
}

/// Takes the functions of an object; `number` is that of one that has lines.
fn add(symfile: &Symfile<'_>, number: Option<u32>, core: &Core<'_>, log: &mut CodeLog) {
    let mut records = UnwindRecords::of(symfile);
    for function in symfile.functions() {
        let unwind = records.as_mut().and_then(|records| records.of_function(&function));
        let unwind = unwind.map(|unwind| log.texts.push(&unwind));
        let place = number.map(|number| log.texts.push(&lines::place(number, function.addr)));
        let name = log.texts.intern(function.name);
        let memory = core.range(function.addr, function.size).unwrap_or_default();
        let memory = (memory.start as u64, memory.end as u64);
        let code = LogCode { memory, place, unwind, ..LogCode::new(name, function.addr, function.size) };
        log.load(None, code);
    }
}

/// The process of a core, by its notes alone.
fn process(bytes: &[u8]) -> Option<LogProcess> {
    let core = Core::parse(bytes).ok()?;
    Some(LogProcess { pid: core.pid, files: core.files })
}
