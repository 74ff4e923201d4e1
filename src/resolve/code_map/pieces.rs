//! Code and where it was, for those who know what they want: a dump may hold millions of pieces of which few do matter.

use super::list::Codes;
use super::{CodeId, Segment, SegmentId};
use crate::model::code::Code;

/// Pieces of code, and the stretches of addresses and time in which they stood.
#[derive(Debug, Default)]
pub struct Pieces<'data> {
    pub(super) codes: Codes<'data>,
    pub(super) segments: Vec<Segment>,
}

impl<'data> Pieces<'data> {
    /// A piece of code.
    pub fn code(&self, id: CodeId) -> Code<'data> {
        self.codes.get(id)
    }

    /// A stretch.
    pub fn segment(&self, id: SegmentId) -> &Segment {
        &self.segments[id.0 as usize]
    }

    /// All stretches; their numbers are their places.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Forgets all stretches but those in `ids`, which are sorted and all different, and the code that is in none of
    /// them. From then on a stretch's number is its place in `ids`.
    pub fn keep_only(&mut self, ids: &[SegmentId]) {
        for (place, id) in ids.iter().enumerate() {
            self.segments[place] = self.segments[id.0 as usize];
        }
        self.segments.truncate(ids.len());
        self.segments.shrink_to_fit();
        let mut codes: Vec<CodeId> = self.segments.iter().map(|segment| segment.code).collect();
        codes.sort_unstable();
        codes.dedup();
        self.codes.keep_only(&codes);
        for segment in &mut self.segments {
            let place = codes.binary_search(&segment.code).expect("the list was made of these");
            segment.code = CodeId(place as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{build, code, load};
    use super::*;
    use crate::model::Addr;
    use crate::model::process::Processes;

    #[test]
    fn what_is_kept_is_as_it_was() {
        let names = ["a", "b", "c", "d"];
        let loads = names.iter().zip(1..).map(|(name, at)| load(1, Some(at), code(name, at * 0x100, at)));
        let map = build(loads.collect(), &Processes::default());
        let of = |pieces: &Pieces<'_>, id: usize| {
            let segment = pieces.segments()[id];
            (segment.start, String::from_utf8_lossy(pieces.code(segment.code).name).into_owned())
        };
        let mut pieces = map.into_pieces();
        let before = [of(&pieces, 1), of(&pieces, 3)];
        pieces.keep_only(&[SegmentId(1), SegmentId(3)]);
        assert_eq!([of(&pieces, 0), of(&pieces, 1)], before);
        assert_eq!((pieces.segments().len(), pieces.codes.len()), (2, 2));
        assert_eq!(pieces.segment(SegmentId(0)).start, before[0].0);
        assert_ne!(before[0].0, Addr(0));
    }
}
