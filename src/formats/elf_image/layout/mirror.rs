//! The layout for perf: file offsets mirror the address space, so that `address - offset` is the same for as much code
//! as possible.
//!
//! ```text
//! process:      ──[ region A ]──────── far away ────────[ region B ]──
//! image: [header][A, layer 0][A, layer 1][B, layer 0] … [packed] [.eh_frame] …
//! ```
//!
//! A region is code without large gaps. Distances within it are preserved, so disassembled calls show their targets. If
//! addresses were reused, the image has another mirror (layer) of the region for each use. Code that doesn't fit,
//! because its addresses were reused too often or it is spread too widely, is packed at the end. The space between code
//! ranges is a hole in the file.

use crate::formats::elf_image::slot::{Slot, SlotPiece, SlotPlace};
use crate::model::Addr;
use std::ops::Range;

/// Code ranges belong to different regions of the image if there are at least this many bytes between them. A larger
/// hole would make the file look large.
pub(super) const REGION_GAP: u64 = 1 << 24;

/// The mirrors of all regions together may span this many bytes. Code beyond that is packed.
pub(super) const MIRROR_LIMIT: u64 = 1 << 30;

/// Limit in bytes of the code in an image: `.eh_frame_hdr` and 32-bit programs need offsets of 31 bits. Unwinding and
/// debug information follow after the code. Code that doesn't fit (after about 1.8 GB of sampled code) isn't in the
/// image.
const IMAGE_LIMIT: u64 = 0x7000_0000;

/// The largest number of layers of a region. Code at an address that was used more often is packed.
pub(super) const MAX_LAYERS: u8 = 8;

/// Limit for the size of a code range in bytes. Longer code can only come from a damaged source, and is left out.
const MAX_CODE_LEN: u64 = MIRROR_LIMIT;

const PAGE: u64 = 4096;

/// A slot with its address, length and layer, for sorting by address.
pub(super) struct Item {
    pub(super) addr: u64,
    pub(super) len: u64,
    /// Index of the slot.
    pub(super) slot: u32,
    /// 0 for the first use of these addresses, 1 for the second, …; [`MAX_LAYERS`] if there were too many uses.
    pub(super) layer: u8,
}

/// A region: a range of addresses, and how many layers its code needs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MirrorRegion {
    start: u64,
    end: u64,
    layers: u64,
    /// Indices of the region's items.
    items: Range<usize>,
}

impl MirrorRegion {
    /// The length of one mirror of the region in the file, extended to whole pages at both ends.
    fn stride(&self) -> u64 {
        (self.end - (self.start & !(PAGE - 1))).next_multiple_of(PAGE).max(PAGE)
    }

    /// The length of all mirrors of the region together.
    fn len(&self) -> u64 {
        self.stride().saturating_mul(self.layers)
    }
}

/// Lays out the code of all slots from file offset `header` on, one region (code without large gaps) after the other. A
/// mirror is a part of the file in which a region's code has the same distances as in memory. If addresses of a region
/// were reused, each use (layer) has a mirror of its own. Code that doesn't fit is packed after all mirrors. Returns
/// where each slot's code is, and the pieces sorted by offset.
pub(super) fn place_slots(slots: &[Slot], header: u64) -> (Vec<Option<SlotPlace>>, Vec<SlotPiece>) {
    let items = sorted_items(slots);
    let mut offsets = vec![None; slots.len()];
    let mut next = header.next_multiple_of(PAGE);
    let mirrors_end = next + MIRROR_LIMIT;
    let mut packed = Vec::new();
    for region in find_regions(&items) {
        // `len` is the length of all mirrors of the region together, `stride` that of one mirror.
        let fits = next + region.len() <= mirrors_end;
        for item in &items[region.items.clone()] {
            if !fits || item.layer >= MAX_LAYERS {
                packed.push(item.slot);
            } else {
                // A mirror starts with the whole page of the region's first code, so code keeps its offset in the page.
                let mirror = next + u64::from(item.layer) * region.stride();
                offsets[item.slot as usize] = Some(mirror + (item.addr - (region.start & !(PAGE - 1))));
            }
        }
        if fits {
            next += region.len();
        }
    }
    pack(slots, packed, next, &mut offsets);
    to_places(slots, offsets)
}

/// Lays out code that forms a single region with a single layer: each slot's file offset is its address minus `base`.
/// Returns the same lists as [`place_slots`].
pub(super) fn place_one_region(slots: &[Slot], base: u64) -> (Vec<Option<SlotPlace>>, Vec<SlotPiece>) {
    to_places(slots, slots.iter().map(|slot| Some(slot.addr.0.wrapping_sub(base))).collect())
}

