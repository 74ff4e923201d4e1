//! Lookup tables for the jitdumps, perf maps and logs that the user named. There may be one file for each of thousands
//! of processes.

use crate::model::Pid;
use crate::sources::options::{GivenFile, SourceOptions};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::path::Path;

/// The files that the user named with options. An archive of a recording adds one per recorded process.
#[derive(Debug)]
pub(super) struct GivenFiles<'a> {
    paths: FxHashSet<&'a Path>,
    pub(super) dumps: GivenList<'a>,
    pub(super) maps: GivenList<'a>,
    /// The process IDs in the headers of jitdumps that have been read so far; `None` for unreadable files.
    pub(super) pids_in_dumps: RefCell<FxHashMap<&'a Path, Option<Pid>>>,
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
        let SourceOptions { jitdump, perf_map, jit_log, .. } = options;
        let paths = jitdump.iter().chain(perf_map).chain(jit_log).map(|given| given.path.as_path()).collect();
        let (dumps, maps) = (GivenList::new(jitdump), GivenList::new(perf_map));
        Self { paths, dumps, maps, pids_in_dumps: RefCell::default() }
    }

    /// The longest path from the user that `path` equals or is inside of; `None` if there is none.
    pub(super) fn typed_part<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.ancestors().find(|part| self.paths.contains(part))
    }
}

impl<'a> GivenList<'a> {
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

    /// The files that may belong to a process, in the order of the options. If `is_shared`, several processes have this
    /// ID in their namespaces; then only files that the user named for this process.
    pub(super) fn files_for(&self, pid: Pid, is_shared: bool) -> Vec<&'a GivenFile> {
        let mut indices: Vec<usize> = self.by_pid.get(&pid).cloned().unwrap_or_default();
        if !is_shared {
            indices.extend(&self.for_any);
        }
        indices.sort_unstable();
        indices.into_iter().map(|index| &self.files[index]).collect()
    }
}
