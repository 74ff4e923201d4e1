//! Runs programs for tests. A missing or failing program ends the test with a message that names it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// Runs a program and returns its standard output.
pub(crate) fn run(program: &str, arguments: &[&str], dir: &Path) -> String {
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(dir).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{program} is needed: {error} (tests/run.sh installs it)"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{said}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A small program with symbols and a build ID, compiled once. This test program has tens of megabytes, which are
/// copied and read slowly.
pub(crate) fn small_program() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("small-program");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/deep.c");
        run("gcc", &["-O1", "-Wl,--build-id", "-o", program.to_str().unwrap(), source], Path::new("/"));
        program
    });
    &PROGRAM
}
