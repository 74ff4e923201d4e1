//! Relates a log's times to the recording's clock, if the log's times count from the start of the runtime.
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

use crate::jit::engine_logs::{CodeLog, LogEventKind};
use crate::model::Addr;
use crate::model::Nanos;
use crate::model::process::Process;
use crate::model::ranges::RangeMap;
use std::collections::BTreeMap;

/// When each address of a process was first seen in a sample or its call chain.
pub(super) type FirstSeen = BTreeMap<Addr, Nanos>;

/// In nanoseconds: by how much the log may date the compilation of code later than a sample in that code. The earliest
/// and the latest possible start of the log, which are computed from such times, may therefore contradict each other by
/// this much. If they differ by at most this much, the middle between them is taken.
const TOLERANCE: i64 = 1_000_000;

/// In nanoseconds: how long before the log's start its file may seem to have been created. File systems stamp new files
/// with the last tick of the kernel's clock, 1 to 10 ms ago, while the log's times start when the file exists (measured
/// with Node.js 18 to 25: 0 to 5 ms after the stamp).
const TICK: u64 = 10_000_000;

/// When a log's times start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogStart {
    /// The time at which the log's clock was 0, on the recording's clock in nanoseconds; may be negative.
    pub(super) time: i64,
    /// The maximum error in nanoseconds; `None` if unknown.
    pub(super) error: Option<u64>,
}

/// A code range in the log that has a time: when it was logged, and its addresses.
#[derive(Debug, Clone, Copy)]
struct LoggedCode {
    time: i64,
    addr: u64,
    end: u64,
}

/// Estimates when a process's log started; `None` if nothing is known about it. Code is compiled after its memory is
/// mapped, and sampled after it is compiled. This gives an earliest and a latest possible start of the log. If these
/// two are close to each other, the result is in the middle. Otherwise, it is the creation time of the log's file
/// (`created`, on the recording's clock in nanoseconds), unless that contradicts them. If it does, the result is the
/// latest start, or the earliest if the latest is unknown. `first_seen` tells when each address was first sampled.
pub(super) fn estimate_start(
    log: &CodeLog,
    process: &Process,
    first_seen: &FirstSeen,
    created: Option<i64>,
) -> Option<LogStart> {
    let codes = logged_code(log);
    let jit = jit_memory(process);
    // The log can't have started before the program, nor so early that code would be older than its memory.
    let began = process.execs.last().copied().or(process.forked.map(|(_, time)| time));
    let mut earliest = began.and_then(|time| i64::try_from(time.0).ok());
    for code in &codes {
        if let Some(mapped) = jit.get(code.addr) {
            // `start_if_same` returns when the log started if this code was logged at the very moment of the mapping.
            // The code can't have been logged before that moment, so the log can't have started earlier either. `None`
            // if the memory was mapped before the recording began: then nothing follows, and `earliest` stays.
            earliest = earliest.max(start_if_same(mapped.value, code.time));
        }
    }
    let latest = latest_start(&codes, &jit, first_seen, earliest);
    // If both bounds are known and close to each other, the start is in the middle between them.
    if let Some(start) = start_from_bounds(earliest, latest) {
        return Some(start);
    }
    if let Some(start) = created.and_then(|created| start_from_file(created, earliest, latest)) {
        return Some(start);
    }
    let error = earliest.zip(latest).map(|(earliest, latest)| latest.abs_diff(earliest));
    Some(LogStart { time: latest.or(earliest)?, error })
}

/// The middle between both bounds of the log's start; `None` unless they are close to each other.
fn start_from_bounds(earliest: Option<i64>, latest: Option<i64>) -> Option<LogStart> {
    let (earliest, latest) = earliest.zip(latest)?;
    let distance = latest.abs_diff(earliest);
    let is_close = distance <= TOLERANCE.unsigned_abs();
    is_close.then(|| LogStart { time: earliest.midpoint(latest), error: Some(distance.div_ceil(2)) })
}

/// The log's start, taken from the creation time of the log's file (`created`). `None` if that time contradicts a
/// bound, or if no latest start is known.
fn start_from_file(created: i64, earliest: Option<i64>, latest: Option<i64>) -> Option<LogStart> {
    let tick = TICK as i64;
    let latest = latest?;
    if earliest.is_some_and(|earliest| created < earliest - tick) || created > latest + TOLERANCE {
        return None;
    }
    // The file was created up to one tick after its time stamp. Take the middle, within the bounds.
    let time = (created + tick / 2).max(earliest.unwrap_or(i64::MIN)).min(latest);
    Some(LogStart { time, error: Some(TICK) })
}

/// All code in the log that has a time, in the log's order.
fn logged_code(log: &CodeLog) -> Vec<LoggedCode> {
    let mut codes = Vec::new();
    for event in &log.events {
        if let LogEventKind::Load(code) = event.kind
            && let Some(time) = event.time.and_then(|time| i64::try_from(time).ok())
        {
            codes.push(LoggedCode { time, addr: code.addr, end: code.addr.saturating_add(code.size) });
        }
    }
    codes
}

