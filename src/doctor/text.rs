//! Prints a diagnosis as text.

use super::callgrind::CountedDiagnosis;
use super::context::RecordedStacks;
use super::finding::Finding;
use super::recording::{Diagnosis, ProcessDiagnosis};
use super::running::LiveDiagnosis;
use super::source::describe_source;
use super::tally::percent;
use crate::analysis::quantity::{counted, grouped};
use crate::error::Result;
use crate::model::printable::readable;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

/// Prints the diagnosis of a recording: what was recorded and how many frames have a name, the findings, the processes
/// with JIT code, frames in BPF programs, and minor findings.
pub(crate) fn write(diagnosis: &Diagnosis, out: &mut dyn Write) -> Result<()> {
    let file = readable(diagnosis.file.as_os_str().as_bytes());
    let Diagnosis { samples, frames, named, .. } = diagnosis;
    let events = diagnosis.events.join(", ");
    writeln!(
        out,
        "{file}: {samples} samples of {}, {}; {named} of {frames} frames have a name ({:.2}%)",
        readable(events.as_bytes()),
        describe_stacks(diagnosis.stacks),
        percent(*named as f64, *frames)
    )?;
    if let Some(origin) = diagnosis.origin.sentence() {
        writeln!(out, "{origin}")?;
    }
    for shares in diagnosis.shares.iter().filter(|shares| shares.whole > 0) {
        writeln!(out, "{}: {shares}", readable(shares.event.as_bytes()))?;
    }
    write_count(&diagnosis.findings, "share of samples", out)?;
    write_list(&diagnosis.findings, out)?;
    write_processes(&diagnosis.processes, out)?;
    if diagnosis.bpf.all > 0 {
        writeln!(out)?;
        write_wrapped(&diagnosis.bpf.sentence(), 2, out)?;
    }
    write_minor(&diagnosis.minor, "share of samples", out)
}

/// Prints the minor problems. Their corrected commands are left out, because nobody records again for a minor problem.
/// `figure` describes the percentage that is printed beside each of them.
fn write_minor(minor: &[Finding], figure: &str, out: &mut dyn Write) -> Result<()> {
    if !minor.is_empty() {
        writeln!(out, "\nMinor or expected, with the {figure} affected:")?;
    }
    for finding in minor {
        writeln!(out, "  {:>5.2}%  {}", finding.share.percent, finding.cause())?;
        if !finding.remedy.is_empty() {
            write_wrapped(&format!("          → {}", finding.remedy), 12, out)?;
        }
    }
    Ok(())
}

/// Prints the number of findings as the heading of their list. `figure` describes the percentage that is printed beside
/// each of them; empty if none is printed.
fn write_count(findings: &[Finding], figure: &str, out: &mut dyn Write) -> Result<()> {
    match (findings.len(), figure) {
        (0, _) => writeln!(out, "No problems found.")?,
        (1, "") => writeln!(out, "One finding:")?,
        (1, figure) => writeln!(out, "One finding, with the {figure} affected:")?,
        (count, "") => writeln!(out, "{count} findings:")?,
        (count, figure) => writeln!(out, "{count} findings, the worst first, each with the {figure} affected:")?,
    }
    Ok(())
}

/// Prints the findings with their remedies, in the given order. A command that was printed with an earlier finding
/// isn't repeated.
fn write_list(findings: &[Finding], out: &mut dyn Write) -> Result<()> {
    let mut printed_commands: Vec<&str> = Vec::new();
    for finding in findings {
        // All lines of a cause or remedy are indented like its text: by 9 or 11 columns.
        writeln!(out)?;
        write_wrapped(&format!("{:>6.1}%  {}", finding.share.percent, finding.cause()), 9, out)?;
        match finding.command.as_deref() {
            Some(command) if printed_commands.contains(&command) => {
                writeln!(out, "         → record again as above")?;
            }
            // The command isn't wrapped, so that it can be copied as one line.
            Some(command) => {
                writeln!(out, "         → record again:\n           {command}")?;
                printed_commands.push(command);
            }
            None => {}
        }
        let arrow = if finding.command.is_some() { " " } else { "→" };
        write_wrapped(&format!("         {arrow} {}", finding.remedy), 11, out)?;
    }
    Ok(())
}

/// Prints a text in lines of at most 100 columns, broken at spaces. All lines except the first are indented by `indent`
/// spaces.
fn write_wrapped(text: &str, indent: usize, out: &mut dyn Write) -> Result<()> {
    /// Maximum number of columns of a line, so that it is easy to read.
    const WIDTH: usize = 100;
    let mut room = WIDTH;
    // Several spaces in a row, as in an indented text, stay as they are: between two of them is an empty word.
    for (number, word) in text.split(' ').enumerate() {
        let len = word.chars().count();
        if number > 0 && len + 1 > room {
            write!(out, "\n{:indent$}{word}", "")?;
            room = (WIDTH - indent).saturating_sub(len);
        } else {
            let blank = if number == 0 { "" } else { " " };
            write!(out, "{blank}{word}")?;
            room = room.saturating_sub(len + blank.len());
        }
    }
    Ok(writeln!(out)?)
}

/// The number of processes that are listed one by one. The rest are summed by runtime.
const LISTED: usize = 8;

