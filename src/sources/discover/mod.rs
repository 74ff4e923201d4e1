//! Finds and opens the jitdumps, perf maps and logs of a recording's processes.
//!
//! | tried in this order | jitdump | perf map |
//! |---|---|---|
//! | what the user named | `--jitdump` | `--perf-map` |
//! | the recorded path | the path of the marker's mmap | – |
//! | the root directory of a process that still runs in a container | the marker's path | `/tmp/perf-PID.map` |
//! | the input's directory | the marker's file name, or `jit-PID.dump` | `perf-PID.map` |
//! | usual places | `/tmp`, the current directory, `$JITDUMPDIR`, `~/.debug/jit` and `/tmp/.debug/jit` | `/tmp` |
//!
//! A process with neither may have left a runtime's log (`logs`) or a core dump (`cores`).
//!
//! The table in [`crate::runtimes`] says where each runtime writes its files; the usual places cover all of them.
//!
//! Files of a process without a marker are found by its process ID. If that fails, they are found by the ID of a
//! process that it shares JIT memory with, or by the contents of files with other IDs (`orphans`). A forked child
//! inherits the mapping of its parent's marker; the jitdump is then loaded only once, for the process that wrote it.

mod cores;
mod given;
mod given_files;
mod logs;
mod markers;
mod numbers;
mod orphans;
mod stale;

pub(crate) use orphans::goes_with_recordings;

use super::account::{Account, Kind, SourceState};
use super::guest::GuestNames;
use super::live::LiveProcess;
use super::log_clock::FirstSeen;
use super::options::{SourceOptions, outer_pid};
use super::site::Site;
use super::source_maps::SourceMaps;
use super::trust::{self, Named, SOURCE};
use crate::error::{Error, RefusalReason, Result, Warning, Warnings};
use crate::io::door::{self, Door, Opened, Start};
use crate::io::{self, Bytes};
use crate::model::process::{FileId, Marker, Process, Processes};
use crate::model::{Addr, Nanos, Pid};
use crate::records::jit_logs::CodeLog;
use given_files::GivenFiles;
use markers::Markers;
pub use markers::inner_pid;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The sources of a recording, opened but not yet read.
#[derive(Debug)]
pub struct Found {
    pub(super) files: Vec<Source>,
    pub(super) options: SourceOptions,
    /// Sources that aren't used, and why: they are missing, could not be opened or were refused, or the user has to
    /// confirm them.
    pub(super) failed: Vec<Account>,
    /// The recorded processes that are still running, by their recorded ID.
    live: BTreeMap<Pid, LiveProcess>,
    /// The input's directory.
    pub(super) beside: Option<PathBuf>,
    /// Source maps for the scripts that the code was compiled from. Set when the sources are loaded.
    pub(super) maps: OnceLock<SourceMaps>,
}

/// A jitdump, perf map or log that was found.
#[derive(Debug, Clone)]
pub struct FoundFile<'a> {
    /// The path.
    pub path: &'a Path,
    /// The file name that jitgraft looks for in a recording's directory.
    pub name: OsString,
    /// Its contents.
    pub bytes: &'a [u8],
    /// Its metadata when it was opened; `None` if it is a copy of a process's memory.
    pub about: Option<&'a Metadata>,
    /// The kind of source, and the process by its recorded ID. `None` for files other than sources.
    pub of: Option<(Kind, Pid)>,
    /// Its permission bits.
    pub mode: u32,
}

/// A source that was opened but not read yet.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// The process, as recorded.
    pub(super) pid: Pid,
    /// The process ID in the file's name or contents, which is that in the process's own PID namespace; `None` if there
    /// is none.
    pub(super) inner: Option<Pid>,
    pub(super) bytes: Arc<Bytes>,
    /// The file's metadata when it was opened; `None` for a copy of a process's memory.
    pub(super) about: Option<Metadata>,
    /// Its permission bits.
    mode: u32,
    /// When the source's marker was mapped, if it has one and that was recorded.
    pub(super) marker: Option<Nanos>,
    /// For an ELF object that the user placed: the address. Otherwise 0.
    pub(super) addr: Addr,
    /// A remark for users on why the source was used although they didn't ask for it; `None` if there is nothing to
    /// remark on.
    pub(super) remark: Option<String>,
    /// For logs: the parsed log. Set when the sources are loaded.
    pub(super) log: OnceLock<CodeLog>,
    /// For logs: when each address of the process first occurred in a sample or its call chain; empty if that isn't
    /// needed.
    pub(super) seen: FirstSeen,
    /// For programs in an emulator: names of the guest program's functions. Set when the sources are loaded.
    pub(super) guest: OnceLock<GuestNames>,
}

