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
const MAX_CHECKED: usize = 1 << 11;

/// How many neighboring segments form a block.
const BLOCK_LEN: usize = 16;

/// The results of checking segments: spread over the whole map, and block by block.
#[derive(Debug, Default)]
pub(super) struct Fit {
    whole: Counts,
    /// True if every segment was checked.
    is_complete: bool,
    /// The packed [`Counts`] of each block of [`BLOCK_LEN`] segments; 0 if not checked yet.
    blocks: Vec<AtomicU16>,
}

/// How many segments are right and how many are wrong. Undecided ones aren't counted.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    right: usize,
    wrong: usize,
}

impl Counts {
    fn count<'a>(segments: impl Iterator<Item = &'a Segment>, check: impl Fn(&Segment) -> Option<bool>) -> Self {
        let mut counts = Self::default();
        for is_right in segments.filter_map(check) {
            counts.right += usize::from(is_right);
            counts.wrong += usize::from(!is_right);
        }
        counts
    }

    /// Both counts of a block in one number, which is never 0.
    fn pack(self) -> u16 {
        (1 + self.right + self.wrong * (BLOCK_LEN + 1)) as u16
    }

    /// `None` for 0.
    fn unpack(packed: u16) -> Option<Self> {
        let both = usize::from(packed).checked_sub(1)?;
        Some(Self { right: both % (BLOCK_LEN + 1), wrong: both / (BLOCK_LEN + 1) })
    }

    /// True unless more than one segment in ten is wrong. Some are wrong even in a map that fits, because some tools
    /// map to the middle of words that they joined.
    fn is_fitting(self) -> bool {
        self.wrong * 9 <= self.right
    }
}

impl Fit {
    /// Checks segments spread evenly over the map. Segments for which `check` returns `None` don't count.
    pub(super) fn new(map: &ScriptMap, check: impl Fn(&Segment) -> Option<bool>) -> Self {
        let segments = map.segments();
        let step = segments.len().div_ceil(MAX_CHECKED).max(1);
        let whole = Counts::count(segments.iter().step_by(step), check);
        let blocks = segments.len().div_ceil(BLOCK_LEN);
        Self { whole, is_complete: step == 1, blocks: (0..blocks).map(|_| AtomicU16::new(0)).collect() }
    }

    /// True if the map as a whole belongs to the script.
    pub(super) fn is_whole(&self) -> bool {
        self.whole.is_fitting()
    }

    /// True if the map also fits around the segment with this number. Where two builds differ, everything before the
    /// change fits and nothing after it.
    pub(super) fn fits_near(&self, map: &ScriptMap, number: usize, check: impl Fn(&Segment) -> Option<bool>) -> bool {
        if self.whole.wrong == 0 && self.is_complete {
            return true;
        }
        let block = number / BLOCK_LEN;
        let mut near = Counts::default();
        for block in block.saturating_sub(1)..=block + 1 {
            let counts = self.count_block(map, block, &check);
            if counts.wrong > 2 && !counts.is_fitting() {
                return false;
            }
            near.right += counts.right;
            near.wrong += counts.wrong;
        }
        near.wrong <= 1 || near.wrong * 4 <= near.right
    }

    /// The counts of a block, computed when first needed.
    fn count_block(&self, map: &ScriptMap, block: usize, check: impl Fn(&Segment) -> Option<bool>) -> Counts {
        let Some(stored) = self.blocks.get(block) else { return Counts::default() };
        if let Some(counts) = Counts::unpack(stored.load(Ordering::Relaxed)) {
            return counts;
        }
        let counts = Counts::count(map.segments().iter().skip(block * BLOCK_LEN).take(BLOCK_LEN), check);
        stored.store(counts.pack(), Ordering::Relaxed);
        counts
    }
}
