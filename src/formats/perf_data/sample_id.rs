//! `struct sample_id`: the trailer of every kernel record that is not a sample (`attr.sample_id_all`). It says by which
//! thread, when and on which CPU the record was written. Fields have a fixed order; each is present if `sample_type`
//! has its bit.

use crate::bytes::byte_writer::ByteWriter;
use crate::bytes::cursor::Endian;
use crate::model::{Nanos, Pid, Tid};
use linux_perf_event_reader::constants as abi;

/// The trailer of a record. Fields whose bit is not in `sample_type` are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleId {
    /// Process ID and thread ID.
    pub pid_tid: Option<(Pid, Tid)>,
    /// When the record was written, on the recording's clock.
    pub time: Option<Nanos>,
    /// ID of the event, from ID or IDENTIFIER.
    pub id: Option<u64>,
    /// ID of the event as opened, before `inherit` copied it to a child thread.
    pub stream_id: Option<u64>,
    /// The CPU that wrote the record.
    pub cpu: Option<u32>,
}

/// The `sample_type` bits of the fields that a trailer can have.
const FIELDS: u64 = abi::PERF_SAMPLE_TID
    | abi::PERF_SAMPLE_TIME
    | abi::PERF_SAMPLE_ID
    | abi::PERF_SAMPLE_STREAM_ID
    | abi::PERF_SAMPLE_CPU
    | abi::PERF_SAMPLE_IDENTIFIER;

impl SampleId {
    /// Length in bytes of a trailer with the fields of `sample_type`.
    pub fn size(sample_type: u64) -> usize {
        (sample_type & FIELDS).count_ones() as usize * 8
    }

    /// Parses the trailer at the end of a record. `None` if the record is too short.
    pub fn parse(record: &[u8], sample_type: u64, endian: Endian) -> Option<Self> {
        let start = record.len().checked_sub(Self::size(sample_type))?;
        let mut words = record[start..].as_chunks::<8>().0.iter();
        let mut id = Self::default();
        // The fields are read in the order of the trailer.
        if sample_type & abi::PERF_SAMPLE_TID != 0 {
            let [pid, tid] = halves(*words.next()?, endian).map(u32::cast_signed);
            id.pid_tid = Some((Pid(pid), Tid(tid)));
        }
        if sample_type & abi::PERF_SAMPLE_TIME != 0 {
            id.time = Some(Nanos(endian.u64(*words.next()?)));
        }
        if sample_type & abi::PERF_SAMPLE_ID != 0 {
            id.id = Some(endian.u64(*words.next()?));
        }
        if sample_type & abi::PERF_SAMPLE_STREAM_ID != 0 {
            id.stream_id = Some(endian.u64(*words.next()?));
        }
        if sample_type & abi::PERF_SAMPLE_CPU != 0 {
            let [cpu, _reserved] = halves(*words.next()?, endian);
            id.cpu = Some(cpu);
        }
        if sample_type & abi::PERF_SAMPLE_IDENTIFIER != 0 {
            id.id = Some(endian.u64(*words.next()?));
        }
        Some(id)
    }

    /// Appends the trailer with the fields of `sample_type`. Fields that are `None` are written as 0.
    pub fn write(&self, sample_type: u64, out: &mut ByteWriter) {
        if sample_type & abi::PERF_SAMPLE_TID != 0 {
            let (Pid(pid), Tid(tid)) = self.pid_tid.unwrap_or_default();
            out.u32(pid.cast_unsigned()).u32(tid.cast_unsigned());
        }
        if sample_type & abi::PERF_SAMPLE_TIME != 0 {
            out.u64(self.time.unwrap_or_default().0);
        }
        if sample_type & abi::PERF_SAMPLE_ID != 0 {
            out.u64(self.id.unwrap_or_default());
        }
        if sample_type & abi::PERF_SAMPLE_STREAM_ID != 0 {
            out.u64(self.stream_id.unwrap_or_default());
        }
        if sample_type & abi::PERF_SAMPLE_CPU != 0 {
            out.u32(self.cpu.unwrap_or_default()).u32(0);
        }
        if sample_type & abi::PERF_SAMPLE_IDENTIFIER != 0 {
            out.u64(self.id.unwrap_or_default());
        }
    }
}

/// Splits a 64-bit word into its two 32-bit numbers.
fn halves([a, b, c, d, e, f, g, h]: [u8; 8], endian: Endian) -> [u32; 2] {
    [endian.u32([a, b, c, d]), endian.u32([e, f, g, h])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_is_read_from_the_end() {
        let id = SampleId {
            pid_tid: Some((Pid(7), Tid(-1))),
            time: Some(Nanos(1 << 40 | 5)),
            id: Some(9 << 33),
            stream_id: None,
            cpu: Some(3),
        };
        let bits = abi::PERF_SAMPLE_TID
            | abi::PERF_SAMPLE_TIME
            | abi::PERF_SAMPLE_CPU
            | abi::PERF_SAMPLE_IDENTIFIER
            | abi::PERF_SAMPLE_CALLCHAIN;
        for endian in [Endian::Little, Endian::Big] {
            let mut written = ByteWriter::append_to(vec![0xee; 24], endian);
            id.write(bits, &mut written);
            let bytes = written.finish();
            assert_eq!(bytes.len(), 24 + SampleId::size(bits));
            assert_eq!(SampleId::parse(&bytes, bits, endian), Some(id));
        }
        assert_eq!(SampleId::parse(&[0; 24], bits, Endian::Little), None);
    }
}
