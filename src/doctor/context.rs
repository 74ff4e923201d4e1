//! What the rules of `doctor` look at: a recording, its counts, and what can be found out about its processes.

use super::finding::Share;
use super::origin::Origin;
use super::process::ExaminedProcess;
use super::source::SourceFile;
use super::tally::{AffectedCounts, Tally, percent};
use crate::jit::{Account, SourceState};
use crate::model::perf_command::PerfCommand;
use crate::model::process::MomentKind;
use crate::model::programs::Programs;
use crate::model::{Addr, Nanos, Pid};
use crate::pipeline::recording::Examined;
use crate::runtimes::{
    CommandLine, Environment, Flag, ProcessRuntimes, RUNTIMES, RunFacts, Runtime, RuntimeSet, Switch, Version,
    find_program,
};
use crate::symbolize::Location;
use crate::symbolize::dso::DsoKind;
use crate::symbolize::dso::{Dso, DsoId};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

/// A command line of these words, with an unknown environment: recordings contain only the words.
pub(super) fn command_line(words: &[Vec<u8>]) -> CommandLine<'_> {
    CommandLine { words, environment: &Environment::Unknown }
}

/// A recording, with everything that was counted in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct DoctorContext<'a> {
    pub(super) examined: &'a Examined<'a>,
    pub(super) tally: &'a Tally,
    /// The programs and mappings of the recorded processes.
    pub(super) programs: &'a Programs<'a>,
    /// The runtimes of each process, determined when a rule first asks about the process.
    pub(super) runtimes: &'a RefCell<ProcessRuntimes<'a>>,
    /// How stacks were recorded.
    pub(super) stacks: RecordedStacks,
    /// The machine on which the recording was made.
    pub(super) origin: &'a Origin,
    /// The directory that contains the recording. Dumps and maps that the user copied may be there, too. `None` if the
    /// recording is not a file.
    pub(super) directory: Option<&'a Path>,
    /// A cache for the results of [`Self::runtime`].
    pub(super) runtime_cache: &'a RefCell<FxHashMap<Pid, Option<&'static Runtime>>>,
}

/// How `perf record` recorded stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordedStacks {
    /// perf copied up to this many bytes of each user stack.
    Copies(u32),
    /// perf recorded call chains: the kernel followed frame pointers, or the processor recorded calls itself.
    Chains,
    /// perf recorded no stacks.
    None,
}

