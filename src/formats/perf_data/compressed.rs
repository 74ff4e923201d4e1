//! Decompresses the records inside COMPRESSED and COMPRESSED2 records (`perf record -z`).
//!
//! All compressed records of a file are pieces of one zstd stream and must be decompressed in order. The output of a
//! piece may end inside a record; the rest comes out of the next piece, even if other records lie between the two.

use super::kind;
use super::walk::{RawRecord, Records, Stop};
use crate::bytes::cursor::Endian;
use crate::error::{Error, Result};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// True if a record contains compressed records.
pub fn is_compressed(record: &RawRecord<'_>) -> bool {
    matches!(record.kind, kind::COMPRESSED | kind::COMPRESSED2)
}

/// Decompresses the zstd stream of one file.
pub struct Decompressor {
    decoder: Decoder<'static>,
    endian: Endian,
    /// Decompressed bytes: whole records, then the beginning of the next one.
    plain: Vec<u8>,
    /// Number of bytes of `plain` that [`Self::unpack`] returned last. They are removed at its next call.
    returned_len: usize,
    /// Limit in bytes for the decompressed size of one compressed record.
    max_unpacked: usize,
    /// True after an error, from which the stream can't recover.
    failed: bool,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").field("pending", &self.pending()).finish_non_exhaustive()
    }
}

/// Limit in bytes for the decompressed size of one compressed record, whatever the recording says. perf compresses at
/// most one full buffer of a CPU per record. The recording states the length of the buffers, but a hostile file can
/// state anything. perf's default is 512 KiB; users who lose samples choose a few MiB (`perf record -m`). A compressed
/// record has at most 64 KiB, and no real samples would compress by the factor of 1,024 that exceeds this limit.
const MAX_UNPACKED: usize = 64 << 20;

/// Limit in bytes for the output of one decompression step. zstd's own blocks are not larger.
const STEP: usize = 128 << 10;

impl Decompressor {
    /// Starts a stream. `mmap_len` is the size in bytes of the recorder's buffer, if known. No compressed record may
    /// unpack to more, because perf compresses at most one full buffer (`record__mmap_read_evlist` in
    /// builtin-record.c).
    pub fn new(endian: Endian, mmap_len: Option<u32>) -> Result<Self> {
        let decoder = Decoder::new().map_err(|error| Error::new("cannot create a zstd decoder").because(error))?;
        let max_unpacked = mmap_len.map_or(MAX_UNPACKED, |len| MAX_UNPACKED.min(len as usize));
        Ok(Self { decoder, endian, plain: Vec::new(), returned_len: 0, max_unpacked, failed: false })
    }

    /// Decompresses about [`STEP`] more bytes of a compressed record, and returns the records that are now complete.
    /// `None` at the end of the compressed record. Compressed records must be passed in file order. After an error
    /// nothing more can be decompressed, and later calls return `None`.
    pub fn unpack(&mut self, packed: &mut Packed<'_>) -> Result<Option<&[u8]>> {
        // The caller is done with the records that the previous call returned.
        self.plain.drain(..std::mem::take(&mut self.returned_len));
        if self.failed || packed.is_done {
            return Ok(None);
        }
        // An incomplete record at the end of `plain` stays there until later steps complete it.
        let unpacked = self.step(packed).and_then(|()| self.whole_records_len());
        match unpacked {
            Ok(end) => self.returned_len = end,
            Err(error) => {
                self.failed = true;
                self.plain = Vec::new();
                return Err(error.at_offset(packed.offset));
            }
        }
        Ok(Some(&self.plain[..self.returned_len]))
    }

    /// Runs one decompression step and appends its output to `plain`.
    fn step(&mut self, packed: &mut Packed<'_>) -> Result<()> {
        let start = self.plain.len();
        self.plain.reserve(STEP); // zstd writes to spare capacity
        let mut input = InBuffer::around(packed.remaining);
        let mut output = OutBuffer::around_pos(&mut self.plain, start);
        let result = self.decoder.run(&mut input, &mut output);
        let (taken, end) = (input.pos(), output.pos());
        self.plain.truncate(end);
        result.map_err(|error| Error::new("cannot decompress the records (zstd)").because(error))?;
        packed.remaining = &packed.remaining[taken..];
        packed.unpacked += end - start;
        if packed.unpacked > self.max_unpacked {
            let message = format!(
                "a compressed record unpacks to more than {} bytes, more than perf packs into one record",
                self.max_unpacked
            );
            return Err(Error::new(message));
        }
        // If the step filled all the room for its output, the decoder may hold more output, so the record isn't done.
        packed.is_done = packed.remaining.is_empty() && end - start < STEP;
        Ok(())
    }

