//! Finds the sources that name the code of a process that ran in valgrind.

use super::options::CallgrindOptions;
use crate::error::{Error, Result, Warnings};
use crate::model::Pid;
use crate::pipeline::callgrind::{CodeSources, find_pid};

/// Finds the sources that name the code of the profiled process. The process is that of `--pid` or, failing that, the
/// one that the input's text states (`stated`) or that its file name contains. Fails if there are no sources, or if the
/// process is unknown and the user named no source.
pub(super) fn find_sources(
    stated: Option<i32>,
    options: &CallgrindOptions,
    warnings: &mut Warnings,
) -> Result<CodeSources> {
    let path = options.path();
    let pid = match options.pid.or_else(|| find_pid(stated, path)) {
        Some(pid) => pid,
        // The user named the sources, so use their code even if it is unknown which process it is of.
        None if options.sources.names_files() => Pid(0),
        None => return Err(Error::new("neither the file nor its name has the process ID; pass --pid")),
    };
    let sources = CodeSources::find(Some(pid), path, &options.sources, warnings);
    if !sources.found.is_empty() {
        return Ok(sources);
    }
    let refused: Vec<String> = sources.found.refused_files().collect();
    if !refused.is_empty() {
        return Err(Error::new(format!("no usable jitdump or perf map for process {pid}: {}", refused.join("; "))));
    }
    let message = format!("there is no perf-{pid}.map or jit-{pid}.dump next to this file or in /tmp");
    let remedy = "if the process wrote a perf map or jitdump elsewhere, pass it with --perf-map or --jitdump. \
                  Otherwise run the program again so that it writes one: `jitgraft runtimes NAME` prints the command \
                  for callgrind, such as `jitgraft runtimes node`";
    Err(Error::new(message).with_remedy(Some(remedy.to_owned())))
}
