//! The changes of a message in JSON: elements in place of others, behind the last of a list, or in lists that were not there.

use super::plan::{NewLine, Plan};
use crate::bytes::splices::Splices;
use crate::error::{Error, Result};
use crate::formats::otlp::framing::no_json;
use crate::formats::otlp::message::Message;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::ops::Range;

/// The parts of `ProfilesData` that are read.
#[derive(Deserialize)]
struct Data<'t> {
    #[serde(borrow, default, alias = "resource_profiles", rename = "resourceProfiles")]
    resources: Option<Vec<Resource<'t>>>,
    #[serde(borrow)]
    dictionary: Option<&'t RawValue>,
}

#[derive(Deserialize)]
struct Resource<'t> {
    #[serde(borrow, default, alias = "scope_profiles", rename = "scopeProfiles")]
    scopes: Option<Vec<Scope<'t>>>,
}

#[derive(Deserialize)]
struct Scope<'t> {
    #[serde(borrow, default)]
    profiles: Option<Vec<JsonProfile<'t>>>,
}

#[derive(Deserialize)]
struct JsonProfile<'t> {
    #[serde(borrow, default, alias = "sample")]
    samples: Option<Vec<JsonSample<'t>>>,
}

#[derive(Deserialize)]
struct JsonSample<'t> {
    #[serde(borrow, default, alias = "stack_index", rename = "stackIndex")]
    stack: Option<&'t RawValue>,
}

#[derive(Deserialize)]
struct JsonDictionary<'t> {
    #[serde(borrow, default, alias = "location_table", rename = "locationTable")]
    locations: Option<&'t RawValue>,
    #[serde(borrow, default, alias = "function_table", rename = "functionTable")]
    functions: Option<&'t RawValue>,
    #[serde(borrow, default, alias = "string_table", rename = "stringTable")]
    strings: Option<&'t RawValue>,
    #[serde(borrow, default, alias = "stack_table", rename = "stackTable")]
    stacks: Option<&'t RawValue>,
}

#[derive(Deserialize)]
struct JsonLocation<'t> {
    #[serde(borrow, default, alias = "line")]
    lines: Option<&'t RawValue>,
}

/// The rewritten text of a message.
pub(super) fn written(text: &[u8], message: &Message<'_>, plan: &Plan) -> Result<Vec<u8>> {
    let text = std::str::from_utf8(text).map_err(|error| Error::new("is not text").because(error))?;
    let data: Data<'_> = serde_json::from_str(text).map_err(no_json)?;
    let dictionary = data.dictionary.ok_or_else(|| Error::new("has no dictionary"))?;
    let tables: JsonDictionary<'_> = serde_json::from_str(dictionary.get()).map_err(no_json)?;
    let mut edits = JsonEdits { text, splices: Splices::default() };
    if !plan.moved.is_empty() {
        edits.move_samples(&data, message, plan);
    }
    let locations: Vec<&RawValue> = match tables.locations {
        Some(list) => serde_json::from_str(list.get()).map_err(no_json)?,
        None => Vec::new(),
    };
    for (at, lines) in &plan.lines {
        let Some(location) = usize::try_from(*at).ok().and_then(|at| locations.get(at)) else { continue };
        let new = with_lines(location.get(), lines)?;
        edits.splices.replace(edits.place(location), new.into_bytes());
    }
    let copy = |(at, lines): &(u64, Vec<NewLine>)| {
        let location = usize::try_from(*at).ok().and_then(|at| locations.get(at));
        location.map_or_else(|| Ok("{}".to_owned()), |location| with_lines(location.get(), lines))
    };
    let copies = plan.copies.iter().map(copy).collect::<Result<Vec<_>>>()?;
    let functions = plan.functions.items().iter().map(|function| {
        let name = (function.name > 0).then(|| format!("\"nameStrindex\":{}", function.name));
        let file = (function.file > 0).then(|| format!("\"filenameStrindex\":{}", function.file));
        format!("{{{}}}", name.into_iter().chain(file).collect::<Vec<_>>().join(","))
    });
    let strings = plan.strings.items().iter().map(|text| serde_json::Value::from(text.as_str()).to_string());
    let stacks = plan.stacks.items().iter().map(|stack| {
        let locations: Vec<String> = stack.iter().map(u64::to_string).collect();
        format!("{{\"locationIndices\":[{}]}}", locations.join(","))
    });
    edits.append(dictionary, tables.locations, "locationTable", copies);
    edits.append(dictionary, tables.functions, "functionTable", functions.collect());
    edits.append(dictionary, tables.strings, "stringTable", strings.collect());
    edits.append(dictionary, tables.stacks, "stackTable", stacks.collect());
    let mut out = Vec::new();
    edits.splices.write(text.as_bytes(), &mut out)?;
    Ok(out)
}

