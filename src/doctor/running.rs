//! Diagnoses a running process before anything is recorded: whether it writes a file that names its JIT code, and
//! where.

use super::finding::{Change, Finding, PROCESS, Share};
use super::kind::FindingKind;
use super::process::ExaminedProcess;
use super::rules::{
    Attempt, interpreted, jvm_frame_pointers, no_dump_or_map, report_missing_dump, source_of_other_run,
};
use crate::error::{Error, Result, Warnings};
use crate::io::door::{Named, Opened};
use crate::jit::Kind;
use crate::jit::SOURCE;
use crate::jit::jitdump::{Body, JitDump};
use crate::jit::perf_map;
use crate::model::Pid;
use crate::model::shell;
use crate::pipeline::running::RunningProcess;
use crate::runtimes::{CorrectedCommand, Environment, RunFacts, Runtime, Switch};
use std::path::{Path, PathBuf};

/// The diagnosis of a running process.
#[derive(Debug)]
pub(crate) struct LiveDiagnosis {
    pub(super) process: ExaminedProcess,
    /// The process ID in the process's own PID namespace. `None` if it is the same number.
    pub(super) inner: Option<Pid>,
    /// The size of the process's executable memory that no file backs, in bytes.
    pub(super) jit_bytes: u64,
    /// The jitdumps and perf maps that the process has written so far.
    pub(super) sources: Vec<LiveSource>,
    /// The file that the process will write when it exits. `None` if its runtime writes no file on exit, or if a
    /// jitdump or perf map of the process exists already.
    pub(super) at_end: Option<&'static str>,
    pub(super) findings: Vec<Finding>,
    /// The `jitgraft record` command that attaches to this process.
    pub(super) record: String,
}

/// A jitdump or perf map of a running process.
#[derive(Debug)]
pub(super) struct LiveSource {
    pub(super) kind: Kind,
    /// The path as seen from jitgraft's mount namespace, such as `/proc/PID/root/tmp/perf-7.map`.
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// The number of code ranges that the file has so far.
    pub(super) codes: usize,
    /// The number of these code ranges that start inside the process's memory for JIT code. If there are none, the file
    /// is from another run.
    inside: usize,
}

impl LiveDiagnosis {
    /// Diagnoses a process. `pid` is its ID as listed in `proc`, a mounted `/proc`. With `force`, also reads files that
    /// belong to other users.
    pub(super) fn examine(pid: Pid, proc: &Path, force: bool, warnings: &mut Warnings) -> Result<Self> {
        let running = RunningProcess::read(pid, &proc.join(pid.to_string()))?;
        let memory: Vec<&[u8]> = running.mappings.iter().map(|map| &map.path[..]).collect();
        let runtime = find_runtime(&running, &memory);
        let version = runtime.and_then(|runtime| runtime.find_version(memory.iter().copied()));
        let facts = RunFacts { version, command: Some(running.command()), memory: &memory };
        let advice = runtime.and_then(|runtime| runtime.advice_for(facts));
        let settable_switch = runtime.and_then(|runtime| runtime.best_switch(facts));
        let too_old = runtime.and_then(|runtime| runtime.too_old(version));
        let comm = running.comm.clone();
        let process = ExaminedProcess { pid, comm, runtime, others: 0, advice, settable_switch, too_old };
        let mut sources = Vec::new();
        let mut findings = Vec::new();
        let mut refused = Vec::new();
        // Runtimes map the jitdumps that they write, as markers for perf.
        for path in running.markers() {
            let dump = match running.open(&path, Named::Marker, force) {
                Some(Ok(opened)) => LiveSource::from_dump(running.seen_from_here(&path), &opened.bytes),
                Some(Err(error)) => {
                    refused.push(error);
                    continue;
                }
                None => None,
            };
            match dump {
                Some(dump) => sources.push(dump),
                // There is no file at this path, or it isn't a jitdump. `None` as the last argument: the message
                // needn't mention a container, because the path was looked up as the process sees it.
                None => findings.push(report_missing_dump(&process, WHOLE, &path, None)),
            }
        }
        sources.extend(LiveSource::find_map(&running, force, &mut refused));
        let jit_bytes = running.jit_memory().map(|range| range.end - range.start).sum();
        let given = GivenSwitch::find(runtime, &running);
        // Don't report missing names if a missing jitdump was reported above, or if a file could not be opened: that
        // file may have the names.
        if findings.is_empty() && refused.is_empty() {
            findings.extend(find_missing_names(&process, &sources, given, jit_bytes));
        }
        for error in refused {
            warnings.push(error.into_warning());
        }
        findings.extend(find_missing_frame_pointers(&process, &running));
        // The file that the process writes only when it exits.
        let at_end = given.filter(|given| given.switch.at_end && sources.is_empty()).map(|given| given.leaves);
        let record = format!("jitgraft record -p {pid} -- sleep 10");
        let command = runtime.and_then(|runtime| correct_command(runtime, facts, &running));
        for finding in findings.iter_mut().filter(|finding| finding.change == Some(Change::Program)) {
            finding.command = command.clone();
        }
        let inner = Some(running.inner).filter(|inner| *inner != pid);
        Ok(Self { process, inner, jit_bytes, sources, at_end, findings, record })
    }
}

