//! What is wrong with the names of JIT code.

use super::super::causes::Cause;
use super::super::context::DoctorContext;
use super::super::problem::{Finding, Problem, SourceFile, Who};
use super::super::tally::{ProcessTally, Spoilt, percent};
use super::neighbours::Neighbours;
use crate::model::Pid;
use crate::model::code::OriginId;
use crate::model::process::CpuMode;
use crate::model::runtimes::{CommandLine, Environment, Interpreter, Runtime, RuntimeSet};
use crate::resolve::address_space::Place;
use crate::resolve::dso::DsoKind;
use crate::sources::{self, Account, Kind, SourceState};

pub(super) fn findings(context: DoctorContext<'_>) -> Vec<Finding> {
    let neighbours = Neighbours::beside(context);
    let of_memory = context.tally.causes.iter().filter_map(|(cause, spoilt)| match cause {
        Cause::Memory(pid) => Some((*pid, *spoilt)),
        _ => None,
    });
    let mut found: Vec<Finding> =
        of_memory.map(|(pid, spoilt)| finding(unnamed(pid, context, &neighbours), spoilt, context)).collect();
    found.extend(context.tally.processes.iter().filter_map(|(&pid, tally)| interpreted(pid, tally, context)));
    found
}

fn finding(problem: Problem, spoilt: Spoilt, context: DoctorContext<'_>) -> Finding {
    let percent = spoilt.percent(context.tally.samples);
    Finding { problem, percent, samples: spoilt.samples, frames: spoilt.frames }
}

/// Why code of a process in memory without a file has no name.
fn unnamed(pid: Pid, context: DoctorContext<'_>, neighbours: &Neighbours) -> Problem {
    let (process, inner) = (context.who(pid), context.inner_pid(pid));
    let (mut unusable, mut offered) = (None, None);
    let is_offered = |(_, account): &(usize, &Account)| matches!(account.state, SourceState::Offered(_));
    let offers = context.accounts(pid).filter(is_offered).count();
    for (_, account) in context.accounts(pid) {
        let Account { path, kind, .. } = account;
        unusable = unusable.or(match &account.state {
            SourceState::Missing { .. } => {
                Some(Problem::Missing { process: process.clone(), path: path.clone(), inner })
            }
            SourceState::Offered(_) => {
                offered = offered.or(offer(&process, account, offers));
                None
            }
            SourceState::Refused(why) => {
                let (process, path, why) = (process.clone(), path.clone(), why.clone());
                Some(Problem::Refused { process, path, kind: *kind, why })
            }
            SourceState::Loaded { .. } => None,
        });
    }
    // The one that tells of most, if there are several.
    let covers = |(number, _): &(usize, &Account)| context.tally.covered.get(*number).map_or(0, |(frames, _)| *frames);
    let loaded = context.loaded(pid).max_by_key(covers);
    let unusable = offered.or(unusable);
    match (loaded, unusable) {
        (Some(loaded), None) => uncovered(process, loaded, context),
        (Some(loaded), Some(_)) if covers(&loaded) > 0 => uncovered(process, loaded, context),
        (_, Some(Problem::Missing { process, path, inner })) => {
            let missing = Problem::Missing { process: process.clone(), path, inner };
            neighbours.of(process, context).unwrap_or(missing)
        }
        (_, Some(unusable)) => unusable,
        (None, None) => {
            let silent = Problem::Silent { process: process.clone(), inner };
            neighbours.of(process, context).unwrap_or(silent)
        }
    }
}

/// One of so many files that may be this process's.
fn offer(process: &Who, account: &Account, fits: usize) -> Option<Problem> {
    let (process, path) = (process.clone(), account.path.clone());
    let of = sources::inner_pid(&path)?;
    Some(Problem::OtherProcess { process, path, kind: account.kind, of, fits })
}

/// Why a dump or map that was loaded does not tell of all code.
fn uncovered(process: Who, (number, account): (usize, &Account), context: DoctorContext<'_>) -> Problem {
    let source = context.source_file((number, account));
    let SourceState::Loaded { codes, skipped, torn, times, .. } = account.state else {
        return Problem::Incomplete { process, source };
    };
    if codes == 0 && skipped == 0 {
        return Problem::Empty { process, source };
    }
    // Where it names some, others may be of bytecode, which lies in memory that is not run.
    if source.covered * 20 < source.frames && is_of_other_memory(number, process.pid, context) {
        return Problem::OtherRun { process, source };
    }
    if skipped > 0 || torn {
        return Problem::Torn { process, source, skipped, at_end: torn };
    }
    match (context.tally.processes.get(&process.pid), times) {
        (Some(tally), Some((_, last))) if account.kind == Kind::JitDump => {
            // A good part of what has no name was sampled when the dump had ended.
            let after = tally.unnamed_at.iter().filter(|time| **time > last).count();
            let early = after * 2 > tally.unnamed_at.len();
            let before = tally.last.0.saturating_sub(last.0);
            if early { Problem::EndsEarly { process, source, before } } else { Problem::Incomplete { process, source } }
        }
        _ => Problem::Incomplete { process, source },
    }
}

