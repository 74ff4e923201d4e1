//! Reads and rewrites perf.data: header, attrs, records and features, in file, pipe and directory form.
//!
//! A [`Recording`] holds everything but the records: byte order, events ([`Event`]) and feature sections. It is owned
//! and small. The records are walked in slices of the data section ([`Records`]), so a caller may map the whole file or
//! one window of it at a time. Each record is parsed only on demand ([`Record`], [`Sample`]).
//!
//! * File form: header (104 bytes), attrs with their IDs, data section, one section per feature bit.
//! * Pipe form: header (16 bytes), then only records; attrs and features are records too.
//! * Directory form (`perf record --threads`): the file `data` in file form, and files `data.N` with only records.
//!
//! Feature numbers and names ([`Feature`]) come from the crate linux-perf-data, kernel constants from
//! linux-perf-event-reader. Walking, parsing and writing are our own, because a rewriter must not lose anything: every
//! record keeps its offset and bytes, including FINISHED_ROUND and unknown ones, which the crate swallows; it also
//! sorts and decompresses. We read pipes and directories as well, and trust no count in the file. The crate's typed
//! features lose what doesn't fit their types (build IDs without a pid, names that aren't UTF-8). `crate_tests`
//! compares both readers: they must return the same samples and features.
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
mod deferred;
mod features;
mod header;
mod namespaces;
mod off_cpu;
mod record;
mod recording;
mod rewrite;
mod sample;
mod sample_id;
mod simpleperf;
mod survey;
mod walk;
mod words;

pub use attr::{Event, EventAttr};
pub use bad_chain::{is_bad_entry, remove_bad_deferred_entries, remove_bad_entries};
pub use code_address::CodeAddress;
pub use compressed::{Decompressor, Packed, is_compressed};
pub use convert::{attr_record, copies_stacks, with_chain};
pub use deferred::{DeferredChain, DeferredChains};
pub use features::FeatureSection;
pub use header::{FileSection, Form, Header, sniff};
pub use linux_perf_data::Feature;
pub use record::{BpfEvent, BuildIdRecord, Comm, Ksymbol, Mmap, Namespaces, Record, Task};
pub use recording::{ReadAt, Recording};
pub use rewrite::{Edit, EditSink, Edits, Features, Front, front_can_stay, leave_pipe, moved_offset, pipe_front};
pub use sample::{
    Branch, Branches, ChainContext, ReadValue, ReadValues, Registers, Sample, StackCopy, USER_DEFERRED, is_marker,
};
pub use sample_id::SampleId;
pub use survey::RecordSurvey;
pub use walk::{RawRecord, Records, Stop, find_record_start, record};
pub use words::Words;

/// `PERF_RECORD_*` numbers: the kernel's, as named by linux-perf-event-reader, and perf's own (`enum
/// perf_user_event_type`, tools/lib/perf/include/perf/event.h).
pub mod kind {
    pub use linux_perf_event_reader::constants::{
        PERF_RECORD_AUX as AUX, PERF_RECORD_BPF_EVENT as BPF_EVENT, PERF_RECORD_CGROUP as CGROUP,
        PERF_RECORD_COMM as COMM, PERF_RECORD_EXIT as EXIT, PERF_RECORD_FORK as FORK, PERF_RECORD_KSYMBOL as KSYMBOL,
        PERF_RECORD_LOST as LOST, PERF_RECORD_LOST_SAMPLES as LOST_SAMPLES, PERF_RECORD_MMAP as MMAP,
        PERF_RECORD_MMAP2 as MMAP2, PERF_RECORD_NAMESPACES as NAMESPACES, PERF_RECORD_SAMPLE as SAMPLE,
    };
    /// A deferred call chain: the user part that is missing in the call chains of earlier samples.
    pub const CALLCHAIN_DEFERRED: u32 = 22;
    /// The first number of perf's own record types; lower numbers are the kernel's.
    pub const USER_START: u32 = linux_perf_event_reader::constants::PERF_RECORD_USER_TYPE_START;
    /// Pipe form: a `perf_event_attr` and its IDs.
    pub const HEADER_ATTR: u32 = 64;
    /// Pipe form: the TRACING_DATA feature. The data follow the record.
    pub const HEADER_TRACING_DATA: u32 = 66;
    /// The build ID of one file.
    pub const HEADER_BUILD_ID: u32 = 67;
    /// AUX trace data of one CPU. The data follow the record.
    pub const AUXTRACE: u32 = 71;
    /// Changes an event's unit, scale, name or CPUs.
    pub const EVENT_UPDATE: u32 = 78;
    /// Factors to convert the CPU's time-stamp counter to nanoseconds.
    pub const TIME_CONV: u32 = 79;
    /// Pipe form: a feature section.
    pub const HEADER_FEATURE: u32 = 80;
    /// zstd data up to the end of the record.
    pub const COMPRESSED: u32 = 81;
    /// The length of the zstd data, the zstd data, padding to a multiple of 8.
    pub const COMPRESSED2: u32 = 83;
}
