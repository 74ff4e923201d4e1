//! Adds names to a profile of a format other than perf.data that has addresses without names.
//!
//! ```text
//! open       which addresses have no name, and to which processes they belong
//! sources    the jitdumps and perf maps of these processes, and the JIT code in them
//! answers    what is at each address
//! output     the profile with these names; all else as it was, compressed as the input was
//! ```
//!
//! Such profiles have no times, or times on a clock of their own, so nothing says which of several code ranges at one
//! address was sampled. Each address gets the name of the last one.

use super::options::{BuildIdMode, InjectOptions};
use super::survey::describe_sources;
use crate::contract::unsymbolized::{BareAddress, OpenUnsymbolized};
use crate::error::{Error, Result, Warnings};
use crate::io::{Output, Run};
use crate::jit::{self, Loaded, SourceOptions};
use crate::model::Pid;
use crate::model::frame_counts::FrameCounts;
use crate::model::process::{Process, Processes};
use crate::pipeline::bare_addresses::{AddressCounts, Answers};
use crate::pipeline::open::{Input, shown};
use crate::pipeline::repack::compress;
use crate::pipeline::{Job, Outcome};
use crate::symbolize::code_map::CodeMap;
use std::io::Write;

/// `CLOCK_MONOTONIC` of Linux's `time.h`, as perf.data states it.
const CLOCK_MONOTONIC: i32 = 1;

/// Names all addresses that can be resolved and writes the profile.
pub(super) fn run(
    input: &Input,
    open: OpenUnsymbolized,
    options: &InjectOptions,
    job: &Job,
    run: &Run,
    outcome: &mut Outcome,
) -> Result<()> {
    refuse_options(options, input.format.name)?;
    let (path, mut open_warnings) = (shown(&options.input), Warnings::new());
    let mut profile = open(&input.bytes, &mut open_warnings).map_err(|error| error.in_file(&path))?;
    outcome.warnings.append(open_warnings.in_file(&path));
    let mut output = Output::create(&options.output, run)?;
    // Find and load the sources of the processes that have unnamed addresses, then look up all these addresses.
    let processes = processes_of(profile.addresses());
    let warnings = &mut outcome.warnings;
    let found = jit::find(&processes, &options.sources, options.input_directory(), warnings);
    let loaded = found.load(&processes, &job.pool, warnings);
    let default_pid = default_process(profile.addresses(), &loaded.map, &options.sources);
    let search = Some(&options.sources.search);
    let answers = Answers::find(&*profile, &loaded.map, default_pid, search, &job.pool, warnings);
    // Write the profile with the names, compressed like the input.
    let write = &mut |out: &mut dyn Write| profile.write(&|address| answers.calls(address), out);
    compress(&input.wrappings, &mut output, write)?;
    output.commit()?;
    summarize(&loaded, &answers.counts, options, outcome);
    Ok(())
}

/// The process to assume for addresses that state no process: the only process with code. `None` if several processes
/// have code, if an address states another process, or if the user named no source file, so that nothing shows that the
/// code belongs to this profile.
fn default_process(addresses: &[BareAddress], map: &CodeMap<'_>, sources: &SourceOptions) -> Option<Pid> {
    let mut pids_with_code = map.pids();
    let only_pid = pids_with_code.next()?;
    if !sources.names_files() || pids_with_code.next().is_some() {
        return None;
    }
    let has_no_other = addresses.iter().all(|address| address.pid.is_none_or(|pid| pid == only_pid));
    has_no_other.then_some(only_pid)
}

/// Rejects options that only work for perf.data.
fn refuse_options(options: &InjectOptions, format: &str) -> Result<()> {
    let flags = [
        ("--relocate", options.relocate),
        ("--convert-callchain", options.convert_callchain),
        ("--drop-bad-chain-entries", options.drop_bad_chain_entries),
        ("--all-functions", options.all_functions),
        ("--image-dir", options.image_dir.is_some()),
        ("--cache", options.cache),
        ("a flag about build IDs", options.build_ids != BuildIdMode::None || options.known_build_ids.is_some()),
    ];
    match flags.into_iter().find(|(_, is_used)| *is_used) {
        Some((flag, _)) => Err(Error::usage(format!("{flag} only works with perf.data, but the input is {format}"))),
        None => Ok(()),
    }
}

/// The processes that have unnamed addresses.
fn processes_of(addresses: &[BareAddress]) -> Processes {
    let mut processes = Processes::default();
    // State a clock: without one, code from jitdumps would have no order in time, and the last code at an address would
    // be unknown. jitdumps use the monotonic clock, so it's the one stated for the processes, too.
    processes.clock.clockid = Some(CLOCK_MONOTONIC);
    for pid in addresses.iter().filter_map(|address| address.pid) {
        // Without mappings, it is unknown which processes ran JIT code. So sources are looked for as if all did.
        processes.by_pid.entry(pid).or_insert_with(|| Process { has_jit_memory: true, ..Process::default() });
    }
    processes
}

/// Adds the summary and the frame counts to the outcome.
fn summarize(loaded: &Loaded<'_>, counts: &AddressCounts, options: &InjectOptions, outcome: &mut Outcome) {
    outcome.warnings.extend(counts.warnings("pass --jitdump FILE@PID or --perf-map FILE@PID"));
    let AddressCounts { asked, in_files, .. } = *counts;
    // Unnamed addresses that aren't in files count as JIT code.
    let jit = asked - in_files;
    outcome.frames += FrameCounts { jit, jit_unnamed: jit - counts.named, ..FrameCounts::default() };
    let summary = &mut outcome.summary;
    summary.push(describe_sources(loaded));
    summary.extend(loaded.remarks());
    if options.sources.source_maps.is_on() {
        let other = "names already in the input stay unchanged (jitgraft export applies source maps to those, too)";
        summary.push(format!("source maps were applied only to the names that this command added; {other}"));
    }
    let output = options.output.shown();
    if asked == 0 {
        summary.push(format!("{}: nothing to do, because no unnamed address can be named", output.display()));
        return;
    }
    let named = counts.named + counts.named_in_files;
    let percent = named as f64 * 100.0 / asked as f64;
    summary.push(format!("{}: named {named} of {asked} unnamed addresses ({percent:.1}%)", output.display()));
}
