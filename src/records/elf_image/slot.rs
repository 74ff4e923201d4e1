//! The code ranges that were added to an image, the places that they get in it, and its parts of them.

use crate::model::Addr;
use crate::model::code::Code;

/// A code range added to an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub(super) u32);

/// The number of entries beyond the limit: it gets no place.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// The place of a code range in an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The offset in the file of its first byte; for perf the `pgoff` of a map that starts at that byte.
    pub offset: u64,
    /// Its virtual address in the image.
    pub addr: u64,
}

/// A code range and where it ran.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot<'a, 'data> {
    pub(super) code: &'a Code<'data>,
    pub(super) addr: Addr,
}

/// A stretch of one slot's code in the image: all of it, or what later code left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Virtual address in the image.
    pub(super) addr: u64,
    /// The offset in the code at which it starts.
    pub(super) skip: u64,
    pub(super) len: u64,
    pub(super) slot: u32,
}

impl Piece {
    pub(super) fn end(&self) -> u64 {
        self.addr + self.len
    }
}
