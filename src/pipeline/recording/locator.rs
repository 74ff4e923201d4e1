//! Determines what is at an address of a recording: JIT code, a file, or something unknown.

use crate::model::process::CpuMode;
use crate::model::{Addr, FrameAddr, Nanos, Pid};
use crate::symbolize::Location;
use crate::symbolize::address_space::{AddressSpaces, Place};
use crate::symbolize::code_map::CodeMap;
use crate::symbolize::dso::DsoKind;
use crate::symbolize::precedence::code_wins;

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
    /// Whether the code belongs to the kernel, a user program, or a guest.
    pub(crate) mode: CpuMode,
}

/// An extra outermost frame in unwound stacks whose real outermost frames are missing.
pub(super) const TRUNCATED_FRAME: (CpuMode, FrameAddr) = (CpuMode::Unknown, FrameAddr::Ip(Addr(u64::MAX)));

/// An extra outermost frame in call chains whose length is the kernel's maximum. These chains are treated as truncated,
/// unless the function of their outermost frame is one in which threads start.
pub(super) const LIMIT_FRAME: (CpuMode, FrameAddr) = (CpuMode::Unknown, FrameAddr::Ip(Addr(u64::MAX - 1)));

impl FrameLocation {
    /// The location of [`LIMIT_FRAME`].
    pub(crate) const LIMIT: Self = Self::from_mark(LIMIT_FRAME);

    /// The location of a frame that isn't real: [`TRUNCATED_FRAME`] or [`LIMIT_FRAME`].
    const fn from_mark(mark: (CpuMode, FrameAddr)) -> Self {
        let (mode, FrameAddr::Ip(addr) | FrameAddr::Return(addr)) = mark;
        Self { location: Location::Nothing(addr), pid: Pid(0), addr: Addr(0), is_return: false, mode }
    }

    /// True if this isn't a real frame but marks that frames are missing, or may be missing.
    pub(crate) fn is_mark(&self) -> bool {
        [Self::LIMIT, Self::from_mark(TRUNCATED_FRAME)].contains(self)
    }
}

/// The result of looking up an address.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocatedFrame {
    pub(super) place: FrameLocation,
    /// The time (exclusive) until which the result is valid; the time of the lookup if it isn't known how long.
    pub(super) until: Nanos,
}

/// What is needed to look up addresses: mappings and JIT code.
#[derive(Debug)]
pub(super) struct Locator<'a> {
    pub(super) spaces: &'a AddressSpaces,
    pub(super) codes: &'a CodeMap<'a>,
    /// True if frames keep their addresses.
    pub(super) keep_addr: bool,
}

impl Locator<'_> {
    /// Determines what was at an address of a process at a time.
    pub(super) fn find(&self, pid: Pid, mode: CpuMode, frame: FrameAddr, time: Nanos) -> LocatedFrame {
        if [TRUNCATED_FRAME, LIMIT_FRAME].contains(&(mode, frame)) {
            return LocatedFrame { place: FrameLocation::from_mark((mode, frame)), until: Nanos(u64::MAX) };
        }
        let mut lookup = frame.for_lookup();
        let mut code = None;
        let mut code_until = Nanos(u64::MAX);
        if matches!(mode, CpuMode::User | CpuMode::Unknown) && !self.codes.is_empty() {
            let (looked_up, found) = self.codes.lookup_frame(pid, frame, time);
            lookup = looked_up;
            code = found.answer;
            code_until = found.holds.end;
        }
        let (mapping, mapping_until) = self.find_mapping(pid, mode, lookup, time);
        let until = mapping_until.min(code_until);
        let location = match (code, mapping) {
            (Some(hit), mapping) if code_wins(&hit, self.codes, mapping, self.spaces) => {
                Location::Code(hit.code, hit.offset)
            }
            (_, Some(mapping)) => Location::File(mapping.dso, mapping.offset),
            (_, None) => Location::Nothing(lookup),
        };
        let pid = match location {
            Location::File(dso, _) if self.spaces.dsos().get(dso).kind == DsoKind::Anonymous => pid,
            _ => Pid(0),
        };
        let addr = if self.keep_addr { frame.raw() } else { Addr(0) };
        let is_return = lookup != frame.raw();
        LocatedFrame { place: FrameLocation { location, pid, addr, is_return, mode }, until }
    }

    /// The mapping at an address at a time, and the time until which that holds.
    fn find_mapping(&self, pid: Pid, mode: CpuMode, addr: Addr, time: Nanos) -> (Option<Place>, Nanos) {
        match self.spaces.lookup(pid, addr, time, mode) {
            Some(place) if place.until > time => (Some(place), place.until),
            place if mode == CpuMode::User => (place, self.spaces.user_lasting(pid, addr, time).holds.end),
            place => (place, time),
        }
    }
}
