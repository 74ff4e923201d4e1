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

/// Reduces an ELF file to its symbols and unwind data. Returns the reduced file as a list of pieces: the kept bytes at
/// their old offsets, and zeros between them. A file that isn't ELF, or is damaged, is kept completely.
pub(super) fn pieces(bytes: &[u8]) -> Vec<Piece<'_>> {
    let kept = match object::FileKind::parse(bytes) {
        Ok(object::FileKind::Elf32) => find_kept_parts::<elf::FileHeader32<Endianness>>(bytes),
        Ok(object::FileKind::Elf64) => find_kept_parts::<elf::FileHeader64<Endianness>>(bytes),
        _ => None,
    };
    let Some(KeptParts { ranges, table, headers }) = kept else { return vec![Piece::Bytes(bytes.into())] };
    let mut pieces = Vec::new();
    // How many bytes of the file the pieces cover so far.
    let mut covered = 0;
    // An empty range at the end of the file makes the loop fill the gap after the last kept range.
    let end = bytes.len()..bytes.len();
    for range in ranges.into_iter().chain(std::iter::once(end)) {
        let start = range.start.max(covered);
        if start > covered {
            pieces.push(Piece::Zeros((start - covered) as u64));
        }
        // If the range is the section table, take its changed bytes (`headers`) instead of those of the file.
        if range == table {
            pieces.push(Piece::Bytes(headers.clone().into()));
        } else if range.end > start {
            pieces.push(Piece::Bytes(bytes[start..range.end].into()));
        }
        covered = range.end.max(covered);
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

/// Finds the byte ranges of an ELF file to keep, and changes a copy of its section table (`headers`). In the copy,
/// removed sections are marked as having no content, and sections with debug information also lose their names: no tool
/// then takes the zeros in their place for real content. `None` if the file is damaged.
fn find_kept_parts<Elf: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<KeptParts> {
    let header = Elf::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, bytes).ok()?;
    let segments = header.program_headers(endian, bytes).ok()?;
    let mut ranges = Vec::new();
    // The ELF header.
    ranges.extend(byte_range(bytes, 0, size_of::<Elf>() as u64));
    // Keep the program headers and the notes, because one of the notes has the build ID.
    let segments_len = segments.len() as u64 * u64::from(header.e_phentsize(endian));
    ranges.push(byte_range(bytes, header.e_phoff(endian).into(), segments_len)?);
    for segment in segments {
        if segment.p_type(endian) == elf::PT_NOTE {
            ranges.extend(byte_range(bytes, segment.p_offset(endian).into(), segment.p_filesz(endian).into()));
        }
    }
    let entry_size = usize::from(header.e_shentsize(endian));
    let table_len = sections.len() as u64 * entry_size as u64;
    let table = byte_range(bytes, header.e_shoff(endian).into(), table_len)?;
    let mut headers = bytes[table.clone()].to_vec();
    // Skip section 0, which is the null entry.
    for (number, section) in sections.iter().enumerate().skip(1) {
        let name = sections.section_name(endian, section).unwrap_or_default();
        if is_kept(name, section.sh_type(endian)) {
            ranges.extend(byte_range(bytes, section.sh_offset(endian).into(), section.sh_size(endian).into()));
            continue;
        }
        // The section is removed. `sh_name` and `sh_type` are the first two fields of a section header in both ELF
        // classes, with four bytes each.
        let name_start = number * entry_size;
        let type_start = name_start + 4;
        // Remove the name of a section with debug information: name 0 is the empty string.
        if name.starts_with(b".debug") || name.starts_with(b".gnu_debug") {
            headers.get_mut(name_start..type_start)?.copy_from_slice(&[0; 4]);
        }
        let no_content = object::U32::new(endian, elf::SHT_NOBITS.0);
        headers.get_mut(type_start..type_start + 4)?.copy_from_slice(object::bytes_of(&no_content));
    }
    ranges.push(table.clone());
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    Some(KeptParts { ranges, table, headers })
}

/// The range of `len` bytes at `offset`. `None` if the file is too short for it.
fn byte_range(bytes: &[u8], offset: u64, len: u64) -> Option<Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(len).ok()?)?;
    if end <= bytes.len() { Some(start..end) } else { None }
}

/// True if a section names functions, describes how to unwind their stacks, or is needed to read such sections.
fn is_kept(name: &[u8], kind: elf::SectionType) -> bool {
    const UNWINDING: &[&[u8]] =
        &[b".eh_frame", b".eh_frame_hdr", b".debug_frame", b".ARM.exidx", b".ARM.extab", b".gnu_debugdata"];
    // Calls to other libraries go through these stubs and tables; relocations tell which function each stub calls.
    const STUBS: &[&[u8]] = &[b".plt", b".got", b".iplt"];
    let is_table = [elf::SHT_SYMTAB, elf::SHT_DYNSYM, elf::SHT_STRTAB, elf::SHT_NOTE, elf::SHT_DYNAMIC];
    let is_relocation = kind == elf::SHT_REL || kind == elf::SHT_RELA;
    is_table.contains(&kind)
        || is_relocation
        || UNWINDING.contains(&name)
        || STUBS.iter().any(|stub| name.starts_with(stub))
}
