//! The tables of a profile: what its samples refer to, as the file has it.

use crate::bytes::protobuf::{FieldValue, Fields, inner};
use crate::error::{Result, Warning, Warnings};
use rustc_hash::FxHashMap;

/// All of a profile but what its samples state.
#[derive(Debug, Default)]
pub(super) struct Tables<'d> {
    pub(super) strings: Vec<&'d [u8]>,
    pub(super) sample_types: Vec<ValueType>,
    /// The place of the samples.
    pub(super) samples: Vec<&'d [u8]>,
    pub(super) mappings: FxHashMap<u64, Mapping>,
    /// The same, in the order of the file.
    pub(super) mapping_order: Vec<Mapping>,
    pub(super) functions: FxHashMap<u64, Function>,
    /// In the order of the file.
    pub(super) locations: Vec<Location<'d>>,
    pub(super) default_sample_type: u64,
    /// Measure between two samples, and how much of it.
    pub(super) period_type: ValueType,
    pub(super) period: u64,
    /// Nanoseconds since 1970, and how long it took.
    pub(super) time: u64,
    pub(super) duration: u64,
}

/// The names of a value and of its unit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ValueType {
    pub(super) name: u64,
    pub(super) unit: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) limit: u64,
    pub(super) offset: u64,
    pub(super) file: u64,
    pub(super) build_id: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Function {
    pub(super) name: u64,
    pub(super) system_name: u64,
    pub(super) file: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Location<'d> {
    pub(super) id: u64,
    pub(super) mapping: u64,
    pub(super) address: u64,
    /// The message itself, for its lines.
    message: &'d [u8],
}

/// A function at a line, as a location names it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    pub(super) function: u64,
    pub(super) line: u64,
    pub(super) column: u64,
}

impl<'d> Tables<'d> {
    /// Reads as far as it goes.
    pub(super) fn read(bytes: &'d [u8], warnings: &mut Warnings) -> Self {
        let mut tables = Self::default();
        for field in Fields::of(bytes) {
            match field {
                Ok((tag, value)) => tables.add(tag, value),
                Err(error) => {
                    let offset = error.into_warning();
                    warnings
                        .push(Warning { message: format!("cannot be read to its end: {}", offset.message), ..offset });
                }
            }
        }
        tables
    }

    /// Reads all of it: what is damaged anywhere is an error.
    pub(super) fn read_whole(bytes: &'d [u8]) -> Result<Self> {
        let mut tables = Self::default();
        for field in Fields::of(bytes) {
            let (tag, value) = field?;
            tables.add(tag, value);
        }
        Ok(tables)
    }

    fn add(&mut self, tag: u32, value: FieldValue<'d>) {
        let bytes = value.bytes();
        match tag {
            1 => self.sample_types.push(value_type(bytes)),
            2 => self.samples.push(bytes),
            3 => {
                let (id, mapping) = mapping(bytes);
                self.mappings.insert(id, mapping);
                self.mapping_order.push(mapping);
            }
            4 => self.locations.push(location(bytes)),
            5 => {
                let (id, function) = function(bytes);
                self.functions.insert(id, function);
            }
            6 => self.strings.push(bytes),
            9 => self.time = value.number(),
            10 => self.duration = value.number(),
            11 => self.period_type = value_type(bytes),
            12 => self.period = value.number(),
            14 => self.default_sample_type = value.number(),
            _ => {}
        }
    }

    /// The string of that number; the empty one at 0, and where there is none.
    pub(super) fn string(&self, at: u64) -> &'d [u8] {
        usize::try_from(at).ok().and_then(|at| self.strings.get(at).copied()).unwrap_or_default()
    }

    /// The same, as text.
    pub(super) fn text(&self, at: u64) -> String {
        String::from_utf8_lossy(self.string(at)).into_owned()
    }
}

fn value_type(message: &[u8]) -> ValueType {
    let mut value_type = ValueType::default();
    for (tag, value) in inner(message) {
        match tag {
            1 => value_type.name = value.number(),
            2 => value_type.unit = value.number(),
            _ => {}
        }
    }
    value_type
}

fn mapping(message: &[u8]) -> (u64, Mapping) {
    let (mut id, mut mapping) = (0, Mapping::default());
    for (tag, value) in inner(message) {
        match tag {
            1 => id = value.number(),
            2 => mapping.start = value.number(),
            3 => mapping.limit = value.number(),
            4 => mapping.offset = value.number(),
            5 => mapping.file = value.number(),
            6 => mapping.build_id = value.number(),
            _ => {}
        }
    }
    (id, mapping)
}

fn function(message: &[u8]) -> (u64, Function) {
    let (mut id, mut function) = (0, Function::default());
    for (tag, value) in inner(message) {
        match tag {
            1 => id = value.number(),
            2 => function.name = value.number(),
            3 => function.system_name = value.number(),
            4 => function.file = value.number(),
            _ => {}
        }
    }
    (id, function)
}

fn location(message: &[u8]) -> Location<'_> {
    let mut location = Location { message, ..Location::default() };
    for (tag, value) in inner(message) {
        match tag {
            1 => location.id = value.number(),
            2 => location.mapping = value.number(),
            3 => location.address = value.number(),
            _ => {}
        }
    }
    location
}

impl<'d> Location<'d> {
    /// Its bytes.
    pub(super) fn message(&self) -> &'d [u8] {
        self.message
    }

    /// The innermost inlined call first, the function that has the code last.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line> + 'd {
        let lines = inner(self.message).filter(|(tag, _)| *tag == 4);
        lines.map(|(_, value)| {
            let mut line = Line::default();
            for (tag, value) in inner(value.bytes()) {
                match tag {
                    1 => line.function = value.number(),
                    2 => line.line = value.number(),
                    3 => line.column = value.number(),
                    _ => {}
                }
            }
            line.unpacked()
        })
    }
}

impl Line {
    /// Datadog's profiler for node can put the column above the 32 bits of the line.
    fn unpacked(self) -> Self {
        let (line, column) = (self.line & u64::from(u32::MAX), self.line >> 32);
        let is_packed = self.column == 0 && (1..1 << 31).contains(&column);
        if is_packed { Self { line, column, ..self } } else { self }
    }
}

impl Mapping {
    /// The place in the file of an address in memory; of one that is elsewhere, itself.
    pub(super) fn in_file(&self, address: u64) -> u64 {
        match address.checked_sub(self.start) {
            Some(offset) if address < self.limit => self.offset.saturating_add(offset),
            _ => address,
        }
    }
}
