//! Reduces an ELF file to its symbols and unwind data. Everything that is kept stays at its offset. The gaps are filled
//! with zeros, which take no space in the compressed archive.
//!
//! Removed sections are marked as having no content (`SHT_NOBITS`), as in debug files. Sections with debug information
//! also lose their names. So no tool takes the zeros for real content.

use crate::pipeline::archive::Piece;
use object::Endianness;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use std::ops::Range;

/// The reduced file as a list of pieces. A file that isn't ELF is kept completely.
pub(super) fn pieces(bytes: &[u8]) -> Vec<Piece<'_>> {
    let kept = match object::FileKind::parse(bytes) {
        Ok(object::FileKind::Elf32) => find_kept_parts::<elf::FileHeader32<Endianness>>(bytes),
        Ok(object::FileKind::Elf64) => find_kept_parts::<elf::FileHeader64<Endianness>>(bytes),
        _ => None,
    };
    let Some(KeptParts { ranges, table, headers }) = kept else { return vec![Piece::Bytes(bytes.into())] };
    let (mut pieces, mut at, end) = (Vec::new(), 0, bytes.len()..bytes.len());
    for range in ranges.into_iter().chain(std::iter::once(end)) {
        let start = range.start.max(at);
        if start > at {
            pieces.push(Piece::Zeros((start - at) as u64));
        }
        // Skip the section table: it is changed, so it has a piece of its own.
        if range == table {
            pieces.push(Piece::Bytes(headers.clone().into()));
        } else if range.end > start {
            pieces.push(Piece::Bytes(bytes[start..range.end].into()));
        }
        at = range.end.max(at);
    }
    pieces
}

/// The parts of an ELF file that are kept.
struct KeptParts {
    /// The kept byte ranges of the file, sorted by start. They may overlap.
    ranges: Vec<Range<usize>>,
    /// The byte range of the section table in the file.
    table: Range<usize>,
    /// The bytes of the changed section table.
    headers: Vec<u8>,
}

/// Finds the ranges to keep, and changes the section table. `None` if the file is damaged.
fn find_kept_parts<Elf: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<KeptParts> {
    let header = Elf::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, bytes).ok()?;
    let place = |offset: u64, len: u64| {
        let start = usize::try_from(offset).ok()?;
        let range = start..start.checked_add(usize::try_from(len).ok()?)?;
        (range.end <= bytes.len()).then_some(range)
    };
    let segments = header.program_headers(endian, bytes).ok()?;
    let len_of = |count: usize, size: u16| count as u64 * u64::from(size);
    let mut ranges: Vec<_> = place(0, size_of::<Elf>() as u64).into_iter().collect();
    ranges.push(place(header.e_phoff(endian).into(), len_of(segments.len(), header.e_phentsize(endian)))?);
    let notes = segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_NOTE);
    ranges.extend(notes.filter_map(|note| place(note.p_offset(endian).into(), note.p_filesz(endian).into())));
    let entry = usize::from(header.e_shentsize(endian));
    let table = place(header.e_shoff(endian).into(), len_of(sections.len(), header.e_shentsize(endian)))?;
    let mut headers = bytes[table.clone()].to_vec();
    // Skip section 0, which is the null entry.
    for (number, section) in sections.iter().enumerate().skip(1) {
        let name = sections.section_name(endian, section).unwrap_or_default();
        if is_kept(name, section.sh_type(endian)) {
            ranges.extend(place(section.sh_offset(endian).into(), section.sh_size(endian).into()));
            continue;
        }
        // `sh_name` and `sh_type` are the first two fields of a section header in both ELF classes, with four bytes
        // each.
        let [of_name, of_type] = [0, 4].map(|field| number * entry + field..number * entry + field + 4);
        if name.starts_with(b".debug") || name.starts_with(b".gnu_debug") {
            headers.get_mut(of_name)?.copy_from_slice(&[0; 4]);
        }
        let blank = object::U32::new(endian, elf::SHT_NOBITS.0);
        headers.get_mut(of_type)?.copy_from_slice(object::bytes_of(&blank));
    }
    ranges.push(table.clone());
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    Some(KeptParts { ranges, table, headers })
}

/// True if a section names functions, describes how to unwind their stacks, or is needed to read such sections.
fn is_kept(name: &[u8], kind: elf::SectionType) -> bool {
    const UNWINDING: &[&[u8]] =
        &[b".eh_frame", b".eh_frame_hdr", b".debug_frame", b".ARM.exidx", b".ARM.extab", b".gnu_debugdata"];
    const STUBS: &[&[u8]] = &[b".plt", b".got", b".iplt"];
    let is_table = [elf::SHT_SYMTAB, elf::SHT_DYNSYM, elf::SHT_STRTAB, elf::SHT_NOTE, elf::SHT_DYNAMIC];
    let is_relocation = kind == elf::SHT_REL || kind == elf::SHT_RELA;
    is_table.contains(&kind)
        || is_relocation
        || UNWINDING.contains(&name)
        || STUBS.iter().any(|stub| name.starts_with(stub))
}
