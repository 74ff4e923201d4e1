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
pub(super) fn find_programs(changes: &[Change], processes: &Processes) -> Vec<(Pid, Range<Nanos>)> {
    let mut starts_by_pid: BTreeMap<Pid, Vec<Addr>> = BTreeMap::new();
    for change in changes.iter().filter(|change| change.kind == ChangeKind::Untimed) {
        starts_by_pid.entry(change.pid).or_default().push(change.start);
    }
    let mut programs = Vec::new();
    for (pid, mut starts) in starts_by_pid {
        if let Some(process) = processes.by_pid.get(&pid)
            && !process.execs.is_empty()
        {
            starts.sort_unstable();
            programs.push((pid, find_program(process, &starts)));
        }
    }
    programs
}

/// The period in which the program ran whose executable memory contains most of the addresses in `starts`, which are
/// sorted. If several programs have equally many, the last one counts.
fn find_program(process: &Process, starts: &[Addr]) -> Range<Nanos> {
    let mut execs = process.execs.clone();
    execs.sort_unstable();
    execs.dedup();
    let mut memory: Vec<Vec<Range<Addr>>> = vec![Vec::new(); execs.len() + 1];
    for mapping in process.mappings.iter().filter(|mapping| mapping.executable) {
        // Mappings made by an exec have the exec's time.
        let program = execs.partition_point(|exec| *exec <= mapping.time);
        memory[program].push(mapping.addr..Addr(mapping.addr.0.saturating_add(mapping.len)));
    }
    let (mut best, mut best_count) = (0, 0);
    for (program, memory) in memory.into_iter().enumerate() {
        let count = count_inside(memory, starts);
        if count >= best_count {
            (best, best_count) = (program, count);
        }
    }
    let began = if best == 0 { Nanos(0) } else { execs[best - 1] };
    let ended = execs.get(best).copied().unwrap_or(Nanos(u64::MAX));
    began..ended
}

/// The number of sorted addresses that lie in any of the ranges.
fn count_inside(mut ranges: Vec<Range<Addr>>, sorted: &[Addr]) -> usize {
    ranges.sort_unstable_by_key(|range| range.start);
    let count_below = |limit: Addr| sorted.partition_point(|addr| *addr < limit);
    let mut count = 0;
    // Ranges may overlap.
    let mut counted_to = Addr(0);
    for range in ranges {
        let start = range.start.max(counted_to);
        count += count_below(range.end).saturating_sub(count_below(start));
        counted_to = counted_to.max(range.end);
    }
    count
}
