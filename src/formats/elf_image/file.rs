//! Writes the file of an image: ELF header, program headers, build ID note, section headers, and the contents between.
//!
//! ```text
//! ELF header · program headers · .note.gnu.build-id · code, with holes · .eh_frame, .eh_frame_hdr ·
//! .debug_* · .symtab, .strtab, .shstrtab · section headers
//! ```
//!
//! The file is written in this order, except that the first three parts come last because they depend on the rest.

use super::image::{Addressing, Image};
use super::layout::FramesAt;
use super::sections::{Counts, SectionTable, Sections, Written, write_headers};
use super::sink::ByteSink;
use super::{eh_frame, lines, symtab};
use crate::bytes::byte_writer::ByteWriter;
use crate::error::{Error, Result};
use crate::model::abi::{EM_386, EM_X86_64};
use crate::model::process::BuildId;
use object::elf;
use object::write::elf::{FileHeader, FileHeaderLayout, ProgramHeader};
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;

/// The byte that fills gaps between code ranges with [`Addressing::RunTime`], where nothing ever ran. On x86, it is the
/// breakpoint instruction `int3`. Elsewhere it is zero, which isn't an instruction on most machines, and which
/// disassemblers such as objdump leave out.
fn gap_fill(machine: u16) -> u8 {
    if matches!(machine, EM_386 | EM_X86_64) { 0xcc } else { 0 }
}

/// What [`Image::write_end`] wrote, as far as the start of the file depends on it ([`Image::finish`]).
#[derive(Debug)]
pub struct FileEnd {
    frames: eh_frame::Frames,
    sections: SectionTable,
    /// Length of the file in bytes.
    len: u64,
    counts: Counts,
}

impl Image<'_, '_> {
    /// Writes the whole file from the start of `out`, seeking over holes. `out` must be a new, empty file.
    pub fn write(&self, out: &mut (impl Write + Seek)) -> Result<Written> {
        self.write_code(out)?;
        let end = self.write_end(out)?;
        self.finish(&end, self.build_id(), out)
    }

    /// Writes only the code, so that another thread can compute the build ID meanwhile. The pieces of code are written
    /// run by run; a run is a section of neighboring pieces.
    pub fn write_code(&self, out: &mut (impl Write + Seek)) -> Result<()> {
        let fill = match self.addressing {
            Addressing::RunTime => gap_fill(self.target.machine),
            Addressing::FileOffset => 0,
        };
        let mut sink = ByteSink::new(out, self.layout.code.start)?;
        // Between runs there are zeros. Gaps between the pieces of a run get `fill`, because viewers disassemble them.
        for run in self.layout.runs.iter().filter(|run| run.has_bytes) {
            sink.skip_to(run.offset, 0)?;
            for (piece, code) in self.with_code(&self.layout.pieces[run.pieces.clone()]) {
                let bytes = code.bytes.unwrap_or_default();
                let start = usize::try_from(piece.skip).unwrap_or(usize::MAX).min(bytes.len());
                let len = usize::try_from(piece.len).unwrap_or(usize::MAX).min(bytes.len() - start);
                sink.skip_to(run.offset + (piece.addr - run.addr), fill)?;
                sink.bytes(&bytes[start..start + len])?;
            }
            sink.skip_to(run.offset + run.size, fill)?;
        }
        Ok(())
    }

    /// Writes everything but the code and the start of the file: unwinding information and line tables, which only an
    /// image for perf has, then symbols and section headers.
    pub fn write_end(&self, out: &mut (impl Write + Seek)) -> Result<FileEnd> {
        let mut counts = Counts::default();
        let mut sections = Sections::new(self);
        let mut frames = eh_frame::Frames::default();
        let in_front = matches!(self.layout.frames, FramesAt::BeforeCode(_));
        // The sections are written in the order of their offsets: the layout may have room for the unwinding
        // information before the code.
        if in_front {
            let mut sink = ByteSink::new(out, self.target.header_size(self.layout.segments))?;
            frames = eh_frame::write(self, &mut sink, &mut sections, &mut counts)?;
        }
        sections.push_runs(&self.layout.runs);
        let mut sink = ByteSink::new(out, self.layout.code.end)?;
        if self.addressing == Addressing::FileOffset {
            if !in_front {
                frames = eh_frame::write(self, &mut sink, &mut sections, &mut counts)?;
            }
            lines::write(self, &mut sink, &mut sections, &mut counts)?;
        }
        symtab::write(self, &mut sink, &mut sections)?;
        let sections = write_headers(self.target, &mut sink, sections)?;
        Ok(FileEnd { frames, sections, len: sink.offset(), counts })
    }

    /// Writes the start of the file: ELF header, program headers and the note with the build ID. That completes the
    /// file, and it is flushed.
    pub fn finish(&self, end: &FileEnd, build_id: BuildId, out: &mut (impl Write + Seek)) -> Result<Written> {
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&encode_start(self, end, build_id)?)?;
        out.flush()?;
        Ok(Written { build_id, len: end.len, counts: end.counts })
    }
}

