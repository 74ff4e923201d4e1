//! Finds code that was registered with GDB's JIT interface: in core dumps of processes that have neither jitdump nor
//! log, and in the memory of running processes that have no perf map either.
//!
//! A core dump states which process it is from and what that process had mapped. Therefore its name needn't contain the
//! process ID (`core`), and mappings that contradict the recording rule it out.

use super::{Finder, Source, logs, unasked_use_remark};
use crate::error::Error;
use crate::model::Pid;
use crate::model::backing::base_name;
use crate::model::process::Process;
use crate::records::jit_logs::{LogId, LogProcess, MappedFile};
use crate::sources::account::Kind;
use crate::sources::live::recorded_files;
use crate::sources::registered::{CopiedObjects, copy_registered_objects};
use crate::sources::trust::Named;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where systemd stores core dumps. Only uncompressed ones can be read.
const SYSTEMD: &str = "/var/lib/systemd/coredump";

/// The maximum number of core dumps to open per directory.
const MAX_PER_DIRECTORY: usize = 32;

/// A file that is named like a core dump.
struct CoreFile {
    path: PathBuf,
    named: Named,
    kind: LogId,
    /// The process ID in the file's name.
    pid: Option<Pid>,
}

impl Finder<'_> {
    /// Looks for core dumps of processes that have no better source.
    pub(super) fn find_cores(&mut self) {
        if self.processes_without_better_source().next().is_none() {
            return;
        }
        for CoreFile { path, named, kind, pid: pid_in_name } in self.core_files() {
            let bytes = match self.open(&path, named) {
                Some(Ok(opened)) => opened.bytes,
                Some(Err(error)) => {
                    self.report_refused_core(&path, kind, pid_in_name, error);
                    continue;
                }
                None => continue,
            };
            let Some(LogProcess { pid: Some(inner), .. }) = logs::read_process(kind, &bytes) else { continue };
            let inner = Pid(inner);
            if self.shared_pids.contains(&inner) {
                continue;
            }
            let Some(pid) = self.find_process_of_core(inner) else { continue };
            // Most core dumps contain no registered code.
            if logs::code_ranges(kind, &bytes).is_some_and(|ranges| !ranges.is_empty()) {
                self.use_first_good(&[(path, named)], |path, contents| Source {
                    inner: Some(inner),
                    ..Source::new(path, Kind::Log(kind), pid, contents)
                });
            }
        }
    }

    /// The process that may have this ID in its own PID namespace, among those without a better source.
    fn find_process_of_core(&self, inner: Pid) -> Option<Pid> {
        self.processes_without_better_source().find(|pid| self.inner_pids(*pid).contains(&inner))
    }

    /// Processes with JIT memory that have no source, or only a perf map. A perf map is no better than a core dump: it
    /// contains only the runtime's own code, but libraries in the process (such as Numba in Python) may register code
    /// with GDB's JIT interface.
    fn processes_without_better_source(&self) -> impl Iterator<Item = Pid> {
        self.processes_not_injected().filter(|pid| self.kinds_of(*pid).all(|kind| kind == Kind::PerfMap))
    }

    /// Reports that a core dump could not be read, if the process ID in its name is that of a process without a better
    /// source. The name has to decide, because the contents are unknown.
    fn report_refused_core(&mut self, path: &Path, kind: LogId, pid_in_name: Option<Pid>, error: Error) {
        if let Some(pid) = pid_in_name.and_then(|inner| self.find_process_of_core(inner)) {
            self.report_refused(path, Kind::Log(kind), pid, error);
        }
    }

    /// Adds the code that running processes without any source have registered with GDB's JIT interface.
    pub(super) fn add_registered_objects(&mut self) {
        let Some((kind, _)) = LogId::find_by_name("core").next() else { return };
        let mut refused: Option<(PathBuf, Pid, Error)> = None;
        for pid in self.processes_without_source() {
            let Some(live) = self.found.live.get(&pid) else { continue };
            match copy_registered_objects(live, pid) {
                None => {}
                Some(Ok(CopiedObjects { path, core })) => {
                    let why = "which is still running and has registered its code with GDB's JIT interface";
                    let remark = Some(unasked_use_remark(&path, pid, why));
                    let source = Source::new(path, Kind::Log(kind), pid, core);
                    self.add(Source { remark, ..source });
                }
                // The error is the same for every process, so report it only once.
                Some(Err(error)) => {
                    refused.get_or_insert_with(|| (PathBuf::from(format!("/proc/{pid}/mem")), pid, error));
                }
            }
        }
        if let Some((path, pid, error)) = refused {
            self.report_refused(&path, Kind::Log(kind), pid, error);
        }
    }

    /// Files in the usual directories that are named like core dumps, newest first in each directory.
    fn core_files(&self) -> Vec<CoreFile> {
        let mut files = Vec::new();
        for (directory, named) in self.log_directories(&[".", "/tmp", SYSTEMD]) {
            let mut cores = Vec::new();
            for (name, about) in self.door(directory, named).entries(directory, |name| parse_core_name(name).is_some())
            {
                let path = directory.join(&name);
                if about.is_file()
                    && !self.used_paths.contains(&path)
                    && let Ok(written) = about.modified()
                    && let Some((kind, pid)) = parse_core_name(&name)
                {
                    cores.push((written, path, kind, pid));
                }
            }
            cores.sort();
            let newest = cores.into_iter().rev().take(MAX_PER_DIRECTORY);
            files.extend(newest.map(|(_, path, kind, pid)| CoreFile { path, named, kind, pid: pid.map(Pid) }));
        }
        files
    }

    /// Explains why a core dump belongs to another process than the one that it was found for: its mappings differ from
    /// the recorded ones. `None` if they don't contradict each other.
    pub(super) fn explain_if_core_contradicts(&self, source: &Source) -> Option<String> {
        let Kind::Log(kind) = source.kind else { return None };
        let process = self.processes.by_pid.get(&source.pid)?;
        explain_difference(process, &logs::read_process(kind, &source.bytes)?)
    }
}

