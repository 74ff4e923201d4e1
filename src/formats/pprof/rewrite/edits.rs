//! What is changed: locations get lines, or copies with lines where they mean several functions.

use super::names::{NewNames, next_id};
use super::uses::{SampleCalls, Use, Uses};
use crate::error::Result;
use crate::formats::pprof::fields::{FieldValue, Fields};
use crate::formats::pprof::tables::Tables;
use crate::formats::splices::Splices;
use crate::formats::unsymbolized::{Ask, NamedCall};
use prost::encoding::{self, WireType};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The changes of a profile.
#[derive(Debug)]
pub(super) struct Edits {
    names: NewNames,
    /// Encoded lines of locations, by their places.
    lines: BTreeMap<u32, Vec<u8>>,
    copies: Vec<LocationCopy>,
    /// The numbers of the copies that these have in place of the location.
    moved: FxHashMap<Use, u64>,
}

/// A location of its own for some of those that share one.
#[derive(Debug)]
struct LocationCopy {
    location: u32,
    id: u64,
    lines: Vec<u8>,
}

/// What one function is at a location, and for whom.
struct Meaning<'a> {
    calls: Vec<NamedCall<'a>>,
    uses: Vec<Use>,
}

impl Edits {
    /// Asks for the names.
    pub(super) fn plan(tables: &Tables<'_>, uses: &Uses, ask: &Ask<'_>) -> Result<Self> {
        let (names, lines, copies) = (NewNames::behind(tables), BTreeMap::new(), Vec::new());
        let mut edits = Self { names, lines, copies, moved: FxHashMap::default() };
        let mut last_id = tables.locations.iter().map(|location| location.id).max().unwrap_or(0);
        for of_location in uses.list.chunk_by(|a, b| a.location == b.location) {
            let mut meanings = meanings(of_location, tables, uses, ask).into_iter();
            if let Some(first) = meanings.next() {
                edits.name(&first)?;
            }
            for other in meanings {
                last_id = next_id(last_id, "location")?;
                edits.copy(&other, last_id)?;
            }
        }
        Ok(edits)
    }

    fn name(&mut self, meaning: &Meaning<'_>) -> Result<()> {
        let Some(one) = meaning.uses.first().filter(|_| !meaning.calls.is_empty()) else { return Ok(()) };
        self.names.lines(&meaning.calls, self.lines.entry(one.location).or_default())
    }

    fn copy(&mut self, meaning: &Meaning<'_>, id: u64) -> Result<()> {
        let Some(one) = meaning.uses.first() else { return Ok(()) };
        let mut lines = Vec::new();
        self.names.lines(&meaning.calls, &mut lines)?;
        self.copies.push(LocationCopy { location: one.location, id, lines });
        self.moved.extend(meaning.uses.iter().map(|one| (*one, id)));
        Ok(())
    }

    /// What becomes of the bytes.
    pub(super) fn splices(&self, bytes: &[u8], tables: &Tables<'_>, uses: &Uses) -> Result<Splices> {
        let mut splices = Splices::default();
        let (mut locations, mut fields) = (0.., Fields::of(bytes));
        let mut start = 0;
        while let Some(field) = fields.next() {
            let (tag, value) = field?;
            let (range, message) = (start..fields.offset(), value.bytes());
            start = range.end;
            let changed = match tag {
                2 => self.sample(message, tables, uses),
                4 => locations.next().and_then(|at| self.lines.get(&at)).map(|lines| [message, lines].concat()),
                _ => None,
            };
            if let Some(message) = changed {
                splices.replace(range, field_of(tag, &message));
            }
        }
        splices.replace(bytes.len()..bytes.len(), self.behind(tables));
        Ok(splices)
    }

    /// A sample that has copies of locations; `None` if it stays.
    fn sample(&self, message: &[u8], tables: &Tables<'_>, uses: &Uses) -> Option<Vec<u8>> {
        if self.moved.is_empty() {
            return None;
        }
        let calls = SampleCalls::read(message, tables).ok()?;
        let new = |depth: usize| self.moved.get(&uses.at(&calls, depth)?).copied();
        (0..calls.locations.len()).find_map(new)?;
        let mut ids = calls.locations.iter().enumerate().map(|(depth, id)| new(depth).unwrap_or(*id));
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

    /// What comes in behind all else.
    fn behind(&self, tables: &Tables<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        for copy in &self.copies {
            let message = tables.locations.get(copy.location as usize).map_or(&[][..], |location| location.message());
            out.extend(field_of(4, &[&with_id(message, copy.id), &copy.lines[..]].concat()));
        }
        self.names.fields(&mut out);
        out
    }
}

/// What a location means for those that run through it. The first is that of the location itself: of the first of
/// them, in order of processes.
fn meanings<'a>(of_location: &[Use], tables: &Tables<'_>, uses: &Uses, ask: &Ask<'a>) -> Vec<Meaning<'a>> {
    let mut meanings: Vec<Meaning<'a>> = Vec::new();
    for one in of_location {
        let calls = uses.asked(one, tables).map(ask).unwrap_or_default();
        // A caller's line may be another than a leaf's at the same address.
        let names = |calls: &[NamedCall<'a>]| calls.iter().map(|call| call.name).collect::<Vec<_>>();
        match meanings.iter_mut().find(|meaning| names(&meaning.calls) == names(&calls)) {
            Some(meaning) => meaning.uses.push(*one),
            None => meanings.push(Meaning { calls, uses: vec![*one] }),
        }
    }
    meanings
}

/// The same location under another number.
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

fn field_of(tag: u32, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len() + 8);
    encoding::encode_key(tag, WireType::LengthDelimited, &mut out);
    encoding::encode_varint(message.len() as u64, &mut out);
    out.extend_from_slice(message);
    out
}
