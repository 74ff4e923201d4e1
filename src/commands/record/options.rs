//! The options of `record`.

use crate::model::perf_command::PerfCommand;
use std::path::PathBuf;

/// What to record, and how.
#[derive(Debug)]
pub struct RecordOptions {
    /// The runtime, if the command doesn't show it.
    pub runtime: Option<String>,
    /// perf's options as typed.
    pub perf: Vec<Vec<u8>>,
    /// The program to run, with its arguments.
    pub program: Vec<Vec<u8>>,
    /// Where perf writes the recording.
    pub output: PathBuf,
    /// Samples per second.
    pub frequency: u32,
    /// The running processes to record: PIDs separated by commas.
    pub pid: Option<String>,
    /// Only print the command.
    pub dry_run: bool,
}

impl RecordOptions {
    /// perf's options as typed, parsed.
    pub(super) fn typed(&self) -> PerfCommand<'_> {
        PerfCommand { called: &[], options: &self.perf, program: &self.program, records_others: false }
    }
}
