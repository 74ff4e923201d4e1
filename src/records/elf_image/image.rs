//! An image whose content and places are settled.

use super::layout::Layout;
use super::slot::{Piece, Place, Slot, SlotId};
use super::target::Target;
use crate::model::code::Code;
use std::hint::black_box;

/// The kind of addresses in an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    /// The code's offset in the image.
    FileOffset,
    /// At the addresses where the code ran.
    RunTime,
}

/// An image whose content and places are settled.
#[derive(Debug)]
pub struct Image<'a, 'data> {
    pub(super) target: Target,
    pub(super) addressing: Addressing,
    pub(super) slots: Vec<Slot<'a, 'data>>,
    pub(super) layout: Layout,
}

impl<'a, 'data> Image<'a, 'data> {
    /// The place of a code range; `None` if it could not get a place: with [`Addressing::RunTime`] if later code took
    /// its start, or if its address is beyond the class; with [`Addressing::FileOffset`] if its size is absurd.
    pub fn place(&self, slot: SlotId) -> Option<Place> {
        self.layout.places.get(slot.0 as usize).copied().flatten()
    }

    /// Pieces with their code. The code of neighbors lies all over a dump, far from any cache: of a few pieces at a
    /// time all is requested at once, so that the processor waits for them together and not for one after the other.
    /// It buys a fifth of `inject --all-functions` with a million functions.
    pub(super) fn with_code<'i>(
        &'i self,
        pieces: &'i [Piece],
    ) -> impl Iterator<Item = (&'i Piece, &'a Code<'data>)> + use<'i, 'a, 'data> {
        /// The number of lines of memory that can be under way.
        const AT_ONCE: usize = 16;
        let code = |piece: &Piece| self.slots[piece.slot as usize].code;
        pieces.chunks(AT_ONCE).flat_map(move |some| {
            let sizes =
                some.iter().map(code).map(|code| code.size ^ code.lines.count ^ u64::from(code.unwind.is_some()));
            black_box(sizes.fold(0, std::ops::BitXor::bitxor));
            let ends = |bytes: &[u8]| bytes.first().zip(bytes.last()).map_or(0, |(first, last)| first ^ last);
            let bytes = some.iter().map(code).map(|code| ends(code.name) ^ code.bytes.map_or(0, ends));
            black_box(bytes.fold(0, std::ops::BitXor::bitxor));
            some.iter().map(move |piece| (piece, code(piece)))
        })
    }

    /// The end of its code in the file.
    pub fn code_end(&self) -> u64 {
        self.layout.code.end
    }

    /// The number of code ranges were added.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if there is no code in it.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}
