//! The file around the content: header, program headers, build-ID note, section headers.
//!
//! ```text
//! ELF header · program headers · .note.gnu.build-id · code, with holes · .eh_frame, .eh_frame_hdr ·
//! .debug_* · .symtab, .strtab, .shstrtab · section headers
//! ```
//!
//! Everything is written in this order but the first three, which need to know the rest.

use super::layout::{FramesAt, Run};
use super::sink::Sink;
use super::{Addressing, Counts, Image, Target, Written};
use super::{eh_frame, lines, symtab};
use crate::error::{Error, Result};
use crate::model::process::BuildId;
use object::elf;
use object::write::elf::{Encoder, FileHeader, FileHeaderLayout, ProgramHeader, SectionHeader};
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;

/// Program headers of an image for perf; unused ones are of type PT_NULL.
pub(super) const SEGMENTS: usize = 5;

/// Length of the build-ID note: namesz, descsz, type, "GNU\0", 20 bytes.
const NOTE: u64 = 12 + 4 + 20;

/// What breakpoints fill: between pieces of code in one section of a viewer's image nothing was ever run.
const GAP_FILL: u8 = 0xcc;

pub(super) fn encoder(target: Target) -> Encoder<object::Endianness> {
    let endian = if target.is_big() { object::Endianness::Big } else { object::Endianness::Little };
    Encoder::new(endian, target.is_64, elf::Machine(target.machine))
}

fn note_at(target: Target, segments: usize) -> u64 {
    let encoder = encoder(target);
    encoder.file_header_size() + segments as u64 * encoder.program_header_size()
}

/// Where the code may start behind so many program headers.
pub(super) fn header_size(target: Target, segments: usize) -> u64 {
    (note_at(target, segments) + NOTE).next_multiple_of(16)
}

/// Where the build-ID note is, the first section.
pub(super) fn note_of(image: &Image) -> Range<u64> {
    let at = note_at(image.target, image.layout.segments);
    at..at + NOTE
}

/// The section headers under way.
pub(super) struct Sections {
    headers: Vec<SectionHeader>,
    names: Vec<u8>,
    /// Whether addresses of loaded sections are file offsets.
    addressed: bool,
    first_text: u32,
}

impl Sections {
    fn new(image: &Image) -> Self {
        let mut sections = Self {
            headers: Vec::with_capacity(image.layout.runs.len() + 12),
            names: vec![0],
            addressed: image.addressing == Addressing::FileOffset,
            first_text: 0,
        };
        let header = SectionHeader {
            sh_type: elf::SHT_NOTE,
            sh_flags: if sections.addressed { elf::SHF_ALLOC } else { Default::default() },
            sh_addralign: 4,
            ..SectionHeader::default()
        };
        sections.push_loaded(b".note.gnu.build-id", header, note_of(image));
        sections
    }

    /// The index of the next section; 0 is the null section.
    pub(super) fn next(&self) -> u32 {
        self.headers.len() as u32 + 1
    }

    /// The index of the first section with code.
    pub(super) fn first_text(&self) -> u32 {
        self.first_text
    }

    /// Adds a section that is not loaded.
    pub(super) fn push(&mut self, name: &[u8], header: SectionHeader, place: Range<u64>) {
        let sh_name = self.name(name);
        self.headers.push(SectionHeader {
            sh_name,
            sh_offset: place.start,
            sh_size: place.end - place.start,
            ..header
        });
    }

    /// The offset of a name, which many runs of code have in common.
    fn name(&mut self, name: &[u8]) -> u32 {
        let with_nul = [name, &[0]].concat();
        let known = memchr::memmem::find(&self.names, &with_nul);
        let at = known.unwrap_or(self.names.len());
        if known.is_none() {
            self.names.extend_from_slice(&with_nul);
        }
        at as u32
    }

    /// Adds a section whose address, in an image for perf, is its file offset.
    pub(super) fn push_loaded(&mut self, name: &[u8], header: SectionHeader, place: Range<u64>) {
        let sh_addr = if self.addressed { place.start } else { 0 };
        self.push(name, SectionHeader { sh_addr, ..header }, place);
    }