impl<'a> DoctorContext<'a> {
    pub(super) fn dso(&self, id: DsoId) -> &'a Dso {
        self.examined.resolution.spaces.dsos().get(id)
    }

    /// The `perf` command that made the recording. `None` if it is unknown, or if another program made the recording.
    pub(super) fn command(&self) -> Option<PerfCommand<'a>> {
        PerfCommand::parse(&self.examined.resolution.survey.processes.command)
    }

    /// The version of a runtime, judged by the paths of the files that the process has mapped. `None` if these don't
    /// show it.
    pub(super) fn version(&self, pid: Pid, runtime: &Runtime) -> Option<Version> {
        runtime.find_version(self.programs.mappings(pid).map(|mapping| &mapping.path[..]))
    }

    /// Describes a process and the runtime that owns its JIT code.
    pub(super) fn process(&self, pid: Pid) -> ExaminedProcess {
        self.describe_process(pid, self.runtime(pid))
    }

    /// Describes a process, given the runtime that it runs.
    pub(super) fn describe_process(&self, pid: Pid, runtime: Option<&'static Runtime>) -> ExaminedProcess {
        let comm = self.programs.name(pid).into_owned();
        let memory = self.memory(pid);
        let advice = runtime.and_then(|runtime| runtime.advice_for(self.run_facts(pid, runtime, &memory)));
        let settable_switch = runtime.and_then(|runtime| runtime.best_switch(self.run_facts(pid, runtime, &memory)));
        let too_old = runtime.and_then(|runtime| runtime.too_old(self.version(pid, runtime)));
        ExaminedProcess { pid, comm, runtime, others: 0, advice, settable_switch, too_old }
    }

    /// True if the process mapped a jitdump or a file with a jitdump's name, or inherited such a mapping.
    pub(super) fn has_mapped_dump(&self, pid: Pid) -> bool {
        let lineage = self.lineage(pid);
        self.examined.resolution.survey.processes.markers.iter().any(|marker| lineage.contains(&marker.pid))
    }

    /// The first switch of this runtime in the recorded command, no matter which process received it. `None` if the
    /// command contains none, or if perf recorded other processes than those of the command.
    pub(super) fn given_elsewhere(&self, runtime: Option<&'static Runtime>) -> Option<&'static Switch> {
        let perf = self.command().filter(|perf| !perf.records_others)?;
        let runtime = runtime?;
        runtime.switches.iter().find(|switch| runtime.is_switched_on(switch, command_line(perf.program)))
    }

    /// Converts counts of affected frames and samples to a share of the recording.
    pub(super) fn share(&self, affected: AffectedCounts) -> Share {
        let impact = affected.percent(self.tally.samples);
        let percent = percent(affected.samples as f64, self.tally.samples);
        Share { percent, impact, samples: affected.samples, frames: affected.frames }
    }

    /// Converts a number of affected samples to a share of the recording. `weight` says how much of each sample is
    /// affected, from 0 to 1.
    pub(super) fn share_of_samples(&self, samples: u64, weight: f64) -> Share {
        let percent = percent(samples as f64, self.tally.samples);
        Share { percent, impact: percent * weight, samples, frames: 0 }
    }

    /// The runtimes of a process. A runtime that embeds others comes before them.
    pub(super) fn runtimes_of(&self, pid: Pid) -> impl Iterator<Item = &'static Runtime> + use<> {
        self.runtimes.borrow_mut().find(pid).iter()
    }

    /// The runtime that owns the JIT code of a process or, if the process has no JIT code, the runtime that it runs.
    fn runtime(&self, pid: Pid) -> Option<&'static Runtime> {
        if let Some(known) = self.runtime_cache.borrow().get(&pid) {
            return *known;
        }
        let found = self.find_runtime(pid);
        self.runtime_cache.borrow_mut().insert(pid, found);
        found
    }

    /// Finds the runtime that owns the JIT code of a process, or that the process runs if it has no JIT code. The
    /// surest signs are tried first, so a weaker sign decides only if the ones before it don't.
    fn find_runtime(&self, pid: Pid) -> Option<&'static Runtime> {
        let has_jit = self.tally.processes.get(&pid).is_some_and(|tally| tally.named + tally.unnamed > 0);
        // The surest signs are traces of the runtime itself. Some runtimes call their interpreter through trampolines,
        // which are small pieces of unnamed JIT code (`owner_of_unnamed`). Others give their memory for JIT code a name
        // (`owner_of_memory`).
        if let Some(runtime) = self.tally.owner_of_unnamed(pid, self.runtimes_of(pid)).or(self.owner_of_memory(pid)) {
            return Some(runtime);
        }
        let has_shared_memory = self.has_shared_jit_memory(pid);
        for runtime in self.runtimes_of(pid) {
            let fits = if has_jit {
                // A runtime that gives its memory a name would have been recognized above. One that shares the memory
                // with its forked children can only be the owner if the process has such memory.
                runtime.memory.is_empty() && (has_shared_memory || !runtime.shares_memory)
            } else {
                // Many programs load the library of a runtime without using it, so a library alone doesn't count.
                !runtime.is_library
            };
            if fits {
                return Some(runtime);
            }
        }
        // The next best sign is the program that the process runs: take its runtime, even if the memory for JIT code
        // lacks the name that this runtime gives it, or isn't shared as usual.
        if let Some(program) = self.runtimes_of(pid).find(|runtime| !runtime.is_library) {
            return Some(program);
        }
        if !has_jit {
            return None;
        }
        // There is JIT code of an unknown owner. Its memory may have lost the name that its runtime gave it, so take
        // any runtime that was found.
        self.runtimes_of(pid).next().or_else(|| self.find_embedded_runtime(pid))
    }

    /// True if the process has JIT code in memory that it shares with its parent or its forked children.
    fn has_shared_jit_memory(&self, pid: Pid) -> bool {
        let processes = &self.examined.resolution.survey.processes.by_pid;
        // Recordings list this memory only for the process that mapped it, so the ancestors from which it was inherited
        // are asked, too.
        self.lineage(pid)
            .iter()
            .any(|pid| processes.get(pid).is_some_and(|process| process.shared_jit_memory().is_some()))
    }

    /// The runtime that owns most of the named memory with JIT code of the process. Runtimes are recognized by the
    /// names that they give to memory. `None` if no known runtime's name occurs, or if most of the memory has other
    /// names.
    fn owner_of_memory(&self, pid: Pid) -> Option<&'static Runtime> {
        let mut counts: Vec<(&'static Runtime, u64)> = Vec::new();
        let mut ownerless = 0;
        for path in self.names_of_jit_memory(pid) {
            let Some(runtime) = self.runtimes_of(pid).find(|runtime| runtime.owns_memory(path)) else {
                ownerless += 1;
                continue;
            };
            match counts.iter_mut().find(|(known, _)| known.name == runtime.name) {
                Some((_, count)) => *count += 1,
                None => counts.push((runtime, 1)),
            }
        }
        let (runtime, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        if count >= ownerless { Some(runtime) } else { None }
    }

    /// The names of the memory mappings that contain the process's JIT code: one entry per sampled location, so that
    /// frequent names occur several times.
    fn names_of_jit_memory(&self, pid: Pid) -> Vec<&'a [u8]> {
        let Examined { resolution, samples, .. } = *self.examined;
        // The memory is examined as it was at the process's last sample.
        let last_sample = self.tally.processes.get(&pid).map(|process| process.last).unwrap_or_default();
        let mut names = Vec::new();
        for place in samples.chains.places() {
            let mapped = match place.location {
                Location::File(dso, _) if place.pid == pid => Some(dso),
                Location::Code(id, offset) => {
                    // Named code belongs to the process of the file that names it.
                    let code = resolution.sources.map.code(id);
                    let account = self.examined.accounts().get(code.origin.0 as usize);
                    if account.is_none_or(|account| account.pid != pid) {
                        continue;
                    }
                    let addr = Addr(code.addr.0.saturating_add(offset));
                    resolution.spaces.lookup(pid, addr, last_sample, place.mode).map(|mapped| mapped.dso)
                }
                _ => None,
            };
            if let Some(dso) = mapped
                && self.dso(dso).kind == DsoKind::Anonymous
            {
                names.push(&self.dso(dso).path[..]);
            }
        }
        names
    }

    /// Finds a runtime that is embedded in an application. It is recognized by the names of its threads, by the names
    /// of its functions, or by symbols in the executable files.
    fn find_embedded_runtime(&self, pid: Pid) -> Option<&'static Runtime> {
        let tally = self.tally.processes.get(&pid)?;
        let threads = self.thread_names(pid);
        if let Some(by_thread) = RUNTIMES.iter().find(|runtime| threads.iter().any(|name| runtime.is_thread(name))) {
            return Some(by_thread);
        }
        if let Some(by_function) = tally.runtimes_by_name.first().and_then(|number| RUNTIMES.get(*number)) {
            return Some(by_function);
        }
        let images = &self.examined.resolution.images;
        tally.files.iter().find_map(|dso| {
            let elf = images.get(*dso)?.object().ok()?;
            RuntimeSet::from_elf(&elf).first()
        })
    }

    /// All names that the threads of a process have had: those at the times of samples, and those in records of
    /// renaming.
    fn thread_names(&self, pid: Pid) -> BTreeSet<&'a [u8]> {
        let Examined { resolution, samples, .. } = *self.examined;
        let mut names = BTreeSet::new();
        for track in samples.tracks.items() {
            if track.pid == Some(pid) {
                names.insert(&track.comm[..]);
            }
        }
        for moment in &resolution.survey.processes.moments {
            if let MomentKind::Named(name) = &moment.kind
                && moment.pid == pid
            {
                names.insert(&name[..]);
            }
        }
        names
    }

    /// Collects the facts that decide which switches of a runtime the process can use: the runtime's version, the
    /// process's command line, and `memory`, the names of its mappings.
    pub(super) fn run_facts<'f>(&self, pid: Pid, runtime: &Runtime, memory: &'f [&'f [u8]]) -> RunFacts<'f>
    where
        'a: 'f,
    {
        let command = self.command_of(pid).map(command_line);
        RunFacts { version: self.version(pid, runtime), command, memory }
    }

    /// The names of all mappings of a process.
    pub(super) fn memory(&self, pid: Pid) -> Vec<&'a [u8]> {
        self.programs.mappings(pid).map(|mapping| &mapping.path[..]).collect()
    }

    /// The command line with which the process was started. Recordings only have the command given to `perf record`.
    /// So this is `None` unless perf started the process, or an ancestor from which it was forked and whose program it
    /// still runs.
    pub(super) fn command_of(&self, pid: Pid) -> Option<&'a [Vec<u8>]> {
        let command = self.command().filter(|perf| !perf.records_others && !perf.program.is_empty())?;
        self.is_started(self.executed_by(pid), command).then_some(command.program)
    }

    /// The process, its parent and so on, up to the process that executed the program: all of them share its memory and
    /// command line. Empty if the process isn't in the recording.
    fn lineage(&self, pid: Pid) -> Vec<Pid> {
        /// A longer chain of parents can only come from a damaged recording.
        const GENERATIONS: usize = 1000;
        let processes = &self.examined.resolution.survey.processes.by_pid;
        let mut lineage = Vec::new();
        let mut next = Some(pid);
        // The time when the last process in `lineage` was forked off its parent (`next`). If the parent executes
        // another program later, the child still has the earlier program.
        let mut fork_time = Nanos(u64::MAX);
        while let Some(pid) = next
            && let Some(process) = processes.get(&pid)
            && lineage.len() < GENERATIONS
        {
            lineage.push(pid);
            next = None;
            if let Some((parent, time)) = process.forked
                && parent != pid
                // A process that executed a program itself before `fork_time` didn't inherit its memory, so the list
                // ends with it.
                && !process.execs.iter().any(|exec| *exec <= fork_time)
            {
                next = Some(parent);
                fork_time = time;
            }
        }
        lineage
    }

    /// True if perf started the process, directly or through a wrapper such as `timeout`: a program that runs the rest
    /// of its command line unchanged.
    fn is_started(&self, pid: Pid, command: PerfCommand<'_>) -> bool {
        let Some(started) = self.started_by_perf() else { return false };
        let is_program = |name: &[u8]| RUNTIMES.iter().any(|runtime| runtime.is_program(name));
        // The runtime's program isn't the first word of the command, so the words before it are a wrapper.
        let is_wrapped = find_program(command.program, is_program).is_some_and(|index| index > 0);
        let process = self.examined.resolution.survey.processes.by_pid.get(&pid);
        let parent = process.and_then(|process| process.forked).map(|(parent, _)| parent);
        let is_child_of_wrapper = is_wrapped && parent == Some(started);
        pid == started || is_child_of_wrapper
    }

    /// The process that perf started to run the recorded command. `None` if several processes may be it.
    fn started_by_perf(&self) -> Option<Pid> {
        let processes = &self.examined.resolution.survey.processes.by_pid;
        for (pid, process) in processes {
            // The process that perf forks to run the command has this name until it executes the program.
            if process.comms.first().is_some_and(|(_, name)| &name[..] == b"perf-exec") {
                return Some(*pid);
            }
        }
        // If perf's exec was not recorded, take the only sampled process without a parent in the recording.
        let is_root = |pid: &Pid| pid.0 > 0 && processes.get(pid).is_some_and(|process| process.forked.is_none());
        let mut roots = self.tally.processes.keys().copied().filter(is_root);
        let root = roots.next()?;
        if roots.next().is_none() { Some(root) } else { None }
    }

    /// The switch of this runtime that the process received from the recorded command. `None` if it received none, or
    /// if perf attached to running processes, whose options aren't in the recording.
    pub(super) fn given_switch(&self, pid: Pid, runtime: &'static Runtime) -> Option<&'static Switch> {
        let perf = self.command().filter(|perf| !perf.records_others)?;
        // Variables that the recorded command sets reach all processes that descend from it.
        let recorded = command_line(perf.program);
        for switch in runtime.switches {
            if runtime.is_set_by_variable(switch, recorded) {
                return Some(switch);
            }
        }
        let command = command_line(self.command_of(pid)?);
        for switch in runtime.switches {
            // A program that embeds the runtime may take the runtime's flags among its own arguments and pass them on.
            if let Some(flag) = switch.main_flag()
                && self.has_received(pid, runtime, flag)
            {
                return Some(switch);
            }
            // Some options make the runtime write the same files as the switch, but with fewer names, such as node's
            // `--perf-basic-prof-only-functions`. They count as the switch.
            if runtime.is_switched_on(switch, command) || runtime.spoiler(switch, command).is_some() {
                return Some(switch);
            }
        }
        None
    }

    /// The switches of the runtime that make it write names and that this process can use, given its version and its
    /// options.
    pub(super) fn usable_switches(
        &self,
        pid: Pid,
        runtime: &'static Runtime,
    ) -> impl Iterator<Item = &'static Switch> + use<> {
        let memory = self.memory(pid);
        let usable: Vec<&'static Switch> = runtime.usable_switches(self.run_facts(pid, runtime, &memory)).collect();
        usable.into_iter()
    }

    /// True if the process received the flag, as far as its command line is known. An application that embeds a runtime
    /// takes the runtime's flags among its own arguments, so in its command line the flag can be any argument.
    pub(super) fn has_received(&self, pid: Pid, runtime: &'static Runtime, flag: Flag) -> bool {
        let Some(words) = self.command_of(pid) else { return false };
        let is_embedded = find_program(words, |name| runtime.is_program(name)).is_none();
        let is_argument = words.iter().any(|word| word == flag.to_string().as_bytes());
        runtime.receives(flag, command_line(words)) || (is_embedded && is_argument)
    }

    /// The process ID in the process's own PID namespace. `None` if it is the same number or unknown.
    pub(super) fn inner_pid(&self, pid: Pid) -> Option<Pid> {
        let process = self.examined.resolution.survey.processes.by_pid.get(&pid)?;
        process.inner_pid.filter(|inner| *inner != pid)
    }

    /// The files that may name JIT code of a process, with their indexes in [`Examined::accounts`]. If none belongs to
    /// the process, these are the files of its nearest ancestor that has any, because a forked process inherits the
    /// ancestor's code.
    pub(super) fn accounts(&self, pid: Pid) -> impl Iterator<Item = (usize, &'a Account)> {
        let accounts = self.examined.accounts();
        let mut owners = vec![pid];
        owners.extend(self.lineage(pid));
        let owner = owners.into_iter().find(|owner| accounts.iter().any(|account| account.pid == *owner));
        accounts.iter().enumerate().filter(move |(_, account)| owner == Some(account.pid))
    }

    /// The process that executed the program which `pid` runs: `pid` itself, or the ancestor whose program it inherited
    /// by fork.
    pub(super) fn executed_by(&self, pid: Pid) -> Pid {
        self.lineage(pid).last().copied().unwrap_or(pid)
    }

    /// Like [`Self::accounts`], but only the files that were loaded.
    pub(super) fn loaded_accounts(&self, pid: Pid) -> impl Iterator<Item = (usize, &'a Account)> {
        self.accounts(pid).filter(|(_, account)| matches!(account.state, SourceState::Loaded { .. }))
    }

    /// The number of frames that a file names. `number` is the file's index in [`Examined::accounts`].
    pub(super) fn covered_frames(&self, number: usize) -> u64 {
        self.tally.coverage.get(number).map_or(0, |coverage| coverage.frames)
    }

    /// Combines the account of a file with the counts of the frames that it names. `number` is its index in
    /// [`Examined::accounts`].
    pub(super) fn source_file(&self, number: usize, account: &Account) -> SourceFile {
        let process = self.tally.processes.get(&account.pid);
        SourceFile {
            path: account.path.clone(),
            kind: account.kind,
            covered: self.covered_frames(number),
            doubtful: self.tally.doubtful.get(number).copied().unwrap_or_default(),
            frames: process.map_or(0, |process| process.named + process.unnamed),
        }
    }
}
