//! The messages that we write or change. Elements of long lists (samples, tables) are often encoded separately: what is
//! only passed on stays encoded. At the end of the file: our own attribute keys, for facts that the protocol has no
//! field for.

use crate::bytes::protobuf::MessageSchema;
use prost::bytes::Bytes;
use prost::{Message, Oneof};

/// OTLP's `ProfilesData`, and `ExportProfilesServiceRequest`, which has the same fields.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProfilesData {
    #[prost(message, repeated, tag = "1")]
    pub(super) resource_profiles: Vec<ResourceProfiles>,
    #[prost(message, optional, tag = "2")]
    pub(super) dictionary: Option<DictionaryMessage>,
}

/// OTLP's `ResourceProfiles`: the profiles of a process or container.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceProfiles {
    /// A [`ResourceMessage`].
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) resource: Option<Bytes>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_profiles: Vec<ScopeProfiles>,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) schema_url: Bytes,
}

/// OTLP's `ScopeProfiles`: the profiles that one tool measured.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeProfiles {
    /// A [`ScopeMessage`].
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) scope: Option<Bytes>,
    #[prost(message, repeated, tag = "2")]
    pub(super) profiles: Vec<ProfileMessage>,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) schema_url: Bytes,
}

/// OTLP's `ProfilesDictionary`: the tables that all profiles of a message refer to.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DictionaryMessage {
    /// [`MappingMessage`]s.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(super) mapping_table: Vec<Bytes>,
    #[prost(message, repeated, tag = "2")]
    pub(super) location_table: Vec<LocationMessage>,
    #[prost(message, repeated, tag = "3")]
    pub(super) function_table: Vec<FunctionMessage>,
    /// [`LinkMessage`]s.
    #[prost(bytes = "bytes", repeated, tag = "4")]
    pub(super) link_table: Vec<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "5")]
    pub(super) string_table: Vec<Bytes>,
    /// [`AttributeMessage`]s.
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub(super) attribute_table: Vec<Bytes>,
    #[prost(message, repeated, tag = "7")]
    pub(super) stack_table: Vec<StackMessage>,
}

/// OTLP's `Mapping`: a file mapped into memory.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MappingMessage {
    #[prost(uint64, tag = "1")]
    pub(super) memory_start: u64,
    #[prost(uint64, tag = "2")]
    pub(super) memory_limit: u64,
    #[prost(uint64, tag = "3")]
    pub(super) file_offset: u64,
    #[prost(int32, tag = "4")]
    pub(super) filename_strindex: i32,
    #[prost(int32, repeated, tag = "5")]
    pub(super) attribute_indices: Vec<i32>,
}

/// OTLP's `Location`: a code address and the functions there.
#[derive(Clone, PartialEq, Message)]
pub(super) struct LocationMessage {
    #[prost(int32, tag = "1")]
    pub(super) mapping_index: i32,
    #[prost(uint64, tag = "2")]
    pub(super) address: u64,
    #[prost(message, repeated, tag = "3")]
    pub(super) lines: Vec<LineMessage>,
    #[prost(int32, repeated, tag = "4")]
    pub(super) attribute_indices: Vec<i32>,
}

/// OTLP's `Line`: a function and a line in it.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct LineMessage {
    #[prost(int32, tag = "1")]
    pub(super) function_index: i32,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
    #[prost(int64, tag = "3")]
    pub(super) column: i64,
}

/// OTLP's `Function`.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct FunctionMessage {
    #[prost(int32, tag = "1")]
    pub(super) name_strindex: i32,
    #[prost(int32, tag = "2")]
    pub(super) system_name_strindex: i32,
    #[prost(int32, tag = "3")]
    pub(super) filename_strindex: i32,
    #[prost(int64, tag = "4")]
    pub(super) start_line: i64,
}

/// OTLP's `Link`, which refers to a trace span.
#[derive(Clone, PartialEq, Message)]
pub(super) struct LinkMessage {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) span_id: Vec<u8>,
}

/// OTLP's `KeyValueAndUnit`: an attribute in the dictionary.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AttributeMessage {
    #[prost(int32, tag = "1")]
    pub(super) key_strindex: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<ValueMessage>,
}

/// OTLP's `AnyValue`: the value of an attribute.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueMessage {
    #[prost(oneof = "AnyValue", tags = "1, 3, 5")]
    pub(super) value: Option<AnyValue>,
}

/// The kinds of attribute values that we write.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum AnyValue {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
    #[prost(message, tag = "5")]
    List(ListMessage),
}

/// OTLP's `ArrayValue`: a list of values.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ListMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) values: Vec<ValueMessage>,
}

/// OTLP's `Stack`, innermost frame first.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StackMessage {
    #[prost(int32, repeated, tag = "1")]
    pub(super) location_indices: Vec<i32>,
}

/// OTLP's `KeyValue`: an attribute of a resource or scope.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValueMessage {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<ValueMessage>,
}

/// OTLP's `Resource`: the process that was measured, described by attributes.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValueMessage>,
}

/// OTLP's `InstrumentationScope`: the tool that produced the profiles.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeMessage {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) attributes: Vec<KeyValueMessage>,
}

