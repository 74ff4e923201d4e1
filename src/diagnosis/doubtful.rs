//! Counts JIT frames that may have the wrong name: their log or dump has inexact times, and the address held code of
//! several names around that time.

use crate::model::code::OriginId;
use crate::model::{Addr, Nanos, Pid};
use crate::pipeline::recording::{Examined, FrameLocation};
use crate::resolve::Location;
use crate::resolve::code_map::CodeMap;
use crate::sources::{Account, ClockUse, Kind, SourceState};

/// A location that held code of several names over time, so that an inexact time may pick the wrong one.
#[derive(Clone, Copy)]
struct DoubtfulPlace<'a> {
    origin: OriginId,
    pid: Pid,
    addr: Addr,
    name: &'a [u8],
    /// The possible error of the source's times, in nanoseconds; `u64::MAX` if it is unknown.
    error: u64,
}

/// Counts the doubtful frames of each source of JIT code, in the order of [`Examined::accounts`].
pub(super) fn frames(examined: &Examined<'_>) -> Vec<u64> {
    let (accounts, map) = (examined.accounts(), &examined.resolution.sources.map);
    let mut frames = vec![0; accounts.len()];
    let places: Vec<_> = examined.samples.chains.places().iter().map(|place| doubtful(place, accounts, map)).collect();
    if places.iter().all(Option::is_none) {
        return frames;
    }
    for row in &examined.samples.rows {
        let Some(time) = row.time else { continue };
        for place in examined.samples.chains.up(row.chain).filter_map(|place| places[place.0 as usize]) {
            let DoubtfulPlace { origin, pid, addr, name, error } = place;
            let times = Nanos(time.0.saturating_sub(error))..Nanos(time.0.saturating_add(error));
            frames[origin.0 as usize] += u64::from(map.may_be_other(pid, addr, name, times));
        }
    }
    frames
}

fn doubtful<'a>(place: &FrameLocation, accounts: &[Account], map: &CodeMap<'a>) -> Option<DoubtfulPlace<'a>> {
    let Location::Code(id, offset) = place.location else { return None };
    let code = map.code(id);
    let account = accounts.get(code.origin.0 as usize)?;
    let error = match (account.kind, &account.state) {
        (Kind::Log(_) | Kind::JitDump, SourceState::Loaded { clock: Some(ClockUse::Estimated { error }), .. }) => {
            error.unwrap_or(u64::MAX)
        }
        _ => return None,
    };
    let (addr, pid) = (Addr(code.addr.0.saturating_add(offset)), account.pid);
    let has_others = map.has_other_names(pid, addr, code.name);
    has_others.then_some(DoubtfulPlace { origin: code.origin, pid, addr, name: code.name, error })
}
