//! The messages of the protocol, as of version 1.10, for both forms: prost's attributes describe the binary form,
//! serde's the JSON form. At the end of the file: our own attribute keys, for facts that the protocol has no field for.
//!
//! Names and numbers: <https://github.com/open-telemetry/opentelemetry-proto>, `profiles/v1development/profiles.proto`,
//! `common/v1/common.proto`, `resource/v1/resource.proto`.
//!
//! * All strings are bytes: profilers copy names from memory without checking that they are UTF-8, and prost would refuse
//!   the whole message.
//! * Samples and attribute values stay encoded until they are needed. There are many samples, and a damaged one should
//!   not make the whole message unreadable; values may be nested more deeply than prost decodes.

use super::json;
use crate::bytes::protobuf::MessageSchema;
use prost::Message;
use prost::bytes::Bytes;
use serde::{Deserialize, Serialize};

/// OTLP's `ProfilesData`, and `ExportProfilesServiceRequest`, which has the same fields.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ProfilesData {
    #[prost(message, repeated, tag = "1")]
    #[serde(
        alias = "resource_profiles",
        deserialize_with = "json::or_default",
        skip_serializing_if = "json::is_default"
    )]
    pub(super) resource_profiles: Vec<ResourceProfiles>,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub(super) dictionary: Option<Dictionary>,
}

/// OTLP's `ResourceProfiles`: the profiles of a process or container.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ResourceProfiles {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub(super) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    #[serde(alias = "scope_profiles", deserialize_with = "json::or_default", skip_serializing_if = "json::is_default")]
    pub(super) scope_profiles: Vec<ScopeProfiles>,
    #[prost(bytes = "bytes", tag = "3")]
    #[serde(alias = "schema_url", with = "json::text", skip_serializing_if = "json::is_default")]
    pub(super) schema_url: Bytes,
}

/// OTLP's `Resource`: the process that was measured, described by attributes.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json::or_default", skip_serializing_if = "json::is_default")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "2")]
    #[serde(
        alias = "dropped_attributes_count",
        deserialize_with = "json::number",
        skip_serializing_if = "json::is_default"
    )]
    pub(super) dropped_attributes_count: u32,
    /// `EntityRef`s, which are only passed on.
    #[prost(bytes = "bytes", repeated, tag = "3")]
    #[serde(skip)]
    pub(super) entity_refs: Vec<Bytes>,
}

/// OTLP's `ScopeProfiles`: the profiles that one tool measured.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ScopeProfiles {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub(super) scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "json::or_default", skip_serializing_if = "json::is_default")]
    pub(super) profiles: Vec<ProfileMessage>,
    #[prost(bytes = "bytes", tag = "3")]
    #[serde(alias = "schema_url", with = "json::text", skip_serializing_if = "json::is_default")]
    pub(super) schema_url: Bytes,
}

/// OTLP's `InstrumentationScope`: the tool that produced the profiles.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Scope {
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "json::text", skip_serializing_if = "json::is_default")]
    pub(super) name: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(with = "json::text", skip_serializing_if = "json::is_default")]
    pub(super) version: Bytes,
    #[prost(message, repeated, tag = "3")]
    #[serde(deserialize_with = "json::or_default", skip_serializing_if = "json::is_default")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "4")]
    #[serde(
        alias = "dropped_attributes_count",
        deserialize_with = "json::number",
        skip_serializing_if = "json::is_default"
    )]
    pub(super) dropped_attributes_count: u32,
}

/// OTLP's `KeyValue`: an attribute of a resource or scope. The key is a string or an index into the string table.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(with = "json::text", skip_serializing_if = "json::is_default")]
    pub(super) key: Bytes,
    /// An encoded [`AnyValue`].
    #[prost(bytes = "bytes", optional, tag = "2")]
    #[serde(with = "json::value", skip_serializing_if = "json::is_default")]
    pub(super) value: Option<Bytes>,
    #[prost(int32, tag = "3")]
    #[serde(alias = "key_strindex", deserialize_with = "json::number", skip_serializing_if = "json::is_default")]
    pub(super) key_strindex: i32,
}

