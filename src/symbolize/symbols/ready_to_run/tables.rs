//! Reads ECMA-335 metadata: the tables, and the strings and blobs to which their rows refer.

use super::pe::{Pe, u16_at, u32_at};
use super::schema::{Coded, Column, METHOD_DEF, NESTED_CLASS, TABLES, TYPE_DEF, TYPE_DEF_OR_REF};
use rustc_hash::FxHashMap;

/// The maximum length of a name in bytes. No real name is longer.
pub(super) const LONGEST: usize = 8192;

/// The metadata of one .NET file.
#[derive(Debug)]
pub(super) struct Metadata<'a> {
    /// The string heap.
    strings: &'a [u8],
    /// The blob heap: signatures and other binary values.
    blobs: &'a [u8],
    /// The tables by number; empty if the file has none of them.
    tables: Vec<MetadataTable<'a>>,
    wide: Wide,
    /// For each nested type, the type in which it is declared. Both are rows of the type table.
    enclosing_types: FxHashMap<u32, u32>,
}

/// Identifies a row of a metadata table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) table: u8,
    /// The number of the row, counted from 1; 0 means no row.
    pub(super) row: u32,
}

/// The rows of one table.
#[derive(Debug, Clone, Copy, Default)]
struct MetadataTable<'a> {
    bytes: &'a [u8],
    /// The size of a row in bytes.
    width: usize,
}

/// Whether columns with offsets in the string heap, the GUID heap and the blob heap take four bytes instead of two.
#[derive(Debug, Clone, Copy)]
struct Wide {
    strings: bool,
    guids: bool,
    blobs: bool,
}

impl<'a> Metadata<'a> {
    /// Reads the metadata; `None` if it is damaged.
    pub(super) fn read(pe: &Pe<'a>) -> Option<Self> {
        let root = pe.slice(pe.metadata.0, pe.metadata.1)?;
        let (mut strings, mut blobs, mut tables) = (&root[..0], &root[..0], None);
        for (name, bytes) in read_streams(root)? {
            match name {
                b"#Strings" => strings = bytes,
                b"#Blob" => blobs = bytes,
                // The stream with the tables has one of these two names.
                b"#~" | b"#-" => tables = Some(bytes),
                _ => {}
            }
        }
        let (wide, tables) = read_tables(tables?)?;
        let mut metadata = Self { strings, blobs, tables, wide, enclosing_types: FxHashMap::default() };
        // Each row of this table has a nested class and the class around it.
        for row in 1..=metadata.len(NESTED_CLASS) {
            let token = Token { table: NESTED_CLASS, row };
            if let Some(nested) = metadata.number(token, 0)
                && let Some(enclosing) = metadata.number(token, 1)
            {
                metadata.enclosing_types.insert(nested, enclosing);
            }
        }
        Some(metadata)
    }

    /// The number of methods that the file defines.
    pub(super) fn methods(&self) -> u32 {
        self.len(METHOD_DEF)
    }

    /// The type in which the type `inner` is declared; `None` if it isn't a nested type.
    pub(super) fn enclosing(&self, inner: Token) -> Option<Token> {
        self.enclosing_types.get(&inner.row).map(|&row| Token { table: TYPE_DEF, row })
    }

    /// The number of rows of the table with this number.
    pub(super) fn len(&self, table: u8) -> u32 {
        let table = self.tables.get(usize::from(table)).copied().unwrap_or_default();
        u32::try_from(table.bytes.len() / table.width.max(1)).unwrap_or(u32::MAX)
    }

    /// The value in a column of a row, as a number. `None` if there is no such row or column.
    pub(super) fn number(&self, token: Token, column: usize) -> Option<u32> {
        let table = self.tables.get(usize::from(token.table))?;
        let row = usize::try_from(token.row.checked_sub(1)?).ok()?;
        let start = row.checked_mul(table.width)?;
        let bytes = table.bytes.get(start..start.checked_add(table.width)?)?;
        let columns = TABLES.get(usize::from(token.table))?;
        let width = |column: &Column| self.wide.width(*column, &|table| self.row_count(table));
        let offset: usize = columns.get(..column)?.iter().map(width).sum();
        if width(columns.get(column)?) == 2 { u16_at(bytes, offset).map(u32::from) } else { u32_at(bytes, offset) }
    }

    /// The number of rows of the table with this number. A column that refers to rows of the table is wider if there
    /// are many rows.
    fn row_count(&self, table: u8) -> u32 {
        match self.tables.get(usize::from(table)) {
            Some(table) => (table.bytes.len() / table.width.max(1)) as u32,
            None => 0,
        }
    }

    /// The row to which a column's coded index refers. `coded` lists the tables to which the index can refer.
    pub(super) fn coded(&self, token: Token, column: usize, coded: Coded) -> Option<Token> {
        coded.token(self.number(token, column)?)
    }

    /// The text to which a column refers. `None` if there is none, or if it is longer than a name can be.
    pub(super) fn text(&self, token: Token, column: usize) -> Option<&'a [u8]> {
        let rest = self.strings.get(usize::try_from(self.number(token, column)?).ok()?..)?;
        rest.get(..memchr::memchr(0, &rest[..rest.len().min(LONGEST)])?)
    }

    /// The binary value to which a column refers. It is stored with its length.
    pub(super) fn blob(&self, token: Token, column: usize) -> Option<&'a [u8]> {
        let mut blob = Blob::new(self.blobs, usize::try_from(self.number(token, column)?).ok()?);
        let len = usize::try_from(blob.number()?).ok()?;
        self.blobs.get(blob.offset()..blob.offset().checked_add(len)?)
    }
}

