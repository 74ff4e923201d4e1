//! Runtimes' logs: recognizing them and listing those that are named after a process.
//!
//! Logs are looked for even if a process has a jitdump or perf map (see `log_pairing`). A log with a process ID in its
//! name is used like a jitdump. A process may have several (V8 writes one per isolate). Logs without a process ID
//! (`v8.log`) are matched by their contents (see `orphans`).

use super::scene::Scene;
use super::steps::NamedPath;
use crate::jit::account::Kind;
use crate::jit::engine_logs::{LogEventKind, LogId, LogProcess};
use crate::model::Pid;
use rustc_hash::FxHashSet;
use std::ffi::{OsStr, OsString};

/// How many bytes at the start of a file are needed to recognize a log.
const HEAD: usize = 1 << 16;

/// Recognizes a log by its contents.
pub(super) fn detect(bytes: &[u8]) -> Option<LogId> {
    LogId::detect(&bytes[..bytes.len().min(HEAD)])
}

/// The address ranges (start, end) of a log's code; `None` if it isn't a log of this kind, or can't be read.
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

/// True if a log or core dump contains code.
pub(super) fn has_code(kind: Kind, bytes: &[u8]) -> bool {
    let Kind::Log(id) = kind else { return false };
    code_ranges(id, bytes).is_some_and(|ranges| !ranges.is_empty())
}

/// The process that a log or core dump states. `None` if the file isn't of this kind, or if this kind of file states no
/// process.
pub(super) fn read_process(id: LogId, bytes: &[u8]) -> Option<LogProcess> {
    if detect(bytes) != Some(id) {
        return None;
    }
    let read = id.log().find_process?;
    read(bytes)
}

/// A file that is named like a log of a process.
#[derive(Debug)]
pub(super) struct NamedLog {
    pub(super) named_path: NamedPath,
    pub(super) kind: Kind,
    /// The process ID in the file's name.
    pub(super) pid: Pid,
}

/// Files that are named like a log and contain a process ID in the name.
pub(super) fn named_logs(scene: &Scene<'_>) -> Vec<NamedLog> {
    let mut logs: Vec<NamedLog> = Vec::new();
    let mut names: FxHashSet<OsString> = FxHashSet::default();
    for NamedPath { path: directory, named } in scene.log_directories(&[".", "/tmp"]) {
        // Who named the directory (`named`) decides how files in it may be opened.
        let door = scene.door(&directory, named);
        let mut directory_logs = Vec::new();
        for (name, _) in door.entries(&directory, |name| parse_log_name(name).is_some()) {
            if let Some((id, pid)) = parse_log_name(&name) {
                directory_logs.push((name, id, pid));
            }
        }
        directory_logs.sort_unstable();
        for (name, id, pid) in directory_logs {
            // Kinds of logs that state their process, such as core dumps, are handled by `cores`.
            if id.log().find_process.is_some() {
                continue;
            }
            // The first directory that contains a file of this name wins.
            if names.insert(name.clone()) {
                logs.push(NamedLog {
                    named_path: NamedPath::new(directory.join(name), named),
                    kind: Kind::Log(id),
                    pid,
                });
            }
        }
    }
    logs
}

/// Recognizes a log by its file name. Returns its kind and the process ID in the name.
fn parse_log_name(name: &OsStr) -> Option<(LogId, Pid)> {
    let (id, pid) = LogId::find_by_name(name.to_str()?).next()?;
    Some((id, Pid(pid?)))
}
