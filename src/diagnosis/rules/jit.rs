//! Finds out why JIT code has no names, for the findings of `doctor`.

use super::super::causes::Cause;
use super::super::context::{DoctorContext, RecordedStacks, command_line};
use super::super::problem::{Finding, OfProcess, Problem, SourceFile, Who};
use super::super::tally::{ProcessTally, Spoilt, percent};
use super::neighbours::Neighbours;
use crate::model::code::OriginId;
use crate::model::process::{CpuMode, Mapping};
use crate::model::{Nanos, Pid};
use crate::resolve::dso::DsoKind;
use crate::runtimes::{Callers, Interpreter, RUNTIMES, RunFacts, Runtime, RuntimeSet, Switch, Version};
use crate::sources::{self, Account, Kind, SourceState};

pub(super) fn findings(context: DoctorContext<'_>) -> Vec<Finding> {
    let neighbours = Neighbours::list(context);
    let mut found = Vec::new();
    for (cause, spoilt) in &context.tally.causes {
        if let Cause::Memory(pid) = cause {
            let process = context.who(*pid);
            let problem = explain_unnamed(&process, context, &neighbours);
            found.push(context.finding(Problem::OfProcess(process, problem), *spoilt));
        }
    }
    for (&pid, tally) in &context.tally.processes {
        found.extend(find_interpreted(pid, tally, context));
    }
    found
}

/// The reason why a process's code in memory that no file backs has no name.
pub(super) fn explain_unnamed(process: &Who, context: DoctorContext<'_>, neighbours: &Neighbours) -> OfProcess {
    let pid = process.pid;
    let given = process.runtime.and_then(|runtime| context.given_switch(pid, runtime));
    let loaded = best_loaded_account(process, given, context);
    match (loaded, unusable_source(pid, context)) {
        (Some((number, account)), None) => explain_incomplete(pid, number, account, context),
        (Some((number, account)), Some(_)) if context.covered_frames(number) > 0 => {
            explain_incomplete(pid, number, account, context)
        }
        (_, Some(missing @ OfProcess::Missing { .. })) => neighbours.find_for(process, context).unwrap_or(missing),
        (_, Some(unusable)) => unusable,
        (None, None) => match neighbours.find_for(process, context) {
            Some(other_process) => other_process,
            None => explain_silence(process, given, context),
        },
    }
}

/// The problem with a dump or map that was not loaded, although it belongs or may belong to the process. Files that may
/// belong to it are reported before those that do. `None` if all files were loaded.
fn unusable_source(pid: Pid, context: DoctorContext<'_>) -> Option<OfProcess> {
    let accounts = || context.accounts(pid).map(|(_, account)| account);
    let offered: Vec<&Account> =
        accounts().filter(|account| matches!(account.state, SourceState::Offered(_))).collect();
    if let Some(offer) = offered.iter().find_map(|account| report_offer(account, offered.len())) {
        return Some(offer);
    }
    for account in accounts() {
        let path = account.path.clone();
        match &account.state {
            SourceState::Missing { .. } => return Some(OfProcess::Missing { path, inner: context.inner_pid(pid) }),
            SourceState::Refused(why) => {
                let kind = account.kind;
                let unmapped = kind == Kind::JitDump && why.contains("is empty") && !context.has_mapped_dump(pid);
                return Some(OfProcess::Refused { path, kind, why: why.clone(), unmapped });
            }
            SourceState::Offered(_) | SourceState::Loaded { .. } => {}
        }
    }
    None
}

