//! The door: opens every file that is named by a recording, by another file or by a convention instead of by the user.
//!
//! Whoever names such a file may not be allowed to read it, or may want to make jitgraft hang: jitgraft may run as
//! root, while the names come from recordings of strangers or are in directories that everybody can write to. Therefore
//! paths are walked component by component, and nothing is opened for reading before it was checked:
//!
//! ```text
//! path ─ each component with O_PATH ─▶ file ─ type, owner ─▶ opened ─ first bytes, holes ─▶ mapped, or copied
//! ```
//!
//! | named by | links on the way | link at the end | owner of the file |
//! |---|---|---|---|
//! | [`Named::User`] | followed | followed | root or the current user; with `force` anybody |
//! | [`Named::Convention`] | trusted ones | refused | as above |
//! | [`Named::Marker`] | trusted ones | refused | anybody |
//! | [`Named::Recording`] | trusted ones | trusted ones | root or the current user; with `force` anybody |
//! | [`Named::Part`] | trusted ones | trusted ones | anybody |
//!
//! A link is trusted if it belongs to root or the current user and nobody else could have replaced it (`Walk::follow`).
//! Mappings are private. A file of another user, who could truncate it at any time, is copied instead, provided that
//! its first bytes are of the expected kind. A path into an open archive leads to the archive's member (`io::archive`).
#![expect(clippy::disallowed_methods, reason = "this is the door")]

mod walk;

use super::archive::{self, Member};
use super::opened;
use super::spool::temporary;
use super::{Bytes, copy, spool, unopened, whole};
use crate::error::{Error, RefusalReason, Result};
use rustix::fs::{Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use walk::{Links, is_trusted};
pub(super) use walk::{OutputName, Place, Stop, Walk, shown};

/// Who named a path. The answer decides which links are followed, and whose files are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// The user typed the path. Links are followed as in any program.
    User,
    /// The path follows a convention, such as `/tmp/perf-PID.map`. The directories of jitdumps, perf maps and logs are
    /// often ones that everybody can write to.
    Convention,
    /// A recorded process mapped the file. The owner isn't checked, because root may record a server that runs as
    /// another user; perf inject doesn't check it either.
    Marker,
    /// A recording or another file contains the path: of a program, a debug file or a source file.
    Recording,
    /// The file is in an input directory. The user typed the directory's path.
    Part,
}

/// Where a path starts.
#[derive(Debug, Clone, Copy, Default)]
pub enum Start<'a> {
    /// The path starts at the root or in the current directory, as for any program.
    #[default]
    Here,
    /// The path starts in this directory, which the user typed. Paths are given with the directory in front.
    Typed(&'a Path),
    /// The path starts at the root directory of a process. Links and `..` can't leave that directory.
    Inside(&'a Root),
}

/// The root directory of a running process.
#[derive(Debug)]
pub struct Root {
    directory: File,
    /// The user that the process runs as. This user's files in the root directory are trusted, too.
    uid: u32,
}

impl Root {
    /// Opens `/proc/PID/root` of a process that runs as user `uid`.
    pub fn open(path: &Path, uid: u32) -> io::Result<Self> {
        Ok(Self { directory: super::new_file::open_directory(path)?, uid })
    }
}

/// Whether a file may have holes (parts that were never written and read as zeros).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holes {
    /// Any holes are allowed: the kernel leaves holes for untouched memory in core dumps, and linkers for zeros.
    Any,
    /// Only small holes are allowed. Files of this kind are written from front to back, so a large hole can only be
    /// there to waste memory and time.
    Small,
}

/// The kind of file that is expected at a path.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Recognizes the kind by the first bytes of a file (4 KiB), and returns which holes such a file may have; `None`
    /// if the file is of another kind.
    pub holes: fn(&[u8]) -> Option<Holes>,
    /// The error message if the file belongs to another user and isn't of this kind.
    pub otherwise: &'static str,
}

/// The number of bytes at the start of a file by which its kind is recognized.
const HEAD: usize = 1 << 12;

/// The largest hole, in bytes, that is accepted in files that programs write from front to back.
const LARGEST_HOLE: u64 = 16 << 20;

/// A file that was opened through the door.
#[derive(Debug)]
pub struct Opened {
    /// The file's contents.
    pub bytes: Bytes,
    /// The file's metadata when it was opened.
    pub about: Metadata,
    /// The file's mode. If other users can't search a directory on the way to the file, only the owner's permissions
    /// are kept.
    pub mode: u32,
    /// True if everybody may read the file and search every directory on the way to it. Always true for a file in an
    /// archive, because whoever can open the archive can read the file.
    pub is_everybodys: bool,
}

/// Rules for opening files whose paths come from a certain source, such as a recording.
#[derive(Debug, Clone, Copy)]
pub struct Door<'a> {
    /// Who named the paths. The table in the module's documentation says what follows from this.
    pub named: Named,
    /// Where the paths start, for instance at the root, or at the root directory of a process.
    pub start: Start<'a>,
    /// True if other users' files are trusted (`--force`).
    pub force: bool,
}

