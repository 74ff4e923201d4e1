//! Features that simpleperf, Android's perf, adds to perf.data: symbols of the sampled files, and metadata.
//!
//! * FILE (feature 128): per file a u32 length and a struct of that length.
//! * META_INFO (129): keys and values, each terminated by NUL.
//! * FILE2 (132): per file a u32 length and a protobuf message `FileFeature`.
//!
//! JIT code and code of dex files in memory have mappings of files that don't exist (`…_jit_app_cache:START-END`). The
//! symbols of these "files" have addresses in the process.
//!
//! Layouts: simpleperf/record_file_format.h, simpleperf/record_file.proto and simpleperf/dso.cpp of Android.

use super::recording::Recording;
use crate::bytes::cursor::Cursor;
use crate::bytes::protobuf::Fields;
use crate::error::{Result, Skipped};
use crate::model::mapping_kind::simpleperf_jit_cache;
use crate::model::recorded_symbols::{RecordedFile, RecordedSymbol, SymbolBase};
use linux_perf_data::Feature;

/// Kinds of files as numbered by simpleperf (`enum DsoType`).
const KERNEL_MODULE: u64 = 1;
const ELF_FILE: u64 = 2;
const DEX_FILE: u64 = 3;

/// A file described in a FILE or FILE2 section.
#[derive(Debug, Default)]
struct FileEntry {
    path: Vec<u8>,
    /// The kind of the file, as numbered by simpleperf (`enum DsoType`).
    kind: u64,
    /// The lowest link-time address of code in the file.
    min_vaddr: u64,
    /// File offset of `min_vaddr`; for a kernel module its offset from the start of the module in memory. `None` if
    /// unknown.
    min_vaddr_offset: Option<u64>,
    symbols: Vec<RecordedSymbol>,
}

impl FileEntry {
    /// Determines what the symbols' addresses are relative to. In ELF files and kernel modules they are link-time
    /// addresses. The difference between `min_vaddr` and its file offset converts them to file offsets. If that offset
    /// isn't known, the file's first mapping of code is assumed to start at `min_vaddr`. Symbols of JIT code and of dex
    /// files need no conversion.
    fn into_file(self) -> RecordedFile {
        let Self { path, kind, min_vaddr, min_vaddr_offset, symbols } = self;
        let base = match (kind, min_vaddr_offset) {
            _ if simpleperf_jit_cache(&path).is_some() => SymbolBase::Start,
            (ELF_FILE, Some(offset)) => SymbolBase::Linked(min_vaddr.wrapping_sub(offset)),
            (ELF_FILE, None) => SymbolBase::FirstMapping(min_vaddr),
            // A module's mapping starts at the start of the module in memory, from which `offset` counts, too.
            (KERNEL_MODULE, offset) => SymbolBase::FirstMapping(min_vaddr.wrapping_sub(offset.unwrap_or_default())),
            _ => SymbolBase::Start,
        };
        RecordedFile { path, base, symbols }
    }
}

impl Recording {
    /// The files whose symbols the recording contains. Entries that cannot be read are counted in `skipped`.
    pub fn symbol_files(&self, skipped: &mut Skipped) -> Vec<RecordedFile> {
        let mut files = Vec::new();
        for (feature, parse) in [
            (Feature::SIMPLEPERF_FILE, parse_file as fn(Cursor<'_>) -> Result<FileEntry>),
            (Feature::SIMPLEPERF_FILE2, parse_file2),
        ] {
            let Some(section) = self.features.get(&feature) else { continue };
            let mut cursor = Cursor::new(&section.bytes, section.offset, self.header.endian);
            while !cursor.is_empty() {
                match read_entry(&mut cursor) {
                    Ok(body) => match parse(body) {
                        Ok(file) => files.push(file.into_file()),
                        Err(error) => skipped.add(error),
                    },
                    // Without the entry's length, the next entry can't be found.
                    Err(error) => {
                        skipped.add(error);
                        break;
                    }
                }
            }
        }
        files
    }

    /// Keys and values of META_INFO.
    fn meta_info(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let bytes = self.features.get(&Feature::SIMPLEPERF_META_INFO).map_or(&[][..], |section| &section.bytes);
        let mut texts = bytes.split(|&byte| byte == 0);
        std::iter::from_fn(move || Some((texts.next()?, texts.next()?)))
    }

    /// True if simpleperf made the recording.
    pub fn is_simpleperf(&self) -> bool {
        self.features.contains_key(&Feature::SIMPLEPERF_META_INFO)
    }

    /// Names the events by META_INFO, which has a line `name,type,config` per event.
    pub(super) fn name_events_by_meta_info(&mut self) {
        let Some((_, types)) = self.meta_info().find(|(key, _)| *key == b"event_type_info") else { return };
        let types = String::from_utf8_lossy(types).into_owned();
        for line in types.lines() {
            // Split from the end, because names may contain commas. Lines without the two numbers are ignored.
            let mut words = line.rsplitn(3, ',');
            let config = words.next().and_then(|word| word.trim().parse::<u64>().ok());
            let kind = words.next().and_then(|word| word.trim().parse::<u32>().ok());
            let (Some(config), Some(kind), Some(name)) = (config, kind, words.next()) else { continue };
            for event in &mut self.events {
                if (event.attr.kind, event.attr.config) == (kind, config) {
                    event.name = name.to_owned();
                }
            }
        }
    }
}

/// Reads the length of the next file's entry, and returns a cursor over the entry.
fn read_entry<'data>(cursor: &mut Cursor<'data>) -> Result<Cursor<'data>> {
    let len = cursor.u32("length of a file's symbols")?;
    let (base, endian) = (cursor.offset(), cursor.endian());
    Ok(Cursor::new(cursor.bytes(len.into(), "a file's symbols")?, base, endian))
}