/// Prints the processes with the most JIT frames one by one, and sums of the other processes by runtime.
fn write_processes(processes: &[ProcessDiagnosis], out: &mut dyn Write) -> Result<()> {
    /// Sums over several processes.
    #[derive(Default)]
    struct Sum {
        count: usize,
        named: u64,
        frames: u64,
    }
    let mut by_size: Vec<&ProcessDiagnosis> = processes.iter().collect();
    by_size.sort_by_key(|process| Reverse(process.named + process.unnamed));
    let (listed, others) = by_size.split_at(by_size.len().min(LISTED));
    // Print them in the order in which the diagnosis lists them, not by size.
    for process in processes {
        let is_listed = listed.iter().any(|one| std::ptr::eq(*one, process));
        if is_listed {
            write_process(process, out)?;
        }
    }
    let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
    for process in others {
        let runtime = process.process.runtime.map_or("no runtime recognized", |runtime| runtime.name);
        let sum = sums.entry(runtime).or_default();
        sum.count += 1;
        sum.named += process.named;
        sum.frames += process.named + process.unnamed;
    }
    for (runtime, Sum { count, named, frames }) in sums {
        writeln!(out, "\n{count} more processes, {runtime}: {named} of {frames} frames of JIT code have a name")?;
    }
    Ok(())
}

/// Prints a process with its sources of names.
fn write_process(process: &ProcessDiagnosis, out: &mut dyn Write) -> Result<()> {
    let runtime = process.process.runtime.map_or("no runtime recognized", |runtime| runtime.name);
    // If a process has no named code, no known runtime and no source of names, it is listed only because samples are in
    // memory that no file backs. Nothing shows that a JIT compiler wrote the code there.
    let runs_jit = process.named > 0 || process.process.runtime.is_some() || !process.sources.is_empty();
    let code = if runs_jit { "JIT code" } else { "unnamed code (no file)" };
    let (pid, comm) = (process.process.printable_pid(), readable(process.process.comm.as_bytes()));
    let (named, whole) = (process.named, process.named + process.unnamed);
    writeln!(out, "\nProcess {pid} ({comm}), {runtime}: {named} of {whole} frames of {code} have a name")?;
    for (account, source) in &process.sources {
        writeln!(out, "  {}", describe_source(account, Some(source)))?;
        if let Some(remark) = &account.remark {
            write_wrapped(&format!("    {}", readable(remark.as_bytes())), 4, out)?;
        }
    }
    Ok(())
}

/// Prints the diagnosis of a running process: its memory for JIT code, the files with names that it has written so far,
/// the findings, and the command that records it.
pub(crate) fn write_running(diagnosis: &LiveDiagnosis, out: &mut dyn Write) -> Result<()> {
    let who = diagnosis.process.describe();
    let mib = diagnosis.jit_bytes as f64 / f64::from(1 << 20);
    writeln!(out, "{who} is running, with {mib:.1} MiB of memory for JIT code")?;
    if let Some(inner) = diagnosis.inner {
        writeln!(out, "It runs in a container as process {inner}.")?;
    }
    for source in &diagnosis.sources {
        let (noun, path) = (source.kind.name(), readable(source.path.as_os_str().as_bytes()));
        let functions = counted(source.codes as u64, "function");
        writeln!(out, "  {noun} {path}: {functions} so far, {} bytes", source.bytes)?;
    }
    if let Some(leaves) = diagnosis.at_end {
        writeln!(out, "  It will write {leaves} when it exits normally.")?;
    }
    // There are no samples, so the findings have no percentages (`""`).
    write_count(&diagnosis.findings, "", out)?;
    for finding in &diagnosis.findings {
        // Remedies for a JVM mention `jcmd PID`. Here the process is known, so its ID can replace the placeholder.
        let jcmd = format!("jcmd {}", diagnosis.process.pid);
        writeln!(out)?;
        write_wrapped(&format!("  {}", finding.cause()), 2, out)?;
        if let Some(command) = &finding.command {
            writeln!(out, "  → start it again:\n    {command}")?;
        }
        write_wrapped(&format!("  → {}", finding.remedy.replace("jcmd PID", &jcmd)), 4, out)?;
    }
    Ok(writeln!(out, "\nRecord it with {}", diagnosis.record)?)
}

/// Prints the diagnosis of a callgrind file: how much of its cost is in unnamed JIT code, the findings, the files that
/// may name the code, and minor findings.
pub(crate) fn write_counted(diagnosis: &CountedDiagnosis, out: &mut dyn Write) -> Result<()> {
    let CountedDiagnosis { cost, nameable, unnameable, .. } = diagnosis;
    let file = readable(diagnosis.file.as_os_str().as_bytes());
    let event = readable(diagnosis.event.as_bytes());
    let who = diagnosis.process.describe();
    let jit = nameable + unnameable;
    write!(out, "{file}: {} {event} of {who}", grouped(*cost))?;
    let jit_percent = percent(jit as f64, *cost);
    if jit == 0 {
        writeln!(out, ", none in unnamed JIT code")?;
    } else if *nameable == 0 {
        writeln!(out, ", {jit_percent:.2}% in unnamed JIT code")?;
    } else {
        let named_percent = percent(*nameable as f64, jit);
        writeln!(
            out,
            ", {jit_percent:.2}% in JIT code that this file does not name; the files below name {named_percent:.2}% of \
             that"
        )?;
    }
    write_count(&diagnosis.findings, "share of cost", out)?;
    write_list(&diagnosis.findings, out)?;
    for account in &diagnosis.accounts {
        writeln!(out, "\n  {}", describe_source(account, None))?;
    }
    write_minor(&diagnosis.minor, "share of cost", out)
}

/// How stacks were recorded, in words.
fn describe_stacks(stacks: RecordedStacks) -> String {
    match stacks {
        RecordedStacks::Copies(bytes) => format!("stack copies of {bytes} bytes (--call-graph dwarf)"),
        RecordedStacks::Chains => "call chains by frame pointer".to_owned(),
        RecordedStacks::None => "no call chains".to_owned(),
    }
}
