//! A subset of a code map: some segments and their code. For commands that need only a few, because a code map may hold
//! millions of pieces of code.

use super::list::Codes;
use super::segment::{CodeId, Segment, SegmentId};
use crate::model::code::Code;

/// A set of segments of one code map.
#[derive(Debug)]
pub struct SegmentSet {
    /// One entry per segment of the map: true if the segment is in the set.
    members: Vec<bool>,
}

impl SegmentSet {
    /// An empty set for the code map that has these segments.
    pub fn none_of(segments: &[Segment]) -> Self {
        Self { members: vec![false; segments.len()] }
    }

    /// Adds a segment. Ignores an ID that the code map doesn't have.
    pub fn insert(&mut self, id: SegmentId) {
        if let Some(member) = self.members.get_mut(id.0 as usize) {
            *member = true;
        }
    }

    /// Adds all segments of the code map for which `wanted` returns true.
    pub fn insert_where(&mut self, segments: &[Segment], wanted: impl Fn(&Segment) -> bool) {
        self.members.iter_mut().zip(segments).for_each(|(member, segment)| *member |= wanted(segment));
    }

    /// The number of segments in the set.
    pub fn count(&self) -> usize {
        self.members.iter().filter(|member| **member).count()
    }
}

/// The index of a segment in a [`SelectedCode`]. It differs from the [`SegmentId`] in the original code map;
/// [`SelectedIds`] translates from that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SelectedId(u32);

impl SelectedId {
    /// The ID as an index into the selected segments.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Translates the [`SegmentId`]s of the original code map to the IDs of the selected segments.
#[derive(Debug)]
pub struct SelectedIds {
    by_segment: Vec<Option<SelectedId>>,
}

impl SelectedIds {
    /// The ID of a segment in the selection; `None` if the segment was not selected.
    pub fn get(&self, id: SegmentId) -> Option<SelectedId> {
        self.by_segment.get(id.0 as usize).copied().flatten()
    }
}

/// The selected segments of a code map, and the code in them. Segments are found by their ID, not by address.
#[derive(Debug, Default)]
pub struct SelectedCode<'data> {
    codes: Codes<'data>,
    /// The selected segments, in the order of the original map. Their `code` fields are indices of `codes`.
    segments: Vec<Segment>,
}

/// For each entry of `members`, the number of members before it, which is the new index of a member. The values for
/// non-members are meaningless.
fn numbers(members: &[bool]) -> impl Iterator<Item = u32> + '_ {
    members.iter().scan(0, |next, member| {
        let number = *next;
        *next += u32::from(*member);
        Some(number)
    })
}

impl<'data> SelectedCode<'data> {
    /// Keeps only the segments in `set` and the code in them, and renumbers both.
    pub(super) fn new(mut codes: Codes<'data>, mut segments: Vec<Segment>, set: &SegmentSet) -> (Self, SelectedIds) {
        let mut members = set.members.iter();
        segments.retain(|_| members.next().is_some_and(|member| *member));
        segments.shrink_to_fit();
        let mut used = vec![false; codes.len()];
        for segment in &segments {
            used[segment.code.0 as usize] = true;
        }
        codes.keep_only(&used);
        let new_codes: Vec<u32> = numbers(&used).collect();
        for segment in &mut segments {
            segment.code = CodeId(new_codes[segment.code.0 as usize]);
        }
        let mut by_segment = Vec::with_capacity(set.members.len());
        for (number, is_member) in numbers(&set.members).zip(&set.members) {
            by_segment.push(if *is_member { Some(SelectedId(number)) } else { None });
        }
        (Self { codes, segments }, SelectedIds { by_segment })
    }

    /// The code with this number. Use the number in a selected segment, not the original one.
    pub fn code(&self, id: CodeId) -> Code<'data> {
        self.codes.get(id)
    }

    /// The selected segment with this ID.
    pub fn segment(&self, id: SelectedId) -> &Segment {
        &self.segments[id.index()]
    }

    /// All selected segments with their IDs, in the order of the original map.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = (SelectedId, &Segment)> {
        self.segments.iter().enumerate().map(|(index, segment)| (SelectedId(index as u32), segment))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{build, code, load};
    use super::*;
    use crate::model::Addr;
    use crate::model::process::Processes;

    #[test]
    fn selected_segments_are_as_they_were_and_are_found_by_their_old_numbers() {
        let names = ["a", "b", "c", "d"];
        let loads = names.iter().zip(1..).map(|(name, at)| load(1, Some(at), code(name, at * 0x100, at)));
        let map = build(loads.collect(), &Processes::default());
        let shown =
            |segment: &Segment, code: Code<'_>| (segment.start, String::from_utf8_lossy(code.name).into_owned());
        let before = |id| shown(map.segment(SegmentId(id)), map.code(map.segment(SegmentId(id)).code));
        let before = [before(1), before(3)];
        let mut set = SegmentSet::none_of(map.segments());
        assert_eq!(set.count(), 0);
        set.insert_where(map.segments(), |segment| segment.start == before[0].0);
        set.insert(SegmentId(3));
        set.insert(SegmentId(4));
        assert_eq!(set.count(), 2);
        let (selected, ids) = map.select(&set);
        let after = selected.segments().map(|(_, segment)| shown(segment, selected.code(segment.code)));
        assert_eq!(after.collect::<Vec<_>>(), before);
        assert_eq!([0, 2, 4].map(|id| ids.get(SegmentId(id))), [None; 3]);
        let found = [1, 3].map(|id| ids.get(SegmentId(id)).map(|id| selected.segment(id).start));
        assert_eq!(found, [Some(before[0].0), Some(before[1].0)]);
        assert_eq!(selected.codes.len(), 2);
        assert_ne!(before[0].0, Addr(0));
    }
}
