//! Finds the dumps and maps of a recording's processes and opens them.
//!
//! | looked at, in order | jitdump | perf map |
//! |---|---|---|
//! | what the user named | `--jitdump` | `--perf-map` |
//! | as recorded | the path of the marker's mmap | – |
//! | below the root of the process, if it still runs elsewhere | the same | `/tmp/perf-PID.map` |
//! | beside the input | its base name, or `jit-PID.dump` | `perf-PID.map` |
//! | usual places | `/tmp`, the current directory, `$JITDUMPDIR`, `~/.debug/jit` and `/tmp/.debug/jit` | `/tmp` |
//!
//! A process with neither may have left an engine's log (`logs`), or a core dump (`cores`).
//!
//! The place where each runtime writes its files is in the table of [`crate::runtimes`]; the usual places are all of
//! them.
//!
//! A process without a marker is looked for by its number; those for which nothing is found then, by the number of the
//! process whose JIT memory they share, and by what other files hold (`orphans`). A dump that two processes
//! share (a forked child inherits the marker's mapping) is loaded once, for the one that wrote it.

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
use crate::error::{Error, Result, Warning, Warnings};
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
    /// Those that could not be opened.
    pub(super) failed: Vec<Account>,
    /// The recorded processes that still run.
    live: BTreeMap<Pid, LiveProcess>,
    /// The directory of the input.
    pub(super) beside: Option<PathBuf>,
    /// The source maps of the scripts whose code was found, once it was read.
    pub(super) maps: OnceLock<SourceMaps>,
}

/// A dump, map or log that was found.
#[derive(Debug, Clone)]
pub struct FoundFile<'a> {
    /// The path.
    pub path: &'a Path,
    /// The name under which it is found beside a recording.
    pub name: OsString,
    /// Its content.
    pub bytes: &'a [u8],
    /// Its metadata when it was opened; `None` if it was not a file.
    pub about: Option<&'a Metadata>,
    /// Its kind, and its process by the recording's number; `None` if it was found otherwise.
    pub of: Option<(Kind, Pid)>,
    /// Its permissions.
    pub mode: u32,
}

/// One opened source.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// By the recording's number.
    pub(super) pid: Pid,
    /// The number in the file's name: the process's own.
    pub(super) inner: Option<Pid>,
    pub(super) bytes: Arc<Bytes>,
    /// The file's metadata when it was opened; `None` for a copy out of a process.
    pub(super) about: Option<Metadata>,
    /// Its permissions.
    mode: u32,
    /// When its marker was mapped, if that was seen.
    pub(super) marker: Option<Nanos>,
    /// The address of the object.
    pub(super) addr: Addr,
    /// That it was used unasked, if so, and why.
    pub(super) remark: Option<String>,
    /// Its content, if it is a log that was read.
    pub(super) log: OnceLock<CodeLog>,
    /// When its process's addresses were first seen, if it is a log.
    pub(super) seen: FirstSeen,
    /// The names of code of a guest program, once it was read.
    pub(super) guest: OnceLock<GuestNames>,
}

impl Source {
    /// A file that reports code of this process, by the recording's number.
    pub(super) fn new(path: PathBuf, kind: Kind, pid: Pid, contents: impl Into<Contents>) -> Self {
        let (inner, marker, remark, seen) = (None, None, None, FirstSeen::new());
        let (log, guest, Contents { bytes, about, mode }) = (OnceLock::new(), OnceLock::new(), contents.into());
        Self { path, kind, pid, inner, bytes, about, mode, marker, addr: Addr(0), remark, log, seen, guest }
    }

    fn contents(&self) -> Contents {
        Contents { bytes: Arc::clone(&self.bytes), about: self.about.clone(), mode: self.mode }
    }
}

/// The content of a source, and the facts about its file.
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
    /// No sources, where none are wanted.
    pub fn none() -> Self {
        let (options, maps) = (SourceOptions::default(), OnceLock::new());
        Self { files: Vec::new(), options, failed: Vec::new(), live: BTreeMap::new(), beside: None, maps }
    }

    /// The dumps, maps and logs: where each was found, and what it contains. The copied memory of a running process is
    /// a core dump.
    pub fn each_file(&self) -> impl Iterator<Item = FoundFile<'_>> {
        let files = self.files.iter().filter(|source| source.kind != Kind::PlacedElf);
        files.filter_map(|source| {
            let (path, bytes, about) = (&source.path, &source.bytes, source.about.as_ref());
            let name = match about {
                Some(_) => path.file_name()?.to_owned(),
                // As gcore would call it.
                None => format!("core.{}", source.pid).into(),
            };
            Some(FoundFile { path, name, bytes, about, mode: source.mode, of: Some((source.kind, source.pid)) })
        })
    }

    /// The files that are there and unused, and the reasons.
    pub fn refused(&self) -> impl Iterator<Item = String> {
        self.failed.iter().filter_map(|account| match &account.state {
            SourceState::Refused(why) => Some(format!("{}: {why}", account.path.display())),
            SourceState::Loaded { .. } | SourceState::Missing { .. } | SourceState::Offered(_) => None,
        })
    }

    /// The mode of a file that repeats what any of them holds: nobody may read it who may not read them all.
    pub fn mode(&self) -> u32 {
        io::mode_within(self.files.iter().map(|source| source.mode))
    }

    /// True if a process still runs and has other files than we: it does not see this one. perf looks for a process's
    /// files where it runs.
    pub fn is_hidden_from(&self, pid: Pid, path: &Path) -> bool {
        self.live.get(&pid).is_some_and(|live| !live.sees(path))
    }
}

