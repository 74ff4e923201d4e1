//! Writes the table as a Parquet file, one row group at a time and column by column.
//!
//! A full row group holds rows of one input and one event, in the order of the recording. Readers can thus skip groups
//! by the minimum and maximum of events, threads and times. Within a group, rows are sorted by the innermost function,
//! so that readers can also skip pages by function, and a Bloom filter tells which functions a group contains. Small
//! inputs share a group, unless each input gets its own file.
//!
//! The file doesn't contain when or where it was written, so equal rows result in equal files.
//!
//! Spec: <https://parquet.apache.org/docs/file-format/>

use super::columns::{COLUMNS, Cells, Column, PARTITIONS, VERSION, VERSION_KEY, schema};
use super::input::{RowCells, TableInput, TableRow};
use super::waiting::{GROUP, WaitingRows};
use crate::contract::options::WriteOptions;
use crate::contract::rows::{self, RowOrigin, RowWriter, clamp};
use crate::error::{Error, Result};
use crate::model::recorded::Labels;
use crate::model::stacks::{Profile, Weight};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::ColumnPath;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;

/// Writes all events of a profile as a Parquet file.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    rows::write_whole(&mut *start(options, Box::new(out))?, profile)
}

/// Starts a file, to which rows are written as they arrive. In a partitioned data set, each file holds the rows of a
/// single input, and lacks the columns whose values are in the names of its directories.
pub fn start<'o>(options: &WriteOptions, out: Box<dyn Write + 'o>) -> Result<Box<dyn RowWriter + 'o>> {
    let mut columns: Vec<&Column> = COLUMNS.iter().collect();
    if options.partitioned {
        columns.retain(|column| !PARTITIONS.contains(&column.name));
    }
    let schema = schema(&columns).map_err(write_error)?;
    let properties = properties(&columns, options.partitioned).map_err(write_error)?;
    let file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).map_err(write_error)?;
    Ok(Box::new(TableWriter {
        out,
        file,
        columns,
        bucket: options.bucket.map(clamp),
        has_single_input: options.partitioned,
        input: None,
        waiting: Vec::new(),
        has_groups: false,
        pending: Vec::new(),
    }))
}

struct TableWriter<'o> {
    out: Box<dyn Write + 'o>,
    /// The library's writer. It writes to memory; the bytes of finished row groups are moved from there to `out`.
    file: SerializedFileWriter<Vec<u8>>,
    columns: Vec<&'static Column>,
    bucket: Option<i64>,
    /// True if the file holds a single input, so that every row group is sorted by the innermost function.
    has_single_input: bool,
    /// The input whose rows are being added.
    input: Option<Rc<TableInput>>,
    /// For each event of this input, the rows that wait until there are enough for a row group.
    waiting: Vec<WaitingRows>,
    /// True if a row group of the current input has already been written.
    has_groups: bool,
    /// Rows of several inputs, each of which ended with too few rows for a row group. They will share one.
    pending: Vec<PendingRows>,
}

/// Rows of one event of one input.
struct PendingRows {
    input: Rc<TableInput>,
    rows: Vec<TableRow>,
}

/// The rows of small inputs wait, so that they share a row group. They are written when their inputs have more than
/// `PENDING_STACKS` stacks in total, or when there are more than [`PENDING_INPUTS`] lists of waiting rows, one per
/// input and event. Memory thus doesn't grow with the number of inputs.
const PENDING_STACKS: usize = 1 << 20;
const PENDING_INPUTS: usize = 1 << 10;

impl TableWriter<'_> {
    /// Adds rows that will share a row group with those of other inputs. If it would get too large, the rows that are
    /// pending so far are written first.
    fn add_pending(&mut self, rows: PendingRows) -> Result<()> {
        let count: usize = self.pending.iter().map(|pending| pending.rows.len()).sum();
        if count + rows.rows.len() > GROUP {
            self.write_pending()?;
        }
        self.pending.push(rows);
        Ok(())
    }

    /// Writes the pending rows as one row group.
    fn write_pending(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        self.write_group(&pending)
    }

    /// Writes the rows of all `parts` as one row group, column by column; nothing if there are no rows.
    fn write_group(&mut self, parts: &[PendingRows]) -> Result<()> {
        if parts.iter().all(|part| part.rows.is_empty()) {
            return Ok(());
        }
        let rows = || parts.iter().flat_map(|part| part.rows.iter().map(|row| RowCells { input: &part.input, row }));
        let mut group = self.file.next_row_group().map_err(write_error)?;
        for column in &self.columns {
            write_cells(column, rows, &mut group).map_err(write_error)?;
        }
        group.close().map_err(write_error)?;
        // Empty the buffer to which the file is written, so that memory doesn't grow with the file.
        self.file.flush()?;
        Ok(self.out.write_all(&std::mem::take(self.file.inner_mut()))?)
    }
}

