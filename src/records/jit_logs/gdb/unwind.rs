//! Converts the unwinding information of registered objects to the form in jitdumps: the records of each function on
//! their own, as if they were directly after its code. Only the start address of the function depends on a record's
//! position, so only this field is changed.

use super::symfile::{Function, Symfile};
use crate::bytes::cursor::Endian;
use gimli::{BaseAddresses, CieOrFde, EhFrame, RunTimeEndian, UnwindSection, constants as dw};
use object::{Object, ObjectSection};
use std::borrow::Cow;

/// The `.eh_frame` of an object, with its records sorted by address of the code.
#[derive(Debug)]
pub(super) struct UnwindRecords<'data> {
    section: Cow<'data, [u8]>,
    endian: Endian,
    records: Vec<UnwindRecord>,
    /// How many more bytes may be produced. Functions may share a record, but not without limit.
    left: usize,
}

/// Where a frame description is in the section, and its CIE, with which it is parsed.
#[derive(Debug, Clone)]
struct UnwindRecord {
    start: u64,
    end: u64,
    cie: (usize, usize),
    fde: (usize, usize),
    encoding: dw::DwEhPe,
}

/// Size of a record's length field, which doesn't count itself.
const LENGTH: usize = 4;

impl<'data> UnwindRecords<'data> {
    pub(super) fn of(symfile: &Symfile<'data>) -> Option<Self> {
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
            let record = |offset: usize, len: usize| (offset, offset.saturating_add(LENGTH).saturating_add(len));
            let cie = fde.cie();
            records.push(UnwindRecord {
                start: fde.initial_address(),
                end: fde.initial_address().saturating_add(fde.len()),
                cie: record(cie.offset(), cie.entry_len()),
                fde: record(fde.offset(), fde.entry_len()),
                encoding: cie.fde_address_encoding().unwrap_or(dw::DW_EH_PE_absptr),
            });
        }
        records.sort_by_key(|record| record.start);
        let left = symfile.size.saturating_mul(4);
        (!records.is_empty()).then_some(Self { section, endian, records, left })
    }

    /// The records of a function. `None` if it has none, or if they can't be converted.
    pub(super) fn of_function(&mut self, function: &Function<'_>) -> Option<Vec<u8>> {
        let records = self.put_behind(function);
        // Failures reduce the limit too, so that they can't be repeated endlessly.
        self.left = records.as_ref().map_or(self.left / 2, |records| self.left.saturating_sub(records.len()));
        records.filter(|records| !records.is_empty()).map(|mut records| {
            records.extend_from_slice(&[0; LENGTH]);
            records
        })
    }

    /// Builds the records of a function; empty if it has none.
    fn put_behind(&self, function: &Function<'_>) -> Option<Vec<u8>> {
        let end = function.addr.checked_add(function.size)?;
        let at = end.checked_next_multiple_of(8)?;
        let first = self.records.partition_point(|record| record.end <= function.addr);
        let own = self.records[first..].iter().take_while(|record| record.start < end);
        let mut out = Vec::new();
        for record in own {
            let (cie, fde) =
                (self.section.get(record.cie.0..record.cie.1)?, self.section.get(record.fde.0..record.fde.1)?);
            if out.len() + cie.len() + fde.len() > self.left {
                return None;
            }
            out.extend_from_slice(cie);
            let begin = out.len();
            out.extend_from_slice(fde);
            // A frame description starts with the distance to its CIE, followed by the start of the code.
            let back = u32::try_from(cie.len() + LENGTH).ok()?;
            self.put(&mut out, begin + LENGTH, 4, u64::from(back))?;
            let field = begin + 2 * LENGTH;
            let here = at.checked_add(field as u64)?;
            let (width, value) = match (record.encoding.application(), record.encoding.format()) {
                (dw::DW_EH_PE_pcrel, dw::DW_EH_PE_sdata4) => {
                    let distance = i32::try_from(record.start.wrapping_sub(here) as i64).ok()?;
                    (4, u64::from(distance as u32))
                }
                (dw::DW_EH_PE_pcrel, dw::DW_EH_PE_absptr | dw::DW_EH_PE_sdata8) => (8, record.start.wrapping_sub(here)),
                (dw::DW_EH_PE_absptr, dw::DW_EH_PE_absptr | dw::DW_EH_PE_sdata8 | dw::DW_EH_PE_udata8) => {
                    (8, record.start)
                }
                _ => return None,
            };
            self.put(&mut out, field, width, value)?;
        }
        Some(out)
    }

    fn put(&self, out: &mut [u8], at: usize, width: usize, value: u64) -> Option<()> {
        self.endian.put(value, out.get_mut(at..at.checked_add(width)?)?);
        Some(())
    }
}
