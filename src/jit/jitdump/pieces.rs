//! Reads a jitdump in pieces, so that they can be read in parallel.
//!
//! Where a record begins is only known from the record before it. A piece therefore starts at a position that looks
//! like a record ([`JitDump::piece`]). The walk through the records before it checks whether it arrives at the same
//! position ([`Records::step_over`]); if not, the walk reads the records of the piece itself.

use super::{JitDump, Record, Records};
use crate::bytes::cursor::Cursor;
use std::ops::Range;

/// How many plausible records in a row prove that a position in the middle of the file is the start of a record. So
/// many don't occur by accident in machine code.
const IN_A_ROW: usize = 4;

/// Consecutive records of a dump.
#[derive(Debug)]
pub struct Piece<'data> {
    /// The records of the piece, in file order.
    pub records: Vec<Record<'data>>,
    /// File offset of the first record.
    start: u64,
    /// The state of the walk after the last record of the piece.
    walk_after: Records<'data>,
}

impl<'data> JitDump<'data> {
    /// The range of the file that contains the records, after the header.
    pub fn extent(&self) -> Range<u64> {
        self.records.offset()..self.records.offset() + self.records.left() as u64
    }

    /// Reads the records that begin in `range`, starting with the first position that looks like a record. `None` if no
    /// position in `range` looks like a record, or if any of the records is damaged.
    pub fn piece(&self, range: Range<u64>) -> Option<Piece<'data>> {
        let mut walk = self.records();
        // Skip to the start of the range.
        walk.cursor.bytes(range.start.checked_sub(walk.cursor.offset())?, "").ok()?;
        // The first record is right at the start of the file's records. The other pieces begin anywhere, so the start
        // of a record must be found.
        if range.start > self.extent().start {
            // Without a position before `range.end` that looks like a record, there is no piece (`None`).
            walk.go_to_a_row(range.end)?;
        }
        let start = walk.cursor.offset();
        let mut records = Vec::new();
        while walk.cursor.offset() < range.end {
            records.push(walk.next()?.ok()?);
        }
        // The dump ends within a record. The walk through the whole dump must notice this, so the piece isn't used.
        if walk.is_cut() {
            return None;
        }
        Some(Piece { records, start, walk_after: walk })
    }
}

impl<'data> Records<'data> {
    /// Offset of the next record; `None` at the end.
    pub fn next_offset(&self) -> Option<u64> {
        (!self.is_cut && !self.cursor.is_empty()).then(|| self.cursor.offset())
    }

    /// Skips the records of a piece if its first record is the one that would be read next. Returns whether it is.
    pub fn step_over(&mut self, piece: &Piece<'data>) -> bool {
        let is_next = self.next_offset() == Some(piece.start) && !piece.records.is_empty();
        if is_next {
            *self = piece.walk_after.clone();
        }
        is_next
    }

    /// True if this position looks like the start of a record: [`IN_A_ROW`] plausible records follow each other from
    /// here, or fewer (at least one) up to the end of the dump. A single plausible record isn't enough, because code in
    /// the middle of a record may look like one by chance.
    fn begins_row(&self, position: Cursor<'data>) -> bool {
        let mut next = position;
        for number in 0..IN_A_ROW {
            if number > 0 && next.is_empty() {
                return true;
            }
            let Some(after) = self.skip_plausible(next) else { return false };
            next = after;
        }
        true
    }

    /// Moves to the next position before `end` where several plausible records follow each other. `None` if there is
    /// none.
    fn go_to_a_row(&mut self, end: u64) -> Option<()> {
        while self.cursor.offset() < end {
            if self.begins_row(self.cursor) {
                return Some(());
            }
            self.cursor.bytes(1, "").ok()?;
        }
        None
    }
}
