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

use super::typed;
use std::fs::Metadata;
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
