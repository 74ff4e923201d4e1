//! Builds an outgoing message and its dictionary in memory. Equal dictionary entries are stored once, and the first
//! entry of each table is empty, as the format requires.

use super::messages::{
    AnyValue, AttributeMessage, CLOCK_KEY, COUNTS, KeyValue, LOST_KEY, LinkMessage, NAMES_KEY, OWN_CLOCK, PERF_NAMES,
    ProfileMessage, SampleMessage, Scope, ValueType, attribute, number, text,
};
use crate::bytes::protobuf::put_field;
use crate::contract::rows::clamp;
use crate::model::stacks::{Profile, Series};
use prost::Message;
use prost::bytes::Bytes;
use rustc_hash::FxHashMap;

/// What distinguishes the samples of a profile: rows that agree in all of this become one sample. All fields are
/// dictionary indices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    pub(super) stack: i32,
    pub(super) attributes: Vec<i32>,
    /// Index of the trace span; 0 for none.
    pub(super) link: i32,
}

/// One measurement of a stack: its weight, the number of samples, and the time in nanoseconds since 1970 (`None` if
/// unknown).
#[derive(Debug, Clone, Copy)]
pub(super) struct Observation {
    pub(super) weight: i64,
    pub(super) count: i64,
    pub(super) time: Option<u64>,
}

/// A message under construction.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) tables: DictionaryTables,
    resources: Vec<ResourceDraft>,
    /// Upper bound in bytes for the encoded message without its dictionary tables.
    len: usize,
    /// True if no observation was added.
    pub(super) is_empty: bool,
}

/// A resource (usually a process) with its profiles.
#[derive(Debug)]
struct ResourceDraft {
    /// The encoded `Resource` message.
    resource: Vec<u8>,
    /// The encoded `InstrumentationScope` message.
    scope: Vec<u8>,
    profiles: Vec<ProfileDraft>,
}

/// The samples of one event in one resource. Those with timestamps and those without are separate profiles.
#[derive(Debug)]
struct ProfileDraft {
    name: String,
    unit: String,
    /// The sampling period in the unit of the values; 0 if unknown.
    period: i64,
    /// True if the number of samples behind each value is known. Only then can a profile of sample counts be written.
    is_counted: bool,
    /// True if the samples have timestamps.
    is_timed: bool,
    samples: Vec<SampleDraft>,
    /// The index in `samples` of the sample with each identity.
    sample_indices: FxHashMap<Identity, usize>,
    /// Where the sum of each time bucket is in its sample's `values`, by the index of the sample and the start of the
    /// bucket. Empty unless observations are added up by bucket ([`SameTime::AddUp`]).
    sums: FxHashMap<(usize, u64), usize>,
}

#[derive(Debug, Default)]
struct SampleDraft {
    identity: Identity,
    values: Vec<i64>,
    /// For each value, the number of samples that it stands for.
    counts: Vec<i64>,
    /// For each value, its time in nanoseconds since 1970. Empty if the profile isn't timed.
    times: Vec<u64>,
}

/// The longest varint, in bytes: an upper bound for a tag, a length or a number.
const LONGEST_VARINT: usize = 10;

/// What happens to several observations of the same sample at the same time. Observations without a time are always
/// added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SameTime {
    /// Each observation keeps its own value and timestamp.
    Keep,
    /// The weights and counts of the observations are added up into one value. The time is then the start of a time
    /// bucket.
    AddUp,
}

/// Which profile of the message an observation goes into.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProfileIndex {
    pub(super) resource: usize,
    pub(super) profile: usize,
}

impl Draft {
    pub(super) fn new() -> Self {
        Self { tables: DictionaryTables::new(), resources: Vec::new(), len: 0, is_empty: true }
    }

    /// Upper bound for the encoded size of the whole message, in bytes.
    pub(super) fn len(&self) -> usize {
        self.len + self.tables.len() + 2 * LONGEST_VARINT
    }

