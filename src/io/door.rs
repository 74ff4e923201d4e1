//! The door: every file that a recording, another file or a habit names is opened here.
//!
//! A user who names a file need not be allowed to read it, or to make it wait: the program may run as root, and names
//! come from recordings of strangers and lie in directories that all may write to. So a path is walked component by
//! component, and nothing is opened for reading before it was looked at:
//!
//! ```text
//! path ─ each component with O_PATH ─▶ file ─ type, owner ─▶ opened ─ first bytes, holes ─▶ mapped, or copied
//! ```
//!
//! | named by | links on the way | a link at the end | whose file |
//! |---|---|---|---|
//! | [`Named::User`] | followed | followed | root's or ours; with `force` anybody's |
//! | [`Named::Habit`] | trusted ones | refused | the same |
//! | [`Named::Marker`] | trusted ones | refused | anybody's |
//! | [`Named::Recording`] | trusted ones | trusted ones | root's or ours; with `force` anybody's |
//! | [`Named::Part`] | trusted ones | trusted ones | anybody's |
//!
//! A link is trusted if root or we made it and nobody else can put another one in its place (`Walk::follow`). The
//! mapping is private. A file that belongs to somebody else, who may shorten it at any time, is copied, once its first
//! bytes are those of what is looked for. A path into an archive that is open leads to what is packed there
//! (`io::archive`).
#![expect(clippy::disallowed_methods, reason = "this is the door")]

mod walk;

use super::archive::{self, Member};
use super::opened;
use super::spool::temporary;
use super::{Bytes, copy, mapped, spool, unopened};
use crate::error::{Error, Result};
use rustix::fs::{Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use walk::{Links, is_trusted};
pub(super) use walk::{OutputName, Place, Stop, Walk, shown};

/// The person or file that named a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// The user typed its path: links mean what they mean to any program.
    User,
    /// A habit: dumps, maps and logs lie in directories that all may write to.
    Habit,
    /// A process that mapped it while it was recorded. Its owner is not checked, matter, as in perf inject: a server
    /// that root records runs as a user of its own.
    Marker,
    /// A recording or another file: binaries, debugging files, sources.
    Recording,
    /// The user typed the directory of an input, which this is a part of.
    Part,
}

/// The start of a path.
#[derive(Debug, Clone, Copy, Default)]
pub enum Start<'a> {
    /// The current directory, the start for any program.
    #[default]
    Here,
    /// In a directory that the user typed; the path has it at its start.
    Typed(&'a Path),
    /// At the root of a process. Nothing leads out of it.
    Inside(&'a Root),
}

/// The root of a process that runs.
#[derive(Debug)]
pub struct Root {
    directory: File,
    /// The user that the process runs as: as: its own files may be its user's.
    uid: u32,
}

impl Root {
    /// Opens `/proc/PID/root` of a process that runs as this user.
    pub fn open(path: &Path, uid: u32) -> io::Result<Self> {
        Ok(Self { directory: super::new_file::open_directory(path)?, uid })
    }
}

/// The size of holes that a file may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holes {
    /// The kernel leaves out of a core what was never touched, a linker what is zero.
    Any,
    /// None to speak of: it is written from front to back. Others are made to fill memory and time.
    Small,
}

/// The kind of file that is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The holes that it may have if it begins with these bytes; `None` if it is not what is looked for.
    pub holes: fn(&[u8]) -> Option<Holes>,
    /// The error about a file of another user that is not of that kind.
    pub otherwise: &'static str,
}

/// By this many bytes a file is known.
const HEAD: usize = 1 << 12;

/// No program leaves such holes in a file that it writes from front to back.
const LARGEST_HOLE: u64 = 16 << 20;

