//! The code by place and time: the rectangles of the map.

use crate::model::{Addr, Nanos, Pid};

/// One load of the code map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeId(pub u32);

/// A stretch of addresses that held one code range during one stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u32);

/// A [`SegmentId`]'s extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The process whose dump listed it (a forked child that inherits it uses its own pid).
    pub pid: Pid,
    /// The code there.
    pub code: CodeId,
    /// First address.
    pub start: Addr,
    /// One past the last address.
    pub end: Addr,
    /// Live from; 0 for untimed entries.
    pub from: Nanos,
    /// Live until, exclusive; `Nanos(u64::MAX)` if it was never replaced.
    pub until: Nanos,
    /// The offset of `start` in the code.
    pub offset: u64,
}
