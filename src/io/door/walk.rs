//! The way to a file, component by component, without opening anything for reading.
#![expect(clippy::disallowed_methods, reason = "this is the door")]

use crate::error::Error;
use crate::io::modes::mode_if;
use crate::io::new_file::open_directory;
use crate::io::typed::is_reachable;
use rustix::fs::{Dir, Mode, OFlags, mkdirat, openat, readlink, readlinkat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// The links that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::io) enum Links {
    /// All, as the kernel follows them.
    All,
    /// Those that nobody but root and we can have put there.
    Trusted,
    /// The same, but for what the path ends in: that is not a link.
    TrustedOnTheWay,
    /// Those and what /proc shows as links: of the path of an output, which the user typed.
    OfOutput,
}

/// The end of a path: a file that was looked at and is not open for reading.
#[derive(Debug)]
pub(in crate::io) struct Place {
    pub(in crate::io) file: File,
    pub(in crate::io) about: Metadata,
    /// True if everybody may go through the directories that were gone through.
    is_reachable: bool,
    /// True if everybody may get to where the path starts.
    is_start_reachable: bool,
}

/// Why a path led nowhere.
#[derive(Debug)]
pub(in crate::io) enum Stop {
    At(io::Error),
    /// By what could lead anywhere.
    Refused(Error),
    /// At this open descriptor of this process.
    Descriptor(u32),
}

/// A name in a directory.
#[derive(Debug)]
pub(in crate::io) struct OutputName {
    pub(in crate::io) directory: File,
    pub(in crate::io) name: OsString,
    /// The file that has the name.
    pub(in crate::io) there: Option<Place>,
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::At(error)
    }
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        io::Error::from(errno).into()
    }
}

impl Place {
    fn new(file: impl Into<File>, is_reachable: bool, is_start_reachable: bool) -> Result<Self, Stop> {
        let file = file.into();
        let about = file.metadata()?;
        Ok(Self { file, about, is_reachable, is_start_reachable })
    }

    /// The place where the kernel states that a path leads.
    pub(super) fn of_typed(path: &Path) -> Result<Self, Stop> {
        let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Self::new(file, true, is_reachable(path))
    }

    /// The permissions for reading.
    pub(super) fn mode(&self) -> u32 {
        mode_if(self.about.mode(), self.is_reachable && self.is_start_reachable)
    }

    /// True if everybody may read it, who gets to where its path starts: the user typed that.
    pub(super) fn is_everybodys(&self) -> bool {
        const READABLE_BY_ALL: u32 = 0o004;
        self.is_reachable && self.about.mode() & READABLE_BY_ALL != 0
    }

    /// Its wanted entries, if it is a directory; of links, themselves.
    pub(super) fn entries(&self, wanted: impl Fn(&OsStr) -> bool) -> io::Result<Vec<(OsString, Metadata)>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(&self.file, ".", flags, Mode::empty()).and_then(Dir::read_from)?;
        let mut entries = Vec::new();
        for entry in directory {
            let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
            if name == "." || name == ".." || !wanted(&name) {
                continue;
            }
            // What is gone meanwhile is not there.
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            if let Ok(file) = openat(&self.file, &name, flags, Mode::empty()) {
                entries.push((name, File::from(file).metadata()?));
            }
        }
        Ok(entries)
    }
}

/// A walk along a path.
pub(in crate::io) struct Walk {
    /// Open directories, from where the path starts to where it has come.
    directories: Vec<File>,
    /// True if the first of them is a root that nothing leads out of.
    is_inside: bool,
    /// The components that are left, the next one at the end.
    left: Vec<OsString>,
    links: Links,
    /// The number that was followed.
    followed: usize,
    is_reachable: bool,
    is_start_reachable: bool,
}

/// As many links as Linux follows.
const MAX_LINKS: usize = 40;

impl Walk {
    /// Walks from where paths start for any program.
    pub(super) fn from(path: &Path, links: Links) -> Result<Place, Stop> {
        if path.as_os_str().is_empty() {
            return Err(Errno::NOENT.into());
        }
        Self::starting_at(start_of(path)?, false, path, links)
    }

    /// Walks below a directory, along a path that has it at its start. It may be the root of another machine: an absolute
    /// link leads to a place in it, and if nothing is there, to where it leads here.
    pub(super) fn below(directory: &Path, path: &Path, links: Links) -> Result<Place, Stop> {
        let Some(rest) = path.strip_prefix(directory).ok().filter(|rest| !rest.is_absolute()) else {
            return Self::from(path, links);
        };
        let walk = |is_inside| Self::starting_at(open_directory(directory)?, is_inside, rest, links);
        match walk(true) {
            Err(Stop::At(error)) if error.kind() == io::ErrorKind::NotFound => walk(false),
            done => done,
        }
    }

    /// Walks below the root of a process.
    pub(super) fn inside(root: &File, path: &Path, links: Links) -> Result<Place, Stop> {
        Self::starting_at(root.try_clone()?, true, path, links)
    }

