//! Parses the records of a large jitdump on several threads.

use crate::error::Result;
use crate::jit::jitdump::{JitDump, Record};
use crate::parallel::Pool;
use std::ops::Range;

/// The size of a piece in bytes. The parsed records of a few pieces per thread are in memory at a time.
pub(super) const PIECE: u64 = 1 << 20;

/// Calls `each` with every record of a jitdump, in file order. If there is a pool and the file is large, the pool's
/// threads meanwhile parse the next pieces of the file, of `piece_size` bytes each. If a piece turns out to begin in
/// the wrong place or to be damaged, its records are read again, one by one.
pub(super) fn for_each_record<'data>(
    dump: &JitDump<'data>,
    pool: Option<&Pool>,
    piece_size: u64,
    mut each: impl FnMut(Result<Record<'data>>),
) {
    let mut records = dump.records();
    let extent = dump.extent();
    if let Some(pool) = pool
        && pool.threads() > 1
        // A shorter file has too few pieces to be worth it.
        && extent.end - extent.start > 2 * piece_size
    {
        let starts = (extent.start..extent.end).step_by(usize::try_from(piece_size).unwrap_or(usize::MAX));
        let ranges = starts.map(|start| start..start.saturating_add(piece_size).min(extent.end));
        let parse = |range: Range<u64>| (range.end, dump.piece(range));
        pool.each(ranges, parse, |(end, piece)| match piece {
            // The piece begins at the very record that `records` would read next. Both have read the same records, so
            // `records` can go on after the piece.
            Some(piece) if records.step_over(&piece) => {
                for record in piece.records {
                    each(Ok(record));
                }
            }
            // The piece is damaged or begins in the wrong place: a piece in the middle of the file has to guess where
            // its first record starts. Its part of the file is read again, record by record.
            _ => {
                while records.next_offset().is_some_and(|offset| offset < end)
                    && let Some(record) = records.next()
                {
                    each(record);
                }
            }
        });
    }
    // Reads the rest: all records if they weren't parsed in parallel, otherwise those after the last piece.
    records.for_each(each);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
    use std::num::NonZeroUsize;

    fn record(id: u32, time: u64, payload: &[u8]) -> Vec<u8> {
        let size = 16 + payload.len() as u32;
        [&id.to_le_bytes()[..], &size.to_le_bytes(), &time.to_le_bytes(), payload].concat()
    }

    /// A LOAD record whose code looks like records.
    fn deceiving(time: u64, inner: usize) -> Vec<u8> {
        let code = record(3, time, &[]).repeat(inner);
        let mut payload = [[7u32.to_le_bytes(); 2].concat(), vec![0; 8]].concat();
        payload.extend(0x1000u64.to_le_bytes());
        payload.extend((code.len() as u64).to_le_bytes());
        payload.extend([0; 8]);
        payload.extend(b"name\0");
        payload.extend(code);
        record(0, time, &payload)
    }

    fn dump() -> impl Strategy<Value = Vec<u8>> {
        let one = prop_oneof![
            6 => (1..9u64, 0..9usize).prop_map(|(time, inner)| deceiving(time, inner)),
            3 => (1..9u64).prop_map(|time| record(1, time, &[1; 48])),
            1 => (1..9u64).prop_map(|time| record(3, time, &[])),
            1 => (any::<u8>(), 0..40usize).prop_map(|(byte, len)| vec![byte; len]),
        ];
        (prop::collection::vec(one, 0..80), 0..60usize).prop_map(|(records, cut)| {
            let mut bytes = b"DTiJ".to_vec();
            bytes.extend(1u32.to_le_bytes());
            bytes.extend(40u32.to_le_bytes());
            bytes.resize(40, 0);
            bytes.extend(records.concat());
            bytes.truncate(bytes.len().saturating_sub(cut).max(40));
            bytes
        })
    }

    proptest! {
        #[test]
        fn pieces_that_are_begun_anywhere_are_as_one_walk_through_all(
            bytes in dump(),
            threads in 2..4usize,
            piece in 1..700u64,
        ) {
            let pool = Pool::new(NonZeroUsize::new(threads)).unwrap();
            let dump = JitDump::parse(&bytes).unwrap();
            let expected: Vec<String> = dump.records().map(|record| format!("{record:?}")).collect();
            let mut found = Vec::new();
            for_each_record(&dump, Some(&pool), piece, |record| found.push(format!("{record:?}")));
            prop_assert_eq!(found, expected);
        }
    }
}
