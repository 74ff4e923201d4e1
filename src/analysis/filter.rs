//! Selects samples by process, thread, name, CPU and time.

use crate::model::stacks::{Profile, Row, Track};
use crate::model::{Nanos, Pid, Tid};

/// Which samples to keep. A sample must satisfy every list; an empty list allows everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Allowed names of processes or threads.
    pub comm: Vec<Vec<u8>>,
    /// Allowed process IDs.
    pub pid: Vec<Pid>,
    /// Allowed thread IDs.
    pub tid: Vec<Tid>,
    /// Allowed CPU numbers.
    pub cpu: Vec<u32>,
    /// Allowed time ranges; a sample must be in one of them.
    pub time: Vec<TimeRange>,
}

/// A time range within a recording. As in perf, its start and its end both belong to it. But when samples are selected,
/// an end that is given in percent is excluded, unless it is the last sample: the ranges `0%-50%` and `50%-100%` have
/// no sample in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeRange {
    /// The start. `None` means the time of the first sample.
    pub from: Option<Bound>,
    /// The end. `None` means the time of the last sample.
    pub to: Option<Bound>,
}

/// One end of a time range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// A time on the recording's clock.
    At(Nanos),
    /// A percentage of the time from the first to the last sample.
    Percent(f64),
}

/// A [`Filter`] with the time ranges converted to absolute times of one recording.
#[derive(Debug, Clone)]
pub struct PlacedFilter<'a> {
    filter: &'a Filter,
    /// The first and the last time of each range. Both are in the range.
    times: Vec<(Nanos, Nanos)>,
}

impl Filter {
    /// Converts the time ranges for a recording whose samples are from `first` to `last`. The result selects its
    /// samples.
    pub fn place(&self, first: Nanos, last: Nanos) -> PlacedFilter<'_> {
        PlacedFilter { filter: self, times: self.time.iter().map(|range| range.sample_times(first, last)).collect() }
    }

    /// True if the filter has time ranges, so that a sample's time must be known.
    pub fn asks_time(&self) -> bool {
        !self.time.is_empty()
    }

    /// Removes the rows of the profile that the filter rejects.
    pub fn apply(&self, profile: &mut Profile) {
        // The default filter allows everything.
        if *self == Self::default() {
            return;
        }
        let times = || profile.series.iter().flat_map(|series| &series.rows).filter_map(|row| row.time);
        let first = times().min().unwrap_or(Nanos(u64::MAX));
        let last = times().max().unwrap_or(Nanos(0));
        // The filter's times may be percentages of the time from the first to the last sample. `place` converts them.
        let filter = self.place(first, last);
        let allowed_tracks: Vec<bool> = profile.tracks().iter().map(|track| filter.track(track)).collect();
        // Sums that the reader has cut to the time range must not be filtered by time again: they have no times.
        let is_cut = profile.cut_to_time;
        let is_allowed = |row: &Row| allowed_tracks[row.track.index()] && (is_cut || filter.time(row.time));
        for series in &mut profile.series {
            series.rows.retain(is_allowed);
            series.negative.retain(is_allowed);
        }
        // Costs of recorded calls have no times either. A filter by time therefore drops all of them, unless the reader
        // has applied it.
        profile.calls.retain(|calls| allowed_tracks[calls.track.index()] && (is_cut || filter.time(None)));
    }
}

impl TimeRange {
    /// The absolute start and end of the range, both included, in a recording whose samples are from `first` to `last`.
    /// Without a start or end, everything before or after is included.
    pub fn times(&self, first: Nanos, last: Nanos) -> (Nanos, Nanos) {
        let from = self.from.map_or(Nanos(0), |bound| bound.time(first, last));
        let to = self.to.map_or(Nanos(u64::MAX), |bound| bound.time(first, last));
        (from, to)
    }

    /// Like [`times`](Self::times), for selecting samples: an end given in percent is excluded, because it is also the
    /// start of the next range and no sample must count twice (as in perf). The time of the last sample is never
    /// excluded.
    fn sample_times(&self, first: Nanos, last: Nanos) -> (Nanos, Nanos) {
        let (from, to) = self.times(first, last);
        let is_shared = matches!(self.to, Some(Bound::Percent(_))) && from < to && to != last;
        (from, if is_shared { Nanos(to.0 - 1) } else { to })
    }
}

