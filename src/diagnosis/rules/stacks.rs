//! Problems of stacks: they break off, or their outermost frames are missing.

use super::super::context::{DoctorContext, RecordedStacks};
use super::super::corrected;
use super::super::places::Owner;
use super::super::problem::{Finding, OfProcess, Problem, UnwindingDump};
use super::super::tally::{ProcessTally, percent};
use crate::model::Pid;
use crate::model::code::OriginId;
use crate::model::perf_command::PerfCommand;
use crate::resolve::symbols::image::Image;
use crate::resolve::unwind::registers::Machine;
use crate::runtimes::{Callers, Flag};
use crate::sources::{Account, Kind, SourceState};
use std::cmp::Reverse;
use std::collections::BTreeMap;

pub(super) fn findings(context: DoctorContext<'_>) -> Vec<Finding> {
    let tally = context.tally;
    let half = |problem, samples: u64| Finding::new(problem, percent(samples as f64 / 2.0, tally.samples), samples, 0);
    let mut found = Vec::new();
    let (cut, limit) = tally.cut;
    if cut > 0 {
        let is_chosen = context.command().is_some_and(|perf| has_max_stack(&perf));
        found.push(half(Problem::ChainsCut { limit, is_chosen }, cut));
    }
    if tally.too_deep > 0 {
        let limit = context.examined.resolution.max_stack();
        found.push(half(Problem::TooDeep { limit }, tally.too_deep));
    }
    let machine = context.examined.resolution.machine();
    match context.stacks {
        RecordedStacks::Copies(_) if !Machine::is_any_known(machine) => {
            found.push(half(Problem::NoUnwinder { machine }, tally.samples));
        }
        RecordedStacks::Copies(bytes) => {
            if tally.copies_ended > 0 {
                found.push(half(Problem::CopiesShort { bytes }, tally.copies_ended));
            }
            found.extend(not_unwound(context));
        }
        RecordedStacks::Chains => found.extend(frame_pointers(context)),
        RecordedStacks::None => {}
    }
    found
}

/// Selects one kind of stacks of a process: the number of stacks per owner of the code that they stop in.
type StackScope = fn(&ProcessTally) -> &BTreeMap<Owner, u64>;

fn sum(owners: &BTreeMap<Owner, u64>) -> u64 {
    owners.values().sum()
}

/// The code in which most of the stacks stop.
struct Stops {
    samples: u64,
    /// The process with most of these stacks.
    pid: Pid,
    files: Vec<String>,
    in_jit: bool,
    in_go: bool,
    /// True if all files exist on this machine in the version that ran.
    are_here: bool,
    /// The machine type of the code (`e_machine` of ELF).
    machine: u16,
}

impl Stops {
    fn of(context: DoctorContext<'_>, of: StackScope, wanted: impl Fn(Pid) -> bool) -> Option<Self> {
        /// The maximum number of files to report.
        const TOLD: usize = 4;
        let processes = || context.tally.processes.iter().filter(|(pid, _)| wanted(**pid));
        let (&pid, _) = processes().max_by_key(|(pid, process)| (sum(of(process)), Reverse(**pid)))?;
        let samples = processes().map(|(_, process)| sum(of(process))).sum();
        let (mut files, mut jit, mut go, mut are_here) = (BTreeMap::<String, u64>::new(), 0, 0, true);
        let resolution = &context.examined.resolution;
        let mut machines = BTreeMap::<u16, u64>::new();
        for (owner, samples) in processes().flat_map(|(_, process)| of(process)) {
            match owner {
                Owner::Code(_) | Owner::Memory => jit += samples,
                Owner::File(dso) => {
                    let image = resolution.images.get(*dso);
                    are_here &= image.is_some();
                    if image.is_some_and(Image::is_go_alone) {
                        go += samples;
                    }
                    *machines.entry(image.map_or(resolution.machine(), Image::machine)).or_default() += samples;
                    *files.entry(String::from_utf8_lossy(context.dso(*dso).label()).into_owned()).or_default() +=
                        samples;
                }
                Owner::Kernel | Owner::Nowhere => {}
            }
        }
        let mut files: Vec<(String, u64)> = files.into_iter().collect();
        files.sort_by_key(|(_, samples)| Reverse(*samples));
        // Only files in which at least 5% of these stacks stop.
        files.retain(|(_, stops)| stops * 20 >= samples);
        files.truncate(TOLD);
        let (in_jit, in_go) = (jit * 2 > samples, go * 2 > samples);
        let most = machines.into_iter().max_by_key(|&(_, samples)| samples);
        let machine = most.map_or(resolution.machine(), |(machine, _)| machine);
        let files = files.into_iter().map(|(file, _)| file).collect();
        (samples > 0).then_some(Self { samples, pid, files, in_jit, in_go, are_here, machine })
    }

