//! An ELF image after layout, ready to be written.

use super::layout::Layout;
use super::slot::{Slot, SlotId, SlotPiece, SlotPlace};
use super::target::Target;
use crate::model::code::Code;
use std::hint::black_box;

/// What addresses in an image mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    /// Every address is a file offset in the image.
    FileOffset,
    /// Every address is the one at which the code ran.
    RunTime,
}

/// An image after layout, ready to be written.
#[derive(Debug)]
pub struct Image<'a, 'data> {
    pub(super) target: Target,
    pub(super) addressing: Addressing,
    pub(super) slots: Vec<Slot<'a, 'data>>,
    pub(super) layout: Layout,
}

impl<'a, 'data> Image<'a, 'data> {
    /// The position of a code range in the image. `None` if the image doesn't contain it. With [`Addressing::RunTime`],
    /// the image lacks code whose start later code overwrote, or whose address is too large for the ELF class. With
    /// [`Addressing::FileOffset`], it lacks code of an absurd size, and code for which there was no room.
    pub fn place(&self, slot: SlotId) -> Option<SlotPlace> {
        self.layout.places.get(slot.0 as usize).copied().flatten()
    }

    /// Iterates over pieces, each with its code. The code of neighboring pieces is scattered all over the dump and not
    /// in the CPU's cache. Therefore the memory of several pieces is read in advance, so that the CPU waits for all of
    /// it in parallel. This saves a fifth of `inject --all-functions` with a million functions.
    pub(super) fn with_code<'i>(
        &'i self,
        pieces: &'i [SlotPiece],
    ) -> impl Iterator<Item = (&'i SlotPiece, &'a Code<'data>)> + use<'i, 'a, 'data> {
        /// How many cache lines can be loaded in parallel.
        const AT_ONCE: usize = 16;
        let code = |piece: &SlotPiece| self.slots[piece.slot as usize].code;
        pieces.chunks(AT_ONCE).flat_map(move |chunk| {
            // The results don't matter. Computing them loads memory into the cache: first the `Code` structs, then the
            // names and bytes to which they point.
            let mut touched = 0;
            for code in chunk.iter().map(code) {
                touched ^= code.size ^ code.lines.count ^ u64::from(code.unwind.is_some());
            }
            black_box(touched);
            let mut touched = 0;
            for code in chunk.iter().map(code) {
                touched ^= touch_ends(code.name) ^ code.bytes.map_or(0, touch_ends);
            }
            black_box(touched);
            chunk.iter().map(move |piece| (piece, code(piece)))
        })
    }

    /// File offset of the end of the code.
    pub fn code_end(&self) -> u64 {
        self.layout.code.end
    }

    /// Number of code ranges that were added.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if no code was added.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

/// Reads the first and the last byte, which loads them into the cache.
fn touch_ends(bytes: &[u8]) -> u8 {
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => first ^ last,
        _ => 0,
    }
}
