//! Pieces of a dump whose records are read before those in front of them.
//!
//! Each record shows where the next one begins. A piece is begun at what looks like a record ([`JitDump::piece`]);
//! whether it is one gives the walk through the records in front of it ([`Records::step_over`]), which else reads them
//! itself.

use super::{JitDump, Record, Records};
use std::ops::Range;

/// As many records in a row are not accident of somebody's machine code.
const IN_A_ROW: usize = 4;

/// Records that follow one another.
#[derive(Debug)]
pub struct Piece<'data> {
    /// The records that were read.
    pub records: Vec<Record<'data>>,
    /// The start of the first one.
    start: u64,
    /// The walk behind the last one.
    behind: Records<'data>,
}

impl<'data> JitDump<'data> {
    /// The places of the records in the file.
    pub fn extent(&self) -> Range<u64> {
        self.records.offset()..self.records.offset() + self.records.left() as u64
    }

    /// The records that begin in a range of the file, if nothing is wrong with any of them and they begin where they seem to.
    pub fn piece(&self, range: Range<u64>) -> Option<Piece<'data>> {
        let mut behind = self.records();
        behind.cursor.bytes(range.start.checked_sub(behind.cursor.offset())?, "").ok()?;
        if range.start > self.extent().start {
            behind.go_to_a_row(range.end)?;
        }
        let start = behind.cursor.offset();
        let mut records = Vec::new();
        while behind.cursor.offset() < range.end {
            records.push(behind.next()?.ok()?);
        }
        // The last one of a dump that was cut off has more to be reported about it.
        (!behind.is_cut()).then_some(Piece { records, start, behind })
    }
}

impl<'data> Records<'data> {
    /// The start of the next record, if there is one.
    pub fn next_offset(&self) -> Option<u64> {
        (!self.dead && !self.cursor.is_empty()).then(|| self.cursor.offset())
    }

    /// Steps over a piece, if the next record is its first.
    pub fn step_over(&mut self, piece: &Piece<'data>) -> bool {
        let is_next = self.next_offset() == Some(piece.start) && !piece.records.is_empty();
        if is_next {
            *self = piece.behind.clone();
        }
        is_next
    }

    /// Goes to the next place below `end` where several records seem to be.
    fn go_to_a_row(&mut self, end: u64) -> Option<()> {
        while self.cursor.offset() < end {
            let first = self.plausible(self.cursor);
            let mut row =
                std::iter::successors(first, |at| if at.is_empty() { Some(*at) } else { self.plausible(*at) });
            if row.nth(IN_A_ROW - 1).is_some() {
                return Some(());
            }
            self.cursor.bytes(1, "").ok()?;
        }
        None
    }
}
