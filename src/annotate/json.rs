//! Writes an annotation as JSON, with whole functions and raw numbers.
//!
//! There may be millions of instructions, and building a JSON tree of all of them takes twenty times as much memory as
//! the text. So each instruction is serialized and written before the next one.

use super::costs::Costs;
use super::listing::{
    BpfSource, Calls, Code, Inclusive, Instruction, Listing, Row, SourceFile, SourceLine, Target, TargetOwner, Version,
};
use super::overview::{Annotation, EventTotal, NameSummary, Precision};
use crate::model::code::ExpandedCall;
use crate::model::lazy_list::LazyList;
use crate::symbolize::disasm::TargetKind;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};
use std::io::Write;

/// The version of the JSON format. It increases when a key is removed or changes its meaning.
const VERSION: u64 = 1;

/// Writes the annotation as one JSON object.
pub(crate) fn write(annotation: &Annotation, out: &mut dyn Write) -> crate::error::Result<()> {
    serde_json::to_writer(&mut *out, &AnnotationJson(annotation)).map_err(std::io::Error::from)?;
    Ok(writeln!(out)?)
}

/// An annotation that is serialized piece by piece.
#[derive(Clone, Copy)]
struct AnnotationJson<'a>(&'a Annotation);

/// Writes the object for the whole annotation, with keys in alphabetical order.
impl Serialize for AnnotationJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let annotation = *self;
        let Annotation { all_codes, all_names, events, names, listings, .. } = self.0;
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("all_codes", all_codes)?;
        object.serialize_entry("all_functions", all_names)?;
        object.serialize_entry("events", &LazyList(|| events.iter().map(event)))?;
        object.serialize_entry("functions", &LazyList(|| names.iter().map(|name| NameJson { annotation, name })))?;
        object.serialize_entry(
            "listings",
            &LazyList(|| listings.iter().map(|listing| ListingJson { annotation, listing })),
        )?;
        object.serialize_entry("version", &VERSION)?;
        object.end()
    }
}

/// The object for an event: its name, unit, total weight and precision, and for sampled events the number of samples.
fn event(event: &EventTotal) -> Value {
    let mut object = json!({
        "name": event.name,
        "unit": event.unit.name(),
        "weight": event.total.weight,
        "precision": event.precision.name(),
    });
    if event.precision != Precision::Exact {
        object["samples"] = json!(event.total.count);
    }
    object
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Formats an address as a hexadecimal string, because many JSON readers can't represent 64-bit integers.
fn hex(number: u64) -> String {
    format!("{number:#x}")
}

/// A function name with its costs, as an element of `functions`.
struct NameJson<'a> {
    annotation: AnnotationJson<'a>,
    name: &'a NameSummary,
}

impl Serialize for NameJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { annotation, name } = *self;
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("codes", &LazyList(|| name.codes.iter().map(|code| annotation.costs(code))))?;
        object.serialize_entry("costs", &annotation.costs(&name.costs))?;
        object.serialize_entry("module", &name.module.as_deref().map(text))?;
        object.serialize_entry("name", &text(&name.name))?;
        object.end()
    }
}

/// A listing, as an element of `listings`.
struct ListingJson<'a> {
    annotation: AnnotationJson<'a>,
    listing: &'a Listing,
}

/// Writes keys in alphabetical order, the order in which serde_json writes all other objects.
impl Serialize for ListingJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { annotation, listing } = *self;
        let mut object = serializer.serialize_map(None)?;
        if let Code::Instructions { addr, .. } = listing.code {
            object.serialize_entry("address", &hex(addr))?;
        }
        object.serialize_entry("all_versions", &listing.all_versions)?;
        object.serialize_entry("costs", &annotation.costs(&listing.costs))?;
        if !matches!(listing.code, Code::Missing(_)) {
            object.serialize_entry("files", &listing.files.iter().map(|file| text(&file.name)).collect::<Vec<_>>())?;
        }
        if !listing.inclusive.is_empty() {
            let inclusive = || listing.inclusive.iter().map(|inclusive| annotation.inclusive(inclusive));
            object.serialize_entry("inclusive", &LazyList(inclusive))?;
        }
        let rows = LazyList(|| listing.rows.iter().map(|row| annotation.row(row, listing)));
        match &listing.code {
            Code::Instructions { .. } => object.serialize_entry("instructions", &rows)?,
            Code::SourceLines => {}
            Code::Missing(why) => object.serialize_entry("missing", why)?,
        }
        object.serialize_entry("module", &listing.module.as_deref().map(text))?;
        object.serialize_entry("name", &text(&listing.name))?;
        match &listing.code {
            Code::Instructions { bytes, .. } => object.serialize_entry("size", &bytes.len())?,
            Code::SourceLines => object.serialize_entry("source_lines", &rows)?,
            Code::Missing(_) => {}
        }
        object.serialize_entry(
            "versions",
            &LazyList(|| listing.versions.iter().map(|version| annotation.version(version))),
        )?;
        object.end()
    }
}

