//! Writes line tables: `.debug_line`, `.debug_info` and what they need, in DWARF 4, which every current reader
//! supports.
//!
//! A compilation unit contains consecutive functions. It has address ranges, without which addr2line and libdw don't
//! find a unit, and a DW_TAG_subprogram per function, from which viewers take the name.

use super::image::Image;
use super::sections::{Counts, Sections};
use super::sink::ByteSink;
use super::slot::SlotPiece;
use super::symtab::cut_at_nul;
use super::target::Target;
use crate::bytes::byte_writer::ByteWriter;
use crate::error::{Error, Result};
use crate::model::code::Line;
use gimli::write::{Address, AttributeValue, DwarfUnit, EndianVec, LineProgram, LineString, Range, RangeList};
use gimli::{Encoding, Format, LineEncoding, RunTimeEndian};
use object::elf;
use object::write::elf::SectionHeader;
use std::io::{Seek, Write};

/// A unit ends when it has this many rows. This limits the memory for rows that are not encoded yet.
const ROWS_IN_UNIT: usize = 1 << 14;

type Dwarf = gimli::write::Sections<EndianVec<RunTimeEndian>>;

/// Writes the debug sections with the source lines of all code, if any code has some.
pub(super) fn write<W: Write + Seek>(
    image: &Image,
    sink: &mut ByteSink<W>,
    sections: &mut Sections,
    counts: &mut Counts,
) -> Result<()> {
    if image.slots.iter().all(|slot| slot.code.lines.raw.is_empty()) {
        return Ok(());
    }
    let mut dwarf = Dwarf::new(EndianVec::new(image.target.endian.into()));
    let mut aranges = ByteWriter::new(image.target.endian);
    let mut unit = LineUnit::new(image.target);
    // Of code that is split into several pieces, only the piece with the function's start gets lines.
    let pieces = image.layout.pieces.iter().filter(|piece| piece.skip == 0 && piece.len > 0);
    for piece in pieces {
        let code = image.slots[piece.slot as usize].code;
        let mut lines = code.lines.entries();
        lines.retain(|line| line.offset < piece.len && !cut_at_nul(line.file).is_empty());
        if lines.is_empty() {
            continue;
        }
        counts.with_lines += 1;
        unit.add(cut_at_nul(code.name), piece, &lines);
        if unit.rows >= ROWS_IN_UNIT {
            unit.finish(&mut dwarf, &mut aranges)?;
            unit = LineUnit::new(image.target);
        }
    }
    unit.finish(&mut dwarf, &mut aranges)?;
    let parts = [
        (b".debug_abbrev".as_slice(), dwarf.debug_abbrev.0.slice()),
        (b".debug_info", dwarf.debug_info.0.slice()),
        (b".debug_aranges", &aranges.finish()),
        (b".debug_ranges", dwarf.debug_ranges.0.slice()),
        (b".debug_line", dwarf.debug_line.0.slice()),
    ];
    for (name, bytes) in parts.into_iter().filter(|(_, bytes)| !bytes.is_empty()) {
        sink.align(16)?; // tuples in .debug_aranges are aligned to twice the address size
        let start = sink.offset();
        sink.bytes(bytes)?;
        let header = SectionHeader { sh_type: elf::SHT_PROGBITS, sh_addralign: 1, ..SectionHeader::default() };
        sections.push(name, header, start..sink.offset());
    }
    Ok(())
}

/// The compilation unit being built.
struct LineUnit {
    target: Target,
    dwarf: DwarfUnit,
    /// Address and length of each function.
    ranges: Vec<(u64, u64)>,
    /// The number of rows in the line table.
    rows: usize,
}

impl LineUnit {
    fn new(target: Target) -> Self {
        let encoding = Encoding { format: Format::Dwarf32, version: 4, address_size: target.address_size() };
        Self { target, dwarf: DwarfUnit::new(encoding), ranges: Vec::new(), rows: 0 }
    }

    /// Adds a function with its lines, at least one.
    fn add(&mut self, name: &[u8], piece: &SlotPiece, lines: &[Line]) {
        if self.rows == 0 {
            self.start(lines[0].file);
        }
        self.add_rows(piece, lines);
        self.add_subprogram(name, piece);
        self.ranges.push((piece.addr, piece.len));
        self.rows += lines.len();
    }

