//! Diagnoses a running process before anything is recorded: which files does it write for perf, and where?

use super::problem::{Finding, OfProcess, Problem, SourceFile, Who};
use crate::error::{Error, Result, Warnings};
use crate::io::door::{Named, Opened};
use crate::model::Pid;
use crate::model::shell;
use crate::pipeline::running::RunningProcess;
use crate::records::jitdump::{Body, JitDump};
use crate::records::perf_map;
use crate::runtimes::{CorrectedCommand, Environment, RunFacts, Runtime, Stacks, Switch};
use crate::sources::Kind;
use crate::sources::SOURCE;
use std::path::{Path, PathBuf};

/// The diagnosis of a running process.
#[derive(Debug)]
pub(crate) struct LiveDiagnosis {
    pub(super) process: Who,
    /// Its process ID in its own PID namespace, if that is a different number.
    pub(super) inner: Option<Pid>,
    /// The size of its executable memory without a file, in bytes.
    pub(super) jit_bytes: u64,
    /// The jitdumps and perf maps that it has written so far.
    pub(super) sources: Vec<LiveSource>,
    /// The file that it will only write when it exits. `None` if it has already written one.
    pub(super) at_end: Option<&'static str>,
    pub(super) findings: Vec<Finding>,
    /// The `perf record` command for this process.
    pub(super) record: String,
}

/// A jitdump or perf map of a running process.
#[derive(Debug)]
pub(super) struct LiveSource {
    pub(super) kind: Kind,
    /// The path as seen from our mount namespace, such as `/proc/PID/root/tmp/perf-7.map`.
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// The number of code ranges in it so far.
    pub(super) codes: usize,
    /// The number of these ranges that are inside the process's memory for JIT code.
    inside: usize,
}

impl LiveDiagnosis {
    /// Diagnoses a process. `pid` is its ID in the namespace of `proc`, a mounted `/proc`.
    pub(super) fn of(pid: Pid, proc: &Path, force: bool, warnings: &mut Warnings) -> Result<Self> {
        let running = RunningProcess::read(pid, &proc.join(pid.to_string()))?;
        let set = running.runtimes();
        let has_jit = running.jit_memory().next().is_some();
        let memory: Vec<&[u8]> = running.mappings.iter().map(|map| &map.path[..]).collect();
        let owner = set.iter().find(|runtime| memory.iter().any(|name| runtime.owns_memory(name)));
        let fits = |runtime: &&Runtime| (has_jit || !runtime.is_library) && runtime.memory.is_empty();
        let runtime = owner.or(set.iter().find(fits));
        let version = runtime.and_then(|runtime| runtime.version_in(memory.iter().copied()));
        let facts = RunFacts { version, command: Some(running.command()), memory: &memory };
        let advice = runtime.and_then(|runtime| runtime.advice_for(facts));
        let too_old = runtime.and_then(|runtime| runtime.too_old(version));
        let process = Who { pid, comm: running.comm.clone(), runtime, others: 0, advice, too_old };
        let (mut sources, mut problems) = (Vec::new(), Vec::new());
        let mut refused = Vec::new();
        for path in running.markers() {
            match running.open(&path, Named::Marker, force) {
                Some(Err(error)) => refused.push(error),
                opened => match opened
                    .and_then(Result::ok)
                    .and_then(|opened| LiveSource::dump(running.seen_from_here(&path), &opened.bytes))
                {
                    Some(dump) => sources.push(dump),
                    None => problems.push(OfProcess::Missing { path, inner: None }),
                },
            }
        }
        sources.extend(LiveSource::map(&running, force, &mut refused));
        let is_all = refused.is_empty();
        refused.into_iter().for_each(|error| warnings.push(error.into_warning()));
        let shown = shown(runtime, &running);
        let inner = Some(running.inner).filter(|inner| *inner != pid);
        let jit_bytes = running.jit_memory().map(|range| range.end - range.start).sum();
        // If a file could not be opened, we can't tell whether its names are missing.
        problems.extend(problem_of(&process, &sources, shown, jit_bytes).filter(|_| problems.is_empty() && is_all));
        problems.extend(frame_pointers(&process, &running));
        let at_end =
            if sources.is_empty() { shown.filter(|shown| shown.switch.at_end).map(|shown| shown.leaves) } else { None };
        let stacks = runtime.map_or(Stacks::FramePointers, |runtime| runtime.stacks(facts));
        let record = format!("perf record -F 999 -k mono {} -p {pid} -- sleep 10", stacks.options().join(" "));
        let command = runtime.and_then(|runtime| corrected(runtime, facts, &running));
        let findings = problems.into_iter().map(|problem| finding(&process, problem, command.as_ref())).collect();
        Ok(Self { process, inner, jit_bytes, sources, at_end, findings, record })
    }
}

/// A finding that affects 100%, since a running process has no samples. It includes `command` only if starting the
/// process again with it would help.
fn finding(process: &Who, problem: OfProcess, command: Option<&String>) -> Finding {
    let again = matches!(
        problem,
        OfProcess::Silent { .. }
            | OfProcess::Interpreted { .. }
            | OfProcess::JvmFramePointers { .. }
            | OfProcess::OtherRun { .. }
    );
    let finding = Finding::new(Problem::OfProcess(process.clone(), problem), 100.0, 0, 0);
    Finding { command: command.filter(|_| again).cloned(), ..finding }
}

