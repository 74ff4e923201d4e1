//! Temporary names: of files that are still being written (if they can't be without a name), and of directories that
//! are still empty. They are removed when they are dropped, or if a signal ends the process ([`super::guard`]).
//!
//! Signal handlers must not allocate memory or take locks. Therefore a fixed table contains a number for each name, and
//! the name is computed from the number.

use rustix::fs::{AtFlags, unlinkat};
use std::ffi::CStr;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// What kind of entry in a directory a temporary name stands for. It decides how the entry is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TemporaryKind {
    /// A file that is still being written.
    File,
    /// An empty directory.
    Directory,
}

/// A temporary name that a file or directory has. When this value is dropped, the file or directory is removed, unless
/// [`Self::forget`] was called.
#[derive(Debug)]
pub(super) struct HiddenName {
    text: NameText,
    /// Whether the name stands for a file or a directory.
    kind: TemporaryKind,
    /// The directory that contains the file or directory.
    directory: File,
    /// The slot by which signal handlers know the name; `None` if all slots were in use.
    slot: Option<&'static NameSlot>,
    /// True if dropping this value removes the file or directory. False once it has another name.
    must_be_removed: bool,
}

/// The number of temporary names that signal handlers can remove. If more are in use at once, a signal that ends the
/// program leaves the files with the surplus names behind.
const SLOTS: usize = 128;

/// The value of `NameSlot::directory` in a free slot.
const FREE: i32 = -1;

/// A slot of the table: the descriptor of the directory that contains the temporary name, and the number from which the
/// name is computed. The highest bit of the number ([`IS_DIRECTORY`]) is set if the name is that of a directory.
#[derive(Debug)]
struct NameSlot {
    directory: AtomicI32,
    number: AtomicU64,
}

static TABLE: [NameSlot; SLOTS] =
    [const { NameSlot { directory: AtomicI32::new(FREE), number: AtomicU64::new(0) } }; SLOTS];

const IS_DIRECTORY: u64 = 1 << 63;

const FILES: &[u8] = b".jitgraft-";
const DIRECTORIES: &[u8] = b"jitgraft-";

/// A temporary name as text, followed by at least one NUL.
type NameText = [u8; FILES.len() + 16 + 1];

