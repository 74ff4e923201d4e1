//! Collects JIT code and builds an ELF image, or a set of them, from it.

use super::image::{Addressing, Image};
use super::layout::Layout;
use super::set::{self, ImageSet};
use super::slot::{NO_SLOT, Slot, SlotId};
use super::target::Target;
use crate::model::Addr;
use crate::model::code::Code;
use std::ops::Range;

/// Collects code ranges with [`Self::add`], and then builds one image from them ([`Self::build`]) or a set of images
/// ([`Self::build_set`]).
#[derive(Debug)]
pub struct ImageBuilder<'a, 'data> {
    target: Target,
    addressing: Addressing,
    /// True if readers of perf.data other than perf will open the image ([`Self::for_viewers`]).
    for_viewers: bool,
    slots: Vec<Slot<'a, 'data>>,
}

impl<'a, 'data> ImageBuilder<'a, 'data> {
    /// Starts an image without code.
    pub fn new(target: Target, addressing: Addressing) -> Self {
        Self { target, addressing, for_viewers: false, slots: Vec::new() }
    }

    /// Adapts the image to readers of perf.data other than perf: samply, hotspot. Requires [`Addressing::FileOffset`].
    pub fn for_viewers(self) -> Self {
        Self { for_viewers: true, ..self }
    }

    /// Adds a code range as it was at `addr`. Code that moved must be added once for each of its addresses. Code must
    /// be added in order of time: with [`Addressing::RunTime`], the last code at an address wins.
    pub fn add(&mut self, code: &'a Code<'data>, addr: Addr) -> SlotId {
        let id = u32::try_from(self.slots.len()).unwrap_or(NO_SLOT);
        if id < NO_SLOT {
            self.slots.push(Slot { code, addr });
        }
        SlotId(id)
    }

    /// Lays out a single image with all the code. Its addresses are file offsets, or the addresses at which the code
    /// ran.
    pub fn build(self) -> Image<'a, 'data> {
        let mut layout = match self.addressing {
            Addressing::FileOffset => Layout::mirror(&self.slots, self.target),
            Addressing::RunTime => Layout::run_time(&self.slots, self.target),
        };
        if self.for_viewers {
            layout.for_viewers();
        }
        Image { target: self.target, addressing: self.addressing, slots: self.slots, layout }
    }

    /// Lays out one or more images through which user stacks can be unwound. `foreign` are the addresses at which other
    /// files were ever mapped in the process.
    pub fn build_set(self, foreign: impl IntoIterator<Item = Range<u64>>) -> ImageSet<'a, 'data> {
        set::build(self.target, &self.slots, foreign)
    }
}
