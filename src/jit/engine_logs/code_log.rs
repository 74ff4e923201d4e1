//! Describes a kind of JIT log ([`JitLog`]), and holds a log's content in a form that doesn't depend on the runtime
//! that wrote it ([`CodeLog`]).

use crate::error::{Result, Skipped};
use crate::model::code::{ExpandedCall, SourceMap};
use crate::model::interner::id;
use std::fmt::Debug;
use std::ops::Range;

/// A kind of log in which a runtime describes its JIT code: its names, and how to recognize and read it.
#[derive(Debug)]
pub struct JitLog {
    /// What people call this kind of log, such as "V8 log".
    pub name: &'static str,
    /// The name of this kind of log on command lines and in output: `v8-log`.
    pub id: &'static str,
    /// One line about this kind of log and the program that writes it.
    pub about: &'static str,
    /// Usual names of such files. `PID` stands for the process ID in the process's own PID namespace, `*` for any text.
    pub files: &'static [&'static str],
    /// Recognizes a log by its beginning (at least 4 KiB, or the whole file).
    pub sniff: fn(head: &[u8]) -> bool,
    /// Reads a whole log. Damaged parts are skipped and counted. Fails only if nothing can be read.
    pub read: fn(bytes: &[u8]) -> Result<CodeLog>,
    /// Finds the process of a log without reading all of it, for kinds of logs that are matched to processes by their
    /// contents, such as core dumps. `None` for other kinds, whose file names are used.
    pub find_process: Option<FindProcess>,
}

/// A function that finds the process of a log; `None` if the log doesn't state its process.
pub type FindProcess = fn(bytes: &[u8]) -> Option<LogProcess>;

/// The process that a log belongs to, as far as the log shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogProcess {
    /// The process ID in the process's own PID namespace; `None` if the log doesn't contain it.
    pub pid: Option<i32>,
    /// The files that the process had mapped, by ascending address.
    pub files: Vec<MappedFile>,
}

impl MappedFile {
    /// The file that is mapped at an address; `None` if there is none. `files` must be in ascending order of address.
    pub fn find(files: &[Self], addr: u64) -> Option<&Self> {
        let after = files.partition_point(|file| file.start <= addr);
        files[..after].last().filter(|file| addr < file.end)
    }
}

/// A mapped part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedFile {
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// Offset in the file of the byte that is mapped at `start`.
    pub offset: u64,
    /// Path of the file.
    pub path: Vec<u8>,
}

/// What a log says about JIT code.
#[derive(Debug)]
pub struct CodeLog {
    /// The events in order of time, which is also the log's order.
    pub events: Vec<LogEvent>,
    /// Names, machine code and other byte strings.
    pub texts: Texts,
    /// The clock of the log's times.
    pub clock: LogClock,
    /// The process ID in the process's own PID namespace; `None` if the log doesn't contain it.
    pub pid: Option<i32>,
    /// ELF `e_machine` of the CPU; `None` if the log doesn't contain it.
    pub machine: Option<u16>,
    /// The damaged parts of the log that were skipped.
    pub skipped: Skipped,
    /// True if the log ends in the middle of a line or record.
    pub torn: bool,
    /// Looks up source lines and inlined calls; `None` if the log has neither.
    pub line_decoder: Option<Box<dyn LogPositions>>,
}

impl CodeLog {
    /// Creates an empty log. `what` is the word for a part of such a log that is skipped and counted, such as "line".
    pub fn new(clock: LogClock, what: &'static str) -> Self {
        let (events, texts, skipped) = (Vec::new(), Texts::default(), Skipped::new(what));
        Self { events, texts, clock, pid: None, machine: None, skipped, torn: false, line_decoder: None }
    }

    /// Adds an event: code was created.
    pub fn load(&mut self, time: Option<u64>, code: LogCode) {
        self.events.push(LogEvent { time, kind: LogEventKind::Load(code) });
    }
}

