//! Combines a runtime's log with the jitdump or perf map of the same process.
//!
//! | what was at an address | name | lines and inlined calls |
//! |---|---|---|
//! | code of the jitdump at that time | jitdump | the log, if it has the same code; else the jitdump |
//! | otherwise code of the log at that time, in memory that no file backs | log | log |
//! | otherwise an entry of the perf map | perf map | – |
//!
//! A log therefore never overrides a jitdump's names, and neither overrides the symbols of a file. But a log adds what
//! the jitdump lacks: inlined calls, and code that the runtime doesn't dump (V8's builtins, copied near its JIT code).
//! A perf map has no times, so that the log is better where memory was reused.
//!
//! Code is considered the same if address, size and time match. The runtime writes each event to both files, one right
//! after the other. The time difference between an event's two records relates the log's clock to the jitdump's, more
//! precisely than samples can.

use super::account::{Kind, ReadSource, SourceState};
use super::clock::Conversion;
use super::found::Source;
use super::log_clock::LogStart;
use super::logs::{self, DatedLog};
use crate::jit::engine_logs::{CodeLog, LogCode, LogEventKind};
use crate::model::Pid;
use crate::model::code::{Lines, OriginId};
use crate::model::process::Processes;
use crate::symbolize::code_map::{CodeList, ListedCode};
use rustc_hash::FxHashMap;
use std::collections::HashMap;

impl<'data> ReadSource<'data> {
    /// Stores the log's code after its times were converted. `lent_lines` is how many of the jitdump's functions got
    /// their lines from the log.
    fn set_dated_log(&mut self, dated: DatedLog<'data>, lent_lines: u64) {
        self.warnings.extend(dated.warning);
        self.list = dated.list;
        if let SourceState::Loaded { codes, clock, times, lent, .. } = &mut self.account.state {
            *codes = self.list.code_count() as u64;
            *clock = dated.clock;
            *times = dated.times;
            *lent = lent_lines;
        }
    }

    fn has_times(&self) -> bool {
        matches!(self.account.state, SourceState::Loaded { times: Some(_), .. })
    }
}

/// The maximum time, in nanoseconds, between writing an event to the log and to the jitdump. The process may be
/// preempted in between.
const MAX_DELAY: u64 = 100_000_000;

/// Converts the times of all logs to the recording's clock, and combines the logs with the jitdumps and perf maps of
/// their processes.
pub(super) fn date_logs<'data>(sources: &'data [Source], read: &mut [ReadSource<'data>], processes: &Processes) {
    let mut by_pid = FxHashMap::<Pid, Vec<usize>>::default();
    for (index, source) in sources.iter().enumerate() {
        by_pid.entry(source.pid).or_default().push(index);
    }
    for (index, source) in sources.iter().enumerate() {
        let Some(log) = source.log.get() else { continue };
        // Indices of the process's jitdumps that have times.
        let mut dumps: Vec<usize> = Vec::new();
        let mut has_perf_map = false;
        for &other_index in &by_pid[&source.pid] {
            let other = &sources[other_index];
            // If a jitdump's times couldn't be converted, there is nothing to compare the log's times with.
            if other.kind == Kind::JitDump && read[other_index].has_times() {
                dumps.push(other_index);
            }
            has_perf_map |= other.kind == Kind::PerfMap;
        }
        // When the log's clock was 0, on the recording's clock. A log only states times since then.
        let start = dumps.iter().find_map(|&dump| find_log_start(log, source.pid, &read[dump].list));
        let mut dated = logs::date_log(OriginId(index as u32), source, log, processes, start);
        // The jitdump or perf map has better names for the same code, so the log only names code that these lack.
        if !dumps.is_empty() || has_perf_map {
            dated.list.fill_in();
        }
        // Where the log has source lines for code of a jitdump, that code gets them ("lent lines").
        let log_code = LogCodeIndex::new(log, source, start);
        let mut lent_lines = 0;
        for dump in dumps {
            lent_lines += read[dump].list.take_lines(|code| log_code.lines_for(code)) as u64;
        }
        read[index].set_dated_log(dated, lent_lines);
    }
}

