//! Recordings that are read on another machine than the recorded one: packed archives, roots of other machines, files
//! that are not here.

use crate::support;

mod archive;
mod inject;
mod roots;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");

/// Runs the program in a directory, by words that are separated by spaces; nothing of this user's is looked at.
fn jitgraft(dir: &Path, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitgraft"));
    command.args(words.split(' ').filter(|word| !word.is_empty())).current_dir(dir).stdin(Stdio::null());
    command.env("HOME", "/nonexistent").env_remove("JITDUMPDIR").env_remove("JITGRAFT_OPTS");
    command.env_remove("DEBUGINFOD_CACHE_PATH").env_remove("XDG_CACHE_HOME");
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Its output, if it succeeds.
fn printed(dir: &Path, words: &str) -> String {
    let output = jitgraft(dir, words);
    assert!(output.status.success(), "{words}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Unpacks `FIXTURES/NAME.zst`.
fn unpack(name: &str, to: &Path) {
    let packed = std::fs::read(Path::new(FIXTURES).join(format!("{name}.zst"))).unwrap();
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::write(to, zstd::decode_all(&packed[..]).unwrap()).unwrap();
}

/// A directory with a recording of another machine, `perf.data`, and the root of that machine with the program that
/// ran, `root`.
struct Elsewhere(tempfile::TempDir);

impl Elsewhere {
    /// `MACHINE`, `PROGRAM` and `HOW` of `fixtures/recording-machines`.
    fn new(machine: &str, program: &str, how: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // What others may not read is not packed.
        std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let name = |what: &str| format!("recording-machines/{machine}.{what}");
        unpack(&name(program), &dir.path().join("root/programs").join(program));
        unpack(&name(&format!("{how}.perf.data")), &dir.path().join("perf.data"));
        Self(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}
