//! The changes between the versions of the format.

use crate::error::{Error, Result};

/// Bytes of an event with ids of 4 bytes.
pub(super) const NARROW: usize = 24;

/// Bytes of an event with ids of 8 bytes.
pub(super) const WIDE: usize = 32;

/// The widths that changed between versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VersionLayout {
    /// Bytes of an event: [`NARROW`] or [`WIDE`].
    pub(super) event: usize,
    /// Bytes of a string id: 4 or 8.
    pub(super) id: usize,
    /// True if the second highest end value marks an integer; before version 8 it was a time.
    pub(super) integers: bool,
}

impl VersionLayout {
    pub(super) fn of(version: u32) -> Result<Self> {
        match version {
            0..7 => Err(Error::new(format!(
                "measureme file version {version} is older than supported (7 to 9): record again with a newer compiler"
            ))),
            7 | 8 => Ok(Self { event: NARROW, id: 4, integers: version == 8 }),
            9 => Ok(Self { event: WIDE, id: 8, integers: true }),
            _ => Err(Error::new(format!("measureme file version {version} is newer than supported (7 to 9)"))),
        }
        .map_err(|error| error.at(4))
    }
}
