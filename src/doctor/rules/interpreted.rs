//! Finds processes for which a profile shows the functions of the interpreter instead of the functions that it
//! interpreted.

use super::super::causes::Cause;
use super::super::context::{DoctorContext, RecordedStacks};
use super::super::finding::{Change, Finding, Highlight, PROCESS, Share};
use super::super::kind::FindingKind;
use super::super::process::{ExaminedProcess, not_reached};
use super::super::tally::{AffectedCounts, ProcessTally};
use super::super::wording::DWARF;
use crate::model::Pid;
use crate::runtimes::{Callers, Interpreter, RUNTIMES, RunFacts, Runtime, RuntimeSet, Switch};

pub(super) fn findings(context: DoctorContext<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (&pid, tally) in &context.tally.processes {
        found.extend(context.runtimes_of(pid).find_map(|runtime| find_interpreted(runtime, pid, tally, context)));
    }
    found
}

/// What the user has already done to get names for interpreted functions, and why it had no effect.
#[derive(Debug, Default)]
pub(in super::super) struct Attempt {
    /// The version of the runtime, if it is too old to name interpreted functions; otherwise `None`.
    too_old: Option<String>,
    /// The option that makes the runtime name interpreted functions. `None` if the process didn't receive it.
    switched_on: Option<String>,
    /// A switch in the recorded command line that reached only another process, not this one. `None` if there is no
    /// such switch.
    lost_switch: Option<&'static Switch>,
    /// A switch that was set by a variable but that the process didn't follow: it wrote none of the switch's files, and
    /// its runtime has options that make it ignore variables. `None` if there is no such switch.
    ignored: Option<&'static Switch>,
    /// True if `switched_on` had no effect, because the code keeps no frame pointers and stacks were recorded as call
    /// chains, which cannot get past such code.
    needs_copies: bool,
}

/// Reports that the process spent `share` of the recording in its interpreter, without names for the interpreted
/// functions.
pub(in super::super) fn interpreted(process: &ExaminedProcess, share: Share, attempt: &Attempt) -> Finding {
    let why = match (attempt.lost_switch, attempt.ignored) {
        (Some(switch), _) => not_reached(switch),
        (None, Some(switch)) => {
            let leaves = switch.leaves.join(", ");
            match switch.variables.first() {
                Some((name, value)) => format!("{name}={value} was set, but it wrote no {leaves}"),
                None => format!("{} was set, but it wrote no {leaves}", switch.name()),
            }
        }
        (None, None) => {
            let name = process.runtime.map_or("its runtime", |runtime| runtime.name);
            match (&attempt.too_old, &attempt.switched_on) {
                (Some(version), _) => format!("{name} {version} gave interpreted functions no names"),
                (None, Some(switch)) => format!("{name} gave some functions no names, although {switch} was on"),
                (None, None) => format!("{name} gave interpreted functions no names"),
            }
        }
    };
    let cause = format!("{PROCESS} spent this time in its interpreter: {why}");
    // What a new recording would have to change.
    let change = if attempt.too_old.is_some() || attempt.ignored.is_some() {
        None
    } else if attempt.switched_on.is_none() {
        Some(Change::Program)
    } else if attempt.needs_copies {
        Some(Change::Stacks)
    } else {
        None
    };
    let interpreter = process.runtime.and_then(|runtime| runtime.interpreter.as_ref());
    let functions = interpreter.map_or(&[][..], |interpreter| interpreter.functions);
    Finding::new(FindingKind::Interpreted, share, cause, remedy(process, attempt))
        .with_process(process)
        .with_change(change)
        .with_highlight(Highlight::Interpreter(functions))
        .with_lost_switch(attempt.lost_switch)
}

/// What the user can do to get names for interpreted functions, or why nothing helps.
fn remedy(process: &ExaminedProcess, attempt: &Attempt) -> String {
    let interpreter = process.runtime.and_then(|runtime| runtime.interpreter.as_ref());
    if let Some(switch) = attempt.ignored
        && let Some(runtime) = process.runtime
        && let Some(flag) = switch.main_flag()
    {
        let letters: Vec<String> = runtime.ignoring_variables.chars().map(|letter| format!("-{letter}")).collect();
        let (letters, otherwise) = (letters.join(" or "), process.mapping_advice(Some(switch)));
        return format!(
            "start it with {flag} if it is started with {letters}, which ignore variables. If it isn't, {otherwise}"
        );
    }
    if let Some(switch) = &attempt.switched_on {
        if attempt.needs_copies {
            return format!("{switch} was on, but the code keeps no frame pointers; {DWARF}");
        }
        return match interpreter.map_or("", |interpreter| interpreter.why_uncompiled) {
            "" => format!("{switch} was on; the engine still gives some functions no frame of their own"),
            why => format!("{switch} was on; {why}"),
        };
    }
    // The switch was given to another process, such as the parent: a variable would have reached this one, too.
    if let Some(switch) = attempt.lost_switch
        && let Some(by_variable) = process.variable_advice(switch)
    {
        return by_variable;
    }
    // The remedy in the table is the same for all versions, and may name switches that this process's version or
    // options rule out. The advice for this process names only usable ones. A switch's name is the same in both texts.
    let usual_remedy = interpreter.map_or("", |interpreter| interpreter.remedy);
    let Some(advice) = &process.advice else { return usual_remedy.to_owned() };
    let is_usable = |switch: &Switch| advice.contains(&switch.name());
    let switches = process.runtime.map_or(&[][..], |runtime| runtime.switches);
    let alternatives: Vec<&Switch> = switches.iter().filter(|switch| usual_remedy.contains(&switch.name())).collect();
    if !alternatives.is_empty() {
        // One usable switch is enough: the remedy names them as alternatives.
        let can_be_followed = alternatives.into_iter().any(is_usable);
        return if can_be_followed { usual_remedy.to_owned() } else { process.switch_advice() };
    }
    // A remedy that names no switch assumes that the runtime's first one is on.
    if switches.first().is_none_or(is_usable) {
        usual_remedy.to_owned()
    } else {
        format!("{}; {usual_remedy}", process.switch_advice())
    }
}

