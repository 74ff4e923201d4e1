//! What a search knows before it begins: the recorded processes, which of them are still running, and the files that
//! the user named.

use super::given_files::GivenFiles;
use super::markers::Markers;
use super::steps::NamedPath;
use crate::error::Result;
use crate::io;
use crate::io::door::{Door, Opened, Start};
use crate::jit::live::LiveProcess;
use crate::jit::options::{NamespacePids, SourceOptions, outer_pid};
use crate::jit::site::Site;
use crate::jit::trust::{Named, SOURCE};
use crate::model::Pid;
use crate::model::process::{Process, Processes};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What a search is based on. Doesn't change while the search runs.
pub(super) struct Scene<'a> {
    pub(super) processes: &'a Processes,
    pub(super) options: &'a SourceOptions,
    pub(super) site: &'a Site<'a>,
    /// Processes with memory for JIT code, sorted by ID.
    pub(super) jit_processes: Vec<Pid>,
    pub(super) markers: Markers<'a>,
    pub(super) given_files: GivenFiles<'a>,
    /// The recorded processes that are still running, by their recorded ID.
    pub(super) live: BTreeMap<Pid, LiveProcess>,
    /// For processes whose ID is in use again: why the process that has it now isn't the recorded one.
    pub(super) not_running: BTreeMap<Pid, String>,
    /// IDs that several processes have in their own namespaces, such as the process 1 of two containers.
    pub(super) shared_pids: BTreeSet<Pid>,
    /// The directories in which jitdumps of perf's JVMTI agent and of LLVM may be. Listed when first needed.
    pub(super) directories_of_agents: OnceCell<Vec<PathBuf>>,
    /// The recorded processes by their IDs in their own PID namespaces.
    in_namespaces: NamespacePids,
}

impl<'a> Scene<'a> {
    /// Collects the facts that the rounds of the search need.
    pub(super) fn new(processes: &'a Processes, options: &'a SourceOptions, site: &'a Site<'a>) -> Self {
        let has_jit_memory = processes.by_pid.iter().filter(|(_, process)| process.has_jit_memory);
        let mut scene = Self {
            processes,
            options,
            site,
            jit_processes: has_jit_memory.map(|(pid, _)| *pid).collect(),
            markers: Markers::new(processes),
            given_files: GivenFiles::new(options),
            live: BTreeMap::new(),
            not_running: BTreeMap::new(),
            shared_pids: BTreeSet::new(),
            directories_of_agents: OnceCell::new(),
            in_namespaces: NamespacePids::default(),
        };
        scene.find_running_processes();
        // `find_shared_pids` needs the IDs that running processes have in their own PID namespaces, so these processes
        // are found first.
        scene.shared_pids = scene.find_shared_pids();
        scene
    }

    /// Finds the processes that are still running, among those that have JIT memory or mapped a jitdump (a marker).
    fn find_running_processes(&mut self) {
        let with_marker = self.processes.markers.iter().map(|marker| marker.pid);
        let pids: BTreeSet<Pid> = self.jit_processes.iter().copied().chain(with_marker).collect();
        for pid in pids {
            match LiveProcess::find(pid, self.processes, self.site) {
                Some(Ok(live)) => _ = self.live.insert(pid, live),
                Some(Err(why)) => _ = self.not_running.insert(pid, why),
                None => {}
            }
        }
    }

    /// Converts the process ID `inner`, which a file states, to the ID of that process in the recording
    /// ([`outer_pid`]).
    pub(super) fn recorded_pid(&self, inner: Pid) -> Pid {
        outer_pid(inner, self.processes, self.options, &self.in_namespaces)
    }

    /// The recorded process with this ID.
    pub(super) fn process(&self, pid: Pid) -> Option<&'a Process> {
        self.processes.by_pid.get(&pid)
    }

    /// Processes with JIT memory, except those whose code has been injected into the recording.
    pub(super) fn processes_not_injected(&self) -> impl Iterator<Item = Pid> {
        let pids = self.jit_processes.iter().copied();
        pids.filter(|pid| !self.process(*pid).is_some_and(Process::is_injected))
    }

    /// Opens a file that may be a source; an error if its type, its owner or the links on the way to it forbid that.
    /// `None` if the file doesn't exist, or if its path is meant for another machine.
    pub(super) fn open(&self, NamedPath { path, named }: &NamedPath) -> Option<Result<Opened>> {
        if self.is_of_another_machine(path, *named) {
            return None;
        }
        match named {
            Named::Inside(pid) => self.live.get(pid)?.open(path, SOURCE, self.options.force),
            _ => self.door(path, *named).open(path, SOURCE),
        }
    }

    /// True if the recording is in an archive and the file isn't. The recording is then from another machine, whose
    /// files are in the archive, so a path that jitgraft chose or that the recording states doesn't mean a file on this
    /// machine.
    fn is_of_another_machine(&self, path: &Path, named: Named) -> bool {
        if !matches!(named, Named::Convention | Named::Marker) {
            return false;
        }
        self.site.input_dir.is_some_and(|archive| io::is_archive(archive) && !path.starts_with(archive))
    }

    /// The rules for opening a path. If it starts with a directory that the user typed, links on the way to that
    /// directory are followed.
    pub(super) fn door<'p>(&'p self, path: &'p Path, named: Named) -> Door<'p> {
        let start = match (self.given_files.typed_part(path), self.site.input_dir) {
            (Some(typed), _) => Start::Typed(typed),
            (None, Some(input_dir)) if path.starts_with(input_dir) => Start::Typed(input_dir),
            _ => Start::Here,
        };
        Door { named: named.to_door(), start, force: self.options.force }
    }
}
