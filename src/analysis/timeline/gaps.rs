//! Finds gaps between spans, and selects slices.

use super::slices::{NameNo, Slice, Timeline};
use std::cmp::Reverse;

/// Selects slices.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Names of enclosing spans that don't count themselves, such as an interpreter's frames.
    pub exclude: Vec<NameNo>,
    /// Only slices that end after this time.
    pub from: Option<i64>,
    /// Only slices that start before this time.
    pub to: Option<i64>,
}

impl Selection {
    /// True if the slice overlaps the selected time.
    #[inline]
    pub fn overlaps(&self, slice: &Slice) -> bool {
        self.from.is_none_or(|from| slice.end() > from) && self.to.is_none_or(|to| slice.start < to)
    }

    /// True for selected slices that are outermost on their track.
    #[inline]
    pub fn is_outermost(&self, slice: &Slice) -> bool {
        slice.depth == 0 && !self.exclude.contains(&slice.name) && self.overlaps(slice)
    }
}

/// The time between two consecutive spans; negative if they overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// When the earlier span ended.
    pub start: i64,
    /// The time until the next span starts.
    pub duration: i64,
    /// Index of the slice before the gap.
    pub after: usize,
    /// Index of the slice after the gap.
    pub before: usize,
}

impl Timeline {
    /// The gaps between selected outermost spans of all tracks, longest first. A gap is negative where spans on
    /// different tracks overlap.
    pub fn gaps(&self, selection: &Selection) -> Vec<Gap> {
        let mut spans: Vec<(usize, &Slice)> = self.slices.iter().enumerate().collect();
        spans.retain(|(_, slice)| slice.duration > 0 && selection.is_outermost(slice));
        spans.sort_by_key(|(_, slice)| slice.start);
        let mut gaps = Vec::new();
        for pair in spans.windows(2) {
            let [(after, last), (before, next)] = [pair[0], pair[1]];
            let start = last.end();
            gaps.push(Gap { start, duration: next.start.saturating_sub(start), after, before });
        }
        gaps.sort_by_key(|gap| Reverse(gap.duration));
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NO_NAME, SliceKind};
    use super::*;

    #[test]
    fn gaps_lie_between_neighbors_on_any_track() {
        let slice = |start, duration, name, depth| Slice {
            start,
            duration,
            name,
            sub: NO_NAME,
            track: name % 2,
            lane: 0,
            depth,
            kind: SliceKind::Span,
            origin: 0,
        };
        let slices =
            vec![slice(9, 6, 2, 0), slice(0, 100, 7, 0), slice(1, 4, 1, 0), slice(2, 1, 1, 1), slice(12, 9, 1, 0)];
        let timeline = Timeline { slices, ..Timeline::default() };
        let found =
            |selection| timeline.gaps(&selection).iter().map(|gap| (gap.start, gap.duration)).collect::<Vec<_>>();
        let selection = Selection { exclude: vec![7], ..Selection::default() };
        assert_eq!(found(selection.clone()), [(5, 4), (15, -3)]);
        assert_eq!(found(Selection { from: Some(5), ..selection.clone() }), [(15, -3)]);
        assert_eq!(found(Selection { to: Some(12), ..selection }), [(5, 4)]);
    }
}
