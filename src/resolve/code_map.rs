//! What JIT code was at (process, address, time). Built once from code events, in parallel; then only read.
//!
//! Order of precedence for an address: a timed load that is live at the time; an untimed entry (perf map, placed
//! ELF object); a timed load that comes only later, if exactly one does (producers stamp a load slightly late).
//!
//! A timed load ends where a later load or move of the same process overwrites it (the overlap only), where its
//! piece is moved away, or where the process execs. A forked child sees its parent's code as of the fork until it
//! execs. Of untimed entries of one source the later one wins where they overlap.

use crate::model::code::{Code, CodeEvent, OriginId};
use crate::model::process::Processes;
use crate::model::{Addr, Nanos, Pid};
use crate::parallel::Pool;

/// One load of the code map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeId(pub u32);

/// A stretch of addresses that held one piece of code during one stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u32);

/// A [`SegmentId`]'s extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The process whose dump said so (a forked child that inherits it asks by its own pid).
    pub pid: Pid,
    /// First address.
    pub start: Addr,
    /// One past the last address.
    pub end: Addr,
    /// Live from; 0 for untimed entries.
    pub from: Nanos,
    /// Live until, exclusive; `Nanos(u64::MAX)` if it was never replaced.
    pub until: Nanos,
    /// The code there.
    pub code: CodeId,
    /// How far into the code `start` is.
    pub offset: u64,
}

/// Why a [`Hit`] is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The load was live at that time (or no time was asked for and it is the last there).
    Live,
    /// An entry without a time covers the address.
    Untimed,
    /// The only load that ever covers the address comes later.
    Later,
}

/// An answer of the code map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The piece of code.
    pub code: CodeId,
    /// The stretch it was found in.
    pub segment: SegmentId,
    /// How far into the code the address is.
    pub offset: u64,
    /// By which rule.
    pub how: How,
}

/// What JIT code was where, and when.
#[derive(Debug, Default)]
pub struct CodeMap<'data> {
    codes: Vec<Code<'data>>,
}

impl<'data> CodeMap<'data> {
    /// Builds the map. `events` are one list for each source, in the source's own order.
    pub fn build(_events: Vec<(OriginId, Vec<CodeEvent<'data>>)>, _processes: &Processes, _pool: &Pool) -> Self {
        Self::default()
    }

    /// What was at `addr` in process `pid` at `time`; without a time, the last code there. Use
    /// [`crate::model::FrameAddr::for_lookup`] for return addresses.
    pub fn lookup(&self, _pid: Pid, _addr: Addr, _time: Option<Nanos>) -> Option<Hit> {
        None
    }

    /// A piece of code.
    pub fn code(&self, id: CodeId) -> &Code<'data> {
        &self.codes[id.0 as usize]
    }

    /// How many pieces of code there are; their numbers run from 0.
    pub fn code_count(&self) -> usize {
        self.codes.len()
    }

    /// Whether it knows no code at all.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }
}
