//! Names the frames in reports of valgrind's other tools, which print stacks with addresses.

use super::code_sources::find_sources;
use super::options::CallgrindOptions;
use crate::error::{Error, Result, Warning};
use crate::formats::callgrind::JitFunctions;
use crate::formats::valgrind_text::{Report, ReportFunction, graft, pid};
use crate::io::{Output, Run};
use crate::pipeline::callgrind::CodeNames;
use crate::pipeline::terminal::write_text;
use crate::pipeline::{Job, Outcome};
use std::fs::File;
use std::io::BufReader;

/// Names the frames in a report whose functions are unknown (`???`). `head` is the beginning of `file`. Fails for
/// cachegrind's files, because they have no addresses.
pub(super) fn run(
    report: Report,
    file: &File,
    head: &[u8],
    options: &CallgrindOptions,
    run: &Run,
    job: &Job,
) -> Result<Outcome> {
    if report == Report::Cachegrind {
        return Err(Error::new(
            "is a cachegrind file, which has no addresses, so its unknown code (`???`) cannot be named; use valgrind \
             --tool=callgrind --dump-instr=yes --cache-sim=yes",
        ));
    }
    let mut outcome = Outcome::default();
    let sources = find_sources(pid(report, head), options, &mut outcome.warnings)?;
    let pid = sources.pid;
    let loaded = sources.load(&job.pool, &mut outcome.warnings);
    outcome.summary.extend(loaded.source_maps.remarks());
    // No object file is written for a report, so its name is empty.
    let names = CodeNames::new(&loaded.map, pid, Vec::new(), &job.pool);
    let lookup = |addr| {
        let entry = names.find(addr)?;
        Some(ReportFunction { name: names.name(entry), place: names.source_line(addr) })
    };
    let mut out = Output::create(&options.output(), run)?;
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let frames = write_text(&mut out, |out| graft(report, &mut reader, &lookup, out))?;
    out.commit()?;
    if frames.named == 0 && frames.unknown > 0 {
        let message = format!(
            "none of the {} unnamed frames is in the code of process {pid}; are map and report from the same run?",
            frames.unknown
        );
        outcome.warnings.push(Warning::new(message));
    }
    outcome.summary.push(format!(
        "{}: named {} of {} unknown frames",
        options.output().shown().display(),
        frames.named,
        frames.unknown
    ));
    Ok(outcome)
}
