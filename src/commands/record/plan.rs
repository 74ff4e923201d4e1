//! Plans the command that `record` runs: perf and the program. Each gets the options that the user left out.

use super::machine::Machine;
use super::options::RecordOptions;
use crate::error::{Error, Result};
use crate::io::{self, started};
use crate::model::Pid;
use crate::model::perf_command::PerfCommand;
use crate::pipeline::running::RunningProcess;
use crate::runtimes::record_command::RecordCommand;
use crate::runtimes::{
    self, CommandLine, Environment, NamedRuntime, RUNTIMES, RunFacts, Runtime, RuntimeSet, Stacks, Switch, Version,
    find_program, runtime_of_command,
};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// A recording that is about to be made.
pub(super) struct Plan {
    /// The complete command, including perf.
    pub(super) command: RecordCommand,
    /// Notes to print before recording starts.
    pub(super) notes: Vec<String>,
    /// The files in which the runtime will write the names of its code, if they have fixed names (without a PID) in the
    /// current directory. The next run would overwrite them, so they are copied next to the recording.
    pub(super) leaves: Vec<&'static str>,
}

impl Plan {
    /// Plans the command. Options that the user typed stay as they are.
    pub(super) fn new(options: &RecordOptions, machine: &Machine) -> Result<Self> {
        let called = [b"perf".to_vec(), b"record".to_vec()];
        let typed = PerfCommand { perf_words: &called, ..options.typed() };
        let command = RecordCommand::from_perf(typed).with_clock();
        // `with_option` adds nothing if the user typed the option under any of these names.
        let command = command.with_option(&["F", "freq", "c", "count"], "-F", &options.frequency);
        let command = match machine.event {
            Some(event) => command.with_option(&["e", "event"], "-e", event),
            None => command,
        };
        let output = options.output.to_string_lossy();
        let command = command.with_option(&["o", "output"], "-o", &output);
        let plan = Self { command, notes: Vec::new(), leaves: Vec::new() };
        match &options.pid {
            Some(pid) => plan.attach(pid, options),
            None => plan.start(options),
        }
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Plans the recording of a program that `record` will start. If its runtime is known and can be told to write
    /// names, the program gets the option or variable for that. Otherwise, a note says what is missing.
    fn start(mut self, options: &RecordOptions) -> Result<Self> {
        let stated = options.runtime.as_deref().map(NamedRuntime::find).transpose()?;
        let runtime = match stated {
            Some(NamedRuntime::Runtime(runtime)) => Some(runtime),
            Some(NamedRuntime::CompiledLanguage) => None,
            None => executed_runtime(&options.program),
        };
        let Some(runtime) = runtime else {
            // Options that make perf record more than the program. With one of them, the program may only say how long
            // to record, as in `-a -- sleep 10`.
            let records_others = options.typed().has(&["a", "all-cpus", "t", "tid", "u", "uid", "C", "cpu"]);
            match options.program.first() {
                Some(program) if !records_others && stated.is_none() => self.note(unknown_program(program)),
                None if !records_others => {
                    self.note(
                        "no COMMAND given, so perf records all processes until Ctrl-C (use -- COMMAND or -p PID \
                               to record one)",
                    );
                }
                _ => {}
            }
            self.command = self.command.with_stacks(Stacks::FramePointers);
            return Ok(self);
        };
        // If the program is a script, such as `npm`, its interpreter is the runtime that states the version.
        let version = version(runtime, &options.program)
            .or_else(|| version(runtime, &script_interpreter(options.program.first()?)?));
        let environment = environment();
        let command = CommandLine { words: &options.program, environment: &environment };
        // `plan.switch` makes the runtime write names; `None` if nothing can be set for that. `plan.command` is the
        // command line that turns it on; `None` if the program passes neither flags nor variables on to the runtime.
        let plan = runtime.plan_program(command, version, &directory(options));
        let Some(switch) = plan.switch else {
            self.note(nothing_to_set(runtime, version));
            self.command = self.command.with_stacks(plan.stacks);
            return Ok(self);
        };
        match plan.command {
            Some(corrected) => self.command = self.command.with_program(corrected),
            None => self.note(format!(
                "{} has no environment variable that makes it write names, so change the command: {}",
                runtime.name,
                switch.instructions(runtime.called)
            )),
        }
        if let Some(note) = compilers_inside(runtime) {
            self.note(note);
        }
        if plan.stacks == Stacks::Copies
            && let Some(typed) = typed_call_chains(&options.typed())
        {
            self.note(format!(
                "{}'s code keeps no frame pointers, so --call-graph dwarf replaces {typed}",
                runtime.name
            ));
        }
        self.command = self.command.with_stacks(plan.stacks);
        // Other files, such as those with a PID in their names, are found later, by the recorded processes.
        let is_fixed = |file: &&str| file.starts_with("./") && !file.contains("PID") && !file.contains('*');
        self.leaves = switch.leaves.iter().copied().filter(is_fixed).collect();
        Ok(self)
    }

    /// Plans the recording of a process that is already running. Its runtime can't be told to write names any more, so
    /// notes say what is missing.
    fn attach(mut self, pid: &str, options: &RecordOptions) -> Result<Self> {
        self.command = self.command.with_option(&["p", "pid"], "-p", pid);
        let mut stacks = Stacks::FramePointers;
        for number in pid.split(',').filter(|number| !number.is_empty()) {
            let parsed =
                number.parse::<i32>().map_err(|_| Error::usage(format!("-p {pid}: {number} is not a process ID")))?;
            let running = RunningProcess::read(Pid(parsed), &Path::new("/proc").join(number))?;
            let stated = options.runtime.as_deref().map(NamedRuntime::find).transpose()?;
            let runtime = match stated {
                Some(NamedRuntime::Runtime(runtime)) => Some(runtime),
                Some(NamedRuntime::CompiledLanguage) => None,
                None => running.runtimes().first(),
            };
            let Some(runtime) = runtime else { continue };
            let memory: Vec<&[u8]> = running.mappings.iter().map(|map| &map.path[..]).collect();
            let version = runtime.find_version(memory.iter().copied());
            let facts = RunFacts { version, command: Some(running.command()), memory: &memory };
            let active = runtime.switches.iter().find(|switch| runtime.is_switched_on(switch, running.command()));
            let runtime_stacks = active.map_or_else(|| runtime.stacks(facts), |switch| switch.stacks);
            // perf records all processes in the same way. So stacks are copied if one of the runtimes needs that.
            if runtime_stacks == Stacks::Copies {
                stacks = runtime_stacks;
            }
            // The note says that the process writes no names. A process that has mapped a jitdump (`markers`) does
            // write them, by whatever means this was turned on.
            if active.is_none() && running.markers().is_empty() {
                self.note(not_switched_on(number, runtime, facts));
            }
        }
        self.command = self.command.with_stacks(stacks);
        Ok(self)
    }
}

/// The option by which the user asked for call chains: `-g` or `--call-graph HOW`. `None` if there is none, or if it
/// already is `--call-graph dwarf`.
fn typed_call_chains(typed: &PerfCommand<'_>) -> Option<String> {
    let how = typed.value(&["call-graph"]);
    if how.is_some_and(|how| how.starts_with(b"dwarf")) {
        return None;
    }
    match how {
        Some(how) => Some(format!("--call-graph {}", String::from_utf8_lossy(how))),
        None if typed.has(&["g"]) => Some("-g".to_owned()),
        None => None,
    }
}

/// The absolute path of the directory in which perf writes the recording.
fn directory(options: &RecordOptions) -> String {
    let parent = options.output.parent().unwrap_or(Path::new(""));
    let here = std::env::current_dir().unwrap_or_default();
    here.join(parent).to_string_lossy().trim_end_matches('/').to_owned()
}

/// The environment variables of this process. perf and the program will inherit them.
fn environment() -> Environment {
    Environment::Known(std::env::vars_os().map(|(name, value)| (name.into_vec(), value.into_vec())).collect())
}

/// The runtime that the command executes, recognized by the program's name, by the file that a link of this name leads
/// to, or by the content of that file. If the file is a script, it is the runtime that its first line names.
fn executed_runtime(words: &[Vec<u8>]) -> Option<&'static Runtime> {
    if let Some(by_name) = runtime_of_command(words) {
        return Some(by_name);
    }
    let path = started::program_path(words.first()?)?.canonicalize().ok()?;
    let by_file = RuntimeSet::from_program(path.as_os_str().as_bytes()).first().or_else(|| embedded_runtime(&path));
    by_file.or_else(|| {
        let interpreter = script_interpreter(words.first()?)?;
        let runtime = runtime_of_command(&interpreter)?;
        // The script's own command line can't get an option for the runtime. So this only helps with a runtime that can
        // be told by environment variables to write names.
        (!runtime.ignores_environment(&interpreter)).then_some(runtime)
    })
}

