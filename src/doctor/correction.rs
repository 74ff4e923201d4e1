//! Corrects the recorded command. For each problem that a new recording would solve, this makes a command with the
//! missing options added, ready to paste.

use super::context::{DoctorContext, RecordedStacks, command_line};
use super::finding::{Change, Finding};
use super::kind::FindingKind;
use super::process::ExaminedProcess;
use crate::model::Pid;
use crate::runtimes::record_command::RecordCommand;
use crate::runtimes::{Callers, CorrectedCommand, Flag, Runtime, Stacks, Switch, find_program};

/// Maximum length of a command in bytes. Longer commands aren't suitable for pasting and are omitted.
const LONGEST: usize = 4096;

/// Sets the corrected command of each finding that a new recording would solve. Flags that one finding needs are in all
/// commands, so that a single new recording solves all these problems.
pub(super) fn add_commands(findings: &mut [Finding], context: DoctorContext<'_>) {
    let copies = choose_copies(findings, context);
    let main_process = findings.iter().find_map(process_with_runtime).cloned();
    for finding in findings {
        let Some(change) = finding.change else { continue };
        let process = process_with_runtime(finding).or(main_process.as_ref());
        // The switch that makes the runtime write the names of compiled functions may have been on during the recording.
        // To name interpreted functions, some runtimes need another flag in addition.
        let flag = match finding.kind {
            FindingKind::Interpreted => process.and_then(interpreter_flag),
            _ => None,
        };
        finding.command = correct_command(process, flag, copies, change, context);
    }
}

/// Chooses how the corrected commands copy stacks, so that this solves all findings.
fn choose_copies(findings: &[Finding], context: DoctorContext<'_>) -> Copies {
    let mut can_add_switch = false;
    let mut needs_copies = false;
    let mut needs_largest_copies = false;
    for finding in findings.iter().filter(|finding| finding.is_significant()) {
        can_add_switch |= finding.kind == FindingKind::NoDumpOrMap
            && finding.change == Some(Change::Program)
            && correct_program(finding.process.as_ref(), None, context).is_some();
        needs_copies |= finding.change == Some(Change::Stacks);
        needs_largest_copies |= finding.change == Some(Change::CopySize);
    }
    if needs_largest_copies {
        return Copies::Largest;
    }
    // A switch that makes a runtime write names may also make its code keep frame pointers. So while the switch is still
    // missing, don't suggest copying stacks: first see whether they still break off with the switch.
    if needs_copies && !can_add_switch && context.stacks == RecordedStacks::Chains {
        return Copies::Usual;
    }
    Copies::AsRecorded
}

/// The process that the finding is about. `None` if the finding is about no process, or if the process runs no known
/// runtime.
fn process_with_runtime(finding: &Finding) -> Option<&ExaminedProcess> {
    finding.process.as_ref().filter(|process| process.runtime.is_some())
}

/// The flag that makes the process's runtime name interpreted functions.
fn interpreter_flag(process: &ExaminedProcess) -> Option<Flag> {
    process.runtime?.interpreter.as_ref()?.flag
}

/// The recorded program with a switch added that makes its runtime write names.
struct CorrectedProgram {
    switch: &'static Switch,
    command: CorrectedCommand,
}

