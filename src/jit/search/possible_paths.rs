//! Decides at which paths sources may be. If a name contains only the process ID, its paths can be tried one by one;
//! for other names, directories are listed.

use super::markers::inner_pid;
use super::scene::Scene;
use super::steps::{Candidate, Clue, NamedPath};
use crate::io;
use crate::io::door;
use crate::jit::account::Kind;
use crate::jit::trust::{Named, file_id};
use crate::model::Pid;
use crate::model::process::Marker;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

impl<'a> Scene<'a> {
    /// All paths at which the file that a candidate describes may be, in order of precedence.
    pub(super) fn possible_paths(&self, candidate: &Candidate<'a>) -> Vec<NamedPath> {
        let Candidate { kind, pid, inner, .. } = *candidate;
        // Files are named after the ID that the process has in its own PID namespace.
        let inner = inner.unwrap_or(pid);
        match &candidate.clue {
            Clue::Marker(marker) => self.paths_of_marked_dump(marker),
            Clue::JitMemory | Clue::Parent if kind == Kind::PerfMap => self.paths_of_map(pid, inner),
            Clue::JitMemory | Clue::Parent => self.paths_of_dump(pid, inner),
            Clue::Unexpected => self.paths_of_unexpected_file(pid, inner, kind),
            Clue::Log(named_path) | Clue::Core(named_path) => vec![named_path.clone()],
        }
    }

    /// The possible paths of a jitdump that a process mapped as its marker, in order of precedence.
    fn paths_of_marked_dump(&self, marker: &Marker) -> Vec<NamedPath> {
        let Some(name) = marker.path.file_name() else { return Vec::new() };
        // A file that the user named takes precedence over the recorded path.
        let mut paths = self.given_dumps(name, inner_pid(&marker.path), marker.pid);
        paths.extend(self.path_in_container(marker.pid, &marker.path));
        paths.push(NamedPath::new(&marker.path, Named::Marker));
        paths.extend(self.usual_paths_of_dump(name));
        // If several processes mapped different files at this path, a path only counts if the file there is the one
        // with the marker's inode, or if the path is in the process's own container, where it isn't ambiguous.
        if self.markers.is_contested(marker) {
            paths.retain(|named_path| {
                matches!(named_path.named, Named::Inside(_)) || self.is_marker_file(named_path, marker)
            });
        }
        paths
    }

    /// The paths at which a process's jitdump may be if the process mapped no marker, in order of precedence. `inner`
    /// is the process's ID in its own PID namespace.
    fn paths_of_dump(&self, pid: Pid, inner: Pid) -> Vec<NamedPath> {
        let name = file_name(Kind::JitDump, inner);
        let mut paths = self.given_dumps(&name, Some(inner), pid);
        paths.extend(self.path_in_container(pid, &Path::new("/tmp").join(&name)));
        if !self.shared_pids.contains(&inner) {
            paths.extend(self.usual_paths_of_dump(&name));
        }
        paths
    }

    /// The paths at which a process's perf map may be, in order of precedence. `inner` is the process's ID in its own
    /// PID namespace.
    fn paths_of_map(&self, pid: Pid, inner: Pid) -> Vec<NamedPath> {
        let name = file_name(Kind::PerfMap, inner);
        let in_tmp = Path::new("/tmp").join(&name);
        let is_shared = self.shared_pids.contains(&inner);
        let mut paths = Vec::new();
        for directory in self.given_files.maps.directories_for(pid, is_shared) {
            paths.push(NamedPath::new(directory.join(&name), Named::Directory));
        }
        paths.extend(self.path_in_container(pid, &in_tmp));
        // If several processes have this ID, each in its own container, a file outside of the containers may be from
        // any of them.
        if !is_shared {
            paths.extend(self.site.input_dir.map(|input_dir| NamedPath::new(input_dir.join(&name), Named::Convention)));
            paths.push(NamedPath::new(in_tmp, Named::Convention));
        }
        paths
    }

    /// The paths at which a process's perf map or jitdump may be if no JIT memory of the process was recorded, in order
    /// of precedence.
    fn paths_of_unexpected_file(&self, pid: Pid, inner: Pid, kind: Kind) -> Vec<NamedPath> {
        let name = file_name(kind, inner);
        let given_list = if kind == Kind::PerfMap { &self.given_files.maps } else { &self.given_files.dumps };
        let mut paths = Vec::new();
        // The ID isn't shared (`false`): if several processes have it in their own namespaces, `unexpected_files` plans
        // nothing for it.
        for directory in given_list.directories_for(pid, false) {
            paths.push(NamedPath::new(directory.join(&name), Named::Directory));
        }
        for directory in self.site.input_dir.into_iter().chain([Path::new("/tmp")]) {
            paths.push(NamedPath::new(directory.join(&name), Named::Convention));
        }
        paths
    }

    /// The paths at which a jitdump with this name may be if neither the user nor the recording states its path: in the
    /// input's directory and the usual directories.
    fn usual_paths_of_dump(&self, name: &OsStr) -> impl Iterator<Item = NamedPath> {
        let of_agents = self.directories_of_agents.get_or_init(directories_of_agents);
        let usual = [Path::new("/tmp"), Path::new(".")].into_iter().chain(of_agents.iter().map(PathBuf::as_path));
        let directories = self.site.input_dir.into_iter().chain(usual);
        directories.map(move |directory| NamedPath::new(directory.join(name), Named::Convention))
    }