impl RowWriter for TableWriter<'_> {
    fn begin(&mut self, origin: RowOrigin, profile: &Profile) -> Result<()> {
        self.input = Some(Rc::new(TableInput::new(&origin, profile)));
        self.waiting = Vec::new();
        self.has_groups = false;
        Ok(())
    }

    /// Adds the rows of the profile, which is a part of the current input. Whenever an event has enough rows, writes
    /// them as a row group.
    fn rows(&mut self, profile: &Profile) -> Result<()> {
        // The input is taken out of `self` while rows are added, and put back below.
        let Some(mut shared) = self.input.take() else { return Ok(()) };
        // Until an input has ended, this is the only reference to it, so `get_mut` succeeds.
        let Some(input) = Rc::get_mut(&mut shared) else { return Ok(()) };
        input.extend(profile);
        let epoch = input.recording.facts.epoch.map(i128::from);
        self.waiting.resize_with(profile.series.len(), WaitingRows::default);
        for (event, series) in profile.series.iter().enumerate() {
            for (row, weight) in series.signed_rows(Weight::Period) {
                self.waiting[event].push(event, row, weight, self.bucket, epoch);
                if self.waiting[event].is_full() {
                    // Rows of earlier inputs come first, because groups are in the order of the inputs.
                    self.write_pending()?;
                    let rows = self.waiting[event].take_sorted(&shared);
                    self.write_group(&[PendingRows { input: shared.clone(), rows }])?;
                    self.has_groups = true;
                }
            }
        }
        self.input = Some(shared);
        Ok(())
    }

    /// Ends the current input. Its remaining rows become groups of their own only if the file holds a single input;
    /// otherwise they may wait for those of other small inputs.
    fn end(&mut self, _profile: &Profile) -> Result<()> {
        let Some(input) = self.input.take() else { return Ok(()) };
        for mut waiting in std::mem::take(&mut self.waiting) {
            self.add_pending(PendingRows { input: input.clone(), rows: waiting.take_sorted(&input) })?;
            if self.has_single_input {
                self.write_pending()?;
            }
        }
        self.pending.retain(|pending| !pending.rows.is_empty());
        let stacks: usize = self.pending.iter().map(|pending| pending.input.stack_count()).sum();
        // An input that filled a group isn't small, and its remaining rows needn't wait for other inputs.
        if self.has_groups || stacks > PENDING_STACKS || self.pending.len() > PENDING_INPUTS {
            self.write_pending()?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.write_pending()?;
        self.file.finish().map_err(write_error)?;
        Ok(self.out.write_all(&std::mem::take(self.file.inner_mut()))?)
    }
}

/// Writes the cells of a column for all rows of a row group. `rows` starts an iteration over these rows; a map needs
/// two iterations, because it is stored as two columns. Lists are written outermost frame first.
fn write_cells<'r, R>(
    column: &Column,
    rows: impl Fn() -> R,
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
) -> Result<(), ParquetError>
where
    R: Iterator<Item = RowCells<'r>>,
{
    let text = |row: &RowCells<'_>, text| row.input.byte_array(text);
    match column.cells {
        Cells::Text(get) => write_leaf::<ByteArrayType>(group, rows(), |row, cells| {
            cells.push(get(row).map(|number| text(row, number)));
        }),
        Cells::Int(get) | Cells::Day(get) => write_leaf::<Int32Type>(group, rows(), |row, cells| cells.push(get(row))),
        Cells::Long(get) | Cells::Moment(get) => {
            write_leaf::<Int64Type>(group, rows(), |row, cells| cells.push(get(row)))
        }
        Cells::Double(get) => write_leaf::<DoubleType>(group, rows(), |row, cells| cells.push(get(row))),
        Cells::FrameTexts(get) => write_leaf::<ByteArrayType>(group, rows(), |row, cells| {
            cells.extend(row.frames_up().map(|frame| get(frame).map(|number| text(row, number))));
            cells.reverse();
        }),
        Cells::FrameInts(get) => write_leaf::<Int32Type>(group, rows(), |row, cells| {
            cells.extend(row.frames_up().map(get));
            cells.reverse();
        }),
        Cells::FrameLongs(get) => write_leaf::<Int64Type>(group, rows(), |row, cells| {
            cells.extend(row.frames_up().map(get));
            cells.reverse();
        }),
        Cells::Labels => {
            write_leaf::<ByteArrayType>(group, rows(), |row, cells| {
                cells.extend(labels(&row.track().labels).map(|(key, _)| Some(ByteArray::from(key))));
            })?;
            write_leaf::<ByteArrayType>(group, rows(), |row, cells| {
                cells.extend(labels(&row.track().labels).map(|(_, value)| Some(ByteArray::from(value))));
            })
        }
    }
}

fn labels(labels: &Labels) -> impl Iterator<Item = (&str, &str)> {
    labels.iter().flat_map(|labels| labels.iter()).map(|(key, value)| (&**key, &**value))
}

