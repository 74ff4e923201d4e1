//! The messages of `profile.proto`, with all their fields as of 2025.
//!
//! Samples are not decoded together with the rest of the file, to save memory: a decoded sample takes about 300 bytes
//! and often more than ten times its encoded size.

use crate::bytes::protobuf::{MessageSchema, put_field};
use crate::error::Result;
use crate::model::interner::Interner;
use prost::Message;
use prost::bytes::Bytes;
use prost::encoding::message::encoded_len_repeated;
use std::borrow::Cow;
use std::io::Write;

/// Numbers of fields of `Profile`: the value types, which come first in a file, and the samples, which aren't decoded
/// together with the other fields.
const VALUE_TYPE: u32 = 1;
pub(super) const SAMPLE: u32 = 2;

/// pprof's `Profile`, the whole file, except its samples.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PprofProfile {
    #[prost(message, repeated, tag = "1")]
    pub(super) sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "3")]
    pub(super) mapping: Vec<PprofMapping>,
    #[prost(message, repeated, tag = "4")]
    pub(super) location: Vec<PprofLocation>,
    #[prost(message, repeated, tag = "5")]
    pub(super) function: Vec<PprofFunction>,
    /// What the other fields refer to by index. The first string is empty. Readers don't require valid UTF-8.
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub(super) string_table: Vec<Bytes>,
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
    #[prost(int64, tag = "15")]
    pub(super) doc_url: i64,
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
    /// The IDs of the sample's locations, innermost frame first.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) label: Vec<LabelMessage>,
}

impl PprofSample {
    /// The number of the field `value`, which holds a sample's values.
    pub(super) const VALUE: u32 = 2;
}

/// pprof's `Label`: a key with a text, or with a number and its unit.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct LabelMessage {
    #[prost(int64, tag = "1")]
    pub(super) key: i64,
    #[prost(int64, tag = "2")]
    pub(super) str: i64,
    #[prost(int64, tag = "3")]
    pub(super) num: i64,
    /// The string index of the number's unit; 0 if it has none.
    #[prost(int64, tag = "4")]
    pub(super) num_unit: i64,
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
    /// The functions at this location: the innermost inlined call first, the function that contains the code last.
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<PprofLine>,
    #[prost(bool, tag = "5")]
    pub(super) is_folded: bool,
}

/// pprof's `Line`: a function and a line in it.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct PprofLine {
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
    #[prost(int64, tag = "3")]
    pub(super) column: i64,
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

/// The field numbers of the messages above, by which fields of later versions are recognized as unknown.
pub(super) static SCHEMA: MessageSchema = MessageSchema {
    name: "Profile",
    last_field: 15,
    messages: &[
        (VALUE_TYPE, &VALUE_TYPES),
        (SAMPLE, &SAMPLES),
        (3, &MAPPING),
        (4, &LOCATION),
        (5, &FUNCTION),
        (11, &VALUE_TYPES),
    ],
};
static VALUE_TYPES: MessageSchema = MessageSchema { name: "ValueType", last_field: 2, messages: &[] };
static SAMPLES: MessageSchema = MessageSchema { name: "Sample", last_field: 3, messages: &[(3, &LABEL)] };
static LABEL: MessageSchema = MessageSchema { name: "Label", last_field: 4, messages: &[] };
static MAPPING: MessageSchema = MessageSchema { name: "Mapping", last_field: 10, messages: &[] };
static LOCATION: MessageSchema = MessageSchema { name: "Location", last_field: 5, messages: &[(4, &LINE)] };
static LINE: MessageSchema = MessageSchema { name: "Line", last_field: 3, messages: &[] };
static FUNCTION: MessageSchema = MessageSchema { name: "Function", last_field: 5, messages: &[] };

/// How many bytes are collected before they are written.
const PIECE: usize = 1 << 20;

/// Writes a file with these encoded samples. The value types come first, then the samples, then everything else, as in
/// files of other tools: readers, ours too, recognize a profile by its first fields.
pub(super) fn write_file<'s>(
    file: &PprofProfile,
    samples: impl Iterator<Item = Cow<'s, [u8]>>,
    out: &mut dyn Write,
) -> Result<()> {
    let tables = file.encode_to_vec();
    let (value_types, tables) = tables.split_at(encoded_len_repeated(VALUE_TYPE, &file.sample_type));
    let mut piece = value_types.to_vec();
    for sample in samples {
        put_field(SAMPLE, &[&sample], &mut piece);
        if piece.len() >= PIECE {
            out.write_all(&piece)?;
            piece.clear();
        }
    }
    piece.extend_from_slice(tables);
    Ok(out.write_all(&piece)?)
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

    pub(super) fn into_list(self) -> Vec<Bytes> {
        self.0.into_items().into_iter().map(Bytes::from).collect()
    }
}