/// Adds to the recorded program the switch that makes the process's runtime write names, and `flag`. `None` if perf
/// attached to a running process, or if the program merely embeds the runtime, because such a program doesn't read the
/// runtime's variables.
fn correct_program(
    process: Option<&ExaminedProcess>,
    flag: Option<Flag>,
    context: DoctorContext<'_>,
) -> Option<CorrectedProgram> {
    let process = process?;
    let runtime = process.runtime?;
    let perf = context.command().filter(|perf| !perf.records_others && !perf.program.is_empty())?;
    let memory = context.memory(process.pid);
    let facts = context.run_facts(process.pid, runtime, &memory);
    let given = context.given_switch(process.pid, runtime).filter(|switch| switch.is_in(facts.version));
    let switch = given.or_else(|| runtime.best_switch(facts))?;
    // Versions older than `since` refuse the switch's flags and don't start. The version of this runtime can't be found
    // out from a recording, so adding the switch is too risky.
    if switch.since.is_some() && !switch.flags.is_empty() && runtime.version_prefixes.is_empty() {
        return None;
    }
    let command = command_line(perf.program);
    // If another recorded process started this one, options of the recorded command don't reach it, but environment
    // variables do. If a variable already sets the switch, `flag` must be in a variable, too, to reach the same
    // processes.
    let is_reached_by_options =
        context.command_of(process.pid).is_some() && !runtime.is_set_by_variable(switch, command);
    let corrected = if is_reached_by_options {
        runtime.correct_with_flag(switch, flag, command, ".")
    } else {
        runtime.correct_by_variable(switch, flag, command, ".")
    };
    Some(CorrectedProgram { switch, command: corrected? })
}

/// Whether a corrected command makes perf copy stacks (`--call-graph dwarf`), and how much of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copies {
    /// Keep what the recorded command did, unless the runtime needs copies.
    AsRecorded,
    /// Copies of perf's default size.
    Usual,
    /// Copies as large as perf supports.
    Largest,
}

/// Corrects the recorded command. `change` is the part of the command that has to change to solve a problem, `process` is
/// the process with the problem, and `flag` is added to the program's options. `None` if the part to change would stay as
/// it was recorded.
fn correct_command(
    process: Option<&ExaminedProcess>,
    flag: Option<Flag>,
    copies: Copies,
    change: Change,
    context: DoctorContext<'_>,
) -> Option<String> {
    let recorded = RecordCommand::from_perf(context.command()?);
    // How perf gets call chains through the runtime's code, and whether copies can only be unwound with its jitdump.
    let mut stacks = Stacks::FramePointers;
    let mut unwinds_by_dump = false;
    if let Some(process) = process
        && let Some(runtime) = process.runtime
    {
        stacks = runtime.stacks(context.run_facts(process.pid, runtime, &[]));
        unwinds_by_dump = runtime.callers == Callers::InDump;
    }
    let mut command = recorded.clone().with_clock();
    if let Some(corrected) = correct_program(process, flag, context) {
        let writes_dump = corrected.switch.writes_dump();
        let is_suitable = match change {
            Change::Clock | Change::Program | Change::CopySize => true,
            // Code that can only be unwound with a jitdump ends the stack if the switch only writes a perf map.
            Change::Stacks => !unwinds_by_dump || writes_dump,
            Change::Callers => unwinds_by_dump && writes_dump,
        };
        if is_suitable {
            stacks = corrected.switch.stacks;
            command = command.with_program(corrected.command);
        }
    }
    if copies == Copies::Usual {
        stacks = Stacks::Copies;
    }
    let with_stacks = command.clone().with_stacks(stacks);
    let complete = match copies {
        Copies::Largest => with_stacks.clone().with_largest_copies(),
        Copies::AsRecorded | Copies::Usual => with_stacks.clone(),
    };
    let is_changed = match change {
        Change::Clock => command.options != recorded.options,
        Change::Stacks => with_stacks.options != command.options,
        Change::CopySize => complete.options != with_stacks.options,
        Change::Program | Change::Callers => command.program != recorded.program || !command.variables.is_empty(),
    };
    if !is_changed {
        return None;
    }
    let text = complete.to_string();
    if text.len() <= LONGEST { Some(text) } else { None }
}

/// True if the recorded command starts the process's runtime itself, not another program that starts it. The options that
/// the runtime received are then known.
pub(super) fn is_command_of(runtime: &Runtime, pid: Pid, context: DoctorContext<'_>) -> bool {
    let words = context.command_of(pid).unwrap_or_default();
    find_program(words, |name| runtime.is_program(name)).is_some()
}