impl Named {
    /// A door for paths that start at the root or in the current directory.
    pub fn door(self, force: bool) -> Door<'static> {
        Door { named: self, start: Start::Here, force }
    }
}

impl Door<'_> {
    /// Opens a file, after checking its type and owner. `None` if there is no such file.
    pub fn open(&self, path: &Path, kind: Kind) -> Option<Result<Opened>> {
        // The path leads to a member of an archive. It was extracted to a file of our own, so only its owner is
        // checked, not its path or its kind.
        if let Some(Member { bytes, about, owner }) = archive::member(path) {
            let mode = about.mode();
            let opened = self.check_owner(owner).map(|()| Opened { bytes, about, mode, is_everybodys: true });
            return Some(opened.map_err(|error| error.in_file(path)));
        }
        self.enter(path, |place| {
            let (file, mode, is_everybodys) = (place.open_for_reading()?, place.mode(), place.is_everybodys());
            // A file that another user can truncate is copied, not mapped: if it were truncated while it is mapped,
            // this program would end.
            let bytes = if self.is_ours(&place.about) { self.map(&file, kind) } else { copied(&file, kind) };
            Ok(Opened { bytes: bytes?, about: place.about, mode, is_everybodys })
        })
    }

    /// Reads the first `most` bytes of a file, or all if it is shorter. `None` if there is no such file.
    pub fn head(&self, path: &Path, most: u64) -> Option<Result<Vec<u8>>> {
        if let Some(Member { bytes, owner, .. }) = archive::member(path) {
            let head = &bytes[..bytes.len().min(usize::try_from(most).unwrap_or(usize::MAX))];
            return Some(self.check_owner(owner).map(|()| head.to_vec()).map_err(|error| error.in_file(path)));
        }
        self.enter(path, |place| {
            let mut bytes = Vec::new();
            // Never read more than the file's length: a file with length 0, as in /proc, may have endless contents.
            place.open_for_reading()?.take(most.min(place.about.len())).read_to_end(&mut bytes)?;
            Ok(bytes)
        })
    }

    /// Opens a file to be read from front to back, after checking its type and owner. `None` if there is no such file.
    pub fn open_file(&self, path: &Path) -> Option<Result<File>> {
        self.enter(path, |place| place.open_for_reading())
    }

    /// The metadata of the file at a path, without opening it. If the rules refuse links at the end of a path, the
    /// metadata of the link itself. `None` if there is no file.
    pub fn look(&self, path: &Path) -> Option<Metadata> {
        let in_archive = archive::member(path).map(|member| member.about);
        in_archive.or_else(|| self.place(path).ok().flatten().map(|place| place.about))
    }

    /// The entries of a directory whose names `wanted` accepts, with metadata. Links aren't followed. Empty if the
    /// directory can't be listed.
    pub fn entries(&self, directory: &Path, wanted: impl Fn(&OsStr) -> bool) -> Vec<(OsString, Metadata)> {
        self.list(directory, wanted).and_then(Result::ok).unwrap_or_default()
    }

    /// The entries of a directory whose names `wanted` accepts, with metadata. Links aren't followed. `None` if there
    /// is no such directory. Except for directories that the user typed (`typed_names`), jitgraft reads directories
    /// only here.
    pub fn list(&self, directory: &Path, wanted: impl Fn(&OsStr) -> bool) -> Option<Result<Vec<(OsString, Metadata)>>> {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        if let Some(in_archive) = archive::entries(directory, &wanted) {
            return Some(Ok(in_archive));
        }
        let place = self.place(directory).transpose()?;
        let listed = place.and_then(|place| place.entries(wanted).map_err(unopened::directory_error));
        Some(listed.map_err(|error| self.located(error, directory)))
    }

    /// Walks along a path to its file, checks the file's type and owner, and passes the file to `read`. `None` if there
    /// is no such file.
    fn enter<T>(&self, path: &Path, read: impl FnOnce(Place) -> Result<T>) -> Option<Result<T>> {
        let place = self.place(path).transpose()?;
        let read = place.and_then(|place| {
            self.check(&place.about)?;
            read(place)
        });
        Some(read.map_err(|error| self.located(error, path)))
    }

    /// Walks along a path to its file, without opening it for reading. `None` if there is no file.
    fn place(&self, path: &Path) -> Result<Option<Place>> {
        let links = match self.named {
            Named::User => Links::All,
            Named::Convention | Named::Marker => Links::TrustedOnTheWay,
            Named::Recording | Named::Part => Links::Trusted,
        };
        let place = match self.start {
            // With all links followed, the path is resolved by the kernel, like any path that the user types.
            Start::Here | Start::Typed(_) if links == Links::All => Place::resolve_typed(path),
            Start::Here => Walk::to_file(path, links),
            Start::Typed(directory) => Walk::to_file_below(directory, path, links),
            Start::Inside(root) => Walk::to_file_inside(&root.directory, path, links),
        };
        match place {
            Ok(place) => Ok(Some(place)),
            Err(Stop::Failed(error)) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(Stop::Failed(error)) if matches!(self.start, Start::Inside(_)) => {
                Err(unopened::unnamed_file_error(error))
            }
            Err(Stop::Failed(error)) => Err(unopened::found_file_error(path, error)),
            Err(Stop::Refused(error)) => Err(self.located(error, path)),
            // A path that leads to a descriptor of this process, such as `/dev/stdin`, counts as missing: only outputs
            // may be named so.
            Err(Stop::Descriptor(_)) => Ok(None),
        }
    }

    /// Adds the path to an error. For a path inside the root directory of a process, the caller adds the path by which
    /// the user knows the file.
    fn located(&self, error: Error, path: &Path) -> Error {
        if matches!(self.start, Start::Inside(_)) { error } else { error.in_file(path) }
    }

    /// Checks type and owner before the file is opened for reading. Opening a device or pipe could have side effects.
    fn check(&self, about: &Metadata) -> Result<()> {
        if about.is_symlink() {
            return Err(Error::new("is a symbolic link; pass its target with --jitdump or --perf-map"));
        }
        if !about.is_file() {
            return Err(Error::new("is not a regular file"));
        }
        self.check_owner(about.uid())
    }

    /// Fails if a file of the user `owner` must not be read. For a file that a recorded process mapped, or that is in
    /// an input directory, any owner will do (see [`Named`]). Inside the root directory of a process, files of the
    /// process's user are trusted, too.
    fn check_owner(&self, owner: u32) -> Result<()> {
        let is_anybodys = self.force || matches!(self.named, Named::Marker | Named::Part);
        let is_its_own = matches!(self.start, Start::Inside(root) if root.uid == owner);
        if is_anybodys || is_its_own || is_trusted(owner) {
            return Ok(());
        }
        let current_user = rustix::process::geteuid().as_raw();
        let message = format!("belongs to user {owner}, not to root or to you ({current_user}); use -f to trust it");
        Err(Error::new(message).with_refusal(RefusalReason::Owner))
    }

    /// True if only root and the current user can truncate the file, so that it can be mapped instead of copied. False
    /// for files in a process's root directory: the process may be in a container, whose root user could truncate them.
    /// Files in an input directory are trusted as much as the input itself.
    fn is_ours(&self, about: &Metadata) -> bool {
        let is_inside = matches!(self.start, Start::Inside(_));
        self.named == Named::Part || is_trusted(about.uid()) && !is_inside
    }

    /// Maps a file that only trusted users can change. Fails if it has holes that are too large for its kind.
    fn map(&self, file: &File, kind: Kind) -> Result<Bytes> {
        // A trusted user's file may be of any kind; if it isn't of the expected one, it may only have small holes.
        let holes = (kind.holes)(&head(file)?).unwrap_or(Holes::Small);
        let len = file.metadata()?.len();
        let end = match holes {
            Holes::Any => len,
            // The user typed the path and knows what the file is, so holes of any size are accepted. A hole at the end
            // is left out.
            Holes::Small if self.named == Named::User => copy::data_end(file, u64::MAX)?,
            Holes::Small => copy::data_end(file, LARGEST_HOLE)?,
        };
        match (len, end) {
            // Files in /proc have contents although their length is 0.
            (0, _) if self.named == Named::User => spool(file),
            // The file is empty, or nothing but a hole.
            (_, 0) => Ok(Bytes::Owned(Vec::new())),
            _ => whole::contents_to(file, end),
        }
    }
}