/// Reports that a process spent its time in the interpreter of `runtime`. `None` if it didn't, or if the interpreted
/// functions have names.
fn find_interpreted(
    runtime: &'static Runtime,
    pid: Pid,
    tally: &ProcessTally,
    context: DoctorContext<'_>,
) -> Option<Finding> {
    let interpreter = runtime.interpreter.as_ref()?;
    let Interpreter { has_frame_per_call, .. } = *interpreter;
    // Samples are counted for the first of all runtimes that share this interpreter.
    let number = RUNTIMES.iter().position(|other| other.shares_interpreter(runtime))?;
    let interpreted_samples = tally.interpreted.get(&number).copied().unwrap_or_default();
    // Recognize the interpreter's functions by name. If the interpreter is stripped, take samples in the runtime's
    // files, provided that they are most of the process's samples.
    let visible = match interpreted_samples.all {
        AffectedCounts { samples: 0, .. } if !has_frame_per_call => {
            stripped_runtime_samples(pid, runtime, tally, context)?
        }
        all => all,
    };
    if visible.samples == 0 {
        return None;
    }
    // If the runtime compiled functions of the program, the interpreter is only a part of the picture. Unnamed JIT code
    // in less than 5% of the samples doesn't count, because libraries compile regular expressions.
    let has_jit = tally.named > 0 || tally.with_unnamed * 20 > visible.samples;
    let samples = if has_frame_per_call {
        // Each interpreted call has a frame, so only samples whose innermost function is interpreted count.
        interpreted_samples.innermost
    } else if has_jit {
        return None;
    } else {
        visible.samples
    };
    // The impact is only 90%, because the interpreter also calls functions of its own, which have names.
    let share = Share { frames: visible.frames, ..context.share_of_samples(samples, 0.9) };
    let version = context.version(pid, runtime);
    let facts = RunFacts { version, ..RunFacts::default() };
    let lacks_switch = !runtime.switches.is_empty() && runtime.best_switch(facts).is_none();
    let given = context.given_switch(pid, runtime);
    let ignored = given.filter(|switch| is_ignored(switch, pid, runtime, context));
    let switched_on = match ignored {
        Some(_) => None,
        None => interpreter_flag(runtime, interpreter, pid, given, context),
    };
    let was_given = switched_on.is_some() || given.is_some();
    // Without frame pointers, call chains skip all functions of the program, so stacks must be copied.
    let wants_copies = runtime.callers == Callers::InDump;
    let attempt = Attempt {
        too_old: version.filter(|_| lacks_switch).map(|version| version.to_string()),
        needs_copies: wants_copies && switched_on.is_some() && context.stacks == RecordedStacks::Chains,
        switched_on,
        ignored,
        lost_switch: if was_given { None } else { context.given_elsewhere(Some(runtime)) },
    };
    let finding = interpreted(&context.describe_process(pid, Some(runtime)), share, &attempt);
    // If the runtime has no switch for interpreted functions, and the one for compiled functions was on, no other
    // command helps.
    let can_name_functions = !has_frame_per_call || interpreter.flag.is_some();
    let change = finding.change.filter(|_| can_name_functions || given.is_none());
    Some(finding.with_change(change))
}

/// True if a process that was started by another one apparently ignored a switch that is set by a variable. Its own
/// options are unknown, but it mapped no jitdump, although the switch makes it write one.
fn is_ignored(switch: &Switch, pid: Pid, runtime: &Runtime, context: DoctorContext<'_>) -> bool {
    let may_ignore = !runtime.ignoring_variables.is_empty() && context.command_of(pid).is_none();
    may_ignore && switch.writes_only_dumps() && !context.has_mapped_dump(pid)
}

/// The flag that makes the runtime name interpreted functions, if the process received it. `None` if it didn't, or if
/// the runtime has no such flag.
fn interpreter_flag(
    runtime: &'static Runtime,
    interpreter: &Interpreter,
    pid: Pid,
    given: Option<&Switch>,
    context: DoctorContext<'_>,
) -> Option<String> {
    match interpreter.flag {
        Some(flag) if context.has_received(pid, runtime, flag) => Some(flag.to_string()),
        Some(_) => None,
        // The runtime's perf map or dump only names compiled functions.
        None if interpreter.has_frame_per_call => None,
        // In all other runtimes, compiled functions have names, and the switch that was given provides them.
        None => given.map(Switch::name),
    }
}

/// Counts frames in the runtime's files that have no symbols: they are probably in its interpreter, whose functions
/// can't be recognized there. `None` unless more than half of the process's samples are in such files.
fn stripped_runtime_samples(
    pid: Pid,
    runtime: &Runtime,
    tally: &ProcessTally,
    context: DoctorContext<'_>,
) -> Option<AffectedCounts> {
    let mut all = AffectedCounts::default();
    for (cause, affected) in &context.tally.causes {
        let Cause::Stripped(id) = cause else { continue };
        let path = &context.dso(*id).path;
        let is_of_runtime = RuntimeSet::from_files(std::iter::once(&path[..])).iter().any(|of| of.name == runtime.name);
        if is_of_runtime && context.programs.mappings(pid).any(|mapping| mapping.path == *path) {
            all.merge(*affected);
        }
    }
    // A sample counts once for each file in its stack.
    all.samples = all.samples.min(tally.samples);
    if all.samples * 2 > tally.samples { Some(all) } else { None }
}
