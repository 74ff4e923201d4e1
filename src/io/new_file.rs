//! Files that have no name until they are whole.

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// A file under way. Dropped, or with its process killed, it leaves nothing behind; only on a file system that knows no
/// files without a name (`O_TMPFILE` of open(2)) a killed process leaves its hidden one.
#[derive(Debug)]
pub struct NewFile {
    kind: NewFileKind,
    directory: PathBuf,
}

#[derive(Debug)]
enum NewFileKind {
    Nameless(File),
    Hidden(NamedTempFile),
}

const PREFIX: &str = ".jitgraft-";

impl NewFile {
    /// Begins one that shall stand in a directory, with these permissions (less the umask).
    pub fn create_in(directory: &Path, mode: u32) -> io::Result<Self> {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        // A name is given through /proc (linkat(2)), which a chroot may lack.
        let nameless = Path::new("/proc/self/fd")
            .exists()
            .then(|| rustix::fs::open(directory, flags, Mode::from_raw_mode(mode)).map(File::from));
        let kind = match nameless {
            Some(Ok(file)) => NewFileKind::Nameless(file),
            _ => {
                let hidden =
                    Builder::new().prefix(PREFIX).permissions(PermissionsExt::from_mode(mode)).tempfile_in(directory);
                // Its name, which the error would tell, is nobody's business.
                NewFileKind::Hidden(hidden.map_err(|error| io::Error::from(error.kind()))?)
            }
        };
        Ok(Self { kind, directory: directory.to_owned() })
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        match &self.kind {
            NewFileKind::Nameless(file) => file,
            NewFileKind::Hidden(file) => file.as_file(),
        }
    }

    /// A writer with an offset of its own: several may write to different places side by side.
    pub fn writer(&self) -> Writer<'_> {
        Writer { file: self.file(), at: 0 }
    }

    /// The file itself, to be written.
    pub fn file_mut(&mut self) -> &mut File {
        match &mut self.kind {
            NewFileKind::Nameless(file) => file,
            NewFileKind::Hidden(file) => file.as_file_mut(),
        }
    }

    /// Puts it in its place, whatever was there.
    pub fn persist(self, path: &Path) -> io::Result<()> {
        let hidden = match self.kind {
            NewFileKind::Hidden(file) => file.into_temp_path(),
            NewFileKind::Nameless(file) => match link(&file, path) {
                // Only what has a name can take the place of something else.
                Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => {
                    let named = Builder::new().prefix(PREFIX).make_in(&self.directory, |name| link(&file, name))?;
                    named.into_temp_path()
                }
                done => return done,
            },
        };
        hidden.persist(path).map_err(|refused| refused.error)
    }

    /// Puts it in its place if nothing is there; gives it back if something is.
    pub fn persist_noclobber(self, path: &Path) -> io::Result<Option<Self>> {
        let Self { kind, directory } = self;
        let taken = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
        let back = |kind| Ok(Some(Self { kind, directory }));
        match kind {
            NewFileKind::Hidden(file) => match file.persist_noclobber(path) {
                Ok(_) => Ok(None),
                Err(refused) if taken(&refused.error) => back(NewFileKind::Hidden(refused.file)),
                Err(refused) => Err(refused.error),
            },
            NewFileKind::Nameless(file) => match link(&file, path) {
                Ok(()) => Ok(None),
                Err(error) if taken(&error) => back(NewFileKind::Nameless(file)),
                Err(error) => Err(error),
            },
        }
    }
}

/// Writes to a file from its start, or from where it is sought to.
#[derive(Debug)]
pub struct Writer<'a> {
    file: &'a File,
    at: u64,
}

impl Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write_at(bytes, self.at)?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Writer<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// Gives an open file a name.
fn link(file: &File, path: &Path) -> io::Result<()> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a directory holds, sorted.
    fn names(directory: &Path) -> Vec<String> {
        let names =
            std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    fn both(directory: &Path) -> [NewFile; 2] {
        let hidden = Builder::new().prefix(PREFIX).tempfile_in(directory).unwrap();
        let hidden = NewFile { kind: NewFileKind::Hidden(hidden), directory: directory.to_owned() };
        [NewFile::create_in(directory, 0o644).unwrap(), hidden]
    }

    #[test]
    fn a_file_appears_under_its_name_and_leaves_no_other() {
        for which in 0..2 {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("out");
            for text in ["first", "second"] {
                let mut new = both(dir.path()).into_iter().nth(which).unwrap();
                new.file_mut().write_all(text.as_bytes()).unwrap();
                new.persist(&path).unwrap();
                assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
                assert_eq!(names(dir.path()), ["out"]);
            }
            let new = both(dir.path()).into_iter().nth(which).unwrap();
            let new = new.persist_noclobber(&path).unwrap().expect("the name is taken");
            assert!(new.persist_noclobber(&dir.path().join("other")).unwrap().is_none());
            assert_eq!(names(dir.path()), ["other", "out"]);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "second");
        }
    }

    #[test]
    fn what_is_under_way_has_no_name() {
        let dir = tempfile::tempdir().unwrap();
        let new = NewFile::create_in(dir.path(), 0o644).unwrap();
        if let NewFileKind::Nameless(_) = new.kind {
            assert!(names(dir.path()).is_empty());
        }
        drop(new);
        assert!(names(dir.path()).is_empty());
    }
}
