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

/// How many bytes are needed to recognize a log.
const HEAD: usize = 1 << 16;

/// Recognizes a log by its contents.
pub(super) fn detect(bytes: &[u8]) -> Option<LogId> {
    LogId::detect(&bytes[..bytes.len().min(HEAD)])
}

/// The address ranges (start, end) of a log's code; `None` if it isn't a log of this kind.
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

/// The process that a log or core dump states near its start; `None` if it isn't of this kind or states none.
pub(super) fn process(id: LogId, bytes: &[u8]) -> Option<LogProcess> {
    detect(bytes).filter(|known| *known == id)?;
    id.log().process.and_then(|process| process(bytes))
}

impl Finder<'_> {
    /// Adds logs of processes that have none from the user.
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

    /// For logs whose times aren't on the recording's clock: stores when each code address was first sampled. Each of
    /// several logs of a process gets a copy.
    pub(super) fn date_logs(&mut self) {
        let Some(samples) = self.site.samples else { return };
        // If the process also has a jitdump, the log is related to that instead.
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

    /// Files that are named like a log and contain a process ID in the name.
    fn log_files(&self) -> Vec<LogFile> {
        let mut files: Vec<LogFile> = Vec::new();
        let mut names: FxHashSet<OsString> = FxHashSet::default();
        for (directory, named) in self.log_directories(&[".", "/tmp"]) {
            let entries = self.door(directory, named).entries(directory, |name| log_named(name).is_some());
            let mut logs: Vec<_> = entries.into_iter().filter_map(|(name, _)| log_named(&name)).collect();
            logs.sort_unstable();
            for (name, id, of) in logs {
                // Kinds of logs that state their process, such as core dumps, are handled by `cores`.
                if id.log().process.is_some() {
                    continue;
                }
                // The first directory that contains a file of this name wins.
                if names.insert(name.clone()) {
                    files.push(LogFile { path: directory.join(name), named, kind: Kind::Log(id), of });
                }
            }
        }
        files
    }
}

/// Recognizes a log by its file name: the name, the kind of log, and the process ID in it.
fn log_named(name: &OsStr) -> Option<(OsString, LogId, Pid)> {
    let (id, of) = LogId::named(name.to_str()?).next()?;
    Some((name.to_owned(), id, Pid(of?)))
}

/// A file that is named like a log.
#[derive(Debug, Clone)]
struct LogFile {
    path: PathBuf,
    named: Named,
    kind: Kind,
    /// The process ID in the file's name.
    of: Pid,
}
