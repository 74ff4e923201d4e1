//! Relates a log whose times count from the start of the runtime to the recording's clock.
//!
//! No recording says when the runtime started. But code is compiled after its memory is mapped, and runs after it is
//! compiled:
//!
//! ```text
//! start of the log ≥ time of a mapping's record − log time of the first code in that memory
//! start of the log ≤ time of a sample           − log time of the code that was sampled
//! ```
//!
//! Runtimes map memory piece by piece as they need it, and new code soon shows up in a sample's call chain. For V8,
//! both bounds are within 0.1 ms of the truth (measured with a recording that also has a jitdump). Code in files is
//! ignored, because a runtime logs its own functions at any time.
//!
//! If the bounds are far apart or one is missing, the creation time of the log file decides. That is the case for
//! Node.js 24 and 25, which map all memory at once, and for a process that had mapped all its memory before the
//! recording. A copied file has a later creation time than the samples, which the bounds reveal. If nothing else is
//! known, the error is unknown.

use crate::model::Addr;
use crate::model::Nanos;
use crate::model::process::{Mapping, Process};
use crate::model::ranges::RangeMap;
use crate::records::jit_logs::{CodeLog, LogEventKind};
use std::collections::BTreeMap;

/// When each address of a process was first seen in a sample or its call chain.
pub(super) type FirstSeen = BTreeMap<Addr, Nanos>;

/// Code may run slightly before the log's line is stamped. Bounds may contradict each other by this many nanoseconds.
const LATE: i64 = 1_000_000;

/// In nanoseconds. File systems stamp new files with the last tick of the kernel's clock, 1 to 10 ms ago, while the
/// log's times start when the file exists (measured with Node.js 18 to 25: 0 to 5 ms after the stamp).
const TICK: u64 = 10_000_000;

/// When a log started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogStart {
    /// On the recording's clock, in nanoseconds; may be negative.
    pub(super) at: i64,
    /// The maximum error in nanoseconds; `None` if unknown.
    pub(super) error: Option<u64>,
}

/// A piece of code in the log.
#[derive(Debug, Clone, Copy)]
struct LoggedCode {
    time: i64,
    addr: u64,
    end: u64,
}

/// Determines when the log of a process started; `None` if nothing is known. `born` is the creation time of its file on
/// the recording's clock.
pub(super) fn start(log: &CodeLog, process: &Process, seen: &FirstSeen, born: Option<i64>) -> Option<LogStart> {
    let made: Vec<LoggedCode> = made(log).collect();
    let jit = jit_memory(process);
    let began = process.execs.last().copied().or(process.forked.map(|(_, time)| time));
    let began = began.and_then(|time| i64::try_from(time.0).ok());
    let earliest = made.iter().filter_map(|code| bound(jit.get(code.addr)?.value, code.time)).max();
    let earliest = earliest.max(began);
    let latest = latest(&made, &jit, seen, earliest);
    by_bounds(earliest, latest).or_else(|| by_file(born?, earliest, latest)).or_else(|| {
        let error = earliest.zip(latest).map(|(earliest, latest)| latest.abs_diff(earliest));
        Some(LogStart { at: latest.or(earliest)?, error })
    })
}

/// If both bounds are close to each other, their middle.
fn by_bounds(earliest: Option<i64>, latest: Option<i64>) -> Option<LogStart> {
    let (earliest, latest) = earliest.zip(latest)?;
    let room = latest.abs_diff(earliest);
    let near = room <= LATE.unsigned_abs();
    near.then(|| LogStart { at: earliest.midpoint(latest), error: Some(room.div_ceil(2)) })
}

/// The creation time of the log file, unless a bound contradicts it.
fn by_file(born: i64, earliest: Option<i64>, latest: Option<i64>) -> Option<LogStart> {
    let tick = TICK as i64;
    let fits =
        earliest.is_none_or(|earliest| born >= earliest - tick) && latest.is_some_and(|latest| born <= latest + LATE);
    let at = (born + tick / 2).max(earliest.unwrap_or(i64::MIN)).min(latest?);
    fits.then_some(LogStart { at, error: Some(TICK) })
}

