//! `runtimes`: how each runtime is made to leave the names of its code, from the one table.

use crate::error::{Error, Result};
use crate::model::runtimes::{RUNTIMES, Runtime, RuntimeSet};
use crate::pipeline::Outcome;
use std::io::Write;

/// Writes a line for each runtime, or all that is known of one, which is called by its name or that of its program.
pub fn run(name: Option<&str>, out: &mut dyn Write) -> Result<Outcome> {
    match name {
        None => RUNTIMES.iter().try_for_each(|runtime| write_line(runtime, out))?,
        Some(name) => write_all(named(name)?, out)?,
    }
    Ok(Outcome::default())
}

fn named(name: &str) -> Result<&'static Runtime> {
    let by_name = RUNTIMES.iter().find(|runtime| runtime.name.eq_ignore_ascii_case(name));
    by_name.or_else(|| RuntimeSet::of_files(std::iter::once(name.as_bytes())).first()).ok_or_else(|| {
        let all: Vec<_> = RUNTIMES.iter().map(|runtime| runtime.name).collect();
        Error::new(format!("no runtime is called {name}")).with_remedy(Some(format!("known are {}", all.join(", "))))
    })
}

fn write_line(runtime: &Runtime, out: &mut dyn Write) -> Result<()> {
    let how = runtime.switches.first().map_or("nothing to switch on", |switch| switch.how);
    Ok(writeln!(out, "{:<15} {how}", runtime.name)?)
}

fn write_all(runtime: &Runtime, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "{}", runtime.name)?;
    let mut row = |what: &str, said: &str| match said {
        "" => Ok(()),
        said => writeln!(out, "  {what:<14} {said}"),
    };
    row("known by", &[runtime.programs, runtime.libraries].concat().join(", "))?;
    for (at, switch) in runtime.switches.iter().enumerate() {
        row(if at == 0 { "switch on" } else { "or" }, switch.how)?;
        row("leaves", &switch.leaves.join(", "))?;
    }
    if runtime.switches.is_empty() {
        row("switch on", "nothing is known that makes it leave names")?;
    }
    row("record with", &format!("perf record {}", runtime.perf_record))?;
    row(
        "for callgrind",
        &runtime.valgrind.map(|way| format!("valgrind --tool=callgrind --dump-instr=yes {way}")).unwrap_or_default(),
    )?;
    row("stays unnamed", runtime.unnamed)?;
    row("interpreted", runtime.interpreter.as_ref().map_or("", |interpreter| interpreter.remedy))?;
    Ok(())
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
            assert!(page.starts_with(&format!("{}\n  known by ", runtime.name)), "{page}");
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
        assert!(error.contains("no runtime is called perl"), "{error}");
    }

    #[test]
    fn what_leaves_nothing_says_so() {
        let page = said(Some("sbcl"));
        assert!(page.contains("nothing is known") && page.contains("is no ELF"), "{page}");
    }
}
