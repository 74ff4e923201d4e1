//! `doctor` says what is wrong with a recording, a running process or a callgrind file, and what to do about it.

use crate::doctor::{Finding, Subject, json, text};
use crate::error::Result;
use crate::io::{InPath, OutPath, Output, Run};
use crate::pipeline::open::shown;
use crate::pipeline::outputs::commit;
use crate::pipeline::recording::RecordingOptions;
use crate::pipeline::table::{Cell, Layout, Table};
use crate::pipeline::terminal::write_text;
use crate::pipeline::{Job, Outcome};
use std::io::Write;
use std::path::Path;

/// The options of `doctor`: what to examine, and how to report the findings.
#[derive(Debug)]
pub struct DoctorOptions {
    /// The inputs: recordings, callgrind files, and process IDs of running processes. Each input gets its own report.
    pub inputs: Vec<InPath>,
    /// Where to write the findings.
    pub output: OutPath,
    /// How to read recordings.
    pub recording: RecordingOptions,
    /// The layout of the output: text, CSV or JSON.
    pub layout: Layout,
    /// Exit with status 1 if there are findings.
    pub exit_code: bool,
}

/// The columns of CSV output.
const COLUMNS: &[&str] = &["file", "problem", "percent", "samples", "frames", "pid", "cause", "remedy", "command"];

/// Examines the inputs and writes the findings.
pub fn run(options: &DoctorOptions, job: &Job) -> Result<Outcome> {
    let (run, mut outcome) = (Run::begin(), Outcome::default());
    let mut output = Output::create(&options.output, &run)?;
    let (mut table, mut list) = (Table::new(COLUMNS), Vec::new());
    for (number, path) in options.inputs.iter().enumerate() {
        let subject = Subject::examine(path, &options.recording, job, &mut outcome)
            .map_err(|error| error.in_file(&shown(path)))?;
        // With `--exit-code`, the command fails if there are findings.
        outcome.found |= options.exit_code && !subject.findings().is_empty();
        match options.layout {
            Layout::Text => {
                if number > 0 {
                    writeln!(output)?;
                }
                match &subject {
                    Subject::Recording(diagnosis) => text::write(diagnosis, &mut output)?,
                    Subject::Running(diagnosis) => text::write_running(diagnosis, &mut output)?,
                    Subject::Counted(diagnosis) => text::write_counted(diagnosis, &mut output)?,
                }
            }
            Layout::Csv => table.rows.extend(subject.findings().iter().map(|finding| row(&shown(path), finding))),
            Layout::Json => list.push(match &subject {
                Subject::Recording(diagnosis) => json::recording(diagnosis),
                Subject::Running(diagnosis) => json::running(diagnosis),
                Subject::Counted(diagnosis) => json::counted(diagnosis),
            }),
        }
    }
    match options.layout {
        Layout::Text => {}
        Layout::Csv => write_text(&mut output, |out| table.write(options.layout, out))?,
        Layout::Json => {
            write_text(&mut output, |out| {
                serde_json::to_writer_pretty(&mut *out, &list).map_err(std::io::Error::from)?;
                Ok(writeln!(out)?)
            })?;
        }
    }
    commit(output, &mut outcome)?;
    Ok(outcome)
}

/// A finding as a row of CSV.
fn row(file: &Path, finding: &Finding) -> Vec<Cell> {
    let pid = finding.process.as_ref().map_or(Cell::None, |process| Cell::Signed(process.pid.0.into()));
    vec![
        Cell::text(file.display().to_string()),
        Cell::Word(finding.kind.key()),
        Cell::Percent(finding.share.percent),
        Cell::Count(finding.share.samples),
        Cell::Count(finding.share.frames),
        pid,
        Cell::text(finding.cause()),
        Cell::text(finding.remedy.clone()),
        finding.command.clone().map_or(Cell::None, Cell::text),
    ]
}
