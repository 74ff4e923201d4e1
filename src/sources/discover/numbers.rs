//! Finds jitdumps and perf maps by the process ID in their names.

use super::{Finder, Source, inner_pid, used_unasked};
use crate::error::Warning;
use crate::model::Pid;
use crate::model::process::{FileId, Marker, Process, SharedMemory};
use crate::sources::account::Kind;
use crate::sources::live;
use crate::sources::trust::{Named, file_id};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

impl Finder<'_> {
    /// Processes with JIT memory that have no source at all.
    pub(super) fn without_sources(&self) -> Vec<Pid> {
        self.not_injected().filter(|pid| self.kinds_of(*pid).next().is_none()).collect()
    }

    /// Processes with JIT memory, except those whose code has been injected into the recording.
    pub(super) fn not_injected(&self) -> impl Iterator<Item = Pid> {
        let is_injected = |pid: &Pid| self.processes.by_pid.get(pid).is_some_and(Process::is_injected);
        self.jit_processes.iter().copied().filter(move |pid| !is_injected(pid))
    }

    /// Finds jitdumps and perf maps of processes with JIT memory by process ID.
    pub(super) fn by_number(&mut self) {
        for &pid in self.jit_processes {
            let inner_pids = self.inner_pids(pid);
            for &inner in &inner_pids {
                self.dump_by_number(pid, inner);
            }
            for &inner in &inner_pids {
                if self.map_by_number(pid, inner) {
                    break;
                }
            }
        }
    }

    /// Finds perf maps and jitdumps of processes without visible JIT memory: their code may be in files, in static
    /// buffers, or in memory whose mapping wasn't recorded. Few processes have such files, so unusable ones aren't
    /// reported.
    pub(super) fn by_number_elsewhere(&mut self) {
        let is_user = |pid: &Pid| pid.0 > 0;
        let others: Vec<Pid> = self.processes.by_pid.keys().copied().filter(is_user).collect();
        for pid in others {
            let process = &self.processes.by_pid[&pid];
            if process.has_jit_memory || process.is_injected() || self.kinds_of(pid).next().is_some() {
                continue;
            }
            let inner = process.inner_pid.unwrap_or(pid);
            for (base, kind) in
                [(format!("jit-{inner}.dump"), Kind::JitDump), (format!("perf-{inner}.map"), Kind::PerfMap)]
            {
                self.take_quietly(pid, inner, &base, kind);
            }
        }
    }

    /// Uses a file named after a process if it exists and nothing suggests that it belongs to another process.
    fn take_quietly(&mut self, pid: Pid, inner: Pid, base: &str, kind: Kind) {
        if self.shared.contains(&inner) {
            return;
        }
        let given = self.given_directories(pid, kind).into_iter().map(|dir| (dir.join(base), Named::Directory));
        let usual = self.site.beside.into_iter().chain([Path::new("/tmp")]).map(|dir| (dir.join(base), Named::Habit));
        let candidates: Vec<_> = given.chain(usual).collect();
        for (path, named) in candidates {
            if self.seen.contains(&path) {
                return;
            }
            let Some(Ok(opened)) = self.open(&path, named) else { continue };
            let source = Source { inner: Some(inner), ..Source::new(path.clone(), kind, pid, opened) };
            if self.is_of_another(&source).is_none() {
                self.seen.insert(path);
                self.add(source);
                return;
            }
        }
    }

    /// The IDs that a process may have in its own namespace, most likely first.
    pub(super) fn inner_pids(&self, pid: Pid) -> Vec<Pid> {
        let said = self.options.map_pid.iter().filter(|(_, outer)| *outer == pid).map(|(inner, _)| *inner);
        let namespace = self.processes.by_pid.get(&pid).and_then(|process| process.inner_pid);
        // A child inherits its parent's marker, whose name contains the parent's ID.
        let own = self.markers.of(pid).iter();
        let marker =
            own.filter_map(|marker| inner_pid(&marker.path)).filter(|inner| !self.processes.by_pid.contains_key(inner));
        let running = self.found.live.get(&pid).and_then(|live| live.inner);
        let mut all: Vec<Pid> = said.chain(running).chain(namespace).collect();
        let is_told = !all.is_empty();
        // Somebody who knew the outer ID may have renamed a copy.
        all.push(pid);
        if !is_told {
            all.extend(marker);
        }
        let mut seen = BTreeSet::new();
        all.retain(|pid| seen.insert(*pid));
        all
    }

    fn dump_by_number(&mut self, pid: Pid, inner: Pid) {
        let base = format!("jit-{inner}.dump");
        let base = OsStr::new(&base);
        let inside = self.inside(pid, &Path::new("/tmp").join(base));
        let asked = self.asked(base, Some(inner), pid).into_iter();
        let usual = self.dump_places(base).into_iter().filter(|_| !self.shared.contains(&inner));
        let candidates: Vec<_> = asked.chain(inside).chain(usual).collect();
        let has_one = self.kinds.contains(&(pid, Kind::JitDump));
        if has_one || candidates.iter().any(|(path, _)| self.seen.contains(path)) {
            return;
        }
        let inner = Some(inner);
        self.first_good(&candidates, |path, contents| Source {
            inner,
            ..Source::new(path, Kind::JitDump, pid, contents)
        });
    }

    fn map_by_number(&mut self, pid: Pid, inner: Pid) -> bool {
        let base = format!("perf-{inner}.map");
        let beside = self.site.beside.map(|dir| (dir.join(&base), Named::Habit));
        let inside = self.inside(pid, &Path::new("/tmp").join(&base));
        let is_shared = self.shared.contains(&inner);
        let asked = self.map_directories(pid, is_shared).map(|path| (path.join(&base), Named::Directory));
        let usual = [(Path::new("/tmp").join(&base), Named::Habit)];
        let by_name = beside.into_iter().chain(usual).filter(|_| !is_shared);
        let candidates: Vec<_> = inside.into_iter().chain(asked).chain(by_name).collect();
        let named = self.kinds.contains(&(pid, Kind::PerfMap));
        let inner = Some(inner);
        named
            || self.first_good(&candidates, |path, contents| Source {
                inner,
                ..Source::new(path, Kind::PerfMap, pid, contents)
            })
    }
}