/// OTLP's `AnyValue`: the value of an attribute. Only one of the fields is set.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AnyValue {
    #[prost(bytes = "bytes", optional, tag = "1")]
    #[serde(alias = "string_value", with = "json::some_text", skip_serializing_if = "json::is_default")]
    pub(super) string_value: Option<Bytes>,
    #[prost(bool, optional, tag = "2")]
    #[serde(alias = "bool_value", skip_serializing_if = "json::is_default")]
    pub(super) bool_value: Option<bool>,
    #[prost(int64, optional, tag = "3")]
    #[serde(alias = "int_value", with = "json::some_long", skip_serializing_if = "json::is_default")]
    pub(super) int_value: Option<i64>,
    #[prost(double, optional, tag = "4")]
    #[serde(alias = "double_value", skip_serializing_if = "json::is_default")]
    pub(super) double_value: Option<f64>,
    #[prost(message, optional, tag = "5")]
    #[serde(alias = "array_value", skip_serializing_if = "json::is_default")]
    pub(super) array_value: Option<ArrayValue>,
    #[prost(message, optional, tag = "6")]
    #[serde(alias = "kvlist_value", skip_serializing_if = "json::is_default")]
    pub(super) kvlist_value: Option<KeyValueList>,
    #[prost(bytes = "bytes", optional, tag = "7")]
    #[serde(alias = "bytes_value", with = "json::some_base64", skip_serializing_if = "json::is_default")]
    pub(super) bytes_value: Option<Bytes>,
    #[prost(int32, optional, tag = "8")]
    #[serde(alias = "string_value_strindex", skip_serializing_if = "json::is_default")]
    pub(super) string_value_strindex: Option<i32>,
}

/// OTLP's `ArrayValue`: a list of values.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json::or_default", skip_serializing_if = "json::is_default")]
    pub(super) values: Vec<AnyValue>,
}

/// OTLP's `KeyValueList`: a map of values.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct KeyValueList {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json::or_default", skip_serializing_if = "json::is_default")]
    pub(super) values: Vec<KeyValue>,
}

/// OTLP's `Profile`. `samples` is declared last, because JSON has the fields in this order: readers want to know the
/// value type before the samples.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ProfileMessage {
    #[prost(message, optional, tag = "1")]
    #[serde(alias = "sample_type", deserialize_with = "json::sample_type", skip_serializing_if = "json::is_default")]
    pub(super) sample_type: Option<ValueType>,
    #[prost(fixed64, tag = "3")]
    #[serde(alias = "time_unix_nano", with = "json::long", skip_serializing_if = "json::is_default")]
    pub(super) time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    #[serde(alias = "duration_nano", with = "json::long", skip_serializing_if = "json::is_default")]
    pub(super) duration_nano: u64,
    #[prost(message, optional, tag = "5")]
    #[serde(alias = "period_type", skip_serializing_if = "json::is_default")]
    pub(super) period_type: Option<ValueType>,
    #[prost(int64, tag = "6")]
    #[serde(with = "json::long", skip_serializing_if = "json::is_default")]
    pub(super) period: i64,
    #[prost(bytes = "bytes", tag = "7")]
    #[serde(alias = "profile_id", with = "json::base64", skip_serializing_if = "json::is_default")]
    pub(super) profile_id: Bytes,
    #[prost(uint32, tag = "8")]
    #[serde(
        alias = "dropped_attributes_count",
        deserialize_with = "json::number",
        skip_serializing_if = "json::is_default"
    )]
    pub(super) dropped_attributes_count: u32,
    #[prost(bytes = "bytes", tag = "9")]
    #[serde(alias = "original_payload_format", with = "json::text", skip_serializing_if = "json::is_default")]
    pub(super) original_payload_format: Bytes,
    #[prost(bytes = "bytes", tag = "10")]
    #[serde(alias = "original_payload", with = "json::base64", skip_serializing_if = "json::is_default")]
    pub(super) original_payload: Bytes,
    #[prost(int32, repeated, tag = "11")]
    #[serde(alias = "attribute_indices", deserialize_with = "json::numbers", skip_serializing_if = "json::is_default")]
    pub(super) attribute_indices: Vec<i32>,
    /// Encoded [`SampleMessage`]s.
    #[prost(bytes = "bytes", repeated, tag = "2")]
    #[serde(with = "json::samples", skip_serializing_if = "json::is_default")]
    pub(super) samples: Vec<Bytes>,
    /// Samples under the name that they have in JSON of protocols 1.7 and 1.8. Only their number is kept: if there are
    /// any, the message is refused as too old. The tag is one that no version of the protocol uses.
    #[prost(bytes = "bytes", repeated, tag = "1000")]
    #[serde(rename = "sample", with = "json::old_samples", skip_serializing_if = "json::is_default")]
    pub(super) old_samples: Vec<Bytes>,
}

