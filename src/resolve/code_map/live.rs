//! The code ranges that are there at one moment, while changes are played.

use super::list::{Change, ChangeKind};
use super::segment::{CodeId, Segment};
use crate::model::ranges::{Entry, RangeMap};
use crate::model::{Addr, Nanos, Pid};

/// The current code.
#[derive(Debug, Default)]
pub(super) struct Live {
    pieces: RangeMap<LivePiece>,
    /// Those that are not more, with the ends of their times.
    ended: Vec<(Entry<LivePiece>, Nanos)>,
}

#[derive(Debug, Clone, Copy)]
struct LivePiece {
    code: CodeId,
    from: Nanos,
}

impl Live {
    /// True if nothing is there now.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Puts code where nothing is.
    pub(super) fn put(&mut self, change: &Change) {
        let from = if change.kind == ChangeKind::Untimed { Nanos(0) } else { change.time };
        self.pieces.insert_into_gap(change.start.0..change.end.0, LivePiece { code: change.code, from });
    }

    /// Ends whatever is in a range; what stands out of it lives on. True if anything was there.
    pub(super) fn cut(&mut self, start: Addr, end: Addr, time: Nanos) -> bool {
        let (mut hit, ended) = (false, &mut self.ended);
        self.pieces.clear(start.0..end.0, |piece| {
            hit = true;
            note(ended, piece, time);
        });
        hit
    }

    /// Ends the pieces of one code that are left where it was before it moved.
    pub(super) fn remove(&mut self, gone: &Change) {
        let (own, ended) = (|piece: &LivePiece| piece.code == gone.code, &mut self.ended);
        self.pieces.evict(gone.start.0..gone.end.0, own, |piece| note(ended, piece, gone.time));
    }

    /// Hands over what there was and is; then nothing is there.
    pub(super) fn finish(&mut self, pid: Pid, into: &mut Vec<Segment>) {
        let left = self.pieces.drain();
        left.for_each(|piece| note(&mut self.ended, piece, Nanos(u64::MAX)));
        into.extend(self.ended.drain(..).map(|(entry, until)| {
            let Entry { start, end, skipped: offset, value: LivePiece { code, from } } = entry;
            Segment { pid, code, start: Addr(start), end: Addr(end), from, until, offset }
        }));
    }
}

fn note(ended: &mut Vec<(Entry<LivePiece>, Nanos)>, piece: Entry<LivePiece>, until: Nanos) {
    // Code that was replaced in the instant it came was never there.
    if piece.value.from < until {
        ended.push((piece, until));
    }
}
