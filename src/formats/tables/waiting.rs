//! Rows until there are enough of them.

use super::input::TableInput;
use crate::contract::rows::stretch_of;
use crate::model::stacks::{Profile, Row, StackId, TrackId};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// A row whose time may be before the recording clock's 0: stretches of the wall clock begin where they do.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitingRow {
    pub(super) row: Row,
    /// In nanoseconds.
    pub(super) time: Option<i64>,
}

/// The rows of one event.
#[derive(Debug, Default)]
pub(super) struct WaitingRows {
    rows: Vec<WaitingRow>,
    /// The place of the sum of a thread, stack and stretch of time.
    sums: FxHashMap<(TrackId, Option<StackId>, Option<i64>), usize>,
    /// The first and the last of their times.
    times: Option<(i64, i64)>,
}

impl WaitingRows {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The number of nanoseconds that they are apart.
    pub(super) fn span(&self) -> i64 {
        self.times.map_or(0, |(first, last)| last.saturating_sub(first))
    }

    /// Takes a row: by itself, or, with the length of stretches of time, into the sum of its own.
    pub(super) fn push(&mut self, row: Row, bucket: Option<i64>, epoch: Option<i128>) {
        let own = row.time.and_then(|time| i64::try_from(time.0).ok());
        let times = self.times.into_iter().flat_map(|(first, last)| [first, last]).chain(own);
        self.times = times.clone().min().zip(times.max());
        let Some(bucket) = bucket else { return self.rows.push(WaitingRow { row, time: own }) };
        let time = own.map(|own| stretch_of(own, bucket, epoch));
        let at = *self.sums.entry((row.track, row.stack, time)).or_insert(self.rows.len());
        match self.rows.get_mut(at) {
            Some(WaitingRow { row: sum, .. }) => {
                sum.weight = sum.weight.saturating_add(row.weight);
                sum.count = sum.count.saturating_add(row.count);
            }
            None => self.rows.push(WaitingRow { row, time }),
        }
    }

    /// All of them, in the order in which they came.
    pub(super) fn take(&mut self) -> Vec<WaitingRow> {
        self.sums.clear();
        self.times = None;
        std::mem::take(&mut self.rows)
    }

    /// All of them, those of one function that ran side by side: pages of a file then have few functions each.
    pub(super) fn take_sorted(&mut self, input: &TableInput, profile: &Profile) -> Vec<WaitingRow> {
        let mut rows = self.take();
        let leaf = |row: &Row| input.leaf(profile, row).map(|leaf| leaf.function);
        let mut leaves: Vec<_> = rows.iter().map(|waiting| leaf(&waiting.row)).collect();
        leaves.sort_unstable();
        leaves.dedup();
        leaves.sort_unstable_by_key(|leaf| leaf.map(|leaf| &input.texts.items()[leaf as usize]));
        let ranks: FxHashMap<_, _> = leaves.into_iter().zip(0_u32..).collect();
        rows.sort_by_cached_key(|WaitingRow { row, time }| {
            let track = input.track(row.track);
            (ranks.get(&leaf(row)).copied(), track.pid, track.tid, row.stack, *time, Reverse(row.weight))
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
        assert_eq!(stretch_of(2_700, 1_000, None), 2_000);
        assert_eq!(stretch_of(2_700, 1_000, Some(800)), 2_200);
        assert_eq!(stretch_of(100, 1_000, Some(300)), -300);
    }

    #[test]
    fn only_rows_of_one_thread_stack_and_stretch_are_summed() {
        let row =
            |track, time| Row { track: TrackId(track), stack: None, weight: 5, count: 1, time: Some(Nanos(time)) };
        let mut waiting = WaitingRows::default();
        for row in [row(0, 1), row(0, 999), row(1, 2), row(0, 1_000)] {
            waiting.push(row, Some(1_000), None);
        }
        let told =
            |rows: Vec<WaitingRow>| rows.iter().map(|w| (w.row.track.0, w.time, w.row.count)).collect::<Vec<_>>();
        assert_eq!(told(waiting.take()), [(0, Some(0), 2), (1, Some(0), 1), (0, Some(1_000), 1)]);
        waiting.push(row(0, 1), Some(1_000), None);
        assert_eq!(waiting.take()[0].row.weight, 5);
    }

    /// A table's times end in the year 2262 of the recording's clock: the last of them would be a wrong one.
    #[test]
    fn a_time_that_no_table_can_hold_is_none() {
        let row = Row { track: TrackId(0), stack: None, weight: 5, count: 1, time: Some(Nanos(1 << 63)) };
        for bucket in [None, Some(1_000)] {
            let mut waiting = WaitingRows::default();
            waiting.push(row, bucket, None);
            assert_eq!(waiting.take()[0].time, None);
        }
    }
}
