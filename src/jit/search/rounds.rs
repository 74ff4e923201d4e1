//! The rounds that look for files named after a process or mapped by it, and for code that is in no file.

use super::logs::named_logs;
use super::markers::inner_pid;
use super::progress::Search;
use super::steps::{Candidate, Clue, NamedPath, Step, unasked_use_remark};
use crate::error::Error;
use crate::jit::account::Kind;
use crate::jit::engine_logs::LogId;
use crate::jit::found::Source;
use crate::jit::live;
use crate::jit::registered::{CopiedObjects, copy_registered_objects};
use crate::model::Pid;
use crate::model::process::{Marker, Process, SharedMemory};
use rustc_hash::FxHashMap;
use std::path::PathBuf;

/// Plans to look for the jitdumps that processes mapped as their markers (so that the recording mentions them).
pub(super) fn marked_dumps<'a>(search: &Search<'a>) -> Vec<Step<'a>> {
    let mut markers: Vec<&Marker> = search.scene.processes.markers.iter().collect();
    // Markers of processes that wrote their jitdump come before markers that a child inherited; then in the order of
    // the recording.
    markers.sort_by_key(|marker| (!is_written_by_its_process(marker, search), marker.offset));
    let mut steps = Vec::new();
    for marker in markers.into_iter().filter(|marker| marker.path.file_name().is_some()) {
        let (pid, inner) = (marker.pid, inner_pid(&marker.path));
        steps.push(Step::Look(Candidate { kind: Kind::JitDump, pid, inner, clue: Clue::Marker(marker) }));
    }
    steps
}

/// True if the process that mapped a marker also wrote the jitdump: the marker's file name contains this process's ID.
fn is_written_by_its_process(marker: &Marker, search: &Search<'_>) -> bool {
    let Some(inner) = inner_pid(&marker.path) else { return false };
    marker.pid == search.scene.recorded_pid(inner)
}

/// Plans to look for the jitdump and the perf map of each process with JIT memory, by the process ID in their names.
/// That is the ID that the process has in its own PID namespace (`inner`), for example in a container.
pub(super) fn files_named_by_pid<'a>(search: &Search<'a>) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    for &pid in &search.scene.jit_processes {
        let inner_pids = search.scene.inner_pids(pid);
        for kind in [Kind::JitDump, Kind::PerfMap] {
            for &inner in &inner_pids {
                steps.push(Step::Look(Candidate { kind, pid, inner: Some(inner), clue: Clue::JitMemory }));
            }
        }
    }
    steps
}

/// Plans to look for jitdumps and perf maps that aren't expected ([`Clue::Unexpected`]): the recording shows no JIT
/// memory of their processes. This is only done for processes that have no source yet. The files are found by the
/// process ID in their names.
pub(super) fn unexpected_files<'a>(search: &Search<'a>) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    for (&pid, process) in &search.scene.processes.by_pid {
        // The process ID in a file's name is the one that the process has in its own PID namespace.
        let inner = process.inner_pid.unwrap_or(pid);
        // ID 0 is the kernel's idle task, and negative IDs stand for no process. The names of injected code are already
        // in the recording, so no file is needed for it.
        let is_candidate = pid.0 > 0 && !process.has_jit_memory && !process.is_injected();
        // If several processes have the ID `inner` in their own namespaces, it isn't clear whose files are named after
        // it.
        if !is_candidate || search.scene.shared_pids.contains(&inner) || search.kinds_of(pid).next().is_some() {
            continue;
        }
        for kind in [Kind::JitDump, Kind::PerfMap] {
            steps.push(Step::Look(Candidate { kind, pid, inner: Some(inner), clue: Clue::Unexpected }));
        }
    }
    steps
}

/// Plans to look for perf maps that are named after a running ancestor of a recorded process, and that list code in
/// memory that the process shares with this ancestor.
///
/// A server such as PHP-FPM may fork its workers before the recording begins. The recording doesn't say whose children
/// they are, but they run the server's JIT code in shared memory, and the perf map for that code is named after the
/// server's process.
pub(super) fn maps_of_parents<'a>(search: &Search<'a>) -> Vec<Step<'a>> {
    let Some(proc) = search.scene.site.proc else { return Vec::new() };
    let mut steps = Vec::new();
    for (pid, memory) in sharing_processes_without_map(search) {
        if !search.scene.live.contains_key(&pid) {
            continue;
        }
        for parent in live::find_parents_sharing(proc, pid, memory) {
            // The parent's ID, because the perf map is named after the parent.
            let (kind, inner) = (Kind::PerfMap, Some(parent));
            steps.push(Step::Look(Candidate { kind, pid, inner, clue: Clue::Parent }));
        }
    }
    steps
}

