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
//! * Locations don't belong to processes; samples do, through their labels. The same location can mean different
//!   functions in different processes, or as a caller and as the innermost frame. The first meaning keeps the location;
//!   each other one gets a copy of it.
//! * Unknown fields pass through unchanged. So do the flags of mappings, since other locations may still lack names.
//!
//! Memory: less than twenty times the size of the unpacked input, in the worst case of an input that consists only of
//! unnamed locations with one sample each (`tests/end_to_end/inject_profiles/memory.rs`).

mod edits;
mod uses;

use super::tables::Tables;
use crate::contract::unsymbolized::{Ask, BareAddress, Unsymbolized};
use crate::error::{Error, Result, Warnings};
use edits::Edits;
use std::io::Write;
use uses::Uses;

/// A parsed profile with locations that need names.
#[derive(Debug)]
struct UnsymbolizedPprof<'d> {
    bytes: &'d [u8],
    tables: Tables<'d>,
    uses: Uses,
}

/// Parses a profile and collects the addresses to look up.
pub fn open<'d>(bytes: &'d [u8], warnings: &mut Warnings) -> Result<Box<dyn Unsymbolized + 'd>> {
    let tables = Tables::read_whole(bytes)?;
    if tables.strings.is_empty() {
        return Err(Error::new("is truncated: it has no string table"));
    }
    let uses = Uses::find(&tables, warnings);
    Ok(Box::new(UnsymbolizedPprof { bytes, tables, uses }))
}

impl Unsymbolized for UnsymbolizedPprof<'_> {
    fn addresses(&self) -> &[BareAddress] {
        &self.uses.addresses
    }

    fn write(&self, ask: &Ask<'_>, out: &mut dyn Write) -> Result<()> {
        let edits = Edits::plan(&self.tables, &self.uses, ask)?;
        edits.write(self.bytes, &self.tables, &self.uses, out)
    }
}

#[cfg(test)]
mod tests;
