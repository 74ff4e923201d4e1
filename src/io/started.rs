//! Starts other programs: only those that the user named on the command line, and perf.
//!
//! `record` starts three programs: `perf stat` for a moment, to find out which event can be counted on this machine;
//! the program that the user typed, with the flag that prints its version; and `perf record` with that program. Names
//! of programs never come from a file.

use super::guard::{self, PassedSignals};
use super::typed::is_file;
use crate::error::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The program exited with this status.
    Status(u8),
    /// The program was ended by this signal.
    Signal(i32),
}

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Status(u8::try_from(code).unwrap_or(u8::MAX)),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }
}

/// The path of a program that is called by this name, found as a shell would find it. `None` if there is none.
pub fn program_path(name: &[u8]) -> Option<PathBuf> {
    let name = Path::new(OsStr::from_bytes(name));
    let can_run = |path: &PathBuf| {
        is_file(path) && super::typed_metadata(path).is_some_and(|about| about.permissions().mode() & 0o111 != 0)
    };
    if name.as_os_str().as_bytes().contains(&b'/') {
        return Some(name.to_owned()).filter(can_run);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(can_run)
}

fn command(words: &[&[u8]]) -> Result<Command> {
    let (program, arguments) = words.split_first().ok_or_else(|| Error::usage("no command to run"))?;
    let mut command = Command::new(OsStr::from_bytes(program));
    command.args(arguments.iter().map(|word| OsStr::from_bytes(word)));
    Ok(command)
}

/// Runs a program with empty input. `words` are its name and arguments. Returns its standard output followed by its
/// standard error.
pub fn run_for_output(words: &[&[u8]]) -> Result<String> {
    let mut command = command(words)?;
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    let output = guard::with_original_settings(|| command.output())?;
    Ok([output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat())
}

/// Runs a program and waits for it. `words` are its name and arguments, and `variables` are added to its environment.
/// The program reads this process's standard input and writes to its outputs. Signals that only this process gets are
/// passed on to it.
pub fn run(words: &[&[u8]], variables: &[(&str, Vec<u8>)]) -> Result<Ended> {
    let mut command = command(words)?;
    command.envs(variables.iter().map(|(name, value)| (OsString::from(name), OsStr::from_bytes(value))));
    let signals = PassedSignals::begin();
    let mut child = guard::with_original_settings(|| command.spawn())
        .map_err(|error| Error::new(format!("cannot start {}", String::from_utf8_lossy(words[0]))).because(error))?;
    signals.pass_to(child.id());
    Ok(child.wait()?.into())
}