/// Writes the next leaf column of a row group, in the order of the schema. `cells_of` adds the cells of a row to an
/// empty list: one, or any number if the column is a list.
fn write_leaf<'r, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    rows: impl Iterator<Item = RowCells<'r>>,
    cells_of: impl Fn(&RowCells<'r>, &mut Vec<Option<T::T>>),
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has too few columns".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    let mut batch = CellBatch::<T>::new(&mut column);
    let mut cells = Vec::new();
    for row in rows {
        cells_of(&row, &mut cells);
        batch.push_row(&mut cells);
        if batch.definitions.len() >= BATCH_CELLS {
            batch.write(&mut column)?;
        }
    }
    batch.write(&mut column)?;
    column.close()
}

/// The minimum number of cells that are passed to the encoder at once.
const BATCH_CELLS: usize = 1 << 14;

/// Cells of a column, with their Parquet levels. A cell's definition level is the column's maximum if it is a value,
/// one less if it is null, and 0 if it stands for an empty list. Its repetition level is 0 if it starts a new row,
/// otherwise 1. Only values are in `values`.
struct CellBatch<T: DataType> {
    values: Vec<T::T>,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    /// The definition level of values, which is the column's maximum.
    value_level: i16,
}

impl<T: DataType> CellBatch<T> {
    fn new(column: &mut SerializedColumnWriter<'_>) -> Self {
        let value_level = column.typed::<T>().get_descriptor().max_def_level();
        Self { values: Vec::new(), definitions: Vec::new(), repetitions: Vec::new(), value_level }
    }

    /// Moves the cells of one row into the batch: one cell, or any number if the column is a list. Adds Parquet's two
    /// levels for each cell: the definition level tells whether the cell is a value, null or an empty list; the
    /// repetition level is 0 if the cell starts a row, otherwise 1 (see [`CellBatch`]).
    fn push_row(&mut self, cells: &mut Vec<Option<T::T>>) {
        // An empty list has levels, too, as if it were a cell.
        if cells.is_empty() {
            self.definitions.push(0);
            self.repetitions.push(0);
        }
        for (index, cell) in cells.drain(..).enumerate() {
            self.definitions.push(if cell.is_some() { self.value_level } else { self.value_level - 1 });
            self.repetitions.push(i16::from(index > 0));
            self.values.extend(cell);
        }
    }

    fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        column.typed::<T>().write_batch(&self.values, Some(&self.definitions), Some(&self.repetitions))?;
        self.values.clear();
        self.definitions.clear();
        self.repetitions.clear();
        Ok(())
    }
}

/// How the file is encoded and compressed, and which columns get Bloom filters. With `is_sorted`, each row group is
/// marked as sorted by the innermost function. That is true only of files with a single input, because elsewhere a row
/// group may hold the rows of several inputs and events, one after the other.
fn properties(columns: &[&Column], is_sorted: bool) -> Result<WriterProperties, ParquetError> {
    /// The number of rows per page of the sorted column. Readers skip whole pages.
    const PAGE_ROWS: usize = 1 << 13;
    /// The largest number of distinct functions in a row group for which a Bloom filter is written.
    const FUNCTIONS: u64 = 1 << 13;
    let mut sorted_by = None;
    if is_sorted && let Some(column_idx) = index_of_leaf(columns) {
        sorted_by = Some(vec![SortingColumn { column_idx, descending: false, nulls_first: true }]);
    }
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("jitgraft ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![KeyValue::new(VERSION_KEY.to_owned(), VERSION.to_owned())]))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_sorting_columns(sorted_by)
        .set_data_page_row_count_limit(PAGE_ROWS);
    for name in ["leaf", "pid", "tid"] {
        properties = properties
            .set_column_bloom_filter_enabled(ColumnPath::from(name), true)
            .set_column_bloom_filter_max_ndv(ColumnPath::from(name), FUNCTIONS);
    }
    // Nearly all times are different, so a dictionary would not pay; but their differences take fewer bits.
    for name in ["time", "time_ns"] {
        properties = properties
            .set_column_dictionary_enabled(ColumnPath::from(name), false)
            .set_column_encoding(ColumnPath::from(name), Encoding::DELTA_BINARY_PACKED);
    }
    Ok(properties.build())
}

/// The index of the column `leaf` (the innermost function) among the columns that Parquet stores. A column of labels (a
/// map) is stored as two columns. `None` if the table has no column `leaf`.
fn index_of_leaf(columns: &[&Column]) -> Option<i32> {
    let leaf = columns.iter().position(|column| column.name == "leaf")?;
    let maps = columns[..leaf].iter().filter(|column| matches!(column.cells, Cells::Labels));
    i32::try_from(leaf + maps.count()).ok()
}

fn write_error(error: ParquetError) -> Error {
    Error::new("cannot write the file").because(error)
}
