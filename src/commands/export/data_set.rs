//! A data set that is written: a directory with a table of rows, one of distinct stacks, and the entries of its recordings.

use super::options::ExportOptions;
use super::parted_file::Table;
use crate::contract::format::{DataSet, StartRowsFn};
use crate::error::{Error, Result};
use crate::io::{self, OutPath, Run};
use crate::pipeline::any::LoadOptions;
use std::path::Path;

/// The table of rows.
pub(super) const SAMPLES: &str = "samples";

/// A data set, and how it is written.
pub(super) struct Set<'a> {
    pub(super) root: &'a Path,
    pub(super) start: StartRowsFn,
    pub(super) data_set: DataSet,
    pub(super) options: &'a ExportOptions,
    pub(super) load: &'a LoadOptions,
    pub(super) run: &'a Run,
}

impl Set<'_> {
    /// The tables that have files of an input each.
    pub(super) fn tables(&self) -> [Table; 2] {
        [(SAMPLES, self.start), ("stacks", self.data_set.stacks)]
    }
}

/// The directory of the data set.
pub(super) fn root(options: &ExportOptions) -> Result<&Path> {
    match &options.output {
        OutPath::Path(path) if !io::is_there(path) || io::is_directory(path) => Ok(path),
        output => Err(Error::usage("is not a directory: --partition writes a data set into one (-o DIR)")
            .in_file(&output.shown())),
    }
}
