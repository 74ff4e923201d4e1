//! Finds the files that name a recording's JIT code: jitdumps, perf maps, runtimes' logs and core dumps.
//!
//! The search has [`ROUNDS`]. Each round plans, from what the earlier rounds have found, which sources may exist
//! ([`Step`]); one loop carries the plan out ([`Search::carry_out`]) and keeps account of everything that isn't used.
//!
//! | round | finds | in |
//! |---|---|---|
//! | `marked_dumps` | jitdumps whose marker a process mapped | see below |
//! | `given` | the files that the user named | `--jitdump`, `--perf-map`, `--jit-log` |
//! | `files_named_by_pid` | jitdumps and perf maps of processes with JIT memory | see below |
//! | `unexpected_files` | the same of other processes | `--jitdump` and `--perf-map`, the input's directory, `/tmp` |
//! | `maps_of_parents` | perf maps of a running ancestor that shares its JIT memory | as perf maps |
//! | `maps_of_shared_memory` | perf maps of another process with the same JIT memory | – |
//! | `logs_named_by_pid` | runtimes' logs | `--jit-log`, the input's directory, `.`, `/tmp` |
//! | `cores` | core dumps | the same, and systemd's directory |
//! | `registered_objects` | code registered with GDB's JIT interface | the memory of running processes |
//! | `orphans` | files with other process IDs, by their contents | all of the user's, the input's directory, `/tmp` |
//! | `placed_objects` | ELF objects | `--elf` |
//!
//! The places of a file that is named after its process, in order of precedence ([`Scene::places`]):
//!
//! | | jitdump | perf map |
//! |---|---|---|
//! | what the user named | `--jitdump` | `--perf-map` |
//! | the root directory of a process that still runs in a container | the marker's path, or `/tmp` | `/tmp` |
//! | the recorded path | the path of the marker's mmap | – |
//! | the input's directory | the marker's file name, or `jit-PID.dump` | `perf-PID.map` |
//! | usual places | `/tmp`, the current directory, `$JITDUMPDIR`, `~/.debug/jit` and `/tmp/.debug/jit` | `/tmp` |
//!
//! The table in [`crate::runtimes`] says where each runtime writes its files; the usual places cover all of them. To
//! search another place, add it to `places`; to search in another way, add a round.
//!
//! | question | answered by |
//! |---|---|
//! | May the file be opened? | [`Scene::open`]: type, owner and links, before anything is read |
//! | Which process does it belong to? | its name or marker (`process_ids`), its contents (`given`, `cores`, `orphans`) |
//! | Is it of this run? | [`stale`], and `evidence` for orphans |
//! | What became of it? | `Found::failed` and warnings, written by [`Search`] alone |
//!
//! A forked child inherits the mapping of its parent's marker. The jitdump is then loaded only once, for the process
//! that wrote it.

mod cores;
mod given;
mod logs;
mod markers;
mod orphans;
mod places;
mod process_ids;
mod rounds;
mod scene;
mod stale;

pub use markers::inner_pid;
pub(crate) use orphans::goes_with_recordings;

use super::account::{Account, Kind, SourceState};
use super::found::{Found, Source};
use super::options::SourceOptions;
use super::site::Site;
use super::trust::{Named, file_id};
use crate::error::{Error, RefusalReason, Warning, Warnings};
use crate::io::door::Opened;
use crate::model::Pid;
use crate::model::process::{FileId, Marker, Process, Processes};
use places::Place;
use scene::Scene;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The rounds of the search, in order of precedence.
const ROUNDS: &[for<'a> fn(&Search<'a>) -> Vec<Step<'a>>] = &[
    rounds::marked_dumps,
    given::files,
    rounds::files_named_by_pid,
    rounds::unexpected_files,
    rounds::maps_of_parents,
    rounds::maps_of_shared_memory,
    rounds::logs_named_by_pid,
    cores::core_dumps,
    rounds::registered_objects,
    orphans::matched_files,
    // Some perf maps were only matched by their contents. They, too, may name code of other processes that share the
    // JIT memory.
    rounds::maps_of_shared_memory,
    given::placed_objects,
];