/// The address of a code range, and its size in bytes.
type AddressAndSize = (u64, u64);

/// For each address and size: the times at which such code was loaded, in the order of the file.
type LoadTimes = HashMap<AddressAndSize, Vec<i64>>;

/// Each load of code in a log, with its time. Loads without a time are left out.
fn loads(log: &CodeLog) -> impl Iterator<Item = (i64, &LogCode)> {
    log.events.iter().filter_map(|event| match &event.kind {
        LogEventKind::Load(code) => Some((i64::try_from(event.time?).ok()?, code)),
        LogEventKind::Move { .. } | LogEventKind::Unload { .. } => None,
    })
}

/// Determines when a log started by comparing its times with those in a jitdump of the same process. `None` if they
/// don't match.
fn find_log_start(log: &CodeLog, pid: Pid, dump: &CodeList<'_>) -> Option<LogStart> {
    let mut dump_times = LoadTimes::new();
    for listed in dump.iter().filter(|listed| listed.pid == pid && !listed.is_move) {
        let address_and_size = (listed.code.addr.0, listed.code.size);
        dump_times.entry(address_and_size).or_default().extend(listed.time.and_then(|time| i64::try_from(time.0).ok()));
    }
    let mut log_times = LoadTimes::new();
    for (time, code) in loads(log) {
        log_times.entry((code.addr, code.size)).or_default().push(time);
    }
    let mut starts = Vec::new();
    for (address_and_size, log_times) in log_times {
        // If log and jitdump contain code with this address and size equally often, the records correspond one by one,
        // and the log started at the difference of their times. Otherwise, it isn't clear which records correspond.
        if let Some(dump_times) = dump_times.get(&address_and_size)
            && dump_times.len() == log_times.len()
        {
            starts.extend(log_times.iter().zip(dump_times).map(|(log_time, dump_time)| dump_time - log_time));
        }
    }
    find_common_start(starts)
}

/// The start time on which most of these estimates agree, to within [`MAX_DELAY`]; `None` if there is no such time.
fn find_common_start(mut starts: Vec<i64>) -> Option<LogStart> {
    starts.sort_unstable();
    let median = *starts.get(starts.len() / 2)?;
    let errors = starts.iter().map(|start| start.abs_diff(median)).filter(|error| *error <= MAX_DELAY);
    if errors.clone().count() * 2 <= starts.len() {
        return None;
    }
    Some(LogStart { time: median, error: errors.max() })
}

/// The code in a log, for finding the same code that a jitdump of the same process lists.
struct LogCodeIndex<'data> {
    log: &'data CodeLog,
    source: &'data Source,
    /// The log's code by address and size, each list sorted by time on the recording's clock.
    codes: HashMap<AddressAndSize, Vec<(u64, &'data LogCode)>>,
}

impl<'data> LogCodeIndex<'data> {
    /// Creates an index of a log's code. The index is empty if it isn't known when the log started.
    fn new(log: &'data CodeLog, source: &'data Source, start: Option<LogStart>) -> Self {
        let mut codes: HashMap<AddressAndSize, Vec<_>> = HashMap::new();
        if let Some(start) = start {
            let conversion = Conversion::from(start);
            for (time, code) in loads(log) {
                // A log's times aren't negative. They have a sign only to compute differences.
                let time = conversion.apply(time.unsigned_abs()).unwrap_or_default();
                codes.entry((code.addr, code.size)).or_default().push((time.0, code));
            }
        }
        Self { log, source, codes }
    }

