//! A recording of LuaJIT that has neither dump nor map: LuaJIT's own dump of its traces names them. The expected name
//! of each sample is found by a second reader of the dump, which shares no code with `src/`.

use crate::support::tool;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tool::run;

const PID: &str = "26632";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recording-luajit").join(name)
}

/// The recording and the dump, in a directory of their own.
fn unpacked() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let packed = fs::read(fixture("perf.data.zst")).unwrap();
    fs::write(dir.path().join("perf.data"), zstd::decode_all(&packed[..]).unwrap()).unwrap();
    fs::copy(fixture("luajit.dump"), dir.path().join("luajit.dump")).unwrap();
    dir
}

/// Begin, end and name of each trace, read by hand.
fn traces(dump: &str) -> Vec<(u64, u64, String)> {
    let (mut begun, mut size, mut traces) = (BTreeMap::new(), None, Vec::new());
    for line in dump.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["----", "TRACE", number, "start", .., place] => drop(begun.insert(number, place)),
            ["----", "TRACE", number, "mcode", bytes] => size = Some((number, bytes.parse::<u64>().unwrap())),
            [addr, ..] if let Some((number, bytes)) = size.take() => {
                let addr = u64::from_str_radix(addr, 16).unwrap();
                traces.push((addr, addr + bytes, format!("TRACE_{number}::{}", begun[number])));
            }
            _ => {}
        }
    }
    traces
}

#[test]
fn every_sample_in_a_trace_is_called_as_a_second_reader_calls_it() {
    let traces = traces(&fs::read_to_string(fixture("luajit.dump")).unwrap());
    assert_eq!(traces.len(), 18);
    let dir = unpacked();
    let samples = run("perf", &["script", "-i", "perf.data", "-F", "ip,sym,dso"], dir.path());
    let mut expected = BTreeMap::<String, u64>::new();
    for sample in samples.lines().filter(|line| line.contains(&format!("perf-{PID}.map")) || line.contains("//anon")) {
        assert!(sample.contains("[unknown]"), "perf names it without the dump: {sample}");
        let addr = u64::from_str_radix(sample.split_whitespace().next().unwrap(), 16).unwrap();
        let trace = traces.iter().rfind(|(begin, end, _)| (*begin..*end).contains(&addr));
        let (.., name) = trace.unwrap_or_else(|| panic!("{addr:#x} is in no trace"));
        *expected.entry(format!("luajit;{name}")).or_default() += 1;
    }
    assert!(expected.len() >= 8 && expected.values().sum::<u64>() > 1000, "{expected:?}");

    let given = format!("luajit.dump@{PID}");
    let collapse = ["collapse", "--weight", "samples", "--jit-log", &given, "perf.data"];
    let folded = run(env!("CARGO_BIN_EXE_jitgraft"), &collapse, dir.path());
    let rows = folded.lines().map(|line| line.rsplit_once(' ').unwrap()).filter(|(stack, _)| stack.contains("TRACE_"));
    let named = rows.map(|(stack, count)| (stack.to_owned(), count.parse().unwrap()));
    assert_eq!(named.collect::<BTreeMap<String, u64>>(), expected);

    let inject = ["inject", "--jit-log", &given, "-i", "perf.data", "-o", "perf.jit.data"];
    run(env!("CARGO_BIN_EXE_jitgraft"), &inject, dir.path());
    let shown = run("perf", &["script", "--no-inline", "-F", "ip,sym,dso", "-i", "perf.jit.data"], dir.path());
    let in_traces = shown.lines().filter(|line| line.contains("TRACE_")).count() as u64;
    assert_eq!(in_traces, expected.values().sum::<u64>());
}

#[test]
fn a_dump_beside_the_recording_is_offered_by_what_it_holds() {
    let dir = unpacked();
    let doctor = run(env!("CARGO_BIN_EXE_jitgraft"), &["doctor", "perf.data"], dir.path());
    assert!(doctor.contains(&format!("luajit.dump@{PID}")), "it was written long after the recording:\n{doctor}");
}
