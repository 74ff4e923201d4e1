//! Where to look for names, and what to believe.

use crate::model::process::Processes;
use crate::model::{Addr, Pid};
use std::path::PathBuf;

/// Where to look for names, and what to believe. From the command line; the same flags for every command.
#[derive(Debug, Clone, Default)]
pub struct SourceOptions {
    /// `--jitdump PATH|DIR`: looked at before the runtimes' usual places.
    pub jitdump: Vec<PathBuf>,
    /// `--perf-map PATH|DIR`.
    pub perf_map: Vec<PathBuf>,
    /// `--elf FILE@ADDR`: an ELF object placed at an address.
    pub elf: Vec<(PathBuf, Addr)>,
    /// `--map-pid INNER=OUTER`.
    pub map_pid: Vec<(Pid, Pid)>,
    /// `-f`: use files of other owners too.
    pub force: bool,
}

impl SourceOptions {
    /// The recording's number of a process that calls itself `inner`, if the user said so.
    pub(super) fn outer_of(&self, inner: Pid) -> Option<Pid> {
        self.map_pid.iter().find(|(from, _)| *from == inner).map(|(_, to)| *to)
    }
}

/// The number by which the recording knows a process that a dump or map calls `inner`: as the user said, else the
/// same number if that process may run JIT code, else the process whose namespace shows it so, else the same number.
pub(super) fn outer_pid(inner: Pid, processes: &Processes, options: &SourceOptions) -> Pid {
    let by_namespace = || {
        let mut same = processes.by_pid.iter().filter(|(_, process)| process.inner_pid == Some(inner));
        same.next().map(|(pid, _)| *pid)
    };
    let by_number = processes.by_pid.get(&inner).filter(|process| process.has_jit_memory).map(|_| inner);
    options.outer_of(inner).or(by_number).or_else(by_namespace).unwrap_or(inner)
}
