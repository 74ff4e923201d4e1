//! What is asked about a frame, and answered.

use crate::model::{FrameAddr, Nanos, Pid};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// A frame to be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The process; 0 in files.
    pub pid: Pid,
    /// Where: in memory, or in this file.
    pub addr: FrameAddr,
    /// The file, if it is no JIT code.
    pub file: Option<&'a [u8]>,
    /// When, if the text says.
    pub time: Option<Nanos>,
    /// How many jitdumps the process has mapped, as far as the text told until then.
    pub markers: usize,
}

/// A frame's name.
#[derive(Debug, Clone)]
pub struct Named<'a> {
    /// The function.
    pub name: Cow<'a, [u8]>,
    /// How far into it the frame's printed address is.
    pub offset: u64,
    /// The object that JIT code is shown under.
    pub dso: Cow<'a, [u8]>,
    /// Source file and line.
    pub source: Option<(Cow<'a, [u8]>, u32)>,
    /// Whether other functions had this place at other times, and the text does not tell the time: the last is named.
    pub is_one_of_several: bool,
}

/// An answer to [`Wanted`].
#[derive(Debug)]
pub enum Answer<'a> {
    /// It has a name, and it is the same one at these times (the first included, the last not).
    Named(Named<'a>, Range<Nanos>),
    /// Nobody knows, at these times.
    Unknown(Range<Nanos>),
    /// The names of this process, or of this place in a file, have not been looked for: ask again when they have.
    NotLoaded,
}

/// What has to be looked up before a block can be rewritten.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// The JIT code of these processes.
    pub pids: BTreeSet<Pid>,
    /// These offsets in files; of return addresses, one less.
    pub places: BTreeSet<(Vec<u8>, u64)>,
}

impl Needs {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.pids.is_empty() && self.places.is_empty()
    }
}
