//! Combines a runtime's log with the jitdump or perf map of the same process.
//!
//! | what was at an address | name | lines and inlined calls |
//! |---|---|---|
//! | code of the jitdump at that time | jitdump | the same code in the log, else the jitdump |
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

use super::account::{Account, Kind, SourceState};
use super::clock::Conversion;
use super::discover::Source;
use super::log_clock::LogStart;
use super::logs::{self, DatedLog};
use crate::error::Warnings;
use crate::model::Pid;
use crate::model::code::Lines;
use crate::model::process::Processes;
use crate::records::jit_logs::{CodeLog, LogCode, LogEventKind};
use crate::resolve::code_map::{CodeList, ListedCode};
use std::collections::HashMap;

/// A source that has been read.
pub(super) struct ReadSource<'data> {
    pub(super) list: CodeList<'data>,
    pub(super) account: Account,
    pub(super) machine: Option<u16>,
    pub(super) warnings: Warnings,
}

/// What reading a source produces: its code, its state, and the machine (`e_machine`) if known.
pub(super) type SourceEvents<'data> = (CodeList<'data>, SourceState, Option<u16>);

impl<'data> ReadSource<'data> {
    /// Stores the log's code now that it has times. `lines_of` is the number of the jitdump's functions that got their
    /// lines from it.
    fn take(&mut self, dated: DatedLog<'data>, lines_of: u64) {
        self.warnings.extend(dated.warning);
        self.list = dated.list;
        if let SourceState::Loaded { codes, clock, times, lent, .. } = &mut self.account.state {
            (*codes, *clock, *times, *lent) = (self.list.code_count() as u64, dated.clock, dated.times, lines_of);
        }
    }
}

/// The maximum time between an event's two records, in nanoseconds. The process may be preempted in between.
const NEAR: u64 = 100_000_000;

/// Converts the times of all logs to the recording's clock, and combines the logs with the jitdumps and perf maps of
/// their processes.
pub(super) fn date_logs<'data>(sources: &'data [Source], read: &mut [ReadSource<'data>], processes: &Processes) {
    for (number, source) in sources.iter().enumerate() {
        let Some(log) = source.log.get() else { continue };
        let of_process = |kind| move |(_, other): &(usize, &Source)| other.kind == kind && other.pid == source.pid;
        let with_times =
            |number: usize| matches!(read[number].account.state, SourceState::Loaded { times: Some(_), .. });
        let dumps = sources.iter().enumerate().filter(of_process(Kind::JitDump)).map(|(number, _)| number);
        let dumps: Vec<usize> = dumps.filter(|dump| with_times(*dump)).collect();
        let tied = dumps.iter().find_map(|dump| tie(log, source.pid, &read[*dump].list));
        let mut dated = logs::date(number, source, log, processes, tied);
        if !dumps.is_empty() || sources.iter().enumerate().any(|other| of_process(Kind::PerfMap)(&other)) {
            dated.list.fill_in();
        }
        let same = SameCode::new(log, source, tied);
        let lent = dumps.into_iter().map(|dump| read[dump].list.take_lines(|code| same.lines(code))).sum::<usize>();
        read[number].take(dated, lent as u64);
    }
}

/// Address and size.
type AddressAndSize = (u64, u64);

/// The times of all code with an address and size, in order.
type TimesByPlace = HashMap<AddressAndSize, Vec<i64>>;

fn loads(log: &CodeLog) -> impl Iterator<Item = (i64, &LogCode)> {
    log.events.iter().filter_map(|event| match &event.kind {
        LogEventKind::Load(code) => Some((i64::try_from(event.time?).ok()?, code)),
        LogEventKind::Move { .. } | LogEventKind::Unload { .. } => None,
    })
}

/// Determines when a log started, by comparing it with a jitdump of the same process.
fn tie(log: &CodeLog, pid: Pid, dump: &CodeList<'_>) -> Option<LogStart> {
    let mut dumped = TimesByPlace::new();
    for listed in dump.iter().filter(|listed| listed.pid == pid && !listed.is_move) {
        let place = (listed.code.addr.0, listed.code.size);
        dumped.entry(place).or_default().extend(listed.time.and_then(|time| i64::try_from(time.0).ok()));
    }
    let mut logged = TimesByPlace::new();
    loads(log).for_each(|(time, code)| logged.entry((code.addr, code.size)).or_default().push(time));
    // Where one of the two has more code than the other, it isn't clear yet which records correspond.
    let pairs = logged.iter().filter_map(|(place, times)| Some((times, dumped.get(place)?)));
    let pairs = pairs.filter(|(logged, dumped)| logged.len() == dumped.len());
    let starts = pairs.flat_map(|(logged, dumped)| logged.iter().zip(dumped).map(|(own, time)| time - own));
    middle(starts.collect())
}

