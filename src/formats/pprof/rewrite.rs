//! Adds names to locations that have an address but no function. eBPF agents, gperftools and others leave JIT code this
//! way.
//!
//! An example:
//!
//! ```text
//! Sample   { location_id: [5, …], label: pid = 77 }
//! Location { id: 5, mapping_id: 2, address: 0x7f00…1010 }          no line: the profiler knew no name
//! Mapping  { id: 2, filename: "//anon" }                           not a file: it may be JIT code
//!   question: address 0x7f00…1010 in process 77
//!   answer:   f at a.js:3, and a call inlined in it
//! Location { …, line: { function_id: 9, line: 1 }, line: { function_id: 8, line: 3 } }
//! Function { id: 8, name: "f", … }  Function { id: 9, … }          appended, like their strings
//! ```
//!
//! * A location that is not the innermost frame holds a return address or, as the format demands, an address inside the
//!   call instruction. Both are looked up the same way, since the byte before either address is still part of the call.
//! * Locations don't belong to processes; samples do, through their labels. Where a location is different functions
//!   ([`LocationNames`]), samples refer to copies of it, which are appended to the locations.
//! * The flags of mappings stay as they are, since other locations may still lack names.
//! * A file in which nothing gets a name is copied byte for byte. In others, all known fields keep their values.
//!   Unknown fields can't be kept; if there are locations to name, they are counted and reported.
//!
//! Memory: less than twenty times the size of the unpacked input, in the worst case of an input that consists only of
//! unnamed locations with one sample each (`tests/end_to_end/inject_profiles/memory.rs`).

use super::messages::{PprofFunction, PprofLine, PprofLocation, PprofProfile, PprofSample, SCHEMA, write_file};
use super::tables::{Tables, is_pid};
use crate::contract::unsymbolized::{
    BareAddress, FindCalls, LocationNames, LocationUse, NamedCall, Unsymbolized, may_hold_jit_code,
};
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::interner::Interner;
use crate::model::mapping_kind::MappingKind;
use crate::model::{Addr, FrameAddr, Pid};
use prost::Message;
use prost::bytes::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::io::Write;

/// A decoded profile with locations that need names.
#[derive(Debug)]
struct UnsymbolizedPprof<'d> {
    /// The whole file.
    bytes: &'d [u8],
    tables: Tables<'d>,
    unnamed: UnnamedLocations,
    /// The different ways in which samples use unnamed locations (which location, in which process, as a caller or
    /// not), in ascending order.
    uses: Vec<LocationUse>,
    /// The addresses to look up, each once, in ascending order.
    addresses: Vec<BareAddress>,
}

/// Decodes a profile and collects the addresses to look up. Damaged samples are counted; they are written as they are.
pub fn open<'d>(bytes: &'d [u8], warnings: &mut Warnings) -> Result<Box<dyn Unsymbolized + 'd>> {
    let tables = Tables::read_whole(bytes)?;
    if tables.profile.string_table.is_empty() {
        return Err(Error::new("is truncated: it has no string table"));
    }
    let unnamed = UnnamedLocations::find(&tables);
    let (mut uses, mut skipped) = (FxHashSet::default(), Skipped::new("sample"));
    let mut sample = PprofSample::default();
    for encoded in &tables.samples {
        sample.clear();
        match sample.merge(*encoded) {
            Ok(()) => uses.extend(unnamed.uses(&sample, &tables).flatten()),
            Err(error) => skipped.add(Error::new("the sample is damaged").because(error)),
        }
    }
    warnings.extend(skipped.into_warning());
    // Writing the profile with names loses fields that we don't know, so warn about them. If nothing needs a name, the
    // file is copied with all its fields.
    if !uses.is_empty() {
        let mut unknown = Skipped::new("unknown field");
        SCHEMA.find_unknown(bytes, &mut unknown);
        warnings.extend(unknown.into_warning());
    }
    let mut uses: Vec<LocationUse> = uses.into_iter().collect();
    uses.sort_unstable();
    // Several locations may have the same address, which is looked up only once.
    let mut addresses: Vec<BareAddress> = uses.iter().map(|location_use| bare_address(location_use, &tables)).collect();
    addresses.sort_unstable();
    addresses.dedup();
    Ok(Box::new(UnsymbolizedPprof { bytes, tables, unnamed, uses, addresses }))
}