/// Encodes ELF header, program headers and build ID note, for which the file has room before everything else. Fails if
/// a 32-bit file is longer than its 32-bit offsets allow.
fn encode_start(image: &Image, end: &FileEnd, build_id: BuildId) -> Result<Vec<u8>> {
    let FileEnd { frames, sections, len, .. } = end;
    let encoder = image.target.encoder();
    if !image.target.is_64 && *len > u64::from(u32::MAX) {
        return Err(Error::new(format!("the image needs {len} bytes, more than a 32-bit ELF file can address")));
    }
    let run_time = image.addressing == Addressing::RunTime;
    let header = FileHeader {
        // At run-time addresses the image looks like a program; for perf it is a library, which can be mapped anywhere.
        e_type: if run_time { elf::ET_EXEC } else { elf::ET_DYN },
        e_machine: elf::Machine(image.target.machine),
        ..FileHeader::default()
    };
    let layout = FileHeaderLayout {
        e_phoff: encoder.file_header_size(),
        segment_num: image.layout.segments as u32,
        e_shoff: sections.offset,
        section_num: sections.count,
        shstrtab_index: sections.count - 1, // the last one
    };
    let mut out = Vec::new();
    let encoded = encoder.file_header(&mut out, &header, &layout);
    encoded.map_err(|error| Error::new("cannot write the ELF header of an image of JIT code").because(error))?;
    let segments = if run_time { run_time_segments(image) } else { segments(image, frames) };
    // The file has room for a fixed number of program headers. Those that aren't needed are marked as unused.
    let unused = segment(elf::PT_NULL, 0..0, elf::ProgramFlags(0), 0);
    for segment in segments.into_iter().chain(std::iter::repeat(unused)).take(image.layout.segments) {
        encoder.program_header(&mut out, &segment);
    }
    let (id, mut out) = (build_id.as_bytes(), ByteWriter::append_to(out, image.target.endian));
    // A note: lengths of name and content, type, name, content.
    out.u32(4).u32(id.len() as u32).u32(elf::NT_GNU_BUILD_ID.0).bytes(b"GNU\0").bytes(id);
    Ok(out.finish())
}

/// A program header for bytes that are loaded at addresses equal to their file offsets.
fn segment(p_type: elf::ProgramType, place: Range<u64>, p_flags: elf::ProgramFlags, p_align: u64) -> ProgramHeader {
    let size = place.end - place.start;
    ProgramHeader {
        p_type,
        p_flags,
        p_offset: place.start,
        p_vaddr: place.start,
        p_paddr: place.start,
        p_filesz: size,
        p_memsz: size,
        p_align,
    }
}

/// The program headers of an image for perf: the start of the file, the code with its holes, and the unwinding
/// information. perf tells libdw where the image's address 0 is in the process (`map.start - map.pgoff`), but libdw
/// takes that for the place of the first segment. So the first segment must be at address 0: it is the start of the
/// file. ELF requires segments to load to be sorted by address; here, the address is the file offset.
fn segments(image: &Image, frames: &eh_frame::Frames) -> Vec<ProgramHeader> {
    let note = image.target.note(image.layout.segments);
    // The alignment is 1, because libdw would round the exactly known base up to any larger alignment.
    let mut segments = vec![segment(elf::PT_LOAD, 0..note.end, elf::PF_R, 1)];
    let code = image.layout.code.clone();
    if !code.is_empty() {
        let has_bytes = image.layout.runs.iter().any(|run| run.has_bytes);
        let flags = if has_bytes { elf::PF_R | elf::PF_X } else { elf::PF_R };
        segments.push(segment(elf::PT_LOAD, code, flags, 1));
    }
    if !frames.whole.is_empty() {
        segments.push(segment(elf::PT_LOAD, frames.whole.clone(), elf::PF_R, 1));
    }
    segments.sort_by_key(|segment| segment.p_offset);
    if !frames.whole.is_empty() {
        segments.push(segment(elf::PT_GNU_EH_FRAME, frames.header.clone(), elf::PF_R, 4));
    }
    segments.push(segment(elf::PT_NOTE, note, elf::PF_R, 4));
    segments
}

/// The program headers of an image for callgrind's viewers: one per code section. Nothing loads this file, but its
/// readers treat it as a program.
fn run_time_segments(image: &Image) -> Vec<ProgramHeader> {
    let runs = image.layout.runs.iter().filter(|run| run.has_bytes).map(|run| {
        let load = segment(elf::PT_LOAD, run.offset..run.offset + run.size, elf::PF_R | elf::PF_X, 1);
        ProgramHeader { p_vaddr: run.addr, p_paddr: run.addr, ..load }
    });
    runs.collect()
}