    /// The path at which jitgraft can open a file that is in the container of a process. `path` is the file's path
    /// inside the container. `None` if the process isn't running, or has the same root directory as jitgraft.
    fn path_in_container(&self, pid: Pid, path: &Path) -> Option<NamedPath> {
        let live = self.live.get(&pid).filter(|live| live.has_own_files)?;
        Some(NamedPath::new(live.path_from_outside(path), Named::Inside(pid)))
    }

    /// True if the file at this path is the one that the process mapped as its marker: device and inode are the same.
    fn is_marker_file(&self, NamedPath { path, named }: &NamedPath, marker: &Marker) -> bool {
        let Some(recorded) = marker.file else { return false };
        self.door(path, *named).look(path).is_some_and(|about| file_id(&about) == recorded)
    }

    /// Directories to list for logs and core dumps: those that the user named, the input's, and the `usual` ones.
    pub(super) fn log_directories(&self, usual: &[&'static str]) -> Vec<NamedPath> {
        let mut directories = Vec::new();
        for given in &self.options.jit_log {
            if io::is_directory(&given.path) {
                directories.push(listed_directory(&given.path, Named::Directory));
            }
        }
        directories.extend(self.site.input_dir.map(|input_dir| listed_directory(input_dir, Named::Convention)));
        directories.extend(usual.iter().map(|path| listed_directory(Path::new(path), Named::Convention)));
        directories
    }

    /// Directories to list for files that are matched by their contents.
    pub(super) fn orphan_directories(&self) -> Vec<NamedPath> {
        let mut directories = Vec::new();
        for given in self.options.given_files() {
            if io::is_directory(&given.path) {
                directories.push(listed_directory(&given.path, Named::Directory));
            }
        }
        directories.extend(self.site.input_dir.map(|input_dir| listed_directory(input_dir, Named::Convention)));
        directories.push(NamedPath::new("/tmp", Named::Convention));
        directories
    }
}

/// The name of a process's jitdump or perf map. `inner` is the process's ID in its own PID namespace.
fn file_name(kind: Kind, inner: Pid) -> OsString {
    match kind {
        Kind::PerfMap => format!("perf-{inner}.map").into(),
        _ => format!("jit-{inner}.dump").into(),
    }
}

/// A directory that will be listed. An empty path means the current directory.
fn listed_directory(path: &Path, named: Named) -> NamedPath {
    NamedPath::new(if path.as_os_str().is_empty() { Path::new(".") } else { path }, named)
}

/// The directories in which jitdumps of perf's JVMTI agent and of LLVM may be: `$JITDUMPDIR` and the home directory
/// themselves, and the directories that the agent and LLVM create for each run. These are in [`DUMPS`], below
/// `$JITDUMPDIR`, the home directory or `/tmp`.
fn directories_of_agents() -> Vec<PathBuf> {
    let roots = ["JITDUMPDIR", "HOME"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let mut directories = Vec::new();
    for root in roots {
        directories.push(root.clone());
        directories.extend(subdirectories(&root.join(DUMPS)));
    }
    directories.extend(subdirectories(&Path::new("/tmp").join(DUMPS)));
    directories
}

/// Where perf's JVMTI agent and LLVM create a directory for each run: relative to `$JITDUMPDIR`, the home directory or
/// `/tmp`.
const DUMPS: &str = ".debug/jit";

fn subdirectories(path: &Path) -> Vec<PathBuf> {
    let entries = door::Named::Convention.door(false).entries(path, |_| true).into_iter();
    let mut found: Vec<PathBuf> =
        entries.filter(|(_, about)| about.is_dir()).map(|(name, _)| path.join(name)).collect();
    // File systems list names in any order; sort them so that the newest come last.
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jit::engine_logs::LogId;
    use crate::runtimes::RUNTIMES;

    #[test]
    fn no_runtime_leaves_its_files_where_nobody_looks() {
        // Must match `usual_paths_of_dump`, `paths_of_map` and `logs_named_by_pid`; `DIR` is one that the user must
        // name.
        let for_dumps = ["/tmp/jit-", "/tmp/.debug/jit/", "./", "$JITDUMPDIR/.debug/jit/", "~/.debug/jit/", "DIR/"];
        let for_maps = ["/tmp/"];
        let for_logs = ["/tmp/", "./"];
        for runtime in RUNTIMES {
            for file in runtime.switches.iter().flat_map(|switch| switch.leaves) {
                let base = Path::new(file).file_name().unwrap().to_str().unwrap();
                let base = base.replace('*', "0x1f").replace("TID", "78").replace("PID", "77");
                let number = inner_pid(Path::new(&base));
                let (paths, number) = if Path::new(&base).extension() == Some(OsStr::new("map")) {
                    (&for_maps[..], number)
                } else if LogId::find_by_name(&base).next().is_some() {
                    (&for_logs[..], LogId::find_by_name(&base).find_map(|(_, pid)| pid.map(Pid)))
                } else {
                    (&for_dumps[..], number)
                };
                assert!(paths.iter().any(|named_path| file.starts_with(named_path)), "{}: {file}", runtime.name);
                let tells_none = LogId::find_by_name(&base).any(|(_, pid)| pid.is_none());
                assert!(tells_none || number == Some(Pid(77)), "{}: {file}", runtime.name);
            }
        }
    }
}
