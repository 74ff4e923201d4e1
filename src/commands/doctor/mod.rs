//! `doctor`: what is wrong with a recording, a running process or a callgrind file, and what to do about it.
//!
//! | file | what it is for |
//! |---|---|
//! | `problem` | what can be wrong, as data |
//! | `said` | what is said of each, and what to do: the compiler asks for all of it |
//! | `causes`, `places`, `tally` | what is counted: frames without a name by cause, stacks that end too soon |
//! | `bpf` | what is known of BPF programs |
//! | `doubtful` | frames that a log names, and whose time it does not know well enough |
//! | `rules` | what is found in these figures; what is said of many processes of a runtime is one finding |
//! | `corrected` | the recorded command with what it lacked |
//! | `diagnosis`, `live`, `counted` | what is known of a recording, a running process, a callgrind file |
//! | `text`, `json` | how it is told; `docs/doctor.md` lists problems and keys |

mod bpf;
mod causes;
mod context;
mod corrected;
mod counted;
mod diagnosis;
mod doubtful;
mod json;
mod live;
mod places;
mod problem;
mod rules;
mod said;
mod tally;
mod text;

use crate::contract::format::{Format, Read};
use crate::error::{Error, Result};
use crate::io::{self, InPath, OutPath, Output, Run};
use crate::model::Pid;
use crate::model::stacks::Keep;
use crate::pipeline::open::{Input, shown};
use crate::pipeline::recording::{Examined, Memory, RecordingOptions, Resolution, Streams, Survey};
use crate::pipeline::table::{Cell, Layout, Table};
use crate::pipeline::terminal::write_text;
use crate::pipeline::{Job, Outcome};
use crate::records::perf_data::{Form, Header, Recording};
use crate::resolve::symbols::files::SearchOptions;
use counted::CountedDiagnosis;
pub(crate) use diagnosis::Diagnosis;
use live::LiveDiagnosis;
pub use problem::{Finding, NamedFile, Problem, SourceFile, Who};
use said::{Said, said};
use std::io::Write;
use std::path::Path;

/// What to look at, and how to tell.
#[derive(Debug)]
pub struct DoctorOptions {
    /// Recordings, and the numbers of running processes, each told of by itself.
    pub inputs: Vec<InPath>,
    /// Where to write.
    pub output: OutPath,
    /// How to read.
    pub recording: RecordingOptions,
    /// Text, CSV or JSON.
    pub layout: Layout,
    /// Whether findings make the job fail.
    pub exit_code: bool,
}

/// What the table of formats calls callgrind's.
const CALLGRIND: &str = "callgrind";

/// The columns of CSV.
const COLUMNS: &[&str] = &["file", "problem", "percent", "samples", "frames", "pid", "cause", "remedy", "command"];

