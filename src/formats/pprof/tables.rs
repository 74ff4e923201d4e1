//! The tables of a profile, which its samples refer to.

use crate::analysis::mapped_pieces::place_in_file;
use crate::bytes::digits::number;
use crate::bytes::protobuf::{FieldValue, Fields, inner, numbers};
use crate::error::{Result, Warnings};
use rustc_hash::FxHashMap;

/// A parsed profile; only its samples stay encoded. `name`, `unit`, `file` and `build_id` fields are string indices.
#[derive(Debug, Default)]
pub(super) struct Tables<'d> {
    pub(super) strings: Vec<&'d [u8]>,
    pub(super) sample_types: Vec<ValueType>,
    /// Encoded `Sample` messages.
    pub(super) samples: Vec<&'d [u8]>,
    /// The mappings by ID.
    pub(super) mappings: FxHashMap<u64, Mapping>,
    /// All mappings, in the order of the file.
    pub(super) mapping_order: Vec<Mapping>,
    /// The functions by ID.
    pub(super) functions: FxHashMap<u64, Function>,
    /// The locations, in the order of the file.
    pub(super) locations: Vec<Location<'d>>,
    pub(super) default_sample_type: u64,
    /// Regular expressions (string indices) for functions that viewers should hide, and for exceptions that they should
    /// keep.
    pub(super) drop_frames: u64,
    pub(super) keep_frames: u64,
    /// The sampling period: what is measured between two samples, and how much of it (`period`).
    pub(super) period_type: ValueType,
    pub(super) period: u64,
    /// The start of the profile in nanoseconds since 1970, and its duration in nanoseconds.
    pub(super) time: u64,
    pub(super) duration: u64,
}

/// A value type: its name and its unit, as string indices.
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
    pub(super) start_line: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Location<'d> {
    pub(super) id: u64,
    pub(super) mapping: u64,
    pub(super) address: u64,
    /// The encoded message, whose lines are only decoded when they are needed.
    pub(super) message: &'d [u8],
}

/// A function and a line in it. A location has several if calls were inlined.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    pub(super) function: u64,
    pub(super) line: u64,
    pub(super) column: u64,
}

impl<'d> Tables<'d> {
    /// Reads as much as possible, and warns if the file is damaged.
    pub(super) fn read(bytes: &'d [u8], warnings: &mut Warnings) -> Self {
        let mut tables = Self::default();
        for field in Fields::of(bytes) {
            match field {
                Ok((tag, value)) => tables.add(tag, value),
                Err(error) => {
                    let mut warning = error.into_warning();
                    warning.message = format!("cannot be read completely: {}", warning.message);
                    warnings.push(warning);
                }
            }
        }
        tables
    }

    /// Reads everything. Damage anywhere is an error.
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
            7 => self.drop_frames = value.number(),
            8 => self.keep_frames = value.number(),
            9 => self.time = value.number(),
            10 => self.duration = value.number(),
            11 => self.period_type = value_type(bytes),
            12 => self.period = value.number(),
            14 => self.default_sample_type = value.number(),
            _ => {}
        }
    }

    /// The string at an index; empty for 0 and for indices out of range.
    pub(super) fn string(&self, at: u64) -> &'d [u8] {
        usize::try_from(at).ok().and_then(|at| self.strings.get(at).copied()).unwrap_or_default()
    }

    /// Like [`Self::string`], as text; invalid UTF-8 is replaced.
    pub(super) fn text(&self, at: u64) -> String {
        String::from_utf8_lossy(self.string(at)).into_owned()
    }
}

fn value_type(message: &[u8]) -> ValueType {
    let [name, unit] = numbers(message);
    ValueType { name, unit }
}

fn mapping(message: &[u8]) -> (u64, Mapping) {
    let [id, start, limit, offset, file, build_id] = numbers(message);
    (id, Mapping { start, limit, offset, file, build_id })
}

fn function(message: &[u8]) -> (u64, Function) {
    let [id, name, system_name, file, start_line] = numbers(message);
    (id, Function { name, system_name, file, start_line })
}

fn location(message: &[u8]) -> Location<'_> {
    let [id, mapping, address] = numbers(message);
    Location { id, mapping, address, message }
}

impl<'d> Location<'d> {
    /// The functions at this location: the innermost inlined call first, the function that contains the code last.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line> + 'd {
        let lines = inner(self.message).filter(|(tag, _)| *tag == 4);
        lines.map(|(_, value)| {
            let [function, line, column] = numbers(value.bytes());
            Line { function, line, column }.unpack_column()
        })
    }
}

impl Line {
    /// Datadog's profiler for Node.js can store the column in the upper 32 bits of the line.
    fn unpack_column(self) -> Self {
        let (line, column) = (self.line & u64::from(u32::MAX), self.line >> 32);
        let is_packed = self.column == 0 && (1..1 << 31).contains(&column);
        if is_packed { Self { line, column, ..self } } else { self }
    }
}

impl Mapping {
    /// Converts an address in memory to the address in the file. Addresses outside the mapping stay as they are.
    pub(super) fn address_in_file(&self, address: u64) -> u64 {
        place_in_file(address, self.start..self.limit, self.offset)
    }
}

/// A label of a sample. The format doesn't define names for labels; we recognize the ones that are in use.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Label<'d> {
    pub(super) key: &'d [u8],
    /// Empty if the value is a number.
    pub(super) text: &'d [u8],
    pub(super) number: u64,
}

impl<'d> Label<'d> {
    pub(super) fn read(message: &[u8], tables: &Tables<'d>) -> Self {
        let mut label = Self::default();
        for (tag, value) in inner(message) {
            match tag {
                1 => label.key = tables.string(value.number()),
                2 => label.text = tables.string(value.number()),
                3 => label.number = value.number(),
                _ => {}
            }
        }
        label
    }

    /// The value as text; numbers are written in digits.
    pub(super) fn value(&self) -> String {
        if self.text.is_empty() { self.number.to_string() } else { String::from_utf8_lossy(self.text).into_owned() }
    }

    /// The label's value as the ID of a process, thread or CPU. Some tools write IDs as text. `None` if it is out of
    /// range.
    pub(super) fn id(&self) -> Option<i32> {
        let written = number::<i32>(self.text);
        written.or_else(|| i32::try_from(self.number).ok())
    }
}

/// True if labels with this key hold the process ID. The keys are those of Parca and jitgraft, Datadog, speedscope,
/// OpenTelemetry and Pyroscope.
pub(super) fn is_pid(key: &[u8]) -> bool {
    matches!(key, b"pid" | b"process_id" | b"process id" | b"process.pid" | b"__process_pid__")
}

/// True if labels with this key hold the thread ID.
pub(super) fn is_tid(key: &[u8]) -> bool {
    matches!(key, b"tid" | b"thread_id" | b"thread id" | b"thread.id")
}