/// The start time that most of the estimates agree on; `None` if they contradict each other.
fn middle(mut starts: Vec<i64>) -> Option<LogStart> {
    starts.sort_unstable();
    let at = *starts.get(starts.len() / 2)?;
    let near = starts.iter().map(|start| start.abs_diff(at)).filter(|error| *error <= NEAR);
    let agree = near.clone().count() * 2 > starts.len();
    near.max().filter(|_| agree).map(|error| LogStart { at, error: Some(error) })
}

/// Finds a jitdump's code in a log of the same process.
struct SameCode<'data> {
    log: &'data CodeLog,
    source: &'data Source,
    /// By address and size, sorted by time. Times are on the recording's clock.
    codes: HashMap<AddressAndSize, Vec<(u64, &'data LogCode)>>,
}

impl<'data> SameCode<'data> {
    fn new(log: &'data CodeLog, source: &'data Source, tied: Option<LogStart>) -> Self {
        let mut codes: HashMap<AddressAndSize, Vec<_>> = HashMap::new();
        if let Some(LogStart { at, error }) = tied {
            let conversion = Conversion::Offset { offset: at, error };
            for (time, code) in loads(log) {
                let time = conversion.apply(time.unsigned_abs()).unwrap_or_default();
                codes.entry((code.addr, code.size)).or_default().push((time.0, code));
            }
        }
        Self { log, source, codes }
    }

    /// The log's source lines for a piece of code of the jitdump.
    fn lines(&self, listed: &ListedCode<'data>) -> Option<Lines<'data>> {
        let time = listed.time.filter(|_| listed.pid == self.source.pid)?.0;
        let here = self.codes.get(&(listed.code.addr.0, listed.code.size))?;
        let (_, code) =
            here.iter().min_by_key(|(own, _)| own.abs_diff(time)).filter(|(own, _)| own.abs_diff(time) <= NEAR)?;
        Some(logs::lines(code, self.log, self.source)).filter(|lines| !lines.raw.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::code::{Code, CodeEvent, CodeEventKind, Line, OriginId, SourceMap};
    use crate::model::{Addr, Nanos, Tid};
    use crate::records::jit_logs::{LogClock, LogEvent, LogPositions};
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
        log.positions = Some(Box::new(Spelled));
        let name = log.texts.intern(b"of the log");
        for (&(time, addr), at) in codes.iter().zip(0..) {
            let code = LogCode { positions: (at, at + 1), ..LogCode::new(name, addr, 0x10) };
            log.events.push(LogEvent { time: Some(time), kind: LogEventKind::Load(code) });
        }
        let source = Source::new(PathBuf::from("x.log"), Kind::PerfMap, Pid(7), b"0123456789".to_vec());
        source.log.set(log).unwrap();
        source
    }

    fn dumped(codes: &[(u64, u64)]) -> CodeList<'static> {
        let event = |&(time, addr): &(u64, u64)| {
            let code = Code::new(b"of the dump", Addr(addr), &[0; 0x10], OriginId(0));
            CodeEvent { pid: Pid(7), tid: Tid(7), time: Some(Nanos(time)), kind: CodeEventKind::Load(code) }
        };
        codes.iter().map(event).collect()
    }

    #[test]
    fn a_dump_ties_the_log_of_its_process() {
        // The log started at 500 ms. The process was preempted for 3 ms between the two records of the third code.
        let source = logged(&[(MS, 0x100), (2 * MS, 0x200), (3 * MS, 0x300), (4 * MS, 0x900)]);
        let dump = dumped(&[(501 * MS, 0x100), (502 * MS + 7, 0x200), (506 * MS, 0x300), (507 * MS, 0x800)]);
        let log = source.log.get().unwrap();
        let start = LogStart { at: 500 * MS as i64 + 7, error: Some(3 * MS - 7) };
        assert_eq!(tie(log, Pid(7), &dump), Some(start));
        assert_eq!(tie(log, Pid(8), &dump), None, "of another process");
        let strange = dumped(&[(501 * MS, 0x100), (900 * MS, 0x200), (1900 * MS, 0x300)]);
        assert_eq!(tie(log, Pid(7), &strange), None, "of another run");
    }

    #[test]
    fn code_of_a_dump_takes_the_lines_of_the_same_code_of_the_log() {
        // The memory at 0x100 is reused. At 0x400 the log has code much later, at 0x200 none.
        let source = logged(&[(MS, 0x100), (300 * MS, 0x100), (2 * MS, 0x300), (900 * MS, 0x400)]);
        let mut dump =
            dumped(&[(501 * MS, 0x100), (502 * MS, 0x200), (503 * MS, 0x300), (504 * MS, 0x400), (801 * MS, 0x100)]);
        let log = source.log.get().unwrap();
        let same = SameCode::new(log, &source, Some(LogStart { at: 500 * MS as i64, error: Some(0) }));
        assert_eq!(dump.take_lines(|code| same.lines(code)), 3);
        let lines = dump.iter().map(|listed| listed.code.lines.entries().first().map(|line| line.line));
        assert_eq!(lines.collect::<Vec<_>>(), [Some(0), None, Some(2), None, Some(1)]);
        assert!(dump.iter().all(|listed| listed.code.name == b"of the dump"));
    }
}
