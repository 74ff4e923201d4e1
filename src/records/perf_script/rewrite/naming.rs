//! The question about a frame, the answer, and how often there was which.

use crate::model::{FrameAddr, Nanos, Pid};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::{AddAssign, Range};

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

/// The findings in a block.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Frames named.
    pub named: u64,
    /// Frames at places that had several owners, in a text that does not give the time.
    pub ambiguous: u64,
    /// Frames in places of JIT code that nobody could name.
    pub unresolved: u64,
    /// Frames printed relative to a file whose base the text does not give.
    pub relative: u64,
    /// Frames of unknown processes.
    pub nobodys: u64,
    /// Frames of files that were named, where that is requested.
    pub native: u64,
    /// Frames of files that were not.
    pub native_left: u64,
    /// Samples with call chains.
    pub samples: u64,
    /// Samples without any frame.
    pub frameless: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.named += other.named;
        self.ambiguous += other.ambiguous;
        self.unresolved += other.unresolved;
        self.relative += other.relative;
        self.nobodys += other.nobodys;
        self.native += other.native;
        self.native_left += other.native_left;
        self.samples += other.samples;
        self.frameless += other.frameless;
    }
}