/// Examines.
pub fn run(options: &DoctorOptions, job: &Job) -> Result<Outcome> {
    let (run, mut outcome) = (Run::begin(), Outcome::default());
    let mut output = Output::create(&options.output, &run)?;
    let (mut table, mut list) = (Table::new(COLUMNS), Vec::new());
    for (number, path) in options.inputs.iter().enumerate() {
        let subject = Subject::of(path, options, job, &mut outcome).map_err(|error| error.in_file(&shown(path)))?;
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
    output.commit()?;
    Ok(outcome)
}

/// What is examined.
enum Subject {
    Recording(Diagnosis),
    Running(LiveDiagnosis),
    Counted(CountedDiagnosis),
}

impl Subject {
    fn of(path: &InPath, options: &DoctorOptions, job: &Job, outcome: &mut Outcome) -> Result<Self> {
        if let Some(pid) = running(path) {
            let force = options.recording.sources.force;
            return LiveDiagnosis::of(pid, Path::new("/proc"), force, &mut outcome.warnings).map(Self::Running);
        }
        let input = Input::open(path)?;
        if matches!(input.format.read, Read::Addresses) {
            return examine(&input, path, options, job, outcome).map(Self::Recording);
        }
        if input.format.name == CALLGRIND && *path != InPath::Stdin {
            return CountedDiagnosis::of(path, &options.recording.sources, job, outcome).map(Self::Counted);
        }
        Err(refused(input.format))
    }

    fn findings(&self) -> &[Finding] {
        match self {
            Self::Recording(diagnosis) => &diagnosis.findings,
            Self::Running(diagnosis) => &diagnosis.findings,
            Self::Counted(diagnosis) => &diagnosis.findings,
        }
    }
}

/// The process that is meant, where the input is no file but a number.
fn running(path: &InPath) -> Option<Pid> {
    let InPath::Path(path) = path else { return None };
    let digits = path.to_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    if io::is_there(path) { None } else { digits.parse().ok().map(Pid) }
}

fn row(file: &Path, finding: &Finding) -> Vec<Cell> {
    let pid = finding.problem.process().map(|process| Cell::Signed(process.pid.0.into()));
    let Said { key, cause, remedy, .. } = said(&finding.problem);
    vec![
        Cell::text(file.display().to_string()),
        Cell::Word(key),
        Cell::Percent(finding.percent),
        Cell::Count(finding.samples),
        Cell::Count(finding.frames),
        pid.unwrap_or(Cell::None),
        Cell::text(cause),
        Cell::text(remedy),
        finding.command.clone().map_or(Cell::None, Cell::text),
    ]
}

/// Texts do not tell what was mapped: why a name is missing cannot be told from them, but how many are.
fn refused(format: &Format) -> Error {
    let instead = format
        .rewriter
        .map_or_else(String::new, |by| format!("; `jitgraft {}` counts what it cannot name in this file", by.command));
    Error::new(format!(
        "is {}: doctor reads perf.data, which tells what was mapped, and callgrind.out; give it the recording{instead}",
        format.name
    ))
}

/// Examines a recording that somebody has read, each sample by itself.
pub(crate) fn diagnose(examined: &Examined<'_>, search: &SearchOptions) -> Diagnosis {
    let survey = examined.resolution.survey;
    let damage = cut(survey.recording, examined.input_len);
    let damage = damage.or_else(|| survey.chunks.damage.as_ref().map(ToString::to_string));
    Diagnosis::new(survey.path, examined, search, damage)
}

/// The same as `--format json` tells it.
pub(crate) fn told(diagnosis: &Diagnosis) -> serde_json::Value {
    json::recording(diagnosis)
}

/// What is missing at the end of a recording that has so many bytes.
fn cut(recording: &Recording, input_len: u64) -> Option<String> {
    let Header { form: Form::File, data, .. } = recording.header else { return None };
    let missing = data.end().saturating_sub(input_len);
    match (data.size, missing) {
        (0, _) => Some("perf record was killed before it could finish it".to_owned()),
        (_, 0) => None,
        (_, missing) => Some(format!("{missing} bytes of records are missing at its end")),
    }
}

fn examine(
    input: &Input,
    path: &InPath,
    options: &DoctorOptions,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Diagnosis> {
    let (path, warnings) = (&shown(path), &mut outcome.warnings);
    let streams = Streams::open(input, path, &job.pool, warnings)?;
    let survey = Survey::new(&streams.recording, &streams.list(), path, warnings);
    let memory = Memory::find(&survey, &options.recording.sources, warnings);
    let resolution = Resolution::new(&survey, &memory, &options.recording, job, warnings);
    // Each by itself: it matters when what has no name was sampled.
    let samples = &resolution.samples(Keep::EachRow, job, warnings)?;
    let named = &resolution.name(&samples.chains, job, warnings);
    let input_len = input.bytes.len() as u64;
    let examined = Examined { resolution: &resolution, samples, named, input_len };
    let diagnosis = diagnose(&examined, &options.recording.symbols.search);
    resolution.finish(warnings);
    Ok(diagnosis)
}