/// Finds and opens the sources for a recording. `beside` is the input's directory.
pub fn find(processes: &Processes, options: &SourceOptions, beside: Option<&Path>, warnings: &mut Warnings) -> Found {
    find_at(processes, options, &Site { beside, ..Site::default() }, warnings)
}

/// Like [`find`], if more is known about the input than its directory.
pub fn find_at(processes: &Processes, options: &SourceOptions, site: &Site<'_>, warnings: &mut Warnings) -> Found {
    let mut search = Search {
        scene: Scene::new(processes, options, site),
        files: Vec::new(),
        failed: Vec::new(),
        kinds: BTreeSet::new(),
        used_paths: BTreeSet::new(),
        unassigned: Vec::new(),
        missing: Vec::new(),
        reported: BTreeSet::new(),
        warnings,
    };
    for plan in ROUNDS {
        for step in plan(&search) {
            search.carry_out(step);
        }
    }
    search.report_missing_dumps();
    search.report_reused_pids();
    search.date_logs();
    let Search { scene: Scene { live, .. }, files, failed, .. } = search;
    Found { files, failed, live, options: options.clone(), beside: site.beside.map(Path::to_owned), ..Found::none() }
}

/// One step of a plan.
enum Step<'a> {
    /// Look for a source.
    Look(Candidate<'a>),
    /// Use a source whose contents are known already.
    Use(Box<Source>),
    /// Report that a file isn't used: it can't be opened, or isn't what the user said.
    Refuse { path: PathBuf, kind: Kind, pid: Pid, error: Error },
    /// Report that a file may belong to a process but isn't used, or that it belongs to none. The warning is for files
    /// that the user named.
    NotMatched { account: Account, warning: Option<Warning> },
    /// Leave a file from the user to the round that matches files by their contents.
    Unassigned(PathBuf, Kind),
    /// Warn about a file from the user.
    Warn(Warning),
}

/// A source that may exist.
#[derive(Debug)]
struct Candidate<'a> {
    kind: Kind,
    /// The process, as recorded.
    pid: Pid,
    /// The process ID in the file's name or contents, which is that in the process's own PID namespace.
    inner: Option<Pid>,
    clue: Clue<'a>,
}

/// Why a source may exist. Decides where it is looked for ([`Scene::places`]), when it is needed
/// ([`Search::is_needed`]), and what is reported.
#[derive(Debug, Clone)]
enum Clue<'a> {
    /// The process mapped this marker, which is its jitdump.
    Marker(&'a Marker),
    /// The process has JIT memory, and runtimes name files after their process.
    JitMemory,
    /// The same, but the file is named after a running ancestor that shares its JIT memory.
    Parent,
    /// The process has no recorded JIT memory: its code may be in files, in static buffers, or in memory whose mapping
    /// wasn't recorded. Few such processes have these files, so files that can't be used aren't reported.
    Unexpected,
    /// A directory contains this file, which is named like a log of the process.
    Log(Place),
    /// A directory contains this core dump. It states the process, or if it can't be opened, its name does.
    Core(Place),
}

/// The state of a search.
struct Search<'a> {
    scene: Scene<'a>,
    /// The sources that were found.
    files: Vec<Source>,
    /// Sources that aren't used, and why.
    failed: Vec<Account>,
    /// Which kinds of sources each process has.
    kinds: BTreeSet<(Pid, Kind)>,
    /// The paths of files that are already used as sources, so that none is read twice.
    used_paths: BTreeSet<PathBuf>,
    /// Files from the user that state no process ID, or one that isn't recorded.
    unassigned: Vec<(PathBuf, Kind)>,
    /// Markers whose jitdump wasn't found, and the paths that were tried.
    missing: Vec<(&'a Marker, Vec<PathBuf>)>,
    /// Reports about unused files that were already made: process, file and reason. A file may be found by several
    /// paths.
    reported: BTreeSet<(Pid, FileId, String)>,
    warnings: &'a mut Warnings,
}

impl<'a> Search<'a> {
    fn carry_out(&mut self, step: Step<'a>) {
        match step {
            Step::Look(candidate) => self.look_for(&candidate),
            Step::Use(source) => self.add(*source),
            Step::Refuse { path, kind, pid, error } => self.report_refused(&path, kind, pid, error),
            Step::NotMatched { account, warning } => {
                self.failed.push(account);
                self.warnings.extend(warning);
            }
            Step::Unassigned(path, kind) => self.unassigned.push((path, kind)),
            Step::Warn(warning) => self.warnings.push(warning),
        }
    }

