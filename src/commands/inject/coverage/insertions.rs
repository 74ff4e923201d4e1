//! Finds code that is hidden by mapping records that we insert ourselves. This happens where segments from different
//! sources overlap, or where code was replaced.

use super::code_uses::{CodeEpoch, CodeUse};
use super::shadowings::Shadowing;
use crate::model::ranges::RangeMap;
use crate::model::{Addr, Pid};
use crate::parallel::{self, Pool};
use crate::symbolize::code_map::CodeMap;

/// The mapping that will be inserted for one use of code.
#[derive(Debug, Clone, Copy)]
struct InsertedMapping {
    pid: Pid,
    start: Addr,
    end: Addr,
    /// Index into the list of all uses, which is ordered by first sample. Mappings are inserted in this order.
    use_index: u32,
}

/// Simulates the insertion of one mapping record per use. Returns the inserted mappings that hide a segment which a
/// later sample uses again: perf then needs another mapping record for the hidden segment. `uses` must be ordered by
/// first sample.
pub(super) fn find_shadowing_insertions(
    uses: &[(CodeEpoch, CodeUse)],
    codes: &CodeMap<'_>,
    pool: &Pool,
) -> Vec<(Pid, Shadowing)> {
    let mut mappings: Vec<InsertedMapping> = Vec::with_capacity(uses.len());
    for ((epoch, _), use_index) in uses.iter().zip(0..) {
        let segment = codes.segment(epoch.segment);
        mappings.push(InsertedMapping { pid: epoch.pid, start: segment.start, end: segment.end, use_index });
    }
    pool.install(|| {
        parallel::sort_unstable_by_key(&mut mappings, |mapping| (mapping.pid, mapping.start, mapping.use_index))
    });
    // Simulate only groups of mappings whose addresses overlap. Most mappings overlap no other, so nothing can hide
    // them.
    let (mut shadowings, mut visible) = (Vec::new(), RangeMap::default());
    let mut remaining = mappings.as_mut_slice();
    while !remaining.is_empty() {
        let (overlapping, later) = remaining.split_at_mut(overlapping_len(remaining));
        if overlapping.len() > 1 {
            overlapping.sort_unstable_by_key(|mapping| mapping.use_index);
            add_shadowings_among(overlapping, uses, &mut visible, &mut shadowings);
            // The next group of mappings must start with nothing visible.
            visible.drain().for_each(drop);
        }
        remaining = later;
    }
    shadowings
}

/// The number of mappings at the start of the list that form a chain: they belong to one process, and each (except the
/// first) overlaps an earlier one. The list is sorted by process and start address.
fn overlapping_len(mappings: &[InsertedMapping]) -> usize {
    let pid = mappings[0].pid;
    let mut end = mappings[0].end;
    for (index, next) in mappings.iter().enumerate().skip(1) {
        if next.pid != pid || next.start >= end {
            return index;
        }
        end = end.max(next.end);
    }
    mappings.len()
}

/// Applies the mappings of one process in the order of their insertion. A mapping that hides code which is used again
/// later is added to `shadowings`. `visible` must be empty at the start. While the mappings are applied, it has the
/// address ranges that are mapped at that moment, each with the index in `uses` of the use that it was mapped for.
fn add_shadowings_among(
    mappings: &[InsertedMapping],
    uses: &[(CodeEpoch, CodeUse)],
    visible: &mut RangeMap<u32>,
    shadowings: &mut Vec<(Pid, Shadowing)>,
) {
    for new in mappings {
        let (new_epoch, new_use) = uses[new.use_index as usize];
        let range = new.start.0..new.end.0;
        // Remove the mappings under the new one, whichever use they are for (`true`). A mapping that is hidden only in
        // part is removed from `visible` as a whole, because it will be mapped again as a whole.
        visible.evict(
            range.clone(),
            |_| true,
            |old| {
                let (old_epoch, old_use) = uses[old.value as usize];
                // The hidden code matters if it is of another segment (mapping a segment again hides nothing of it) and
                // is used again later.
                if old_epoch.segment != new_epoch.segment && old_use.last > new_use.first {
                    let shadowing = Shadowing {
                        from: new_use.first,
                        start: new.start,
                        end: new.end,
                        inserted: Some(new_epoch.segment),
                    };
                    shadowings.push((new_epoch.pid, shadowing));
                }
            },
        );
        visible.insert_into_gap(range, new.use_index);
    }
}
