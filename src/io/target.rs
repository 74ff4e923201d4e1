//! Resolves the path of an output.
//!
//! Symbolic links are followed, as cp and perf do: the file that the link leads to is replaced or created, and the link
//! stays. A link that another user may have created is refused ([`super::door`]), because it could lead anywhere. A
//! path that leads to an open descriptor of this process (`/dev/stdout`, `/dev/fd/3`) means that descriptor, with its
//! offset and append mode, and not its file.
#![expect(clippy::disallowed_methods, reason = "descriptors of this process are opened again")]

use super::door::{OutputName, Stop, Walk};
use super::{guard, unopened};
use crate::error::{Error, Result};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What the path of an output leads to, after following links.
#[derive(Debug)]
pub(super) enum OutputTarget {
    /// An open descriptor of this process.
    Descriptor(u32),
    /// A device or pipe, which can't be replaced. It is open, but not for writing.
    Special(File),
    /// A file, by its directory and its name there. The file may exist or not.
    File(Box<OutputName>),
}

impl OutputTarget {
    /// Finds out what a path leads to. Nothing is opened for writing: for a named pipe, that would wait for a reader.
    pub(super) fn resolve(path: &Path) -> Result<Self> {
        if path.as_os_str().as_bytes().ends_with(b"/") && !super::is_directory(path) {
            return Err(Error::new("is not a directory"));
        }
        let directory = path.parent().unwrap_or(Path::new(""));
        let output = match Walk::to_output(path) {
            Ok(output) => output,
            Err(Stop::Descriptor(number)) => return Ok(Self::Descriptor(number)),
            Err(Stop::Refused(error)) => return Err(error),
            Err(Stop::Failed(error)) if error.kind() == io::ErrorKind::IsADirectory => return Err(is_directory(path)),
            Err(Stop::Failed(error)) => return Err(unopened::output_error(directory, error)),
        };
        match &output.existing {
            Some(existing) if existing.about.is_dir() => Err(is_directory(path)),
            Some(existing) if !existing.about.is_file() => Ok(Self::Special(existing.file.try_clone()?)),
            _ => Ok(Self::File(Box::new(output))),
        }
    }

    /// True if the target is written from front to back and can't be replaced.
    pub(super) fn is_stream(&self) -> bool {
        !matches!(self, Self::File(_))
    }

    /// True if the target is a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        match self {
            Self::Descriptor(number) => reopen(*number).is_ok_and(|file| file.is_terminal()),
            // With NONBLOCK, opening a named pipe without a reader fails. Otherwise, it would wait for one.
            Self::Special(file) => writable(file, OFlags::NONBLOCK).is_ok_and(|file| file.is_terminal()),
            Self::File(_) => false,
        }
    }
}

/// Fails if an output's path leads through a link that another user may have created. jitgraft's own outputs don't need
/// it; it is for files that another program will write.
pub(super) fn refuse_foreign_links(path: &Path) -> Result<()> {
    match Walk::to_output(path) {
        Err(Stop::Refused(error)) => Err(error),
        Ok(_) | Err(Stop::Failed(_) | Stop::Descriptor(_)) => Ok(()),
    }
}

fn is_directory(path: &Path) -> Error {
    let remedy = format!("use a file in it: -o {}", path.join("FILE").display());
    Error::new("is a directory").with_remedy(Some(remedy))
}

/// Opens a device or pipe for writing. `file` is the same, but was opened only to look at it.
pub(super) fn writable(file: &File, flags: OFlags) -> io::Result<File> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::open(own, OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC | flags, Mode::empty())?.into())
}

/// Opens a descriptor of this process once more, for writing.
pub(super) fn reopen(descriptor: u32) -> io::Result<File> {
    let copy = match descriptor {
        0 => io::stdin().as_fd().try_clone_to_owned()?,
        // Standard output was closed when the program was started, and the standard library has opened /dev/null in its
        // place.
        1 if guard::stdout_was_closed() => return Err(rustix::io::Errno::BADF.into()),
        1 => io::stdout().as_fd().try_clone_to_owned()?,
        2 => io::stderr().as_fd().try_clone_to_owned()?,
        // A file that is opened by its descriptor's path starts at offset 0. Append, so that nothing that was already
        // written is overwritten.
        other => return File::options().append(true).open(format!("/proc/self/fd/{other}")),
    };
    Ok(copy.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn target(path: &Path) -> std::result::Result<String, String> {
        match OutputTarget::resolve(path).map_err(|error| error.to_string())? {
            OutputTarget::Descriptor(number) => Ok(format!("descriptor {number}")),
            OutputTarget::Special(file) => Ok(format!("special {}", called(&file))),
            OutputTarget::File(found) => Ok(format!("{}/{}", called(&found.directory), found.name.display())),
        }
    }

    fn called(file: &File) -> String {
        fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap().display().to_string()
    }

    #[test]
    fn links_are_followed_to_a_file_that_need_not_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("below")).unwrap();
        symlink("below/../second", root.join("first")).unwrap();
        symlink(root.join("below/new"), root.join("second")).unwrap();
        symlink("below", root.join("directory")).unwrap();
        let new = root.join("below/new").display().to_string();
        for path in ["first", "second", "directory/new", "./directory/../below/new"] {
            assert_eq!(target(&root.join(path)), Ok(new.clone()), "{path}");
        }
        symlink("loop", root.join("loop")).unwrap();
        for wrong in ["loop", "below", "missing/new", "new/", "below/..", "directory", "below/"] {
            assert!(target(&root.join(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_link_in_a_directory_that_others_may_write_to_is_not_followed() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("place/real")).unwrap();
        fs::write(root.join("victim"), "victim").unwrap();
        symlink("../victim", root.join("place/out")).unwrap();
        symlink("real", root.join("place/directory")).unwrap();
        for mode in [0o1777, 0o777, 0o1755] {
            fs::set_permissions(root.join("place"), fs::Permissions::from_mode(mode)).unwrap();
            for path in ["place/out", "place/directory/new", "victim/../place/out"] {
                let said = target(&root.join(path));
                let is_refused = said.as_ref().is_err_and(|said| said.contains("not followed"));
                assert!(is_refused || path.starts_with("victim"), "{path}: {said:?}");
            }
            assert!(target(&root.join("place/real/new")).is_ok(), "what is no link is written");
        }
    }

    #[test]
    fn descriptors_and_devices_are_written_as_they_are() {
        for (path, number) in [("/dev/stdout", 1), ("/dev/stderr", 2), ("/proc/self/fd/7", 7), ("/dev/fd/1", 1)] {
            assert_eq!(target(Path::new(path)), Ok(format!("descriptor {number}")), "{path}");
        }
        assert_eq!(target(Path::new("/dev/null")), Ok("special /dev/null".to_owned()));
    }
}
