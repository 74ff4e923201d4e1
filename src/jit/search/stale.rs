//! Detects files of an earlier process with the same ID: directories keep jitdumps and perf maps for years, and process
//! IDs are reused.

use super::scene::Scene;
use crate::jit::account::Kind;
use crate::jit::clock::{explain_other_process, is_monotonic};
use crate::jit::found::Source;
use crate::jit::jitdump::JitDump;
use crate::jit::options::SourceOptions;
use crate::jit::site::wall_time;
use crate::model::Nanos;
use crate::model::process::Process;
use std::time::{Duration, SystemTime};

/// Tolerance when comparing file times with process times. File times are from the file system's clock, which may
/// differ.
const SLACK: Duration = Duration::from_secs(1);

impl Scene<'_> {
    /// Explains why a file that was found by process ID or marker belongs to an earlier process with this ID; `None` if
    /// it doesn't. Files that the user named are always accepted here; they are used with a warning.
    pub(super) fn explain_if_stale(&self, source: &Source) -> Option<String> {
        let SourceOptions { jitdump, jit_log, .. } = self.options;
        // A perf map that the user named as a file isn't looked for by process ID or marker, so the `perf_map` option
        // isn't checked.
        if jitdump.iter().chain(jit_log).any(|given| given.path == source.path) {
            return None;
        }
        match source.kind {
            Kind::JitDump => self.explain_if_dump_is_stale(source),
            Kind::PerfMap | Kind::Log(_) => {
                let pid = source.pid;
                let written = source.contents.about.as_ref()?.modified().ok()?;
                let began = self.processes.by_pid.get(&pid).and_then(process_start);
                if let Some(began) = began.and_then(|began| wall_time(&self.processes.clock, began))
                    && is_written_before(written, began)
                {
                    return Some(format!(
                        "the file was last written before process {pid} began, by an earlier process with that PID"
                    ));
                }
                self.explain_if_core_contradicts(source)
            }
            // The user said at which address this object was loaded, so it can't be stale.
            Kind::PlacedElf => None,
        }
    }

    /// Explains why a jitdump must be from an earlier process with the same ID; `None` if it need not be.
    fn explain_if_dump_is_stale(&self, source: &Source) -> Option<String> {
        let dump = JitDump::parse(&source.contents.bytes).ok()?;
        if !is_monotonic(&self.processes.clock) || dump.header.has_arch_timestamps() {
            return None;
        }
        let times = dump.records().flatten().map(|record| record.timestamp);
        // Some runtimes write no times (0).
        let first = times.clone().next().filter(|first| *first != 0)?;
        // If the first record doesn't rule the process out, later ones can't either. The `?` then returns `None`, and
        // they needn't be read.
        explain_other_process(source.pid, source.marker_time, self.processes, first, first)?;
        explain_other_process(source.pid, source.marker_time, self.processes, first, times.last()?)
    }
}

/// When a process was forked or, if that wasn't recorded, when it first called exec. `None` if neither was recorded.
pub(super) fn process_start(process: &Process) -> Option<Nanos> {
    process.forked.map(|(_, time)| time).or(process.execs.first().copied())
}

/// True if a file was last written before a process began, so that the process can't have written any of it.
pub(super) fn is_written_before(written: SystemTime, began: SystemTime) -> bool {
    written.checked_add(SLACK).is_some_and(|written| written < began)
}