    fn starting_at(directory: File, is_inside: bool, path: &Path, links: Links) -> Result<Place, Stop> {
        let is_start_reachable = is_reachable(&shown(&directory));
        Self { is_start_reachable, ..Self::new(directory, is_inside, path, links) }.walk_to_end()
    }

    fn new(directory: File, is_inside: bool, path: &Path, links: Links) -> Self {
        let (directories, left) = (vec![directory], Vec::new());
        let (is_reachable, is_start_reachable) = (true, true);
        let mut walk = Self { directories, is_inside, left, links, followed: 0, is_reachable, is_start_reachable };
        walk.add(path);
        walk
    }

    /// Adds components in front of those that are left.
    fn add(&mut self, path: &Path) {
        self.left.extend(path.components().rev().filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        }));
    }

    fn walk_to_end(mut self) -> Result<Place, Stop> {
        while let Some(name) = self.left.pop() {
            if let Some(last) = self.step(&name)? {
                return Ok(last);
            }
        }
        let directory = self.directories.pop().ok_or(Errno::NOENT)?;
        Place::new(directory, self.is_reachable, self.is_start_reachable)
    }

    /// Goes on by a component; what it is, if it is what the path ends in.
    fn step(&mut self, name: &OsStr) -> Result<Option<Place>, Stop> {
        if name == ".." {
            self.up()?;
            return Ok(None);
        }
        let is_last = self.left.is_empty();
        let next = self.next(name, is_last)?;
        if next.about.is_symlink() && !(is_last && self.links == Links::TrustedOnTheWay) {
            self.follow(&next, name)?;
        } else if is_last {
            return Ok(Some(next));
        } else {
            self.directories.push(next.file);
        }
        Ok(None)
    }

    /// Walks to a name that an output may get, whether something has it or not.
    pub(in crate::io) fn to_output(path: &Path) -> Result<OutputName, Stop> {
        let mut walk = Self::new(start_of(path)?, false, path, Links::OfOutput);
        while let Some(name) = walk.left.pop() {
            let is_last = walk.left.is_empty();
            let step = walk.step(&name);
            let is_new = matches!(&step, Err(Stop::At(error)) if error.kind() == io::ErrorKind::NotFound);
            let there = if is_last && is_new { None } else { step? };
            if is_last && walk.left.is_empty() && name != ".." && (there.is_some() || is_new) {
                let directory = walk.directories.pop().ok_or(Errno::NOENT)?;
                return Ok(OutputName { directory, name, there });
            }
            if let (Some(name), true) = (walk.left.last(), walk.left.len() == 1)
                && let Some(number) = descriptor(walk.here()?, name)
            {
                return Err(Stop::Descriptor(number));
            }
        }
        Err(Stop::At(io::ErrorKind::IsADirectory.into()))
    }

    /// Walks to a directory that outputs may go to; what is missing is made.
    pub(in crate::io) fn to_directory(path: &Path) -> Result<File, Stop> {
        let mut walk = Self::new(start_of(path)?, false, path, Links::OfOutput);
        while let Some(name) = walk.left.pop() {
            let step = match walk.step(&name) {
                Err(Stop::At(error)) if error.kind() == io::ErrorKind::NotFound => {
                    match mkdirat(walk.here()?, &name, Mode::from_raw_mode(0o777)) {
                        // Somebody else was faster, or it is a link that leads nowhere.
                        Ok(()) | Err(Errno::EXIST) => walk.step(&name)?,
                        Err(error) => return Err(error.into()),
                    }
                }
                step => step?,
            };
            if let Some(last) = step {
                if !last.about.is_dir() {
                    return Err(Errno::NOTDIR.into());
                }
                walk.directories.push(last.file);
            }
        }
        walk.directories.pop().ok_or_else(|| Errno::NOENT.into())
    }

    fn here(&self) -> Result<&File, Stop> {
        self.directories.last().ok_or_else(|| Errno::NOENT.into())
    }

    /// Looks at what has a name in the directory that was come to.
    fn next(&mut self, name: &OsStr, is_last: bool) -> Result<Place, Stop> {
        const SEARCHABLE_BY_ALL: u32 = 0o001;
        let (here, is_start_reachable) = (self.here()?, self.is_start_reachable);
        let is_reachable = self.is_reachable && here.metadata()?.mode() & SEARCHABLE_BY_ALL != 0;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A path that is requested as a directory is mounted first, if it is an automount.
        let found = match is_last {
            true => openat(here, name, flags, Mode::empty()),
            false => openat(here, name, flags | OFlags::DIRECTORY, Mode::empty()),
        };
        let found = match found {
            Err(Errno::NOTDIR) if !is_last => {
                let other = Place::new(openat(here, name, flags, Mode::empty())?, is_reachable, is_start_reachable)?;
                if other.about.is_symlink() { Ok(other) } else { Err(Errno::NOTDIR.into()) }
            }
            found => Place::new(found?, is_reachable, is_start_reachable),
        };
        self.is_reachable = is_reachable;
        found
    }

    fn up(&mut self) -> Result<(), Stop> {
        if self.directories.len() > 1 {
            self.directories.pop();
        } else if !self.is_inside {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let above = File::from(openat(self.here()?, "..", flags, Mode::empty())?);
            self.directories = vec![above];
        }
        Ok(())
    }

    /// Goes on where a link leads, if it is trusted: root or we made it, in a directory that nobody else may write to,
    /// and that is not one for everybody's files (sticky). Paths that /proc shows as links lead past all directories.
    fn follow(&mut self, link: &Place, name: &OsStr) -> Result<(), Stop> {
        self.followed += 1;
        if self.followed > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        let here = self.here()?;
        let is_trusted = is_trusted(link.about.uid()) && !may_be_changed_by_others(here)?;
        let leads_anywhere = leads_anywhere(link, here)?;
        // To what a process has open its name leads, too.
        let is_of_output = self.links == Links::OfOutput;
        if is_trusted && leads_anywhere && is_of_output && !self.left.is_empty() {
            let directory = openat(here, name, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
            self.directories.push(directory.into());
            return Ok(());
        }
        if !is_trusted || leads_anywhere && !is_of_output {
            let (owner, shown) = (link.about.uid(), shown(here).join(name));
            let said = format!("is reached by the symbolic link {} (of user {owner})", shown.display());
            return Err(Stop::Refused(Error::new(format!(
                "{said}, which somebody else may have put there: not followed"
            ))));
        }
        let to = readlinkat(&link.file, "", Vec::new())?.into_bytes();
        let to = PathBuf::from(OsString::from_vec(to));
        if to.is_absolute() {
            self.directories.truncate(1);
            if !self.is_inside {
                self.directories = vec![open_directory(Path::new("/"))?];
            }
        }
        self.add(&to);
        Ok(())
    }
}

