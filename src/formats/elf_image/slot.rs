//! Types for the code ranges that were added to an image, and for their positions in it.

use crate::model::Addr;
use crate::model::code::Code;

/// Identifies a code range that was added to an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub(super) u32);

/// The ID of a code range that couldn't be added, because there were too many before it.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// The position of a code range in an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotPlace {
    /// File offset of the first byte. For perf: the `pgoff` of a map whose first byte is the first byte of the code.
    pub offset: u64,
    /// Virtual address in the image.
    pub addr: u64,
}

/// A code range that was added to an image, and the address at which it ran.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot<'a, 'data> {
    pub(super) code: &'a Code<'data>,
    pub(super) addr: Addr,
}

/// A part of a slot's code in the image: all of it, or a part that later code at the same addresses didn't overwrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotPiece {
    /// Virtual address in the image.
    pub(super) addr: u64,
    /// Offset in the slot's code at which the piece starts.
    pub(super) skip: u64,
    pub(super) len: u64,
    /// Index of the slot that the code is from.
    pub(super) slot: u32,
}

impl SlotPiece {
    pub(super) fn end(&self) -> u64 {
        self.addr + self.len
    }
}
