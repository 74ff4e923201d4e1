//! The diagnosis of a recording, a running process or a callgrind file, and the remedies.
//!
//! | file | what it is for |
//! |---|---|
//! | `problem` | what can be wrong, as data |
//! | `problem_texts` | what is reported about each, and what to do: the compiler requires all of it |
//! | `causes`, `places`, `tally` | what is counted: frames without a name by cause, stacks that end too soon |
//! | `bpf` | what is known of BPF programs |
//! | `doubtful` | frames that a log names, and whose time it does not know well enough |
//! | `origin` | the machine that was recorded |
//! | `rules` | what is found in these figures; what is reported about many processes of a runtime is one finding |
//! | `corrected` | the recorded command with what it lacked |
//! | `recorded`, `live`, `counted` | what is known of a recording, a running process, a callgrind file |
//! | `text`, `json` | how it is reported; `docs/doctor.md` lists problems and keys |

mod bpf;
mod causes;
mod context;
mod corrected;
mod counted;
mod doubtful;
pub(crate) mod json;
mod live;
mod origin;
mod places;
mod problem;
mod problem_texts;
mod recorded;
mod rules;
mod tally;
pub(crate) mod text;

use crate::contract::format::{Format, Read};
use crate::error::{Error, Result};
use crate::io::{self, InPath};
use crate::model::Pid;
use crate::model::stacks::Keep;
use crate::pipeline::open::{Input, shown};
use crate::pipeline::recording::{Examined, Memory, RecordingOptions, Resolution, Streams, Survey};
use crate::pipeline::{Job, Outcome};
use crate::records::perf_data::{Form, Header, Recording};
use counted::CountedDiagnosis;
use live::LiveDiagnosis;
pub use problem::{Finding, NamedFile, OfProcess, Problem, SourceFile, Who};
pub(crate) use problem_texts::{ProblemText, problem_text};
pub(crate) use recorded::Diagnosis;
use std::path::Path;

/// The name of callgrind's format in the table of formats.
const CALLGRIND: &str = "callgrind";

/// The subject of the examination.
#[derive(Debug)]
pub(crate) enum Subject {
    Recording(Diagnosis),
    Running(LiveDiagnosis),
    Counted(CountedDiagnosis),
}

impl Subject {
    /// Looks at a recording, a running process or a callgrind file.
    pub(crate) fn of(path: &InPath, options: &RecordingOptions, job: &Job, outcome: &mut Outcome) -> Result<Self> {
        if let Some(pid) = running(path) {
            let force = options.sources.force;
            return LiveDiagnosis::of(pid, Path::new("/proc"), force, &mut outcome.warnings).map(Self::Running);
        }
        let input = Input::open(path)?;
        if matches!(input.format.read, Read::Addresses) {
            return examine(&input, path, options, job, outcome).map(Self::Recording);
        }
        if Self::is_counted(input.format, path) {
            return CountedDiagnosis::of(path, &options.sources, job, outcome).map(Self::Counted);
        }
        Err(refused(input.format))
    }

    /// True if an input of that format is examined as a file of costs.
    pub(crate) fn is_counted(format: &Format, path: &InPath) -> bool {
        format.name == CALLGRIND && *path != InPath::Stdin
    }

    /// The findings.
    pub(crate) fn findings(&self) -> &[Finding] {
        match self {
            Self::Recording(diagnosis) => &diagnosis.findings,
            Self::Running(diagnosis) => &diagnosis.findings,
            Self::Counted(diagnosis) => &diagnosis.findings,
        }
    }
}

/// The process that is meant, where the input is not a file but a number.
fn running(path: &InPath) -> Option<Pid> {
    let InPath::Path(path) = path else { return None };
    let digits = path.to_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    if io::is_there(path) { None } else { digits.parse().ok().map(Pid) }
}

/// Texts do not show what was mapped: why a name is missing cannot be determined from them, but how many are.
fn refused(format: &Format) -> Error {
    let instead = format
        .rewriter
        .map_or_else(String::new, |by| format!("; `jitgraft {}` counts what it cannot name in this file", by.command));
    Error::new(format!(
        "is {}: doctor reads perf.data, which lists mapped files, and callgrind.out; pass the recording{instead}",
        format.name
    ))
}

/// Examines a recording that somebody has read, each sample by itself.
pub(crate) fn diagnose(examined: &Examined<'_>) -> Diagnosis {
    let survey = examined.resolution.survey;
    let damage = cut(survey.recording, examined.input_len);
    let damage = damage.or_else(|| survey.chunks.damage.as_ref().map(ToString::to_string));
    Diagnosis::new(survey.path, examined, examined.resolution.search(), damage)
}

/// The part that is missing at the end of a recording that has this many bytes.
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
    options: &RecordingOptions,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Diagnosis> {
    let (path, warnings) = (&shown(path), &mut outcome.warnings);
    let streams = Streams::open(input, path, &job.pool, warnings)?;
    let survey = Survey::new(&streams.recording, &streams.list(), path, warnings);
    let options = &*options.for_input(input);
    let memory = Memory::find(&survey, &options.sources, warnings);
    let resolution = Resolution::new(&survey, &memory, options, job, warnings);
    // Each by itself: it matters when what has no name was sampled.
    let samples = &resolution.samples(Keep::EachRow, job, warnings)?;
    let named = &resolution.name(&samples.chains, job, warnings);
    let input_len = input.bytes.len() as u64;
    let examined = Examined { resolution: &resolution, samples, named, input_len };
    let diagnosis = diagnose(&examined);
    resolution.finish(warnings);
    Ok(diagnosis)
}
