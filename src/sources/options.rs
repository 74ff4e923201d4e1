//! The places to look for names, and the files to trust.

use super::source_maps::options::{MapSearch, SourceMapOptions};
use crate::io::is_there;
use crate::model::process::Processes;
use crate::model::{Addr, Pid};
use crate::resolve::symbols::files::SearchOptions;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The places to look for names, and the files to trust. From the command line; the same flags for every command.
#[derive(Debug, Clone, Default)]
pub struct SourceOptions {
    /// `--jitdump PATH|DIR`: looked at before the runtimes' usual places.
    pub jitdump: Vec<GivenFile>,
    /// `--perf-map PATH|DIR`, the same.
    pub perf_map: Vec<GivenFile>,
    /// `--jit-log PATH|DIR`: engines' logs, the same.
    pub jit_log: Vec<GivenFile>,
    /// `--guest FILE`: ELF files of programs that an emulator runs.
    pub guest: Vec<PathBuf>,
    /// `--elf FILE@ADDR`: an ELF object placed at an address.
    pub elf: Vec<(PathBuf, Addr)>,
    /// `--map-pid INNER=OUTER`.
    pub map_pid: Vec<(Pid, Pid)>,
    /// `--source-maps`: which maps of generated scripts are used.
    pub source_maps: SourceMapOptions,
    /// `-f`: use files of other owners too.
    pub force: bool,
    /// The places of files that ran: maps do not name the functions that these files name.
    pub search: SearchOptions,
}

/// A file or directory that the user named: `PATH`, or `PATH@PID` for one process of the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenFile {
    /// The path.
    pub path: PathBuf,
    /// Its process, by the recording's number, if that was given.
    pub pid: Option<Pid>,
}

impl GivenFile {
    /// As typed. A file whose own name ends like that is meant as it is.
    pub fn parse(text: &OsStr) -> Self {
        let path = Path::new(text);
        let parts = text.to_str().and_then(|text| text.rsplit_once('@'));
        let parts = parts.and_then(|(path, pid)| Some((path, pid.parse().ok().filter(|pid| *pid >= 0)?)));
        match parts.filter(|_| !is_there(path)) {
            Some((path, pid)) => Self { path: path.into(), pid: Some(Pid(pid)) },
            None => Self { path: path.to_owned(), pid: None },
        }
    }
}

impl<T: Into<PathBuf>> From<T> for GivenFile {
    fn from(path: T) -> Self {
        Self { path: path.into(), pid: None }
    }
}

impl SourceOptions {
    /// True if the user named a dump, a map or a log.
    pub fn names_files(&self) -> bool {
        !(self.jitdump.is_empty() && self.perf_map.is_empty() && self.jit_log.is_empty())
    }

    /// The places where scripts and their maps are looked for. `beside` is the directory of the input.
    pub(crate) fn map_search<'a>(&'a self, beside: Option<&'a Path>) -> MapSearch<'a> {
        let Self { source_maps: options, search, force, .. } = self;
        MapSearch { options, symfs: &search.symfs, debug_dirs: &search.debug_dirs, beside, force: *force }
    }

    /// The recording's number of a process that calls itself `inner`, if the user said so.
    pub(super) fn outer_of(&self, inner: Pid) -> Option<Pid> {
        self.map_pid.iter().find(|(from, _)| *from == inner).map(|(_, to)| *to)
    }
}

/// The number in the recording of a process that a dump or map calls `inner`: as the user said, else the same number if
/// that process may run JIT code, else the process whose namespace shows it so, else the same number.
pub(super) fn outer_pid(inner: Pid, processes: &Processes, options: &SourceOptions) -> Pid {
    let by_namespace = || {
        let mut same = processes.by_pid.iter().filter(|(_, process)| process.inner_pid == Some(inner));
        same.next().map(|(pid, _)| *pid)
    };
    let by_number = processes.by_pid.get(&inner).filter(|process| process.has_jit_memory).map(|_| inner);
    options.outer_of(inner).or(by_number).or_else(by_namespace).unwrap_or(inner)
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
        let of = |path: &str, pid| GivenFile { path: path.into(), pid };
        assert_eq!(given("maps/perf-1.map@4711"), of("maps/perf-1.map", Some(Pid(4711))));
        assert_eq!(given("a@b/perf-1.map"), of("a@b/perf-1.map", None));
        assert_eq!(given("perf-1.map@-3"), of("perf-1.map@-3", None));
        let odd = odd.to_str().unwrap();
        assert_eq!(given(odd), of(odd, None));
        assert_eq!(given(&format!("{odd}@8")), of(odd, Some(Pid(8))));
    }
}
