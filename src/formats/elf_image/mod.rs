//! ELF images of JIT code: what perf, objdump, addr2line and KCachegrind read in place of the memory that is gone.
//!
//! [`ImageBuilder`] collects pieces of code with the addresses at which they ran, [`ImageBuilder::build`] gives each
//! its place, [`Image::write`] writes the file. Two ways of addressing:
//!
//! * [`Addressing::FileOffset`], for perf. ET_DYN in which every virtual address equals its file offset, because perf
//!   finds a symbol at `ip - map.start + map.pgoff`. Code is laid out as a sparse mirror of the address space
//!   (`layout::mirror`), so that `map.start - map.pgoff`, where libdw believes the module to be loaded, is one
//!   number for a whole region of code, and so that calls between functions show their targets when disassembled.
//! * [`Addressing::RunTime`], for callgrind's viewers. ET_EXEC with sections at the addresses where the code ran; of
//!   code that shared an address the latest wins.
//!
//! With [`ImageBuilder::build_set`] code that lies apart gets images of its own: for recordings with user stacks, which
//! perf unwinds through the images (`layout::apart`).
//!
//! Written: code (`.text`; of type NOBITS where only names are known), `.symtab`, `.eh_frame` with a sorted
//! `.eh_frame_hdr`, DWARF 4 line tables, and a build ID made from the content. Memory: some 60 bytes for each piece,
//! plus what its line table takes when encoded; code and names are streamed from the dump to the file.
//!
//! The ELF format: <https://gabi.xinuos.com/>; `.eh_frame` and its header: Linux Standard Base Core 5.0, chapter 10.6.

mod content;
mod eh_frame;
mod file;
mod layout;
mod lines;
mod set;
mod sink;
mod symtab;

pub use file::Rest;
pub use set::{Helper, ImageSet};

use super::cursor::Endian;
use crate::error::Result;
use crate::model::Addr;
use crate::model::code::Code;
use crate::model::process::BuildId;
use layout::{Layout, Slot};
use object::elf;
use std::io::{Seek, Write};
use std::ops::Range;

/// The kind of program that the code belongs to: the recorded one, not the one that reads the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// `e_machine`
    pub machine: u16,
    /// Whether it is ELFCLASS64.
    pub is_64: bool,
    /// The byte order.
    pub endian: Endian,
}

impl Target {
    /// With the class that programs for this machine usually have: dumps tell machine and byte order only.
    pub fn new(machine: u16, endian: Endian) -> Self {
        let narrow = [elf::EM_386, elf::EM_ARM, elf::EM_PPC, elf::EM_MIPS, elf::EM_SPARC, elf::EM_68K, elf::EM_SH];
        Self { machine, is_64: !narrow.contains(&elf::Machine(machine)), endian }
    }

    fn is_big(self) -> bool {
        self.endian == Endian::Big
    }

    fn address_size(self) -> u8 {
        if self.is_64 { 8 } else { 4 }
    }

    fn gimli_endian(self) -> gimli::RunTimeEndian {
        match self.endian {
            Endian::Little => gimli::RunTimeEndian::Little,
            Endian::Big => gimli::RunTimeEndian::Big,
        }
    }
}

/// What the addresses in an image are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    /// The code's offset in the image.
    FileOffset,
    /// Where the code ran.
    RunTime,
}

/// A piece of code added to an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(u32);

/// The number of what is more than can be numbered: it gets no place.
const NO_SLOT: u32 = u32::MAX;

/// Where in an image a piece of code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The offset in the file of its first byte; for perf the `pgoff` of a map that starts at that byte.
    pub offset: u64,
    /// Its virtual address in the image.
    pub addr: u64,
}

/// Code that shall become an image.
#[derive(Debug)]
pub struct ImageBuilder<'a, 'data> {
    target: Target,
    addressing: Addressing,
    for_viewers: bool,
    slots: Vec<Slot<'a, 'data>>,
}

impl<'a, 'data> ImageBuilder<'a, 'data> {
    /// An image without code.
    pub fn new(target: Target, addressing: Addressing) -> Self {
        Self { target, addressing, for_viewers: false, slots: Vec::new() }
    }

