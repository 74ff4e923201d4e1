//! The tiers of JIT code from a recording, from the command line: what runs in a process decides what its names give.

use crate::support;

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::bytes::Order;
use support::jitdump::{JitDump, Load};
use support::perf_data::{Event, Mmap, Mode, PerfData, Stamp};

/// The address of JIT code, in every process.
const AT: u64 = 0x1_0000;
const ERLANG: u32 = 77;
/// Forked by Erlang's.
const CHILD: u32 = 78;
const UNKNOWN: u32 = 79;

/// The name of the code, in every process.
const NAMES: [&str; 4] = ["lists:keyfind/3", "$global::garbage_collect", "JS:*push /a/list.js:10:5", "Interpreter"];

/// Three processes with a map each, and a sample in each of its functions.
fn recorded(dir: &Path) -> PathBuf {
    let mut recording = PerfData::new(Order::Little, Event::usual());
    for pid in [ERLANG, UNKNOWN] {
        recording.comm(Stamp::new(pid, 1), "program", true);
        recording.mmap2(Stamp::new(pid, 2), Mmap { addr: AT, len: 0x1_0000, pgoff: 0, path: "//anon" });
    }
    let emulator = Mmap { addr: 0x40_0000, len: 0x1000, pgoff: 0, path: "/opt/erts/bin/beam.smp" };
    recording.mmap2(Stamp::new(ERLANG, 3), emulator);
    recording.fork(Stamp::new(CHILD, 4), ERLANG);
    let memory = Mmap { addr: AT + 0x2_0000, len: 0x1000, pgoff: 0, path: "//anon" };
    recording.mmap2(Stamp::new(CHILD, 5), memory);
    for pid in [ERLANG, CHILD, UNKNOWN] {
        let mut map = String::new();
        for (at, name) in NAMES.iter().enumerate() {
            let addr = AT + 0x100 * at as u64;
            map += &format!("{addr:x} 100 {name}\n");
            recording.sample(Stamp::new(pid, 10), &[addr + 4]);
        }
        fs::write(dir.join(format!("perf-{pid}.map")), map).unwrap();
    }
    let path = dir.join("perf.data");
    fs::write(&path, recording.into_bytes(Mode::File)).unwrap();
    path
}

fn run(args: &[&str], input: &Path) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(args).arg(input).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Name and tier of the JIT frames of one process.
fn tiers(input: &Path, pid: u32) -> BTreeSet<(String, Option<String>)> {
    let document: Value = serde_json::from_slice(&run(&["export", "--to", "json"], input)).unwrap();
    let stacks = document["events"][0]["stacks"].as_array().unwrap();
    let stacks = stacks.iter().filter(|stack| stack["pid"] == pid);
    let frames = stacks.flat_map(|stack| stack["frames"].as_array().unwrap());
    let frames = frames.map(|at| &document["frames"][at.as_u64().unwrap() as usize]);
    let jit = frames.filter(|frame| frame["kind"] == "jit");
    jit.map(|frame| (frame["name"].as_str().unwrap().to_owned(), frame["tier"].as_str().map(str::to_owned))).collect()
}

fn expected(tiers: [Option<&str>; 4]) -> BTreeSet<(String, Option<String>)> {
    NAMES.iter().zip(tiers).map(|(name, tier)| ((*name).to_owned(), tier.map(str::to_owned))).collect()
}

#[test]
fn names_show_what_they_mean_to_the_runtime_of_their_process() {
    let dir = tempfile::tempdir().unwrap();
    let input = recorded(dir.path());
    // All code of Erlang's that is not a stub is of one tier.
    let erlang = expected([Some("baseline"), Some("stub"), Some("optimized"), Some("baseline")]);
    assert_eq!(tiers(&input, ERLANG), erlang);
    assert_eq!(tiers(&input, CHILD), erlang);
    assert_eq!(tiers(&input, UNKNOWN), expected([None, Some("stub"), Some("optimized"), None]));
}

#[test]
fn a_text_shows_what_its_names_alone_show() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("script.txt");
    fs::write(&text, run(&["script"], &recorded(dir.path()))).unwrap();
    assert_eq!(tiers(&text, ERLANG), expected([None, Some("stub"), Some("optimized"), None]));
}

#[test]
fn an_injected_recording_shows_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let input = recorded(dir.path());
    for pid in [ERLANG, UNKNOWN] {
        let mut dump = JitDump::new(pid);
        for (at, name) in (0..).zip(NAMES) {
            dump.load(
                6,
                Load { tid: pid, addr: AT + 0x100 * at, index: at, name: name.as_bytes(), code: &[0x90; 0x100] },
            );
        }
        fs::write(dir.path().join(format!("jit-{pid}.dump")), dump.into_bytes()).unwrap();
    }
    let output = dir.path().join("out.data");
    run(&["inject", "-o", output.to_str().unwrap(), "-i"], &input);
    for entry in fs::read_dir(dir.path()).unwrap() {
        let path = entry.unwrap().path();
        let kept = path.extension().is_some_and(|extension| extension == "so" || extension == "data");
        if !kept {
            fs::remove_file(path).unwrap();
        }
    }
    assert_eq!(tiers(&output, ERLANG), expected([Some("baseline"), Some("stub"), Some("optimized"), Some("baseline")]));
    assert_eq!(tiers(&output, UNKNOWN), expected([None, Some("stub"), Some("optimized"), None]));
}