    fn push_run(&mut self, run: &Run) {
        // elflint accepts executable sections only with bytes in them; perf asks for "text" in the name.
        let (name, sh_type, sh_flags) = if run.has_bytes {
            (&b".text"[..], elf::SHT_PROGBITS, elf::SHF_ALLOC | elf::SHF_EXECINSTR)
        } else {
            let in_segment = if self.addressed { elf::SHF_ALLOC } else { elf::SectionFlags(0) };
            (&b".text.names"[..], elf::SHT_NOBITS, in_segment)
        };
        let sh_addralign = if run.addr.is_multiple_of(16) { 16 } else { 1 };
        let header = SectionHeader { sh_type, sh_flags, sh_addr: run.addr, sh_addralign, ..SectionHeader::default() };
        self.push(name, header, run.offset..run.offset + run.size);
    }
}

/// What the start of a file has to know of what stands around the code.
#[derive(Debug)]
pub struct Rest {
    frames: eh_frame::Frames,
    /// Offset and number of the section headers.
    sections: (u64, u32),
    len: u64,
    counts: Counts,
}

/// Writes all but the code and the start.
pub(super) fn write_rest(image: &Image, out: &mut (impl Write + Seek)) -> Result<Rest> {
    let mut counts = Counts::default();
    let mut sections = Sections::new(image);
    let mut frames = eh_frame::Frames::default();
    let in_front = matches!(image.layout.frames, FramesAt::InFront(_));
    if in_front {
        let mut sink = Sink::new(out, header_size(image.target, image.layout.segments))?;
        frames = eh_frame::write(image, &mut sink, &mut sections, &mut counts)?;
    }
    sections.first_text = sections.next();
    image.layout.runs.iter().for_each(|run| sections.push_run(run));
    let mut sink = Sink::new(out, image.layout.code.end)?;
    if image.addressing == Addressing::FileOffset {
        if !in_front {
            frames = eh_frame::write(image, &mut sink, &mut sections, &mut counts)?;
        }
        lines::write(image, &mut sink, &mut sections, &mut counts)?;
    }
    symtab::write(image, &mut sink, &mut sections)?;
    let sections = write_section_headers(image.target, &mut sink, sections_with_names(sections))?;
    Ok(Rest { frames, sections, len: sink.offset(), counts })
}

/// Writes the start.
pub(super) fn finish(image: &Image, rest: &Rest, build_id: BuildId, out: &mut (impl Write + Seek)) -> Result<Written> {
    out.seek(SeekFrom::Start(0))?;
    out.write_all(&start_of_file(image, rest, build_id)?)?;
    out.flush()?;
    Ok(Written { build_id, len: rest.len, counts: rest.counts })
}

/// Writes the code.
pub(super) fn write_code(image: &Image, out: &mut (impl Write + Seek)) -> Result<()> {
    let fill = if image.addressing == Addressing::RunTime { GAP_FILL } else { 0 };
    let mut sink = Sink::new(out, image.layout.code.start)?;
    for run in image.layout.runs.iter().filter(|run| run.has_bytes) {
        sink.skip_to(run.offset, 0)?;
        for piece in &image.layout.pieces[run.pieces.clone()] {
            let code = image.slots[piece.slot as usize].code;
            let all = code.bytes.unwrap_or_default();
            let from = usize::try_from(piece.skip).unwrap_or(usize::MAX).min(all.len());
            let to = from.saturating_add(usize::try_from(piece.len).unwrap_or(usize::MAX)).min(all.len());
            sink.skip_to(run.offset + (piece.addr - run.addr), fill)?;
            sink.bytes(&all[from..to])?;
        }
        sink.skip_to(run.offset + run.size, fill)?;
    }
    Ok(())
}

fn sections_with_names(mut sections: Sections) -> Sections {
    let header = SectionHeader { sh_type: elf::SHT_STRTAB, sh_addralign: 1, ..SectionHeader::default() };
    sections.push(b".shstrtab", header, 0..0);
    sections
}

