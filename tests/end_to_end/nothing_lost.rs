//! For every format that is read: the samples of a file are in some row, or were reported as skipped. The files are
//! counted by `sample_counts`, which shares nothing with the readers.

use crate::support::protobuf::{Field, Value as Protobuf, encode};
use crate::support::runner::{formats, jitgraft};
use crate::support::sample_counts::{self as counts, Events, Held};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A file, and the samples in it that cannot be read.
struct File {
    format: &'static str,
    bytes: Vec<u8>,
    events: Events,
    skipped: u64,
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

type Count = fn(&[u8]) -> Events;

/// Fixtures of formats with samples.
const FIXTURES: &[(&str, &str, Count)] = &[
    ("cpuprofile", "cpuprofile-node/input.cpuprofile", counts::cpuprofile),
    ("firefox", "firefox-samply/input.json", counts::firefox),
    ("firefox", "firefox-wasmtime/input.json", counts::firefox),
    ("speedscope", "speedscope-pyspy/input.speedscope.json", counts::speedscope),
    ("speedscope", "speedscope-pyinstrument/input.speedscope.json", counts::speedscope),
    ("pprof", "pprof-go/input.pb", counts::pprof),
    ("pprof", "pprof-go/heap.pb.gz", counts::pprof),
    ("otlp", "otlp-1.11/input.otlp", counts::otlp),
    ("otlp-json", "otlp-json/input.jsonl", counts::otlp_json),
    ("callgrind", "callgrind-small/input.callgrind", counts::callgrind),
    ("sample", "sample-macos/input.sample.txt", counts::sample),
    ("dtrace", "dtrace-ustack/input.dtrace.txt", counts::dtrace),
    ("xctrace", "xctrace-instruments/input.xml", counts::xctrace),
    ("vtune", "vtune-topdown/input.csv", counts::vtune),
    ("ghcprof", "ghcprof-ticks/input.prof", counts::ghcprof),
    ("perf-script", "script-layouts/default.txt", counts::perf_script),
    ("folded", "folded-node/input.folded", counts::folded),
];

#[test]
fn samples_of_the_file_are_in_rows_or_were_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for (format, name, count) in FIXTURES {
        let bytes = fs::read(fixture(name)).unwrap();
        files.push(File { format, events: count(&bytes), bytes, skipped: 0 });
    }
    files.extend(made());
    let mut seen = BTreeSet::new();
    for (at, file) in files.iter().enumerate() {
        seen.insert(file.format);
        let path = dir.path().join(format!("{at}.input"));
        fs::write(&path, &file.bytes).unwrap();
        check(file, &path);
    }
    // The sums of exclusive shares and the counts of spans are checked below.
    seen.extend(["vsprof", "perf-data", "measureme", "chrome"]);
    let read: BTreeSet<String> =
        formats().into_iter().filter(|format| format.is_read).map(|format| format.name).collect();
    let missing: Vec<&String> = read.iter().filter(|name| !seen.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "formats without a counter: {missing:?}");
}

