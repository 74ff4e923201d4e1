//! Decides whether a source map belongs to a script, as a whole and around one position.
//!
//! File times say nothing once files have been copied, so a map is accepted unless something speaks against it. A map
//! of another build has segments that start inside words, past the end of lines, or past the end of authored files.
//! Names invented by bundlers prove nothing. A map of another build still fits up to the first difference between the
//! builds. The segments around each position are therefore checked as well.

use crate::model::script_map::{ScriptMap, Segment};
use std::sync::atomic::{AtomicU16, Ordering};

/// How many segments are checked at most to judge a source map as a whole. The checked ones are spread evenly over the
/// map. In a map that fits, a few percent of them look wrong; in a map that doesn't fit, most do.
const MAX_CHECKED: usize = 1 << 11;

/// The number of neighboring segments in a block. Blocks are checked to judge a source map around a position.
const BLOCK_LEN: usize = 16;

/// The results of checking a source map's segments against a script. A sample of segments from the whole map is
/// checked, and so are all segments of the blocks (runs of neighboring segments) around single positions.
#[derive(Debug, Default)]
pub(super) struct Fit {
    /// The counts of the segments that were checked to judge the source map as a whole.
    whole: Counts,
    /// True if every segment of the source map was checked, not just a sample of them.
    is_complete: bool,
    /// For each block of [`BLOCK_LEN`] segments: the [`Counts`] of its segments as one number ([`Counts::pack`]); 0 if
    /// they haven't been checked yet.
    blocks: Vec<AtomicU16>,
}

/// Of the segments that were checked, how many lead to a matching position in the authored file (right), and how many
/// can't be of this script (wrong). A segment that proves neither isn't counted.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    right: usize,
    wrong: usize,
}

impl Counts {
    /// Checks segments and counts the results. `check` returns true if a segment is right, false if it is wrong, and
    /// `None` if it proves neither.
    fn count<'a>(segments: impl Iterator<Item = &'a Segment>, check: impl Fn(&Segment) -> Option<bool>) -> Self {
        let mut counts = Self::default();
        for is_right in segments.filter_map(check) {
            counts.right += usize::from(is_right);
            counts.wrong += usize::from(!is_right);
        }
        counts
    }

    /// Packs both counts into one number. It is never 0, because 0 marks a block that hasn't been checked.
    fn pack(self) -> u16 {
        (1 + self.right + self.wrong * (BLOCK_LEN + 1)) as u16
    }

    /// The counts stored in `packed`; `None` for 0, which means that the block hasn't been checked.
    fn unpack(packed: u16) -> Option<Self> {
        let both = usize::from(packed).checked_sub(1)?;
        Some(Self { right: both % (BLOCK_LEN + 1), wrong: both / (BLOCK_LEN + 1) })
    }

    /// True if at most one in ten of the counted segments is wrong. Some are wrong even in a map that fits, because
    /// some tools map to the middle of words that they joined.
    fn is_fitting(self) -> bool {
        self.wrong * 9 <= self.right
    }
}

impl Fit {
    /// Checks a sample of the source map's segments, spread evenly over the map. `check` returns whether a segment is
    /// right, or `None` if nothing is proven; such segments aren't counted.
    pub(super) fn new(map: &ScriptMap, check: impl Fn(&Segment) -> Option<bool>) -> Self {
        let segments = map.segments();
        // Every `step`th segment is checked. A step of 0, for a map without segments, would be invalid.
        let step = segments.len().div_ceil(MAX_CHECKED).max(1);
        let whole = Counts::count(segments.iter().step_by(step), check);
        let blocks = segments.len().div_ceil(BLOCK_LEN);
        Self { whole, is_complete: step == 1, blocks: (0..blocks).map(|_| AtomicU16::new(0)).collect() }
    }

    /// True if the checked segments as a whole don't show that the source map belongs to another script; see
    /// [`Counts::is_fitting`].
    pub(super) fn fits_as_whole(&self) -> bool {
        self.whole.is_fitting()
    }

    /// True if the source map fits around the segment with index `segment`, that is, in its block and the two blocks
    /// beside it. Not all parts of a map need to fit: if it is of another build, everything before the first difference
    /// between the builds fits, and nothing after it. `check` returns whether a segment is right, or `None` if nothing
    /// is proven.
    pub(super) fn fits_near(&self, map: &ScriptMap, segment: usize, check: impl Fn(&Segment) -> Option<bool>) -> bool {
        // Every segment of the source map has been checked and none is wrong, so no block has a wrong one.
        if self.whole.wrong == 0 && self.is_complete {
            return true;
        }
        let own_block = segment / BLOCK_LEN;
        let mut near = Counts::default();
        for block in own_block.saturating_sub(1)..=own_block + 1 {
            let counts = self.count_block(map, block, &check);
            // A block has at most 16 of the source map's segments, so one or two wrong ones may be chance, even if they
            // are a large share of the block.
            if counts.wrong > 2 && !counts.is_fitting() {
                return false;
            }
            near.right += counts.right;
            near.wrong += counts.wrong;
        }
        // Taken together, the three blocks may have one wrong segment in five.
        near.wrong <= 1 || near.wrong * 4 <= near.right
    }

    /// The counts of the block with this index, computed when first needed.
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
