//! The tables of a profile: what its samples refer to, as the file has it.

use crate::analysis::mapped_pieces::place_in_file;
use crate::bytes::digits::number;
use crate::bytes::protobuf::{FieldValue, Fields, inner, numbers};
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
    /// Regular expressions of functions that viewers leave out, and of those that they don't.
    pub(super) drop_frames: u64,
    pub(super) keep_frames: u64,
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
    pub(super) start_line: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Location<'d> {
    pub(super) id: u64,
    pub(super) mapping: u64,
    pub(super) address: u64,
    /// The message itself, for its lines.
    pub(super) message: &'d [u8],
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
    /// The innermost inlined call first, the function that has the code last.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line> + 'd {
        let lines = inner(self.message).filter(|(tag, _)| *tag == 4);
        lines.map(|(_, value)| {
            let [function, line, column] = numbers(value.bytes());
            Line { function, line, column }.unpacked()
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
        place_in_file(address, self.start..self.limit, self.offset)
    }
}

/// A label of a sample. There are no agreed names for them; those that are looked for are in use.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Label<'d> {
    pub(super) key: &'d [u8],
    /// Empty if it is a number.
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

    /// Its text, or its number.
    pub(super) fn value(&self) -> String {
        if self.text.is_empty() { self.number.to_string() } else { String::from_utf8_lossy(self.text).into_owned() }
    }

    /// The number of a process, thread or processor, which may be written as a text.
    pub(super) fn id(&self) -> Option<i32> {
        let written = number::<i32>(self.text);
        written.or_else(|| i32::try_from(self.number).ok())
    }
}

/// True if a label gives the process: Parca's and ours, Datadog's, speedscope's, OpenTelemetry's, Pyroscope's.
pub(super) fn is_pid(key: &[u8]) -> bool {
    matches!(key, b"pid" | b"process_id" | b"process id" | b"process.pid" | b"__process_pid__")
}

/// True if a label gives the thread.
pub(super) fn is_tid(key: &[u8]) -> bool {
    matches!(key, b"tid" | b"thread_id" | b"thread id" | b"thread.id")
}
