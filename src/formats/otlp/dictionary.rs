//! The dictionary of a message: tables shared by all its profiles, which samples refer to by index. The first element
//! of each table is empty and means "none".

use crate::analysis::mapped_pieces::place_in_file;
use crate::bytes::digits;
use crate::bytes::protobuf::{Fields, inner, numbers};
use crate::error::Result;

/// The tables of one message. Fields such as `file` and `name` of their elements are indices into `strings`.
#[derive(Debug, Default)]
pub(super) struct Dictionary<'d> {
    pub(super) mappings: Vec<Mapping<'d>>,
    pub(super) locations: Vec<Location<'d>>,
    pub(super) functions: Vec<Function>,
    pub(super) links: Vec<Link<'d>>,
    pub(super) strings: Vec<&'d [u8]>,
    /// Encoded `KeyValueAndUnit` messages.
    pub(super) attributes: Vec<&'d [u8]>,
    /// Encoded `Stack` messages.
    pub(super) stacks: Vec<&'d [u8]>,
}

/// A file, or something like a file, mapped into memory.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mapping<'d> {
    pub(super) start: u64,
    pub(super) limit: u64,
    pub(super) offset: u64,
    pub(super) file: u64,
    /// The encoded message, whose attributes are only decoded when they are needed.
    message: &'d [u8],
}

/// A code address, with its mapping.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Location<'d> {
    pub(super) mapping: u64,
    pub(super) address: u64,
    /// The encoded message, whose lines and attributes are only decoded when they are needed.
    pub(super) message: &'d [u8],
}

/// A function and a line in it. A location has several if calls were inlined.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    pub(super) function: u64,
    pub(super) line: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Function {
    pub(super) name: u64,
    pub(super) system_name: u64,
    pub(super) file: u64,
    pub(super) start_line: u64,
}

/// The trace span that a sample belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Link<'d> {
    pub(super) trace: &'d [u8],
    pub(super) span: &'d [u8],
}

/// An attribute: a key and its value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Attribute<'d> {
    pub(super) key: &'d [u8],
    pub(super) value: Value<'d>,
}

/// An attribute's value, as far as we need it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum Value<'d> {
    /// No value, or a value of a type that is not needed.
    #[default]
    Other,
    Text(&'d [u8]),
    Flag(bool),
    Number(i64),
    /// The encoded `ArrayValue`.
    List(&'d [u8]),
}

impl<'d> Dictionary<'d> {
    /// Adds the tables of an encoded dictionary. A message may contain several, which continue each other.
    pub(super) fn add(&mut self, message: &'d [u8]) -> Result<()> {
        for field in Fields::new(message) {
            let (tag, value) = field?;
            let bytes = value.bytes();
            match tag {
                1 => self.mappings.push(mapping(bytes)),
                2 => self.locations.push(location(bytes)),
                3 => self.functions.push(function(bytes)),
                4 => self.links.push(link(bytes)),
                5 => self.strings.push(bytes),
                6 => self.attributes.push(bytes),
                7 => self.stacks.push(bytes),
                _ => {}
            }
        }
        Ok(())
    }

    /// The string at an index; empty for 0 and for indices out of range.
    pub(super) fn string(&self, at: u64) -> &'d [u8] {
        entry_at(&self.strings, at).copied().unwrap_or_default()
    }

    /// Like [`Self::string`], as text; invalid UTF-8 is replaced.
    pub(super) fn text(&self, at: u64) -> String {
        String::from_utf8_lossy(self.string(at)).into_owned()
    }

    /// Decodes an attribute from the dictionary, a resource or a scope. Its key may be a string or an index.
    pub(super) fn attribute(&self, message: &'d [u8]) -> Attribute<'d> {
        let mut attribute = Attribute::default();
        for (tag, value) in inner(message) {
            match tag {
                // Field 1 is `KeyValueAndUnit.key_strindex` (a number) or `KeyValue.key` (a string).
                1 if value.number() > 0 => attribute.key = self.string(value.number()),
                1 => attribute.key = value.bytes(),
                2 => attribute.value = self.value(value.bytes()),
                // Field 3 is `KeyValue.key_strindex`, or `KeyValueAndUnit.unit_strindex` if there already is a key.
                3 if attribute.key.is_empty() => attribute.key = self.string(value.number()),
                _ => {}
            }
        }
        attribute
    }

    /// Decodes an `AnyValue`.
    pub(super) fn value(&self, message: &'d [u8]) -> Value<'d> {
        let mut read = Value::Other;
        for (tag, value) in inner(message) {
            read = match tag {
                1 => Value::Text(value.bytes()),
                2 => Value::Flag(value.number() != 0),
                3 => Value::Number(value.number() as i64),
                5 => Value::List(value.bytes()),
                8 => Value::Text(self.string(value.number())),
                _ => read,
            };
        }
        read
    }

    /// The attributes at these indices of the attribute table. Invalid indices are skipped.
    pub(super) fn attributes(&self, indices: impl Iterator<Item = u64>) -> impl Iterator<Item = Attribute<'d>> {
        indices.filter_map(|index| Some(self.attribute(entry_at(&self.attributes, index)?)))
    }

    /// The value of the first attribute with this key, if it is text. `attributes` are indices.
    pub(super) fn attribute_text(&self, attributes: impl Iterator<Item = u64>, key: &str) -> Option<&'d [u8]> {
        let attribute = self.attributes(attributes).find(|attribute| attribute.key == key.as_bytes())?;
        attribute.text()
    }
}

