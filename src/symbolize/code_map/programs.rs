//! Finds out to which program a process's untimed entries belong, if the process ran several programs.
//!
//! A perf map is written by one program, but a process runs another program after each exec. A program's entries lie in
//! memory that it had mapped. If several programs had mapped that memory (addresses aren't always randomized), the last
//! one wrote the file.
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

/// Finds the program that wrote the untimed entries of each process, and returns the period in which that program ran.
/// Leaves out processes that never called exec.
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

/// Chooses the program whose executable memory contains most of the addresses in `starts`, which must be sorted, and
/// returns the period in which that program ran. If several programs contain equally many, chooses the last one.
fn find_program(process: &Process, starts: &[Addr]) -> Range<Nanos> {
    let mut execs = process.execs.clone();
    execs.sort_unstable();
    execs.dedup();
    // The executable memory of each program: of the one before the first exec, and of those that the execs started.
    let mut memory: Vec<Vec<Range<Addr>>> = vec![Vec::new(); execs.len() + 1];
    for mapping in process.mappings.iter().filter(|mapping| mapping.executable) {
        // Program n is the one after n execs. The mappings that an exec makes have the same time as the exec, and
        // belong to the new program.
        let program = execs.partition_point(|exec| *exec <= mapping.time);
        memory[program].push(mapping.addr..Addr(mapping.addr.0.saturating_add(mapping.len)));
    }
    // Because of `>=`, the last of equally good programs is chosen.
    let (mut best, mut best_count) = (0, 0);
    for (program, ranges) in memory.into_iter().enumerate() {
        let count = count_inside(ranges, starts);
        if count >= best_count {
            (best, best_count) = (program, count);
        }
    }
    // Program 0 ran before the first exec, so it is there from the beginning of the recording.
    let began = if best == 0 { Nanos(0) } else { execs[best - 1] };
    let ended = execs.get(best).copied().unwrap_or(Nanos(u64::MAX));
    began..ended
}

/// How many of the addresses in `sorted` lie in at least one of the ranges.
fn count_inside(mut ranges: Vec<Range<Addr>>, sorted: &[Addr]) -> usize {
    ranges.sort_unstable_by_key(|range| range.start);
    let count_below = |limit: Addr| sorted.partition_point(|addr| *addr < limit);
    let mut count = 0;
    // Ranges may overlap, so addresses before this one have been counted already.
    let mut counted_to = Addr(0);
    for range in ranges {
        let start = range.start.max(counted_to);
        count += count_below(range.end).saturating_sub(count_below(start));
        counted_to = counted_to.max(range.end);
    }
    count
}
