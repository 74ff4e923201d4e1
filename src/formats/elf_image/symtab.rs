//! `.symtab` and `.strtab`: one local function symbol for each piece of code, streamed.
//!
//! Names may repeat (V8 logs one function many times, each at its own address), and are the runtime's bytes.

use super::Image;
use super::file::{Sections, encoder};
use super::sink::Sink;
use crate::error::Result;
use object::elf;
use object::write::elf::Sym;
use std::io::{Seek, Write};

/// Symbols are encoded in batches of this many bytes.
const BATCH: usize = 1 << 16;

/// A name as it goes into a string table: up to its first NUL.
pub(super) fn until_nul(name: &[u8]) -> &[u8] {
    &name[..memchr::memchr(0, name).unwrap_or(name.len())]
}

/// Writes both sections.
pub(super) fn write<W: Write + Seek>(image: &Image, sink: &mut Sink<W>, sections: &mut Sections) -> Result<()> {
    let encoder = encoder(image.target);
    sink.align(8)?;
    let start = sink.offset();
    let mut batch = Vec::with_capacity(BATCH + 64);
    encoder.null_symbol(&mut batch);
    let mut name_at = 1_u32;
    for (section, run) in (sections.first_text()..).zip(&image.layout.runs) {
        for piece in &image.layout.pieces[run.pieces.clone()] {
            let name = until_nul(image.slots[piece.slot as usize].code.name);
            let next = u32::try_from(name.len() + 1).ok().and_then(|len| name_at.checked_add(len));
            encoder.symbol(
                &mut batch,
                &Sym {
                    section: Some(section),
                    // Names beyond 4 GiB cannot be referred to: such a symbol has none.
                    st_name: if name.is_empty() || next.is_none() { 0 } else { name_at },
                    st_info: elf::SymbolInfo::new(elf::STB_LOCAL, elf::STT_FUNC),
                    st_other: elf::SymbolOther(0),
                    st_shndx: elf::SHN_UNDEF,
                    st_value: piece.addr,
                    st_size: piece.len,
                },
            );
            name_at = next.unwrap_or(u32::MAX);
            if batch.len() >= BATCH {
                sink.bytes(&batch)?;
                batch.clear();
            }
        }
    }
    sink.bytes(&batch)?;
    let count = image.layout.pieces.len() as u32 + 1;
    let strtab = sections.next() + 1;
    sections.push(b".symtab", encoder.symtab_section_header(strtab, count), start..sink.offset());
    write_names(image, sink, sections)
}

fn write_names<W: Write + Seek>(image: &Image, sink: &mut Sink<W>, sections: &mut Sections) -> Result<()> {
    let start = sink.offset();
    sink.bytes(&[0])?;
    for piece in &image.layout.pieces {
        let name = until_nul(image.slots[piece.slot as usize].code.name);
        if sink.offset() - start + name.len() as u64 >= u64::from(u32::MAX) {
            break;
        }
        sink.bytes(name)?;
        sink.bytes(&[0])?;
    }
    sections.push(b".strtab", encoder(image.target).strtab_section_header(), start..sink.offset());
    Ok(())
}
