//! The bytes of a file that a row group is read from: its columns that are wanted. The crate's reader wants bytes that it
//! may keep; these are copied, and no others.

use crate::error::{Error, Result};
use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::ops::Range;

/// Pieces of a file, at their places.
#[derive(Debug, Clone)]
pub(super) struct Chunks {
    file_len: u64,
    pieces: Vec<(u64, Bytes)>,
}

impl Chunks {
    /// The place of a stretch of a file.
    pub(super) fn place(file: &[u8], start: u64, len: u64) -> Result<Range<usize>> {
        let place = usize::try_from(start).ok().zip(usize::try_from(start.saturating_add(len)).ok());
        let place = place.map(|(start, end)| start..end).filter(|place| place.end <= file.len());
        place.ok_or_else(|| Error::new("a column lies outside of the file"))
    }

    /// Stretches of a file.
    pub(super) fn of(file: &[u8], places: impl IntoIterator<Item = Range<usize>>) -> Self {
        let piece = |place: Range<usize>| (place.start as u64, Bytes::copy_from_slice(&file[place]));
        Self { file_len: file.len() as u64, pieces: places.into_iter().map(piece).collect() }
    }

    /// The bytes from a place on.
    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let rest = self.pieces.iter().find_map(|(at, bytes)| {
            let skipped = usize::try_from(start.checked_sub(*at)?).ok().filter(|skipped| *skipped <= bytes.len())?;
            (skipped < bytes.len() || bytes.is_empty()).then(|| bytes.slice(skipped..))
        });
        rest.ok_or_else(|| ParquetError::EOF(format!("nothing of it is at byte {start}")))
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.file_len
    }
}

impl ChunkReader for Chunks {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let rest = self.from(start)?;
        let is_there = length <= rest.len();
        is_there.then(|| rest.slice(..length)).ok_or_else(|| ParquetError::EOF(format!("{length} bytes at {start}")))
    }
}