/// Finds and opens the sources. `beside` is the directory of the input.
pub fn find(processes: &Processes, options: &SourceOptions, beside: Option<&Path>, warnings: &mut Warnings) -> Found {
    find_at(processes, options, &Site { beside, ..Site::default() }, warnings)
}

/// The same for an input of which more is known.
pub fn find_at(processes: &Processes, options: &SourceOptions, site: &Site<'_>, warnings: &mut Warnings) -> Found {
    let with_memory = processes.by_pid.iter().filter(|(_, process)| process.has_jit_memory);
    let jit_processes: Vec<Pid> = with_memory.map(|(pid, _)| *pid).collect();
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
        seen: BTreeSet::new(),
        nobodys: Vec::new(),
        shared: BTreeSet::new(),
        missing: Vec::new(),
        told: BTreeSet::new(),
        warnings,
    };
    finder.look_at_running();
    finder.shared = finder.shared_numbers();
    finder.marked();
    finder.named_by_user();
    finder.by_number();
    finder.by_number_elsewhere();
    finder.by_parent();
    finder.by_shared_memory();
    finder.logs();
    finder.cores();
    finder.registered_now();
    finder.orphans();
    // An orphan may be of several processes that share their memory.
    finder.by_shared_memory();
    finder.say_what_is_missing();
    finder.say_who_is_another();
    finder.placed();
    finder.date_logs();
    finder.found
}

struct Finder<'a> {
    processes: &'a Processes,
    /// Those that have memory for JIT code, in the order of their numbers.
    jit_processes: &'a [Pid],
    markers: Markers<'a>,
    /// The kinds of sources of each process.
    kinds: BTreeSet<(Pid, Kind)>,
    options: &'a SourceOptions,
    given: GivenFiles<'a>,
    site: &'a Site<'a>,
    /// Why a process of that number is not the recorded one.
    not_running: BTreeMap<Pid, String>,
    found: Found,
    /// The files that are open already: one path is not read twice.
    seen: BTreeSet<PathBuf>,
    /// Files that the user named, and that give a number that no process has.
    nobodys: Vec<(PathBuf, Kind)>,
    /// Numbers by which several processes know themselves, each in a container of its own.
    shared: BTreeSet<Pid>,
    /// Markers whose dumps were not found, with where they were looked for.
    missing: Vec<(Marker, Vec<PathBuf>)>,
    /// The messages about unused files: one file has many paths, and is requested in several ways.
    told: BTreeSet<(Pid, FileId, String)>,
    warnings: &'a mut Warnings,
}

