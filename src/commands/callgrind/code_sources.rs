//! Finds out which process a valgrind file is from, and finds the sources that name this process's code.

use super::options::CallgrindOptions;
use crate::error::{Error, Result};
use crate::jit::{Found, find};
use crate::model::Pid;
use crate::model::process::Processes;
use crate::pipeline::Outcome;
use crate::pipeline::callgrind::{directory, processes};
use crate::runtimes::RUNTIMES;

/// A profiled process, and the sources that name its JIT code.
pub(super) struct CodeSources {
    pub(super) found: Found,
    pub(super) processes: Processes,
    pub(super) pid: Pid,
}

/// Finds the sources that name the code of a process. `pid` is the process ID that the file or its name states; `--pid`
/// overrides it. Fails if there are no such sources, or if the process is unknown and the user named no source.
pub(super) fn code_sources(pid: Option<Pid>, options: &CallgrindOptions, outcome: &mut Outcome) -> Result<CodeSources> {
    let said = options.pid.or(pid);
    let Some(pid) = said.or_else(|| options.sources.names_files().then_some(Pid(0))) else {
        return Err(Error::new("neither the file nor its name has the process ID; pass --pid"));
    };
    let processes = processes(pid);
    let found = find(&processes, &options.sources, options.path().and_then(directory), &mut outcome.warnings);
    if found.is_empty() {
        let refused: Vec<String> = found.refused_files().collect();
        if !refused.is_empty() {
            return Err(Error::new(format!("no usable jitdump or perf map for process {pid}: {}", refused.join("; "))));
        }
        return Err(Error::new(format!(
            "there is no perf-{pid}.map or jit-{pid}.dump next to this file or in /tmp, and none was passed with \
             --perf-map or --jitdump; run the program again with its runtime's switch for perf (such as {})",
            RUNTIMES
                .iter()
                .filter_map(|runtime| runtime.valgrind)
                .map(|command| [command.variables, command.program].join(" ").trim_start().to_owned())
                .collect::<Vec<_>>()
                .join(", ")
        )));
    }
    Ok(CodeSources { found, processes, pid })
}