impl Source {
    /// Creates a source of code for a process, which is given by its recorded ID.
    pub(super) fn new(path: PathBuf, kind: Kind, pid: Pid, contents: impl Into<Contents>) -> Self {
        let Contents { bytes, about, mode } = contents.into();
        Self {
            path,
            kind,
            pid,
            inner: None,
            bytes,
            about,
            mode,
            marker: None,
            addr: Addr(0),
            remark: None,
            log: OnceLock::new(),
            seen: FirstSeen::new(),
            guest: OnceLock::new(),
        }
    }

    fn contents(&self) -> Contents {
        Contents { bytes: Arc::clone(&self.bytes), about: self.about.clone(), mode: self.mode }
    }
}

/// The contents of a source, and its file's metadata.
#[derive(Debug, Clone)]
pub(super) struct Contents {
    bytes: Arc<Bytes>,
    about: Option<Metadata>,
    mode: u32,
}

impl From<Opened> for Contents {
    fn from(opened: Opened) -> Self {
        Self { bytes: Arc::new(opened.bytes), about: Some(opened.about), mode: opened.mode }
    }
}

impl From<Vec<u8>> for Contents {
    fn from(copied: Vec<u8>) -> Self {
        Self { bytes: Arc::new(Bytes::Owned(copied)), about: None, mode: 0 }
    }
}

impl Found {
    /// No sources, for when names of JIT code aren't wanted.
    pub fn none() -> Self {
        let (options, maps) = (SourceOptions::default(), OnceLock::new());
        Self { files: Vec::new(), options, failed: Vec::new(), live: BTreeMap::new(), beside: None, maps }
    }

    /// All files that belong to the sources, with path and contents. The copied memory of a running process gets a file
    /// name like that of a core dump.
    pub fn each_file(&self) -> impl Iterator<Item = FoundFile<'_>> {
        let files = self.files.iter().filter(|source| source.kind != Kind::PlacedElf);
        files.filter_map(|source| {
            let name = match source.about {
                Some(_) => source.path.file_name()?.to_owned(),
                // The file name that gcore would choose.
                None => format!("core.{}", source.pid).into(),
            };
            Some(FoundFile {
                path: &source.path,
                name,
                bytes: &source.bytes,
                about: source.about.as_ref(),
                of: Some((source.kind, source.pid)),
                mode: source.mode,
            })
        })
    }

    /// For each file that exists but isn't used: the path and the reason.
    pub fn refused_files(&self) -> impl Iterator<Item = String> {
        self.failed.iter().filter_map(|account| match &account.state {
            SourceState::Refused { why, .. } => Some(format!("{}: {why}", account.path.display())),
            SourceState::Loaded { .. } | SourceState::Missing { .. } | SourceState::Offered(_) => None,
        })
    }

    /// The permissions for a file that contains data from all sources: only users who may read all sources may read it.
    pub fn mode(&self) -> u32 {
        io::mode_within(self.files.iter().map(|source| source.mode))
    }

    /// True if the process is still running with another root directory, and this file isn't below that directory. perf
    /// looks for a process's files where that process sees them.
    pub fn is_hidden_from(&self, pid: Pid, path: &Path) -> bool {
        self.live.get(&pid).is_some_and(|live| !live.sees(path))
    }
}

/// Finds and opens the sources for a recording. `beside` is the input's directory.
pub fn find(processes: &Processes, options: &SourceOptions, beside: Option<&Path>, warnings: &mut Warnings) -> Found {
    find_at(processes, options, &Site { beside, ..Site::default() }, warnings)
}

