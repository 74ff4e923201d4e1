//! The columns of the table. `docs/sql.md` tells what they mean.

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use std::collections::HashMap;
use std::sync::Arc;

/// Where a table says which columns these are.
pub(super) const VERSION_KEY: &str = "jitgraft.schema";

/// It changes when a column gets another name, type or meaning; a new column changes nothing. In version 1 code without a
/// name had no kinds of its own.
pub(super) const VERSION: &str = "2";

/// Those that are read.
pub(super) const READ: [&str; 2] = ["1", VERSION];

/// The columns that the directories of a data set tell.
pub(super) const PARTITIONS: [&str; 2] = ["host", "day"];

/// What `time` and `start` are counted in: all engines read microseconds, and some no nanoseconds.
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

/// What a frame's part is called in its list.
pub(super) fn element(of: DataType) -> Arc<Field> {
    Arc::new(Field::new("element", of, true))
}

/// All columns, in their order.
pub(super) fn schema(extra: impl IntoIterator<Item = (&'static str, String)>) -> Schema {
    let known = |name: &str, of: DataType| Field::new(name, of, false);
    let maybe = |name: &str, of: DataType| Field::new(name, of, true);
    let list = |name: &str, of: DataType| Field::new(name, DataType::List(element(of)), false);
    let fields = vec![
        maybe("input", text()),
        maybe("host", text()),
        maybe("arch", text()),
        maybe("kernel", text()),
        maybe("command", text()),
        maybe("start", moment()),
        maybe("day", DataType::Date32),
        maybe("share_named", DataType::Float64),
        known("event", text()),
        known("unit", text()),
        maybe("comm", text()),
        maybe("pid", DataType::Int32),
        maybe("tid", DataType::Int32),
        maybe("cpu", DataType::Int32),
        maybe("time", moment()),
        maybe("time_ns", DataType::Int64),
        known("weight", DataType::Int64),
        known("count", DataType::Int64),
        known("depth", DataType::Int32),
        known("unnamed", DataType::Int32),
        maybe("leaf", text()),
        maybe("leaf_module", text()),
        maybe("leaf_build_id", text()),
        maybe("leaf_file", text()),
        maybe("leaf_line", DataType::Int32),
        maybe("leaf_kind", word()),
        maybe("leaf_tier", word()),
        maybe("leaf_address", DataType::Int64),
        list("functions", text()),
        list("modules", text()),
        list("build_ids", text()),
        list("files", text()),
        list("lines", DataType::Int32),
        list("kinds", word()),
        list("tiers", word()),
        list("addresses", DataType::Int64),
    ];
    let mut metadata = HashMap::from([(VERSION_KEY.to_owned(), VERSION.to_owned())]);
    metadata.extend(extra.into_iter().map(|(key, value)| (key.to_owned(), value)));
    Schema::new_with_metadata(fields, metadata)
}