struct JsonEdits<'t> {
    text: &'t str,
    splices: Splices,
}

impl JsonEdits<'_> {
    /// The place of a part of the text in it.
    fn place(&self, part: &RawValue) -> Range<usize> {
        let start = part.get().as_ptr().addr() - self.text.as_ptr().addr();
        start..start + part.get().len()
    }

    fn move_samples(&mut self, data: &Data<'_>, message: &Message<'_>, plan: &Plan) {
        let resources = data.resources.iter().flatten().zip(&message.resources);
        for (resource, read) in resources {
            let profiles = resource.scopes.iter().flatten().flat_map(|scope| scope.profiles.iter().flatten());
            let mut samples = profiles.flat_map(|profile| profile.samples.iter().flatten());
            message.samples_of(read, &mut |sample| {
                let new = plan.moved.get(&(sample.stack, sample.pid));
                if let (Some(JsonSample { stack: Some(stack) }), Some(new)) = (samples.next(), new) {
                    self.splices.replace(self.place(stack), new.to_string().into_bytes());
                }
            });
        }
    }

    /// Puts elements behind those of a list of the dictionary.
    fn append(&mut self, dictionary: &RawValue, list: Option<&RawValue>, name: &str, elements: Vec<String>) {
        if elements.is_empty() {
            return;
        }
        let (into, new) = match list.filter(|list| list.get().starts_with('[')) {
            Some(list) => (list, elements.join(",")),
            // The first of a table stands for none.
            None => (dictionary, format!("\"{name}\":[{{}},{}]", elements.join(","))),
        };
        let end = self.place(into).end - 1;
        let comma = if is_empty(into.get()) { "" } else { "," };
        self.splices.replace(end..end, format!("{comma}{new}").into_bytes());
    }
}

/// True if a list or an object has nothing in it.
fn is_empty(text: &str) -> bool {
    text.get(1..text.len() - 1).is_none_or(|inside| inside.trim_ascii().is_empty())
}

/// The text of a location that has lines.
fn with_lines(location: &str, lines: &[NewLine]) -> Result<String> {
    let line = |line: &NewLine| match line.line {
        0 => format!("{{\"functionIndex\":{}}}", line.function),
        number => format!("{{\"functionIndex\":{},\"line\":\"{number}\"}}", line.function),
    };
    let new = format!("[{}]", lines.iter().map(line).collect::<Vec<_>>().join(","));
    let read: JsonLocation<'_> = serde_json::from_str(location).map_err(no_json)?;
    let mut edits = JsonEdits { text: location, splices: Splices::default() };
    match read.lines {
        // There, and empty.
        Some(lines) => edits.splices.replace(edits.place(lines), new.into_bytes()),
        None => {
            let (end, comma) = (location.len() - 1, if is_empty(location) { "" } else { "," });
            edits.splices.replace(end..end, format!("{comma}\"lines\":{new}").into_bytes());
        }
    }
    let mut out = Vec::new();
    edits.splices.write(location.as_bytes(), &mut out)?;
    String::from_utf8(out).map_err(|error| Error::new("is not text").because(error))
}
