//! Feature sections: what the recorder wrote about the machine and itself, after the data.
//!
//! Sections are kept as bytes and parsed on demand, as far as jitgraft needs them. Layouts:
//! tools/perf/Documentation/perf.data-file-format.txt.

use super::record::{BuildIdRecord, Record};
use super::walk::Records;
use super::{Event, kind};
use crate::bytes::cursor::{Cursor, Endian};
use crate::error::Result;
use rustc_hash::FxHashMap;

/// A feature section as stored in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureSection {
    /// Offset of the section in the file; 0 in pipe form.
    pub offset: u64,
    /// The bytes of the section.
    pub bytes: Vec<u8>,
}

impl FeatureSection {
    fn cursor(&self, endian: Endian) -> Cursor<'_> {
        Cursor::new(&self.bytes, self.offset, endian)
    }

    /// Parses a section that is one string, such as HOSTNAME or ARCH.
    pub fn string(&self, endian: Endian) -> Result<&[u8]> {
        read_string(&mut self.cursor(endian))
    }

    /// Parses a list of strings, such as CMDLINE.
    pub fn strings(&self, endian: Endian) -> Result<Vec<&[u8]>> {
        let mut cursor = self.cursor(endian);
        let count = cursor.u32("number of strings")?;
        (0..count).map(|_| read_string(&mut cursor)).collect()
    }

    /// Parses NRCPUS: the number of CPUs that were online.
    pub fn online_cpus(&self, endian: Endian) -> Result<u32> {
        let mut cursor = self.cursor(endian);
        cursor.u32("number of processors")?;
        cursor.u32("number of processors online")
    }

    /// Parses BUILD_ID: the build IDs of files. Entries that cannot be read are left out.
    pub fn build_ids(&self, endian: Endian) -> Vec<BuildIdRecord<'_>> {
        let records = Records::new(&self.bytes, self.offset, endian);
        // Older recorders leave the type of these records 0, so set it before parsing.
        let parsed = records.filter_map(|mut record| {
            record.kind = kind::HEADER_BUILD_ID;
            Record::parse(&record).ok()
        });
        parsed.filter_map(|record| if let Record::BuildId(record) = record { Some(record) } else { None }).collect()
    }

    /// Parses CLOCK_DATA: the ID of the recording's clock, then the time of one moment, first as wall-clock time and
    /// then on the recording's clock, in nanoseconds.
    pub fn clock_data(&self, endian: Endian) -> Result<(i32, u64, u64)> {
        let mut cursor = self.cursor(endian);
        cursor.u32("version")?;
        let clockid = cursor.u32("clockid")?.cast_signed();
        Ok((clockid, cursor.u64("wall clock")?, cursor.u64("clock")?))
    }

    /// Gives the events the names that this section, which must be EVENT_DESC, has for them. Each entry of the section
    /// names the event with the entry's first ID. If no event has that ID, the entry names the event at the same
    /// position.
    pub(super) fn name_events(&self, endian: Endian, events: &mut [Event]) -> Result<()> {
        let mut cursor = self.cursor(endian);
        let count = cursor.u32("number of events")?;
        let attr_size = u64::from(cursor.u32("attr size")?);
        let mut event_by_id: FxHashMap<u64, usize> = FxHashMap::default();
        for (index, event) in events.iter().enumerate() {
            for id in &event.ids {
                event_by_id.entry(*id).or_insert(index);
            }
        }
        for position in 0..count as usize {
            cursor.bytes(attr_size, "attr")?;
            let id_count = u64::from(cursor.u32("number of ids")?);
            let name = String::from_utf8_lossy(read_string(&mut cursor)?).into_owned();
            let first_id = if id_count > 0 { Some(cursor.u64("id")?) } else { None };
            let other_ids = id_count.saturating_sub(1);
            cursor.bytes(other_ids * 8, "ids")?;
            let index = first_id.and_then(|id| event_by_id.get(&id).copied()).unwrap_or(position);
            if let Some(event) = events.get_mut(index) {
                event.name = name;
            }
        }
        Ok(())
    }
}

/// Reads a `struct perf_header_string` (a u32 length that includes the padding, the text, NULs) and returns the text.
fn read_string<'data>(cursor: &mut Cursor<'data>) -> Result<&'data [u8]> {
    let len = cursor.u32("length of a string")?;
    let padded = cursor.bytes(len.into(), "string")?;
    Ok(memchr::memchr(0, padded).map_or(padded, |end| &padded[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature(bytes: &[u8]) -> FeatureSection {
        FeatureSection { offset: 0x500, bytes: bytes.to_vec() }
    }

    #[test]
    fn strings_are_padded_and_bounded() {
        let bytes = *b"\x02\0\0\0\x08\0\0\0perf\0\0\0\0\x04\0\0\0-a\0\0";
        let lines = feature(&bytes);
        assert_eq!(lines.strings(Endian::Little).unwrap(), [&b"perf"[..], b"-a"]);
        let error = feature(&bytes[..10]).strings(Endian::Little).unwrap_err().to_string();
        assert_eq!(error, "at byte 0x508: string needs 8 bytes, but only 2 are left");
        assert_eq!(feature(&bytes[4..]).string(Endian::Little).unwrap(), b"perf");
    }

    #[test]
    fn build_ids_of_old_and_new_recorders() {
        let mut bytes = Vec::new();
        for (misc, len) in [(2u16, 0u8), (2 | 1 << 15, 8)] {
            bytes.extend([0; 4]);
            bytes.extend(misc.to_le_bytes());
            bytes.extend(44u16.to_le_bytes());
            bytes.extend((-1i32).to_le_bytes());
            bytes.extend([0xab; 20]);
            bytes.extend([len, 0, 0, 0]);
            bytes.extend(b"/lib/x\0\0");
        }
        let feature = feature(&bytes);
        let ids = feature.build_ids(Endian::Little);
        let lens: Vec<_> = ids.iter().map(|id| (id.path, id.build_id.unwrap().as_bytes().len())).collect();
        assert_eq!(lens, [(&b"/lib/x"[..], 20), (b"/lib/x", 8)]);
    }
}
