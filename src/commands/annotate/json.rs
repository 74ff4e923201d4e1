//! Everything as JSON, for programs: whole functions, raw numbers.

use super::annotation::{
    Annotation, BpfSource, Code, EventTotal, Line, Listing, NameSummary, Precision, SourceFile, SourceLine,
    TargetPlace, Version,
};
use super::costs::Costs;
use crate::error::Result;
use crate::model::code::ExpandedCall;
use crate::model::stacks::Unit;
use crate::resolve::disasm::TargetKind;
use serde_json::{Map, Value, json};
use std::io::Write;

/// Writes one object.
pub(super) fn write(annotation: &Annotation, out: &mut dyn Write) -> Result<()> {
    let of = Of { annotation };
    let value = json!({
        "events": annotation.events.iter().map(event).collect::<Vec<_>>(),
        "functions": annotation.names.iter().map(|name| of.name(name)).collect::<Vec<_>>(),
        "all_functions": annotation.all.0,
        "all_codes": annotation.all.1,
        "listings": annotation.listings.iter().map(|listing| of.listing(listing)).collect::<Vec<_>>(),
    });
    serde_json::to_writer(&mut *out, &value).map_err(std::io::Error::from)?;
    Ok(writeln!(out)?)
}

fn event(event: &EventTotal) -> Value {
    let unit = match &event.unit {
        Unit::Nanos => "nanoseconds",
        Unit::Samples => "samples",
        Unit::Named(name) => name,
    };
    let mut told = json!({
        "name": event.name,
        "unit": unit,
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

/// Numbers as `0x…`: JSON's own are no 64-bit integers to many readers.
fn hex(number: u64) -> String {
    format!("{number:#x}")
}

struct Of<'a> {
    annotation: &'a Annotation,
}

impl Of<'_> {
    /// Samples and weight for each event; what is counted exactly has a weight alone, by its name.
    fn costs(&self, costs: &Costs) -> Value {
        let each = self.annotation.events.iter().filter_map(|event| {
            let cost = costs.get(event.number);
            let told = match event.precision {
                Precision::Exact => json!({ "weight": cost.weight }),
                _ => json!({ "samples": cost.count, "weight": cost.weight }),
            };
            (cost.count > 0).then(|| (event.name.clone(), told))
        });
        Value::Object(each.collect())
    }

    fn name(&self, name: &NameSummary) -> Value {
        json!({
            "name": text(&name.name),
            "module": name.module.as_deref().map(text),
            "costs": self.costs(&name.costs),
            "codes": name.codes.iter().map(|code| self.costs(code)).collect::<Vec<_>>(),
        })
    }

    fn version(&self, version: &Version) -> Value {
        let mut told = json!({
            "number": version.number,
            "category": version.category.name(),
            "pid": version.pid.0,
            "address": version.extent.map(|(addr, _)| hex(addr)),
            "size": version.extent.map(|(_, size)| size),
            "loaded": version.loaded.map(|time| time.0),
            "costs": self.costs(&version.costs),
        });
        if let (Some(told), Some(bpf)) = (told.as_object_mut(), &version.bpf) {
            let BpfSource { program, program_name, function } = bpf;
            let bpf = json!({
                "program": program,
                "program_name": text(program_name),
                "function": function.as_deref().map(text),
            });
            told.insert("bpf".into(), bpf);
        }
        let call = |call: &ExpandedCall| json!({ "function": text(&call.function), "depth": call.depth, "bytecode": call.bytecode });
        if let Some(told) = told.as_object_mut().filter(|_| !version.expanded.is_empty()) {
            told.insert("inlined_calls".into(), version.expanded.iter().map(call).collect());
        }
        told
    }

    fn listing(&self, listing: &Listing) -> Value {
        let mut value = json!({
            "name": text(&listing.name),
            "module": listing.module.as_deref().map(text),
            "versions": listing.versions.iter().map(|version| self.version(version)).collect::<Vec<_>>(),
            "all_versions": listing.all_versions,
            "costs": self.costs(&listing.costs),
        });
        let Some(object) = value.as_object_mut() else { return value };
        match &listing.code {
            Code::SourceLines { files, lines } => {
                object.insert("files".into(), file_names(files));
                let lines = lines.iter().map(|line| {
                    let mut told = Map::new();
                    told.insert("costs".into(), self.costs(&line.costs));
                    put_source(&mut told, line.source, files);
                    Value::Object(told)
                });
                object.insert("source_lines".into(), Value::Array(lines.collect()));
            }
            Code::Missing(why) => drop(object.insert("missing".into(), json!(why))),
            Code::Listed { addr, bytes, lines, files } => {
                object.insert("address".into(), json!(hex(*addr)));
                object.insert("size".into(), json!(bytes.len()));
                object.insert("files".into(), file_names(files));
                let lines = lines.iter().map(|line| self.line(line, *addr, bytes, listing, files));
                object.insert("instructions".into(), Value::Array(lines.collect()));
            }
        }
        value
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
        Value::Object(object)
    }
}

fn file_names(files: &[SourceFile]) -> Value {
    json!(files.iter().map(|file| text(&file.name)).collect::<Vec<_>>())
}

/// The number of the file, the line, and its text where that is here.
fn put_source(object: &mut Map<String, Value>, source: Option<SourceLine>, files: &[SourceFile]) {
    let Some(source) = source else { return };
    object.insert("file".into(), json!(source.file));
    object.insert("line".into(), json!(source.line));
    if let Some(text) = files.get(source.file).and_then(|file| file.line(source.line)) {
        object.insert("source".into(), json!(text));
    }
}
