//! The records of a recording, decompressed and cut into pieces for the threads.

use crate::error::{Error, Result, Warnings};
use crate::formats::cursor::Endian;
use crate::formats::perf_data::{Decompressor, RawRecord, Recording, Records, Stop, is_compressed, kind};
use crate::io::{self, Bytes};
use crate::model::Nanos;
use std::io::{BufWriter, Write};

/// Where the records are in the file, and the offset of the first.
pub(super) fn data<'data>(recording: &Recording, bytes: &'data [u8]) -> (&'data [u8], u64) {
    let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let (start, end) = (place(recording.data.start), place(recording.data.end));
    (&bytes[start..end.max(start)], recording.data.start)
}

/// All records of a part that has compressed ones, in a temporary file; `None` if it has none.
pub(super) fn decompressed(
    recording: &Recording,
    (data, base): (&[u8], u64),
    warnings: &mut Warnings,
) -> Result<Option<Bytes>> {
    let endian = recording.header.endian;
    if !recording.says_compressed() && !Records::new(data, base, endian).any(|record| is_compressed(&record)) {
        return Ok(None);
    }
    let mut file = tempfile::tempfile().map_err(|error| Error::new("cannot make a temporary file").because(error))?;
    let mut out = BufWriter::with_capacity(1 << 20, &mut file);
    let mut stream = Decompressor::new(endian)?;
    for record in Records::new(data, base, endian) {
        // Trace data has a payload behind it that nobody asks for here.
        if record.payload > 0 {
            continue;
        }
        if !is_compressed(&record) {
            out.write_all(record.bytes)?;
            continue;
        }
        match stream.feed(&record) {
            Ok(plain) => out.write_all(plain)?,
            Err(error) => warnings.push(error.into_warning()),
        }
    }
    out.flush()?;
    drop(out);
    io::map_spool(&file).map(Some)
}

/// Whole records, in pieces of about equal length.
#[derive(Debug)]
pub(crate) struct Pieces<'data> {
    endian: Endian,
    /// Bytes, and the offset of the first.
    list: Vec<(&'data [u8], u64)>,
    /// Why a walk ended early.
    pub(crate) damage: Option<Error>,
}

/// Pieces are at least this long: what neighbours share is looked up once a piece.
const MIN_PIECE: usize = 1 << 20;
/// So many pieces a thread: the last ones to be ready wait little.
const PIECES_A_THREAD: usize = 4;

impl<'data> Pieces<'data> {
    /// Walks all records of all parts once, and shows each to `each`.
    pub(crate) fn new(
        recording: &Recording,
        parts: &[(&'data [u8], u64)],
        threads: usize,
        mut each: impl FnMut(&RawRecord<'data>),
    ) -> Self {
        let total: usize = parts.iter().map(|(data, _)| data.len()).sum();
        let length = (total / (threads * PIECES_A_THREAD)).max(MIN_PIECE);
        let mut pieces = Self { endian: recording.header.endian, list: Vec::new(), damage: None };
        for &(data, base) in parts {
            pieces.walk(data, base, length, &mut each);
        }
        pieces
    }

    fn walk(&mut self, data: &'data [u8], base: u64, length: usize, each: &mut impl FnMut(&RawRecord<'data>)) {
        let place = |offset: u64| usize::try_from(offset - base).unwrap_or(usize::MAX).min(data.len());
        let mut records = Records::new(data, base, self.endian);
        let (mut start, mut end) = (0, 0);
        for record in records.by_ref() {
            each(&record);
            let at = place(record.offset);
            if at - start >= length {
                self.list.push((&data[start..at], base + start as u64));
                start = at;
            }
            end = place(record.end());
        }
        self.list.push((&data[start..end.max(start)], base + start as u64));
        if let (Stop::Damage(error), None) = (records.stop(), &self.damage) {
            self.damage = Some(error);
        }
    }

    /// The pieces, each a walk of its own.
    pub(crate) fn list(&self) -> Vec<Records<'data>> {
        self.list.iter().map(|&(data, base)| Records::new(data, base, self.endian)).collect()
    }

    /// The offset behind the last record that is whole.
    pub(crate) fn end(&self) -> u64 {
        self.list.last().map_or(0, |(data, base)| base + data.len() as u64)
    }

    /// The times of the first and the last sample.
    pub(super) fn times(&self, recording: &Recording) -> (Nanos, Nanos) {
        let samples = self.list().into_iter().flatten().filter(|record| record.kind == kind::SAMPLE);
        let times = samples.filter_map(|record| recording.time(&record));
        times.fold((Nanos(u64::MAX), Nanos(0)), |(first, last), time| (first.min(time), last.max(time)))
    }
}
