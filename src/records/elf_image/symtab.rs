//! `.symtab` and `.strtab`: one local function symbol for each code range, streamed.
//!
//! In an image for perf another one precedes them, for samply: whatever a file named `jitted-*.so` has at an address,
//! it files it under the kind of code that the *first* function's name gives (`JS:*f` is JavaScript, compiled by
//! Turbofan), and adds a JavaScript frame of that name. The first name here contains nothing.
//!
//! Names may repeat (V8 logs one function many times, each at its own address), and are the runtime's bytes.

use super::image::{Addressing, Image};
use super::layout::{SENTINEL_LEN, SENTINELS};
use super::sections::Sections;
use super::sink::ByteSink;
use crate::error::Result;
use object::elf;
use object::write::elf::Sym;
use std::io::{Seek, Write};

/// Symbols are encoded in batches of this many bytes.
const BATCH: usize = 1 << 16;

/// The function that precedes all code: the build-ID note, which nobody runs.
const FIRST: &[u8] = b"[JIT]";
/// The sentinels: functions that follow all code, in an image for viewers.
const SENTINEL_NAME: &[u8] = b"[end]";
/// The section of the note.
const NOTE_SECTION: u32 = 1;

/// The form of a name in a string table: up to its first NUL.
pub(super) fn until_nul(name: &[u8]) -> &[u8] {
    &name[..memchr::memchr(0, name).unwrap_or(name.len())]
}

/// Writes both sections.
pub(super) fn write<W: Write + Seek>(image: &Image, sink: &mut ByteSink<W>, sections: &mut Sections) -> Result<()> {
    let encoder = image.target.encoder();
    sink.align(8)?;
    let start = sink.offset();
    let mut batch = Vec::with_capacity(BATCH + 64);
    encoder.null_symbol(&mut batch);
    // Names of code that samples touch: they lie all over the dump, and are fetched from there only once.
    let mut names = SymbolNames(vec![0]);
    let first = first_name(image);
    if !first.is_empty() {
        let note = image.target.note(image.layout.segments);
        encoder.symbol(&mut batch, &function(names.add(first), NOTE_SECTION, note.start, note.end - note.start));
    }
    for (section, run) in (sections.first_text..).zip(&image.layout.runs) {
        for (piece, code) in image.with_code(&image.layout.pieces[run.pieces.clone()]) {
            let name = until_nul(code.name);
            encoder.symbol(&mut batch, &function(names.add(name), section, piece.addr, piece.len));
            if batch.len() >= BATCH {
                sink.bytes(&batch)?;
                batch.clear();
            }
        }
    }
    let sentinels = sentinel_symbols(image);
    let last_text = sections.first_text + (image.layout.runs.len() as u32).saturating_sub(1);
    for &at in &sentinels {
        encoder.symbol(&mut batch, &function(names.add(SENTINEL_NAME), last_text, at, SENTINEL_LEN));
    }
    sink.bytes(&batch)?;
    let count = (image.layout.pieces.len() + sentinels.len()) as u32 + 1 + u32::from(!first.is_empty());
    let strtab = sections.next() + 1;
    sections.push(b".symtab", encoder.symtab_section_header(strtab, count), start..sink.offset());
    let start = sink.offset();
    sink.bytes(&names.0)?;
    sections.push(b".strtab", encoder.strtab_section_header(), start..sink.offset());
    Ok(())
}

/// The string table under way.
struct SymbolNames(Vec<u8>);

impl SymbolNames {
    /// Adds a name and gives its offset. Names beyond 4 GiB cannot be referred to: such a symbol has none.
    fn add(&mut self, name: &[u8]) -> u32 {
        match u32::try_from(self.0.len()) {
            Ok(at) if !name.is_empty() => {
                self.0.extend_from_slice(name);
                self.0.push(0);
                at
            }
            _ => 0,
        }
    }
}

/// The name of the function before all code; none in an image for callgrind's viewers.
fn first_name(image: &Image) -> &'static [u8] {
    if image.addressing == Addressing::FileOffset { FIRST } else { b"" }
}

/// The addresses of the functions behind all code: viewers lose the last ones of a file.
fn sentinel_symbols(image: &Image) -> Vec<u64> {
    let first = image.layout.sentinels.into_iter();
    first.flat_map(|first| (0..SENTINELS).map(move |number| first + number * SENTINEL_LEN)).collect()
}

fn function(st_name: u32, section: u32, st_value: u64, st_size: u64) -> Sym {
    Sym {
        section: Some(section),
        st_name,
        st_info: elf::SymbolInfo::new(elf::STB_LOCAL, elf::STT_FUNC),
        st_other: elf::SymbolOther(0),
        st_shndx: elf::SHN_UNDEF,
        st_value,
        st_size,
    }
}
