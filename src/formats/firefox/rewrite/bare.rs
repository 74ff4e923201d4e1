//! Finds the functions that are named after their addresses.

use super::file::{RawFile, RawFuncs, RawStacks, Tables, number};
use super::strings::Strings;
use crate::contract::unsymbolized::BareAddress;
use crate::error::Result;
use crate::formats::firefox::read::index_in;
use crate::model::{Addr, FrameAddr, Pid};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// A function that is named after its address, paired with a process. If several processes use the function, there is
/// one such pair for each, because its address may mean something else in each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BareFunction {
    /// Index in [`RawFile::tables`].
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

/// All functions of a profile that are in no library and named after their address. A function that several processes
/// use is listed once for each of them. The list is sorted by tables, row and process.
pub(super) fn functions(file: &RawFile<'_>) -> Result<Vec<BareFunction>> {
    let mut functions = Vec::new();
    for (index, tables) in file.tables().iter().enumerate() {
        let addresses = addresses_by_row(tables)?;
        for (row, pid) in rows_by_process(tables, &addresses, file) {
            functions.push(BareFunction { tables: index, row, pid, addr: addresses[&row] });
        }
    }
    functions.sort_unstable();
    Ok(functions)
}

/// The address of each function that is in no library and named after its address, by row of the function table.
fn addresses_by_row(tables: &Tables<'_, '_>) -> Result<FxHashMap<usize, Addr>> {
    let mut addresses = FxHashMap::default();
    let Some(strings) = tables.strings else { return Ok(addresses) };
    let strings = Strings::read(strings)?;
    for (row, name) in tables.funcs.name.iter().enumerate() {
        // A function with a resource is in a library, so it isn't JIT code.
        if tables.funcs.has_resource(row) {
            continue;
        }
        let name = number(name).and_then(|index| strings.text(index));
        if let Some(addr) = name.and_then(|name| parse_address(&name)) {
            addresses.insert(row, addr);
        }
    }
    Ok(addresses)
}

/// Parses an address that a function has instead of a name, such as `0x7f0000001010`; `None` for other names and for 0.
pub(super) fn parse_address(name: &str) -> Option<Addr> {
    let digits = name.strip_prefix("0x")?;
    // `from_str_radix` would accept a sign.
    if digits.starts_with('+') || digits.len() > 16 {
        return None;
    }
    match u64::from_str_radix(digits, 16) {
        Ok(0) | Err(_) => None,
        Ok(addr) => Some(Addr(addr)),
    }
}

/// The bit in `funcTable.flags` that says that the function's `resource` is valid.
const HAS_RESOURCE: u64 = 4;

impl RawFuncs<'_> {
    /// True if a function has a resource, which is usually the library that contains the function.
    fn has_resource(&self, row: usize) -> bool {
        match &self.flags {
            Some(column) => {
                let flags = column.get(row).and_then(|flags| number(flags)).unwrap_or(0);
                flags as u64 & HAS_RESOURCE != 0
            }
            None => self.resource.get(row).copied().flatten().is_some_and(|resource| resource >= 0.0),
        }
    }
}

/// Pairs each of these functions, given by row of the function table, with each process that uses it. Functions in a
/// thread's own tables belong to the thread's process; functions in shared tables belong to every process whose samples
/// contain them.
fn rows_by_process(
    tables: &Tables<'_, '_>,
    functions: &FxHashMap<usize, Addr>,
    file: &RawFile<'_>,
) -> Vec<(usize, Option<Pid>)> {
    let pids: BTreeSet<Option<Pid>> = match tables.thread {
        Some(thread) => [thread.pid()].into(),
        None => file.threads.iter().map(|thread| thread.pid()).collect(),
    };
    // With a single process, all functions belong to it, whatever the samples contain.
    if pids.len() == 1
        && let Some(pid) = pids.first()
    {
        return functions.keys().map(|row| (*row, *pid)).collect();
    }
    // There are several processes, so these are the shared tables.
    let Some(stacks) = &file.shared.stack_table else { return Vec::new() };
    let mut pairs = BTreeSet::new();
    for pid in pids {
        for stack in stacks_of_process(pid, stacks, file) {
            // From the stack's row to that of its frame, and from there to that of the function.
            let frame = index_in(&stacks.frame, stack).and_then(|frame| tables.frames.func.get(frame));
            if let Some(row) = frame.and_then(|function| number(function))
                && functions.contains_key(&row)
            {
                pairs.insert((row, pid));
            }
        }
    }
    pairs.into_iter().collect()
}

/// The rows of the stack table that occur in a process's samples.
fn stacks_of_process(pid: Option<Pid>, stacks: &RawStacks, file: &RawFile<'_>) -> impl Iterator<Item = usize> {
    let mut seen = vec![false; stacks.frame.len()];
    for thread in file.threads.iter().filter(|thread| thread.pid() == pid) {
        for sample in 0..thread.samples.stack.len() {
            let mut next = index_in(&thread.samples.stack, sample);
            // A caller that was seen before ends the walk, because all callers beyond it were seen, too.
            while let Some(stack) = next
                && seen.get(stack) == Some(&false)
            {
                seen[stack] = true;
                next = caller(stacks, stack);
            }
        }
    }
    seen.into_iter().enumerate().filter(|(_, seen)| *seen).map(|(stack, _)| stack)
}

/// The row of a stack's caller; `None` if there is no caller. Depending on the format's version, the file states either
/// the caller's row or how many rows it comes before the stack's own row.
fn caller(stacks: &RawStacks, stack: usize) -> Option<usize> {
    match &stacks.prefix_offset {
        None => index_in(stacks.prefix.as_ref()?, stack),
        Some(offsets) => match index_in(offsets, stack)? {
            0 => None,
            offset => stack.checked_sub(offset),
        },
    }
}