/// The command that started the process, with the missing options added. `None` if nothing is missing.
fn corrected(runtime: &'static Runtime, facts: RunFacts<'_>, running: &RunningProcess) -> Option<String> {
    let given = runtime.switches.iter().find(|switch| runtime.is_switched_on(switch, running.command()));
    let switch = given.or_else(|| runtime.best_switch(facts))?;
    let CorrectedCommand { variables, words } = runtime.corrected(switch, running.command(), ".")?;
    if variables.is_empty() && words == running.words {
        return None;
    }
    let variables = variables.iter().map(|variable| variable.for_shell() + " ").collect::<String>();
    Some(variables + &shell::line(words.iter().map(|word| &word[..])))
}

/// The switch in a process's command that makes the runtime write names, and the file that it leaves.
#[derive(Debug, Clone, Copy)]
struct Shown {
    switch: &'static Switch,
    leaves: &'static str,
}

fn shown(runtime: Option<&'static Runtime>, running: &RunningProcess) -> Option<Shown> {
    let runtime = runtime?;
    let switch = runtime.switches.iter().find(|switch| runtime.is_switched_on(switch, running.command()))?;
    Some(Shown { switch, leaves: switch.leaves.first()? })
}

/// What is wrong with the process's jitdumps and perf maps. `None` if they are fine or will be written at exit.
fn problem_of(process: &Who, sources: &[LiveSource], shown: Option<Shown>, jit_bytes: u64) -> Option<OfProcess> {
    let other_run = |source: &&LiveSource| source.codes > 0 && source.inside == 0 && jit_bytes > 0;
    if let Some(source) = sources.iter().find(other_run) {
        return Some(OfProcess::OtherRun { source: source.file() });
    }
    if !sources.is_empty() || shown.is_some_and(|shown| shown.switch.at_end) {
        return None;
    }
    if let Some(Shown { switch, leaves }) = shown {
        return Some(OfProcess::NotWritten { word: switch.name(), leaves });
    }
    let only_interprets =
        || process.runtime?.interpreter.as_ref().filter(|interpreter| !interpreter.frame_a_call).map(|_| ());
    match jit_bytes {
        0 => only_interprets().map(|()| OfProcess::Interpreted {
            too_old: None,
            switched_on: None,
            elsewhere: None,
            by_chains: false,
        }),
        _ => process.runtime.map(|_| OfProcess::Silent { inner: None, given: None, elsewhere: None, unmapped: false }),
    }
}

/// Reports a runtime that only keeps frame pointers with a certain flag, and was started without it. If the
/// environment can't be read, the flag may be there, and nothing is reported.
fn frame_pointers(process: &Who, running: &RunningProcess) -> Option<OfProcess> {
    let runtime = process.runtime?;
    let flag = runtime.frame_pointers?;
    let is_known = running.environment != Environment::Unknown;
    let without = is_known && !runtime.is_given(flag, running.command());
    without.then_some(OfProcess::JvmFramePointers { is_known: true })
}

impl LiveSource {
    fn dump(path: PathBuf, bytes: &[u8]) -> Option<Self> {
        let dump = JitDump::parse(bytes).ok()?;
        let codes = dump.records().flatten().filter(|record| matches!(record.body, Body::Load(_))).count();
        // The process has mapped this dump, so it is not left over from another run.
        Some(Self { kind: Kind::JitDump, path, bytes: bytes.len() as u64, codes, inside: codes })
    }

    /// Finds the perf map where perf looks for it: named by the inner process ID in the process's own file system, or
    /// by the outer ID in ours.
    fn map(running: &RunningProcess, force: bool, refused: &mut Vec<Error>) -> Option<Self> {
        let inside = Path::new("/tmp").join(format!("perf-{}.map", running.inner));
        let outside = Path::new("/tmp").join(format!("perf-{}.map", running.pid));
        let mut good = |opened: Option<Result<Opened>>| opened?.map_err(|error| refused.push(error)).ok();
        let (path, opened) = match good(running.open(&inside, Named::Habit, force)) {
            Some(opened) => (running.seen_from_here(&inside), opened),
            None => (outside.clone(), good(Named::Habit.door(force).open(&outside, SOURCE))?),
        };
        let bytes = &opened.bytes;
        let (entries, _) = perf_map::read(bytes);
        let is_inside = |entry: &&perf_map::Entry<'_>| running.jit_memory().any(|range| range.contains(&entry.start));
        let inside = entries.iter().filter(is_inside).count();
        Some(Self { kind: Kind::PerfMap, path, bytes: bytes.len() as u64, codes: entries.len(), inside })
    }

    fn file(&self) -> SourceFile {
        SourceFile { path: self.path.clone(), kind: self.kind, covered: 0, doubtful: 0, frames: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::problem_texts::problem_text;
    use std::fs;

    /// Diagnoses a made-up process of a temporary `/proc`. `words` is its command line, `jit` gives it memory for JIT
    /// code, `files` go to its /tmp, and `more` is added to its maps.
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
        LiveDiagnosis::of(Pid(4711), proc.path(), false, &mut Warnings::new()).unwrap()
    }

    fn problems(diagnosis: &LiveDiagnosis) -> Vec<&'static str> {
        diagnosis.findings.iter().map(|finding| problem_text(&finding.problem).key).collect()
    }

    #[test]
    fn a_runtime_that_writes_its_map_has_no_findings() {
        let map = [("perf-7.map", "7f0000000010 20 f\n")];
        let diagnosis = diagnosed("/usr/bin/node", "node --perf-basic-prof", true, &map, "");
        assert_eq!(problems(&diagnosis), [""; 0]);
        assert_eq!((diagnosis.inner, diagnosis.jit_bytes, diagnosis.sources[0].codes), (Some(Pid(7)), 0x10_0000, 1));
        assert_eq!(diagnosis.record, "perf record -F 999 -k mono -g -p 4711 -- sleep 10");
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
