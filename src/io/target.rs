//! Where the path of an output leads.
//!
//! A link is written through, as cp and perf do: what it leads to is replaced, or made, and the link stays. A path
//! that leads to an open descriptor of this process (`/dev/stdout`, `/dev/fd/3`) means that descriptor, with its offset
//! and its append mode, and not the file behind it.

use super::unopened;
use crate::error::{Error, Result};
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What an output is written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OutputTarget {
    /// This open descriptor of this process.
    Descriptor(u32),
    /// A device or a pipe, which cannot be replaced.
    Special(PathBuf),
    /// A file, there or not: its directory, with all links followed, and its name.
    File(PathBuf),
}

/// As many links as Linux follows.
const MAX_LINKS: usize = 40;

impl OutputTarget {
    /// Follows a path. Nothing is opened: a named pipe would wait for its reader.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let about = fs::metadata(path);
        if about.as_ref().is_ok_and(fs::Metadata::is_dir) {
            let remedy = format!("name a file in it: -o {}", path.join("FILE").display());
            return Err(Error::new("is a directory").with_remedy(Some(remedy)));
        }
        if path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(Error::new("is no directory"));
        }
        let directory = path.parent().unwrap_or(Path::new(""));
        let target = follow(path).map_err(|error| unopened::output(directory, error))?;
        let is_special = about.is_ok_and(|about| !about.is_file());
        Ok(match target {
            Self::File(_) if is_special => Self::Special(path.to_owned()),
            other => other,
        })
    }

    /// Whether it is written from front to back, as it is, and never replaced.
    pub(super) fn is_stream(&self) -> bool {
        !matches!(self, Self::File(_))
    }

    /// Whether it is a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        match self {
            Self::Descriptor(number) => reopen(*number).is_ok_and(|file| file.is_terminal()),
            // Without waiting, as a named pipe without a reader would.
            Self::Special(path) => {
                let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK;
                rustix::fs::open(path, flags, Mode::empty()).is_ok_and(|file| file.is_terminal())
            }
            Self::File(_) => false,
        }
    }
}

fn follow(path: &Path) -> io::Result<OutputTarget> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = parent.unwrap_or(Path::new(".")).canonicalize()?;
        if let Some(descriptor) = descriptor(&directory, name) {
            return Ok(OutputTarget::Descriptor(descriptor));
        }
        let there = directory.join(name);
        match fs::read_link(&there) {
            Ok(to) => path = directory.join(to),
            Err(_) => return Ok(OutputTarget::File(there)),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// The descriptor of this process that a name stands for.
fn descriptor(directory: &Path, name: &OsStr) -> Option<u32> {
    let own = |path: &str| fs::canonicalize(path).is_ok_and(|own| own == directory);
    let number = name.to_str()?.parse().ok()?;
    ["/proc/self/fd", "/proc/thread-self/fd"].into_iter().any(own).then_some(number)
}

/// Opens a descriptor of this process again, to be written.
pub(super) fn reopen(descriptor: u32) -> io::Result<File> {
    let copy = match descriptor {
        0 => io::stdin().as_fd().try_clone_to_owned()?,
        1 => io::stdout().as_fd().try_clone_to_owned()?,
        2 => io::stderr().as_fd().try_clone_to_owned()?,
        // Its offset cannot be had, but what was written before stays.
        other => return File::options().append(true).open(format!("/proc/self/fd/{other}")),
    };
    Ok(copy.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_to_a_file_that_need_not_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("below")).unwrap();
        symlink("below/../second", root.join("first")).unwrap();
        symlink(root.join("below/new"), root.join("second")).unwrap();
        assert_eq!(OutputTarget::of(&root.join("first")).unwrap(), OutputTarget::File(root.join("below/new")));
        symlink("loop", root.join("loop")).unwrap();
        for wrong in ["loop", "below", "missing/new", "new/", "below/.."] {
            assert!(OutputTarget::of(&root.join(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn descriptors_and_devices_are_written_as_they_are() {
        for (path, number) in [("/dev/stdout", 1), ("/dev/stderr", 2), ("/proc/self/fd/7", 7), ("/dev/fd/1", 1)] {
            assert_eq!(OutputTarget::of(Path::new(path)).unwrap(), OutputTarget::Descriptor(number), "{path}");
        }
        assert_eq!(OutputTarget::of(Path::new("/dev/null")).unwrap(), OutputTarget::Special("/dev/null".into()));
    }
}
