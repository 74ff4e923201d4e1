//! The samples of a page, in the order of their times. With more than a million, those of one stack, one thread and one unit
//! of time are one row: a page of tens of millions of samples could not be opened. The unit is then as long as it must be,
//! and since the page chooses whole units, the sums of what is chosen stay exact.

use crate::model::Nanos;
use crate::model::stacks::{Profile, Row, Series, TrackId};

/// With more samples than this, times are in microseconds.
const EXACT: usize = 300_000;

/// With more samples than this, they are summed.
const SINGLE: usize = 1_000_000;

/// The most rows that are left then. A row takes some 8 bytes of the page.
const MOST: usize = 1_500_000;

/// The numbers of stacks and threads of a profile in the tables.
pub(super) struct PageNumbers {
    /// By frame.
    pub(super) functions: Vec<u32>,
    pub(super) nodes: Vec<u32>,
    pub(super) tracks: Vec<u32>,
}

/// A sample, or the sum of several.
#[derive(Clone, Copy)]
pub(super) struct PageRow {
    pub(super) time: u64,
    pub(super) weight: u64,
    pub(super) count: u64,
    /// The number of its stack, from 1 on; 0 is the empty stack.
    pub(super) node: u32,
    pub(super) track: u32,
    /// The number of the instruction in all listings, from 1 on; 0: it is not listed.
    pub(super) spot: u32,
}

impl PageRow {
    /// Rows with the same one are summed.
    fn key(&self) -> (u64, u32, u32, u32) {
        (self.time, self.node, self.track, self.spot)
    }
}

/// The rows of each event, and how their times are written.
pub(super) struct PageRows<'p> {
    samples: Vec<Samples<'p>>,
    /// By event, if they are summed.
    sums: Option<Vec<Vec<PageRow>>>,
    /// `None` if a sample has no time.
    pub(super) clock: Option<PageClock>,
    /// The number of samples, if they are summed.
    pub(super) summed: Option<usize>,
}

/// The way times are written.
#[derive(Clone, Copy)]
pub(super) struct PageClock {
    start: u64,
    last: u64,
    /// In nanoseconds.
    unit: u64,
}

impl<'p> PageRows<'p> {
    /// `spots`: for each event the spots of its rows, or nothing.
    pub(super) fn of(profile: &Profile, series: &'p [Series], spots: &'p [Vec<u32>], numbers: &'p PageNumbers) -> Self {
        let count = series.iter().map(|series| series.rows.len()).sum();
        let clock = PageClock::of(profile, count);
        let spots = |event: usize| spots.get(event).map_or(&[][..], |spots| &spots[..]);
        let samples = series.iter().enumerate().map(|(event, series)| Samples::of(series, spots(event), numbers));
        let mut samples: Vec<Samples<'_>> = samples.collect();
        // A call lasts: two of them are not one that is longer.
        match clock.filter(|_| count > SINGLE && !profile.rows_last) {
            Some(clock) => {
                samples.iter_mut().for_each(Samples::sort_by_stack);
                let clock = clock.coarsened(&samples);
                let sums = samples.iter().map(|samples| samples.summed(clock)).collect();
                Self { samples, sums: Some(sums), clock: Some(clock), summed: Some(count) }
            }
            None => Self { samples, sums: None, clock, summed: None },
        }
    }

    /// The number of events.
    pub(super) fn events(&self) -> usize {
        self.samples.len()
    }

    /// The rows of an event.
    pub(super) fn rows(&self, event: usize) -> impl Iterator<Item = PageRow> {
        let sums = self.sums.as_ref().map(|sums| sums[event].iter().copied());
        let samples = &self.samples[event];
        let single = samples.order.iter().filter(|_| self.sums.is_none()).map(|at| samples.row(*at, self.clock));
        sums.into_iter().flatten().chain(single)
    }
}

/// The samples of one event.
struct Samples<'p> {
    rows: &'p [Row],
    spots: &'p [u32],
    numbers: &'p PageNumbers,
    /// The places of the rows in the order of their times, or of their stacks.
    order: Vec<usize>,
}

impl<'p> Samples<'p> {
    fn of(series: &'p Series, spots: &'p [u32], numbers: &'p PageNumbers) -> Self {
        let rows = &series.rows[..];
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|&at| (rows[at].time.is_none(), rows[at].time));
        Self { rows, spots, numbers, order }
    }

    /// Thread, stack and spot of the row at a place.
    fn owner(&self, at: usize) -> (u32, u32, u32) {
        let Row { track: TrackId(track), stack, .. } = self.rows[at];
        let node = stack.map_or(0, |stack| self.numbers.nodes[stack.index()] + 1);
        (self.numbers.tracks[track as usize], node, self.spots.get(at).copied().unwrap_or(0))
    }

    /// Puts together what may be one row; those of a stack stay in the order of time.
    fn sort_by_stack(&mut self) {
        let mut order = std::mem::take(&mut self.order);
        order.sort_by_cached_key(|at| self.owner(*at));
        self.order = order;
    }

    fn row(&self, at: usize, clock: Option<PageClock>) -> PageRow {
        let ((track, node, spot), row) = (self.owner(at), &self.rows[at]);
        let time = clock.map_or(0, |clock| clock.since_start(row));
        PageRow { time, weight: row.weight, count: row.count, node, track, spot }
    }

    /// The number of rows that are left by these units.
    fn count(&self, clock: PageClock) -> usize {
        let key = |at: usize| (self.owner(at), clock.since_start(&self.rows[at]));
        self.order.chunk_by(|at, next| key(*at) == key(*next)).count()
    }

    fn summed(&self, clock: PageClock) -> Vec<PageRow> {
        let mut sums: Vec<PageRow> = Vec::new();
        for row in self.order.iter().map(|at| self.row(*at, Some(clock))) {
            match sums.last_mut() {
                Some(sum) if sum.key() == row.key() => {
                    sum.weight = sum.weight.saturating_add(row.weight);
                    sum.count = sum.count.saturating_add(row.count);
                }
                _ => sums.push(row),
            }
        }
        sums.sort_unstable_by_key(PageRow::key);
        sums
    }
}

