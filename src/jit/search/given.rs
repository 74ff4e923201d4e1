//! The files that the user named: which process each of them belongs to, and which of them may belong to a given
//! process.

use super::logs;
use super::markers::inner_pid;
use super::progress::Search;
use super::scene::Scene;
use super::steps::{NOT_USED, NamedPath, Step, UNKNOWN_PROCESS};
use crate::error::{Error, Warning};
use crate::io::door::Opened;
use crate::io::is_directory;
use crate::jit::account::Kind;
use crate::jit::engine_logs::LogProcess;
use crate::jit::found::Source;
use crate::jit::options::{GivenFile, SourceOptions};
use crate::jit::trust::Named;
use crate::jit::{jitdump, perf_map};
use crate::model::Pid;
use crate::model::process::ProcessListState;
use crate::symbolize::symbols::files::ELF;
use rustc_hash::FxHashSet;
use std::ffi::OsStr;
use std::path::Path;

impl Scene<'_> {
    /// The paths from the user at which the jitdump of process `pid` may be. `name` is the jitdump's file name, and
    /// `inner` the process's ID in its own namespace.
    ///
    /// In a directory that the user named, this is the file called `name`. A file that the user named is returned if it
    /// was named for this process (`FILE@PID`), if it is called `name`, or if it has `inner` in its header.
    pub(super) fn given_dumps(&self, name: &OsStr, inner: Option<Pid>, pid: Pid) -> Vec<NamedPath> {
        let is_shared = inner.is_some_and(|inner| self.shared_pids.contains(&inner));
        let mut paths = Vec::new();
        for given in self.given_files.dumps.files_for(pid, is_shared) {
            let path = &given.path;
            // `files_for` leaves out files that the user named for other processes. So if the user stated a process for
            // this file, it is the process `pid`.
            let is_for_process = given.pid.is_some();
            if is_directory(path) {
                paths.push(NamedPath::new(path.join(name), Named::Directory));
            } else if is_for_process
                || path.file_name() == Some(name)
                || (inner.is_some() && self.pid_in_dump(path) == inner)
            {
                paths.push(NamedPath::new(path, Named::User));
            }
        }
        paths
    }

    /// The process ID in the header of a jitdump that the user named; `None` if the file can't be read. Reads each file
    /// only once.
    fn pid_in_dump(&self, path: &Path) -> Option<Pid> {
        if let Some(known) = self.given_files.pids_in_dumps.borrow().get(path) {
            return *known;
        }
        let opened = self.open(&NamedPath::new(path, Named::User)).and_then(Result::ok);
        let pid = opened.and_then(|opened| pid_in_header(&opened.bytes));
        self.given_files.pids_in_dumps.borrow_mut().insert(path.to_owned(), pid);
        pid
    }

    /// The only process with JIT memory, to which a file from the user must belong even if the file states another
    /// process ID (`inner`). `None` if there are several such processes, or none.
    ///
    /// While text is read, the list of processes may still grow. Until it is complete, the result is `None` for a file
    /// that states a process ID; for any other file, it is the process of the first unnamed frames (`None` if unknown).
    fn only_candidate(&self, inner: Option<Pid>) -> Option<Pid> {
        match (self.processes.list_state, &self.jit_processes[..]) {
            (ProcessListState::Complete, &[only]) => Some(only),
            // If the file states an ID, the process with this ID may still be added to the list, so `first` isn't the
            // answer.
            (ProcessListState::Partial(first), _) if inner.is_none() => first,
            _ => None,
        }
    }
}

/// Plans what to do with the files from the user that no marker refers to. Directories from the user are searched in
/// other rounds.
pub(super) fn files<'a>(search: &Search<'a>) -> Vec<Step<'a>> {
    let SourceOptions { jitdump, perf_map, jit_log, .. } = search.scene.options;
    let mut steps = Vec::new();
    let mut planned: FxHashSet<&Path> = FxHashSet::default();
    // The kind of a log is unknown (`None`) until its contents are read.
    for (list, kind) in [(jitdump, Some(Kind::JitDump)), (perf_map, Some(Kind::PerfMap)), (jit_log, None)] {
        for given in list {
            let path = given.path.as_path();
            // A marker may have led to the file in an earlier round, or the user may have passed the same file twice.
            if search.used_paths.contains(path) || planned.contains(path) || is_directory(path) {
                continue;
            }
            let step = plan_file(given, kind, &search.scene);
            if let Step::Use(source) = &step {
                planned.insert(path);
                // A file that the user named is used even if it seems to belong to another process; there is only a
                // warning.
                if let Some(why) = search.scene.explain_if_core_contradicts(source) {
                    steps.push(Step::Warn(Warning::new(why).in_file(path, None)));
                }
            }
            steps.push(step);
        }
    }
    steps
}

/// Opens a file that the user named and determines its process. `kind` is `None` for a log, because only the contents
/// of a log show which kind of log it is. `scene` is what is known about the recording.
fn plan_file<'a>(given: &GivenFile, kind: Option<Kind>, scene: &Scene<'_>) -> Step<'a> {
    let path = &given.path;
    let opened = scene.open(&NamedPath::new(path, Named::User));
    let opened = match opened.unwrap_or_else(|| Err(Error::new("does not exist"))) {
        Ok(opened) => opened,
        // A source is reported with its kind. The kind of a log that can't be opened is unknown, so there is only a
        // warning.
        Err(error) => {
            return match kind {
                Some(kind) => Step::Refuse { path: path.clone(), kind, pid: UNKNOWN_PROCESS, error },
                None => Step::Warn(error.in_file(path).into_warning()),
            };
        }
    };
    let Some(kind) = kind.or_else(|| logs::detect(&opened.bytes).map(Kind::Log)) else {
        let error = Error::new("is not a log that jitgraft reads (jitgraft formats lists them)");
        return Step::Warn(error.in_file(path).into_warning());
    };
    plan_opened(given, kind, opened, scene)
}

