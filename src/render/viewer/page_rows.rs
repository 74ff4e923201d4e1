//! The rows of samples on a page, in order of time.
//!
//! If there are more than a million samples, those with equal stack, thread and time are summed into one row, because a
//! browser can't open a page with tens of millions of samples. For this, times are rounded down to a multiple of a
//! unit. On the page, users can only select whole units of time, so sums over a selection stay exact.

use crate::model::Nanos;
use crate::model::stacks::{Profile, Row, Series};

/// Maximum number of samples for which times are in nanoseconds. If there are more, times are in microseconds, which
/// take less space.
const MAX_EXACT: usize = 300_000;

/// Maximum number of samples that get a row each. If there are more, equal samples are summed.
const MAX_UNSUMMED: usize = 1_000_000;

/// Maximum number of rows after summing. A row takes about 8 bytes of the page.
const MAX_SUMS: usize = 1_500_000;

/// Where a profile's frames, stacks and tracks are in the tables of the page, which may contain those of two profiles.
pub(super) struct PageNumbers {
    /// For each frame of the profile, the index of its function in the page's table.
    pub(super) functions: Vec<u32>,
    /// For each stack of the profile, the index of its node in the page's table.
    pub(super) nodes: Vec<u32>,
    /// For each track of the profile, its index in the page's table.
    pub(super) tracks: Vec<u32>,
}

/// One sample, or the sum of several.
#[derive(Clone, Copy)]
pub(super) struct PageRow {
    pub(super) time: u64,
    pub(super) weight: u64,
    pub(super) count: u64,
    /// The number of the stack's node in the page's table, counted from 1; 0 for the empty stack.
    pub(super) node: u32,
    pub(super) track: u32,
    /// The number of the instruction, counted from 1 over all listings. 0 if no listing has the instruction.
    pub(super) instruction: u32,
}

impl PageRow {
    /// The fields that must be equal in rows that are summed to one.
    fn key(&self) -> (u64, u32, u32, u32) {
        (self.time, self.node, self.track, self.instruction)
    }

    /// Like [`key`](Self::key), without the time.
    fn owner(&self) -> (u32, u32, u32) {
        (self.node, self.track, self.instruction)
    }
}

/// The rows of each event, and the unit of their times.
pub(super) struct PageRows<'p> {
    samples: Vec<EventRows<'p>>,
    /// The rows of each event if samples were summed, otherwise `None`.
    sums: Option<Vec<Vec<PageRow>>>,
    /// Converts the rows' times for the page. `None` if the page has no times, because in one of the profile's inputs
    /// no sample has a time.
    pub(super) clock: Option<PageClock>,
    /// The number of samples before they were summed. `None` if samples were not summed.
    pub(super) summed: Option<usize>,
}

/// Converts times to what the page has: units of time since the first sample.
#[derive(Clone, Copy)]
pub(super) struct PageClock {
    start: u64,
    last: u64,
    /// The length of a unit of time in nanoseconds.
    unit: u64,
}

impl<'p> PageRows<'p> {
    /// Makes the rows. `instructions` has, for each event, the number of the instruction of each row; it may be empty
    /// if there are no listings.
    pub(super) fn new(
        profile: &Profile,
        series: &'p [Series],
        instructions: &'p [Vec<u32>],
        numbers: &'p PageNumbers,
    ) -> Self {
        let count = series.iter().map(|series| series.rows.len()).sum();
        let clock = PageClock::new(profile, count);
        let mut samples: Vec<EventRows<'_>> = Vec::with_capacity(series.len());
        for (event, series) in series.iter().enumerate() {
            let instructions = instructions.get(event).map_or(&[][..], |instructions| &instructions[..]);
            samples.push(EventRows::new(series, instructions, numbers));
        }
        // Rows with a duration, such as calls, are never summed: two calls are not one longer call. Without a clock,
        // nothing is summed either, because sums are made per unit of time.
        let may_sum = count > MAX_UNSUMMED && !profile.rows_have_durations;
        let Some(exact_clock) = clock.filter(|_| may_sum) else {
            return Self { samples, sums: None, clock, summed: None };
        };
        samples.iter_mut().for_each(EventRows::sort_by_stack);
        let coarse_clock = exact_clock.coarsen(&samples);
        let sums = samples.iter().map(|samples| samples.sum(coarse_clock)).collect();
        Self { samples, sums: Some(sums), clock: Some(coarse_clock), summed: Some(count) }
    }

