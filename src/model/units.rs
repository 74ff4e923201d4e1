//! Types for addresses, times and process IDs. Only readers deal with raw integers.

use std::fmt;

/// A virtual address in the recorded process. Displayed as `0x1f00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Addr(pub u64);

/// A time in nanoseconds on the recording's own clock. There is no text form, because a time means nothing without that
/// clock; print the number, `time.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// False for the times of samples of `perf record --off-cpu`, which perf sums while recording and writes at the
    /// end. These times are later than all real ones, and only serve for sorting.
    pub fn is_valid(self) -> bool {
        // `OFF_CPU_TIMESTAMP`, tools/perf/util/off_cpu.h. perf script's text truncates these times to microseconds.
        const FIRST: u64 = 0xffff_ffff_0000_0000;
        self.0 < FIRST - FIRST % 1000
    }
}

/// A process ID as recorded, which is the one outside of PID namespaces: files that a process in a container writes
/// have another ([`CodeMap`](crate::CodeMap#processes-in-containers)). perf gives the idle task the PID 0, and kernel
/// mappings the PID -1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pid(pub i32);

/// A thread ID as recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tid(pub i32);

/// An address in a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameAddr {
    /// The instruction that was running.
    Ip(Addr),
    /// A return address: the instruction after a call.
    Return(Addr),
}

impl FrameAddr {
    /// The address as recorded.
    pub fn raw(self) -> Addr {
        match self {
            Self::Ip(addr) | Self::Return(addr) => addr,
        }
    }

    /// The address to look up: that of the running instruction or, for a return address, one less, which is inside the
    /// call. The return address itself may already belong to the next function. Other code uses this method instead of
    /// subtracting.
    pub fn for_lookup(self) -> Addr {
        match self {
            Self::Ip(addr) => addr,
            Self::Return(addr) => Addr(addr.0.wrapping_sub(1)),
        }
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
