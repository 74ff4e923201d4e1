//! Names the JIT code in a callgrind file, and writes an ELF object of the code next to it.

use super::code_sources::find_sources;
use super::object::{self, ObjectContents};
use super::options::CallgrindOptions;
use crate::analysis::quantity::counted;
use crate::error::{Result, Warning, Warnings};
use crate::formats::callgrind::FileHeader;
use crate::io::{Content, OutPath, Output, Run, map_open_file};
use crate::jit::raw_code::RawCode;
use crate::jit::{Account, Kind};
use crate::model::Pid;
use crate::model::code::OriginId;
use crate::pipeline::callgrind::{CodeNames, IndexedProfile, NamedProfile};
use crate::pipeline::terminal::write_text;
use crate::pipeline::{Job, Outcome};
use std::fs::File;
use std::path::Path;

/// Names all JIT code of the profile that can be named.
pub(super) fn run(file: File, options: &CallgrindOptions, run: &Run, job: &Job) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let text = map_open_file(file)?;
    let profile = IndexedProfile::read(&text, job)?;
    let sources = find_sources(profile.header().pid, options, &mut outcome.warnings)?;
    let pid = sources.pid;
    let raw_code = find_raw_code(options, pid, &mut outcome.warnings)?;
    let loaded = sources.load(&job.pool, &mut outcome.warnings);
    outcome.summary.extend(loaded.source_maps.remarks());
    warn_of_other_pids(&loaded.accounts, pid, options, &mut outcome);
    let (object_path, object_name) = options.object(pid);
    let names = CodeNames::new(&loaded.map, pid, object_name, &job.pool);
    let mut out = Output::create(&options.output(), run)?;
    // `OfInputsUnnamed`: jitgraft may have chosen the object's path itself. If the object replaces a file there, it
    // doesn't take over wider permissions from that file.
    let object = match Output::create_for(&OutPath::Path(object_path.clone()), Content::OfInputsUnnamed, run) {
        Err(refused) if refused.is_usage() => return Err(refused),
        // An object that can't be created for another reason is only an error if there is code to write to it
        // (`object?` below). Without code, nobody needs a directory that can be written to.
        other => other,
    };
    let rewritten = write_text(&mut out, |out| profile.rewrite(&names, out, job))?;
    if rewritten.functions > 0 {
        // `raw_code` is a directory of machine code without names. The code belongs to the functions of the perf map,
        // which has no machine code. So the code is passed on with the map's origin ID: its index in `accounts`.
        let map = loaded.accounts.iter().position(|account| account.kind == Kind::PerfMap);
        let raw_code = raw_code.as_ref().zip(map.map(|map| OriginId(map as u32)));
        let contents = object::write(&names, raw_code, loaded.machine, object?, &mut outcome.warnings)?;
        outcome.summary.push(describe_object(&object_path, &contents));
    }
    out.commit()?;
    report(&options.output(), &profile, &names, rewritten, pid, &mut outcome);
    Ok(outcome)
}

/// Warns about each perf map that was used for process `pid` although its file name has another process ID. No warning
/// if the user stated that the map is of `pid` (`--perf-map FILE@PID`, `--map-pid`).
fn warn_of_other_pids(accounts: &[Account], pid: Pid, options: &CallgrindOptions, outcome: &mut Outcome) {
    for account in accounts.iter().filter(|account| account.kind == Kind::PerfMap) {
        let name = account.path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.strip_prefix("perf-"));
        let Some(pid_in_name) = name.and_then(|digits| digits.parse().ok()).map(Pid) else { continue };
        // The user said that the map is of this process (`--perf-map FILE@PID`).
        let is_confirmed = options.sources.perf_map.iter().any(|map| map.path == account.path && map.pid == Some(pid));
        if pid_in_name != pid && !is_confirmed && !options.sources.map_pid.contains(&(pid_in_name, pid)) {
            let message = format!(
                "used for process {pid}, although the file's name says process {pid_in_name}; if these are the same \
                 process, pass --map-pid {pid_in_name}={pid}"
            );
            outcome.warnings.push(Warning::new(message).in_file(&account.path, None));
        }
    }
}

