//! Rows → batches.

use super::columns::{BatchBuilder, RowTime};
use super::input::TableInput;
use super::schema::{PARTITIONS, schema};
use super::waiting::{WaitingRow, WaitingRows};
use crate::contract::options::WriteOptions;
use crate::contract::rows::{RowOrigin, RowWriter};
use crate::error::{Error, Result};
use crate::model::recorded::{Recording, day_name};
use crate::model::stacks::Profile;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use std::fmt;
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
pub(super) trait BatchWriter: fmt::Debug {
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
        let bucket = options.bucket.map(|bucket| i64::try_from(bucket).unwrap_or(i64::MAX));
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
        let mut flush = |builder: &mut BatchBuilder| match builder.rows() {
            0 => Ok(()),
            _ => batches.batch(&columns.of(&builder.finish(input, &columns.all)?)?),
        };
        for WaitingRow { row, time } in &rows {
            builder.push(input, profile, event, (row, RowTime::new(&input.recording, *time)));
            if builder.rows() >= BATCH_ROWS || builder.frames() >= BATCH_FRAMES {
                flush(builder)?;
            }
        }
        flush(builder)
    }
}

fn is_full<B: BatchWriter>(waiting: &WaitingRows) -> bool {
    let is_long = || waiting.len() >= B::GROUP / LEAST_PART && waiting.span() >= SPAN;
    waiting.len() >= B::GROUP || is_long()
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
