//! Names that exist only while a job runs: names of files being written, on file systems where every file needs a name,
//! and of directories that are still empty. They are removed when the process ends (see [`super::signals`] and
//! [`super::guard`]), except by SIGKILL, which can't be caught.
//!
//! Unlike with `tempfile`, which uses paths, the directory is held open. The name is thus created and removed in the
//! same directory even if its path leads elsewhere by then.

use rustix::fs::{AtFlags, unlinkat};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// What a temporary name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TemporaryKind {
    /// A hidden file that is being written.
    File,
    /// A directory that is still empty.
    Directory,
}

/// A temporary name in an open directory.
#[derive(Debug)]
struct Entry {
    directory: File,
    name: CString,
    kind: TemporaryKind,
}

/// All names to remove if the process ends now.
static ENTRIES: Mutex<Vec<Arc<Entry>>> = Mutex::new(Vec::new());

/// A name that is removed when this is dropped or the process ends.
#[derive(Debug)]
pub(super) struct TemporaryName {
    entry: Arc<Entry>,
    exists: bool,
}

impl TemporaryName {
    /// Creates something under an unused name in a directory.
    pub(super) fn create<T>(
        directory: &File,
        kind: TemporaryKind,
        make: impl Fn(&CStr) -> io::Result<T>,
    ) -> io::Result<(T, Self)> {
        const TRIES: usize = 100;
        for _ in 0..TRIES {
            let name = Self::register(directory, kind)?;
            match make(name.as_c_str()) {
                Ok(made) => return Ok((made, name)),
                Err(error) => {
                    name.forget();
                    if error.kind() != io::ErrorKind::AlreadyExists {
                        return Err(error);
                    }
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Registers a random name before it is used, so that a signal in between doesn't leave it behind.
    fn register(directory: &File, kind: TemporaryKind) -> io::Result<Self> {
        let number = RandomState::new().build_hasher().finish();
        let name = match kind {
            TemporaryKind::File => format!(".jitgraft-{number:016x}"),
            TemporaryKind::Directory => format!("jitgraft-{number:016x}"),
        };
        let entry = Arc::new(Entry { directory: directory.try_clone()?, name: CString::new(name)?, kind });
        ENTRIES.lock().unwrap_or_else(PoisonError::into_inner).push(entry.clone());
        Ok(Self { entry, exists: true })
    }

    pub(super) fn as_c_str(&self) -> &CStr {
        &self.entry.name
    }

    /// Keeps the name, because it belongs to another file by now, was renamed, or is final.
    pub(super) fn forget(mut self) {
        self.exists = false;
    }
}

impl Drop for TemporaryName {
    fn drop(&mut self) {
        if self.exists {
            self.entry.remove();
        }
        let mut entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| !Arc::ptr_eq(entry, &self.entry));
    }
}

impl Entry {
    fn remove(&self) {
        let flags = match self.kind {
            TemporaryKind::File => AtFlags::empty(),
            TemporaryKind::Directory => AtFlags::REMOVEDIR,
        };
        // If removing fails, nothing else can be done.
        let _ = unlinkat(&self.directory, self.name.as_c_str(), flags);
    }
}

/// Removes all temporary names, because the process is about to end.
pub(super) fn remove_all() {
    let entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
    entries.iter().for_each(|entry| entry.remove());
}

/// Like [`remove_all`], for use in a signal handler or an allocator: neither waits nor allocates. If the interrupted
/// thread was just changing the list, the names stay.
pub(super) fn remove_all_without_waiting() {
    if let Ok(entries) = ENTRIES.try_lock() {
        entries.iter().for_each(|entry| entry.remove());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags, mkdirat, openat};

    #[test]
    fn a_name_is_registered_while_it_exists_and_removed_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let directory = File::open(dir.path()).unwrap();
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
        let (_file, file_name) = TemporaryName::create(&directory, TemporaryKind::File, |name| {
            Ok(openat(&directory, name, flags, Mode::from_raw_mode(0o600))?)
        })
        .unwrap();
        let ((), directory_name) = TemporaryName::create(&directory, TemporaryKind::Directory, |name| {
            Ok(mkdirat(&directory, name, Mode::from_raw_mode(0o700))?)
        })
        .unwrap();
        let is_registered =
            |name: &TemporaryName| ENTRIES.lock().unwrap().iter().any(|entry| entry.name.as_c_str() == name.as_c_str());
        assert!(is_registered(&file_name) && is_registered(&directory_name));
        assert!(dir.path().join(file_name.as_c_str().to_str().unwrap()).is_file());
        assert!(dir.path().join(directory_name.as_c_str().to_str().unwrap()).is_dir());
        assert!(file_name.as_c_str().to_bytes().starts_with(b".jitgraft-"));
        assert!(directory_name.as_c_str().to_bytes().starts_with(b"jitgraft-"));
        let entries = [file_name.entry.clone(), directory_name.entry.clone()];
        drop((file_name, directory_name));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let registered = ENTRIES.lock().unwrap();
        assert!(!registered.iter().any(|entry| entries.iter().any(|ours| Arc::ptr_eq(entry, ours))));
    }

    #[test]
    fn a_file_that_could_not_be_made_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let directory = File::open(dir.path()).unwrap();
        let refused =
            TemporaryName::create(&directory, TemporaryKind::File, |_| Err::<(), _>(io::ErrorKind::StorageFull.into()));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
