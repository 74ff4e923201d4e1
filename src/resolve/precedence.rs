//! The source that names an address that both a file and JIT code answer for.
//!
//! Code that was logged after the file was mapped wins, then the file. Code without a time is known where a file is
//! only if that file was there to the end and has no name for it: all else was taken out of the map when it was built
//! ([`CodeList::hide_untimed`](super::code_map::CodeList::hide_untimed)). Files do not hide code in memory that none
//! backs.

use super::address_space::{AddressSpaces, Place};
use super::code_map::{CodeMap, Hit, How};
use super::dso::DsoKind;
use crate::model::process::CpuMode;
use crate::model::{Addr, Nanos, Pid};

/// True if JIT code is what was there, and not what was mapped.
pub fn code_wins(hit: &Hit, codes: &CodeMap<'_>, place: Option<Place>, spaces: &AddressSpaces) -> bool {
    let Some(place) = place else { return true };
    let backed = || spaces.dsos().get(place.dso).kind != DsoKind::Anonymous && !place.is_remapped;
    match hit.how {
        How::Live => codes.segment(hit.segment).from >= place.mapped || !backed(),
        How::Untimed => place.until == Nanos(u64::MAX) || !backed(),
        // The engine's own functions, which logs report, have names in its file.
        How::FilledIn => !backed(),
    }
}

/// The same for code of which perf is to be reported. An address that a process has logged holds for it, whatever was
/// mapped.
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
