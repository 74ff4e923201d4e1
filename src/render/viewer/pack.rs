//! Packs the page's data into one block: named sections, each with JSON and columns. The page unpacks it with the
//! browser's own decoders.
//!
//! The block is base64 of raw deflate data (`deflate-raw`). Unpacked, it consists of the length of a JSON text (4
//! bytes, little endian), the JSON text, and the bytes of all columns. In the JSON text, `sections` holds the JSON of
//! each section. `columns` describes the columns in the order of their bytes: name (`section/column`), kind, number of
//! values, number of bytes.
//!
//! Numbers are LEB128 varints. Most columns hold small numbers or small differences, for which varints compress better
//! than fixed widths, and the page needs only one decoder.

use crate::error::Result;
use crate::model::printable::readable;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use prost::encoding::encode_varint;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;

/// A named section of the page's data, with JSON and columns.
#[derive(Debug, Clone)]
pub struct Section {
    name: &'static str,
    /// The section's JSON as text. A [`Value`] would take ten times the memory.
    json: String,
    columns: Vec<PackedColumn>,
}

#[derive(Debug, Clone)]
struct PackedColumn {
    name: String,
    kind: &'static str,
    len: usize,
    bytes: Vec<u8>,
}

impl Section {
    /// Creates an empty section. The name must be unique on the page.
    pub fn new(name: &'static str) -> Self {
        Self { name, json: Value::Null.to_string(), columns: Vec::new() }
    }

    /// Sets the section's JSON, for data that is small or nested. Strings in it are made printable.
    pub fn json(mut self, json: Value) -> Self {
        self.json = text_of(json);
        self
    }

    /// Sets the section's JSON to the object `json`, to which it adds a list under the name `field`. The list may be
    /// very long, so its values are serialized one by one.
    pub fn json_and_list(
        mut self,
        json: Map<String, Value>,
        field: &'static str,
        list: impl Iterator<Item = Value>,
    ) -> Self {
        let mut text = "[".to_owned();
        for (index, value) in list.enumerate() {
            text.push_str(if index > 0 { "," } else { "" });
            text.push_str(&text_of(value));
        }
        let fields = json.into_iter().map(|(name, value)| (name, text_of(value)));
        let fields: BTreeMap<_, _> = fields.chain([(field.to_owned(), text + "]")]).collect();
        self.json = object(fields.iter().map(|(name, text)| (&**name, &**text)));
        self
    }

    /// Adds a column of numbers. They are stored as they are, each in as many bytes as it needs (varint).
    pub fn numbers(mut self, name: impl Into<String>, numbers: impl IntoIterator<Item = u64>) -> Self {
        let (mut bytes, mut len) = (Vec::new(), 0);
        for number in numbers {
            encode_varint(number, &mut bytes);
            len += 1;
        }
        self.columns.push(PackedColumn { name: name.into(), kind: "numbers", len, bytes });
        self
    }

    /// Adds a column of numbers, stored as differences from the previous number. No number may exceed `i64::MAX`.
    pub fn deltas(mut self, name: impl Into<String>, numbers: impl IntoIterator<Item = u64>) -> Self {
        let (mut bytes, mut len, mut before) = (Vec::new(), 0, 0u64);
        for number in numbers {
            let difference = number.wrapping_sub(before) as i64;
            // Zigzag encoding: 0, -1, 1, -2 … become 0, 1, 2, 3 …
            encode_varint(((difference << 1) ^ (difference >> 63)) as u64, &mut bytes);
            before = number;
            len += 1;
        }
        self.columns.push(PackedColumn { name: name.into(), kind: "deltas", len, bytes });
        self
    }

    /// Adds a column of texts, separated by line breaks. Each text is made [`readable`], so that it contains no line
    /// breaks.
    pub fn texts<T: AsRef<str>>(mut self, name: impl Into<String>, texts: impl IntoIterator<Item = T>) -> Self {
        let (mut bytes, mut len) = (Vec::new(), 0);
        for text in texts {
            if len > 0 {
                bytes.push(b'\n');
            }
            bytes.extend_from_slice(readable(text.as_ref().as_bytes()).as_bytes());
            len += 1;
        }
        self.columns.push(PackedColumn { name: name.into(), kind: "texts", len, bytes });
        self
    }
}

