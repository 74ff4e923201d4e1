//! The code locations of a recording's frames: what the symbolizer says about an address, and what else decides how the
//! frame is shown. A [`PlaceId`](crate::model::chains::PlaceId) is the number of a distinct location.

use crate::model::lasting::{ALWAYS, Lasting};
use crate::model::process::CpuMode;
use crate::model::{Addr, FrameAddr, Nanos, Pid};
use crate::symbolize::Location;
use crate::symbolize::symbolizer::Symbolizer;

/// What a frame is looked up by: CPU mode and address.
pub(super) type ModeFrame = (CpuMode, FrameAddr);

/// The code location of a frame. All frames with the same location get the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FrameLocation {
    pub(crate) location: Location,
    /// The process, if no file backs the memory and no code is known there: such memory is shown with the process's ID.
    /// Otherwise 0.
    pub(crate) pid: Pid,
    /// The address as recorded, if addresses are kept. Otherwise 0, so that equal offsets in a file are the same
    /// location in all processes.
    pub(crate) addr: Addr,
    /// True for a return address. `location` is then the location of the byte before it, which belongs to the call
    /// instruction.
    pub(crate) is_return: bool,
    /// Whether the code belongs to the kernel, a user program, or a virtual machine (guest).
    pub(crate) mode: CpuMode,
}

/// Stands for the missing outer frames of an unwound stack. It is added to the stack as its outermost frame.
pub(super) const TRUNCATED_FRAME: ModeFrame = (CpuMode::Unknown, FrameAddr::Ip(Addr(u64::MAX)));

/// Stands for outer frames that may be missing, because the call chain is as long as the kernel allows. It is added to
/// the stack as its outermost frame. The stack counts as truncated unless threads start in the function of the next
/// inner frame.
pub(super) const LIMIT_FRAME: ModeFrame = (CpuMode::Unknown, FrameAddr::Ip(Addr(u64::MAX - 1)));

impl FrameLocation {
    /// The location of [`LIMIT_FRAME`].
    pub(crate) const LIMIT: Self = Self::from_mark(LIMIT_FRAME);

    /// The location of a frame that isn't real: [`TRUNCATED_FRAME`] or [`LIMIT_FRAME`].
    const fn from_mark(mark: ModeFrame) -> Self {
        let (mode, FrameAddr::Ip(addr) | FrameAddr::Return(addr)) = mark;
        Self { location: Location::Nothing(addr), pid: Pid(0), addr: Addr(0), is_return: false, mode }
    }

    /// Finds the location of a frame of a process at a time, and how long it stays the same. `keep_addr` says whether
    /// frames keep their addresses.
    pub(super) fn find(
        symbolizer: Symbolizer<'_>,
        keep_addr: bool,
        pid: Pid,
        (mode, frame): ModeFrame,
        time: Nanos,
    ) -> Lasting<Self> {
        if [TRUNCATED_FRAME, LIMIT_FRAME].contains(&(mode, frame)) {
            return Lasting { answer: Self::from_mark((mode, frame)), holds: ALWAYS };
        }
        let Lasting { answer: located, holds } = symbolizer.locate(pid, frame, Some(time), mode);
        let is_anonymous = located.code.is_none() && symbolizer.is_in_anonymous_memory(&located);
        let answer = Self {
            location: located.location(),
            // If the process and the address are left out, the same code in several processes is one location, which is
            // named once. But memory that no file backs is shown with its process (`perf-PID.map`), so keep the process
            // there.
            pid: if is_anonymous { pid } else { Pid(0) },
            addr: if keep_addr { frame.raw() } else { Addr(0) },
            // For a return address, the symbolizer has looked up the byte before it; any other address it looks up as
            // it is.
            is_return: located.addr != frame.raw(),
            mode,
        };
        Lasting { answer, holds }
    }

    /// True if this isn't a real frame but marks that frames are missing, or may be missing.
    pub(crate) fn is_mark(&self) -> bool {
        [Self::LIMIT, Self::from_mark(TRUNCATED_FRAME)].contains(self)
    }
}