    /// Uses the first file that exists at the candidate's places and is acceptable. Reports each unacceptable one.
    fn look_for(&mut self, candidate: &Candidate<'a>) {
        if !self.is_needed(candidate) {
            return;
        }
        let places = self.scene.places(candidate);
        if candidate.excludes_used_files() && places.iter().any(|place| self.used_paths.contains(&place.path)) {
            return;
        }
        let is_reported = !matches!(candidate.clue, Clue::Unexpected);
        for place in &places {
            let opened = match self.scene.open(place) {
                None => continue,
                Some(Ok(opened)) => opened,
                Some(Err(error)) => {
                    if is_reported {
                        self.report_refused(&place.path, candidate.kind, candidate.pid, error);
                    }
                    continue;
                }
            };
            // Most core dumps contain no registered code.
            if matches!(candidate.clue, Clue::Core(_)) && !logs::has_code(candidate.kind, &opened.bytes) {
                continue;
            }
            let source = candidate.to_source(place, opened);
            if let Some(why) = self.scene.explain_if_stale(&source) {
                if is_reported {
                    let error = Error::new(format!("{NOT_USED}{why}"));
                    self.report_refused(&place.path, candidate.kind, candidate.pid, error);
                }
                continue;
            }
            if let Clue::Marker(marker) = candidate.clue {
                self.warn_if_replaced(&source, marker);
            }
            return self.add(source);
        }
        if let Clue::Marker(marker) = candidate.clue {
            self.missing.push((marker, places.into_iter().map(|place| place.path).collect()));
        }
    }

    /// False if the process has a source already that is as good as the candidate.
    fn is_needed(&self, candidate: &Candidate<'a>) -> bool {
        match candidate.clue {
            Clue::JitMemory | Clue::Parent => !self.kinds.contains(&(candidate.pid, candidate.kind)),
            Clue::Core(_) => self.needs_core(candidate.pid),
            Clue::Marker(_) | Clue::Unexpected | Clue::Log(_) => true,
        }
    }

    fn add(&mut self, source: Source) {
        self.kinds.insert((source.pid, source.kind));
        self.used_paths.insert(source.path.clone());
        self.files.push(source);
    }

    /// The kinds of sources that a process has.
    fn kinds_of(&self, pid: Pid) -> impl Iterator<Item = Kind> {
        // `JitDump` compares as the least kind, so the range contains all kinds of the process.
        let from_pid = self.kinds.range((pid, Kind::JitDump)..);
        from_pid.take_while(move |(other, _)| *other == pid).map(|(_, kind)| *kind)
    }

    /// Processes with JIT memory for which no source has been found.
    fn processes_without_source(&self) -> Vec<Pid> {
        self.scene.processes_not_injected().filter(|pid| self.kinds_of(*pid).next().is_none()).collect()
    }

    /// Warns if the file at a marker's path isn't the one that was mapped: it may have been overwritten since.
    fn warn_if_replaced(&mut self, source: &Source, marker: &Marker) {
        let (Some(about), Some(recorded)) = (&source.about, marker.file) else { return };
        let found = file_id(about);
        // Inode numbers can only be compared on the same device.
        let is_same_device = (found.major, found.minor) == (recorded.major, recorded.minor);
        if source.path == marker.path && is_same_device && found.inode != recorded.inode {
            let message = format!(
                "is not the file that process {} had mapped (its inode differs); it may be a copy, or from a later run",
                marker.pid
            );
            self.warnings.push(Warning::new(message).in_file(&marker.path, None));
        }
    }

    fn report_refused(&mut self, path: &Path, kind: Kind, pid: Pid, error: Error) {
        let reason = error.refusal();
        let warning = error.in_file(path).into_warning();
        let why = warning.message.strip_prefix(NOT_USED).unwrap_or(&warning.message).to_owned();
        let file = self.scene.door(path, Named::Habit).look(path).map(|about| file_id(&about));
        if file.is_some_and(|file| !self.reported.insert((pid, file, why.clone()))) {
            return;
        }
        let state = SourceState::Refused { why, reason };
        self.failed.push(Account { path: path.to_owned(), kind, pid, state, remark: None });
        self.warnings.push(warning);
    }

