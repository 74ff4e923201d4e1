//! Logs of engines, found by the names they go by, also for processes that have a dump or a map (`beside`).
//!
//! A log whose name gives the process is taken as a dump is; a process may have several (V8: one an isolate). Names
//! that give none (`v8.log`) are matched by what the logs hold (`orphans`).

use super::{Finder, Source};
use crate::model::Pid;
use crate::records::jit_logs::{LogEventKind, LogId, LogProcess};
use crate::sources::account::Kind;
use crate::sources::trust::Named;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// As many bytes as it takes to show what a log is.
const HEAD: usize = 1 << 16;

/// The kind of log of a file.
pub(super) fn detect(bytes: &[u8]) -> Option<LogId> {
    LogId::detect(&bytes[..bytes.len().min(HEAD)])
}

/// The places of the code of a log; `None` if it is not a log of that kind.
pub(super) fn ranges(id: LogId, bytes: &[u8]) -> Option<Vec<(u64, u64)>> {
    detect(bytes).filter(|known| *known == id)?;
    let log = (id.log().read)(bytes).ok()?;
    let events = log.events.iter();
    let ranges = events.filter_map(|event| match event.kind {
        LogEventKind::Load(code) => Some((code.addr, code.addr.saturating_add(code.size))),
        LogEventKind::Move { .. } | LogEventKind::Unload { .. } => None,
    });
    Some(ranges.collect())
}

/// The process that a log of that kind shows without being read whole; `None` if it is none, or does not.
pub(super) fn process(id: LogId, bytes: &[u8]) -> Option<LogProcess> {
    detect(bytes).filter(|known| *known == id)?;
    id.log().process.and_then(|process| process(bytes))
}

impl Finder<'_> {
    /// Logs of processes for which the user named none.
    pub(super) fn logs(&mut self) {
        let has_log = |pid: &Pid| self.kinds_of(*pid).any(|kind| matches!(kind, Kind::Log(_)));
        let without: Vec<Pid> = self.not_injected().filter(|pid| !has_log(pid)).collect();
        if without.is_empty() {
            return;
        }
        let logs = self.log_files();
        let mut by_number: FxHashMap<Pid, Vec<usize>> = FxHashMap::default();
        for (at, log) in logs.iter().enumerate().filter(|(_, log)| !self.shared.contains(&log.of)) {
            by_number.entry(log.of).or_default().push(at);
        }
        for pid in without {
            let numbers = self.inner_pids(pid);
            let mut own: Vec<usize> = numbers.iter().filter_map(|of| by_number.get(of)).flatten().copied().collect();
            own.sort_unstable();
            for LogFile { path, named, kind, of } in own.into_iter().map(|at| logs[at].clone()) {
                let source = |path, contents| Source { inner: Some(of), ..Source::new(path, kind, pid, contents) };
                if !self.seen.contains(&path) {
                    self.first_good(&[(path, named)], source);
                }
            }
        }
    }

    /// Logs may give no time of the recording's: when their processes' code was first seen does. Data that several logs
    /// of one process need is kept for each.
    pub(super) fn date_logs(&mut self) {
        let Some(samples) = self.site.samples else { return };
        // A dump ties the log of its process.
        let of_dumps = self.found.files.iter().filter(|source| source.kind == Kind::JitDump).map(|source| source.pid);
        let with_dump: BTreeSet<Pid> = of_dumps.collect();
        let is_log = |source: &&mut Source| matches!(source.kind, Kind::Log(_)) && !with_dump.contains(&source.pid);
        let mut logs = self.found.files.iter_mut().filter(is_log).peekable();
        if logs.peek().is_none() {
            return;
        }
        let sampled = samples();
        for log in logs {
            log.seen = sampled.first.get(&log.pid).cloned().unwrap_or_default();
        }
    }

    /// Files whose names are those of logs, and give a process.
    fn log_files(&self) -> Vec<LogFile> {
        let mut files: Vec<LogFile> = Vec::new();
        let mut names: FxHashSet<OsString> = FxHashSet::default();
        for (directory, named) in self.log_directories(&[".", "/tmp"]) {
            let entries = self.door(directory, named).entries(directory, |name| log_named(name).is_some());
            let mut logs: Vec<_> = entries.into_iter().filter_map(|(name, _)| log_named(&name)).collect();
            logs.sort_unstable();
            for (name, id, of) in logs {
                // Logs that contain their process are queried directly.
                if id.log().process.is_some() {
                    continue;
                }
                // The first place that has it is meant.
                if names.insert(name.clone()) {
                    files.push(LogFile { path: directory.join(name), named, kind: Kind::Log(id), of });
                }
            }
        }
        files
    }
}

/// The log with this name, and its process.
fn log_named(name: &OsStr) -> Option<(OsString, LogId, Pid)> {
    let (id, of) = LogId::named(name.to_str()?).next()?;
    Some((name.to_owned(), id, Pid(of?)))
}

/// A file that goes by the name of a log.
#[derive(Debug, Clone)]
struct LogFile {
    path: PathBuf,
    named: Named,
    kind: Kind,
    /// The number in its name.
    of: Pid,
}