    /// The number of events.
    pub(super) fn events(&self) -> usize {
        self.samples.len()
    }

    /// The rows of an event, in order of time.
    pub(super) fn rows(&self, event: usize) -> impl Iterator<Item = PageRow> {
        let sums = self.sums.as_ref().map(|sums| sums[event].iter().copied());
        let samples = &self.samples[event];
        // There are either sums or single samples, so one of the two iterators is empty.
        let indices = samples.order.iter().filter(|_| self.sums.is_none());
        let single = indices.map(|index| samples.row(*index, self.clock));
        sums.into_iter().flatten().chain(single)
    }
}

/// The samples of one event.
struct EventRows<'p> {
    rows: &'p [Row],
    instructions: &'p [u32],
    numbers: &'p PageNumbers,
    /// The indices of the event's rows: in order of time, or as sorted by [`EventRows::sort_by_stack`].
    order: Vec<usize>,
}

impl<'p> EventRows<'p> {
    fn new(series: &'p Series, instructions: &'p [u32], numbers: &'p PageNumbers) -> Self {
        let rows = &series.rows[..];
        let mut order: Vec<usize> = (0..rows.len()).collect();
        // Rows without a time come last.
        order.sort_by_key(|&index| (rows[index].time.is_none(), rows[index].time));
        Self { rows, instructions, numbers, order }
    }

    /// Sorts the rows by thread, stack and instruction, so that rows which may be summed are neighbors. Rows that are
    /// equal in these stay in order of time.
    fn sort_by_stack(&mut self) {
        let mut order = std::mem::take(&mut self.order);
        order.sort_by_cached_key(|index| self.row(*index, None).owner());
        self.order = order;
    }

    /// The row with this index, as it is written to the page. All times are 0 if there is no clock.
    fn row(&self, index: usize, clock: Option<PageClock>) -> PageRow {
        let row = &self.rows[index];
        PageRow {
            time: clock.map_or(0, |clock| clock.since_start(row)),
            weight: row.weight,
            count: row.count,
            // 0 stands for the empty stack.
            node: row.stack.map_or(0, |stack| self.numbers.nodes[stack.index()] + 1),
            track: self.numbers.tracks[row.track.index()],
            instruction: self.instructions.get(index).copied().unwrap_or(0),
        }
    }

    /// The number of rows that [`EventRows::sum`] would return with this clock. As for that function,
    /// [`EventRows::sort_by_stack`] must have been called.
    fn count(&self, clock: PageClock) -> usize {
        let key = |index: &usize| self.row(*index, Some(clock)).key();
        self.order.chunk_by(|one, next| key(one) == key(next)).count()
    }