/// Copies a file that others can change to a temporary file, and maps that. Fails if the file isn't of the expected
/// kind, or if its holes are too large for this kind.
fn copied(file: &File, kind: Kind) -> Result<Bytes> {
    let holes = (kind.holes)(&head(file)?).ok_or_else(|| Error::new(kind.otherwise))?;
    let largest_hole = if holes == Holes::Any { u64::MAX } else { LARGEST_HOLE };
    let mut copy = temporary()?;
    copy::copy_data(file, &mut copy, largest_hole)?;
    copy.map()
}

fn head(file: &File) -> Result<Vec<u8>> {
    let mut head = vec![0; HEAD];
    let len = file.read_at(&mut head, 0)?;
    head.truncate(len);
    Ok(head)
}

impl Place {
    /// Opens the very file that was checked, even if its path leads to another file by now.
    fn open_for_reading(&self) -> Result<File> {
        // This path leads to the file that is already open, without looking up its name again.
        let descriptor = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::open(descriptor, flags, Mode::empty()).map_err(|error| match error {
            rustix::io::Errno::NOENT => Error::new("cannot be opened without /proc, which is not mounted here"),
            error => unopened::unnamed_file_error(error.into()),
        })?;
        let file = File::from(file);
        opened::remember(&self.about, self.mode());
        Ok(file)
    }
}

#[cfg(test)]
mod tests;
