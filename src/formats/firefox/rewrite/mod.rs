//! Adds names to functions that are named after their addresses, as samply does for code without symbols.
//!
//! An example:
//!
//! ```text
//! thread.pid "77", samples.stack → stackTable.frame → frameTable.func 3
//! funcTable.resource[3] = -1      in no library: it may be JIT code
//! funcTable.name[3] = 12          stringArray[12] = "0x7f0000001010"
//!   question: address 0x7f0000001010 in process 77
//!   answer:   f at a.js:3
//! stringArray = […, "f", "a.js"]  appended
//! funcTable.name[3] = 40, fileName[3] = 41, frameTable.line of its frames = 3
//! ```
//!
//! * samply subtracts one from return addresses, so every address is inside the code that ran.
//! * In the file, each address is a function of its own. When several turn out to be the same function, all their
//!   frames are moved to the first; the viewer would otherwise list them separately.
//! * Tables belong to threads or (since version 60) are shared by all in `shared`. A shared function can be used by
//!   several processes, and is named only if the name is the same in all of them. A function's source file is a column
//!   or (since version 58) an index into a table of sources.
//! * samply mistakes some memory for a file (such as `zero (deleted)`, which holds PHP's code). Addresses there are
//!   relative to the start of a mapping, which the file doesn't state. Such code stays unnamed.
//! * Inlined calls are not added, because they would need new rows in the stack table, whose rows refer to each other
//!   by index. Only the function that contains the code is named. A name that an agent made of several functions
//!   (`f->g`) is used as it is.
//!
//! Everything else stays as it is, including the spelling of numbers, white space and the order of keys.
//!
//! Memory: less than twenty times the size of the unpacked input, in the worst case of an input that consists only of
//! unnamed functions (`tests/end_to_end/inject_profiles/memory.rs`).

mod bare;
mod edits;
mod file;
mod strings;

use crate::contract::unsymbolized::{BareAddress, FindCalls, Unsymbolized};
use crate::error::{Error, Result, Warnings};
use bare::BareFunction;
use edits::Edits;
use file::RawFile;
use std::io::Write;

/// A parsed profile with functions that need names.
#[derive(Debug)]
struct UnsymbolizedFirefox<'d> {
    bytes: &'d [u8],
    file: RawFile<'d>,
    functions: Vec<BareFunction>,
    addresses: Vec<BareAddress>,
}

/// Parses a profile and collects the addresses to look up.
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

    fn write(&mut self, find_calls: &FindCalls<'_>, out: &mut dyn Write) -> Result<()> {
        let Self { bytes, file, functions, addresses } = self;
        Edits { bytes, file, functions, addresses }.splices(find_calls)?.write(bytes, out)
    }
}

#[cfg(test)]
mod tests;
