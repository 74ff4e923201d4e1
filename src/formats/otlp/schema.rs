//! The schema of OpenTelemetry profiles: field numbers and JSON names, as of protocol 1.10.
//!
//! Names and numbers: <https://github.com/open-telemetry/opentelemetry-proto>, `profiles/v1development/profiles.proto`,
//! `common/v1/common.proto`, `resource/v1/resource.proto`.

/// The type of a field, and how JSON represents it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// `int32` or `uint32`: a JSON number.
    Small,
    /// `bool`
    Flag,
    /// `int64`: a JSON string.
    Signed,
    /// `uint64`: a JSON string.
    Unsigned,
    /// `fixed64`: a JSON string.
    Fixed,
    /// `double`
    Double,
    /// `string`
    Text,
    /// `bytes`: base64 in JSON.
    Bytes,
    /// `bytes` with the ID of a trace or span: OTLP requires hexadecimal digits in JSON, not base64.
    Id,
    /// A nested message.
    Message(&'static Schema),
}

/// The fields of a message. Schemas are compared by address, because some of them contain themselves.
pub(super) type Schema = &'static [Field];

/// A field of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) tag: u32,
    /// The JSON name, in camel case. The `.proto` files have the same name with underscores.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Whether the field is a list.
    pub(super) repeated: bool,
}

/// A field number of our own for `Profile.sample`, the JSON name of samples in protocols 1.7 and 1.8. No protocol
/// version uses this number.
pub(super) const OLD_SAMPLES: u32 = 1000;

const fn one(tag: u32, name: &'static str, kind: Kind) -> Field {
    Field { tag, name, kind, repeated: false }
}

const fn many(tag: u32, name: &'static str, kind: Kind) -> Field {
    Field { tag, name, kind, repeated: true }
}

use Kind::{Bytes, Double, Fixed, Flag, Id, Message, Signed, Small, Text, Unsigned};

/// `ProfilesData`, and `ExportProfilesServiceRequest`, which has the same fields.
pub(super) static PROFILES_DATA: Schema =
    &[many(1, "resourceProfiles", Message(&RESOURCE_PROFILES)), one(2, "dictionary", Message(&DICTIONARY))];

static DICTIONARY: Schema = &[
    many(1, "mappingTable", Message(&MAPPING)),
    many(2, "locationTable", Message(&LOCATION)),
    many(3, "functionTable", Message(&FUNCTION)),
    many(4, "linkTable", Message(&LINK)),
    many(5, "stringTable", Text),
    many(6, "attributeTable", Message(&ATTRIBUTE)),
    many(7, "stackTable", Message(&STACK)),
];

static MAPPING: Schema = &[
    one(1, "memoryStart", Unsigned),
    one(2, "memoryLimit", Unsigned),
    one(3, "fileOffset", Unsigned),
    one(4, "filenameStrindex", Small),
    many(5, "attributeIndices", Small),
];

static LOCATION: Schema = &[
    one(1, "mappingIndex", Small),
    one(2, "address", Unsigned),
    many(3, "lines", Message(&LINE)),
    many(4, "attributeIndices", Small),
];

static LINE: Schema = &[one(1, "functionIndex", Small), one(2, "line", Signed), one(3, "column", Signed)];

static FUNCTION: Schema = &[
    one(1, "nameStrindex", Small),
    one(2, "systemNameStrindex", Small),
    one(3, "filenameStrindex", Small),
    one(4, "startLine", Signed),
];

static LINK: Schema = &[one(1, "traceId", Id), one(2, "spanId", Id)];

static ATTRIBUTE: Schema =
    &[one(1, "keyStrindex", Small), one(2, "value", Message(&VALUE)), one(3, "unitStrindex", Small)];

static STACK: Schema = &[many(1, "locationIndices", Small)];

static RESOURCE_PROFILES: Schema = &[
    one(1, "resource", Message(&RESOURCE)),
    many(2, "scopeProfiles", Message(&SCOPE_PROFILES)),
    one(3, "schemaUrl", Text),
];

static RESOURCE: Schema = &[many(1, "attributes", Message(&KEY_VALUE)), one(2, "droppedAttributesCount", Small)];

static SCOPE_PROFILES: Schema =
    &[one(1, "scope", Message(&SCOPE)), many(2, "profiles", Message(&PROFILE)), one(3, "schemaUrl", Text)];

static SCOPE: Schema = &[
    one(1, "name", Text),
    one(2, "version", Text),
    many(3, "attributes", Message(&KEY_VALUE)),
    one(4, "droppedAttributesCount", Small),
];

static KEY_VALUE: Schema = &[one(1, "key", Text), one(2, "value", Message(&VALUE)), one(3, "keyStrindex", Small)];

static VALUE: Schema = &[
    one(1, "stringValue", Text),
    one(2, "boolValue", Flag),
    one(3, "intValue", Signed),
    one(4, "doubleValue", Double),
    one(5, "arrayValue", Message(&LIST)),
    one(6, "kvlistValue", Message(&MAP)),
    one(7, "bytesValue", Bytes),
    one(8, "stringValueStrindex", Small),
];

static LIST: Schema = &[many(1, "values", Message(&VALUE))];

static MAP: Schema = &[many(1, "values", Message(&KEY_VALUE))];

static PROFILE: Schema = &[
    one(1, "sampleType", Message(&VALUE_TYPE)),
    many(2, "samples", Message(&SAMPLE)),
    one(3, "timeUnixNano", Fixed),
    one(4, "durationNano", Unsigned),
    one(5, "periodType", Message(&VALUE_TYPE)),
    one(6, "period", Signed),
    one(7, "profileId", Bytes),
    one(8, "droppedAttributesCount", Small),
    one(9, "originalPayloadFormat", Text),
    one(10, "originalPayload", Bytes),
    many(11, "attributeIndices", Small),
    many(OLD_SAMPLES, "sample", Message(&OLD_SAMPLE)),
];

/// Samples of old protocols are not decoded; their presence is enough to refuse the message.
static OLD_SAMPLE: Schema = &[];

static VALUE_TYPE: Schema = &[one(1, "typeStrindex", Small), one(2, "unitStrindex", Small)];

static SAMPLE: Schema = &[
    one(1, "stackIndex", Small),
    many(2, "attributeIndices", Small),
    one(3, "linkIndex", Small),
    many(4, "values", Signed),
    many(5, "timestampsUnixNano", Fixed),
];

/// Whether this is the schema of `Profile`.
pub(super) fn is_profile(schema: Schema) -> bool {
    std::ptr::eq(schema, PROFILE)
}

/// Whether this is the schema of `ProfilesDictionary`.
pub(super) fn is_dictionary(schema: Schema) -> bool {
    std::ptr::eq(schema, DICTIONARY)
}

/// Whether a dictionary table has this name, in camel case or with underscores.
pub(super) fn is_table(name: &[u8]) -> bool {
    let letters: Vec<u8> = name.iter().copied().filter(|byte| *byte != b'_').collect();
    DICTIONARY.iter().any(|field| field.name.as_bytes().eq_ignore_ascii_case(&letters))
}
