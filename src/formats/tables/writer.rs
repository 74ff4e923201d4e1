//! Rows → batches.

use super::columns::{BatchBuilder, RowTime};
use super::input::TableInput;
use super::schema::{PARTITIONS, schema};
use crate::contract::options::WriteOptions;
use crate::contract::rows::{RowOrigin, RowWriter, clamp, stretch_of};
use crate::error::{Error, Result};
use crate::model::recorded::{Recording, day_name};
use crate::model::stacks::{Profile, Row, StackId, TrackId};
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::sync::Arc;

/// A batch has this many rows at most: what a reader of a stream gets at once.
pub(super) const BATCH_ROWS: usize = 1 << 14;

/// A group of fewer rows than are usual is full when its rows are of this many nanoseconds: engines leave out groups by
/// time.
const SPAN: i64 = 60_000_000_000;

/// A group that is full for that reason has this many rows at least, as a part of the usual number.
const LEAST_PART: usize = 8;

/// The stacks of a batch have this many frames at most, but for its last row: some 40 bytes of memory each.
pub(super) const BATCH_FRAMES: usize = 1 << 19;

/// The key under which a table states that names are spelled as perf spells them: see [`Profile::perf_names`].
pub(super) const NAMES_KEY: &str = "jitgraft.names";

/// The value of [`NAMES_KEY`] then.
pub(super) const PERF_NAMES: &str = "perf";

/// The key under which a table states its host, if no column does.
pub(super) const HOST_KEY: &str = "jitgraft.host";

/// The same of its day.
pub(super) const DAY_KEY: &str = "jitgraft.day";

/// Takes batches.
pub(super) trait BatchWriter {
    /// The number of rows of an event go on at once.
    const GROUP: usize;

    /// True if they are sorted by what ran.
    const SORTED: bool;

    /// All batches will have these columns.
    fn start(&mut self, schema: &SchemaRef) -> Result<()>;

    /// Takes a batch.
    fn batch(&mut self, batch: &RecordBatch) -> Result<()>;

    /// The batches since the last group are one, if there are any.
    fn group(&mut self) -> Result<()>;

    /// No batch follows.
    fn finish(&mut self) -> Result<()>;
}

/// The columns that are made, and the places of those that are written.
#[derive(Debug)]
struct Columns {
    all: SchemaRef,
    written: Vec<usize>,
}

/// Writes rows as a table.
#[derive(Debug)]
pub(super) struct TableWriter<B> {
    batches: B,
    bucket: Option<i64>,
    partitioned: bool,
    /// True if a group has rows of one input only.
    of_one_input: bool,
    columns: Option<Columns>,
    input: Option<TableInput>,
    /// By event.
    waiting: Vec<WaitingRows>,
    builder: BatchBuilder,
}

impl Columns {
    fn schema(&self) -> Result<SchemaRef> {
        Ok(Arc::new(self.all.project(&self.written).map_err(wrong_columns)?))
    }

    fn of(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        batch.project(&self.written).map_err(wrong_columns)
    }
}

fn wrong_columns(error: ArrowError) -> Error {
    Error::new("cannot choose columns").because(error)
}

impl<B: BatchWriter> TableWriter<B> {
    pub(super) fn new(batches: B, options: &WriteOptions) -> Self {
        let bucket = options.bucket.map(clamp);
        let (waiting, builder, partitioned) = (Vec::new(), BatchBuilder::default(), options.partitioned);
        let of_one_input = partitioned && !options.shared_groups;
        Self { batches, bucket, partitioned, of_one_input, columns: None, input: None, waiting, builder }
    }

    /// The columns, once it is known whose rows come first.
    fn start(&mut self, origin: &RowOrigin, profile: &Profile) -> Result<()> {
        if self.columns.is_some() {
            return Ok(());
        }
        let Recording { host, day, .. } = &origin.recording;
        let (host, day) = (host.as_ref().map(|host| host.to_string()), day.map(day_name));
        let parted = [(HOST_KEY, host), (DAY_KEY, day)].into_iter().filter(|_| self.partitioned);
        let parted = parted.filter_map(|(key, value)| Some((key, value?)));
        let names = profile.perf_names.then(|| (NAMES_KEY, PERF_NAMES.to_owned()));
        let all = Arc::new(schema(names.into_iter().chain(parted)));
        let is_written = |name: &str| !(self.partitioned && PARTITIONS.contains(&name));
        let written = (0..all.fields().len()).filter(|&at| is_written(all.field(at).name())).collect();
        let columns = Columns { all, written };
        self.batches.start(&columns.schema()?)?;
        self.columns = Some(columns);
        Ok(())
    }

