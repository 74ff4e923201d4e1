//! The context of the rules: a recording with all that was counted.

use super::origin::Origin;
use super::problem::{Finding, Problem, SourceFile, Who};
use super::tally::{Spoilt, Tally};
use crate::model::Pid;
use crate::model::perf_command::PerfCommand;
use crate::model::programs::Programs;
use crate::pipeline::recording::Examined;
use crate::resolve::dso::{Dso, DsoId};
use crate::runtimes::{ProcessRuntimes, Runtime, Version};
use crate::sources::{Account, SourceState};
use std::cell::RefCell;
use std::path::Path;

/// All that is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct DoctorContext<'a> {
    pub(super) examined: &'a Examined<'a>,
    pub(super) tally: &'a Tally,
    /// The programs of its processes.
    pub(super) programs: &'a Programs<'a>,
    /// The runtimes.
    pub(super) runtimes: &'a RefCell<ProcessRuntimes<'a>>,
    /// The way stacks were recorded.
    pub(super) stacks: RecordedStacks,
    /// The machine that was recorded.
    pub(super) origin: &'a Origin,
    /// The directory of the recording, where dumps and maps may lie.
    pub(super) beside: Option<&'a Path>,
}

/// The way in which a recorder was told to record stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordedStacks {
    /// It copied this many bytes of each user stack.
    Copies(u32),
    /// The kernel followed frame pointers, or the processor its own stack of calls.
    Chains,
    /// It was not asked.
    None,
}

impl<'a> DoctorContext<'a> {
    pub(super) fn dso(&self, id: DsoId) -> &'a Dso {
        self.examined.resolution.spaces.dsos().get(id)
    }

    /// The command line of the recorder, if it is perf's.
    pub(super) fn command(&self) -> Option<PerfCommand<'a>> {
        PerfCommand::parse(&self.examined.resolution.survey.processes.command)
    }

    /// The version of a process's runtime, by the files that it has mapped.
    pub(super) fn version(&self, pid: Pid, runtime: &Runtime) -> Option<Version> {
        runtime.version_in(self.programs.mappings(pid).map(|mapping| &mapping.path[..]))
    }

    pub(super) fn who(&self, pid: Pid) -> Who {
        let comm = self.programs.name(pid).into_owned();
        Who { pid, comm, runtime: self.runtime(pid), others: 0 }
    }

    /// A problem of some frames.
    pub(super) fn finding(&self, problem: Problem, spoilt: Spoilt) -> Finding {
        Finding::new(problem, spoilt.percent(self.tally.samples), spoilt.samples, spoilt.frames)
    }

    /// The runtimes of a process, those that embed others first.
    pub(super) fn runtimes_of(&self, pid: Pid) -> impl Iterator<Item = &'static Runtime> + use<> {
        self.runtimes.borrow_mut().of(pid).iter()
    }

    /// The runtime whose JIT code a process has; if it has none, the one that it runs.
    fn runtime(&self, pid: Pid) -> Option<&'static Runtime> {
        let has_jit = self.tally.processes.get(&pid).is_some_and(|tally| tally.named + tally.unnamed > 0);
        let process = self.examined.resolution.survey.processes.by_pid.get(&pid);
        let has_shared = process.is_some_and(|process| process.shared_jit_memory().is_some());
        let fits = |runtime: &&Runtime| match has_jit {
            true => has_shared || !runtime.shares_memory,
            false => !runtime.is_library,
        };
        let mut all = self.runtimes_of(pid);
        let first = self.runtimes_of(pid).find(|runtime| !runtime.is_library);
        all.find(fits).or(first)
    }

    /// The number that a process has in its own namespace, if that differs.
    pub(super) fn inner_pid(&self, pid: Pid) -> Option<Pid> {
        let process = self.examined.resolution.survey.processes.by_pid.get(&pid)?;
        process.inner_pid.filter(|inner| *inner != pid)
    }

    /// The outcomes for the dumps and maps of a process, each with its number.
    pub(super) fn accounts(&self, pid: Pid) -> impl Iterator<Item = (usize, &'a Account)> {
        self.examined.accounts().iter().enumerate().filter(move |(_, account)| account.pid == pid)
    }

    /// Those that were loaded.
    pub(super) fn loaded(&self, pid: Pid) -> impl Iterator<Item = (usize, &'a Account)> {
        self.accounts(pid).filter(|(_, account)| matches!(account.state, SourceState::Loaded { .. }))
    }

    pub(super) fn source_file(&self, (number, account): (usize, &Account)) -> SourceFile {
        let process = self.tally.processes.get(&account.pid);
        SourceFile {
            path: account.path.clone(),
            kind: account.kind,
            covered: self.tally.covered.get(number).map_or(0, |(frames, _)| *frames),
            doubtful: self.tally.doubtful.get(number).copied().unwrap_or_default(),
            frames: process.map_or(0, |process| process.named + process.unnamed),
        }
    }
}
