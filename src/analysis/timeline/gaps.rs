//! Times without any span, and which slices a question is about.

use super::slices::{NameNo, Slice, Timeline};

/// The slices that count.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Names of spans that enclose what counts and are not counted themselves: of an interpreter, its frames.
    pub exclude: Vec<NameNo>,
    /// Only slices that end after this time.
    pub from: Option<i64>,
    /// Only slices that begin before this time.
    pub to: Option<i64>,
}

impl Selection {
    /// True if any part of it is within the time.
    #[inline]
    pub fn within(&self, slice: &Slice) -> bool {
        self.from.is_none_or(|from| slice.end() > from) && self.to.is_none_or(|to| slice.start < to)
    }

    /// True if it is on top of its track, and counts.
    #[inline]
    pub fn top(&self, slice: &Slice) -> bool {
        slice.depth == 0 && !self.exclude.contains(&slice.name) && self.within(slice)
    }
}

/// A time between two spans that follow each other; negative if they overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// When the one before ended.
    pub start: i64,
    /// The time until the next one began.
    pub duration: i64,
    /// Position of the slice before it.
    pub after: usize,
    /// Position of the slice behind it.
    pub before: usize,
}

impl Timeline {
    /// The gaps between the spans that the selection has on top, over all tracks, the longest first. If one span is
    /// next to another, on another track, the gap is negative.
    pub fn gaps(&self, selection: &Selection) -> Vec<Gap> {
        let counts = |(_, slice): &(usize, &Slice)| selection.top(slice) && slice.duration > 0;
        let mut spans: Vec<_> = self.slices.iter().enumerate().filter(counts).collect();
        spans.sort_by_key(|(_, slice)| slice.start);
        let mut spans = spans.into_iter();
        let Some(mut last) = spans.next() else { return Vec::new() };
        let mut gaps = Vec::new();
        for next in spans {
            let start = last.1.end();
            gaps.push(Gap { start, duration: next.1.start.saturating_sub(start), after: last.0, before: next.0 });
            last = next;
        }
        gaps.sort_by_key(|gap| std::cmp::Reverse(gap.duration));
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
