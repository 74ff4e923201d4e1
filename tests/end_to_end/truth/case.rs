//! The recordings of `fixtures/`, unpacked where the program finds what belongs to them.

use super::callgrind;
use super::told::Told;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder of `fixtures/` with something to read.
pub(crate) struct Case {
    pub(crate) name: String,
    dir: tempfile::TempDir,
    input: PathBuf,
    /// Its events, in order.
    pub(crate) events: Vec<String>,
    /// True if stacks are those of threads with names, which folded stacks begin with.
    pub(crate) has_threads: bool,
    /// perf's report when the recording was made: samples and sum of periods, by event.
    pub(crate) perf_says: BTreeMap<String, (u64, u64)>,
}

/// The directory of the recorded programs.
const PROGRAMS: &str = "root/tmp/demo";

pub(crate) fn cases() -> Vec<Case> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut folders: Vec<_> = fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    // These are recognized and refused.
    folders.retain(|path| !path.ends_with("otlp-1.7") && !path.ends_with("otlp-1.9"));
    folders.iter().filter(|path| path.is_dir()).filter_map(|folder| case(folder)).collect()
}

/// The case of that folder.
pub(crate) fn case_named(name: &str) -> Case {
    case(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)).unwrap()
}

/// Spans of time become spans, not sums of stacks: `src/formats/table_tests.rs` checks whether all of them are written.
const SPANS: &[&str] = &["mm_profdata", "json"];

fn case(folder: &Path) -> Option<Case> {
    let files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let name_of = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let is_input = |path: &&PathBuf| {
        let (name, extension) = (name_of(path), path.extension().and_then(OsStr::to_str));
        name == "perf.data.zst" || name.starts_with("input.") && !extension.is_some_and(|ext| SPANS.contains(&ext))
    };
    let input = name_of(files.iter().find(is_input)?);
    let dir = tempfile::tempdir().unwrap();
    let programs = dir.path().join(PROGRAMS);
    fs::create_dir_all(&programs).unwrap();
    for path in files.iter().filter(|path| path.is_file()) {
        let name = name_of(path);
        match name.strip_suffix(".zst").filter(|_| name != input) {
            Some(unpacked) => {
                let bytes = zstd::decode_all(fs::File::open(path).unwrap()).unwrap();
                fs::write(dir.path().join(unpacked), &bytes).unwrap();
                fs::write(programs.join(unpacked), &bytes).unwrap();
            }
            None => _ = fs::copy(path, dir.path().join(&name)).unwrap(),
        }
    }
    let perf = fs::read_to_string(folder.join("perf.tsv")).unwrap_or_default();
    let row = |line: &str| {
        let [event, samples, period] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        (event.to_owned(), (samples.parse().unwrap(), period.parse().unwrap()))
    };
    let perf_says = perf.lines().skip(1).map(row).collect();
    let (name, input, events) = (name_of(folder), dir.path().join(input), Vec::new());
    let mut case = Case { name, input, dir, events, has_threads: false, perf_says };
    let document: Value = serde_json::from_slice(&case.run(&["export", "--to", "json"])).unwrap();
    let events = document["events"].as_array().unwrap();
    case.events = events.iter().map(|event| event["name"].as_str().unwrap().to_owned()).collect();
    case.has_threads = events[0]["stacks"][0]["comm"].is_string();
    Some(case)
}

impl Case {
    /// The output of the program.
    pub(crate) fn run(&self, arguments: &[&str]) -> Vec<u8> {
        let output = self.dir.path().join("output");
        let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
        // perf's files below HOME may grow while the writers take their turns.
        command.current_dir(self.dir.path()).env("HOME", self.dir.path());
        command.args(arguments).args(["--quiet", "--symfs", "root", "-o"]);
        command.arg(&output).arg(&self.input);
        if self.dir.path().join("kallsyms").exists() {
            command.args(["--kallsyms", "kallsyms"]);
        }
        let run = command.output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{}: {command:?}: {said}", self.name);
        fs::read(&output).unwrap()
    }

    /// The calls that the input states, if it does.
    pub(crate) fn calls(&self) -> Option<Vec<Told>> {
        let is_callgrind = self.input.extension().is_some_and(|extension| extension == "callgrind");
        is_callgrind.then(|| callgrind::stated(&fs::read(&self.input).unwrap()).0)
    }

    /// True if its names were found by the program.
    pub(crate) fn is_recording(&self) -> bool {
        self.input.ends_with("perf.data.zst")
    }
}