/// OTLP's `ValueType`: the name and the unit of values.
#[derive(Clone, Copy, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ValueType {
    #[prost(int32, tag = "1")]
    #[serde(alias = "type_strindex", deserialize_with = "json::number", skip_serializing_if = "json::is_default")]
    pub(super) type_strindex: i32,
    #[prost(int32, tag = "2")]
    #[serde(alias = "unit_strindex", deserialize_with = "json::number", skip_serializing_if = "json::is_default")]
    pub(super) unit_strindex: i32,
}

/// OTLP's `Sample`: a stack with its attributes, values and times.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SampleMessage {
    #[prost(int32, tag = "1")]
    #[serde(alias = "stack_index", deserialize_with = "json::number", skip_serializing_if = "json::is_default")]
    pub(super) stack_index: i32,
    #[prost(int32, repeated, tag = "2")]
    #[serde(alias = "attribute_indices", deserialize_with = "json::numbers", skip_serializing_if = "json::is_default")]
    pub(super) attribute_indices: Vec<i32>,
    #[prost(int32, tag = "3")]
    #[serde(alias = "link_index", deserialize_with = "json::number", skip_serializing_if = "json::is_default")]
    pub(super) link_index: i32,
    #[prost(int64, repeated, tag = "4")]
    #[serde(with = "json::longs", skip_serializing_if = "json::is_default")]
    pub(super) values: Vec<i64>,
    /// Nanoseconds since 1970.
    #[prost(fixed64, repeated, tag = "5")]
    #[serde(alias = "timestamps_unix_nano", with = "json::longs", skip_serializing_if = "json::is_default")]
    pub(super) timestamps_unix_nano: Vec<u64>,
}

/// OTLP's `ProfilesDictionary`: the tables that all profiles of a message refer to by index. The first element of each
/// table is empty and means "none".
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Dictionary {
    #[prost(message, repeated, tag = "1")]
    #[serde(alias = "mapping_table", deserialize_with = "json::or_default", skip_serializing_if = "json::is_default")]
    pub(super) mapping_table: Vec<MappingMessage>,
    #[prost(message, repeated, tag = "2")]
    #[serde(alias = "location_table", deserialize_with = "json::or_default", skip_serializing_if = "json::is_default")]
    pub(super) location_table: Vec<LocationMessage>,
    #[prost(message, repeated, tag = "3")]
    #[serde(alias = "function_table", deserialize_with = "json::or_default", skip_serializing_if = "json::is_default")]
    pub(super) function_table: Vec<FunctionMessage>,
    #[prost(message, repeated, tag = "4")]
    #[serde(alias = "link_table", deserialize_with = "json::or_default", skip_serializing_if = "json::is_default")]
    pub(super) link_table: Vec<LinkMessage>,
    #[prost(bytes = "bytes", repeated, tag = "5")]
    #[serde(alias = "string_table", with = "json::texts", skip_serializing_if = "json::is_default")]
    pub(super) string_table: Vec<Bytes>,
    #[prost(message, repeated, tag = "6")]
    #[serde(
        alias = "attribute_table",
        deserialize_with = "json::or_default",
        skip_serializing_if = "json::is_default"
    )]
    pub(super) attribute_table: Vec<AttributeMessage>,
    #[prost(message, repeated, tag = "7")]
    #[serde(alias = "stack_table", deserialize_with = "json::or_default", skip_serializing_if = "json::is_default")]
    pub(super) stack_table: Vec<StackMessage>,
}

