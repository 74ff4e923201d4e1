//! Collects the rows of an event until their row group is full.

use super::input::{TableInput, TableRow};
use crate::contract::rows::{clamp, interval_start};
use crate::model::stacks::{Row, StackId, TrackId};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// The maximum number of rows in a row group.
pub(super) const GROUP: usize = 1 << 17;

/// A row group with fewer rows is full, too, once its rows span this many nanoseconds: query engines skip row groups by
/// time, so these shouldn't span long times.
const SPAN: i64 = 60_000_000_000;

/// The minimum number of rows in a row group that is full because of its time span.
const LEAST: usize = GROUP / 8;

/// The rows of one event that wait for their row group to be full.
#[derive(Debug, Default)]
pub(super) struct WaitingRows {
    rows: Vec<TableRow>,
    /// For each thread, stack and time bucket, the index of the row that sums it up.
    sums: FxHashMap<(TrackId, Option<StackId>, Option<i64>), usize>,
    /// The earliest and latest time of the rows, in nanoseconds on the recording's clock; `None` if no row has a time.
    times: Option<(i64, i64)>,
}

impl WaitingRows {
    /// True if enough rows wait to fill a row group of the Parquet file.
    pub(super) fn is_full(&self) -> bool {
        let span = self.times.map_or(0, |(first, last)| last.saturating_sub(first));
        self.rows.len() >= GROUP || self.rows.len() >= LEAST && span >= SPAN
    }

    /// Adds a row with this weight, which may be negative. With a `bucket` (an interval in nanoseconds), the weight is
    /// added to the row for the same thread, stack and interval, if there is one. Intervals are aligned to the wall
    /// clock. `epoch` is the wall-clock time at the zero of the recording's clock, in nanoseconds since 1970; `None` if
    /// unknown.
    pub(super) fn push(&mut self, event: usize, row: &Row, weight: i64, bucket: Option<i64>, epoch: Option<i128>) {
        let mut time = row.time.and_then(|time| i64::try_from(time.0).ok());
        if let Some(time) = time {
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
        let count = clamp(row.count);
        if let Some(bucket) = bucket {
            time = time.map(|time| interval_start(time, bucket, epoch));
            let index = *self.sums.entry((row.track, row.stack, time)).or_insert(self.rows.len());
            // A new index is the length of `rows`, where no row is yet; the row is then pushed below.
            if let Some(sum) = self.rows.get_mut(index) {
                sum.weight = sum.weight.saturating_add(weight);
                sum.count = sum.count.saturating_add(count);
                return;
            }
        }
        self.rows.push(TableRow { event, track: row.track, stack: row.stack, weight, count, time });
    }

    /// Takes all rows, sorted by the name of their innermost function, so that each page of the file has few functions.
    /// Rows of the same function are sorted by thread, stack and time.
    pub(super) fn take_sorted(&mut self, input: &TableInput) -> Vec<TableRow> {
        let mut rows = std::mem::take(self).rows;
        let function_of = |row: &TableRow| input.leaf(row.stack).map(|leaf| leaf.function);
        let mut functions: Vec<_> = rows.iter().map(function_of).collect();
        // Sort the functions by number. This only serves to remove duplicates.
        functions.sort_unstable();
        functions.dedup();
        // Rows are sorted by the rank of their function's name: names are compared once per function, not once per row.
        functions.sort_unstable_by_key(|function| function.map(|function| &input.texts.items()[function as usize]));
        let ranks: FxHashMap<_, _> = functions.into_iter().zip(0_u32..).collect();
        rows.sort_by_cached_key(|row| {
            let track = input.track(row.track);
            // Of rows that are equal in all else, larger weights come first.
            (ranks.get(&function_of(row)).copied(), track.pid, track.tid, row.stack, row.time, Reverse(row.weight))
        });
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Nanos;

    #[test]
    fn stretches_of_time_begin_with_whole_seconds_of_the_wall_clock() {
        assert_eq!(interval_start(2_700, 1_000, None), 2_000);
        assert_eq!(interval_start(2_700, 1_000, Some(800)), 2_200);
        assert_eq!(interval_start(100, 1_000, Some(300)), -300);
    }

    #[test]
    fn only_rows_of_one_thread_stack_and_stretch_are_summed() {
        let row =
            |track, time| Row { track: TrackId(track), stack: None, weight: 5, count: 1, time: Some(Nanos(time)) };
        let mut waiting = WaitingRows::default();
        for row in [row(0, 1), row(0, 999), row(1, 2), row(0, 1_000)] {
            waiting.push(0, &row, 5, Some(1_000), None);
        }
        let sums: Vec<_> = waiting.rows.iter().map(|row| (row.track.0, row.time, row.count)).collect();
        assert_eq!(sums, [(0, Some(0), 2), (1, Some(0), 1), (0, Some(1_000), 1)]);
    }

    /// Times after the year 2262 don't fit into a table, so they become `None` instead of a wrong time.
    #[test]
    fn a_time_that_no_table_can_hold_is_none() {
        let row = Row { track: TrackId(0), stack: None, weight: 5, count: 1, time: Some(Nanos(1 << 63)) };
        for bucket in [None, Some(1_000)] {
            let mut waiting = WaitingRows::default();
            waiting.push(0, &row, 5, bucket, None);
            assert_eq!(waiting.rows[0].time, None);
        }
    }
}
