//! pprof's gzipped protocol buffer (`go tool pprof`, Grafana, Parca, speedscope read it): all events as value types of one
//! profile, threads as labels.
//!
//! Field numbers are those of
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>; only fields that are written are here.

mod fields;
mod read;
mod tables;

pub use read::{read, sniff};

use super::format::WriteOptions;
use crate::error::Result;
use crate::model::label;
use crate::model::stacks::{Frame, FrameId, NameId, Profile, Row, Unit};
use flate2::{Compression, write::GzEncoder};
use prost::Message;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::io::Write;

#[derive(Clone, PartialEq, Message)]
struct ProfileMessage {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<SampleMessage>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<MappingMessage>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<LocationMessage>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<FunctionMessage>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct SampleMessage {
    /// Leaf first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<LabelMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelMessage {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
    #[prost(int64, tag = "3")]
    num: i64,
}

#[derive(Clone, PartialEq, Message)]
struct MappingMessage {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
    #[prost(bool, tag = "8")]
    has_filenames: bool,
    #[prost(bool, tag = "9")]
    has_line_numbers: bool,
}

#[derive(Clone, PartialEq, Message)]
struct LocationMessage {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(uint64, tag = "3")]
    address: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<LineMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct LineMessage {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct FunctionMessage {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// Writes all events.
pub fn write(profile: &Profile, _options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let file = build(profile);
    let mut gzip = GzEncoder::new(out, Compression::fast());
    gzip.write_all(&file.encode_to_vec())?;
    gzip.finish()?;
    Ok(())
}

/// The string table: position 0 is the empty string.
struct StringTable {
    list: Vec<String>,
    ids: FxHashMap<String, i64>,
}

impl StringTable {
    fn new() -> Self {
        Self { list: vec![String::new()], ids: FxHashMap::from_iter([(String::new(), 0)]) }
    }

    fn id(&mut self, text: &str) -> i64 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = self.list.len() as i64;
        self.list.push(text.to_owned());
        self.ids.insert(text.to_owned(), id);
        id
    }
}

fn build(profile: &Profile) -> ProfileMessage {
    let mut strings = StringTable::new();
    let mut file = ProfileMessage::default();
    let count = strings.id("count");
    for series in &profile.series {
        let unit = match &series.unit {
            Unit::Samples => "count",
            Unit::Nanos => "nanoseconds",
            Unit::Named(name) => name,
        };
        let samples = strings.id(&if profile.series.len() > 1 {
            format!("{}:samples", series.name)
        } else {
            "samples".to_owned()
        });
        file.sample_type.push(ValueType { r#type: samples, unit: count });
        let (name, unit) = (strings.id(&series.name), strings.id(unit));
        file.sample_type.push(ValueType { r#type: name, unit });
    }
    locations(profile, &mut strings, &mut file);
    let values = file.sample_type.len();
    let (pid, tid, comm) = (strings.id("pid"), strings.id("tid"), strings.id("thread"));
    for (at, series) in profile.series.iter().enumerate() {
        for row in &series.rows {
            let mut value = vec![0; values];
            value[2 * at] = clamp(row.count);
            value[2 * at + 1] = clamp(row.weight);
            let track = profile.track_of(row.track);
            let mut label = Vec::new();
            let numbers = [(pid, track.pid.map(|pid| pid.0)), (tid, track.tid.map(|tid| tid.0))];
            label.extend(numbers.iter().filter_map(|&(key, num)| Some(LabelMessage { key, str: 0, num: num?.into() })));
            if !track.comm.is_empty() {
                label.push(LabelMessage { key: comm, str: strings.id(&String::from_utf8_lossy(&track.comm)), num: 0 });
            }
            let location_id = profile.frames_up(row.stack).map(location_id).collect();
            file.sample.push(SampleMessage { location_id, value, label });
        }
    }
    file.duration_nanos = duration(profile.series.iter().flat_map(|series| &series.rows));
    file.string_table = strings.list;
    file
}

fn clamp(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn duration<'a>(rows: impl Iterator<Item = &'a Row>) -> i64 {
    let times = rows.filter_map(|row| row.time);
    let ends = times.fold(None, |ends: Option<(u64, u64)>, time| {
        let (first, last) = ends.unwrap_or((time.0, time.0));
        Some((first.min(time.0), last.max(time.0)))
    });
    ends.map_or(0, |(first, last)| clamp(last - first))
}

/// Ids must not be 0.
fn location_id(frame: FrameId) -> u64 {
    u64::from(frame.0) + 1
}

/// One location for each frame, one mapping for each module.
fn locations(profile: &Profile, strings: &mut StringTable, file: &mut ProfileMessage) {
    let mut mappings: FxHashMap<NameId, u64> = FxHashMap::default();
    type Known<'a> = (Cow<'a, str>, Option<NameId>, Option<NameId>);
    let mut functions: FxHashMap<Known<'_>, u64> = FxHashMap::default();
    for (id, frame) in profile.frames() {
        let mapping_id = frame.module.map_or(0, |module| {
            let next = mappings.len() as u64 + 1;
            let id = *mappings.entry(module).or_insert(next);
            if id == next {
                file.mapping.push(mapping(id, strings.id(&String::from_utf8_lossy(profile.name_of(module)))));
            }
            id
        });
        let key = (label::function(profile, frame), frame.module, frame.file);
        let next = functions.len() as u64 + 1;
        let function_id = *functions.entry(key).or_insert(next);
        if function_id == next {
            file.function.push(function(profile, frame, next, strings));
        }
        let line = vec![LineMessage { function_id, line: frame.line.into() }];
        file.location.push(LocationMessage { id: location_id(id), mapping_id, address: frame.addr.unwrap_or(0), line });
    }
}

fn mapping(id: u64, filename: i64) -> MappingMessage {
    // Told that everything is known, readers do not look for the binaries.
    MappingMessage { id, filename, has_functions: true, has_filenames: true, has_line_numbers: true }
}

fn function(profile: &Profile, frame: &Frame, id: u64, strings: &mut StringTable) -> FunctionMessage {
    let name = strings.id(&label::function(profile, frame));
    let filename = frame.file.map_or(0, |file| strings.id(&String::from_utf8_lossy(profile.name_of(file))));
    FunctionMessage { id, name, system_name: name, filename }
}