    /// Sets up the DWARF unit: its empty line table and its attributes. The unit is named after `first_file`.
    fn start(&mut self, first_file: &[u8]) {
        let file = viewer_path(first_file);
        let encoding = self.dwarf.unit.encoding();
        // Directory 0 stands for the compilation directory. The unit has no attribute that states this directory, so
        // file names stay as given.
        let directory = LineString::String(b".".to_vec());
        self.dwarf.unit.line_program = LineProgram::new(
            encoding,
            LineEncoding::default(),
            directory,
            None,
            LineString::String(file.clone()),
            None,
        );
        let root = self.dwarf.unit.root();
        let root = self.dwarf.unit.get_mut(root);
        root.set(gimli::DW_AT_producer, AttributeValue::String(b"jitgraft".to_vec()));
        root.set(gimli::DW_AT_name, AttributeValue::String(file));
        // The base to which the unit's ranges are relative.
        root.set(gimli::DW_AT_low_pc, AttributeValue::Address(Address::Constant(0)));
    }

    /// Adds the source lines of one piece of code to the line table.
    fn add_rows(&mut self, piece: &SlotPiece, lines: &[Line]) {
        let program = &mut self.dwarf.unit.line_program;
        let directory = program.default_directory();
        program.begin_sequence(Some(Address::Constant(piece.addr)));
        for line in lines {
            let file = program.add_file(LineString::String(viewer_path(line.file)), directory, None);
            let row = program.row();
            // Rows must not go back. Entries are sorted, so their offsets don't decrease; `max` only makes sure.
            row.address_offset = line.offset.max(row.address_offset);
            row.file = file;
            row.line = u64::from(line.line);
            // Runtimes store the column in the field that jitdump calls discriminator.
            row.column = u64::from(line.discriminator);
            program.generate_row();
        }
        program.end_sequence(piece.len);
    }

    /// Adds the description of a function, from which viewers take the name.
    fn add_subprogram(&mut self, name: &[u8], piece: &SlotPiece) {
        let unit = &mut self.dwarf.unit;
        let entry = unit.add(unit.root(), gimli::DW_TAG_subprogram);
        let entry = unit.get_mut(entry);
        entry.set(gimli::DW_AT_name, AttributeValue::String(name.to_vec()));
        entry.set(gimli::DW_AT_low_pc, AttributeValue::Address(Address::Constant(piece.addr)));
        entry.set(gimli::DW_AT_high_pc, AttributeValue::Udata(piece.len));
    }

    /// Adds the unit to `.debug_aranges`, which maps addresses to units (DWARF 4, 6.1.2). Without it, libdw before
    /// 0.192 finds no unit. `unit_offset` is the unit's offset in `.debug_info`.
    fn add_aranges(&self, unit_offset: usize, aranges: &mut ByteWriter) {
        let size = usize::from(self.target.address_size());
        let mut set = ByteWriter::new(self.target.endian);
        set.u16(2); // version
        set.u32(unit_offset as u32);
        set.low_bytes(size as u64, 1).low_bytes(0, 1); // sizes of an address and of a segment number (there is none)
        // Sets start at aligned offsets. Within a set, the first tuple is aligned to the size of a tuple, counted from
        // the start of the set's length field.
        let header = (LENGTH_FIELD + set.len()).next_multiple_of(2 * size) - LENGTH_FIELD;
        set.bytes(&vec![0; header - set.len()]);
        // A tuple of zeros ends the set.
        for &(addr, len) in self.ranges.iter().chain([&(0, 0)]) {
            set.low_bytes(addr, size).low_bytes(len, size);
        }
        aranges.u32(set.len() as u32).bytes(&set.finish());
    }

    /// Appends the unit to the debug sections, unless it is empty.
    fn finish(mut self, dwarf: &mut Dwarf, aranges: &mut ByteWriter) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        debug_assert_eq!(self.dwarf.unit.address_size(), self.target.address_size());
        self.add_aranges(dwarf.debug_info.offset().0, aranges);
        let ranges = self
            .ranges
            .iter()
            .map(|&(begin, len)| Range::StartLength { begin: Address::Constant(begin), length: len })
            .collect();
        let ranges = self.dwarf.unit.ranges.add(RangeList(ranges));
        let root = self.dwarf.unit.root();
        self.dwarf.unit.get_mut(root).set(gimli::DW_AT_ranges, AttributeValue::RangeListRef(ranges));
        self.dwarf.write(dwarf).map_err(|error| Error::new("cannot encode the line table of an image").because(error))
    }
}

/// Length in bytes of the length field of a set, which doesn't count itself.
const LENGTH_FIELD: usize = 4;

/// The name of a source file in the form that viewers can open: a path instead of a `file:` URL, which scripts loaded
/// as ES modules have as a name.
fn viewer_path(file: &[u8]) -> Vec<u8> {
    let file = cut_at_nul(file);
    file.strip_prefix(b"file://").filter(|path| path.starts_with(b"/")).unwrap_or(file).to_vec()
}
