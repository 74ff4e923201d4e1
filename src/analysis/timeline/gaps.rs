//! Finds gaps between the spans of a timeline.

use super::slices::{NameNumber, Slice, Timeline};
use std::cmp::Reverse;

/// Which slices of a timeline to look at.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Names of spans to ignore, such as an interpreter's frames, which enclose other spans.
    pub exclude: Vec<NameNumber>,
    /// Time ranges, one of which a slice must overlap in order to be selected: it ends after the range's start and
    /// starts before its end. If there are none, all slices are.
    pub times: Vec<(i64, i64)>,
}

impl Selection {
    /// True if the slice overlaps the selected time.
    #[inline]
    pub fn overlaps(&self, slice: &Slice) -> bool {
        self.times.is_empty() || self.times.iter().any(|&(from, to)| slice.end() > from && slice.start < to)
    }

    /// True if the slice is selected and no other span on its track encloses it.
    #[inline]
    pub fn is_outermost(&self, slice: &Slice) -> bool {
        slice.depth == 0 && !self.exclude.contains(&slice.name) && self.overlaps(slice)
    }
}

/// The gap between two consecutive spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The time at which the earlier span ended.
    pub start: i64,
    /// The time from `start` to the beginning of the later span. It is only negative with [`GapRule::Perfetto`], if the
    /// two spans overlap.
    pub duration: i64,
    /// The index of the slice after which the gap begins.
    pub after: usize,
    /// The index of the slice before which the gap ends.
    pub before: usize,
}

/// What counts as a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapRule {
    /// A time in which no track has a span.
    AllTracks,
    /// The time from the end of each span to the start of the next one, in the order of their starts. Negative if they
    /// overlap on different tracks. This is the query in Miri's documentation, as Perfetto answers it.
    Perfetto,
}

impl Timeline {
    /// The gaps between the selected outermost spans, longest first. Instants and unfinished spans are ignored. The
    /// spans of all tracks are looked at together, so a span of one track ends the gap after a span of another.
    pub fn gaps(&self, selection: &Selection, rule: GapRule) -> Vec<Gap> {
        let mut spans: Vec<(usize, &Slice)> = self.slices.iter().enumerate().collect();
        spans.retain(|(_, slice)| slice.duration > 0 && selection.is_outermost(slice));
        spans.sort_by_key(|(_, slice)| slice.start);
        let mut gaps = Vec::new();
        // The span before the next gap: of those visited, the one that ends last or, for Perfetto, the one that started
        // last.
        let mut previous: Option<(usize, &Slice)> = None;
        for (index, slice) in spans {
            if let Some((after, last)) = previous {
                let duration = slice.start.saturating_sub(last.end());
                // If spans overlap or follow each other directly, only Perfetto's query lists the gap between them. Its
                // duration is then 0 or less.
                if duration > 0 || rule == GapRule::Perfetto {
                    gaps.push(Gap { start: last.end(), duration, after, before: index });
                }
                // If the earlier span ends last, the next gap can only begin at its end. So that span stays the
                // `previous` one (but not for Perfetto).
                if rule == GapRule::AllTracks && slice.end() < last.end() {
                    continue;
                }
            }
            previous = Some((index, slice));
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
            action: NO_NAME,
            track: name % 2,
            lane: 0,
            depth,
            kind: SliceKind::Span,
            origin: 0,
        };
        let slices =
            vec![slice(9, 6, 2, 0), slice(0, 100, 7, 0), slice(1, 4, 1, 0), slice(2, 1, 1, 1), slice(12, 9, 1, 0)];
        let timeline = Timeline { slices, ..Timeline::default() };
        let perfetto = |selection| {
            timeline.gaps(&selection, GapRule::Perfetto).iter().map(|gap| (gap.start, gap.duration)).collect::<Vec<_>>()
        };
        let selection = Selection { exclude: vec![7], ..Selection::default() };
        assert_eq!(perfetto(selection.clone()), [(5, 4), (15, -3)]);
        assert_eq!(perfetto(Selection { times: vec![(5, i64::MAX)], ..selection.clone() }), [(15, -3)]);
        assert_eq!(perfetto(Selection { times: vec![(i64::MIN, 12)], ..selection.clone() }), [(5, 4)]);
        let all_tracks = |selection| {
            timeline
                .gaps(&selection, GapRule::AllTracks)
                .iter()
                .map(|gap| (gap.start, gap.duration))
                .collect::<Vec<_>>()
        };
        assert_eq!(all_tracks(selection.clone()), [(5, 4)]);
        assert_eq!(all_tracks(Selection { times: vec![(5, i64::MAX)], ..selection }), []);
        assert_eq!(all_tracks(Selection::default()), []);
    }
}
