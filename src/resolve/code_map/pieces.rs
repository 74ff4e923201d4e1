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

    /// Forgets the stretches that are not `wanted` (one answer for each), and the code that is in none of the others.
    /// Gives the new numbers of those that stay, by their old ones.
    pub fn keep_only(&mut self, wanted: &[bool]) -> Vec<Option<SegmentId>> {
        let mut kept = wanted.iter();
        self.segments.retain(|_| kept.next().is_some_and(|kept| *kept));
        self.segments.shrink_to_fit();
        let mut used = vec![false; self.codes.len()];
        self.segments.iter().for_each(|segment| used[segment.code.0 as usize] = true);
        self.codes.keep_only(&used);
        let codes: Vec<u32> = numbers(&used).collect();
        self.segments.iter_mut().for_each(|segment| segment.code = CodeId(codes[segment.code.0 as usize]));
        numbers(wanted).zip(wanted).map(|(number, wanted)| wanted.then_some(SegmentId(number))).collect()
    }
}

/// The places that the wanted ones will have. Those of the others mean nothing.
fn numbers(wanted: &[bool]) -> impl Iterator<Item = u32> + '_ {
    wanted.iter().scan(0, |next, wanted| {
        let number = *next;
        *next += u32::from(*wanted);
        Some(number)
    })
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
        let numbers = pieces.keep_only(&[false, true, false, true]);
        assert_eq!([of(&pieces, 0), of(&pieces, 1)], before);
        assert_eq!(numbers, [None, Some(SegmentId(0)), None, Some(SegmentId(1))]);
        assert_eq!((pieces.segments().len(), pieces.codes.len()), (2, 2));
        assert_eq!(pieces.segment(SegmentId(0)).start, before[0].0);
        assert_ne!(before[0].0, Addr(0));
    }
}