fn check(file: &File, path: &Path) {
    let output = jitgraft(&["export", "--to", "json", "-o", "-"], path);
    let said = String::from_utf8(output.stderr).unwrap();
    let what = format!("{} {}: {said}", file.format, String::from_utf8_lossy(&file.bytes[..file.bytes.len().min(300)]));
    assert!(output.status.success(), "{what}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut found = Events::new();
    for event in document["events"].as_array().unwrap() {
        let held = found.entry(event["name"].as_str().unwrap().to_owned()).or_default();
        for row in event["stacks"].as_array().unwrap() {
            held.samples += 1;
            held.weight += i128::from(row["weight"].as_i64().unwrap());
            assert!(
                !row["frames"].as_array().unwrap().is_empty() || ["perf-script", "sample"].contains(&file.format),
                "{what}"
            );
        }
    }
    let skipped = skipped(&said);
    assert_eq!(skipped, file.skipped, "{what}");
    let strict = jitgraft(&["--strict", "report"], path);
    let strictly_said = String::from_utf8_lossy(&strict.stderr);
    // Tables show weights below zero, too.
    assert_eq!(strict.status.success(), skipped == 0, "{what} {strictly_said}");
    let mut left = skipped;
    for (name, held) in &file.events {
        let empty = Held::default();
        let of = found.get(name).unwrap_or(&empty);
        // Files of sums have no samples, and rows of equal stacks may be one.
        if held.samples > 0 && !SUMS.contains(&file.format) {
            let lost = held.samples.checked_sub(of.samples).unwrap_or_else(|| panic!("too many of {name}: {what}"));
            assert!(lost <= left, "{lost} of {name} are lost: {what}");
            left -= lost;
        }
        // Decimal numbers are rounded so that their sum is right.
        let rounded = if ROUNDED.contains(&file.format) { i128::from(held.samples) } else { 0 };
        if skipped == 0 {
            assert!((of.weight - held.weight).abs() <= rounded, "{name}: {} of {}: {what}", of.weight, held.weight);
        }
    }
    assert_eq!(left, 0, "{what}");
    let others: Vec<&String> = found.keys().filter(|name| !file.events.contains_key(*name)).collect();
    assert!(others.is_empty(), "{others:?}: {what}");
}

/// Formats whose weights are decimal numbers.
const ROUNDED: [&str; 3] = ["firefox", "speedscope", "vtune"];

/// Formats whose rows are sums: equal stacks are put together.
const SUMS: [&str; 3] = ["callgrind", "folded", "dtrace"];

/// The number in `N samples skipped`, of all such reports.
fn skipped(said: &str) -> u64 {
    let mut sum = 0;
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        for at in 2..words.len() {
            if words[at].trim_end_matches([':', ',', ';']) == "skipped"
                && ["sample", "samples", "line", "lines", "row", "rows"].contains(&words[at - 1])
            {
                sum += words[at - 2].replace(',', "").parse::<u64>().unwrap_or(0);
            }
        }
    }
    sum
}