    /// Adds a resource and returns its index.
    pub(super) fn add_resource(&mut self, resource: &impl Message, scope: &Scope) -> usize {
        let (resource, scope) = (resource.encode_to_vec(), scope.encode_to_vec());
        self.len += resource.len() + scope.len() + 8 * LONGEST_VARINT;
        self.resources.push(ResourceDraft { resource, scope, profiles: Vec::new() });
        self.resources.len() - 1
    }

    /// Adds a profile for an event to a resource. `is_timed` says whether the profile's samples have timestamps.
    pub(super) fn add_profile(&mut self, resource: usize, series: &Series, is_timed: bool) -> ProfileIndex {
        let unit = series.unit.word();
        // Upper bound for the fields of two profiles, because a second one with the sample counts may follow, and for
        // their names, which only go into the string table when the message is encoded.
        self.len += 24 * LONGEST_VARINT + 2 * (series.name.len() + COUNTS.len()) + unit.len();
        let profiles = &mut self.resources[resource].profiles;
        profiles.push(ProfileDraft {
            name: series.name.clone(),
            unit: unit.to_owned(),
            period: clamp(series.period()),
            is_counted: series.is_counted(),
            is_timed,
            samples: Vec::new(),
            sample_indices: FxHashMap::default(),
            sums: FxHashMap::default(),
        });
        ProfileIndex { resource, profile: profiles.len() - 1 }
    }

    /// Adds an observation (a weight, a count and perhaps a time) to the sample with this identity, which is created if
    /// it is new. `same_time` says whether observations of one sample at the same time are added up or kept apart.
    pub(super) fn observe(
        &mut self,
        index: ProfileIndex,
        identity: &Identity,
        observation: Observation,
        same_time: SameTime,
    ) {
        self.is_empty = false;
        let profile = &mut self.resources[index.resource].profiles[index.profile];
        let sample_index = match profile.sample_indices.get(identity) {
            Some(&index) => index,
            None => {
                let new_index = profile.samples.len();
                // Upper bound for the sample's size, twice: it is in the profile of weights and in that of sample
                // counts.
                self.len += 2 * (7 + identity.attributes.len()) * LONGEST_VARINT;
                profile.samples.push(SampleDraft { identity: identity.clone(), ..SampleDraft::default() });
                profile.sample_indices.insert(identity.clone(), new_index);
                new_index
            }
        };
        let sample = &mut profile.samples[sample_index];
        let next_index = sample.values.len();
        // The index, in the sample's `values`, of the value to which the observation is added; `next_index` if it
        // becomes a new value.
        let value_index = match (observation.time, same_time) {
            // Without times, a sample has only one value.
            (None, _) => 0,
            (Some(time), SameTime::AddUp) => *profile.sums.entry((sample_index, time)).or_insert(next_index),
            (Some(_), SameTime::Keep) => next_index,
        };
        if let Some(value) = sample.values.get_mut(value_index)
            && let Some(count) = sample.counts.get_mut(value_index)
        {
            *value = value.saturating_add(observation.weight);
            *count = count.saturating_add(observation.count);
        } else {
            sample.values.push(observation.weight);
            sample.counts.push(observation.count);
            sample.times.extend(observation.time);
            // The profile of weights and the profile of sample counts each get a number and a timestamp of eight bytes.
            self.len += 2 * (8 + LONGEST_VARINT);
        }
    }

    /// Encodes the whole message, a `ProfilesData`: field 1 is a `ResourceProfiles`, field 2 the dictionary. A
    /// `ResourceProfiles` has the resource (field 1) and a `ScopeProfiles` (2), and that has the scope (1) and the
    /// profiles (2).
    pub(super) fn encode(mut self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len());
        // Take the resources out of `self`, because encoding their profiles also changes `self.tables`.
        for resource in std::mem::take(&mut self.resources) {
            let mut scope_profiles = Vec::new();
            put_field(1, &[&resource.scope], &mut scope_profiles);
            for profile in &resource.profiles {
                profile.encode(&mut self.tables, &mut scope_profiles);
            }
            let mut resource_profiles = Vec::new();
            put_field(1, &[&resource.resource], &mut resource_profiles);
            put_field(2, &[&scope_profiles], &mut resource_profiles);
            put_field(1, &[&resource_profiles], &mut out);
        }
        put_field(2, &self.tables.parts(), &mut out);
        out
    }
}