/// Whether a source tells of addresses where the process had nothing.
fn is_of_other_memory(number: usize, pid: Pid, context: DoctorContext<'_>) -> bool {
    /// So many pieces of code are looked at.
    const PROBES: usize = 256;
    let (map, spaces) = (&context.examined.resolution.sources.map, context.examined.resolution.spaces);
    let time = context.tally.processes.get(&pid).map(|process| process.last).unwrap_or_default();
    let own = || map.segments().iter().filter(|segment| map.code(segment.code).origin == OriginId(number as u32));
    let step = (own().count() / PROBES).max(1);
    let (mut inside, mut all) = (0, 0);
    for segment in own().step_by(step) {
        let place = spaces.lookup(pid, segment.start, time, CpuMode::User);
        let backed = |place: Place| !matches!(context.dso(place.dso).kind, DsoKind::Anonymous);
        // Maps of V8 tell of code in node's own file, too, which may be at one address in all runs.
        if !place.is_some_and(backed) {
            all += 1;
            inside += usize::from(place.is_some());
        }
    }
    all > 0 && inside * 2 < all
}

/// Whether all that is seen of a program is its interpreter.
fn interpreted(pid: Pid, tally: &ProcessTally, context: DoctorContext<'_>) -> Option<Finding> {
    let process = context.who(pid);
    let Interpreter { frame_a_call, .. } = process.runtime?.interpreter.as_ref()?;
    let Spoilt { samples, frames, .. } = match tally.interpreted {
        // Its interpreter is known by its name; where it was stripped, by whose code all is in.
        Spoilt { samples: 0, .. } if !frame_a_call => stripped(pid, process.runtime?, tally, context)?,
        interpreted => interpreted,
    };
    if samples == 0 {
        return None;
    }
    // JIT code of the program's; a library's for regular expressions is none.
    let seen = tally.named > 0 || tally.with_unnamed * 20 > samples;
    let samples = match (frame_a_call, seen) {
        (true, _) => tally.interpreting,
        (false, false) => samples,
        (false, true) => return None,
    };
    // What it called of the interpreter's own functions has names.
    let percent = percent(samples as f64 * 0.9, context.tally.samples);
    let too_old = if process.runtime?.name == "CPython" { old_python(pid, context) } else { None };
    let switched_on = switched_on(process.runtime?, context);
    Some(Finding { problem: Problem::Interpreted { process, too_old, switched_on }, percent, samples, frames })
}

/// The flag by which the recorded command line gave interpreted functions names of their own already.
fn switched_on(runtime: &Runtime, context: DoctorContext<'_>) -> Option<String> {
    let flag = runtime.interpreter.as_ref()?.flag?;
    let command = CommandLine { words: context.command()?.program, environment: &Environment::Unknown };
    runtime.is_given(flag, command).then(|| flag.to_string())
}

/// What was sampled in files of a runtime that have no symbols, if that is most of a process.
fn stripped(pid: Pid, runtime: &Runtime, tally: &ProcessTally, context: DoctorContext<'_>) -> Option<Spoilt> {
    let is_its = |path: &[u8]| RuntimeSet::of_files(std::iter::once(path)).iter().any(|of| of.name == runtime.name);
    let mut all = Spoilt::default();
    for (cause, spoilt) in &context.tally.causes {
        let Cause::Stripped(id) = cause else { continue };
        let path = &context.dso(*id).path;
        if is_its(path) && context.programs.mappings(pid).any(|mapping| mapping.path == *path) {
            all.merge(*spoilt);
        }
    }
    all.samples = all.samples.min(tally.samples);
    (all.samples * 2 > tally.samples).then_some(all)
}

/// Python's version, if it is one that cannot tell of its functions.
fn old_python(pid: Pid, context: DoctorContext<'_>) -> Option<String> {
    let versions = context.programs.mappings(pid).filter_map(|mapping| {
        let name = mapping.path.rsplit(|&byte| byte == b'/').next()?;
        let name = std::str::from_utf8(name).ok()?;
        let version = name.strip_prefix("lib").unwrap_or(name).strip_prefix("python3.")?;
        let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    });
    versions.min().filter(|minor| *minor < 12).map(|minor| format!("3.{minor}"))
}

impl SourceFile {
    /// Which part of the frames in memory for JIT code it names, in percent.
    pub fn percent(&self) -> f64 {
        percent(self.covered as f64, self.frames)
    }
}
