//! Records inside COMPRESSED and COMPRESSED2 records (`perf record -z`).
//!
//! All of them in one file are pieces of one zstd stream, so they are decompressed one after the other. What comes
//! out of one piece may end inside a record: the rest comes out of the next piece, even if other records stand
//! between the two in the file.

use super::kind;
use super::walk::{RawRecord, Records, Stop};
use crate::error::{Error, Result};
use crate::formats::cursor::Endian;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Whether a record holds others.
pub fn is_compressed(record: &RawRecord<'_>) -> bool {
    matches!(record.kind, kind::COMPRESSED | kind::COMPRESSED2)
}

/// The state of one stream.
pub struct Decompressor {
    decoder: Decoder<'static>,
    endian: Endian,
    /// Decompressed bytes: whole records, then the start of the next one.
    plain: Vec<u8>,
    /// How many bytes of `plain` were given out.
    given: usize,
    /// What a record may unpack to.
    most: usize,
    failed: bool,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").field("pending", &self.pending()).finish_non_exhaustive()
    }
}

/// No recorder has a larger buffer for each processor.
const LARGEST: usize = 512 << 20;

/// What a step of decompression makes at most; zstd's own blocks are no longer.
const STEP: usize = 128 << 10;

impl Decompressor {
    /// The start of a stream. `mmap_len` is the recorder's buffer: no record holds more than one bufferful
    /// (`record__mmap_read_evlist` of builtin-record.c).
    pub fn new(endian: Endian, mmap_len: Option<u32>) -> Result<Self> {
        let decoder = Decoder::new().map_err(|error| Error::new("cannot start zstd").because(error))?;
        let most = mmap_len.map_or(LARGEST, |len| LARGEST.min(len as usize));
        Ok(Self { decoder, endian, plain: Vec::new(), given: 0, most, failed: false })
    }

    /// The whole records that come out of one compressed record. After an error nothing more can be read: later
    /// pieces give nothing.
    pub fn feed(&mut self, record: &RawRecord<'_>) -> Result<&[u8]> {
        self.plain.drain(..std::mem::take(&mut self.given));
        if self.failed {
            return Ok(&[]);
        }
        let piece = piece(record)?;
        if let Err(error) = self.decompress(piece) {
            self.failed = true;
            self.plain = Vec::new();
            return Err(Error::new("zstd data").because(error).at(record.offset));
        }
        let mut records = Records::new(&self.plain, 0, self.endian);
        records.by_ref().for_each(drop);
        self.given = match records.stop() {
            Stop::Next(end) => usize::try_from(end).map_or(self.plain.len(), |end| end.min(self.plain.len())),
            Stop::Damage(error) => {
                self.failed = true;
                return Err(Error::new("decompressed records").because(error).at(record.offset));
            }
        };
        Ok(&self.plain[..self.given])
    }

    fn decompress(&mut self, piece: &[u8]) -> std::io::Result<()> {
        let mut input = InBuffer::around(piece);
        let before = self.plain.len();
        loop {
            let start = self.plain.len();
            self.plain.resize(start + STEP, 0);
            let mut output = OutBuffer::around_pos(&mut self.plain, start);
            let result = self.decoder.run(&mut input, &mut output);
            let end = output.pos();
            self.plain.truncate(end);
            result?;
            if end - before > self.most {
                let message = format!("a record unpacks to more than {} bytes, the recorder's buffer", self.most);
                return Err(std::io::Error::other(message));
            }
            if input.pos() == piece.len() && end - start < STEP {
                return Ok(());
            }
        }
    }

    /// How many bytes of a record are there whose rest did not come.
    pub fn pending(&self) -> usize {
        self.plain.len() - self.given
    }
}

/// The zstd data of a record.
fn piece<'data>(record: &RawRecord<'data>) -> Result<&'data [u8]> {
    let mut body = record.body();
    if record.kind == kind::COMPRESSED {
        return Ok(body.rest());
    }
    let size = body.u64("data_size")?;
    body.bytes(size, "compressed data")
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

    fn first(bytes: &[u8]) -> RawRecord<'_> {
        Records::new(bytes, 0, Endian::Little).next().unwrap()
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
        assert_eq!(stream.feed(&first(&record(kind::COMPRESSED, &packed))).unwrap(), &plain[..32]);
        assert_eq!(stream.pending(), 8);
        assert_eq!(stream.feed(&first(&record(kind::COMPRESSED2, &second))).unwrap(), &plain[32..]);
        assert!(stream.feed(&first(&record(kind::COMPRESSED, b"no zstd data"))).is_err());
        assert_eq!(stream.feed(&first(&record(kind::COMPRESSED, &packed))).unwrap(), b"");
    }

    #[test]
    fn no_record_unpacks_to_more_than_the_recorders_buffer() {
        let packed = zstd::bulk::compress(&vec![0; 64 << 20], 1).unwrap();
        assert!(packed.len() < 1 << 16, "one record has it");
        let mut stream = Decompressor::new(Endian::Little, Some(1 << 20)).unwrap();
        let error = stream.feed(&first(&record(kind::COMPRESSED, &packed))).unwrap_err();
        assert!(error.to_string().contains("unpacks to more than 1048576 bytes"), "{error}");
        assert_eq!(stream.pending(), 0);
    }
}
