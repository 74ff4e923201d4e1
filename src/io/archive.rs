//! Open archives. A file in an archive has a path below the archive's own, such as `run.tar.zst/perf-77.map`, although
//! no file system has it. The door ([`super::door`]) opens such paths, so that everything that searches directories
//! searches archives, too.
//!
//! A member is extracted to a temporary file without a name, so that nothing is left behind if the process is killed.
//! It counts as a file of the archive's owner, not of the current user.

use super::Bytes;
use super::spool::temporary;
use crate::error::Result;
use rustix::fs::{Timespec, Timestamps, futimens};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// An archive and its members. Once it is dropped, its members can't be opened any more.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    /// The absolute form of `path`. Members are found by either form.
    absolute: PathBuf,
    owner: u32,
    members: BTreeMap<PathBuf, Member>,
}

/// A file in an open archive.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) bytes: Bytes,
    /// Metadata of the temporary file into which the member was extracted. Size and modification time are the member's,
    /// but the user ID is that of this process; see `owner` for the member's.
    pub(super) about: Metadata,
    /// The user that owns the archive.
    pub(super) owner: u32,
}

static OPEN: Mutex<Vec<Weak<Archive>>> = Mutex::new(Vec::new());

fn open() -> MutexGuard<'static, Vec<Weak<Archive>>> {
    // If a thread panicked while it held the lock, use the list all the same: each change to it is a single step, so it
    // is never incomplete.
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Archive {
    /// An empty archive with this path and owner.
    pub fn new(path: &Path, owner: u32) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { path: path.to_owned(), absolute, owner, members: BTreeMap::new() }
    }

    /// Extracts a file from a stream and adds it to the archive under this name. `modified` is its modification time
    /// since 1970, in seconds and nanoseconds.
    pub fn add(&mut self, name: &Path, modified: (i64, i64), stream: impl Read) -> Result<()> {
        let spool = temporary()?.filled(stream)?;
        let time = Timespec { tv_sec: modified.0, tv_nsec: modified.1 };
        // Ignore an error: the file system may not support this time, and jitdumps contain times of their own.
        let _ = futimens(spool.file(), &Timestamps { last_access: time, last_modification: time });
        let about = spool.file().metadata()?;
        self.members.insert(name.to_owned(), Member { bytes: spool.map()?, about, owner: self.owner });
        Ok(())
    }

    /// Opens the archive: until the returned value is dropped, the door opens its members by their paths.
    pub fn open(self) -> Arc<Self> {
        let archive = Arc::new(self);
        let mut all = open();
        // Remove archives that were dropped, and an earlier one with the same path.
        all.retain(|other| other.upgrade().is_some_and(|other| other.path != archive.path));
        all.push(Arc::downgrade(&archive));
        archive
    }

    /// The archive's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The contents of a member; `None` if there is no such member.
    pub fn bytes(&self, name: &Path) -> Option<Bytes> {
        Some(self.members.get(name)?.bytes.duplicate())
    }
}

/// True if an archive with this path is open.
pub fn is_archive(path: &Path) -> bool {
    open().iter().filter_map(Weak::upgrade).any(|archive| archive.path == path || archive.absolute == path)
}

/// The open archive that contains a path, and the rest of the path inside of it. `None` if the path isn't in an open
/// archive.
fn inside(path: &Path) -> Option<(Arc<Archive>, &Path)> {
    let all = open();
    all.iter().filter_map(Weak::upgrade).find_map(|archive| {
        let name = path.strip_prefix(&archive.path).or_else(|_| path.strip_prefix(&archive.absolute)).ok()?;
        Some((archive, name))
    })
}

/// The archive member at this path; `None` if there is none.
pub(super) fn member(path: &Path) -> Option<Member> {
    let (archive, name) = inside(path)?;
    let Member { bytes, about, owner } = archive.members.get(name)?;
    Some(Member { bytes: bytes.duplicate(), about: about.clone(), owner: *owner })
}

/// The members directly in a directory of an archive whose names `wanted` accepts, with their metadata. `None` if the
/// directory isn't in an open archive.
pub(super) fn entries(directory: &Path, wanted: impl Fn(&OsStr) -> bool) -> Option<Vec<(OsString, Metadata)>> {
    let (archive, directory) = inside(directory)?;
    let children = archive.members.iter().filter(|(name, _)| name.parent() == Some(directory));
    let named = children.filter_map(|(name, member)| Some((name.file_name()?.to_owned(), member.about.clone())));
    Some(named.filter(|(name, _)| wanted(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_an_archive_are_found_by_its_relative_and_its_absolute_path() {
        let mut archive = Archive::new(Path::new("relative/a.tar.zst"), 0);
        archive.add(Path::new("root/s.c"), (0, 0), &b"text"[..]).unwrap();
        let _open = archive.open();
        let relative = Path::new("relative/a.tar.zst");
        let absolute = std::path::absolute(relative).unwrap();
        for path in [relative, &absolute] {
            assert_eq!(&member(&path.join("root/s.c")).unwrap().bytes[..], b"text");
            assert!(is_archive(path) && entries(&path.join("root"), |_| true).unwrap().len() == 1);
        }
        assert!(!is_archive(Path::new("a.tar.zst")) && member(&relative.join("s.c")).is_none());
    }
}