impl Unsymbolized for UnsymbolizedPprof<'_> {
    fn addresses(&self) -> &[BareAddress] {
        &self.addresses
    }

    /// Writes the profile with names. `find_calls` gets the index of an address in `addresses`, and returns the calls
    /// at that address. A location that has different names in different samples is copied for each further name, and
    /// the samples refer to the copies.
    fn write(&mut self, find_calls: &FindCalls<'_>, out: &mut dyn Write) -> Result<()> {
        // For each use of an unnamed location, the calls at its address; an empty list if nothing is known there.
        let names = LocationNames::new(&self.uses, |location_use| {
            match self.addresses.binary_search(&bare_address(location_use, &self.tables)) {
                Ok(index) => find_calls(index),
                Err(_) => Vec::new(),
            }
        });
        if names.is_empty() {
            return Ok(out.write_all(self.bytes)?);
        }
        let first_copy = add_names(&names, &mut self.tables)?;
        let Self { tables, unnamed, .. } = &*self;
        let samples = tables.samples.iter().map(|bytes| {
            // `open` has reported damaged samples. They are copied.
            let Ok(mut sample) = PprofSample::decode(*bytes) else { return Cow::Borrowed(*bytes) };
            let uses: Vec<Option<LocationUse>> = unnamed.uses(&sample, tables).collect();
            for (id, location_use) in sample.location_id.iter_mut().zip(uses) {
                if let Some(location_use) = location_use
                    // If a location has several names, the first one is on the location itself, and each of the others
                    // on a copy.
                    && let Some(copy) = names.copy_of(&location_use)
                {
                    *id = first_copy + copy as u64;
                }
            }
            Cow::Owned(sample.encode_to_vec())
        });
        write_file(&tables.profile, samples, out)
    }
}

/// The locations of a profile that need names.
#[derive(Debug)]
struct UnnamedLocations {
    /// The indices of locations without a function, by ID.
    indices: FxHashMap<u64, u32>,
    /// The IDs of locations in the kernel.
    in_kernel: FxHashSet<u64>,
}

impl UnnamedLocations {
    /// Finds the locations that are unnamed and may be JIT code, and those that are in the kernel.
    fn find(tables: &Tables<'_>) -> Self {
        let (mut indices, mut in_kernel) = (FxHashMap::default(), FxHashSet::default());
        for (index, location) in (0..).zip(&tables.profile.location) {
            let file = tables.mapped_file(location);
            if MappingKind::from_path(file).is_kernel_object() {
                in_kernel.insert(location.id);
            }
            // If an ID occurs twice, the later location counts.
            if location.address != 0 && location.line.is_empty() && may_hold_jit_code(file) {
                indices.insert(location.id, index);
            } else {
                indices.remove(&location.id);
            }
        }
        Self { indices, in_kernel }
    }

    /// Yields, for each location of a sample (innermost first), how the sample uses it; `None` if the location needs no
    /// name.
    fn uses(&self, sample: &PprofSample, tables: &Tables<'_>) -> impl Iterator<Item = Option<LocationUse>> {
        let mut pid = None;
        for label in &sample.label {
            if is_pid(tables.string(label.key)) {
                pid = label.id(tables).map(Pid);
            }
        }
        let mut previous = None;
        sample.location_id.iter().map(move |id| {
            // `previous` is the location that was called from this one. If it is in the kernel, which interrupts code
            // at any instruction, this location made no call, and its address isn't a return address.
            let is_caller = previous.is_some_and(|previous| !self.in_kernel.contains(previous));
            previous = Some(id);
            let location = *self.indices.get(id)?;
            Some(LocationUse { location, pid, is_caller })
        })
    }
}

