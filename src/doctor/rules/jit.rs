//! Finds out why JIT code has no names: no file names it, or the file that would was not used, or the file lacks this
//! code.

use super::super::causes::Cause;
use super::super::context::{DoctorContext, command_line};
use super::super::finding::{Change, Finding, Highlight, PROCESS, Share};
use super::super::kind::FindingKind;
use super::super::process::{ExaminedProcess, not_reached};
use super::super::source::SourceFile;
use super::super::wording::{printable, printable_path, printable_pid};
use super::neighbors::{ForeignFile, Neighbors};
use crate::analysis::quantity::counted;
use crate::error::RefusalReason;
use crate::jit::{self, Account, Kind, SourceState};
use crate::model::code::OriginId;
use crate::model::process::{CpuMode, Mapping};
use crate::model::{Nanos, Pid};
use crate::runtimes::{Runtime, Switch};
use crate::symbolize::dso::DsoKind;
use std::path::Path;

/// The remedy for a jitdump that is truncated, damaged or ends too early.
const COPY_AGAIN: &str = "copy the whole dump again after the process has exited normally. If the process was killed \
                          or the disk was full, the dump is incomplete: record again";

/// The path of the perf map that most runtimes write.
const MAP: &str = "/tmp/perf-PID.map";

/// Finds out for each process with unnamed JIT code why the code has no names.
pub(super) fn findings(context: DoctorContext<'_>) -> Vec<Finding> {
    let neighbors = Neighbors::list(context);
    let mut found = Vec::new();
    for (cause, affected) in &context.tally.causes {
        if let Cause::Memory(pid) = cause {
            found.push(UnnamedCode::new(*pid, context.share(*affected), context).explain(&neighbors));
        }
    }
    found
}

/// Reports that no dump or map names the JIT code of `process`. `why` is a clause that says why there is none.
pub(in super::super) fn no_dump_or_map(process: &ExaminedProcess, share: Share, why: &str, remedy: String) -> Finding {
    let cause = format!("JIT code of {PROCESS} has no names: {why}");
    unnamed_jit(FindingKind::NoDumpOrMap, process, share, cause, remedy)
}

/// Reports a dump or map that must come from another run of the program, because the process never mapped the addresses
/// that it lists.
pub(in super::super) fn source_of_other_run(
    process: &ExaminedProcess,
    share: Share,
    path: &Path,
    kind: Kind,
) -> Finding {
    let cause = format!(
        "{} is probably not from this run of {PROCESS}: its addresses don't match the process's JIT code",
        printable_path(path)
    );
    let remedy =
        format!("find the {} that process {} wrote during the recording, or record again", kind.name(), process.pid);
    unnamed_jit(FindingKind::SourceOfOtherRun, process, share, cause, remedy).solved_by_change(Some(Change::Program))
}

/// Reports a dump or map that is intact, but lacks code that ran. `coverage` is a clause that says how much the file
/// names. `given` is the switch that made the process write the file; `None` if the recorded command shows none.
pub(in super::super) fn source_incomplete(
    process: &ExaminedProcess,
    share: Share,
    source: &SourceFile,
    coverage: &str,
    given: Option<&Switch>,
) -> Finding {
    let cause = format!("{} lacks some code of {PROCESS}: {coverage}", source.printable_path());
    let remedy = incomplete_remedy(process, source, given);
    // If no switch was given, the process may have begun to write late: a new recording with the switch gets more. If
    // one was given, the new file would lack the same code.
    let change = if given.is_none() { Some(Change::Program) } else { None };
    unnamed_jit(FindingKind::SourceIncomplete, process, share, cause, remedy).with_change(change)
}

