//! Plans and writes the changes to a pprof profile. Locations get `Line` messages, which name their functions. A
//! location that is a different function in different processes is copied, so that each function has its own.

use super::uses::{SampleCalls, Use, Uses};
use crate::bytes::protobuf::{FieldValue, Fields, put_field};
use crate::contract::unsymbolized::{Ask, Meaning, NamedCall, meanings};
use crate::error::{Error, Result};
use crate::formats::pprof::messages::{PprofFunction, PprofLine};
use crate::formats::pprof::tables::Tables;
use crate::model::interner::Interner;
use prost::encoding;
use rustc_hash::FxHashMap;
use std::io::Write;

/// All changes to a profile.
#[derive(Debug)]
pub(super) struct Edits {
    names: NewNames,
    lines: NewLines,
    copies: Vec<LocationCopy>,
    /// For each use that gets a copy instead of the original location: the ID of the copy.
    moved: FxHashMap<Use, u64>,
    /// Whether each location has copies, by its index. Locations beyond the end have none.
    has_copies: Vec<bool>,
}

/// The new `Line` messages of existing locations, encoded.
#[derive(Debug, Default)]
struct NewLines {
    bytes: Vec<u8>,
    /// For each location that gets lines, in ascending order: its index, and where its lines end in `bytes`.
    ends: Vec<(u32, usize)>,
}

/// A copy of a location, for uses that mean another function than the original.
#[derive(Debug)]
struct LocationCopy {
    location: u32,
    id: u64,
    lines: Vec<u8>,
}

impl Edits {
    /// Asks for the names of all addresses, and plans the changes. Fails if there are no IDs left for new locations or
    /// functions.
    pub(super) fn plan(tables: &Tables<'_>, uses: &Uses, ask: &Ask<'_>) -> Result<Self> {
        let (names, lines, copies) = (NewNames::new(tables), NewLines::default(), Vec::new());
        let mut edits = Self { names, lines, copies, moved: FxHashMap::default(), has_copies: Vec::new() };
        let mut last_id = tables.locations.iter().map(|location| location.id).max().unwrap_or(0);
        let calls = |one: &Use| uses.address_index(one, tables).map(ask).unwrap_or_default();
        for of_location in uses.list.chunk_by(|a, b| a.location == b.location) {
            if let [one] = of_location {
                edits.add_lines(one.location, &calls(one))?;
                continue;
            }
            let mut meanings = meanings(of_location, calls).into_iter();
            if let (Some(first), Some(one)) = (meanings.next(), of_location.first()) {
                edits.add_lines(one.location, &first.calls)?;
            }
            for other in meanings {
                last_id = next_id(last_id, 0, "location")?;
                edits.add_copy(&other, last_id)?;
            }
        }
        Ok(edits)
    }

    /// Adds a line for each call to the location with this index. `calls` may be empty.
    fn add_lines(&mut self, location: u32, calls: &[NamedCall<'_>]) -> Result<()> {
        if !calls.is_empty() {
            self.names.encode_lines(calls, &mut self.lines.bytes)?;
            self.lines.ends.push((location, self.lines.bytes.len()));
        }
        Ok(())
    }

    /// Adds a copy of a location, for the uses that mean another function than the original. `id` is the ID of the
    /// copy.
    fn add_copy(&mut self, meaning: &Meaning<'_, Use>, id: u64) -> Result<()> {
        let Some(one) = meaning.uses.first() else { return Ok(()) };
        let mut lines = Vec::new();
        self.names.encode_lines(&meaning.calls, &mut lines)?;
        self.has_copies.resize(self.has_copies.len().max(one.location as usize + 1), false);
        self.has_copies[one.location as usize] = true;
        self.copies.push(LocationCopy { location: one.location, id, lines });
        self.moved.extend(meaning.uses.iter().map(|one| (*one, id)));
        Ok(())
    }

    /// Writes the profile with all changes; `bytes` is the original.
    pub(super) fn write(&self, bytes: &[u8], tables: &Tables<'_>, uses: &Uses, out: &mut dyn Write) -> Result<()> {
        let (mut lines, mut location) = (self.lines.iter().peekable(), 0);
        let mut calls = SampleCalls::default();
        // Where the current field starts, and up to where everything has been written.
        let (mut field_start, mut written) = (0, 0);
        let mut changed = Vec::new();
        let mut fields = Fields::of(bytes);
        while let Some(field) = fields.next() {
            let (tag, value) = field?;
            let (range, message) = (field_start..fields.offset(), value.bytes());
            field_start = range.end;
            match tag {
                2 if !self.moved.is_empty() => {
                    let Some(sample) = self.move_sample(message, &mut calls, tables, uses) else { continue };
                    put_field(tag, &[&sample], &mut changed);
                }
                4 => {
                    let new_lines = lines.next_if(|(index, _)| *index == location);
                    location += 1;
                    let Some((_, lines)) = new_lines else { continue };
                    put_field(tag, &[message, lines], &mut changed);
                }
                _ => continue,
            }
            out.write_all(bytes.get(written..range.start).unwrap_or_default())?;
            out.write_all(&changed)?;
            changed.clear();
            written = range.end;
        }
        out.write_all(bytes.get(written..).unwrap_or_default())?;
        Ok(out.write_all(&self.appended_fields(tables))?)
    }

    /// The ID of the copy that replaces the location at one depth of a sample; `None` if the location stays.
    fn copy_id(&self, calls: &SampleCalls, depth: usize, uses: &Uses) -> Option<u64> {
        let one = uses.get(calls, depth)?;
        // Most locations have no copies, so most look-ups are avoided.
        if !self.has_copies.get(one.location as usize).copied().unwrap_or(false) {
            return None;
        }
        self.moved.get(&one).copied()
    }

    /// The sample with the IDs of copies in place of the originals; `None` if it doesn't change.
    fn move_sample(
        &self,
        message: &[u8],
        calls: &mut SampleCalls,
        tables: &Tables<'_>,
        uses: &Uses,
    ) -> Option<Vec<u8>> {
        calls.read(message, tables).ok()?;
        (0..calls.locations.len()).find_map(|depth| self.copy_id(calls, depth, uses))?;
        let locations = calls.locations.iter().enumerate();
        let mut ids = locations.map(|(depth, id)| self.copy_id(calls, depth, uses).unwrap_or(*id));
        let (mut out, mut start, mut fields) = (Vec::new(), 0, Fields::of(message));
        while let Some(Ok((tag, value))) = fields.next() {
            let raw = message.get(start..fields.offset())?;
            start = fields.offset();
            match (tag, value) {
                (1, FieldValue::Number(_)) => encoding::uint64::encode(1, &ids.next()?, &mut out),
                (1, FieldValue::Bytes(_)) => {
                    let some: Vec<u64> = ids.by_ref().take(value.numbers().count()).collect();
                    encoding::uint64::encode_packed(1, &some, &mut out);
                }
                _ => out.extend_from_slice(raw),
            }
        }
        Some(out)
    }

    /// Encodes the fields to append to the profile: copies of locations, new functions and new strings.
    fn appended_fields(&self, tables: &Tables<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        for copy in &self.copies {
            let message = tables.locations.get(copy.location as usize).map_or(&[][..], |location| location.message);
            put_field(4, &[&with_id(message, copy.id), &copy.lines[..]], &mut out);
        }
        self.names.encode(&mut out);
        out
    }
}

impl NewLines {
    /// Each location's index with its encoded lines.
    fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |&(location, end)| {
            let lines = self.bytes.get(start..end).unwrap_or_default();
            start = end;
            (location, lines)
        })
    }
}