impl AnnotationJson<'_> {
    /// An object with the number of samples and the weight of each event; for exact costs, only the weight. Events in
    /// which the cost is zero are left out.
    fn costs(&self, costs: &Costs) -> Value {
        let mut object = Map::new();
        for event in &self.0.events {
            let cost = costs.get(event.number);
            if cost.count == 0 {
                continue;
            }
            let value = match event.precision {
                Precision::Exact => json!({ "weight": cost.weight }),
                _ => json!({ "samples": cost.count, "weight": cost.weight }),
            };
            object.insert(event.name.clone(), value);
        }
        Value::Object(object)
    }

    fn inclusive(&self, inclusive: &Inclusive) -> Value {
        let file = inclusive.file.as_deref().map(text);
        json!({ "name": text(&inclusive.name), "file": file, "costs": self.costs(&inclusive.costs) })
    }

    /// The object for the calls from a line to one function.
    fn calls(&self, calls: &Calls) -> Value {
        json!({
            "function": text(&calls.callee.name),
            "file": calls.callee.file.as_deref().map(text),
            "module": calls.callee.module.as_deref().map(text),
            "count": calls.count,
            "costs": self.costs(&calls.costs),
        })
    }

    /// The object for a compiled version of a function.
    fn version(&self, version: &Version) -> Value {
        let mut object = json!({
            "number": version.number,
            "category": version.category.name(),
            "pid": version.pid.0,
            "address": version.extent.map(|(addr, _)| hex(addr)),
            "size": version.extent.map(|(_, size)| size),
            "loaded": version.loaded.map(|time| time.0),
            "costs": self.costs(&version.costs),
        });
        if let Some(BpfSource { program, program_name, function }) = &version.bpf {
            object["bpf"] = json!({
                "program": program,
                "program_name": text(program_name),
                "function": function.as_deref().map(text),
            });
        }
        if !version.expanded.is_empty() {
            object["inlined_calls"] = version.expanded.iter().map(expanded_call).collect();
        }
        object
    }

    /// The object for an instruction or a source line, with its costs and calls.
    fn row(&self, row: &Row, listing: &Listing) -> Value {
        let mut object = match &row.instruction {
            Some(instruction) => instruction_object(instruction, listing),
            None => Map::new(),
        };
        if let Some(costs) = &row.costs {
            object.insert("costs".into(), self.costs(costs));
        }
        if let Some(source) = row.source {
            put_source(&mut object, source, &listing.files);
        }
        if !row.calls.is_empty() {
            object.insert("calls".into(), row.calls.iter().map(|calls| self.calls(calls)).collect());
        }
        Value::Object(object)
    }
}

/// The address, bytes, text and target of an instruction.
fn instruction_object(instruction: &Instruction, listing: &Listing) -> Map<String, Value> {
    let mut object = Map::new();
    if let Code::Instructions { addr, bytes } = &listing.code {
        let start = usize::try_from(instruction.offset).unwrap_or(usize::MAX);
        let bytes = bytes.get(start..start.saturating_add(instruction.len as usize)).unwrap_or_default();
        let hex_digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        object.insert("address".into(), json!(hex(addr.wrapping_add(instruction.offset))));
        object.insert("bytes".into(), json!(hex_digits));
    }
    object.insert("text".into(), json!(instruction.text));
    if let Some(target) = &instruction.target {
        object.insert("target".into(), target_value(target, listing));
    }
    object
}

/// The object for the target of a branch, call or memory access.
fn target_value(target: &Target, listing: &Listing) -> Value {
    let kind = match target.kind {
        TargetKind::Jump => "jump",
        TargetKind::Call => "call",
        TargetKind::Memory => "memory",
        TargetKind::Immediate => "immediate",
    };
    let (function, offset) = match &target.owner {
        TargetOwner::Inside(offset) => (Some(text(&listing.name)), Some(*offset)),
        TargetOwner::Function(name, offset) => (Some(text(name)), Some(*offset)),
        TargetOwner::Unknown => (None, None),
    };
    json!({ "kind": kind, "address": hex(target.addr), "function": function, "offset": offset })
}

fn expanded_call(call: &ExpandedCall) -> Value {
    json!({ "function": text(&call.function), "depth": call.depth, "bytecode": call.bytecode })
}

/// Adds a source line to an object: the file's index, the line number, and the line's text if available.
fn put_source(object: &mut Map<String, Value>, source: SourceLine, files: &[SourceFile]) {
    object.insert("file".into(), json!(source.file));
    object.insert("line".into(), json!(source.line));
    if let Some(text) = files.get(source.file).and_then(|file| file.line(source.line)) {
        object.insert("source".into(), json!(text));
    }
}
