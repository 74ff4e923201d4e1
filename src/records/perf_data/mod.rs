//! perf.data: header, attrs, records, features; read in file, pipe and directory form, and rewritten.
//!
//! A [`Recording`] is what stands around the records: byte order, events ([`Event`]) and feature sections. It is
//! owned and small. The records themselves are walked in slices of the data section ([`Records`]), so that a
//! caller may map the whole file, or only a window of it at a time; each is parsed when asked for ([`Record`],
//! [`Sample`]).
//!
//! * File form: header (104 bytes), attrs with the ids of each, data section, then one section for each feature bit.
//! * Pipe form: header (16 bytes), then records only; attrs and features are records too.
//! * Directory form (`perf record --threads`): the file `data` in file form, and `data.N` with records only.
//!
//! Sources: the numbers and names of features ([`Feature`]) are those of linux-perf-data, the kernel's constants those
//! of linux-perf-event-reader. Walking, parsing and writing are ours. We rewrite without loss, so each record keeps its
//! offset and bytes, FINISHED_ROUND and unknown ones, too, where the crate swallows, sorts and decompresses; pipes and
//! directories are read; and no count of the file is trusted. Its typed features parse from a reader and lose what does
//! not fit (build IDs without a pid, names that are not UTF-8). tests/end_to_end/perf_data_crates.rs holds both readers against
//! each other: samples and features must be the same.
//!
//! Specification: tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h of Linux.

mod attr;
mod bad_chain;
mod bpf;
mod code_address;
mod compressed;
mod convert;
#[cfg(test)]
mod crate_tests;
mod features;
mod header;
mod namespaces;
mod record;
mod recording;
mod rewrite;
mod sample;
mod sample_id;
mod survey;
mod walk;
mod words;

pub use attr::{Event, EventAttr};
pub use bad_chain::{is_bad_entry, without_bad_entries};
pub use code_address::CodeAddress;
pub use compressed::{Decompressor, Packed, is_compressed};
pub use convert::{attr_record, copies_stacks, with_chain};
pub use features::FeatureSection;
pub use header::{FileSection, Form, Header, sniff};
pub use linux_perf_data::Feature;
pub use record::{BpfEvent, BuildIdRecord, Comm, Ksymbol, Mmap, Namespaces, Record, Task};
pub use recording::{ReadAt, Recording};
pub use rewrite::{Edit, EditSink, Edits, Features, Front, front_can_stay, leave_pipe, moved, pipe_front};
pub use sample::{Branch, Branches, ChainContext, ReadValue, ReadValues, Registers, Sample, StackCopy, is_context};
pub use sample_id::SampleId;
pub use survey::RecordSurvey;
pub use walk::{RawRecord, Records, Stop, may_begin, record};
pub use words::Words;

/// `PERF_RECORD_*` numbers: those of the kernel as named by linux-perf-event-reader, and perf's own
/// (`enum perf_user_event_type`, tools/lib/perf/include/perf/event.h).
pub mod kind {
    pub use linux_perf_event_reader::constants::{
        PERF_RECORD_AUX as AUX, PERF_RECORD_BPF_EVENT as BPF_EVENT, PERF_RECORD_CGROUP as CGROUP,
        PERF_RECORD_COMM as COMM, PERF_RECORD_EXIT as EXIT, PERF_RECORD_FORK as FORK, PERF_RECORD_KSYMBOL as KSYMBOL,
        PERF_RECORD_LOST as LOST, PERF_RECORD_LOST_SAMPLES as LOST_SAMPLES, PERF_RECORD_MMAP as MMAP,
        PERF_RECORD_MMAP2 as MMAP2, PERF_RECORD_NAMESPACES as NAMESPACES, PERF_RECORD_SAMPLE as SAMPLE,
    };
    /// The first number that perf gives, not the kernel.
    pub const USER_START: u32 = linux_perf_event_reader::constants::PERF_RECORD_USER_TYPE_START;
    /// Pipe form: a `perf_event_attr` and its ids.
    pub const HEADER_ATTR: u32 = 64;
    /// Pipe form: the TRACING_DATA feature; followed by its payload.
    pub const HEADER_TRACING_DATA: u32 = 66;
    /// The build ID of one file.
    pub const HEADER_BUILD_ID: u32 = 67;
    /// Followed by a payload: trace data of a CPU.
    pub const AUXTRACE: u32 = 71;
    /// An event's unit, scale, name or CPUs.
    pub const EVENT_UPDATE: u32 = 78;
    /// How to convert the CPU's time-stamp counter.
    pub const TIME_CONV: u32 = 79;
    /// Pipe form: a feature section.
    pub const HEADER_FEATURE: u32 = 80;
    /// zstd data up to the record's end.
    pub const COMPRESSED: u32 = 81;
    /// A length, zstd data of that length, padding to 8.
    pub const COMPRESSED2: u32 = 83;
}
