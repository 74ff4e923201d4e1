//! The parts of an event that are written, and the meaning of its times and weights.

use super::categories::collects_garbage;
use crate::model::stacks::{NameId, Profile, Row, Series, Track, Unit, Weight};
use crate::model::{Nanos, Pid};
use rustc_hash::FxHashMap;

/// The unit of the event's samples, as the format names it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    /// Time on a processor: weights in milliseconds, and so is what the thread ran.
    Time,
    /// Cycles of a processor, which show what the thread ran, too.
    Cycles,
    /// Anything else.
    Other,
}

/// The parts of an event that are written, and their form.
pub(super) struct Writing<'a> {
    pub(super) profile: &'a Profile,
    pub(super) series: &'a Series,
    pub(super) weight: Weight,
    pub(super) counted: Counted,
    /// The time that is shown as 0: that of the first sample. Recordings give times since boot.
    pub(super) start: u64,
    /// The time of the last sample.
    last: u64,
    /// The last name of each process's main thread.
    mains: FxHashMap<Option<Pid>, &'a [u8]>,
    /// For each name, true if it is a garbage collector's.
    collectors: Vec<bool>,
}

impl<'a> Writing<'a> {
    pub(super) fn new(profile: &'a Profile, series: &'a Series, weight: Weight) -> Self {
        let times = series.rows.iter().filter_map(|row| row.time);
        let (start, last) = (times.clone().min().map_or(0, |time| time.0), times.max().map_or(0, |time| time.0));
        let is_main = |track: &&Track| track.tid.map(|tid| tid.0) == track.pid.map(|pid| pid.0);
        let mains = profile.tracks().iter().filter(is_main).map(|track| (track.pid, &*track.comm)).collect();
        let collectors = profile.names().map(collects_garbage).collect();
        Self { profile, series, weight, counted: counted(series, weight), start, last, mains, collectors }
    }

    /// True if a function collects garbage, and all that it calls with it.
    pub(super) fn collects_garbage(&self, name: NameId) -> bool {
        self.collectors[name.index()]
    }

    /// The name of a process's main thread, if it has samples.
    pub(super) fn main(&self, pid: Option<Pid>) -> Option<&'a [u8]> {
        self.mains.get(&pid).copied()
    }

    /// Nanoseconds since the first sample. A sample without a time is where the last one is.
    pub(super) fn time(&self, row: &Row) -> u64 {
        row.time.map_or(self.last, |time| time.0) - self.start
    }

    /// Milliseconds since the first sample; before it they are negative.
    pub(super) fn since_start(&self, time: Nanos) -> f64 {
        if time.0 < self.start { -millis(self.start - time.0) } else { millis(time.0 - self.start) }
    }
}

pub(super) fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

fn counted(series: &Series, weight: Weight) -> Counted {
    match (&series.unit, weight) {
        (Unit::Nanos, Weight::Period) => Counted::Time,
        (Unit::Named(name), Weight::Period) if name.contains("cycles") => Counted::Cycles,
        _ => Counted::Other,
    }
}