/// If a perf map was found for a process, plans to use the map also for each process that has no perf map and shares
/// JIT memory with the first process: the map names the code of both.
pub(super) fn maps_of_shared_memory<'a>(search: &Search<'a>) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    for (pid, memory) in sharing_processes_without_map(search) {
        let mut maps = search.files.iter().filter(|source| source.kind == Kind::PerfMap);
        if let Some(map) = maps.find(|map| shared_memory_of(map.pid, search) == Some(memory)) {
            let why = format!("which shares its JIT memory with process {}", map.pid);
            let remark = Some(unasked_use_remark(&map.path, pid, &why));
            let shared = Source::new(map.path.clone(), map.kind, pid, map.contents.clone());
            steps.push(Step::Use(Box::new(Source { inner: map.inner, remark, ..shared })));
        }
    }
    steps
}

/// Lists the processes without a perf map whose JIT memory may be shared with other processes, each with that memory.
fn sharing_processes_without_map(search: &Search<'_>) -> Vec<(Pid, SharedMemory)> {
    let mut sharing = Vec::new();
    for &pid in &search.scene.jit_processes {
        if !search.kinds.contains(&(pid, Kind::PerfMap))
            && let Some(memory) = shared_memory_of(pid, search)
        {
            sharing.push((pid, memory));
        }
    }
    sharing
}

fn shared_memory_of(pid: Pid, search: &Search<'_>) -> Option<SharedMemory> {
    search.scene.process(pid).filter(|process| !process.is_injected()).and_then(Process::shared_jit_memory)
}

/// Plans to use the logs that are named after processes for which no log has been found yet.
pub(super) fn logs_named_by_pid<'a>(search: &Search<'a>) -> Vec<Step<'a>> {
    // Processes are left out if their JIT code was injected into the recording, because it has names already.
    let mut without_log: Vec<Pid> = search.scene.processes_not_injected().collect();
    without_log.retain(|pid| !search.kinds_of(*pid).any(|kind| matches!(kind, Kind::Log(_))));
    if without_log.is_empty() {
        return Vec::new();
    }
    let logs = named_logs(&search.scene);
    // For each process ID, the indices of the logs with this ID in their names.
    let mut by_pid: FxHashMap<Pid, Vec<usize>> = FxHashMap::default();
    for (index, log) in logs.iter().enumerate() {
        // An ID that several processes have, each in its own namespace, doesn't tell whose log it is.
        if !search.scene.shared_pids.contains(&log.pid) {
            by_pid.entry(log.pid).or_default().push(index);
        }
    }
    let mut steps = Vec::new();
    for pid in without_log {
        let inner_pids = search.scene.inner_pids(pid);
        let mut indices: Vec<usize> =
            inner_pids.iter().filter_map(|inner| by_pid.get(inner)).flatten().copied().collect();
        // The indices are in the order of `named_logs`: logs in directories that the user named come first.
        indices.sort_unstable();
        for index in indices {
            let log = &logs[index];
            let clue = Clue::Log(NamedPath::clone(&log.named_path));
            steps.push(Step::Look(Candidate { kind: log.kind, pid, inner: Some(log.pid), clue }));
        }
    }
    steps
}

/// For each running process that has no source: copies the code that the process has registered with GDB's JIT
/// interface, and plans to use the copy.
pub(super) fn registered_objects<'a>(search: &Search<'a>) -> Vec<Step<'a>> {
    // The copies are core dumps, so the reader of core dumps reads them.
    let Some((log, _)) = LogId::find_by_name("core").next() else { return Vec::new() };
    let kind = Kind::Log(log);
    let mut steps = Vec::new();
    let mut refusal = None;
    for pid in search.processes_without_source() {
        let Some(live) = search.scene.live.get(&pid) else { continue };
        match copy_registered_objects(live, pid) {
            None => {}
            Some(Ok(CopiedObjects { path, core })) => {
                let why = "which is still running and has registered its code with GDB's JIT interface";
                let remark = Some(unasked_use_remark(&path, pid, why));
                steps.push(Step::Use(Box::new(Source { remark, ..Source::new(path, kind, pid, core) })));
            }
            // The error is the same for every process, so report it only once.
            Some(Err(error)) => {
                refusal.get_or_insert_with(|| refuse_memory(pid, kind, error));
            }
        }
    }
    steps.extend(refusal);
    steps
}

fn refuse_memory<'a>(pid: Pid, kind: Kind, error: Error) -> Step<'a> {
    Step::Refuse { path: PathBuf::from(format!("/proc/{pid}/mem")), kind, pid, error }
}