/// OTLP's `Profile`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProfileMessage {
    #[prost(message, optional, tag = "1")]
    pub(super) sample_type: Option<ValueType>,
    /// [`SampleMessage`]s.
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub(super) samples: Vec<Bytes>,
    #[prost(fixed64, tag = "3")]
    pub(super) time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    pub(super) duration_nano: u64,
    #[prost(message, optional, tag = "5")]
    pub(super) period_type: Option<ValueType>,
    #[prost(int64, tag = "6")]
    pub(super) period: i64,
    #[prost(bytes = "bytes", tag = "7")]
    pub(super) profile_id: Bytes,
    #[prost(uint32, tag = "8")]
    pub(super) dropped_attributes_count: u32,
    #[prost(bytes = "bytes", tag = "9")]
    pub(super) original_payload_format: Bytes,
    #[prost(bytes = "bytes", tag = "10")]
    pub(super) original_payload: Bytes,
    #[prost(int32, repeated, tag = "11")]
    pub(super) attribute_indices: Vec<i32>,
}

/// OTLP's `ValueType`: the name and the unit of values.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct ValueType {
    #[prost(int32, tag = "1")]
    pub(super) type_strindex: i32,
    #[prost(int32, tag = "2")]
    pub(super) unit_strindex: i32,
}

/// OTLP's `Sample`: a stack with its attributes, values and times.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SampleMessage {
    #[prost(int32, tag = "1")]
    pub(super) stack_index: i32,
    #[prost(int32, repeated, tag = "2")]
    pub(super) attribute_indices: Vec<i32>,
    #[prost(int32, tag = "3")]
    pub(super) link_index: i32,
    #[prost(int64, repeated, tag = "4")]
    pub(super) values: Vec<i64>,
    #[prost(fixed64, repeated, tag = "5")]
    pub(super) timestamps_unix_nano: Vec<u64>,
}

/// The field numbers of the messages that `inject` decodes. Messages that stay encoded keep all their fields.
pub(super) static SCHEMA: MessageSchema =
    MessageSchema { name: "ProfilesData", last_field: 2, messages: &[(1, &RESOURCE_PROFILES), (2, &DICTIONARY)] };
static RESOURCE_PROFILES: MessageSchema =
    MessageSchema { name: "ResourceProfiles", last_field: 3, messages: &[(2, &SCOPE_PROFILES)] };
static SCOPE_PROFILES: MessageSchema =
    MessageSchema { name: "ScopeProfiles", last_field: 3, messages: &[(2, &PROFILE)] };
static PROFILE: MessageSchema =
    MessageSchema { name: "Profile", last_field: 11, messages: &[(1, &VALUE_TYPE), (2, &SAMPLE), (5, &VALUE_TYPE)] };
static VALUE_TYPE: MessageSchema = MessageSchema { name: "ValueType", last_field: 2, messages: &[] };
static SAMPLE: MessageSchema = MessageSchema { name: "Sample", last_field: 5, messages: &[] };
static DICTIONARY: MessageSchema = MessageSchema {
    name: "ProfilesDictionary",
    last_field: 7,
    messages: &[(2, &LOCATION), (3, &FUNCTION), (7, &STACK)],
};
static LOCATION: MessageSchema = MessageSchema { name: "Location", last_field: 4, messages: &[(3, &LINE)] };
static LINE: MessageSchema = MessageSchema { name: "Line", last_field: 3, messages: &[] };
static FUNCTION: MessageSchema = MessageSchema { name: "Function", last_field: 4, messages: &[] };
static STACK: MessageSchema = MessageSchema { name: "Stack", last_field: 1, messages: &[] };

/// Wraps text as an attribute value.
pub(super) fn text(text: impl Into<String>) -> ValueMessage {
    ValueMessage { value: Some(AnyValue::Text(text.into())) }
}

/// Wraps a number as an attribute value.
pub(super) fn number(number: i64) -> ValueMessage {
    ValueMessage { value: Some(AnyValue::Number(number)) }
}

/// Builds an attribute of a resource or scope.
pub(super) fn attribute(key: &str, value: ValueMessage) -> KeyValueMessage {
    KeyValueMessage { key: key.to_owned(), value: Some(value) }
}

/// Key of our scope's attribute that says how function names are spelled: see
/// [`perf_names`](crate::model::stacks::Profile::perf_names).
pub(super) const NAMES_KEY: &[u8] = b"jitgraft.names";

/// Value of [`NAMES_KEY`] for names spelled as perf spells them.
pub(super) const PERF_NAMES: &[u8] = b"perf";

/// Key of our scope's attribute that names the clock of the timestamps, if it is not the wall clock.
pub(super) const CLOCK_KEY: &[u8] = b"jitgraft.clock";

/// Value of [`CLOCK_KEY`] for the recording's own clock, when its offset from the wall clock is unknown.
pub(super) const OWN_CLOCK: &[u8] = b"recording";

/// Key of our scope's attribute with the number of samples that the recorder lost.
pub(super) const LOST_KEY: &[u8] = b"jitgraft.lost";

/// Suffix for the value type that holds the sample counts of another value type.
pub(super) const COUNTS: &str = ":samples";
