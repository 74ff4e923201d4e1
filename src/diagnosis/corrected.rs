//! The recorded command with what it lacked, ready to paste: of each problem that recording again would mend.

use super::context::{DoctorContext, RecordedStacks};
use super::problem::{Finding, OfProcess, Problem, Who};
use crate::resolve::unwind::registers::Machine;
use crate::runtimes::record_command::RecordCommand;
use crate::runtimes::{CommandLine, CorrectedCommand, Environment, Runtime, Stacks, Switch, program_at};

/// A longer command is not for pasting.
const LONGEST: usize = 4096;

/// True if recording again with perf's options as they should be, and the runtime's, would mend it. If not, another
/// recording would be the same, or it takes more than a command.
fn is_mended(problem: &Problem) -> bool {
    match problem {
        Problem::NoCallChains => true,
        Problem::OfProcess(_, problem) => match problem {
            OfProcess::Clock { .. }
            | OfProcess::Doubtful { .. }
            | OfProcess::Silent { given: None, .. }
            | OfProcess::Refused { .. }
            | OfProcess::OtherRun { .. }
            | OfProcess::Incomplete { .. }
            | OfProcess::Interpreted { too_old: None, .. }
            | OfProcess::JvmFramePointers { .. } => true,
            OfProcess::FramePointers { machine, .. } => Machine::is_any_known(*machine),
            OfProcess::NotUnwound { in_jit, .. } => *in_jit,
            OfProcess::Silent { given: Some(_), .. }
            | OfProcess::SilentUnderValgrind { .. }
            | OfProcess::NotNamedYet { .. }
            | OfProcess::NoInstructions
            | OfProcess::NotWritten { .. }
            | OfProcess::Missing { .. }
            | OfProcess::OtherProcess { .. }
            | OfProcess::Empty { .. }
            | OfProcess::Torn { .. }
            | OfProcess::Replaced { .. }
            | OfProcess::EndsEarly { .. }
            | OfProcess::ImagesGone { .. }
            | OfProcess::Interpreted { too_old: Some(_), .. } => false,
        },
        Problem::NoSamples
        | Problem::FewSamples { .. }
        | Problem::Damaged { .. }
        | Problem::Lost { .. }
        | Problem::ChainsCut { .. }
        | Problem::TooDeep
        | Problem::CopiesShort { .. }
        | Problem::NoUnwinder { .. }
        | Problem::FilesGone { .. }
        | Problem::OtherVersion { .. }
        | Problem::NotElf { .. }
        | Problem::Stripped { .. }
        | Problem::StrippedPackages { .. }
        | Problem::Symbolless { .. }
        | Problem::Kernel { .. }
        | Problem::MapMissing { .. }
        | Problem::MapMisfit { .. }
        | Problem::Guest
        | Problem::Nowhere { .. } => false,
    }
}

/// Gives each finding its command. The flags that one of them needs, the others get, too: one recording mends them all.
pub(super) fn add(findings: &mut [Finding], context: DoctorContext<'_>) {
    let significant = || findings.iter().filter(|finding| finding.is_significant()).map(|finding| &finding.problem);
    // A switch that makes a runtime write names may make its code keep frame pointers, too: that is seen then.
    let is_silent = |problem: &Problem| {
        matches!(problem, Problem::OfProcess(_, OfProcess::Silent { given: None, .. }))
            && can_be_switched(problem, context)
    };
    let is_without_pointers =
        |problem: &Problem| matches!(problem, Problem::OfProcess(_, OfProcess::FramePointers { .. }));
    let copies = significant().any(|problem| is_without_pointers(problem) && is_mended(problem))
        && !significant().any(is_silent);
    let main =
        findings.iter().find_map(|finding| finding.problem.process().filter(|process| process.runtime.is_some()));
    let main = main.cloned();
    for finding in findings {
        let process = finding.problem.process().filter(|process| process.runtime.is_some()).or(main.as_ref());
        let lacks_switch = is_of_names(&finding.problem) && !can_be_switched(&finding.problem, context);
        if is_mended(&finding.problem) && !lacks_switch {
            finding.command = corrected(process, copies, context);
        }
    }
}

/// True if names are missing that only a runtime can write.
fn is_of_names(problem: &Problem) -> bool {
    use OfProcess::{Incomplete, Interpreted, Silent};
    matches!(problem, Problem::OfProcess(_, Silent { .. } | Interpreted { .. } | Incomplete { .. }))
}

/// True if the recorded command, corrected, makes the problem's runtime write names: not if it attached to a process,
/// nor if it ran a program that only contains the runtime.
fn can_be_switched(problem: &Problem, context: DoctorContext<'_>) -> bool {
    problem.process().and_then(|process| program(process, process.runtime?, context)).is_some()
}

/// The switch that makes a process's runtime write names, and the recorded program with it.
fn program(
    process: &Who,
    runtime: &'static Runtime,
    context: DoctorContext<'_>,
) -> Option<(&'static Switch, CorrectedCommand)> {
    let perf = context.command().filter(|perf| !perf.records_others && !perf.program.is_empty())?;
    let switch = switch(process, runtime, context)?;
    // Older versions refuse the flag, and no file in a recording shows which version it is.
    if switch.since.is_some() && !switch.flags.is_empty() && runtime.version_behind.is_empty() {
        return None;
    }
    Some((switch, runtime.corrected(switch, line(perf.program), ".")?))
}

/// `None` if nothing would change.
fn corrected(process: Option<&Who>, copies: bool, context: DoctorContext<'_>) -> Option<String> {
    let perf = context.command()?;
    let recorded = RecordCommand::of(perf);
    let runtime = process.and_then(|process| Some((process, process.runtime?)));
    let mut wanted = runtime
        .map_or(Stacks::FramePointers, |(process, runtime)| runtime.stacks(context.version(process.pid, runtime)));
    let mut command = recorded.clone().with_clock();
    if let Some((switch, program)) = runtime.and_then(|(process, runtime)| program(process, runtime, context)) {
        wanted = switch.stacks;
        command = command.with_program(program);
    }
    if copies && context.stacks == RecordedStacks::Chains {
        wanted = Stacks::Copies;
    }
    let command = command.with_stacks(wanted);
    if command == recorded {
        return None;
    }
    Some(command.to_string()).filter(|text| text.len() <= LONGEST)
}

fn line(words: &[Vec<u8>]) -> CommandLine<'_> {
    CommandLine { words, environment: &Environment::Unknown }
}

/// The switch in the recorded command, else the best available one.
fn switch(process: &Who, runtime: &'static Runtime, context: DoctorContext<'_>) -> Option<&'static Switch> {
    let version = context.version(process.pid, runtime);
    given(runtime, context).filter(|switch| switch.is_in(version)).or_else(|| runtime.best_switch(version))
}

/// The switch in the recorded command for its runtime.
pub(super) fn given(runtime: &'static Runtime, context: DoctorContext<'_>) -> Option<&'static Switch> {
    let perf = context.command().filter(|perf| !perf.records_others)?;
    runtime.switches.iter().find(|switch| runtime.is_switched_on(switch, line(perf.program)))
}

/// True if the recorded command is that of the runtime itself, so that its options are known.
pub(super) fn is_command_of(runtime: &Runtime, context: DoctorContext<'_>) -> bool {
    let perf = context.command().filter(|perf| !perf.records_others);
    perf.is_some_and(|perf| program_at(perf.program, |name| runtime.is_program(name)).is_some())
}
