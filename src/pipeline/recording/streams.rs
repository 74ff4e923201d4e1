//! The record streams of a recording: decompressed, walked once, and cut into chunks for the threads.

use crate::error::{Error, Result, Warning, Warnings};
use crate::formats::cursor::Endian;
use crate::formats::perf_data::{Decompressor, RawRecord, Recording, Records, Stop, is_compressed, kind};
use crate::io::{self, Bytes};
use crate::model::Nanos;
use crate::pipeline::open::Input;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// A recording and its streams of records: that of the file, and those of a directory (`perf record --threads`).
#[derive(Debug)]
pub(crate) struct Streams<'input> {
    /// Events and features.
    pub(crate) recording: Recording,
    list: Vec<RecordStream<'input>>,
}

#[derive(Debug)]
enum RecordStream<'input> {
    /// Bytes of the input, and the offset of the first.
    AsRecorded(&'input [u8], u64),
    /// Decompressed, in a temporary file.
    Decompressed(Bytes),
}

/// Records behind one another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordBytes<'data> {
    pub(crate) bytes: &'data [u8],
    /// The offset of the first byte, for messages.
    pub(crate) base: u64,
}

impl<'input> Streams<'input> {
    /// Parses what stands around the records, and decompresses the streams that are compressed.
    /// `path` is what messages call the recording.
    pub(crate) fn open(input: &'input Input, path: &Path, warnings: &mut Warnings) -> Result<Self> {
        let mut own = Warnings::new();
        let opened = Self::open_unnamed(input, &mut own);
        warnings.append(own.in_file(path));
        opened
    }

    fn open_unnamed(input: &'input Input, warnings: &mut Warnings) -> Result<Self> {
        let recording = Recording::parse(&input.bytes, warnings)?;
        let main = RecordBytes { bytes: own_records(&recording, &input.bytes), base: recording.data.start };
        let others = input.streams.iter().flatten().map(|stream| RecordBytes { bytes: &stream.bytes, base: 0 });
        let list = std::iter::once(main).chain(others).map(|stream| RecordStream::open(&recording, stream, warnings));
        let list = list.collect::<Result<_>>()?;
        Ok(Self { recording, list })
    }

    /// The records of each stream.
    pub(crate) fn list(&self) -> Vec<RecordBytes<'_>> {
        self.list.iter().map(RecordStream::records).collect()
    }
}

/// The stream of a recording's main file.
pub(crate) fn own_records<'data>(recording: &Recording, bytes: &'data [u8]) -> &'data [u8] {
    let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let (start, end) = (place(recording.data.start), place(recording.data.end));
    &bytes[start..end.max(start)]
}

/// Whether a stream has compressed records.
pub(crate) fn has_compressed(recording: &Recording, stream: RecordBytes<'_>) -> bool {
    let mut records = Records::new(stream.bytes, stream.base, recording.header.endian);
    recording.says_compressed() || records.any(|record| is_compressed(&record))
}

impl<'input> RecordStream<'input> {
    fn records(&self) -> RecordBytes<'_> {
        match self {
            Self::AsRecorded(bytes, base) => RecordBytes { bytes, base: *base },
            Self::Decompressed(bytes) => RecordBytes { bytes, base: 0 },
        }
    }

    fn open(recording: &Recording, stream: RecordBytes<'input>, warnings: &mut Warnings) -> Result<Self> {
        if !has_compressed(recording, stream) {
            return Ok(Self::AsRecorded(stream.bytes, stream.base));
        }
        let file = io::temporary()?;
        let mut plain = PlainRecords::new(&file, stream.base);
        plain.append(recording, stream, warnings)?;
        plain.finish()?;
        io::map_spool(&file).map(Self::Decompressed)
    }
}

/// Records on their way to a file, COMPRESSED ones as what is in them.
#[derive(Debug)]
pub(crate) struct PlainRecords<'file> {
    out: BufWriter<&'file File>,
    /// The offset that the next record is said to have.
    at: u64,
    auxtrace: Vec<MovedRecord>,
}

/// A record whose offset is told of elsewhere in the recording.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MovedRecord {
    /// Its offset in the input.
    pub(crate) from: u64,
    /// Its offset in the file.
    pub(crate) to: u64,
}

