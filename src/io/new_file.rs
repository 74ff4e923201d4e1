//! Files that get their name only when they are complete.
//!
//! The directory is held open meanwhile, so that the file ends up in it even if its path leads elsewhere by then.
#![expect(clippy::disallowed_methods, reason = "outputs are made and looked at in directories that are open")]

use super::hidden::{HiddenName, TemporaryKind};
use super::opened::FileId;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, openat, renameat, renameat_with};
use rustix::io::Errno;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file being written, which has no name yet. If it is dropped or the process is killed, nothing is left behind, with
/// one exception: on file systems that don't support unnamed files (`O_TMPFILE` of open(2)), SIGKILL leaves a hidden
/// file.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    /// The temporary name. `None` if the file has no name at all, which most file systems support (`O_TMPFILE`).
    hidden: Option<HiddenName>,
    directory: File,
}

/// A name in a directory, and which file has it, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedPlace {
    pub(super) directory: FileId,
    pub(super) name: OsString,
    pub(super) existing_file: Option<FileId>,
}

impl NewFile {
    /// Creates a file in a directory. `mode` is its permissions before the umask is applied.
    pub(super) fn create_at(directory: File, mode: u32) -> io::Result<Self> {
        // An unnamed file gets its name through /proc (linkat(2)). In a chroot, /proc may be missing; then use a
        // temporary name.
        if super::is_there(Path::new("/proc/self/fd")) {
            let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
            if let Ok(nameless) = openat(&directory, ".", flags, Mode::from_raw_mode(mode)) {
                return Ok(Self { file: File::from(nameless), hidden: None, directory });
            }
        }
        Self::hidden_in(directory, mode)
    }

    fn hidden_in(directory: File, mode: u32) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let (file, hidden) = HiddenName::create(&directory, TemporaryKind::File, |name| {
            Ok(openat(&directory, name, flags, Mode::from_raw_mode(mode)).map(File::from)?)
        })?;
        Ok(Self { file, hidden: Some(hidden), directory })
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// A writer that starts at the beginning of the file and has a position of its own, so that several writers can
    /// write to different parts of the file in parallel.
    pub fn writer(&self) -> Writer<'_> {
        Writer { file: self.file(), position: 0 }
    }

    /// The file itself, for writing at its own position.
    pub fn file_mut(&mut self) -> &mut File {
        &mut self.file
    }

    /// The directory and name that [`persist`](Self::persist) would give the file, and which file has that name now.
    pub(super) fn place(&self, name: &OsStr) -> io::Result<NamedPlace> {
        NamedPlace::look_up(&self.directory, name)
    }

    /// Gives the file its name. Replaces an existing file with this name.
    pub fn persist(self, name: &OsStr) -> io::Result<()> {
        let hidden = match self.hidden {
            Some(hidden) => hidden,
            // The file has no name yet, so try to give it the right one.
            None => match link(&self.file, &self.directory, name) {
                // The name is taken. Only a file with a name can be renamed over another one, so give the file a
                // temporary name first.
                Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => {
                    let ((), hidden) = HiddenName::create(&self.directory, TemporaryKind::File, |name| {
                        link(&self.file, &self.directory, name)
                    })?;
                    hidden
                }
                // The file has got its name, or can't get it for another reason.
                done => return done,
            },
        };
        renameat(&self.directory, hidden.name(), &self.directory, name)?;
        hidden.forget();
        Ok(())
    }

    /// Gives the file its name. If another file already has the name, leaves that alone and returns this file, which
    /// still has no name.
    pub fn persist_noclobber(mut self, name: &OsStr) -> io::Result<Option<Self>> {
        let named = match &self.hidden {
            None => link(&self.file, &self.directory, name),
            Some(hidden) => rename_to_free(&self.directory, hidden.name(), name),
        };
        match named {
            Ok(()) => {
                if let Some(hidden) = self.hidden.take() {
                    hidden.forget();
                }
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Some(self)),
            Err(error) => Err(error),
        }
    }
}

