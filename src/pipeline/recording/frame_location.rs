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
    /// The process, if the location is in memory that no file backs and no code is known there. Otherwise 0.
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

/// An extra outermost frame in unwound stacks whose real outermost frames are missing.
pub(super) const TRUNCATED_FRAME: ModeFrame = (CpuMode::Unknown, FrameAddr::Ip(Addr(u64::MAX)));

/// An extra outermost frame in call chains whose length is the kernel's maximum. These chains are treated as truncated,
/// unless the function of their outermost frame is one in which threads start.
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
            pid: if is_anonymous { pid } else { Pid(0) },
            addr: if keep_addr { frame.raw() } else { Addr(0) },
            // The symbolizer looks up the byte before a return address, and other addresses as they are.
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
