//! Runs programs for tests. A missing or failing program ends the test with a message that names it.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a program and returns its standard output.
pub(crate) fn run(program: &str, arguments: &[&str], dir: &Path) -> String {
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(dir).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{program} is needed: {error} (tests/run.sh installs it)"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{said}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}
