//! An image whose content and places are settled.

use super::layout::Layout;
use super::slot::{Place, Slot, SlotId};
use super::target::Target;

/// What the addresses in an image are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    /// The code's offset in the image.
    FileOffset,
    /// Where the code ran.
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
    pub(super) fn new(target: Target, addressing: Addressing, slots: Vec<Slot<'a, 'data>>, layout: Layout) -> Self {
        Self { target, addressing, slots, layout }
    }

    /// Where a piece of code is; `None` if it could not get a place: with [`Addressing::RunTime`] if later code took
    /// its start, or if its address is beyond the class; with [`Addressing::FileOffset`] if its size is absurd.
    pub fn place(&self, slot: SlotId) -> Option<Place> {
        self.layout.places.get(slot.0 as usize).copied().flatten()
    }

    /// Where in the file its code ends.
    pub fn code_end(&self) -> u64 {
        self.layout.code.end
    }

    /// How many pieces of code were added.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no code in it.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}
