//! `formats` lists which formats can be read and written, from the table [`FORMATS`].

use crate::contract::format::Read;
use crate::error::Result;
use crate::formats::{FORMATS, HAS_ALL, LEFT_OUT};
use crate::jit::engine_logs::JIT_LOGS;
use crate::pipeline::Outcome;
use std::io::Write;

/// Sources of names that aren't input formats of their own: they are found automatically while a recording is read.
const AUTOMATIC_SOURCES: &[(&str, &str)] = &[
    ("PE files (ReadyToRun)", ".NET methods compiled ahead of time; also below --symfs"),
    ("BPF programs", "names, machine code and source lines that perf record saved in perf.data"),
    ("running processes", "objects registered with GDB's JIT interface, as in a core dump"),
    ("QEMU guest programs (ELF)", "names for guest-0x… (user mode); pass --guest FILE if the program is not found"),
];

/// Writes the list of formats as text.
pub fn run(out: &mut dyn Write) -> Result<Outcome> {
    for format in FORMATS {
        let reads = if matches!(format.read, Read::No) { "-" } else { "read" };
        let writes = if format.write.is_some() { "write" } else { "-" };
        let named_by = format.rewriter.map_or("-", |by| by.command);
        writeln!(out, "{:<14} {reads:<5} {writes:<6} {named_by:<10} {}", format.name, format.about)?;
    }
    for format in LEFT_OUT {
        writeln!(out, "{:<14} {:<23} {}", format.name, "not in this build", format.about)?;
    }
    if !LEFT_OUT.is_empty() {
        writeln!(out, "\nTo read or write the formats that are not in this build, {HAS_ALL}.")?;
    }
    writeln!(
        out,
        "\nWhere a line says inject, callgrind or script, that command names JIT code in files of this format and leaves \
         everything else in them unchanged."
    )?;
    writeln!(out, "\nBesides jitdumps and perf maps, names of JIT code come from these logs:")?;
    for log in JIT_LOGS {
        writeln!(out, "{:<14} {:<12} {}", log.id, "--jit-log", log.about)?;
    }
    writeln!(out, "\nNames also come from these sources, which jitgraft finds by itself (no option needed):")?;
    for (what, about) in AUTOMATIC_SOURCES {
        writeln!(out, "{what:<27} {about}")?;
    }
    Ok(Outcome::default())
}
