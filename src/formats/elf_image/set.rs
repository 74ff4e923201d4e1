//! A set of images for one process. Each looks like a shared library to perf's unwinders.
//!
//! An image has a *base*: the address that its first byte would have in the process. The base decides where the code
//! goes in the image, because perf's unwinders take `address - base` for the offset of everything in a library. If
//! addresses were reused, several images stand for the same range, one per use. These images must have the same base:
//! libdw then keeps the first image that it sees for the range, instead of refusing to unwind any further
//! ([`layout::apart`](super::layout::apart)).

use super::eh_frame;
use super::image::{Addressing, Image};
use super::layout::apart::{Group, Ranges, group_slots};
use super::layout::{FramesAt, Layout};
use super::slot::{Slot, SlotId, SlotPlace};
use super::target::{SEGMENTS, Target};
use std::ops::Range;

/// The images of one process.
#[derive(Debug)]
pub struct ImageSet<'a, 'data> {
    /// The images, each with the parts that must be mapped in addition to its code.
    images: Vec<(Image<'a, 'data>, Vec<AuxMapping>)>,
    /// For each code range of the set: the index of its image, and its slot in that image. `None` for code of an absurd
    /// size, which is in no image.
    slots: Vec<Option<(u32, SlotId)>>,
}

/// A part of an image that contains no code (the header, the unwinding table) but must be mapped, because libunwind
/// reads it through the process's maps. It is mapped whenever code of the image is mapped, and again after another map
/// covered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuxMapping {
    /// First address.
    pub addr: u64,
    /// Length in bytes.
    pub len: u64,
    /// Offset of the mapped part in the image.
    pub offset: u64,
}

impl<'a, 'data> ImageSet<'a, 'data> {
    /// The images; none if there is no code.
    pub fn images(&self) -> impl ExactSizeIterator<Item = &Image<'a, 'data>> {
        self.images.iter().map(|(image, _)| image)
    }

    /// The parts of an image that contain no code but must be mapped. Empty if the image has no unwinding information.
    pub fn aux_mappings(&self, image: usize) -> &[AuxMapping] {
        self.images.get(image).map_or(&[], |(_, aux_mappings)| aux_mappings)
    }

    /// Index of the image that contains a code range, and where the code is in it. `None` in the same cases as
    /// [`Image::place`].
    pub fn place(&self, slot: SlotId) -> Option<(usize, SlotPlace)> {
        let (index, slot) = self.slots.get(slot.0 as usize).copied().flatten()?;
        let (image, _) = self.images.get(index as usize)?;
        Some((index as usize, image.place(slot)?))
    }
}

/// Divides the code into images, and plans where everything goes in each of them. `slots` is all the code, with the
/// addresses at which it ran; `foreign` are the addresses of other files, which no image may overlap.
pub(super) fn build<'a, 'data>(
    target: Target,
    slots: &[Slot<'a, 'data>],
    foreign: impl IntoIterator<Item = Range<u64>>,
) -> ImageSet<'a, 'data> {
    let foreign = Ranges::new(foreign);
    let groups = group_slots(slots, &foreign);
    let code = Ranges::new(groups.iter().filter_map(|group| group.span.clone()));
    let is_free = |range: &Range<u64>| !foreign.overlap(range) && !code.overlap(range);
    let mut set = ImageSet { images: Vec::new(), slots: vec![None; slots.len()] };
    // The address range of the previous image's code, and the image's base: the address that its first byte would have
    // in the process. If addresses were reused, each use is a group, and these groups have the same range. Their images
    // must have the same base. It is enough to look at the previous image, since the groups of a range follow each
    // other.
    let mut previous: Option<(Range<u64>, u64)> = None;
    for (image_index, group) in groups.iter().enumerate() {
        let mut image_slots = Vec::with_capacity(group.slots.len());
        for &slot in &group.slots {
            set.slots[slot as usize] = Some((image_index as u32, SlotId(image_slots.len() as u32)));
            image_slots.push(slots[slot as usize]);
        }
        let shared_base = match (&previous, &group.span) {
            (Some((previous_span, base)), Some(span)) if previous_span == span => Some(*base),
            _ => None,
        };
        let plan = plan_image(target, &image_slots, group, shared_base, &is_free);
        previous = group.span.clone().zip(plan.base);
        let image = Image { target, addressing: Addressing::FileOffset, slots: image_slots, layout: plan.layout };
        set.images.push((image, plan.aux_mappings));
    }
    set
}

/// Where everything goes in one image of a set, and where the image goes in the process.
struct ImagePlan {
    layout: Layout,
    /// The address that the image's first byte would have in the process; `None` if its code has no common base.
    base: Option<u64>,
    /// Parts of the image that contain no code, but must be mapped for libunwind whenever code of the image is mapped.
    aux_mappings: Vec<AuxMapping>,
}

