//! Shows a page to the user of this machine: a private directory for it, and the browser.

use super::hidden::{HiddenName, TemporaryKind};
use super::new_file::open_directory;
use crate::error::{Error, Result};
use rustix::fs::{Mode, mkdirat};
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A new directory that only this user may enter, for files that stay until the system cleans up its temporary files.
/// Dropping this value removes the directory if it is empty.
#[derive(Debug)]
pub struct PrivateDirectory {
    /// The path of the directory.
    pub path: PathBuf,
    name: HiddenName,
}

impl PrivateDirectory {
    /// Creates a directory.
    pub fn create() -> Result<Self> {
        let parent = std::env::temp_dir();
        let made = open_directory(&parent).and_then(|parent| {
            HiddenName::create(&parent, TemporaryKind::Directory, |name| Ok(mkdirat(&parent, name, Mode::RWXU)?))
        });
        let ((), name) =
            made.map_err(|error| Error::new("cannot make a directory for the page").because(error).in_file(&parent))?;
        Ok(Self { path: parent.join(OsStr::from_bytes(name.name().to_bytes())), name })
    }

    /// Keeps the directory: it contains a file now.
    pub fn keep(self) {
        self.name.forget();
    }
}

/// True if somebody is there to see a page: standard output is a terminal, and there is a display.
pub fn has_viewer() -> bool {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal() && ["WAYLAND_DISPLAY", "DISPLAY"].iter().any(is_set)
}

/// Asks the desktop to show a file. Doesn't wait until it is shown.
pub fn show(file: &Path) -> Result<()> {
    let mut command = Command::new("xdg-open");
    command.arg(file.as_os_str()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = command.spawn().map(drop);
    started.map_err(|error| Error::new("cannot start xdg-open").because(error))
}