impl ProfileDraft {
    /// Appends the profile of weights to a scope. A profile of sample counts follows if the counts say anything that
    /// the weights don't.
    fn encode(&self, tables: &mut DictionaryTables, out: &mut Vec<u8>) {
        let weights = ValueType {
            type_strindex: tables.text(self.name.as_bytes()),
            unit_strindex: tables.text(self.unit.as_bytes()),
        };
        self.encode_one(weights, self.period, |sample| &sample.values, out);
        if self.is_counted && self.counts_say_more() {
            let name = format!("{}{COUNTS}", self.name);
            let counts =
                ValueType { type_strindex: tables.text(name.as_bytes()), unit_strindex: tables.text(b"count") };
            self.encode_one(counts, 0, |sample| &sample.counts, out);
        }
    }

    /// True if sample counts say anything that the weights don't. They say nothing if each value has a timestamp and
    /// stands for one sample, because readers assume that anyway.
    fn counts_say_more(&self) -> bool {
        let mut samples = self.samples.iter();
        samples.any(|sample| !self.is_timed || sample.counts.iter().any(|count| *count != 1))
    }

    /// Appends a profile to a scope (as its field 2) with the values that `values` returns for each sample. `period` is
    /// the sampling period in the unit of the values; 0 if unknown.
    fn encode_one(
        &self,
        value_type: ValueType,
        period: i64,
        values: impl Fn(&SampleDraft) -> &Vec<i64>,
        out: &mut Vec<u8>,
    ) {
        let times = || self.samples.iter().flat_map(|sample| &sample.times).copied();
        let (first, last) = (times().min().unwrap_or(0), times().max());
        let message = ProfileMessage {
            sample_type: Some(value_type),
            time_unix_nano: first,
            // One nanosecond more than the difference, because the duration must include the last timestamp.
            duration_nano: last.map_or(0, |last| (last - first).saturating_add(1)),
            period_type: if period > 0 { Some(value_type) } else { None },
            period: period.max(0),
            ..ProfileMessage::default()
        };
        // The samples (field 2) are appended after the other fields, because a profile's value type (field 1) has to
        // come first: readers, ours too, recognize a profile by it.
        let mut bytes = message.encode_to_vec();
        for sample in &self.samples {
            let message = SampleMessage {
                stack_index: sample.identity.stack,
                attribute_indices: sample.identity.attributes.clone(),
                link_index: sample.identity.link,
                values: values(sample).clone(),
                timestamps_unix_nano: sample.times.clone(),
            };
            prost::encoding::message::encode(2, &message, &mut bytes);
        }
        put_field(2, &[&bytes], out);
    }
}

/// The instrumentation scope of a profile, with our own attributes about the recording. `has_epoch` says whether its
/// timestamps are on the wall clock. `lost` is the number of samples that the recorder lost; pass it for one scope of a
/// recording only, so that it is not counted twice.
pub(super) fn scope(profile: &Profile, has_epoch: bool, lost: u64) -> Scope {
    let mut attributes = Vec::new();
    // Says that names are spelled as perf spells them. jitgraft needs to know this if it reads the message back,
    // because some of its writers spell such names differently.
    if profile.perf_names {
        attributes.push(scope_attribute(NAMES_KEY, text(String::from_utf8_lossy(PERF_NAMES))));
    }
    // The timestamps are on the recording's own clock, so readers must not take them for dates.
    if profile.about.sampled.is_some() && !has_epoch {
        attributes.push(scope_attribute(CLOCK_KEY, text(String::from_utf8_lossy(OWN_CLOCK))));
    }
    if lost > 0 {
        attributes.push(scope_attribute(LOST_KEY, number(clamp(lost))));
    }
    let version = Bytes::from(env!("CARGO_PKG_VERSION"));
    Scope { name: Bytes::from("jitgraft"), version, attributes, dropped_attributes_count: 0 }
}

