//! Core dumps of processes that have neither jitdump nor log, and the memory of processes that are still running and
//! have no perf map either: both contain code registered with GDB's JIT interface.
//!
//! A core dump states which process it is from and what that process had mapped. Therefore its name needn't contain the
//! process ID (`core`), and mappings that contradict the recording rule it out.

use super::{Finder, Source, logs, used_unasked};
use crate::error::Error;
use crate::model::Pid;
use crate::model::backing::base_name;
use crate::model::process::Process;
use crate::records::jit_logs::{LogId, LogProcess, MappedFile};
use crate::sources::account::Kind;
use crate::sources::live::recorded_files;
use crate::sources::registered::{CopiedObjects, registered};
use crate::sources::trust::Named;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// Where systemd stores core dumps that it doesn't compress.
const SYSTEMD: &str = "/var/lib/systemd/coredump";

/// The maximum number of core dumps to open per directory.
const MOST: usize = 32;

/// A file that is named like a core dump.
struct CoreFile {
    path: PathBuf,
    named: Named,
    kind: LogId,
    /// The process ID in its name.
    of: Option<Pid>,
}

impl Finder<'_> {
    /// Looks for core dumps of processes that have no better source.
    pub(super) fn cores(&mut self) {
        if self.without_better().next().is_none() {
            return;
        }
        for CoreFile { path, named, kind, of } in self.core_files() {
            let bytes = match self.open(&path, named) {
                Some(Ok(opened)) => opened.bytes,
                Some(Err(error)) => {
                    self.core_refused(&path, kind, of, error);
                    continue;
                }
                None => continue,
            };
            let Some(LogProcess { pid: Some(own), .. }) = logs::process(kind, &bytes) else { continue };
            let own = Pid(own);
            let is_it = |pid: &Pid| self.inner_pids(*pid).contains(&own) && !self.shared.contains(&own);
            let Some(pid) = self.without_better().find(is_it) else { continue };
            // Most core dumps contain no registered code.
            if logs::ranges(kind, &bytes).is_some_and(|ranges| !ranges.is_empty()) {
                let source =
                    |path, contents| Source { inner: Some(own), ..Source::new(path, Kind::Log(kind), pid, contents) };
                self.first_good(&[(path, named)], source);
            }
        }
    }

    /// Processes with JIT memory that have no source except perhaps a perf map. Libraries inside a runtime, such as
    /// Numba in Python, register their code with GDB's JIT interface, and the runtime's perf map only contains its own.
    fn without_better(&self) -> impl Iterator<Item = Pid> {
        self.not_injected().filter(|pid| self.kinds_of(*pid).all(|kind| kind == Kind::PerfMap))
    }

    /// Reports a core dump that can't be read, if its name says that it belongs to a process without a better source.
    /// Its contents can't say so if it can't be read.
    fn core_refused(&mut self, path: &Path, kind: LogId, of: Option<Pid>, error: Error) {
        let Some(of) = of else { return };
        let is_it = |pid: &Pid| self.inner_pids(*pid).contains(&of);
        let pid = self.without_better().find(is_it);
        if let Some(pid) = pid {
            self.refused(path, Kind::Log(kind), pid, error);
        }
    }

    /// Adds the objects that running processes without any source have registered with GDB's JIT interface.
    pub(super) fn registered_now(&mut self) {
        let Some((kind, _)) = LogId::find_by_name("core").next() else { return };
        let mut refused: Option<(PathBuf, Pid, Error)> = None;
        for pid in self.without_sources() {
            let Some(live) = self.found.live.get(&pid) else { continue };
            match registered(live, pid) {
                None => {}
                Some(Ok(CopiedObjects { path, core })) => {
                    let why = "which is still running and has registered its code with GDB's JIT interface";
                    let remark = Some(used_unasked(&path, pid, why));
                    let source = Source::new(path, Kind::Log(kind), pid, core);
                    self.add(Source { remark, ..source });
                }
                // The reason is the same for all processes, so it is reported once.
                Some(Err(error)) => {
                    refused.get_or_insert_with(|| (PathBuf::from(format!("/proc/{pid}/mem")), pid, error));
                }
            }
        }
        if let Some((path, pid, error)) = refused {
            self.refused(&path, Kind::Log(kind), pid, error);
        }
    }

    /// Files named like a core dump in the usual directories, newest first in each directory.
    fn core_files(&self) -> Vec<CoreFile> {
        let mut files = Vec::new();
        for (directory, named) in self.log_directories(&[".", "/tmp", SYSTEMD]) {
            let core = |name: &OsStr| LogId::find_by_name(name.to_str()?).find(|(id, _)| id.log().process.is_some());
            let entries = self.door(directory, named).entries(directory, |name| core(name).is_some()).into_iter();
            let cores = entries.filter_map(|(name, about)| {
                let written = Some(about).filter(Metadata::is_file)?.modified().ok()?;
                Some((written, directory.join(&name), core(&name)?))
            });
            let mut cores: Vec<_> = cores.filter(|(_, path, _)| !self.seen.contains(path)).collect();
            cores.sort();
            let cores = cores.into_iter().rev().take(MOST);
            files.extend(cores.map(|(_, path, (kind, of))| CoreFile { path, named, kind, of: of.map(Pid) }));
        }
        files
    }

    /// Explains why a core dump belongs to another process than the one it was found for, going by its mappings; `None`
    /// if nothing contradicts.
    pub(super) fn core_is_of_another(&self, source: &Source) -> Option<String> {
        let Kind::Log(kind) = source.kind else { return None };
        let process = self.processes.by_pid.get(&source.pid)?;
        disagrees(process, &logs::process(kind, &source.bytes)?)
    }
}

