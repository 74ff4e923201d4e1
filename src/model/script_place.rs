//! Places in scripts and authored files, as source maps have them.

/// Instead of the number of a file or name.
pub const NONE: u32 = u32::MAX;

/// A line and a column, both from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column, in UTF-16 units.
    pub column: u32,
}

impl Place {
    /// A place whose line and column count from 1; `None` if one is 0.
    pub fn from_one(line: u32, column: u32) -> Option<Self> {
        Some(Self { line: line.checked_sub(1)?, column: column.checked_sub(1)? })
    }
}
