//! The claims of a Parquet file, held against its size, before its reader believes it.
//!
//! Values and their levels come in runs, so that a few bytes can stand for any number of them, and any piece of a file
//! can be named any number of times. A request beyond that of all real files is left out, or refused.
//!
//! Spec: <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>

use super::thrift::Kind::{Binary, Bool, Byte, Int, List, Long, Struct, Union};
use super::thrift::{Field, check, copy};
use crate::error::{Error, Result};
use flate2::read::MultiGzDecoder;
use parquet::basic::Compression;
use parquet::file::metadata::{
    ColumnChunkMetaData, FooterTail, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use std::io::Read;

/// The needed parts of `FileMetaData`, without statistics.
const FILE: &[Field] = &[
    (1, Int),
    (2, List(&Struct(ELEMENT))),
    (3, Long),
    (4, List(&Struct(GROUP))),
    (5, List(&Struct(KEY_VALUE))),
    (6, Binary),
];
/// `SchemaElement`.
const ELEMENT: &[Field] = &[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Binary),
    (5, Int),
    (6, Int),
    (7, Int),
    (8, Int),
    (9, Int),
    (10, Union(LOGICAL_TYPE)),
];
/// `LogicalType`, but for those of columns that are none of ours.
const LOGICAL_TYPE: &[Field] = &[
    (1, Struct(&[])),
    (2, Struct(&[])),
    (3, Struct(&[])),
    (4, Struct(&[])),
    (5, Struct(&[(1, Int), (2, Int)])),
    (6, Struct(&[])),
    (7, Struct(TIME)),
    (8, Struct(TIME)),
    (10, Struct(&[(1, Byte), (2, Bool)])),
    (11, Struct(&[])),
    (12, Struct(&[])),
    (13, Struct(&[])),
    (14, Struct(&[])),
    (15, Struct(&[])),
];
/// `TimeType` and `TimestampType`.
const TIME: &[Field] = &[(1, Bool), (2, Struct(&[(1, Struct(&[])), (2, Struct(&[])), (3, Struct(&[]))]))];
const KEY_VALUE: &[Field] = &[(1, Binary), (2, Binary)];
/// `RowGroup`.
const GROUP: &[Field] = &[(1, List(&Struct(CHUNK))), (2, Long), (3, Long)];
/// `ColumnChunk`.
const CHUNK: &[Field] = &[(2, Long), (3, Struct(COLUMN))];
/// `ColumnMetaData`.
const COLUMN: &[Field] = &[(1, Int), (2, List(&Int)), (4, Int), (5, Long), (6, Long), (7, Long), (9, Long), (11, Long)];

/// `PageHeader`, without the statistics in it.
const PAGE: &[Field] = &[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Int),
    (5, Struct(&[(1, Int), (2, Int), (3, Int), (4, Int)])),
    (6, Struct(&[])),
    (7, Struct(&[(1, Int), (2, Int), (3, Bool)])),
    (8, Struct(&[(1, Int), (2, Int), (3, Int), (4, Int), (5, Int), (6, Int), (7, Bool)])),
];

/// Columns are nested no deeper: ours are lists, of structures where an engine has made them.
const MAX_NESTED: usize = 32;

/// The number of values that any file may have.
const VALUES: u64 = 1 << 26;
/// And this many more for each byte: of a program that does one thing, with stacks of 40 frames, we write 1,000 to a
/// byte.
const VALUES_A_BYTE: u64 = 1 << 14;
/// The number of values that a column of a row group may have, any of which may be one row's, and is in memory with it.
const VALUES_A_GROUP: i64 = 1 << 26;

/// So long any page may be, unpacked: writers begin a new one after a megabyte.
const PAGE_LEN: u64 = 1 << 24;
/// And this many times as long as its bytes in the file.
const PACKED: u64 = 1 << 6;

/// The description of a file, which is at its end.
pub(super) fn read(file: &[u8]) -> Result<ParquetMetaData> {
    let unreadable = |error| Error::new("cannot be read").because(error);
    let cut = || Error::new("cannot be read: the description at its end is incomplete");
    let (rest, tail) = file.split_last_chunk().ok_or_else(cut)?;
    let tail = FooterTail::try_new(tail).map_err(unreadable)?;
    if tail.is_encrypted_footer() {
        return Err(Error::new("cannot be read: it is encrypted"));
    }
    let start = rest.len().checked_sub(tail.metadata_length()).ok_or_else(cut)?;
    let mut nested = Nested::default();
    let copy = copy(&rest[start..], FILE, &mut |path, number| match (path, number) {
        ([2, 5], Some(children)) => {
            nested.children = children;
            Ok(())
        }
        ([2], None) => nested.element(),
        _ => Ok(()),
    });
    let copy = copy.map_err(|error| Error::new("cannot be read").because(error).at(start as u64))?;
    ParquetMetaDataReader::decode_metadata(&copy).map_err(unreadable)
}

/// The way columns are nested, element by element: each shows the number of parts behind it.
#[derive(Default)]
struct Nested {
    /// The number of parts that are to come of each element that is not complete.
    open: Vec<i64>,
    /// The parts of the element that is read.
    children: i64,
}

