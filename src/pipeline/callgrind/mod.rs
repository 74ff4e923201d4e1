//! A callgrind file on its way: names for its JIT code, two passes over its text, and how much of its cost they cover.

mod beside;
mod coverage;
mod names;
pub(crate) mod stream;

pub(crate) use beside::{unnamed, with_names};
pub(crate) use coverage::Coverage;
pub(crate) use names::{CodeNames, JitEntry};

use crate::model::process::{Process, Processes};
use crate::model::{Nanos, Pid};
use std::path::Path;

/// `CLOCK_MONOTONIC` of time.h, by which jitdumps are meant to be timed.
const CLOCK_MONOTONIC: i32 = 1;

/// The process of a callgrind file. callgrind has no clock: a dump's times are wanted for their order only, so any clock
/// is the right one.
pub(crate) fn processes(pid: Pid) -> Processes {
    let mut processes = Processes::default();
    processes.clock.clockid = Some(CLOCK_MONOTONIC);
    processes.by_pid.insert(pid, Process { has_jit_memory: true, execs: vec![Nanos(0)], ..Process::default() });
    processes
}

/// Enough bytes for the headers of callgrind files and of the reports of valgrind's other tools.
pub(crate) const HEAD: u64 = 1 << 16;

/// The number behind `.out.` in a file's name, or else the last part that is one: `x.callgrind.out.4711-02`.
pub(crate) fn pid_in_name(path: &Path) -> Option<i32> {
    let name = path.file_name()?.to_str()?;
    let number = |part: &str| part.split('-').next().and_then(|digits| digits.parse().ok());
    let behind = name.split_once(".out.").and_then(|(_, rest)| rest.split('.').next()).and_then(number);
    behind.or_else(|| name.rsplit('.').find_map(number))
}