/// IDs that don't identify a process: each of two containers has its process 1, and both wrote `/tmp/jit-1.dump`. The
/// name of such a file doesn't say which of them it belongs to; only its location or contents do.
impl Finder<'_> {
    /// IDs that several processes have in their own namespaces. Processes whose markers are the same file count once,
    /// because they are children of the process that wrote it.
    pub(super) fn shared_numbers(&self) -> BTreeSet<Pid> {
        let mut claims: BTreeMap<Pid, BTreeSet<(Option<FileId>, Pid)>> = BTreeMap::new();
        for &pid in self.jit_processes {
            for inner in
                self.inner_pids(pid).into_iter().filter(|inner| self.jit_processes.binary_search(inner).is_err())
            {
                let file = self.markers.file(pid, inner);
                let claimant = if file.is_some() { Pid(0) } else { pid };
                claims.entry(inner).or_default().insert((file, claimant));
            }
        }
        claims.into_iter().filter(|(_, claimants)| claimants.len() > 1).map(|(inner, _)| inner).collect()
    }

    /// Warns if the file at a marker's path isn't the one that was mapped: it may have been overwritten since.
    pub(super) fn say_if_replaced(&mut self, marker: &Marker) {
        let Some(source) = self.found.files.last().filter(|source| source.path == marker.path) else { return };
        let (own, recorded) = (source.about.as_ref().map(file_id), marker.file);
        let same_device =
            |(own, recorded): &(FileId, FileId)| (own.major, own.minor) == (recorded.major, recorded.minor);
        if own.zip(recorded).filter(same_device).is_some_and(|(own, recorded)| own.inode != recorded.inode) {
            let said = format!(
                "is not the file that process {} had mapped (its inode differs); it may be a copy, or from a later run",
                marker.pid
            );
            self.warnings.push(Warning::new(said).in_file(&marker.path, None));
        }
    }
}

/// Workers that a server forked before the recording began, as in PHP-FPM. The recording doesn't say whose children
/// they are, but they run the server's JIT code in shared memory. The perf map for that code is named after the
/// server's process.
impl Finder<'_> {
    /// Uses perf maps of running processes for recorded children that share their JIT memory.
    pub(super) fn by_parent(&mut self) {
        let Some(proc) = self.site.proc else { return };
        for (pid, memory) in self.sharing_without_map() {
            if !self.found.live.contains_key(&pid) {
                continue;
            }
            let parents = live::parents_with(proc, pid, memory);
            if let Some(parent) = parents.into_iter().find(|parent| self.map_by_number(pid, *parent)) {
                let why = format!("which shares its JIT memory with its parent, process {parent}");
                let source = self.found.files.last_mut();
                source.into_iter().for_each(|source| source.remark = Some(used_unasked(&source.path, pid, &why)));
            }
        }
    }

    /// Uses perf maps for other processes, too, if they share the same JIT memory.
    pub(super) fn by_shared_memory(&mut self) {
        for (pid, memory) in self.sharing_without_map() {
            let has_it = |source: &&Source| source.kind == Kind::PerfMap && self.memory_of(source.pid) == Some(memory);
            if let Some(source) = self.found.files.iter().find(has_it) {
                let why = format!("which shares its JIT memory with process {}", source.pid);
                let remark = Some(used_unasked(&source.path, pid, &why));
                let (path, contents) = (source.path.clone(), source.contents());
                let source = Source { inner: source.inner, remark, ..Source::new(path, source.kind, pid, contents) };
                self.add(source);
            }
        }
    }

    /// Processes without a perf map that have JIT memory which they may share with others, and that memory.
    fn sharing_without_map(&self) -> Vec<(Pid, SharedMemory)> {
        let pids = self.jit_processes.iter().filter(|pid| !self.kinds.contains(&(**pid, Kind::PerfMap)));
        pids.filter_map(|&pid| Some((pid, self.memory_of(pid)?))).collect()
    }

    fn memory_of(&self, pid: Pid) -> Option<SharedMemory> {
        let process = self.processes.by_pid.get(&pid).filter(|process| !process.is_injected())?;
        process.shared_jit_memory()
    }
}
