//! Finds processes whose profile shows the functions of an interpreter, such as `_PyEval_EvalFrameDefault`, instead of
//! the functions that it interpreted.

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

/// What the recorded command already did to get names for interpreted functions, and why it had no effect.
#[derive(Debug, Default)]
pub(in super::super) struct Attempt {
    /// The version of the runtime, if this version is too old to name interpreted functions; otherwise `None`.
    too_old: Option<String>,
    /// The option that makes the runtime name interpreted functions and that the process received. `None` if it
    /// received none.
    switched_on: Option<String>,
    /// A switch for writing names in the recorded command that reached only another process. `None` if there is no such
    /// switch.
    lost_switch: Option<&'static Switch>,
    /// A switch that was set by a variable, but that the process seems to have ignored: it wrote none of the switch's
    /// files, and its runtime has options that make it ignore variables. `None` if there is no such switch.
    ignored: Option<&'static Switch>,
    /// True if `switched_on` had no effect because stacks were recorded as call chains: these don't get past the
    /// runtime's code, which keeps no frame pointers. Copied stacks would.
    needs_copies: bool,
}

/// Reports that the process spent `share` of the recording in its interpreter, without names for the interpreted
/// functions. `attempt` says what was done to get the names, and so why there are none.
pub(in super::super) fn interpreted(process: &ExaminedProcess, share: Share, attempt: &Attempt) -> Finding {
    let why = match (attempt.lost_switch, attempt.ignored) {
        (Some(switch), _) => not_reached(switch),
        (None, Some(switch)) => {
            let files = switch.leaves.join(", ");
            match switch.variables.first() {
                Some((name, value)) => format!("{name}={value} was set, but the process wrote no {files}"),
                None => format!("{} was set, but the process wrote no {files}", switch.name()),
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
    let cause = format!("functions that {PROCESS} ran in its interpreter have no names: {why}");
    // The part of the recorded command that a new recording would have to change. `None` if no change would help: the
    // runtime's version is too old, the process ignored the switch that it was given, or the switch was on and had its
    // full effect.
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

/// What the user can do to get names for interpreted functions. If nothing helps, why not.
fn remedy(process: &ExaminedProcess, attempt: &Attempt) -> String {
    let interpreter = process.runtime.and_then(|runtime| runtime.interpreter.as_ref());
    if let Some(switch) = attempt.ignored
        && let Some(runtime) = process.runtime
        && let Some(flag) = switch.main_flag()
    {
        // The process was given the switch by a variable, but wrote no file. Some options make the runtime ignore
        // variables, such as python's `-E` and `-I`; the remedy lists them.
        let letters: Vec<String> = runtime.ignoring_variables.chars().map(|letter| format!("-{letter}")).collect();
        let (letters, otherwise) = (letters.join(" or "), process.mapping_advice(Some(switch)));
        return format!(
            "if the process was started with {letters}, it ignored this variable: add the option {flag}. Otherwise, \
             {otherwise}"
        );
    }
    if let Some(switch) = &attempt.switched_on {
        if attempt.needs_copies {
            return format!("{switch} was on, but the code keeps no frame pointers; {DWARF}");
        }
        return match interpreter.map_or("", |interpreter| interpreter.why_uncompiled) {
            "" => format!("{switch} was on; the engine still gives some functions no frame of their own"),
            // The cause says that the switch was on.
            why => why.to_owned(),
        };
    }
    // The switch reached only another process, such as the parent. As a variable, it would have reached this process,
    // too.
    if let Some(switch) = attempt.lost_switch
        && let Some(by_variable) = process.variable_advice(switch)
    {
        return by_variable;
    }
    // The usual remedy, from the table of runtimes, is the same for all versions, so it may name switches that this
    // process can't use. The advice for this process names only usable switches, in the same spelling.
    let usual_remedy = interpreter.map_or("", |interpreter| interpreter.remedy);
    let Some(advice) = &process.advice else { return usual_remedy.to_owned() };
    let is_usable = |switch: &Switch| advice.contains(&switch.name());
    let switches = process.runtime.map_or(&[][..], |runtime| runtime.switches);
    let alternatives: Vec<&Switch> = switches.iter().filter(|switch| usual_remedy.contains(&switch.name())).collect();
    if !alternatives.is_empty() {
        // The usual remedy names its switches as alternatives, so one usable switch among them is enough.
        let can_be_followed = alternatives.into_iter().any(is_usable);
        return if can_be_followed { usual_remedy.to_owned() } else { process.switch_advice() };
    }
    // A usual remedy that names no switch assumes that the runtime's first switch is on. If this process can't use that
    // one, add the advice on another.
    if switches.first().is_none_or(is_usable) {
        usual_remedy.to_owned()
    } else {
        format!("{}; {usual_remedy}", process.switch_advice())
    }
}

/// Reports that a process spent much time in the interpreter of `runtime`, without names for the interpreted functions.
/// `None` if no sample shows this.
fn find_interpreted(
    runtime: &'static Runtime,
    pid: Pid,
    tally: &ProcessTally,
    context: DoctorContext<'_>,
) -> Option<Finding> {
    let interpreter = runtime.interpreter.as_ref()?;
    // Whether each interpreted call has a frame of the interpreter on the stack.
    let Interpreter { has_frame_per_call, .. } = *interpreter;
    // Runtimes may share an interpreter (`shares_interpreter`). Its samples are counted under the first of these
    // runtimes in `RUNTIMES`.
    let number = RUNTIMES.iter().position(|other| other.shares_interpreter(runtime))?;
    let interpreted_samples = tally.interpreted.get(&number).copied().unwrap_or_default();
    // The interpreter's functions are recognized by name. If it is stripped, count the samples in the runtime's files
    // instead, provided that these are most of the process's samples.
    let visible = match interpreted_samples.all {
        AffectedCounts { samples: 0, .. } if !has_frame_per_call => {
            stripped_runtime_samples(pid, runtime, tally, context)?
        }
        all => all,
    };
    if visible.samples == 0 {
        return None;
    }
    // If the runtime compiled functions of the program, samples in the interpreter alone don't show that names are
    // missing. Unnamed JIT code in less than 5% of the samples may be just regular expressions that a library compiled.
    let has_jit = tally.named > 0 || tally.with_unnamed * 20 > visible.samples;
    let samples = if has_frame_per_call {
        // The stack shows which function was interpreted. So a sample counts only if the innermost function of the
        // program was.
        interpreted_samples.innermost
    } else if has_jit {
        return None;
    } else {
        visible.samples
    };
    // Count only 90% of these samples, because in some of them the interpreter runs functions of its own, which have
    // names.
    let share = Share { frames: visible.frames, ..context.share_of_samples(samples, 0.9) };
    let version = context.version(pid, runtime);
    let facts = RunFacts { version, ..RunFacts::default() };
    // True if the runtime has switches for names, but none that this version can use.
    let lacks_switch = !runtime.switches.is_empty() && runtime.best_switch(facts).is_none();
    let given = context.given_switch(pid, runtime);
    let ignored = given.filter(|switch| is_ignored(switch, pid, runtime, context));
    let switched_on = match ignored {
        Some(_) => None,
        None => interpreter_flag(runtime, interpreter, pid, given, context),
    };
    let was_given = switched_on.is_some() || given.is_some();
    // The code of such a runtime keeps no frame pointers. Call chains therefore skip all functions of the program, and
    // only copied stacks show them.
    let wants_copies = runtime.callers == Callers::InDump;
    let attempt = Attempt {
        too_old: version.filter(|_| lacks_switch).map(|version| version.to_string()),
        needs_copies: wants_copies && switched_on.is_some() && context.stacks == RecordedStacks::Chains,
        switched_on,
        ignored,
        lost_switch: if was_given { None } else { context.given_elsewhere(Some(runtime)) },
    };
    let finding = interpreted(&context.describe_process(pid, Some(runtime)), share, &attempt);
    // If a new command can't name interpreted functions, and names of compiled functions were already on, no other
    // command helps.
    let can_name_functions = !has_frame_per_call || interpreter.flag.is_some();
    let change = finding.change.filter(|_| can_name_functions || given.is_none());
    Some(finding.with_change(change))
}

/// True if a process apparently ignored a switch that is set by a variable, because it was started with an option for
/// ignoring variables. Another process started it, so its options are unknown; but it mapped no jitdump, although the
/// switch makes the runtime write one.
fn is_ignored(switch: &Switch, pid: Pid, runtime: &Runtime, context: DoctorContext<'_>) -> bool {
    let may_ignore = !runtime.ignoring_variables.is_empty() && context.command_of(pid).is_none();
    may_ignore && switch.writes_only_dumps() && !context.has_mapped_dump(pid)
}

/// The option that makes the runtime name interpreted functions, if the process received it. `None` if it didn't, or if
/// the runtime has no such option.
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
        // The process's runtime has no flag that makes it name interpreted functions: its perf map or dump only names
        // compiled ones.
        None if interpreter.has_frame_per_call => None,
        // In all other runtimes, the switch that the process was given also gives interpreted functions names.
        None => given.map(Switch::name),
    }
}

/// Counts frames in those files of the runtime that have no symbols. They are probably in its interpreter, which can't
/// be recognized without symbols. `None` unless more than half of the process's samples are in such files.
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
        let mut owners = RuntimeSet::from_files(std::iter::once(&path[..])).iter();
        let is_of_runtime = owners.any(|owner| owner.name == runtime.name);
        if is_of_runtime && context.programs.mappings(pid).any(|mapping| mapping.path == *path) {
            all.merge(*affected);
        }
    }
    // A sample was added once for each such file in its stack, so the sum may exceed the number of samples.
    all.samples = all.samples.min(tally.samples);
    if all.samples * 2 > tally.samples { Some(all) } else { None }
}
