//! A format: one entry of the table.

pub use crate::contract::options::{Detail, ReadOptions, WriteOptions};

use crate::analysis::sorted_stacks::{Run, Unsorted};
use crate::analysis::timeline::SpanWriter;
use crate::contract::rows::RowWriter;
use crate::contract::spans::{Spans, Wants};
use crate::contract::unsymbolized::OpenUnsymbolized;
use crate::error::{Result, Skipped, Warnings};
use crate::model::stacks::{Keep, Profile};
use crate::runtimes::jit_names::JitNames;
use std::io::{self, Write};

/// One thing that jitgraft reads or writes.
#[derive(Debug)]
pub struct Format {
    /// The name in `--to NAME` and in messages.
    pub name: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// The names of its outputs: patterns of file names with at most one `*`, by which `-o` gives the format.
    pub files: &'static [&'static str],
    /// True if an input that starts with these bytes is of this format; `None` for formats only written.
    pub sniff: Option<fn(head: &[u8]) -> bool>,
    /// The way it becomes stacks.
    pub read: Read,
    /// Writes a profile; `None` for formats only read.
    pub write: Option<Writer>,
    /// The rewriter that passes such a file on with names for its JIT code, if there is one.
    pub rewriter: Option<Rewriter>,
}

/// The way a file is passed on with names for its JIT code.
#[derive(Debug, Clone, Copy)]
pub struct Rewriter {
    /// The command that does it.
    pub command: &'static str,
    /// Reads a profile that has addresses without names; `None` if the command reads its format by itself.
    pub open: Option<OpenUnsymbolized>,
}

/// The way an input becomes stacks.
#[derive(Debug, Clone, Copy)]
pub enum Read {
    /// It names its own functions: bytes in, stacks out.
    Stacks(fn(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile>),
    /// It names its own functions and may be larger than memory: a stream in, stacks out.
    Stream(fn(input: &mut dyn io::Read, options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile>),
    /// It names its own functions, a line a stack: whole lines of it are read into a profile, or sorted by who needs no more
    /// than sums of stacks as they are spelled.
    Lines {
        /// Begins to read.
        open: OpenLines,
        /// Sorts.
        sort: SortLines,
        /// True if a text that begins so can be sorted, or read together with others.
        is_plain: fn(head: &[u8]) -> bool,
    },
    /// It holds spans of time, which may stay spans.
    Spans(Spans),
    /// It is perf script's text, in which `pipeline` names the frames of JIT code first: text in, stacks out.
    Script(fn(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile>),
    /// It holds addresses, which `pipeline` must resolve with `sources` and `resolve`.
    Addresses,
    /// It is only written, or is not a profile.
    No,
}

/// Begins to read an input line by line, given how it begins.
pub type OpenLines = fn(options: &ReadOptions, head: &[u8]) -> Box<dyn ReadLines>;

/// Sums whole lines by sorting them. Those that are none of the format are skipped.
pub type SortLines = fn(lines: &[u8], sorting: &mut Unsorted, skipped: &mut Skipped) -> Run;

/// Reads lines into one profile. Lines that it has seen make later ones cheap.
pub trait ReadLines: Send {
    /// Reads any whole lines. Those that are none of the format are skipped.
    fn read(&mut self, lines: &[u8], skipped: &mut Skipped);

    /// The profile that was read.
    fn profile(&mut self) -> &mut Profile;
}

impl Read {
    /// The questions about it, if it contains spans.
    pub fn spans(&self) -> Option<&Spans> {
        match self {
            Self::Spans(spans) => Some(spans),
            _ => None,
        }
    }

    /// True if an input is best read as a stream, so that it need not be in memory or in a file.
    pub fn is_streamed(&self) -> bool {
        match self {
            Self::Stream(_) | Self::Lines { .. } | Self::Script(_) => true,
            Self::Spans(spans) => spans.wants == Wants::Stream,
            Self::Stacks(_) | Self::Addresses | Self::No => false,
        }
    }
}

/// The way a profile becomes an output of this format.
#[derive(Debug, Clone, Copy)]
pub struct Writer {
    /// Writes it.
    pub run: WriteFn,
    /// The number of events that one output holds.
    pub events: Events,
    /// True if it reports each sample, in order of time, or of sums.
    pub rows: Keep,
    /// The detail of a frame: the less, the fewer stacks are kept apart.
    pub detail: Detail,
    /// The way names of JIT code are written where nothing else is requested: its viewers cut names where they see a
    /// language's own rules, or at a length.
    pub jit_names: JitNames,
    /// True if it gives the processor of a sample.
    pub by_cpu: bool,
    /// True if it has numbers below zero.
    pub signed: bool,
    /// Starts an output of spans, which inputs that hold spans then become without being summed; `None` if it holds
    /// no spans.
    pub spans: Option<StartSpansFn>,
    /// Starts an output that is written while inputs are read; `None` if the whole profile must be there first.
    pub stream: Option<StartRowsFn>,
    /// True if each recording can have a file of its own, in directories named after host and day (`--partition`).
    pub is_partitioned: bool,
}

/// The number of events ([`Profile::series`]) that one output of a format can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Events {
    /// The one of [`WriteOptions::series`]: a recording of several becomes several outputs.
    One,
    /// All of them.
    All,
}

/// Writes a profile in one format.
pub type WriteFn = fn(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()>;

/// Starts an output of spans.
pub type StartSpansFn = for<'o> fn(out: &'o mut dyn Write) -> Result<Box<dyn SpanWriter + 'o>>;

/// Starts an output of rows.
pub type StartRowsFn = for<'o> fn(options: &WriteOptions, out: Box<dyn Write + 'o>) -> Result<Box<dyn RowWriter + 'o>>;
