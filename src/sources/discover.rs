//! Finds the dumps and maps of a recording's processes and opens them.
//!
//! | looked at, in order | jitdump | perf map |
//! |---|---|---|
//! | what the user named | `--jitdump` | `--perf-map` |
//! | as recorded | the path of the marker's mmap | – |
//! | beside the input | its base name, or `jit-PID.dump` | `perf-PID.map` |
//! | usual places | `/tmp`, the current directory, `$JITDUMPDIR` and `~/.debug/jit` | `/tmp` |
//!
//! Which runtime leaves what where is in the table of [`crate::model::runtimes`]; the usual places are all of them.
//!
//! A process without a marker is looked for by its number. What two processes share (a forked child inherits the
//! marker's mapping) is loaded once, for the one that wrote it.

use super::account::{Account, Kind, SourceState};
use super::options::{GivenFile, SourceOptions, outer_pid};
use super::trust::{self, Named};
use crate::error::{Error, Result, Warning, Warnings};
use crate::formats::{jitdump, perf_map};
use crate::io::Bytes;
use crate::model::process::{Marker, Process, Processes};
use crate::model::{Addr, Nanos, Pid};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The sources of a recording, opened but not yet read.
#[derive(Debug)]
pub struct Found {
    pub(super) files: Vec<Source>,
    pub(super) options: SourceOptions,
    /// Those that could not be opened.
    pub(super) failed: Vec<Account>,
}

/// One opened source.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// By the recording's number.
    pub(super) pid: Pid,
    /// The number in the file's name, by which the process knows itself.
    pub(super) inner: Option<Pid>,
    pub(super) bytes: Bytes,
    /// When its marker was mapped, if that was seen.
    pub(super) marker: Option<Nanos>,
    /// Where the object was placed.
    pub(super) addr: Addr,
}

impl Found {
    /// No sources, where none are wanted.
    pub fn none() -> Self {
        Self { files: Vec::new(), options: SourceOptions::default(), failed: Vec::new() }
    }
}

/// Finds and opens the sources. `beside` is the directory of the input.
pub fn find(processes: &Processes, options: &SourceOptions, beside: Option<&Path>, warnings: &mut Warnings) -> Found {
    let mut finder = Finder {
        processes,
        options,
        beside,
        found: Found { files: Vec::new(), options: options.clone(), failed: Vec::new() },
        seen: BTreeSet::new(),
        warnings,
    };
    finder.marked();
    finder.named_by_user();
    finder.by_number();
    finder.placed();
    finder.found
}

/// What a file is that was named as the one kind and is of the other.
fn other_kind(kind: Kind, bytes: &[u8]) -> Option<&'static str> {
    let head = &bytes[..bytes.len().min(4096)];
    match kind {
        Kind::PerfMap if jitdump::sniff(head) => Some("is a jitdump, and no perf map: name it by --jitdump"),
        Kind::JitDump if !jitdump::sniff(head) && perf_map::sniff(head) => {
            Some("is a perf map, and no jitdump: name it by --perf-map")
        }
        _ => None,
    }
}

struct Finder<'a> {
    processes: &'a Processes,
    options: &'a SourceOptions,
    beside: Option<&'a Path>,
    found: Found,
    /// What is open already: one path is not read twice.
    seen: BTreeSet<PathBuf>,
    warnings: &'a mut Warnings,
}