/// The clock of a log's times. All times except ticks are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogClock {
    /// The log has no times.
    None,
    /// CLOCK_MONOTONIC.
    Monotonic,
    /// The wall clock, since 1970.
    Wall,
    /// Ticks of the CPU's time-stamp counter.
    Ticks,
    /// Time since the engine started.
    SinceStart {
        /// When the engine started, in nanoseconds since 1970, if known.
        began: Option<u64>,
    },
}

/// Something that happened to JIT code.
#[derive(Debug, Clone, Copy)]
pub struct LogEvent {
    /// When the event happened, on the log's clock; `None` if the log doesn't say.
    pub time: Option<u64>,
    /// What happened to which code.
    pub kind: LogEventKind,
}

/// What happened to JIT code.
#[derive(Debug, Clone, Copy)]
pub enum LogEventKind {
    /// Code was created.
    Load(LogCode),
    /// The code of an earlier load moved.
    Move {
        /// Index of the load in [`CodeLog::events`].
        load: usize,
        /// The new address of the code.
        to: u64,
    },
    /// The code of an earlier load was removed.
    Unload {
        /// Index of the load in [`CodeLog::events`].
        load: usize,
        /// The address that the code had.
        addr: u64,
    },
}

/// A code range as a log describes it.
#[derive(Debug, Clone, Copy)]
pub struct LogCode {
    /// The name of the code. If the runtime can also write a perf map, the name is spelled as there.
    pub name: TextId,
    /// First address.
    pub addr: u64,
    /// Length in bytes.
    pub size: u64,
    /// The machine code (`size` bytes), decoded from another form such as hexadecimal digits. `None` if the log has no
    /// code, or contains the bytes themselves: `memory` then says where.
    pub bytes: Option<TextId>,
    /// The range of the log that [`CodeLog::line_decoder`] decodes to source lines. Empty if the code has no lines, or
    /// if there is a `position_key`.
    pub line_range: (u64, u64),
    /// A key by which [`CodeLog::line_decoder`] finds the source lines, if they aren't in one range of the log.
    pub position_key: Option<TextId>,
    /// The range of the log that is the machine code, if the log contains it verbatim; otherwise empty.
    pub memory: (u64, u64),
    /// Unwinding information, if any ([`Unwind::eh_frame`](crate::model::code::Unwind)).
    pub unwind: Option<TextId>,
}

impl LogCode {
    /// Creates a code range of which only name, address and size are known.
    pub fn new(name: TextId, addr: u64, size: u64) -> Self {
        let (line_range, memory) = ((0, 0), (0, 0));
        Self { name, addr, size, bytes: None, line_range, position_key: None, memory, unwind: None }
    }

    /// The range of the log that [`CodeLog::line_decoder`] decodes, as indices of its bytes.
    pub fn line_range(&self) -> Range<usize> {
        to_range(self.line_range)
    }

    /// The range of the log that is the machine code, as indices of its bytes.
    pub fn memory(&self) -> Range<usize> {
        to_range(self.memory)
    }
}

fn to_range((start, end): (u64, u64)) -> Range<usize> {
    usize::try_from(start).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX)
}

/// Decodes source lines and inlined calls when they are needed: only code that was sampled needs them.
pub trait LogPositions: Debug + Send + Sync {
    /// Decodes the source map of a code range. If the code has a [`LogCode::position_key`], `entry` has the bytes of
    /// this key; otherwise, it is the range [`LogCode::line_range`] of the log `file`. Damaged input yields
    /// fewer lines, but never wrong ones.
    fn source_map<'a>(&'a self, file: &'a [u8], entry: &'a [u8]) -> SourceMap<'a>;

    /// The inlined calls of a code range, for logs that list them without addresses. `entry` is as in `source_map`.
    fn expanded_calls(&self, _entry: &[u8]) -> Vec<ExpandedCall> {
        Vec::new()
    }
}

id! {
    /// A byte string in [`Texts`].
    TextId
}

/// The byte strings of a log.
pub type Texts = crate::model::texts::Texts<TextId>;
