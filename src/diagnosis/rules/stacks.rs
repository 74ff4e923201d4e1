//! Finds problems of stacks: they break off, or their outermost frames are missing.

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
    let mut found = Vec::new();
    let (cut, limit) = tally.cut;
    if cut > 0 {
        let is_chosen = context.command().is_some_and(|perf| has_max_stack(&perf));
        found.push(cut_stacks(Problem::ChainsCut { limit, is_chosen }, cut, context));
    }
    if tally.too_deep > 0 {
        let limit = context.examined.resolution.max_stack();
        found.push(cut_stacks(Problem::TooDeep { limit }, tally.too_deep, context));
    }
    let machine = context.examined.resolution.machine();
    match context.stacks {
        RecordedStacks::Copies(_) if !Machine::is_any_known(machine) => {
            found.push(cut_stacks(Problem::NoUnwinder { machine }, tally.samples, context));
        }
        RecordedStacks::Copies(bytes) => {
            if tally.copies_ended > 0 {
                found.push(cut_stacks(Problem::CopiesShort { bytes }, tally.copies_ended, context));
            }
            found.extend(find_not_unwound(context));
        }
        RecordedStacks::Chains => found.extend(find_broken_chains(context)),
        RecordedStacks::None => {}
    }
    found
}

/// Makes a finding about stacks that are cut. It counts half, because the inner frames of these samples are right.
fn cut_stacks(problem: Problem, samples: u64, context: DoctorContext<'_>) -> Finding {
    Finding::new(problem, percent(samples as f64 / 2.0, context.tally.samples), samples, 0)
}

/// Selects a kind of incomplete stacks of a process. Returns the number of these stacks by the owner of the code that
/// they stop in.
type StackKind = fn(&ProcessTally) -> &BTreeMap<Owner, u64>;

/// The code in which most stacks of a kind stop.
struct Stops {
    samples: u64,
    /// The process with most of these incomplete stacks.
    pid: Pid,
    files: Vec<String>,
    in_jit: bool,
    in_go: bool,
    /// True if all these files exist on this machine in the version that ran.
    are_here: bool,
    /// The machine type of the code (`e_machine` of ELF).
    machine: u16,
}

impl Stops {
    /// Finds where stacks of this kind stop. Only looks at processes for which `is_included` is true. `None` if no
    /// stack stops.
    fn find(context: DoctorContext<'_>, kind: StackKind, is_included: impl Fn(Pid) -> bool) -> Option<Self> {
        let resolution = &context.examined.resolution;
        let mut samples = 0;
        let mut jit = 0;
        let mut go = 0;
        let mut are_here = true;
        let mut by_process = BTreeMap::<Pid, u64>::new();
        let mut by_file = BTreeMap::<String, u64>::new();
        let mut by_machine = BTreeMap::<u16, u64>::new();
        for (&pid, process) in context.tally.processes.iter().filter(|(pid, _)| is_included(**pid)) {
            for (owner, stops) in kind(process) {
                samples += stops;
                *by_process.entry(pid).or_default() += stops;
                match owner {
                    Owner::Code(_) | Owner::Memory => jit += stops,
                    Owner::File(dso) => {
                        let image = resolution.images.get(*dso);
                        are_here &= image.is_some();
                        if image.is_some_and(Image::is_go_alone) {
                            go += stops;
                        }
                        let machine = image.map_or(resolution.machine(), Image::machine);
                        *by_machine.entry(machine).or_default() += stops;
                        let path = String::from_utf8_lossy(context.dso(*dso).label()).into_owned();
                        *by_file.entry(path).or_default() += stops;
                    }
                    Owner::Kernel | Owner::Nowhere => {}
                }
            }
        }
        if samples == 0 {
            return None;
        }
        let (pid, _) = by_process.into_iter().max_by_key(|(pid, stops)| (*stops, Reverse(*pid)))?;
        let main_machine = by_machine.into_iter().max_by_key(|(_, stops)| *stops);
        Some(Self {
            samples,
            pid,
            files: Self::main_files(by_file, samples),
            in_jit: jit * 2 > samples,
            in_go: go * 2 > samples,
            are_here,
            machine: main_machine.map_or(resolution.machine(), |(machine, _)| machine),
        })
    }

