//! Detects files of an earlier process with the same ID: directories keep jitdumps and perf maps for years, and process
//! IDs are reused.

use super::{Finder, Source};
use crate::model::Nanos;
use crate::model::process::Process;
use crate::records::jitdump::JitDump;
use crate::sources::account::Kind;
use crate::sources::clock::{is_monotonic, of_another_process};
use crate::sources::options::SourceOptions;
use crate::sources::site::wall_time;
use std::time::{Duration, SystemTime};

/// Tolerance for file times, which come from the file system's clock.
const SLACK: Duration = Duration::from_secs(1);

impl Finder<'_> {
    /// Explains why a file that was found by process ID or marker belongs to an earlier process with this ID; `None` if
    /// it doesn't. Files that the user named are always accepted here; they are used with a warning.
    pub(super) fn is_of_another(&self, source: &Source) -> Option<String> {
        let SourceOptions { jitdump, jit_log, .. } = self.options;
        if jitdump.iter().chain(jit_log).any(|given| given.path == source.path) {
            return None;
        }
        match source.kind {
            Kind::JitDump => self.dump_is_of_another(source),
            Kind::PerfMap | Kind::Log(_) => {
                let (pid, written) = (source.pid, source.about.as_ref()?.modified().ok()?);
                let began = self.processes.by_pid.get(&pid).and_then(began);
                let began = began.and_then(|began| wall_time(&self.processes.clock, began));
                began
                    .filter(|began| is_before(written, *began))
                    .map(|_| {
                        format!(
                            "it was last written before process {pid} began, by an earlier process with that \
                                      PID"
                        )
                    })
                    .or_else(|| self.core_is_of_another(source))
            }
            Kind::PlacedElf => None,
        }
    }

    fn dump_is_of_another(&self, source: &Source) -> Option<String> {
        let dump = JitDump::parse(&source.bytes).ok()?;
        let is_timed = is_monotonic(&self.processes.clock) && !dump.header.has_arch_timestamps();
        let times = dump.records().flatten().map(|record| record.timestamp);
        let first = times.clone().next().filter(|first| is_timed && *first != 0)?;
        // Read only the first record if the jitdump already starts late enough.
        of_another_process(source.pid, source.marker, self.processes, (first, first))?;
        of_another_process(source.pid, source.marker, self.processes, (first, times.last()?))
    }
}

/// When a process began, if that was recorded.
pub(super) fn began(process: &Process) -> Option<Nanos> {
    process.forked.map(|(_, time)| time).or(process.execs.first().copied())
}

/// True if a file was last written before a process began, so that it can't contain anything from it.
pub(super) fn is_before(written: SystemTime, began: SystemTime) -> bool {
    written.checked_add(SLACK).is_some_and(|written| written < began)
}
