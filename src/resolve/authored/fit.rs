//! Whether a map belongs to a script, as a whole and around a place.
//!
//! File times say nothing after copying. A map of another build has segments that begin in the middle of words, behind
//! the end of lines, and names that the authored text doesn't have there. Up to the first change between two builds it
//! fits all the same, so the segments around each place are asked, too.

use crate::model::script_map::{ScriptMap, Segment};

/// So many segments are looked at, spread over the map.
const MOST: usize = 100_000;

/// So many on either side of a place.
const NEAR: usize = 16;

/// What the segments of a map say, as a whole.
#[derive(Debug, Default)]
pub(super) struct Fit {
    right: usize,
    wrong: usize,
}

impl Fit {
    /// Asks the segments of a map, evenly, whether they are right; those that cannot tell don't count.
    pub(super) fn of(map: &ScriptMap, check: impl Fn(&Segment) -> Option<bool>) -> Self {
        let segments = map.segments();
        let mut fit = Self::default();
        segments.iter().step_by(segments.len().div_ceil(MOST).max(1)).for_each(|segment| fit.add(check(segment)));
        fit
    }

    fn add(&mut self, right: Option<bool>) {
        self.right += usize::from(right == Some(true));
        self.wrong += usize::from(right == Some(false));
    }

    /// Of ten segments one may be odd: tools map to the start of a declaration, or name what they invent.
    fn holds(&self) -> bool {
        self.wrong * 9 <= self.right
    }

    /// Whether the map belongs to the script.
    pub(super) fn is_whole(&self) -> bool {
        self.holds()
    }

    /// Whether it does around a segment.
    pub(super) fn at(&self, map: &ScriptMap, segment: &Segment, check: impl Fn(&Segment) -> Option<bool>) -> bool {
        if self.wrong == 0 {
            return true;
        }
        let segments = map.segments();
        let at = segments.partition_point(|other| other.generated < segment.generated);
        let mut near = Self::default();
        for side in [&segments[at.saturating_sub(NEAR)..at], &segments[at..(at + NEAR).min(segments.len())]] {
            let mut own = Self::default();
            side.iter().for_each(|segment| own.add(check(segment)));
            // Behind a change nothing fits any more, before it everything does.
            if own.wrong > 2 && !own.holds() {
                return false;
            }
            near.right += own.right;
            near.wrong += own.wrong;
        }
        near.wrong <= 1 || near.wrong * 4 <= near.right
    }
}
