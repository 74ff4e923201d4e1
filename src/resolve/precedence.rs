//! Decides whether an address belongs to a mapped file or to JIT code if both are known there.
//!
//! JIT code wins if it was logged after the file was mapped; otherwise the file wins. Untimed JIT code, such as an
//! entry of a perf map, wins only where the file stayed mapped to the end of the recording and has no symbol:
//! [`CodeList::hide_untimed`](super::code_map::CodeList::hide_untimed) removed all other untimed code under files when
//! the map was built. In memory without a file, JIT code always wins.

use super::address_space::{AddressSpaces, Place};
use super::code_map::{CodeMap, Hit, How};
use super::dso::DsoKind;
use crate::model::process::CpuMode;
use crate::model::{Addr, Nanos, Pid};

/// True if the address belongs to the JIT code in `hit` and not to the mapping in `place`.
pub fn code_wins(hit: &Hit, codes: &CodeMap<'_>, place: Option<Place>, spaces: &AddressSpaces) -> bool {
    let Some(place) = place else { return true };
    let backed = || spaces.dsos().get(place.dso).kind != DsoKind::Anonymous && !place.is_remapped;
    match hit.how {
        How::Live => codes.segment(hit.segment).from >= place.mapped || !backed(),
        How::Untimed => place.until == Nanos(u64::MAX) || !backed(),
        // Engine logs also report functions of the engine's own executable. The symbols of the executable name those
        // better.
        How::FilledIn => !backed(),
    }
}

/// Like [`code_wins`], but for deciding which code is reported to perf. Here, timed code that the process itself logged
/// always wins, whatever was mapped at the address.
pub fn is_told_of(
    hit: &Hit,
    codes: &CodeMap<'_>,
    spaces: &AddressSpaces,
    at: (Pid, Addr),
    time: Option<Nanos>,
) -> bool {
    let place = || spaces.lookup(at.0, at.1, time.unwrap_or(Nanos(u64::MAX - 1)), CpuMode::User);
    hit.how == How::Live || code_wins(hit, codes, place(), spaces)
}
