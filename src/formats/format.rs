//! What a format is: one entry of the table.

use crate::error::{Result, Warnings};
use crate::model::stacks::Profile;
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
    pub write: Option<WriteFn>,
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

/// What writing may depend on, from the command line.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {}

/// Writes a profile in one format.
pub type WriteFn = fn(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()>;
