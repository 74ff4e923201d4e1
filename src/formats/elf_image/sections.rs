//! Collects the section headers of an image while its file is written, and describes the written file.

use super::image::{Addressing, Image};
use super::layout::LayoutRun;
use super::sink::ByteSink;
use super::target::Target;
use crate::error::Result;
use crate::model::process::BuildId;
use object::elf;
use object::write::elf::SectionHeader;
use std::io::{Seek, Write};
use std::ops::Range;

/// Describes a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The build ID. It is the same for the same content at the same offsets and addresses.
    pub build_id: BuildId,
    /// Length of the file in bytes, including holes.
    pub len: u64,
    /// Statistics about the content.
    pub counts: Counts,
}

/// Statistics about the content of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Number of code ranges with a line table.
    pub with_lines: u64,
    /// Number of code ranges with unwinding information.
    pub with_unwind: u64,
    /// Number of code ranges whose unwinding information was malformed and therefore left out.
    pub bad_unwind: u64,
}

/// The section headers collected so far.
pub(super) struct Sections {
    headers: Vec<SectionHeader>,
    /// The string table with the sections' names.
    names: Vec<u8>,
    /// True for an image for perf: the addresses of its loaded sections are their file offsets.
    has_addresses: bool,
    /// Index of the first code section; 0 before [`Self::push_runs`].
    pub(super) first_text: u32,
}

impl Sections {
    /// Starts with the section of the build ID.
    pub(super) fn new(image: &Image) -> Self {
        let mut sections = Self {
            // Beside the code sections there are at most about a dozen.
            headers: Vec::with_capacity(image.layout.runs.len() + 12),
            // String tables start with the empty name.
            names: vec![0],
            has_addresses: image.addressing == Addressing::FileOffset,
            first_text: 0,
        };
        let header = SectionHeader {
            sh_type: elf::SHT_NOTE,
            sh_flags: if sections.has_addresses { elf::SHF_ALLOC } else { Default::default() },
            sh_addralign: 4,
            ..SectionHeader::default()
        };
        sections.push_loaded(b".note.gnu.build-id", header, image.target.note(image.layout.segments));
        sections
    }

    /// The index of the next section. 0 is the null section.
    pub(super) fn next_index(&self) -> u32 {
        self.headers.len() as u32 + 1
    }

    /// Adds a section that is not loaded. `place` is its range in the file.
    pub(super) fn push(&mut self, name: &[u8], header: SectionHeader, place: Range<u64>) {
        let sh_name = self.find_or_add_name(name);
        self.headers.push(SectionHeader {
            sh_name,
            sh_offset: place.start,
            sh_size: place.end - place.start,
            ..header
        });
    }

    /// Offset of a name in the string table, to which it is added if it is new. Many sections share one name.
    fn find_or_add_name(&mut self, name: &[u8]) -> u32 {
        let with_nul = [name, &[0]].concat();
        let known = memchr::memmem::find(&self.names, &with_nul);
        let offset = known.unwrap_or(self.names.len());
        if known.is_none() {
            self.names.extend_from_slice(&with_nul);
        }
        offset as u32
    }

    /// Adds a loaded section. `place` is its range in the file. In an image for perf, its address is its file offset.
    pub(super) fn push_loaded(&mut self, name: &[u8], header: SectionHeader, place: Range<u64>) {
        let sh_addr = if self.has_addresses { place.start } else { 0 };
        self.push(name, SectionHeader { sh_addr, ..header }, place);
    }

    /// Adds the code sections.
    pub(super) fn push_runs(&mut self, runs: &[LayoutRun]) {
        self.first_text = self.next_index();
        runs.iter().for_each(|run| self.push_run(run));
    }

    /// Adds the section of neighboring pieces of code.
    fn push_run(&mut self, run: &LayoutRun) {
        // elflint accepts executable sections only if they have bytes. perf looks for "text" in the name.
        let (name, sh_type, sh_flags) = if run.has_bytes {
            (&b".text"[..], elf::SHT_PROGBITS, elf::SHF_ALLOC | elf::SHF_EXECINSTR)
        } else {
            // In an image for callgrind's viewers, no program header covers code of which only names are known, so the
            // section isn't marked as loaded.
            let in_segment = if self.has_addresses { elf::SHF_ALLOC } else { elf::SectionFlags(0) };
            (&b".text.names"[..], elf::SHT_NOBITS, in_segment)
        };
        let sh_addralign = if run.addr.is_multiple_of(16) { 16 } else { 1 };
        let header = SectionHeader { sh_type, sh_flags, sh_addr: run.addr, sh_addralign, ..SectionHeader::default() };
        self.push(name, header, run.offset..run.offset + run.size);
    }
}

/// Where the section headers are in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct SectionTable {
    pub(super) offset: u64,
    /// Number of headers, including the empty one at the start.
    pub(super) count: u32,
}

/// Writes `.shstrtab`, which becomes the last section, and the section headers.
pub(super) fn write_headers<W: Write + Seek>(
    target: Target,
    sink: &mut ByteSink<W>,
    mut sections: Sections,
) -> Result<SectionTable> {
    let header = SectionHeader { sh_type: elf::SHT_STRTAB, sh_addralign: 1, ..SectionHeader::default() };
    // The section contains its own name, so its range is only known after it was added.
    sections.push(b".shstrtab", header, 0..0);
    let Sections { mut headers, names, .. } = sections;
    if let Some(last) = headers.last_mut() {
        (last.sh_offset, last.sh_size) = (sink.offset(), names.len() as u64);
    }
    sink.bytes(&names)?;
    sink.align(8)?;
    let offset = sink.offset();
    let encoder = target.encoder();
    let mut out = Vec::with_capacity((headers.len() + 1) * encoder.section_header_size() as usize);
    // ELF requires the first header to be empty.
    encoder.section_header(&mut out, &SectionHeader::default());
    for header in &headers {
        encoder.section_header(&mut out, header);
    }
    sink.bytes(&out)?;
    Ok(SectionTable { offset, count: headers.len() as u32 + 1 })
}
