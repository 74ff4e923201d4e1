//! The messages of `profile.proto`, with only the fields that we write.

use crate::model::interner::Interner;
use prost::Message;

/// pprof's `Profile`, the whole file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PprofProfile {
    #[prost(message, repeated, tag = "1")]
    pub(super) sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(super) sample: Vec<PprofSample>,
    #[prost(message, repeated, tag = "3")]
    pub(super) mapping: Vec<PprofMapping>,
    #[prost(message, repeated, tag = "4")]
    pub(super) location: Vec<PprofLocation>,
    #[prost(message, repeated, tag = "5")]
    pub(super) function: Vec<PprofFunction>,
    #[prost(string, repeated, tag = "6")]
    pub(super) string_table: Vec<String>,
    #[prost(int64, tag = "7")]
    pub(super) drop_frames: i64,
    #[prost(int64, tag = "8")]
    pub(super) keep_frames: i64,
    #[prost(int64, tag = "9")]
    pub(super) time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub(super) duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub(super) period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub(super) period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub(super) comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    pub(super) default_sample_type: i64,
}

/// pprof's `ValueType`: the name and the unit of values, as string indices.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(super) r#type: i64,
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

/// pprof's `Sample`: a stack with its values and labels.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PprofSample {
    /// Innermost frame first.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) label: Vec<LabelMessage>,
}

/// pprof's `Label`: a key with a text or a number.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct LabelMessage {
    #[prost(int64, tag = "1")]
    pub(super) key: i64,
    #[prost(int64, tag = "2")]
    pub(super) str: i64,
    #[prost(int64, tag = "3")]
    pub(super) num: i64,
}

/// pprof's `Mapping`: a file mapped into memory.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PprofMapping {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint64, tag = "2")]
    pub(super) memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub(super) memory_limit: u64,
    #[prost(uint64, tag = "4")]
    pub(super) file_offset: u64,
    #[prost(int64, tag = "5")]
    pub(super) filename: i64,
    #[prost(int64, tag = "6")]
    pub(super) build_id: i64,
    #[prost(bool, tag = "7")]
    pub(super) has_functions: bool,
    #[prost(bool, tag = "8")]
    pub(super) has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub(super) has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub(super) has_inline_frames: bool,
}

/// pprof's `Location`: a code address and the functions there.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PprofLocation {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint64, tag = "2")]
    pub(super) mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub(super) address: u64,
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<PprofLine>,
}

/// pprof's `Line`: a function and a line in it.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct PprofLine {
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

/// pprof's `Function`.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct PprofFunction {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
    #[prost(int64, tag = "3")]
    pub(super) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(super) filename: i64,
    #[prost(int64, tag = "5")]
    pub(super) start_line: i64,
}

/// Collects distinct strings. Index 0 is the empty string.
pub(super) struct StringTable(Interner<String, i64>);

impl StringTable {
    pub(super) fn new() -> Self {
        let mut strings = Interner::default();
        strings.intern(String::new());
        Self(strings)
    }

    /// The index of a string, which is added if it is new.
    pub(super) fn id(&mut self, text: &str) -> i64 {
        self.0.number(text)
    }

    /// The index of a name that may not be UTF-8; invalid bytes are replaced.
    pub(super) fn id_of(&mut self, name: &[u8]) -> i64 {
        self.id(&String::from_utf8_lossy(name))
    }

    pub(super) fn into_list(self) -> Vec<String> {
        self.0.into_items()
    }
}
