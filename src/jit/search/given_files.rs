//! Lookup tables for the files and directories that the user named. If the recording is an archive, the files in it
//! count as named by the user, too: there may be one for each of thousands of processes.

use crate::io::is_directory;
use crate::jit::options::{GivenFile, SourceOptions};
use crate::model::Pid;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// Lookup tables for the jitdumps, perf maps and logs that the user named. There may be thousands of files.
#[derive(Debug)]
pub(super) struct GivenFiles<'a> {
    /// The paths of all files and directories that the user named with `--jitdump`, `--perf-map` or `--jit-log`.
    paths: FxHashSet<&'a Path>,
    pub(super) dumps: GivenList<'a>,
    pub(super) maps: GivenList<'a>,
    /// The process IDs in the headers of jitdumps that have been read so far; `None` for unreadable files.
    pub(super) pids_in_dumps: RefCell<FxHashMap<PathBuf, Option<Pid>>>,
}

/// The files and directories passed with one option.
#[derive(Debug)]
pub(super) struct GivenList<'a> {
    files: &'a [GivenFile],
    /// For each process that the user named files for, the indices of these files in `files`.
    by_pid: FxHashMap<Pid, Vec<usize>>,
    /// The indices in `files` of the files that the user named for no particular process.
    for_any: Vec<usize>,
}

impl<'a> GivenFiles<'a> {
    pub(super) fn new(options: &'a SourceOptions) -> Self {
        Self {
            paths: options.given_files().map(|given| given.path.as_path()).collect(),
            dumps: GivenList::new(&options.jitdump),
            maps: GivenList::new(&options.perf_map),
            pids_in_dumps: RefCell::default(),
        }
    }

    /// The part of `path` that the user typed: the whole path if the user named this file, or else the innermost
    /// directory in it that the user named. `None` if the user named neither.
    pub(super) fn typed_part<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.ancestors().find(|part| self.paths.contains(part))
    }
}

impl<'a> GivenList<'a> {
    /// Divides the files into those that the user named for a certain process (`FILE@PID`), and the others.
    fn new(files: &'a [GivenFile]) -> Self {
        let mut list = Self { files, by_pid: FxHashMap::default(), for_any: Vec::new() };
        for (index, given) in files.iter().enumerate() {
            match given.pid {
                Some(pid) => list.by_pid.entry(pid).or_default().push(index),
                None => list.for_any.push(index),
            }
        }
        list
    }

    /// The files that may belong to process `pid`, in the order of the options: those that the user named for this
    /// process, and those that the user named for no particular process. The latter are left out if `is_shared`: then
    /// several processes have the same ID in their own namespaces, and a file with this ID may be from any of them.
    pub(super) fn files_for(&self, pid: Pid, is_shared: bool) -> Vec<&'a GivenFile> {
        let mut indices: Vec<usize> = self.by_pid.get(&pid).cloned().unwrap_or_default();
        if !is_shared {
            indices.extend(&self.for_any);
        }
        indices.sort_unstable();
        indices.into_iter().map(|index| &self.files[index]).collect()
    }

    /// The directories among [`files_for`](Self::files_for).
    pub(super) fn directories_for(&self, pid: Pid, is_shared: bool) -> impl Iterator<Item = &'a Path> {
        let given = self.files_for(pid, is_shared).into_iter();
        given.map(|given| given.path.as_path()).filter(|path| is_directory(path))
    }
}
