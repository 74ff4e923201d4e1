//! The attributes that an output takes over from the file that it replaces.

use super::NewFile;
use super::door::Place;
use super::modes::ANY_MODE;
use rustix::fs::{Gid, Mode, Uid, XattrFlags, fremovexattr, fsetxattr, getxattr, listxattr};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

const GROUP: u32 = 0o070;
const STICKY: u32 = 0o1000;
const WRITABLE_BY_ALL: u32 = 0o002;

/// The attributes of an existing file that an output replaces, for the output to take over.
#[derive(Debug)]
pub(super) struct FileAttributes {
    mode: u32,
    owner: Uid,
    group: Gid,
    /// The access control list (acl(5)).
    access_list: Option<Vec<u8>>,
    /// Names and values of the extended attributes in the `user` namespace (xattr(7), `user.*`).
    user_attributes: Vec<(CString, Vec<u8>)>,
}

/// Linux's maximum length of an attribute, and of the list of attribute names.
const LONGEST_ATTRIBUTE: usize = 1 << 16;

const ACCESS_LIST: &CStr = c"system.posix_acl_access";

impl FileAttributes {
    /// Reads the attributes of an existing file. `None` if a stranger may have put it there to get access to the
    /// output: the directory is like /tmp, where everybody can create files but not replace those of others, and the
    /// file belongs to neither the current user nor the directory's owner.
    pub(super) fn read(existing: &Place, directory: &File) -> Option<Self> {
        let (about, directory) = (&existing.about, directory.metadata().ok()?);
        let is_like_tmp = directory.mode() & (STICKY | WRITABLE_BY_ALL) == STICKY | WRITABLE_BY_ALL;
        let trusted_owners = [rustix::process::geteuid().as_raw(), directory.uid()];
        if is_like_tmp && !trusted_owners.contains(&about.uid()) {
            return None;
        }
        let (owner, group) = (Uid::from_raw(about.uid()), Gid::from_raw(about.gid()));
        // The file isn't open for reading, so its attributes are read by the path of its descriptor.
        let path = format!("/proc/self/fd/{}", existing.file.as_raw_fd());
        let access_list = attribute(&path, ACCESS_LIST);
        let mut user_attributes = Vec::new();
        for name in names_of_attributes(&path) {
            if name.to_bytes().starts_with(b"user.")
                && let Some(value) = attribute(&path, &name)
            {
                user_attributes.push((name, value));
            }
        }
        Some(Self { mode: about.mode() & ANY_MODE, owner, group, access_list, user_attributes })
    }

    /// Gives these attributes to a new file, which nobody else can open yet. If some can't be set, fewer users can read
    /// or write the new file than the old one, never more.
    pub(super) fn apply_to(self, new: &NewFile) -> io::Result<()> {
        let (file, mut mode) = (new.file(), self.mode);
        let Ok(about) = file.metadata() else { return Ok(()) };
        if about.gid() != self.group.as_raw() && rustix::fs::fchown(file, None, Some(self.group)).is_err() {
            // The new file stays in another group than the old one. Its group gets only permissions that both the old
            // group and all other users had. (`<< 3` moves the others' permissions to where the group's are.)
            mode &= !GROUP | mode << 3;
        }
        // Without the access control list, the mode's group permissions would apply to other users than before, so keep
        // only the owner's.
        if !self.give_access_list(file) {
            mode &= 0o700;
        }
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?;
        for (name, value) in &self.user_attributes {
            // Ignore an error: some file systems don't support attributes.
            let _ = fsetxattr(file, name, value, XattrFlags::empty());
        }
        // The owner comes last, because a user can't change the mode of a file that belongs to somebody else.
        if about.uid() != self.owner.as_raw() {
            let _ = rustix::fs::fchown(file, Some(self.owner), None);
        }
        Ok(())
    }

    /// Sets the access control list. If there is none, removes the one that the new file inherited from its directory.
    /// False on failure.
    fn give_access_list(&self, file: &File) -> bool {
        match &self.access_list {
            Some(list) => fsetxattr(file, ACCESS_LIST, list, XattrFlags::empty()).is_ok(),
            None => matches!(fremovexattr(file, ACCESS_LIST), Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP)),
        }
    }
}

/// An extended attribute of a file; `None` if it is absent or we may not read it.
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