/// Where a path starts for any program.
fn start_of(path: &Path) -> io::Result<File> {
    open_directory(Path::new(if path.is_absolute() { "/" } else { "." }))
}

/// The way a directory is called.
pub(in crate::io) fn shown(directory: &File) -> PathBuf {
    let path = readlink(format!("/proc/self/fd/{}", directory.as_raw_fd()), Vec::new());
    path.map(|path| PathBuf::from(OsString::from_vec(path.into_bytes()))).unwrap_or_default()
}

/// True if a file of this user's is what it should be: other users who can write to it could write anything.
pub(super) fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// True if somebody besides root and us can put names into a directory, or it is one for everybody's files.
fn may_be_changed_by_others(directory: &File) -> io::Result<bool> {
    const STICKY: u32 = 0o1000;
    const WRITABLE_BY_GROUP: u32 = 0o020;
    const WRITABLE_BY_ALL: u32 = 0o002;
    let about = directory.metadata()?;
    let is_own_group = [0, rustix::process::getegid().as_raw()].contains(&about.gid());
    // With an access list, the group's bits show what anybody on the list may do at most.
    let by_group = about.mode() & WRITABLE_BY_GROUP != 0 && (!is_own_group || has_access_list(directory));
    Ok(!is_trusted(about.uid()) || by_group || about.mode() & (STICKY | WRITABLE_BY_ALL) != 0)
}

fn has_access_list(directory: &File) -> bool {
    let own = format!("/proc/self/fd/{}", directory.as_raw_fd());
    let mut list = [0; 1 << 10];
    // One that is longer is there, too.
    !matches!(
        rustix::fs::getxattr(own, c"system.posix_acl_access", &mut list[..]),
        Err(Errno::NODATA | Errno::OPNOTSUPP)
    )
}

/// True if a link of a directory is one by which /proc shows what a process has open, or its root: it leads past all
/// directories. Those of `/proc` itself are links to names.
fn leads_anywhere(link: &Place, directory: &File) -> io::Result<bool> {
    const PROC_SUPER_MAGIC: i64 = 0x9fa0;
    const PROC_ROOT_INO: u64 = 1;
    #[allow(clippy::unnecessary_cast, reason = "the type differs from machine to machine")]
    let is_of_proc = rustix::fs::fstatfs(&link.file).is_ok_and(|about| about.f_type as i64 == PROC_SUPER_MAGIC);
    Ok(is_of_proc && directory.metadata()?.ino() != PROC_ROOT_INO)
}

/// The descriptor of this process that a name in a directory stands for.
fn descriptor(directory: &File, name: &OsStr) -> Option<u32> {
    let number = name.to_str()?.parse().ok()?;
    let shown = shown(directory);
    let own = |path: &str| Path::new(path).canonicalize().is_ok_and(|own| own == shown);
    ["/proc/self/fd", "/proc/thread-self/fd"].into_iter().any(own).then_some(number)
}
