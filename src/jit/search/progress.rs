//! The state of a search, and the loop that carries out the steps of its plans.

use super::logs;
use super::markers::inner_pid;
use super::scene::Scene;
use super::steps::{Candidate, Clue, NOT_USED, Step, not_matched};
use crate::error::{Error, Warning, Warnings};
use crate::jit::account::{Account, Kind, SourceState};
use crate::jit::found::Source;
use crate::jit::trust::{Named, file_id};
use crate::model::Pid;
use crate::model::process::{FileId, Marker, Process};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The state of a search.
pub(super) struct Search<'a> {
    pub(super) scene: Scene<'a>,
    /// The sources that were found.
    pub(super) files: Vec<Source>,
    /// Sources that aren't used, and why.
    pub(super) failed: Vec<Account>,
    /// Which kinds of sources each process has.
    pub(super) kinds: BTreeSet<(Pid, Kind)>,
    /// The paths of files that are already used as sources, so that none is read twice.
    pub(super) used_paths: BTreeSet<PathBuf>,
    /// Files from the user whose process isn't known: they state no process ID, or one that isn't recorded or that
    /// several processes have.
    pub(super) unassigned: Vec<(PathBuf, Kind)>,
    /// Markers whose jitdump wasn't found, and the paths that were tried.
    pub(super) missing: Vec<(&'a Marker, Vec<PathBuf>)>,
    /// The process, the file and the reason of each report about an unused file, so that a file that is found by
    /// several paths is reported only once.
    pub(super) reported: BTreeSet<(Pid, FileId, String)>,
    pub(super) warnings: &'a mut Warnings,
}

