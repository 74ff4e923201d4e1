//! Addresses, times and process ids as types of their own. Raw integers stop at the readers.

use std::fmt;

/// A virtual address in the recorded process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Addr(pub u64);

/// A time in nanoseconds on the recording's own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// False for the times that `perf record --off-cpu` gives its samples when it ends: they only sort them behind all
    /// others. They begin at 0xffffffff00000000 (`OFF_CPU_TIMESTAMP`, tools/perf/util/off_cpu.h), which perf script's text
    /// cuts to microseconds.
    pub fn is_valid(self) -> bool {
        const FIRST: u64 = 0xffff_ffff_0000_0000;
        self.0 < FIRST - FIRST % 1000
    }
}

/// A process id as recorded (the outer one, where there are pid namespaces). perf writes the idle task and kernel maps
/// with pid 0 and -1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pid(pub i32);

/// A thread id as recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tid(pub i32);

/// One address of a call chain: where code was running, or where it will return to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameAddr {
    /// The address of the instruction that was running.
    Ip(Addr),
    /// The address behind a call instruction.
    Return(Addr),
}

impl FrameAddr {
    /// The address as recorded.
    pub fn raw(self) -> Addr {
        match self {
            Self::Ip(addr) | Self::Return(addr) => addr,
        }
    }

    /// An address inside the instruction: one less for a return address, which may be the next function's first.
    /// Nobody else subtracts.
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
