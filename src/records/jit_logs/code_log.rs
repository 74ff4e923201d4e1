//! What a log is, and what it says, whoever wrote it.

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
    /// What it is and who writes it, in a line.
    pub about: &'static str,
    /// The names it goes by. `PID` stands for the number by which its process knows itself, `*` for anything.
    pub files: &'static [&'static str],
    /// Whether a file that begins like this is one (at least 4 KiB, or all there are).
    pub sniff: fn(head: &[u8]) -> bool,
    /// Reads all of it. What is damaged is skipped and counted; it fails only if nothing can be read.
    pub read: fn(bytes: &[u8]) -> Result<CodeLog>,
    /// What it tells of its process without being read whole, if it is one of those that do.
    pub process: Option<TellsProcess>,
}

/// Tells whose a log is, if it does.
pub type TellsProcess = fn(bytes: &[u8]) -> Option<LogProcess>;

/// Whose a log is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogProcess {
    /// The number by which the process knew itself.
    pub pid: Option<i32>,
    /// What it had mapped, by ascending address.
    pub files: Vec<MappedFile>,
}

impl MappedFile {
    /// Which of these, by ascending address, is at an address.
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
    /// Where in the file it begins.
    pub offset: u64,
    /// The file.
    pub path: Vec<u8>,
}

/// What one log says of JIT code.
#[derive(Debug)]
pub struct CodeLog {
    /// In the log's order, which is that of time.
    pub events: Vec<LogEvent>,
    /// Names and machine code.
    pub texts: Texts,
    /// By which clock its times are.
    pub clock: LogClock,
    /// The number by which its process knows itself, if the log says so.
    pub pid: Option<i32>,
    /// The processor, as ELF's `e_machine`, if the log says so.
    pub machine: Option<u16>,
    /// What could not be used.
    pub skipped: Skipped,
    /// Whether it ends in the middle of something.
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
}

/// By which clock a log's times are. All but ticks are nanoseconds.
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
    /// What.
    pub kind: LogEventKind,
}

/// What happened.
#[derive(Debug, Clone, Copy)]
pub enum LogEventKind {
    /// Code was made.
    Load(LogCode),
    /// The code of an earlier load went elsewhere.
    Move {
        /// The place of the load in [`CodeLog::events`].
        load: usize,
        /// Where it is now.
        to: u64,
    },
    /// The code of an earlier load is no more.
    Unload {
        /// The place of the load in [`CodeLog::events`].
        load: usize,
        /// Where it was.
        at: u64,
    },
}

/// A piece of code.
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
    /// What [`CodeLog::positions`] needs to tell of it: bytes of the log; empty if there is nothing.
    pub positions: (u64, u64),
    /// The same where it stands nowhere in the log.
    pub place: Option<TextId>,
    /// The machine code, if it stands in the log as it is: from where to where; empty if it does not.
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

    /// The part of the log that tells of lines.
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

/// Tells of source lines and inlined calls, late: only code that was sampled is asked for.
pub trait LogPositions: Debug + Send + Sync {
    /// What `entry` ([`LogCode::positions`]), a part of the log `file`, says. Damage gives less, never wrong lines.
    fn source_map<'a>(&'a self, file: &'a [u8], entry: &'a [u8]) -> SourceMap<'a>;

    /// The calls that the compiler expanded, where `entry` tells of them without their addresses.
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
