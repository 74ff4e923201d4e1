//! Decides whether an address belongs to a mapped file or to JIT code, if both are known at the address.
//!
//! JIT code wins if it was logged after the file was mapped; otherwise the file wins. JIT code without a time, such as
//! an entry of a perf map, wins only if the file stayed mapped to the end of the recording and has no symbol at the
//! address. All other untimed code under files was removed by
//! [`CodeList::hide_untimed`](super::code_map::CodeList::hide_untimed) when the map was built. In memory that isn't
//! from a file, JIT code always wins.

use super::address_space::{AddressSpaces, Place};
use super::code_map::{CodeMap, Hit, HitKind};
use crate::model::Nanos;

/// True if an address belongs to the JIT code `hit`, false if it belongs to the mapping `place`. Both were found at
/// that address.
pub(super) fn code_wins(hit: &Hit, codes: &CodeMap<'_>, place: Option<Place>, spaces: &AddressSpaces) -> bool {
    let Some(place) = place else { return true };
    let is_file = !spaces.dsos().get(place.dso).kind.is_memory() && !place.is_remapped;
    if !is_file {
        return true;
    }
    match hit.kind {
        // Code that is later than the file's mapping was written over the file. If the mapping is later, it replaced
        // the code.
        HitKind::Live => codes.segment(hit.segment).from >= place.mapped,
        // The code may be from any time. A file that was mapped later than the code would have replaced it, so the code
        // wins only if nothing replaced the file up to the end of the recording.
        HitKind::Untimed => place.until == Nanos(u64::MAX),
        // Engine logs also report functions of the engine's own executable. The executable's symbols have better names
        // for them.
        HitKind::FilledIn => false,
    }
}