/// Writes `.shstrtab` and the section headers; gives their offset and number.
fn write_section_headers<W: Write + Seek>(
    target: Target,
    sink: &mut Sink<W>,
    sections: Sections,
) -> Result<(u64, u32)> {
    let Sections { mut headers, names, .. } = sections;
    if let Some(last) = headers.last_mut() {
        (last.sh_offset, last.sh_size) = (sink.offset(), names.len() as u64);
    }
    sink.bytes(&names)?;
    sink.align(8)?;
    let at = sink.offset();
    let encoder = encoder(target);
    let mut out = Vec::with_capacity((headers.len() + 1) * encoder.section_header_size() as usize);
    encoder.section_header(&mut out, &SectionHeader::default());
    for header in &headers {
        encoder.section_header(&mut out, header);
    }
    sink.bytes(&out)?;
    Ok((at, headers.len() as u32 + 1))
}

/// ELF header, program headers and build-ID note.
fn start_of_file(image: &Image, rest: &Rest, build_id: BuildId) -> Result<Vec<u8>> {
    let Rest { frames, sections, len, .. } = rest;
    let encoder = encoder(image.target);
    if !image.target.is_64 && *len > u64::from(u32::MAX) {
        return Err(Error::new(format!("the image needs {len} bytes, more than a 32-bit ELF file can address")));
    }
    let run_time = image.addressing == Addressing::RunTime;
    let header = FileHeader {
        e_type: if run_time { elf::ET_EXEC } else { elf::ET_DYN },
        e_machine: elf::Machine(image.target.machine),
        ..FileHeader::default()
    };
    let layout = FileHeaderLayout {
        e_phoff: encoder.file_header_size(),
        segment_num: image.layout.segments as u32,
        e_shoff: sections.0,
        section_num: sections.1,
        shstrtab_index: sections.1 - 1,
    };
    let mut out = Vec::new();
    let encoded = encoder.file_header(&mut out, &header, &layout);
    encoded.map_err(|error| Error::new("cannot encode the header of an image").because(error))?;
    let segments = if run_time { run_time_segments(image) } else { segments(image, frames) };
    for segment in segments.into_iter().chain(std::iter::repeat(null_segment())).take(image.layout.segments) {
        encoder.program_header(&mut out, &segment);
    }
    note(image.target, build_id, &mut out);
    Ok(out)
}

fn note(target: Target, build_id: BuildId, out: &mut Vec<u8>) {
    use gimli::Endianity;
    let id = build_id.as_bytes();
    for number in [4, id.len() as u32, elf::NT_GNU_BUILD_ID.0] {
        let mut bytes = [0; 4];
        target.gimli_endian().write_u32(&mut bytes, number);
        out.extend_from_slice(&bytes);
    }
    out.extend_from_slice(b"GNU\0");
    out.extend_from_slice(id);
}

fn null_segment() -> ProgramHeader {
    segment(elf::PT_NULL, 0..0, elf::ProgramFlags(0), 0)
}

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

/// What is loaded: the header from address 0 on, so that the image's base is what perf calculates; the code, holes
/// and all; unwinding information.
fn segments(image: &Image, frames: &eh_frame::Frames) -> Vec<ProgramHeader> {
    let note = note_of(image);
    // An alignment of 1: libdw would round the base, which is known exactly, up to any other.
    let load = |place, flags| segment(elf::PT_LOAD, place, flags, 1);
    let mut loads = vec![load(0..note.end, elf::PF_R)];
    let code = image.layout.code.clone();
    if !code.is_empty() {
        let has_bytes = image.layout.runs.iter().any(|run| run.has_bytes);
        loads.push(load(code, if has_bytes { elf::PF_R | elf::PF_X } else { elf::PF_R }));
    }
    if !frames.all.is_empty() {
        loads.push(load(frames.all.clone(), elf::PF_R));
    }
    loads.sort_by_key(|load| load.p_offset);
    let mut segments = loads;
    if !frames.all.is_empty() {
        segments.push(segment(elf::PT_GNU_EH_FRAME, frames.header.clone(), elf::PF_R, 4));
    }
    segments.push(segment(elf::PT_NOTE, note, elf::PF_R, 4));
    segments
}

/// One for each section of code: nothing is loaded from this file, but readers judge it as a program.
fn run_time_segments(image: &Image) -> Vec<ProgramHeader> {
    let runs = image.layout.runs.iter().filter(|run| run.has_bytes).map(|run| {
        let load = segment(elf::PT_LOAD, run.offset..run.offset + run.size, elf::PF_R | elf::PF_X, 1);
        ProgramHeader { p_vaddr: run.addr, p_paddr: run.addr, ..load }
    });
    runs.collect()
}