/// OTLP's `Mapping`: a file, or something like a file, mapped into memory.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct MappingMessage {
    #[prost(uint64, tag = "1")]
    #[serde(alias = "memory_start", with = "json::long", skip_serializing_if = "json::is_default")]
    pub(super) memory_start: u64,
    #[prost(uint64, tag = "2")]
    #[serde(alias = "memory_limit", with = "json::long", skip_serializing_if = "json::is_default")]
    pub(super) memory_limit: u64,
    #[prost(uint64, tag = "3")]
    #[serde(alias = "file_offset", with = "json::long", skip_serializing_if = "json::is_default")]
    pub(super) file_offset: u64,
    #[prost(int32, tag = "4")]
    #[serde(alias = "filename_strindex", deserialize_with = "json::number", skip_serializing_if = "json::is_default")]
    pub(super) filename_strindex: i32,
    #[prost(int32, repeated, tag = "5")]
    #[serde(alias = "attribute_indices", deserialize_with = "json::numbers", skip_serializing_if = "json::is_default")]
    pub(super) attribute_indices: Vec<i32>,
}

/// OTLP's `Location`: a code address and the functions there.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LocationMessage {
    #[prost(int32, tag = "1")]
    #[serde(alias = "mapping_index", deserialize_with = "json::number", skip_serializing_if = "json::is_default")]
    pub(super) mapping_index: i32,
    #[prost(uint64, tag = "2")]
    #[serde(with = "json::long", skip_serializing_if = "json::is_default")]
    pub(super) address: u64,
    /// The innermost inlined call first, the function that contains the code last.
    #[prost(message, repeated, tag = "3")]
    #[serde(deserialize_with = "json::or_default", skip_serializing_if = "json::is_default")]
    pub(super) lines: Vec<LineMessage>,
    #[prost(int32, repeated, tag = "4")]
    #[serde(alias = "attribute_indices", deserialize_with = "json::numbers", skip_serializing_if = "json::is_default")]
    pub(super) attribute_indices: Vec<i32>,
}

/// OTLP's `Line`: a function and a line in it.
#[derive(Clone, Copy, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LineMessage {
    #[prost(int32, tag = "1")]
    #[serde(alias = "function_index", deserialize_with = "json::number", skip_serializing_if = "json::is_default")]
    pub(super) function_index: i32,
    #[prost(int64, tag = "2")]
    #[serde(with = "json::long", skip_serializing_if = "json::is_default")]
    pub(super) line: i64,
    #[prost(int64, tag = "3")]
    #[serde(with = "json::long", skip_serializing_if = "json::is_default")]
    pub(super) column: i64,
}

/// OTLP's `Function`.
#[derive(Clone, Copy, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct FunctionMessage {
    #[prost(int32, tag = "1")]
    #[serde(alias = "name_strindex", deserialize_with = "json::number", skip_serializing_if = "json::is_default")]
    pub(super) name_strindex: i32,
    #[prost(int32, tag = "2")]
    #[serde(
        alias = "system_name_strindex",
        deserialize_with = "json::number",
        skip_serializing_if = "json::is_default"
    )]
    pub(super) system_name_strindex: i32,
    #[prost(int32, tag = "3")]
    #[serde(alias = "filename_strindex", deserialize_with = "json::number", skip_serializing_if = "json::is_default")]
    pub(super) filename_strindex: i32,
    #[prost(int64, tag = "4")]
    #[serde(alias = "start_line", with = "json::long", skip_serializing_if = "json::is_default")]
    pub(super) start_line: i64,
}

/// OTLP's `Link`, which refers to a trace span.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LinkMessage {
    #[prost(bytes = "bytes", tag = "1")]
    #[serde(alias = "trace_id", with = "json::id", skip_serializing_if = "json::is_default")]
    pub(super) trace_id: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    #[serde(alias = "span_id", with = "json::id", skip_serializing_if = "json::is_default")]
    pub(super) span_id: Bytes,
}

/// OTLP's `KeyValueAndUnit`: an attribute in the dictionary.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AttributeMessage {
    #[prost(int32, tag = "1")]
    #[serde(alias = "key_strindex", deserialize_with = "json::number", skip_serializing_if = "json::is_default")]
    pub(super) key_strindex: i32,
    /// An encoded [`AnyValue`].
    #[prost(bytes = "bytes", optional, tag = "2")]
    #[serde(with = "json::value", skip_serializing_if = "json::is_default")]
    pub(super) value: Option<Bytes>,
    #[prost(int32, tag = "3")]
    #[serde(alias = "unit_strindex", deserialize_with = "json::number", skip_serializing_if = "json::is_default")]
    pub(super) unit_strindex: i32,
}