fn made(log: &CodeLog) -> impl Iterator<Item = LoggedCode> + '_ {
    log.events.iter().filter_map(|event| {
        let LogEventKind::Load(code) = event.kind else { return None };
        let time = i64::try_from(event.time?).ok()?;
        Some(LoggedCode { time, addr: code.addr, end: code.addr.saturating_add(code.size) })
    })
}

/// Memory for JIT code of the process's last program, with the time of its first mapping; 0 if before the recording
/// began.
fn jit_memory(process: &Process) -> RangeMap<Nanos> {
    let began = process.execs.last().copied().unwrap_or_default();
    let is_ours = |mapping: &&Mapping| mapping.time >= began || mapping.time == Nanos(0) && began == Nanos(0);
    let jit = process.mappings.iter().filter(|mapping| mapping.executable && mapping.backing().may_hold_jit_code());
    let mut memory = RangeMap::default();
    for Mapping { time, addr, len, .. } in jit.filter(is_ours) {
        let (mut from, end) = (addr.0, addr.0.saturating_add(*len));
        let known: Vec<_> = memory.overlapping(from..end).map(|entry| (entry.start, entry.end)).collect();
        for (start, next) in known {
            memory.insert_into_gap(from..start.max(from), *time);
            from = next.max(from);
        }
        memory.insert_into_gap(from..end.max(from), *time);
    }
    memory
}

/// The start of the log if something has the time `own` in the log and `time` in the recording.
fn bound(time: Nanos, own: i64) -> Option<i64> {
    i64::try_from(time.0).ok().filter(|time| *time > 0)?.checked_sub(own)
}

