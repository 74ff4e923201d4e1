//! The facts about a file that was written.

use crate::model::process::BuildId;

/// A file that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The build ID: the same for the same content at the same places.
    pub build_id: BuildId,
    /// Length of the file in bytes, holes included.
    pub len: u64,
    /// The counts of the content.
    pub counts: Counts,
}

/// The counts of an image's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Code ranges with a line table.
    pub with_lines: u64,
    /// Code ranges with unwinding information.
    pub with_unwind: u64,
    /// Code ranges whose unwinding information was malformed and left out.
    pub bad_unwind: u64,
}
