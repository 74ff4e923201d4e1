//! Diagnoses a recording, a running process or a callgrind file, and suggests remedies.
//!
//! | file | what it is for |
//! |---|---|
//! | `finding` | a finding: kind, share of the recording, cause, remedy |
//! | `kind` | the kinds of findings, with their keys, lines of documentation and thresholds |
//! | `rules` | find what is wrong; each finding is built where it is found. The same finding about many processes of a runtime becomes one |
//! | `context` | what the rules look at |
//! | `causes`, `places`, `tally` | count unnamed frames by cause, and stacks that end too soon |
//! | `bpf` | counts frames in BPF programs |
//! | `doubtful` | counts JIT frames that may have the wrong name because a log's times are inexact |
//! | `origin`, `process`, `source` | the recorded machine, a process, a file with names, and how they are described |
//! | `wording` | phrases that several rules use |
//! | `correction` | the recorded command, with the missing options added |
//! | `recording`, `running`, `callgrind` | the diagnosis of a recording, a running process, a callgrind file |
//! | `text`, `json` | print a diagnosis; `docs/doctor.md` lists the kinds and the JSON keys |

mod bpf;
mod callgrind;
mod causes;
mod context;
mod correction;
mod doubtful;
mod finding;
pub(crate) mod json;
mod kind;
mod origin;
mod places;
mod process;
mod recording;
mod rules;
mod running;
mod source;
mod tally;
pub(crate) mod text;
mod wording;

use crate::analysis::filter::Filter;
use crate::contract::format::{Format, Read};
use crate::error::{Error, Result};
use crate::formats::perf_data::{Form, Header, Recording};
use crate::io::{self, InPath};
use crate::model::Pid;
use crate::model::stacks::Keep;
use crate::pipeline::any::explain_no_samples;
use crate::pipeline::open::{Input, shown};
use crate::pipeline::recording::{Examined, RecordingOptions, with_samples};
use crate::pipeline::{Job, Outcome};
use callgrind::CountedDiagnosis;
pub use finding::{Finding, Highlight};
pub use kind::FindingKind;
pub(crate) use recording::Diagnosis;
use running::LiveDiagnosis;
use std::path::Path;

/// The name of the callgrind format in the table [`FORMATS`](crate::formats::FORMATS).
const CALLGRIND: &str = "callgrind";

/// The diagnosis of an input, by the kind of input that `doctor` was given.
#[derive(Debug)]
pub(crate) enum Subject {
    /// A recording made by `perf record`.
    Recording(Diagnosis),
    /// A running process.
    Running(LiveDiagnosis),
    /// A callgrind file. It has counted costs, not samples.
    Counted(CountedDiagnosis),
}

impl Subject {
    /// Examines a recording, a running process or a callgrind file. `path` is the path of the file, or the ID of the
    /// process. Fails for files of other formats.
    pub(crate) fn examine(path: &InPath, options: &RecordingOptions, job: &Job, outcome: &mut Outcome) -> Result<Self> {
        if let Some(pid) = parse_pid(path) {
            let force = options.sources.force;
            let proc = Path::new("/proc");
            if !io::is_there(&proc.join(pid.to_string())) {
                return Err(Error::new(format!("no process {pid} is running, and no file has this name")));
            }
            return LiveDiagnosis::examine(pid, proc, force, &mut outcome.warnings).map(Self::Running);
        }
        // If no file has this path, and it looks like a program's name (`node`), the user may mean a running process.
        let input = Input::open(path).map_err(|error| match may_be_program(path) {
            true => error.with_remedy(Some(BY_PID.to_owned())),
            false => error,
        })?;
        if matches!(input.format.read, Read::Addresses) {
            return examine_recording(&input, path, options, job, outcome).map(Self::Recording);
        }
        if Self::is_counted(input.format, path) {
            return CountedDiagnosis::examine(path, &options.sources, job, outcome).map(Self::Counted);
        }
        Err(unsupported(input.format))
    }

