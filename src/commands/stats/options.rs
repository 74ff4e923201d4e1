//! What to ask of what.

use super::preset::Preset;
use crate::io::{InPath, OutPath};
use crate::pipeline::table::Layout;
use std::path::PathBuf;

/// What to ask of what.
#[derive(Debug)]
pub struct StatsOptions {
    /// What to read.
    pub inputs: Vec<InPath>,
    /// Where to write.
    pub output: OutPath,
    /// What to ask.
    pub preset: Preset,
    /// The file in which the questions stood, if they stood in one.
    pub preset_file: Option<PathBuf>,
    /// How inputs are compared; only for measureme profiles.
    pub compare: Compare,
    /// How many rows of each table at most.
    pub limit: Option<usize>,
    /// Count as Perfetto's trace processor does, thread 0 and all.
    pub perfetto_compat: bool,
    /// How the tables are written.
    pub layout: Layout,
}

/// What becomes of several inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// Their sums.
    Merge,
    /// The second less the first.
    Diff,
    /// How much they vary.
    Runs,
}
