//! `doctor`: why the frames of a recording have no name, and what to do about each cause.

mod advice;
mod causes;
mod findings;
mod runtimes;

use super::load::{Input, shown};
use super::recording::{self, RecordingOptions};
use super::{Job, Outcome};
use crate::error::{Error, Result};
use crate::formats::format::Read;
use crate::formats::table::{Layout, Table};
use crate::io::{InPath, OutPath, Output};
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
    let mut outcome = Outcome::default();
    let mut output = Output::create(&options.output)?;
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

fn examine(path: &InPath, options: &DoctorOptions, job: &Job, outcome: &mut Outcome) -> Result<Findings> {
    let input = Input::open(path)?;
    if !matches!(input.format.read, Read::Addresses) {
        let message =
            format!("is {}: doctor examines perf.data, where addresses are; give it the recording", input.format.name);
        return Err(Error::new(message));
    }
    let path = shown(path);
    let look = |inside: &recording::Inside<'_, '_>| Findings::new(&path, inside, &options.recording.symbols.search);
    recording::load_and_look(&input, &path, &options.recording, job, outcome, look).map(|(_, findings)| findings)
}
