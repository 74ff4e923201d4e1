//! Finds jitdumps and perf maps that are named after their process.

use super::{Finder, Source, inner_pid, unasked_use_remark};
use crate::error::Warning;
use crate::model::Pid;
use crate::model::process::{FileId, Marker, Process, SharedMemory};
use crate::sources::account::Kind;
use crate::sources::live;
use crate::sources::trust::{Named, file_id};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

impl Finder<'_> {
    /// Processes with JIT memory for which no source has been found.
    pub(super) fn processes_without_source(&self) -> Vec<Pid> {
        self.processes_not_injected().filter(|pid| self.kinds_of(*pid).next().is_none()).collect()
    }

    /// Processes with JIT memory, except those whose code has been injected into the recording.
    pub(super) fn processes_not_injected(&self) -> impl Iterator<Item = Pid> {
        let pids = self.jit_processes.iter().copied();
        pids.filter(move |pid| !self.processes.by_pid.get(pid).is_some_and(Process::is_injected))
    }

    /// Finds the jitdump and the perf map of each process with JIT memory, by the process ID in their names.
    pub(super) fn find_by_pid(&mut self) {
        for &pid in self.jit_processes {
            let inner_pids = self.inner_pids(pid);
            for &inner in &inner_pids {
                self.find_dump_by_pid(pid, inner);
            }
            for &inner in &inner_pids {
                if self.find_map_by_pid(pid, inner) {
                    break;
                }
            }
        }
    }

    /// Finds perf maps and jitdumps of processes without recorded JIT memory: their code may be in files, in static
    /// buffers, or in memory whose mapping wasn't recorded. Few such processes have these files, so files that can't be
    /// used aren't reported.
    pub(super) fn find_quietly_by_pid(&mut self) {
        for (&pid, process) in &self.processes.by_pid {
            let is_candidate = pid.0 > 0 && !process.has_jit_memory && !process.is_injected();
            if !is_candidate || self.kinds_of(pid).next().is_some() {
                continue;
            }
            let inner = process.inner_pid.unwrap_or(pid);
            self.use_quietly(pid, inner, &format!("jit-{inner}.dump"), Kind::JitDump);
            self.use_quietly(pid, inner, &format!("perf-{inner}.map"), Kind::PerfMap);
        }
    }

    /// Uses a file called `name` as the source of a process, if the file exists and nothing suggests that it belongs to
    /// another process.
    fn use_quietly(&mut self, pid: Pid, inner: Pid, name: &str, kind: Kind) {
        if self.shared_pids.contains(&inner) {
            return;
        }
        let mut candidates = Vec::new();
        for directory in self.given_directories(pid, kind) {
            candidates.push((directory.join(name), Named::Directory));
        }
        for directory in self.site.beside.into_iter().chain([Path::new("/tmp")]) {
            candidates.push((directory.join(name), Named::Habit));
        }
        for (path, named) in candidates {
            if self.used_paths.contains(&path) {
                return;
            }
            let Some(Ok(opened)) = self.open(&path, named) else { continue };
            let source = Source { inner: Some(inner), ..Source::new(path.clone(), kind, pid, opened) };
            if self.explain_if_stale(&source).is_none() {
                self.used_paths.insert(path);
                self.add(source);
                return;
            }
        }
    }

    /// The IDs that a process may have in its own PID namespace, most likely ones first. The recorded ID is among them.
    pub(super) fn inner_pids(&self, pid: Pid) -> Vec<Pid> {
        let stated = self.options.map_pid.iter().filter(|(_, outer)| *outer == pid).map(|(inner, _)| *inner);
        let running = self.found.live.get(&pid).and_then(|live| live.inner);
        let recorded = self.processes.by_pid.get(&pid).and_then(|process| process.inner_pid);
        let mut all: Vec<Pid> = stated.chain(running).chain(recorded).collect();
        let is_known = !all.is_empty();
        // A copy of the file may have been renamed by somebody who knew the recorded ID.
        all.push(pid);
        if !is_known {
            // A child inherits its parent's marker, whose name contains the parent's ID.
            let in_markers = self.markers.of_process(pid).iter().filter_map(|marker| inner_pid(&marker.path));
            all.extend(in_markers.filter(|inner| !self.processes.by_pid.contains_key(inner)));
        }
        let mut seen = BTreeSet::new();
        all.retain(|pid| seen.insert(*pid));
        all
    }

    fn find_dump_by_pid(&mut self, pid: Pid, inner: Pid) {
        if self.kinds.contains(&(pid, Kind::JitDump)) {
            return;
        }
        let name = format!("jit-{inner}.dump");
        let name = OsStr::new(&name);
        let mut candidates = self.given_dump_candidates(name, Some(inner), pid);
        candidates.extend(self.path_in_container(pid, &Path::new("/tmp").join(name)));
        if !self.shared_pids.contains(&inner) {
            candidates.extend(self.dump_places(name));
        }
        if candidates.iter().any(|(path, _)| self.used_paths.contains(path)) {
            return;
        }
        self.use_first_good(&candidates, |path, contents| Source {
            inner: Some(inner),
            ..Source::new(path, Kind::JitDump, pid, contents)
        });
    }

    /// Finds the perf map of a process by the ID `inner` in its name. Returns whether the process has a perf map now.
    fn find_map_by_pid(&mut self, pid: Pid, inner: Pid) -> bool {
        if self.kinds.contains(&(pid, Kind::PerfMap)) {
            return true;
        }
        let name = format!("perf-{inner}.map");
        let in_tmp = Path::new("/tmp").join(&name);
        let is_shared = self.shared_pids.contains(&inner);
        let mut candidates: Vec<(PathBuf, Named)> = Vec::new();
        candidates.extend(self.path_in_container(pid, &in_tmp));
        for directory in self.given_map_directories(pid, is_shared) {
            candidates.push((directory.join(&name), Named::Directory));
        }
        if !is_shared {
            candidates.extend(self.site.beside.map(|input_dir| (input_dir.join(&name), Named::Habit)));
            candidates.push((in_tmp, Named::Habit));
        }
        self.use_first_good(&candidates, |path, contents| Source {
            inner: Some(inner),
            ..Source::new(path, Kind::PerfMap, pid, contents)
        })
    }
}