/// The remedy for a dump or map that is intact, but lacks code that ran. It depends on when the runtime writes a file
/// of this kind. `given` is the switch that made the process write it, if known.
fn incomplete_remedy(process: &ExaminedProcess, source: &SourceFile, given: Option<&Switch>) -> String {
    // In the table of runtimes, only JVMs have a flag for frame pointers.
    let is_jvm = process.runtime.is_some_and(|runtime| runtime.frame_pointers.is_some());
    let unnamed = process.unnamed_remark();
    match source.kind {
        Kind::PerfMap if is_jvm && given.is_some_and(|switch| switch.at_end) => {
            "the map was written when the JVM exited, so it lacks methods that were freed earlier. Instead, use \
             -XX:+LogCompilation (hotspot_pidPID.log) or perf's agent libperf-jvmti.so, which log methods as they are \
             compiled"
                .to_owned()
        }
        // Without such a switch, somebody probably made the JVM write the map at some moment (`jcmd PID
        // Compiler.perfmap`).
        Kind::PerfMap if is_jvm => "the map is a snapshot, so it lacks methods that were compiled later or freed \
                                    earlier. `jitgraft record -- java …` makes the JVM write it when the program \
                                    ends (-XX:+DumpPerfMapAtExit)"
            .to_owned(),
        Kind::PerfMap => {
            let dump = if process.can_write_dump() { "; a jitdump keeps freed code, too" } else { "" };
            format!(
                "the map was probably written before the unnamed code was compiled, or after it was freed; copy the \
                 map after the process has ended{dump}{unnamed}"
            )
        }
        Kind::Log(_) if is_jvm => format!(
            "HotSpot's logs lack the interpreter, stubs and adapters, but a perf map of the same run has them (run \
             jcmd PID Compiler.perfmap before the JVM exits). Pass both: --perf-map FILE@{} --jit-log {}",
            process.pid,
            source.printable_path()
        ),
        Kind::JitDump | Kind::PlacedElf | Kind::Log(_) => match given {
            Some(switch) => format!(
                "{} was on from the start, so the unnamed code must be code that the runtime never logs{unnamed}",
                switch.name()
            ),
            None => format!(
                "the runtime never logs the unnamed code{unnamed}, or compiled it before logging began; turn logging \
                 on from the start"
            ),
        },
    }
}

/// Reports that the process mapped a jitdump at `path` which is missing now. `inner` is the process's ID in its
/// container; `None` if it didn't run in one.
pub(in super::super) fn report_missing_dump(
    process: &ExaminedProcess,
    share: Share,
    path: &Path,
    inner: Option<Pid>,
) -> Finding {
    let path = printable_path(path);
    let container = inner.map_or_else(String::new, |inner| {
        format!(
            "; the process wrote it in a container, as process {inner} (while it runs, copy /proc/{}/root{path})",
            process.pid
        )
    });
    let cause = format!("JIT code of {PROCESS} has no names: its jitdump {path} is gone");
    let remedy = format!(
        "if you have the dump elsewhere, pass it with --jitdump; otherwise, record again and keep it{container}"
    );
    unnamed_jit(FindingKind::DumpMissing, process, share, cause, remedy)
}

/// A finding about the unnamed JIT code of a process. The page highlights the frames of this code.
fn unnamed_jit(
    kind: FindingKind,
    process: &ExaminedProcess,
    share: Share,
    cause: String,
    remedy: impl Into<String>,
) -> Finding {
    Finding::new(kind, share, cause, remedy).with_process(process).with_highlight(Highlight::UnnamedJit)
}

/// The JIT code of a process that has no names: code in executable memory that no file backs.
pub(super) struct UnnamedCode<'a> {
    context: DoctorContext<'a>,
    process: ExaminedProcess,
    /// How much of the recording lacks names because of this code.
    share: Share,
    /// The switch for writing names that the process received from the recorded command; `None` if it received none.
    given: Option<&'static Switch>,
}

impl<'a> UnnamedCode<'a> {
    pub(super) fn new(pid: Pid, share: Share, context: DoctorContext<'a>) -> Self {
        let process = context.process(pid);
        let given = process.runtime.and_then(|runtime| context.given_switch(pid, runtime));
        Self { context, process, share, given }
    }

    fn finding(&self, kind: FindingKind, cause: String, remedy: impl Into<String>) -> Finding {
        unnamed_jit(kind, &self.process, self.share, cause, remedy)
    }

    /// Finds out why this code has no names. `neighbors` are the files next to the recording that were not loaded, but
    /// may have the names.
    pub(super) fn explain(&self, neighbors: &Neighbors) -> Finding {
        let unusable = self.find_unusable_source();
        if let Some((number, account)) = self.best_loaded_account()
            // A loaded file that names none of the code explains less than a file that could not be used.
            && (unusable.is_none() || self.context.covered_frames(number) > 0)
        {
            return self.explain_loaded(number, account);
        }
        // A file next to the recording can only be the missing one if the process's own file wasn't found.
        let is_missing = unusable.as_ref().is_none_or(|unusable| unusable.kind == FindingKind::DumpMissing);
        if is_missing && let Some(file) = neighbors.find_for(&self.process, self.context) {
            return self.offer(&file);
        }
        unusable.unwrap_or_else(|| self.explain_silence())
    }

