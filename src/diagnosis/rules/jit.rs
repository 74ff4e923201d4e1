//! Finds out why JIT code has no names.

use super::super::causes::Cause;
use super::super::context::{DoctorContext, RecordedStacks, command_line};
use super::super::problem::{Finding, OfProcess, Problem, SourceFile, Who};
use super::super::tally::{ProcessTally, Spoilt, percent};
use super::neighbours::Neighbours;
use crate::model::Pid;
use crate::model::code::OriginId;
use crate::model::process::{CpuMode, Mapping};
use crate::resolve::address_space::Place;
use crate::resolve::dso::DsoKind;
use crate::runtimes::{Callers, Interpreter, RUNTIMES, RunFacts, Runtime, RuntimeSet, Switch, Version};
use crate::sources::{self, Account, Kind, SourceState};

pub(super) fn findings(context: DoctorContext<'_>) -> Vec<Finding> {
    let neighbours = Neighbours::beside(context);
    let of_memory = context.tally.causes.iter().filter_map(|(cause, spoilt)| match cause {
        Cause::Memory(pid) => Some((*pid, *spoilt)),
        _ => None,
    });
    let mut found: Vec<Finding> = of_memory
        .map(|(pid, spoilt)| {
            let process = context.who(pid);
            let problem = unnamed(&process, context, &neighbours);
            context.finding(Problem::OfProcess(process, problem), spoilt)
        })
        .collect();
    found.extend(context.tally.processes.iter().filter_map(|(&pid, tally)| interpreted(pid, tally, context)));
    found
}

/// Why a process's code in memory without a file has no name.
pub(super) fn unnamed(process: &Who, context: DoctorContext<'_>, neighbours: &Neighbours) -> OfProcess {
    let pid = process.pid;
    let inner = context.inner_pid(pid);
    let (mut unusable, mut offered) = (None, None);
    let is_offered = |(_, account): &(usize, &Account)| matches!(account.state, SourceState::Offered(_));
    let offers = context.accounts(pid).filter(is_offered).count();
    for (_, account) in context.accounts(pid) {
        let Account { path, kind, .. } = account;
        unusable = unusable.or(match &account.state {
            SourceState::Missing { .. } => Some(OfProcess::Missing { path: path.clone(), inner }),
            SourceState::Offered(_) => {
                offered = offered.or(offer(account, offers));
                None
            }
            SourceState::Refused(why) => {
                let unmapped = *kind == Kind::JitDump && why.contains("is empty") && !context.has_mapped_dump(pid);
                Some(OfProcess::Refused { path: path.clone(), kind: *kind, why: why.clone(), unmapped })
            }
            SourceState::Loaded { .. } => None,
        });
    }
    // If several were loaded, the one that names the most frames.
    let covers = |(number, _): &(usize, &Account)| context.tally.covered.get(*number).map_or(0, |(frames, _)| *frames);
    let given = process.runtime.and_then(|runtime| context.given(pid, runtime));
    // Engines may start a log and put nothing into it, whatever they were asked to write.
    let is_asked_for = |account: &Account| {
        given.map_or(!matches!(account.kind, Kind::Log(_)), |switch| switch.leaves_like(&account.path))
    };
    let is_beside_the_point = |account: &Account| {
        is_empty(account) && !is_asked_for(account) || is_of_another_runtime(process, account, context)
    };
    let loaded = context.loaded(pid).filter(|(_, account)| !is_beside_the_point(account)).max_by_key(covers);
    let unusable = offered.or(unusable);
    match (loaded, unusable) {
        (Some(loaded), None) => uncovered(pid, loaded, context),
        (Some(loaded), Some(_)) if covers(&loaded) > 0 => uncovered(pid, loaded, context),
        (_, Some(missing @ OfProcess::Missing { .. })) => neighbours.of(process, context).unwrap_or(missing),
        (_, Some(unusable)) => unusable,
        (None, None) => neighbours.of(process, context).unwrap_or_else(|| {
            let elsewhere = if given.is_none() { context.given_elsewhere(process.runtime) } else { None };
            // perf finds jitdumps by their mapping: one that was never mapped was not written.
            let is_dump = |switch: &Switch| switch.leaves.iter().all(|file| file.ends_with(".dump"));
            let unmapped = given.is_some_and(is_dump) && !context.has_mapped_dump(pid);
            OfProcess::Silent { inner, given, elsewhere, unmapped }
        }),
    }
}

/// Reports one of several files (`fits`) that may belong to this process.
fn offer(account: &Account, fits: usize) -> Option<OfProcess> {
    let path = account.path.clone();
    let of = sources::inner_pid(&path)?;
    Some(OfProcess::OtherProcess { path, kind: account.kind, of, fits })
}