impl PageClock {
    /// `None` if an input has no times.
    fn of(profile: &Profile, count: usize) -> Option<Self> {
        if !profile.has_times() {
            return None;
        }
        let (mut start, mut last) = (u64::MAX, 0);
        for Nanos(time) in profile.series.iter().flat_map(|series| &series.rows).filter_map(|row| row.time) {
            (start, last) = (start.min(time), last.max(time));
        }
        let unit = if count > EXACT { 1000 } else { 1 };
        (start <= last).then_some(Self { start, last, unit })
    }

    /// The finest unit (1, 2 or 5 of a power of ten) by which few enough rows are left, or else a single one for all.
    fn coarsened(self, samples: &[Samples<'_>]) -> Self {
        let whole = (self.last - self.start).saturating_add(1);
        let powers = std::iter::successors(Some(self.unit), |unit| unit.checked_mul(10));
        let units: Vec<u64> = powers.flat_map(|unit| [1, 2, 5].map(|step| unit.saturating_mul(step))).collect();
        let units = &units[..units.partition_point(|unit| *unit < whole)];
        let is_too_fine = |unit: &u64| {
            let clock = Self { unit: *unit, ..self };
            samples.iter().map(|samples| samples.count(clock)).sum::<usize>() > MOST
        };
        Self { unit: units.get(units.partition_point(is_too_fine)).copied().unwrap_or(whole), ..self }
    }

    /// A sample without a time is where the last one is.
    fn since_start(self, row: &Row) -> u64 {
        (row.time.map_or(self.last, |time| time.0) - self.start) / self.unit
    }

    /// The unit in nanoseconds.
    pub(super) fn unit(self) -> u64 {
        self.unit
    }

    /// Times on the recording's own clock are texts: they may have more digits than a number of JavaScript.
    pub(super) fn json(self) -> serde_json::Value {
        serde_json::json!({ "unit": self.unit, "start": self.start.to_string(), "last": self.last.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::{Frame, FrameKind, StackId, Track, Unit};

    /// A profile of this many samples, one each microsecond, in this many stacks by turns, and its numbers.
    fn profile(samples: u64, stacks: usize) -> (Profile, PageNumbers) {
        let mut profile = Profile::new();
        let series = profile.series_named("e", Unit::Samples);
        let track = profile.track(Track::default());
        let all: Vec<StackId> = (0..stacks)
            .map(|stack| {
                let name = profile.name(format!("f{stack}").as_bytes());
                let frame = profile.frame(Frame::new(name, FrameKind::User));
                profile.stack(None, frame)
            })
            .collect();
        for at in 0..samples {
            let stack = Some(all[at as usize % stacks]);
            profile.push(series, Row { track, stack, weight: at % 7, count: 1, time: Some(Nanos(5_000 + at * 1000)) });
        }
        let nodes = (0..stacks as u32).collect();
        (profile, PageNumbers { functions: Vec::new(), nodes, tracks: vec![0] })
    }

    #[test]
    fn a_million_samples_are_as_they_are() {
        let (profile, numbers) = profile(SINGLE as u64, 3);
        let rows = PageRows::of(&profile, &profile.series, &[], &numbers);
        assert!(rows.summed.is_none() && rows.rows(0).count() == SINGLE);
        assert_eq!(rows.clock.unwrap().unit(), 1000);
    }

    #[test]
    fn more_are_summed_in_units_that_are_as_fine_as_there_is_room() {
        let (samples, stacks) = (4_000_000, 10);
        let (profile, numbers) = profile(samples, stacks);
        let rows = PageRows::of(&profile, &profile.series, &[], &numbers);
        let (unit, rows) = (rows.clock.unwrap().unit() as usize, rows.rows(0).collect::<Vec<_>>());
        // A unit has a sample of each stack for every ten microseconds of it, and one row for all of these.
        assert_eq!((unit, rows.len()), (50_000, samples as usize / 50 * stacks));
        assert!(rows.is_sorted_by_key(|row| row.time));
        let series = &profile.series[0].rows;
        for (from, to) in [(0, 80_000), (17, 4_711), (79_999, 80_000)] {
            let is_within = |time: u64| (from..to).contains(&time);
            let page = rows.iter().filter(|row| row.node == 3 && is_within(row.time));
            let page = page.fold((0, 0), |(weight, count), row| (weight + row.weight, count + row.count));
            let exact = series.iter().filter(|row| numbers.nodes[row.stack.unwrap().index()] == 2);
            let exact = exact.filter(|row| is_within((row.time.unwrap().0 - 5_000) / 50_000));
            assert_eq!(page, exact.fold((0, 0), |(weight, count), row| (weight + row.weight, count + row.count)));
        }
    }
}
