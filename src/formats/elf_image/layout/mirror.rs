//! The layout for perf: file offsets that mirror the address space, so that `address - offset` is one number for as
//! much code as possible.
//!
//! ```text
//! process:      ──[ region A ]──────── far away ────────[ region B ]──
//! image: [header][A, layer 0][A, layer 1][B, layer 0] … [packed] [.eh_frame] …
//! ```
//!
//! libdw, by which perf 7 unwinds, believes the whole image to be loaded at `map.start - map.pgoff`, so each region
//! and layer is a module of its own for it, as long as the image: hence regions are merged while the distance between
//! two is smaller than the image (else the modules of both would overlap). Addresses that were used again get another
//! layer, a second mirror of the region. What does not fit (used again and again, or too far spread) is packed at
//! the end. Everything between pieces of code is a hole in the file.

use super::super::Place;
use super::{Piece, Slot};
use crate::model::Addr;

/// Code nearer than this is always of one region.
const NEAR: u64 = 1 << 20;

/// The most bytes that the mirrors may span; what is beyond is packed.
const MIRROR_LIMIT: u64 = 1 << 30;

/// Where code must end in the image: offsets of 31 bits suit `.eh_frame_hdr` and 32-bit programs. Unwinding
/// information and debug info follow behind. What does not fit (some 1.8 GB of touched code) gets no place.
const IMAGE_LIMIT: u64 = 0x7000_0000;

/// How often one address may be mirrored.
const MAX_LAYERS: u8 = 8;

/// A single piece longer than this can only come from a damaged source.
const LONGEST: u64 = MIRROR_LIMIT;

const PAGE: u64 = 4096;

/// A slot under way: sorted by address, with its layer.
struct Item {
    addr: u64,
    len: u64,
    slot: u32,
    layer: u8,
}

/// A stretch of addresses and how many layers its code needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Region {
    start: u64,
    end: u64,
    layers: u64,
    items: (usize, usize),
}

impl Region {
    /// The length of one mirror, in whole pages at both ends.
    fn stride(&self) -> u64 {
        (self.end - (self.start & !(PAGE - 1))).next_multiple_of(PAGE).max(PAGE)
    }

    fn len(&self) -> u64 {
        self.stride().saturating_mul(self.layers)
    }
}

/// Gives every slot an offset from `header` on.
pub(super) fn place(slots: &[Slot], header: u64) -> (Vec<Option<Place>>, Vec<Piece>) {
    let mut items = sorted(slots);
    assign_layers(&mut items);
    let regions = regions(&items);
    let mut places = vec![None; slots.len()];
    let mut at = header.next_multiple_of(PAGE);
    let end_of_mirrors = at + MIRROR_LIMIT;
    let mut packed = Vec::new();
    for region in regions {
        let items = &items[region.items.0..region.items.1];
        let fits = at + region.len() <= end_of_mirrors;
        for item in items {
            if !fits || item.layer >= MAX_LAYERS {
                packed.push(item.slot);
            } else {
                let base = at + u64::from(item.layer) * region.stride();
                places[item.slot as usize] = Some(base + (item.addr - (region.start & !(PAGE - 1))));
            }
        }
        at += if fits { region.len() } else { 0 };
    }
    pack(slots, packed, at, &mut places);
    let mut pieces: Vec<Piece> = places.iter().zip(slots).enumerate().filter_map(piece).collect();
    pieces.sort_unstable_by_key(|piece| (piece.addr, piece.len, piece.slot));
    (places.into_iter().map(|at| at.map(|at| Place { offset: at, addr: at })).collect(), pieces)
}

fn piece((slot, (place, what)): (usize, (&Option<u64>, &Slot))) -> Option<Piece> {
    (*place).map(|addr| Piece { addr, skip: 0, len: what.code.size, slot: slot as u32 })
}

/// All slots of sane size, by address; at one address in the order added.
fn sorted(slots: &[Slot]) -> Vec<Item> {
    let sane = slots.iter().enumerate().filter(|(_, slot)| {
        slot.code.size <= LONGEST && slot.addr.0.checked_add(slot.code.size).is_some_and(|end| end < u64::MAX - PAGE)
    });
    let item = |(slot, &Slot { code, addr: Addr(addr) }): (usize, &Slot)| Item {
        addr,
        len: code.size,
        slot: slot as u32,
        layer: 0,
    };
    let mut items: Vec<Item> = sane.map(item).collect();
    items.sort_unstable_by_key(|item| (item.addr, item.slot));
    items
}

/// The lowest layer in which nothing that starts earlier reaches into the piece.
fn assign_layers(items: &mut [Item]) {
    let mut ends = [0_u64; MAX_LAYERS as usize];
    for item in items {
        let free = ends.iter().position(|&end| end <= item.addr);
        item.layer = free.map_or(MAX_LAYERS, |layer| layer as u8);
        if let Some(layer) = free {
            ends[layer] = item.addr + item.len;
        }
    }
}

/// Regions such that no two are nearer than the whole image is long, as far as [`MIRROR_LIMIT`] allows.
fn regions(items: &[Item]) -> Vec<Region> {
    let mut gap = NEAR;
    let mut regions = join(items.iter().enumerate().map(region_of), gap);
    loop {
        let total = regions.iter().fold(0_u64, |sum, region| sum.saturating_add(region.len()));
        if total <= gap || regions.len() < 2 {
            return regions;
        }
        let wider = join(regions.iter().copied(), total);
        let grown = wider.iter().fold(0_u64, |sum, region| sum.saturating_add(region.len()));
        if grown > MIRROR_LIMIT || wider.len() == regions.len() {
            return regions;
        }
        (regions, gap) = (wider, total);
    }
}

fn region_of((index, item): (usize, &Item)) -> Region {
    let layers = u64::from(item.layer.min(MAX_LAYERS - 1)) + 1;
    Region { start: item.addr, end: item.addr + item.len, layers, items: (index, index + 1) }
}

fn join(parts: impl Iterator<Item = Region>, gap: u64) -> Vec<Region> {
    let mut regions: Vec<Region> = Vec::new();
    for part in parts {
        match regions.last_mut() {
            Some(last) if part.start < last.end.saturating_add(gap) => {
                last.end = last.end.max(part.end);
                last.layers = last.layers.max(part.layers);
                last.items.1 = part.items.1;
            }
            _ => regions.push(part),
        }
    }
    regions
}

/// One behind the other, aligned to 16 as in most code heaps.
fn pack(slots: &[Slot], mut packed: Vec<u32>, mut at: u64, places: &mut [Option<u64>]) {
    packed.sort_unstable();
    for slot in packed {
        at = at.next_multiple_of(16);
        let end = at.saturating_add(slots[slot as usize].code.size);
        if end <= IMAGE_LIMIT {
            places[slot as usize] = Some(at);
            at = end;
        }
    }
}
