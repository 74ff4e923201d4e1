//! A decoded profile: its tables, which samples refer to by ID or index.

use super::messages::{LabelMessage, PprofFunction, PprofLine, PprofLocation, PprofMapping, PprofProfile, SAMPLE};
use crate::analysis::mapped_pieces::place_in_file;
use crate::bytes::digits::number;
use crate::bytes::protobuf::{FieldValue, Fields};
use crate::error::{Error, Result, Skipped, Warnings};
use prost::Message;
use prost::bytes::Bytes;
use rustc_hash::FxHashMap;

/// A decoded profile; only its samples stay encoded.
#[derive(Debug, Default)]
pub(super) struct Tables<'d> {
    pub(super) profile: PprofProfile,
    /// Encoded `Sample` messages.
    pub(super) samples: Vec<&'d [u8]>,
    /// Indices of mappings and functions by their IDs. If an ID occurs twice, the later entry counts.
    mappings: FxHashMap<u64, usize>,
    functions: FxHashMap<u64, usize>,
}

impl<'d> Tables<'d> {
    /// Decodes as much as possible, and warns about what can't be decoded.
    pub(super) fn read(bytes: &'d [u8], warnings: &mut Warnings) -> Self {
        let (mut tables, mut skipped) = (Self::default(), Skipped::new("table row"));
        for field in Fields::new(bytes) {
            match field {
                Ok((tag, value)) => {
                    if let Err(error) = tables.add(tag, value) {
                        skipped.add(error);
                    }
                }
                Err(error) => {
                    let mut warning = error.into_warning();
                    warning.message = format!("cannot be read completely: {}", warning.message);
                    warnings.push(warning);
                }
            }
        }
        warnings.extend(skipped.into_warning());
        tables
    }

    /// Decodes everything. Damage outside of samples is an error.
    pub(super) fn read_whole(bytes: &'d [u8]) -> Result<Self> {
        let mut tables = Self::default();
        for field in Fields::new(bytes) {
            let (tag, value) = field?;
            tables.add(tag, value)?;
        }
        Ok(tables)
    }

    /// Adds a field of the message `Profile`; `tag` is its number in profile.proto. Fields of later versions are
    /// ignored. A field of the wrong type counts as empty or 0. Fails if the field is a damaged message.
    fn add(&mut self, tag: u32, value: FieldValue<'d>) -> Result<()> {
        let profile = &mut self.profile;
        let bytes = value.bytes();
        let number = value.number() as i64;
        match tag {
            1 => profile.sample_type.push(decode(value)?),
            // Samples are decoded one by one when they are needed, to save memory.
            SAMPLE => self.samples.push(bytes),
            3 => {
                let mapping: PprofMapping = decode(value)?;
                // If an ID occurs twice, the later row counts.
                self.mappings.insert(mapping.id, profile.mapping.len());
                profile.mapping.push(mapping);
            }
            // Locations aren't looked up by ID here: readers go through all of them.
            4 => profile.location.push(decode(value)?),
            5 => {
                let function: PprofFunction = decode(value)?;
                self.functions.insert(function.id, profile.function.len());
                profile.function.push(function);
            }
            6 => profile.string_table.push(Bytes::copy_from_slice(bytes)),
            7 => profile.drop_frames = number,
            8 => profile.keep_frames = number,
            9 => profile.time_nanos = number,
            10 => profile.duration_nanos = number,
            11 => profile.period_type = Some(decode(value)?),
            12 => profile.period = number,
            13 => profile.comment.extend(value.numbers().map(|index| index as i64)),
            14 => profile.default_sample_type = number,
            15 => profile.doc_url = number,
            _ => {}
        }
        Ok(())
    }

    /// The string at an index; empty for 0 and for indices out of range.
    pub(super) fn string(&self, index: i64) -> &[u8] {
        let string = usize::try_from(index).ok().and_then(|index| self.profile.string_table.get(index));
        string.map_or(&[], |string| string)
    }

    /// Like [`Self::string`], as text; invalid UTF-8 is replaced.
    pub(super) fn text(&self, index: i64) -> String {
        String::from_utf8_lossy(self.string(index)).into_owned()
    }

    /// The mapping with this ID; `None` if there is none.
    pub(super) fn mapping(&self, id: u64) -> Option<&PprofMapping> {
        self.profile.mapping.get(*self.mappings.get(&id)?)
    }

    /// The function with this ID; `None` if there is none.
    pub(super) fn function(&self, id: u64) -> Option<&PprofFunction> {
        self.profile.function.get(*self.functions.get(&id)?)
    }

    /// The file that a location is in; empty if unknown.
    pub(super) fn mapped_file(&self, location: &PprofLocation) -> &[u8] {
        self.mapping(location.mapping_id).map_or(&[], |mapping| self.string(mapping.filename))
    }
}

/// Decodes a message in a field of another one.
fn decode<M: Message + Default>(value: FieldValue<'_>) -> Result<M> {
    match value {
        FieldValue::Bytes(bytes) => M::decode(bytes).map_err(|error| Error::new("a message is damaged").because(error)),
        FieldValue::Number(_) => Err(Error::new("a field has a number where a message was expected")),
    }
}

impl PprofLine {
    /// The line and the column; 0 if unknown. Datadog's profiler for Node.js can store the column in the upper 32 bits
    /// of the line.
    pub(super) fn position(&self) -> (u32, u32) {
        let (line, column) = (self.line & i64::from(u32::MAX), self.line >> 32);
        let is_packed = self.column == 0 && (1..1 << 31).contains(&column);
        let (line, column) = if is_packed { (line, column) } else { (self.line, self.column) };
        (u32::try_from(line).unwrap_or(0), u32::try_from(column).unwrap_or(0))
    }
}

impl PprofMapping {
    /// Converts an address in memory to the address in the file. Addresses outside the mapping stay as they are.
    pub(super) fn address_in_file(&self, address: u64) -> u64 {
        place_in_file(address, self.memory_start..self.memory_limit, self.file_offset)
    }
}

impl LabelMessage {
    /// The label's value as the ID of a process, thread or CPU. Some tools write IDs as text. `None` if it is out of
    /// range.
    pub(super) fn id(&self, tables: &Tables<'_>) -> Option<i32> {
        let written = number::<i32>(tables.string(self.str));
        written.or_else(|| i32::try_from(self.num).ok())
    }
}

/// True if labels with this key hold the process ID. The format doesn't define names for labels; these are the keys of
/// Parca and jitgraft, Datadog, speedscope, OpenTelemetry and Pyroscope.
pub(super) fn is_pid(key: &[u8]) -> bool {
    matches!(key, b"pid" | b"process_id" | b"process id" | b"process.pid" | b"__process_pid__")
}

/// True if labels with this key hold the thread ID.
pub(super) fn is_tid(key: &[u8]) -> bool {
    matches!(key, b"tid" | b"thread_id" | b"thread id" | b"thread.id")
}