/// The table entry at an index; `None` for index 0, which means "none".
pub(super) fn entry_at<T>(table: &[T], index: u64) -> Option<&T> {
    if index == 0 {
        return None;
    }
    table.get(usize::try_from(index).ok()?)
}

impl<'d> Attribute<'d> {
    /// The value, if it is text.
    pub(super) fn text(&self) -> Option<&'d [u8]> {
        if let Value::Text(text) = self.value { Some(text) } else { None }
    }

    /// The value, if it is an integer or text that spells one.
    pub(super) fn number(&self) -> Option<i64> {
        match self.value {
            Value::Number(number) => Some(number),
            Value::Text(text) => digits::number(text),
            Value::Flag(_) | Value::List(_) | Value::Other => None,
        }
    }
}

fn mapping(message: &[u8]) -> Mapping<'_> {
    let [start, limit, offset, file] = numbers(message);
    Mapping { start, limit, offset, file, message }
}

fn location(message: &[u8]) -> Location<'_> {
    let [mapping, address] = numbers(message);
    Location { mapping, address, message }
}

fn function(message: &[u8]) -> Function {
    let [name, system_name, file, start_line] = numbers(message);
    Function { name, system_name, file, start_line }
}

fn link(message: &[u8]) -> Link<'_> {
    let mut link = Link::default();
    for (tag, value) in inner(message) {
        match tag {
            1 => link.trace = value.bytes(),
            2 => link.span = value.bytes(),
            _ => {}
        }
    }
    link
}

impl<'d> Mapping<'d> {
    /// Indices of the mapping's attributes.
    pub(super) fn attributes(&self) -> impl Iterator<Item = u64> + use<'d> {
        field_numbers(self.message, 5)
    }

    /// Converts an address in memory to the address in the file. Addresses outside the mapping stay as they are.
    pub(super) fn address_in_file(&self, address: u64) -> u64 {
        place_in_file(address, self.start..self.limit, self.offset)
    }
}

impl<'d> Location<'d> {
    /// Indices of the location's attributes.
    pub(super) fn attributes(&self) -> impl Iterator<Item = u64> + use<'d> {
        field_numbers(self.message, 4)
    }

    /// The functions at this location: the innermost inlined call first, the function that contains the code last.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line> + use<'d> {
        let lines = inner(self.message).filter(|(tag, _)| *tag == 3);
        lines.map(|(_, value)| {
            let [function, line] = numbers(value.bytes());
            Line { function, line }
        })
    }
}

/// All numbers in the repeated field `tag` of a message.
pub(super) fn field_numbers(message: &[u8], tag: u32) -> impl Iterator<Item = u64> {
    inner(message).filter(move |(number, _)| *number == tag).flat_map(|(_, value)| value.numbers())
}