/// The command in the first line of a script, such as `/usr/bin/env node` of `npm`. `None` if the program isn't a
/// script.
fn script_interpreter(program: &[u8]) -> Option<Vec<Vec<u8>>> {
    let bytes = io::map_file(&started::program_path(program)?).ok()?;
    let line = bytes.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(<[u8]>::to_vec).collect())
}

/// The runtime that an executable contains, judging by its content: a program made by `bun build --compile`, for
/// example, or a copy of a runtime under another name.
fn embedded_runtime(path: &Path) -> Option<&'static Runtime> {
    let bytes = io::map_file(path).ok()?;
    RuntimeSet::from_elf(&object::File::parse(&bytes[..]).ok()?).first()
}

/// The note for a program that isn't a known runtime. If the program often starts a certain runtime, the note suggests
/// to state that one (`--runtime`).
fn unknown_program(program: &[u8]) -> String {
    let program = String::from_utf8_lossy(program);
    let launcher = program.rsplit('/').next().unwrap_or_default();
    match runtimes::find_launched_runtime(launcher) {
        Some(runtime) => {
            format!(
                "{program} starts {0}; to name the code that {0} runs, add --runtime {launcher} (which selects {0})",
                runtime.name
            )
        }
        None => format!(
            "{program} is not a known runtime. If it starts one, add --runtime NAME (`jitgraft runtimes` lists them)"
        ),
    }
}

