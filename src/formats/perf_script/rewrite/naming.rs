//! The interface between the rewriter and the namer. The rewriter edits the text of perf script, and asks the namer for
//! the name of each frame. This file has the query for a frame, the possible answers, and counts of the answers.

use crate::model::{FrameAddr, Nanos, Pid};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::{AddAssign, Range};

/// A frame whose name the rewriter asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameQuery<'a> {
    /// The ID of the process; 0 for a frame of native code in a file.
    pub pid: Pid,
    /// The address in the process, or the offset in `file`.
    pub addr: FrameAddr,
    /// The file; `None` if the frame is JIT code.
    pub file: Option<&'a [u8]>,
    /// The time of the sample; `None` if the text doesn't show times, or for native code.
    pub time: Option<Nanos>,
    /// The number of jitdumps that the process has mapped so far, according to the text. If it has mapped more of them
    /// than when its names were loaded, the namer must load the names again.
    pub markers: usize,
}

/// The name of a frame.
#[derive(Debug, Clone)]
pub struct FrameName<'a> {
    /// Name of the function.
    pub name: Cow<'a, [u8]>,
    /// The offset of the printed address in the function, in bytes.
    pub offset: u64,
    /// The object to print for the frame.
    pub dso: Cow<'a, [u8]>,
    /// Source file and line, if known.
    pub source: Option<(Cow<'a, [u8]>, u32)>,
    /// True if several functions were at this address at different times, and the text shows no time by which to
    /// choose. The name is that of the last one.
    pub is_one_of_several: bool,
}

/// What the namer answers when it is asked for a frame ([`FrameQuery`]).
#[derive(Debug)]
pub enum Answer<'a> {
    /// The name, and the period in which it is valid; its end is excluded.
    Named(FrameName<'a>, Range<Nanos>),
    /// The frame has no name in this period of time, whose end is excluded.
    Unknown(Range<Nanos>),
    /// The names of this process, or the symbols at this file offset, are not loaded. Ask again after loading them.
    NotLoaded,
}

/// The names that must be loaded before a part of perf script's text (a block) can be rewritten: JIT code by process,
/// symbols of native code by file and offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// The processes whose JIT code must be loaded.
    pub pids: BTreeSet<Pid>,
    /// Pairs of a file and an offset in it at which a symbol is needed.
    pub places: BTreeSet<(Vec<u8>, FrameAddr)>,
}

impl Needs {
    /// True if nothing must be loaded.
    pub fn is_empty(&self) -> bool {
        self.pids.is_empty() && self.places.is_empty()
    }
}

/// Counts of what happened to the frames and samples of a block.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Number of JIT frames that were named.
    pub named: u64,
    /// Number of named frames at whose address there were several functions at different times, in a text without
    /// times.
    pub ambiguous: u64,
    /// Number of frames in memory of JIT code that could not be named.
    pub unresolved: u64,
    /// Number of unresolved frames whose address is relative to a file, while the text doesn't show where the file is
    /// mapped.
    pub relative: u64,
    /// Number of unresolved frames whose process is unknown. They are included in [`Self::unresolved`].
    pub process_unknown: u64,
    /// Number of frames in mapped files (native code) that were named (with [`super::Style::native`]).
    pub native: u64,
    /// Number of frames in mapped files (native code) that remained without a name: no function is known at the
    /// address, or the text doesn't show where the file is mapped.
    pub native_left: u64,
    /// Number of samples with call chains, including those for which perf printed no frame.
    pub samples: u64,
    /// Number of samples without any frame.
    pub frameless: u64,
}

impl Counts {
    /// What was counted since the counts were `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            named: self.named - earlier.named,
            ambiguous: self.ambiguous - earlier.ambiguous,
            unresolved: self.unresolved - earlier.unresolved,
            relative: self.relative - earlier.relative,
            process_unknown: self.process_unknown - earlier.process_unknown,
            native: self.native - earlier.native,
            native_left: self.native_left - earlier.native_left,
            samples: self.samples - earlier.samples,
            frameless: self.frameless - earlier.frameless,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.named += other.named;
        self.ambiguous += other.ambiguous;
        self.unresolved += other.unresolved;
        self.relative += other.relative;
        self.process_unknown += other.process_unknown;
        self.native += other.native;
        self.native_left += other.native_left;
        self.samples += other.samples;
        self.frameless += other.frameless;
    }
}
