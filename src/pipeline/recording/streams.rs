//! Reads the record streams of a recording: decompresses them, finds all records, and splits them into chunks for the
//! workers.

use super::record_starts::RecordStarts;
use crate::bytes::cursor::Endian;
use crate::error::{Error, Result, Warning, Warnings};
use crate::formats::perf_data::{Decompressor, Packed, RawRecord, Recording, Records, Stop, is_compressed, kind};
use crate::io::{self, Bytes, Spool};
use crate::model::Nanos;
use crate::parallel::Pool;
use crate::pipeline::open::Input;
use std::io::{BufWriter, Write};
use std::path::Path;

/// A recording with all its record streams: that of the main file and, if the recording is a directory (`perf record
/// --threads`), one for each other file.
#[derive(Debug)]
pub(crate) struct Streams<'input> {
    /// The recording's events and features.
    pub(crate) recording: Recording,
    /// The streams. That of the main file comes first.
    pub(crate) list: Vec<PlainStream<'input>>,
}

/// A stream of records that aren't compressed.
#[derive(Debug)]
pub(crate) struct PlainStream<'input> {
    bytes: StreamBytes<'input>,
    /// The offset of the first record, for messages.
    base: u64,
    /// Where the records start.
    starts: RecordStarts,
    /// For each AUXTRACE record that was copied to the temporary file, its offset in the input and its offset in this
    /// stream, in stream order.
    auxtrace: Vec<MovedRecord>,
}

#[derive(Debug)]
enum StreamBytes<'input> {
    /// Records as they are in the input, which isn't copied.
    AsRecorded(&'input [u8]),
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

    /// Parses the headers, and opens all streams of records: the main one and those in the files `data.N` of a
    /// recording's directory. Compressed streams are decompressed. Unlike in [`open`](Self::open), warnings don't name
    /// the recording.
    fn open_unnamed(input: &'input Input, pool: &Pool, warnings: &mut Warnings) -> Result<Self> {
        let recording = Recording::parse(&input.bytes, warnings)?;
        let main = RecordBytes { bytes: main_records(&recording, &input.bytes), base: recording.data.start };
        let mut list = vec![PlainStream::open(&recording, main, pool, warnings)?];
        for stream in input.streams.iter().flatten() {
            let stream = RecordBytes { bytes: &stream.bytes, base: 0 };
            list.push(PlainStream::open(&recording, stream, pool, warnings)?);
        }
        Ok(Self { recording, list })
    }
}

/// The bytes of the record stream in a recording's main file.
pub(crate) fn main_records<'data>(recording: &Recording, bytes: &'data [u8]) -> &'data [u8] {
    let clamp = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let start = clamp(recording.data.start);
    let end = clamp(recording.data.end).max(start);
    &bytes[start..end]
}

impl<'input> PlainStream<'input> {
    /// Finds the records of a stream. If any of them is compressed, all are copied to a temporary file.
    fn open(recording: &Recording, stream: RecordBytes<'input>, pool: &Pool, warnings: &mut Warnings) -> Result<Self> {
        if let Some(in_place) = Self::in_place(recording, stream, pool) {
            return Ok(in_place);
        }
        let mut plain = PlainRecords::create(0)?;
        plain.append(recording, stream, warnings)?;
        plain.finish(recording, pool)
    }

    /// A stream whose records are read from the input itself, without copying them. `None` if any of them is
    /// compressed.
    pub(crate) fn in_place(recording: &Recording, stream: RecordBytes<'input>, pool: &Pool) -> Option<Self> {
        if recording.declares_compression() {
            return None;
        }
        let RecordBytes { bytes, base } = stream;
        let starts = RecordStarts::find_records(bytes, base, recording.header.endian, pool);
        let in_place = Self { bytes: StreamBytes::AsRecorded(bytes), base, starts, auxtrace: Vec::new() };
        if in_place.starts.has_compressed { None } else { Some(in_place) }
    }

    /// The bytes of the records.
    pub(crate) fn records(&self) -> RecordBytes<'_> {
        let bytes = match &self.bytes {
            StreamBytes::AsRecorded(bytes) => *bytes,
            StreamBytes::Decompressed(bytes) => &bytes[..],
        };
        RecordBytes { bytes, base: self.base }
    }

    /// Translates the offset of an AUXTRACE record in the input to its offset in this stream. Returns the same offset
    /// if the records weren't copied.
    pub(crate) fn auxtrace_offset(&self, offset: u64) -> u64 {
        let found = self.auxtrace.binary_search_by_key(&offset, |moved| moved.from);
        found.map_or(offset, |index| self.auxtrace[index].to)
    }
}