    /// Converts the times of rows to the clock's units. Rows that then have the same time, stack, thread and
    /// instruction are summed to one. Returns the sums in order of time. [`EventRows::sort_by_stack`] must have been
    /// called, so that rows to be summed are neighbors.
    fn sum(&self, clock: PageClock) -> Vec<PageRow> {
        let mut sums: Vec<PageRow> = Vec::new();
        for row in self.order.iter().map(|index| self.row(*index, Some(clock))) {
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
    /// Makes the clock for a profile with `count` samples. It starts at the first sample, and its unit is a nanosecond,
    /// or a microsecond if there are many samples. `None` if the profile has an input in which no sample has a time.
    fn new(profile: &Profile, count: usize) -> Option<Self> {
        if !profile.has_times() {
            return None;
        }
        let (mut start, mut last) = (u64::MAX, 0);
        for Nanos(time) in profile.series.iter().flat_map(|series| &series.rows).filter_map(|row| row.time) {
            (start, last) = (start.min(time), last.max(time));
        }
        // Nanoseconds per unit.
        let unit = if count > MAX_EXACT { 1000 } else { 1 };
        // Without any row that has a time, `start` is still the maximum.
        (start <= last).then_some(Self { start, last, unit })
    }

    /// Makes the clock's unit longer, so that at most [`MAX_SUMS`] rows are left when rows are summed per unit of time.
    /// Returns the clock with the shortest such unit that is 1, 2 or 5 times a power of ten. If no such unit is long
    /// enough, the unit spans the whole time.
    fn coarsen(self, samples: &[EventRows<'_>]) -> Self {
        let whole = (self.last - self.start).saturating_add(1);
        let powers = std::iter::successors(Some(self.unit), |unit| unit.checked_mul(10));
        let units: Vec<u64> = powers.flat_map(|unit| [1, 2, 5].map(|step| unit.saturating_mul(step))).collect();
        // Only units shorter than the whole time.
        let units = &units[..units.partition_point(|unit| *unit < whole)];
        // The longer the unit, the fewer rows are left, so a binary search finds the first unit that is long enough.
        let shortest = units.partition_point(|unit| {
            let clock = Self { unit: *unit, ..self };
            samples.iter().map(|samples| samples.count(clock)).sum::<usize>() > MAX_SUMS
        });
        Self { unit: units.get(shortest).copied().unwrap_or(whole), ..self }
    }

    /// The time of a row in units since the first sample. A row without a time gets the time of the last sample.
    fn since_start(self, row: &Row) -> u64 {
        (row.time.map_or(self.last, |time| time.0) - self.start) / self.unit
    }

    /// The length of a unit of time in nanoseconds.
    pub(super) fn unit(self) -> u64 {
        self.unit
    }

    /// The description of the clock for the page. Times are strings, because they may not fit a JavaScript number.
    pub(super) fn json(self) -> serde_json::Value {
        serde_json::json!({ "unit": self.unit, "start": self.start.to_string(), "last": self.last.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::{Frame, FrameKind, StackId, Track, Unit};

    /// A profile with `samples` samples, one per microsecond, whose stacks alternate between `stacks` different ones.
    /// Also returns the page's numbers for it.
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
        let (profile, numbers) = profile(MAX_UNSUMMED as u64, 3);
        let rows = PageRows::new(&profile, &profile.series, &[], &numbers);
        assert!(rows.summed.is_none() && rows.rows(0).count() == MAX_UNSUMMED);
        assert_eq!(rows.clock.unwrap().unit(), 1000);
    }

    #[test]
    fn more_are_summed_in_units_that_are_as_fine_as_there_is_room() {
        let (samples, stacks) = (1_600_000, 10);
        let (profile, numbers) = profile(samples, stacks);
        let rows = PageRows::new(&profile, &profile.series, &[], &numbers);
        let (unit, rows) = (rows.clock.unwrap().unit() as usize, rows.rows(0).collect::<Vec<_>>());
        // In each unit of 20 µs, all samples of a stack become one row.
        assert_eq!((unit, rows.len()), (20_000, samples as usize / 20 * stacks));
        assert!(rows.is_sorted_by_key(|row| row.time));
        let series = &profile.series[0].rows;
        for (from, to) in [(0, 80_000), (17, 4_711), (79_999, 80_000)] {
            let is_within = |time: u64| (from..to).contains(&time);
            let page = rows.iter().filter(|row| row.node == 3 && is_within(row.time));
            let page = page.fold((0, 0), |(weight, count), row| (weight + row.weight, count + row.count));
            let exact = series.iter().filter(|row| numbers.nodes[row.stack.unwrap().index()] == 2);
            let exact = exact.filter(|row| is_within((row.time.unwrap().0 - 5_000) / 20_000));
            assert_eq!(page, exact.fold((0, 0), |(weight, count), row| (weight + row.weight, count + row.count)));
        }
    }
}
