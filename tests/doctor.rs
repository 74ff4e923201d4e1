//! What `doctor` says of a recording of PHP with its dump, without it, with a broken one, and without any files.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PID: &str = "25820";

/// The recording alone, or with this as its dump.
fn recording(dump: Option<&[u8]>) -> (tempfile::TempDir, PathBuf) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/php-recording");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("perf.data");
    fs::write(&path, zstd::decode_all(fs::File::open(fixture.join("perf.data.zst")).unwrap()).unwrap()).unwrap();
    if let Some(dump) = dump {
        fs::write(dir.path().join(format!("jit-{PID}.dump")), dump).unwrap();
    }
    (dir, path)
}

fn dump() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/php-recording/jit-{PID}.dump"));
    fs::read(path).unwrap()
}

/// Nothing of the machine that the tests run on is looked at.
fn doctor(args: &[&str], input: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(["doctor", "--symfs", "/nonexistent"]).args(args).arg(input).env("HOME", "/nonexistent");
    command.output().unwrap()
}

fn told(args: &[&str], input: &Path) -> String {
    let output = doctor(args, input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Cause and advice of the rows whose cause holds this.
fn rows(text: &str, cause: &str) -> Vec<(u64, String)> {
    let rows: Vec<Value> = serde_json::from_str(text).unwrap();
    let row = |row: &Value| (row["frames"].as_u64().unwrap(), row["advice"].as_str().unwrap().to_owned());
    rows.iter().filter(|row| row["cause"].as_str().unwrap().contains(cause)).map(row).collect()
}

#[test]
fn a_dump_that_is_gone_is_asked_for() {
    let (_dir, path) = recording(None);
    let text = told(&[], &path);
    assert!(text.contains(&format!("Process {PID} (php), PHP: 0 of ")), "{text}");
    let rows = rows(&told(&["--format", "json"], &path), "no dump or map");
    let [(frames, advice)] = &rows[..] else { panic!("{rows:?}") };
    assert!(*frames > 300, "{frames}");
    assert!(advice.contains("is gone") && advice.contains("--jitdump"), "{advice}");
}

#[test]
fn with_its_dump_jit_code_has_names() {
    let (_dir, path) = recording(Some(&dump()));
    let text = told(&[], &path);
    let line = text.lines().find(|line| line.starts_with(&format!("Process {PID} (php), PHP: "))).unwrap();
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [_, named, whole] = numbers[..] else { panic!("{line}") };
    assert!(named == whole && named > 300, "{line}");
    assert!(rows(&told(&["--format", "json"], &path), "memory without a file").is_empty());
}

#[test]
fn a_broken_dump_is_named_with_its_fault() {
    let (_dir, path) = recording(Some(b"not a jitdump at all, whatever its name says"));
    let rows = rows(&told(&["--format", "json"], &path), "memory without a file");
    let [(_, advice)] = &rows[..] else { panic!("{rows:?}") };
    assert!(advice.contains(&format!("jit-{PID}.dump: ")) && advice.contains("magic"), "{advice}");
}

#[test]
fn files_that_are_not_here_are_asked_for() {
    let (_dir, path) = recording(Some(&dump()));
    let rows = rows(&told(&["--format", "json"], &path), "php8.2");
    let [(frames, advice)] = &rows[..] else { panic!("{rows:?}") };
    assert!(*frames > 0 && advice.contains("--symfs"), "{advice}");
}

#[test]
fn what_holds_no_addresses_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.folded");
    fs::write(&path, "a;b 1\n").unwrap();
    let output = doctor(&[], &path);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("perf.data"));
}
