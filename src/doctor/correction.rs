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
    let mut is_silent = false;
    let mut needs_copies = false;
    let mut needs_largest_copies = false;
    for finding in findings.iter().filter(|finding| finding.is_significant()) {
        // A switch that makes a runtime write names may also make its code keep frame pointers. So while it is still
        // missing, don't suggest copying stacks: first see whether they still break off with the switch.
        is_silent |= finding.kind == FindingKind::NoDumpOrMap
            && finding.change == Some(Change::Program)
            && program(finding.process.as_ref(), None, context).is_some();
        needs_copies |= finding.change == Some(Change::Stacks);
        needs_largest_copies |= finding.change == Some(Change::CopySize);
    }
    let copies = match (needs_copies && !is_silent && context.stacks == RecordedStacks::Chains, needs_largest_copies) {
        (_, true) => Copies::Largest,
        (true, false) => Copies::Usual,
        (false, false) => Copies::AsRecorded,
    };
    let main_process = findings.iter().find_map(process_with_runtime).cloned();
    for finding in findings {
        let process = process_with_runtime(finding).or(main_process.as_ref());
        if let Some(change) = finding.change {
            // The switch that makes the runtime write the names of compiled functions may have been on during the
            // recording. To name interpreted functions, some runtimes need another flag in addition.
            let wants_flag = finding.kind == FindingKind::Interpreted;
            let flag = process.filter(|_| wants_flag).and_then(interpreter_flag);
            finding.command = correct_command(process, flag, copies, change, context);
        }
    }
}

/// The process that the problem belongs to. `None` if it belongs to none, or if the process runs no known runtime.
fn process_with_runtime(finding: &Finding) -> Option<&ExaminedProcess> {
    finding.process.as_ref().filter(|process| process.runtime.is_some())
}

/// The flag that makes the process's runtime name interpreted functions.
fn interpreter_flag(process: &ExaminedProcess) -> Option<Flag> {
    process.runtime?.interpreter.as_ref()?.flag
}

/// The switch that makes a process's runtime write names, and the recorded program with that switch and `flag` added.
/// `None` if perf attached to a running process, or if the program merely embeds the runtime, because such a program
/// doesn't read the runtime's variables.
fn program(
    process: Option<&ExaminedProcess>,
    flag: Option<Flag>,
    context: DoctorContext<'_>,
) -> Option<(&'static Switch, CorrectedCommand)> {
    let process = process?;
    let runtime = process.runtime?;
    let perf = context.command().filter(|perf| !perf.records_others && !perf.program.is_empty())?;
    let memory = context.memory(process.pid);
    let facts = context.facts(process.pid, runtime, &memory);
    let given = context.given_switch(process.pid, runtime).filter(|switch| switch.is_in(facts.version));
    let switch = given.or_else(|| runtime.best_switch(facts))?;
    // Older versions of the runtime refuse this flag, and no recorded file shows which version ran.
    if switch.since.is_some() && !switch.flags.is_empty() && runtime.version_prefixes.is_empty() {
        return None;
    }
    let command = command_line(perf.program);
    // If another recorded process started this one, options of the recorded command don't reach it, but environment
    // variables do. If such a variable has the switch, other flags belong there, too, to reach the same processes.
    let is_reached = context.command_of(process.pid).is_some() && !runtime.is_set_by_variable(switch, command);
    let corrected = if is_reached {
        runtime.correct_with_flag(switch, flag, command, ".")
    } else {
        runtime.correct_by_variable(switch, flag, command, ".")
    };
    Some((switch, corrected?))
}

/// The copies of stacks that a corrected command makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copies {
    /// Copies if the recorded command made some, and of the same size, or if the runtime needs them.
    AsRecorded,
    /// Copies of perf's default size.
    Usual,
    /// Copies as large as perf supports.
    Largest,
}

/// The corrected command. `None` if the part to change would stay as it was recorded.
fn correct_command(
    process: Option<&ExaminedProcess>,
    flag: Option<Flag>,
    copies: Copies,
    change: Change,
    context: DoctorContext<'_>,
) -> Option<String> {
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
    if let Some((switch, program)) = program(process, flag, context) {
        let leaves_dump = switch.writes_dump();
        let is_suitable = match change {
            Change::Clock | Change::Program | Change::CopySize => true,
            // If a runtime's code can only be unwound with a jitdump, a stack ends at code that only a perf map names.
            Change::Stacks => !unwinds_by_dump || leaves_dump,
            Change::Callers => unwinds_by_dump && leaves_dump,
        };
        if is_suitable {
            stacks = switch.stacks;
            command = command.with_program(program);
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
    (text.len() <= LONGEST).then_some(text)
}

/// True if the program in the recorded command is the process's runtime itself, so that the runtime's options are
/// known.
pub(super) fn is_command_of(runtime: &Runtime, pid: Pid, context: DoctorContext<'_>) -> bool {
    let words = context.command_of(pid).unwrap_or_default();
    find_program(words, |name| runtime.is_program(name)).is_some()
}
