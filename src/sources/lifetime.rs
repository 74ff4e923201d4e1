//! True if a dump belongs to a process: process IDs are used again, and the dumps of many runs are in one directory.

use crate::model::process::Processes;
use crate::model::{Nanos, Pid};

/// Reports what is wrong with the times of a dump, from its first record to its last, if it cannot belong to the
/// process that it was found for.
pub(super) fn of_another_process(
    pid: Pid,
    marker: Option<Nanos>,
    processes: &Processes,
    (first, last): (u64, u64),
) -> Option<String> {
    /// Clocks of several processors, and a runtime that logs before it maps its marker (Bun), differ by less.
    const SLACK: u64 = 1_000_000_000;
    let process = processes.by_pid.get(&pid)?;
    let began = marker.or(process.forked.map(|(_, at)| at)).or(process.execs.first().copied());
    let began = began.filter(|time| last.saturating_add(SLACK) < time.0);
    let ended = process.exited.filter(|time| first > time.0.saturating_add(SLACK));
    let seconds = |nanos: u64| format!("{}.{:03} s", nanos / 1_000_000_000, nanos / 1_000_000 % 1000);
    let (edge, time) = began.map(|time| ("began", time)).or(ended.map(|time| ("ended", time)))?;
    Some(format!(
        "its records are of {} to {}, but process {} {edge} at {}: it seems to be of another process of that number",
        seconds(first),
        seconds(last),
        pid,
        seconds(time.0)
    ))
}
