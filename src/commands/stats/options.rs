//! The options of `stats`.

use super::preset::Preset;
use crate::error::{Error, Result};
use crate::io::{InPath, OutPath};
use crate::pipeline::table::Layout;
use std::path::PathBuf;

/// The inputs of `stats`, the questions about them, and how to write the answers.
#[derive(Debug)]
pub struct StatsOptions {
    /// Measureme profiles or traces.
    pub inputs: Vec<InPath>,
    /// Where to write the tables.
    pub output: OutPath,
    /// The questions that the tables answer. If there are none, the input's format decides which tables are written.
    pub preset: Preset,
    /// The file with the questions that the tables answer (`--preset FILE`), if any.
    pub preset_file: Option<PathBuf>,
    /// How several inputs are compared. Only measureme profiles can be.
    pub compare: Compare,
    /// Maximum number of rows per table. `None` means all.
    pub limit: Option<usize>,
    /// Count exactly like Perfetto's trace processor, including its treatment of thread 0.
    pub perfetto_compat: bool,
    /// The layout of the tables: text, CSV or JSON.
    pub layout: Layout,
}

impl StatsOptions {
    /// Fails if the user selected spans (`--time`, `--exclude`). Commands that write a summary by label call this
    /// first, because such a summary always covers all spans.
    pub(super) fn check_summary(&self) -> Result<()> {
        if self.preset.times.is_empty() && self.preset.exclude.is_none() {
            return Ok(());
        }
        let error =
            Error::usage("--time and --exclude do not work with the summary by label, which always covers all spans");
        Err(error.with_remedy(Some("choose what to print, such as --spans or --all".to_owned())))
    }
}

/// How several inputs are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// Sum all inputs.
    Merge,
    /// Subtract the first input from the second.
    Diff,
    /// Show how much the inputs vary: mean, range and deviation per label.
    Runs,
}