    fn report_missing_dumps(&mut self) {
        let mut reported: BTreeSet<PathBuf> = self.failed.iter().map(|account| account.path.clone()).collect();
        for (marker, looked_at) in std::mem::take(&mut self.missing) {
            let has_dump = self.kinds.contains(&(marker.pid, Kind::JitDump));
            // The names of injected code are already in the recording, so a missing jitdump doesn't matter.
            let is_injected = self.scene.process(marker.pid).is_some_and(Process::is_injected);
            let is_reported = looked_at.iter().any(|path| reported.contains(path));
            if !has_dump && !is_injected && !is_reported {
                reported.insert(marker.path.clone());
                self.report_missing_dump(marker, looked_at);
            }
        }
    }

    fn report_missing_dump(&mut self, marker: &Marker, looked_at: Vec<PathBuf>) {
        // If no recorded process has the ID in the path, the process probably ran in a container and wrote the file
        // there.
        let is_in_container = inner_pid(&marker.path).is_some_and(|inner| self.scene.process(inner).is_none());
        let remedy = if is_in_container { " (from a container: docker cp CONTAINER:PATH .)" } else { "" };
        self.warnings.push(Warning::new(format!(
            "{}: process {} mapped this jitdump, but it is not there, next to the input, or in the usual places; pass \
             its path with --jitdump{remedy}",
            marker.path.display(),
            marker.pid
        )));
        let state = SourceState::Missing { looked_at };
        let (path, kind, pid) = (marker.path.clone(), Kind::JitDump, marker.pid);
        self.failed.push(Account { path, kind, pid, state, remark: None });
    }

    /// Reports each process whose ID now belongs to another process, if no source was found for it.
    fn report_reused_pids(&mut self) {
        for (pid, why) in std::mem::take(&mut self.scene.not_running) {
            if self.kinds_of(pid).next().is_none() {
                let path = PathBuf::from(format!("/proc/{pid}/root"));
                self.failed.push(not_matched(path, Kind::PerfMap, pid, why));
            }
        }
    }
}

impl Candidate<'_> {
    /// True if the candidate isn't looked for once one of its files is used, for this or another process. A perf map
    /// may be used twice, because forked processes run the code of their parent's map.
    fn excludes_used_files(&self) -> bool {
        self.kind != Kind::PerfMap || matches!(self.clue, Clue::Unexpected)
    }

    fn to_source(&self, place: &Place, opened: Opened) -> Source {
        let marked = match self.clue {
            Clue::Marker(marker) => Some(marker.time).filter(|time| time.0 != 0),
            _ => None,
        };
        Source {
            inner: self.inner,
            marker: marked,
            remark: self.remark(place),
            ..Source::new(place.path.clone(), self.kind, self.pid, opened)
        }
    }

    /// Tells users why a file is used for a process that neither its name nor the user mentions. `None` if there is
    /// nothing to remark on.
    fn remark(&self, place: &Place) -> Option<String> {
        let why = match (&self.clue, self.inner, place.named) {
            (Clue::Parent, Some(parent), _) => {
                format!("which shares its JIT memory with its parent, process {parent}")
            }
            (_, _, Named::Inside(_)) => "which is still running in another mount namespace".to_owned(),
            _ => return None,
        };
        Some(unasked_use_remark(&place.path, self.pid, &why))
    }
}

/// Starts the warning about a file that isn't used. Left out where only the reason is shown.
const NOT_USED: &str = "not used: ";

/// The account of a file that belongs to no process, for this reason.
fn not_matched(path: PathBuf, kind: Kind, pid: Pid, why: String) -> Account {
    let remark = Some(not_matched_remark(&path, &why));
    let state = SourceState::Refused { why, reason: RefusalReason::Content };
    Account { path, kind, pid, state, remark }
}

fn not_matched_remark(path: &Path, why: &str) -> String {
    format!("not matched: {}: {why}", path.display())
}

fn unasked_use_remark(path: &Path, pid: Pid, why: &str) -> String {
    format!("{}: used for process {pid}, {why}", path.display())
}
