//! Walks records. A record is a `struct perf_event_header` (u32 type, u16 misc, u16 size) and `size` - 8 bytes of body.
//!
//! Two types, AUXTRACE and HEADER_TRACING_DATA, are followed by a payload that `size` doesn't include. The walk may
//! cover a window of the data section. It ends before the first record that isn't complete in the window. There the
//! caller continues with the next window; if there is none, the file was truncated.

use super::kind;
use crate::bytes::byte_writer::ByteWriter;
use crate::bytes::cursor::{Cursor, Endian};
use crate::error::Error;
use std::ops::Range;

const HEADER: usize = 8;

/// A record as stored in the file.
#[derive(Debug, Clone, Copy)]
pub struct RawRecord<'data> {
    /// Offset of the record in the file.
    pub offset: u64,
    /// `PERF_RECORD_*`; see [`super::kind`].
    pub kind: u32,
    /// `PERF_RECORD_MISC_*` bits.
    pub misc: u16,
    /// The record with its header, as long as its size field says. The data that follows some records (`payload`) is
    /// not part of it.
    pub bytes: &'data [u8],
    /// Length in bytes of the payload that follows the record.
    pub payload: u64,
    /// The byte order of the fields.
    pub endian: Endian,
}

impl<'data> RawRecord<'data> {
    /// Reads the record at the start of `bytes`. If `bytes` ends within the record, the error is how many bytes the
    /// record has, or 8 if even its header is incomplete. If the record states a size that is impossible, the error is
    /// 0. Data that follow the record (`payload`) needn't be in `bytes`.
    #[inline]
    fn read(bytes: &'data [u8], offset: u64, endian: Endian) -> Result<Self, usize> {
        // The header: four bytes of `kind`, two of `misc`, two of the record's size.
        let Some(&[k0, k1, k2, k3, m0, m1, s0, s1]) = bytes.first_chunk::<HEADER>() else { return Err(HEADER) };
        let (kind, misc) = (endian.u32([k0, k1, k2, k3]), endian.u16([m0, m1]));
        let size = usize::from(endian.u16([s0, s1]));
        if size < HEADER {
            return Err(0);
        }
        let whole = bytes.get(..size).ok_or(size)?;
        let mut record = Self { offset, kind, misc, bytes: whole, payload: 0, endian };
        record.payload = record.payload_size();
        Ok(record)
    }

    /// The length of the payload, which the first field of the body states for the two kinds of records that have one.
    #[inline]
    fn payload_size(&self) -> u64 {
        let mut body = self.body();
        match self.kind {
            kind::AUXTRACE => body.u64("size").unwrap_or(0),
            kind::HEADER_TRACING_DATA => body.u32("size").map_or(0, |size| u64::from(size).next_multiple_of(8)),
            _ => 0,
        }
    }

    /// The bytes of the record after its header.
    #[inline]
    pub fn body(&self) -> Cursor<'data> {
        Cursor::new(&self.bytes[HEADER..], self.offset + HEADER as u64, self.endian)
    }

    /// The file offset at which the record and its payload end, but at most `u64::MAX`.
    #[inline]
    pub fn end(&self) -> u64 {
        (self.offset + self.bytes.len() as u64).saturating_add(self.payload)
    }
}

/// Encodes a record. `None` if it is longer than a record can be.
pub fn record(kind: u32, misc: u16, body: &[u8], endian: Endian) -> Option<Vec<u8>> {
    let size = u16::try_from(body.len() + 8).ok()?;
    let mut record = ByteWriter::append_to(Vec::with_capacity(size.into()), endian);
    record.u32(kind).u16(misc).u16(size).bytes(body);
    Some(record.finish())
}

/// Guesses where a record starts: the first offset in `range` at which several plausible records follow each other, or
/// at which plausible records fill `bytes` exactly. `None` if there is no such offset. Callers must check the guess,
/// because the fields of a sample can look like records too.
pub fn find_record_start(bytes: &[u8], range: Range<usize>, endian: Endian) -> Option<usize> {
    /// The number of plausible records that must follow each other, so that it is hardly a coincidence.
    const IN_A_ROW: usize = 6;
    // Records have lengths that are multiples of 8.
    range.step_by(8).find(|&start| {
        let mut records = Records::new(&bytes[start..], 0, endian);
        let count = records.by_ref().take(IN_A_ROW).take_while(is_plausible).count();
        // `None`: the last record has a payload that extends beyond `bytes`.
        let is_at_end = records.rest().is_none_or(<[u8]>::is_empty);
        count == IN_A_ROW || count > 0 && is_at_end
    })
}

