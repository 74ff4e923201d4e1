//! Reads runtimes' logs into code events with the recording's times.

use super::account::SourceEvents;
use super::account::{ClockUse, SourceState};
use super::clock::{Conversion, DumpTimes};
use super::found::Source;
use super::log_clock::{self, LogStart};
use crate::error::{Result, Skipped, Warning, Warnings};
use crate::jit::engine_logs::{CodeLog, LogClock, LogCode, LogEventKind, LogId};
use crate::model::code::{Code, ExpandedCall, Lines, OriginId, Positions, SourceMap, Unwind};
use crate::model::process::{Clock, Processes};
use crate::model::{Addr, Nanos};
use crate::symbolize::code_map::CodeList;

/// The maximum error, in nanoseconds, of a start time that a log states itself.
const STATED: u64 = 1_000_000;

/// Parses a log. The result has no events yet: [`date_log`] adds them once the other sources of the process are known.
pub(super) fn read<'data>(id: LogId, source: &'data Source, warnings: &mut Warnings) -> Result<SourceEvents<'data>> {
    let mut log = (id.log().read)(&source.contents.bytes)?;
    // Takes the report on skipped lines out of the log, because it is needed only now.
    let skipped = std::mem::replace(&mut log.skipped, Skipped::new("line"));
    let count = skipped.count();
    skipped.report(&source.path, warnings);
    let log = source.log.get_or_init(|| log);
    let state = SourceState::Loaded { codes: 0, skipped: count, clock: None, torn: log.torn, times: None, lent: 0 };
    Ok(SourceEvents { list: CodeList::default(), state, machine: log.machine })
}

/// A log with times on the recording's clock.
pub(super) struct DatedLog<'data> {
    pub(super) list: CodeList<'data>,
    /// How the log's times were converted; `None` if the log has no times.
    pub(super) clock: Option<ClockUse>,
    /// The times of the first and last event on the recording's clock, if they could be converted.
    pub(super) times: Option<(Nanos, Nanos)>,
    /// A problem with converting the log's times.
    pub(super) warning: Option<Warning>,
}

/// Converts a log to code events with the recording's times. `start` is when the log started, if a jitdump revealed
/// that.
pub(super) fn date_log<'data>(
    origin: OriginId,
    source: &'data Source,
    log: &'data CodeLog,
    processes: &Processes,
    start: Option<LogStart>,
) -> DatedLog<'data> {
    let (conversion, problem) = match start {
        Some(start) => (Conversion::from(start), None),
        None => choose_conversion(log, source, processes),
    };
    let has_times = log.events.iter().any(|event| event.time.is_some());
    let times = log.events.iter().filter_map(|event| conversion.apply(event.time?));
    let (first, last) = (times.clone().next(), times.clone().next_back());
    DatedLog {
        list: list_events(origin, source, log, conversion),
        clock: has_times.then(|| conversion.to_clock_use()),
        times: first.zip(last),
        warning: problem.map(|problem| Warning::new(problem).in_file(&source.path, None)),
    }
}

/// Lists the events of a log, with their times on the recording's clock.
fn list_events<'data>(
    origin: OriginId,
    source: &'data Source,
    log: &'data CodeLog,
    conversion: Conversion,
) -> CodeList<'data> {
    let pid = source.pid;
    let mut list = CodeList::with_capacity(log.events.len());
    for event in &log.events {
        let time = event.time.and_then(|time| conversion.apply(time));
        match &event.kind {
            LogEventKind::Load(code) => _ = list.load(pid, time, &convert_code(code, origin, log, source)),
            LogEventKind::Move { load, to } => list.move_to(pid, time, *load, Addr(*to)),
            LogEventKind::Unload { load, addr } => list.unload(pid, time, *load, Addr(*addr)),
        }
    }
    list
}

/// Converts the code of a log's event. The machine code is taken from the log's texts or, if it isn't there, from the
/// file itself.
fn convert_code<'data>(code: &LogCode, origin: OriginId, log: &'data CodeLog, source: &'data Source) -> Code<'data> {
    let bytes = match code.bytes {
        Some(bytes) => Some(log.texts.get(bytes)),
        None => source.contents.bytes.get(code.memory()).filter(|bytes| !bytes.is_empty()),
    };
    // A log has no `.eh_frame_hdr`. `mapped_size` is 0: nothing says that the `.eh_frame` is mapped after the code.
    let unwind =
        code.unwind.map(|unwind| Unwind { eh_frame: log.texts.get(unwind), eh_frame_hdr: &[], mapped_size: 0 });
    Code {
        name: log.texts.get(code.name),
        addr: Addr(code.addr),
        size: code.size,
        // Keep the bytes only if they are complete, which they aren't if the log is truncated.
        bytes: bytes.filter(|bytes| bytes.len() as u64 == code.size),
        lines: lines_of_code(code, log, source),
        unwind,
        origin,
    }
}

