//! The allowed allocation is a multiple of the input, in the shape that needs most: nothing but addresses without
//! names, each with a sample of its own.

use super::protobuf::{Field, Value, encode};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Addresses, and where they begin.
const COUNT: u64 = 100_000;
const START: u64 = 0x7f00_0000_0000;

/// The program's memory for any input.
const BASE: u64 = 24 << 20;

/// Names all of them within this many times the input.
fn assert_named_within(times: u64, name: &str, bytes: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(name), bytes).unwrap();
    fs::write(dir.path().join("perf-77.map"), format!("{START:x} {:x} everything\n", 2 * COUNT)).unwrap();
    let run = |limit: u64| {
        let mut command = Command::new("prlimit");
        command.arg(format!("--data={limit}")).args([
            env!("CARGO_BIN_EXE_jitgraft"),
            "inject",
            "--threads",
            "1",
            "-i",
            name,
        ]);
        command.args(["-o", "out"]).current_dir(dir.path()).stdin(Stdio::null());
        command.output().expect("prlimit is part of util-linux")
    };
    let output = run(times * bytes.len() as u64 + BASE);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains(&format!("named {COUNT} of {COUNT} unnamed addresses")), "{said}");
    assert!(Path::exists(&dir.path().join("out")));
    // The limit is one.
    assert!(!run(1_000_000).status.success());
}

#[test]
fn a_pprof_profile() {
    let message = |fields: &[Field]| Value::Bytes(encode(fields));
    let number = Value::Number;
    let mut profile: Vec<Field> = vec![(1, message(&[(1, number(1)), (2, number(2))]))];
    let label = message(&[(1, number(3)), (3, number(77))]);
    profile.extend((1..=COUNT).map(|id| (2, message(&[(1, number(id)), (2, number(1)), (3, label.clone())]))));
    profile.extend((1..=COUNT).map(|id| (4, message(&[(1, number(id)), (3, number(START + id))]))));
    profile.extend(["", "samples", "count", "pid"].map(|text| (6, Value::Bytes(text.into()))));
    assert_named_within(20, "input.pb", &encode(&profile));
}

#[test]
fn a_firefox_profile() {
    let rows = || 0..COUNT;
    let none = || vec![(); COUNT as usize];
    let addresses: Vec<String> = rows().map(|row| format!("{:#x}", START + row)).collect();
    let profile = json!({"meta": {"preprocessedProfileVersion": 55}, "threads": [{
        "pid": "77", "samples": {"stack": rows().collect::<Vec<_>>()},
        "stackTable": {"prefix": none(), "frame": rows().collect::<Vec<_>>()},
        "frameTable": {"func": rows().collect::<Vec<_>>(), "line": none()},
        "funcTable": {"name": rows().collect::<Vec<_>>(), "resource": vec![-1; COUNT as usize], "fileName": none()},
        "stringArray": addresses,
    }]});
    assert_named_within(20, "input.json", profile.to_string().as_bytes());
}

#[test]
fn an_otlp_profile() {
    let message = |fields: &[Field]| Value::Bytes(encode(fields));
    let number = Value::Number;
    let value = message(&[(3, number(77))]);
    let resource = message(&[(1, message(&[(1, Value::Bytes(b"process.pid".to_vec())), (2, value)]))]);
    let mut profile: Vec<Field> = vec![(1, message(&[(1, number(1)), (2, number(2))]))];
    profile.extend((1..=COUNT).map(|at| (2, message(&[(1, number(at)), (4, Value::Bytes(vec![1]))]))));
    let mut tables: Vec<Field> = vec![(2, message(&[]))];
    tables.extend((1..=COUNT).map(|at| (2, message(&[(2, number(START + at))]))));
    tables.extend(["", "samples", "count"].map(|text| (5, Value::Bytes(text.into()))));
    tables.push((7, message(&[])));
    tables.extend((1..=COUNT).map(|at| (7, message(&[(1, number(at))]))));
    let scope = message(&[(2, message(&profile))]);
    let bytes = encode(&[(1, message(&[(1, resource), (2, scope)])), (2, message(&tables))]);
    assert_named_within(20, "input.otlp", &bytes);
}
