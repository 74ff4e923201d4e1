//! Finds logs of runtimes by their file names, even for processes that have a jitdump or perf map (see `log_pairing`).
//!
//! A log with a process ID in its name is used like a jitdump. A process may have several (V8 writes one per isolate).
//! Logs without a process ID (`v8.log`) are matched by their contents (see `orphans`).

use super::{Finder, Source};
use crate::model::Pid;
use crate::records::jit_logs::{LogEventKind, LogId, LogProcess};
use crate::sources::account::Kind;
use crate::sources::trust::Named;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// How many bytes at the start of a file are needed to recognize a log.
const HEAD: usize = 1 << 16;

/// Recognizes a log by its contents.
pub(super) fn detect(bytes: &[u8]) -> Option<LogId> {
    LogId::detect(&bytes[..bytes.len().min(HEAD)])
}

/// The address ranges (start, end) of a log's code; `None` if it isn't a log of this kind.
pub(super) fn code_ranges(id: LogId, bytes: &[u8]) -> Option<Vec<(u64, u64)>> {
    if detect(bytes) != Some(id) {
        return None;
    }
    let log = (id.log().read)(bytes).ok()?;
    let mut ranges = Vec::new();
    for event in &log.events {
        if let LogEventKind::Load(code) = event.kind {
            ranges.push((code.addr, code.addr.saturating_add(code.size)));
        }
    }
    Some(ranges)
}

/// The process that a log or core dump states near its start; `None` if it isn't of this kind or states none.
pub(super) fn read_process(id: LogId, bytes: &[u8]) -> Option<LogProcess> {
    if detect(bytes) != Some(id) {
        return None;
    }
    let read = id.log().process?;
    read(bytes)
}

impl Finder<'_> {
    /// Finds the logs of processes for which the user named none.
    pub(super) fn find_logs(&mut self) {
        let has_log = |pid: &Pid| self.kinds_of(*pid).any(|kind| matches!(kind, Kind::Log(_)));
        let without_log: Vec<Pid> = self.processes_not_injected().filter(|pid| !has_log(pid)).collect();
        if without_log.is_empty() {
            return;
        }
        let logs = self.log_files();
        // For each process ID, the indices of the logs with this ID in their names.
        let mut by_pid: FxHashMap<Pid, Vec<usize>> = FxHashMap::default();
        for (index, log) in logs.iter().enumerate() {
            if !self.shared_pids.contains(&log.pid) {
                by_pid.entry(log.pid).or_default().push(index);
            }
        }
        for pid in without_log {
            let inner_pids = self.inner_pids(pid);
            let logs_of_process = inner_pids.iter().filter_map(|inner| by_pid.get(inner));
            let mut indices: Vec<usize> = logs_of_process.flatten().copied().collect();
            indices.sort_unstable();
            for index in indices {
                let LogFile { path, named, kind, pid: inner } = logs[index].clone();
                if !self.used_paths.contains(&path) {
                    self.use_first_good(&[(path, named)], |path, contents| Source {
                        inner: Some(inner),
                        ..Source::new(path, kind, pid, contents)
                    });
                }
            }
        }
    }

    /// For logs whose times aren't on the recording's clock: stores in each log when each address of its process was
    /// first sampled. If a process has several such logs, each gets a copy.
    pub(super) fn date_logs(&mut self) {
        let Some(samples) = self.site.samples else { return };
        // A log of a process that also has a jitdump is dated by comparing the two, which needs no samples.
        let dumps = self.found.files.iter().filter(|source| source.kind == Kind::JitDump);
        let with_dump: BTreeSet<Pid> = dumps.map(|source| source.pid).collect();
        let logs = self.found.files.iter_mut().filter(|source| matches!(source.kind, Kind::Log(_)));
        let mut logs = logs.filter(|source| !with_dump.contains(&source.pid)).peekable();
        if logs.peek().is_none() {
            return;
        }
        let sampled = samples();
        for log in logs {
            log.seen = sampled.first.get(&log.pid).cloned().unwrap_or_default();
        }
    }

    /// Files that are named like a log and contain a process ID in the name.
    fn log_files(&self) -> Vec<LogFile> {
        let mut files: Vec<LogFile> = Vec::new();
        let mut names: FxHashSet<OsString> = FxHashSet::default();
        for (directory, named) in self.log_directories(&[".", "/tmp"]) {
            let entries = self.door(directory, named).entries(directory, |name| parse_log_name(name).is_some());
            let mut logs = Vec::new();
            for (name, _) in entries {
                if let Some((id, pid)) = parse_log_name(&name) {
                    logs.push((name, id, pid));
                }
            }
            logs.sort_unstable();
            for (name, id, pid) in logs {
                // Kinds of logs that state their process, such as core dumps, are handled by `cores`.
                if id.log().process.is_some() {
                    continue;
                }
                // The first directory that contains a file of this name wins.
                if names.insert(name.clone()) {
                    files.push(LogFile { path: directory.join(name), named, kind: Kind::Log(id), pid });
                }
            }
        }
        files
    }
}

/// Recognizes a log by its file name. Returns its kind and the process ID in the name.
fn parse_log_name(name: &OsStr) -> Option<(LogId, Pid)> {
    let (id, pid) = LogId::find_by_name(name.to_str()?).next()?;
    Some((id, Pid(pid?)))
}

/// A file that is named like a log.
#[derive(Debug, Clone)]
struct LogFile {
    path: PathBuf,
    named: Named,
    kind: Kind,
    /// The process ID in the file's name.
    pid: Pid,
}
