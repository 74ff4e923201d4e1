//! The code that goes into the images.

use super::code_uses::{Key, Touch};
use crate::model::Pid;
use crate::resolve::code_map::{self, CodeMap, SegmentId};

/// The code that the images shall have: what is touched, or all. Gives also its new numbers by the old ones, and how
/// many stretches of it are touched.
pub(in crate::commands) fn keep_wanted<'data>(
    codes: CodeMap<'data>,
    touches: &[(Key, Touch)],
    all: bool,
    injected: &[Pid],
) -> (code_map::Pieces<'data>, Vec<Option<SegmentId>>, usize) {
    let mut wanted = vec![false; codes.segments().len()];
    touches.iter().for_each(|(key, _)| wanted[key.segment.0 as usize] = true);
    let touched = wanted.iter().filter(|wanted| **wanted).count();
    if all {
        let of_own = codes.segments().iter().map(|segment| !injected.contains(&segment.pid));
        wanted.iter_mut().zip(of_own).for_each(|(wanted, own)| *wanted |= own);
    }
    let mut codes = codes.into_pieces();
    let numbers = codes.keep_only(&wanted);
    (codes, numbers, touched)
}
