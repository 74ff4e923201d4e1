//! Section `findings` of the page: what `doctor` reports, and which frames each finding concerns.

use crate::analysis::start_functions::START_FUNCTIONS;
use crate::diagnosis::{self, Finding, NamedFile, OfProcess, Problem, Who};
use crate::model::printable::readable;
use crate::model::stacks::TRUNCATED;
use crate::pipeline::recording::Examined;
use crate::render::viewer::Section;
use serde_json::{Value, json};

/// The findings about one recording, as JSON.
#[derive(Debug)]
pub(super) struct Findings(Value);

/// Examines a recording. The result is what `jitgraft doctor --format json` prints, plus `show` in each finding: the
/// frames that the page can highlight.
pub(super) fn collect(examined: &Examined<'_>) -> Findings {
    let diagnosis = diagnosis::diagnose(examined);
    let mut value = diagnosis::json::recording(&diagnosis);
    for (key, findings) in [("findings", &diagnosis.findings), ("minor", &diagnosis.minor)] {
        let Some(told) = value.get_mut(key).and_then(Value::as_array_mut) else { continue };
        for (told, finding) in told.iter_mut().zip(findings) {
            told["show"] = frames(finding);
        }
    }
    Findings(value)
}

/// The findings of all recordings. `None` if there is no recording.
pub(super) fn section<'a>(findings: impl Iterator<Item = &'a Findings>) -> Option<Section> {
    let all: Vec<&Value> = findings.map(|findings| &findings.0).collect();
    (!all.is_empty()).then(|| Section::new("findings").json(json!(all)))
}

/// The frames that a finding concerns, for the page to highlight; null if there are none. The key `what` says how the
/// page recognizes them:
///
/// * `unnamed`: frames without a name, in one of the `modules` (an empty name means in no module).
/// * `kernel`: frames of the kernel without a name.
/// * `images`: frames without a name in images of JIT code (`jitted-…`).
/// * `jit`: frames in JIT code.
/// * `outermost`: frames at which stacks end although no thread starts there, in the `files`, in JIT code (`jit`), or
///   anywhere (`any`). `beginnings` lists the functions where threads do start.
/// * `interpreters`: frames of the interpreter functions in `names`.
fn frames(finding: &Finding) -> Value {
    match &finding.problem {
        Problem::OfProcess(process, problem) => frames_of(process, problem),
        Problem::FilesGone { files, .. }
        | Problem::OtherVersion { files }
        | Problem::Stripped { files, .. }
        | Problem::NotElf { files, .. }
        | Problem::StrippedPackages { files }
        | Problem::Symbolless { files } => json!({ "what": "unnamed", "modules": modules(files) }),
        Problem::Nowhere { .. } => json!({ "what": "unnamed", "modules": [""] }),
        Problem::Kernel { .. } => json!({ "what": "kernel" }),
        _ => Value::Null,
    }
}

/// The frames that a finding about one process concerns.
fn frames_of(process: &Who, problem: &OfProcess) -> Value {
    let pid = process.pid.0;
    match problem {
        OfProcess::Silent { .. }
        | OfProcess::Missing { .. }
        | OfProcess::OtherProcess { .. }
        | OfProcess::Refused { .. }
        | OfProcess::Empty { .. }
        | OfProcess::OtherRun { .. }
        | OfProcess::EndsEarly { .. }
        | OfProcess::Torn { .. }
        | OfProcess::Replaced { .. }
        | OfProcess::Overwritten { .. }
        | OfProcess::Incomplete { .. } => {
            // perf's name for anonymous executable memory.
            json!({ "what": "unnamed", "modules": [format!("/tmp/perf-{pid}.map")], "pid": pid })
        }
        OfProcess::Clock { .. } => json!({ "what": "jit", "pid": pid }),
        OfProcess::ImagesGone { .. } => json!({ "what": "images", "pid": pid }),
        OfProcess::Interpreted { .. } => {
            let interpreter = process.runtime.and_then(|runtime| runtime.interpreter.as_ref());
            let names = interpreter.map_or(&[][..], |interpreter| interpreter.functions);
            json!({ "what": "interpreters", "names": names, "pid": pid })
        }
        OfProcess::JvmFramePointers { .. } => {
            json!({ "what": "outermost", "any": true, "beginnings": beginnings(), "pid": pid })
        }
        OfProcess::FramePointers { files, in_jit, .. } | OfProcess::NotUnwound { files, in_jit, .. } => {
            let files: Vec<String> = files.iter().map(|file| shown(file)).collect();
            json!({ "what": "outermost", "jit": in_jit, "files": files, "beginnings": beginnings() })
        }
        _ => Value::Null,
    }
}

/// The functions at which complete stacks end: those where threads start, and perf's marker of a truncated stack.
fn beginnings() -> Vec<String> {
    let names = START_FUNCTIONS.iter().copied().chain([TRUNCATED]);
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

fn modules(files: &[NamedFile]) -> Vec<String> {
    files.iter().map(|file| shown(&file.path)).collect()
}

fn shown(path: &str) -> String {
    readable(path.as_bytes()).into_owned()
}