    /// Reports a dump or map that may have the names, but was not loaded. Files that may belong to another process
    /// ([`SourceState::Offered`]) come first: passing one as an option may solve the problem without a new recording.
    /// They are left out if their names contain no process ID. `None` if there is no file to report.
    fn find_unusable_source(&self) -> Option<Finding> {
        // Each account says what became of one file that may have the names.
        let accounts: Vec<&Account> = self.context.accounts(self.process.pid).map(|(_, account)| account).collect();
        let offered: Vec<&Account> =
            accounts.iter().copied().filter(|account| matches!(account.state, SourceState::Offered(_))).collect();
        for account in &offered {
            // The process ID in the file's name. It may be the ID that the recorded process had in its container.
            if let Some(pid) = jit::inner_pid(&account.path) {
                let path = account.path.clone();
                return Some(self.offer(&ForeignFile { path, kind: account.kind, pid, fits: offered.len() }));
            }
        }
        for account in accounts {
            match &account.state {
                SourceState::Missing { .. } => {
                    let inner_pid = self.context.inner_pid(self.process.pid);
                    return Some(report_missing_dump(&self.process, self.share, &account.path, inner_pid));
                }
                SourceState::Refused { why, reason } => return Some(self.report_refused(account, why, *reason)),
                SourceState::Offered(_) | SourceState::Loaded { .. } => {}
            }
        }
        None
    }

    /// Reports a file that may have the names: its addresses match the unnamed code, but according to the file's name,
    /// it belongs to another process. `file.fits` is the number of files whose addresses match.
    fn offer(&self, file: &ForeignFile) -> Finding {
        let ForeignFile { path, kind, pid, fits } = file;
        let path = printable_path(path);
        let others = match fits {
            0 | 1 => String::new(),
            fits => format!(", as do those of {}", counted(*fits as u64 - 1, "more file")),
        };
        self.finding(
            FindingKind::SourceOfOtherProcess,
            format!(
                "JIT code of {PROCESS} has no names; the {} {path} may have them, but its name says that it is from \
                 process {pid}",
                kind.name()
            ),
            format!(
                "the file's addresses match the unnamed code{others}. If the process ran in a container, it may have \
                 written this file under another PID; then pass {} {path}@{}. But the file may also be another \
                 process's: those forked from the same parent can have code at the same addresses",
                kind.option(),
                self.process.pid
            ),
        )
    }

    /// Reports a file that exists but can't be used. `why` is the reason in words, and `reason` decides the remedy.
    fn report_refused(&self, account: &Account, why: &str, reason: RefusalReason) -> Finding {
        let path = printable_path(&account.path);
        let is_unmapped = reason == RefusalReason::Empty
            && account.kind == Kind::JitDump
            && !self.context.has_mapped_dump(self.process.pid);
        let why = if is_unmapped { "it is empty, and the process never mapped it" } else { why };
        // An empty jitdump that was never mapped is a sign that the process failed to map it. Then perf couldn't find
        // it either.
        let remedy = match reason {
            // The cause names the file already, so the advice needn't (`None`).
            _ if is_unmapped => self.process.mapping_advice(None),
            RefusalReason::Owner => format!(
                "if you trust {path}, use -f, chown the file to yourself, or pass a copy of it with {}",
                account.kind.option()
            ),
            RefusalReason::Empty => {
                let line_by_line = if self.process.runtime.is_some_and(|runtime| runtime.name == "CPython") {
                    " (sys.exit is fine), or use -X perf, whose map is written line by line"
                } else {
                    ""
                };
                format!("let the process exit normally, not by a signal or _exit{line_by_line}")
            }
            RefusalReason::Content => {
                format!("record again and keep what the runtime writes: {}", self.process.switch_advice())
            }
        };
        let cause = format!(
            "JIT code of {PROCESS} has no names: its {} {path} was not used ({})",
            account.kind.name(),
            printable(why)
        );
        // `Change::Program` proposes a new recording in which the program has the right options for names, and so
        // writes a new file. As long as the process can't map its jitdump, a new recording would have the same problem,
        // so none is proposed.
        let change = if is_unmapped { None } else { Some(Change::Program) };
        self.finding(FindingKind::SourceRefused, cause, remedy).with_change(change)
    }