/// Files with what profilers rarely write: nothing on the stack, no weight, weights below zero, references to nothing.
fn made() -> Vec<File> {
    let mut files = Vec::new();
    let mut add = |format: &'static str, bytes: Vec<u8>, count: Count, skipped: u64| {
        files.push(File { format, events: count(&bytes), bytes, skipped });
    };
    for (values, skipped) in [("[2,3,1,2,3]", 0), ("[2,9,3,9,1]", 2)] {
        let text = format!(
            r#"{{"nodes":[{{"id":1,"callFrame":{{"functionName":"(root)","url":"","lineNumber":-1,"columnNumber":-1}},"children":[2]}},
            {{"id":2,"callFrame":{{"functionName":"f","url":"a.js","lineNumber":4,"columnNumber":0}},"children":[3]}},
            {{"id":3,"callFrame":{{"functionName":"","url":"a.js","lineNumber":9,"columnNumber":5}}}}],
            "startTime":100,"endTime":900,"samples":{values},"timeDeltas":[10,200,-50,90,0]}}"#
        );
        add("cpuprofile", text.into_bytes(), counts::cpuprofile, skipped);
    }
    for (stacks, skipped) in [("[0,null,0,0]", 0), ("[0,null,0,7]", 1)] {
        let text = format!(
            r#"{{"meta":{{"preprocessedProfileVersion":58}},"shared":{{"stringArray":["f"],"stackTable":{{"frame":[0],"prefix":[null]}},
            "frameTable":{{"func":[0]}},"funcTable":{{"name":[0]}}}},"threads":[{{"name":"a","samples":{{"stack":{stacks},
            "weight":[5,2,-3,1],"weightType":"bytes"}},"nativeAllocations":{{"stack":[0,0],"weight":[64,-64],"weightType":"bytes"}}}}]}}"#
        );
        add("firefox", text.into_bytes(), counts::firefox, skipped);
    }
    for (samples, skipped) in [("[[0],[],[0,0],[0]]", 0), ("[[0],[],[0],[9]]", 1)] {
        let text = format!(
            r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{{"frames":[{{"name":"f"}}]}},
            "profiles":[{{"type":"sampled","name":"t","unit":"bytes","startValue":0,"endValue":5,"samples":{samples},"weights":[5,2,-3,1]}},
            {{"type":"evented","name":"u","unit":"milliseconds","startValue":1,"endValue":9,"events":[{{"type":"O","frame":0,"at":1}},
            {{"type":"O","frame":0,"at":2.5}},{{"type":"C","frame":0,"at":4}},{{"type":"C","frame":0,"at":9}}]}}]}}"#
        );
        add("speedscope", text.into_bytes(), counts::speedscope, skipped);
    }
    for broken in [false, true] {
        add("pprof", pprof(broken), counts::pprof, u64::from(broken));
        add("otlp", otlp(broken), counts::otlp, u64::from(broken));
    }
    let callgrind = "version: 1\ncreator: x\npositions: instr line\nevents: Ir Dr\n\nfl=(1) a.c\nfn=(1) main\n0x10 1 5 1\n+4 +1 3\n\
        jump=2 0x20 4\n+2 *\ncfn=(2) f\ncalls=2 0x40 9\n+2 3 20 4\n* * 7\n\nfn=(2)\n0x40 9 20 4\n+1 -2 0 1\n\ntotals: 21 8\n";
    add("callgrind", callgrind.replace("* * 7", "0x18 3 -7 2").into_bytes(), counts::callgrind, 0);
    let sample = "Analysis of sampling x (pid 1) every 1 millisecond\n\nCall graph:\n    9 Thread_1\n    + 7 start  (in dyld) + 1  [0x10]\n\
        \x20   +   4 main  (in x) + 2  [0x20]\n    3 Thread_2: w\n      3 run  (in x) + 4  [0x30]\n\n";
    add("sample", sample.as_bytes().to_vec(), counts::sample, 0);
    let script = "t 7 [001] 1.000001:  3 cycles:u: \n\t 55d0 f+0x1 (/bin/x)\n\t 55e0 main+0x1 (/bin/x)\n\nt 7 [001] 1.000002:  4 cycles:u: \n\n\
        t 8 [001] 1.000003:  5 faults: \n\t 55d0 [unknown] ([unknown])\n\nt 8 [001] 1.000004:  6 faults: \n\t55e0  (/bin/x)\n\n";
    add("perf-script", script.as_bytes().to_vec(), counts::perf_script, 0);
    add("folded", b"main;a 5\n;c 4\nmain;a 1\n".to_vec(), counts::folded, 0);
    files
}

fn message(tag: u64, fields: &[Field]) -> Field {
    (tag, Protobuf::Bytes(encode(fields)))
}

fn numbers(fields: &[(u64, i64)]) -> Vec<Field> {
    fields.iter().map(|(tag, number)| (*tag, Protobuf::Number(*number as u64))).collect()
}

