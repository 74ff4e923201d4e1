//! The process of functions: those of a thread's tables are its process's, those of shared ones are of every process
//! whose samples run through them.

use super::file::{RawFile, RawStacks, Tables, number};
use crate::formats::firefox::read::row;
use crate::model::{Addr, Pid};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Each of these functions with each of its processes.
pub(super) fn of(
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

/// The rows of stacks that a process's samples run through.
fn of_process(pid: Option<Pid>, stacks: &RawStacks, file: &RawFile<'_>) -> impl Iterator<Item = usize> {
    let mut seen = vec![false; stacks.frame.len()];
    for thread in file.threads.iter().filter(|thread| thread.pid() == pid) {
        for sample in 0..thread.samples.stack.len() {
            let mut at = row(&thread.samples.stack, sample);
            // If the callers of a stack were seen, all of them were.
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
