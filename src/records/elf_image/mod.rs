//! ELF images of JIT code: what perf, objdump, addr2line and KCachegrind read in place of the memory that is gone.
//!
//! [`ImageBuilder`] collects code ranges with the addresses at which they ran, [`ImageBuilder::build`] gives each its
//! place, [`Image::write`] writes the file. Two ways of addressing:
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
pub use file::Rest;
pub use image::{Addressing, Image};
pub use sections::{Counts, Written};
pub use set::{AuxMapping, ImageSet};
pub use slot::{Place, SlotId};
pub use target::Target;
