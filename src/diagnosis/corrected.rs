//! Corrects the recorded command. For each problem that a new recording would solve, this makes a command with the
//! missing options added, ready to paste.

use super::context::{DoctorContext, RecordedStacks, command_line};
use super::problem::{Finding, OfProcess, Problem, UnwindingDump, Who};
use crate::model::Pid;
use crate::resolve::unwind::registers::Machine;
use crate::runtimes::record_command::RecordCommand;
use crate::runtimes::{Callers, CorrectedCommand, Runtime, Stacks, Switch, program_at};

/// Maximum length of a command in bytes. Longer commands aren't suitable for pasting and are omitted.
const LONGEST: usize = 4096;

/// The part of the recorded command that has to change to solve a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The clock of the recording (`perf record -k`).
    Clock,
    /// How stacks are recorded (`perf record --call-graph`).
    Stacks,
    /// The options or environment variables of the recorded program.
    Program,
    /// The options or environment variables of the recorded program that make it write a jitdump with unwinding
    /// information for JIT code.
    Callers,
}

/// The part of the command to change for a new recording without this problem. `None` if a new recording would have the
/// same problem, or if changing the command isn't enough.
fn change(problem: &Problem) -> Option<Change> {
    match problem {
        Problem::NoCallChains => Some(Change::Stacks),
        Problem::OfProcess(_, problem) => match problem {
            OfProcess::Clock { is_monotonic, .. } => (!is_monotonic).then_some(Change::Clock),
            OfProcess::Doubtful { is_best, .. } => (!is_best).then_some(Change::Clock),
            OfProcess::Silent { given: None, .. }
            | OfProcess::Refused { unmapped: false, .. }
            | OfProcess::OtherRun { .. }
            | OfProcess::Incomplete { given: None, .. }
            | OfProcess::Incomplete { spoiler: Some(_), .. }
            | OfProcess::Interpreted { too_old: None, switched_on: None, .. }
            | OfProcess::JvmFramePointers { .. } => Some(Change::Program),
            OfProcess::Interpreted { too_old: None, by_chains: true, .. } => Some(Change::Stacks),
            OfProcess::FramePointers { in_go: true, .. } => None,
            OfProcess::FramePointers { machine, in_jit, callers, .. } => {
                let can_be_found = !in_jit || *callers != Callers::Unknown;
                (Machine::is_any_known(*machine) && can_be_found).then_some(Change::Stacks)
            }
            OfProcess::NotUnwound { in_jit, dump, .. } => {
                (*in_jit && *dump == UnwindingDump::NotRequested).then_some(Change::Callers)
            }
            OfProcess::Silent { given: Some(_), .. }
            | OfProcess::SilentUnderValgrind { .. }
            | OfProcess::NotNamedYet { .. }
            | OfProcess::NoInstructions
            | OfProcess::NotWritten { .. }
            | OfProcess::Missing { .. }
            | OfProcess::OtherProcess { .. }
            | OfProcess::Refused { unmapped: true, .. }
            | OfProcess::Empty { .. }
            | OfProcess::Torn { .. }
            | OfProcess::Overwritten { .. }
            | OfProcess::Replaced { .. }
            | OfProcess::EndsEarly { .. }
            | OfProcess::ImagesGone { .. }
            | OfProcess::Incomplete { .. }
            | OfProcess::Interpreted { .. } => None,
        },
        Problem::NoSamples { .. }
        | Problem::FewSamples { .. }
        | Problem::Damaged { .. }
        | Problem::Lost { .. }
        | Problem::ChainsCut { .. }
        | Problem::TooDeep { .. }
        | Problem::CopiesShort { .. }
        | Problem::NoUnwinder { .. }
        | Problem::FilesGone { .. }
        | Problem::OtherVersion { .. }
        | Problem::NotElf { .. }
        | Problem::Stripped { .. }
        | Problem::StrippedPackages { .. }
        | Problem::Symbolless { .. }
        | Problem::Kernel { .. }
        | Problem::Vdso { .. }
        | Problem::MapMissing { .. }
        | Problem::MapMisfit { .. }
        | Problem::Guest
        | Problem::Nowhere { .. } => None,
    }
}

/// Sets the corrected command of each finding that a new recording would solve. Flags that one finding needs are in all
/// commands, so that a single new recording solves all these problems.
pub(super) fn add(findings: &mut [Finding], context: DoctorContext<'_>) {
    let mut is_silent = false;
    let mut needs_copies = false;
    for finding in findings.iter().filter(|finding| finding.is_significant()) {
        // A switch that makes a runtime write names may also make its code keep frame pointers. So while it is still
        // missing, don't suggest copying stacks: first see whether they still break off with the switch.
        is_silent |= matches!(finding.problem, Problem::OfProcess(_, OfProcess::Silent { given: None, .. }))
            && program(finding.problem.process(), context).is_some();
        needs_copies |= change(&finding.problem) == Some(Change::Stacks);
    }
    let copies = needs_copies && !is_silent && context.stacks != RecordedStacks::None;
    let main_process = findings.iter().find_map(|finding| process_with_runtime(&finding.problem)).cloned();
    for finding in findings {
        let process = process_with_runtime(&finding.problem).or(main_process.as_ref());
        if let Some(change) = change(&finding.problem)
            && !is_beyond_switches(&finding.problem, process, context)
        {
            finding.command = correct_command(process, copies, change, context);
        }
    }
}

