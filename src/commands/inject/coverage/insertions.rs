//! Inserted mapping records hide code, too.

use super::code_uses::{Key, Touch};
use super::shadowings::Cover;
use crate::model::{Addr, Pid};
use crate::parallel::Pool;
use crate::resolve::code_map::CodeMap;
use rayon::slice::ParallelSliceMut;
use std::collections::BTreeMap;

/// A touch, as far as it matters here.
#[derive(Debug, Clone, Copy)]
struct Shown {
    pid: Pid,
    start: Addr,
    end: Addr,
    /// Its place in the list of touches.
    touch: u32,
}

/// Inserted records hide code, too, where segments of different sources or generations overlap. What is touched
/// once more after that needs a record once more: these are the covers of another round. The touches are in order.
pub(in crate::commands) fn hidden_by_insertions(
    touches: &[(Key, Touch)],
    codes: &CodeMap<'_>,
    pool: &Pool,
) -> Vec<(Pid, Cover)> {
    let shown = touches.iter().zip(0..).map(|((key, _), touch)| {
        let segment = codes.segment(key.segment);
        Shown { pid: key.pid, start: segment.start, end: segment.end, touch }
    });
    let mut shown: Vec<Shown> = shown.collect();
    pool.install(|| shown.par_sort_unstable_by_key(|shown| (shown.pid, shown.start, shown.touch)));
    let mut hidden = Vec::new();
    let mut rest = shown.as_mut_slice();
    while !rest.is_empty() {
        let (meeting, behind) = rest.split_at_mut(meeting(rest));
        if meeting.len() > 1 {
            meeting.sort_unstable_by_key(|shown| shown.touch);
            hidden_among(meeting, touches, &mut hidden);
        }
        rest = behind;
    }
    hidden
}

/// How many from the first on, by address, follow each other without a gap.
fn meeting(shown: &[Shown]) -> usize {
    let (pid, mut end) = (shown[0].pid, shown[0].end);
    let apart = |next: &Shown| {
        let apart = next.pid != pid || next.start >= end;
        end = end.max(next.end);
        apart
    };
    shown.iter().skip(1).position(apart).map_or(shown.len(), |before| before + 1)
}

/// `all` are of one process, in the order of the touches.
fn hidden_among(all: &[Shown], touches: &[(Key, Touch)], hidden: &mut Vec<(Pid, Cover)>) {
    let mut now: BTreeMap<Addr, Shown> = BTreeMap::new();
    for new in all {
        let (key, touch) = touches[new.touch as usize];
        // Of what is shown nothing overlaps, so that the ends are in the order of the starts.
        let below = now.range(..new.end).rev();
        let overlapped: Vec<Shown> = below.map(|(_, old)| *old).take_while(|old| old.end > new.start).collect();
        for old in overlapped {
            now.remove(&old.start);
            let (other, of) = touches[old.touch as usize];
            if other.segment != key.segment && of.last > touch.first {
                let cover = Cover { when: touch.first, start: new.start, end: new.end, by: Some(key.segment) };
                hidden.push((key.pid, cover));
            }
        }
        now.insert(new.start, *new);
    }
}
