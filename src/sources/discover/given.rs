//! Finds sources in the files and directories that the user named.

use super::{Finder, Source, inner_pid, logs};
use crate::error::{Error, Warning};
use crate::io::door::Opened;
use crate::io::is_directory;
use crate::model::Pid;
use crate::model::process::ProcessListState;
use crate::records::jit_logs::LogProcess;
use crate::records::{jitdump, perf_map};
use crate::resolve::symbols::files::ELF;
use crate::sources::account::Kind;
use crate::sources::options::{GivenFile, SourceOptions, outer_pid};
use crate::sources::trust::Named;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

impl<'a> Finder<'a> {
    /// The directories from the user that may contain a process's perf map. If `is_shared`, the process ID in the map's
    /// name is that of several processes; then only directories that the user named for this process.
    pub(super) fn given_map_directories(&self, pid: Pid, is_shared: bool) -> impl Iterator<Item = &'a Path> {
        let given = self.given.maps.files_for(pid, is_shared).into_iter();
        given.map(|given| given.path.as_path()).filter(|path| is_directory(path))
    }

    /// The directories from the user that may contain a process's jitdump or perf map, depending on `kind`.
    pub(super) fn given_directories(&self, pid: Pid, kind: Kind) -> Vec<&'a Path> {
        let list = if kind == Kind::PerfMap { &self.given.maps } else { &self.given.dumps };
        let given = list.files_for(pid, false).into_iter().map(|given| given.path.as_path());
        given.filter(|path| is_directory(path)).collect()
    }

    /// The process ID in a jitdump's header; `None` if the file can't be read. Reads each file only once.
    fn pid_in_dump(&self, path: &'a Path) -> Option<Pid> {
        if let Some(known) = self.given.pids_in_dumps.borrow().get(path) {
            return *known;
        }
        let opened = self.open(path, Named::User).and_then(Result::ok);
        let pid = opened.and_then(|opened| pid_in_header(&opened.bytes));
        self.given.pids_in_dumps.borrow_mut().insert(path, pid);
        pid
    }

    /// The jitdumps from the user that may belong to a process. Directories: the file called `name` in them. Files:
    /// those called `name`, those that the user named for this process (`FILE@PID`), and those with its ID inside its
    /// namespace (`inner`) in their header.
    pub(super) fn given_dump_candidates(&self, name: &OsStr, inner: Option<Pid>, pid: Pid) -> Vec<(PathBuf, Named)> {
        let is_shared = inner.is_some_and(|inner| self.shared_pids.contains(&inner));
        let mut candidates = Vec::new();
        for given in self.given.dumps.files_for(pid, is_shared) {
            let path = &given.path;
            if is_directory(path) {
                candidates.push((path.join(name), Named::Directory));
            } else if given.pid.is_some()
                || path.file_name() == Some(name)
                || inner.is_some() && self.pid_in_dump(path) == inner
            {
                candidates.push((path.clone(), Named::User));
            }
        }
        candidates
    }

    /// Adds the files from the user that no marker refers to and that aren't named after a process.
    pub(super) fn add_user_files(&mut self) {
        let SourceOptions { jitdump, perf_map, jit_log, .. } = self.options;
        for (list, kind) in [(jitdump, Some(Kind::JitDump)), (perf_map, Some(Kind::PerfMap)), (jit_log, None)] {
            for given in list {
                let path = &given.path;
                if self.used_paths.contains(path) || is_directory(path) {
                    continue;
                }
                let opened = self.open(path, Named::User);
                match (opened.unwrap_or_else(|| Err(Error::new("does not exist"))), kind) {
                    (Ok(opened), Some(kind)) => self.add_user_file(given, kind, opened),
                    (Ok(opened), None) => self.add_user_log(given, opened),
                    (Err(error), Some(kind)) => self.report_refused(path, kind, Pid(-1), error),
                    (Err(error), None) => self.warnings.push(error.in_file(path).into_warning()),
                }
            }
        }
    }

    fn add_user_log(&mut self, given: &GivenFile, opened: Opened) {
        match logs::detect(&opened.bytes) {
            Some(id) => self.add_user_file(given, Kind::Log(id), opened),
            None => {
                let why = Error::new("is not a log that jitgraft reads (jitgraft formats lists them)");
                self.warnings.push(why.in_file(&given.path).into_warning());
            }
        }
    }

    fn add_user_file(&mut self, given: &GivenFile, kind: Kind, opened: Opened) {
        let path = &given.path;
        if let Some(hint) = wrong_option_hint(kind, &opened.bytes) {
            return self.report_refused(path, kind, Pid(-1), Error::new(hint));
        }
        let inner = inner_pid_of_file(path, kind, &opened.bytes);
        let outer = inner.map(|inner| outer_pid(inner, self.processes, self.options));
        let is_shared = inner.is_some_and(|inner| self.shared_pids.contains(&inner));
        let recorded = outer.filter(|pid| !is_shared && self.processes.by_pid.contains_key(pid));
        let certain = given.pid.or(recorded).or_else(|| self.only_candidate(inner));
        if certain.is_none() && self.site.samples.is_some() && self.jit_processes.len() > 1 {
            return self.unassigned.push((path.clone(), kind));
        }
        let Some(pid) = certain.or(outer) else {
            let why = "has no process ID; pass FILE@PID";
            return self.report_refused(path, kind, Pid(-1), Error::new(why));
        };
        // Other inputs don't contain every process: text contains only some, and a callgrind file only one.
        if self.processes.is_recording && !self.processes.by_pid.contains_key(&pid) {
            let message = format!(
                "not used: it is from process {pid}, which is not in the recording; pass FILE@PID to \
                                use it for another process"
            );
            self.warnings.push(Warning::new(message).in_file(path, None));
        }
        self.used_paths.insert(path.to_owned());
        let source = Source { inner, ..Source::new(path.to_owned(), kind, pid, opened) };
        // A file that the user named is used even if it seems to belong to another process; there is only a warning.
        if let Some(why) = self.explain_if_core_contradicts(&source) {
            self.warnings.push(Warning::new(why).in_file(&source.path, None));
        }
        self.add(source);
    }

    /// The only process that a file from the user can belong to, even if the file states another process ID (`inner`).
    /// `None` if there are several such processes.
    fn only_candidate(&self, inner: Option<Pid>) -> Option<Pid> {
        match (self.processes.told, self.jit_processes) {
            (ProcessListState::Whole, &[only]) => Some(only),
            // The list of processes may still grow, so that a process with this ID may come later.
            (ProcessListState::Begun(first), _) if inner.is_none() => first,
            _ => None,
        }
    }

    /// Adds the ELF objects that the user placed at an address (`--elf`) to every process with JIT memory. If no
    /// process has any, to every process.
    pub(super) fn add_placed_objects(&mut self) {
        let mut pids = self.jit_processes.to_vec();
        if pids.is_empty() && !self.options.elf.is_empty() {
            pids = self.processes.by_pid.keys().copied().filter(|pid| pid.0 > 0).collect();
        }
        for (path, addr) in &self.options.elf {
            for &pid in &pids {
                match self.door(path, Named::User).open(path, ELF) {
                    Some(Ok(opened)) => {
                        let placed = Source::new(path.clone(), Kind::PlacedElf, pid, opened);
                        self.add(Source { addr: *addr, ..placed });
                    }
                    Some(Err(error)) => self.report_refused(path, Kind::PlacedElf, pid, error),
                    None => self.report_refused(path, Kind::PlacedElf, pid, Error::new("does not exist")),
                }
            }
        }
    }
}

