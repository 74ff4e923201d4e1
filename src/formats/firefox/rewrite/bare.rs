//! Functions that are called after their addresses.

use super::file::{self, RawFile, RawFuncs, Tables};
use super::owners;
use super::strings::Strings;
use crate::contract::unsymbolized::BareAddress;
use crate::error::Result;
use crate::model::{Addr, FrameAddr, Pid};

/// A function that is called after its address, as one process has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BareFunction {
    /// Its tables: their place in [`RawFile::tables`].
    pub(super) tables: usize,
    pub(super) row: usize,
    pid: Option<Pid>,
    addr: Addr,
}

impl BareFunction {
    pub(super) fn address(&self) -> BareAddress {
        BareAddress { pid: self.pid, file: None, addr: FrameAddr::Ip(self.addr) }
    }
}

/// All of a file, in ascending order.
pub(super) fn functions(file: &RawFile<'_>) -> Result<Vec<BareFunction>> {
    let mut functions = Vec::new();
    for (at, tables) in file.tables().iter().enumerate() {
        for (row, pid, addr) in owners::of(tables, rows(tables)?, file) {
            functions.push(BareFunction { tables: at, row, pid, addr });
        }
    }
    functions.sort_unstable();
    Ok(functions)
}

/// The rows of functions that are in no library and called after an address.
fn rows(tables: &Tables<'_, '_>) -> Result<Vec<(usize, Addr)>> {
    let Some(strings) = tables.strings.map(Strings::read).transpose()? else { return Ok(Vec::new()) };
    let funcs = tables.funcs;
    let addr = |row: usize| address(&strings.text(file::number(funcs.name.get(row)?)?)?);
    let in_memory = (0..funcs.name.len()).filter(|&row| !funcs.has_resource(row));
    Ok(in_memory.filter_map(|row| Some((row, addr(row)?))).collect())
}

/// An address as it is written in place of a name.
pub(super) fn address(name: &str) -> Option<Addr> {
    let digits = name.strip_prefix("0x")?;
    let is_digits = !digits.starts_with('+') && digits.len() <= 16;
    u64::from_str_radix(digits, 16).ok().filter(|addr| is_digits && *addr > 0).map(Addr)
}

/// The flag a function that states that its `resource` is one.
const HAS_RESOURCE: u64 = 4;

impl RawFuncs<'_> {
    fn has_resource(&self, row: usize) -> bool {
        match &self.flags {
            Some(flags) => {
                let flags = flags.get(row).and_then(|flags| file::number(flags));
                flags.is_some_and(|flags| flags as u64 & HAS_RESOURCE != 0)
            }
            None => self.resource.get(row).copied().flatten().is_some_and(|resource| resource >= 0.0),
        }
    }
}