/// Chooses the main runtime among those that the process has loaded. Some runtimes name their memory for JIT code. If
/// such a name is in `memory`, which has the names of all mappings, its runtime is chosen, because it is in use.
fn find_runtime(running: &RunningProcess, memory: &[&[u8]]) -> Option<&'static Runtime> {
    let runtimes = running.runtimes();
    if let Some(owner) = runtimes.iter().find(|runtime| memory.iter().any(|name| runtime.owns_memory(name))) {
        return Some(owner);
    }
    // No memory for JIT code is named, so runtimes that name theirs aren't in use. A library is only considered if
    // there is JIT code: otherwise, nothing shows that it is in use.
    let has_jit = running.jit_memory().next().is_some();
    runtimes.iter().find(|runtime| runtime.memory.is_empty() && (has_jit || !runtime.is_library))
}

/// The share of all findings about a running process. There are no samples from which a real share could be computed.
const WHOLE: Share = Share { percent: 100.0, impact: 100.0, samples: 0, frames: 0 };

/// The command that started the process, with the options added that make its runtime write names. `None` if the
/// command has these options already, or if the runtime has none.
fn correct_command(runtime: &'static Runtime, facts: RunFacts<'_>, running: &RunningProcess) -> Option<String> {
    let given = runtime.switches.iter().find(|switch| runtime.is_switched_on(switch, running.command()));
    let switch = given.or_else(|| runtime.best_switch(facts))?;
    // `.` replaces `DIR` in the values of variables: the runtime writes to the current directory.
    let CorrectedCommand { variables, words } = runtime.correct(switch, running.command(), ".")?;
    if variables.is_empty() && words == running.words {
        return None;
    }
    let variables = variables.iter().map(|variable| variable.for_shell() + " ").collect::<String>();
    Some(variables + &shell::line(words.iter().map(|word| &word[..])))
}

/// A switch for writing names that a process was started with.
#[derive(Debug, Clone, Copy)]
struct GivenSwitch {
    switch: &'static Switch,
    /// The file that the switch makes the runtime write, as a pattern such as `/tmp/perf-PID.map`.
    leaves: &'static str,
}

impl GivenSwitch {
    /// Finds the switch by the process's command line and environment. `None` if it was started without one.
    fn find(runtime: Option<&'static Runtime>, running: &RunningProcess) -> Option<Self> {
        let runtime = runtime?;
        let switch = runtime.switches.iter().find(|switch| runtime.is_switched_on(switch, running.command()))?;
        Some(Self { switch, leaves: switch.leaves.first()? })
    }
}

