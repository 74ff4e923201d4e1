//! Writes `.symtab` and `.strtab`: one local function symbol per code range, streamed.
//!
//! In an image for perf, an extra symbol precedes them for samply. If a file is named `jitted-*.so`, samply puts all of
//! its code in the category that the *first* function's name implies (`JS:*f` is JavaScript compiled by TurboFan), and
//! adds a JavaScript frame of that name. The extra symbol's name implies nothing.
//!
//! Names are the runtime's bytes. They may repeat: V8 logs the same function many times, at different addresses.

use super::image::{Addressing, Image};
use super::layout::{SENTINEL_LEN, SENTINELS};
use super::sections::Sections;
use super::sink::ByteSink;
use crate::error::Result;
use object::elf;
use object::write::elf::Sym;
use std::io::{Seek, Write};

/// Symbols are encoded in memory and written when they have this many bytes.
const BATCH: usize = 1 << 16;

/// The extra symbol before all code. It covers the build ID note, which is never executed.
const EXTRA_NAME: &[u8] = b"[JIT]";
/// The name of the sentinels, functions after all code in an image for viewers.
const SENTINEL_NAME: &[u8] = b"[end]";
/// Section index of the build ID note.
const NOTE_SECTION: u32 = 1;

/// A name as a string table can hold it: up to the first NUL.
pub(super) fn cut_at_nul(name: &[u8]) -> &[u8] {
    &name[..memchr::memchr(0, name).unwrap_or(name.len())]
}

/// Writes `.symtab` and `.strtab`.
pub(super) fn write<W: Write + Seek>(image: &Image, sink: &mut ByteSink<W>, sections: &mut Sections) -> Result<()> {
    let encoder = image.target.encoder();
    sink.align(8)?;
    let start = sink.offset();
    // A batch is written after the symbol that fills it, so there is room for one more than `BATCH` bytes.
    let mut batch = Vec::with_capacity(BATCH + 64);
    encoder.null_symbol(&mut batch);
    // Names are scattered all over the dump, so each is fetched only once and collected here.
    let mut names = SymbolNames(vec![0]);
    // The extra symbol for samply, if there is one.
    let extra = extra_name(image);
    if !extra.is_empty() {
        let note = image.target.note(image.layout.segments);
        encoder.symbol(&mut batch, &function_symbol(names.add(extra), NOTE_SECTION, note.start, note.end - note.start));
    }
    for (section, run) in (sections.first_text..).zip(&image.layout.runs) {
        for (piece, code) in image.with_code(&image.layout.pieces[run.pieces.clone()]) {
            let name = cut_at_nul(code.name);
            encoder.symbol(&mut batch, &function_symbol(names.add(name), section, piece.addr, piece.len));
            if batch.len() >= BATCH {
                sink.bytes(&batch)?;
                batch.clear();
            }
        }
    }
    // The sentinels after all code, for viewers that lose the last symbols.
    let sentinels = sentinel_symbols(image);
    // The last code section, which `Layout::for_viewers` has extended over the sentinels.
    let last_text = sections.first_text + (image.layout.runs.len() as u32).saturating_sub(1);
    for &addr in &sentinels {
        encoder.symbol(&mut batch, &function_symbol(names.add(SENTINEL_NAME), last_text, addr, SENTINEL_LEN));
    }
    sink.bytes(&batch)?;
    // The number of all symbols, including the null symbol.
    let count = (image.layout.pieces.len() + sentinels.len()) as u32 + 1 + u32::from(!extra.is_empty());
    let strtab = sections.next_index() + 1; // the section after `.symtab`
    sections.push(b".symtab", encoder.symtab_section_header(strtab, count), start..sink.offset());
    let start = sink.offset();
    sink.bytes(&names.0)?;
    sections.push(b".strtab", encoder.strtab_section_header(), start..sink.offset());
    Ok(())
}

/// The string table being built.
struct SymbolNames(Vec<u8>);

impl SymbolNames {
    /// Adds a name and returns its offset. Offsets beyond 4 GiB can't be represented; such a symbol gets no name.
    fn add(&mut self, name: &[u8]) -> u32 {
        // The table starts with an empty name, at offset 0.
        match u32::try_from(self.0.len()) {
            Ok(offset) if !name.is_empty() => {
                self.0.extend_from_slice(name);
                self.0.push(0);
                offset
            }
            _ => 0,
        }
    }
}

/// The name of the extra symbol before all code; empty in an image for callgrind's viewers.
fn extra_name(image: &Image) -> &'static [u8] {
    if image.addressing == Addressing::FileOffset { EXTRA_NAME } else { b"" }
}

/// Addresses of the sentinel functions after all code, because some viewers lose a file's last functions.
fn sentinel_symbols(image: &Image) -> Vec<u64> {
    let first = image.layout.sentinels.into_iter();
    first.flat_map(|first| (0..SENTINELS).map(move |number| first + number * SENTINEL_LEN)).collect()
}

/// A symbol for a function. `st_name` is the offset of the name in the string table.
fn function_symbol(st_name: u32, section: u32, st_value: u64, st_size: u64) -> Sym {
    Sym {
        section: Some(section),
        st_name,
        st_info: elf::SymbolInfo::new(elf::STB_LOCAL, elf::STT_FUNC),
        st_other: elf::SymbolOther(0),
        st_shndx: elf::SHN_UNDEF, // replaced by `section`
        st_value,
        st_size,
    }
}