/// True if the file comes from another runtime of the process than the one whose code has no names. For example,
/// Python's perf map names nothing that Numba compiled.
fn is_of_another_runtime(process: &Who, account: &Account, context: DoctorContext<'_>) -> bool {
    let leaves = |runtime: &Runtime| runtime.switches.iter().any(|switch| switch.leaves_like(&account.path));
    let is_its = process.runtime.is_none_or(leaves);
    !is_its && context.runtimes_of(process.pid).any(leaves)
}

/// True if the file was read but contains no code.
fn is_empty(account: &Account) -> bool {
    matches!(account.state, SourceState::Loaded { codes: 0, skipped: 0, .. })
}

/// Why a dump or map that was loaded doesn't name all of the code.
fn uncovered(pid: Pid, (number, account): (usize, &Account), context: DoctorContext<'_>) -> OfProcess {
    let source = context.source_file((number, account));
    let runtime = context.who(pid).runtime;
    let given = runtime.and_then(|runtime| context.given(pid, runtime));
    let words = context.command_of(pid).map(command_line);
    let spoiler = runtime.zip(given).zip(words).and_then(|((runtime, given), words)| runtime.spoiler(given, words));
    let incomplete = |source| OfProcess::Incomplete { source, given, spoiler };
    let SourceState::Loaded { skipped, torn, times, .. } = account.state else {
        return incomplete(source);
    };
    if is_empty(account) {
        return OfProcess::Empty { source };
    }
    // Some entries may describe bytecode, which is in memory that the processor doesn't execute.
    if source.covered * 20 < source.frames && is_of_other_memory(number, pid, context) {
        return OfProcess::OtherRun { source };
    }
    if is_replaced(pid, context) {
        return OfProcess::Replaced { source };
    }
    if let Some((by, ways)) = overwriter(pid, account, (number, runtime), context) {
        return OfProcess::Overwritten { source, by, ways };
    }
    if skipped > 0 || torn {
        return OfProcess::Torn { source, skipped, at_end: torn };
    }
    match (context.tally.processes.get(&pid), times) {
        (Some(tally), Some((_, last))) if account.kind == Kind::JitDump => {
            // More than half of the unnamed samples came after the end of the dump.
            let after = tally.unnamed_at.iter().filter(|time| **time > last).count();
            let early = after * 2 > tally.unnamed_at.len();
            let before = tally.last.0.saturating_sub(last.0);
            if early { OfProcess::EndsEarly { source, before } } else { incomplete(source) }
        }
        _ => incomplete(source),
    }
}