/// Among the dumps and maps that were loaded, the one that names most of the process's frames, with its index. `given`
/// is the switch that the process received.
fn best_loaded_account<'a>(
    process: &Who,
    given: Option<&Switch>,
    context: DoctorContext<'a>,
) -> Option<(usize, &'a Account)> {
    let mut accounts: Vec<(usize, &Account)> = context.loaded_accounts(process.pid).collect();
    accounts.retain(|(_, account)| {
        // Engines may create a log and write nothing to it, even if they were told to write another file.
        let is_requested = match given {
            Some(switch) => switch.leaves_like(&account.path),
            None => !matches!(account.kind, Kind::Log(_)),
        };
        (is_requested || !is_empty(account)) && !is_of_another_runtime(process, account, context)
    });
    accounts.into_iter().max_by_key(|(number, _)| context.covered_frames(*number))
}

/// Reports a process for which no dump or map was found.
fn explain_silence(process: &Who, given: Option<&'static Switch>, context: DoctorContext<'_>) -> OfProcess {
    let elsewhere = if given.is_none() { context.given_elsewhere(process.runtime) } else { None };
    // perf finds jitdumps by their mapping. If a jitdump was never mapped, it wasn't written.
    let writes_dump = given.is_some_and(|switch| switch.leaves.iter().all(|file| file.ends_with(".dump")));
    let unmapped = writes_dump && !context.has_mapped_dump(process.pid);
    OfProcess::Silent { inner: context.inner_pid(process.pid), given, elsewhere, unmapped }
}

/// Reports a file that may belong to this process. `fits` is the number of such files.
fn report_offer(account: &Account, fits: usize) -> Option<OfProcess> {
    let path = account.path.clone();
    let of = sources::inner_pid(&path)?;
    Some(OfProcess::OtherProcess { path, kind: account.kind, of, fits })
}

/// True if the file comes from another runtime than the one whose code has no names. For example, Python's perf map has
/// no names for code that Numba compiled in the same process.
fn is_of_another_runtime(process: &Who, account: &Account, context: DoctorContext<'_>) -> bool {
    let leaves_file = |runtime: &Runtime| runtime.switches.iter().any(|switch| switch.leaves_like(&account.path));
    !process.runtime.is_none_or(leaves_file) && context.runtimes_of(process.pid).any(leaves_file)
}

/// True if the source was read but has no code.
fn is_empty(account: &Account) -> bool {
    matches!(account.state, SourceState::Loaded { codes: 0, skipped: 0, .. })
}

/// The reason why a dump or map that was loaded doesn't name all of the code. `number` is its index in the accounts.
fn explain_incomplete(pid: Pid, number: usize, account: &Account, context: DoctorContext<'_>) -> OfProcess {
    let source = context.source_file(number, account);
    if is_empty(account) {
        return OfProcess::Empty { source };
    }
    // Some entries of the file may describe bytecode, which is in memory that the processor doesn't execute.
    if source.covered * 20 < source.frames && is_of_other_memory(number, pid, context) {
        return OfProcess::OtherRun { source };
    }
    if is_replaced(pid, context) {
        return OfProcess::Replaced { source };
    }
    let runtime = context.who(pid).runtime;
    if account.kind == Kind::PerfMap
        && source.covered > 0
        && let Some(runtime) = runtime
        && let Some((by, ways)) = find_overwriter(pid, runtime, context)
    {
        return OfProcess::Overwritten { source, by, ways };
    }
    if let SourceState::Loaded { skipped, torn, times, .. } = account.state {
        if skipped > 0 || torn {
            return OfProcess::Torn { source, skipped, at_end: torn };
        }
        if account.kind == Kind::JitDump
            && let Some((_, end)) = times
            && let Some(before) = time_after_dump(pid, end, context)
        {
            return OfProcess::EndsEarly { source, before };
        }
    }
    let given = runtime.and_then(|runtime| context.given_switch(pid, runtime));
    let mut spoiler = None;
    if let (Some(runtime), Some(switch), Some(words)) = (runtime, given, context.command_of(pid)) {
        spoiler = runtime.spoiler(switch, command_line(words));
    }
    OfProcess::Incomplete { source, given, spoiler }
}

