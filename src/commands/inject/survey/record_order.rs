//! The order in which perf applies records.

use crate::model::Nanos;
use crate::model::process::Mapping;

/// The place of a record in the order in which perf applies records: by time; those of equal time (or none) as they are
/// in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(in crate::commands::inject) struct RecordOrder {
    /// The record's time; 0 if it has none.
    pub(in crate::commands::inject) time: Nanos,
    /// Its offset in the stream.
    pub(in crate::commands::inject) offset: u64,
}

impl RecordOrder {
    /// The place of the record that a mapping is from.
    pub(in crate::commands::inject) fn of(mapping: &Mapping) -> Self {
        Self { time: mapping.time, offset: mapping.offset }
    }
}
