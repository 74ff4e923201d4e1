//! The program that each process ran last, with its name and mappings, for messages.
//!
//! A process that was forked and never called exec runs its parent's program, under the name that the parent had at the
//! fork. After an exec, whatever `perf-exec`, `env` or a shell had mapped before no longer matters.

use super::Pid;
use super::ancestry::{Ancestor, Ancestry};
use super::process::{Mapping, Process, Processes};
use super::units::Nanos;
use std::borrow::Cow;
use std::cell::OnceCell;

/// Looks up the last program of each process.
#[derive(Debug)]
pub struct Programs<'a> {
    processes: &'a Processes,
    /// For looking up names: without the processes that have no name of their own, so that the next ancestor's name is
    /// used.
    ancestry_for_names: OnceCell<Ancestry>,
    /// For looking up mappings: without the processes that have no mappings of their own.
    ancestry_for_mappings: OnceCell<Ancestry>,
}

/// The end of the recording.
const END: Nanos = Nanos(u64::MAX);

impl<'a> Programs<'a> {
    /// Prepares lookups for these processes.
    pub fn new(processes: &'a Processes) -> Self {
        Self { processes, ancestry_for_names: OnceCell::new(), ancestry_for_mappings: OnceCell::new() }
    }

    /// The last name of a process or of the ancestor that it inherited its program from; `?` if unknown.
    pub fn name(&self, pid: Pid) -> Cow<'a, str> {
        for (process, end) in self.line(pid, &self.ancestry_for_names, |process| !process.comms.is_empty()) {
            let count = process.comms.partition_point(|(time, _)| *time <= end);
            if let Some((_, name)) = process.comms[..count].last() {
                return String::from_utf8_lossy(name);
            }
        }
        Cow::Borrowed("?")
    }

    /// The mappings of the process's last program: first its own, then inherited ones.
    pub fn mappings(&self, pid: Pid) -> impl Iterator<Item = &'a Mapping> {
        let line = self.line(pid, &self.ancestry_for_mappings, |process| !process.mappings.is_empty());
        line.flat_map(|(process, end)| {
            // For an ancestor, `end` is the time of the fork through which the program was inherited; for the process
            // itself, the end of the recording. Mappings after `end`, and those before the last exec that precedes
            // `end`, don't belong to the program.
            let execs = process.execs.partition_point(|exec| *exec <= end);
            let last_exec = process.execs[..execs].last().copied().unwrap_or_default();
            process.mappings.iter().filter(move |mapping| last_exec <= mapping.time && mapping.time <= end)
        })
    }

    /// The process and the ancestors that it inherited its program from, youngest first. Processes that `can_answer`
    /// rejects are left out. Each process comes with the time up to which its names and mappings count: for the process
    /// itself the end of the recording, for an ancestor the time when it forked the next younger process. `ancestry`
    /// keeps the ancestors that `can_answer` accepts. It is filled by the first call.
    fn line(
        &self,
        pid: Pid,
        ancestry: &OnceCell<Ancestry>,
        can_answer: impl Fn(&Process) -> bool,
    ) -> impl Iterator<Item = (&'a Process, Nanos)> {
        let processes = self.processes;
        let can_answer = |pid| processes.by_pid.get(&pid).is_some_and(&can_answer);
        let ancestry = ancestry.get_or_init(|| Ancestry::new(processes).limited_to(can_answer));
        // `None`: what the process inherits at the end of the recording.
        ancestry
            .inherited(pid, None)
            .filter_map(|Ancestor { pid, time }| Some((processes.by_pid.get(&pid)?, time.unwrap_or(END))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Addr;
    use crate::model::process::CpuMode;

    fn mapping(time: u64, path: &str) -> Mapping {
        Mapping {
            time: Nanos(time),
            addr: Addr(0),
            len: 1,
            pgoff: 0,
            path: path.into(),
            build_id: None,
            file: None,
            executable: true,
            cpumode: CpuMode::User,
            offset: 0,
        }
    }

    /// `env node`, which forks a child at time 30. The child forks another process, which calls exec to run `ls`.
    fn processes() -> Processes {
        let comms =
            |comms: &[(u64, &str)]| comms.iter().map(|&(at, name)| (Nanos(at), name.as_bytes().into())).collect();
        let node = Process {
            comms: comms(&[(0, "perf-exec"), (10, "env"), (20, "node"), (40, "renamed")]),
            execs: vec![Nanos(10), Nanos(20)],
            mappings: vec![mapping(11, "/usr/bin/env"), mapping(21, "/usr/bin/node"), mapping(41, "/late.node")],
            ..Process::default()
        };
        let child = Process { forked: Some((Pid(1), Nanos(30))), ..Process::default() };
        let ls = Process {
            forked: Some((Pid(2), Nanos(50))),
            execs: vec![Nanos(60)],
            comms: comms(&[(60, "ls")]),
            mappings: vec![mapping(61, "/usr/bin/ls")],
            ..Process::default()
        };
        let by_pid = [(1, node), (2, child), (3, ls)].map(|(pid, process)| (Pid(pid), process)).into();
        Processes { by_pid, ..Processes::default() }
    }

    #[test]
    fn a_process_is_called_by_its_last_name_and_a_child_as_its_parent_was() {
        let processes = processes();
        let programs = Programs::new(&processes);
        assert_eq!([1, 2, 3, 4].map(|pid| programs.name(Pid(pid))), ["renamed", "node", "ls", "?"]);
    }

    #[test]
    fn a_program_has_mapped_what_came_since_its_exec() {
        let processes = processes();
        let programs = Programs::new(&processes);
        let paths = |pid| programs.mappings(Pid(pid)).map(|map| &map.path[..]).collect::<Vec<_>>();
        assert_eq!(paths(1), [&b"/usr/bin/node"[..], b"/late.node"]);
        assert_eq!(paths(2), [b"/usr/bin/node"]);
        assert_eq!(paths(3), [b"/usr/bin/ls"]);
    }
}