/// Like [`find`], if more is known about the input than its directory.
pub fn find_at(processes: &Processes, options: &SourceOptions, site: &Site<'_>, warnings: &mut Warnings) -> Found {
    let has_jit_memory = processes.by_pid.iter().filter(|(_, process)| process.has_jit_memory);
    let jit_processes: Vec<Pid> = has_jit_memory.map(|(pid, _)| *pid).collect();
    let mut finder = Finder {
        processes,
        jit_processes: &jit_processes,
        markers: Markers::new(processes),
        kinds: BTreeSet::new(),
        options,
        given: GivenFiles::new(options),
        site,
        not_running: BTreeMap::new(),
        found: Found { options: options.clone(), beside: site.beside.map(Path::to_owned), ..Found::none() },
        used_paths: BTreeSet::new(),
        unassigned: Vec::new(),
        shared_pids: BTreeSet::new(),
        missing: Vec::new(),
        reported: BTreeSet::new(),
        warnings,
    };
    finder.find_running_processes();
    finder.shared_pids = finder.find_shared_pids();
    finder.find_marked_dumps();
    finder.add_user_files();
    finder.find_by_pid();
    finder.find_quietly_by_pid();
    finder.use_maps_of_parents();
    finder.use_maps_of_shared_memory();
    finder.find_logs();
    finder.find_cores();
    finder.add_registered_objects();
    finder.match_orphans();
    // Some perf maps were only matched by their contents. They, too, may name code of other processes that share the
    // JIT memory.
    finder.use_maps_of_shared_memory();
    finder.report_missing_dumps();
    finder.report_reused_pids();
    finder.add_placed_objects();
    finder.date_logs();
    finder.found
}

struct Finder<'a> {
    processes: &'a Processes,
    /// Processes with memory for JIT code, sorted by ID.
    jit_processes: &'a [Pid],
    markers: Markers<'a>,
    /// Which kinds of sources each process has.
    kinds: BTreeSet<(Pid, Kind)>,
    options: &'a SourceOptions,
    given: GivenFiles<'a>,
    site: &'a Site<'a>,
    /// For processes whose ID is in use again: why the process that has it now isn't the recorded one.
    not_running: BTreeMap<Pid, String>,
    found: Found,
    /// The paths of files that are already used as sources, so that none is read twice.
    used_paths: BTreeSet<PathBuf>,
    /// Files from the user that state no process ID, or one that isn't recorded.
    unassigned: Vec<(PathBuf, Kind)>,
    /// IDs that several processes have in their own namespaces, such as the process 1 of two containers.
    shared_pids: BTreeSet<Pid>,
    /// Markers whose jitdump wasn't found, and the paths that were tried.
    missing: Vec<(Marker, Vec<PathBuf>)>,
    /// Reports about unused files that were already made: process, file and reason. A file may be found by several
    /// paths.
    reported: BTreeSet<(Pid, FileId, String)>,
    warnings: &'a mut Warnings,
}

