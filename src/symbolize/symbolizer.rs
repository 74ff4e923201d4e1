//! Answers what was at an address of a process at some time. Everything that names code asks here: the readers of
//! recordings, the unwinder, `annotate`, and the rewriters of perf.data, of perf script's text and of profiles.
//!
//! ```text
//! process, address, time, CPU mode
//!    │ Symbolizer::locate        code map and address spaces; `code_wins` decides between the two
//!    ▼
//! location, and the time range in which it stays the same
//!    │ Resolver::frames          distinct locations only, in parallel: symbols, DWARF, kernel, jitdump
//!    ▼
//! frames: functions with source lines and inlined calls
//! ```
//!
//! # Time
//!
//! The same address is different code at different times. So an answer comes with the time range in which it holds
//! ([`Lasting`]), and callers keep answers in [`RecentAnswers`](crate::model::lasting::RecentAnswers), whose key is
//! what they asked for. Most stacks share most frames with earlier ones, so most questions are answered by the cache.
//!
//! Inputs without times ask without a time, which means: what was last at the address. Samples without a time in a
//! recording that has times mean the same ([`UNTIMED`]).
//!
//! # Return addresses
//!
//! A return address is looked up one byte before, in the call instruction: the call may be the last instruction of its
//! function. Addresses that no call precedes are looked up as they are. [`Symbolizer::locate`] knows some of them
//! without opening files; for the others, callers ask
//! [`Resolver::find_uncalled`](super::resolver::Resolver::find_uncalled).
//!
//! # Mapped file or JIT code
//!
//! If both a mapped file and JIT code are known at an address, JIT code wins if it was logged after the file was
//! mapped; otherwise the file wins. JIT code without a time, such as an entry of a perf map, wins only if the file
//! stayed mapped to the end of the recording and has no symbol at the address. All other untimed code under files was
//! removed by [`CodeList::hide_untimed`](super::code_map::CodeList::hide_untimed) when the map was built. In memory
//! that isn't from a file, JIT code always wins.
//!
//! # Who doesn't ask here
//!
//! callgrind files have costs by address for the whole run, and need address ranges instead of single addresses:
//! `pipeline::callgrind::names` says why.

use super::address_space::{AddressSpaces, MappedPlace};
use super::code_map::{CodeId, CodeMap, Hit, HitKind};
use super::dso::{DsoId, DsoKind};
use crate::model::lasting::{ALWAYS, Lasting, UNTIMED, intersect, moment};
use crate::model::process::CpuMode;
use crate::model::{Addr, FrameAddr, Nanos, Pid};

/// What is known about the memory of all processes over time: mappings and JIT code.
#[derive(Debug, Clone, Copy)]
pub struct Symbolizer<'a> {
    /// The mappings of every process. Empty for inputs that don't state mappings.
    pub spaces: &'a AddressSpaces,
    /// The JIT code of every process.
    pub codes: &'a CodeMap<'a>,
}

/// What is at an address. If the address is a return address, it has been adjusted: offsets point one byte before it,
/// into the call instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// JIT code, and the offset from its start in bytes.
    Code(CodeId, u64),
    /// A file or other mapping, and the address relative to the file (see [`MappedPlace::offset`]).
    File(DsoId, u64),
    /// No mapping and no JIT code is known at this address.
    Nothing(Addr),
}

/// What was found at an address.
#[derive(Debug, Clone, Copy)]
pub struct Located {
    /// The address that was looked up. For a return address, it is the byte before it, with two exceptions
    /// ([`Symbolizer::locate`]).
    pub addr: Addr,
    /// The JIT code at the address. `None` if no code is known there, or if the address belongs to `mapping` instead.
    pub code: Option<Hit>,
    /// What was mapped at the address, even if the address belongs to `code`. `None` if no mapping is known.
    pub mapping: Option<MappedPlace>,
}

impl Located {
    /// The part of the answer that [`Resolver::frames`](super::resolver::Resolver::frames) takes: the JIT code, or else
    /// the file or other mapping, to which the address belongs.
    pub fn location(&self) -> Location {
        match (self.code, self.mapping) {
            (Some(hit), _) => Location::Code(hit.code, hit.offset),
            (None, Some(mapping)) => Location::File(mapping.dso, mapping.offset),
            (None, None) => Location::Nothing(self.addr),
        }
    }
}

