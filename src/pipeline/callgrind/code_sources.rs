//! Finds out which process a file of valgrind is from, and finds and loads the sources that name its code.

use crate::error::Warnings;
use crate::jit::{Found, Loaded, SourceOptions, find};
use crate::model::process::{Process, Processes};
use crate::model::{Nanos, Pid};
use crate::parallel::Pool;
use std::path::Path;

/// The value of `CLOCK_MONOTONIC` in time.h. Jitdumps should use this clock.
const CLOCK_MONOTONIC: i32 = 1;

/// A process that ran in valgrind, and the sources that name its JIT code.
#[derive(Debug)]
pub(crate) struct CodeSources {
    /// The recorded ID of the process; 0 if unknown.
    pub(crate) pid: Pid,
    /// The same process as a list of processes, which the search for sources needs. Empty if its ID is unknown.
    pub(crate) processes: Processes,
    pub(crate) found: Found,
}

impl CodeSources {
    /// Finds the sources of process `pid`, among others in the directory of the file at `path`. If `pid` is `None`,
    /// only finds sources that themselves say which process they are of.
    pub(crate) fn find(
        pid: Option<Pid>,
        path: Option<&Path>,
        options: &SourceOptions,
        warnings: &mut Warnings,
    ) -> Self {
        let processes = pid.map(process).unwrap_or_default();
        let found = find(&processes, options, path.and_then(directory), warnings);
        Self { pid: pid.unwrap_or_default(), processes, found }
    }

    /// Reads the sources and builds the code map.
    pub(crate) fn load(&self, pool: &Pool, warnings: &mut Warnings) -> Loaded<'_> {
        self.found.load(&self.processes, pool, warnings)
    }
}

/// The process as if it were one of a recording. A recording states its clock, on which the times in jitdumps are
/// placed. callgrind has none. As only the order of times within a jitdump matters here, any clock will do.
fn process(pid: Pid) -> Processes {
    let mut processes = Processes::default();
    processes.clock.clockid = Some(CLOCK_MONOTONIC);
    processes.by_pid.insert(pid, Process { has_jit_memory: true, execs: vec![Nanos(0)], ..Process::default() });
    processes
}

/// The directory of a file, in which the sources of its JIT code are looked for.
pub(crate) fn directory(path: &Path) -> Option<&Path> {
    let parent = path.parent()?;
    Some(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

/// The process of the file at `path`. `stated` is the process ID in its text, which takes precedence over its name.
/// `None` if neither has a process ID.
pub(crate) fn find_pid(stated: Option<i32>, path: Option<&Path>) -> Option<Pid> {
    stated.or_else(|| pid_in_name(path?)).map(Pid)
}

/// The process ID in a file name: the number after `.out.` or, if there is none, the last part that is a number, as in
/// `x.callgrind.out.4711-02`. `None` if there is no number.
fn pid_in_name(path: &Path) -> Option<i32> {
    let name = path.file_name()?.to_str()?;
    let parse_pid = |part: &str| part.split('-').next()?.parse().ok();
    if let Some((_, rest)) = name.split_once(".out.")
        && let Some(pid) = rest.split('.').next().and_then(parse_pid)
    {
        return Some(pid);
    }
    name.rsplit('.').find_map(parse_pid)
}
