//! Where in the image each piece of code goes, and which stretches of it become sections.

mod mirror;
mod run_time;

use super::file::{SEGMENTS, header_size};
use super::{Place, Target};
use crate::model::Addr;
use crate::model::code::Code;
use std::ops::Range;

/// A piece of code and where it ran.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot<'a, 'data> {
    pub(super) code: &'a Code<'data>,
    pub(super) addr: Addr,
}

/// A stretch of one slot's code in the image: all of it, or what later code left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Virtual address in the image.
    pub(super) addr: u64,
    /// How far into the code it starts.
    pub(super) skip: u64,
    pub(super) len: u64,
    pub(super) slot: u32,
}

impl Piece {
    fn end(&self) -> u64 {
        self.addr + self.len
    }
}

/// Pieces close to each other, in one section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) pieces: Range<usize>,
    pub(super) addr: u64,
    pub(super) offset: u64,
    pub(super) size: u64,
    /// Whether there are code bytes, not only names.
    pub(super) has_bytes: bool,
}

/// The plan of an image.
#[derive(Debug)]
pub(super) struct Layout {
    /// By slot.
    pub(super) places: Vec<Option<Place>>,
    /// By address.
    pub(super) pieces: Vec<Piece>,
    /// By address and offset.
    pub(super) runs: Vec<Run>,
    /// Where the code starts and ends in the file.
    pub(super) code: Range<u64>,
    /// How many program headers there is room for.
    pub(super) segments: usize,
}

/// Pieces closer than this share a section: what lies between would else be a page of padding, and viewers that
/// disassemble a stretch of addresses (KCachegrind) want it in one section.
const JOIN_GAP: u64 = 4096;

/// More sections than this are joined over larger gaps, so that their numbers stay below SHN_LORESERVE (0xff00).
const MAX_RUNS: usize = 0x4000;

/// Groups pieces, which are sorted by address, into runs with addresses only.
fn runs(pieces: &[Piece], slots: &[Slot]) -> Vec<Run> {
    let mut gap = JOIN_GAP;
    loop {
        let runs = runs_joined_over(gap, pieces, slots);
        if runs.len() <= MAX_RUNS {
            return runs;
        }
        // Beyond every distance: names and code by turns. Then names stand over zeros.
        gap = if gap >= 1 << 62 { u64::MAX } else { gap * 4 };
    }
}

fn runs_joined_over(gap: u64, pieces: &[Piece], slots: &[Slot]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let has_bytes = slots[piece.slot as usize].code.bytes.is_some();
        match runs.last_mut() {
            Some(run)
                if (run.has_bytes == has_bytes || gap == u64::MAX) && piece.addr - (run.addr + run.size) < gap =>
            {
                run.pieces.end = index + 1;
                run.size = run.size.max(piece.end() - run.addr);
                run.has_bytes |= has_bytes;
            }
            _ => runs.push(Run {
                pieces: index..index + 1,
                addr: piece.addr,
                offset: piece.addr,
                size: piece.len,
                has_bytes,
            }),
        }
    }
    runs
}

impl Layout {
    /// The layout for perf: address = offset in the file.
    pub(super) fn mirror(slots: &[Slot], target: Target) -> Self {
        let header = header_size(target, SEGMENTS);
        let (places, pieces) = mirror::place(slots, header);
        let runs = runs(&pieces, slots);
        let start = runs.first().map_or(header, |run| run.addr);
        let end = runs.last().map_or(header, |run| run.addr + run.size);
        Self { places, pieces, runs, code: start..end, segments: SEGMENTS }
    }

    /// The layout for callgrind's viewers: run-time addresses, the sections one behind the other in the file.
    pub(super) fn at_run_time(slots: &[Slot], target: Target) -> Self {
        let limit = if target.is_64 { u64::MAX } else { u64::from(u32::MAX) };
        let pieces = run_time::cut(slots, limit);
        let mut runs = runs(&pieces, slots);
        // At least one, if only of type PT_NULL: a program without any looks damaged.
        let segments = runs.iter().filter(|run| run.has_bytes).count().max(1);
        let header = header_size(target, segments);
        let mut end = header;
        for run in &mut runs {
            run.offset = end.next_multiple_of(16);
            end = run.offset + if run.has_bytes { run.size } else { 0 };
        }
        let mut places = vec![None; slots.len()];
        for run in &runs {
            for piece in pieces[run.pieces.clone()].iter().filter(|piece| piece.skip == 0) {
                let offset = run.offset + if run.has_bytes { piece.addr - run.addr } else { 0 };
                places[piece.slot as usize] = Some(Place { offset, addr: piece.addr });
            }
        }
        Self { places, pieces, runs, code: header..end, segments }
    }
}
