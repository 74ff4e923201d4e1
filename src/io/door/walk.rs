//! Walks along a path component by component, without opening anything for reading.
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

/// Which symbolic links to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Links {
    /// Follow all links, as the kernel does.
    All,
    /// Follow only links that root or the current user created.
    Trusted,
    /// Like `Trusted`, but don't follow a link at the end of the path.
    TrustedOnTheWay,
    /// Like `Trusted`, but also follow links in /proc that stand for open files, such as `/proc/PID/fd/1`. Used for
    /// outputs, whose paths the user typed.
    OfOutput,
}

/// The file at the end of a path. It was examined but isn't open for reading.
#[derive(Debug)]
pub(in super::super) struct Place {
    pub(in super::super) file: File,
    pub(in super::super) about: Metadata,
    /// True if everybody may search the directories that the walk went through. A walk starts at the root, in the
    /// current directory, or at a directory that the user typed.
    is_reachable: bool,
    /// True if everybody may search the directories above the one in which the walk started.
    is_start_reachable: bool,
}

/// Why a walk along a path did not end at a file.
#[derive(Debug)]
pub(in super::super) enum Stop {
    /// A component of the path is missing, or can't be examined.
    Failed(io::Error),
    /// A link that can't be trusted was refused.
    Refused(Error),
    /// The path leads to this open descriptor of this process, such as `/dev/stdout`.
    Descriptor(u32),
}

/// The directory and name of an output, after following links.
#[derive(Debug)]
pub(in super::super) struct OutputName {
    pub(in super::super) directory: File,
    pub(in super::super) name: OsString,
    /// The file that currently has the name; `None` if there is none.
    pub(in super::super) existing: Option<Place>,
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        io::Error::from(errno).into()
    }
}

impl Place {
    /// Creates the place for a file that a walk has reached. The value of the field `is_start_reachable` is only a
    /// guess (true). The correct value is set when the walk has ended.
    fn new(file: impl Into<File>, is_reachable: bool) -> Result<Self, Stop> {
        let file = file.into();
        let about = file.metadata()?;
        Ok(Self { file, about, is_reachable, is_start_reachable: true })
    }

    /// The file at a path that the user typed, as the kernel resolves it.
    pub(super) fn resolve_typed(path: &Path) -> Result<Self, Stop> {
        let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { is_start_reachable: is_reachable(path), ..Self::new(file, true)? })
    }

    /// The file's mode, reduced to the owner's permissions if other users can't reach the file.
    pub(super) fn mode(&self) -> u32 {
        mode_if(self.about.mode(), self.is_reachable && self.is_start_reachable)
    }

    /// True if everybody who can reach the directory in which the walk started may read the file. Whether everybody can
    /// reach that directory doesn't count, because the user typed its path.
    pub(super) fn is_everybodys(&self) -> bool {
        const READABLE_BY_ALL: u32 = 0o004;
        self.is_reachable && self.about.mode() & READABLE_BY_ALL != 0
    }

    /// The entries of this directory whose names `wanted` accepts, with metadata. Links aren't followed.
    pub(super) fn entries(&self, wanted: impl Fn(&OsStr) -> bool) -> io::Result<Vec<(OsString, Metadata)>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(&self.file, ".", flags, Mode::empty()).and_then(Dir::read_from)?;
        let mut entries = Vec::new();
        for entry in directory {
            let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
            if name == "." || name == ".." || !wanted(&name) {
                continue;
            }
            // Skip entries that have disappeared since the directory was listed.
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            if let Ok(file) = openat(&self.file, &name, flags, Mode::empty()) {
                entries.push((name, File::from(file).metadata()?));
            }
        }
        Ok(entries)
    }
}

/// The state of a walk along a path.
pub(in super::super) struct Walk {
    /// The open directories on the way from the start of the path. The last one is where the walk is.
    directories: Vec<File>,
    /// True if the walk must stay inside of its first directory, which then acts as the root directory.
    is_inside: bool,
    /// The components of the path that are still to be walked, last one first.
    remaining: Vec<OsString>,
    links: Links,
    /// The number of links that were followed so far.
    links_followed: usize,
    /// True if everybody may search the directories on the way so far.
    is_reachable: bool,
}

/// The maximum number of links to follow, as in Linux.
const MAX_LINKS: usize = 40;