/// Decides what to do with a file that the user named: use it for a process, refuse it, or leave it to the round that
/// matches files by their contents. `scene` is what is known about the recording.
fn plan_opened<'a>(given: &GivenFile, kind: Kind, opened: Opened, scene: &Scene<'_>) -> Step<'a> {
    let path = given.path.clone();
    if let Some(hint) = wrong_option_hint(kind, &opened.bytes) {
        return Step::Refuse { path, kind, pid: UNKNOWN_PROCESS, error: Error::new(hint) };
    }
    // `inner` is the process ID in the file or its name, and `outer` the ID of that process in the recording.
    // `recorded` is `outer` again, but `None` if the process wasn't recorded, or if several processes have the ID
    // `inner`.
    let inner = inner_pid_of_file(&path, kind, &opened.bytes);
    let outer = inner.map(|inner| scene.recorded_pid(inner));
    let is_shared = inner.is_some_and(|inner| scene.shared_pids.contains(&inner));
    let recorded = outer.filter(|pid| !is_shared && scene.process(*pid).is_some());
    // The process that the user stated (`FILE@PID`) takes precedence; then the one with the file's ID; then the only
    // one that has JIT memory.
    let certain = given.pid.or(recorded).or_else(|| scene.only_candidate(inner));
    // If there are several candidates, the samples may show later to which of them the file belongs.
    if certain.is_none() && scene.site.samples.is_some() && scene.jit_processes.len() > 1 {
        return Step::Unassigned(path, kind);
    }
    // If none of these three gives a process, the ID in the file or its name decides, even if several processes have
    // that ID.
    let Some(pid) = certain.or(outer) else {
        let error = Error::new("neither the file nor its name says which process it is from; pass FILE@PID");
        return Step::Refuse { path, kind, pid: UNKNOWN_PROCESS, error };
    };
    // Only a recording lists every process. Text contains only some of them, and a callgrind file only one, so there
    // the process may have existed although it isn't listed.
    if scene.processes.is_recording && scene.process(pid).is_none() {
        let why = format!(
            "{NOT_USED}the file is from process {pid}, which is not in the recording; pass FILE@PID to use it for \
             another process"
        );
        return Step::Refuse { path, kind, pid, error: Error::new(why) };
    }
    Step::Use(Box::new(Source { inner, ..Source::new(path, kind, pid, opened) }))
}

/// Plans to use the ELF objects that the user placed at an address (`--elf`): for every process with JIT memory or, if
/// there is none, for every process. Refuses objects that can't be opened.
pub(super) fn placed_objects<'a>(search: &Search<'a>) -> Vec<Step<'a>> {
    let scene = &search.scene;
    let mut pids = scene.jit_processes.clone();
    if pids.is_empty() && !scene.options.elf.is_empty() {
        // ID 0 is the kernel's idle task, and negative IDs stand for no process.
        pids = scene.processes.by_pid.keys().copied().filter(|pid| pid.0 > 0).collect();
    }
    let mut steps = Vec::new();
    for (path, addr) in &scene.options.elf {
        for &pid in &pids {
            let kind = Kind::PlacedElf;
            let opened = scene.door(path, Named::User).open(path, ELF);
            steps.push(match opened.unwrap_or_else(|| Err(Error::new("does not exist"))) {
                Ok(opened) => {
                    Step::Use(Box::new(Source { addr: *addr, ..Source::new(path.clone(), kind, pid, opened) }))
                }
                Err(error) => Step::Refuse { path: path.clone(), kind, pid, error },
            });
        }
    }
    steps
}

/// The process ID that a file or its name states. It is the ID in the process's own PID namespace.
fn inner_pid_of_file(path: &Path, kind: Kind, bytes: &[u8]) -> Option<Pid> {
    // A core dump's name may contain more than one number, so prefer its contents.
    if let Kind::Log(id) = kind
        && let Some(LogProcess { pid: Some(pid), .. }) = logs::read_process(id, bytes)
    {
        return Some(Pid(pid));
    }
    let in_name = inner_pid(path);
    if in_name.is_none() && kind == Kind::JitDump {
        return pid_in_header(bytes);
    }
    in_name
}

/// The process ID in a jitdump's header.
fn pid_in_header(bytes: &[u8]) -> Option<Pid> {
    jitdump::JitDump::parse(bytes).ok().map(|dump| Pid(dump.header.pid))
}

/// The error for a jitdump that was passed as a perf map, or the other way round; `None` for all other files.
fn wrong_option_hint(kind: Kind, bytes: &[u8]) -> Option<&'static str> {
    let head = &bytes[..bytes.len().min(4096)];
    match kind {
        Kind::PerfMap if jitdump::sniff(head) => Some("is a jitdump, not a perf map; pass it with --jitdump"),
        Kind::JitDump if !jitdump::sniff(head) && perf_map::sniff(head) => {
            Some("is a perf map, not a jitdump; pass it with --perf-map")
        }
        _ => None,
    }
}
