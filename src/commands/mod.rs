//! One file a job, the whole run of it on one screen.

pub mod callgrind;
pub mod collapse;
pub mod doctor;
pub mod export;
mod export_spans;
pub mod flamegraph;
pub mod formats;
pub mod inject;
pub mod load;
pub mod outputs;
mod own_tracks;
mod progress;
pub mod recording;
pub mod report;
pub mod script;
pub mod script_filter;
pub mod stats;

use crate::error::Warnings;
use crate::parallel::Pool;

/// What every job runs with.
#[derive(Debug)]
pub struct Job {
    /// The worker threads.
    pub pool: Pool,
    /// `-q`: no progress, no summary.
    pub quiet: bool,
    /// `-v`: details on stderr while it runs.
    pub verbose: bool,
}

/// What a job leaves to be said when it is done.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was survived.
    pub warnings: Warnings,
    /// Lines for stderr: what was done, in figures.
    pub summary: Vec<String>,
}