/// Copies records to a temporary file, and decompresses COMPRESSED records on the way.
#[derive(Debug)]
pub(crate) struct PlainRecords {
    out: BufWriter<Spool>,
    /// The offset of the first record in the stream of copied records.
    base: u64,
    /// The offset that the next record gets in the stream of copied records.
    next_offset: u64,
    /// The AUXTRACE records so far, in stream order.
    auxtrace: Vec<MovedRecord>,
}

/// The old and new offset of an AUXTRACE record that was copied. They are needed to correct the recording's AUXTRACE
/// feature, which lists the offsets of all such records.
#[derive(Debug, Clone, Copy)]
struct MovedRecord {
    /// The offset of the record in the input.
    from: u64,
    /// The offset of the record in the stream of copied records.
    to: u64,
}

impl PlainRecords {
    /// Creates the file. The first record gets the offset `base`.
    pub(crate) fn create(base: u64) -> Result<Self> {
        let out = BufWriter::with_capacity(1 << 20, io::temporary()?);
        Ok(Self { out, base, next_offset: base, auxtrace: Vec::new() })
    }

    /// Copies the records of a stream, and decompresses those that are compressed. Each stream is decompressed
    /// independently of others.
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
            // The last record may be incomplete.
            let Some(whole) = bytes.get(start..end) else { break };
            // The recording's AUXTRACE feature lists the offsets that these records have in the input. Both offsets are
            // kept, so that `PlainStream::auxtrace_offset` can translate the list.
            if record.kind == kind::AUXTRACE {
                self.auxtrace.push(MovedRecord { from: record.offset, to: self.next_offset });
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

    /// Unpacks a COMPRESSED record, and copies the records in it. If the COMPRESSED record is damaged, copies the
    /// records before the damage, and adds a warning.
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

    /// Completes the file, and finds its records.
    pub(crate) fn finish(mut self, recording: &Recording, pool: &Pool) -> Result<PlainStream<'static>> {
        self.out.flush()?;
        let bytes = self.out.get_ref().map()?;
        let starts = RecordStarts::find_records(&bytes, self.base, recording.header.endian, pool);
        let bytes = StreamBytes::Decompressed(bytes);
        Ok(PlainStream { bytes, base: self.base, starts, auxtrace: self.auxtrace })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.next_offset += bytes.len() as u64;
        Ok(self.out.write_all(bytes)?)
    }
}

/// All records of a recording, in chunks of about equal size.
#[derive(Debug)]
pub(crate) struct RecordChunks<'data> {
    endian: Endian,
    /// The chunks of all streams, one stream after the other.
    list: Vec<RecordBytes<'data>>,
    /// Why a stream couldn't be read to its end. If there are several such streams, this is about the first one. `None`
    /// if all were read to the end.
    pub(crate) damage: Option<&'data Error>,
}

impl<'data> RecordChunks<'data> {
    /// Splits all streams into chunks. Calls `each` with every record that isn't a sample.
    pub(crate) fn new(
        endian: Endian,
        streams: &'data [PlainStream<'_>],
        mut each: impl FnMut(&RawRecord<'data>),
    ) -> Self {
        let mut chunks = Self { endian, list: Vec::new(), damage: None };
        for stream in streams {
            let RecordBytes { bytes, base } = stream.records();
            // `others` has the offsets of records that aren't samples, so the samples needn't be read here.
            for &start in &stream.starts.others {
                if let Some(record) = Records::new(&bytes[start..], base + start as u64, endian).next() {
                    each(&record);
                }
            }
            // A section consists of whole records. Each becomes a chunk.
            for section in &stream.starts.sections {
                chunks.list.push(RecordBytes { bytes: &bytes[section.clone()], base: base + section.start as u64 });
            }
            chunks.damage = chunks.damage.or(stream.starts.damage.as_ref());
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

    /// The times of the first and the last sample. If no sample has a time, the first is the maximum, and the last is
    /// 0.
    pub(crate) fn times(&self, recording: &Recording) -> (Nanos, Nanos) {
        let samples = self.list().into_iter().flatten().filter(|record| record.kind == kind::SAMPLE);
        let times = samples.filter_map(|record| recording.time(&record)).filter(|time| time.is_valid());
        times.fold((Nanos(u64::MAX), Nanos(0)), |(first, last), time| (first.min(time), last.max(time)))
    }
}
