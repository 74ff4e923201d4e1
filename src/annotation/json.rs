//! Writes an annotation as JSON, with whole functions and raw numbers.
//!
//! There may be millions of instructions, and building a JSON tree of all of them takes twenty times as much memory as
//! the text. So each instruction is serialized and written before the next one.

use super::annotated::{
    Annotation, BpfSource, Calls, Code, EventTotal, Inclusive, Line, Listing, NameSummary, Precision, SourceFile,
    SourceLine, SourceLineCosts, TargetPlace, Version,
};
use super::costs::Costs;
use crate::model::code::ExpandedCall;
use crate::model::each::Each;
use crate::resolve::disasm::TargetKind;
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

#[derive(Clone, Copy)]
struct AnnotationJson<'a>(&'a Annotation);

impl Serialize for AnnotationJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (of, annotation) = (*self, self.0);
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("all_codes", &annotation.all.1)?;
        object.serialize_entry("all_functions", &annotation.all.0)?;
        object.serialize_entry("events", &Each(|| annotation.events.iter().map(event)))?;
        object.serialize_entry("functions", &Each(|| annotation.names.iter().map(|name| NameJson { of, name })))?;
        object.serialize_entry(
            "listings",
            &Each(|| annotation.listings.iter().map(|listing| ListingJson { of, listing })),
        )?;
        object.serialize_entry("version", &VERSION)?;
        object.end()
    }
}

fn event(event: &EventTotal) -> Value {
    let mut told = json!({
        "name": event.name,
        "unit": event.unit.name(),
        "weight": event.total.weight,
        "precision": event.precision.name(),
    });
    if let Some(told) = told.as_object_mut().filter(|_| event.precision != Precision::Exact) {
        told.insert("samples".into(), json!(event.total.count));
    }
    told
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Formats an address as a hexadecimal string, because many JSON readers can't represent 64-bit integers.
fn hex(number: u64) -> String {
    format!("{number:#x}")
}

struct NameJson<'a> {
    of: AnnotationJson<'a>,
    name: &'a NameSummary,
}

impl Serialize for NameJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { of, name } = *self;
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("codes", &Each(|| name.codes.iter().map(|code| of.costs(code))))?;
        object.serialize_entry("costs", &of.costs(&name.costs))?;
        object.serialize_entry("module", &name.module.as_deref().map(text))?;
        object.serialize_entry("name", &text(&name.name))?;
        object.end()
    }
}

struct ListingJson<'a> {
    of: AnnotationJson<'a>,
    listing: &'a Listing,
}

/// Fields are written in alphabetical order, as in the other objects.
impl Serialize for ListingJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { of, listing } = *self;
        let mut object = serializer.serialize_map(None)?;
        if let Code::Listed { addr, .. } = &listing.code {
            object.serialize_entry("address", &hex(*addr))?;
        }
        object.serialize_entry("all_versions", &listing.all_versions)?;
        object.serialize_entry("costs", &of.costs(&listing.costs))?;
        match &listing.code {
            Code::SourceLines { files, .. } | Code::Listed { files, .. } => {
                object.serialize_entry("files", &files.iter().map(|file| text(&file.name)).collect::<Vec<_>>())?
            }
            Code::Missing(_) => {}
        }
        if !listing.inclusive.is_empty() {
            let each = || listing.inclusive.iter().map(|inclusive| of.inclusive(inclusive));
            object.serialize_entry("inclusive", &Each(each))?;
        }
        match &listing.code {
            Code::SourceLines { .. } => {}
            Code::Listed { addr, bytes, lines, files } => {
                let each = || lines.iter().map(|line| of.line(line, *addr, bytes, listing, files));
                object.serialize_entry("instructions", &Each(each))?;
            }
            Code::Missing(why) => object.serialize_entry("missing", why)?,
        }
        object.serialize_entry("module", &listing.module.as_deref().map(text))?;
        object.serialize_entry("name", &text(&listing.name))?;
        match &listing.code {
            Code::SourceLines { files, lines } => {
                let each = || lines.iter().map(|line| of.source_line(line, files));
                object.serialize_entry("source_lines", &Each(each))?;
            }
            Code::Listed { bytes, .. } => object.serialize_entry("size", &bytes.len())?,
            Code::Missing(_) => {}
        }
        object.serialize_entry("versions", &Each(|| listing.versions.iter().map(|version| of.version(version))))?;
        object.end()
    }
}