/// Plans the image for a group of neighboring code: where the unwinding information (the table) goes, and the image's
/// base address. `slots` has the group's code. If an image of the same address range was planned before, `shared_base`
/// is that image's base; only that image's header and table are then mapped. `is_free` returns true for a range of
/// addresses in which neither code nor another file ever was.
fn plan_image(
    target: Target,
    slots: &[Slot],
    group: &Group,
    shared_base: Option<u64>,
    is_free: &dyn Fn(&Range<u64>) -> bool,
) -> ImagePlan {
    let header = target.header_size(SEGMENTS);
    // Code without a common range of addresses can't be unwound through an image.
    let Some(span) = &group.span else { return ImagePlan::mirror(slots, target) };
    let frames = eh_frame::measure(target, slots);
    // First try to put header and table directly before the code, so that all three form one range of addresses.
    // `front` is their length. The code keeps its alignment to 16 bytes.
    let front = header + frames.len.next_multiple_of(16) + span.start % 16;
    if frames.has_entries
        && shared_base.is_none()
        && let Some(base) = span.start.checked_sub(front)
        && is_free(&(base..span.start))
    {
        let layout = Layout::one_region(slots, target, base, span, FramesAt::BeforeCode(frames.len));
        // Header and table contain no code, but libunwind finds them only if they are mapped, too (`aux_mappings`).
        return ImagePlan {
            layout,
            base: Some(base),
            aux_mappings: vec![AuxMapping { addr: base, len: front, offset: 0 }],
        };
    }
    // Otherwise only the header goes before the code, and the table after it.
    let front = header + span.start % 16;
    let Some(base) = shared_base.or(span.start.checked_sub(front)) else { return ImagePlan::mirror(slots, target) };
    // With an empty table, libunwind goes on by frame pointers. Code of which only names are known gets no table: its
    // runtime rarely keeps frame pointers, so every stack would end in a bogus frame (MoarVM). But an image that
    // replaces a file gets a table in any case, because stacks that the file's own table could unwind must not end
    // there (Node.js's builtins, which do keep frame pointers).
    let has_names_only = slots.iter().all(|slot| slot.code.bytes.is_none());
    let needs_table = group.in_file || !has_names_only;
    let frames_at = if needs_table { FramesAt::AfterCodeAlways } else { FramesAt::AfterCode };
    let layout = Layout::one_region(slots, target, base, span, frames_at);
    let table_offset = layout.code.end.next_multiple_of(8);
    let table_addr = base.saturating_add(table_offset);
    let mut aux_mappings = Vec::new();
    if frames.has_entries && shared_base.is_none() && is_free(&(table_addr..table_addr.saturating_add(frames.len))) {
        // A mapping of one byte is enough for libunwind to find where the image starts.
        aux_mappings.push(AuxMapping { addr: base, len: 1, offset: 0 });
        aux_mappings.push(AuxMapping { addr: table_addr, len: frames.len, offset: table_offset });
    }
    ImagePlan { layout, base: Some(base), aux_mappings }
}

impl ImagePlan {
    /// A plan for code without a common base. Such an image has no unwinding information.
    fn mirror(slots: &[Slot], target: Target) -> Self {
        Self { layout: Layout::mirror(slots, target), base: None, aux_mappings: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::named;
    use super::*;
    use crate::bytes::cursor::Endian;
    use crate::formats::elf_image::ImageBuilder;
    use crate::model::Addr;
    use std::io::Cursor;

    #[test]
    fn all_images_of_a_stretch_have_one_base_and_one_length() {
        let codes = [named(0x100), named(0x40), named(0x80)];
        let target = Target { machine: 62, is_64: true, endian: Endian::Little };
        let mut builder = ImageBuilder::new(target, Addressing::FileOffset);
        // The second code replaces part of the first; the third lies between their ends.
        let slots = [0x7000, 0x70c0, 0x7200].map(Addr);
        let ids: Vec<SlotId> = slots.iter().zip(&codes).map(|(&addr, code)| builder.add(code, addr)).collect();
        let set = builder.build_set([]);
        let places: Vec<_> = ids.iter().filter_map(|&id| set.place(id)).collect();
        assert_eq!(places.iter().map(|(image, _)| *image).collect::<Vec<_>>(), [0, 1, 0]);
        let bases = places.iter().zip(slots).map(|((_, place), addr)| addr.0 - place.offset);
        assert_eq!(bases.collect::<std::collections::BTreeSet<_>>().len(), 1);
        let ends: Vec<u64> = set.images().map(|image| image.layout.code.end).collect();
        assert_eq!(ends[0], ends[1]);
        for image in set.images() {
            image.write(&mut Cursor::new(Vec::new())).unwrap();
        }
    }

    #[test]
    fn only_in_the_place_of_a_file_do_names_have_a_table() {
        let code = named(0x100);
        let target = Target { machine: 62, is_64: true, endian: Endian::Little };
        let mut builder = ImageBuilder::new(target, Addressing::FileOffset);
        builder.add(&code, Addr(0x7000));
        builder.add(&code, Addr(0x7000_0000));
        let set = builder.build_set(Some(0x6000..0x8000));
        let frames: Vec<&FramesAt> = set.images().map(|image| &image.layout.frames).collect();
        assert_eq!(frames, [&FramesAt::AfterCodeAlways, &FramesAt::AfterCode]);
    }
}
