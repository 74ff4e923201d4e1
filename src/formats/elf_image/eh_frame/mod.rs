//! Writes `.eh_frame` and `.eh_frame_hdr`: the dumps' unwinding information, encoded for the image.
//!
//! A dump has one `.eh_frame` section per code range. The pointers in a section assume that the section directly
//! follows its code in memory ([`Unwind`](crate::model::code::Unwind)). These sections can't simply be concatenated,
//! because an FDE refers to its CIE by distance, and its `pc_begin` is relative to its own position. Instead, each CIE
//! is written once for all FDEs that share it, and each FDE gets a new header. The call frame instructions are copied,
//! because they are relative to `pc_begin`.
//!
//! Language-specific data and personality routines are left out: they point into the process, and profilers only
//! unwind.

mod records;

use super::image::Image;
use super::layout::FramesAt;
use super::sections::{Counts, Sections};
use super::sink::ByteSink;
use super::slot::{Slot, SlotPiece};
use super::target::Target;
use crate::bytes::byte_writer::ByteWriter;
use crate::bytes::cursor::Endian;
use crate::error::Result;
use crate::model::code::Code;
use gimli::constants as dw;
use object::elf;
use object::write::elf::SectionHeader;
use records::{Cie, Fde};
use rustc_hash::FxHashMap;
use std::io::{Seek, Write};
use std::ops::Range;

/// Where `.eh_frame` and `.eh_frame_hdr` are in the file, for the program headers.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// File range from the start of `.eh_frame` to the end of `.eh_frame_hdr`. Empty if there is no unwinding
    /// information.
    pub(super) whole: Range<u64>,
    /// File range of `.eh_frame_hdr`.
    pub(super) header: Range<u64>,
}

/// The size of `.eh_frame` and `.eh_frame_hdr` together.
#[derive(Debug, Clone, Copy)]
pub(super) struct FramesSize {
    /// Bytes from the start of `.eh_frame` to the end of `.eh_frame_hdr`.
    pub(super) len: u64,
    /// True if any code has unwinding information.
    pub(super) has_entries: bool,
}

/// Computes the size that `.eh_frame` and `.eh_frame_hdr` need for the unwinding information of all code in `slots`.
/// The information is encoded for arbitrary addresses, because the size doesn't depend on them. The result may be
/// slightly too large: several entries for one address are counted, of which only one is written.
pub(super) fn measure(target: Target, slots: &[Slot]) -> FramesSize {
    let mut encoder = Encoder::new(target);
    let mut len = 0;
    for slot in slots {
        // `out` only holds the records of this piece: each call empties it first. The encoder's table collects the
        // entries of all pieces.
        encoder.encode_piece(slot.code, 0, len);
        len += encoder.out.len() as u64;
    }
    // `.eh_frame_hdr` has a fixed part of 12 bytes, and 8 bytes per entry.
    let table = 12 + 8 * encoder.table.len() as u64;
    FramesSize { len: (len + END.len() as u64).next_multiple_of(8) + table, has_entries: len > 0 }
}

/// A record of length 0, which ends the section.
const END: [u8; 4] = [0; 4];

/// Writes `.eh_frame` and `.eh_frame_hdr`, and returns where they are in the file. They are left out if no code in the
/// image has unwinding information, unless the layout requires them.
pub(super) fn write<W: Write + Seek>(
    image: &Image,
    sink: &mut ByteSink<W>,
    sections: &mut Sections,
    counts: &mut Counts,
) -> Result<Frames> {
    let has_unwind = image.slots.iter().any(|slot| slot.code.unwind.is_some());
    // If code is split into several pieces, its unwinding information is written with the piece that contains its
    // start. It is left out if that piece isn't in the image.
    let is_described =
        |piece: &&SlotPiece| has_unwind && piece.skip == 0 && image.slots[piece.slot as usize].code.unwind.is_some();
    let mut described = image.layout.pieces.iter().filter(is_described).peekable();
    if described.peek().is_none() && image.layout.frames == FramesAt::AfterCode {
        return Ok(Frames::default());
    }
    sink.align(8)?;
    let start = sink.offset();
    let mut encoder = Encoder::new(image.target);
    // Only images for perf have these sections. Their addresses equal file offsets, so `sink.offset()` is an address.
    for piece in described {
        match encoder.encode_piece(image.slots[piece.slot as usize].code, piece.addr, sink.offset()) {
            Some(count) => counts.with_unwind += u64::from(count > 0),
            None => counts.bad_unwind += 1,
        }
        sink.bytes(&encoder.out)?;
    }
    sink.bytes(&END)?;
    let header =
        SectionHeader { sh_type: elf::SHT_PROGBITS, sh_flags: elf::SHF_ALLOC, sh_addralign: 8, ..Default::default() };
    sections.push_loaded(b".eh_frame", header.clone(), start..sink.offset());
    sink.align(8)?;
    let header_start = sink.offset();
    sink.bytes(&encode_eh_frame_hdr(encoder.table, image.target.endian, header_start, start))?;
    sections.push_loaded(b".eh_frame_hdr", header, header_start..sink.offset());
    Ok(Frames { whole: start..sink.offset(), header: header_start..sink.offset() })
}