    /// Suits it to readers of perf.data that are not perf: samply, hotspot. With [`Addressing::FileOffset`] only.
    pub fn for_viewers(self) -> Self {
        Self { for_viewers: true, ..self }
    }

    /// Adds a piece of code as it stood at `addr` (for code that moved: once for each address). The order of calls
    /// is the order of time: with [`Addressing::RunTime`] the latest wins.
    pub fn add(&mut self, code: &'a Code<'data>, addr: Addr) -> SlotId {
        let id = u32::try_from(self.slots.len()).unwrap_or(NO_SLOT);
        if id < NO_SLOT {
            self.slots.push(Slot { code, addr });
        }
        SlotId(id)
    }

    /// Gives every piece its place.
    pub fn build(self) -> Image<'a, 'data> {
        let mut layout = match self.addressing {
            Addressing::FileOffset => Layout::mirror(&self.slots, self.target),
            Addressing::RunTime => Layout::at_run_time(&self.slots, self.target),
        };
        if self.for_viewers {
            layout.for_viewers();
        }
        Image::new(self.target, self.addressing, self.slots, layout)
    }

    /// Gives every piece its place in one or more images through which user stacks can be unwound. `foreign` are the
    /// addresses at which other files were mapped in the process, at any time.
    pub fn build_set(self, foreign: impl IntoIterator<Item = Range<u64>>) -> ImageSet<'a, 'data> {
        set::build(self.target, &self.slots, foreign)
    }
}

/// An image whose content and places are settled.
#[derive(Debug)]
pub struct Image<'a, 'data> {
    target: Target,
    addressing: Addressing,
    slots: Vec<Slot<'a, 'data>>,
    layout: Layout,
}

/// A file that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The build ID: the same for the same content at the same places.
    pub build_id: BuildId,
    /// Length of the file in bytes, holes included.
    pub len: u64,
    /// What became of the content.
    pub counts: Counts,
}

/// What became of an image's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Pieces of code with a line table.
    pub with_lines: u64,
    /// Pieces of code with unwinding information.
    pub with_unwind: u64,
    /// Pieces of code whose unwinding information was malformed and left out.
    pub bad_unwind: u64,
}

impl<'a, 'data> Image<'a, 'data> {
    fn new(target: Target, addressing: Addressing, slots: Vec<Slot<'a, 'data>>, layout: Layout) -> Self {
        Self { target, addressing, slots, layout }
    }

    /// Where a piece of code is; `None` if it could not get a place: with [`Addressing::RunTime`] if later code took
    /// its start, or if its address is beyond the class; with [`Addressing::FileOffset`] if its size is absurd.
    pub fn place(&self, slot: SlotId) -> Option<Place> {
        self.layout.places.get(slot.0 as usize).copied().flatten()
    }

    /// Where in the file its code ends.
    pub fn code_end(&self) -> u64 {
        self.layout.code.end
    }

    /// How many pieces of code were added.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no code in it.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The build ID: the same for the same content at the same places. It takes as long as a good part of writing.
    pub fn build_id(&self) -> BuildId {
        content::build_id(self)
    }

    /// Writes the file from the start of `out`, with seeks over what shall be holes: give a new, empty file.
    pub fn write(&self, out: &mut (impl Write + Seek)) -> Result<Written> {
        self.write_code(out)?;
        let rest = self.write_rest(out)?;
        self.finish(&rest, self.build_id(), out)
    }

    /// Writes the code to its place in the file, for who has another thread write the rest meanwhile.
    pub fn write_code(&self, out: &mut (impl Write + Seek)) -> Result<()> {
        file::write_code(self, out)
    }

    /// Writes all of the file but the code and the start.
    pub fn write_rest(&self, out: &mut (impl Write + Seek)) -> Result<Rest> {
        file::write_rest(self, out)
    }

    /// Writes the start of the file.
    pub fn finish(&self, rest: &Rest, build_id: BuildId, out: &mut (impl Write + Seek)) -> Result<Written> {
        file::finish(self, rest, build_id, out)
    }
}
