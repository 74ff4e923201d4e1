//! Counts JIT frames that may have the wrong name: their address held code of several names around the time of the
//! sample, and the times in the log or dump are too inexact to tell which of them ran.

use crate::jit::{Account, ClockUse, Kind, SourceState};
use crate::model::code::OriginId;
use crate::model::{Addr, Nanos, Pid};
use crate::pipeline::recording::{Examined, FrameLocation};
use crate::symbolize::Location;
use crate::symbolize::code_map::CodeMap;

/// A location that held code of several names, one after the other. If the times of the names' source are inexact, a
/// sample there may get the wrong name.
#[derive(Clone, Copy)]
struct DoubtfulPlace<'a> {
    /// The source of the name.
    origin: OriginId,
    pid: Pid,
    addr: Addr,
    name: &'a [u8],
    /// The possible error of the source's times, in nanoseconds; `u64::MAX` if it is unknown.
    error: u64,
}

/// Counts the frames that may have the wrong name, separately for each source of JIT code. The counts are in the order
/// of [`Examined::accounts`].
pub(super) fn count_frames(examined: &Examined<'_>) -> Vec<u64> {
    let accounts = examined.accounts();
    let map = &examined.resolution.sources.map;
    let mut counts = vec![0; accounts.len()];
    let places = examined.samples.chains.places();
    let doubtful_places: Vec<_> = places.iter().map(|place| DoubtfulPlace::find(place, accounts, map)).collect();
    if doubtful_places.iter().all(Option::is_none) {
        return counts;
    }
    for row in &examined.samples.rows {
        // Samples without a time aren't counted: no code can be looked up around their time.
        let Some(time) = row.time else { continue };
        // The locations of the sample's frames, innermost first.
        for place in examined.samples.chains.places_up(row.chain) {
            // The name of the code at any other location is certain.
            let Some(doubtful_place) = doubtful_places[place.0 as usize] else { continue };
            let DoubtfulPlace { origin, pid, addr, name, error } = doubtful_place;
            // The time of the sample on the source's clock is somewhere in this range.
            let times = Nanos(time.0.saturating_sub(error))..Nanos(time.0.saturating_add(error));
            if map.may_be_other(pid, addr, name, times) {
                counts[origin.0 as usize] += 1;
            }
        }
    }
    counts
}

impl<'a> DoubtfulPlace<'a> {
    /// Checks whether the name at a location may be wrong. `None` if the name is certain: its source has exact times or
    /// none, or the address never held code of another name.
    fn find(place: &FrameLocation, accounts: &[Account], map: &CodeMap<'a>) -> Option<Self> {
        let Location::Code(id, offset) = place.location else { return None };
        let code = map.code(id);
        let account = accounts.get(code.origin.0 as usize)?;
        // Only jitdumps and logs say when code was at its address.
        if !matches!(account.kind, Kind::Log(_) | Kind::JitDump) {
            return None;
        }
        let SourceState::Loaded { clock: Some(ClockUse::Estimated { error }), .. } = account.state else { return None };
        let place = Self {
            origin: code.origin,
            pid: account.pid,
            addr: Addr(code.addr.0.saturating_add(offset)),
            name: code.name,
            // If the error is unknown, any time is possible.
            error: error.unwrap_or(u64::MAX),
        };
        if map.has_other_names(place.pid, place.addr, place.name) { Some(place) } else { None }
    }
}