/// The address to look up for one use of an unnamed location, with the process of the samples that use it.
fn bare_address(location_use: &LocationUse, tables: &Tables<'_>) -> BareAddress {
    let location = tables.profile.location.get(location_use.location as usize);
    let addr = Addr(location.map_or(0, |location| location.address));
    let addr = if location_use.is_caller { FrameAddr::Return(addr) } else { FrameAddr::Ip(addr) };
    BareAddress { pid: location_use.pid, file: None, addr }
}

/// Adds the names to the tables: lines to locations, and new functions, strings and copies of locations at the ends of
/// their tables. Returns the ID of the first copy; the other copies have the IDs after it, in the order of
/// `names.copies`. Fails if there are no IDs left.
fn add_names(names: &LocationNames<'_>, tables: &mut Tables<'_>) -> Result<u64> {
    let profile = &mut tables.profile;
    let mut functions = NewFunctions::new(profile);
    // A location gets the name that was found for its first use. Each other name of it goes to a copy.
    for (location, calls) in &names.named {
        if let Some(location) = profile.location.get_mut(*location as usize) {
            location.line = functions.lines(calls)?;
        }
    }
    let last = profile.location.iter().map(|location| location.id).max().unwrap_or(0);
    check_free_ids(last, names.copies.len() as u64, "location")?;
    let first_copy = last + 1;
    for (id, (location, calls)) in (first_copy..).zip(&names.copies) {
        let original = profile.location.get(*location as usize).cloned().unwrap_or_default();
        profile.location.push(PprofLocation { id, line: functions.lines(calls)?, ..original });
    }
    profile.function.extend(functions.messages());
    profile.string_table.extend(functions.strings.into_items().into_iter().map(Bytes::from));
    Ok(first_copy)
}

/// New functions and strings, which are appended to the file.
#[derive(Debug)]
struct NewFunctions {
    /// The number of strings in the file, without the new ones.
    old_strings: usize,
    /// The new strings. Their indices in the file follow those of the old ones.
    strings: Interner<String, u32>,
    /// The highest function ID in the file.
    last_function: u64,
    /// The new functions, each as the string indices of its name and its file.
    functions: Interner<(i64, i64), u32>,
}

impl NewFunctions {
    fn new(profile: &PprofProfile) -> Self {
        let last_function = profile.function.iter().map(|function| function.id).max().unwrap_or(0);
        let old_strings = profile.string_table.len();
        Self { old_strings, strings: Interner::default(), last_function, functions: Interner::default() }
    }

    /// The lines of a location, one for each of these calls. A function that is new gets an ID; fails if there is none
    /// left.
    fn lines(&mut self, calls: &[NamedCall<'_>]) -> Result<Vec<PprofLine>> {
        let mut lines = Vec::with_capacity(calls.len());
        for call in calls {
            let names = (self.string(call.name), self.string(call.file));
            // The new functions are numbered from 0, and get the IDs after the last one in the file.
            let position = u64::from(self.functions.intern(names)) + 1;
            check_free_ids(self.last_function, position, "function")?;
            let function_id = self.last_function + position;
            lines.push(PprofLine { function_id, line: call.line.into(), column: 0 });
        }
        Ok(lines)
    }

    /// The index of a string, which is added if it is new. Invalid UTF-8 is replaced. Index 0 is the empty string.
    fn string(&mut self, text: &[u8]) -> i64 {
        if text.is_empty() {
            return 0;
        }
        self.old_strings as i64 + i64::from(self.strings.number(&*String::from_utf8_lossy(text)))
    }

    /// The new functions as messages. Their IDs follow the highest one in the file.
    fn messages(&self) -> impl Iterator<Item = PprofFunction> {
        (self.last_function + 1..).zip(self.functions.items()).map(|(id, &(name, filename))| PprofFunction {
            id,
            name,
            system_name: name,
            filename,
            start_line: 0,
        })
    }
}

/// Fails unless there are `count` unused IDs after `last`, the highest ID in the file. The very last ID stays unused,
/// so that the next one can always be computed.
fn check_free_ids(last: u64, count: u64, what: &str) -> Result<()> {
    match last.checked_add(count) {
        Some(u64::MAX) | None => Err(Error::new(format!("has too few unused {what} IDs, so no {what} can be added"))),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