/// The latest start for which all code was compiled before it was first sampled. Samples that contradict `earliest` are
/// ignored: there, the log was written late.
fn latest(made: &[LoggedCode], jit: &RangeMap<Nanos>, seen: &FirstSeen, earliest: Option<i64>) -> Option<i64> {
    let mut left = seen.clone();
    let mut latest = None;
    for code in made.iter().filter(|code| code.addr < code.end && jit.get(code.addr).is_some()) {
        // The first code at an address gives the bound.
        let here: Vec<(Addr, Nanos)> =
            left.range(Addr(code.addr)..Addr(code.end)).map(|(addr, time)| (*addr, *time)).collect();
        for (addr, time) in here {
            left.remove(&addr);
            let own = bound(time, code.time).filter(|own| earliest.is_none_or(|earliest| *own >= earliest - LATE));
            latest = latest.into_iter().chain(own).min();
        }
    }
    latest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::process::CpuMode;
    use crate::records::jit_logs::{LogClock, LogCode, LogEvent};

    const MS: u64 = 1_000_000;

    /// A log with code of 0x10 bytes each, given as (time, address).
    fn log(codes: &[(u64, u64)]) -> CodeLog {
        let mut log = CodeLog::new(LogClock::SinceStart { began: None }, "line");
        let name = log.texts.intern(b"f");
        let event =
            |&(time, addr)| LogEvent { time: Some(time), kind: LogEventKind::Load(LogCode::new(name, addr, 0x10)) };
        log.events = codes.iter().map(event).collect();
        log
    }

    fn process(mapped: &[(u64, u64, u64)]) -> Process {
        let mapping = |&(time, addr, len)| Mapping {
            time: Nanos(time),
            addr: Addr(addr),
            len,
            pgoff: 0,
            path: b"//anon".to_vec(),
            build_id: None,
            file: None,
            executable: true,
            cpumode: CpuMode::User,
            offset: 0,
        };
        Process { execs: vec![Nanos(100 * MS)], mappings: mapped.iter().map(mapping).collect(), ..Process::default() }
    }

    fn seen(at: &[(u64, u64)]) -> FirstSeen {
        at.iter().map(|&(addr, time)| (Addr(addr), Nanos(time))).collect()
    }

    #[test]
    fn a_log_began_between_what_mappings_and_samples_allow() {
        // The log starts at 130 ms on the recording's clock. The memory of the code at 10 ms into the log is mapped at
        // 139.9 ms, so the log started at 129.9 ms or later. The code at 20 ms into the log is sampled at 150.3 ms, so
        // the log started at 130.3 ms or earlier.
        let log = log(&[(MS, 0xf000), (10 * MS, 0x1000), (20 * MS, 0x1100), (30 * MS, 0x1000)]);
        let process = process(&[(140 * MS - MS / 10, 0x1000, 0x1000), (160 * MS, 0x1000, 0x8000)]);
        let seen = seen(&[(0x1008, 145 * MS), (0x1108, 150 * MS + 3 * MS / 10), (0xf004, 101 * MS), (0x9000, 1)]);
        let start = start(&log, &process, &seen, None).unwrap();
        assert_eq!(start, LogStart { at: (130 * MS + MS / 10) as i64, error: Some(MS / 5) });
    }

    #[test]
    fn a_mapping_at_once_leaves_the_decision_to_the_samples() {
        let log = log(&[(10 * MS, 0x1000), (20 * MS, 0x1100)]);
        let process = process(&[(101 * MS, 0x1000, 0x1000)]);
        let seen = seen(&[(0x1008, 145 * MS), (0x1108, 151 * MS)]);
        let at = |born| start(&log, &process, &seen, born).unwrap();
        let by_samples = LogStart { at: 131 * MS as i64, error: Some(31 * MS) };
        assert_eq!(at(None), by_samples);
        assert_eq!(at(Some(126 * MS as i64)), LogStart { at: 131 * MS as i64, error: Some(TICK) }, "by its file");
        assert_eq!(at(Some(110 * MS as i64)), LogStart { at: 115 * MS as i64, error: Some(TICK) });
        assert_eq!(at(Some(900 * MS as i64)), by_samples, "a copy's own time");
        assert_eq!(at(Some(80 * MS as i64)), by_samples, "before the program began");
    }

    #[test]
    fn code_that_the_log_reports_late_bounds_nothing() {
        let log = log(&[(10 * MS, 0x1000), (20 * MS, 0x1100)]);
        let process = process(&[(140 * MS, 0x1000, 0x1000)]);
        // Sampled 30 ms before the log contains it.
        let seen = seen(&[(0x1008, 110 * MS + 500_000), (0x1108, 150 * MS + MS)]);
        let bounds = by_bounds(Some(130 * MS as i64), Some(131 * MS as i64));
        assert_eq!(start(&log, &process, &seen, None), bounds);
    }

    #[test]
    fn without_samples_or_mappings_less_is_reported() {
        let codes = log(&[(10 * MS, 0x1000)]);
        let mapped = process(&[(140 * MS, 0x1000, 0x1000)]);
        let of = |process: &Process, seen: &FirstSeen, born| start(&codes, process, seen, born);
        let unknown = |ms: u64| Some(LogStart { at: (ms * MS) as i64, error: None });
        assert_eq!(of(&mapped, &FirstSeen::new(), None), unknown(130));
        let attached = Process { execs: Vec::new(), ..process(&[(0, 0x1000, 0x1000)]) };
        let seen = seen(&[(0x1008, 150 * MS)]);
        assert_eq!(of(&attached, &seen, None), unknown(140), "it may be much older");
        let by_file = LogStart { at: (30 * MS + TICK / 2) as i64, error: Some(TICK) };
        assert_eq!(of(&attached, &seen, Some(30 * MS as i64)), Some(by_file));
        assert_eq!(of(&attached, &FirstSeen::new(), None), None);
    }
}