impl Finder<'_> {
    fn add(&mut self, source: Source) {
        self.kinds.insert((source.pid, source.kind));
        self.found.files.push(source);
    }

    /// The kinds of sources of a process.
    fn kinds_of(&self, pid: Pid) -> impl Iterator<Item = Kind> {
        self.kinds.range((pid, Kind::JitDump)..).map_while(move |(of, kind)| (*of == pid).then_some(*kind))
    }

    /// Looks whether those that may have JIT code still run.
    fn look_at_running(&mut self) {
        let marked = self.processes.markers.iter().map(|marker| marker.pid);
        let pids: BTreeSet<Pid> = self.jit_processes.iter().copied().chain(marked).collect();
        for pid in pids {
            match LiveProcess::find(pid, self.processes, self.site) {
                Some(Ok(live)) => drop(self.found.live.insert(pid, live)),
                Some(Err(why)) => drop(self.not_running.insert(pid, why)),
                None => {}
            }
        }
    }

    /// A file of a running process is not used if it is not the recorded one; that matters where nothing else is.
    fn say_who_is_another(&mut self) {
        for (pid, why) in std::mem::take(&mut self.not_running) {
            if self.kinds_of(pid).next().is_none() {
                let path = PathBuf::from(format!("/proc/{pid}/root"));
                self.not_matched(&path, Kind::PerfMap, pid, why);
            }
        }
    }

    fn not_matched(&mut self, path: &Path, kind: Kind, pid: Pid, why: String) {
        let remark = Some(not_matched(path, &why));
        let state = SourceState::Refused(why);
        self.found.failed.push(Account { path: path.to_owned(), kind, pid, state, remark });
    }

    /// The path of this file in a process that runs elsewhere.
    fn inside(&self, pid: Pid, path: &Path) -> Option<(PathBuf, Named)> {
        let live = self.found.live.get(&pid).filter(|live| live.has_own_files)?;
        Some((live.outside(path), Named::Inside(pid)))
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

    /// True for what lies where such files usually do, if the recording is packed: its own files are in the archive.
    fn is_of_another_machine(&self, path: &Path, named: Named) -> bool {
        let packed = self.site.beside.filter(|beside| io::is_archive(beside));
        matches!(named, Named::Habit | Named::Marker) && packed.is_some_and(|archive| !path.starts_with(archive))
    }

    /// The way to a path that may begin with a directory that the user typed.
    fn door<'p>(&'p self, path: &'p Path, named: Named) -> Door<'p> {
        let beside = || self.site.beside.filter(|beside| path.starts_with(beside));
        let typed = self.given.typed_part(path).or_else(beside);
        Door { named: named.at_door(), start: typed.map_or(Start::Here, Start::Typed), force: self.options.force }
    }

    /// The directories that are looked at for logs: those that the user named, that of the input, and `usual` ones.
    fn log_directories<'d>(&'d self, usual: &'d [&'d str]) -> impl Iterator<Item = (&'d Path, Named)> {
        let given = self.options.jit_log.iter().filter(|given| io::is_directory(&given.path));
        let given = given.map(|given| (given.path.as_path(), Named::Directory));
        let others = self.site.beside.into_iter().chain(usual.iter().map(Path::new));
        let all = given.chain(others.map(|path| (path, Named::Habit)));
        all.map(|(path, named)| (if path.as_os_str().is_empty() { Path::new(".") } else { path }, named))
    }

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
            // A file that the user passes takes precedence over the one at the recorded path.
            let mut candidates = self.asked(base, inner_pid(&marker.path), marker.pid);
            candidates.extend(self.inside(marker.pid, &marker.path));
            candidates.push((marker.path.clone(), Named::Marker));
            candidates.extend(self.dump_places(base));
            if self.markers.is_contested(marker) {
                candidates.retain(|(path, named)| {
                    let here = || Some(trust::file_id(&self.door(path, *named).look(path)?));
                    matches!(named, Named::Inside(_)) || marker.file.is_some() && here() == marker.file
                });
            }
            if candidates.iter().any(|(path, _)| self.seen.contains(path)) {
                continue;
            }
            let time = Some(marker.time).filter(|time| time.0 != 0);
            let source = |path, contents| Source {
                inner: inner_pid(&marker.path),
                marker: time,
                ..Source::new(path, Kind::JitDump, marker.pid, contents)
            };
            if self.first_good(&candidates, source) {
                self.say_if_replaced(marker);
            } else {
                self.missing.push((marker.clone(), candidates.into_iter().map(|(path, _)| path).collect()));
            }
        }
    }

    /// Other possible places of a dump of that name.
    fn dump_places(&self, base: &OsStr) -> Vec<(PathBuf, Named)> {
        let beside = self.site.beside.map(|dir| (dir.join(base), Named::Habit));
        let usual = [PathBuf::from("/tmp"), PathBuf::from(".")].into_iter().chain(dump_directories());
        let usual = usual.map(|dir| (dir.join(base), Named::Habit));
        beside.into_iter().chain(usual).collect()
    }

    /// Opens the first candidate that is there and can be used. A bad one is warned of and the next is tried.
    fn first_good(&mut self, candidates: &[(PathBuf, Named)], source: impl Fn(PathBuf, Contents) -> Source) -> bool {
        for (path, named) in candidates {
            match self.open(path, *named) {
                None => {}
                Some(Ok(opened)) => {
                    let inside = matches!(named, Named::Inside(_));
                    let source = source(path.clone(), opened.into());
                    if let Some(why) = self.is_of_another(&source) {
                        self.refused(path, source.kind, source.pid, Error::new(format!("{NOT_USED}{why}")));
                        continue;
                    }
                    self.seen.insert(path.clone());
                    let why = "which runs still, and sees other files than we do";
                    let remark = inside.then(|| used_unasked(path, source.pid, why));
                    self.add(Source { remark, ..source });
                    return true;
                }
                Some(Err(error)) => {
                    let Source { kind, pid, .. } = source(path.clone(), Vec::new().into());
                    self.refused(path, kind, pid, error);
                }
            }
        }
        false
    }

    fn refused(&mut self, path: &Path, kind: Kind, pid: Pid, error: Error) {
        let warning = error.in_file(path).into_warning();
        let why = warning.message.strip_prefix(NOT_USED).unwrap_or(&warning.message).to_owned();
        let file = self.door(path, Named::Habit).look(path).map(|about| trust::file_id(&about));
        if file.is_some_and(|file| !self.told.insert((pid, file, why.clone()))) {
            return;
        }
        let state = SourceState::Refused(why);
        self.found.failed.push(Account { path: path.to_owned(), kind, pid, state, remark: None });
        self.warnings.push(warning);
    }

    fn say_what_is_missing(&mut self) {
        let mut told: BTreeSet<PathBuf> = self.found.failed.iter().map(|account| account.path.clone()).collect();
        for (marker, looked_at) in std::mem::take(&mut self.missing) {
            let has_dump = self.kinds.contains(&(marker.pid, Kind::JitDump));
            if !has_dump && !looked_at.iter().any(|path| told.contains(path)) {
                self.say_is_missing(&marker, looked_at, &mut told);
            }
        }
    }

    fn say_is_missing(&mut self, marker: &Marker, looked_at: Vec<PathBuf>, told: &mut BTreeSet<PathBuf>) {
        // Code that was injected has its names in the recording itself.
        if self.processes.by_pid.get(&marker.pid).is_some_and(Process::is_injected) {
            return;
        }
        // Its number there is another one, if the file was written inside of a container.
        let is_inside = inner_pid(&marker.path).is_some_and(|inner| !self.processes.by_pid.contains_key(&inner));
        let way = if is_inside { " (out of a container: docker cp CONTAINER:PATH . while it exists)" } else { "" };
        self.warnings.push(Warning::new(format!(
            "{}: process {} mapped this jitdump, but it is neither there nor next to the input nor in the usual places; pass its path with --jitdump{way}",
            marker.path.display(),
            marker.pid
        )));
        let state = SourceState::Missing { looked_at };
        let (path, kind, pid) = (marker.path.clone(), Kind::JitDump, marker.pid);
        told.insert(path.clone());
        self.found.failed.push(Account { path, kind, pid, state, remark: None });
    }
}

