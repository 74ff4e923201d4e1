//! Python with packages from PyPI, for tests that compare with other tools.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command and returns its standard output. Panics if it fails.
pub(crate) fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The path of a Python interpreter that has these packages. They are installed if necessary.
pub(crate) fn python(packages: &[&str]) -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python-{}", packages.join("-")));
    let python = home.join("bin/python");
    if !home.join("done").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&home));
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages));
        std::fs::write(home.join("done"), "").unwrap();
    }
    python
}