/// The time in nanoseconds from the end of a jitdump to the process's last sample. `None` unless more than half of the
/// samples with unnamed code came after that end.
fn time_after_dump(pid: Pid, end: Nanos, context: DoctorContext<'_>) -> Option<u64> {
    let tally = context.tally.processes.get(&pid)?;
    let after = tally.unnamed_at.iter().filter(|time| **time > end).count();
    (after * 2 > tally.unnamed_at.len()).then(|| tally.last.0.saturating_sub(end.0))
}

/// Checks whether another runtime of the process wrote the same perf map and so overwrote the names of the runtime
/// `unnamed`. Returns that other runtime, and the ways to make either runtime write another file.
fn find_overwriter(
    pid: Pid,
    unnamed: &'static Runtime,
    context: DoctorContext<'_>,
) -> Option<(&'static Runtime, String)> {
    let leaves_map = |switch: &Switch| switch.leaves.contains(&MAP);
    let writes_map = |runtime: &Runtime| runtime.switches.iter().any(leaves_map);
    if !writes_map(unnamed) {
        return None;
    }
    let by = context.runtimes_of(pid).find(|runtime| runtime.name != unnamed.name && writes_map(runtime))?;
    let mut ways = Vec::new();
    for runtime in [by, unnamed] {
        let memory = context.memory(pid);
        let facts = context.facts(pid, runtime, &memory);
        // The files of an embedded runtime don't always show its version, so don't check its switches against a
        // version.
        let other_switch = runtime.switches.iter().find(|switch| {
            let is_refused = facts.command.is_some_and(|command| runtime.refuses(switch, command));
            switch.can_be_set() && !leaves_map(switch) && !is_refused
        });
        ways.extend(other_switch.map(|switch| switch.how(runtime.called, true)));
    }
    Some((by, ways.join(", or ")))
}

/// The path of the perf map that most runtimes write.
const MAP: &str = "/tmp/perf-PID.map";

/// True if most unnamed code belongs to the program that the process ran before it executed another one. Both programs
/// had the same process ID, so the later program's perf map replaced the earlier one's.
fn is_replaced(pid: Pid, context: DoctorContext<'_>) -> bool {
    let Some(process) = context.examined.resolution.survey.processes.by_pid.get(&pid) else { return false };
    let (Some(exec), Some(tally)) = (process.execs.last(), context.tally.processes.get(&pid)) else { return false };
    let before = tally.unnamed_at.iter().filter(|time| *time < exec).count();
    let is_earlier_jit = |map: &Mapping| map.time < *exec && map.executable && map.backing().may_hold_jit_code();
    before * 2 > tally.unnamed_at.len() && process.mappings.iter().any(is_earlier_jit)
}

/// True if the source names addresses where the process had no memory. Then it must come from another run.
fn is_of_other_memory(number: usize, pid: Pid, context: DoctorContext<'_>) -> bool {
    /// How many code ranges are checked, approximately. They are spread evenly over the source.
    const PROBES: usize = 256;
    let map = &context.examined.resolution.sources.map;
    let spaces = context.examined.resolution.spaces;
    let time = context.tally.processes.get(&pid).map(|process| process.last).unwrap_or_default();
    let source_segments =
        || map.segments().iter().filter(|segment| map.code(segment.code).origin == OriginId(number as u32));
    let step = (source_segments().count() / PROBES).max(1);
    let mut mapped = 0;
    let mut unmapped = 0;
    for segment in source_segments().step_by(step) {
        match spaces.lookup(pid, segment.start, time, CpuMode::User) {
            None => unmapped += 1,
            Some(place) if matches!(context.dso(place.dso).kind, DsoKind::Anonymous) => mapped += 1,
            // Ignore addresses in files: V8's perf maps also name code in node's own file, which may be at the same
            // address in every run.
            Some(_) => {}
        }
    }
    mapped < unmapped
}

/// Reports a process in which only the interpreter of a runtime is visible, not the functions that it interprets.
fn find_interpreted(pid: Pid, tally: &ProcessTally, context: DoctorContext<'_>) -> Option<Finding> {
    context.runtimes_of(pid).find_map(|runtime| find_interpreted_by(runtime, pid, tally, context))
}