    /// Reports that no dump or map was found. The remedy depends on the switch that the process received, if any, and
    /// on whether it ran in a container.
    fn explain_silence(&self) -> Finding {
        let process = &self.process;
        let inner = self.context.inner_pid(process.pid);
        let container_remedy = inner.map(|inner| {
            format!(
                "the process ran in a container as process {inner}; copy /tmp/perf-{inner}.map or jit-{inner}.dump out \
                 of the container (from /proc/{}/root/tmp/ while it runs) and pass it with --perf-map or --jitdump. If \
                 there is none: {}",
                process.pid,
                process.switch_advice()
            )
        });
        let Some(switch) = self.given else {
            // `lost_switch` is a switch in the command that reached only another process; `None` if there is none.
            let lost_switch = self.context.given_elsewhere(process.runtime);
            let why = match lost_switch {
                Some(switch) => not_reached(switch),
                None => "no jitdump, perf map or log was found".to_owned(),
            };
            let by_variable = lost_switch.and_then(|switch| process.variable_advice(switch));
            let remedy = container_remedy.or(by_variable).unwrap_or_else(|| process.switch_advice());
            let finding = no_dump_or_map(process, self.share, &why, remedy).with_lost_switch(lost_switch);
            let change = Some(Change::Program);
            // Show only the new command unless the remedy says more than that. For a process in a container, it says
            // where the file may still be; after a lost switch, why the new command differs from the recorded one.
            let is_recording_enough = inner.is_none() && lost_switch.is_none();
            return if is_recording_enough { finding.solved_by_change(change) } else { finding.with_change(change) };
        };
        let name = switch.name();
        let leaves = switch.leaves.join(", ");
        // A process maps the jitdump that it writes, and perf records the mapping. Without such a mapping, no jitdump
        // was written.
        if switch.writes_only_dumps() && !self.context.has_mapped_dump(process.pid) {
            let why = format!("the process ran with {name}, but wrote no {leaves} (no such file was ever mapped)");
            return no_dump_or_map(process, self.share, &why, process.mapping_advice(Some(switch)));
        }
        let remedy = container_remedy.unwrap_or_else(|| {
            let at_end = if switch.at_end { "; the process only writes all names if it exits normally" } else { "" };
            let files = self.files_to_copy(switch);
            format!("copy {files} next to the recording, or use --jitdump, --perf-map or --jit-log{at_end}")
        });
        no_dump_or_map(process, self.share, &format!("the process ran with {name}, but no {leaves} was found"), remedy)
    }

    /// The paths of the files that the switch made the process write, for use in a sentence. If the process was forked,
    /// it may have written its own files or continued those of the ancestor that executed the program, so both are
    /// mentioned.
    fn files_to_copy(&self, switch: &Switch) -> String {
        let leaves = switch.leaves.join(", ");
        let own = leaves.replace("PID", &self.process.printable_pid());
        let ancestor = self.context.executed_by(self.process.pid);
        if ancestor == self.process.pid || !leaves.contains("PID") {
            return own;
        }
        format!(
            "{} (or, if the process wrote a file of its own, {own})",
            leaves.replace("PID", &printable_pid(ancestor))
        )
    }

    /// Of the loaded dumps and maps, the one that names most of the process's frames, with its index in
    /// [`accounts`](crate::pipeline::recording::Examined::accounts). `None` if none was loaded that could name this
    /// code.
    fn best_loaded_account(&self) -> Option<(usize, &'a Account)> {
        let mut accounts: Vec<(usize, &Account)> = self.context.loaded_accounts(self.process.pid).collect();
        accounts.retain(|(_, account)| {
            // Engines may create an empty log although they were switched to write another kind of file. So an empty
            // file only counts if the process was told to write it. If it isn't known what it was told (`None`), every
            // dump and map counts as requested, but no log does.
            let is_requested = match self.given {
                Some(switch) => switch.leaves_like(&account.path),
                None => !matches!(account.kind, Kind::Log(_)),
            };
            (is_requested || !is_empty(account)) && !self.is_of_another_runtime(account)
        });
        accounts.into_iter().max_by_key(|(number, _)| self.context.covered_frames(*number))
    }

    /// True if another runtime of the process wrote the file, not the one whose code has no names. For example,
    /// Python's perf map has no names for code that Numba compiled in the same process.
    fn is_of_another_runtime(&self, account: &Account) -> bool {
        let leaves_file = |runtime: &Runtime| runtime.switches.iter().any(|switch| switch.leaves_like(&account.path));
        let is_own = self.process.runtime.is_none_or(leaves_file);
        !is_own && self.context.runtimes_of(self.process.pid).any(leaves_file)
    }

