//! A page for a person at this machine: a private place for it, and the browser that shows it.

use crate::error::{Error, Result};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A new directory that only this user may enter, for files that stay until the system clears its temporary files.
pub fn private_directory() -> Result<PathBuf> {
    let directory = tempfile::Builder::new().prefix("jitgraft-").tempdir();
    let directory = directory.map_err(|error| Error::new("cannot make a directory for the page").because(error))?;
    Ok(directory.keep())
}

/// Whether somebody looks: standard output is a terminal, and there is a display.
pub fn has_viewer() -> bool {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal() && ["WAYLAND_DISPLAY", "DISPLAY"].iter().any(is_set)
}

/// Asks the desktop to show a file, and does not wait for it.
pub fn show(file: &Path) -> Result<()> {
    let mut command = Command::new("xdg-open");
    command.arg(file.as_os_str()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = command.spawn().map(drop);
    started.map_err(|error| Error::new("cannot start xdg-open").because(error))
}