impl Finder<'_> {
    fn add(&mut self, source: Source) {
        self.kinds.insert((source.pid, source.kind));
        self.found.files.push(source);
    }

    /// The kinds of sources that a process has.
    fn kinds_of(&self, pid: Pid) -> impl Iterator<Item = Kind> {
        // `JitDump` compares as the least kind, so the range contains all kinds of the process.
        let from_pid = self.kinds.range((pid, Kind::JitDump)..);
        from_pid.take_while(move |(other, _)| *other == pid).map(|(_, kind)| *kind)
    }

    /// Finds out which processes that have JIT memory or a marker are still running.
    fn find_running_processes(&mut self) {
        let with_marker = self.processes.markers.iter().map(|marker| marker.pid);
        let pids: BTreeSet<Pid> = self.jit_processes.iter().copied().chain(with_marker).collect();
        for pid in pids {
            match LiveProcess::find(pid, self.processes, self.site) {
                Some(Ok(live)) => _ = self.found.live.insert(pid, live),
                Some(Err(why)) => _ = self.not_running.insert(pid, why),
                None => {}
            }
        }
    }

    /// Reports each process whose ID now belongs to another process, if no source was found for it.
    fn report_reused_pids(&mut self) {
        for (pid, why) in std::mem::take(&mut self.not_running) {
            if self.kinds_of(pid).next().is_none() {
                let path = PathBuf::from(format!("/proc/{pid}/root"));
                self.report_not_matched(&path, Kind::PerfMap, pid, why);
            }
        }
    }

    fn report_not_matched(&mut self, path: &Path, kind: Kind, pid: Pid, why: String) {
        let remark = Some(not_matched_remark(path, &why));
        let state = SourceState::Refused { why, reason: RefusalReason::Content };
        self.found.failed.push(Account { path: path.to_owned(), kind, pid, state, remark });
    }

    /// The path by which we can open a process's file that is in its container. `None` if the process isn't running or
    /// has the same root directory as we do.
    fn path_in_container(&self, pid: Pid, path: &Path) -> Option<(PathBuf, Named)> {
        let live = self.found.live.get(&pid).filter(|live| live.has_own_files)?;
        Some((live.path_from_outside(path), Named::Inside(pid)))
    }

    fn open(&self, path: &Path, named: Named) -> Option<Result<Opened>> {
        if self.is_of_another_machine(path, named) {
            return None;
        }
        match named {
            Named::Inside(pid) => self.found.live.get(&pid)?.open(path, SOURCE, self.options.force),
            _ => self.door(path, named).open(path, SOURCE),
        }
    }

    /// True if a recording in an archive can't be about this file: jitgraft chose the path, or the recording states it,
    /// and it isn't in the archive. Such a recording is from another machine, and its files are in the archive.
    fn is_of_another_machine(&self, path: &Path, named: Named) -> bool {
        if !matches!(named, Named::Habit | Named::Marker) {
            return false;
        }
        self.site.beside.is_some_and(|archive| io::is_archive(archive) && !path.starts_with(archive))
    }

    /// The rules for opening a path. If it starts with a directory that the user typed, links on the way to that
    /// directory are followed.
    fn door<'p>(&'p self, path: &'p Path, named: Named) -> Door<'p> {
        let start = match (self.given.typed_part(path), self.site.beside) {
            (Some(typed), _) => Start::Typed(typed),
            (None, Some(input_dir)) if path.starts_with(input_dir) => Start::Typed(input_dir),
            _ => Start::Here,
        };
        Door { named: named.at_door(), start, force: self.options.force }
    }

    /// Directories to search for logs: those that the user named, the input's, and the `usual` ones.
    fn log_directories(&self, usual: &[&'static str]) -> Vec<(&Path, Named)> {
        let mut directories: Vec<(&Path, Named)> = Vec::new();
        for given in &self.options.jit_log {
            if io::is_directory(&given.path) {
                directories.push((&given.path, Named::Directory));
            }
        }
        directories.extend(self.site.beside.map(|input_dir| (input_dir, Named::Habit)));
        directories.extend(usual.iter().map(|path| (Path::new(*path), Named::Habit)));
        for (path, _) in &mut directories {
            if path.as_os_str().is_empty() {
                *path = Path::new(".");
            }
        }
        directories
    }

    /// Finds the jitdumps that markers refer to.
    fn find_marked_dumps(&mut self) {
        let mut markers: Vec<&Marker> = self.processes.markers.iter().collect();
        // Markers of processes that wrote their jitdump come before markers that a child inherited; then in the order
        // of the recording.
        markers.sort_by_key(|marker| (!self.is_written_by_its_process(marker), marker.offset));
        for marker in markers {
            let Some(name) = marker.path.file_name() else { continue };
            // A file that the user named takes precedence over the recorded path.
            let mut candidates = self.given_dump_candidates(name, inner_pid(&marker.path), marker.pid);
            candidates.extend(self.path_in_container(marker.pid, &marker.path));
            candidates.push((marker.path.clone(), Named::Marker));
            candidates.extend(self.dump_places(name));
            if self.markers.is_contested(marker) {
                candidates.retain(|(path, named)| {
                    matches!(named, Named::Inside(_)) || self.is_marker_file(path, *named, marker)
                });
            }
            if candidates.iter().any(|(path, _)| self.used_paths.contains(path)) {
                continue;
            }
            let time = Some(marker.time).filter(|time| time.0 != 0);
            let to_source = |path, contents| Source {
                inner: inner_pid(&marker.path),
                marker: time,
                ..Source::new(path, Kind::JitDump, marker.pid, contents)
            };
            if self.use_first_good(&candidates, to_source) {
                self.warn_if_replaced(marker);
            } else {
                self.missing.push((marker.clone(), candidates.into_iter().map(|(path, _)| path).collect()));
            }
        }
    }

    /// True if the process that mapped a marker wrote the jitdump: its ID is in the marker's name.
    fn is_written_by_its_process(&self, marker: &Marker) -> bool {
        inner_pid(&marker.path).is_some_and(|inner| marker.pid == outer_pid(inner, self.processes, self.options))
    }

    /// True if the file at this path is the very one that was mapped as the marker.
    fn is_marker_file(&self, path: &Path, named: Named, marker: &Marker) -> bool {
        let Some(recorded) = marker.file else { return false };
        self.door(path, named).look(path).is_some_and(|about| trust::file_id(&about) == recorded)
    }

    /// Where else a jitdump with this name may be: in the input's directory and the usual places.
    fn dump_places(&self, name: &OsStr) -> Vec<(PathBuf, Named)> {
        let mut directories: Vec<PathBuf> = self.site.beside.map(Path::to_owned).into_iter().collect();
        directories.extend([PathBuf::from("/tmp"), PathBuf::from(".")]);
        directories.extend(dump_directories());
        directories.into_iter().map(|directory| (directory.join(name), Named::Habit)).collect()
    }

    /// Uses the first candidate that exists and is acceptable. Warns about each unacceptable one and tries the next.
    /// Returns whether a candidate was used.
    fn use_first_good(
        &mut self,
        candidates: &[(PathBuf, Named)],
        to_source: impl Fn(PathBuf, Contents) -> Source,
    ) -> bool {
        for (path, named) in candidates {
            match self.open(path, *named) {
                None => {}
                Some(Ok(opened)) => {
                    let mut source = to_source(path.clone(), opened.into());
                    if let Some(why) = self.explain_if_stale(&source) {
                        self.report_refused(path, source.kind, source.pid, Error::new(format!("{NOT_USED}{why}")));
                        continue;
                    }
                    self.used_paths.insert(path.clone());
                    source.remark = match named {
                        Named::Inside(_) => {
                            let why = "which is still running in another mount namespace";
                            Some(unasked_use_remark(path, source.pid, why))
                        }
                        _ => None,
                    };
                    self.add(source);
                    return true;
                }
                Some(Err(error)) => {
                    let Source { kind, pid, .. } = to_source(path.clone(), Vec::new().into());
                    self.report_refused(path, kind, pid, error);
                }
            }
        }
        false
    }

    fn report_refused(&mut self, path: &Path, kind: Kind, pid: Pid, error: Error) {
        let reason = error.refusal();
        let warning = error.in_file(path).into_warning();
        let why = warning.message.strip_prefix(NOT_USED).unwrap_or(&warning.message).to_owned();
        let file = self.door(path, Named::Habit).look(path).map(|about| trust::file_id(&about));
        if file.is_some_and(|file| !self.reported.insert((pid, file, why.clone()))) {
            return;
        }
        let state = SourceState::Refused { why, reason };
        self.found.failed.push(Account { path: path.to_owned(), kind, pid, state, remark: None });
        self.warnings.push(warning);
    }

    fn report_missing_dumps(&mut self) {
        let mut reported: BTreeSet<PathBuf> = self.found.failed.iter().map(|account| account.path.clone()).collect();
        for (marker, looked_at) in std::mem::take(&mut self.missing) {
            let has_dump = self.kinds.contains(&(marker.pid, Kind::JitDump));
            // The names of injected code are already in the recording, so a missing jitdump doesn't matter.
            let is_injected = self.processes.by_pid.get(&marker.pid).is_some_and(Process::is_injected);
            let is_reported = looked_at.iter().any(|path| reported.contains(path));
            if !has_dump && !is_injected && !is_reported {
                reported.insert(marker.path.clone());
                self.report_missing_dump(&marker, looked_at);
            }
        }
    }

    fn report_missing_dump(&mut self, marker: &Marker, looked_at: Vec<PathBuf>) {
        // If no recorded process has the ID in the path, the process probably ran in a container and wrote the file
        // there.
        let is_in_container = inner_pid(&marker.path).is_some_and(|inner| !self.processes.by_pid.contains_key(&inner));
        let remedy = if is_in_container { " (from a container: docker cp CONTAINER:PATH .)" } else { "" };
        self.warnings.push(Warning::new(format!(
            "{}: process {} mapped this jitdump, but it is not there, next to the input, or in the usual places; pass \
             its path with --jitdump{remedy}",
            marker.path.display(),
            marker.pid
        )));
        let state = SourceState::Missing { looked_at };
        let (path, kind, pid) = (marker.path.clone(), Kind::JitDump, marker.pid);
        self.found.failed.push(Account { path, kind, pid, state, remark: None });
    }
}

