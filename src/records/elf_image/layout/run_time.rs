//! Cuts code that shared addresses into disjoint pieces at run-time addresses: the latest wins.

use super::piece::Piece;
use crate::records::elf_image::slot::Slot;
use std::collections::BTreeMap;

/// The pieces of all slots, by address. Code beyond `limit` has none.
pub(super) fn cut(slots: &[Slot], limit: u64) -> Vec<Piece> {
    // From the latest to the earliest: each takes what is still free. Start → end of the used ranges.
    let mut taken = BTreeMap::<u64, u64>::new();
    let mut pieces = Vec::with_capacity(slots.len());
    for (index, slot) in slots.iter().enumerate().rev() {
        let start = slot.addr.0;
        let Some(end) = start.checked_add(slot.code.size).filter(|&end| end <= limit) else { continue };
        take_free(&mut taken, start, end, |from, to| {
            pieces.push(Piece { addr: from, skip: from - start, len: to - from, slot: index as u32 });
        });
    }
    pieces.sort_unstable_by_key(|piece| (piece.addr, piece.len, piece.slot));
    pieces
}

/// Calls `free` for each stretch of `start..end` that is not taken yet, and takes it all.
fn take_free(taken: &mut BTreeMap<u64, u64>, start: u64, end: u64, mut free: impl FnMut(u64, u64)) {
    let before = taken.range(..=start).next_back().map(|(&from, &to)| (from, to)).filter(|&(_, to)| to >= start);
    let (merged_from, mut at) = before.map_or((start, start), |(from, to)| (from, to));
    if start == end && before.is_none_or(|(_, to)| to == start) {
        free(start, end);
    }
    let mut merged_to = at;
    while at < end {
        let next = taken.range(at..).next().map(|(&from, &to)| (from, to)).filter(|&(from, _)| from < end);
        let (free_to, resume) = next.unwrap_or((end, end));
        if free_to > at {
            free(at, free_to);
        }
        if let Some((from, _)) = next {
            taken.remove(&from);
        }
        at = resume;
        merged_to = merged_to.max(resume);
    }
    if merged_to.max(end) > merged_from {
        taken.insert(merged_from, merged_to.max(end));
    }
}
