//! Corrects the recorded command: for each problem that a new recording would solve, makes a `jitgraft record` command
//! that is ready to paste. Options that `jitgraft record` adds by itself are left out.

use super::context::{DoctorContext, RecordedStacks, command_line};
use super::finding::{Change, Finding};
use super::kind::FindingKind;
use super::process::ExaminedProcess;
use crate::model::Pid;
use crate::runtimes::record_command::{LARGEST_COPY, RecordCommand};
use crate::runtimes::{Callers, CorrectedCommand, Flag, Runtime, Stacks, Switch, find_program, runtime_of_command};

/// Maximum length of a command in bytes. Longer commands aren't suitable for pasting and are omitted.
const LONGEST: usize = 4096;

/// Sets the corrected command of each finding that a new recording would solve. Options that are needed for one finding
/// are in the commands of all findings, so that one new recording solves all of them.
pub(super) fn add_commands(findings: &mut [Finding], context: DoctorContext<'_>) {
    let copies = choose_copies(findings, context);
    let main_process = findings.iter().find_map(process_with_runtime).cloned();
    for finding in findings {
        let Some(change) = finding.change else { continue };
        let process = process_with_runtime(finding).or(main_process.as_ref());
        // To name interpreted functions, some runtimes need another flag in addition to the switch that names compiled
        // functions. That switch may already have been on during the recording.
        let flag = match finding.kind {
            FindingKind::Interpreted => process.and_then(interpreter_flag),
            _ => None,
        };
        let Some(correction) = correct_command(process, flag, copies, change, context) else { continue };
        finding.command = Some(correction.command);
        if finding.is_solved_by_command {
            // The finding's remedy only says how to record again, and the corrected command does just that. So let the
            // remedy say what the command changes instead.
            finding.remedy = correction.effect;
        }
    }
}

/// Chooses whether the corrected commands copy stacks, and how much of them. All commands get the same answer, so that
/// each of them solves all findings.
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
    // A switch that makes a runtime write names may also make its code keep frame pointers. So if the new command adds
    // such a switch, don't make it copy stacks, too: call chains may be complete then.
    // `Chains`: stacks that are copied already stay as they are, and a recording without stacks gets call chains first.
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

/// The flag that makes the process's runtime name interpreted functions; `None` if there is none.
fn interpreter_flag(process: &ExaminedProcess) -> Option<Flag> {
    process.runtime?.interpreter.as_ref()?.flag
}

/// The recorded program with the switch added that makes its runtime write names.
struct CorrectedProgram {
    switch: &'static Switch,
    command: CorrectedCommand,
}

/// Adds to the recorded program the switch that makes the process's runtime write names, and `flag`. `None` if perf
/// attached to running processes, if no suitable switch is known, or if the program merely embeds the runtime: such a
/// program doesn't read the runtime's variables.
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
    // If the process was given a switch that its version of the runtime doesn't have, the switch had no effect. Take
    // another one then.
    let given = context.given_switch(process.pid, runtime).filter(|switch| switch.is_in(facts.version));
    let switch = given.or_else(|| runtime.best_switch(facts))?;
    // A runtime older than `switch.since` refuses the switch's flags and doesn't start. If recordings don't show the
    // runtime's version, adding the switch is too risky.
    if switch.since.is_some() && !switch.flags.is_empty() && runtime.version_prefixes.is_empty() {
        return None;
    }
    let command = command_line(perf.program);
    // If another recorded process started this one, options in the recorded command don't reach it, but environment
    // variables do. If the recorded command already sets the switch by a variable, set `flag` by a variable, too, so
    // that it reaches the same processes.
    let is_reached_by_options =
        context.command_of(process.pid).is_some() && !runtime.is_set_by_variable(switch, command);
    // `.` replaces `DIR` in the values of variables: the runtime writes to the current directory.
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
    /// Copy stacks if the recorded command did, or if the runtime's stacks can't be recorded otherwise.
    AsRecorded,
    /// Copy stacks, up to perf's default size.
    Usual,
    /// Copy stacks, up to the largest size that perf supports.
    Largest,
}

/// A command that makes a new recording without a problem.
struct Correction {
    /// The corrected command, for a shell.
    command: String,
    /// A clause that says what is different with the corrected command.
    effect: String,
}