    /// The files in which at least 5% of `samples` stacks stop. Those with most stacks come first.
    fn main_files(by_file: BTreeMap<String, u64>, samples: u64) -> Vec<String> {
        /// Maximum number of files to report.
        const SHOWN: usize = 4;
        let mut files: Vec<(String, u64)> = by_file.into_iter().collect();
        files.sort_by_key(|(_, stops)| Reverse(*stops));
        files.retain(|(_, stops)| stops * 20 >= samples);
        files.truncate(SHOWN);
        files.into_iter().map(|(file, _)| file).collect()
    }

    fn finding(&self, problem: OfProcess, context: DoctorContext<'_>) -> Finding {
        let percent = percent(self.samples as f64, context.tally.samples);
        Finding::new(Problem::OfProcess(context.who(self.pid), problem), percent, self.samples, 0)
    }
}

/// True if the recorded command limits the number of frames in a stack.
fn has_max_stack(perf: &PerfCommand<'_>) -> bool {
    perf.each_option().any(|option| {
        let in_event = option.value.is_some_and(|value| memchr::memmem::find(value, b"max-stack=").is_some());
        in_event || option.is(&["max-stack"])
    })
}

/// How the callers of a process's JIT code can be found if stacks are copied.
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

/// What is known about the jitdump with unwinding information for a process's JIT code.
fn unwinding_dump(pid: Pid, context: DoctorContext<'_>) -> UnwindingDump {
    let map = &context.examined.resolution.sources.map;
    let mut dumps = context.loaded_accounts(pid).filter(|(_, account)| account.kind == Kind::JitDump);
    if dumps.any(|(number, _)| map.has_unwinding(OriginId(number as u32))) {
        return UnwindingDump::Here;
    }
    let Some(runtime) = context.who(pid).runtime else { return UnwindingDump::NotRequested };
    let is_missing = |(_, account): (usize, &Account)| {
        account.kind == Kind::JitDump && matches!(account.state, SourceState::Missing { .. })
    };
    let lacks_dump = runtime.callers == Callers::InDump && context.accounts(pid).any(is_missing);
    if lacks_dump || context.has_received(pid, runtime, Flag::Word("--perf-prof-unwinding-info")) {
        UnwindingDump::NotHere
    } else {
        UnwindingDump::NotRequested
    }
}

fn find_not_unwound(context: DoctorContext<'_>) -> Option<Finding> {
    let stops = Stops::find(context, |process| &process.not_unwound, |_| true)?;
    let problem = OfProcess::NotUnwound {
        files: stops.files.clone(),
        in_jit: stops.in_jit,
        dump: unwinding_dump(stops.pid, context),
        are_here: stops.are_here,
    };
    let finding = stops.finding(problem, context);
    // The finding counts half, because the inner frames are right.
    Some(Finding { percent: finding.percent / 2.0, ..finding })
}

/// Finds stacks that the kernel followed by frame pointers, but not to the start of the thread.
fn find_broken_chains(context: DoctorContext<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut jvms = Vec::new();
    for &pid in context.tally.processes.keys() {
        if let Some(stops) = find_jvm_stops(pid, context)
            && let Some(runtime) = context.who(pid).runtime
        {
            // Environment variables and option files may contain JVM options, too, but recordings don't contain their
            // content.
            let is_known = corrected::is_command_of(runtime, pid, context);
            found.push(stops.finding(OfProcess::JvmFramePointers { is_known }, context));
            jvms.push(pid);
        }
    }
    if let Some(stops) = Stops::find(context, |process| &process.broken, |pid| !jvms.contains(&pid)) {
        let problem = OfProcess::FramePointers {
            files: stops.files.clone(),
            in_jit: stops.in_jit,
            callers: callers(stops.pid, context),
            machine: stops.machine,
            in_go: stops.in_go,
        };
        found.push(stops.finding(problem, context));
    }
    found
}

/// Where stacks of a process break off, if its runtime was started without the flag that makes it keep frame pointers,
/// and if most stacks break off in JIT code. `None` otherwise: if stacks continue past compiled methods, the JVM keeps
/// frame pointers, wherever its flag was set.
fn find_jvm_stops(pid: Pid, context: DoctorContext<'_>) -> Option<Stops> {
    context.runtimes_of(pid).find(|runtime| runtime.frame_pointers.is_some())?;
    let runtime = context.who(pid).runtime?;
    let flag = runtime.frame_pointers?;
    let stops = Stops::find(context, |process| &process.broken, |other| other == pid)?;
    (stops.in_jit && !context.has_received(pid, runtime, flag)).then_some(stops)
}
