//! Builds ELF images of JIT code. perf, objdump, addr2line and KCachegrind read them in place of the memory that is
//! gone.
//!
//! [`ImageBuilder`] collects code ranges with the addresses at which they ran, [`ImageBuilder::build`] lays them out,
//! and [`Image::write`] writes the file. There are two kinds of addressing:
//!
//! * [`Addressing::FileOffset`], for perf: ET_DYN in which every virtual address equals the file offset, because perf
//!   looks up a symbol at `ip - map.start + map.pgoff`. The layout is a sparse mirror of the address space
//!   (`layout::mirror`). Thus `map.start - map.pgoff`, where libdw assumes the module to be loaded, is the same for a
//!   whole region of code, and disassembled calls between functions show their targets.
//! * [`Addressing::RunTime`], for viewers of callgrind files: ET_EXEC with sections at the addresses where the code
//!   ran. If several code ranges used an address, the last one wins.
//!
//! [`ImageBuilder::build_set`] distributes distant code over several images. This is for recordings with user stacks,
//! which perf unwinds through the images (`layout::apart`).
//!
//! An image contains: code (`.text`; of type NOBITS where only names are known), `.symtab`, `.eh_frame` with a sorted
//! `.eh_frame_hdr`, DWARF 4 line tables, and a build ID derived from the content. Memory: about 60 bytes per piece,
//! plus the encoded line table. Code and names are streamed from the dump to the file.
//!
//! ELF: <https://gabi.xinuos.com/>; `.eh_frame` and its header: Linux Standard Base Core 5.0, chapter 10.6.

mod builder;
mod content;
mod eh_frame;
mod file;
mod image;
mod layout;
mod lines;
mod sections;
mod set;
mod sink;
mod slot;
mod symtab;
mod target;
#[cfg(test)]
mod tests;

pub use builder::ImageBuilder;
pub use file::FileEnd;
pub use image::{Addressing, Image};
pub use sections::{Counts, Written};
pub use set::{AuxMapping, ImageSet};
pub use slot::{SlotId, SlotPlace};
pub use target::Target;