/// The version that the runtime's program prints. `None` if it can't be found out, or if no switch depends on it.
fn version(runtime: &Runtime, words: &[Vec<u8>]) -> Option<Version> {
    let is_needed = runtime.switches.iter().any(|switch| switch.since.is_some());
    if !is_needed || runtime.version_flag.is_empty() {
        return None;
    }
    let program = find_program(words, |name| runtime.is_program(name))?;
    Version::find(&started::run_for_output(&[&words[program], runtime.version_flag.as_bytes()]).ok()?)
}

/// The note about a runtime that has no option or variable for writing names.
fn nothing_to_set(runtime: &Runtime, version: Option<Version>) -> String {
    let name = runtime.name;
    match (runtime.too_old(version), runtime.switches.first()) {
        (Some(too_old), _) => too_old,
        (None, Some(switch)) => format!("no flag makes {name} write names: {}", switch.instructions(runtime.called)),
        (None, None) => format!("some code of {name} stays unnamed: {}", runtime.unnamed),
    }
}

/// A note about libraries with compilers of their own that this runtime's programs may load. The runtime doesn't name
/// the code that they compile. `None` if no such library is known.
fn compilers_inside(runtime: &Runtime) -> Option<String> {
    // The table has such a library as a runtime without programs of its own; `called` is the program that loads it.
    let is_inside = |library: &&Runtime| library.programs.is_empty() && runtime.is_program(library.called.as_bytes());
    let inside = RUNTIMES.iter().filter(is_inside).filter(|library| !library.switches.is_empty());
    let inside: Vec<_> = inside.map(|library| library.name).collect();
    let first = inside.first()?;
    Some(format!(
        "{} names its own functions, but not code compiled by {}; see `jitgraft runtimes {first}`",
        runtime.name,
        inside.join(", ")
    ))
}

/// The note about a running process whose runtime was started without the option for writing names.
fn not_switched_on(pid: &str, runtime: &'static Runtime, facts: RunFacts<'_>) -> String {
    // A switch that is turned on by neither flags nor variables, but by something that the user does, often while the
    // process runs.
    let is_by_hand = |switch: &&Switch| !switch.can_be_set() && !switch.by_hand.is_empty();
    // Of a runtime that registers its code for debuggers, the switch is to take a core dump. So the file with the names
    // (`leaves` lists such files) is the core file.
    let registers_for_debuggers = |switch: &Switch| switch.leaves == ["./core.PID"];
    let by_hand = runtime.switches.iter().find(is_by_hand);
    let name = runtime.name;
    let started_without_switch =
        format!("process {pid} ({name}) was started without the switch that makes it write names");
    match (by_hand, runtime.best_switch(facts)) {
        // The user need not do anything: jitgraft copies the process's memory, which contains the names.
        (Some(switch), _) if registers_for_debuggers(switch) => {
            format!(
                "process {pid} ({name}) has registered its code for debuggers; jitgraft saves it as core.{pid} next \
                 to the recording"
            )
        }
        // `by_hand` continues a sentence here, such as `with jcmd PID …`. In the next arm, it is an imperative.
        (Some(switch), _) if switch.by_hand.starts_with("with ") => {
            let with_tool = switch.by_hand.replace("PID", pid);
            format!("{started_without_switch}; you can still get names {with_tool}")
        }
        (Some(switch), _) => format!("{started_without_switch}; to get names, {}", switch.by_hand.replace("PID", pid)),
        (None, Some(switch)) => {
            format!("{started_without_switch}; to get names, {}", switch.instructions(runtime.called))
        }
        (None, None) => format!("{started_without_switch}: {}", nothing_to_set(runtime, facts.version)),
    }
}