impl Nested {
    fn element(&mut self) -> Result<()> {
        if let Some(left) = self.open.last_mut() {
            *left -= 1;
        }
        let children = std::mem::take(&mut self.children);
        self.open.push(children);
        while self.open.last().is_some_and(|left| *left <= 0) {
            self.open.pop();
        }
        let fits = self.open.len() <= MAX_NESTED;
        fits.then_some(()).ok_or_else(|| Error::new(format!("columns are nested more than {MAX_NESTED} deep")))
    }
}

/// The part of the file, and the number of values, that row groups may still request.
pub(super) struct Left {
    bytes: u64,
    values: u64,
}

impl Left {
    pub(super) fn of(file: &[u8]) -> Self {
        let bytes = file.len() as u64;
        Self { bytes, values: VALUES + VALUES_A_BYTE * bytes }
    }

    /// Takes what a row group requests of these columns.
    pub(super) fn take(&mut self, group: &RowGroupMetaData, wanted: impl Fn(usize) -> bool) -> Result<()> {
        let columns = group.columns().iter().enumerate().filter(|(leaf, _)| wanted(*leaf));
        let sum = |of: fn(&ColumnChunkMetaData) -> i64| {
            let sum =
                columns.clone().try_fold(0, |sum: u64, (_, column)| sum.checked_add(u64::try_from(of(column)).ok()?));
            sum.unwrap_or(u64::MAX)
        };
        let (bytes, values) = (sum(|column| column.compressed_size()), sum(|column| column.num_values()));
        let too_many = columns.clone().any(|(_, column)| column.num_values() > VALUES_A_GROUP);
        let left = self.bytes.checked_sub(bytes).ok_or_else(|| Error::new("its columns overlap"))?;
        let all = || Error::new(format!("its description claims {values} values, more than its bytes can hold"));
        self.values = self.values.checked_sub(values).filter(|_| !too_many).ok_or_else(all)?;
        self.bytes = left;
        Ok(())
    }
}

/// Goes over the pages of a column: their headers, and how much is in them. True if all values are keys of a
/// dictionary.
pub(super) fn check_pages(column: &[u8], about: &ColumnChunkMetaData) -> Result<bool> {
    let (values, codec) = (about.num_values(), about.compression());
    let (mut at, mut left, mut are_keys) = (0, u64::try_from(values).unwrap_or(0), true);
    while at < column.len() {
        let (mut packed, mut unpacked) = (0, 0);
        let (mut levels, mut is_packed) = (0, true);
        let len = check(&column[at..], PAGE, &mut |path, number| {
            let number = || u64::try_from(number.unwrap_or(0)).map_err(|_| Error::new("a page has a negative size"));
            match path {
                [2] => unpacked = number()?,
                [3] => packed = number()?,
                [5 | 8, 1] => {
                    let more = || Error::new(format!("its pages hold more than the {values} values that a column has"));
                    left = left.checked_sub(number()?).ok_or_else(more)?;
                }
                // PLAIN_DICTIONARY and RLE_DICTIONARY.
                [5, 2] | [8, 4] => are_keys &= matches!(number()?, 2 | 8),
                [8, 5 | 6] => levels += number()?,
                [8, 7] => is_packed = number()? != 0,
                _ => {}
            }
            Ok(())
        });
        at += len.map_err(|error| Error::new("a page cannot be read").because(error))?;
        if unpacked > PAGE_LEN.max(PACKED * packed) {
            return Err(Error::new(format!("a page of {packed} bytes claims to unpack to {unpacked}")));
        }
        let end = usize::try_from(packed).ok().and_then(|packed| at.checked_add(packed));
        let end =
            end.filter(|end| *end <= column.len()).ok_or_else(|| Error::new("a page is longer than its column"))?;
        let packed = column[at..end].get(usize::try_from(levels).unwrap_or(usize::MAX)..).filter(|_| is_packed);
        packed.map_or(Ok(()), |packed| check_unpacked(packed, codec, unpacked.saturating_sub(levels)))?;
        at = end;
    }
    Ok(are_keys)
}

/// Looks whether a page unpacks to as much as it states. The crate asks no other codecs for more; these it requests
/// all.
fn check_unpacked(packed: &[u8], codec: Compression, len: u64) -> Result<()> {
    let mut reader: Box<dyn Read + '_> = match codec {
        Compression::GZIP(_) => Box::new(MultiGzDecoder::new(packed)),
        Compression::BROTLI(_) => Box::new(brotli::Decompressor::new(packed, 1 << 12)),
        Compression::LZ4 => Box::new(lz4_flex::frame::FrameDecoder::new(packed)),
        _ => return Ok(()),
    };
    let more = || Error::new(format!("a page of {} bytes unpacks to more than {len}", packed.len()));
    // Whatever else is wrong with it, the crate states.
    let unpacked = std::io::copy(&mut reader.by_ref().take(len + 1), &mut std::io::sink()).unwrap_or(0);
    if unpacked > len { Err(more()) } else { Ok(()) }
}