/// The log's source lines for a piece of code, still encoded: `source` decodes them on demand. Empty if the log has no
/// lines for this code, or is of a kind that never has any.
pub(super) fn lines_of_code<'data>(code: &LogCode, log: &'data CodeLog, source: &'data Source) -> Lines<'data> {
    let raw = match code.position_key {
        Some(key) => log.texts.get(key),
        None => source.contents.bytes.get(code.line_range()).unwrap_or_default(),
    };
    if log.line_decoder.is_none() || raw.is_empty() {
        return Lines::default();
    }
    Lines { raw, size: code.size, positions: Some(source), ..Lines::default() }
}

impl Positions for Source {
    fn source_map<'a>(&'a self, raw: &'a [u8]) -> SourceMap<'a> {
        let positions = self.log.get().and_then(|log| log.line_decoder.as_ref());
        positions.map(|positions| positions.source_map(&self.contents.bytes, raw)).unwrap_or_default()
    }

    fn expanded_calls(&self, raw: &[u8]) -> Vec<ExpandedCall> {
        let positions = self.log.get().and_then(|log| log.line_decoder.as_ref());
        positions.map(|positions| positions.expanded_calls(raw)).unwrap_or_default()
    }
}

/// Determines how to convert the log's times. If there is a problem, also returns the text of a warning whose subject
/// is the file.
fn choose_conversion(log: &CodeLog, source: &Source, processes: &Processes) -> (Conversion, Option<String>) {
    let first_time = log.events.iter().find_map(|event| event.time);
    let clock = &processes.clock;
    let conversion = match log.clock {
        // Without times, there is nothing to convert or to warn about.
        LogClock::None => return (Conversion::None, None),
        // CLOCK_MONOTONIC times are converted like those of a jitdump of which neither header nor marker is known.
        LogClock::Monotonic => {
            let times = DumpTimes { is_tsc: false, header_time: 0, first_time, marker_time: None };
            return Conversion::choose(clock, &times);
        }
        LogClock::Ticks => {
            let times = DumpTimes { is_tsc: true, header_time: 0, first_time, marker_time: None };
            // Most recordings can't convert time-stamp counters, so there is no warning about that.
            return (Conversion::choose(clock, &times).0, None);
        }
        // The log's times are wall-clock times, so their moment 0 is 0 on the wall clock, too.
        // The error is 0, too, because nothing is estimated.
        LogClock::Wall => conversion_from_wall(clock, 0, 0),
        LogClock::SinceStart { began } => {
            // The log may say when it began.
            let stated = began.and_then(|began| conversion_from_wall(clock, began, STATED));
            stated.or_else(|| estimate_start(log, source, processes).map(Conversion::from))
        }
    };
    match conversion {
        Some(conversion) => (conversion, None),
        None => {
            let why = "its times can't be related to the recording's clock, so each address got the name of the last \
                       code loaded there";
            (Conversion::None, Some(why.to_owned()))
        }
    }
}

/// The conversion for times that count from the moment `began`, in nanoseconds since 1970. `error` is the maximum error
/// in nanoseconds. `None` if the recording doesn't relate the wall clock to its own.
fn conversion_from_wall(clock: &Clock, began: u64, error: u64) -> Option<Conversion> {
    let (wall, recorded) = clock.reference?;
    let offset = i128::from(recorded.0) - i128::from(wall.0) + i128::from(began);
    Some(Conversion::Offset { offset: i64::try_from(offset).ok()?, error: Some(error) })
}

/// Estimates when a log started, for a log that doesn't state it. The estimate is based on what the recording says
/// about the log's process.
fn estimate_start(log: &CodeLog, source: &Source, processes: &Processes) -> Option<LogStart> {
    let process = processes.by_pid.get(&source.pid)?;
    log_clock::estimate_start(log, process, &source.first_seen, creation_time(source, &processes.clock))
}

/// When the file system created the log's file, on the recording's clock in nanoseconds; `None` if unknown.
fn creation_time(source: &Source, clock: &Clock) -> Option<i64> {
    let (wall, recorded) = clock.reference?;
    let created = source.contents.about.as_ref()?.created().ok()?;
    let created = created.duration_since(std::time::UNIX_EPOCH).ok()?.as_nanos();
    i64::try_from(i128::try_from(created).ok()? - i128::from(wall.0) + i128::from(recorded.0)).ok()
}

/// A log's times count from its start, so they are converted by adding the time of the start.
impl From<LogStart> for Conversion {
    fn from(LogStart { time, error }: LogStart) -> Self {
        Self::Offset { offset: time, error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jit::account::Kind;
    use crate::jit::engine_logs::{LogEvent, LogPositions};
    use crate::model::Pid;
    use crate::model::code::{InlinedCall, Line};
    use crate::model::process::Process;
    use crate::parallel::Pool;
    use crate::symbolize::code_map::CodeMap;
    use std::path::PathBuf;

    /// Each entry of the log is the name of a function that is inlined at the start of the code.
    #[derive(Debug)]
    struct Expanded;

    impl LogPositions for Expanded {
        fn source_map<'a>(&'a self, file: &'a [u8], entry: &'a [u8]) -> SourceMap<'a> {
            let call = InlinedCall { function: entry.into(), file, line: 2, column: 0, parent: None };
            let line = Line { file: b"a.js", line: 7, inlined: Some(0), ..Line::default() };
            SourceMap { lines: vec![line], calls: vec![call], too_deep: 0 }
        }
    }

