//! Measureme profiles: what measureme's own tools state about a real one, and what is known of a simulated one.

use crate::support::interpreter;
use crate::support::names;
use crate::support::runner;

use interpreter::{Program, Recorder, Truth, run};
use names::name;
use runner::{jitgraft, stdout};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/measureme-rustc").join(name)
}

fn unpacked(name: &str) -> String {
    let bytes = zstd::decode_all(fs::File::open(fixture(name)).unwrap()).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Records a simulated program.
fn record(dir: &Path, program: Program, cmd: &str) -> (PathBuf, Truth) {
    let path = dir.join("demo.mm_profdata");
    let mut truth = Truth::new();
    let recorder = Recorder::create(&path, cmd);
    run(program, &recorder, Some(&mut truth));
    drop(recorder);
    (path, truth)
}

const PROGRAM: Program = Program { frames: 20_000, threads: 4, functions: 100, one_id: false };

/// Folded lines as stack → weight.
fn weights(folded: &str) -> BTreeMap<String, u64> {
    let parse = |line: &str| {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        (stack.to_owned(), weight.parse().unwrap())
    };
    folded.lines().map(parse).collect()
}

/// A profile that doesn't state its start can't be placed among others. Its times stay as they are.
#[test]
fn spans_of_a_profile_without_a_start_are_not_moved() {
    let dir = tempfile::tempdir().unwrap();
    let (with, _) = record(dir.path(), Program { frames: 50, threads: 1, ..PROGRAM }, "demo");
    let mut bytes = fs::read(&with).unwrap();
    let start = b"\"start_time\": 1700000000000000000";
    let at = bytes.windows(start.len()).position(|part| part == start).unwrap();
    bytes[at..at + start.len()].copy_from_slice(b"\"other_time\": 1700000000000000000");
    let without = dir.path().join("without.mm_profdata");
    fs::write(&without, bytes).unwrap();
    // The start of the first span in each input.
    let starts = |inputs: [&Path; 2]| -> Vec<f64> {
        let second = inputs[1].to_str().unwrap();
        let text = stdout(&["export", "-q", "--to", "chrome", "-o", "-", second], inputs[0]);
        let document: Value = serde_json::from_str(&text).unwrap();
        let spans = document["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
        let mut times: Vec<f64> = spans.map(|span| span["ts"].as_f64().unwrap()).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let twice = starts([&with, &with]);
    assert!(twice.len() > 10 && twice.iter().all(|time| (0.0..1e6).contains(time)), "{twice:?}");
    for inputs in [[&*with, &without], [&without, &with], [&without, &without]] {
        assert_eq!(starts(inputs), twice, "{inputs:?}");
    }
}

#[test]
fn collapse_equals_stack_collapse() {
    let ours = weights(&stdout(&["collapse"], &fixture("profile.mm_profdata.zst")));
    let mut theirs = weights(&unpacked("stack_collapse.folded.zst"));
    // The gaps between the top-level events of a thread, which no event covers.
    theirs.remove("rustc").unwrap();
    theirs.retain(|_, weight| *weight > 0);
    assert!(theirs.len() > 100);
    assert_eq!(ours, theirs);
}

#[test]
fn stats_equal_summarize() {
    let ours: Value =
        serde_json::from_str(&stdout(&["stats", "--format", "json"], &fixture("profile.mm_profdata.zst"))).unwrap();
    let theirs: Value = serde_json::from_str(&unpacked("summarize.json.zst")).unwrap();
    let nanos = |time: &Value| time["secs"].as_i64().unwrap() * 1_000_000_000 + time["nanos"].as_i64().unwrap();
    let rows = ours["summary"].as_array().unwrap();
    assert_eq!(rows[0]["time"].as_i64().unwrap(), nanos(&theirs["total_time"]));
    let number = |row: &Value, key: &str| row[key].as_i64().unwrap();
    let keys = ["self", "time", "blocked", "incr_load", "incr_hash", "count", "cache_hits", "cache_misses"];
    let ours: BTreeMap<String, Vec<i64>> = rows[1..]
        .iter()
        .map(|row| (row["item"].as_str().unwrap().to_owned(), keys.map(|key| number(row, key)).to_vec()))
        .collect();
    let times = ["self_time", "time", "blocked_time", "incremental_load_time", "incremental_hashing_time"];
    let counts = ["invocation_count", "number_of_cache_hits", "number_of_cache_misses"];
    let theirs: BTreeMap<String, Vec<i64>> = theirs["query_data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            let numbers = times.iter().map(|key| nanos(&item[key])).chain(counts.iter().map(|key| number(item, key)));
            (item["label"].as_str().unwrap().to_owned(), numbers.collect())
        })
        .collect();
    assert!(theirs.len() > 50);
    assert_eq!(ours, theirs);
}

/// Name, category, thread, arguments and whole microseconds of each span.
fn spans(trace: &str) -> BTreeMap<String, u64> {
    let events: Value = serde_json::from_str(trace).unwrap();
    let mut spans = BTreeMap::new();
    // Theirs is a plain list.
    let events = events.get("traceEvents").unwrap_or(&events);
    for event in events.as_array().unwrap().iter().filter(|event| event["ph"] == "X") {
        let whole = event["dur"].as_f64().unwrap().floor();
        let key = format!("{} {} {} {} {whole}", event["name"], event["cat"], event["tid"], event["args"]);
        *spans.entry(key).or_default() += 1;
    }
    spans
}

#[test]
fn export_equals_crox_and_keeps_nanoseconds() {
    let ours = stdout(&["export", "--to", "chrome", "-q"], &fixture("profile.mm_profdata.zst"));
    let theirs = spans(&unpacked("crox.json.zst"));
    assert!(theirs.values().sum::<u64>() > 3_000);
    assert_eq!(spans(&ours), theirs);
    assert!(ours.contains(".001,") || ours.contains(".999"), "no time has nanoseconds");
    let short =
        stdout(&["export", "--to", "chrome", "-q", "--min-duration", "10us"], &fixture("profile.mm_profdata.zst"));
    let kept: u64 = spans(&short).values().sum();
    let long = |(key, count): (&String, &u64)| {
        (key.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap() >= 10).then_some(*count)
    };
    assert_eq!(kept, theirs.iter().filter_map(long).sum::<u64>());
}

/// The truth as lines of `collapse --by tid`.
fn lines(truth: &Truth, time: impl Fn(&(u64, u64)) -> u64) -> BTreeMap<String, u64> {
    let line = |((thread, path), times): (&(u32, Vec<u64>), &(u64, u64))| {
        let names: Vec<_> = path.iter().map(|function| name(*function).replace(';', ":")).collect();
        (format!("miri-4242/{thread};{}", names.join(";")), time(times))
    };
    truth.iter().map(line).filter(|(_, time)| *time > 0).collect()
}

#[test]
fn wall_and_active_time_of_virtual_threads_are_exact() {
    let dir = tempfile::tempdir().unwrap();
    let (path, truth) = record(dir.path(), PROGRAM, "miri src/main.rs ");
    let wall = weights(&stdout(&["collapse", "--by", "tid"], &path));
    assert_eq!(wall, lines(&truth, |times| times.0));
    let active = weights(&stdout(&["collapse", "--by", "tid", "--clock", "active"], &path));
    assert_eq!(active, lines(&truth, |times| times.1));
    let (wall, active): (u64, u64) = (wall.values().sum(), active.values().sum());
    let run: u64 = stdout(&["export", "--to", "chrome", "-q"], &path).lines().count() as u64;
    assert!(active < wall && run > 20_000);
    assert!(truth.keys().any(|(_, path)| path.iter().any(|function| name(*function).contains(';'))));
}

#[test]
fn one_id_for_all_threads_never_wraps() {
    let dir = tempfile::tempdir().unwrap();
    let program = Program { one_id: true, ..PROGRAM };
    // No peer reads a command line with an apostrophe.
    let (path, truth) = record(dir.path(), program, "miri it's café.rs ");
    let run = truth.values().map(|times| times.1).sum::<u64>() * 2;
    let output = jitgraft(&["collapse"], &path);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("overlap another call with the same thread ID"), "{said}");
    let wall = weights(&String::from_utf8(output.stdout).unwrap());
    assert!(wall.values().all(|weight| *weight <= run), "a stack took longer than the run");
    let active: u64 = weights(&stdout(&["collapse", "--clock", "active"], &path)).values().sum();
    assert!(active <= run);
    assert!(jitgraft(&["stats"], &path).status.success());
}

#[test]
fn a_cut_file_keeps_its_events() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = record(dir.path(), PROGRAM, "miri ");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let output = jitgraft(&["collapse"], &path);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("demo.mm_profdata: ") && said.contains("there is no string table"), "{said}");
    let folded = String::from_utf8(output.stdout).unwrap();
    assert!(folded.lines().count() > 100 && folded.contains("fn#"));
    fs::write(&path, b"MMPD\x06\0\0\0").unwrap();
    let output = jitgraft(&["collapse"], &path);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("version 6 is too old"));
}

