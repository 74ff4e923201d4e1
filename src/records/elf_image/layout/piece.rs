//! The image's part of a code range.

/// A stretch of one slot's code in the image: all of it, or what later code left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Piece {
    /// Virtual address in the image.
    pub(in super::super) addr: u64,
    /// The offset in the code at which it starts.
    pub(in super::super) skip: u64,
    pub(in super::super) len: u64,
    pub(in super::super) slot: u32,
}

impl Piece {
    pub(super) fn end(&self) -> u64 {
        self.addr + self.len
    }
}