    /// A log of code that is at 0x100 from 1 ms, moves to 0x200 at 2 ms and is unloaded at 3 ms, with 5 bytes of line
    /// entries.
    fn source() -> Source {
        let mut log = CodeLog::new(LogClock::SinceStart { began: None }, "line");
        log.line_decoder = Some(Box::new(Expanded));
        let name = log.texts.intern(b"JS:*f");
        let code = LogCode { line_range: (4, 9), ..LogCode::new(name, 0x100, 0x10) };
        let kinds = [
            LogEventKind::Load(code),
            LogEventKind::Move { load: 0, to: 0x200 },
            LogEventKind::Unload { load: 0, addr: 0x200 },
        ];
        let event = |(time, kind)| LogEvent { time: Some(time * 1_000_000), kind };
        log.events.extend((1u64..).zip(kinds).map(event));
        let source = Source::new(PathBuf::from("x.log"), Kind::PerfMap, Pid(7), b"log:inner".to_vec());
        source.log.set(log).unwrap();
        source
    }

    fn started_at(time: u64) -> Processes {
        let mut processes = Processes::default();
        processes.by_pid.insert(Pid(7), Process { execs: vec![Nanos(time)], ..Process::default() });
        processes
    }

    #[test]
    fn an_entry_of_a_log_holds_from_its_time_to_the_next() {
        let (source, processes) = (source(), started_at(5_000_000));
        let log = source.log.get().unwrap();
        let DatedLog { list, clock, warning, .. } = date_log(OriginId(0), &source, log, &processes, None);
        assert_eq!(clock, Some(ClockUse::Estimated { error: None }));
        assert!(warning.is_none());
        assert_eq!(list.iter().map(|listed| listed.is_move).collect::<Vec<_>>(), [false, true]);
        let pool = Pool::new(None).unwrap();
        let map = CodeMap::build(vec![list], &processes, &pool);
        let at = |addr, time| map.lookup(Pid(7), Addr(addr), Some(Nanos(time))).map(|hit| map.code(hit.code).name);
        let named = Some(&b"JS:*f"[..]);
        assert_eq!([at(0x104, 6_500_000), at(0x104, 7_500_000)], [named, None]);
        assert_eq!([at(0x204, 7_500_000), at(0x204, 8_500_000)], [named, None]);
    }

    #[test]
    fn a_log_reports_lines_and_expanded_calls_when_it_is_queried() {
        let source = source();
        let log = source.log.get().unwrap();
        let list = date_log(OriginId(0), &source, log, &Processes::default(), None).list;
        let code = list.iter().next().unwrap().code;
        let map = code.lines.source_map();
        assert_eq!(*map.calls[0].function, *b"inner");
        assert_eq!(map.calls[0].file, b"log:inner");
        assert_eq!(code.lines.entries()[0].line, 7);
    }

    #[test]
    fn times_are_tied_by_what_the_recording_has() {
        let source = source();
        let log = |clock| CodeLog { clock, ..CodeLog::new(clock, "line") };
        let at = |clock, processes: &Processes| {
            let mut log = log(clock);
            let name = log.texts.intern(b"f");
            let kind = LogEventKind::Load(LogCode::new(name, 0, 1));
            log.events.push(LogEvent { time: Some(100), kind });
            let (conversion, problem) = choose_conversion(&log, &source, processes);
            (conversion.apply(100).map(|time| time.0), problem.is_some())
        };
        let mut wall = started_at(5000);
        wall.clock = Clock { clockid: Some(1), reference: Some((Nanos(1_000_000), Nanos(50))), ..Clock::default() };
        assert_eq!(at(LogClock::None, &wall), (None, false));
        assert_eq!(at(LogClock::Monotonic, &wall), (Some(100), false));
        assert_eq!(at(LogClock::SinceStart { began: Some(1_000_007) }, &wall), (Some(157), false));
        assert_eq!(at(LogClock::SinceStart { began: None }, &wall), (Some(5100), false));
        assert_eq!(at(LogClock::SinceStart { began: None }, &Processes::default()), (None, true));
        assert_eq!(at(LogClock::Wall, &Processes::default()), (None, true));
        let wall_time = Clock { reference: Some((Nanos(90), Nanos(50))), ..Clock::default() };
        let wall = Processes { clock: wall_time, ..Processes::default() };
        assert_eq!(at(LogClock::Wall, &wall), (Some(60), false));
    }
}