/// The start of a warning; users who request the reason see that it is one.
const NOT_USED: &str = "not used: ";

fn not_matched(path: &Path, why: &str) -> String {
    format!("not matched: {}: {why}", path.display())
}

fn used_unasked(path: &Path, pid: Pid, why: &str) -> String {
    format!("{}: used for process {pid}: {why}", path.display())
}

/// Directories that perf's JVMTI agent and LLVM make for each run, below `$JITDUMPDIR`, the home directory or `/tmp`.
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

/// The directory where they make them.
const DUMPS: &str = ".debug/jit";

fn subdirectories(path: &Path) -> Vec<PathBuf> {
    let entries = door::Named::Habit.door(false).entries(path, |_| true).into_iter();
    let mut found: Vec<PathBuf> =
        entries.filter(|(_, about)| about.is_dir()).map(|(name, _)| path.join(name)).collect();
    // The directory's order is the file system's; the newest names sort last.
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
        // As `dump_places`, `map_by_number` and `log_files` have them; `DIR` is for the user to name.
        let for_dumps = ["/tmp/jit-", "/tmp/.debug/jit/", "./", "$JITDUMPDIR/.debug/jit/", "~/.debug/jit/", "DIR/"];
        let for_maps = ["/tmp/"];
        let for_logs = ["/tmp/", "./"];
        for runtime in RUNTIMES {
            for file in runtime.switches.iter().flat_map(|switch| switch.leaves) {
                let base = Path::new(file).file_name().unwrap().to_str().unwrap();
                let base = base.replace('*', "0x1f").replace("TID", "78").replace("PID", "77");
                let (places, number) = match Path::new(&base).extension().and_then(OsStr::to_str) {
                    Some("map") => (&for_maps[..], inner_pid(Path::new(&base))),
                    Some("log") => (&for_logs[..], LogId::named(&base).find_map(|(_, pid)| pid.map(Pid))),
                    _ => (&for_dumps[..], inner_pid(Path::new(&base))),
                };
                assert!(places.iter().any(|place| file.starts_with(place)), "{}: {file}", runtime.name);
                let tells_none = LogId::named(&base).any(|(_, pid)| pid.is_none());
                assert!(tells_none || number == Some(Pid(77)), "{}: {file}", runtime.name);
            }
        }
    }
}
