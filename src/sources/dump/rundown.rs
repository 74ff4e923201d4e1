//! Corrects the times of code that a jitdump lists when it is opened late.
//!
//! When an agent is attached to a running process, or a runtime is told late to report its code, it writes all existing
//! code at once (a rundown). The times of these records say when they were written, not when the code was compiled:
//!
//! ```text
//! memory mapped                       jitdump opened
//!   ├──── code is compiled, runs ────────┤├─ rundown ─┤──── loads, as code is compiled ──▶ time
//! ```
//!
//! Code in a rundown is therefore assumed to exist since its memory was last mapped, or since the program began if that
//! is later.

use crate::model::process::{Mapping, Process, Processes};
use crate::model::ranges::RangeMap;
use crate::model::{Addr, Nanos, Pid};
use crate::resolve::code_map::CodeList;
use std::ops::Range;

/// In nanoseconds. A program that began less than this ago is starting up, so that its jitdump was opened on time.
/// Runtimes open theirs within 0.2 s.
const STARTING: u64 = 1_000_000_000;

/// The maximum time between two records of a rundown, in nanoseconds. Nothing is compiled in between, but the thread
/// may be preempted.
const GAP: u64 = 20_000_000;

/// The maximum average time per record, in nanoseconds (measured: 15 µs).
const EACH: u64 = 200_000;

/// The minimum number of functions in a rundown. Fewer may be the first ones that a compiler produces.
const FEWEST: usize = 64;

/// Corrects the times of the rundown at the start of a process's jitdump, if there is one. `marker` is when the jitdump
/// was mapped, if that was recorded.
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

/// When the program began that opened a jitdump at time `opened`; `None` if it was just starting up.
fn start(process: &Process, opened: Nanos, marker: Option<Nanos>) -> Option<Nanos> {
    let exec = process.execs.iter().copied().filter(|exec| *exec <= opened).max();
    let began = exec.or(process.forked.map(|(_, time)| time).filter(|time| *time <= opened));
    match began {
        Some(began) => (opened.0 - began.0 >= STARTING).then_some(began),
        // It was running before the recording began, and opened the jitdump during it.
        None => marker.filter(|mapped| mapped.0 > 0).map(|_| Nanos(0)),
    }
}

/// For executable memory that was mapped in a time range: when each address was last mapped.
fn memory(process: &Process, Range { start: began, end }: Range<Nanos>) -> RangeMap<Nanos> {
    let mut memory = RangeMap::default();
    let is_then = |mapping: &&Mapping| mapping.executable && began <= mapping.time && mapping.time <= end;
    for Mapping { addr, len, time, .. } in process.mappings.iter().filter(is_then) {
        memory.insert(addr.0..Addr(addr.0.saturating_add(*len)).0, *time, |_| {});
    }
    memory
}
