//! Determines which users may read an output, besides its owner.
//!
//! | new output | readable by |
//! |---|---|
//! | [`Content::Summary`]: pictures, tables, folded stacks, reports | everybody whom the umask permits |
//! | [`Content::OfInputs`]: converted profiles, machine code, source text | users whom the umask permits and who may read all inputs |
//! | [`Content::OwnersAlone`]: archives | the owner |
//!
//! An input that others can't reach because of a directory on the way counts as readable by its owner only. An output
//! that replaces a file keeps the file's mode, access control list, extended attributes and, if permitted, owner and
//! group, as if the file had been overwritten, because the user named it. If the user didn't name it, it is readable by
//! no more users than a new output.

use super::typed;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Read and write permissions for everybody, before the umask is applied.
pub(super) const ANYBODY: u32 = 0o666;

/// The permissions that the owner of an output always has: read and write.
pub(super) const OWNER: u32 = 0o600;

/// All permissions that a replaced file can pass on to the output.
pub(super) const ANY_MODE: u32 = 0o777;

/// The owner's execute permission. If an output replaces an executable file, it becomes executable, too.
const OWNERS_EXECUTION: u32 = 0o100;

/// What an output contains, which determines who may read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Only names and numbers, such as a report or a flame graph.
    Summary,
    /// Data copied from the inputs, such as a converted profile.
    OfInputs,
    /// Like `OfInputs`, for an output whose path jitgraft chose, not the user. If it replaces a file, it doesn't get
    /// wider permissions from that file.
    OfInputsUnnamed,
    /// Possibly more than the user is aware of, such as an archive of many files. Only the owner may read it.
    OwnersAlone,
}

impl Content {
    /// The permissions that a new output is created with, before the umask is applied. Until all inputs are known, only
    /// summaries are readable by others.
    pub(super) fn initial_mode(self) -> u32 {
        if self == Self::Summary { ANYBODY } else { OWNER }
    }

    /// The permissions of a complete output. `own` are its current ones: those it was created with or, if it `replaces`
    /// a file, those of that file. `inputs` are the permissions that all inputs have in common. Data copied from the
    /// inputs doesn't become readable by others than the inputs, except that the user may have chosen to replace a file
    /// with wider permissions.
    pub(super) fn final_mode(self, own: u32, replaces: bool, inputs: u32) -> u32 {
        match self {
            Self::Summary => own,
            // Whatever the mode was, only the owner keeps permissions.
            Self::OwnersAlone => own & (OWNER | OWNERS_EXECUTION),
            Self::OfInputsUnnamed if replaces => own & (inputs | OWNER | OWNERS_EXECUTION),
            // The user named the replaced file, so its permissions stay, even if they are wider than the inputs'.
            Self::OfInputs if replaces => own,
            Self::OfInputs | Self::OfInputsUnnamed => inputs & !umask(),
        }
    }
}

/// The permissions of a file whose path the user typed. If others can't reach the file, only the owner's permissions
/// are kept.
pub(super) fn mode_of_typed(path: &Path, about: &Metadata) -> u32 {
    mode_if(about.mode(), typed::is_reachable(path))
}

/// The mode of a file. If others can't reach the file, only the owner's permissions are kept.
pub(super) fn mode_if(mode: u32, is_reachable: bool) -> u32 {
    const OWNERS: u32 = 0o700;
    if is_reachable { mode } else { mode & OWNERS }
}

/// This process's umask: the permissions that new files don't get. If it can't be read, all permissions except the
/// owner's.
fn umask() -> u32 {
    let status = typed::read_system_text(Path::new("/proc/self/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok()).unwrap_or(0o077)
}

/// The permissions that all these modes have in common. A file with data of several files should get no others.
pub fn common_mode(inputs: impl IntoIterator<Item = u32>) -> u32 {
    inputs.into_iter().fold(ANYBODY, |mode, input| mode & (input | OWNER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_as_readable_as_the_least_readable_that_it_repeats() {
        assert_eq!(common_mode([]), 0o666);
        assert_eq!(common_mode([0o100_644, 0o100_777]), 0o644);
        assert_eq!(common_mode([0o644, 0o640, 0o604]), 0o600);
        assert_eq!(common_mode([0o400]), 0o600);
    }
}
