//! Looks up entries in the dictionary of a message. Index 0 means "none", and so do indices out of range.

use super::messages::{AnyValue, AttributeMessage, Dictionary, KeyValue, MappingMessage};
use crate::analysis::mapped_pieces::place_in_file;
use crate::bytes::digits;
use prost::Message;
use prost::bytes::Bytes;

/// An attribute: a key and its value.
#[derive(Debug, Clone, Default)]
pub(super) struct Attribute {
    pub(super) key: Bytes,
    pub(super) value: Value,
}

/// An attribute's value, as far as we need it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Value {
    /// No value, or a value of a type that is not needed.
    #[default]
    Other,
    Text(Bytes),
    Flag(bool),
    Number(i64),
    List(Vec<AnyValue>),
}

impl Dictionary {
    /// The string at an index; empty for 0 and for indices out of range.
    pub(super) fn string(&self, index: i32) -> &Bytes {
        static EMPTY: Bytes = Bytes::new();
        entry_at(&self.string_table, index).unwrap_or(&EMPTY)
    }

    /// Like [`Self::string`], as text; invalid UTF-8 is replaced.
    pub(super) fn text(&self, index: i32) -> String {
        String::from_utf8_lossy(self.string(index)).into_owned()
    }

    /// An attribute of a resource or scope. Its key may be a string or an index.
    pub(super) fn attribute(&self, attribute: &KeyValue) -> Attribute {
        let key = if attribute.key.is_empty() { self.string(attribute.key_strindex) } else { &attribute.key };
        Attribute { key: key.clone(), value: self.decode(attribute.value.as_ref()) }
    }

    fn table_attribute(&self, attribute: &AttributeMessage) -> Attribute {
        Attribute { key: self.string(attribute.key_strindex).clone(), value: self.decode(attribute.value.as_ref()) }
    }

    /// Decodes an encoded `AnyValue`. A value that is missing, damaged or nested too deeply gives [`Value::Other`].
    fn decode(&self, value: Option<&Bytes>) -> Value {
        let value = value.and_then(|value| AnyValue::decode(value.clone()).ok());
        value.map_or(Value::Other, |value| self.value(value))
    }

    /// Converts a decoded `AnyValue`. Types that jitgraft doesn't need become [`Value::Other`].
    pub(super) fn value(&self, value: AnyValue) -> Value {
        if let Some(text) = value.string_value {
            Value::Text(text)
        } else if let Some(index) = value.string_value_strindex {
            Value::Text(self.string(index).clone())
        } else if let Some(flag) = value.bool_value {
            Value::Flag(flag)
        } else if let Some(number) = value.int_value {
            Value::Number(number)
        } else if let Some(list) = value.array_value {
            Value::List(list.values)
        } else {
            Value::Other
        }
    }

    /// The attributes at these indices of the attribute table. Invalid indices are skipped.
    pub(super) fn attributes(&self, indices: &[i32]) -> impl Iterator<Item = Attribute> {
        indices.iter().filter_map(|index| Some(self.table_attribute(entry_at(&self.attribute_table, *index)?)))
    }

    /// The value of the first attribute with this key, if it is text. `attributes` are indices into the attribute
    /// table.
    pub(super) fn attribute_text(&self, attributes: &[i32], key: &str) -> Option<Bytes> {
        let attribute = self.attributes(attributes).find(|attribute| attribute.key == key.as_bytes())?;
        attribute.text().cloned()
    }
}

/// The table entry at an index; `None` for index 0, which means "none", and for indices out of range.
pub(super) fn entry_at<T>(table: &[T], index: i32) -> Option<&T> {
    if index == 0 {
        return None;
    }
    table.get(usize::try_from(index).ok()?)
}

impl Attribute {
    /// The value, if it is text.
    pub(super) fn text(&self) -> Option<&Bytes> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    /// The value, if it is an integer or text that spells one.
    pub(super) fn number(&self) -> Option<i64> {
        match &self.value {
            Value::Number(number) => Some(*number),
            Value::Text(text) => digits::number(text),
            Value::Flag(_) | Value::List(_) | Value::Other => None,
        }
    }
}

impl MappingMessage {
    /// Converts an address in memory to an offset in the mapped file. Addresses outside the mapping stay as they are.
    pub(super) fn address_in_file(&self, address: u64) -> u64 {
        place_in_file(address, self.memory_start..self.memory_limit, self.file_offset)
    }
}
