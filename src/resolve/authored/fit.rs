//! True if a map belongs to a script, as a whole and around a place.
//!
//! File times state nothing after copying. Only what can disprove a map counts: a map of another build has segments that
//! begin in the middle of words, behind the end of lines, and behind the end of authored files. Names that bundlers
//! invent prove nothing. Up to the first change between two builds a map fits all the same, so the segments around each
//! place are queried, too.

use crate::model::script_map::{ScriptMap, Segment};
use std::sync::atomic::{AtomicU16, Ordering};

/// So many segments are looked at, spread over the map: some in a hundred are odd in one that fits, most in one that doesn't.
const MOST: usize = 1 << 11;

/// So many are a block.
const NEAR: usize = 16;

/// What the segments of a map state, as a whole, and in blocks of neighbors.
#[derive(Debug, Default)]
pub(super) struct Fit {
    whole: Counts,
    /// True if all segments were queried.
    is_complete: bool,
    /// Of each [`NEAR`] segments, as far as they were queried: [`Counts::packed`].
    blocks: Vec<AtomicU16>,
}

/// The numbers of segments that are right and wrong.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    right: usize,
    wrong: usize,
}

impl Counts {
    fn of<'a>(segments: impl Iterator<Item = &'a Segment>, check: impl Fn(&Segment) -> Option<bool>) -> Self {
        let mut counts = Self::default();
        for right in segments.filter_map(check) {
            counts.right += usize::from(right);
            counts.wrong += usize::from(!right);
        }
        counts
    }

    /// The counts of a block as one number, which is not 0.
    fn packed(self) -> u16 {
        (1 + self.right + self.wrong * (NEAR + 1)) as u16
    }

    fn unpacked(packed: u16) -> Option<Self> {
        let both = usize::from(packed).checked_sub(1)?;
        Some(Self { right: both % (NEAR + 1), wrong: both / (NEAR + 1) })
    }

    /// Of ten segments one may be odd: some tools map into the middle of words that they put together.
    fn holds(self) -> bool {
        self.wrong * 9 <= self.right
    }
}

impl Fit {
    /// Asks the segments of a map, evenly, whether they are right; those that cannot give don't count.
    pub(super) fn of(map: &ScriptMap, check: impl Fn(&Segment) -> Option<bool>) -> Self {
        let segments = map.segments();
        let step = segments.len().div_ceil(MOST).max(1);
        let whole = Counts::of(segments.iter().step_by(step), check);
        let blocks = segments.len().div_ceil(NEAR);
        Self { whole, is_complete: step == 1, blocks: (0..blocks).map(|_| AtomicU16::new(0)).collect() }
    }

    /// True if the map belongs to the script.
    pub(super) fn is_whole(&self) -> bool {
        self.whole.holds()
    }

    /// True if it does around a segment, given by its number: behind a change nothing fits any more, before it
    /// everything does.
    pub(super) fn at(&self, map: &ScriptMap, number: usize, check: impl Fn(&Segment) -> Option<bool>) -> bool {
        if self.whole.wrong == 0 && self.is_complete {
            return true;
        }
        let at = number / NEAR;
        let mut near = Counts::default();
        for block in at.saturating_sub(1)..=at + 1 {
            let own = self.block(map, block, &check);
            if own.wrong > 2 && !own.holds() {
                return false;
            }
            near.right += own.right;
            near.wrong += own.wrong;
        }
        near.wrong <= 1 || near.wrong * 4 <= near.right
    }

    /// The counts of a block, which is queried once.
    fn block(&self, map: &ScriptMap, block: usize, check: impl Fn(&Segment) -> Option<bool>) -> Counts {
        let Some(known) = self.blocks.get(block) else { return Counts::default() };
        Counts::unpacked(known.load(Ordering::Relaxed)).unwrap_or_else(|| {
            let counts = Counts::of(map.segments().iter().skip(block * NEAR).take(NEAR), check);
            known.store(counts.packed(), Ordering::Relaxed);
            counts
        })
    }
}
