//! `struct sample_id`: who, when and where, at the end of every kernel record that is not a sample
//! (`attr.sample_id_all`). Fields are in a fixed order, each only if `sample_type` has its bit.

use crate::bytes::byte_writer::ByteWriter;
use crate::bytes::cursor::Endian;
use crate::model::{Nanos, Pid, Tid};
use linux_perf_event_reader::constants as abi;

/// A trailer; fields whose bit is not in `sample_type` are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleId {
    /// Process and thread.
    pub pid_tid: Option<(Pid, Tid)>,
    /// When.
    pub time: Option<Nanos>,
    /// The event's id, from ID or IDENTIFIER.
    pub id: Option<u64>,
    /// The id of the event before inheritance.
    pub stream_id: Option<u64>,
    /// The processor.
    pub cpu: Option<u32>,
}

const FIELDS: u64 = abi::PERF_SAMPLE_TID
    | abi::PERF_SAMPLE_TIME
    | abi::PERF_SAMPLE_ID
    | abi::PERF_SAMPLE_STREAM_ID
    | abi::PERF_SAMPLE_CPU
    | abi::PERF_SAMPLE_IDENTIFIER;

impl SampleId {
    /// The length in bytes of a trailer.
    pub fn size(sample_type: u64) -> usize {
        (sample_type & FIELDS).count_ones() as usize * 8
    }

    /// From the end of a record's bytes. `None` if they are too few.
    pub fn parse(record: &[u8], sample_type: u64, endian: Endian) -> Option<Self> {
        let at = record.len().checked_sub(Self::size(sample_type))?;
        let mut words = record[at..].chunks_exact(8).filter_map(<[u8]>::first_chunk::<8>);
        let mut word = |bit: u64| if sample_type & bit != 0 { words.next().copied() } else { None };
        let u64_of = |bytes: [u8; 8]| endian.u64(bytes);
        let halves = |[a, b, c, d, e, f, g, h]: [u8; 8]| (endian.u32([a, b, c, d]), endian.u32([e, f, g, h]));
        let pid_tid = word(abi::PERF_SAMPLE_TID).map(halves);
        let time = word(abi::PERF_SAMPLE_TIME).map(u64_of).map(Nanos);
        let id = word(abi::PERF_SAMPLE_ID).map(u64_of);
        let stream_id = word(abi::PERF_SAMPLE_STREAM_ID).map(u64_of);
        let cpu = word(abi::PERF_SAMPLE_CPU).map(halves).map(|(cpu, _)| cpu);
        let identifier = word(abi::PERF_SAMPLE_IDENTIFIER).map(u64_of);
        let pid_tid = pid_tid.map(|(pid, tid)| (Pid(pid.cast_signed()), Tid(tid.cast_signed())));
        Some(Self { pid_tid, time, id: identifier.or(id), stream_id, cpu })
    }

    /// Appends it as `sample_type` wants it; what is `None` is written as 0.
    pub fn write(&self, sample_type: u64, out: &mut ByteWriter) {
        let has = |bit: u64| sample_type & bit != 0;
        let (Pid(pid), Tid(tid)) = self.pid_tid.unwrap_or_default();
        if has(abi::PERF_SAMPLE_TID) {
            out.u32(pid.cast_unsigned()).u32(tid.cast_unsigned());
        }
        let id = self.id.unwrap_or_default();
        let words = [
            (abi::PERF_SAMPLE_TIME, self.time.unwrap_or_default().0),
            (abi::PERF_SAMPLE_ID, id),
            (abi::PERF_SAMPLE_STREAM_ID, self.stream_id.unwrap_or_default()),
        ];
        for (_, word) in words.into_iter().filter(|&(bit, _)| has(bit)) {
            out.u64(word);
        }
        if has(abi::PERF_SAMPLE_CPU) {
            out.u32(self.cpu.unwrap_or_default()).u32(0);
        }
        if has(abi::PERF_SAMPLE_IDENTIFIER) {
            out.u64(id);
        }
    }
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
            let mut written = ByteWriter::behind(vec![0xee; 24], endian);
            id.write(bits, &mut written);
            let bytes = written.finish();
            assert_eq!(bytes.len(), 24 + SampleId::size(bits));
            assert_eq!(SampleId::parse(&bytes, bits, endian), Some(id));
        }
        assert_eq!(SampleId::parse(&[0; 24], bits, Endian::Little), None);
    }
}
