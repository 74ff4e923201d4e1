//! The process that a file belongs to, and the sources of names for its code.

use super::options::CallgrindOptions;
use crate::error::{Error, Result};
use crate::model::process::{Process, Processes};
use crate::model::{Nanos, Pid};
use crate::pipeline::Outcome;
use crate::runtimes::RUNTIMES;
use crate::sources::{Found, find};
use std::path::Path;

/// `CLOCK_MONOTONIC` of time.h, by which jitdumps are meant to be timed.
const CLOCK_MONOTONIC: i32 = 1;

/// The process and the sources that name its code.
pub(super) struct CodeSources {
    pub(super) found: Found,
    pub(super) processes: Processes,
    pub(super) pid: Pid,
}

/// `pid` is what the file states.
pub(super) fn code_sources(pid: Option<Pid>, options: &CallgrindOptions, outcome: &mut Outcome) -> Result<CodeSources> {
    let said = options.pid.or(pid);
    let Some(pid) = said.or_else(|| options.sources.names_files().then_some(Pid(0))) else {
        return Err(Error::new("neither the file nor its name contains the process ID: pass --pid"));
    };
    let mut processes = Processes::default();
    // callgrind has no clock. A dump's times are wanted for their order only, so any clock is the right one.
    processes.clock.clockid = Some(CLOCK_MONOTONIC);
    processes.by_pid.insert(pid, Process { has_jit_memory: true, execs: vec![Nanos(0)], ..Process::default() });
    let beside = options
        .path()
        .map(|path| path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")));
    let found = find(&processes, &options.sources, beside, &mut outcome.warnings);
    if found.is_empty() {
        let refused: Vec<String> = found.refused().collect();
        if !refused.is_empty() {
            return Err(Error::new(format!(
                "nothing that names the code of process {pid} is used: {}",
                refused.join("; ")
            )));
        }
        return Err(Error::new(format!(
            "no perf-{pid}.map and no jit-{pid}.dump is beside it, in /tmp, or in what --perf-map and --jitdump name: run the \
             program again with its runtime's switch for perf (such as {})",
            RUNTIMES.iter().filter_map(|runtime| runtime.valgrind).collect::<Vec<_>>().join(", ")
        )));
    }
    Ok(CodeSources { found, processes, pid })
}