impl HiddenName {
    /// Creates a file or directory with a random name: calls `make` with one name after the other until it doesn't fail
    /// because the name exists already. Returns what `make` returned, and the name.
    pub(super) fn create<T>(
        directory: &File,
        kind: TemporaryKind,
        make: impl Fn(&CStr) -> io::Result<T>,
    ) -> io::Result<(T, Self)> {
        const TRIES: usize = 100;
        for _ in 0..TRIES {
            let hidden = Self::new(directory, kind)?;
            // If `make` fails, it has created nothing. Then `forget` the name: if a file has it, that file is
            // somebody else's and must not be removed.
            match make(hidden.name()) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => hidden.forget(),
                Err(error) => {
                    hidden.forget();
                    return Err(error);
                }
                Ok(made) => return Ok((made, hidden)),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Chooses a random name and puts it into the table. This must come before the file or directory is created, so
    /// that signal handlers know the name of everything that exists.
    fn new(directory: &File, kind: TemporaryKind) -> io::Result<Self> {
        let number = RandomState::new().build_hasher().finish();
        let number = if kind == TemporaryKind::Directory { number | IS_DIRECTORY } else { number & !IS_DIRECTORY };
        let directory = directory.try_clone()?;
        let slot = TABLE.iter().find(|slot| slot.reserve(number, directory.as_raw_fd()));
        Ok(Self { text: text(number), kind, directory, slot, must_be_removed: true })
    }

    pub(super) fn name(&self) -> &CStr {
        name(&self.text)
    }

    /// Stops managing the temporary name, without removing the file or directory: it was renamed or never created.
    pub(super) fn forget(mut self) {
        self.must_be_removed = false;
    }
}

impl Drop for HiddenName {
    /// Removes the file or directory, unless [`forget`](Self::forget) was called, and frees the name's slot in the
    /// table.
    fn drop(&mut self) {
        if self.must_be_removed {
            // Ignore an error: nothing can be done about it.
            let _ = unlinkat(&self.directory, self.name(), flags(self.kind));
        }
        if let Some(slot) = self.slot {
            slot.directory.store(FREE, Ordering::Release);
        }
    }
}

impl NameSlot {
    /// Reserves the slot for a name if the slot is free, and returns whether it was.
    fn reserve(&self, number: u64, directory: i32) -> bool {
        const BEING_RESERVED: i32 = FREE - 1;
        let is_ours =
            self.directory.compare_exchange(FREE, BEING_RESERVED, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if is_ours {
            // Store the number before the directory: signal handlers ignore a slot without a directory.
            self.number.store(number, Ordering::Relaxed);
            self.directory.store(directory, Ordering::Release);
        }
        is_ours
    }
}

/// Calls `remove` for each name in the table, with the descriptor of the name's directory. Doesn't allocate or lock, so
/// signal handlers can call it.
pub(super) fn each(mut remove: impl FnMut(i32, &CStr, TemporaryKind)) {
    for slot in &TABLE {
        let directory = slot.directory.load(Ordering::Acquire);
        // Negative values mark slots that are free or being reserved.
        if directory >= 0 {
            let number = slot.number.load(Ordering::Relaxed);
            let kind = if number & IS_DIRECTORY == 0 { TemporaryKind::File } else { TemporaryKind::Directory };
            remove(directory, name(&text(number)), kind);
        }
    }
}

fn flags(kind: TemporaryKind) -> AtFlags {
    match kind {
        TemporaryKind::File => AtFlags::empty(),
        TemporaryKind::Directory => AtFlags::REMOVEDIR,
    }
}

/// The temporary name that belongs to a number in the table.
fn text(number: u64) -> NameText {
    let prefix = if number & IS_DIRECTORY == 0 { FILES } else { DIRECTORIES };
    let mut text = [0; FILES.len() + 17];
    text[..prefix.len()].copy_from_slice(prefix);
    // The 16 hexadecimal digits of the number, the highest one first.
    for digit in 0..16 {
        text[prefix.len() + digit] = b"0123456789abcdef"[(number >> (60 - 4 * digit) & 15) as usize];
    }
    text
}

fn name(text: &NameText) -> &CStr {
    CStr::from_bytes_until_nul(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags, mkdirat, openat};

    #[test]
    fn a_name_is_known_while_it_is_there_and_gone_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let directory = File::open(dir.path()).unwrap();
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
        let (file, hidden) = HiddenName::create(&directory, TemporaryKind::File, |name| {
            Ok(openat(&directory, name, flags, Mode::from_raw_mode(0o600))?)
        })
        .unwrap();
        let (made, below) = HiddenName::create(&directory, TemporaryKind::Directory, |name| {
            Ok(mkdirat(&directory, name, Mode::from_raw_mode(0o700))?)
        })
        .unwrap();
        let known = |hidden: &HiddenName| {
            let mut known = false;
            each(|at, name, what| {
                known |= (at, name, what) == (hidden.directory.as_raw_fd(), hidden.name(), hidden.kind);
            });
            known
        };
        assert!(known(&hidden) && known(&below));
        assert!(dir.path().join(hidden.name().to_str().unwrap()).is_file());
        assert!(hidden.name().to_bytes().starts_with(b".jitgraft-"), "{:?}", hidden.name());
        assert!(below.name().to_bytes().starts_with(b"jitgraft-"), "{:?}", below.name());
        drop((file, hidden, made, below));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_could_not_be_made_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let directory = File::open(dir.path()).unwrap();
        let refused =
            HiddenName::create(&directory, TemporaryKind::File, |_| Err::<(), _>(io::ErrorKind::StorageFull.into()));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