/// IDs that don't identify a process: each of two containers has its process 1, and both wrote `/tmp/jit-1.dump`. The
/// name of such a file doesn't say which of them it belongs to; only its location or contents do.
impl Finder<'_> {
    /// Finds IDs that several processes have in their own PID namespaces. Processes whose markers are the same file
    /// count as one, because they are forks of the process that wrote it.
    pub(super) fn find_shared_pids(&self) -> BTreeSet<Pid> {
        /// A claim to an ID: by all processes with the same marker, or by one process without a marker.
        #[derive(PartialEq, Eq, PartialOrd, Ord)]
        enum Claimant {
            Marker(FileId),
            Process(Pid),
        }
        let mut claims: BTreeMap<Pid, BTreeSet<Claimant>> = BTreeMap::new();
        for &pid in self.jit_processes {
            for inner in self.inner_pids(pid) {
                if self.jit_processes.binary_search(&inner).is_ok() {
                    continue;
                }
                let claimant = match self.markers.file_with_pid_in_name(pid, inner) {
                    Some(file) => Claimant::Marker(file),
                    None => Claimant::Process(pid),
                };
                claims.entry(inner).or_default().insert(claimant);
            }
        }
        claims.into_iter().filter(|(_, claimants)| claimants.len() > 1).map(|(inner, _)| inner).collect()
    }

    /// Warns if the file at a marker's path isn't the one that was mapped: it may have been overwritten since.
    pub(super) fn warn_if_replaced(&mut self, marker: &Marker) {
        let Some(source) = self.found.files.last().filter(|source| source.path == marker.path) else { return };
        let (Some(about), Some(recorded)) = (&source.about, marker.file) else { return };
        let found = file_id(about);
        // Inode numbers can only be compared on the same device.
        let is_same_device = (found.major, found.minor) == (recorded.major, recorded.minor);
        if is_same_device && found.inode != recorded.inode {
            let message = format!(
                "is not the file that process {} had mapped (its inode differs); it may be a copy, or from a later run",
                marker.pid
            );
            self.warnings.push(Warning::new(message).in_file(&marker.path, None));
        }
    }
}

/// Workers that a server forked before the recording began, as in PHP-FPM. The recording doesn't say whose children
/// they are, but they run the server's JIT code in shared memory. The perf map for that code is named after the
/// server's process.
impl Finder<'_> {
    /// Finds perf maps that are named after a running ancestor of a recorded process and name code in memory that the
    /// two share.
    pub(super) fn use_maps_of_parents(&mut self) {
        let Some(proc) = self.site.proc else { return };
        for (pid, memory) in self.sharing_processes_without_map() {
            if !self.found.live.contains_key(&pid) {
                continue;
            }
            let parents = live::find_parents_sharing(proc, pid, memory);
            if let Some(parent) = parents.into_iter().find(|parent| self.find_map_by_pid(pid, *parent))
                && let Some(source) = self.found.files.last_mut()
            {
                let why = format!("which shares its JIT memory with its parent, process {parent}");
                source.remark = Some(unasked_use_remark(&source.path, pid, &why));
            }
        }
    }

    /// Uses perf maps that were found for one process also for other processes that share its JIT memory.
    pub(super) fn use_maps_of_shared_memory(&mut self) {
        for (pid, memory) in self.sharing_processes_without_map() {
            let mut maps = self.found.files.iter().filter(|source| source.kind == Kind::PerfMap);
            if let Some(map) = maps.find(|map| self.shared_memory_of(map.pid) == Some(memory)) {
                let why = format!("which shares its JIT memory with process {}", map.pid);
                let remark = Some(unasked_use_remark(&map.path, pid, &why));
                let shared = Source::new(map.path.clone(), map.kind, pid, map.contents());
                let shared = Source { inner: map.inner, remark, ..shared };
                self.add(shared);
            }
        }
    }

    /// Processes without a perf map whose JIT memory may be shared with other processes, and that memory.
    fn sharing_processes_without_map(&self) -> Vec<(Pid, SharedMemory)> {
        let pids = self.jit_processes.iter().filter(|pid| !self.kinds.contains(&(**pid, Kind::PerfMap)));
        pids.filter_map(|&pid| Some((pid, self.shared_memory_of(pid)?))).collect()
    }

    fn shared_memory_of(&self, pid: Pid) -> Option<SharedMemory> {
        let process = self.processes.by_pid.get(&pid).filter(|process| !process.is_injected())?;
        process.shared_jit_memory()
    }
}
