//! Archives that are open: what is packed in one is called by a path below the archive's own, `run.tar.zst/perf-77.map`, where
//! no file system has anything. The door ([`super::door`]) finds it there, so that all that look into directories look into
//! archives, too.
//!
//! A member is a temporary file without a name: a run that is killed leaves nothing behind. It belongs to the owner of
//! the archive, not to the user who runs this.

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

/// An archive and what is in it. Its members are no longer found once it is dropped.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    /// The same from the root: its files may be called by either.
    absolute: PathBuf,
    owner: u32,
    members: BTreeMap<PathBuf, Member>,
}

/// A file in an archive.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) bytes: Bytes,
    /// The temporary file, but for its owner.
    pub(super) about: Metadata,
    /// The user that the archive belongs to.
    pub(super) owner: u32,
}

static OPEN: Mutex<Vec<Weak<Archive>>> = Mutex::new(Vec::new());

fn open() -> MutexGuard<'static, Vec<Weak<Archive>>> {
    // Each change is one step.
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Archive {
    /// An archive that has this path and belongs to this user, without anything in it.
    pub fn new(path: &Path, owner: u32) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { path: path.to_owned(), absolute, owner, members: BTreeMap::new() }
    }

    /// Takes a member out of a stream. `modified`: its last change, in seconds and nanoseconds.
    pub fn add(&mut self, name: &Path, modified: (i64, i64), stream: impl Read) -> Result<()> {
        let spool = temporary()?.filled(stream)?;
        let time = Timespec { tv_sec: modified.0, tv_nsec: modified.1 };
        // A time that the file system cannot keep is not worth an error: dumps have times of their own.
        let _ = futimens(spool.file(), &Timestamps { last_access: time, last_modification: time });
        let about = spool.file().metadata()?;
        self.members.insert(name.to_owned(), Member { bytes: spool.map()?, about, owner: self.owner });
        Ok(())
    }

    /// Lets all find what is in it.
    pub fn open(self) -> Arc<Self> {
        let archive = Arc::new(self);
        let mut all = open();
        all.retain(|other| other.upgrade().is_some_and(|other| other.path != archive.path));
        all.push(Arc::downgrade(&archive));
        archive
    }

    /// The way the archive is called.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The content of a member.
    pub fn bytes(&self, name: &Path) -> Option<Bytes> {
        Some(self.members.get(name)?.bytes.again())
    }
}

/// True if an archive of this path is open.
pub fn is_archive(path: &Path) -> bool {
    open().iter().filter_map(Weak::upgrade).any(|archive| archive.path == path || archive.absolute == path)
}

/// The archive that a path leads into, and the path in there.
fn inside(path: &Path) -> Option<(Arc<Archive>, &Path)> {
    let all = open();
    all.iter().filter_map(Weak::upgrade).find_map(|archive| {
        let name = path.strip_prefix(&archive.path).or_else(|_| path.strip_prefix(&archive.absolute)).ok()?;
        Some((archive, name))
    })
}

/// The member that a path into an archive leads to.
pub(super) fn member(path: &Path) -> Option<Member> {
    let (archive, name) = inside(path)?;
    let Member { bytes, about, owner } = archive.members.get(name)?;
    Some(Member { bytes: bytes.again(), about: about.clone(), owner: *owner })
}

/// The files that are in a directory of an archive; `None` if the path leads into none.
pub(super) fn entries(directory: &Path, wanted: impl Fn(&OsStr) -> bool) -> Option<Vec<(OsString, Metadata)>> {
    let (archive, directory) = inside(directory)?;
    let here = archive.members.iter().filter(|(name, _)| name.parent() == Some(directory));
    let named = here.filter_map(|(name, member)| Some((name.file_name()?.to_owned(), member.about.clone())));
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
