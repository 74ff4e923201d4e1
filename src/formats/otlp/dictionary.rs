//! The tables that all profiles of a message share: what their samples refer to, by place. The first of each is empty and
//! stands for nothing.

use crate::analysis::mapped_pieces::place_in_file;
use crate::bytes::digits;
use crate::bytes::protobuf::{Fields, inner, numbers};
use crate::error::Result;

/// The tables of a message.
#[derive(Debug, Default)]
pub(super) struct Dictionary<'d> {
    pub(super) mappings: Vec<Mapping<'d>>,
    pub(super) locations: Vec<Location<'d>>,
    pub(super) functions: Vec<Function>,
    pub(super) links: Vec<Link<'d>>,
    pub(super) strings: Vec<&'d [u8]>,
    /// The message of each attribute.
    pub(super) attributes: Vec<&'d [u8]>,
    /// The message of each stack.
    pub(super) stacks: Vec<&'d [u8]>,
}

/// A file, or what stands for one, in memory.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mapping<'d> {
    pub(super) start: u64,
    pub(super) limit: u64,
    pub(super) offset: u64,
    pub(super) file: u64,
    /// The message, for its attributes.
    message: &'d [u8],
}

/// A place in code.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Location<'d> {
    pub(super) mapping: u64,
    pub(super) address: u64,
    /// The message, for its lines and attributes.
    pub(super) message: &'d [u8],
}

/// A function at a line, as a location names it.
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

/// The span of a trace.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Link<'d> {
    pub(super) trace: &'d [u8],
    pub(super) span: &'d [u8],
}

/// A key and its value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Attribute<'d> {
    pub(super) key: &'d [u8],
    pub(super) value: Value<'d>,
}

/// The value of an attribute.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum Value<'d> {
    /// None, or one that nothing here requests.
    #[default]
    Other,
    Text(&'d [u8]),
    Flag(bool),
    Number(i64),
    /// The message of a list.
    List(&'d [u8]),
}

impl<'d> Dictionary<'d> {
    /// Takes the tables of one message, behind those that it has: a message may be in pieces.
    pub(super) fn add(&mut self, message: &'d [u8]) -> Result<()> {
        for field in Fields::of(message) {
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

    /// The string of that number; the empty one at 0, and where there is none.
    pub(super) fn string(&self, at: u64) -> &'d [u8] {
        at_place(&self.strings, at).copied().unwrap_or_default()
    }

    /// The same, as text.
    pub(super) fn text(&self, at: u64) -> String {
        String::from_utf8_lossy(self.string(at)).into_owned()
    }

    /// An attribute of a table, of a resource or of a scope: its key is a number, or a text.
    pub(super) fn attribute(&self, message: &'d [u8]) -> Attribute<'d> {
        let mut attribute = Attribute::default();
        for (tag, value) in inner(message) {
            match tag {
                // `KeyValueAndUnit.key_strindex`, `KeyValue.key`, `KeyValue.key_strindex`
                1 if value.number() > 0 => attribute.key = self.string(value.number()),
                1 => attribute.key = value.bytes(),
                2 => attribute.value = self.value(value.bytes()),
                // `KeyValueAndUnit.unit_strindex` has the same number.
                3 if attribute.key.is_empty() => attribute.key = self.string(value.number()),
                _ => {}
            }
        }
        attribute
    }

    /// An `AnyValue`.
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

    /// The attributes of these places.
    pub(super) fn attributes(&self, places: impl Iterator<Item = u64>) -> impl Iterator<Item = Attribute<'d>> {
        places.filter_map(|at| Some(self.attribute(at_place(&self.attributes, at)?)))
    }

    /// The text of the first attribute of that name of a mapping or location.
    pub(super) fn text_of(&self, attributes: impl Iterator<Item = u64>, key: &str) -> Option<&'d [u8]> {
        self.attributes(attributes).find(|attribute| attribute.key == key.as_bytes()).and_then(|found| found.text())
    }
}

/// The entry at that place; at 0 nothing.
pub(super) fn at_place<T>(table: &[T], at: u64) -> Option<&T> {
    usize::try_from(at).ok().filter(|at| *at > 0).and_then(|at| table.get(at))
}

impl<'d> Attribute<'d> {
    /// Its value, if that is a text.
    pub(super) fn text(&self) -> Option<&'d [u8]> {
        if let Value::Text(text) = self.value { Some(text) } else { None }
    }

    /// Its value, if that is a number, or a text that is one.
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
    /// The places of its attributes.
    pub(super) fn attributes(&self) -> impl Iterator<Item = u64> + use<'d> {
        numbers_of(self.message, 5)
    }

    /// The place in the file of an address in memory; of one that is elsewhere, itself.
    pub(super) fn in_file(&self, address: u64) -> u64 {
        place_in_file(address, self.start..self.limit, self.offset)
    }
}

impl<'d> Location<'d> {
    /// The places of its attributes.
    pub(super) fn attributes(&self) -> impl Iterator<Item = u64> + use<'d> {
        numbers_of(self.message, 4)
    }

    /// The innermost inlined call first, the function that has the code last.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line> + use<'d> {
        let lines = inner(self.message).filter(|(tag, _)| *tag == 3);
        lines.map(|(_, value)| {
            let [function, line] = numbers(value.bytes());
            Line { function, line }
        })
    }
}

/// The numbers of the repeated field of that number.
pub(super) fn numbers_of(message: &[u8], tag: u32) -> impl Iterator<Item = u64> {
    inner(message).filter(move |(of, _)| *of == tag).flat_map(|(_, value)| value.numbers())
}