impl<'file> PlainRecords<'file> {
    /// None yet; the first one is said to have this offset.
    pub(crate) fn new(file: &'file File, base: u64) -> Self {
        Self { out: BufWriter::with_capacity(1 << 20, file), at: base, auxtrace: Vec::new() }
    }

    /// Writes the records of a stream. It has its own zstd stream, if it is compressed.
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
                match decompressor.feed(&record) {
                    Ok(plain) => self.write(plain)?,
                    Err(error) => warnings.push(error.into_warning()),
                }
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
            warnings.push(Warning::new("the last record is incomplete: the compressed data end inside it"));
        }
        if let Stop::Damage(error) = records.stop() {
            warnings.push(Error::new("what follows cannot be read").because(error).into_warning());
        }
        Ok(())
    }

    /// All are in the file then. Gives where AUXTRACE records went: an index feature tells of their offsets.
    pub(crate) fn finish(mut self) -> Result<Vec<MovedRecord>> {
        self.out.flush()?;
        Ok(self.auxtrace)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len() as u64;
        Ok(self.out.write_all(bytes)?)
    }
}

/// Whole records, in chunks of about equal length: one is the work of a thread.
#[derive(Debug)]
pub(crate) struct RecordChunks<'data> {
    endian: Endian,
    list: Vec<RecordBytes<'data>>,
    /// Why a walk ended early.
    pub(crate) damage: Option<Error>,
}

/// A chunk is at least this long: what neighbouring samples share is looked up once a chunk.
const MIN_CHUNK: usize = 1 << 20;
/// So many chunks a thread: the last ones to be ready wait little.
const CHUNKS_A_THREAD: usize = 4;

impl<'data> RecordChunks<'data> {
    /// Walks all records of all streams once, and shows each to `each`.
    pub(crate) fn new(
        recording: &Recording,
        streams: &[RecordBytes<'data>],
        threads: usize,
        mut each: impl FnMut(&RawRecord<'data>),
    ) -> Self {
        let total: usize = streams.iter().map(|stream| stream.bytes.len()).sum();
        let length = (total / (threads * CHUNKS_A_THREAD)).max(MIN_CHUNK);
        let mut chunks = Self { endian: recording.header.endian, list: Vec::new(), damage: None };
        for &stream in streams {
            chunks.walk(stream, length, &mut each);
        }
        chunks
    }

    fn walk(&mut self, stream: RecordBytes<'data>, length: usize, each: &mut impl FnMut(&RawRecord<'data>)) {
        let RecordBytes { bytes: data, base } = stream;
        let place = |offset: u64| usize::try_from(offset - base).unwrap_or(usize::MAX).min(data.len());
        let mut records = Records::new(data, base, self.endian);
        let (mut start, mut end) = (0, 0);
        for record in records.by_ref() {
            each(&record);
            let at = place(record.offset);
            if at - start >= length {
                self.list.push(RecordBytes { bytes: &data[start..at], base: base + start as u64 });
                start = at;
            }
            end = place(record.end());
        }
        self.list.push(RecordBytes { bytes: &data[start..end.max(start)], base: base + start as u64 });
        if let (Stop::Damage(error), None) = (records.stop(), &self.damage) {
            self.damage = Some(error);
        }
    }

    /// How many bytes all chunks have.
    pub(crate) fn len(&self) -> u64 {
        self.list.iter().map(|chunk| chunk.bytes.len() as u64).sum()
    }

    /// The chunks, each a walk of its own.
    pub(crate) fn list(&self) -> Vec<Records<'data>> {
        self.list.iter().map(|chunk| Records::new(chunk.bytes, chunk.base, self.endian)).collect()
    }

    /// The offset behind the last record that is whole.
    pub(crate) fn end(&self) -> u64 {
        self.list.last().map_or(0, |chunk| chunk.base + chunk.bytes.len() as u64)
    }

    /// The times of the first and the last sample.
    pub(crate) fn times(&self, recording: &Recording) -> (Nanos, Nanos) {
        let samples = self.list().into_iter().flatten().filter(|record| record.kind == kind::SAMPLE);
        let times = samples.filter_map(|record| recording.time(&record));
        times.fold((Nanos(u64::MAX), Nanos(0)), |(first, last), time| (first.min(time), last.max(time)))
    }
}