/// Converts file offsets to the two lists of a [`Layout`](super::Layout). `offsets` has the offset of each slot's code
/// in the image, or `None` for code that isn't in the image. Returns the [`SlotPlace`] of each slot, and the
/// [`SlotPiece`]s of code in the image, sorted by address. In this layout, each slot's code is a single piece, and an
/// address in the image is equal to the file offset.
fn to_places(slots: &[Slot], offsets: Vec<Option<u64>>) -> (Vec<Option<SlotPlace>>, Vec<SlotPiece>) {
    let mut pieces = Vec::with_capacity(slots.len());
    for (index, (slot, offset)) in slots.iter().zip(&offsets).enumerate() {
        if let Some(offset) = *offset {
            pieces.push(SlotPiece { addr: offset, skip: 0, len: slot.code.size, slot: index as u32 });
        }
    }
    pieces.sort_unstable_by_key(|piece| (piece.addr, piece.len, piece.slot));
    let places = offsets.into_iter().map(|offset| offset.map(|offset| SlotPlace { offset, addr: offset }));
    (places.collect(), pieces)
}

/// All slots of plausible size with their layers (0 for the first use of an address, 1 for the second), sorted by
/// address and then by the order of adding.
pub(super) fn sorted_items(slots: &[Slot]) -> Vec<Item> {
    let mut items = Vec::with_capacity(slots.len());
    for (index, &Slot { code, addr: Addr(addr) }) in slots.iter().enumerate() {
        let end = addr.checked_add(code.size);
        // One page less than the whole address space, so that rounding up to pages can't overflow.
        if code.size <= MAX_CODE_LEN && end.is_some_and(|end| end < u64::MAX - PAGE) {
            items.push(Item { addr, len: code.size, slot: index as u32, layer: 0 });
        }
    }
    items.sort_unstable_by_key(|item| (item.addr, item.slot));
    assign_layers(&mut items);
    items
}

/// Assigns each item the lowest layer in which no earlier item overlaps it. Items must be sorted by address. If there
/// is no such layer, the item gets [`MAX_LAYERS`], which means that it is packed.
fn assign_layers(items: &mut [Item]) {
    // For each layer, the end of its last item.
    let mut ends = [0_u64; MAX_LAYERS as usize];
    for item in items {
        let free_layer = ends.iter().position(|&end| end <= item.addr);
        item.layer = free_layer.map_or(MAX_LAYERS, |layer| layer as u8);
        if let Some(layer) = free_layer {
            ends[layer] = item.addr + item.len;
        }
    }
}

/// Groups code into regions, separated by gaps of [`REGION_GAP`] or more.
fn find_regions(items: &[Item]) -> Vec<MirrorRegion> {
    let mut regions: Vec<MirrorRegion> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let end = item.addr + item.len;
        // An item that will be packed (layer `MAX_LAYERS`) overlaps one in each layer, so the region has all layers.
        let layers = u64::from(item.layer.min(MAX_LAYERS - 1)) + 1;
        match regions.last_mut() {
            Some(last) if item.addr < last.end.saturating_add(REGION_GAP) => {
                last.end = last.end.max(end);
                last.layers = last.layers.max(layers);
                last.items.end = index + 1;
            }
            _ => regions.push(MirrorRegion { start: item.addr, end, layers, items: index..index + 1 }),
        }
    }
    regions
}

/// Packs the code of the slots in `packed` one after the other from file offset `start` on, aligned to 16 bytes as in
/// most code heaps, and stores the offset of each in `offsets`. Code that would end beyond [`IMAGE_LIMIT`] gets no
/// offset.
fn pack(slots: &[Slot], mut packed: Vec<u32>, start: u64, offsets: &mut [Option<u64>]) {
    packed.sort_unstable();
    let mut next = start;
    for slot in packed {
        next = next.next_multiple_of(16);
        let end = next.saturating_add(slots[slot as usize].code.size);
        if end <= IMAGE_LIMIT {
            offsets[slot as usize] = Some(next);
            next = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{named, slots};
    use super::*;

    fn offsets(codes: &[crate::model::code::Code<'static>], addresses: &[u64]) -> Vec<Option<u64>> {
        let (places, pieces) = place_slots(&slots(codes, addresses), 0x180);
        assert!(pieces.windows(2).all(|pair| pair[0].end() <= pair[1].addr), "they overlap: {pieces:?}");
        places.into_iter().map(|place| place.map(|place| place.offset)).collect()
    }

    #[test]
    fn a_region_keeps_its_distances_and_code_at_used_addresses_gets_another_layer() {
        let codes = [named(0x100); 4];
        let found = offsets(&codes, &[0x7f00_0040, 0x7f00_9000, 0x7f00_0080, 0x5000_0000_0010]);
        assert_eq!(found, [Some(0x1040), Some(0xa000), Some(0x1080 + 0xa000), Some(0x1_5010)]);
    }

    #[test]
    fn an_item_that_does_not_fit_into_mirrors_is_packed() {
        let codes = vec![named(0x18); 12];
        let found = offsets(&codes, &[0x4000; 12]);
        let packed_at = 0x1000 + 8 * 0x1000;
        assert_eq!(found[7..10], [Some(0x8000), Some(packed_at), Some(packed_at + 0x20)]);
    }

    #[test]
    fn absurd_sizes_get_no_place() {
        let codes = [named(u64::MAX), named(1 << 40), named(16), named(1 << 30), named(1 << 30), named(1 << 30)];
        let found = offsets(&codes, &[0x1000, 0x2000, 0x3000, 1 << 40, 1 << 41, u64::MAX - 8]);
        assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true, true, false, false]);
    }
}