    /// Finds out why a loaded dump or map doesn't name all of the process's JIT code. `number` is the file's index in
    /// `accounts`.
    fn explain_loaded(&self, number: usize, account: &Account) -> Finding {
        let source = self.context.source_file(number, account);
        let path = source.printable_path();
        let coverage = source.coverage();
        if is_empty(account) {
            return self.finding(
                FindingKind::SourceEmpty,
                format!("JIT code of {PROCESS} has no names: {path} lists no code"),
                "let the process exit normally (not by a signal or _exit), with enough disk space, and copy the file \
                 only then",
            );
        }
        // If the file names less than 5% of the frames, and the process never mapped most of its addresses, it is from
        // another run. Unmapped addresses alone don't prove this: files also list bytecode, whose memory isn't
        // executable and so isn't in the recording.
        if source.covered * 20 < source.frames && self.has_unmapped_addresses(number) {
            return source_of_other_run(&self.process, self.share, &source.path, source.kind);
        }
        if self.is_replaced() {
            return self.finding(
                FindingKind::SourceReplaced,
                format!(
                    "{path} only has the names of the last program that {PROCESS} ran: exec keeps the PID, so this \
                     program overwrote the previous one's file"
                ),
                "record the two programs separately, or let the first one start the second as a child process (fork)",
            );
        }
        if account.kind == Kind::PerfMap
            && source.covered > 0
            && let Some(Overwriter { runtime, remedies }) = self.find_overwriter()
        {
            return self.finding(
                FindingKind::SourceOverwritten,
                format!(
                    "two runtimes in {PROCESS} wrote to {path}, and only the names from {} are left: {coverage}",
                    runtime.name
                ),
                format!("make one of the two runtimes write to another file: {remedies}"),
            );
        }
        if let SourceState::Loaded { skipped, torn, times, .. } = account.state {
            if skipped > 0 || torn {
                return self.report_torn(&source, skipped, torn);
            }
            if account.kind == Kind::JitDump
                && let Some((_, end)) = times
                && let Some(nanoseconds) = self.time_after_dump(end)
            {
                let seconds = nanoseconds as f64 / 1e9;
                let cause = format!("{path} ends {seconds:.1} s before the last sample of {PROCESS}: {coverage}");
                return self.finding(FindingKind::DumpEndsEarly, cause, COPY_AGAIN);
            }
        }
        if let Some(option) = self.find_spoiler() {
            let cause = format!("{path} lacks some code of {PROCESS}, which {option} left out: {coverage}");
            let remedy = format!("don't use {option}; {}", self.process.switch_advice());
            return self.finding(FindingKind::SourceIncomplete, cause, remedy).with_change(Some(Change::Program));
        }
        source_incomplete(&self.process, self.share, &source, &coverage, self.given)
    }

    /// Reports a damaged or truncated file. `skipped` is the number of unusable records or lines. `is_truncated` is
    /// true if the file ends in the middle of a record or line.
    fn report_torn(&self, source: &SourceFile, skipped: u64, is_truncated: bool) -> Finding {
        let is_map = source.kind == Kind::PerfMap;
        let unit = if is_map { "line" } else { "record" };
        let fault = match (is_truncated, skipped) {
            (true, 0 | 1) => format!("is truncated in the middle of a {unit}"),
            (true, more) => format!("has {more} damaged {unit}s, the last of them truncated"),
            (false, 1) => format!("has a damaged {unit}, and what followed may be missing"),
            (false, more) => format!("has {more} damaged {unit}s, and what followed may be missing"),
        };
        let cause = format!("{} of {PROCESS} {fault}: {}", source.printable_path(), source.coverage());
        let remedy =
            if is_map { "copy the whole map again after the process has ended, or record again" } else { COPY_AGAIN };
        self.finding(FindingKind::SourceTorn, cause, remedy)
    }

