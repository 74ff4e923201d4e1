//! True if a map belongs to a script, as a whole and around a place.
//!
//! File times state nothing after copying. A map of another build has segments that begin in the middle of words,
//! behind the end of lines, and names that the authored text doesn't have there. Up to the first change between two
//! builds it fits all the same, so the segments around each place are queried, too.

use crate::model::script_map::{ScriptMap, Segment};
use std::sync::atomic::{AtomicU8, Ordering};

/// The number of segments that are looked at, spread over the map: some in a hundred are odd in one that fits, most in
/// one that doesn't.
const MOST: usize = 1 << 13;

/// The number in a block.
const NEAR: usize = 16;

/// The agreement of a map's segments with the texts, as a whole, and in blocks of neighbors.
#[derive(Debug, Default)]
pub(super) struct Fit {
    whole: SegmentCounts,
    /// True if all segments were queried.
    is_complete: bool,
    /// The result for each [`NEAR`] segments, as far as they were queried: [`FITS`] or [`DIFFERS`].
    blocks: Vec<AtomicU8>,
}

const FITS: u8 = 1;
const DIFFERS: u8 = 2;

/// The numbers of segments that are right and wrong.
#[derive(Debug, Clone, Copy, Default)]
struct SegmentCounts {
    right: usize,
    wrong: usize,
}

impl SegmentCounts {
    fn of<'a>(segments: impl Iterator<Item = &'a Segment>, check: impl Fn(&Segment) -> Option<bool>) -> Self {
        let mut counts = Self::default();
        for right in segments.filter_map(check) {
            counts.right += usize::from(right);
            counts.wrong += usize::from(!right);
        }
        counts
    }

    /// Of ten segments one may be odd: tools map to the start of a declaration, or name what they invent.
    fn holds(self) -> bool {
        self.wrong * 9 <= self.right
    }
}

impl Fit {
    /// Checks segments of a map, evenly; those without an answer don't count.
    pub(super) fn of(map: &ScriptMap, check: impl Fn(&Segment) -> Option<bool>) -> Self {
        let segments = map.segments();
        let step = segments.len().div_ceil(MOST).max(1);
        let whole = SegmentCounts::of(segments.iter().step_by(step), check);
        let blocks = segments.len().div_ceil(NEAR);
        Self { whole, is_complete: step == 1, blocks: (0..blocks).map(|_| AtomicU8::new(0)).collect() }
    }

    /// True if the map belongs to the script.
    pub(super) fn is_whole(&self) -> bool {
        self.whole.holds()
    }

    /// True if it does around a segment. Each block is queried once.
    pub(super) fn at(&self, map: &ScriptMap, segment: &Segment, check: impl Fn(&Segment) -> Option<bool>) -> bool {
        if self.whole.wrong == 0 && self.is_complete {
            return true;
        }
        let at = map.segments().partition_point(|other| other.generated < segment.generated) / NEAR;
        let Some(block) = self.blocks.get(at) else { return false };
        match block.load(Ordering::Relaxed) {
            0 => {
                let fits = fits_around(map.segments(), at, check);
                block.store(if fits { FITS } else { DIFFERS }, Ordering::Relaxed);
                fits
            }
            known => known == FITS,
        }
    }
}

/// True if a block of segments and its neighbors fit: behind a change nothing fits any more, before it everything does.
fn fits_around(segments: &[Segment], block: usize, check: impl Fn(&Segment) -> Option<bool>) -> bool {
    let mut near = SegmentCounts::default();
    for block in block.saturating_sub(1)..=block + 1 {
        let own = segments.iter().skip(block * NEAR).take(NEAR);
        let own = SegmentCounts::of(own, &check);
        if own.wrong > 2 && !own.holds() {
            return false;
        }
        near.right += own.right;
        near.wrong += own.wrong;
    }
    near.wrong <= 1 || near.wrong * 4 <= near.right
}