    fn finding(&self, problem: OfProcess, context: DoctorContext<'_>) -> Finding {
        let percent = percent(self.samples as f64, context.tally.samples);
        Finding::new(Problem::OfProcess(context.who(self.pid), problem), percent, self.samples, 0)
    }
}

/// True if the recorded command limits the number of frames in a stack.
fn has_max_stack(perf: &PerfCommand<'_>) -> bool {
    let is_limit = |value: &[u8]| memchr::memmem::find(value, b"max-stack=").is_some();
    perf.each_option().any(|option| option.is(&["max-stack"]) || option.value.is_some_and(is_limit))
}

/// How the callers of a process's JIT code can be found in copied stacks.
fn callers(pid: Pid, context: DoctorContext<'_>) -> Callers {
    match context.who(pid).runtime {
        _ if unwinding_dump(pid, context) == UnwindingDump::Here => Callers::Found,
        Some(runtime) if runtime.callers == Callers::InDump => match unwinding_dump(pid, context) {
            UnwindingDump::NotRequested => Callers::InDump,
            UnwindingDump::NotHere | UnwindingDump::Here => Callers::Found,
        },
        Some(runtime) => runtime.callers,
        None => Callers::Unknown,
    }
}

/// What is known of the jitdump with unwinding information for a process's JIT code.
fn unwinding_dump(pid: Pid, context: DoctorContext<'_>) -> UnwindingDump {
    let map = &context.examined.resolution.sources.map;
    let mut dumps = context.loaded(pid).filter(|(_, account)| account.kind == Kind::JitDump);
    if dumps.any(|(number, _)| map.has_unwinding(OriginId(number as u32))) {
        return UnwindingDump::Here;
    }
    let Some(runtime) = context.who(pid).runtime else { return UnwindingDump::NotRequested };
    let is_missing = |(_, account): (usize, &Account)| {
        account.kind == Kind::JitDump && matches!(account.state, SourceState::Missing { .. })
    };
    let is_its = runtime.callers == Callers::InDump && context.accounts(pid).any(is_missing);
    let requests = |flag| context.received(pid, runtime, Flag::Word(flag));
    match is_its || requests("--perf-prof-unwinding-info") {
        true => UnwindingDump::NotHere,
        false => UnwindingDump::NotRequested,
    }
}

fn not_unwound(context: DoctorContext<'_>) -> Option<Finding> {
    let stops = Stops::of(context, |process| &process.not_unwound, |_| true)?;
    let problem = OfProcess::NotUnwound {
        files: stops.files.clone(),
        in_jit: stops.in_jit,
        dump: unwinding_dump(stops.pid, context),
        are_here: stops.are_here,
    };
    let finding = stops.finding(problem, context);
    // The inner frames are right, so the finding counts half.
    Some(Finding { percent: finding.percent / 2.0, ..finding })
}

/// Findings about stacks that were followed by frame pointers, but not to the start of the thread.
fn frame_pointers(context: DoctorContext<'_>) -> Vec<Finding> {
    let broken: StackScope = |process| &process.broken;
    // If stacks continue past compiled methods, the JVM keeps frame pointers, wherever its flag was set.
    let lacks_it = |pid: Pid| {
        context.runtimes_of(pid).find(|runtime| runtime.frame_pointers.is_some())?;
        let runtime = context.who(pid).runtime?;
        let flag = runtime.frame_pointers?;
        let stops = Stops::of(context, broken, |other| other == pid)?;
        (stops.in_jit && !context.received(pid, runtime, flag)).then_some((runtime, stops))
    };
    let lacking: Vec<_> = context.tally.processes.keys().filter_map(|pid| lacks_it(*pid)).collect();
    let of_jvm = lacking.iter().map(|(runtime, stops)| {
        // Recordings contain neither the values of environment variables nor option files.
        let is_known = corrected::is_command_of(runtime, stops.pid, context);
        stops.finding(OfProcess::JvmFramePointers { is_known }, context)
    });
    let mut found: Vec<Finding> = of_jvm.collect();
    if let Some(stops) = Stops::of(context, broken, |pid| lacking.iter().all(|(_, stops)| stops.pid != pid)) {
        let files = stops.files.clone();
        let problem = OfProcess::FramePointers {
            files,
            in_jit: stops.in_jit,
            callers: callers(stops.pid, context),
            machine: stops.machine,
            in_go: stops.in_go,
        };
        found.push(stops.finding(problem, context));
    }
    found
}
