//! The options of `record`.

use crate::model::perf_command::PerfCommand;
use std::path::PathBuf;

/// The options of `record`: what to record, and how.
#[derive(Debug)]
pub struct RecordOptions {
    /// The name of the runtime, if the program's command line doesn't show which one it is.
    pub runtime: Option<String>,
    /// The options for perf, as the user typed them.
    pub perf: Vec<Vec<u8>>,
    /// The program to run, with its arguments. Empty if only processes that are already running are recorded.
    pub program: Vec<Vec<u8>>,
    /// Where perf writes the recording.
    pub output: PathBuf,
    /// How many samples per second to take: a number, or `max`.
    pub frequency: String,
    /// The processes that are already running and are to be recorded: PIDs, separated by commas. `None` if there are
    /// none.
    pub pid: Option<String>,
    /// Only print the command, don't run it.
    pub dry_run: bool,
}

impl RecordOptions {
    /// True if all processes of the machine are recorded: the user asked for that, or for nothing in particular.
    pub(super) fn records_machine(&self) -> bool {
        let typed = self.typed();
        let chooses_processes = self.pid.is_some() || typed.has(&["p", "pid", "t", "tid", "u", "uid"]);
        typed.has(&["a", "all-cpus"]) || self.program.is_empty() && !chooses_processes
    }

    /// Parses the options for perf that the user typed.
    pub(super) fn typed(&self) -> PerfCommand<'_> {
        PerfCommand { perf_words: &[], options: &self.perf, program: &self.program, records_others: false }
    }
}