#[test]
fn sampling_and_least_duration_keep_the_total() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = record(dir.path(), PROGRAM, "miri ");
    let all = weights(&stdout(&["collapse"], &path));
    let total: u64 = all.values().sum();
    for fewer in [&["--sample-calls", "10"], &["--sample-time", "50us"], &["--min-duration", "2us"]] {
        let args = [&["collapse"][..], fewer].concat();
        let folded = stdout(&args, &path);
        let kept = weights(&folded);
        assert_eq!(kept.values().sum::<u64>(), total, "{fewer:?}");
        assert!(kept.len() < all.len() / 2, "{fewer:?} kept {} of {}", kept.len(), all.len());
        assert_eq!(stdout(&[&args[..], &["--threads", "3"]].concat(), &path), folded);
    }
    let half = weights(&stdout(&["collapse", "--time", "0%-50%"], &path)).values().sum::<u64>();
    let rest = weights(&stdout(&["collapse", "--time", "50%-100%"], &path)).values().sum::<u64>();
    assert_eq!(half + rest, total);
}

#[test]
fn differences_and_runs() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = record(dir.path(), PROGRAM, "miri ");
    let other = dir.path().join("other.mm_profdata");
    let recorder = Recorder::create(&other, "miri ");
    run(Program { frames: 10_000, ..PROGRAM }, &recorder, None);
    drop(recorder);
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    let diff = command.args(["stats", "--diff", "--format", "csv"]).args([&path, &other]).output().unwrap();
    let diff = String::from_utf8(diff.stdout).unwrap();
    let own: i64 = diff.lines().nth(1).unwrap().split(',').nth(1).unwrap().parse().unwrap();
    assert!(own < 0, "half of the calls took less time: {own}");
    // As in the other commands, the flag takes the earlier profile, wherever it stands.
    let [path_text, other_text] = [&path, &other].map(|path| path.to_str().unwrap());
    for words in [&["--diff", path_text, other_text][..], &[other_text, "--diff", path_text]] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(["stats", "--to", "csv"]).args(words).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), diff, "{words:?}");
        assert!(output.stderr.is_empty(), "{words:?}");
    }
    for (words, why) in [
        (&["--diff", path_text, path_text][..], "would be compared with itself"),
        (&["--time", "1,2", path_text], "the summary by label, which always covers all spans"),
        (&["--exclude", "a", path_text], "the summary by label, which always covers all spans"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("stats").args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(why), "{words:?}: {said}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    let runs = command.args(["stats", "--runs", "--format", "csv"]).args([&path, &path]).output().unwrap();
    let runs = String::from_utf8(runs.stdout).unwrap();
    let items: BTreeSet<&str> = runs.lines().skip(1).map(|line| line.rsplit(',').next().unwrap()).collect();
    assert_eq!(items, BTreeSet::from(["0.0000"]), "a run does not vary from itself");
}
