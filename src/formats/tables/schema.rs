//! The columns of the table. `docs/sql.md` shows what they mean.

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use std::collections::HashMap;
use std::sync::Arc;

/// The key under which a table states its version of columns.
pub(super) const VERSION_KEY: &str = "jitgraft.schema";

/// It changes when a column gets another name, type or meaning; a new column changes nothing. In version 1 code without a
/// name had no kinds of its own.
pub(super) const VERSION: &str = "2";

/// Those that are read.
pub(super) const READ: [&str; 2] = ["1", VERSION];

/// The columns that the directories of a data set give.
pub(super) const PARTITIONS: [&str; 2] = ["host", "day"];

/// The unit of and `start` : all engines read microseconds, and some no nanoseconds.
const TIME: TimeUnit = TimeUnit::Microsecond;

/// Text that many rows share.
pub(super) fn text() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// One of a few words.
pub(super) fn word() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))
}

/// A moment of the wall clock.
pub(super) fn moment() -> DataType {
    DataType::Timestamp(TIME, Some("UTC".into()))
}

/// The name of a frame's part in its list.
pub(super) fn element(of: DataType, id: i32) -> Arc<Field> {
    Arc::new(numbered(ELEMENTS + id, Field::new("element", of, true)))
}

/// A label, as an entry of its map.
pub(super) fn label() -> Fields {
    let key = numbered(ELEMENTS + LABELS, Field::new("key", DataType::Utf8, false));
    let value = numbered(2 * ELEMENTS + LABELS, Field::new("value", DataType::Utf8, true));
    vec![key, value].into()
}

/// The labels of a row.
pub(super) fn labels() -> Arc<Field> {
    Arc::new(Field::new("key_value", DataType::Struct(label()), false))
}

/// The number of the column of labels.
const LABELS: i32 = 37;

/// The parts of a column are numbered by it, from here on.
const ELEMENTS: i32 = 100;

/// A field with the number that it keeps, whatever its name and place: table formats such as Iceberg ask for it.
fn numbered(id: i32, field: Field) -> Field {
    let id = HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]);
    field.with_metadata(id)
}

/// A column that is always there.
fn known(id: i32, name: &str, of: DataType) -> Field {
    numbered(id, Field::new(name, of, false))
}

fn maybe(id: i32, name: &str, of: DataType) -> Field {
    numbered(id, Field::new(name, of, true))
}

fn list(id: i32, name: &str, of: DataType) -> Field {
    known(id, name, DataType::List(element(of, id)))
}

/// The lists that show which stack it is.
fn stack() -> [Field; 2] {
    [list(29, "functions", text()), list(30, "modules", text())]
}

/// All columns, in their order. A new one gets the next number: 41.
pub(super) fn schema(extra: impl IntoIterator<Item = (&'static str, String)>) -> Schema {
    let mut fields = vec![
        maybe(1, "input", text()),
        maybe(2, "host", text()),
        maybe(3, "arch", text()),
        maybe(4, "kernel", text()),
        maybe(5, "command", text()),
        maybe(6, "start", moment()),
        maybe(7, "day", DataType::Date32),
        maybe(8, "share_named", DataType::Float64),
        maybe(38, "epoch_ns", DataType::Int64),
        maybe(39, "bucket_ns", DataType::Int64),
        known(9, "event", text()),
        known(10, "unit", text()),
        maybe(11, "comm", text()),
        maybe(12, "pid", DataType::Int32),
        maybe(13, "tid", DataType::Int32),
        maybe(14, "cpu", DataType::Int32),
        known(LABELS, "labels", DataType::Map(labels(), false)),
        maybe(15, "time", moment()),
        maybe(16, "time_ns", DataType::Int64),
        known(17, "weight", DataType::Int64),
        known(18, "count", DataType::Int64),
        known(19, "depth", DataType::Int32),
        known(20, "unnamed", DataType::Int32),
        maybe(21, "leaf", text()),
        maybe(22, "leaf_module", text()),
        maybe(23, "leaf_build_id", text()),
        maybe(24, "leaf_file", text()),
        maybe(25, "leaf_line", DataType::Int32),
        maybe(26, "leaf_kind", word()),
        maybe(27, "leaf_tier", word()),
        maybe(28, "leaf_address", DataType::Int64),
        known(40, "stack_id", DataType::Int64),
    ];
    fields.extend(stack());
    fields.extend([
        list(31, "build_ids", text()),
        list(32, "files", text()),
        list(33, "lines", DataType::Int32),
        list(34, "kinds", word()),
        list(35, "tiers", word()),
        list(36, "addresses", DataType::Int64),
    ]);
    let mut metadata = HashMap::from([(VERSION_KEY.to_owned(), VERSION.to_owned())]);
    metadata.extend(extra.into_iter().map(|(key, value)| (key.to_owned(), value)));
    Schema::new_with_metadata(fields, metadata)
}

/// The columns of the distinct stacks of a recording.
pub(super) fn stacks_schema() -> Schema {
    let [functions, modules] = stack();
    let metadata = HashMap::from([(VERSION_KEY.to_owned(), VERSION.to_owned())]);
    Schema::new_with_metadata(vec![known(40, "stack_id", DataType::Int64), functions, modules], metadata)
}