/// The file that was opened.
#[derive(Debug)]
pub struct Opened {
    /// Its content.
    pub bytes: Bytes,
    /// Its metadata when it was opened.
    pub about: Metadata,
    /// The permissions: its mode, of which only the owner's part counts where not everybody may go through the
    /// directories on the way.
    pub mode: u32,
    /// True if everybody may read it: the file, and every directory on the way. For a file in an archive, those of the
    /// archive.
    pub is_everybodys: bool,
}

/// One way through the door.
#[derive(Debug, Clone, Copy)]
pub struct Door<'a> {
    /// The person or file that named the path.
    pub named: Named,
    /// Its start.
    pub start: Start<'a>,
    /// True if files of other users are believed.
    pub force: bool,
}

impl Named {
    /// For paths that start where they do for any program.
    pub fn door(self, force: bool) -> Door<'static> {
        Door { named: self, start: Start::Here, force }
    }
}

impl Door<'_> {
    /// Opens a file. `None` if absent.
    pub fn open(&self, path: &Path, kind: Kind) -> Option<Result<Opened>> {
        if let Some(Member { bytes, about, owner }) = archive::member(path) {
            let mode = about.mode();
            let opened = self.check_owner(owner).map(|()| Opened { bytes, about, mode, is_everybodys: true });
            return Some(opened.map_err(|error| error.in_file(path)));
        }
        self.enter(path, |place| {
            let (file, mode, is_everybodys) = (place.for_reading()?, place.mode(), place.is_everybodys());
            let bytes = if self.is_ours(&place.about) { self.map(&file, kind) } else { copied(&file, kind) };
            Ok(Opened { bytes: bytes?, about: place.about, mode, is_everybodys })
        })
    }

    /// The first bytes of a file, up to this length. `None` if absent.
    pub fn head(&self, path: &Path, most: u64) -> Option<Result<Vec<u8>>> {
        if let Some(Member { bytes, owner, .. }) = archive::member(path) {
            let head = &bytes[..bytes.len().min(usize::try_from(most).unwrap_or(usize::MAX))];
            return Some(self.check_owner(owner).map(|()| head.to_vec()).map_err(|error| error.in_file(path)));
        }
        self.enter(path, |place| {
            let mut bytes = Vec::new();
            // A file that claims to be empty may never end.
            place.for_reading()?.take(most.min(place.about.len())).read_to_end(&mut bytes)?;
            Ok(bytes)
        })
    }

    /// Opens a file that is read from front to back. `None` if absent.
    pub fn open_file(&self, path: &Path) -> Option<Result<File>> {
        self.enter(path, |place| place.for_reading())
    }

    /// The metadata of the file that goes by a path, which is not opened: where a link at the end is refused, the link.
    /// `None` if nothing does.
    pub fn look(&self, path: &Path) -> Option<Metadata> {
        let in_archive = archive::member(path).map(|member| member.about);
        in_archive.or_else(|| self.place(path).ok().flatten().map(|place| place.about))
    }

    /// The wanted entries of a directory: of links, themselves. Nothing if it cannot be listed.
    pub fn entries(&self, directory: &Path, wanted: impl Fn(&OsStr) -> bool) -> Vec<(OsString, Metadata)> {
        self.list(directory, wanted).and_then(Result::ok).unwrap_or_default()
    }

    /// Lists the wanted entries of a directory: of links, themselves. `None` if nothing has its name. All directories that
    /// are read are read here.
    pub fn list(&self, directory: &Path, wanted: impl Fn(&OsStr) -> bool) -> Option<Result<Vec<(OsString, Metadata)>>> {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        if let Some(in_archive) = archive::entries(directory, &wanted) {
            return Some(Ok(in_archive));
        }
        let place = self.place(directory).transpose()?;
        let listed = place.and_then(|place| place.entries(wanted).map_err(unopened::unlisted));
        Some(listed.map_err(|error| self.located(error, directory)))
    }

    fn enter<T>(&self, path: &Path, read: impl FnOnce(Place) -> Result<T>) -> Option<Result<T>> {
        let place = self.place(path).transpose()?;
        let read = place.and_then(|place| {
            self.check(&place.about)?;
            read(place)
        });
        Some(read.map_err(|error| self.located(error, path)))
    }

    /// The file that a path leads to; `None` if that is nowhere.
    fn place(&self, path: &Path) -> Result<Option<Place>> {
        let links = match self.named {
            Named::User => Links::All,
            Named::Habit | Named::Marker => Links::TrustedOnTheWay,
            Named::Recording | Named::Part => Links::Trusted,
        };
        let place = match self.start {
            Start::Here | Start::Typed(_) if links == Links::All => Place::of_typed(path),
            Start::Here => Walk::from(path, links),
            Start::Typed(directory) => Walk::below(directory, path, links),
            Start::Inside(root) => Walk::inside(&root.directory, path, links),
        };
        match place {
            Ok(place) => Ok(Some(place)),
            Err(Stop::At(error)) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(Stop::At(error)) if matches!(self.start, Start::Inside(_)) => Err(unopened::unknown(error)),
            Err(Stop::At(error)) => Err(unopened::looked_for(path, error)),
            Err(Stop::Refused(error)) => Err(self.located(error, path)),
            // Asked of outputs alone.
            Err(Stop::Descriptor(_)) => Ok(None),
        }
    }

    /// The caller who requests a file of a process knows it by another path.
    fn located(&self, error: Error, path: &Path) -> Error {
        if matches!(self.start, Start::Inside(_)) { error } else { error.in_file(path) }
    }

    /// True if a file may be opened for reading, which some devices and pipes notice.
    fn check(&self, about: &Metadata) -> Result<()> {
        if about.is_symlink() {
            return Err(Error::new("is a symbolic link; name its target with --jitdump or --perf-map"));
        }
        if !about.is_file() {
            return Err(Error::new("is not a regular file"));
        }
        self.check_owner(about.uid())
    }

    fn check_owner(&self, owner: u32) -> Result<()> {
        let is_anybodys = self.force || matches!(self.named, Named::Marker | Named::Part);
        let is_its_own = matches!(self.start, Start::Inside(root) if root.uid == owner);
        if is_anybodys || is_its_own || is_trusted(owner) {
            return Ok(());
        }
        let us = rustix::process::geteuid().as_raw();
        Err(Error::new(format!("belongs to user {owner}, not to root or to us ({us}); use -f to trust it")))
    }

    /// True if nobody else than root and this user may shorten a file while it is mapped: root inside of a container
    /// may. The parts of an input are mapped as the input itself is.
    fn is_ours(&self, about: &Metadata) -> bool {
        let is_inside = matches!(self.start, Start::Inside(_));
        self.named == Named::Part || is_trusted(about.uid()) && !is_inside
    }

    fn map(&self, file: &File, kind: Kind) -> Result<Bytes> {
        let holes = (kind.holes)(&head(file)?).unwrap_or(Holes::Small);
        let len = file.metadata()?.len();
        let end = match holes {
            Holes::Any => len,
            Holes::Small if self.named == Named::User => copy::data_end(file, u64::MAX)?,
            Holes::Small => copy::data_end(file, LARGEST_HOLE)?,
        };
        match (len, end) {
            // Files of /proc state that they are empty.
            (0, _) if self.named == Named::User => spool(file),
            (_, 0) => Ok(Bytes::Owned(Vec::new())),
            _ => mapped::map_regular_to(file, end),
        }
    }
}

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
    /// The file that was looked at, and no other one that has its name by now.
    fn for_reading(&self) -> Result<File> {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::open(own, flags, Mode::empty()).map_err(|error| match error {
            rustix::io::Errno::NOENT => Error::new("cannot be opened without /proc, which is not mounted here"),
            error => unopened::unknown(error.into()),
        })?;
        let file = File::from(file);
        opened::remember(&self.about, self.mode());
        Ok(file)
    }
}

#[cfg(test)]
mod tests;
