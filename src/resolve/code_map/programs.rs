//! Finds out to which of the programs that a process ran its untimed entries belong.
//!
//! A perf map is written by one program, but a process runs another program after each exec. The entries lie in memory
//! that the writing program had mapped. If several programs had mapped that memory (addresses aren't always
//! randomized), the last one wrote the file.
//!
//! ```text
//! exec            exec                     exec
//!  ├─ sh ──────────┼─ node ─────────────────┼─ true ──▶ time
//!                  │  memory of the entries │
//! ```

use super::list::{Change, ChangeKind};
use crate::model::process::{Process, Processes};
use crate::model::{Addr, Nanos, Pid};
use std::collections::BTreeMap;
use std::ops::Range;

/// For each process that called exec and has untimed entries: the period in which the program ran to which the entries
/// belong.
pub(super) fn of_untimed(changes: &[Change], processes: &Processes) -> Vec<(Pid, Range<Nanos>)> {
    let mut starts: BTreeMap<Pid, (&Process, Vec<Addr>)> = BTreeMap::new();
    for change in changes.iter().filter(|change| change.kind == ChangeKind::Untimed) {
        let process = processes.by_pid.get(&change.pid).filter(|process| !process.execs.is_empty());
        if let Some(process) = process {
            starts.entry(change.pid).or_insert_with(|| (process, Vec::new())).1.push(change.start);
        }
    }
    let programs = starts.into_iter().map(|(pid, (process, mut starts))| {
        starts.sort_unstable();
        (pid, program_of(process, &starts))
    });
    programs.collect()
}

/// The period in which the program ran whose executable memory contains most of the addresses in `starts`, which are
/// sorted. If several programs have equally many, the last one counts.
fn program_of(process: &Process, starts: &[Addr]) -> Range<Nanos> {
    let mut execs = process.execs.clone();
    execs.sort_unstable();
    execs.dedup();
    let mut memory: Vec<Vec<Range<Addr>>> = vec![Vec::new(); execs.len() + 1];
    for mapping in process.mappings.iter().filter(|mapping| mapping.executable) {
        // Mappings made by an exec have the exec's time.
        let program = execs.partition_point(|exec| *exec <= mapping.time);
        memory[program].push(mapping.addr..Addr(mapping.addr.0.saturating_add(mapping.len)));
    }
    let counts = memory.into_iter().map(|memory| count_inside(memory, starts));
    let best = counts.enumerate().max_by_key(|(program, count)| (*count, *program)).map_or(0, |(program, _)| program);
    let edge = |at: Option<usize>| at.and_then(|at| execs.get(at)).copied();
    edge(best.checked_sub(1)).unwrap_or(Nanos(0))..edge(Some(best)).unwrap_or(Nanos(u64::MAX))
}

/// The number of sorted addresses that lie in any of the ranges.
fn count_inside(mut ranges: Vec<Range<Addr>>, starts: &[Addr]) -> usize {
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut count, mut done) = (0, Addr(0));
    for range in ranges {
        let from = range.start.max(done);
        let before = |addr: Addr| starts.partition_point(|start| *start < addr);
        count += before(range.end).saturating_sub(before(from));
        done = done.max(range.end);
    }
    count
}
