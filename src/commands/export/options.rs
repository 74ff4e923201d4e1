//! What to export, where to, and in which format.

use crate::contract::format::{Detail, WriteOptions};
use crate::io::{InPath, OutPath};
use crate::pipeline::any::LoadOptions;

/// What to export, where to, and in which format.
#[derive(Debug)]
pub struct ExportOptions {
    /// What to read; several are merged.
    pub inputs: Vec<InPath>,
    /// Where to write.
    pub output: OutPath,
    /// The name of the format.
    pub to: String,
    /// How to read; how much of a frame is needed is the format's to say.
    pub load: LoadOptions,
    /// How to write.
    pub write: WriteOptions,
    /// What the rows of tables are like.
    pub table: TableOptions,
}

/// What the rows of tables are like, where something is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct TableOptions {
    /// The output is a directory, with a file for each input in directories named after host and day.
    pub partition: bool,
    /// How much is told of a frame.
    pub detail: Option<Detail>,
}
