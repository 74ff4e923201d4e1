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

use crate::model::process::{Process, Processes};
use crate::model::ranges::RangeMap;
use crate::model::{Nanos, Pid};
use crate::symbolize::code_map::CodeList;

/// How old a program must be when it opens its jitdump, in nanoseconds, for the jitdump to count as opened late. A
/// younger program was starting up: runtimes open theirs within 0.2 s.
const START_UP: u64 = 1_000_000_000;

/// The maximum time between two records of a rundown, in nanoseconds. Nothing is compiled in between, but the thread
/// may be preempted.
const MAX_GAP: u64 = 20_000_000;

/// The maximum average time per record of a rundown, in nanoseconds (measured: 15 µs).
const MAX_TIME_PER_RECORD: u64 = 200_000;

/// The minimum number of functions in a rundown. A shorter list may be the first functions that a compiler produced.
const MIN_FUNCTIONS: usize = 64;

/// If a process's jitdump begins with a rundown (the list of all code that existed when the jitdump was opened),
/// corrects the times of that code. `marker_time` is when the process mapped the jitdump, if that was recorded.
pub(super) fn correct_times(list: &mut CodeList<'_>, pid: Pid, marker_time: Option<Nanos>, processes: &Processes) {
    let Some(process) = processes.by_pid.get(&pid) else { return };
    // Counts the records at the start of the jitdump that follow each other so quickly that they are a rundown.
    let mut times = list.load_times();
    let Some(opened) = times.next() else { return };
    let mut count = 1;
    let mut end = opened;
    for time in times {
        // The whole rundown may take a certain time per record, plus one pause.
        let time_limit = MAX_TIME_PER_RECORD.saturating_mul(count as u64);
        let latest = opened.0.saturating_add(MAX_GAP).saturating_add(time_limit);
        if time < end || time.0 - end.0 > MAX_GAP || time.0 > latest {
            break;
        }
        count += 1;
        end = time;
    }
    if count < MIN_FUNCTIONS {
        return;
    }
    let Some(began) = program_start(process, opened, marker_time) else { return };
    let memory = executable_memory(process, began, end);
    // Replaces the times of the first `count` loads, those of the rundown.
    list.date_loads(count, |range, time| {
        // The latest time at which any part of the code's memory was mapped. If no such time is known, the record keeps
        // its time (`None`).
        let mapped = memory.overlapping(range.start.0..range.end.0).map(|part| part.value).max()?;
        // The code can't be older than its memory or its program, nor younger than its record.
        Some(mapped.max(began).min(time))
    });
}

/// When a program began that opened its jitdump at `opened`. `None` if the program was still starting up when it opened
/// the jitdump, or if it is unknown whether it was.
fn program_start(process: &Process, opened: Nanos, marker_time: Option<Nanos>) -> Option<Nanos> {
    let exec = process.execs.iter().copied().filter(|exec| *exec <= opened).max();
    let forked = process.forked.map(|(_, time)| time).filter(|time| *time <= opened);
    match exec.or(forked) {
        Some(began) if opened.0 - began.0 >= START_UP => Some(began),
        Some(_) => None,
        // The recording has neither an exec nor a fork of the program, so the program was running before the recording
        // began. It mapped its jitdump during the recording (the time of an earlier mapping would be 0), so it had
        // already started up.
        None if marker_time.is_some_and(|mapped| mapped.0 > 0) => Some(Nanos(0)),
        None => None,
    }
}

/// The executable memory that was mapped between two times, both included. The value at each address is the time when
/// the address was last mapped.
fn executable_memory(process: &Process, first: Nanos, last: Nanos) -> RangeMap<Nanos> {
    let mut memory = RangeMap::default();
    for mapping in &process.mappings {
        if mapping.executable && first <= mapping.time && mapping.time <= last {
            let end = mapping.addr.0.saturating_add(mapping.len);
            memory.insert(mapping.addr.0..end, mapping.time, |_| {});
        }
    }
    memory
}