impl<'a> Search<'a> {
    /// Carries out one step of the plan.
    pub(super) fn carry_out(&mut self, step: Step<'a>) {
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

    /// Uses the first acceptable file among those that exist at the candidate's possible paths. Reports the
    /// unacceptable files before it, except for unexpected candidates. Remembers a marker whose jitdump isn't found.
    fn look_for(&mut self, candidate: &Candidate<'a>) {
        // The process already has a source that is as good.
        if !self.is_needed(candidate) {
            return;
        }
        let paths = self.scene.possible_paths(candidate);
        // Only a perf map may be used for two processes: a forked process runs the code in its parent's map.
        if candidate.excludes_used_files() && paths.iter().any(|named| self.used_paths.contains(&named.path)) {
            return;
        }
        // For an unexpected candidate, nothing shows that the process ran JIT code, so what can't be used isn't missed.
        let is_reported = !matches!(candidate.clue, Clue::Unexpected);
        for named_path in &paths {
            let opened = match self.scene.open(named_path) {
                None => continue,
                Some(Ok(opened)) => opened,
                Some(Err(error)) => {
                    if is_reported {
                        self.report_refused(&named_path.path, candidate.kind, candidate.pid, error);
                    }
                    continue;
                }
            };
            // Most core dumps contain no registered code. They are left out without a report.
            if matches!(candidate.clue, Clue::Core(_)) && !logs::has_code(candidate.kind, &opened.bytes) {
                continue;
            }
            let source = candidate.to_source(named_path, opened);
            if let Some(why) = self.scene.explain_if_stale(&source) {
                if is_reported {
                    let error = Error::new(format!("{NOT_USED}{why}"));
                    self.report_refused(&named_path.path, candidate.kind, candidate.pid, error);
                }
                continue;
            }
            if let Clue::Marker(marker) = candidate.clue {
                self.warn_if_replaced(&source, marker);
            }
            return self.add(source);
        }
        if let Clue::Marker(marker) = candidate.clue {
            self.missing.push((marker, paths.into_iter().map(|named| named.path).collect()));
        }
    }

    /// False if the process has a source already that is as good as the candidate.
    fn is_needed(&self, candidate: &Candidate<'a>) -> bool {
        match candidate.clue {
            Clue::JitMemory | Clue::Parent => !self.kinds.contains(&(candidate.pid, candidate.kind)),
            Clue::Core(_) => self.needs_core(candidate.pid),
            // Always needed: a process may have several markers and several logs, and unexpected files are only looked
            // for if the process has no source.
            Clue::Marker(_) | Clue::Unexpected | Clue::Log(_) => true,
        }
    }

    fn add(&mut self, source: Source) {
        self.kinds.insert((source.pid, source.kind));
        self.used_paths.insert(source.path.clone());
        self.files.push(source);
    }

    /// The kinds of sources that a process has so far.
    pub(super) fn kinds_of(&self, pid: Pid) -> impl Iterator<Item = Kind> {
        // `JitDump` compares as the least kind, so the range contains all kinds of the process.
        let from_pid = self.kinds.range((pid, Kind::JitDump)..);
        from_pid.take_while(move |(other, _)| *other == pid).map(|(_, kind)| *kind)
    }

    /// Processes with JIT memory for which no source has been found.
    pub(super) fn processes_without_source(&self) -> Vec<Pid> {
        self.scene.processes_not_injected().filter(|pid| self.kinds_of(*pid).next().is_none()).collect()
    }

    /// Warns if the file at a marker's path isn't the file that the process had mapped there, according to the
    /// recording. The file may have been overwritten since. (A marker is the mapping of a jitdump by the process that
    /// writes it.)
    fn warn_if_replaced(&mut self, source: &Source, marker: &Marker) {
        let (Some(about), Some(recorded)) = (&source.contents.about, marker.file) else { return };
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

    /// Reports that a file isn't used: as an account of the source, and as a warning. Reports nothing if the same was
    /// already reported for another path of the file.
    fn report_refused(&mut self, path: &Path, kind: Kind, pid: Pid, error: Error) {
        let reason = error.refusal();
        let warning = error.in_file(path).into_warning();
        // Accounts are displayed after "not used:", so they don't need these words.
        let why = warning.message.strip_prefix(NOT_USED).unwrap_or(&warning.message).to_owned();
        // Another path may lead to the same file, so files are compared by device and inode.
        let file = self.scene.door(path, Named::Convention).look(path).map(|about| file_id(&about));
        if file.is_some_and(|file| !self.reported.insert((pid, file, why.clone()))) {
            return;
        }
        let state = SourceState::Refused { why, reason };
        self.failed.push(Account { path: path.to_owned(), kind, pid, state, remark: None });
        self.warnings.push(warning);
    }

    /// Reports the jitdumps that processes mapped but that weren't found, each once. Leaves out processes for which
    /// another jitdump was found, and jitdumps at whose path a file was refused, because that was reported.
    pub(super) fn report_missing_dumps(&mut self) {
        let mut reported_paths: BTreeSet<PathBuf> = self.failed.iter().map(|account| account.path.clone()).collect();
        for (marker, looked_at) in std::mem::take(&mut self.missing) {
            let has_dump = self.kinds.contains(&(marker.pid, Kind::JitDump));
            // The names of injected code are already in the recording, so a missing jitdump doesn't matter.
            let is_injected = self.scene.process(marker.pid).is_some_and(Process::is_injected);
            let is_reported = looked_at.iter().any(|path| reported_paths.contains(path));
            if !has_dump && !is_injected && !is_reported {
                reported_paths.insert(marker.path.clone());
                self.report_missing_dump(marker, looked_at);
            }
        }
    }

    /// Reports one jitdump that wasn't found. `looked_at` are the paths that were tried.
    fn report_missing_dump(&mut self, marker: &Marker, looked_at: Vec<PathBuf>) {
        // If no recorded process has the ID in the path, the process probably ran in a container and wrote the file
        // there.
        let is_in_container = inner_pid(&marker.path).is_some_and(|inner| self.scene.process(inner).is_none());
        let remedy = if is_in_container { " (from a container: docker cp CONTAINER:PATH .)" } else { "" };
        self.warnings.push(Warning::new(format!(
            "{}: process {} mapped this jitdump, but no such file is at this path, next to the input, or in the usual \
             directories; pass the file's path with --jitdump{remedy}",
            marker.path.display(),
            marker.pid
        )));
        let state = SourceState::Missing { looked_at };
        let (path, kind, pid) = (marker.path.clone(), Kind::JitDump, marker.pid);
        self.failed.push(Account { path, kind, pid, state, remark: None });
    }

    /// Reports each process whose ID now belongs to another process, if no source was found for it.
    pub(super) fn report_reused_pids(&mut self) {
        for (pid, why) in std::mem::take(&mut self.scene.not_running) {
            if self.kinds_of(pid).next().is_none() {
                let path = PathBuf::from(format!("/proc/{pid}/root"));
                self.failed.push(not_matched(path, Kind::PerfMap, pid, why));
            }
        }
    }

    /// Stores in each log when each address of its process was first sampled, so that the log can be dated later. If a
    /// process has several logs, each gets a copy. Does nothing for processes that have a jitdump.
    pub(super) fn store_first_times_in_logs(&mut self) {
        let Some(samples) = self.scene.site.samples else { return };
        // If a process also has a jitdump, its log is dated by comparing it with the jitdump, which needs no samples.
        let dumps = self.files.iter().filter(|source| source.kind == Kind::JitDump);
        let with_dump: BTreeSet<Pid> = dumps.map(|source| source.pid).collect();
        let logs = self.files.iter_mut().filter(|source| matches!(source.kind, Kind::Log(_)));
        let mut logs = logs.filter(|source| !with_dump.contains(&source.pid)).peekable();
        if logs.peek().is_none() {
            return;
        }
        let sampled = samples();
        for log in logs {
            log.first_seen = sampled.first_times.get(&log.pid).cloned().unwrap_or_default();
        }
    }
}
