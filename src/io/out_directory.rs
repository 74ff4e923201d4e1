//! A directory for outputs that is held open, so that outputs end up in it even if its path leads elsewhere by then.
#![expect(clippy::disallowed_methods, reason = "what is in a directory that is open is looked at, and not opened")]

use super::NewFile;
use super::door::{Stop, Walk, shown};
use super::unopened;
use crate::error::{Error, Result};
use rustix::fs::{AtFlags, Mode, OFlags, openat, symlinkat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A directory that outputs go to, held open.
#[derive(Debug)]
pub struct OutDirectory {
    path: PathBuf,
    file: File,
}

impl OutDirectory {
    /// Opens the directory at `path`, and creates it and its parents if they are missing. As for any output, fails if
    /// the path leads through a symbolic link that another user may have created.
    pub fn make(path: &Path) -> Result<Self> {
        let made = Walk::to_directory(path).map_err(|stop| match stop {
            Stop::Refused(error) => error,
            Stop::Failed(error) => unopened::output_error(path, error),
            Stop::Descriptor(_) => Error::new("is a file descriptor of jitgraft, not a directory"),
        });
        let file = made.map_err(|error| error.in_file(path))?;
        Ok(Self { path: shown(&file), file })
    }

    /// The absolute path of the directory, with links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts a new file in the directory, which gets its name later. `mode` is its permissions before the umask is
    /// applied.
    pub fn create(&self, mode: u32) -> io::Result<NewFile> {
        NewFile::create_at(self.file.try_clone()?, mode)
    }

    /// True if the directory has an entry called `name`, even if that is a dangling link.
    pub fn has(&self, name: &OsStr) -> bool {
        openat(&self.file, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).is_ok()
    }

    /// Removes a file from the directory.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.file, name, AtFlags::empty())?)
    }

    /// Creates a symbolic link called `name` that leads to `to`. Does nothing if something in the directory already has
    /// this name.
    pub fn link(&self, to: &Path, name: &OsStr) -> io::Result<()> {
        match symlinkat(to, &self.file, name) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_missing_directory_is_made_and_no_strangers_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("st")).unwrap();
        fs::create_dir(root.join("victim")).unwrap();
        symlink("victim", root.join("mine")).unwrap();
        symlink("../victim", root.join("st/link")).unwrap();
        fs::set_permissions(root.join("st"), fs::Permissions::from_mode(0o1777)).unwrap();
        for (path, made) in
            [("a/b", "a/b"), ("a/../c/./d", "c/d"), ("mine/e", "victim/e"), ("st/own", "st/own"), ("a", "a")]
        {
            assert_eq!(OutDirectory::make(&root.join(path)).unwrap().path(), root.join(made), "{path}");
            assert!(root.join(made).is_dir());
        }
        for path in ["st/link", "st/link/new"] {
            let said = OutDirectory::make(&root.join(path)).unwrap_err().to_string();
            assert!(said.contains("not followed"), "{said}");
        }
        assert!(!root.join("victim/new").exists());
        fs::write(root.join("file"), "").unwrap();
        assert!(OutDirectory::make(&root.join("file")).is_err() && OutDirectory::make(&root.join("file/x")).is_err());
    }

    #[test]
    fn files_go_to_what_was_opened() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let opened = OutDirectory::make(&at("first")).unwrap();
        fs::rename(at("first"), at("moved")).unwrap();
        fs::create_dir(at("first")).unwrap();
        opened.create(0o644).unwrap().persist("file".as_ref()).unwrap();
        opened.link(Path::new("nowhere"), "link".as_ref()).unwrap();
        opened.link(Path::new("elsewhere"), "link".as_ref()).unwrap();
        assert!(opened.has("file".as_ref()) && opened.has("link".as_ref()) && !opened.has("other".as_ref()));
        assert_eq!(fs::read_link(at("moved/link")).unwrap(), Path::new("nowhere"));
        opened.remove("file".as_ref()).unwrap();
        assert!(!opened.has("file".as_ref()) && fs::read_dir(at("first")).unwrap().next().is_none());
    }
}
