//! Finds the functions that are named after their addresses.

use super::file::{RawFile, RawFuncs, RawStacks, Tables, number};
use super::strings::Strings;
use crate::contract::unsymbolized::BareAddress;
use crate::error::Result;
use crate::formats::firefox::read::row;
use crate::model::{Addr, FrameAddr, Pid};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// A function that is named after its address, in one of the processes that use it.
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

/// All such functions of a file, in ascending order.
pub(super) fn functions(file: &RawFile<'_>) -> Result<Vec<BareFunction>> {
    let mut functions = Vec::new();
    for (at, tables) in file.tables().iter().enumerate() {
        for (row, pid, addr) in owned(tables, rows(tables)?, file) {
            functions.push(BareFunction { tables: at, row, pid, addr });
        }
    }
    functions.sort_unstable();
    Ok(functions)
}

/// The functions that are in no library and named after an address: their rows and addresses.
fn rows(tables: &Tables<'_, '_>) -> Result<Vec<(usize, Addr)>> {
    let Some(strings) = tables.strings.map(Strings::read).transpose()? else { return Ok(Vec::new()) };
    let funcs = tables.funcs;
    let addr = |row: usize| address(&strings.text(number(funcs.name.get(row)?)?)?);
    let in_memory = (0..funcs.name.len()).filter(|&row| !funcs.has_resource(row));
    Ok(in_memory.filter_map(|row| Some((row, addr(row)?))).collect())
}

/// Parses an address that stands in place of a name.
pub(super) fn address(name: &str) -> Option<Addr> {
    let digits = name.strip_prefix("0x")?;
    let is_digits = !digits.starts_with('+') && digits.len() <= 16;
    u64::from_str_radix(digits, 16).ok().filter(|addr| is_digits && *addr > 0).map(Addr)
}

/// Flag of a function whose `resource` is valid.
const HAS_RESOURCE: u64 = 4;

impl RawFuncs<'_> {
    fn has_resource(&self, row: usize) -> bool {
        match &self.flags {
            Some(flags) => {
                let flags = flags.get(row).and_then(|flags| number(flags));
                flags.is_some_and(|flags| flags as u64 & HAS_RESOURCE != 0)
            }
            None => self.resource.get(row).copied().flatten().is_some_and(|resource| resource >= 0.0),
        }
    }
}

/// Combines each function with each process that uses it. Functions in a thread's own tables belong to its process;
/// functions in shared tables belong to every process whose samples contain them.
fn owned(
    tables: &Tables<'_, '_>,
    functions: Vec<(usize, Addr)>,
    file: &RawFile<'_>,
) -> Vec<(usize, Option<Pid>, Addr)> {
    let pids: BTreeSet<Option<Pid>> = match tables.thread {
        Some(thread) => [thread.pid()].into(),
        None => file.threads.iter().map(|thread| thread.pid()).collect(),
    };
    if let (Some(pid), 1) = (pids.first(), pids.len()) {
        return functions.into_iter().map(|(row, addr)| (row, *pid, addr)).collect();
    }
    let Some(stacks) = &file.shared.stack_table else { return Vec::new() };
    let functions: FxHashMap<usize, Addr> = functions.into_iter().collect();
    let mut found = BTreeSet::new();
    for pid in pids {
        for at in of_process(pid, stacks, file) {
            let func = row(&stacks.frame, at).and_then(|frame| number(tables.frames.func.get(frame)?));
            found.extend(func.and_then(|func| Some((func, pid, *functions.get(&func)?))));
        }
    }
    found.into_iter().collect()
}

/// The rows of the stack table that occur in a process's samples.
fn of_process(pid: Option<Pid>, stacks: &RawStacks, file: &RawFile<'_>) -> impl Iterator<Item = usize> {
    let mut seen = vec![false; stacks.frame.len()];
    for thread in file.threads.iter().filter(|thread| thread.pid() == pid) {
        for sample in 0..thread.samples.stack.len() {
            let mut at = row(&thread.samples.stack, sample);
            // If a stack was seen, so were all its callers.
            while let Some(stack) = at.filter(|stack| seen.get(*stack) == Some(&false)) {
                seen[stack] = true;
                at = caller(stacks, stack);
            }
        }
    }
    seen.into_iter().enumerate().filter(|(_, seen)| *seen).map(|(at, _)| at)
}

fn caller(stacks: &RawStacks, stack: usize) -> Option<usize> {
    match &stacks.prefix_offset {
        Some(offsets) => row(offsets, stack).filter(|offset| *offset > 0).and_then(|offset| stack.checked_sub(offset)),
        None => row(stacks.prefix.as_ref()?, stack),
    }
}
