//! The options of `export`.

use crate::contract::format::{Detail, WriteOptions};
use crate::contract::rows::RowOrigin;
use crate::io::{InPath, OutPath};
use crate::model::recorded::{Labels, Recording};
use crate::pipeline::any::LoadOptions;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The options of `export`: what to export, where to write it, and in which format.
#[derive(Debug)]
pub struct ExportOptions {
    /// Several inputs are merged.
    pub inputs: Vec<InPath>,
    /// Where to write the result.
    pub output: OutPath,
    /// The name of the output format.
    pub to: String,
    /// How to read the inputs. The output format decides how much detail of a frame is needed.
    pub load: LoadOptions,
    /// How to write the output.
    pub write: WriteOptions,
    /// Options that only apply to tables of rows (parquet).
    pub table: TableOptions,
}

/// Options that only apply to tables of rows (parquet).
#[derive(Debug, Clone, Default)]
pub struct TableOptions {
    /// Write a directory with one file per recording, in subdirectories named after host and day.
    pub partition: bool,
    /// Skip inputs of which the data set already has a file (with `partition`).
    pub skip_existing: bool,
    /// How much detail of a frame to keep. `None` means the format's default.
    pub detail: Option<Detail>,
    /// The host to state for all inputs. Overrides the host that an input states. `None` means the stated one.
    pub host: Option<String>,
    /// The day to state for all inputs, in days since 1970. `None` means the day that an input states.
    pub day: Option<i32>,
    /// Labels to add to all rows.
    pub labels: BTreeMap<Box<str>, Box<str>>,
}

impl ExportOptions {
    /// The values that all rows share: the host, day and labels that the user stated.
    pub(super) fn row_origin(&self) -> RowOrigin {
        let TableOptions { host, day, .. } = &self.table;
        let bucket = self.write.bucket.and_then(|bucket| i64::try_from(bucket).ok());
        let host = host.as_deref().map(Box::from);
        let recording = Recording { host, day: *day, bucket, ..Recording::default() };
        RowOrigin { recording, labels: self.labels(), ..RowOrigin::default() }
    }

    fn labels(&self) -> Labels {
        let labels = &self.table.labels;
        (!labels.is_empty()).then(|| Arc::new(labels.clone()))
    }
}