/// OTLP's `Stack`, innermost frame first.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct StackMessage {
    #[prost(int32, repeated, tag = "1")]
    #[serde(alias = "location_indices", deserialize_with = "json::numbers", skip_serializing_if = "json::is_default")]
    pub(super) location_indices: Vec<i32>,
}

/// The field numbers of the messages that we decode. Other fields, such as those of later protocol versions, get lost
/// when a message is encoded again; this table is used to find and report them.
pub(super) static SCHEMA: MessageSchema =
    MessageSchema { name: "ProfilesData", last_field: 2, messages: &[(1, &RESOURCE_PROFILES), (2, &DICTIONARY)] };
static RESOURCE_PROFILES: MessageSchema =
    MessageSchema { name: "ResourceProfiles", last_field: 3, messages: &[(1, &RESOURCE), (2, &SCOPE_PROFILES)] };
static RESOURCE: MessageSchema = MessageSchema { name: "Resource", last_field: 3, messages: &[(1, &KEY_VALUE)] };
static SCOPE_PROFILES: MessageSchema =
    MessageSchema { name: "ScopeProfiles", last_field: 3, messages: &[(1, &SCOPE), (2, &PROFILE)] };
static SCOPE: MessageSchema =
    MessageSchema { name: "InstrumentationScope", last_field: 4, messages: &[(3, &KEY_VALUE)] };
static KEY_VALUE: MessageSchema = MessageSchema { name: "KeyValue", last_field: 3, messages: &[] };
static PROFILE: MessageSchema =
    MessageSchema { name: "Profile", last_field: 11, messages: &[(1, &VALUE_TYPE), (2, &SAMPLE), (5, &VALUE_TYPE)] };
static VALUE_TYPE: MessageSchema = MessageSchema { name: "ValueType", last_field: 2, messages: &[] };
static SAMPLE: MessageSchema = MessageSchema { name: "Sample", last_field: 5, messages: &[] };
static DICTIONARY: MessageSchema = MessageSchema {
    name: "ProfilesDictionary",
    last_field: 7,
    messages: &[(1, &MAPPING), (2, &LOCATION), (3, &FUNCTION), (4, &LINK), (6, &ATTRIBUTE), (7, &STACK)],
};
static MAPPING: MessageSchema = MessageSchema { name: "Mapping", last_field: 5, messages: &[] };
static LOCATION: MessageSchema = MessageSchema { name: "Location", last_field: 4, messages: &[(3, &LINE)] };
static LINE: MessageSchema = MessageSchema { name: "Line", last_field: 3, messages: &[] };
static FUNCTION: MessageSchema = MessageSchema { name: "Function", last_field: 4, messages: &[] };
static LINK: MessageSchema = MessageSchema { name: "Link", last_field: 2, messages: &[] };
static ATTRIBUTE: MessageSchema = MessageSchema { name: "KeyValueAndUnit", last_field: 3, messages: &[] };
static STACK: MessageSchema = MessageSchema { name: "Stack", last_field: 1, messages: &[] };

/// Wraps text as an attribute value.
pub(super) fn text(text: impl Into<String>) -> AnyValue {
    AnyValue { string_value: Some(Bytes::from(text.into())), ..AnyValue::default() }
}

/// Wraps a number as an attribute value.
pub(super) fn number(number: i64) -> AnyValue {
    AnyValue { int_value: Some(number), ..AnyValue::default() }
}

/// Builds an attribute of a resource or scope.
pub(super) fn attribute(key: &str, value: &AnyValue) -> KeyValue {
    KeyValue { key: Bytes::copy_from_slice(key.as_bytes()), value: Some(value.encode_to_vec().into()), key_strindex: 0 }
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

/// Suffix of the name of a value type whose values are the sample counts of another value type: `cycles:samples` counts
/// the samples behind the values of `cycles`.
pub(super) const COUNTS: &str = ":samples";
