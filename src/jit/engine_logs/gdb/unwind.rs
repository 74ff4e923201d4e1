//! Converts the unwinding information of registered objects to the form in jitdumps. There, each function has its own
//! `.eh_frame` directly after its code. Only one field of a record depends on where the record is, the start address of
//! the function, so only this field is changed.

use super::symfile::{Function, Symfile};
use crate::bytes::cursor::Endian;
use gimli::{BaseAddresses, CieOrFde, EhFrame, RunTimeEndian, UnwindSection, constants as dw};
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::ops::Range;

/// The `.eh_frame` of an object, with its records sorted by address of the code.
#[derive(Debug)]
pub(super) struct UnwindRecords<'data> {
    section: Cow<'data, [u8]>,
    endian: Endian,
    records: Vec<UnwindRecord>,
    /// How many more bytes [`Self::convert`] may produce. Limited because functions may share records, each of which is
    /// copied for each function.
    room: usize,
}

/// A frame description (FDE), and the CIE that it refers to.
#[derive(Debug, Clone)]
struct UnwindRecord {
    /// Address range of the code that the frame description covers.
    start: u64,
    end: u64,
    /// Where the CIE and the FDE are in the section.
    cie: Range<usize>,
    fde: Range<usize>,
    /// Encoding of the code's address in the frame description.
    encoding: dw::DwEhPe,
}

/// Size of a record's length field, which doesn't count itself.
const LENGTH: usize = 4;

impl<'data> UnwindRecords<'data> {
    /// Reads the unwinding records of an object (`.eh_frame`). `None` if it has none.
    pub(super) fn read(symfile: &Symfile<'data>) -> Option<Self> {
        let section = symfile.file.section_by_name(".eh_frame").filter(|section| section.address() != 0)?;
        let endian = symfile.endian();
        let text = symfile.file.section_by_name(".text").map_or(0, |text| text.address());
        let bases = BaseAddresses::default().set_eh_frame(section.address()).set_text(text);
        let section = symfile.section(".eh_frame");
        let mut records = Vec::new();
        let mut frames = EhFrame::new(&section, RunTimeEndian::from(endian));
        frames.set_address_size(8);
        let mut entries = frames.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else { continue };
            let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else { continue };
            let cie = fde.cie();
            records.push(UnwindRecord {
                start: fde.initial_address(),
                end: fde.initial_address().saturating_add(fde.len()),
                cie: record_range(cie.offset(), cie.entry_len()),
                fde: record_range(fde.offset(), fde.entry_len()),
                encoding: cie.fde_address_encoding().unwrap_or(dw::DW_EH_PE_absptr),
            });
        }
        records.sort_by_key(|record| record.start);
        if records.is_empty() {
            return None;
        }
        // Without a limit, the functions of a damaged object could have any number of copies of the same record.
        let room = symfile.size.saturating_mul(4);
        Some(Self { section, endian, records, room })
    }

    /// Converts the unwinding records of a function to an `.eh_frame` of its own. `None` if the function has no
    /// records, or if they can't be converted.
    pub(super) fn convert(&mut self, function: &Function<'_>) -> Option<Vec<u8>> {
        let Some(mut records) = self.build_records(function) else {
            // Failures reduce the limit (`room`), too, so that they can't be repeated endlessly.
            self.room /= 2;
            return None;
        };
        self.room = self.room.saturating_sub(records.len());
        // The object has no records for this function.
        if records.is_empty() {
            return None;
        }
        // An `.eh_frame` ends with a record of length 0.
        records.extend_from_slice(&[0; LENGTH]);
        Some(records)
    }

    /// Builds the `.eh_frame` of a function, for the address at which readers of jitdumps expect it: the first multiple
    /// of 8 after the function's code. Empty if the function has no records; `None` if they can't be converted or
    /// exceed `room`.
    fn build_records(&self, function: &Function<'_>) -> Option<Vec<u8>> {
        let end = function.addr.checked_add(function.size)?;
        let records_addr = end.checked_next_multiple_of(8)?;
        let first = self.records.partition_point(|record| record.end <= function.addr);
        let mut out = Vec::new();
        for record in self.records[first..].iter().take_while(|record| record.start < end) {
            let cie = self.section.get(record.cie.clone())?;
            let fde = self.section.get(record.fde.clone())?;
            if out.len() + cie.len() + fde.len() > self.room {
                return None;
            }
            out.extend_from_slice(cie);
            let fde_start = out.len();
            out.extend_from_slice(fde);
            // A frame description starts with the distance to its CIE, followed by the start of the code. Both are
            // written anew, because they depend on where the description is.
            let distance = u32::try_from(cie.len() + LENGTH).ok()?;
            self.put(&mut out, fde_start + LENGTH, 4, u64::from(distance))?;
            let field = fde_start + 2 * LENGTH;
            let (width, value) = record.encode_start(records_addr.checked_add(field as u64)?)?;
            self.put(&mut out, field, width, value)?;
        }
        Some(out)
    }

    /// Overwrites `width` bytes at `offset` with a number, in the object's byte order. `None` if that is out of bounds.
    fn put(&self, out: &mut [u8], offset: usize, width: usize, value: u64) -> Option<()> {
        self.endian.put(value, out.get_mut(offset..offset.checked_add(width)?)?);
        Some(())
    }
}

impl UnwindRecord {
    /// How to encode the start of the code in a field at the address `field_addr`: the width of the field in bytes, and
    /// its value. `None` if the encoding isn't supported or the value doesn't fit.
    fn encode_start(&self, field_addr: u64) -> Option<(usize, u64)> {
        let distance = self.start.wrapping_sub(field_addr);
        match (self.encoding.application(), self.encoding.format()) {
            (dw::DW_EH_PE_pcrel, dw::DW_EH_PE_sdata4) => {
                let distance = i32::try_from(distance as i64).ok()?;
                Some((4, u64::from(distance as u32)))
            }
            (dw::DW_EH_PE_pcrel, dw::DW_EH_PE_absptr | dw::DW_EH_PE_sdata8) => Some((8, distance)),
            (dw::DW_EH_PE_absptr, dw::DW_EH_PE_absptr | dw::DW_EH_PE_sdata8 | dw::DW_EH_PE_udata8) => {
                Some((8, self.start))
            }
            _ => None,
        }
    }
}

/// The range of a record in the section, given its offset and the value of its length field.
fn record_range(offset: usize, len: usize) -> Range<usize> {
    offset..offset.saturating_add(LENGTH).saturating_add(len)
}
