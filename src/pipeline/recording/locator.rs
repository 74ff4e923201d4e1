//! What an address of a recording is: JIT code, a place in a file, or not known.

use crate::model::process::CpuMode;
use crate::model::{Addr, FrameAddr, Nanos, Pid};
use crate::resolve::Location;
use crate::resolve::address_space::AddressSpaces;
use crate::resolve::code_map::{CodeMap, How};
use crate::resolve::dso::DsoKind;
use crate::resolve::precedence::code_wins;

/// Where an address belongs, in a form that is equal for all samples that hit it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FrameLocation {
    /// What is there.
    pub(crate) location: Location,
    /// Whose memory it is, where no file backs it and no code is known in it; else 0.
    pub(crate) pid: Pid,
    /// The address as recorded, where it is asked for, else 0: equal offsets of one file are one spot then.
    pub(crate) addr: Addr,
    /// Whether it is a return address: `location` is that of the byte before.
    pub(crate) is_return: bool,
    /// Whose code it is.
    pub(crate) mode: CpuMode,
}

/// Stands outside of all frames of an unwound stack whose outermost frames are not known.
pub(super) const TRUNCATED_FRAME: (CpuMode, FrameAddr) = (CpuMode::Unknown, FrameAddr::Ip(Addr(u64::MAX)));

/// Stands outside of all frames of a call chain that is as long as the kernel may record: it was cut, unless the
/// frame below is one that threads begin in.
pub(super) const LIMIT_FRAME: (CpuMode, FrameAddr) = (CpuMode::Unknown, FrameAddr::Ip(Addr(u64::MAX - 1)));

impl FrameLocation {
    /// What [`LIMIT_FRAME`] is.
    pub(crate) const LIMIT: Self = Self::mark(LIMIT_FRAME);

    const fn mark((mode, frame): (CpuMode, FrameAddr)) -> Self {
        let (FrameAddr::Ip(addr) | FrameAddr::Return(addr)) = frame;
        Self { location: Location::Nothing(addr), pid: Pid(0), addr: Addr(0), is_return: false, mode }
    }

    /// Whether it is no frame, but tells that there are more, or may be more, that are not known.
    pub(crate) fn is_mark(&self) -> bool {
        [Self::LIMIT, Self::mark(TRUNCATED_FRAME)].contains(self)
    }
}

/// An answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocatedFrame {
    pub(super) spot: FrameLocation,
    /// Until when it holds, exclusive; the time asked for, if that is not known.
    pub(super) until: Nanos,
}

/// All that is known of addresses.
#[derive(Debug)]
pub(super) struct Locator<'a> {
    pub(super) spaces: &'a AddressSpaces,
    pub(super) codes: &'a CodeMap<'a>,
    /// Whether addresses are kept.
    pub(super) keep_addr: bool,
}

impl Locator<'_> {
    /// What was there.
    pub(super) fn find(&self, pid: Pid, mode: CpuMode, frame: FrameAddr, time: Nanos) -> LocatedFrame {
        if [TRUNCATED_FRAME, LIMIT_FRAME].contains(&(mode, frame)) {
            return LocatedFrame { spot: FrameLocation::mark((mode, frame)), until: Nanos(u64::MAX) };
        }
        let lookup = self.codes.lookup_address(pid, frame, Some(time));
        let place = self.spaces.lookup(pid, lookup, time, mode);
        let in_user = matches!(mode, CpuMode::User | CpuMode::Unknown) && !self.codes.is_empty();
        let hit = if in_user { self.codes.lookup(pid, lookup, Some(time)) } else { None };
        let (location, until) = match (hit, place) {
            (Some(hit), place) if code_wins(&hit, self.codes, place, self.spaces) => {
                let until = if hit.how == How::Live { self.codes.segment(hit.segment).until } else { time };
                (Location::Code(hit.code, hit.offset), until)
            }
            (_, Some(place)) => {
                // A place that no code was ever logged at stays what it is until something else is mapped there.
                let steady = !in_user || self.codes.lookup(pid, lookup, None).is_none();
                (Location::File(place.dso, place.offset), if steady { place.until } else { time })
            }
            (_, None) => (Location::Nothing(lookup), time),
        };
        let pid = match location {
            Location::File(dso, _) if self.spaces.dsos().get(dso).kind == DsoKind::Anonymous => pid,
            _ => Pid(0),
        };
        let addr = if self.keep_addr { frame.raw() } else { Addr(0) };
        let is_return = lookup != frame.raw();
        LocatedFrame { spot: FrameLocation { location, pid, addr, is_return, mode }, until }
    }
}
