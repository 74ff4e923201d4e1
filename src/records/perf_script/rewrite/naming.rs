//! The question about a frame, and the answer.

use crate::model::{FrameAddr, Nanos, Pid};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// A frame to be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The process; 0 in files.
    pub pid: Pid,
    /// The place: in memory, or in this file.
    pub addr: FrameAddr,
    /// The file, if it is not a JIT code.
    pub file: Option<&'a [u8]>,
    /// When, if the text states it.
    pub time: Option<Nanos>,
    /// The number of jitdumps that the process has mapped, as far as the text reported until then.
    pub markers: usize,
}

/// A frame's name.
#[derive(Debug, Clone)]
pub struct Named<'a> {
    /// The function.
    pub name: Cow<'a, [u8]>,
    /// The offset of the frame's printed address in it.
    pub offset: u64,
    /// The object that JIT code is shown under.
    pub dso: Cow<'a, [u8]>,
    /// Source file and line.
    pub source: Option<(Cow<'a, [u8]>, u32)>,
    /// True if other functions had this place at other times, and the text does not give the time: the last is named.
    pub is_one_of_several: bool,
}

/// An answer to [`Wanted`].
#[derive(Debug)]
pub enum Answer<'a> {
    /// It has a name, and it is the same one at these times (the first included, the last not).
    Named(Named<'a>, Range<Nanos>),
    /// Unknown, at these times.
    Unknown(Range<Nanos>),
    /// The names of this process, or of this place in a file, have not been looked for: ask again when they have.
    NotLoaded,
}

/// The addresses to look up before a block can be rewritten.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// The JIT code of these processes.
    pub pids: BTreeSet<Pid>,
    /// These offsets in files; of return addresses, one less.
    pub places: BTreeSet<(Vec<u8>, u64)>,
}

impl Needs {
    /// True if there is nothing.
    pub fn is_empty(&self) -> bool {
        self.pids.is_empty() && self.places.is_empty()
    }
}