impl NamedPlace {
    /// Looks up a name in a directory.
    pub(super) fn look_up(directory: &File, name: &OsStr) -> io::Result<Self> {
        let existing_file = openat(directory, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok();
        let existing_file = existing_file.and_then(|file| File::from(file).metadata().ok());
        Ok(Self {
            directory: FileId::new(&directory.metadata()?),
            name: name.to_owned(),
            existing_file: existing_file.as_ref().map(FileId::new),
        })
    }
}

/// Renames a file to a name that must not exist yet.
fn rename_to_free(directory: &File, from: &CStr, to: &OsStr) -> io::Result<()> {
    match renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE) {
        // The file system can't rename in a way that never replaces an existing file. So add the new name as a second
        // one (adding a name never replaces a file), and remove the first name.
        Err(Errno::INVAL | Errno::NOSYS) => {
            linkat(directory, from, directory, to, AtFlags::empty())?;
            // The file has its new name, so it isn't an error if the old one stays.
            let _ = rustix::fs::unlinkat(directory, from, AtFlags::empty());
            Ok(())
        }
        done => Ok(done?),
    }
}

/// Opens a directory for creating and renaming files in it. The user needn't be allowed to list it.
pub(super) fn open_directory(path: &Path) -> io::Result<File> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty()).map(File::from)?)
}

/// Writes to a file from its start, or from the position it was moved to.
#[derive(Debug)]
pub struct Writer<'a> {
    file: &'a File,
    position: u64,
}

impl Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write_at(bytes, self.position)?;
        self.position += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Writer<'_> {
    /// Sets the position of the next write. Fails for a position before the start of the file.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

/// Gives an open file a name.
fn link(file: &File, directory: &File, name: impl rustix::path::Arg) -> io::Result<()> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, own, directory, name, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names in a directory, sorted.
    fn names(directory: &Path) -> Vec<String> {
        let names =
            std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    fn both(directory: &Path) -> [NewFile; 2] {
        let hidden = NewFile::hidden_in(open_directory(directory).unwrap(), 0o644).unwrap();
        [NewFile::create_at(open_directory(directory).unwrap(), 0o644).unwrap(), hidden]
    }

    #[test]
    fn a_file_appears_under_its_name_and_leaves_no_other() {
        for which in 0..2 {
            let dir = tempfile::tempdir().unwrap();
            let (path, name) = (dir.path().join("out"), OsStr::new("out"));
            for text in ["first", "second"] {
                let mut new = both(dir.path()).into_iter().nth(which).unwrap();
                new.file_mut().write_all(text.as_bytes()).unwrap();
                new.persist(name).unwrap();
                assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
                assert_eq!(names(dir.path()), ["out"]);
            }
            let new = both(dir.path()).into_iter().nth(which).unwrap();
            let new = new.persist_noclobber(name).unwrap().expect("the name is taken");
            assert!(new.persist_noclobber(OsStr::new("other")).unwrap().is_none());
            assert_eq!(names(dir.path()), ["other", "out"]);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "second");
        }
    }

    #[test]
    fn a_file_begun_in_a_directory_is_put_into_it_even_if_its_path_leads_elsewhere() {
        for which in 0..2 {
            let dir = tempfile::tempdir().unwrap();
            let at = |name: &str| dir.path().join(name);
            for name in ["ours", "theirs"] {
                std::fs::create_dir(at(name)).unwrap();
                std::fs::write(at(name).join("out"), name).unwrap();
            }
            let mut new = both(&at("ours")).into_iter().nth(which).unwrap();
            new.file_mut().write_all(b"new").unwrap();
            std::fs::rename(at("ours"), at("moved")).unwrap();
            std::os::unix::fs::symlink("theirs", at("ours")).unwrap();
            let existing_file = FileId::from_path(&at("moved/out"));
            assert_eq!(new.place(OsStr::new("out")).unwrap().existing_file, existing_file);
            new.persist(OsStr::new("out")).unwrap();
            assert_eq!(std::fs::read_to_string(at("moved/out")).unwrap(), "new");
            assert_eq!(std::fs::read_to_string(at("theirs/out")).unwrap(), "theirs");
            assert_eq!((names(&at("moved")), names(&at("theirs"))), (vec!["out".to_owned()], vec!["out".to_owned()]));
        }
    }

    #[test]
    fn an_output_under_way_has_no_name() {
        let dir = tempfile::tempdir().unwrap();
        let new = NewFile::create_at(open_directory(dir.path()).unwrap(), 0o644).unwrap();
        if new.hidden.is_none() {
            assert!(names(dir.path()).is_empty());
        }
        drop(new);
        assert!(names(dir.path()).is_empty());
        drop(both(dir.path()));
        assert!(names(dir.path()).is_empty());
    }
}
