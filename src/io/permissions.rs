//! The users who may read an output, besides its owner.
//!
//! | a new output | is readable by |
//! |---|---|
//! | [`Content::Summary`]: pictures, tables, folded stacks, reports | whom the umask lets read it |
//! | [`Content::OfInputs`]: profiles that are written anew, machine code, source text | the same, if they may read all inputs |
//! | [`Content::OwnersAlone`]: archives | its owner |
//!
//! A file that others cannot get to, because of a directory on the way, is its owner's alone. An output that replaces a
//! file that was there keeps its mode, its access list, its attributes and, where that is permitted, its owner and group,
//! as if it had been written over; the user named it. Where the user did not, it is no more open than a new one.

use super::door::Place;
use super::{NewFile, typed};
use rustix::fs::{Gid, Mode, Uid, XattrFlags, fremovexattr, fsetxattr, getxattr, listxattr};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Reading and writing for all; the umask takes from it.
pub(super) const ANYBODY: u32 = 0o666;

/// The owner's least permissions.
pub(super) const OWNER: u32 = 0o600;

/// All that a file that is replaced lets anybody do.
pub(super) const ANY_MODE: u32 = 0o777;

/// A program that is replaced stays one.
const OWNERS_EXECUTION: u32 = 0o100;

const GROUP: u32 = 0o070;
const STICKY: u32 = 0o1000;
const WRITABLE_BY_ALL: u32 = 0o002;

/// What an output holds, which decides who may read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Names and figures.
    Summary,
    /// What the inputs hold.
    OfInputs,
    /// The same, in a place that the user did not name: what it replaces makes it no more open.
    OfInputsBeside,
    /// More than the user may know of.
    OwnersAlone,
}

impl Content {
    /// The permissions that an output begins with, less the umask.
    pub(super) fn first_mode(self) -> u32 {
        if self == Self::Summary { ANYBODY } else { OWNER }
    }

    /// The permissions of a whole output. `own` are those that it has by now, `inputs` those of all that was read.
    pub(super) fn last_mode(self, own: u32, replaces: bool, inputs: u32) -> u32 {
        match self {
            Self::Summary => own,
            Self::OwnersAlone => own & (OWNER | OWNERS_EXECUTION),
            Self::OfInputsBeside if replaces => own & (inputs | OWNER | OWNERS_EXECUTION),
            Self::OfInputs if replaces => own,
            Self::OfInputs | Self::OfInputsBeside => inputs & !umask(),
        }
    }
}

/// The permissions for reading a file that the user typed.
pub(super) fn mode_of_typed(path: &Path, about: &Metadata) -> u32 {
    mode_if(about.mode(), typed::is_reachable(path))
}

/// The mode of a file, of which only the owner's part counts if others cannot get to it.
pub(super) fn mode_if(mode: u32, is_reachable: bool) -> u32 {
    const OWNERS: u32 = 0o700;
    if is_reachable { mode } else { mode & OWNERS }
}

/// The permissions that this process gives no new file. Where that cannot be read, all but the owner's.
fn umask() -> u32 {
    let status = typed::text_of_system(Path::new("/proc/self/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok()).unwrap_or(0o077)
}

/// The mode of a file that repeats the content of files of these modes.
pub fn mode_within(inputs: impl IntoIterator<Item = u32>) -> u32 {
    inputs.into_iter().fold(ANYBODY, |mode, input| mode & (input | OWNER))
}

/// The attributes that an output gets from the file that it will replace.
#[derive(Debug)]
pub(super) struct Inherited {
    mode: u32,
    owner: Uid,
    group: Gid,
    /// The access list (acl(5)).
    access_list: Option<Vec<u8>>,
    /// Its extended attributes (xattr(7)).
    notes: Vec<(CString, Vec<u8>)>,
}

/// Linux has no longer ones, and no longer lists of their names.
const LONGEST_ATTRIBUTE: usize = 1 << 16;

const ACCESS_LIST: &CStr = c"system.posix_acl_access";

impl Inherited {
    /// From what has a name in a directory. In a directory where anybody may put a file and none may take away another's
    /// (/tmp), nothing comes from somebody else's: it may have been put there to get at what we write.
    pub(super) fn from(there: &Place, directory: &File) -> Option<Self> {
        let (about, directory) = (&there.about, directory.metadata().ok()?);
        let everybodys = directory.mode() & (STICKY | WRITABLE_BY_ALL) == STICKY | WRITABLE_BY_ALL;
        let believed = [rustix::process::geteuid().as_raw(), directory.uid()];
        if everybodys && !believed.contains(&about.uid()) {
            return None;
        }
        let (owner, group) = (Uid::from_raw(about.uid()), Gid::from_raw(about.gid()));
        let own = format!("/proc/self/fd/{}", there.file.as_raw_fd());
        let access_list = attribute(&own, ACCESS_LIST);
        let noted = names_of_attributes(&own).into_iter().filter(|name| name.to_bytes().starts_with(b"user."));
        let notes = noted.filter_map(|name| attribute(&own, &name).map(|value| (name, value))).collect();
        Some(Self { mode: about.mode() & ANY_MODE, owner, group, access_list, notes })
    }

    /// Gives it to a file that nobody else can open yet. A permission that cannot be set leaves it less open, and never
    /// more.
    pub(super) fn give_to(self, new: &NewFile) -> io::Result<()> {
        let (file, mut mode) = (new.file(), self.mode);
        let Ok(about) = file.metadata() else { return Ok(()) };
        if about.gid() != self.group.as_raw() && rustix::fs::fchown(file, None, Some(self.group)).is_err() {
            // Permissions that its group may do, ours may not; and permissions that others may not do, the group may
            // not now.
            mode &= !GROUP | mode << 3;
        }
        if !self.give_access_list(file) {
            mode &= 0o700;
        }
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?;
        for (name, value) in &self.notes {
            // Not every file system has them.
            let _ = fsetxattr(file, name, value, XattrFlags::empty());
        }
        // Last: a user who has given a file away may not change its mode.
        if about.uid() != self.owner.as_raw() {
            let _ = rustix::fs::fchown(file, Some(self.owner), None);
        }
        Ok(())
    }

    /// The list, or none, whatever the directory gives to new files.
    fn give_access_list(&self, file: &File) -> bool {
        match &self.access_list {
            Some(list) => fsetxattr(file, ACCESS_LIST, list, XattrFlags::empty()).is_ok(),
            None => matches!(fremovexattr(file, ACCESS_LIST), Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP)),
        }
    }
}

/// An attribute of a file; `None` if it has none of that name, or none that we may read.
fn attribute(path: &str, name: &CStr) -> Option<Vec<u8>> {
    let mut value = vec![0; LONGEST_ATTRIBUTE];
    let len = getxattr(path, name, &mut value[..]).ok()?;
    value.truncate(len);
    Some(value)
}

fn names_of_attributes(path: &str) -> Vec<CString> {
    let mut names = vec![0; LONGEST_ATTRIBUTE];
    let len = listxattr(path, &mut names[..]).unwrap_or(0);
    names.truncate(len);
    names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).filter_map(|name| CString::new(name).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_as_readable_as_the_least_readable_that_it_repeats() {
        assert_eq!(mode_within([]), 0o666);
        assert_eq!(mode_within([0o100_644, 0o100_777]), 0o644);
        assert_eq!(mode_within([0o644, 0o640, 0o604]), 0o600);
        assert_eq!(mode_within([0o400]), 0o600);
    }
}