/// The process that the problem belongs to. `None` if it belongs to none, or if the process runs no known runtime.
fn process_with_runtime(problem: &Problem) -> Option<&Who> {
    problem.process().filter(|process| process.runtime.is_some())
}

/// True if a program was interpreted although its runtime received a switch to write names, and the runtime has no
/// switch that names interpreted functions.
fn is_beyond_switches(problem: &Problem, process: Option<&Who>, context: DoctorContext<'_>) -> bool {
    let Problem::OfProcess(_, OfProcess::Interpreted { .. }) = problem else { return false };
    let Some(process) = process else { return false };
    let Some(runtime) = process.runtime else { return false };
    let Some(interpreter) = &runtime.interpreter else { return false };
    let can_name_functions = !interpreter.frame_a_call || interpreter.flag.is_some();
    !can_name_functions && context.given_switch(process.pid, runtime).is_some()
}

/// The switch that makes a process's runtime write names, and the recorded program with that switch added. `None` if
/// perf attached to a running process, or if the program merely embeds the runtime and so doesn't read its variables.
fn program(process: Option<&Who>, context: DoctorContext<'_>) -> Option<(&'static Switch, CorrectedCommand)> {
    let process = process?;
    let runtime = process.runtime?;
    let perf = context.command().filter(|perf| !perf.records_others && !perf.program.is_empty())?;
    let memory = context.memory(process.pid);
    let facts = context.facts(process.pid, runtime, &memory);
    let given = context.given_switch(process.pid, runtime).filter(|switch| switch.is_in(facts.version));
    let switch = given.or_else(|| runtime.best_switch(facts))?;
    // Older versions of the runtime refuse this flag, and no recorded file shows which version ran.
    if switch.since.is_some() && !switch.flags.is_empty() && runtime.version_behind.is_empty() {
        return None;
    }
    let command = command_line(perf.program);
    let corrected = match context.command_of(process.pid) {
        Some(_) => runtime.correct(switch, command, "."),
        // Another recorded process started this one, so options of the recorded command don't reach it. Environment
        // variables do.
        None => runtime.correct_by_variable(switch, command, "."),
    };
    Some((switch, corrected?))
}

/// The corrected command. `None` if the part to change would stay as it was recorded.
fn correct_command(process: Option<&Who>, copies: bool, change: Change, context: DoctorContext<'_>) -> Option<String> {
    let recorded = RecordCommand::from_perf(context.command()?);
    let mut stacks = Stacks::FramePointers;
    let mut unwinds_by_dump = false;
    if let Some(process) = process
        && let Some(runtime) = process.runtime
    {
        stacks = runtime.stacks(context.facts(process.pid, runtime, &[]));
        unwinds_by_dump = runtime.callers == Callers::InDump;
    }
    let mut command = recorded.clone().with_clock();
    if let Some((switch, program)) = program(process, context) {
        let leaves_dump = switch.leaves.iter().any(|file| file.ends_with(".dump"));
        let is_suitable = match change {
            Change::Clock | Change::Program => true,
            // If a runtime's code can only be unwound with a jitdump, a stack ends at code that only a perf map names.
            Change::Stacks => !unwinds_by_dump || leaves_dump,
            Change::Callers => unwinds_by_dump && leaves_dump,
        };
        if is_suitable {
            stacks = switch.stacks;
            command = command.with_program(program);
        }
    }
    if copies && context.stacks == RecordedStacks::Chains {
        stacks = Stacks::Copies;
    }
    let with_stacks = command.clone().with_stacks(stacks);
    let is_changed = match change {
        Change::Clock => command.options != recorded.options,
        Change::Stacks => with_stacks.options != command.options,
        Change::Program | Change::Callers => command.program != recorded.program || !command.variables.is_empty(),
    };
    if !is_changed {
        return None;
    }
    let text = with_stacks.to_string();
    (text.len() <= LONGEST).then_some(text)
}

/// True if the program in the recorded command is the process's runtime itself, so that the runtime's options are
/// known.
pub(super) fn is_command_of(runtime: &Runtime, pid: Pid, context: DoctorContext<'_>) -> bool {
    let words = context.command_of(pid).unwrap_or_default();
    program_at(words, |name| runtime.is_program(name)).is_some()
}
