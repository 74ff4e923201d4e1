//! The findings of `doctor`: of recordings that are broken in one way each, and of sound ones; of a recording of PHP
//! with its dump, without it, with a broken one, and without any files.

mod advice;
mod counted;
mod files;
mod jit;
use crate::support::php_recording;
mod runtimes;
mod scene;
mod stacks;
mod whole;

use php_recording::{PID, dump_name};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The recording alone, or with this as its dump.
fn recording(dump: Option<&[u8]>) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("perf.data");
    fs::write(&path, zstd::decode_all(fs::File::open(php_recording::recording()).unwrap()).unwrap()).unwrap();
    if let Some(dump) = dump {
        fs::write(dir.path().join(dump_name()), dump).unwrap();
    }
    (dir, path)
}

fn dump() -> Vec<u8> {
    fs::read(php_recording::dump()).unwrap()
}

/// Nothing of the machine that the tests run on is looked at.
fn doctor(args: &[&str], input: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(["doctor", "--symfs", "/dev"]).args(args).arg(input).env("HOME", "/nonexistent");
    command.output().unwrap()
}

fn told(args: &[&str], input: &Path) -> String {
    let output = doctor(args, input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Its problems: key, percent, cause and remedy of each finding.
fn findings(input: &Path) -> Vec<Value> {
    let list: Value = serde_json::from_str(&told(&["--format", "json"], input)).unwrap();
    list[0]["findings"].as_array().unwrap().clone()
}

fn finding(input: &Path, problem: &str) -> Value {
    let all = findings(input);
    all.iter().find(|finding| finding["problem"] == problem).unwrap_or_else(|| panic!("{all:#?}")).clone()
}

#[test]
fn a_dump_that_is_gone_is_requested() {
    let (_dir, path) = recording(None);
    let text = told(&[], &path);
    assert!(text.contains(&format!("Process {PID} (php), PHP: 0 of ")), "{text}");
    let missing = finding(&path, "dump-missing");
    assert!(missing["frames"].as_u64().unwrap() > 300, "{missing}");
    assert!(missing["cause"].as_str().unwrap().contains("is gone"), "{missing}");
    assert!(missing["remedy"].as_str().unwrap().contains("--jitdump"), "{missing}");
}

#[test]
fn with_its_dump_jit_code_has_names() {
    let (_dir, path) = recording(Some(&dump()));
    let text = told(&[], &path);
    let line = text.lines().find(|line| line.starts_with(&format!("Process {PID} (php), PHP: "))).unwrap();
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [_, named, whole] = numbers[..] else { panic!("{line}") };
    // One sample was taken in code that the dump does not report.
    assert!(named + 1 == whole && named > 300, "{line}");
    let of_jit = |finding: &Value| finding["problem"].as_str().unwrap().starts_with("source");
    assert!(!findings(&path).iter().any(of_jit), "one frame of hundreds is no finding");
}

#[test]
fn a_broken_dump_is_named_with_its_fault() {
    let (_dir, path) = recording(Some(b"not a jitdump at all, whatever its name says"));
    let refused = finding(&path, "source-refused");
    let cause = refused["cause"].as_str().unwrap();
    assert!(cause.contains(&dump_name()) && cause.contains("is not a jitdump"), "{cause}");
}

#[test]
fn files_that_are_not_here_are_requested() {
    let (_dir, path) = recording(Some(&dump()));
    let gone = finding(&path, "files-missing");
    assert!(gone["cause"].as_str().unwrap().contains("php8.2"), "{gone}");
    assert!(gone["remedy"].as_str().unwrap().contains("--symfs"), "{gone}");
}

#[test]
fn a_running_process_is_reported_by_its_number() {
    let mut sleep = Command::new("sleep").arg("60").spawn().unwrap();
    let number = sleep.id().to_string();
    let output = doctor(&["--exit-code"], Path::new(&number));
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("No problems found."), "{said}");
    assert!(said.contains(&format!("jitgraft record -p {number} -- sleep 10")), "{said}");
    let gone = doctor(&[], Path::new("999999999"));
    assert!(String::from_utf8_lossy(&gone.stderr).contains("is running, and no file has this name"));
}

#[test]
fn an_input_without_addresses_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.folded");
    fs::write(&path, "a;b 1\n").unwrap();
    let output = doctor(&[], &path);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("perf.data"));
    fs::write(&path, "app 77 2.000000: 1 cycles: \n\t 1 [unknown] (//anon)\n\n").unwrap();
    let said = String::from_utf8(doctor(&[], &path).stderr).unwrap();
    assert!(said.contains("`jitgraft script` reports"), "{said}");
}