impl Symbolizer<'_> {
    /// Finds what was at the address of a frame, and how long that answer holds. Without a time, finds what was last at
    /// the address; the answer then holds for [`UNTIMED`] only, the time under which callers store such answers.
    ///
    /// A return address is looked up one byte before, in the call. But if certainly no call ends there, the address
    /// itself is looked up: what is in the chain isn't a return address. This examines JIT code, and memory in which no
    /// code is known; for code in files, see [`Resolver::find_uncalled`](super::resolver::Resolver::find_uncalled).
    pub fn locate(&self, pid: Pid, frame: FrameAddr, time: Option<Nanos>, mode: CpuMode) -> Lasting<Located> {
        // `lookup` and `raw` differ only for a return address: `lookup` is one byte before it, in the call instruction.
        let (lookup, raw) = (frame.for_lookup(), frame.raw());
        let found = self.locate_address(pid, lookup, time, mode);
        if lookup == raw {
            return found;
        }
        let is_after_nothing = matches!(found.answer.location(), Location::Nothing(_));
        let may_follow_call = match found.answer.code {
            Some(hit) => self.may_call_end_at(&hit),
            None => !is_after_nothing && !self.is_in_anonymous_memory(&found.answer),
        };
        if may_follow_call {
            return found;
        }
        let exact = self.locate_address(pid, raw, time, mode);
        let is_certain = match found.answer.code {
            Some(_) => true,
            // The first byte of a mapping: the process had no call instruction before it.
            None if is_after_nothing => exact.answer.mapping.is_some(),
            // Unknown code with a call at its end may precede the known code. It is more likely, as in files, that the
            // chain has gone astray, or that nobody called this code.
            None => exact.answer.code.is_some_and(|hit| hit.offset == 0),
        };
        let answer = if is_certain { exact.answer } else { found.answer };
        Lasting { answer, holds: intersect(found.holds, exact.holds) }
    }

    /// False if certainly no call instruction ends with this byte of JIT code, which is the one before a supposed return
    /// address. Only the last byte is examined: after all others, the same code goes on.
    ///
    /// Erlang processes end by returning to the first byte of a function that nothing has called. In memory, that
    /// function follows a header that isn't code (OTP erts/emulator/beam/jit/beam_jit_metadata.cpp).
    fn may_call_end_at(&self, hit: &Hit) -> bool {
        if self.codes.name(hit.code).ends_with(b"-CodeInfoPrologue") {
            return false;
        }
        let code = self.codes.code(hit.code);
        let call_test = self.codes.call_tests.get(code.origin.0 as usize).copied().flatten();
        match (code.bytes, call_test) {
            (Some(bytes), Some(may_end_in_call)) if hit.offset + 1 == code.size => may_end_in_call(bytes),
            _ => true,
        }
    }

    /// Like [`Self::locate`], but finds what is at exactly this address, even if it is a return address.
    pub fn locate_address(&self, pid: Pid, addr: Addr, time: Option<Nanos>, mode: CpuMode) -> Lasting<Located> {
        let mapped = self.find_mapping(pid, addr, time, mode);
        let found = self.find_code(pid, addr, time, mode);
        let mapping = mapped.answer;
        let code = found.answer.filter(|hit| code_wins(hit, self.codes, mapping, self.spaces));
        Lasting { answer: Located { addr, code, mapping }, holds: intersect(mapped.holds, found.holds) }
    }

    /// True if the address is in memory that no file backs, where JIT code usually is.
    pub fn is_in_anonymous_memory(&self, located: &Located) -> bool {
        located.mapping.is_some_and(|place| self.spaces.dsos().get(place.dso).kind == DsoKind::Anonymous)
    }

    /// Finds what was mapped at an address, and how long that answer holds. Without a time, finds what was last mapped
    /// there; the answer then holds for [`UNTIMED`] only.
    fn find_mapping(&self, pid: Pid, addr: Addr, time: Option<Nanos>, mode: CpuMode) -> Lasting<Option<MappedPlace>> {
        let Some(time) = time else {
            return Lasting { answer: self.spaces.lookup(pid, addr, UNTIMED, mode), holds: moment(UNTIMED) };
        };
        match self.spaces.lookup(pid, addr, time, mode) {
            // The process mapped this itself: only for such mappings does `lookup` set `until` to their end. The answer
            // holds for as long as the mapping exists. For what the process inherited from its parent, or what its
            // previous program had mapped before an exec, `until` is just `time`; `user_lasting` below handles that.
            Some(place) if mode == CpuMode::User && place.until > time => {
                Lasting { answer: Some(place), holds: place.mapped..place.until }
            }
            _ if mode == CpuMode::User => self.spaces.user_lasting(pid, addr, time),
            // In the kernel and in guests, an address where nothing is mapped may be mapped at any time. So the answer
            // that nothing is mapped holds for no longer than `time`, and isn't reused.
            place => Lasting { answer: place, holds: time..place.map_or(time, |place| place.until) },
        }
    }

    /// Finds the JIT code at an address, like [`Self::find_mapping`]. JIT code exists only in user space.
    fn find_code(&self, pid: Pid, addr: Addr, time: Option<Nanos>, mode: CpuMode) -> Lasting<Option<Hit>> {
        if self.codes.is_empty() || !matches!(mode, CpuMode::User | CpuMode::Unknown) {
            return Lasting { answer: None, holds: ALWAYS };
        }
        match time {
            // A time equal to `UNTIMED` counts as missing, like `None`.
            Some(time) if time != UNTIMED => self.codes.lookup_lasting(pid, addr, time),
            _ => Lasting { answer: self.codes.lookup(pid, addr, None), holds: moment(UNTIMED) },
        }
    }
}

/// True if an address belongs to the JIT code `hit`, false if it belongs to the mapping `place`. Both were found at
/// that address.
fn code_wins(hit: &Hit, codes: &CodeMap<'_>, place: Option<MappedPlace>, spaces: &AddressSpaces) -> bool {
    let Some(place) = place else { return true };
    let is_file = !spaces.dsos().get(place.dso).kind.is_memory() && !place.is_remapped;
    if !is_file {
        return true;
    }
    match hit.kind {
        // Code that is later than the file's mapping was written over the file. If the mapping is later, it replaced
        // the code.
        HitKind::Live => codes.segment(hit.segment).from >= place.mapped,
        // It is unknown when the code was there. If the file stayed mapped to the end of the recording, the code is
        // part of the file and wins. An example is a function of an executable without symbols that a perf map names.
        // If something was mapped over the file later, the code may belong to that later mapping, so the file wins.
        HitKind::Untimed => place.until == Nanos(u64::MAX),
        // Engine logs also report functions of the engine's own executable. The executable's symbols have better names
        // for them.
        HitKind::FilledIn => false,
    }
}