/// Encodes `.eh_frame_hdr`. It contains a table of (address of code, address of its FDE), sorted by code for binary
/// search (LSB Core 5.0, 10.6.2). `addr` is the address of `.eh_frame_hdr` in the image, and `eh_frame` that of
/// `.eh_frame`.
fn encode_eh_frame_hdr(mut table: Vec<(u32, u32)>, endian: Endian, addr: u64, eh_frame: u64) -> Vec<u8> {
    table.sort_unstable();
    // Binary search needs unique addresses. Of several entries for an address, the one whose FDE comes last stays: it
    // belongs to the code that was dumped last, and only that code is still valid. `dedup_by_key` keeps the first
    // entry, so the order is reversed for it.
    table.reverse();
    table.dedup_by_key(|&mut (pc, _)| pc);
    table.reverse();
    let mut out = ByteWriter::new(endian);
    out.bytes(&[
        1,                                              // version
        dw::DW_EH_PE_pcrel.0 | dw::DW_EH_PE_sdata4.0,   // format of the pointer to `.eh_frame`
        dw::DW_EH_PE_udata4.0,                          // of the table's length
        dw::DW_EH_PE_datarel.0 | dw::DW_EH_PE_sdata4.0, // of the table's addresses
    ]);
    // The pointer is relative to its own position, which is after the 4 bytes above.
    out.u32((eh_frame as u32).wrapping_sub(addr as u32 + 4)).u32(table.len() as u32);
    for (pc, fde) in table {
        out.u32(pc.wrapping_sub(addr as u32)).u32(fde.wrapping_sub(addr as u32));
    }
    out.finish()
}

/// Encodes the unwinding information of one code range after the other.
struct Encoder {
    target: Target,
    /// The address in the image of each CIE, by the CIE's encoded bytes.
    cies: FxHashMap<Vec<u8>, u64>,
    /// The entries of `.eh_frame_hdr`: (first address of the code, address of the FDE).
    table: Vec<(u32, u32)>,
    /// Output buffer with the encoded records of the last piece.
    out: Vec<u8>,
}

impl Encoder {
    fn new(target: Target) -> Self {
        Self { target, cies: FxHashMap::default(), table: Vec::new(), out: Vec::new() }
    }

    /// Encodes the unwinding information of a code range into `out`. In the image, the code is at address `code_addr`,
    /// and `out` will be at address `out_addr`. Returns the number of FDEs, or `None` if something is malformed; the
    /// code then gets no unwinding information.
    fn encode_piece(&mut self, code: &Code, code_addr: u64, out_addr: u64) -> Option<usize> {
        self.out.clear();
        let Some(unwind) = code.unwind else { return Some(0) };
        let endian = self.target.endian.into();
        let fdes = records::parse(unwind.eh_frame, code, endian, self.target.address_size())?;
        for fde in &fdes {
            let cie_addr = self.encode_cie(&fde.cie, out_addr);
            self.encode_fde(fde, cie_addr, code_addr, out_addr);
        }
        Some(fdes.len())
    }

    /// Encodes a CIE unless an equal one was encoded before. Returns its address. `out_addr` is the address of the
    /// start of `out`.
    fn encode_cie(&mut self, cie: &Cie, out_addr: u64) -> u64 {
        let encoded = cie.encode(self.target);
        let next_addr = out_addr + self.out.len() as u64;
        *self.cies.entry(encoded).or_insert_with_key(|encoded| {
            self.out.extend_from_slice(encoded);
            next_addr
        })
    }

    /// Encodes an FDE, and adds it to the table. The addresses are those of its CIE, of the code and of the start of
    /// `out`.
    fn encode_fde(&mut self, fde: &Fde, cie_addr: u64, code_addr: u64, out_addr: u64) {
        let fde_addr = out_addr + self.out.len() as u64;
        let pc = code_addr + fde.start;
        fde.encode(self.target, fde_addr, cie_addr, pc, &mut self.out);
        // The casts lose nothing: the layout keeps code below 2^31, and `.eh_frame` is next to it.
        self.table.push((pc as u32, fde_addr as u32));
    }
}
