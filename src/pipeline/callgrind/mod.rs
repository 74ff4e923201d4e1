//! Names JIT code in callgrind files, in two passes over the text, and determines how much of the cost has names.

mod coverage;
mod input;
mod names;
pub(crate) mod passes;

pub(crate) use coverage::Coverage;
pub(crate) use input::{report_unnamed, with_names};
pub(crate) use names::CodeNames;

use crate::model::process::{Process, Processes};
use crate::model::{Nanos, Pid};
use std::path::Path;

/// The value of `CLOCK_MONOTONIC` in time.h. Jitdumps should use this clock.
const CLOCK_MONOTONIC: i32 = 1;

/// The process of a callgrind file, for loading its sources of JIT code. callgrind has no clock, and only the order of
/// times within a jitdump matters, so any clock will do.
pub(crate) fn processes(pid: Pid) -> Processes {
    let mut processes = Processes::default();
    processes.clock.clockid = Some(CLOCK_MONOTONIC);
    processes.by_pid.insert(pid, Process { has_jit_memory: true, execs: vec![Nanos(0)], ..Process::default() });
    processes
}

/// How many bytes to read to have the whole header of a callgrind file, or of a report from another of valgrind's
/// tools.
pub(crate) const HEAD: u64 = 1 << 16;

/// The process ID in a file name: the number after `.out.` or, if there is none, the last part that is a number, as in
/// `x.callgrind.out.4711-02`. `None` if there is no number.
pub(crate) fn pid_in_name(path: &Path) -> Option<i32> {
    let name = path.file_name()?.to_str()?;
    let parse_pid = |part: &str| part.split('-').next()?.parse().ok();
    if let Some((_, rest)) = name.split_once(".out.")
        && let Some(pid) = rest.split('.').next().and_then(parse_pid)
    {
        return Some(pid);
    }
    name.rsplit('.').find_map(parse_pid)
}

/// The directory of a file, in which the sources of its JIT code are looked for.
pub(crate) fn directory(path: &Path) -> Option<&Path> {
    let parent = path.parent()?;
    Some(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}
