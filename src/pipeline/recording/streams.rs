//! Reads the record streams of a recording: decompresses them, finds all records, and splits them into chunks for the
//! workers.

use super::walk::Walk;
use crate::bytes::cursor::Endian;
use crate::error::{Error, Result, Warning, Warnings};
use crate::formats::perf_data::{Decompressor, Packed, RawRecord, Recording, Records, Stop, is_compressed, kind};
use crate::io::{self, Bytes, Spool};
use crate::model::Nanos;
use crate::parallel::Pool;
use crate::pipeline::open::Input;
use std::io::{BufWriter, Write};
use std::path::Path;

/// A recording with all its record streams. Besides that of the main file, a directory (`perf record --threads`) has
/// one in each of its other files.
#[derive(Debug)]
pub(crate) struct Streams<'input> {
    /// The recording's events and features.
    pub(crate) recording: Recording,
    list: Vec<RecordStream<'input>>,
}

#[derive(Debug)]
struct RecordStream<'input> {
    bytes: StreamBytes<'input>,
    walk: Walk,
}

#[derive(Debug)]
enum StreamBytes<'input> {
    /// Records as they are in the input, and the offset of the first byte in the file.
    AsRecorded(&'input [u8], u64),
    /// Records that were decompressed into a temporary file.
    Decompressed(Bytes),
}

/// The bytes of consecutive records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordBytes<'data> {
    pub(crate) bytes: &'data [u8],
    /// The offset of the first byte in the file, for messages.
    pub(crate) base: u64,
}

impl<'input> Streams<'input> {
    /// Parses the headers and decompresses compressed streams. `path` is what messages call the recording.
    pub(crate) fn open(input: &'input Input, path: &Path, pool: &Pool, warnings: &mut Warnings) -> Result<Self> {
        let mut stream_warnings = Warnings::new();
        let opened = Self::open_unnamed(input, pool, &mut stream_warnings);
        warnings.append(stream_warnings.in_file(path));
        opened
    }

    /// Like [`open`](Self::open), but the recording isn't named in warnings.
    fn open_unnamed(input: &'input Input, pool: &Pool, warnings: &mut Warnings) -> Result<Self> {
        let recording = Recording::parse(&input.bytes, warnings)?;
        let main = RecordBytes { bytes: main_records(&recording, &input.bytes), base: recording.data.start };
        let mut list = vec![RecordStream::open(&recording, main, pool, warnings)?];
        for stream in input.streams.iter().flatten() {
            let stream = RecordBytes { bytes: &stream.bytes, base: 0 };
            list.push(RecordStream::open(&recording, stream, pool, warnings)?);
        }
        Ok(Self { recording, list })
    }

    /// The records of each stream, and where they start.
    pub(crate) fn list(&self) -> Vec<WalkedRecords<'_>> {
        self.list.iter().map(RecordStream::records).collect()
    }
}

/// The bytes of the record stream in a recording's main file.
pub(crate) fn main_records<'data>(recording: &Recording, bytes: &'data [u8]) -> &'data [u8] {
    let clamp = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let start = clamp(recording.data.start);
    let end = clamp(recording.data.end).max(start);
    &bytes[start..end]
}

impl<'input> RecordStream<'input> {
    fn records(&self) -> WalkedRecords<'_> {
        let records = match &self.bytes {
            StreamBytes::AsRecorded(bytes, base) => RecordBytes { bytes, base: *base },
            StreamBytes::Decompressed(bytes) => RecordBytes { bytes, base: 0 },
        };
        WalkedRecords { records, walk: &self.walk }
    }

    fn open(recording: &Recording, stream: RecordBytes<'input>, pool: &Pool, warnings: &mut Warnings) -> Result<Self> {
        let endian = recording.header.endian;
        if !recording.says_compressed() {
            let walk = Walk::find_records(stream.bytes, stream.base, endian, pool);
            if !walk.has_compressed {
                return Ok(Self { bytes: StreamBytes::AsRecorded(stream.bytes, stream.base), walk });
            }
        }
        let mut spool = io::temporary()?;
        let mut plain = PlainRecords::new(&mut spool, stream.base);
        plain.append(recording, stream, warnings)?;
        plain.finish()?;
        let plain = spool.map()?;
        let walk = Walk::find_records(&plain, 0, endian, pool);
        Ok(Self { bytes: StreamBytes::Decompressed(plain), walk })
    }
}

/// Copies records to a file, and decompresses COMPRESSED records on the way.
#[derive(Debug)]
pub(crate) struct PlainRecords<'file> {
    out: BufWriter<&'file mut Spool>,
    /// The offset in the recording that the next record gets.
    at: u64,
    auxtrace: Vec<MovedRecord>,
}

/// An AUXTRACE record. Its offset matters, because another part of the recording refers to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MovedRecord {
    /// The offset of the record in the input.
    pub(crate) from: u64,
    /// The offset of the record in the output.
    pub(crate) to: u64,
}

