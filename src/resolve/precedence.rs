//! Decides whether an address belongs to a mapped file or to JIT code if both are known there.
//!
//! JIT code wins if it was logged after the file was mapped; otherwise the file wins. Untimed JIT code, such as an
//! entry of a perf map, wins only where the file stayed mapped to the end of the recording and has no symbol:
//! [`CodeList::hide_untimed`](super::code_map::CodeList::hide_untimed) removed all other untimed code under files when
//! the map was built. In memory without a file, JIT code always wins.

use super::address_space::{AddressSpaces, Place};
use super::code_map::{CodeMap, Hit, How};
use super::dso::DsoKind;
use crate::model::lasting::UNTIMED;
use crate::model::process::CpuMode;
use crate::model::{Addr, Nanos, Pid};

/// True if the address belongs to the JIT code in `hit` and not to the mapping in `place`.
pub fn code_wins(hit: &Hit, codes: &CodeMap<'_>, place: Option<Place>, spaces: &AddressSpaces) -> bool {
    let Some(place) = place else { return true };
    let is_file = spaces.dsos().get(place.dso).kind != DsoKind::Anonymous && !place.is_remapped;
    if !is_file {
        return true;
    }
    match hit.how {
        How::Live => codes.segment(hit.segment).from >= place.mapped,
        How::Untimed => place.until == Nanos(u64::MAX),
        // Engine logs also report functions of the engine's own executable. The symbols of the executable name those
        // better.
        How::FilledIn => false,
    }
}

/// Like [`code_wins`], but for deciding which code is reported to perf. Here, timed code that the process itself logged
/// always wins, whatever was mapped at the address.
pub fn is_reported(
    hit: &Hit,
    codes: &CodeMap<'_>,
    spaces: &AddressSpaces,
    pid: Pid,
    addr: Addr,
    time: Option<Nanos>,
) -> bool {
    if hit.how == How::Live {
        return true;
    }
    let place = spaces.lookup(pid, addr, time.unwrap_or(UNTIMED), CpuMode::User);
    code_wins(hit, codes, place, spaces)
}
