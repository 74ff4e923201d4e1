//! The dumps, maps and logs that the user named, as they are looked up: there may be one for each of thousands of processes.

use crate::model::Pid;
use crate::sources::options::{GivenFile, SourceOptions};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::path::Path;

/// The dumps and maps that the user named, by what they are found by: an archive names one for each of its processes.
#[derive(Debug)]
pub(super) struct GivenFiles<'a> {
    paths: FxHashSet<&'a Path>,
    pub(super) dumps: GivenList<'a>,
    pub(super) maps: GivenList<'a>,
    /// The processes that dumps state in their headers, as far as they were looked at.
    pub(super) stated: RefCell<FxHashMap<&'a Path, Option<Pid>>>,
}

/// Files or directories of one option.
#[derive(Debug)]
pub(super) struct GivenList<'a> {
    files: &'a [GivenFile],
    /// The places in the list of those for a process.
    of: FxHashMap<Pid, Vec<usize>>,
    /// Those for any process.
    of_any: Vec<usize>,
}

impl<'a> GivenFiles<'a> {
    pub(super) fn new(options: &'a SourceOptions) -> Self {
        let SourceOptions { jitdump, perf_map, jit_log, .. } = options;
        let paths = jitdump.iter().chain(perf_map).chain(jit_log).map(|given| given.path.as_path()).collect();
        let (dumps, maps) = (GivenList::new(jitdump), GivenList::new(perf_map));
        Self { paths, dumps, maps, stated: RefCell::default() }
    }

    /// The path that the user typed which is the start of another one, the longest.
    pub(super) fn typed_part<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.ancestors().find(|part| self.paths.contains(part))
    }
}

impl<'a> GivenList<'a> {
    fn new(files: &'a [GivenFile]) -> Self {
        let mut list = Self { files, of: FxHashMap::default(), of_any: Vec::new() };
        for (at, given) in files.iter().enumerate() {
            match given.pid {
                Some(pid) => list.of.entry(pid).or_default().push(at),
                None => list.of_any.push(at),
            }
        }
        list
    }

    /// Those that may be of a process, in the order of the list.
    pub(super) fn meant_for(&self, pid: Pid, is_shared: bool) -> Vec<&'a GivenFile> {
        let of_any = if is_shared { &[][..] } else { &self.of_any };
        let mut places: Vec<usize> = self.of.get(&pid).into_iter().flatten().chain(of_any).copied().collect();
        places.sort_unstable();
        places.into_iter().map(|at| &self.files[at]).collect()
    }
}