    /// The option in the process's command line that makes the runtime leave code out of its dump or map. `None` if no
    /// such option is known to be there.
    fn find_spoiler(&self) -> Option<&'static str> {
        let words = self.context.command_of(self.process.pid)?;
        self.process.runtime?.spoiler(self.given?, command_line(words))
    }

    /// The time in nanoseconds from `end`, the last time in a jitdump, to the process's last sample. `None` unless more
    /// than half of the samples with unnamed code came after `end`.
    fn time_after_dump(&self, end: Nanos) -> Option<u64> {
        let tally = self.context.tally.processes.get(&self.process.pid)?;
        let after = tally.unnamed_at.iter().filter(|time| **time > end).count();
        (after * 2 > tally.unnamed_at.len()).then(|| tally.last.0.saturating_sub(end.0))
    }

    /// Finds another runtime of the process that can write the same perf map as the process's main runtime, and so
    /// probably overwrote it. The remedies say how to make one of the two write to another file instead. `None` if
    /// there is no such runtime.
    fn find_overwriter(&self) -> Option<Overwriter> {
        let pid = self.process.pid;
        let main_runtime = self.process.runtime?;
        // `MAP` is the path of the perf map that most runtimes write.
        let leaves_map = |switch: &Switch| switch.leaves.contains(&MAP);
        let writes_map = |runtime: &Runtime| runtime.switches.iter().any(leaves_map);
        if !writes_map(main_runtime) {
            return None;
        }
        let mut runtimes = self.context.runtimes_of(pid);
        let overwriter = runtimes.find(|runtime| runtime.name != main_runtime.name && writes_map(runtime))?;
        let mut remedies = Vec::new();
        for runtime in [overwriter, main_runtime] {
            let memory = self.context.memory(pid);
            let command = self.context.run_facts(pid, runtime, &memory).command;
            // Suggest switches even if they need a newer version: the version of an embedded runtime often can't be
            // determined.
            for switch in runtime.switches {
                let is_refused = command.is_some_and(|command| runtime.refuses(switch, command));
                if switch.can_be_set() && !leaves_map(switch) && !is_refused {
                    // One switch of each runtime is enough.
                    remedies.push(switch.instructions(runtime.called));
                    break;
                }
            }
        }
        Some(Overwriter { runtime: overwriter, remedies: remedies.join(", or ") })
    }

    /// True if most of the unnamed code ran before the process executed another program. Both programs have the same
    /// process ID, so the later one's perf map replaced that of the earlier one.
    fn is_replaced(&self) -> bool {
        let pid = self.process.pid;
        let Some(process) = self.context.examined.resolution.survey.processes.by_pid.get(&pid) else { return false };
        let (Some(exec), Some(tally)) = (process.execs.last(), self.context.tally.processes.get(&pid)) else {
            return false;
        };
        let before_exec = tally.unnamed_at.iter().filter(|time| *time < exec).count();
        // The earlier program must have had memory for JIT code; otherwise, it had no names to lose.
        let is_earlier_jit = |map: &Mapping| map.time < *exec && map.executable && map.kind().may_hold_jit_code();
        before_exec * 2 > tally.unnamed_at.len() && process.mappings.iter().any(is_earlier_jit)
    }

    /// True if the process had no memory at most of the addresses that a source names. `number` is the source's index
    /// in `accounts`.
    fn has_unmapped_addresses(&self, number: usize) -> bool {
        /// About how many code ranges of the source to check, at regular intervals. Sources may have millions.
        const PROBES: usize = 256;
        let pid = self.process.pid;
        let map = &self.context.examined.resolution.sources.map;
        let spaces = self.context.examined.resolution.spaces;
        // The memory is examined as it was at the process's last sample.
        let time = self.context.tally.processes.get(&pid).map(|process| process.last).unwrap_or_default();
        // The address ranges at which the source's code was.
        let source_segments =
            || map.segments().iter().filter(|segment| map.code(segment.code).origin == OriginId(number as u32));
        let step = (source_segments().count() / PROBES).max(1);
        let mut mapped = 0;
        let mut unmapped = 0;
        for segment in source_segments().step_by(step) {
            match spaces.lookup(pid, segment.start, time, CpuMode::User) {
                None => unmapped += 1,
                Some(place) if matches!(self.context.dso(place.dso).kind, DsoKind::Anonymous) => mapped += 1,
                // Ignore addresses in mapped files. V8's perf maps also name code in node's own file, which may be at
                // the same address in every run, so such addresses say nothing about the run.
                Some(_) => {}
            }
        }
        mapped < unmapped
    }
}

/// Another runtime of the process, which wrote to the same perf map as the main one.
struct Overwriter {
    runtime: &'static Runtime,
    /// How to make one of the two runtimes write to another file, as imperative clauses joined by "or".
    remedies: String,
}

/// True if the source was read but has no code.
fn is_empty(account: &Account) -> bool {
    matches!(account.state, SourceState::Loaded { codes: 0, skipped: 0, .. })
}
