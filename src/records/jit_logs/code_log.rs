//! The type of a log, and its content, by any writer.

use crate::error::{Result, Skipped};
use crate::model::code::{ExpandedCall, SourceMap};
use crate::model::interner::id;
use std::fmt::Debug;
use std::ops::Range;

/// One sort of log.
#[derive(Debug)]
pub struct JitLog {
    /// As people call it: "V8 log".
    pub name: &'static str,
    /// For programs: `v8-log`.
    pub id: &'static str,
    /// The log and its writer, in a line.
    pub about: &'static str,
    /// The names it goes by. `PID` stands for the number of the process in its own namespace, `*` for anything.
    pub files: &'static [&'static str],
    /// True if a file that begins like this is one (at least 4 KiB, or all there are).
    pub sniff: fn(head: &[u8]) -> bool,
    /// Reads all of it. Damaged parts are skipped and counted; it fails only if nothing can be read.
    pub read: fn(bytes: &[u8]) -> Result<CodeLog>,
    /// Its process, where a log shows it without being read whole.
    pub process: Option<TellsProcess>,
}

/// Reports whose a log is, if it does.
pub type TellsProcess = fn(bytes: &[u8]) -> Option<LogProcess>;

/// The process of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogProcess {
    /// The number by which the process knew itself.
    pub pid: Option<i32>,
    /// Its mappings, by ascending address.
    pub files: Vec<MappedFile>,
}

impl MappedFile {
    /// The one of these, ascending address, that is at an address.
    pub fn at(files: &[Self], addr: u64) -> Option<&Self> {
        let after = files.partition_point(|file| file.start <= addr);
        files[..after].last().filter(|file| addr < file.end)
    }
}

/// A part of a file that a process had mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedFile {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// Its start in the file.
    pub offset: u64,
    /// The file.
    pub path: Vec<u8>,
}

/// The facts about JIT code in one log.
#[derive(Debug)]
pub struct CodeLog {
    /// In the log's order, which is that of time.
    pub events: Vec<LogEvent>,
    /// Names and machine code.
    pub texts: Texts,
    /// The clock of its times.
    pub clock: LogClock,
    /// The number of its process in its own namespace, if the log states it.
    pub pid: Option<i32>,
    /// The processor, as ELF's `e_machine`, if the log states it.
    pub machine: Option<u16>,
    /// The unusable parts.
    pub skipped: Skipped,
    /// True if it ends in the middle of something.
    pub torn: bool,
    /// Finds source lines and inlined calls, if the log has any.
    pub positions: Option<Box<dyn LogPositions>>,
}

impl CodeLog {
    /// Nothing yet; `what` is skipped if it cannot be used ("line").
    pub fn new(clock: LogClock, what: &'static str) -> Self {
        let (events, texts, skipped) = (Vec::new(), Texts::default(), Skipped::new(what));
        Self { events, texts, clock, pid: None, machine: None, skipped, torn: false, positions: None }
    }

    /// Adds code that was made.
    pub fn load(&mut self, time: Option<u64>, code: LogCode) {
        self.events.push(LogEvent { time, kind: LogEventKind::Load(code) });
    }
}

/// The clock of a log's times. All but ticks are nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogClock {
    /// It has no times.
    None,
    /// CLOCK_MONOTONIC.
    Monotonic,
    /// Since 1970.
    Wall,
    /// No nanoseconds, but ticks of the processor's time-stamp counter.
    Ticks,
    /// Since the engine started, which was at this time of the wall clock, if that is known.
    SinceStart {
        /// Nanoseconds since 1970.
        began: Option<u64>,
    },
}

/// Something that happened to JIT code.
#[derive(Debug, Clone, Copy)]
pub struct LogEvent {
    /// When, on the log's clock.
    pub time: Option<u64>,
    /// The kind.
    pub kind: LogEventKind,
}

/// The kind of event.
#[derive(Debug, Clone, Copy)]
pub enum LogEventKind {
    /// Code was made.
    Load(LogCode),
    /// The code of an earlier load went elsewhere.
    Move {
        /// The place of the load in [`CodeLog::events`].
        load: usize,
        /// Its new place.
        to: u64,
    },
    /// The code of an earlier load is no more.
    Unload {
        /// The place of the load in [`CodeLog::events`].
        load: usize,
        /// Its old place.
        at: u64,
    },
}

/// A code range.
#[derive(Debug, Clone, Copy)]
pub struct LogCode {
    /// As the runtime's own perf map would call it, if it has any.
    pub name: TextId,
    /// First address.
    pub addr: u64,
    /// Length in bytes.
    pub size: u64,
    /// The machine code, if the log has it: `size` bytes.
    pub bytes: Option<TextId>,
    /// The place that [`CodeLog::positions`] needs to report it: bytes of the log; empty if there is nothing.
    pub positions: (u64, u64),
    /// The same where it stands nowhere in the log.
    pub place: Option<TextId>,
    /// The machine code, if it is in the log as it is: from where to where; empty if it does not.
    pub memory: (u64, u64),
    /// Unwinding information, if there is any ([`Unwind::eh_frame`](crate::model::code::Unwind)).
    pub unwind: Option<TextId>,
}

impl LogCode {
    /// Code of which only name and place are known.
    pub fn new(name: TextId, addr: u64, size: u64) -> Self {
        let (positions, memory) = ((0, 0), (0, 0));
        Self { name, addr, size, bytes: None, positions, place: None, memory, unwind: None }
    }

    /// The part of the log that reports lines.
    pub fn positions(&self) -> Range<usize> {
        part(self.positions)
    }

    /// The part of the log that is the machine code.
    pub fn memory(&self) -> Range<usize> {
        part(self.memory)
    }
}

fn part((start, end): (u64, u64)) -> Range<usize> {
    usize::try_from(start).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX)
}

/// Reports of source lines and inlined calls, late: only code that was sampled is requested.
pub trait LogPositions: Debug + Send + Sync {
    /// The source map that `entry` ([`LogCode::positions`]), a part of the log `file`, states. Damage gives less, never
    /// wrong lines.
    fn source_map<'a>(&'a self, file: &'a [u8], entry: &'a [u8]) -> SourceMap<'a>;

    /// The calls that the compiler expanded, where `entry` reports them without their addresses.
    fn expanded(&self, _entry: &[u8]) -> Vec<ExpandedCall> {
        Vec::new()
    }
}

id! {
    /// A text in a [`Texts`].
    TextId
}

/// The texts of a log.
pub type Texts = crate::model::texts::Texts<TextId>;
