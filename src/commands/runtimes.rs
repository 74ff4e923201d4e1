//! `runtimes` shows how to make each runtime write the names of its code, from the table [`RUNTIMES`].

use crate::error::Result;
use crate::model::perf_command::PerfCommand;
use crate::pipeline::Outcome;
use crate::runtimes::record_command::RecordCommand;
use crate::runtimes::{CommandLine, CorrectedCommand, Environment, NamedRuntime, RUNTIMES, RunFacts, Runtime};
use std::collections::BTreeMap;
use std::io::Write;

/// Writes one line per runtime. If `name` is given, writes everything known about the runtime of this name instead.
pub fn run(name: Option<&str>, out: &mut dyn Write) -> Result<Outcome> {
    match name {
        None => {
            for runtime in RUNTIMES {
                write_line(runtime, out)?;
            }
        }
        Some(name) => match NamedRuntime::find(name)? {
            NamedRuntime::Runtime(runtime) => write_all(runtime, out)?,
            NamedRuntime::CompiledLanguage => write_compiled(name, out)?,
        },
    }
    Ok(Outcome::default())
}

/// Stands in place of a switch for runtimes that have none.
const NO_SWITCH: &str = "no known way to make it write names";

/// Writes the name of a runtime, and the best way to make it write the names of its code, if there is one.
fn write_line(runtime: &Runtime, out: &mut dyn Write) -> Result<()> {
    let first = runtime.switches.first();
    let how = first.map_or_else(|| NO_SWITCH.to_owned(), |switch| switch.instructions(runtime.called));
    Ok(writeln!(out, "{:<15} {how}", runtime.name)?)
}

/// Writes how to record a program in a language that is compiled before it runs.
fn write_compiled(language: &str, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "{language}")?;
    writeln!(
        out,
        "  {:<14} nothing: it is compiled before it runs, and the names are in the program's symbols",
        "switch on"
    )?;
    writeln!(out, "  {:<14} jitgraft record -- PROGRAM ...", "record with")?;
    Ok(writeln!(
        out,
        "  {:<14} most functions of a program that was stripped of its symbols (unless it is a Go program)",
        "stays unnamed"
    )?)
}

/// Writes everything that is known about a runtime, as a list of labels and texts.
fn write_all(runtime: &'static Runtime, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "{}", runtime.name)?;
    let mut row = |label: &str, text: &str| match text {
        "" => Ok(()),
        text => writeln!(out, "  {label:<14} {text}"),
    };
    row("recognized by", &[runtime.programs, runtime.libraries].concat().join(", "))?;
    row("other names", &runtime.aliases.join(", "))?;
    row("started by", &runtime.launchers.join(", "))?;
    for (index, switch) in runtime.switches.iter().enumerate() {
        if index == 0 {
            row("switch on", &switch.instructions(runtime.called))?;
        } else {
            row("or", &switch.further_instructions(runtime.called))?;
        }
        row("writes", &switch.leaves.join(", "))?;
    }
    if runtime.switches.is_empty() {
        row("switch on", NO_SWITCH)?;
    }
    for (label, command) in commands(runtime) {
        row(label, &command)?;
    }
    row("for callgrind", &runtime.valgrind.map(|command| format!("{command} …")).unwrap_or_default())?;
    row("stays unnamed", runtime.unnamed)?;
    row("interpreted", runtime.interpreter.as_ref().map_or("", |interpreter| interpreter.remedy))?;
    Ok(())
}

/// The commands for recording the runtime, each with a label: `jitgraft record`, and the perf command that it runs. If
/// the runtime can't be made to write names, only the perf command. A switch is what makes a runtime write names; the
/// commands are those for a version that supports all switches.
fn commands(runtime: &'static Runtime) -> Vec<(&'static str, String)> {
    let program = runtime.called.split(' ').chain(["..."]);
    let words: Vec<Vec<u8>> = program.map(|word| word.as_bytes().to_vec()).collect();
    let environment = Environment::Known(BTreeMap::new());
    let command = CommandLine { words: &words, environment: &environment };
    // The version that introduced the latest switch.
    let version = runtime.switches.iter().filter_map(|switch| switch.since).max();
    let facts = RunFacts { version, ..RunFacts::default() };
    let switch = runtime.best_switch(facts);
    // The program's command with what turns on the switch, or without any addition if nothing does.
    let corrected = switch.and_then(|switch| runtime.correct(switch, command, "."));
    let corrected = corrected.unwrap_or_else(|| CorrectedCommand { variables: Vec::new(), words: words.to_vec() });
    let perf_record = [b"perf".to_vec(), b"record".to_vec()];
    let perf = RecordCommand::from_perf(PerfCommand::parse_options(&perf_record, &[]));
    let perf = perf.with_clock().with_stacks(runtime.stacks(facts)).with_program(corrected).to_string();
    if switch.is_none() {
        return vec![("record with", perf)];
    }
    vec![("record with", format!("jitgraft record -- {} ...", runtime.called)), ("which runs", perf)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: Option<&str>) -> String {
        let mut out = Vec::new();
        run(name, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_runtime_has_a_line_and_a_page_by_each_of_its_names() {
        let list = said(None);
        assert_eq!(list.lines().count(), RUNTIMES.len());
        for runtime in RUNTIMES {
            assert!(list.contains(runtime.name), "{}", runtime.name);
            let page = said(Some(&runtime.name.to_uppercase()));
            assert!(page.starts_with(&format!("{}\n  recognized by ", runtime.name)), "{page}");
            let files = runtime.switches.iter().flat_map(|switch| switch.leaves);
            assert!(files.into_iter().all(|file| page.contains(file)), "{page}");
            for program in runtime.programs.iter().filter(|program| !program.ends_with('*')) {
                assert_eq!(said(Some(program)), page, "{program}");
            }
        }
    }

    #[test]
    fn a_name_that_nobody_has_is_refused_with_those_there_are() {
        let error = run(Some("perl"), &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("no runtime named perl"), "{error}");
    }

    #[test]
    fn a_filter_that_leaves_nothing_is_reported() {
        let page = said(Some("sbcl"));
        assert!(page.contains("no known way") && page.contains("is not ELF"), "{page}");
    }
}