/// Finds out why the jitdumps and perf maps of the process don't name its JIT code. `None` if they do, if the process
/// writes them on exit, or if the process has no JIT code and isn't interpreted.
fn find_missing_names(
    process: &ExaminedProcess,
    sources: &[LiveSource],
    given: Option<GivenSwitch>,
    jit_bytes: u64,
) -> Option<Finding> {
    for source in sources {
        // The file lists code, but none of it is in the process's memory for JIT code, although there is such memory.
        if source.codes > 0 && source.inside == 0 && jit_bytes > 0 {
            return Some(source_of_other_run(process, WHOLE, &source.path, source.kind));
        }
    }
    if !sources.is_empty() {
        return None;
    }
    // There is neither a jitdump nor a perf map.
    if let Some(given) = given {
        return if given.switch.at_end { None } else { Some(report_not_written(process, given)) };
    }
    let runtime = process.runtime?;
    if jit_bytes > 0 {
        let why = "no jitdump, perf map or log was found";
        let finding = no_dump_or_map(process, WHOLE, why, process.switch_advice());
        return Some(finding.with_change(Some(Change::Program)));
    }
    let interpreter = runtime.interpreter.as_ref()?;
    // If the runtime has an interpreter frame for each interpreted call, some functions may be interpreted and others
    // compiled. Only samples would show which.
    if interpreter.has_frame_per_call {
        return None;
    }
    // The default attempt: as seen above, the process was started without a switch for names.
    Some(interpreted(process, WHOLE, &Attempt::default()))
}

/// Reports that the process was started with a switch to write a jitdump or perf map, but that there is no such file.
fn report_not_written(process: &ExaminedProcess, given: GivenSwitch) -> Finding {
    Finding::new(
        FindingKind::NotWritten,
        WHOLE,
        format!("{PROCESS} was started with {}, but {} does not exist", given.switch.name(), given.leaves),
        "the process may lack permissions or disk space, or may not have compiled anything yet",
    )
    .with_process(process)
}

/// Reports a JVM that was started without the option with which compiled methods keep frame pointers. `None` if the
/// process's environment can't be read, because the option may be set there.
fn find_missing_frame_pointers(process: &ExaminedProcess, running: &RunningProcess) -> Option<Finding> {
    let runtime = process.runtime?;
    let flag = runtime.frame_pointers?;
    if running.environment == Environment::Unknown || runtime.receives(flag, running.command()) {
        return None;
    }
    Some(jvm_frame_pointers(process, WHOLE, true))
}

impl LiveSource {
    fn from_dump(path: PathBuf, bytes: &[u8]) -> Option<Self> {
        let dump = JitDump::parse(bytes).ok()?;
        let codes = dump.records().flatten().filter(|record| matches!(record.body, Body::Load(_))).count();
        // The process has mapped this dump, so all of its code is the process's own, not left over from another run.
        Some(Self { kind: Kind::JitDump, path, bytes: bytes.len() as u64, codes, inside: codes })
    }

    /// Finds the process's perf map in the two places where perf looks for it: in the process's own file system, with
    /// the ID that the process has in its container; or in ours, with the ID that it has here.
    fn find_map(running: &RunningProcess, force: bool, refused: &mut Vec<Error>) -> Option<Self> {
        let inner_path = Path::new("/tmp").join(format!("perf-{}.map", running.inner));
        // `None`: there is no such file. `Err`: it can't be opened or trusted.
        match running.open(&inner_path, Named::Convention, force) {
            Some(Ok(opened)) => return Some(Self::from_map(running.seen_from_here(&inner_path), &opened, running)),
            Some(Err(error)) => refused.push(error),
            None => {}
        }
        let outer_path = Path::new("/tmp").join(format!("perf-{}.map", running.pid));
        // Anybody can put a file of this name into /tmp. `Named::Convention` says to open it with care.
        match Named::Convention.door(force).open(&outer_path, SOURCE)? {
            Ok(opened) => Some(Self::from_map(outer_path, &opened, running)),
            Err(error) => {
                refused.push(error);
                None
            }
        }
    }

