//! Files that the user named.

use super::{Finder, Source, inner_pid, logs};
use crate::error::{Error, Warning};
use crate::io::door::Opened;
use crate::io::is_directory;
use crate::model::Pid;
use crate::model::process::ProcessListState;
use crate::records::{jitdump, perf_map};
use crate::resolve::symbols::files::ELF;
use crate::sources::account::Kind;
use crate::sources::options::{GivenFile, SourceOptions, outer_pid};
use crate::sources::trust::Named;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

impl<'a> Finder<'a> {
    /// The directories that may hold maps of a process.
    pub(super) fn map_directories(&self, pid: Pid, is_shared: bool) -> impl Iterator<Item = &'a Path> {
        let given = self.given.maps.meant_for(pid, is_shared).into_iter();
        given.map(|given| given.path.as_path()).filter(|path| is_directory(path))
    }

    /// The directories that the user named for dumps or maps, as far as they may hold those of a process.
    pub(super) fn given_directories(&self, pid: Pid, kind: Kind) -> Vec<&'a Path> {
        let list = if kind == Kind::PerfMap { &self.given.maps } else { &self.given.dumps };
        let given = list.meant_for(pid, false).into_iter().map(|given| given.path.as_path());
        given.filter(|path| is_directory(path)).collect()
    }

    /// The process that a dump states in its header.
    fn stated_process(&self, path: &'a Path) -> Option<Pid> {
        if let Some(known) = self.given.stated.borrow().get(path) {
            return *known;
        }
        let read = || {
            let opened = self.open(path, Named::User)?.ok()?;
            jitdump::JitDump::parse(&opened.bytes).ok().map(|dump| Pid(dump.header.pid))
        };
        let stated = read();
        self.given.stated.borrow_mut().insert(path, stated);
        stated
    }

    /// The file or directory that the user named that is, or may hold, a dump of that name, or is one of that process
    /// by its header.
    pub(super) fn asked(&self, base: &OsStr, inner: Option<Pid>, pid: Pid) -> Vec<(PathBuf, Named)> {
        let is_it = |given: &'a GivenFile| {
            let path = &given.path;
            let is_named = given.pid.is_some() || path.file_name() == Some(base);
            is_named || inner.is_some() && self.stated_process(path) == inner
        };
        let is_shared = inner.is_some_and(|inner| self.shared.contains(&inner));
        let given = self.given.dumps.meant_for(pid, is_shared).into_iter();
        let named = given.filter_map(|given| match is_directory(&given.path) {
            true => Some((given.path.join(base), Named::Directory)),
            false => is_it(given).then(|| (given.path.clone(), Named::User)),
        });
        named.collect()
    }

    /// Files that the user named outright: used even if no marker and no process requests them.
    pub(super) fn named_by_user(&mut self) {
        let SourceOptions { jitdump, perf_map, jit_log, .. } = self.options;
        for (list, kind) in [(jitdump, Some(Kind::JitDump)), (perf_map, Some(Kind::PerfMap)), (jit_log, None)] {
            for given in list {
                let path = &given.path;
                if self.seen.contains(path) || is_directory(path) {
                    continue;
                }
                let opened = self.open(path, Named::User);
                match (opened.unwrap_or_else(|| Err(Error::new("does not exist"))), kind) {
                    (Ok(opened), Some(kind)) => self.user_file(given, kind, opened),
                    (Ok(opened), None) => self.user_log(given, opened),
                    (Err(error), Some(kind)) => self.refused(path, kind, Pid(-1), error),
                    (Err(error), None) => self.warnings.push(error.in_file(path).into_warning()),
                }
            }
        }
    }

    fn user_log(&mut self, given: &GivenFile, opened: Opened) {
        match logs::detect(&opened.bytes) {
            Some(id) => self.user_file(given, Kind::Log(id), opened),
            None => {
                let why = Error::new("is none of the logs that jitgraft reads (jitgraft formats lists them)");
                self.warnings.push(why.in_file(&given.path).into_warning());
            }
        }
    }

    fn user_file(&mut self, given: &GivenFile, kind: Kind, opened: Opened) {
        let (path, bytes) = (&given.path, &opened.bytes);
        if let Some(other) = other_kind(kind, bytes) {
            return self.refused(path, kind, Pid(-1), Error::new(other));
        }
        let by_header = || match kind {
            Kind::JitDump => jitdump::JitDump::parse(bytes).ok().map(|dump| Pid(dump.header.pid)),
            _ => None,
        };
        // In the name of a core may be more than one number.
        let in_core = match kind {
            Kind::Log(id) => logs::process(id, bytes).and_then(|process| process.pid).map(Pid),
            _ => None,
        };
        let inner = in_core.or_else(|| inner_pid(path)).or_else(by_header);
        let only = || match (self.processes.told, self.jit_processes) {
            (ProcessListState::Whole, &[only]) => Some(only),
            // The process of a number may still come.
            (ProcessListState::Begun(first), _) => first.filter(|_| inner.is_none()),
            _ => None,
        };
        let outer = inner.map(|inner| outer_pid(inner, self.processes, self.options));
        // A file of another number, named for a recording with a single process that it can be meant for, is its.
        let is_shared = inner.is_some_and(|inner| self.shared.contains(&inner));
        let known = outer.filter(|pid| !is_shared && self.processes.by_pid.contains_key(pid));
        let sure = given.pid.or(known).or_else(only);
        if sure.is_none() && self.site.samples.is_some() && self.jit_processes.len() > 1 {
            return self.nobodys.push((path.clone(), kind));
        }
        let Some(pid) = sure.or(outer) else {
            let why = "contains no process ID: pass FILE@PID";
            return self.refused(path, kind, Pid(-1), Error::new(why));
        };
        // A text reports few of the processes that were recorded, a callgrind file of none but one.
        if self.processes.is_recording && !self.processes.by_pid.contains_key(&pid) {
            let said = format!("is of process {pid}, which is not in the recording: it names nothing (pass FILE@PID)");
            self.warnings.push(Warning::new(said).in_file(path, None));
        }
        self.seen.insert(path.to_owned());
        let source = Source { inner, ..Source::new(path.to_owned(), kind, pid, opened) };
        // A file that the user named is used, with a warning.
        if let Some(why) = self.core_is_of_another(&source) {
            self.warnings.push(Warning::new(why).in_file(&source.path, None));
        }
        self.add(source);
    }

    /// ELF objects that the user placed: for every process with memory for JIT code, else for every one.
    pub(super) fn placed(&mut self) {
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
                    Some(Err(error)) => self.refused(path, Kind::PlacedElf, pid, error),
                    None => self.refused(path, Kind::PlacedElf, pid, Error::new("does not exist")),
                }
            }
        }
    }
}

/// The actual kind of a file that was passed as the other kind.
fn other_kind(kind: Kind, bytes: &[u8]) -> Option<&'static str> {
    let head = &bytes[..bytes.len().min(4096)];
    match kind {
        Kind::PerfMap if jitdump::sniff(head) => Some("is a jitdump, not a perf map: pass it with --jitdump"),
        Kind::JitDump if !jitdump::sniff(head) && perf_map::sniff(head) => {
            Some("is a perf map, not a jitdump: pass it with --perf-map")
        }
        _ => None,
    }
}
