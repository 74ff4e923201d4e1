//! The code that is in memory at the current moment of a replay.

use super::list::{Change, ChangeKind, CodeId};
use super::segment_index::Segment;
use crate::model::ranges::{Entry, RangeMap};
use crate::model::{Addr, Nanos, Pid};

#[derive(Debug, Default)]
pub(super) struct Live {
    pieces: RangeMap<LivePiece>,
    /// Pieces of code, or parts of them, that are no longer in memory, each with the time when it ended.
    ended: Vec<(Entry<LivePiece>, Nanos)>,
}

/// Which code is in a range of addresses, and since when.
#[derive(Debug, Clone, Copy)]
struct LivePiece {
    code: CodeId,
    from: Nanos,
}

impl Live {
    /// True if no code is in memory now.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Adds the code of a load, a move or an untimed entry. There must be no code in its range; [`Self::cut`] ends what
    /// was there before.
    pub(super) fn put(&mut self, change: &Change) {
        let from = if change.kind == ChangeKind::Untimed { Nanos(0) } else { change.time };
        self.pieces.insert_into_gap(change.start.0..change.end.0, LivePiece { code: change.code, from });
    }

    /// Ends the code in the range at `time`. The parts of a piece outside of the range stay. Returns true if there was
    /// code in the range.
    pub(super) fn cut(&mut self, start: Addr, end: Addr, time: Nanos) -> bool {
        let mut had_code = false;
        self.pieces.clear(start.0..end.0, |piece| {
            had_code = true;
            end_piece(&mut self.ended, piece, time);
        });
        had_code
    }

    /// Ends what is left of a piece of code that was unloaded or moved away. `gone` has its number, the range in which
    /// it was, and the time. Other code that has been written to this range in the meantime stays.
    pub(super) fn remove(&mut self, gone: &Change) {
        let is_gone = |piece: &LivePiece| piece.code == gone.code;
        self.pieces.evict(gone.start.0..gone.end.0, is_gone, |piece| end_piece(&mut self.ended, piece, gone.time));
    }

    /// Ends the replay: code that is still in memory never ends. Appends all resulting segments to `segments`, and
    /// leaves nothing here.
    pub(super) fn finish(&mut self, pid: Pid, segments: &mut Vec<Segment>) {
        for piece in self.pieces.drain() {
            end_piece(&mut self.ended, piece, Nanos(u64::MAX));
        }
        segments.extend(self.ended.drain(..).map(|(entry, until)| {
            let Entry { start, end, skipped: offset, value: LivePiece { code, from } } = entry;
            Segment { pid, code, start: Addr(start), end: Addr(end), from, until, offset }
        }));
    }
}

/// Adds a piece that ended at `until` to `ended`.
fn end_piece(ended: &mut Vec<(Entry<LivePiece>, Nanos)>, piece: Entry<LivePiece>, until: Nanos) {
    // Code that was replaced at the very time when it appeared never ran, and gets no segment.
    if piece.value.from < until {
        ended.push((piece, until));
    }
}
