//! Files of an earlier process that had the same number: directories keep the dumps and maps of years, and numbers are
//! given again.

use super::{Finder, Source};
use crate::model::Nanos;
use crate::model::process::Process;
use crate::records::jitdump::JitDump;
use crate::sources::account::Kind;
use crate::sources::clock::{is_monotonic, of_another_process};
use crate::sources::options::SourceOptions;
use crate::sources::site::wall_time;
use std::time::{Duration, SystemTime};

/// File systems give times by a clock of their own.
const SLACK: Duration = Duration::from_secs(1);

impl Finder<'_> {
    /// Why a file that was found by its number or marker is of an earlier process of that number, if it is. A file that
    /// the user named is used with a warning.
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
                    .map(|_| format!("it was last written before process {pid} began, by another of that number"))
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
        // If it begins when the process does, it is not read to its end.
        of_another_process(source.pid, source.marker, self.processes, (first, first))?;
        of_another_process(source.pid, source.marker, self.processes, (first, times.last()?))
    }
}

/// When a process began, if the recording saw that.
pub(super) fn began(process: &Process) -> Option<Nanos> {
    process.forked.map(|(_, time)| time).or(process.execs.first().copied())
}

/// True if a file that was last written then has nothing of a process that began then.
pub(super) fn is_before(written: SystemTime, began: SystemTime) -> bool {
    written.checked_add(SLACK).is_some_and(|written| written < began)
}
