//! The dictionary of a message that is written: what is equal is one element, and the first of each table is empty.

use super::messages::{AttributeMessage, LinkMessage, ValueMessage};
use crate::bytes::protobuf::put_field;
use prost::Message;
use rustc_hash::FxHashMap;

/// A table, encoded as the field of the dictionary that it is.
#[derive(Debug, Default)]
struct EncodedTable {
    numbers: FxHashMap<Box<[u8]>, i32>,
    bytes: Vec<u8>,
}

impl EncodedTable {
    fn put(&mut self, tag: u32, element: &[u8]) -> i32 {
        if let Some(&number) = self.numbers.get(element) {
            return number;
        }
        let number = self.numbers.len() as i32;
        put_field(tag, &[element], &mut self.bytes);
        self.numbers.insert(element.into(), number);
        number
    }
}

/// The tables of a message, in the order of their fields.
#[derive(Debug)]
pub(super) struct Tables {
    tables: [EncodedTable; 7],
    buffer: Vec<u8>,
}

/// The table; its field has the number that is one higher.
#[derive(Debug, Clone, Copy)]
pub(super) enum Which {
    Mappings,
    Locations,
    Functions,
    Links,
    Strings,
    Attributes,
    Stacks,
}

impl Tables {
    pub(super) fn new() -> Self {
        let mut tables = Self { tables: Default::default(), buffer: Vec::new() };
        for (tag, table) in (1..).zip(&mut tables.tables) {
            if tag != Which::Links as u32 + 1 {
                table.put(tag, &[]);
            }
        }
        // Some decoders want the numbers of a trace and a span in full.
        let no_link = LinkMessage { trace_id: vec![0; 16], span_id: vec![0; 8] };
        tables.message(Which::Links, &no_link);
        tables
    }

    /// The number of a message.
    pub(super) fn message(&mut self, which: Which, message: &impl Message) -> i32 {
        self.buffer.clear();
        message.encode_raw(&mut self.buffer);
        self.tables[which as usize].put(which as u32 + 1, &self.buffer)
    }

    /// The number of a text; what is none becomes one.
    pub(super) fn text(&mut self, text: &[u8]) -> i32 {
        let text = String::from_utf8_lossy(text);
        self.tables[Which::Strings as usize].put(Which::Strings as u32 + 1, text.as_bytes())
    }

    /// The number of an attribute.
    pub(super) fn attribute(&mut self, key: &str, value: ValueMessage) -> i32 {
        let key_strindex = self.text(key.as_bytes());
        self.message(Which::Attributes, &AttributeMessage { key_strindex, value: Some(value) })
    }

    /// The number of bytes that they have.
    pub(super) fn len(&self) -> usize {
        self.tables.iter().map(|table| table.bytes.len()).sum()
    }

    /// Their bytes, in order.
    pub(super) fn parts(&self) -> [&[u8]; 7] {
        self.tables.each_ref().map(|table| &table.bytes[..])
    }
}