impl Walk {
    /// Walks along a path that starts at the root or in the current directory.
    pub(super) fn to_file(path: &Path, links: Links) -> Result<Place, Stop> {
        if path.as_os_str().is_empty() {
            return Err(Errno::NOENT.into());
        }
        Self::starting_at(start_of(path)?, false, path, links)
    }

    /// Walks along a path that starts with `directory`, which the user typed. The directory may hold another machine's
    /// root file system, so absolute links are resolved inside of the directory. If there is no such file, the walk is
    /// repeated, and absolute links are resolved on this machine.
    pub(super) fn to_file_below(directory: &Path, path: &Path, links: Links) -> Result<Place, Stop> {
        // If the directory is empty, the rest is the whole path, which may be absolute and thus not below it.
        let Some(rest) = path.strip_prefix(directory).ok().filter(|rest| !rest.is_absolute()) else {
            return Self::to_file(path, links);
        };
        let walk = |is_inside| Self::starting_at(open_directory(directory)?, is_inside, rest, links);
        match walk(true) {
            Err(Stop::Failed(error)) if error.kind() == io::ErrorKind::NotFound => walk(false),
            done => done,
        }
    }

    /// Walks along a path inside the root directory of a process.
    pub(super) fn to_file_inside(root: &File, path: &Path, links: Links) -> Result<Place, Stop> {
        Self::starting_at(root.try_clone()?, true, path, links)
    }

    fn starting_at(directory: File, is_inside: bool, path: &Path, links: Links) -> Result<Place, Stop> {
        let start = shown(&directory);
        let place = Self::new(directory, is_inside, path, links).walk_to_end()?;
        // The start is examined last, so only for files that exist: most paths that are tried lead to no file.
        Ok(Place { is_start_reachable: is_reachable(&start), ..place })
    }

    fn new(directory: File, is_inside: bool, path: &Path, links: Links) -> Self {
        let (directories, remaining) = (vec![directory], Vec::new());
        let mut walk = Self { directories, is_inside, remaining, links, links_followed: 0, is_reachable: true };
        walk.add(path);
        walk
    }

