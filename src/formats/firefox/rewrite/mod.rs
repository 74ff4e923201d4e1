//! Names for functions that are called after their addresses, as samply calls what it knows no symbol of.
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
//! * samply takes one off return addresses, so an address is inside of what ran.
//! * Addresses of one function are functions of their own in the file, and would be so in the viewer: the frames of all
//!   of them go to the first.
//! * Tables stand in each thread, or (version 60 and later) once in `shared`, where a function may be of several
//!   processes: it gets a name if they agree on it. Source files are a column of functions, or (58 and later) a table.
//! * A call that was expanded in another would need rows of its own among stacks, which refer to each other by number:
//!   the function that has the code is named.
//!
//! Everything else, numbers, spaces and the order of keys with it, stays as it is written.
//!
//! Memory: below twenty times the unpacked input, where that is nothing but functions without names
//! (`tests/inject_profiles/memory.rs`).

mod edits;
mod file;
mod owners;
mod sources;
mod strings;

use crate::error::{Error, Result, Warnings};
use crate::formats::unsymbolized::{Ask, BareAddress, Unsymbolized};
use crate::model::{Addr, FrameAddr, Pid};
use file::{RawFile, RawFuncs, Tables};
use std::io::Write;
use strings::Strings;

/// A profile, some of whose functions are addresses.
#[derive(Debug)]
struct UnsymbolizedFirefox<'d> {
    bytes: &'d [u8],
    file: RawFile<'d>,
    /// In ascending order.
    functions: Vec<BareFunction>,
    addresses: Vec<BareAddress>,
}

/// A function that is called after its address, as one process has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BareFunction {
    /// Which tables it is in: their place in [`RawFile::tables`].
    tables: usize,
    row: usize,
    pid: Option<Pid>,
    addr: Addr,
}

impl BareFunction {
    fn address(&self) -> BareAddress {
        BareAddress { pid: self.pid, addr: FrameAddr::Ip(self.addr) }
    }
}

/// Reads a profile.
pub fn open<'d>(bytes: &'d [u8], _: &mut Warnings) -> Result<Box<dyn Unsymbolized + 'd>> {
    let file: RawFile<'d> =
        serde_json::from_slice(bytes).map_err(|error| Error::new("is no whole Firefox profile").because(error))?;
    let mut functions = Vec::new();
    for (at, tables) in file.tables().iter().enumerate() {
        let bare = bare_functions(tables)?;
        for (row, pid, addr) in owners::of(tables, bare, &file) {
            functions.push(BareFunction { tables: at, row, pid, addr });
        }
    }
    functions.sort_unstable();
    let mut addresses: Vec<BareAddress> = functions.iter().map(BareFunction::address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    Ok(Box::new(UnsymbolizedFirefox { bytes, file, functions, addresses }))
}

/// The rows of functions that are in no library and called after an address.
fn bare_functions(tables: &Tables<'_, '_>) -> Result<Vec<(usize, Addr)>> {
    let Some(strings) = tables.strings.map(Strings::read).transpose()? else { return Ok(Vec::new()) };
    let funcs = tables.funcs;
    let addr = |row: usize| address(&strings.text(file::number(funcs.name.get(row)?)?)?);
    let in_memory = (0..funcs.name.len()).filter(|&row| !funcs.has_resource(row));
    Ok(in_memory.filter_map(|row| Some((row, addr(row)?))).collect())
}

/// An address as it is written in place of a name.
fn address(name: &str) -> Option<Addr> {
    let digits = name.strip_prefix("0x")?;
    let is_digits = !digits.starts_with('+') && digits.len() <= 16;
    u64::from_str_radix(digits, 16).ok().filter(|addr| is_digits && *addr > 0).map(Addr)
}

/// What flags of a function say: that its `resource`, its `source` is one.
const HAS_RESOURCE: u64 = 4;
const HAS_SOURCE: u64 = 8;
/// What flags of a frame say: that its `line` is one.
const HAS_LINE: u64 = 16;

impl RawFuncs<'_> {
    fn has_resource(&self, row: usize) -> bool {
        let told = self.resource.get(row).copied().flatten().is_some_and(|resource| resource >= 0.0);
        match &self.flags {
            Some(flags) => flags
                .get(row)
                .and_then(|flags| file::number(flags))
                .is_some_and(|flags| flags as u64 & HAS_RESOURCE != 0),
            None => told,
        }
    }
}

impl Unsymbolized for UnsymbolizedFirefox<'_> {
    fn addresses(&self) -> &[BareAddress] {
        &self.addresses
    }

    fn write(&self, ask: &Ask<'_>, out: &mut dyn Write) -> Result<()> {
        edits::splices(self, ask)?.write(self.bytes, out)
    }
}

#[cfg(test)]
mod tests;