impl Bound {
    /// The absolute time of this end of a range, in a recording whose samples are from `first` to `last`.
    fn time(self, first: Nanos, last: Nanos) -> Nanos {
        match self {
            Self::At(time) => time,
            Self::Percent(percent) => {
                let span = last.0.saturating_sub(first.0) as f64;
                Nanos(first.0.saturating_add((percent / 100.0 * span).round() as u64))
            }
        }
    }
}

impl PlacedFilter<'_> {
    /// True if the filter allows samples of this thread.
    pub fn track(&self, track: &Track) -> bool {
        self.comm(&track.comm) && self.pid(track.pid) && self.tid(track.tid) && self.cpu(track.cpu)
    }

    /// True if the filter allows this process or thread name.
    pub fn comm(&self, comm: &[u8]) -> bool {
        self.filter.comm.is_empty() || self.filter.comm.iter().any(|wanted| wanted == comm)
    }

    /// True if the filter allows this process.
    pub fn pid(&self, pid: Option<Pid>) -> bool {
        is_allowed(&self.filter.pid, pid)
    }

    /// True if the filter allows this thread ID.
    pub fn tid(&self, tid: Option<Tid>) -> bool {
        is_allowed(&self.filter.tid, tid)
    }

    /// True if the filter allows this CPU.
    pub fn cpu(&self, cpu: Option<u32>) -> bool {
        is_allowed(&self.filter.cpu, cpu)
    }

    /// True if the filter allows this time. An unknown time (`None`) is only allowed if there are no time ranges.
    pub fn time(&self, time: Option<Nanos>) -> bool {
        self.times.is_empty()
            || time.is_some_and(|time| self.times.iter().any(|&(from, to)| from <= time && time <= to))
    }
}

/// True if the list is empty or contains the value. `None` is an unknown value, which only an empty list allows.
fn is_allowed<T: PartialEq>(list: &[T], value: Option<T>) -> bool {
    list.is_empty() || value.is_some_and(|value| list.contains(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_seconds_and_per_cent() {
        let range = |from, to| Filter { time: vec![TimeRange { from, to }], ..Filter::default() };
        let (first, last) = (Nanos(1000), Nanos(2000));
        let half = range(Some(Bound::Percent(50.0)), None);
        assert!(!half.place(first, last).time(Some(Nanos(1499))));
        assert!(half.place(first, last).time(Some(Nanos(1500))));
        let tenth = range(Some(Bound::Percent(10.0)), Some(Bound::Percent(20.0)));
        let tenth = tenth.place(first, last);
        assert!(tenth.time(Some(Nanos(1100))) && tenth.time(Some(Nanos(1199))) && !tenth.time(Some(Nanos(1200))));
        let end = range(Some(Bound::Percent(90.0)), Some(Bound::Percent(100.0)));
        assert!(end.place(first, last).time(Some(last)));
        let early = range(None, Some(Bound::At(Nanos(1200))));
        assert!(early.place(first, last).time(Some(Nanos(1200))));
        assert!(!early.place(first, last).time(Some(Nanos(1201))));
        assert!(!early.place(first, last).time(None));
        assert!(Filter::default().place(first, last).time(None));
    }

    #[test]
    fn every_condition_must_hold() {
        let filter = Filter { comm: vec![b"node".to_vec()], pid: vec![Pid(1), Pid(2)], ..Filter::default() };
        let placed = filter.place(Nanos(0), Nanos(0));
        let track =
            |comm: &[u8], pid| Track { comm: comm.to_vec(), pid: Some(Pid(pid)), tid: None, ..Track::default() };
        assert!(placed.track(&track(b"node", 2)));
        assert!(!placed.track(&track(b"node", 3)));
        assert!(!placed.track(&track(b"nod", 1)));
        assert!(!placed.pid(None));
    }
}
