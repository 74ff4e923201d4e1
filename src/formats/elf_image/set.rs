//! Several images for the code of one process, each of which looks like a library to perf's unwinders.

use super::file::{SEGMENTS, header_size};
use super::layout::apart::{Group, Ranges, groups};
use super::layout::{FramesAt, Layout, Slot};
use super::{Addressing, Image, Place, SlotId, Target, eh_frame};
use std::ops::Range;

/// The images of one process.
#[derive(Debug)]
pub struct ImageSet<'a, 'data> {
    images: Vec<(Image<'a, 'data>, Vec<Helper>)>,
    /// By slot: which image, and which slot in it.
    slots: Vec<Option<(u32, SlotId)>>,
}

/// Something of an image, beside code, that must be mapped for libunwind: as long as code of the image is mapped, and
/// like it again after another map covered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Helper {
    /// First address.
    pub addr: u64,
    /// Length in bytes.
    pub len: u64,
    /// Offset in the image.
    pub offset: u64,
}

impl<'a, 'data> ImageSet<'a, 'data> {
    /// The images; none if there is no code.
    pub fn images(&self) -> impl ExactSizeIterator<Item = &Image<'a, 'data>> {
        self.images.iter().map(|(image, _)| image)
    }

    /// What else of an image must be mapped; nothing if the image has no unwinding information.
    pub fn helpers(&self, image: usize) -> &[Helper] {
        self.images.get(image).map_or(&[], |(_, helpers)| helpers)
    }

    /// In which image a piece of code is, and where; `None` as with [`Image::place`].
    pub fn place(&self, slot: SlotId) -> Option<(usize, Place)> {
        let (image, slot) = self.slots.get(slot.0 as usize).copied().flatten()?;
        let (of, _) = self.images.get(image as usize)?;
        Some((image as usize, of.place(slot)?))
    }
}

pub(super) fn build<'a, 'data>(
    target: Target,
    slots: &[Slot<'a, 'data>],
    foreign: impl IntoIterator<Item = Range<u64>>,
) -> ImageSet<'a, 'data> {
    let foreign = Ranges::new(foreign);
    let groups = groups(slots, &foreign);
    let code = Ranges::new(groups.iter().filter_map(|group| group.span.clone()));
    let mut set = ImageSet { images: Vec::new(), slots: vec![None; slots.len()] };
    for (index, group) in groups.iter().enumerate() {
        for (place, &slot) in group.slots.iter().enumerate() {
            set.slots[slot as usize] = Some((index as u32, SlotId(place as u32)));
        }
        let own: Vec<Slot> = group.slots.iter().map(|&slot| slots[slot as usize]).collect();
        let (layout, helpers) = plan(target, &own, group, &|range| !foreign.touch(range) && !code.touch(range));
        set.images.push((Image::new(target, Addressing::FileOffset, own, layout), helpers));
    }
    set
}

/// The layout of one image, and what else of it must be mapped. `free` tells addresses where no code ever was.
fn plan(target: Target, slots: &[Slot], group: &Group, free: &dyn Fn(&Range<u64>) -> bool) -> (Layout, Vec<Helper>) {
    let header = header_size(target, SEGMENTS);
    let Some(span) = &group.span else { return (Layout::mirror(slots, target), Vec::new()) };
    let frames = eh_frame::measure(target, slots);
    // In front: header, table and code are one piece of the address space.
    let front = header + frames.len.next_multiple_of(16) + span.start % 16;
    if frames.any
        && let Some(base) = span.start.checked_sub(front)
        && free(&(base..span.start))
    {
        let layout = Layout::one_region(slots, target, base, FramesAt::InFront(frames.len));
        return (layout, vec![Helper { addr: base, len: front, offset: 0 }]);
    }
    let front = header + span.start % 16;
    let Some(base) = span.start.checked_sub(front) else { return (Layout::mirror(slots, target), Vec::new()) };
    // An empty table makes libunwind go on by frame pointers. Runtimes that leave only names seldom keep them, and
    // every stack would end in a frame from nowhere (MoarVM).
    let named_only = slots.iter().all(|slot| slot.code.bytes.is_none());
    let frames_at = if named_only { FramesAt::Behind } else { FramesAt::BehindAlways };
    let layout = Layout::one_region(slots, target, base, frames_at);
    let at = layout.code.end.next_multiple_of(8);
    let behind = base.saturating_add(at)..base.saturating_add(at).saturating_add(frames.len);
    let mut helpers = Vec::new();
    if frames.any && free(&behind) {
        helpers.push(Helper { addr: base, len: 1, offset: 0 });
        helpers.push(Helper { addr: behind.start, len: frames.len, offset: at });
    }
    (layout, helpers)
}