    fn from_map(path: PathBuf, opened: &Opened, running: &RunningProcess) -> Self {
        let bytes = &opened.bytes;
        let (entries, _) = perf_map::read(bytes);
        let is_inside = |start: u64| running.jit_memory().any(|range| range.contains(&start));
        let inside = entries.iter().filter(|entry| is_inside(entry.start)).count();
        Self { kind: Kind::PerfMap, path, bytes: bytes.len() as u64, codes: entries.len(), inside }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Diagnoses an invented process in a temporary `/proc`. `program` is the path of its executable, and `words` its
    /// command line. With `jit`, it has memory for JIT code. `files` are written to its `/tmp`, and `more` is added to
    /// its memory maps.
    fn diagnosed(program: &str, words: &str, jit: bool, files: &[(&str, &str)], more: &str) -> LiveDiagnosis {
        let proc = tempfile::tempdir().unwrap();
        let dir = proc.path().join("4711");
        fs::create_dir_all(dir.join("root/tmp")).unwrap();
        let anonymous = if jit { "7f0000000000-7f0000100000 rwxp 00000000 00:00 0\n" } else { "" };
        let maps = format!("400000-500000 r-xp 00000000 08:01 7 {program}\n{anonymous}{more}");
        fs::write(dir.join("maps"), maps).unwrap();
        fs::write(dir.join("comm"), "name\n").unwrap();
        fs::write(dir.join("status"), "Uid:\t0\t0\t0\t0\nNSpid:\t4711\t7\n").unwrap();
        fs::write(dir.join("cmdline"), words.replace(' ', "\0") + "\0").unwrap();
        fs::write(dir.join("environ"), "HOME=/x\0").unwrap();
        for (name, text) in files {
            fs::write(dir.join("root/tmp").join(name), text).unwrap();
        }
        LiveDiagnosis::examine(Pid(4711), proc.path(), false, &mut Warnings::new()).unwrap()
    }

    fn problems(diagnosis: &LiveDiagnosis) -> Vec<&'static str> {
        diagnosis.findings.iter().map(|finding| finding.kind.key()).collect()
    }

    #[test]
    fn a_runtime_that_writes_its_map_has_no_findings() {
        let map = [("perf-7.map", "7f0000000010 20 f\n")];
        let diagnosis = diagnosed("/usr/bin/node", "node --perf-basic-prof", true, &map, "");
        assert_eq!(problems(&diagnosis), [""; 0]);
        assert_eq!((diagnosis.inner, diagnosis.jit_bytes, diagnosis.sources[0].codes), (Some(Pid(7)), 0x10_0000, 1));
        assert_eq!(diagnosis.record, "jitgraft record -p 4711 -- sleep 10");
    }

    #[test]
    fn an_unwritten_file_is_reported() {
        assert_eq!(problems(&diagnosed("/usr/bin/node", "node", true, &[], "")), ["no-dump-or-map"]);
        assert_eq!(problems(&diagnosed("/usr/bin/node", "node --perf-prof", true, &[], "")), ["not-written"]);
        let gone = "7e0000000000-7e0000001000 r-xp 00000000 08:01 9 /x/jit-7.dump (deleted)\n";
        assert_eq!(problems(&diagnosed("/usr/bin/node", "node --perf-prof", true, &[], gone)), ["dump-missing"]);
        let other = [("perf-7.map", "10 20 f\n")];
        assert_eq!(problems(&diagnosed("/usr/bin/node", "node", true, &other, "")), ["source-of-other-run"]);
        assert_eq!(problems(&diagnosed("/usr/bin/python3.13", "python3", false, &[], "")), ["interpreted"]);
        assert_eq!(problems(&diagnosed("/usr/bin/sleep", "sleep 9", false, &[], "")), [""; 0]);
    }

    #[test]
    fn a_jvm_may_write_when_it_ends_and_is_configured_to_keep_frame_pointers() {
        let words = "java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit";
        let diagnosis = diagnosed("/usr/lib/jvm/bin/java", words, true, &[], "");
        assert_eq!((problems(&diagnosis), diagnosis.at_end), (vec!["jvm-frame-pointers"], Some("/tmp/perf-PID.map")));
        let diagnosis = diagnosed("/usr/lib/jvm/bin/java", "java -XX:+PreserveFramePointer", true, &[], "");
        assert_eq!(problems(&diagnosis), ["no-dump-or-map"]);
    }
}
