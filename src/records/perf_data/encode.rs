//! A record that is not in the recording: put together out of its parts.

use crate::bytes::byte_writer::ByteWriter;
use crate::bytes::cursor::Endian;

/// A record: header and body. `None` if it is longer than a record can be.
pub fn record(kind: u32, misc: u16, body: &[u8], endian: Endian) -> Option<Vec<u8>> {
    let size = u16::try_from(body.len() + 8).ok()?;
    let mut record = ByteWriter::behind(Vec::with_capacity(size.into()), endian);
    record.u32(kind).u16(misc).u16(size).bytes(body);
    Some(record.finish())
}
