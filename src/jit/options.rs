//! Options for finding sources of names.

use super::source_maps::options::{MapSearch, SourceMapOptions};
use crate::io::is_there;
use crate::model::process::Processes;
use crate::model::{Addr, Pid};
use crate::symbolize::symbols::files::SearchOptions;
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where to look for names, and which files to trust. Set on the command line, with the same flags for every command.
#[derive(Debug, Clone, Default)]
pub struct SourceOptions {
    /// `--jitdump PATH|DIR`: jitdumps to try before the usual places.
    pub jitdump: Vec<GivenFile>,
    /// `--perf-map PATH|DIR`: perf maps to try before the usual places.
    pub perf_map: Vec<GivenFile>,
    /// `--jit-log PATH|DIR`: logs of runtimes to try before the usual places.
    pub jit_log: Vec<GivenFile>,
    /// `--guest FILE`: ELF files of a program that ran in an emulator, or of its libraries.
    pub guest: Vec<PathBuf>,
    /// `--elf FILE@ADDR`: ELF objects and the addresses where they were loaded.
    pub elf: Vec<(PathBuf, Addr)>,
    /// `--map-pid INNER=OUTER`: a process's ID in its own PID namespace, and its ID in the recording.
    pub map_pid: Vec<(Pid, Pid)>,
    /// `--source-maps`: which source maps to use.
    pub source_maps: SourceMapOptions,
    /// `-f`: trust files of other users.
    pub force: bool,
    /// Where to find the programs and libraries that ran. Perf maps don't name functions for which these have symbols.
    pub search: SearchOptions,
}

/// A file or directory from the user: `PATH`, or `PATH@PID` for one process of the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenFile {
    /// The path.
    pub path: PathBuf,
    /// The recorded ID of the process that the file belongs to; `None` if the user didn't state it.
    pub pid: Option<Pid>,
}

impl GivenFile {
    /// Parses `PATH` or `PATH@PID`. If a file exists whose name is the whole argument, `@PID` is part of the name.
    pub fn parse(text: &OsStr) -> Self {
        let whole = Path::new(text);
        if let Some((path, pid)) = text.to_str().and_then(|text| text.rsplit_once('@'))
            && let Ok(pid) = pid.parse::<i32>()
            && pid >= 0
            && !is_there(whole)
        {
            return Self { path: path.into(), pid: Some(Pid(pid)) };
        }
        Self { path: whole.to_owned(), pid: None }
    }
}

impl<T: Into<PathBuf>> From<T> for GivenFile {
    fn from(path: T) -> Self {
        Self { path: path.into(), pid: None }
    }
}

impl SourceOptions {
    /// The jitdumps, perf maps and logs that the user named, and directories of them.
    pub(super) fn given_files(&self) -> impl Iterator<Item = &GivenFile> {
        self.jitdump.iter().chain(&self.perf_map).chain(&self.jit_log)
    }

    /// True if the user named a jitdump, perf map or log.
    pub fn names_files(&self) -> bool {
        self.given_files().next().is_some()
    }

    /// Where to look for scripts and their source maps. `input_dir` is the input's directory.
    pub(crate) fn map_search<'a>(&'a self, input_dir: Option<&'a Path>) -> MapSearch<'a> {
        let Self { source_maps: options, search, force, .. } = self;
        MapSearch { options, symfs: &search.symfs, debug_dirs: &search.debug_dirs, input_dir, force: *force }
    }

    /// The recorded ID of the process that has the ID `inner` in its own PID namespace, if the user stated it
    /// (`--map-pid`).
    pub(super) fn outer_of(&self, inner: Pid) -> Option<Pid> {
        self.map_pid.iter().find(|(from, _)| *from == inner).map(|(_, to)| *to)
    }
}

/// The recorded IDs of processes, by the IDs that they have in their own PID namespaces. Filled in when first needed.
/// If several processes have the same ID there, the lowest recorded ID counts.
#[derive(Debug, Default)]
pub(super) struct NamespacePids(OnceLock<FxHashMap<Pid, Pid>>);

impl NamespacePids {
    /// The recorded ID of the process that has the ID `inner` in its own PID namespace. If several have it, the
    /// lowest.
    fn find(&self, inner: Pid, processes: &Processes) -> Option<Pid> {
        let pids = self.0.get_or_init(|| {
            let mut pids = FxHashMap::default();
            for (pid, process) in &processes.by_pid {
                if let Some(inner) = process.inner_pid {
                    pids.entry(inner).or_insert(*pid);
                }
            }
            pids
        });
        pids.get(&inner).copied()
    }
}

/// The recorded ID of the process that a jitdump or perf map calls `inner`. It is the first of these that exists: the
/// ID that the user stated (`--map-pid`); `inner` itself, if the recorded process with this ID has JIT memory; the
/// process that has this ID in its own PID namespace; or `inner` itself after all. `in_namespaces` is a cache that is
/// filled in when processes are first looked up by their IDs in their own PID namespaces.
pub(super) fn outer_pid(
    inner: Pid,
    processes: &Processes,
    options: &SourceOptions,
    in_namespaces: &NamespacePids,
) -> Pid {
    if let Some(outer) = options.outer_of(inner) {
        return outer;
    }
    if processes.by_pid.get(&inner).is_some_and(|process| process.has_jit_memory) {
        return inner;
    }
    in_namespaces.find(inner, processes).unwrap_or(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_be_given_for_one_process() {
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join("perf@7");
        std::fs::write(&odd, b"").unwrap();
        let given = |text: &str| GivenFile::parse(OsStr::new(text));
        let file = |path: &str, pid| GivenFile { path: path.into(), pid };
        assert_eq!(given("maps/perf-1.map@4711"), file("maps/perf-1.map", Some(Pid(4711))));
        assert_eq!(given("a@b/perf-1.map"), file("a@b/perf-1.map", None));
        assert_eq!(given("perf-1.map@-3"), file("perf-1.map@-3", None));
        let odd = odd.to_str().unwrap();
        assert_eq!(given(odd), file(odd, None));
        assert_eq!(given(&format!("{odd}@8")), file(odd, Some(Pid(8))));
    }
}