/// Two types of values beside counts, one of them negative or missing at times; a sample without a location.
fn pprof(broken: bool) -> Vec<u8> {
    let mut fields: Vec<Field> =
        [(1, 2), (3, 4), (5, 6)].map(|(name, unit)| message(1, &numbers(&[(1, name), (2, unit)]))).into();
    let samples: [&[(u64, i64)]; 5] = [
        &[(1, 1), (2, 1), (2, 10), (2, 64)],
        &[(1, 1), (1, 2), (2, 2), (2, 20), (2, -64)],
        &[(2, 1), (2, 10), (2, 0)],
        &[(1, 2), (2, 0), (2, 0), (2, 8)],
        &[(1, if broken { 9 } else { 2 }), (2, 3), (2, 0), (2, 0)],
    ];
    fields.extend(samples.iter().map(|sample| message(2, &numbers(sample))));
    for id in [1, 2] {
        let line = message(4, &numbers(&[(1, id), (2, 7)]));
        fields.push(message(4, &[numbers(&[(1, id)]), vec![line]].concat()));
        fields.push(message(5, &numbers(&[(1, id), (2, 6 + id), (3, 6 + id)])));
    }
    let strings = ["", "samples", "count", "cpu", "microseconds", "inuse_space", "bytes", "main", "f"];
    fields.extend(strings.map(|text| (6, Protobuf::Bytes(text.into()))));
    encode(&fields)
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// Values alone, times alone, as many of both, none of a stack, below zero.
fn otlp(broken: bool) -> Vec<u8> {
    let times = |count: u64| {
        let times = (0..count).flat_map(|at| (1_795_000_000_000_000_000 + at).to_le_bytes()).collect();
        (5, Protobuf::Bytes(times))
    };
    let kind = message(1, &numbers(&[(1, 1), (2, 2)]));
    // Packed, as encoders write them: unpacked, field 4 would be the link of protocol 1.9.
    let values = |list: &[i64]| (4, Protobuf::Bytes(list.iter().flat_map(|value| varint(*value as u64)).collect()));
    let stack = |index: i64| numbers(&[(1, index)]);
    let samples = [
        [stack(1), vec![values(&[12])]].concat(),
        [stack(1), vec![values(&[7, -2]), times(2)]].concat(),
        [stack(1), vec![times(3)]].concat(),
        vec![values(&[5])],
        [stack(if broken { 9 } else { 1 }), vec![values(&[3])]].concat(),
    ];
    let samples = samples.iter().map(|sample| message(2, sample));
    let profile = message(2, &[kind].into_iter().chain(samples).collect::<Vec<_>>());
    let resources = message(1, &[message(2, &[profile])]);
    let none = |tag| message(tag, &[]);
    let mut dictionary = vec![none(1), none(2), message(2, &[message(3, &numbers(&[(1, 1)]))]), none(3)];
    dictionary.push(message(3, &numbers(&[(1, 3)])));
    dictionary.extend(["", "wall", "nanoseconds", "f"].map(|text| (5, Protobuf::Bytes(text.into()))));
    dictionary.extend([none(7), message(7, &numbers(&[(1, 1)]))]);
    encode(&[resources, message(2, &dictionary)])
}

#[test]
fn spans_and_records_are_all_counted() {
    let dir = tempfile::tempdir().unwrap();
    // Calls by an instrumenting profiler: each line is a row with its calls.
    let calls = fs::read_to_string(fixture("vsprof-calltree/input.csv")).unwrap();
    let stated = calls.lines().skip(1).filter(|line| !line.trim().is_empty() && !line.starts_with("0,")).count();
    let output = jitgraft(&["export", "-q", "--to", "json", "-o", "-"], &fixture("vsprof-calltree/input.csv"));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["events"][0]["stacks"].as_array().unwrap().len(), stated);

    for name in ["php-recording", "tiers-recording", "recording-cpp"] {
        let bytes = zstd::decode_all(fs::File::open(fixture(name).join("perf.data.zst")).unwrap()).unwrap();
        let path = dir.path().join("perf.data");
        fs::write(&path, &bytes).unwrap();
        let output = jitgraft(&["export", "-q", "--to", "csv", "-o", "-"], &path);
        let rows = String::from_utf8(output.stdout).unwrap().lines().count() as u64 - 1;
        assert_eq!(rows, counts::perf_data(&bytes).samples, "{name}");
    }

    let profile = fixture("measureme-interpreter/input.mm_profdata");
    let held = counts::measureme(&fs::read(&profile).unwrap());
    let summary = stats(&["stats", "-q", "--format", "json"], &profile, "summary");
    let total = summary.iter().find(|row| row["item"] == "TOTAL").unwrap();
    assert_eq!(total["count"], held.samples);

    let trace = fixture("trace-miri/input.json");
    let held = counts::chrome(&fs::read(&trace).unwrap());
    let all = stats(&["stats", "-q", "--all", "--format", "json"], &trace, "all spans");
    assert_eq!(all.iter().map(|row| row["count"].as_u64().unwrap()).sum::<u64>(), held.samples);
}

/// The rows of a table of `stats`.
fn stats(arguments: &[&str], input: &Path, table: &str) -> Vec<Value> {
    let output = jitgraft(arguments, input);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document[table].as_array().unwrap_or_else(|| panic!("{document}")).clone()
}