    /// The log's source lines for a piece of code in the jitdump. `None` if the log doesn't contain that code, or no
    /// lines for it.
    fn lines_for(&self, listed: &ListedCode<'data>) -> Option<Lines<'data>> {
        if listed.pid != self.source.pid {
            return None;
        }
        let dump_time = listed.time?.0;
        let candidates = self.codes.get(&(listed.code.addr.0, listed.code.size))?;
        let (log_time, code) = candidates.iter().min_by_key(|(log_time, _)| log_time.abs_diff(dump_time))?;
        // If even the nearest time is too far away, the log's code is other code, which was at the same address at
        // another time.
        if log_time.abs_diff(dump_time) > MAX_DELAY {
            return None;
        }
        let lines = logs::lines_of_code(code, self.log, self.source);
        if lines.raw.is_empty() { None } else { Some(lines) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jit::engine_logs::{LogClock, LogEvent, LogPositions};
    use crate::model::code::{Code, Line, SourceMap};
    use crate::model::{Addr, Nanos};
    use std::path::PathBuf;

    const MS: u64 = 1_000_000;

    /// Each entry of the log spells its line number as one digit.
    #[derive(Debug)]
    struct Spelled;

    impl LogPositions for Spelled {
        fn source_map<'a>(&'a self, _: &'a [u8], entry: &'a [u8]) -> SourceMap<'a> {
            let line = Line { line: u32::from(entry[0] - b'0'), ..Line::default() };
            SourceMap { lines: vec![line], ..SourceMap::default() }
        }
    }

    /// A log of code with 0x10 bytes each, at these (time, address) pairs; the nth is on line n.
    fn logged(codes: &[(u64, u64)]) -> Source {
        let mut log = CodeLog::new(LogClock::SinceStart { began: None }, "line");
        log.line_decoder = Some(Box::new(Spelled));
        let name = log.texts.intern(b"of the log");
        for (&(time, addr), at) in codes.iter().zip(0..) {
            let code = LogCode { line_range: (at, at + 1), ..LogCode::new(name, addr, 0x10) };
            log.events.push(LogEvent { time: Some(time), kind: LogEventKind::Load(code) });
        }
        let source = Source::new(PathBuf::from("x.log"), Kind::PerfMap, Pid(7), b"0123456789".to_vec());
        source.log.set(log).unwrap();
        source
    }

    fn dumped(codes: &[(u64, u64)]) -> CodeList<'static> {
        let mut list = CodeList::default();
        for &(time, addr) in codes {
            list.load(Pid(7), Some(Nanos(time)), &Code::new(b"of the dump", Addr(addr), &[0; 0x10], OriginId(0)));
        }
        list
    }

    #[test]
    fn a_dump_ties_the_log_of_its_process() {
        // The log started at 500 ms. The process was preempted for 3 ms between the two records of the third code.
        let source = logged(&[(MS, 0x100), (2 * MS, 0x200), (3 * MS, 0x300), (4 * MS, 0x900)]);
        let dump = dumped(&[(501 * MS, 0x100), (502 * MS + 7, 0x200), (506 * MS, 0x300), (507 * MS, 0x800)]);
        let log = source.log.get().unwrap();
        let start = LogStart { time: 500 * MS as i64 + 7, error: Some(3 * MS - 7) };
        assert_eq!(find_log_start(log, Pid(7), &dump), Some(start));
        assert_eq!(find_log_start(log, Pid(8), &dump), None, "of another process");
        let strange = dumped(&[(501 * MS, 0x100), (900 * MS, 0x200), (1900 * MS, 0x300)]);
        assert_eq!(find_log_start(log, Pid(7), &strange), None, "of another run");
    }

    #[test]
    fn code_of_a_dump_takes_the_lines_of_the_same_code_of_the_log() {
        // The memory at 0x100 is reused. At 0x400 the log has code much later, at 0x200 none.
        let source = logged(&[(MS, 0x100), (300 * MS, 0x100), (2 * MS, 0x300), (900 * MS, 0x400)]);
        let mut dump =
            dumped(&[(501 * MS, 0x100), (502 * MS, 0x200), (503 * MS, 0x300), (504 * MS, 0x400), (801 * MS, 0x100)]);
        let log = source.log.get().unwrap();
        let same = LogCodeIndex::new(log, &source, Some(LogStart { time: 500 * MS as i64, error: Some(0) }));
        assert_eq!(dump.take_lines(|code| same.lines_for(code)), 3);
        let lines = dump.iter().map(|listed| listed.code.lines.entries().first().map(|line| line.line));
        assert_eq!(lines.collect::<Vec<_>>(), [Some(0), None, Some(2), None, Some(1)]);
        assert!(dump.iter().all(|listed| listed.code.name == b"of the dump"));
    }
}
