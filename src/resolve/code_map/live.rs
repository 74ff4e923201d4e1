//! The pieces of code that are there at one moment, while changes are played.

use super::list::{Change, ChangeKind};
use super::{CodeId, Segment};
use crate::model::{Addr, Nanos, Pid};
use std::collections::BTreeMap;

/// What is there now, by first address; none overlaps another.
#[derive(Debug, Default)]
pub(super) struct Live {
    pieces: BTreeMap<Addr, Piece>,
    /// Those that are no more, with the ends of their times.
    ended: Vec<(Addr, Piece, Nanos)>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    end: Addr,
    code: CodeId,
    offset: u64,
    from: Nanos,
}

impl Live {
    /// Puts code where nothing is.
    pub(super) fn put(&mut self, change: &Change) {
        let Change { start, end, code, .. } = *change;
        if start < end {
            let from = if change.kind == ChangeKind::Untimed { Nanos(0) } else { change.time };
            self.pieces.insert(start, Piece { end, code, offset: 0, from });
        }
    }

    /// Ends whatever is in a range; what stands out of it lives on. Whether anything was there.
    pub(super) fn cut(&mut self, start: Addr, end: Addr, time: Nanos) -> bool {
        if start >= end {
            return false;
        }
        let below = self.pieces.range(..start).next_back().filter(|(_, piece)| piece.end > start).map(|(at, _)| *at);
        let mut next = below.or_else(|| self.first_in(start, end));
        let hit = next.is_some();
        while let Some(at) = next {
            self.cut_piece(at, start, end, time);
            next = self.first_in(start, end);
        }
        hit
    }

    fn first_in(&self, start: Addr, end: Addr) -> Option<Addr> {
        self.pieces.range(start..end).next().map(|(at, _)| *at)
    }

    fn cut_piece(&mut self, at: Addr, start: Addr, end: Addr, time: Nanos) {
        let Some(piece) = self.pieces.remove(&at) else { return };
        let (low, high) = (at.max(start), piece.end.min(end));
        if at < low {
            self.pieces.insert(at, Piece { end: low, ..piece });
        }
        if high < piece.end {
            self.pieces.insert(high, Piece { offset: piece.offset + (high.0 - at.0), ..piece });
        }
        let offset = piece.offset + (low.0 - at.0);
        self.end(low, Piece { end: high, offset, ..piece }, time);
    }

    /// Ends the pieces of one code that are left where it was before it moved.
    pub(super) fn remove(&mut self, gone: &Change) {
        let range = self.pieces.range(gone.start..gone.end);
        let own: Vec<Addr> = range.filter(|(_, piece)| piece.code == gone.code).map(|(at, _)| *at).collect();
        for at in own {
            if let Some(piece) = self.pieces.remove(&at) {
                self.end(at, piece, gone.time);
            }
        }
    }

    fn end(&mut self, start: Addr, piece: Piece, until: Nanos) {
        // What was replaced in the instant it came was never there.
        if piece.from < until {
            self.ended.push((start, piece, until));
        }
    }

    /// Hands over what there was and is; then nothing is there.
    pub(super) fn finish(&mut self, pid: Pid, into: &mut Vec<Segment>) {
        for (start, piece) in std::mem::take(&mut self.pieces) {
            self.end(start, piece, Nanos(u64::MAX));
        }
        into.extend(self.ended.drain(..).map(|(start, piece, until)| {
            let Piece { end, code, offset, from } = piece;
            Segment { pid, code, start, end, from, until, offset }
        }));
    }
}