/// Explains how a process's mapped files differ from the recorded ones: another file at the same address, or most of
/// the recorded files missing. `None` if they agree.
fn disagrees(process: &Process, of: &LogProcess) -> Option<String> {
    if of.files.is_empty() {
        return None;
    }
    let (mut same, mut gone) = (0, 0);
    for mapping in recorded_files(process).into_values() {
        let at = mapping.addr.0;
        match MappedFile::find(&of.files, at) {
            None => gone += 1,
            Some(file) if base(&file.path) == base(&mapping.path) => same += 1,
            Some(_) => {
                return Some(format!("the mapping of its process at {at:#x} is not the recorded one"));
            }
        }
    }
    (gone > same).then(|| "the mappings of its process are not the recorded ones".to_owned())
}

/// Compares file names only, because files in containers have other paths outside.
fn base(path: &[u8]) -> &[u8] {
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    base_name(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::process::{CpuMode, Mapping};
    use crate::model::{Addr, Nanos};

    fn recorded(at: u64, path: &str) -> Process {
        let mapping = Mapping {
            time: Nanos(0),
            addr: Addr(at),
            len: 0x1000,
            pgoff: 0,
            path: path.as_bytes().to_vec(),
            build_id: None,
            file: None,
            executable: true,
            cpumode: CpuMode::User,
            offset: 0,
        };
        Process { mappings: vec![mapping], ..Process::default() }
    }

    #[test]
    fn a_core_of_another_run_has_other_files_there() {
        let file = MappedFile { start: 0x1000, end: 0x3000, offset: 0, path: b"/usr/bin/lli".to_vec() };
        let core = LogProcess { pid: Some(7), files: vec![file] };
        assert_eq!(disagrees(&recorded(0x2000, "/root/of/it/usr/bin/lli"), &core), None);
        assert!(disagrees(&recorded(0x2000, "/usr/bin/node"), &core).is_some());
        assert!(disagrees(&recorded(0x9000, "/usr/bin/lli"), &core).is_some());
        assert_eq!(disagrees(&recorded(0x9000, "/usr/bin/lli"), &LogProcess::default()), None);
    }
}
