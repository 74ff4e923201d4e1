//! Dates what a dump lists when it is opened in a process that has run for a while.
//!
//! An agent that is attached, or a runtime that is queried late for its code, writes all code that is there in one go.
//! The times of these records show when they were written and nothing of when the code was made:
//!
//! ```text
//! memory mapped                       dump opened
//!   ├──── code is made, runs ────────────┤├─ rundown ─┤──── loads, as code is made ────▶ time
//! ```
//!
//! Each piece counts as there since its memory was mapped last, or since the program began, like an entry of a map.

use crate::model::process::{Mapping, Process, Processes};
use crate::model::ranges::RangeMap;
use crate::model::{Addr, Nanos, Pid};
use crate::resolve::code_map::CodeList;
use std::ops::Range;

/// A program that has run for less than this is starting: its dump was opened on time. Runtimes open theirs within 0.2 s.
const STARTING: u64 = 1_000_000_000;

/// Between two records of a rundown nothing is compiled, but its thread may have to wait for a processor for so long.
const GAP: u64 = 20_000_000;

/// So much time a record takes, on average (measured: 15 µs).
const EACH: u64 = 200_000;

/// A rundown lists the code of a program that has run for a while: more functions than this. Fewer may be the first that
/// a compiler made.
const FEWEST: usize = 64;

/// Dates the rundown that a process's dump begins with, if it does. `marker` is when the dump was mapped, if that was seen.
pub(super) fn date(list: &mut CodeList<'_>, pid: Pid, marker: Option<Nanos>, processes: &Processes) {
    let Some(process) = processes.by_pid.get(&pid) else { return };
    let mut times = list.load_times();
    let Some(opened) = times.next() else { return };
    let (mut count, mut end) = (1, opened);
    for time in times {
        let latest = opened.0.saturating_add(GAP).saturating_add(EACH.saturating_mul(count as u64));
        if time < end || time.0 - end.0 > GAP || time.0 > latest {
            break;
        }
        (count, end) = (count + 1, time);
    }
    let Some(began) = start(process, opened, marker).filter(|_| count >= FEWEST) else { return };
    let memory = memory(process, began..end);
    list.date_loads(count, |Range { start, end }, time| {
        let mapped = memory.overlapping(start.0..end.0).map(|part| part.value).max()?;
        Some(mapped.max(began).min(time))
    });
}

/// When the program began that opened a dump at this time, if it was not just starting.
fn start(process: &Process, opened: Nanos, marker: Option<Nanos>) -> Option<Nanos> {
    let exec = process.execs.iter().copied().filter(|exec| *exec <= opened).max();
    let began = exec.or(process.forked.map(|(_, time)| time).filter(|time| *time <= opened));
    match began {
        Some(began) => (opened.0 - began.0 >= STARTING).then_some(began),
        // It ran before the recording, in which it opened the dump.
        None => marker.filter(|mapped| mapped.0 > 0).map(|_| Nanos(0)),
    }
}

/// Since when each address of executable memory was what it is at the end of a stretch of time.
fn memory(process: &Process, Range { start: began, end }: Range<Nanos>) -> RangeMap<Nanos> {
    let mut memory = RangeMap::default();
    let is_then = |mapping: &&Mapping| mapping.executable && began <= mapping.time && mapping.time <= end;
    for Mapping { addr, len, time, .. } in process.mappings.iter().filter(is_then) {
        memory.insert(addr.0..Addr(addr.0.saturating_add(*len)).0, *time, |_| {});
    }
    memory
}