/// Memory for JIT code that the process's last program mapped, with the time at which each address was first mapped; 0
/// if that was before the recording began.
fn jit_memory(process: &Process) -> RangeMap<Nanos> {
    let last_exec = process.execs.last().copied().unwrap_or_default();
    let mut memory = RangeMap::default();
    for mapping in process.mappings.iter().filter(|mapping| mapping.time >= last_exec && mapping.executable) {
        if !mapping.kind().may_hold_jit_code() {
            continue;
        }
        // Addresses that were mapped before keep the time of their first mapping, so only the gaps between them are
        // filled. `from` is where the next gap begins.
        let mut from = mapping.addr.0;
        let end = from.saturating_add(mapping.len);
        let mapped_before: Vec<_> = memory.overlapping(from..end).map(|entry| entry.start..entry.end).collect();
        for old_range in mapped_before {
            memory.insert_into_gap(from..old_range.start.max(from), mapping.time);
            from = old_range.end.max(from);
        }
        memory.insert_into_gap(from..end.max(from), mapping.time);
    }
    memory
}

/// When the log started (on the recording's clock, in nanoseconds), given one moment on both clocks: `recorded` on the
/// recording's clock, and `logged` since the log's start. `None` if `recorded` isn't known.
fn start_if_same(recorded: Nanos, logged: i64) -> Option<i64> {
    let recorded = i64::try_from(recorded.0).ok().filter(|time| *time > 0)?;
    recorded.checked_sub(logged)
}

/// The latest time at which the log can have started: with a later start, some code would have been compiled after it
/// was first sampled. `codes` are in the log's order, `jit` is the memory for JIT code, and `first_seen` tells when
/// each address was first sampled. `None` if no code in the log was sampled.
///
/// A sample that would give a time before `earliest` is ignored: the log dated that code too late, after the code had
/// already run.
fn latest_start(
    codes: &[LoggedCode],
    jit: &RangeMap<Nanos>,
    first_seen: &FirstSeen,
    earliest: Option<i64>,
) -> Option<i64> {
    let mut unmatched = first_seen.clone();
    let mut latest: Option<i64> = None;
    for code in codes.iter().filter(|code| code.addr < code.end && jit.get(code.addr).is_some()) {
        // Each sampled address is compared only with the first code in the log that covers it: if that code was
        // replaced later, the address's first sample may still have hit the earlier code.
        let samples = unmatched.range(Addr(code.addr)..Addr(code.end)).map(|(addr, time)| (*addr, *time));
        let samples: Vec<(Addr, Nanos)> = samples.collect();
        for (addr, time) in samples {
            unmatched.remove(&addr);
            if let Some(start) = start_if_same(time, code.time)
                && earliest.is_none_or(|earliest| start >= earliest - TOLERANCE)
            {
                latest = Some(latest.map_or(start, |latest| latest.min(start)));
            }
        }
    }
    latest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jit::engine_logs::{LogClock, LogCode, LogEvent};
    use crate::model::process::{CpuMode, Mapping};

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
        let start = estimate_start(&log, &process, &seen, None).unwrap();
        assert_eq!(start, LogStart { time: (130 * MS + MS / 10) as i64, error: Some(MS / 5) });
    }

    #[test]
    fn a_mapping_at_once_leaves_the_decision_to_the_samples() {
        let log = log(&[(10 * MS, 0x1000), (20 * MS, 0x1100)]);
        let process = process(&[(101 * MS, 0x1000, 0x1000)]);
        let seen = seen(&[(0x1008, 145 * MS), (0x1108, 151 * MS)]);
        let at = |created| estimate_start(&log, &process, &seen, created).unwrap();
        let by_samples = LogStart { time: 131 * MS as i64, error: Some(31 * MS) };
        assert_eq!(at(None), by_samples);
        assert_eq!(at(Some(126 * MS as i64)), LogStart { time: 131 * MS as i64, error: Some(TICK) }, "by its file");
        assert_eq!(at(Some(110 * MS as i64)), LogStart { time: 115 * MS as i64, error: Some(TICK) });
        assert_eq!(at(Some(900 * MS as i64)), by_samples, "a copy's own time");
        assert_eq!(at(Some(80 * MS as i64)), by_samples, "before the program began");
    }

    #[test]
    fn code_that_the_log_reports_late_bounds_nothing() {
        let log = log(&[(10 * MS, 0x1000), (20 * MS, 0x1100)]);
        let process = process(&[(140 * MS, 0x1000, 0x1000)]);
        // Sampled 30 ms before the log contains it.
        let seen = seen(&[(0x1008, 110 * MS + 500_000), (0x1108, 150 * MS + MS)]);
        let bounds = start_from_bounds(Some(130 * MS as i64), Some(131 * MS as i64));
        assert_eq!(estimate_start(&log, &process, &seen, None), bounds);
    }

    #[test]
    fn without_samples_or_mappings_less_is_reported() {
        let codes = log(&[(10 * MS, 0x1000)]);
        let mapped = process(&[(140 * MS, 0x1000, 0x1000)]);
        let unknown = |ms: u64| Some(LogStart { time: (ms * MS) as i64, error: None });
        assert_eq!(estimate_start(&codes, &mapped, &FirstSeen::new(), None), unknown(130));
        let attached = Process { execs: Vec::new(), ..process(&[(0, 0x1000, 0x1000)]) };
        let seen = seen(&[(0x1008, 150 * MS)]);
        assert_eq!(estimate_start(&codes, &attached, &seen, None), unknown(140), "it may be much older");
        let by_file = LogStart { time: (30 * MS + TICK / 2) as i64, error: Some(TICK) };
        assert_eq!(estimate_start(&codes, &attached, &seen, Some(30 * MS as i64)), Some(by_file));
        assert_eq!(estimate_start(&codes, &attached, &FirstSeen::new(), None), None);
    }
}
