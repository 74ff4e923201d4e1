//! HotSpot's compilation log and code list, beside a real recording: every name against a look-up that shares no code
//! with jitgraft, and against the perf map that the same JVM wrote meanwhile.

use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::hotspot_log::{self as slow, Compilation, Inlined};
use crate::support::perf;
use crate::support::truth;

const PID: u32 = 12340;
const LOG: &str = "hotspot_pid12340.log";

/// So much earlier than its stamp code is taken to be there: the log's times are not better.
const EARLY: u64 = 2_000_000;

fn unpacked(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/hotspot-log").join(format!("{name}.zst"));
    zstd::decode_all(std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).unwrap()
}

/// A directory with the recording and such files of the fixture.
fn directory(names: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in [&["perf.data"], names].concat() {
        std::fs::write(dir.path().join(name), unpacked(name)).unwrap();
    }
    dir
}

fn jitgraft(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    let output = command.args(args).current_dir(dir).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The code by place and time according to the slow reader, on the recording's clock.
fn truth(recording: &[u8]) -> truth::Truth {
    let log = slow::read(&String::from_utf8(unpacked(LOG)).unwrap());
    let mut truth = truth::Truth::default();
    let shift = slow::clock_shift(recording) + i128::from(log.began);
    let mut there: Vec<&Compilation> = Vec::new();
    for compilation in &log.compilations {
        let method = &compilation.method;
        let time = (i128::from(method.stamp) - i128::from(EARLY) + shift) as u64;
        let (gone, kept): (Vec<_>, Vec<_>) =
            there.into_iter().partition(|old: &&Compilation| old.shares_memory_with(compilation));
        there = kept;
        for old in gone {
            truth.add_code(PID, time, (old.method.start, old.method.start + old.method.size), None);
        }
        truth.add_code(PID, time, (method.start, method.start + method.size), Some(method.name.as_bytes()));
        there.push(compilation);
    }
    truth
}

#[test]
fn every_frame_in_logged_code_has_the_name_of_parts_that_was_there_then() {
    let dir = directory(&[LOG]);
    jitgraft(dir.path(), &["inject", "-i", "perf.data", "-o", "out.data"]);
    let recording = unpacked("perf.data");
    let mut truth = truth(&recording);
    let recording = truth::Recording::read(&recording);
    truth.add_recording(&recording);
    truth.settle();
    let printed = truth::read_script(&perf::script(&dir.path().join("out.data")).out);
    let verdict = truth::judge(&truth, &recording, &printed);
    println!("{verdict:?}");
    assert!(verdict.covered > 500, "{verdict:?}");
    assert_eq!(verdict.right, verdict.covered, "{:?}", verdict.wrong);
    // perf alone has no name for any of them.
    let before = truth::read_script(&perf::script(&dir.path().join("perf.data")).out);
    assert_eq!(truth::judge(&truth, &recording, &before).right, 0);
}

#[test]
fn a_log_that_was_not_asked_for_is_used_and_doctor_reports_it() {
    let dir = directory(&[LOG]);
    let said: Value =
        serde_json::from_str(&jitgraft(dir.path(), &["doctor", "--format", "json", "perf.data"])).unwrap();
    let sources = said.to_string();
    assert!(sources.contains("hotspot-log") && sources.contains(LOG), "{sources}");
    let text = jitgraft(dir.path(), &["doctor", "perf.data"]);
    assert!(text.contains("HotSpot compilation log") && text.contains("names "), "{text}");
}

#[test]
fn readable_names_show_the_compiler_by_a_word_and_merged_ones_not_at_all() {
    let dir = directory(&[LOG]);
    let folded = |args: &[&str]| jitgraft(dir.path(), &[&["collapse", "-i", "perf.data"], args].concat());
    let pretty = folded(&["--jit-names", "pretty"]);
    assert!(pretty.contains(";Reload$Hot.große c1") && pretty.contains(";java.util.HashMap.merge c2"), "{pretty}");
    let merged = folded(&["--merge-tiers"]);
    assert!(merged.contains(";Reload$Hot.große") && !merged.contains(" c1") && !merged.contains(" c2"), "{merged}");
}

#[test]
fn inlined_calls_are_listed_beside_a_function_as_a_second_reader_finds_them() {
    let dir = directory(&[LOG]);
    let told: Value = serde_json::from_str(&jitgraft(
        dir.path(),
        &["annotate", "--format", "json", "--limit", "200", "-i", "perf.data"],
    ))
    .unwrap();
    let log = slow::read(&String::from_utf8(unpacked(LOG)).unwrap());
    let mut by_place: HashMap<(u64, u64), Vec<&Compilation>> = HashMap::new();
    for compilation in &log.compilations {
        let method = &compilation.method;
        by_place.entry((method.start, method.size)).or_default().push(compilation);
    }
    let (mut compared, mut calls) = (0, 0);
    for listing in told["listings"].as_array().unwrap() {
        for version in listing["versions"].as_array().unwrap() {
            let Some(addr) = version["address"].as_str().filter(|_| listing["missing"].is_string()) else { continue };
            let addr = u64::from_str_radix(addr.trim_start_matches("0x"), 16).unwrap();
            let own = &by_place[&(addr, version["size"].as_u64().unwrap())];
            let told =
                version["inlined_calls"].as_array().map_or_else(Vec::new, |calls| calls.iter().map(inlined).collect());
            assert!(own.iter().any(|compilation| compilation.inlined == told), "{}: {told:?}", listing["name"]);
            compared += 1;
            calls += told.len();
        }
    }
    println!("{compared} codes, {calls} calls");
    assert!(compared > 30 && calls > 60, "{compared} codes, {calls} calls");
    let text = jitgraft(dir.path(), &["annotate", "--limit", "30", "-i", "perf.data"]);
    assert!(text.contains("   contains ") && text.contains("@ "), "{text:.3000}");
}

fn inlined(call: &Value) -> Inlined {
    let number = |key: &str| call[key].as_u64().unwrap() as usize;
    Inlined {
        depth: number("depth"),
        bytecode: number("bytecode"),
        name: call["function"].as_str().unwrap().to_owned(),
    }
}

#[test]
fn a_log_and_a_map_together_name_methods_by_time_and_the_rest_by_the_map() {
    let dir = directory(&[LOG]);
    std::fs::create_dir(dir.path().join("maps")).unwrap();
    std::fs::write(dir.path().join("maps/jcmd.map"), unpacked("jcmd.map")).unwrap();
    let named = |args: &[&str]| {
        let args = [&["collapse", "--jit-names", "pretty", "-i", "perf.data"], args].concat();
        let folded = jitgraft(dir.path(), &args);
        let interpreted = folded.lines().filter(|line| line.split(';').any(|frame| frame == "Interpreter")).count();
        (interpreted, folded.contains(";java.util.HashMap.merge c2"))
    };
    assert_eq!(named(&[]), (0, true));
    let (interpreted, timed) = named(&["--perf-map", "maps/jcmd.map@12340", "--jit-log", LOG]);
    assert!(interpreted > 10 && timed, "{interpreted} {timed}");
    // Beside the recording both are found.
    std::fs::rename(dir.path().join("maps/jcmd.map"), dir.path().join("perf-12340.map")).unwrap();
    assert_eq!(named(&[]), (interpreted, timed));
}