/// Recognizes a core dump by its file name. Returns its kind, and the process ID in the name if there is one.
fn parse_core_name(name: &OsStr) -> Option<(LogId, Option<i32>)> {
    LogId::find_by_name(name.to_str()?).find(|(id, _)| id.log().process.is_some())
}

/// Explains how the mapped files of a core dump's process differ from the recorded ones: another file at the same
/// address, or most of the recorded files missing. `None` if they agree.
fn explain_difference(recorded: &Process, core: &LogProcess) -> Option<String> {
    if core.files.is_empty() {
        return None;
    }
    let (mut same, mut gone) = (0, 0);
    for mapping in recorded_files(recorded).into_values() {
        let addr = mapping.addr.0;
        match MappedFile::find(&core.files, addr) {
            None => gone += 1,
            Some(file) if file_name(&file.path) == file_name(&mapping.path) => same += 1,
            Some(_) => {
                return Some(format!("the mapping of its process at {addr:#x} is not the recorded one"));
            }
        }
    }
    (gone > same).then(|| "the mappings of its process are not the recorded ones".to_owned())
}

/// The file name at the end of a path. Only file names are compared, because files in containers have other directories
/// outside.
fn file_name(path: &[u8]) -> &[u8] {
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
        assert_eq!(explain_difference(&recorded(0x2000, "/root/of/it/usr/bin/lli"), &core), None);
        assert!(explain_difference(&recorded(0x2000, "/usr/bin/node"), &core).is_some());
        assert!(explain_difference(&recorded(0x9000, "/usr/bin/lli"), &core).is_some());
        assert_eq!(explain_difference(&recorded(0x9000, "/usr/bin/lli"), &LogProcess::default()), None);
    }
}