    /// Adds the components of a path, which are to be walked before the remaining ones.
    fn add(&mut self, path: &Path) {
        self.remaining.extend(path.components().rev().filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        }));
    }

    /// Walks along all remaining components of the path, and returns the file at its end.
    fn walk_to_end(mut self) -> Result<Place, Stop> {
        while let Some(name) = self.remaining.pop() {
            if let Some(last) = self.step(&name)? {
                return Ok(last);
            }
        }
        // No component is left, but no step has returned a file: the path, or the target of a link at its end, is `/`
        // or `.` or ends with `..`. The result is the directory that the walk is now in.
        let directory = self.directories.pop().ok_or(Errno::NOENT)?;
        Place::new(directory, self.is_reachable)
    }

    /// Walks one component further. Returns the file if that was the last component and not a link that was followed.
    fn step(&mut self, name: &OsStr) -> Result<Option<Place>, Stop> {
        if name == ".." {
            self.go_up()?;
            return Ok(None);
        }
        let is_last = self.remaining.is_empty();
        let next = self.examine(name, is_last)?;
        if next.about.is_symlink() && !(is_last && self.links == Links::TrustedOnTheWay) {
            self.follow(&next, name)?;
        } else if is_last {
            return Ok(Some(next));
        } else {
            // A directory on the way: the next component is looked up in it.
            self.directories.push(next.file);
        }
        Ok(None)
    }

    /// Walks to the directory of an output, following links. Returns the directory with the output's name in it, and
    /// the file that has the name, if any.
    pub(in super::super) fn to_output(path: &Path) -> Result<OutputName, Stop> {
        // `false`: the walk may leave the directory where it starts.
        let mut walk = Self::new(start_of(path)?, false, path, Links::OfOutput);
        while let Some(name) = walk.remaining.pop() {
            let is_last = walk.remaining.is_empty();
            // `Some`: the file at the end of the path. `None`: the step went up, followed a link, or entered a
            // directory on the way. `NotFound`: there is no file of this name.
            let step = walk.step(&name);
            let is_new = matches!(&step, Err(Stop::Failed(error)) if error.kind() == io::ErrorKind::NotFound);
            // A missing directory on the way is an error; a missing last component is a new output.
            let existing = if is_last && is_new { None } else { step? };
            // `name` is the output's name if it was the last component and nothing remains after the step. If it was a
            // link that was followed, the components of the link's target remain. After `..` or a link to `/`, nothing
            // remains either, but an output can't have such a name: `existing` is `None`, although nothing is missing.
            if is_last && walk.remaining.is_empty() && name != ".." && (existing.is_some() || is_new) {
                let directory = walk.directories.pop().ok_or(Errno::NOENT)?;
                return Ok(OutputName { directory, name, existing });
            }
            // The last component may be a descriptor's number in a directory such as /proc/self/fd.
            if let [last] = &walk.remaining[..]
                && let Some(number) = descriptor(walk.here()?, last)
            {
                return Err(Stop::Descriptor(number));
            }
        }
        // The path ends with `..`, or with a link to `/` or to a path that ends with `..`. So it leads to a directory,
        // and gives no name for the output.
        Err(Stop::Failed(io::ErrorKind::IsADirectory.into()))
    }

    /// Walks to a directory for outputs. Creates this directory and its parents if they are missing.
    pub(in super::super) fn to_directory(path: &Path) -> Result<File, Stop> {
        // `false`: the walk may leave the directory where it starts.
        let mut walk = Self::new(start_of(path)?, false, path, Links::OfOutput);
        while let Some(name) = walk.remaining.pop() {
            let step = match walk.step(&name) {
                Err(Stop::Failed(error)) if error.kind() == io::ErrorKind::NotFound => {
                    match mkdirat(walk.here()?, &name, Mode::from_raw_mode(0o777)) {
                        // `EXIST`: another process has just created an entry of this name. A dangling link doesn't get
                        // here, because `step` follows it. Then the components of its target are created.
                        Ok(()) | Err(Errno::EXIST) => walk.step(&name)?,
                        Err(error) => return Err(error.into()),
                    }
                }
                step => step?,
            };
            // `None`: the step went up, followed a link, or entered a directory on the way.
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

    /// Examines the entry `name` of the current directory, without opening it for reading. `is_last` is true if it is
    /// the last component of the path.
    fn examine(&mut self, name: &OsStr, is_last: bool) -> Result<Place, Stop> {
        const SEARCHABLE_BY_ALL: u32 = 0o001;
        let here = self.here()?;
        // Everybody can reach the entry if everybody may search this directory and those before it.
        let is_reachable = self.is_reachable && here.metadata()?.mode() & SEARCHABLE_BY_ALL != 0;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A component before the last one must be a directory. With DIRECTORY, the kernel mounts it first if it is an
        // automount point.
        let expected = if is_last { flags } else { flags | OFlags::DIRECTORY };
        let entry = match openat(here, name, expected, Mode::empty()) {
            // The entry may be a link to a directory. It is returned, for the caller to follow.
            Err(Errno::NOTDIR) if !is_last => {
                let link = Place::new(openat(here, name, flags, Mode::empty())?, is_reachable)?;
                if link.about.is_symlink() { Ok(link) } else { Err(Errno::NOTDIR.into()) }
            }
            opened => Place::new(opened?, is_reachable),
        };
        self.is_reachable = is_reachable;
        entry
    }

    /// Walks to the parent directory, for the component `..`. At the root, or at the directory that acts as the root,
    /// it does nothing.
    fn go_up(&mut self) -> Result<(), Stop> {
        if self.directories.len() > 1 {
            self.directories.pop();
        } else if !self.is_inside {
            // The walk may leave the directory where it started.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let above = File::from(openat(self.here()?, "..", flags, Mode::empty())?);
            self.directories = vec![above];
        }
        Ok(())
    }

    /// Continues the walk where a link leads, or refuses the link:
    ///
    /// 1. A link that can't be trusted is refused. It can be trusted if it belongs to root or the current user, and if
    ///    its directory isn't sticky and only these two can create names in it.
    /// 2. A link in /proc that stands for an open file or directory of a process, such as `PID/root`, is refused,
    ///    because it bypasses the checks of the directories on the way. Only the path of an output may contain one.
    /// 3. Any other link is followed: the components of its target are walked before the remaining ones.
    fn follow(&mut self, link: &Place, name: &OsStr) -> Result<(), Stop> {
        self.links_followed += 1;
        if self.links_followed > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        let here = self.here()?;
        let is_trusted = is_trusted(link.about.uid()) && !may_be_changed_by_others(here)?;
        // True for links in /proc that stand for open files or directories of a process.
        let leads_anywhere = leads_anywhere(link, here)?;
        // The exception for outputs: a link in /proc in the middle of the path must lead to a directory, and is opened.
        // One at the end of the path, such as /proc/PID/fd/1, is followed like any other link: its text is the open
        // file's path, and the walk checks that path.
        let is_of_output = self.links == Links::OfOutput;
        if is_trusted && leads_anywhere && is_of_output && !self.remaining.is_empty() {
            let directory = openat(here, name, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
            self.directories.push(directory.into());
            return Ok(());
        }
        if !is_trusted || leads_anywhere && !is_of_output {
            let (owner, shown) = (link.about.uid(), shown(here).join(name));
            let why = if is_trusted {
                "which stands for a file or directory that a process uses"
            } else {
                "which somebody else may have put there"
            };
            return Err(Stop::Refused(Error::new(format!(
                "is reached through the symbolic link {} (owned by user {owner}), {why}, so the link was not followed",
                shown.display()
            ))));
        }
        let target = readlinkat(&link.file, "", Vec::new())?.into_bytes();
        let target = PathBuf::from(OsString::from_vec(target));
        // An absolute link continues at the root: at the first directory if the walk must stay inside of it, otherwise
        // at the root of the file system.
        if target.is_absolute() {
            self.directories.truncate(1);
            if !self.is_inside {
                self.directories = vec![open_directory(Path::new("/"))?];
            }
        }
        self.add(&target);
        Ok(())
    }
}

/// The directory where a path starts: the root or the current directory.
fn start_of(path: &Path) -> io::Result<File> {
    open_directory(Path::new(if path.is_absolute() { "/" } else { "." }))
}

/// The path of an open directory, to show in messages.
pub(in super::super) fn shown(directory: &File) -> PathBuf {
    let path = readlink(format!("/proc/self/fd/{}", directory.as_raw_fd()), Vec::new());
    path.map(|path| PathBuf::from(OsString::from_vec(path.into_bytes()))).unwrap_or_default()
}

/// True if files of this user can be trusted: of root and of the current user. Other users could write anything.
pub(super) fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// True if a user other than root and the current one can create names in a directory. A sticky directory, such as
/// /tmp, counts as well.
fn may_be_changed_by_others(directory: &File) -> io::Result<bool> {
    const STICKY: u32 = 0o1000;
    const WRITABLE_BY_GROUP: u32 = 0o020;
    const WRITABLE_BY_ALL: u32 = 0o002;
    let about = directory.metadata()?;
    let is_own_group = [0, rustix::process::getegid().as_raw()].contains(&about.gid());
    // With an access control list, the mode's group bits are the upper limit for all users and groups in the list, so
    // others may be able to write even if the group is our own.
    let by_group = about.mode() & WRITABLE_BY_GROUP != 0 && (!is_own_group || has_access_list(directory));
    Ok(!is_trusted(about.uid()) || by_group || about.mode() & (STICKY | WRITABLE_BY_ALL) != 0)
}

/// True if the directory has an access control list, or if that can't be found out.
fn has_access_list(directory: &File) -> bool {
    let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
    let mut list = [0; 1 << 10];
    let read = rustix::fs::getxattr(path, c"system.posix_acl_access", &mut list[..]);
    // Any other error, such as that the list is too long for the buffer, counts as a list, too.
    let has_none = matches!(read, Err(Errno::NODATA | Errno::OPNOTSUPP));
    !has_none
}

/// True for a link in /proc that stands for an open file, or for the root or current directory of a process: following
/// it would bypass the checks of the directories on the way. Links directly in `/proc`, such as `/proc/self`, are
/// ordinary ones.
fn leads_anywhere(link: &Place, directory: &File) -> io::Result<bool> {
    const PROC_SUPER_MAGIC: i64 = 0x9fa0;
    const PROC_ROOT_INO: u64 = 1;
    #[allow(clippy::unnecessary_cast, reason = "the type differs from machine to machine")]
    let is_of_proc = rustix::fs::fstatfs(&link.file).is_ok_and(|about| about.f_type as i64 == PROC_SUPER_MAGIC);
    Ok(is_of_proc && directory.metadata()?.ino() != PROC_ROOT_INO)
}

/// If `directory` is this process's /proc/self/fd, the number of the descriptor that `name` stands for; otherwise
/// `None`.
fn descriptor(directory: &File, name: &OsStr) -> Option<u32> {
    let number = name.to_str()?.parse().ok()?;
    let directory_path = shown(directory);
    let is_directory = |path: &str| Path::new(path).canonicalize().is_ok_and(|path| path == directory_path);
    ["/proc/self/fd", "/proc/thread-self/fd"].into_iter().any(is_directory).then_some(number)
}