    fn write(&mut self, event: usize, profile: &Profile) -> Result<()> {
        let Self { batches, columns: Some(columns), input: Some(input), waiting, builder, .. } = self else {
            return Ok(());
        };
        let rows = &mut waiting[event];
        let rows = if B::SORTED { rows.take_sorted(input, profile) } else { rows.take() };
        let mut flush = |builder: &mut BatchBuilder| match builder.rows {
            0 => Ok(()),
            _ => batches.batch(&columns.of(&builder.finish(input, &columns.all)?)?),
        };
        for WaitingRow { row, time } in &rows {
            builder.push(input, profile, event, (row, RowTime::new(&input.recording, *time)));
            if builder.rows >= BATCH_ROWS || builder.frames() >= BATCH_FRAMES {
                flush(builder)?;
            }
        }
        flush(builder)
    }
}

fn is_full<B: BatchWriter>(waiting: &WaitingRows) -> bool {
    let is_long = || waiting.rows.len() >= B::GROUP / LEAST_PART && waiting.span() >= SPAN;
    waiting.rows.len() >= B::GROUP || is_long()
}

impl<B: BatchWriter> RowWriter for TableWriter<B> {
    fn begin(&mut self, origin: RowOrigin, profile: &Profile) -> Result<()> {
        self.start(&origin, profile)?;
        self.input = Some(TableInput::new(&origin, profile));
        self.waiting = Vec::new();
        Ok(())
    }

    fn rows(&mut self, profile: &Profile) -> Result<()> {
        let Some(input) = &mut self.input else { return Ok(()) };
        input.extend(profile);
        let epoch = input.recording.rest.epoch.map(i128::from);
        self.waiting.resize_with(profile.series.len(), WaitingRows::default);
        for (event, series) in profile.series.iter().enumerate() {
            for row in &series.rows {
                self.waiting[event].push(*row, self.bucket, epoch);
                if is_full::<B>(&self.waiting[event]) {
                    self.batches.group()?;
                    self.write(event, profile)?;
                    self.batches.group()?;
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, profile: &Profile) -> Result<()> {
        for event in 0..self.waiting.len() {
            self.write(event, profile)?;
            // If an input has a file of its own, its groups have one order.
            if self.of_one_input {
                self.batches.group()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.start(&RowOrigin::default(), &Profile::new())?;
        self.batches.finish()
    }
}

/// A row whose time may be before the recording clock's 0: stretches of the wall clock begin where they do.
#[derive(Debug, Clone, Copy)]
struct WaitingRow {
    row: Row,
    /// In nanoseconds.
    time: Option<i64>,
}

/// The rows of one event.
#[derive(Debug, Default)]
struct WaitingRows {
    rows: Vec<WaitingRow>,
    /// The place of the sum of a thread, stack and stretch of time.
    sums: FxHashMap<(TrackId, Option<StackId>, Option<i64>), usize>,
    /// The first and the last of their times.
    times: Option<(i64, i64)>,
}

impl WaitingRows {
    /// The number of nanoseconds that they are apart.
    fn span(&self) -> i64 {
        self.times.map_or(0, |(first, last)| last.saturating_sub(first))
    }

    /// Takes a row: by itself, or, with the length of stretches of time, into the sum of its own.
    fn push(&mut self, row: Row, bucket: Option<i64>, epoch: Option<i128>) {
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
    fn take(&mut self) -> Vec<WaitingRow> {
        self.sums.clear();
        self.times = None;
        std::mem::take(&mut self.rows)
    }

    /// All of them, those of one function that ran side by side: pages of a file then have few functions each.
    fn take_sorted(&mut self, input: &TableInput, profile: &Profile) -> Vec<WaitingRow> {
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
