//! The profiles to export, the output, and its format.

use crate::contract::format::{Detail, WriteOptions};
use crate::contract::rows::RowOrigin;
use crate::io::{InPath, OutPath};
use crate::model::recorded::{Labels, Recording};
use crate::pipeline::any::LoadOptions;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The profiles to export, the output, and its format.
#[derive(Debug)]
pub struct ExportOptions {
    /// The inputs; several are merged.
    pub inputs: Vec<InPath>,
    /// The output.
    pub output: OutPath,
    /// The name of the format.
    pub to: String,
    /// How to read; how much of a frame is needed is the format's to state.
    pub load: LoadOptions,
    /// How to write.
    pub write: WriteOptions,
    /// The options for rows of tables.
    pub table: TableOptions,
}

/// The options for rows of tables, where any are given.
#[derive(Debug, Clone, Default)]
pub struct TableOptions {
    /// The output is a directory, with a file for each input in directories named after host and day.
    pub partition: bool,
    /// Inputs that have a file in the data set are not read again.
    pub skip_existing: bool,
    /// The detail that is kept of a frame.
    pub detail: Option<Detail>,
    /// The host of all inputs, whatever they state.
    pub host: Option<String>,
    /// Their day, since 1970.
    pub day: Option<i32>,
    /// Labels of all their rows.
    pub labels: BTreeMap<Box<str>, Box<str>>,
}

impl ExportOptions {
    /// The facts about all rows of an input of this hash.
    pub(super) fn given(&self, hash: Option<String>) -> RowOrigin {
        let TableOptions { host, day, .. } = &self.table;
        let bucket = self.write.bucket.and_then(|bucket| i64::try_from(bucket).ok());
        let (input, host) = (hash.map(Into::into), host.as_deref().map(Box::from));
        let recording = Recording { input, host, day: *day, bucket, ..Recording::default() };
        RowOrigin { recording, labels: self.labels(), ..RowOrigin::default() }
    }

    fn labels(&self) -> Labels {
        let labels = &self.table.labels;
        (!labels.is_empty()).then(|| Arc::new(labels.clone()))
    }
}