/// Makes all strings of a JSON value printable, and serializes it.
fn text_of(mut json: Value) -> String {
    make_readable(&mut json);
    json.to_string()
}

/// Composes the JSON text of an object. The values are already JSON texts.
fn object<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = "{".to_owned();
    for (index, (name, value)) in fields.enumerate() {
        text.push_str(if index > 0 { "," } else { "" });
        text.push_str(&Value::from(name).to_string());
        text.push(':');
        text.push_str(value);
    }
    text + "}"
}

/// Makes all strings printable. Names come from the profiled program and may contain anything.
fn make_readable(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(shown) = readable(text.as_bytes()) {
                *text = shown;
            }
        }
        Value::Array(list) => list.iter_mut().for_each(make_readable),
        Value::Object(map) => map.values_mut().for_each(make_readable),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Writes the data of the page as one block: the length of a JSON text, the JSON text, and the bytes of all columns.
/// The block is compressed and in base64. The JSON text has the JSON of each section, and for each column its name,
/// kind, number of values and number of bytes.
pub(super) fn write(sections: &[Section], out: &mut dyn Write) -> Result<()> {
    let json: BTreeMap<&str, &str> = sections.iter().map(|section| (section.name, &*section.json)).collect();
    let columns = || sections.iter().flat_map(|section| section.columns.iter().map(move |column| (section, column)));
    let descriptions = columns().map(|(section, column)| {
        json!({
            "name": format!("{}/{}", section.name, column.name),
            "kind": column.kind,
            "length": column.len,
            "bytes": column.bytes.len(),
        })
    });
    let descriptions = descriptions.collect::<Value>().to_string();
    let json = object(json.into_iter());
    let head = object([("columns", &*descriptions), ("sections", &*json)].into_iter());
    let mut block = DeflateEncoder::new(EncoderWriter::new(out, &STANDARD), Compression::best());
    block.write_all(&(head.len() as u32).to_le_bytes())?;
    block.write_all(head.as_bytes())?;
    for (_, column) in columns() {
        block.write_all(&column.bytes)?;
    }
    // First finish the compressed data, then the base64 text.
    block.finish()?.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use std::io::Read;

    #[test]
    fn a_block_states_where_each_column_is() {
        let one =
            Section::new("one").json(json!({"a": 1})).numbers("n", [5, 300, u64::MAX]).texts("t", ["x", "", "y\nz"]);
        let two = Section::new("two").deltas("d", [10, 11, 9]);
        let few = Map::from_iter([("z".to_owned(), json!(1)), ("a".to_owned(), json!("x\ny"))]);
        let three = Section::new("three").json_and_list(few, "many", [json!(1), json!({"b": "\u{1b}"})].into_iter());
        let mut base64 = Vec::new();
        write(&[one, two, three], &mut base64).unwrap();
        let deflated = STANDARD.decode(base64).unwrap();
        let mut block = Vec::new();
        flate2::read::DeflateDecoder::new(&deflated[..]).read_to_end(&mut block).unwrap();
        let head_len = u32::from_le_bytes(block[..4].try_into().unwrap()) as usize;
        let head: Value = serde_json::from_slice(&block[4..4 + head_len]).unwrap();
        assert_eq!(head["sections"]["one"]["a"], 1);
        assert_eq!(head["sections"]["two"], Value::Null);
        let three = json!({ "a": "x\\x0ay", "many": [1, { "b": "\\x1b" }], "z": 1 });
        assert_eq!(head["sections"]["three"], three);
        let told: Vec<_> = head["columns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| {
                let (name, kind) = (column["name"].as_str().unwrap(), column["kind"].as_str().unwrap());
                format!("{name} {kind} {} {}", column["length"], column["bytes"])
            })
            .collect();
        assert_eq!(told, ["one/n numbers 3 13", "one/t texts 3 9", "two/d deltas 3 3"]);
        assert_eq!(&block[4 + head_len + 13..], b"x\n\ny\\x0az\x14\x02\x03");
    }
}