/// True if a record has a known kind, a length that is a multiple of 8, and only known bits in `misc`.
fn is_plausible(record: &RawRecord<'_>) -> bool {
    matches!(record.kind, 1..=32 | 64..=96) && record.bytes.len().is_multiple_of(8) && record.misc & !0xf007 == 0
}

/// Why a walk ended.
#[derive(Debug)]
pub enum Stop {
    /// The bytes that were walked contain no further complete record. Holds the file offset at which the next record
    /// starts or would start. It is beyond the bytes if they end within the payload of a record.
    Next(u64),
    /// The next record states an impossible size.
    Damage(Error),
}

/// Iterator over records, in file order.
#[derive(Debug, Clone)]
pub struct Records<'data> {
    bytes: &'data [u8],
    /// The file offset of `bytes`.
    base: u64,
    /// Index in `bytes` of the next record. If `bytes` ends within a payload, the index is beyond the end of `bytes`.
    position: u64,
    endian: Endian,
}

impl<'data> Records<'data> {
    /// Walks `bytes`, which start with a record. `base` is their file offset.
    pub fn new(bytes: &'data [u8], base: u64, endian: Endian) -> Self {
        Self { bytes, base, position: 0, endian }
    }

    /// The bytes that weren't walked yet; `None` if the position is beyond the end.
    #[inline]
    fn rest(&self) -> Option<&'data [u8]> {
        usize::try_from(self.position).ok().and_then(|position| self.bytes.get(position..))
    }

    /// Why the walk ended. Only meaningful after the iterator has returned `None`.
    pub fn stop(&self) -> Stop {
        let offset = self.base.saturating_add(self.position);
        match self.rest().map(|rest| RawRecord::read(rest, offset, self.endian)) {
            // 0 means an impossible size (see `RawRecord::read`).
            Some(Err(0)) => Stop::Damage(
                Error::new("the record size is less than the 8 bytes of a record header").at_offset(offset),
            ),
            _ => Stop::Next(offset),
        }
    }
}

impl<'data> Iterator for Records<'data> {
    type Item = RawRecord<'data>;

    #[inline]
    fn next(&mut self) -> Option<RawRecord<'data>> {
        let record = RawRecord::read(self.rest()?, self.base + self.position, self.endian).ok()?;
        self.position = record.end().saturating_sub(self.base);
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([2, 0]);
        bytes.extend((8 + body.len() as u16).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn payloads_are_stepped_over_even_beyond_the_window() {
        let mut bytes = record(kind::COMM, &[7; 8]);
        bytes.extend(record(kind::HEADER_TRACING_DATA, &13u32.to_le_bytes()));
        bytes.extend([9; 16]);
        let mut auxtrace = 1000u64.to_le_bytes().to_vec();
        auxtrace.extend([0; 32]);
        bytes.extend(record(kind::AUXTRACE, &auxtrace));
        let mut records = Records::new(&bytes, 100, Endian::Little);
        let seen: Vec<_> = records.by_ref().map(|record| (record.offset, record.kind, record.payload)).collect();
        assert_eq!(seen, [(100, kind::COMM, 0), (116, kind::HEADER_TRACING_DATA, 16), (144, kind::AUXTRACE, 1000)]);
        assert!(matches!(records.stop(), Stop::Next(1192)));
    }

    #[test]
    fn a_walk_states_where_it_ended_and_why() {
        let mut bytes = record(kind::EXIT, &[0; 8]);
        bytes.extend(&record(kind::FORK, &[0; 8])[..12]);
        let mut records = Records::new(&bytes, 0, Endian::Little);
        assert_eq!(records.by_ref().count(), 1);
        assert!(matches!(records.stop(), Stop::Next(16)));
        let bytes = [1, 0, 0, 0, 0, 0, 7, 0];
        let mut records = Records::new(&bytes, 0x40, Endian::Little);
        assert!(records.next().is_none());
        let Stop::Damage(error) = records.stop() else { panic!("no damage") };
        assert_eq!(error.to_string(), "at byte 0x40: the record size is less than the 8 bytes of a record header");
    }
}