/// Finds out whether two runtimes wrote the same perf map, so that one overwrote the other's names. Returns the runtime
/// whose names are left, and the ways to make either runtime write another file.
fn overwriter(
    pid: Pid,
    account: &Account,
    (number, unnamed): (usize, Option<&'static Runtime>),
    context: DoctorContext<'_>,
) -> Option<(&'static Runtime, String)> {
    let unnamed = unnamed?;
    let has_names = context.tally.covered.get(number).is_some_and(|(frames, _)| *frames > 0);
    let is_it = |switch: &&Switch| switch.leaves.contains(&MAP);
    let writes_it = |runtime: &Runtime| runtime.switches.iter().any(|switch| is_it(&switch));
    let is_other = |runtime: &&'static Runtime| runtime.name != unnamed.name && writes_it(runtime);
    let by = context.runtimes_of(pid).find(is_other)?;
    if account.kind != Kind::PerfMap || !has_names || !writes_it(unnamed) {
        return None;
    }
    let mut ways = Vec::new();
    for runtime in [by, unnamed] {
        let memory = context.memory(pid);
        let facts = context.facts(pid, runtime, &memory);
        // The files don't always show the version of an embedded runtime, so its switches are not checked against a
        // version.
        let mut others = runtime.switches.iter().filter(|switch| switch.can_be_set() && !is_it(switch));
        let usable = others.find(|switch| facts.command.is_none_or(|command| !runtime.refuses(switch, command)));
        ways.extend(usable.map(|switch| switch.how(runtime.called, true)));
    }
    Some((by, ways.join(", or ")))
}

/// The perf map that most runtimes write.
const MAP: &str = "/tmp/perf-PID.map";

/// True if most unnamed code belongs to an earlier program of the process, before it executed another one. Both
/// programs had the same process ID, so the later one's perf map replaced the earlier one's.
fn is_replaced(pid: Pid, context: DoctorContext<'_>) -> bool {
    let Some(process) = context.examined.resolution.survey.processes.by_pid.get(&pid) else { return false };
    let (Some(exec), Some(tally)) = (process.execs.last(), context.tally.processes.get(&pid)) else { return false };
    let before = tally.unnamed_at.iter().filter(|time| *time < exec).count();
    let is_jit = |map: &Mapping| map.executable && map.backing().may_hold_jit_code();
    let had_jit = process.mappings.iter().any(|map| map.time < *exec && is_jit(map));
    had_jit && before * 2 > tally.unnamed_at.len()
}

/// True if the source names addresses where the process had no memory, so that it must come from another run.
fn is_of_other_memory(number: usize, pid: Pid, context: DoctorContext<'_>) -> bool {
    /// Check about this many code ranges, spread evenly over the source.
    const PROBES: usize = 256;
    let (map, spaces) = (&context.examined.resolution.sources.map, context.examined.resolution.spaces);
    let time = context.tally.processes.get(&pid).map(|process| process.last).unwrap_or_default();
    let own = || map.segments().iter().filter(|segment| map.code(segment.code).origin == OriginId(number as u32));
    let step = (own().count() / PROBES).max(1);
    let (mut inside, mut all) = (0, 0);
    for segment in own().step_by(step) {
        let place = spaces.lookup(pid, segment.start, time, CpuMode::User);
        let backed = |place: Place| !matches!(context.dso(place.dso).kind, DsoKind::Anonymous);
        // V8's perf maps also name code in node's own file, which may be at the same address in every run.
        if !place.is_some_and(backed) {
            all += 1;
            inside += usize::from(place.is_some());
        }
    }
    all > 0 && inside * 2 < all
}

/// Reports a process in which only the interpreter of a runtime is visible, not the functions that it interprets.
fn interpreted(pid: Pid, tally: &ProcessTally, context: DoctorContext<'_>) -> Option<Finding> {
    context.runtimes_of(pid).find_map(|runtime| interpreted_by(runtime, pid, tally, context))
}

fn interpreted_by(
    runtime: &'static Runtime,
    pid: Pid,
    tally: &ProcessTally,
    context: DoctorContext<'_>,
) -> Option<Finding> {
    let process = context.who_runs(pid, Some(runtime));
    let Interpreter { frame_a_call, .. } = runtime.interpreter.as_ref()?;
    let number = RUNTIMES.iter().position(|other| other.shares_interpreter(runtime))?;
    let interpreted = tally.interpreted.get(&number).copied().unwrap_or_default();
    let Spoilt { samples, frames, .. } = match interpreted.all {
        // Recognize the interpreter by name. If it is stripped, check whether most samples are in the runtime's files.
        Spoilt { samples: 0, .. } if !frame_a_call => stripped(pid, runtime, tally, context)?,
        interpreted => interpreted,
    };
    if samples == 0 {
        return None;
    }
    // The program has JIT code of its own. A little of it doesn't count: libraries compile regular expressions.
    let seen = tally.named > 0 || tally.with_unnamed * 20 > samples;
    let samples = match (frame_a_call, seen) {
        (true, _) => interpreted.innermost,
        (false, false) => samples,
        (false, true) => return None,
    };
    // The interpreter also calls functions of its own, which have names.
    let percent = percent(samples as f64 * 0.9, context.tally.samples);
    let version = context.version(pid, runtime);
    let lacks_switch = !runtime.switches.is_empty() && runtime.best_switch(version_only(version)).is_none();
    let too_old = version.filter(|_| lacks_switch).map(|version| version.to_string());
    let switched_on = switched_on(runtime, pid, context);
    let was_given = switched_on.is_some() || context.given(pid, runtime).is_some();
    let elsewhere = if was_given { None } else { context.given_elsewhere(Some(runtime)) };
    // Without frame pointers, call chains skip all functions of the program.
    let wants_copies = runtime.callers == Callers::InDump;
    let by_chains = wants_copies && switched_on.is_some() && context.stacks == RecordedStacks::Chains;
    let problem = Problem::OfProcess(process, OfProcess::Interpreted { too_old, switched_on, elsewhere, by_chains });
    Some(Finding::new(problem, percent, samples, frames))
}

fn version_only(version: Option<Version>) -> RunFacts<'static> {
    RunFacts { version, ..RunFacts::default() }
}

/// The flag that made the runtime report its functions already, if the process received it.
fn switched_on(runtime: &'static Runtime, pid: Pid, context: DoctorContext<'_>) -> Option<String> {
    let interpreter = runtime.interpreter.as_ref()?;
    match interpreter.flag {
        Some(flag) => context.received(pid, runtime, flag).then(|| flag.to_string()),
        // Its perf map or dump names compiled functions only.
        None if interpreter.frame_a_call => None,
        None => context.given(pid, runtime).map(Switch::name),
    }
}

/// The samples in stripped files of a runtime, if those are most of the process's samples.
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

impl SourceFile {
    /// The share of the process's JIT frames that this file names, in percent.
    pub fn percent(&self) -> f64 {
        percent(self.covered as f64, self.frames)
    }
}