    /// Length in bytes of the whole records at the start of `plain`.
    fn whole_records_len(&self) -> Result<usize> {
        let mut records = Records::new(&self.plain, 0, self.endian);
        records.by_ref().for_each(drop); // walk to the end
        match records.stop() {
            Stop::Next(end) => Ok(usize::try_from(end).map_or(self.plain.len(), |end| end.min(self.plain.len()))),
            Stop::Damage(error) => Err(Error::new("the decompressed records are damaged").because(error)),
        }
    }

    /// Number of decompressed bytes that were not returned, because the rest of their record hasn't been decompressed.
    pub fn pending(&self) -> usize {
        self.plain.len() - self.returned_len
    }
}

/// The part of a compressed record that is not decompressed yet.
#[derive(Debug)]
pub struct Packed<'data> {
    /// The compressed bytes that were not passed to the decoder yet.
    remaining: &'data [u8],
    /// Offset of the record in the file, for messages.
    offset: u64,
    /// Number of bytes decompressed so far.
    unpacked: usize,
    /// True if all of the record is decompressed.
    is_done: bool,
}

impl<'data> Packed<'data> {
    /// Starts at the beginning of a compressed record. Fails if the record is truncated.
    pub fn new(record: &RawRecord<'data>) -> Result<Self> {
        let mut body = record.body();
        let size = if record.kind == kind::COMPRESSED { body.left() as u64 } else { body.u64("data_size")? };
        let remaining = body.bytes(size, "compressed data")?;
        Ok(Self { remaining, offset: record.offset, unpacked: 0, is_done: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend((8 + body.len() as u16).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    /// All records that come out of the first compressed record in `bytes`.
    fn unpacked(stream: &mut Decompressor, bytes: &[u8]) -> Result<Vec<u8>> {
        let record = Records::new(bytes, 0, Endian::Little).next().unwrap();
        let (mut packed, mut all) = (Packed::new(&record)?, Vec::new());
        while let Some(records) = stream.unpack(&mut packed)? {
            assert!(records.len() < STEP + (1 << 16), "memory does not grow with what comes out");
            all.extend_from_slice(records);
        }
        Ok(all)
    }

    #[test]
    fn a_record_may_straddle_two_pieces_and_damage_ends_it() {
        let plain = [record(kind::COMM, &[1; 24]), record(kind::EXIT, &[2; 40])].concat();
        let packed = zstd::bulk::compress(&plain[..40], 1).unwrap();
        let rest = zstd::bulk::compress(&plain[40..], 1).unwrap();
        let mut second = (rest.len() as u64).to_le_bytes().to_vec();
        second.extend(&rest);
        second.extend([0; 5]);
        let mut stream = Decompressor::new(Endian::Little, None).unwrap();
        assert_eq!(unpacked(&mut stream, &record(kind::COMPRESSED, &packed)).unwrap(), &plain[..32]);
        assert_eq!(stream.pending(), 8);
        assert_eq!(unpacked(&mut stream, &record(kind::COMPRESSED2, &second)).unwrap(), &plain[32..]);
        assert!(unpacked(&mut stream, &record(kind::COMPRESSED, b"no zstd data")).is_err());
        assert_eq!(unpacked(&mut stream, &record(kind::COMPRESSED, &packed)).unwrap(), b"");
    }

    #[test]
    fn no_record_unpacks_to_more_than_the_recorders_buffer_whatever_the_recording_states_of_it() {
        let plain = record(kind::COMM, &[0; 56]).repeat(1 << 20);
        // `small` unpacks to 8 MiB, which is allowed if the buffer's size is unknown. `large` unpacks to 72 MiB, which
        // is too much even if the recording states a larger buffer.
        let small = zstd::bulk::compress(&plain[..8 << 20], 19).unwrap();
        let large = [&plain[..], &plain[..8 << 20]].concat();
        let large = record(kind::COMPRESSED, &zstd::bulk::compress(&large, 19).unwrap());
        let mut stream = Decompressor::new(Endian::Little, None).unwrap();
        assert!(unpacked(&mut stream, &record(kind::COMPRESSED, &small)).unwrap() == plain[..8 << 20]);
        for (said, most) in [(Some(1 << 20), "1048576"), (Some(u32::MAX), "67108864"), (None, "67108864")] {
            let mut stream = Decompressor::new(Endian::Little, said).unwrap();
            let error = unpacked(&mut stream, &large).unwrap_err();
            assert!(error.to_string().contains(&format!("unpacks to more than {most} bytes")), "{error}");
            assert_eq!(stream.pending(), 0);
        }
    }
}