/// Parses the entry of one file in the older, binary form.
fn parse_file(mut body: Cursor<'_>) -> Result<FileEntry> {
    let path = body.cstr("path")?.to_vec();
    let kind = body.u32("type of a file")?.into();
    let min_vaddr = body.u64("lowest address")?;
    let count = body.u32("number of symbols")?;
    let mut symbols = Vec::new();
    for _ in 0..count {
        let addr = body.u64("address of a symbol")?;
        let len = body.u32("length of a symbol")?.into();
        symbols.push(RecordedSymbol { addr, len, name: body.cstr("name of a symbol")?.into() });
    }
    let mut min_vaddr_offset = None;
    if kind == DEX_FILE {
        let count = body.u32("number of dex files")?;
        body.bytes(u64::from(count) * 8, "offsets of dex files")?;
    } else if body.left() >= 8 {
        min_vaddr_offset = Some(body.u64("offset of the lowest address")?);
    }
    // Recorders that don't know the offset write u64::MAX.
    Ok(FileEntry {
        path,
        kind,
        min_vaddr,
        min_vaddr_offset: min_vaddr_offset.filter(|offset| *offset != u64::MAX),
        symbols,
    })
}

fn parse_file2(body: Cursor<'_>) -> Result<FileEntry> {
    parse_file_message(body.rest()).map_err(|error| error.at_offset(body.offset()))
}

/// Parses the entry of one file in the newer form, a Protocol Buffers message.
fn parse_file_message(message: &[u8]) -> Result<FileEntry> {
    let mut file = FileEntry::default();
    for field in Fields::new(message) {
        match field? {
            (1, path) => file.path = path.bytes().to_vec(),
            (2, kind) => file.kind = kind.number(),
            (3, addr) => file.min_vaddr = addr.number(),
            (4, symbol) => file.symbols.push(parse_symbol(symbol.bytes())?),
            // Details of an ELF file or of a kernel module. In both messages, field 1 is the offset of `min_vaddr`.
            // Protocol Buffers leave out a field that is 0.
            (6 | 7, details) => {
                let mut offset = 0;
                for field in Fields::new(details.bytes()) {
                    if let (1, value) = field? {
                        offset = value.number();
                    }
                }
                file.min_vaddr_offset = Some(offset).filter(|offset| *offset != u64::MAX);
            }
            _ => {}
        }
    }
    Ok(file)
}

/// Parses a symbol, which is a Protocol Buffers message.
fn parse_symbol(message: &[u8]) -> Result<RecordedSymbol> {
    let mut symbol = RecordedSymbol { addr: 0, len: 0, name: Box::default() };
    for field in Fields::new(message) {
        match field? {
            (1, addr) => symbol.addr = addr.number(),
            // A field of type uint32: Protocol Buffers drop the upper half of a longer number.
            (2, len) => symbol.len = len.number() & u64::from(u32::MAX),
            (3, name) => symbol.name = name.bytes().into(),
            _ => {}
        }
    }
    Ok(symbol)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::cursor::Endian;

    #[test]
    fn a_file_of_the_first_layout() {
        let mut body = b"/system/lib64/libc.so\0".to_vec();
        body.extend(2u32.to_le_bytes());
        body.extend(0x1000u64.to_le_bytes());
        body.extend(2u32.to_le_bytes());
        for (addr, len, name) in [(0x1100u64, 0x10u32, "read"), (0x1200, 0, "write")] {
            body.extend(addr.to_le_bytes());
            body.extend(len.to_le_bytes());
            body.extend(name.as_bytes());
            body.push(0);
        }
        let old = parse_file(Cursor::new(&body, 0, Endian::Little)).unwrap();
        assert_eq!((old.symbols.len(), &old.symbols[1].name[..]), (2, &b"write"[..]));
        assert_eq!(old.into_file().base, SymbolBase::FirstMapping(0x1000));
        body.extend(0x800u64.to_le_bytes());
        let new = parse_file(Cursor::new(&body, 0, Endian::Little)).unwrap();
        assert_eq!(new.into_file().base, SymbolBase::Linked(0x800));
        for cut in 0..body.len() - 8 {
            assert!(parse_file(Cursor::new(&body[..cut], 0, Endian::Little)).is_err(), "{cut}");
        }
    }

    #[test]
    fn a_file_of_the_second_layout() {
        let symbol = b"\x0a\x80\x20".to_vec();
        assert!(parse_symbol(&symbol).is_err());
        // vaddr 0x1000, len 16, name f
        let symbol = b"\x08\x80\x20\x10\x10\x1a\x01f";
        let mut body = b"\x0a\x05/a.so\x10\x02\x18\x80\x10\x22".to_vec();
        body.push(symbol.len() as u8);
        body.extend(symbol);
        body.extend(b"\x32\x00");
        let file = parse_file2(Cursor::new(&body, 0, Endian::Little)).unwrap().into_file();
        assert_eq!(file.symbols, [RecordedSymbol { addr: 0x1000, len: 16, name: b"f"[..].into() }]);
        assert_eq!((&file.path[..], file.base), (&b"/a.so"[..], SymbolBase::Linked(0x800)));
    }
}