/// Corrects the recorded command. `change` is the part that has to change to solve the problem, `process` is the
/// process with the problem, and `flag` is added to the program's options. `None` if that part would stay as recorded,
/// or if the command would be longer than [`LONGEST`].
fn correct_command(
    process: Option<&ExaminedProcess>,
    flag: Option<Flag>,
    copies: Copies,
    change: Change,
    context: DoctorContext<'_>,
) -> Option<Correction> {
    let recorded = RecordCommand::from_perf(context.command()?);
    // `stacks` is how perf gets stacks through the runtime's code. `unwinds_by_dump` is true if copied stacks can be
    // unwound through that code only with the runtime's jitdump.
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
        // If stacks can be unwound only with a jitdump, a switch that writes nothing but a perf map doesn't help.
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
    // Whether the description of the effect mentions the file that the switch writes. For stacks, it does only if the
    // file is what makes unwinding possible.
    let is_about_switch = matches!(change, Change::Program | Change::Callers) || unwinds_by_dump;
    if is_program_changed
        && is_about_switch
        && let Some(corrected) = &corrected
    {
        effects.extend(process.and_then(|process| describe_switch(process, corrected.switch)));
    }
    // Another finding needs copied stacks, so all commands copy them.
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
    // If the switch is unsuitable, the command must be one of `perf record`: `jitgraft record` would turn the switch
    // on. `corrected.and(process)` is the process if its program was corrected.
    let command = if is_suitable {
        command_to_print(complete, &recorded, corrected.and(process), context)
    } else {
        complete.to_string()
    };
    let correction = Correction { command, effect: effects.join("; ") };
    if correction.command.len() <= LONGEST { Some(correction) } else { None }
}

/// A clause that says which file the runtime of a process writes if this switch is on, such as `Node.js then writes
/// jit-PID.dump (--perf-prof)`. `None` if the process runs no known runtime.
fn describe_switch(process: &ExaminedProcess, switch: &Switch) -> Option<String> {
    let runtime = process.runtime?;
    let since = switch.since.map_or_else(String::new, |since| format!(" ({since} or newer)"));
    let at_end = if switch.at_end { " when it exits normally" } else { "" };
    let leaves = switch.leaves.join(", ");
    Some(format!("{}{since} then writes {leaves}{at_end} ({})", runtime.name, switch.name()))
}

/// Formats a corrected command for a shell, as one of `jitgraft record` if possible. The recorded program is printed
/// unchanged if `jitgraft record` would change it in the same way by itself. `changed` is the process whose program was
/// corrected; `None` if the program is as recorded.
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
        // `jitgraft record` finds out a program's version only if the command line names the program.
        let version = changed.filter(|_| by_name.is_some()).and_then(|process| context.version(process.pid, runtime));
        // `.` is the directory that `correct_program` used, too. With another one, the variables would differ.
        let plan = runtime.plan_program(command_line(&recorded.program), version, ".");
        // `jitgraft record` adds `--call-graph dwarf` by itself if the switch that it chooses needs it. Leave the
        // option out only if all switches of the runtime need it, because it may choose another switch than we expect.
        if runtime.switches.iter().all(|switch| switch.stacks == Stacks::Copies) {
            stacks = plan.stacks;
        }
        if let Some(planned) = plan.command {
            // `planned` is what `jitgraft record` would make of the recorded program. It makes the same change if it
            // sets all variables of the corrected command, and gives the program the corrected options (or none were
            // corrected).
            let has_variables = complete.variables.iter().all(|variable| planned.variables.contains(variable));
            let has_words = complete.program == planned.words || complete.program == recorded.program;
            if has_variables && has_words {
                complete.variables = Vec::new();
                complete.program.clone_from(&recorded.program);
            }
        }
    }
    // If `jitgraft record` wouldn't recognize the runtime by the program's name, state it (`--runtime`).
    let is_found_by_name = by_name.map(|runtime| runtime.name) == runtime.map(|runtime| runtime.name);
    let stated = runtime.filter(|_| !is_found_by_name).map(Runtime::typed_name);
    complete.to_jitgraft_record(stated.as_deref(), stacks).unwrap_or_else(|| complete.to_string())
}

/// True if the recorded command starts the process's runtime itself, so that the runtime's options are known. False if
/// it starts another program, which starts the runtime.
pub(super) fn is_command_of(runtime: &Runtime, pid: Pid, context: DoctorContext<'_>) -> bool {
    let words = context.command_of(pid).unwrap_or_default();
    find_program(words, |name| runtime.is_program(name)).is_some()
}
