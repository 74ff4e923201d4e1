//! What a format is: one entry of the table.

use crate::error::{Result, Warnings};
use crate::model::label::{Annotate, By};
use crate::model::stacks::{Profile, Weight};
use std::io::Write;

/// One thing that jitgraft reads or writes.
#[derive(Debug)]
pub struct Format {
    /// The name in `--to NAME` and in messages.
    pub name: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// Whether an input that starts with these bytes is of this format; `None` for formats only written.
    pub sniff: Option<fn(head: &[u8]) -> bool>,
    /// How it becomes stacks.
    pub read: Read,
    /// Writes a profile; `None` for formats only read.
    pub write: Option<Writer>,
}

/// How an input becomes stacks.
#[derive(Debug, Clone, Copy)]
pub enum Read {
    /// It names its own functions: bytes in, stacks out.
    Stacks(fn(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile>),
    /// It holds addresses, which `commands` must resolve with `sources` and `resolve`.
    Addresses,
    /// It is only written, or is not a profile.
    No,
}

/// What reading may depend on, from the command line.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {}

/// How a profile becomes an output of this format.
#[derive(Debug, Clone, Copy)]
pub struct Writer {
    /// Writes it.
    pub run: WriteFn,
    /// How many events one output holds.
    pub events: Events,
    /// How much it tells of a frame: the less, the fewer stacks are kept apart.
    pub detail: Detail,
}

/// How many events ([`Profile::series`]) one output of a format can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Events {
    /// The one of [`WriteOptions::series`]: a recording of several becomes several outputs.
    One,
    /// All of them.
    All,
}

/// How much a format tells of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Function and module.
    Names,
    /// Source file and line, too.
    Lines,
    /// The address, too.
    Addresses,
}

/// What writing may depend on, from the command line.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// Which event to write, where the format holds only one.
    pub series: usize,
    /// What to sum.
    pub weight: Weight,
    /// What gets a root of its own.
    pub by: By,
    /// What is appended to names.
    pub annotate: Annotate,
}

/// Writes a profile in one format.
pub type WriteFn = fn(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()>;
