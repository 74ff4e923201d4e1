//! Who may read an output besides its owner.
//!
//! What is new is as readable as the umask lets it be; what repeats an input's content (stacks, code, names) is at most
//! as readable as that input. What replaces an output that was there keeps its mode and, where that is permitted, its
//! owner and group, as if it had been written over.

use super::{InPath, NewFile};
use rustix::fs::{Gid, Mode, Uid};
use std::fs::{self, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Reading and writing for all; the umask takes from it.
pub(super) const ANYBODY: u32 = 0o666;

/// What the owner may do at least.
pub(super) const OWNER: u32 = 0o600;

const STICKY: u32 = 0o1000;
const WRITABLE_BY_ALL: u32 = 0o002;

/// The mode of a file that repeats the content of files of these modes.
pub fn mode_within(inputs: impl IntoIterator<Item = u32>) -> u32 {
    inputs.into_iter().fold(ANYBODY, |mode, input| mode & (input | OWNER))
}

/// The mode of a file that repeats the content of an input: what came through a pipe is its reader's alone.
pub fn mode_of(input: &InPath) -> u32 {
    let about = match input {
        InPath::Stdin => io::stdin().as_fd().try_clone_to_owned().and_then(|stdin| fs::File::from(stdin).metadata()),
        // A recording that is a directory has it in that file.
        InPath::Path(path) if path.is_dir() => fs::metadata(path.join("data")),
        InPath::Path(path) => fs::metadata(path),
    };
    about.ok().filter(Metadata::is_file).map_or(OWNER, |about| mode_within([about.permissions().mode()]))
}

/// What an output gets from the one that it will replace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inherited {
    mode: u32,
    owner: Uid,
    group: Gid,
}

impl Inherited {
    /// From the file at a path. In a directory where anybody may put a file and none may take away another's (/tmp),
    /// nothing comes from somebody else's: it may have been put there to get at what we write.
    pub(super) fn from(path: &Path) -> Option<Self> {
        let about = fs::metadata(path).ok().filter(Metadata::is_file)?;
        let directory = fs::metadata(path.parent()?).ok()?;
        let everybodys = directory.mode() & (STICKY | WRITABLE_BY_ALL) == STICKY | WRITABLE_BY_ALL;
        let believed = [rustix::process::geteuid().as_raw(), directory.uid()];
        if everybodys && !believed.contains(&about.uid()) {
            return None;
        }
        let (owner, group) = (Uid::from_raw(about.uid()), Gid::from_raw(about.gid()));
        Some(Self { mode: about.mode() & 0o777, owner, group })
    }

    /// Gives it to a file that nobody else can open yet.
    pub(super) fn give_to(self, new: &NewFile) -> io::Result<()> {
        let Ok(about) = new.file().metadata() else { return Ok(()) };
        if about.gid() != self.group.as_raw() {
            let _ = rustix::fs::fchown(new.file(), None, Some(self.group));
        }
        rustix::fs::fchmod(new.file(), Mode::from_raw_mode(self.mode))?;
        // Last: whoever has given a file away may not change its mode.
        if about.uid() != self.owner.as_raw() {
            let _ = rustix::fs::fchown(new.file(), Some(self.owner), None);
        }
        Ok(())
    }
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