    /// True if the input is a callgrind file that `doctor` can diagnose. A file has to be read twice, so one on
    /// standard input can't be diagnosed.
    pub(crate) fn is_counted(format: &Format, path: &InPath) -> bool {
        format.name == CALLGRIND && *path != InPath::Stdin
    }

    /// The problems that are worth reporting, without the minor ones.
    pub(crate) fn findings(&self) -> &[Finding] {
        match self {
            Self::Recording(diagnosis) => &diagnosis.findings,
            Self::Running(diagnosis) => &diagnosis.findings,
            Self::Counted(diagnosis) => &diagnosis.findings,
        }
    }
}

/// The hint for a missing input that may be the name of a program.
const BY_PID: &str = "to examine a running process, pass its PID (pgrep -l lists PIDs by name)";

/// True if no file has this path and it looks like the name of a program, such as `node` or `python3`.
fn may_be_program(path: &InPath) -> bool {
    let InPath::Path(path) = path else { return false };
    let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    path.to_str().is_some_and(is_name) && !io::is_there(path)
}

/// Parses the path as a process ID. `None` if it doesn't consist of digits, or if a file of that name exists.
fn parse_pid(path: &InPath) -> Option<Pid> {
    let InPath::Path(path) = path else { return None };
    let digits = path.to_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    if io::is_there(path) { None } else { digits.parse().ok().map(Pid) }
}

/// The error for inputs of a format that `doctor` can't diagnose. Such formats don't list the mapped files of
/// processes, so they show how many names are missing but not why.
fn unsupported(format: &Format) -> Error {
    let instead = match format.rewriter {
        Some(rewriter) => format!("; for this file, `jitgraft {}` reports how much has no name", rewriter.command),
        None => String::new(),
    };
    Error::new(format!(
        "is a {} file; pass doctor the path of the original perf.data or callgrind.out{instead}",
        format.name
    ))
}

/// Diagnoses a recording that was already read. Its samples must have been kept one by one, not summed, because the
/// rules look at the times of samples.
pub(crate) fn diagnose(examined: &Examined<'_>) -> Diagnosis {
    let survey = examined.resolution.survey;
    let damage = missing_end(survey.recording, examined.input_len)
        .or_else(|| survey.chunks.damage.as_ref().map(ToString::to_string));
    Diagnosis::new(survey.path, examined, examined.resolution.search(), damage)
}

/// Describes what is missing at the end of a recording whose file has `input_len` bytes. `None` if the recording is
/// complete, or if its header doesn't state its length.
fn missing_end(recording: &Recording, input_len: u64) -> Option<String> {
    // The header of a recording in a file states how many bytes of records follow; that of a recording from a pipe
    // doesn't.
    let Header { form: Form::File, data, .. } = recording.header else { return None };
    // perf record writes this size last, when it finishes.
    if data.size == 0 {
        return Some("perf record was killed before it finished".to_owned());
    }
    let missing = data.end().saturating_sub(input_len);
    if missing == 0 {
        return None;
    }
    Some(format!("{missing} bytes of records are missing at the end"))
}

/// Reads a recording, names its samples, and diagnoses it.
fn examine_recording(
    input: &Input,
    path: &InPath,
    options: &RecordingOptions,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Diagnosis> {
    let warnings = &mut outcome.warnings;
    // Keep each sample, not only sums over equal ones: the rules look at the times at which samples without names were
    // taken.
    let diagnosis =
        with_samples(input, &shown(path), options, Keep::EachRow, job, warnings, |examined, _| Ok(diagnose(examined)))?;
    let by_event = !options.event.is_empty();
    // There may be samples, but the events and filters that the user chose leave none.
    if diagnosis.samples == 0 && (by_event || options.filter != Filter::default()) {
        let inputs = std::slice::from_ref(path);
        return Err(Error::new(explain_no_samples(inputs, &options.filter, by_event, &[], job)));
    }
    Ok(diagnosis)
}
