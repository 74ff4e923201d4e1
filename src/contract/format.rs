//! The description of one format: an entry in the format table.

pub use crate::contract::options::{Detail, ReadOptions, WriteOptions};

use crate::analysis::timeline::SpanWriter;
use crate::contract::rows::RowWriter;
use crate::contract::spans::{Spans, Wants};
use crate::contract::unsymbolized::OpenUnsymbolized;
use crate::error::{Result, Skipped, Warnings};
use crate::model::stacks::{Keep, Profile};
use crate::runtimes::jit_names::JitNames;
use std::io::{self, Write};

/// A format that jitgraft reads, writes or both.
#[derive(Debug)]
pub struct Format {
    /// The format's name, as in `--to NAME` and in messages.
    pub name: &'static str,
    /// What the format is, in one line of the help text.
    pub about: &'static str,
    /// Patterns for the names of output files of this format, each with at most one `*`. If the user doesn't choose a
    /// format, the pattern that matches the output's name does.
    pub files: &'static [&'static str],
    /// Returns true if an input that starts with these bytes has this format. `None` for formats that are only written.
    pub sniff: Option<fn(head: &[u8]) -> bool>,
    /// How an input of this format is read.
    pub read: Read,
    /// How to write a profile; `None` for formats that are only read.
    pub write: Option<Writer>,
    /// How to copy a file of this format with names added for JIT code; `None` if that isn't possible.
    pub rewriter: Option<Rewriter>,
}

/// How to copy a file with names added for its JIT code.
#[derive(Debug, Clone, Copy)]
pub struct Rewriter {
    /// The jitgraft command that adds the names.
    pub command: &'static str,
    /// Parses a profile with unnamed addresses. `None` if the jitgraft command that adds the names has its own reader
    /// for the format.
    pub open: Option<OpenUnsymbolized>,
}

/// How an input becomes stacks.
#[derive(Debug, Clone, Copy)]
pub enum Read {
    /// The input names its functions. The whole input is in memory when it is read.
    Stacks(fn(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile>),
    /// The input names its functions and is read as a stream, so that it may be larger than memory.
    Stream(fn(input: &mut dyn io::Read, options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile>),
    /// The input names its functions and has one stack per line.
    Lines {
        /// A function that starts reading lines into a profile.
        open: OpenLines,
        /// True if an input that starts with these bytes may be concatenated with others, because each of its lines can
        /// be understood alone.
        is_plain: fn(head: &[u8]) -> bool,
    },
    /// The input holds spans of time, such as recorded calls. They can be summed to stacks, or kept as spans.
    Spans(Spans),
    /// The text of `perf script`. `pipeline` adds the names of JIT frames to each part of it before reading the part.
    Script,
    /// The input holds addresses without names. `pipeline` looks up their names, with the help of `jit` and
    /// `symbolize`.
    Addresses,
    /// Inputs of this format can't be read as profiles: either jitgraft only writes the format, or the format isn't one
    /// of profiles.
    No,
}

/// Starts reading an input line by line. `head` is the start of the input.
pub type OpenLines = fn(options: &ReadOptions, head: &[u8]) -> Box<dyn ReadLines>;

/// Reads an input of lines into one profile, in one call or several. Frames that an earlier call has read are
/// recognized by their text and cost little.
pub trait ReadLines: Send {
    /// Reads some whole lines and adds them to the profile. Lines that aren't of the format are counted in `skipped`.
    fn read(&mut self, lines: &[u8], skipped: &mut Skipped);

    /// The profile read so far.
    fn profile(&mut self) -> &mut Profile;
}

impl Read {
    /// The functions for reading spans; `None` if the format has no spans.
    pub fn spans(&self) -> Option<&Spans> {
        match self {
            Self::Spans(spans) => Some(spans),
            _ => None,
        }
    }

    /// True if the input is read as a stream. It then needn't fit in memory, and may come from a pipe.
    pub fn is_streamed(&self) -> bool {
        match self {
            Self::Stream(_) | Self::Lines { .. } | Self::Script => true,
            Self::Spans(spans) => spans.wants == Wants::Stream,
            Self::Stacks(_) | Self::Addresses | Self::No => false,
        }
    }
}

/// How a profile is written in a format.
#[derive(Debug, Clone, Copy)]
pub struct Writer {
    /// The function that writes a whole profile.
    pub run: WriteFn,
    /// How many events one output can hold.
    pub events: Events,
    /// Which rows the output lists: every sample in order of time, or only the sum of each stack.
    pub rows: Keep,
    /// How much detail of each frame the format holds. With less detail, more stacks become equal and are summed.
    pub detail: Detail,
    /// How names of JIT code are spelled if the user doesn't choose a spelling. Some viewers shorten names by the rules
    /// of a language, or cut them at some length.
    pub jit_names: JitNames,
    /// True if the output states on which CPU each sample was taken. Rows of different CPUs are then not summed.
    pub by_cpu: bool,
    /// True if the output can hold labels of samples. Rows with different labels are then not summed.
    pub labels: bool,
    /// True if the output can hold negative numbers.
    pub signed: bool,
    /// Starts an output of spans, for inputs with spans. `None` if the format can't hold spans; they are then summed to
    /// stacks.
    pub spans: Option<StartSpansFn>,
    /// Starts an output that is written while inputs are still being read. `None` if the format needs the whole profile
    /// first.
    pub stream: Option<StartRowsFn>,
    /// True if `--partition` is supported: each recording gets a file of its own, in a directory named after its host
    /// and day.
    pub is_partitioned: bool,
    /// Why the output shouldn't be written to a terminal, such as "binary". `None` if people can read it.
    pub not_for_terminals: Option<&'static str>,
}

/// How many events ([`Profile::series`]) one output can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Events {
    /// One output holds only the event chosen by [`WriteOptions::series`]. A recording with several events becomes
    /// several outputs.
    One,
    /// One output can hold all events.
    All,
}

/// Writes a profile in one format.
pub type WriteFn = fn(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()>;

/// Starts an output of spans.
pub type StartSpansFn = for<'o> fn(out: &'o mut dyn Write) -> Result<Box<dyn SpanWriter + 'o>>;

/// Starts an output that is written row by row.
pub type StartRowsFn = for<'o> fn(options: &WriteOptions, out: Box<dyn Write + 'o>) -> Result<Box<dyn RowWriter + 'o>>;
