//! `formats`: what is read and written, from the one table.

use crate::error::Result;
use crate::formats::format::Read;
use crate::formats::jit_logs::JIT_LOGS;
use crate::formats::{FORMATS, HAS_ALL, LEFT_OUT};
use crate::pipeline::Outcome;
use std::io::Write;

/// Writes the table as text.
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
        writeln!(out, "\nnot in this build: {HAS_ALL}.")?;
    }
    writeln!(
        out,
        "\ninject, callgrind, script: the command that gives such a file its names of JIT code and leaves all else as it is."
    )?;
    writeln!(out, "\nNames of JIT code are read from jitdumps and perf maps, and from logs:")?;
    for log in JIT_LOGS {
        writeln!(out, "{:<14} {:<12} {}", log.id, "--jit-log", log.about)?;
    }
    Ok(Outcome::default())
}
