//! Runs jitgraft.

use std::path::Path;
use std::process::{Command, Output};

pub(crate) fn jitgraft(args: &[&str], input: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(args).arg(input).output().unwrap()
}

/// Runs jitgraft and returns its standard output. Panics if it fails.
pub(crate) fn stdout(args: &[&str], input: &Path) -> String {
    let output = jitgraft(args, input);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A row in the table of `jitgraft formats`.
pub(crate) struct FormatRow {
    pub(crate) name: String,
    pub(crate) is_read: bool,
    pub(crate) is_written: bool,
}

/// The formats that this build supports.
pub(crate) fn formats() -> Vec<FormatRow> {
    let output = Command::new(env!("CARGO_BIN_EXE_jitgraft")).arg("formats").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut rows = Vec::new();
    for line in text.lines().take_while(|line| !line.is_empty()) {
        let [name, reads, writes, ..] = line.split_whitespace().collect::<Vec<_>>()[..] else { continue };
        if reads != "not" {
            rows.push(FormatRow { name: name.to_owned(), is_read: reads == "read", is_written: writes == "write" });
        }
    }
    assert!(rows.len() > 15, "{text}");
    rows
}
