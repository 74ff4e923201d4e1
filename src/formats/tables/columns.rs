//! The columns of the table. One list defines both the file's schema and the cells of its rows. `docs/sql.md` explains
//! the columns to users.

use super::input::{FrameCells, RowCells, TextNo};
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// The key of the schema version in the file's metadata.
pub(super) const VERSION_KEY: &str = "jitgraft.schema";

/// The schema version. It increases when a column's name, type or meaning changes, but not when a column is added.
/// Version 1 had no separate kinds for unnamed code; up to version 2, `stack_id` didn't depend on where functions
/// start.
pub(super) const VERSION: &str = "3";

/// Columns that a partitioned data set encodes in its directory names.
pub(super) const PARTITIONS: [&str; 2] = ["host", "day"];

/// A column of the table.
#[derive(Debug)]
pub(super) struct Column {
    /// The field ID. It never changes, even if the column is renamed or moved; table formats such as Iceberg rely on
    /// it.
    id: i32,
    pub(super) name: &'static str,
    /// True if every row has a value in this column.
    is_required: bool,
    pub(super) cells: Cells,
}

/// How to get a cell from a row. The variant determines the column's type.
#[derive(Debug)]
pub(super) enum Cells {
    Text(fn(&RowCells<'_>) -> Option<TextNo>),
    Int(fn(&RowCells<'_>) -> Option<i32>),
    Long(fn(&RowCells<'_>) -> Option<i64>),
    Double(fn(&RowCells<'_>) -> Option<f64>),
    /// A date, as days since 1970.
    Day(fn(&RowCells<'_>) -> Option<i32>),
    /// A time, as microseconds since 1970. All engines read these, but not all read nanoseconds.
    Moment(fn(&RowCells<'_>) -> Option<i64>),
    /// A map from label names to values, which Parquet stores as two columns.
    Labels,
    /// A list with one element per frame, outermost first.
    FrameTexts(fn(&FrameCells) -> Option<TextNo>),
    FrameInts(fn(&FrameCells) -> Option<i32>),
    FrameLongs(fn(&FrameCells) -> Option<i64>),
}

use Cells::{Day, Double, FrameInts, FrameLongs, FrameTexts, Int, Labels, Long, Moment, Text};

const fn required(id: i32, name: &'static str, cells: Cells) -> Column {
    Column { id, name, is_required: true, cells }
}

const fn optional(id: i32, name: &'static str, cells: Cells) -> Column {
    Column { id, name, is_required: false, cells }
}

/// All columns in order. The next new column gets ID 47.
pub(super) const COLUMNS: &[Column] = &[
    optional(1, "input", Text(|row| row.input.recording.input)),
    optional(2, "host", Text(|row| row.input.recording.host)),
    optional(3, "arch", Text(|row| row.input.recording.arch)),
    optional(4, "kernel", Text(|row| row.input.recording.kernel)),
    optional(5, "command", Text(|row| row.input.recording.command)),
    optional(6, "start", Moment(|row| row.input.recording.facts.start)),
    optional(7, "day", Day(|row| row.input.recording.facts.day)),
    optional(8, "share_named", Double(|row| row.input.recording.facts.share_named.map(f64::from_bits))),
    optional(38, "epoch_ns", Long(|row| row.input.recording.facts.epoch)),
    optional(39, "bucket_ns", Long(|row| row.input.recording.facts.bucket)),
    required(9, "event", Text(|row| Some(row.event().name))),
    required(10, "unit", Text(|row| Some(row.event().unit))),
    optional(11, "comm", Text(|row| row.track().comm)),
    optional(12, "pid", Int(|row| row.track().pid)),
    optional(13, "tid", Int(|row| row.track().tid)),
    optional(14, "cpu", Int(|row| row.track().cpu)),
    required(37, "labels", Labels),
    optional(15, "time", Moment(|row| row.wall_time())),
    optional(16, "time_ns", Long(|row| row.row.time)),
    required(17, "weight", Long(|row| Some(row.row.weight))),
    required(18, "count", Long(|row| Some(row.row.count))),
    required(19, "depth", Int(|row| Some(row.stack().depth))),
    required(20, "unnamed", Int(|row| Some(row.stack().unnamed))),
    optional(21, "leaf", Text(|row| Some(row.leaf()?.function))),
    optional(22, "leaf_module", Text(|row| row.leaf()?.module)),
    optional(23, "leaf_build_id", Text(|row| row.leaf()?.build_id)),
    optional(24, "leaf_file", Text(|row| row.leaf()?.file)),
    optional(25, "leaf_line", Int(|row| row.leaf()?.line)),
    optional(26, "leaf_kind", Text(|row| Some(row.leaf()?.kind))),
    optional(27, "leaf_tier", Text(|row| row.leaf()?.tier)),
    optional(28, "leaf_address", Long(|row| row.leaf()?.address)),
    optional(41, "leaf_start_file", Text(|row| row.leaf()?.start_file)),
    optional(42, "leaf_start_line", Int(|row| row.leaf()?.start_line)),
    optional(43, "leaf_start_column", Int(|row| row.leaf()?.start_column)),
    required(40, "stack_id", Long(|row| Some(row.stack().id))),
    required(29, "functions", FrameTexts(|frame| Some(frame.function))),
    required(30, "modules", FrameTexts(|frame| frame.module)),
    required(31, "build_ids", FrameTexts(|frame| frame.build_id)),
    required(32, "files", FrameTexts(|frame| frame.file)),
    required(33, "lines", FrameInts(|frame| frame.line)),
    required(34, "kinds", FrameTexts(|frame| Some(frame.kind))),
    required(35, "tiers", FrameTexts(|frame| frame.tier)),
    required(36, "addresses", FrameLongs(|frame| frame.address)),
    required(44, "start_files", FrameTexts(|frame| frame.start_file)),
    required(45, "start_lines", FrameInts(|frame| frame.start_line)),
    required(46, "start_columns", FrameInts(|frame| frame.start_column)),
];

/// The columns within a list or map need field IDs of their own. These are the ID of the list or map plus a multiple of
/// this.
const PART: i32 = 100;

/// The Parquet schema for these columns.
pub(super) fn schema(columns: &[&Column]) -> Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(|column| column.field()).collect::<Result<_, _>>()?;
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?))
}

impl Column {
    /// The Parquet type of the column: a value per row, a list with an element per frame, or a map of labels.
    fn field(&self) -> Result<TypePtr, ParquetError> {
        match self.cells {
            Text(_) => self.plain(PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            Int(_) => self.plain(PhysicalType::INT32, None),
            Long(_) => self.plain(PhysicalType::INT64, None),
            Double(_) => self.plain(PhysicalType::DOUBLE, None),
            Day(_) => self.plain(PhysicalType::INT32, Some(LogicalType::Date)),
            Moment(_) => self.plain(PhysicalType::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
            FrameTexts(_) => self.list(PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            FrameInts(_) => self.list(PhysicalType::INT32, None),
            FrameLongs(_) => self.list(PhysicalType::INT64, None),
            Labels => {
                let (bytes, text) = (PhysicalType::BYTE_ARRAY, Some(LogicalType::String));
                // The inner column of a list has the list's field ID plus `PART`. A map has two inner columns, so the
                // second one has the map's ID plus twice `PART`.
                let key = primitive("key", PART + self.id, Repetition::REQUIRED, bytes, text.clone())?;
                let value = primitive("value", 2 * PART + self.id, Repetition::OPTIONAL, bytes, text)?;
                self.nested(LogicalType::Map, "key_value", vec![key, value])
            }
        }
    }

    /// A column with one cell per row.
    fn plain(&self, physical: PhysicalType, logical: Option<LogicalType>) -> Result<TypePtr, ParquetError> {
        let repetition = if self.is_required { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        primitive(self.name, self.id, repetition, physical, logical)
    }

    /// A column with a list of optional cells per row.
    fn list(&self, physical: PhysicalType, logical: Option<LogicalType>) -> Result<TypePtr, ParquetError> {
        let element = primitive("element", PART + self.id, Repetition::OPTIONAL, physical, logical)?;
        self.nested(LogicalType::List, "list", vec![element])
    }

    /// A list or map column whose elements consist of `parts`. Parquet represents such a column as two nested groups.
    /// The inner group is repeated for each element; `repeated` is the name that Parquet prescribes for it.
    fn nested(&self, logical: LogicalType, repeated: &str, parts: Vec<TypePtr>) -> Result<TypePtr, ParquetError> {
        let repeated =
            Type::group_type_builder(repeated).with_repetition(Repetition::REPEATED).with_fields(parts).build()?;
        let group = Type::group_type_builder(self.name).with_repetition(Repetition::REQUIRED).with_id(Some(self.id));
        Ok(Arc::new(group.with_logical_type(Some(logical)).with_fields(vec![Arc::new(repeated)]).build()?))
    }
}

/// A column of the Parquet schema whose values are numbers, booleans or texts.
fn primitive(
    name: &str,
    id: i32,
    repetition: Repetition,
    physical: PhysicalType,
    logical: Option<LogicalType>,
) -> Result<TypePtr, ParquetError> {
    let field = Type::primitive_type_builder(name, physical).with_repetition(repetition).with_id(Some(id));
    Ok(Arc::new(field.with_logical_type(logical).build()?))
}
