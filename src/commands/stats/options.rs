//! The questions, and the inputs.

use super::preset::Preset;
use crate::io::{InPath, OutPath};
use crate::pipeline::table::Layout;
use std::path::PathBuf;

/// The questions, and the inputs.
#[derive(Debug)]
pub struct StatsOptions {
    /// The inputs.
    pub inputs: Vec<InPath>,
    /// The output.
    pub output: OutPath,
    /// The preset of questions.
    pub preset: Preset,
    /// The file in which the questions stood, if they was in one.
    pub preset_file: Option<PathBuf>,
    /// The way inputs are compared; only for measureme profiles.
    pub compare: Compare,
    /// The number of rows of each table at most.
    pub limit: Option<usize>,
    /// Count as Perfetto's trace processor does, thread 0 and all.
    pub perfetto_compat: bool,
    /// The way the tables are written.
    pub layout: Layout,
}

/// The way that several inputs are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// Their sums.
    Merge,
    /// The second less the first.
    Diff,
    /// Their variation.
    Runs,
}