fn scope_attribute(key: &[u8], value: AnyValue) -> KeyValue {
    attribute(&String::from_utf8_lossy(key), &value)
}

/// A dictionary table whose elements are encoded already.
#[derive(Debug, Default)]
struct EncodedTable {
    /// The index of each element, by its encoded bytes.
    indices: FxHashMap<Box<[u8]>, i32>,
    /// All elements as fields of the `ProfilesDictionary` message.
    bytes: Vec<u8>,
}

impl EncodedTable {
    /// The index of an encoded element. If it is new, it is added as a field with the number `tag`.
    fn put(&mut self, tag: u32, element: &[u8]) -> i32 {
        if let Some(&index) = self.indices.get(element) {
            return index;
        }
        let index = self.indices.len() as i32;
        put_field(tag, &[element], &mut self.bytes);
        self.indices.insert(element.into(), index);
        index
    }
}

/// The dictionary's tables, in the order of their field numbers.
#[derive(Debug)]
pub(super) struct DictionaryTables {
    tables: [EncodedTable; 7],
    /// Holds the element that is being added, so that no memory has to be allocated for each.
    buffer: Vec<u8>,
}

/// A table of the dictionary. Its field number in `ProfilesDictionary` is the variant's discriminant plus 1.
#[derive(Debug, Clone, Copy)]
pub(super) enum TableKind {
    Mappings,
    Locations,
    Functions,
    Links,
    Strings,
    Attributes,
    Stacks,
}

impl DictionaryTables {
    /// Creates tables that only have their first element, which is empty and means "none".
    pub(super) fn new() -> Self {
        let mut tables = Self { tables: Default::default(), buffer: Vec::new() };
        // `tag` is the number of the table's field: its `TableKind` plus 1.
        for (tag, table) in (1..).zip(&mut tables.tables) {
            // All tables but that of links start with an empty element. The first link, added below, has fields.
            if tag != TableKind::Links as u32 + 1 {
                table.put(tag, &[]);
            }
        }
        // Some decoders require trace and span IDs of full length, even in the empty link.
        let no_link = LinkMessage { trace_id: Bytes::from_static(&[0; 16]), span_id: Bytes::from_static(&[0; 8]) };
        tables.message(TableKind::Links, &no_link);
        tables
    }

    /// Adds an element to a table, unless it is there already, and returns its index.
    pub(super) fn message(&mut self, kind: TableKind, message: &impl Message) -> i32 {
        self.buffer.clear();
        message.encode_raw(&mut self.buffer);
        self.tables[kind as usize].put(kind as u32 + 1, &self.buffer)
    }

    /// Adds a string and returns its index. Invalid UTF-8 is replaced.
    pub(super) fn text(&mut self, text: &[u8]) -> i32 {
        let text = String::from_utf8_lossy(text);
        self.tables[TableKind::Strings as usize].put(TableKind::Strings as u32 + 1, text.as_bytes())
    }

    /// Adds an attribute and returns its index.
    pub(super) fn attribute(&mut self, key: &str, value: AnyValue) -> i32 {
        let key_strindex = self.text(key.as_bytes());
        let value = Some(Bytes::from(value.encode_to_vec()));
        self.message(TableKind::Attributes, &AttributeMessage { key_strindex, value, unit_strindex: 0 })
    }

    /// Size of all tables, in bytes.
    pub(super) fn len(&self) -> usize {
        self.tables.iter().map(|table| table.bytes.len()).sum()
    }

    /// The encoded tables, in the order of their field numbers.
    pub(super) fn parts(&self) -> [&[u8]; 7] {
        self.tables.each_ref().map(|table| &table.bytes[..])
    }
}
