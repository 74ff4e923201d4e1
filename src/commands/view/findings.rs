//! Section `findings` of the page: what `doctor` reports, and which frames each finding concerns.

use crate::analysis::start_functions::START_FUNCTIONS;
use crate::doctor::{self, Finding, Highlight};
use crate::model::printable::readable;
use crate::model::stacks::TRUNCATED;
use crate::pipeline::recording::Examined;
use crate::render::viewer::Section;
use serde_json::{Value, json};

/// The findings about one recording, as JSON.
#[derive(Debug)]
pub(super) struct Findings(Value);

/// Examines a recording. The result is what `jitgraft doctor --to json` prints, plus `show` in each finding: the
/// frames that the page can highlight.
pub(super) fn collect(examined: &Examined<'_>) -> Findings {
    let diagnosis = doctor::diagnose(examined);
    let mut value = doctor::json::recording(&diagnosis);
    for (key, findings) in [("findings", &diagnosis.findings), ("minor", &diagnosis.minor)] {
        let Some(objects) = value.get_mut(key).and_then(Value::as_array_mut) else { continue };
        for (object, finding) in objects.iter_mut().zip(findings) {
            object["show"] = frames(finding);
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
/// * `outermost`: the outermost frames of incomplete stacks: frames that have no caller although no thread starts in
///   them. With `any`, all such frames are meant, otherwise those in one of the `files` and, if `jit` is true, those in
///   JIT code. `beginnings` lists the functions at which complete stacks end.
/// * `interpreters`: frames of the interpreter functions in `names`.
fn frames(finding: &Finding) -> Value {
    let pid = finding.process.as_ref().map(|process| process.pid.0);
    match &finding.highlight {
        Highlight::Nothing => Value::Null,
        Highlight::UnnamedInFiles(files) => json!({ "what": "unnamed", "modules": printable(files) }),
        Highlight::UnnamedNowhere => json!({ "what": "unnamed", "modules": [""] }),
        Highlight::UnnamedJit => {
            // The module that perf states for anonymous executable memory.
            let module = format!("/tmp/perf-{}.map", pid.unwrap_or_default());
            json!({ "what": "unnamed", "modules": [module], "pid": pid })
        }
        Highlight::UnnamedKernel => json!({ "what": "kernel" }),
        Highlight::UnnamedImages => json!({ "what": "images", "pid": pid }),
        Highlight::Jit => json!({ "what": "jit", "pid": pid }),
        Highlight::Interpreter(functions) => json!({ "what": "interpreters", "names": functions, "pid": pid }),
        Highlight::StackEnds { files, in_jit } => {
            json!({ "what": "outermost", "jit": in_jit, "files": printable(files), "beginnings": beginnings() })
        }
        Highlight::AllStackEnds => json!({ "what": "outermost", "any": true, "beginnings": beginnings(), "pid": pid }),
    }
}

/// The functions at which complete stacks end: those where threads start, and perf's marker of a truncated stack.
fn beginnings() -> Vec<String> {
    let names = START_FUNCTIONS.iter().copied().chain([TRUNCATED]);
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

fn printable(files: &[String]) -> Vec<String> {
    files.iter().map(|file| readable(file.as_bytes()).into_owned()).collect()
}
