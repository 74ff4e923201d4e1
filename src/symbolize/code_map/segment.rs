//! The rectangles of the code map: which code was at which addresses, and when.

use crate::model::{Addr, Nanos, Pid};

/// The number of one piece of code in a code map, in the order of loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeId(pub u32);

/// The index of a [`Segment`] in its code map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u32);

/// A range of addresses that held one piece of code during a range of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The process that loaded the code. A child process that inherited the code at a fork has another ID.
    pub pid: Pid,
    /// The code that was at these addresses.
    pub code: CodeId,
    /// The first address.
    pub start: Addr,
    /// One past the last address.
    pub end: Addr,
    /// When the code appeared at these addresses, on the recording's clock; 0 for untimed entries.
    pub from: Nanos,
    /// When the code ended at these addresses, exclusive; `Nanos(u64::MAX)` if it never did.
    pub until: Nanos,
    /// How far `start` is from the start of the code, in bytes. 0 unless the first part of the code was overwritten.
    pub offset: u64,
}
