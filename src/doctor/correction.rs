//! Corrects the recorded command. For each problem that a new recording would solve, this makes a command of `jitgraft
//! record`, ready to paste. What `jitgraft record` adds by itself is left out.

use super::context::{DoctorContext, RecordedStacks, command_line};
use super::finding::{Change, Finding};
use super::kind::FindingKind;
use super::process::ExaminedProcess;
use crate::model::Pid;
use crate::runtimes::record_command::{LARGEST_COPY, RecordCommand};
use crate::runtimes::{Callers, CorrectedCommand, Flag, Runtime, Stacks, Switch, find_program, runtime_of_command};

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
        // The switch that makes the runtime write the names of compiled functions may have been on during the
        // recording. To name interpreted functions, some runtimes need another flag in addition.
        let flag = match finding.kind {
            FindingKind::Interpreted => process.and_then(interpreter_flag),
            _ => None,
        };
        let Some(correction) = correct_command(process, flag, copies, change, context) else { continue };
        finding.command = Some(correction.command);
        if finding.is_solved_by_command {
            finding.remedy = correction.effect;
        }
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
    // A switch that makes a runtime write names may also make its code keep frame pointers. So while the switch is
    // still missing, don't suggest copying stacks: first see whether they still break off with the switch.
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

/// A command that makes a new recording without a problem.
struct Correction {
    /// The command, for a shell.
    command: String,
    /// A clause that says what the command changes.
    effect: String,
}

/// Corrects the recorded command. `change` is the part of the command that has to change to solve a problem, `process`
/// is the process with the problem, and `flag` is added to the program's options. `None` if the part to change would
/// stay as it was recorded.
fn correct_command(
    process: Option<&ExaminedProcess>,
    flag: Option<Flag>,
    copies: Copies,
    change: Change,
    context: DoctorContext<'_>,
) -> Option<Correction> {
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
    let mut effects = Vec::new();
    let mut corrected = correct_program(process, flag, context);
    let is_suitable = corrected.as_ref().is_none_or(|corrected| match change {
        Change::Clock | Change::Program | Change::CopySize => true,
        // Code that can only be unwound with a jitdump ends the stack if the switch only writes a perf map.
        Change::Stacks => !unwinds_by_dump || corrected.switch.writes_dump(),
        Change::Callers => unwinds_by_dump && corrected.switch.writes_dump(),
    });
    if !is_suitable {
        corrected = None;
    }
    if let Some(corrected) = &corrected {
        stacks = corrected.switch.stacks;
        command = command.with_program(corrected.command.clone());
    }
    let is_program_changed = command.program != recorded.program || !command.variables.is_empty();
    // Stacks only depend on the switch if they are unwound by the dump that it makes the runtime write.
    let is_about_switch = matches!(change, Change::Program | Change::Callers) || unwinds_by_dump;
    if is_program_changed
        && is_about_switch
        && let Some(corrected) = &corrected
    {
        effects.extend(process.and_then(|process| describe_switch(process, corrected.switch)));
    }
    if copies == Copies::Usual {
        stacks = Stacks::Copies;
    }
    let with_stacks = command.clone().with_stacks(stacks);
    let complete = match copies {
        Copies::Largest => with_stacks.clone().with_largest_copies(),
        Copies::AsRecorded | Copies::Usual => with_stacks.clone(),
    };
    match change {
        Change::Clock => effects.push("perf then uses the clock of jitdumps (-k mono)".to_owned()),
        Change::CopySize => effects.push(format!("perf then copies up to {LARGEST_COPY} bytes of each stack")),
        Change::Stacks if stacks == Stacks::Copies => {
            effects.push(
                "perf then copies the stacks (--call-graph dwarf), which shows callers without frame pointers"
                    .to_owned(),
            );
        }
        Change::Stacks => effects.push("perf then records call chains".to_owned()),
        Change::Program | Change::Callers => {}
    }
    let is_changed = match change {
        Change::Clock => command.options != recorded.options,
        Change::Stacks => with_stacks.options != command.options,
        Change::CopySize => complete.options != with_stacks.options,
        Change::Program | Change::Callers => is_program_changed,
    };
    if !is_changed {
        return None;
    }
    // `jitgraft record` would turn on the unsuitable switch.
    let command = if is_suitable {
        command_to_print(complete, &recorded, corrected.and(process), context)
    } else {
        complete.to_string()
    };
    let correction = Correction { command, effect: effects.join("; ") };
    if correction.command.len() <= LONGEST { Some(correction) } else { None }
}

/// A clause that says which file the runtime of a process writes if this switch is on. `None` if the process runs no
/// known runtime.
fn describe_switch(process: &ExaminedProcess, switch: &Switch) -> Option<String> {
    let runtime = process.runtime?;
    let since = switch.since.map_or_else(String::new, |since| format!(" ({since} or newer)"));
    let at_end = if switch.at_end { " when it exits normally" } else { "" };
    let leaves = switch.leaves.join(", ");
    Some(format!("{}{since} then writes {leaves}{at_end} ({})", runtime.name, switch.name()))
}

/// Formats a corrected command for a shell, as one of `jitgraft record` if possible. If `jitgraft record` would make
/// the same changes to the recorded program by itself, the program is printed as it was recorded. `changed` is the
/// process whose program was corrected; `None` if the program is as recorded.
fn command_to_print(
    mut complete: RecordCommand,
    recorded: &RecordCommand,
    changed: Option<&ExaminedProcess>,
    context: DoctorContext<'_>,
) -> String {
    let by_name = runtime_of_command(&recorded.program);
    let runtime = changed.and_then(|process| process.runtime).or(by_name);
    let mut stacks = Stacks::FramePointers;
    if let Some(runtime) = runtime {
        // `jitgraft record` only finds out the version of a program that the command line names.
        let version = changed.filter(|_| by_name.is_some()).and_then(|process| context.version(process.pid, runtime));
        let plan = runtime.plan_program(command_line(&recorded.program), version, ".");
        // Leave `--call-graph dwarf` out only if every switch that `jitgraft record` may choose needs it.
        if runtime.switches.iter().all(|switch| switch.stacks == Stacks::Copies) {
            stacks = plan.stacks;
        }
        if let Some(planned) = plan.command {
            let has_variables = complete.variables.iter().all(|variable| planned.variables.contains(variable));
            let has_words = complete.program == planned.words || complete.program == recorded.program;
            if has_variables && has_words {
                complete.variables = Vec::new();
                complete.program.clone_from(&recorded.program);
            }
        }
    }
    let is_found_by_name = by_name.map(|runtime| runtime.name) == runtime.map(|runtime| runtime.name);
    let stated = runtime.filter(|_| !is_found_by_name).map(Runtime::typed_name);
    complete.to_jitgraft_record(stated.as_deref(), stacks).unwrap_or_else(|| complete.to_string())
}

/// True if the recorded command starts the process's runtime itself, not another program that starts it. The options
/// that the runtime received are then known.
pub(super) fn is_command_of(runtime: &Runtime, pid: Pid, context: DoctorContext<'_>) -> bool {
    let words = context.command_of(pid).unwrap_or_default();
    find_program(words, |name| runtime.is_program(name)).is_some()
}