impl AnnotationJson<'_> {
    /// An object with the samples and the weight of each event. For exact costs, only the weight.
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

    /// Adds the calls of an instruction or line, if there are any.
    fn put_calls(&self, object: &mut Map<String, Value>, calls: &[Calls]) {
        if !calls.is_empty() {
            object.insert("calls".into(), calls.iter().map(|calls| self.calls(calls)).collect());
        }
    }

    fn calls(&self, calls: &Calls) -> Value {
        json!({
            "function": text(&calls.callee),
            "file": calls.file.as_deref().map(text),
            "module": calls.module.as_deref().map(text),
            "count": calls.count,
            "costs": self.costs(&calls.costs),
        })
    }

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
        if let (Some(fields), Some(bpf)) = (object.as_object_mut(), &version.bpf) {
            let BpfSource { program, program_name, function } = bpf;
            let bpf = json!({
                "program": program,
                "program_name": text(program_name),
                "function": function.as_deref().map(text),
            });
            fields.insert("bpf".into(), bpf);
        }
        if !version.expanded.is_empty()
            && let Some(fields) = object.as_object_mut()
        {
            fields.insert("inlined_calls".into(), version.expanded.iter().map(expanded_call).collect());
        }
        object
    }

    fn source_line(&self, line: &SourceLineCosts, files: &[SourceFile]) -> Value {
        let mut told = Map::new();
        told.insert("costs".into(), self.costs(&line.costs));
        put_source(&mut told, line.source, files);
        self.put_calls(&mut told, &line.calls);
        Value::Object(told)
    }

    fn line(&self, line: &Line, base: u64, bytes: &[u8], listing: &Listing, files: &[SourceFile]) -> Value {
        let mut object = Map::new();
        object.insert("address".into(), json!(hex(base.wrapping_add(line.offset))));
        let own = usize::try_from(line.offset).ok().and_then(|start| bytes.get(start..start + line.len as usize));
        let own: String = own.unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect();
        object.insert("bytes".into(), json!(own));
        object.insert("text".into(), json!(line.text));
        if let Some(costs) = &line.costs {
            object.insert("costs".into(), self.costs(costs));
        }
        if let Some(target) = &line.target {
            let kind = match target.kind {
                TargetKind::Jump => "jump",
                TargetKind::Call => "call",
                TargetKind::Memory => "memory",
                TargetKind::Immediate => "immediate",
            };
            let (function, offset) = match &target.place {
                TargetPlace::Inside(offset) => (Some(text(&listing.name)), Some(*offset)),
                TargetPlace::Function(name, offset) => (Some(text(name)), Some(*offset)),
                TargetPlace::Unknown => (None, None),
            };
            let address = hex(target.addr);
            let to = json!({ "kind": kind, "address": address, "function": function, "offset": offset });
            object.insert("target".into(), to);
        }
        put_source(&mut object, line.source, files);
        self.put_calls(&mut object, &line.calls);
        Value::Object(object)
    }
}

fn expanded_call(call: &ExpandedCall) -> Value {
    json!({ "function": text(&call.function), "depth": call.depth, "bytecode": call.bytecode })
}

/// Adds a source line to an object: the file's index, the line number, and the line's text if available.
fn put_source(object: &mut Map<String, Value>, source: Option<SourceLine>, files: &[SourceFile]) {
    let Some(source) = source else { return };
    object.insert("file".into(), json!(source.file));
    object.insert("line".into(), json!(source.line));
    if let Some(text) = files.get(source.file).and_then(|file| file.line(source.line)) {
        object.insert("source".into(), json!(text));
    }
}
