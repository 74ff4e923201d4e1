//! Decides whether a source map belongs to a script, as a whole and around one position.
//!
//! File times say nothing once files have been copied, so only evidence against a map counts. A map of another build
//! has segments that start inside words, past the end of lines, or past the end of authored files. Names invented by
//! bundlers prove nothing. Up to the first change between two builds, even a wrong map fits, so the segments around
//! each position are checked as well.

use crate::model::script_map::{ScriptMap, Segment};
use std::sync::atomic::{AtomicU16, Ordering};

/// How many segments are checked, spread over the map. In a map that fits, a few percent are odd; in one that doesn't,
/// most are.
const MOST: usize = 1 << 11;

/// How many neighboring segments form a block.
const NEAR: usize = 16;

/// The results of checking segments: spread over the whole map, and block by block.
#[derive(Debug, Default)]
pub(super) struct Fit {
    whole: Counts,
    /// True if every segment was checked.
    is_complete: bool,
    /// The packed [`Counts`] of each block of [`NEAR`] segments; 0 if not checked yet.
    blocks: Vec<AtomicU16>,
}

/// How many segments are right and how many are wrong. Undecided ones aren't counted.
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

    /// Both counts in one number, which is never 0.
    fn packed(self) -> u16 {
        (1 + self.right + self.wrong * (NEAR + 1)) as u16
    }

    fn unpacked(packed: u16) -> Option<Self> {
        let both = usize::from(packed).checked_sub(1)?;
        Some(Self { right: both % (NEAR + 1), wrong: both / (NEAR + 1) })
    }

    /// True unless more than one segment in ten is wrong. Some are wrong even in a map that fits, because some tools
    /// map to the middle of words that they joined.
    fn holds(self) -> bool {
        self.wrong * 9 <= self.right
    }
}

impl Fit {
    /// Checks segments spread evenly over the map. Segments for which `check` returns `None` don't count.
    pub(super) fn of(map: &ScriptMap, check: impl Fn(&Segment) -> Option<bool>) -> Self {
        let segments = map.segments();
        let step = segments.len().div_ceil(MOST).max(1);
        let whole = Counts::of(segments.iter().step_by(step), check);
        let blocks = segments.len().div_ceil(NEAR);
        Self { whole, is_complete: step == 1, blocks: (0..blocks).map(|_| AtomicU16::new(0)).collect() }
    }

    /// True if the map as a whole belongs to the script.
    pub(super) fn is_whole(&self) -> bool {
        self.whole.holds()
    }

    /// True if the map also fits around the segment with this number. Where two builds differ, everything before the
    /// change fits and nothing after it.
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

    /// The counts of a block, computed when first needed.
    fn block(&self, map: &ScriptMap, block: usize, check: impl Fn(&Segment) -> Option<bool>) -> Counts {
        let Some(known) = self.blocks.get(block) else { return Counts::default() };
        Counts::unpacked(known.load(Ordering::Relaxed)).unwrap_or_else(|| {
            let counts = Counts::of(map.segments().iter().skip(block * NEAR).take(NEAR), check);
            known.store(counts.packed(), Ordering::Relaxed);
            counts
        })
    }
}