impl<'file> PlainRecords<'file> {
    /// Starts writing to a file. The first record gets the offset `base`.
    pub(crate) fn new(file: &'file mut Spool, base: u64) -> Self {
        Self { out: BufWriter::with_capacity(1 << 20, file), at: base, auxtrace: Vec::new() }
    }

    /// Copies the records of a stream. Each stream is decompressed independently of others.
    pub(crate) fn append(
        &mut self,
        recording: &Recording,
        stream: RecordBytes<'_>,
        warnings: &mut Warnings,
    ) -> Result<()> {
        let RecordBytes { bytes, base } = stream;
        let mut decompressor = Decompressor::new(recording.header.endian, recording.mmap_len())?;
        let mut records = Records::new(bytes, base, recording.header.endian);
        for record in records.by_ref() {
            if is_compressed(&record) {
                self.append_compressed(&record, &mut decompressor, warnings)?;
                continue;
            }
            let start = usize::try_from(record.offset - base).unwrap_or(usize::MAX);
            let end = usize::try_from(record.end() - base).unwrap_or(usize::MAX);
            let Some(whole) = bytes.get(start..end) else { break };
            if record.kind == kind::AUXTRACE {
                self.auxtrace.push(MovedRecord { from: record.offset, to: self.at });
            }
            self.write(whole)?;
        }
        if decompressor.pending() > 0 {
            warnings.push(Warning::new("the last record is incomplete: the compressed data ends within it"));
        }
        if let Stop::Damage(error) = records.stop() {
            warnings.push(Error::new("cannot read the rest").because(error).into_warning());
        }
        Ok(())
    }

    /// Copies the records that are compressed in a COMPRESSED record.
    fn append_compressed(
        &mut self,
        record: &RawRecord<'_>,
        decompressor: &mut Decompressor,
        warnings: &mut Warnings,
    ) -> Result<()> {
        let mut packed = match Packed::new(record) {
            Ok(packed) => packed,
            Err(error) => {
                warnings.push(error.into_warning());
                return Ok(());
            }
        };
        loop {
            match decompressor.unpack(&mut packed) {
                Ok(Some(plain)) => self.write(plain)?,
                Ok(None) => return Ok(()),
                Err(error) => {
                    warnings.push(error.into_warning());
                    return Ok(());
                }
            }
        }
    }

    /// Completes the file. Returns the offsets of AUXTRACE records, because the recording's index of them must be
    /// updated.
    pub(crate) fn finish(mut self) -> Result<Vec<MovedRecord>> {
        self.out.flush()?;
        Ok(self.auxtrace)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len() as u64;
        Ok(self.out.write_all(bytes)?)
    }
}

/// The bytes of a stream, and where its records start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkedRecords<'data> {
    pub(crate) records: RecordBytes<'data>,
    pub(crate) walk: &'data Walk,
}

/// All records of a recording, in chunks of about equal size.
#[derive(Debug)]
pub(crate) struct RecordChunks<'data> {
    endian: Endian,
    list: Vec<RecordBytes<'data>>,
    /// Why reading of a stream stopped early; `None` if it didn't.
    pub(crate) damage: Option<&'data Error>,
}

impl<'data> RecordChunks<'data> {
    /// Splits all streams into chunks. Calls `each` with every record that isn't a sample.
    pub(crate) fn new(
        endian: Endian,
        streams: &[WalkedRecords<'data>],
        mut each: impl FnMut(&RawRecord<'data>),
    ) -> Self {
        let mut chunks = Self { endian, list: Vec::new(), damage: None };
        for &WalkedRecords { records: RecordBytes { bytes, base }, walk } in streams {
            for &start in &walk.others {
                if let Some(record) = Records::new(&bytes[start..], base + start as u64, endian).next() {
                    each(&record);
                }
            }
            for section in &walk.sections {
                chunks.list.push(RecordBytes { bytes: &bytes[section.clone()], base: base + section.start as u64 });
            }
            chunks.damage = chunks.damage.or(walk.damage.as_ref());
        }
        chunks
    }

    /// The total size of all chunks in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.list.iter().map(|chunk| chunk.bytes.len() as u64).sum()
    }

    /// For each chunk, an iterator over its records.
    pub(crate) fn list(&self) -> Vec<Records<'data>> {
        self.list.iter().map(|chunk| Records::new(chunk.bytes, chunk.base, self.endian)).collect()
    }

    /// The offset of the end of the last complete record.
    pub(crate) fn end(&self) -> u64 {
        self.list.last().map_or(0, |chunk| chunk.base + chunk.bytes.len() as u64)
    }

    /// The times of the first and the last sample.
    pub(crate) fn times(&self, recording: &Recording) -> (Nanos, Nanos) {
        let samples = self.list().into_iter().flatten().filter(|record| record.kind == kind::SAMPLE);
        let times = samples.filter_map(|record| recording.time(&record)).filter(|time| time.is_valid());
        times.fold((Nanos(u64::MAX), Nanos(0)), |(first, last), time| (first.min(time), last.max(time)))
    }
}