/// Starts the warning about a file that isn't used. Left out where only the reason is shown.
const NOT_USED: &str = "not used: ";

fn not_matched_remark(path: &Path, why: &str) -> String {
    format!("not matched: {}: {why}", path.display())
}

fn unasked_use_remark(path: &Path, pid: Pid, why: &str) -> String {
    format!("{}: used for process {pid}, {why}", path.display())
}

/// The directories that perf's JVMTI agent and LLVM create for each run: below `$JITDUMPDIR`, the home directory or
/// `/tmp`.
fn dump_directories() -> Vec<PathBuf> {
    let roots = ["JITDUMPDIR", "HOME"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let mut directories = Vec::new();
    for root in roots {
        directories.push(root.clone());
        directories.extend(subdirectories(&root.join(DUMPS)));
    }
    directories.extend(subdirectories(&Path::new("/tmp").join(DUMPS)));
    directories
}

/// Where these agents create a directory for each run, relative to `$JITDUMPDIR`, the home directory or `/tmp`.
const DUMPS: &str = ".debug/jit";

fn subdirectories(path: &Path) -> Vec<PathBuf> {
    let entries = door::Named::Habit.door(false).entries(path, |_| true).into_iter();
    let mut found: Vec<PathBuf> =
        entries.filter(|(_, about)| about.is_dir()).map(|(name, _)| path.join(name)).collect();
    // File systems list names in any order; sort them so that the newest come last.
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::jit_logs::LogId;
    use crate::runtimes::RUNTIMES;

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
        // Must match `dump_places`, `find_map_by_pid` and `log_files`; `DIR` is one that the user must name.
        let for_dumps = ["/tmp/jit-", "/tmp/.debug/jit/", "./", "$JITDUMPDIR/.debug/jit/", "~/.debug/jit/", "DIR/"];
        let for_maps = ["/tmp/"];
        let for_logs = ["/tmp/", "./"];
        for runtime in RUNTIMES {
            for file in runtime.switches.iter().flat_map(|switch| switch.leaves) {
                let base = Path::new(file).file_name().unwrap().to_str().unwrap();
                let base = base.replace('*', "0x1f").replace("TID", "78").replace("PID", "77");
                let (places, number) = match Path::new(&base).extension().and_then(OsStr::to_str) {
                    Some("map") => (&for_maps[..], inner_pid(Path::new(&base))),
                    Some("log") => (&for_logs[..], LogId::find_by_name(&base).find_map(|(_, pid)| pid.map(Pid))),
                    _ => (&for_dumps[..], inner_pid(Path::new(&base))),
                };
                assert!(places.iter().any(|place| file.starts_with(place)), "{}: {file}", runtime.name);
                let tells_none = LogId::find_by_name(&base).any(|(_, pid)| pid.is_none());
                assert!(tells_none || number == Some(Pid(77)), "{}: {file}", runtime.name);
            }
        }
    }
}