/// Opens the directory of raw machine code: the one that the user named or, failing that, the one where MoarVM puts it.
/// `None` if there is neither. Fails if the one that the user named can't be opened.
fn find_raw_code(options: &CallgrindOptions, pid: Pid, warnings: &mut Warnings) -> Result<Option<RawCode>> {
    let force = options.sources.force;
    if let Some(directory) = &options.bytecode_dir {
        return RawCode::open_directory(directory, force).map(Some);
    }
    Ok(RawCode::find_usual(options.path(), pid, force, warnings))
}

/// The line of the summary about the ELF object.
fn describe_object(path: &Path, object: &ObjectContents) -> String {
    let ObjectContents { pieces, with_code } = object;
    let code = if *with_code == 0 {
        "without machine code (only a jitdump or --bytecode-dir provides it)".to_owned()
    } else {
        format!("{with_code} with machine code")
    };
    format!("{}: {}, {code}", path.display(), counted(*pieces as u64, "function"))
}

/// Adds the summary and the warnings about the rewritten profile to the outcome. `to` is the output, and `pid` is the
/// profiled process.
fn report(
    to: &OutPath,
    profile: &IndexedProfile<'_>,
    names: &CodeNames<'_, '_>,
    rewritten: NamedProfile,
    pid: Pid,
    outcome: &mut Outcome,
) {
    outcome.summary.extend(summarize(to, profile.header(), &rewritten));
    let NamedProfile { stats, functions } = rewritten;
    let unknown = profile.unknown_functions();
    let warnings = &mut outcome.warnings;
    if names.is_empty() {
        warnings.push(Warning::new(format!(
            "nothing was changed: the dumps and maps have no code of process {pid} (but {} pieces of code of other \
             processes)",
            names.code_count()
        )));
    } else if functions == 0 && unknown > 0 {
        warnings.push(Warning::new(format!(
            "none of the {unknown} unknown functions is in the code of process {pid}; are map and profile from the \
             same run?"
        )));
    }
    if functions > 0 && !profile.header().has_instr {
        warnings.push(Warning::new(
            "the profile has no instruction addresses, so code was named by its entry point, and code reached by a \
             jump counts for the function that jumped; record again with --dump-instr=yes",
        ));
    }
    let ambiguous = stats.functions.iter().filter(|entry| names.is_ambiguous(**entry)).count();
    if ambiguous > 0 {
        warnings.push(Warning::new(format!(
            "{ambiguous} of the named functions reused the addresses of earlier ones; callgrind has no times, so the \
             costs of both count for the later one"
        )));
    }
    stats.skipped.report(Path::new("callgrind"), warnings);
}

/// The lines of the summary: how many functions were named, and how much cost of JIT code still counts for native
/// functions.
fn summarize(to: &OutPath, header: &FileHeader, rewritten: &NamedProfile) -> Vec<String> {
    let NamedProfile { stats, functions } = rewritten;
    let mut lines = Vec::new();
    let event = header.events.first().map_or("cost".into(), |event| String::from_utf8_lossy(event));
    let all = stats.named_cost.saturating_add(stats.unnamed_cost);
    let percent = if all == 0 { 0.0 } else { stats.named_cost as f64 / all as f64 * 100.0 };
    let details = match header.has_instr {
        true => format!(", which have {percent:.1}% of the {all} {event} outside any file"),
        // Without instruction addresses, code that is entered by a jump counts for the function that jumped there. So
        // `percent` includes cost of code that isn't in the named functions.
        false => format!(
            " by their entry points. They have {percent:.1}% of the {all} {event} outside any file, but part of that \
             may be from other functions: the profile has no instruction addresses, so code that is reached by a jump \
             counts for the function that jumped"
        ),
    };
    let mut line = format!("{}: named {}{details}", to.shown().display(), counted(*functions as u64, "function"));
    if stats.split > 0 {
        line += &format!("; split {}", counted(stats.split, "block"));
    }
    if stats.synthetic_calls > 0 {
        line += &format!("; added {} so that inclusive costs stay right", counted(stats.synthetic_calls, "call"));
    }
    lines.push(line);
    let (misattributed, cost) = stats.misattributed.total();
    if misattributed > 0 {
        lines.push(format!(
            "native functions still include the cost of {misattributed} pieces of JIT code that they jumped to ({cost} \
             {event}), because for callgrind, a function only starts at a call"
        ));
    }
    lines
}
