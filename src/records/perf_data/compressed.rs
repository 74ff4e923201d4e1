//! Records inside COMPRESSED and COMPRESSED2 records (`perf record -z`).
//!
//! All of them in one file are pieces of one zstd stream, so they are decompressed one after the other. The output of
//! one piece may end inside a record: the rest comes out of the next piece, even if other records are between the two
//! in the file.

use super::kind;
use super::walk::{RawRecord, Records, Stop};
use crate::bytes::cursor::Endian;
use crate::error::{Error, Result};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// True if a record holds others.
pub fn is_compressed(record: &RawRecord<'_>) -> bool {
    matches!(record.kind, kind::COMPRESSED | kind::COMPRESSED2)
}

/// The state of one stream.
pub struct Decompressor {
    decoder: Decoder<'static>,
    endian: Endian,
    /// Decompressed bytes: whole records, then the start of the next one.
    plain: Vec<u8>,
    /// The number of bytes of `plain` were given out.
    given: usize,
    /// The limit of a record's unpacked size.
    most: usize,
    failed: bool,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").field("pending", &self.pending()).finish_non_exhaustive()
    }
}

/// perf compresses what is in the buffer of a processor, so one record holds a bufferful at most. A recording contains the
/// length of its buffers, but anybody can write a larger number there. perf's own choice is 512 KiB. Users who lose
/// samples choose a few MiB (`perf record -m`), and 65 KB that unpack to more than this are not samples with times.
const LARGEST: usize = 64 << 20;

/// The largest output of a step of decompression; zstd's own blocks are not longer.
const STEP: usize = 128 << 10;

impl Decompressor {
    /// The start of a stream. `mmap_len` is the recorder's buffer: no record holds more than one bufferful
    /// (`record__mmap_read_evlist` of builtin-record.c).
    pub fn new(endian: Endian, mmap_len: Option<u32>) -> Result<Self> {
        let decoder = Decoder::new().map_err(|error| Error::new("cannot start zstd").because(error))?;
        let most = mmap_len.map_or(LARGEST, |len| LARGEST.min(len as usize));
        Ok(Self { decoder, endian, plain: Vec::new(), given: 0, most, failed: false })
    }

    /// The next whole records of a compressed record, in pieces of about [`STEP`] bytes; `None` behind the last of them.
    /// Compressed records must come in the order of the file. After an error nothing more can be read: later records
    /// give nothing.
    pub fn unpack(&mut self, packed: &mut Packed<'_>) -> Result<Option<&[u8]>> {
        self.plain.drain(..std::mem::take(&mut self.given));
        if self.failed || packed.is_done {
            return Ok(None);
        }
        let unpacked = self.step(packed).and_then(|()| self.whole_records());
        match unpacked {
            Ok(end) => self.given = end,
            Err(error) => {
                self.failed = true;
                self.plain = Vec::new();
                return Err(error.at(packed.offset));
            }
        }
        Ok(Some(&self.plain[..self.given]))
    }

    /// Adds what the next step of decompression makes.
    fn step(&mut self, packed: &mut Packed<'_>) -> Result<()> {
        let start = self.plain.len();
        self.plain.resize(start + STEP, 0);
        let mut input = InBuffer::around(packed.left);
        let mut output = OutBuffer::around_pos(&mut self.plain, start);
        let result = self.decoder.run(&mut input, &mut output);
        let (taken, end) = (input.pos(), output.pos());
        self.plain.truncate(end);
        result.map_err(|error| Error::new("zstd data").because(error))?;
        packed.left = &packed.left[taken..];
        packed.unpacked += end - start;
        if packed.unpacked > self.most {
            let message =
                format!("zstd data: a record unpacks to more than {} bytes, the recorder's buffer", self.most);
            return Err(Error::new(message));
        }
        packed.is_done = packed.left.is_empty() && end - start < STEP;
        Ok(())
    }

    /// The end of the last whole record.
    fn whole_records(&self) -> Result<usize> {
        let mut records = Records::new(&self.plain, 0, self.endian);
        records.by_ref().for_each(drop);
        match records.stop() {
            Stop::Next(end) => Ok(usize::try_from(end).map_or(self.plain.len(), |end| end.min(self.plain.len()))),
            Stop::Damage(error) => Err(Error::new("decompressed records").because(error)),
        }
    }

    /// The number of bytes of a record are there whose rest did not come.
    pub fn pending(&self) -> usize {
        self.plain.len() - self.given
    }
}

/// The rest of a compressed record.
#[derive(Debug)]
pub struct Packed<'data> {
    left: &'data [u8],
    /// The place of the record, for messages.
    offset: u64,
    unpacked: usize,
    is_done: bool,
}

impl<'data> Packed<'data> {
    /// All of a record. An error if it is cut.
    pub fn new(record: &RawRecord<'data>) -> Result<Self> {
        let mut body = record.body();
        let size = if record.kind == kind::COMPRESSED { body.left() as u64 } else { body.u64("data_size")? };
        let left = body.bytes(size, "compressed data")?;
        Ok(Self { left, offset: record.offset, unpacked: 0, is_done: false })
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

    /// All records in the first one of these bytes.
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
        let (small, large) = (zstd::bulk::compress(&plain[..8 << 20], 19).unwrap(), plain.repeat(8));
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
