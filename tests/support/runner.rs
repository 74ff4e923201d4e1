//! Runs the program.

use std::path::Path;
use std::process::{Command, Output};

pub(crate) fn jitgraft(args: &[&str], input: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jitgraft")).args(args).arg(input).output().unwrap()
}

/// Its output; it must succeed.
pub(crate) fn stdout(args: &[&str], input: &Path) -> String {
    let output = jitgraft(args, input);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