impl Coded {
    /// Decodes a coded index: the row of one of several tables.
    fn token(self, number: u32) -> Option<Token> {
        let table = *self.tables.get(usize::try_from(number & ((1 << self.bits) - 1)).ok()?)?;
        Some(Token { table, row: number >> self.bits })
    }
}

impl Wide {
    /// The width of a column in bytes. `rows` returns the number of rows in the table with a given number. A column
    /// with row numbers has two bytes if they can hold the number of every row, otherwise four. In a coded column, some
    /// bits of the number say in which table the row is.
    fn width(self, column: Column, rows: &dyn Fn(u8) -> u32) -> usize {
        let wide = match column {
            Column::Fixed(size) => return size.into(),
            Column::Text => self.strings,
            Column::Guid => self.guids,
            Column::Blob => self.blobs,
            Column::Row(table) => rows(table) > 0xffff,
            Column::Coded(coded) => coded.tables.iter().any(|&table| rows(table) > 0xffff >> coded.bits),
        };
        if wide { 4 } else { 2 }
    }
}

/// The name and the contents of each stream in the metadata. `None` if the metadata is damaged. Spec: ECMA-335,
/// II.24.2.
fn read_streams(root: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    const SIGNATURE: u32 = 0x424a_5342;
    if u32_at(root, 0)? != SIGNATURE {
        return None;
    }
    // The flags come after a text with the version of the runtime, whose length is stated.
    let version_len = usize::try_from(u32_at(root, 12)?).ok()?;
    let flags = version_len.checked_add(16)?;
    let count = u16_at(root, flags.checked_add(2)?)?;
    let (mut header, mut streams) = (flags + 4, Vec::new());
    for _ in 0..count {
        let (offset, size) = (u32_at(root, header)? as usize, u32_at(root, header + 4)? as usize);
        let name = root.get(header + 8..)?;
        let len = memchr::memchr(0, name)?;
        let bytes = root.get(offset..).map(|bytes| &bytes[..size.min(bytes.len())]);
        streams.push((&name[..len], bytes?));
        // The name ends with a zero byte and is padded to a multiple of 4.
        header += 8 + (len + 4) / 4 * 4;
    }
    Some(streams)
}

/// Splits the stream with all metadata tables into single tables. Also returns which columns are wide. The stream's
/// header has a bit for each table that exists, and the number of rows of each of these. Spec: ECMA-335, II.24.2.6.
fn read_tables(stream: &[u8]) -> Option<(Wide, Vec<MetadataTable<'_>>)> {
    // Flags that say which heaps are large: columns with offsets in these have four bytes instead of two.
    let heaps = *stream.get(6)?;
    let wide = Wide { strings: heaps & 1 != 0, guids: heaps & 2 != 0, blobs: heaps & 4 != 0 };
    let existing = u64::from(u32_at(stream, 8)?) | u64::from(u32_at(stream, 12)?) << 32;
    // The numbers of rows start here.
    let mut offset = 24;
    let mut row_counts = [0u32; 64];
    for (table, count) in row_counts.iter_mut().enumerate() {
        if existing >> table & 1 != 0 {
            *count = u32_at(stream, offset)?;
            offset += 4;
        }
    }
    // If the flag 0x40 is set (in unoptimized metadata), four more bytes come before the tables.
    if heaps & 0x40 != 0 {
        offset += 4;
    }
    let mut tables = Vec::new();
    let row_count = |table: u8| row_counts.get(usize::from(table)).copied().unwrap_or(0);
    for (columns, count) in TABLES.iter().zip(row_counts) {
        let width: usize = columns.iter().map(|column| wide.width(*column, &row_count)).sum();
        let rest = stream.get(offset..).unwrap_or_default();
        let len = width.checked_mul(usize::try_from(count).ok()?)?.min(rest.len());
        tables.push(MetadataTable { bytes: &rest[..len], width });
        offset += len;
    }
    Some((wide, tables))
}

/// Reads a signature or other binary value step by step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blob<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Blob<'a> {
    pub(super) fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self { bytes, offset }
    }

    /// The offset of the byte to be read next.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.offset).copied()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.offset += 1;
        Some(byte)
    }

    /// Reads a compressed unsigned integer of one, two or four bytes. The highest bits of the first byte tell its
    /// length: 0, 10 or 110.
    pub(super) fn number(&mut self) -> Option<u32> {
        let first = self.byte()?;
        let (mut number, more_bytes) = match first {
            0..0x80 => (first.into(), 0),
            0x80..0xc0 => (u32::from(first & 0x3f), 1),
            0xc0..0xe0 => (u32::from(first & 0x1f), 3),
            _ => return None,
        };
        for _ in 0..more_bytes {
            number = (number << 8) | u32::from(self.byte()?);
        }
        Some(number)
    }

    /// Reads a compressed signed integer. Its lowest bit is the sign; the number of bytes says how many other bits it
    /// has.
    pub(super) fn signed(&mut self) -> Option<i32> {
        let start = self.offset;
        let number = self.number()?;
        let bits = match self.offset - start {
            1 => 6,
            2 => 13,
            _ => 28,
        };
        // Negative numbers are stored as two's complement without their highest bit.
        let positive = (number >> 1).cast_signed();
        Some(if number & 1 == 0 { positive } else { positive - (1 << bits) })
    }

    pub(super) fn type_token(&mut self) -> Option<Token> {
        TYPE_DEF_OR_REF.token(self.number()?)
    }
}
