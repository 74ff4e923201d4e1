//! Messages as Google's own runtime reads them with the official classes (PyPI: opentelemetry-proto), beside the rows
//! of the same recordings in Parquet and `jitgraft report`.
#![cfg(feature = "tables")]

use crate::support::python;

use python::{python, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const RECORDINGS: [&str; 10] = [
    "hotspot-log",
    "php-recording",
    "recording-cpp",
    "recording-dotnet",
    "recording-java",
    "recording-luajit",
    "recording-node",
    "recording-wasmtime",
    "tiers-recording",
    "v8-log",
];

/// The outputs of a recording that are compared: see tests/end_to_end/otlp/check.py.
fn export(recording: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    let names = ["--quiet", "--jit-names", "raw"];
    let jitgraft =
        |args: &[&str]| run(Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(args).args(names).arg(recording));
    for name in ["all.otlp", "all.otlp.json", "all.parquet"] {
        jitgraft(&["export", "-o", to.join(name).to_str().unwrap()]);
    }
    for event in events(&to.join("all.otlp.json")) {
        let rows = jitgraft(&["report", "--format", "json", "--event", &event]);
        std::fs::write(to.join(format!("{event}.report.json")), rows).unwrap();
    }
}

/// The names of the events in messages, a line each.
fn events(messages: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(messages).unwrap();
    let list = |of: &Value, key: &str| of[key].as_array().cloned().unwrap_or_default();
    let mut events = BTreeSet::new();
    for message in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let scopes =
            list(&message, "resourceProfiles").into_iter().flat_map(|resource| list(&resource, "scopeProfiles"));
        for profile in scopes.flat_map(|scope| list(&scope, "profiles")) {
            let at = profile["sampleType"]["typeStrindex"].as_u64().unwrap();
            events.insert(message["dictionary"]["stringTable"][at as usize].as_str().unwrap().to_owned());
        }
    }
    events
}

#[test]
#[ignore = "needs python3: tests/run.sh --all"]
fn the_official_classes_read_the_same_as_report_and_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    for name in RECORDINGS {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
        export(&fixture.join("perf.data.zst"), &dir.path().join(name));
    }
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/otlp/check.py");
    let mut command = Command::new(python(&["opentelemetry-proto", "pyarrow"]));
    let figures = run(command.arg(check).args(RECORDINGS.map(|name| dir.path().join(name))));
    let figures = String::from_utf8(figures).unwrap();
    let compared = |line: &str| serde_json::from_str::<Value>(line).unwrap()["observations"].as_u64();
    assert_eq!(figures.lines().filter(|line| compared(line) > Some(0)).count(), RECORDINGS.len(), "{figures}");
}
