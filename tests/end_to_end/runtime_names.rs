//! Names of runtimes on the command line: languages, abbreviations and tools stand for the runtime behind them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn jitgraft(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(arguments).output().unwrap()
}

fn stdout(arguments: &[&str]) -> String {
    let output = jitgraft(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Pairs of names that mean the same.
const SAME: &[(&str, &str)] = &[
    ("jvm", "OpenJDK"),
    ("java", "OpenJDK"),
    ("gradle", "OpenJDK"),
    ("js", "Node.js"),
    ("JavaScript", "Node.js"),
    ("npm", "Node.js"),
    ("cpython", "CPython"),
    ("py", "CPython"),
    ("dotnet", ".NET"),
    ("C#", ".NET"),
    ("beam", "Erlang"),
    ("lua", "LuaJIT"),
];

#[test]
fn runtimes_explains_a_runtime_by_any_of_its_names() {
    for (name, own) in SAME {
        assert_eq!(stdout(&["runtimes", name]), stdout(&["runtimes", own]), "{name}");
    }
    for compiled in ["rust", "Go", "c++"] {
        let page = stdout(&["runtimes", compiled]);
        assert!(page.contains("jitgraft record -- PROGRAM"), "{page}");
    }
    let unknown = jitgraft(&["runtimes", "cobol"]);
    let said = String::from_utf8(unknown.stderr).unwrap();
    assert!(unknown.status.code() == Some(2) && said.contains("no runtime named cobol"), "{said}");
    assert!(said.contains("Node.js, "), "{said}");
}

/// What `record` would run, and what it remarks.
fn planned(dir: &Path, runtime: &str) -> Output {
    let program = |name: &str, text: &str| {
        std::fs::write(dir.join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(dir.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    program("perf", "echo 1,,cpu-clock:u,1,100.00,,");
    program("build", "");
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(["record", "--dry-run", "--runtime", runtime, "--", "build"]);
    command.env_clear().env("PATH", dir).current_dir(dir).output().unwrap()
}

#[test]
fn record_takes_any_name_of_a_runtime() {
    let dir = tempfile::tempdir().unwrap();
    for (name, own) in SAME {
        let (one, other) = (planned(dir.path(), name), planned(dir.path(), own));
        assert!(one.status.success() && one.stdout == other.stdout, "{name}: {one:?} {other:?}");
    }
    let rust = planned(dir.path(), "rust");
    let (line, said) = (String::from_utf8(rust.stdout).unwrap(), String::from_utf8(rust.stderr).unwrap());
    assert!(line.starts_with("perf record ") && line.ends_with(" -g -- build\n"), "{line}");
    assert!(!said.contains("--runtime"), "{said}");
    assert_eq!(planned(dir.path(), "cobol").status.code(), Some(2));
}

#[test]
fn a_language_stands_for_its_kind_of_code() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/php-recording/perf.data.zst");
    let rows = |kind: &str| stdout(&["report", "--to", "csv", "--kind", kind, recording]);
    for (name, kind) in [("js", "JIT"), ("node", "JIT"), ("jvm", "JIT"), ("rust", "native"), ("c++", "native")] {
        let rows_of_kind = rows(kind);
        assert!(rows_of_kind.lines().count() > 2, "{rows_of_kind}");
        assert_eq!(rows(name), rows_of_kind, "{name}");
    }
}
