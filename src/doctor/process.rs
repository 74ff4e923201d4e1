//! A process that a finding is about, and advice on how to make its runtime write names.

use super::wording::{printable, printable_pid};
use crate::model::Pid;
use crate::model::shell::quoted;
use crate::runtimes::{Runtime, Switch};
use std::borrow::Cow;

/// A process, with facts that help the user to recognize it.
#[derive(Debug, Clone)]
pub struct ExaminedProcess {
    /// The process ID as recorded, which differs from the process's own view of it in a container.
    pub pid: Pid,
    /// The process name.
    pub comm: String,
    /// The runtime of the process. `None` if it runs no runtime that jitgraft knows.
    pub runtime: Option<&'static Runtime>,
    /// The number of further processes of the same runtime that have the same problem. They are reported together with
    /// this process.
    pub others: u64,
    /// How to make the runtime write names. It mentions only switches of the runtime that this process can use; `None`
    /// if there are none.
    pub advice: Option<String>,
    /// The best switch for writing names that this process can use and that `jitgraft record` can turn on. `None` if
    /// there is none.
    pub settable_switch: Option<&'static Switch>,
    /// A message that the runtime's version is too old to write names. `None` if the version is new enough or unknown.
    pub too_old: Option<String>,
}

impl ExaminedProcess {
    /// Describes the process for use in a sentence, such as `process 77 and 2 more (node, Node.js)`.
    pub(super) fn describe(&self) -> String {
        let runtime = self.runtime.map_or_else(String::new, |runtime| format!(", {}", runtime.name));
        let comm = printable(&self.comm);
        match self.others {
            0 => format!("process {} ({comm}{runtime})", self.pid),
            others => format!("process {} and {others} more ({comm}{runtime})", self.pid),
        }
    }

    /// The process ID as shown in a message: `none` if the process is unknown.
    pub(super) fn printable_pid(&self) -> String {
        printable_pid(self.pid)
    }

    /// Advice on how to make the process's runtime report its code: a command of `jitgraft record` if that turns on a
    /// switch, otherwise instructions for all switches that the process can use or, if there are none, why.
    pub(super) fn switch_advice(&self) -> String {
        let Some(runtime) = self.runtime else {
            return "if this is a JIT compiler, make it write a jitdump, a perf map or another log that jitgraft reads \
                    (see jitgraft formats). If jitgraft does not find the file by itself, pass it with --jitdump, \
                    --perf-map or --jit-log"
                .to_owned();
        };
        match (self.settable_switch, &self.advice, &self.too_old) {
            (Some(switch), ..) if self.passes_on(switch, runtime) => format!(
                "record the program with `{}`, which {} (writes {}). If the process has already written that file, \
                 pass it with --jitdump, --perf-map or --jit-log",
                self.record_command(runtime),
                // The instructions begin with `run`; after `which`, they describe the command: `which runs node with
                // --perf-prof`.
                switch.instructions(runtime.called).replacen("run ", "runs ", 1),
                switch.leaves.join(", ")
            ),
            (_, Some(advice), _) => {
                format!(
                    "{advice}. If the process has already written the file, pass it with --jitdump, --perf-map or \
                     --jit-log"
                )
            }
            (_, None, Some(too_old)) => too_old.clone(),
            (_, None, None) => runtime.cannot_name(),
        }
    }

    /// True if the switch reaches the runtime when the process's program is started with it. A program that embeds a
    /// runtime doesn't pass options on, so for it only variables do.
    fn passes_on(&self, switch: &Switch, runtime: &Runtime) -> bool {
        let is_in_variable = !switch.flags.is_empty() && !runtime.flag_variables.is_empty();
        runtime.is_program(self.comm.as_bytes()) || !switch.variables.is_empty() || is_in_variable
    }

    /// The `jitgraft record` command to suggest for the process's program: by the runtime's own program if the process
    /// runs that, otherwise with `--runtime`.
    fn record_command(&self, runtime: &Runtime) -> String {
        if runtime.is_program(self.comm.as_bytes()) {
            format!("jitgraft record -- {} …", self.program_to_run(runtime))
        } else {
            format!("jitgraft record --runtime {} -- PROGRAM", runtime.typed_name())
        }
    }

    /// The program that the user starts to get this process, which is one of the runtime's programs. Many runtimes have
    /// several: PHP has `php` and `php-fpm8.2`, and QEMU one for each processor. The process's name is used if it is of
    /// the same family as the usual program; `beam.smp`, for example, is only started by `erl`.
    fn program_to_run(&self, runtime: &Runtime) -> Cow<'_, str> {
        // Linux cuts off process names after this many bytes, so a name of this length may be incomplete.
        const LONGEST_NAME: usize = 15;
        let family = runtime.called.split(['-', ' ']).next().unwrap_or_default();
        if self.comm.starts_with(family) && self.comm.len() < LONGEST_NAME {
            quoted(self.comm.as_bytes())
        } else {
            Cow::Borrowed(runtime.called)
        }
    }

    /// Advice to turn on a switch by an environment variable instead of an option, because child processes inherit
    /// variables but not options. `None` if no variable turns it on.
    pub(super) fn variable_advice(&self, switch: &Switch) -> Option<String> {
        let name = switch.name();
        let variable = match switch.variables {
            [(name, value), ..] => format!("{name}={value}"),
            [] => {
                let variable = self.runtime?.flag_variables.first()?;
                format!("{}, with {name},", variable.name)
            }
        };
        Some(format!(
            "set {variable} in the environment, which child processes inherit. They don't inherit options such as \
             {name} if they are started by, for example, python's subprocess, multiprocessing (with spawn or \
             forkserver) or node's child_process.spawn"
        ))
    }

    /// Advice for a process that apparently failed to map its jitdump, by which perf would have found the dump. `given`
    /// is the switch that the process received, if known.
    pub(super) fn mapping_advice(&self, given: Option<&Switch>) -> String {
        let name = given.map_or_else(String::new, |switch| format!(" ({})", switch.leaves.join(", ")));
        let writes_only_maps = |switch: &Switch| switch.leaves.iter().all(|file| file.ends_with(".map"));
        let mut by_map = String::new();
        // Unless the process was given a switch that only writes a perf map, propose one: perf maps needn't be mapped.
        let is_map_given = given.is_some_and(writes_only_maps);
        if !is_map_given
            && let Some(runtime) = self.runtime
            && let Some(switch) = runtime.switches.iter().find(|switch| writes_only_maps(switch) && switch.can_be_set())
        {
            by_map = format!(", or use {}, which only needs a writable directory", switch.name());
        }
        format!(
            "the directory for this file{name} is probably mounted noexec (check with findmnt -T DIRECTORY) or not \
             writable; let the runtime write to another directory{by_map}"
        )
    }

    /// True if the process's runtime can write a jitdump, or if the runtime is unknown.
    pub(super) fn can_write_dump(&self) -> bool {
        self.runtime.is_none_or(|runtime| runtime.switches.iter().any(Switch::writes_dump))
    }

    /// A remark about code that the process's runtime never names, in parentheses, to be appended to a sentence. Empty
    /// if there is no such code.
    pub(super) fn unnamed_remark(&self) -> String {
        match self.runtime.and_then(Runtime::never_names) {
            Some(unnamed) => format!(" (never named: {unnamed})"),
            None => String::new(),
        }
    }
}

/// A clause that says why a switch in the recorded command did not reach a process that another process started.
pub(super) fn not_reached(switch: &Switch) -> String {
    format!("{} only reached the process that perf started and was not passed on to this one", switch.name())
}
