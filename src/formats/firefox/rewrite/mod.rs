//! Names for functions that are called after their addresses, as samply calls what it has no symbol of.
//!
//! One address on its way:
//!
//! ```text
//! thread.pid "77", samples.stack → stackTable.frame → frameTable.func 3
//! funcTable.resource[3] = -1      in no library: it may be JIT code
//! funcTable.name[3] = 12          stringArray[12] = "0x7f0000001010"
//!   asked: process 77, 0x7f0000001010
//!   told:  f at a.js:3
//! stringArray = […, "f", "a.js"]  behind the others
//! funcTable.name[3] = 40, fileName[3] = 41, frameTable.line of its frames = 3
//! ```
//!
//! * samply takes one off return addresses, so an address is inside the code that ran.
//! * Addresses of one function are functions of their own in the file, and would be so in the viewer: the frames of all
//!   of them go to the first.
//! * Tables are in each thread, or (version 60 and later) once in `shared`, where a function may be of several
//!   processes: it gets a name if they agree on it. Source files are a column of functions, or (58 and later) a table.
//! * Memory that samply takes for a file (`zero (deleted)`, where PHP's code is) is reported relative to where it was
//!   mapped, which the file does not state: such code stays as it is.
//! * A call that was expanded in another would need rows of its own among stacks, which refer to each other by number:
//!   the function that has the code is named. A name in which an agent joined several (`f->g`) stays as it is.
//!
//! Everything else, numbers, spaces and the order of keys with it, stays as it is written.
//!
//! Memory: below twenty times the unpacked input, where that is nothing but functions without names
//! (`tests/end_to_end/inject_profiles/memory.rs`).

mod bare;
mod edits;
mod file;
mod strings;

use crate::contract::unsymbolized::{Ask, BareAddress, Unsymbolized};
use crate::error::{Error, Result, Warnings};
use bare::BareFunction;
use edits::Edits;
use file::RawFile;
use std::io::Write;

/// A profile, some of whose functions are addresses.
#[derive(Debug)]
struct UnsymbolizedFirefox<'d> {
    bytes: &'d [u8],
    file: RawFile<'d>,
    functions: Vec<BareFunction>,
    addresses: Vec<BareAddress>,
}

/// Reads a profile.
pub fn open<'d>(bytes: &'d [u8], _: &mut Warnings) -> Result<Box<dyn Unsymbolized + 'd>> {
    let file: RawFile<'d> = serde_json::from_slice(bytes)
        .map_err(|error| Error::new("is not a complete Firefox profile").because(error))?;
    let functions = bare::functions(&file)?;
    let mut addresses: Vec<BareAddress> = functions.iter().map(BareFunction::address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    Ok(Box::new(UnsymbolizedFirefox { bytes, file, functions, addresses }))
}

impl Unsymbolized for UnsymbolizedFirefox<'_> {
    fn addresses(&self) -> &[BareAddress] {
        &self.addresses
    }

    fn expands_calls(&self) -> bool {
        false
    }

    fn write(&self, ask: &Ask<'_>, out: &mut dyn Write) -> Result<()> {
        let Self { bytes, file, functions, addresses } = self;
        Edits { bytes, file, functions, addresses }.splices(ask)?.write(bytes, out)
    }
}

#[cfg(test)]
mod tests;
