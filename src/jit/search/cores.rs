//! Finds core dumps of processes that have neither jitdump nor log. They contain the code that was registered with
//! GDB's JIT interface.
//!
//! A core dump states which process it is from and what that process had mapped. Therefore its name needn't contain the
//! process ID (`core`), and mappings that contradict the recording rule it out.

use super::logs;
use super::progress::Search;
use super::scene::Scene;
use super::steps::{Candidate, Clue, NamedPath, Step};
use crate::jit::account::Kind;
use crate::jit::engine_logs::{LogId, LogProcess, MappedFile};
use crate::jit::found::Source;
use crate::jit::live::recorded_files;
use crate::model::Pid;
use crate::model::mapping_kind::base_name;
use crate::model::process::Process;
use std::ffi::OsStr;

/// Where systemd stores core dumps. Only uncompressed ones can be read.
const SYSTEMD: &str = "/var/lib/systemd/coredump";

/// The maximum number of core dumps to open per directory.
const MAX_PER_DIRECTORY: usize = 32;

/// A file that is named like a core dump.
struct CoreFile {
    named_path: NamedPath,
    id: LogId,
    /// The process ID in the file's name; `None` if it contains none.
    pid: Option<Pid>,
}

/// Plans to look at the core dumps of processes that have no better source.
pub(super) fn core_dumps<'a>(search: &Search<'a>) -> Vec<Step<'a>> {
    let scene = &search.scene;
    // Processes are left out if their JIT code was injected into the recording, because it has names already.
    if !scene.processes_not_injected().any(|pid| search.needs_core(pid)) {
        return Vec::new();
    }
    let mut steps = Vec::new();
    for CoreFile { named_path, id, pid: pid_in_name } in core_files(search) {
        let inner = match scene.open(&named_path) {
            // The file is gone since its directory was listed.
            None => continue,
            Some(Ok(opened)) => match logs::read_process(id, &opened.bytes) {
                Some(LogProcess { pid: Some(inner), .. }) => Pid(inner),
                // The file isn't a core dump, or doesn't state its process.
                _ => continue,
            },
            // The process in the core dump is unknown, so the file's name has to decide. The search opens the file
            // again and reports why it can't be opened.
            Some(Err(_)) => match pid_in_name {
                Some(inner) => inner,
                None => continue,
            },
        };
        // Several recorded processes have this ID in their own namespaces, so it doesn't tell which of them the core
        // dump is from.
        if scene.shared_pids.contains(&inner) {
            continue;
        }
        for pid in scene.processes_not_injected().filter(|pid| scene.inner_pids(*pid).contains(&inner)) {
            let (kind, clue) = (Kind::Log(id), Clue::Core(named_path.clone()));
            steps.push(Step::Look(Candidate { kind, pid, inner: Some(inner), clue }));
        }
    }
    steps
}

/// Files in the usual directories that are named like core dumps and aren't used yet: of each directory at most the
/// newest [`MAX_PER_DIRECTORY`], newest first.
fn core_files(search: &Search<'_>) -> Vec<CoreFile> {
    let mut files = Vec::new();
    for NamedPath { path: directory, named } in search.scene.log_directories(&[".", "/tmp", SYSTEMD]) {
        let mut cores = Vec::new();
        // Who named the directory (`named`) decides how files in it may be opened.
        let door = search.scene.door(&directory, named);
        for (name, about) in door.entries(&directory, |name| parse_core_name(name).is_some()) {
            let path = directory.join(&name);
            if about.is_file()
                && !search.used_paths.contains(&path)
                && let Ok(written) = about.modified()
                && let Some((id, pid)) = parse_core_name(&name)
            {
                cores.push((written, path, id, pid));
            }
        }
        // Sorts by the time at which the files were written.
        cores.sort();
        for (_, path, id, pid) in cores.into_iter().rev().take(MAX_PER_DIRECTORY) {
            files.push(CoreFile { named_path: NamedPath::new(path, named), id, pid: pid.map(Pid) });
        }
    }
    files
}

impl Search<'_> {
    /// True if a process has no source, or only a perf map. A perf map is no better than a core dump: it contains only
    /// the runtime's own code, but libraries in the process (such as Numba in Python) may register code with GDB's JIT
    /// interface.
    pub(super) fn needs_core(&self, pid: Pid) -> bool {
        self.kinds_of(pid).all(|kind| kind == Kind::PerfMap)
    }
}

impl Scene<'_> {
    /// Explains why a core dump can't be from the process for which it was found: its mappings differ from the recorded
    /// ones. `None` if they don't contradict each other.
    pub(super) fn explain_if_core_contradicts(&self, source: &Source) -> Option<String> {
        let Kind::Log(kind) = source.kind else { return None };
        let process = self.process(source.pid)?;
        explain_difference(process, &logs::read_process(kind, &source.contents.bytes)?)
    }
}

/// Recognizes a core dump by its file name. Returns its kind, and the process ID in the name if there is one.
fn parse_core_name(name: &OsStr) -> Option<(LogId, Option<i32>)> {
    LogId::find_by_name(name.to_str()?).find(|(id, _)| id.log().find_process.is_some())
}

/// Explains how the mapped files of a core dump's process differ from the recorded ones: another file at the same
/// address, or most of the recorded files missing. `None` if they agree, or if the core dump doesn't list its mapped
/// files.
fn explain_difference(recorded: &Process, core: &LogProcess) -> Option<String> {
    if core.files.is_empty() {
        return None;
    }
    // How many of the recorded files the core dump has at the same address, and how many it doesn't have.
    let (mut same, mut missing) = (0, 0);
    for mapping in recorded_files(recorded).into_values() {
        let addr = mapping.addr.0;
        match MappedFile::find(&core.files, addr) {
            None => missing += 1,
            Some(file) if file_name(&file.path) == file_name(&mapping.path) => same += 1,
            Some(_) => {
                return Some(format!(
                    "at address {addr:#x}, the dumped process had a different file mapped than the recorded one"
                ));
            }
        }
    }
    if missing > same { Some("most of the recorded mappings are missing in the core dump".to_owned()) } else { None }
}

/// The file name at the end of a path. Only file names are compared, because a file in a container has another
/// directory if seen from outside.
fn file_name(path: &[u8]) -> &[u8] {
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    base_name(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::process::{CpuMode, Mapping};
    use crate::model::{Addr, Nanos};

    fn recorded(at: u64, path: &str) -> Process {
        let mapping = Mapping {
            time: Nanos(0),
            addr: Addr(at),
            len: 0x1000,
            pgoff: 0,
            path: path.as_bytes().to_vec(),
            build_id: None,
            file: None,
            executable: true,
            cpumode: CpuMode::User,
            offset: 0,
        };
        Process { mappings: vec![mapping], ..Process::default() }
    }

    #[test]
    fn a_core_of_another_run_has_other_files_there() {
        let file = MappedFile { start: 0x1000, end: 0x3000, offset: 0, path: b"/usr/bin/lli".to_vec() };
        let core = LogProcess { pid: Some(7), files: vec![file] };
        assert_eq!(explain_difference(&recorded(0x2000, "/root/of/it/usr/bin/lli"), &core), None);
        assert!(explain_difference(&recorded(0x2000, "/usr/bin/node"), &core).is_some());
        assert!(explain_difference(&recorded(0x9000, "/usr/bin/lli"), &core).is_some());
        assert_eq!(explain_difference(&recorded(0x9000, "/usr/bin/lli"), &LogProcess::default()), None);
    }
}
