//! Names for locations that have an address and no function, as eBPF agents, gperftools and others leave them for JIT
//! code.
//!
//! One address on its way:
//!
//! ```text
//! Sample   { location_id: [5, …], label: pid = 77 }
//! Location { id: 5, mapping_id: 2, address: 0x7f00…1010 }          no line: nobody knew
//! Mapping  { id: 2, filename: "//anon" }                           no file: it may be JIT code
//!   asked: process 77, 0x7f00…1010
//!   told:  inlined in f, f at a.js:3
//! Location { …, line: { function_id: 9, line: 1 }, line: { function_id: 8, line: 3 } }
//! Function { id: 8, name: "f", … }  Function { id: 9, … }          behind the others, as are their strings
//! ```
//!
//! * A location that is not the first of a sample holds a return address, or, as the format requests, an address inside
//!   the call before it. One byte before either of them is inside the call.
//! * A location has no process; samples do, by their labels. If those of several processes, or calls and leaves, share
//!   one that means different functions, each but the first gets a location of its own.
//! * Fields that are not known pass as they are, and so do the flags of mappings; other locations may still lack names.
//!
//! Memory: below twenty times the unpacked input, where that is nothing but locations without names, each with a sample
//! of its own (`tests/end_to_end/inject_profiles/memory.rs`).

mod edits;
mod uses;

use super::tables::Tables;
use crate::contract::unsymbolized::{Ask, BareAddress, Unsymbolized};
use crate::error::{Error, Result, Warnings};
use edits::Edits;
use std::io::Write;
use uses::Uses;

/// A profile, some of whose locations have no function.
#[derive(Debug)]
struct UnsymbolizedPprof<'d> {
    bytes: &'d [u8],
    tables: Tables<'d>,
    uses: Uses,
}

/// Reads a profile.
pub fn open<'d>(bytes: &'d [u8], warnings: &mut Warnings) -> Result<Box<dyn Unsymbolized + 'd>> {
    let tables = Tables::read_whole(bytes)?;
    if tables.strings.is_empty() {
        return Err(Error::new("has no string table, which follows the samples: it is cut off"));
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
