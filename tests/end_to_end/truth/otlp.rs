//! `otlp` and `otlp-json`: the messages of profiles.proto. Of protocol buffers only the wire format is known here, and
//! the numbers of the few fields that are requested; they become what the JSON is.

use super::pprof::Message;
use super::told::{Frame, Stack, Told};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A field of protocol buffers: its number, its name in JSON, and what it holds.
enum Field {
    One(u64, &'static str, Holds),
    Many(u64, &'static str, Holds),
}

#[derive(Clone, Copy)]
enum Holds {
    Number,
    /// Eight bytes each.
    Time,
    Text,
    Fields(&'static [Field]),
}

use Field::{Many, One};
use Holds::{Fields, Number, Text, Time};

static DATA: &[Field] = &[Many(1, "resourceProfiles", Fields(RESOURCE)), One(2, "dictionary", Fields(DICTIONARY))];
const RESOURCE: &[Field] = &[Many(2, "scopeProfiles", Fields(SCOPE))];
const SCOPE: &[Field] = &[Many(2, "profiles", Fields(PROFILE))];
const PROFILE: &[Field] = &[One(1, "sampleType", Fields(VALUE_TYPE)), Many(2, "samples", Fields(SAMPLE))];
const VALUE_TYPE: &[Field] = &[One(1, "typeStrindex", Number), One(2, "unitStrindex", Number)];
const SAMPLE: &[Field] =
    &[One(1, "stackIndex", Number), Many(4, "values", Number), Many(5, "timestampsUnixNano", Time)];
const DICTIONARY: &[Field] = &[
    Many(1, "mappingTable", Fields(&[One(4, "filenameStrindex", Number)])),
    Many(2, "locationTable", Fields(LOCATION)),
    Many(3, "functionTable", Fields(&[One(1, "nameStrindex", Number)])),
    Many(5, "stringTable", Text),
    Many(7, "stackTable", Fields(&[Many(1, "locationIndices", Number)])),
];
const LOCATION: &[Field] =
    &[One(1, "mappingIndex", Number), Many(3, "lines", Fields(&[One(1, "functionIndex", Number)]))];

fn object(bytes: &[u8], fields: &[Field]) -> Value {
    let message = Message::parse(bytes);
    let mut map = Map::new();
    for field in fields {
        let (Field::One(tag, name, holds) | Field::Many(tag, name, holds)) = field;
        let bytes = message.bytes.get(tag).into_iter().flatten();
        let mut values: Vec<Value> = match holds {
            Number => message.list(*tag).into_iter().map(Value::from).collect(),
            Time => bytes.flat_map(|packed| packed.chunks(8)).map(|one| json!(one)).collect(),
            Text => bytes.map(|text| json!(std::str::from_utf8(text).unwrap())).collect(),
            Fields(fields) => bytes.map(|bytes| object(bytes, fields)).collect(),
        };
        match field {
            Field::Many(..) if !values.is_empty() => drop(map.insert((*name).to_owned(), values.into())),
            Field::One(..) if !values.is_empty() => drop(map.insert((*name).to_owned(), values.remove(0))),
            Field::One(..) | Field::Many(..) => {}
        }
    }
    map.into()
}

/// One message, or each behind its length.
pub(crate) fn read(mut bytes: &[u8], names: &[String]) -> Vec<Told> {
    if bytes.first().is_none_or(|first| [0x0a, 0x12].contains(first)) {
        return told(&[object(bytes, DATA)], names);
    }
    let mut messages = Vec::new();
    while let Some((len, rest)) = bytes.split_first_chunk() {
        let (message, rest) = rest.split_at(u32::from_be_bytes(*len) as usize);
        messages.push(object(message, DATA));
        bytes = rest;
    }
    assert!(messages.len() > 1 && bytes.is_empty());
    told(&messages, names)
}

/// A message a line.
pub(crate) fn read_json(bytes: &[u8], names: &[String]) -> Vec<Told> {
    let lines = std::str::from_utf8(bytes).unwrap().lines();
    told(&lines.map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>(), names)
}

fn list<'v>(of: &'v Value, name: &str) -> &'v [Value] {
    of.get(name).map_or(&[], |list| list.as_array().unwrap())
}

/// A number, which JSON has as a text if it may be a long one; 0 where it is left out.
fn number(value: Option<&Value>) -> u64 {
    match value {
        None => 0,
        Some(Value::String(text)) => text.parse().unwrap(),
        Some(number) => number.as_u64().unwrap(),
    }
}

fn told(messages: &[Value], names: &[String]) -> Vec<Told> {
    let mut events: BTreeMap<String, Told> = BTreeMap::new();
    // Of sums, by event.
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for message in messages {
        let tables = &message["dictionary"];
        let text = |at: u64| list(tables, "stringTable")[at as usize].as_str().unwrap().to_owned();
        for resource in list(message, "resourceProfiles") {
            for profile in list(resource, "scopeProfiles").iter().flat_map(|scope| list(scope, "profiles")) {
                let of = |name| text(number(profile["sampleType"].get(name)));
                let (name, unit) = (of("typeStrindex"), of("unitStrindex"));
                if let Some(event) = name.strip_suffix(":samples").filter(|_| unit == "count") {
                    let values = list(profile, "samples").iter().flat_map(|sample| list(sample, "values"));
                    *counts.entry(event.to_owned()).or_default() +=
                        values.map(|value| number(Some(value))).sum::<u64>();
                    continue;
                }
                let event = events.entry(name).or_default();
                event.unit = Some(unit).filter(|unit| unit != "count");
                for sample in list(profile, "samples") {
                    let (values, times) = (list(sample, "values"), list(sample, "timestampsUnixNano"));
                    let frames = stack(tables, number(sample.get("stackIndex")), &text);
                    // Rows without times are one sum of all that is alike.
                    let rows = event.rows.unwrap_or(0) + values.len() as u64;
                    event.rows = (!times.is_empty()).then_some(rows);
                    event.samples = Some(event.samples.unwrap_or(0) + times.len() as u64);
                    let weights = values.iter().map(|value| number(Some(value)));
                    event.stacks.extend(weights.map(|weight| Stack { frames: frames.clone(), weight }));
                }
            }
        }
    }
    let of = |name: &String| {
        let mut told = events.remove(name).unwrap_or_default();
        let own = (name == "samples" && told.unit.is_none()).then(|| told.total());
        told.samples = counts.get(name).copied().or(own).or(told.samples.filter(|samples| *samples > 0));
        told
    };
    names.iter().map(of).collect()
}

/// The frames of a stack, the outermost first.
fn stack(tables: &Value, at: u64, text: &dyn Fn(u64) -> String) -> Vec<Frame> {
    let stack = &list(tables, "stackTable")[at as usize];
    let mut frames = Vec::new();
    for at in list(stack, "locationIndices").iter().rev() {
        let location = &list(tables, "locationTable")[number(Some(at)) as usize];
        let mapping = number(location.get("mappingIndex"));
        let mapping = Some(mapping).filter(|at| *at > 0).map(|at| &list(tables, "mappingTable")[at as usize]);
        let module = mapping.map(|mapping| text(number(mapping.get("filenameStrindex"))));
        let lines = list(location, "lines");
        // Samples without a function are named after their file, which may be in brackets already.
        let file = || module.as_deref().and_then(|module| module.rsplit('/').next()).unwrap_or("unknown");
        if lines.is_empty() {
            let name = if file().starts_with('[') { file().to_owned() } else { format!("[{}]", file()) };
            frames.push(Frame { name, module: module.clone() });
        }
        for line in lines.iter().rev() {
            let function = &list(tables, "functionTable")[number(line.get("functionIndex")) as usize];
            frames.push(Frame { name: text(number(function.get("nameStrindex"))), module: module.clone() });
        }
    }
    frames
}
