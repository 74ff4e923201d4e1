//! `doctor`: why the frames of a recording have no name, and what to do about each cause.

mod advice;
mod causes;
mod examined;
mod findings;

use crate::error::{Error, Result};
use crate::formats::format::{Format, Read};
use crate::io::{InPath, OutPath, Output, Run};
use crate::model::stacks::Keep;
use crate::pipeline::open::{Input, shown};
use crate::pipeline::recording::{Memory, RecordingOptions, Resolution, Streams, Survey};
use crate::pipeline::table::{Layout, Table};
use crate::pipeline::{Job, Outcome};
use examined::Examined;
use findings::Findings;

/// What to look at, and how to tell.
#[derive(Debug)]
pub struct DoctorOptions {
    /// The recordings, each told of by itself.
    pub inputs: Vec<InPath>,
    /// Where to write.
    pub output: OutPath,
    /// How to read.
    pub recording: RecordingOptions,
    /// Text, CSV or JSON.
    pub layout: Layout,
}

/// Examines.
pub fn run(options: &DoctorOptions, job: &Job) -> Result<Outcome> {
    let (run, mut outcome) = (Run::begin(), Outcome::default());
    let mut output = Output::create(&options.output, &run)?;
    let mut table = Table::new(findings::COLUMNS);
    for path in &options.inputs {
        let findings = examine(path, options, job, &mut outcome).map_err(|error| error.in_file(&shown(path)))?;
        match options.layout {
            Layout::Text => findings.write(&mut output)?,
            Layout::Csv | Layout::Json => table.rows.extend(findings.rows()),
        }
    }
    if options.layout != Layout::Text {
        table.write(options.layout, &mut output)?;
    }
    output.commit()?;
    Ok(outcome)
}

/// Texts do not tell what was mapped: why a name is missing cannot be told from them, but how many are.
fn refused(format: &Format) -> Error {
    let instead = format
        .rewriter
        .map_or_else(String::new, |command| format!("; `jitgraft {command}` counts what it cannot name in this file"));
    Error::new(format!(
        "is {}: doctor reads perf.data, which tells what was mapped; give it the recording{instead}",
        format.name
    ))
}

fn examine(path: &InPath, options: &DoctorOptions, job: &Job, outcome: &mut Outcome) -> Result<Findings> {
    let input = Input::open(path)?;
    if !matches!(input.format.read, Read::Addresses) {
        return Err(refused(input.format));
    }
    let (path, warnings) = (&shown(path), &mut outcome.warnings);
    let streams = Streams::open(&input, path, warnings)?;
    let survey = Survey::new(&streams.recording, &streams.list(), path, job, warnings);
    let memory = Memory::find(&survey, &options.recording, warnings);
    let resolution = Resolution::new(&survey, &memory, &options.recording, job, warnings);
    let samples = &resolution.samples(Keep::Sums, job, warnings)?;
    let named = &resolution.name(&samples.chains, job, warnings);
    let examined = Examined { resolution: &resolution, samples, named };
    let findings = Findings::new(path, &examined, &options.recording.symbols.search);
    resolution.finish(warnings);
    Ok(findings)
}