fn find_interpreted_by(
    runtime: &'static Runtime,
    pid: Pid,
    tally: &ProcessTally,
    context: DoctorContext<'_>,
) -> Option<Finding> {
    let Interpreter { frame_a_call, .. } = runtime.interpreter.as_ref()?;
    let number = RUNTIMES.iter().position(|other| other.shares_interpreter(runtime))?;
    let interpreted = tally.interpreted.get(&number).copied().unwrap_or_default();
    // Recognize the interpreter's functions by name. If the interpreter is stripped, take samples in the runtime's
    // files, provided that they are most of the process's samples.
    let visible = match interpreted.all {
        Spoilt { samples: 0, .. } if !frame_a_call => stripped_runtime_samples(pid, runtime, tally, context)?,
        all => all,
    };
    if visible.samples == 0 {
        return None;
    }
    // True if the program has JIT code of its own. A small amount doesn't count, because libraries compile regular
    // expressions.
    let has_jit = tally.named > 0 || tally.with_unnamed * 20 > visible.samples;
    let samples = match (frame_a_call, has_jit) {
        (true, _) => interpreted.innermost,
        (false, false) => visible.samples,
        (false, true) => return None,
    };
    // Reduce the share, because the interpreter also calls functions of its own, which have names.
    let percent = percent(samples as f64 * 0.9, context.tally.samples);
    let version = context.version(pid, runtime);
    let lacks_switch = !runtime.switches.is_empty() && runtime.best_switch(version_only(version)).is_none();
    let too_old = version.filter(|_| lacks_switch).map(|version| version.to_string());
    let switched_on = interpreter_flag(runtime, pid, context);
    let was_given = switched_on.is_some() || context.given_switch(pid, runtime).is_some();
    let elsewhere = if was_given { None } else { context.given_elsewhere(Some(runtime)) };
    // Without frame pointers, call chains skip all functions of the program, so stacks must be copied.
    let wants_copies = runtime.callers == Callers::InDump;
    let by_chains = wants_copies && switched_on.is_some() && context.stacks == RecordedStacks::Chains;
    let process = context.describe_process(pid, Some(runtime));
    let problem = Problem::OfProcess(process, OfProcess::Interpreted { too_old, switched_on, elsewhere, by_chains });
    Some(Finding::new(problem, percent, samples, visible.frames))
}

fn version_only(version: Option<Version>) -> RunFacts<'static> {
    RunFacts { version, ..RunFacts::default() }
}

/// The flag that already made the runtime report its functions. `None` if the process didn't receive it.
fn interpreter_flag(runtime: &'static Runtime, pid: Pid, context: DoctorContext<'_>) -> Option<String> {
    let interpreter = runtime.interpreter.as_ref()?;
    match interpreter.flag {
        Some(flag) => context.has_received(pid, runtime, flag).then(|| flag.to_string()),
        // The runtime's perf map or dump only names compiled functions.
        None if interpreter.frame_a_call => None,
        None => context.given_switch(pid, runtime).map(Switch::name),
    }
}

/// Counts the frames in stripped files of a runtime. `None` unless most of the process's samples are in such files.
fn stripped_runtime_samples(
    pid: Pid,
    runtime: &Runtime,
    tally: &ProcessTally,
    context: DoctorContext<'_>,
) -> Option<Spoilt> {
    let mut all = Spoilt::default();
    for (cause, spoilt) in &context.tally.causes {
        let Cause::Stripped(id) = cause else { continue };
        let path = &context.dso(*id).path;
        let is_of_runtime = RuntimeSet::from_files(std::iter::once(&path[..])).iter().any(|of| of.name == runtime.name);
        if is_of_runtime && context.programs.mappings(pid).any(|mapping| mapping.path == *path) {
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
