//! Programs that tests drive: one that is missing or fails ends the test by its name.

use std::path::Path;
use std::process::{Command, Stdio};

/// The output of a program.
pub(crate) fn run(program: &str, arguments: &[&str], dir: &Path) -> String {
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(dir).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{program} is needed: {error} (tests/run.sh installs it)"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{said}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}
