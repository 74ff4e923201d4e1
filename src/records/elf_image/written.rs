//! What a file that was written is like.

use crate::model::process::BuildId;

/// A file that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The build ID: the same for the same content at the same places.
    pub build_id: BuildId,
    /// Length of the file in bytes, holes included.
    pub len: u64,
    /// What became of the content.
    pub counts: Counts,
}

/// What became of an image's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Pieces of code with a line table.
    pub with_lines: u64,
    /// Pieces of code with unwinding information.
    pub with_unwind: u64,
    /// Pieces of code whose unwinding information was malformed and left out.
    pub bad_unwind: u64,
}
