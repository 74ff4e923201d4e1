//! The requested options.

use crate::model::perf_command::PerfCommand;
use std::path::PathBuf;

/// The command to record, and the options.
#[derive(Debug)]
pub struct RecordOptions {
    /// The runtime, where the command does not show it.
    pub runtime: Option<String>,
    /// perf's options as they were typed.
    pub perf: Vec<Vec<u8>>,
    /// The program to run, with its arguments.
    pub program: Vec<Vec<u8>>,
    /// The output for the recording.
    pub output: PathBuf,
    /// Samples per second.
    pub frequency: u32,
    /// The running process to record.
    pub pid: Option<String>,
    /// Only print the command.
    pub dry_run: bool,
}

impl RecordOptions {
    /// perf's options as they were typed.
    pub(super) fn typed(&self) -> PerfCommand<'_> {
        PerfCommand { called: &[], options: &self.perf, program: &self.program, records_others: false }
    }
}
