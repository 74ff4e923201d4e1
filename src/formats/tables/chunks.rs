//! The bytes of a file that something of it is read from: its end, or the columns of a row group that are wanted. The
//! crate's reader wants bytes that it may keep; these are copied, and no others.

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
    /// The end of a file, with all that it says of the rest.
    pub(super) fn end_of(file: &[u8]) -> Self {
        /// Behind the description of a file stand its length and the name of the format.
        const TAIL: usize = 8;
        let len = file.last_chunk::<TAIL>().and_then(|tail| tail.first_chunk()).copied().map_or(0, u32::from_le_bytes);
        let start = file.len().saturating_sub((len as usize).saturating_add(TAIL));
        let piece = (start as u64, Bytes::copy_from_slice(&file[start..]));
        Self { file_len: file.len() as u64, pieces: vec![piece] }
    }

    /// Stretches of a file that do not overlap.
    pub(super) fn of(file: &[u8], places: impl Iterator<Item = Range<u64>>) -> Result<Self> {
        let (mut left, mut pieces) = (file.len(), Vec::new());
        for place in places {
            let at = |offset: u64| usize::try_from(offset).ok();
            let bytes = at(place.start).zip(at(place.end)).and_then(|(start, end)| file.get(start..end));
            let bytes = bytes.ok_or_else(|| Error::new("a column lies outside of the file"))?;
            left = left.checked_sub(bytes.len()).ok_or_else(|| Error::new("its columns overlap"))?;
            pieces.push((place.start, Bytes::copy_from_slice(bytes)));
        }
        Ok(Self { file_len: file.len() as u64, pieces })
    }

    /// What there is from a place on.
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
