//! The event that is written, and how its times and weights are represented.

use super::categories::collects_garbage;
use crate::model::stacks::{NameId, Profile, Row, Series, Unit, Weight};
use crate::model::{Nanos, Pid};
use rustc_hash::FxHashMap;

/// What the weights of the event count, as far as the format distinguishes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    /// CPU time. Weights are in milliseconds and also tell how long the thread ran.
    Time,
    /// CPU cycles. Weights also tell how much the thread ran.
    Cycles,
    /// Anything else, such as numbers of samples or cache misses.
    Other,
}

/// The event that is written, and facts about the profile that all threads need.
pub(super) struct Writing<'a> {
    pub(super) profile: &'a Profile,
    pub(super) series: &'a Series,
    pub(super) weight: Weight,
    pub(super) counted: Counted,
    /// The time shown as 0, in nanoseconds: that of the first sample. (Times in recordings are usually since boot.)
    pub(super) start: u64,
    /// The time of the last sample, in nanoseconds.
    last: u64,
    /// The name of each process's main thread.
    main_threads: FxHashMap<Option<Pid>, &'a [u8]>,
}

impl<'a> Writing<'a> {
    /// Determines the times of the first and last sample, and the names of the main threads.
    pub(super) fn new(profile: &'a Profile, series: &'a Series, weight: Weight) -> Self {
        let times = series.rows.iter().filter_map(|row| row.time);
        // Without times, all samples are at time 0.
        let start = times.clone().min().map_or(0, |time| time.0);
        let last = times.max().map_or(0, |time| time.0);
        let mut main_threads = FxHashMap::default();
        for track in profile.tracks() {
            // A process's main thread has the ID of the process.
            if track.tid.map(|tid| tid.0) == track.pid.map(|pid| pid.0) {
                main_threads.insert(track.pid, &*track.comm);
            }
        }
        Self { profile, series, weight, counted: Counted::new(series, weight), start, last, main_threads }
    }

    /// Whether a function, and everything that it calls, is part of garbage collection.
    pub(super) fn collects_garbage(&self, name: NameId) -> bool {
        collects_garbage(self.profile.name_of(name))
    }

    /// The name of a process's main thread, if that has samples.
    pub(super) fn main_thread_name(&self, pid: Option<Pid>) -> Option<&'a [u8]> {
        self.main_threads.get(&pid).copied()
    }

    /// Nanoseconds since the first sample. A sample without a time gets the time of the last sample.
    pub(super) fn time(&self, row: &Row) -> u64 {
        row.time.map_or(self.last, |time| time.0) - self.start
    }

    /// Milliseconds since the first sample; negative before it.
    pub(super) fn since_start(&self, time: Nanos) -> f64 {
        if time.0 < self.start { -millis(self.start - time.0) } else { millis(time.0 - self.start) }
    }
}

pub(super) fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

impl Counted {
    fn new(series: &Series, weight: Weight) -> Self {
        match (&series.unit, weight) {
            (Unit::Nanos, Weight::Period) => Self::Time,
            (Unit::Named(name), Weight::Period) if name.contains("cycles") => Self::Cycles,
            _ => Self::Other,
        }
    }
}