/// The process ID that a file or its name states. It is the ID in the process's own PID namespace.
fn inner_pid_of_file(path: &Path, kind: Kind, bytes: &[u8]) -> Option<Pid> {
    // A core dump's name may contain more than one number, so prefer its contents.
    if let Kind::Log(id) = kind
        && let Some(LogProcess { pid: Some(pid), .. }) = logs::read_process(id, bytes)
    {
        return Some(Pid(pid));
    }
    match (inner_pid(path), kind) {
        (None, Kind::JitDump) => pid_in_header(bytes),
        (in_name, _) => in_name,
    }
}

/// The process ID in a jitdump's header.
fn pid_in_header(bytes: &[u8]) -> Option<Pid> {
    jitdump::JitDump::parse(bytes).ok().map(|dump| Pid(dump.header.pid))
}

/// A hint if a file was passed with the option for another kind.
fn wrong_option_hint(kind: Kind, bytes: &[u8]) -> Option<&'static str> {
    let head = &bytes[..bytes.len().min(4096)];
    match kind {
        Kind::PerfMap if jitdump::sniff(head) => Some("is a jitdump, not a perf map; pass it with --jitdump"),
        Kind::JitDump if !jitdump::sniff(head) && perf_map::sniff(head) => {
            Some("is a perf map, not a jitdump; pass it with --perf-map")
        }
        _ => None,
    }
}
