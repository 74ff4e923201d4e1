//! Handles files and directories that the user named.

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
    /// The user's directories that may contain perf maps of a process. `is_shared`: several processes have the ID that
    /// the file would be named after.
    pub(super) fn map_directories(&self, pid: Pid, is_shared: bool) -> impl Iterator<Item = &'a Path> {
        let given = self.given.maps.meant_for(pid, is_shared).into_iter();
        given.map(|given| given.path.as_path()).filter(|path| is_directory(path))
    }

    /// The user's directories that may contain jitdumps or perf maps (`kind`) of a process.
    pub(super) fn given_directories(&self, pid: Pid, kind: Kind) -> Vec<&'a Path> {
        let list = if kind == Kind::PerfMap { &self.given.maps } else { &self.given.dumps };
        let given = list.meant_for(pid, false).into_iter().map(|given| given.path.as_path());
        given.filter(|path| is_directory(path)).collect()
    }

    /// The process ID in a jitdump's header.
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

    /// Where the user's options say that a process's jitdump is: a file with this name (`base`), for this process
    /// (`FILE@PID`), or with the process's inner ID in its header; or this name in a directory.
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

    /// Loads files that the user named although no marker and no process refers to them.
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
                let why = Error::new("is not a log that jitgraft reads (jitgraft formats lists them)");
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
        // A core dump's name may contain more than one number, so prefer its contents.
        let in_core = match kind {
            Kind::Log(id) => logs::process(id, bytes).and_then(|process| process.pid).map(Pid),
            _ => None,
        };
        let inner = in_core.or_else(|| inner_pid(path)).or_else(by_header);
        let only = || match (self.processes.told, self.jit_processes) {
            (ProcessListState::Whole, &[only]) => Some(only),
            // More processes may come, including the one with this ID.
            (ProcessListState::Begun(first), _) => first.filter(|_| inner.is_none()),
            _ => None,
        };
        let outer = inner.map(|inner| outer_pid(inner, self.processes, self.options));
        // If the recording has a single candidate process, a file with another process ID belongs to it if the user
        // passed it.
        let is_shared = inner.is_some_and(|inner| self.shared.contains(&inner));
        let known = outer.filter(|pid| !is_shared && self.processes.by_pid.contains_key(pid));
        let sure = given.pid.or(known).or_else(only);
        if sure.is_none() && self.site.samples.is_some() && self.jit_processes.len() > 1 {
            return self.nobodys.push((path.clone(), kind));
        }
        let Some(pid) = sure.or(outer) else {
            let why = "has no process ID; pass FILE@PID";
            return self.refused(path, kind, Pid(-1), Error::new(why));
        };
        // Text contains only some of the recorded processes, and a callgrind file only one.
        if self.processes.is_recording && !self.processes.by_pid.contains_key(&pid) {
            let said = format!(
                "not used: it is from process {pid}, which is not in the recording; pass FILE@PID to \
                                use it for another process"
            );
            self.warnings.push(Warning::new(said).in_file(path, None));
        }
        self.seen.insert(path.to_owned());
        let source = Source { inner, ..Source::new(path.to_owned(), kind, pid, opened) };
        // A file that the user named is used even if it seems to belong to another process; there is only a warning.
        if let Some(why) = self.core_is_of_another(&source) {
            self.warnings.push(Warning::new(why).in_file(&source.path, None));
        }
        self.add(source);
    }

    /// Adds ELF objects that the user placed (`--elf`): to every process with JIT memory, or to every process if none
    /// has any.
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

/// A hint if a file was passed with the option for another kind.
fn other_kind(kind: Kind, bytes: &[u8]) -> Option<&'static str> {
    let head = &bytes[..bytes.len().min(4096)];
    match kind {
        Kind::PerfMap if jitdump::sniff(head) => Some("is a jitdump, not a perf map; pass it with --jitdump"),
        Kind::JitDump if !jitdump::sniff(head) && perf_map::sniff(head) => {
            Some("is a perf map, not a jitdump; pass it with --perf-map")
        }
        _ => None,
    }
}