impl Finder<'_> {
    /// The dumps whose markers were mapped.
    fn marked(&mut self) {
        let mut markers: Vec<&Marker> = self.processes.markers.iter().collect();
        // The process that wrote a dump before those that inherited its mapping; the first mapping before a later one.
        let own = |marker: &Marker| {
            inner_pid(&marker.path).is_some_and(|inner| marker.pid == outer_pid(inner, self.processes, self.options))
        };
        markers.sort_by_key(|marker| (!own(marker), marker.offset));
        for marker in markers {
            let Some(base) = marker.path.file_name() else { continue };
            // What the user names now is meant, whatever lies at the recorded path by now.
            let mut candidates = self.asked(base, inner_pid(&marker.path), marker.pid);
            candidates.push((marker.path.clone(), Named::Marker));
            candidates.extend(self.dump_places(base));
            if candidates.iter().any(|(path, _)| self.seen.contains(path)) {
                continue;
            }
            let time = Some(marker.time).filter(|time| time.0 != 0);
            let source = |path, bytes| Source {
                path,
                kind: Kind::JitDump,
                pid: marker.pid,
                inner: inner_pid(&marker.path),
                bytes,
                marker: time,
                addr: Addr(0),
            };
            if !self.first_good(&candidates, source) {
                self.missing(marker, candidates);
            }
        }
    }

    /// What the user named that is, or may hold, a dump of that name, or is one of that process by its header.
    fn asked(&self, base: &OsStr, inner: Option<Pid>, pid: Pid) -> Vec<(PathBuf, Named)> {
        let force = self.options.force;
        let says = |path: &Path| {
            let bytes = trust::open(path, Named::User, force)?.ok()?;
            jitdump::JitDump::parse(&bytes).ok().map(|dump| Pid(dump.header.pid))
        };
        let is_it = |given: &GivenFile| {
            let path = &given.path;
            given.pid.is_some() || path.file_name() == Some(base) || inner.is_some() && says(path) == inner
        };
        let given = self.options.jitdump.iter().filter(|given| given.may_be_of(pid));
        let named = given.filter_map(|given| match given.path.is_dir() {
            true => Some(given.path.join(base)),
            false => is_it(given).then(|| given.path.clone()),
        });
        named.map(|path| (path, Named::User)).collect()
    }

    /// Where a dump of that name may lie besides.
    fn dump_places(&self, base: &OsStr) -> Vec<(PathBuf, Named)> {
        let beside = self.beside.map(|dir| (dir.join(base), Named::User));
        let usual = [PathBuf::from("/tmp"), PathBuf::from(".")].into_iter().chain(dump_directories());
        let usual = usual.map(|dir| (dir.join(base), Named::Habit));
        beside.into_iter().chain(usual).collect()
    }

    /// Opens the first candidate that is there and can be used. A bad one is warned of and the next is tried.
    fn first_good(&mut self, candidates: &[(PathBuf, Named)], source: impl Fn(PathBuf, Bytes) -> Source) -> bool {
        for (path, named) in candidates {
            match trust::open(path, *named, self.options.force) {
                None => {}
                Some(Ok(bytes)) => {
                    self.seen.insert(path.clone());
                    self.found.files.push(source(path.clone(), bytes));
                    return true;
                }
                Some(Err(error)) => {
                    let Source { kind, pid, .. } = source(path.clone(), Bytes::Owned(Vec::new()));
                    self.refused(path, kind, pid, error);
                }
            }
        }
        false
    }

    fn refused(&mut self, path: &Path, kind: Kind, pid: Pid, error: Error) {
        let warning = error.in_file(path).into_warning();
        let state = SourceState::Refused(warning.message.clone());
        self.found.failed.push(Account { path: path.to_owned(), kind, pid, state });
        self.warnings.push(warning);
    }

    fn missing(&mut self, marker: &Marker, candidates: Vec<(PathBuf, Named)>) {
        let refused = self.found.failed.iter().any(|account| candidates.iter().any(|(path, _)| *path == account.path));
        // Code that was injected has its names in the recording itself.
        if refused || self.processes.by_pid.get(&marker.pid).is_some_and(Process::is_injected) {
            return;
        }
        let looked_at: Vec<PathBuf> = candidates.into_iter().map(|(path, _)| path).collect();
        self.warnings.push(Warning::new(format!(
            "{}: process {} mapped this jitdump, but it is neither there nor beside the input nor in the usual places; \
             say where it is with --jitdump",
            marker.path.display(),
            marker.pid
        )));
        let state = SourceState::Missing { looked_at };
        self.found.failed.push(Account { path: marker.path.clone(), kind: Kind::JitDump, pid: marker.pid, state });
    }

    /// Files that the user named outright: used even if no marker and no process asks for them.
    fn named_by_user(&mut self) {
        for (list, kind) in [(&self.options.jitdump, Kind::JitDump), (&self.options.perf_map, Kind::PerfMap)] {
            for given in list {
                let path = &given.path;
                if self.seen.contains(path) || path.is_dir() {
                    continue;
                }
                match trust::open(path, Named::User, self.options.force) {
                    Some(Ok(bytes)) => self.user_file(given, kind, bytes),
                    Some(Err(error)) => self.refused(path, kind, Pid(-1), error),
                    None => self.refused(path, kind, Pid(-1), Error::new("does not exist")),
                }
            }
        }
    }

    fn user_file(&mut self, given: &GivenFile, kind: Kind, bytes: Bytes) {
        let path = &given.path;
        if let Some(other) = other_kind(kind, &bytes) {
            return self.refused(path, kind, Pid(-1), Error::new(other));
        }
        let by_header = || jitdump::JitDump::parse(&bytes).ok().map(|dump| Pid(dump.header.pid));
        let inner = inner_pid(path).or_else(|| if kind == Kind::JitDump { by_header() } else { None });
        let only = || match self.jit_processes()[..] {
            [only] => Some(only),
            _ => None,
        };
        let outer = inner.map(|inner| outer_pid(inner, self.processes, self.options));
        // A file of another number, named for a recording with a single process that it can be meant for, is its.
        let known = outer.filter(|pid| self.processes.by_pid.contains_key(pid));
        let Some(pid) = given.pid.or(known).or_else(only).or(outer) else {
            let why = "tells no process: say which with FILE@PID";
            return self.refused(path, kind, Pid(-1), Error::new(why));
        };
        self.warn_if_not_recorded(path, pid);
        self.seen.insert(path.to_owned());
        let addr = Addr(0);
        self.found.files.push(Source { path: path.to_owned(), kind, pid, inner, bytes, marker: None, addr });
    }

    /// A text tells of few of the processes that were recorded, a callgrind file of none but one.
    fn warn_if_not_recorded(&mut self, path: &Path, pid: Pid) {
        if self.processes.is_recording && !self.processes.by_pid.contains_key(&pid) {
            let said = format!(
                "is of process {pid}, which is not in the recording: it names nothing (FILE@PID says whose it is)"
            );
            self.warnings.push(Warning::new(said).in_file(path, None));
        }
    }

    /// Processes that have memory for JIT code.
    fn jit_processes(&self) -> Vec<Pid> {
        let with_memory = self.processes.by_pid.iter().filter(|(_, process)| process.has_jit_memory);
        with_memory.map(|(pid, _)| *pid).collect()
    }

    /// Dumps and maps that go by the numbers of processes.
    fn by_number(&mut self) {
        for pid in self.jit_processes() {
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

    /// By which numbers the process may know itself, the most likely first.
    fn inner_pids(&self, pid: Pid) -> Vec<Pid> {
        let said = self.options.map_pid.iter().filter(|(_, outer)| *outer == pid).map(|(inner, _)| *inner);
        let namespace = self.processes.by_pid.get(&pid).and_then(|process| process.inner_pid);
        let marker = self.processes.markers.iter().filter(|marker| marker.pid == pid);
        // A child inherits its parent's marker: that number is the parent's.
        let marker = marker
            .filter_map(|marker| inner_pid(&marker.path))
            .filter(|inner| !self.processes.by_pid.contains_key(inner));
        let mut all: Vec<Pid> = said.chain(namespace).collect();
        if all.is_empty() {
            all.push(pid);
            all.extend(marker);
        }
        let mut seen = BTreeSet::new();
        all.retain(|pid| seen.insert(*pid));
        all
    }

    fn dump_by_number(&mut self, pid: Pid, inner: Pid) {
        let base = format!("jit-{inner}.dump");
        let base = OsStr::new(&base);
        let candidates: Vec<_> = self.asked(base, Some(inner), pid).into_iter().chain(self.dump_places(base)).collect();
        let have = |source: &Source| source.kind == Kind::JitDump && source.pid == pid;
        if self.found.files.iter().any(have) || candidates.iter().any(|(path, _)| self.seen.contains(path)) {
            return;
        }
        let inner = Some(inner);
        self.first_good(&candidates, |path, bytes| Source {
            path,
            kind: Kind::JitDump,
            pid,
            inner,
            bytes,
            marker: None,
            addr: Addr(0),
        });
    }

    fn map_by_number(&mut self, pid: Pid, inner: Pid) -> bool {
        let base = format!("perf-{inner}.map");
        let beside = self.beside.map(|dir| (dir.join(&base), Named::User));
        let asked = self.options.perf_map.iter().filter(|given| given.may_be_of(pid) && given.path.is_dir());
        let asked = asked.map(|given| (given.path.join(&base), Named::User));
        let usual = [(Path::new("/tmp").join(&base), Named::Habit)];
        let candidates: Vec<_> = beside.into_iter().chain(asked).chain(usual).collect();
        let named = self.found.files.iter().any(|source| source.kind == Kind::PerfMap && source.pid == pid);
        let inner = Some(inner);
        named
            || self.first_good(&candidates, |path, bytes| Source {
                path,
                kind: Kind::PerfMap,
                pid,
                inner,
                bytes,
                marker: None,
                addr: Addr(0),
            })
    }

    /// ELF objects that the user placed: for every process with memory for JIT code, else for every one.
    fn placed(&mut self) {
        let mut pids = self.jit_processes();
        if pids.is_empty() {
            pids = self.processes.by_pid.keys().copied().filter(|pid| pid.0 > 0).collect();
        }
        for (path, addr) in &self.options.elf {
            for &pid in &pids {
                match trust::open(path, Named::User, self.options.force) {
                    Some(Ok(bytes)) => {
                        let (path, addr) = (path.clone(), *addr);
                        self.found.files.push(Source {
                            path,
                            kind: Kind::PlacedElf,
                            pid,
                            inner: None,
                            bytes,
                            marker: None,
                            addr,
                        });
                    }
                    Some(Err(error)) => self.refused(path, Kind::PlacedElf, pid, error),
                    None => self.refused(path, Kind::PlacedElf, pid, Error::new("does not exist")),
                }
            }
        }
    }
}

/// The process in the name of a dump or map: the last number in `jit-PID.dump`, `jit-TID-PID.dump`, `perf-PID.map`.
pub(super) fn inner_pid(path: &Path) -> Option<Pid> {
    let stem = path.file_name()?.to_str()?;
    let stem = stem.strip_suffix(".dump").or_else(|| stem.strip_suffix(".map"))?;
    let digits = stem.rsplit('-').next().filter(|digits| digits.len() < stem.len())?;
    digits.parse().ok().map(Pid).filter(|pid| pid.0 >= 0)
}

/// Directories that perf's JVMTI agent and LLVM make for each run, below `$JITDUMPDIR` or the home directory.
fn dump_directories() -> Vec<PathBuf> {
    let roots = ["JITDUMPDIR", "HOME"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let mut directories = Vec::new();
    for root in roots {
        directories.push(root.clone());
        directories.extend(subdirectories(&root.join(".debug/jit")).unwrap_or_default());
    }
    directories
}

fn subdirectories(path: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    // The directory's order is the file system's; the newest names sort last.
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::runtimes::RUNTIMES;

    #[test]
    fn the_process_in_a_name() {
        let pid = |name: &str| inner_pid(Path::new(name)).map(|pid| pid.0);
        assert_eq!(pid("/tmp/jit-77.dump"), Some(77));
        assert_eq!(pid("jit-78-77.dump"), Some(77));
        assert_eq!(pid("/x/perf-1.map"), Some(1));
        assert_eq!(pid("/x/77.map"), None);
        assert_eq!(pid("/x/jit-a.dump"), None);
        assert_eq!(pid("/x/jit-7.txt"), None);
    }
    #[test]
    fn no_runtime_leaves_its_files_where_nobody_looks() {
        // As `dump_places` and `map_by_number` have them; `DIR` is for the user to name.
        let for_dumps = ["/tmp/", "./", "$JITDUMPDIR/.debug/jit/", "~/.debug/jit/", "DIR/"];
        let for_maps = ["/tmp/"];
        for runtime in RUNTIMES {
            for file in runtime.switches.iter().flat_map(|switch| switch.leaves) {
                let places = if file.ends_with(".map") { &for_maps[..] } else { &for_dumps };
                assert!(places.iter().any(|place| file.starts_with(place)), "{}: {file}", runtime.name);
                let base = Path::new(file).file_name().unwrap().to_str().unwrap();
                let base = base.replace("TID", "78").replace("PID", "77");
                assert_eq!(inner_pid(Path::new(&base)), Some(Pid(77)), "{}: {file}", runtime.name);
            }
        }
    }
}
