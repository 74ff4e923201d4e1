//! Where the records of a stream stand, found by all threads.
//!
//! Each record tells where the next one begins. So that not one thread goes from header to header through all of a
//! long recording, each piece of it is begun at what looks like a record. The piece before tells whether it is one:
//! if it ends somewhere else, the piece is walked once more from there.

use crate::error::Error;
use crate::formats::cursor::Endian;
use crate::formats::perf_data::{RawRecord, Records, Stop, is_compressed, kind, may_begin};
use crate::parallel::Pool;
use std::ops::Range;

/// A piece is at least this long: what neighbouring samples share is looked up once a piece.
const MIN_PIECE: usize = 1 << 20;
/// So many pieces a thread: the last ones to be ready wait little.
const PIECES_A_THREAD: usize = 4;

/// Where the records of a stream stand.
#[derive(Debug)]
pub(crate) struct Walk {
    /// Whole records, in pieces of about equal length: one is the work of a thread.
    pub(super) pieces: Vec<Range<usize>>,
    /// Where records begin that are no samples.
    pub(super) others: Vec<usize>,
    /// Whether any of them is compressed.
    pub(crate) has_compressed: bool,
    /// Why it ended early.
    pub(super) damage: Option<Error>,
}

/// A stretch of records, as one thread walks it.
#[derive(Debug)]
struct WalkedPiece {
    /// Where its first record begins.
    start: usize,
    /// One past its last record; this may be behind the next piece's start.
    end: usize,
    others: Vec<usize>,
    has_compressed: bool,
    /// Whether it stopped before it came to the next piece.
    stopped: bool,
}

impl Walk {
    /// Of no records.
    pub(crate) fn none() -> Self {
        Self { pieces: Vec::new(), others: Vec::new(), has_compressed: false, damage: None }
    }

    /// Walks all records of a stream.
    pub(crate) fn of(bytes: &[u8], base: u64, endian: Endian, pool: &Pool) -> Self {
        let length = (bytes.len() / (pool.threads() * PIECES_A_THREAD)).max(MIN_PIECE);
        Self::in_pieces(bytes, base, endian, length, pool)
    }

    /// The same in pieces of about so many bytes.
    fn in_pieces(bytes: &[u8], base: u64, endian: Endian, length: usize, pool: &Pool) -> Self {
        // Records begin at multiples of eight.
        let length = length.next_multiple_of(8);
        let limits: Vec<Range<usize>> = (0..bytes.len().max(1))
            .step_by(length)
            .map(|start| start..start.saturating_add(length).min(bytes.len()))
            .collect();
        let guessed = pool.map(limits.clone(), |limits: Range<usize>| {
            let start = if limits.start == 0 { Some(0) } else { may_begin(bytes, limits.clone(), endian) };
            start.map(|start| WalkedPiece::walk(bytes, start..limits.end, endian))
        });
        let mut walk = Self::none();
        let mut at = 0;
        for (limits, guessed) in limits.into_iter().zip(guessed) {
            if at >= limits.end && at > 0 {
                // What belongs to a record reaches over all of it.
                continue;
            }
            let right = guessed.filter(|piece| piece.start == at);
            let piece = right.unwrap_or_else(|| WalkedPiece::walk(bytes, at..limits.end, endian));
            at = piece.end;
            walk.pieces.push(piece.start..piece.end.min(bytes.len()));
            walk.others.extend(piece.others);
            walk.has_compressed |= piece.has_compressed;
            if piece.stopped {
                break;
            }
        }
        let rest = bytes.get(at..).unwrap_or_default();
        if let Stop::Damage(error) = Records::new(rest, base.saturating_add(at as u64), endian).stop() {
            walk.damage = Some(error);
        }
        walk
    }
}

impl WalkedPiece {
    /// Walks the records that begin in a range of the stream, at whose start there is one.
    fn walk(bytes: &[u8], range: Range<usize>, endian: Endian) -> Self {
        let Range { start, end: limit } = range;
        let mut piece = Self { start, end: start, others: Vec::new(), has_compressed: false, stopped: false };
        let mut records = Records::new(&bytes[start..], start as u64, endian);
        while piece.end < limit {
            let Some(record) = records.next() else {
                piece.stopped = true;
                break;
            };
            piece.see(&record);
        }
        piece
    }

    fn see(&mut self, record: &RawRecord<'_>) {
        if record.kind != kind::SAMPLE {
            self.others.push(self.end);
            self.has_compressed |= is_compressed(record);
        }
        self.end = usize::try_from(record.end()).unwrap_or(usize::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
    use std::num::NonZeroUsize;

    fn record(kind: u32, size: u16) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([2, 0]);
        bytes.extend(size.to_le_bytes());
        bytes.resize(usize::from(size), 0);
        bytes
    }

    /// A sample whose body looks like records.
    fn deceiving(size: u16) -> Vec<u8> {
        let mut bytes = record(kind::SAMPLE, size);
        let inner = record(kind::SAMPLE, 16);
        bytes[8..].chunks_exact_mut(16).for_each(|place| place.copy_from_slice(&inner));
        bytes
    }

    fn auxtrace(payload: usize) -> Vec<u8> {
        let mut bytes = record(kind::AUXTRACE, 48);
        bytes[8..16].copy_from_slice(&(payload as u64).to_le_bytes());
        bytes.extend(std::iter::repeat_n(9, payload));
        bytes
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let size = || (1..60u16).prop_map(|words| words * 8);
        let one = prop_oneof![
            6 => size().prop_map(|size| record(kind::SAMPLE, size)),
            3 => (1..100u16).prop_map(|words| deceiving(8 + words * 16)),
            3 => size().prop_map(|size| record(kind::MMAP, size)),
            1 => (0..9_000usize).prop_map(auxtrace),
            1 => any::<u16>().prop_map(|size| record(kind::EXIT, size.max(1))),
        ];
        (prop::collection::vec(one, 0..200), 0..100usize).prop_map(|(records, cut)| {
            let mut bytes = records.concat();
            bytes.truncate(bytes.len().saturating_sub(cut));
            bytes
        })
    }

    proptest! {
        #[test]
        fn pieces_that_are_begun_anywhere_are_as_one_walk_through_all(
            bytes in stream(),
            threads in 1..4usize,
            length in 1..5000usize,
        ) {
            let pool = Pool::new(NonZeroUsize::new(threads)).unwrap();
            let walk = Walk::in_pieces(&bytes, 64, Endian::Little, length, &pool);
            let mut records = Records::new(&bytes, 0, Endian::Little);
            let mut others = Vec::new();
            let mut end = 0;
            for record in records.by_ref() {
                if record.kind != kind::SAMPLE {
                    others.push(record.offset as usize);
                }
                end = (record.end() as usize).min(bytes.len());
            }
            let damaged = matches!(records.stop(), Stop::Damage(_));
            prop_assert_eq!(&walk.others, &others);
            prop_assert_eq!(walk.pieces.last().map_or(0, |piece| piece.end), end);
            prop_assert_eq!(walk.damage.is_some(), damaged);
            prop_assert_eq!(walk.pieces.first().map_or(0, |piece| piece.start), 0);
            for pair in walk.pieces.windows(2) {
                prop_assert_eq!(pair[0].end, pair[1].start);
            }
            let pieces = walk.pieces.iter().map(|piece| &bytes[piece.clone()]);
            let count: usize = pieces.map(|piece| Records::new(piece, 0, Endian::Little).count()).sum();
            prop_assert_eq!(count, Records::new(&bytes, 0, Endian::Little).count());
        }
    }
}