/// Encodes a location again, with another ID.
fn with_id(message: &[u8], id: u64) -> Vec<u8> {
    let (mut out, mut start, mut fields) = (Vec::new(), 0, Fields::of(message));
    encoding::uint64::encode(1, &id, &mut out);
    while let Some(Ok((tag, _))) = fields.next() {
        let raw = message.get(start..fields.offset()).unwrap_or_default();
        start = fields.offset();
        if tag != 1 {
            out.extend_from_slice(raw);
        }
    }
    out
}

/// New functions and strings, which are appended to the file.
#[derive(Debug)]
struct NewNames {
    /// The number of strings in the file, without the new ones.
    old_strings: usize,
    strings: Interner<String, u32>,
    /// The highest function ID in the file.
    last_function: u64,
    /// The new functions, each as the string indices of its name and its file.
    functions: Interner<(i64, i64), u32>,
}

impl NewNames {
    fn new(tables: &Tables<'_>) -> Self {
        let last_function = tables.functions.keys().copied().max().unwrap_or(0);
        let (strings, functions) = (Interner::default(), Interner::default());
        Self { old_strings: tables.strings.len(), strings, last_function, functions }
    }

    /// Encodes the lines for a location, the innermost call first.
    fn encode_lines(&mut self, calls: &[NamedCall<'_>], out: &mut Vec<u8>) -> Result<()> {
        for call in calls {
            let line = PprofLine { function_id: self.function(call)?, line: call.line.into() };
            encoding::message::encode(4, &line, out);
        }
        Ok(())
    }

    fn function(&mut self, call: &NamedCall<'_>) -> Result<u64> {
        let names = (self.string(call.name), self.string(call.file));
        next_id(self.last_function, self.functions.intern(names), "function")
    }

    /// The index of a string, which is added if it is new. Invalid UTF-8 is replaced. Index 0 is the empty string.
    fn string(&mut self, text: &[u8]) -> i64 {
        if text.is_empty() {
            return 0;
        }
        self.old_strings as i64 + i64::from(self.strings.number(&*String::from_utf8_lossy(text)))
    }

    /// Encodes the new functions and strings as fields of the profile.
    fn encode(&self, out: &mut Vec<u8>) {
        for (place, &(name, filename)) in (1..).zip(self.functions.items()) {
            let function =
                PprofFunction { id: self.last_function + place, name, system_name: name, filename, start_line: 0 };
            encoding::message::encode(5, &function, out);
        }
        self.strings.items().iter().for_each(|string| encoding::string::encode(6, string, out));
    }
}

/// The ID of a new entry. `last` is the highest ID in the file, and `place` is the number of new entries before this
/// one. Fails if the ID doesn't fit into 64 bits.
fn next_id(last: u64, place: u32, what: &str) -> Result<u64> {
    last.checked_add(u64::from(place) + 1)
        .ok_or_else(|| Error::new(format!("uses the highest {what} ID, so no {what} can be added")))
}
