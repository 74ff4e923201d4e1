//! Finds problems with stacks: they break off, or their outermost frames are missing.

use super::super::context::{DoctorContext, RecordedStacks};
use super::super::correction::is_command_of;
use super::super::finding::{Change, Finding, Highlight, PROCESS, Share};
use super::super::kind::FindingKind;
use super::super::places::Owner;
use super::super::process::ExaminedProcess;
use super::super::tally::{CutChains, ProcessTally};
use super::super::wording::{BUILD, DWARF, list};
use crate::jit::{Kind, SourceState};
use crate::model::Pid;
use crate::model::abi::{EM_AARCH64, EM_X86_64, machine_name};
use crate::model::code::OriginId;
use crate::model::perf_command::PerfCommand;
use crate::runtimes::record_command::LARGEST_COPY;
use crate::runtimes::{Callers, Flag};
use crate::symbolize::symbols::image::Image;
use crate::symbolize::unwind::registers::Machine;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The remedy for stacks that end in JIT code whose callers can't be found in any way.
const NO_CALLERS: &str = "the innermost frames are correct; their callers cannot be found, because this runtime \
                          neither keeps frame pointers nor writes unwind data";

/// Finds out why stacks are incomplete. Which reasons are possible depends on how perf recorded the stacks: as copies
/// or as call chains.
pub(super) fn findings(context: DoctorContext<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(find_cut_chains(context));
    found.extend(find_deep_stacks(context));
    let machine = context.examined.resolution.machine();
    match context.stacks {
        RecordedStacks::Copies(_) if !Machine::is_any_known(machine) => {
            found.push(report_no_unwinder(machine, context));
        }
        RecordedStacks::Copies(bytes) => {
            found.extend(find_short_copies(bytes, context));
            found.extend(find_not_unwound(context));
        }
        RecordedStacks::Chains => found.extend(find_broken_chains(context)),
        RecordedStacks::None => {}
    }
    found
}

/// The share of the recording that `samples` stacks without their outermost frames make up. Each counts half, because
/// its inner frames are right.
fn share_of_cut_stacks(samples: u64, context: DoctorContext<'_>) -> Share {
    context.share_of_samples(samples, 0.5)
}

/// Reports call chains whose outermost frames are missing, because they have more frames than the kernel was set to
/// record.
fn find_cut_chains(context: DoctorContext<'_>) -> Option<Finding> {
    let CutChains { count, limit } = context.tally.cut_chains;
    if count == 0 {
        return None;
    }
    let remedy = if context.command().is_some_and(|perf| has_max_stack(&perf)) {
        format!("record again without max-stack={limit}")
    } else {
        // The kernel's default limit is 127 frames, so this suggests about eight times as many.
        let more = (u32::from(limit) * 8).max(1024);
        format!("run sysctl kernel.perf_event_max_stack={more} as root, then record again")
    };
    Some(Finding::new(
        FindingKind::CallChainsCut,
        share_of_cut_stacks(count, context),
        format!("stacks are cut off: the kernel was set to record at most {limit} frames"),
        remedy,
    ))
}

/// Reports stacks with more frames than jitgraft unwinds. The remedy is a limit eight times as high.
fn find_deep_stacks(context: DoctorContext<'_>) -> Option<Finding> {
    let deep = context.tally.too_deep;
    if deep == 0 {
        return None;
    }
    let limit = context.examined.resolution.max_stack();
    Some(Finding::new(
        FindingKind::StacksTooDeep,
        share_of_cut_stacks(deep, context),
        "stacks are cut off: they have more frames than jitgraft unwinds",
        format!("unwind more frames with --max-stack {}", limit.saturating_mul(8).max(1024)),
    ))
}

/// Reports that perf copied stacks which jitgraft can't unwind, because it has no unwinder for this architecture.
fn report_no_unwinder(machine: u16, context: DoctorContext<'_>) -> Finding {
    Finding::new(
        FindingKind::NoUnwinder,
        share_of_cut_stacks(context.tally.samples, context),
        format!(
            "callers are missing: perf recorded copies of the stacks, but jitgraft cannot unwind those of {} machines",
            machine_name(machine)
        ),
        format!("record with -g, and {BUILD}"),
    )
}

/// Reports stacks that are larger than the copies that perf made of them. A copy has at most `bytes` bytes.
fn find_short_copies(bytes: u32, context: DoctorContext<'_>) -> Option<Finding> {
    let short = context.tally.copies_ended;
    if short == 0 {
        return None;
    }
    // Recording again is only worth it if copies become at least twice as large.
    let can_grow = bytes.saturating_mul(2) <= LARGEST_COPY;
    let remedy = if can_grow {
        format!("record larger copies with jitgraft record --call-graph dwarf,{LARGEST_COPY}")
    } else {
        "perf cannot copy more; build with -fno-omit-frame-pointer and record with -g instead".to_owned()
    };
    let finding = Finding::new(
        FindingKind::CopiesShort,
        share_of_cut_stacks(short, context),
        format!("stacks are cut off: perf copied at most {bytes} bytes of each, and they are larger"),
        remedy,
    );
    Some(finding.solved_by_change(if can_grow { Some(Change::CopySize) } else { None }))
}

/// Selects one kind of incomplete stacks (`broken` or `not_unwound`) from the counts of a process. Each count is for
/// the owner of the code in which the stacks end.
type StackKind = fn(&ProcessTally) -> &BTreeMap<Owner, u64>;

/// Where incomplete stacks of one kind end.
struct Stops {
    /// The number of incomplete stacks.
    samples: u64,
    /// The process with most of these stacks.
    pid: Pid,
    /// The files in which most of these stacks end.
    files: Vec<String>,
    /// True if more than half of these stacks end in JIT code.
    in_jit: bool,
    /// True if more than half of these stacks end in files that consist of Go code only.
    in_go: bool,
    /// True if all files in which these stacks end are on this machine, in the version that ran.
    are_here: bool,
    /// The architecture (`e_machine` of ELF) of the files in which most of these stacks end.
    machine: u16,
}

impl Stops {
    /// Finds out where incomplete stacks of one kind end, in all processes for which `is_included` is true. `kind`
    /// selects the counts of these stacks from those of a process. `None` if there are no such stacks.
    fn find(context: DoctorContext<'_>, kind: StackKind, is_included: impl Fn(Pid) -> bool) -> Option<Self> {
        let resolution = &context.examined.resolution;
        let mut samples = 0;
        // How many of the stacks end in JIT code, and how many in Go programs without C code.
        let mut jit = 0;
        let mut go = 0;
        // True unless a file in which stacks end is missing on this machine.
        let mut are_here = true;
        let mut by_process = BTreeMap::<Pid, u64>::new();
        let mut by_file = BTreeMap::<String, u64>::new();
        let mut by_machine = BTreeMap::<u16, u64>::new();
        for (&pid, process) in context.tally.processes.iter().filter(|(pid, _)| is_included(**pid)) {
            // `stops` is the number of stacks that end in the code of this owner.
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
        // If several processes have equally many stacks, take the process with the lowest ID.
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

    /// The files in which most stacks end: those with at least 5% of the `samples` stacks, the most frequent first.
    fn main_files(by_file: BTreeMap<String, u64>, samples: u64) -> Vec<String> {
        /// Maximum number of files to report.
        const SHOWN: usize = 4;
        let mut files: Vec<(String, u64)> = by_file.into_iter().collect();
        files.sort_by_key(|(_, stops)| Reverse(*stops));
        files.retain(|(_, stops)| stops * 20 >= samples);
        files.truncate(SHOWN);
        files.into_iter().map(|(file, _)| file).collect()
    }

    /// A finding about these stacks. `weight` says how much each of their samples counts: 1 if the stack is useless,
    /// 0.5 if its inner frames are right.
    fn finding(
        &self,
        kind: FindingKind,
        weight: f64,
        cause: String,
        remedy: String,
        context: DoctorContext<'_>,
    ) -> Finding {
        let highlight = Highlight::StackEnds { files: self.files.clone(), in_jit: self.in_jit };
        Finding::new(kind, context.share_of_samples(self.samples, weight), cause, remedy)
            .with_process(&context.process(self.pid))
            .with_highlight(highlight)
    }

    /// The code in which the stacks end, for use in a sentence: `JIT code` or a list of files.
    fn describe(&self) -> String {
        if self.in_jit { "JIT code".to_owned() } else { list(&self.files) }
    }
}

/// True if the recorded command limits the number of frames in a stack, by an option or by `max-stack=` of an event.
fn has_max_stack(perf: &PerfCommand<'_>) -> bool {
    perf.each_option().any(|option| {
        let in_event = option.value.is_some_and(|value| memchr::memmem::find(value, b"max-stack=").is_some());
        in_event || option.is(&["max-stack"])
    })
}

/// How the callers of a process's JIT code can be found, provided that perf copies the stacks. `Unknown` if it isn't
/// known which runtime the process has.
fn callers(pid: Pid, context: DoctorContext<'_>) -> Callers {
    let dump = unwinding_dump(pid, context);
    // A torn (truncated or damaged) jitdump counts, too: it unwinds the functions whose records could be read.
    if matches!(dump, UnwindingDump::Here | UnwindingDump::Torn) {
        return Callers::Found;
    }
    let Some(runtime) = context.process(pid).runtime else { return Callers::Unknown };
    if runtime.callers == Callers::InDump && dump == UnwindingDump::NotHere {
        // The process was told to write the jitdump, so the user only has to find the file.
        return Callers::Found;
    }
    runtime.callers
}

/// Whether there is a jitdump with unwinding information for the JIT code of a process. Some runtimes' JIT code can't
/// be unwound without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnwindingDump {
    /// The recorded command didn't make the runtime write such a jitdump.
    NotRequested,
    /// The recorded command made the runtime write such a jitdump, but the file is missing.
    NotHere,
    /// There is such a jitdump, but it is truncated or damaged.
    Torn,
    /// There is such a jitdump, and it is undamaged.
    Here,
}

/// Finds out whether there is a usable jitdump with unwinding information for the JIT code of a process.
fn unwinding_dump(pid: Pid, context: DoctorContext<'_>) -> UnwindingDump {
    let map = &context.examined.resolution.sources.map;
    for (number, account) in context.loaded_accounts(pid) {
        if account.kind == Kind::JitDump && map.has_unwinding(OriginId(number as u32)) {
            let is_whole = matches!(account.state, SourceState::Loaded { torn: false, skipped: 0, .. });
            return if is_whole { UnwindingDump::Here } else { UnwindingDump::Torn };
        }
    }
    let Some(runtime) = context.process(pid).runtime else { return UnwindingDump::NotRequested };
    let mut is_missing = false;
    for (_, account) in context.accounts(pid) {
        is_missing |= account.kind == Kind::JitDump && matches!(account.state, SourceState::Missing { .. });
    }
    // Callers are found with unwinding information. `InDump` means that all jitdumps of the runtime have it (CPython),
    // so a missing jitdump had it, too. V8's jitdumps have it only with `--perf-prof-unwinding-info`. No jitdump with
    // it was found above, so if V8 had this flag, the jitdump isn't here.
    let lacks_dump = runtime.callers == Callers::InDump && is_missing;
    if lacks_dump || context.has_received(pid, runtime, Flag::Word("--perf-prof-unwinding-info")) {
        UnwindingDump::NotHere
    } else {
        UnwindingDump::NotRequested
    }
}

/// Reports copied stacks that could not be unwound to the end.
fn find_not_unwound(context: DoctorContext<'_>) -> Option<Finding> {
    let stops = Stops::find(context, |process| &process.not_unwound, |_| true)?;
    let dump = unwinding_dump(stops.pid, context);
    let code = stops.describe();
    let cause = format!("copied stacks of {PROCESS} cannot be unwound beyond {code}: there is no unwind data for it");
    let remedy = not_unwound_remedy(&stops, dump, context);
    // A corrected command that requests the dump takes the place of the remedy.
    let change = if stops.in_jit && dump == UnwindingDump::NotRequested { Some(Change::Callers) } else { None };
    // The inner frames of these stacks are right, so only half of each sample counts as affected.
    let finding = stops.finding(FindingKind::NotUnwound, 0.5, cause, remedy, context);
    Some(finding.solved_by_change(change))
}

/// What the user can do about copied stacks that could not be unwound beyond the code in `stops`. For files, that is to
/// provide or build unwind data. For JIT code, it depends on the runtime and on its jitdump (`dump`), which may have
/// the unwind data.
fn not_unwound_remedy(stops: &Stops, dump: UnwindingDump, context: DoctorContext<'_>) -> String {
    if !stops.in_jit {
        let remedy = if stops.are_here {
            "these files have no unwind data, but separate files with their debugging information may; pass the \
             directory of those with --debug-dir DIR. Or build with -fasynchronous-unwind-tables"
        } else {
            "provide the files that ran (--symfs DIR) or their debugging information (--debug-dir DIR), built with \
             -fasynchronous-unwind-tables"
        };
        return remedy.to_owned();
    }
    let Some(runtime) = context.process(stops.pid).runtime else { return NO_CALLERS.to_owned() };
    let mut usable = context.usable_switches(stops.pid, runtime);
    if dump == UnwindingDump::NotRequested
        && let Some(switch) = usable.find(|switch| switch.keeps_frame_pointers)
    {
        let name = switch.name();
        return format!(
            "record with jitgraft record, without --call-graph dwarf: it turns on {name}, which makes JIT code of {} \
             keep frame pointers",
            runtime.name
        );
    }
    let has_perf_prof = runtime.switches.iter().any(|switch| switch.flags.contains(&Flag::Word("--perf-prof")));
    let remedy = match dump {
        UnwindingDump::NotHere => {
            "copy the process's jitdump next to the recording: the dump has unwind data for the JIT code"
        }
        UnwindingDump::Torn => {
            "the jitdump has unwind data for the JIT code, but is truncated or damaged: let the process exit \
             normally, not by a signal or _exit, and copy the whole dump"
        }
        // The dump is complete and was used, but has no unwind data for the code in which these stacks end.
        UnwindingDump::Here => NO_CALLERS,
        UnwindingDump::NotRequested if runtime.name == "CPython" => {
            "only a complete dump of -X perf_jit (3.13 or newer) has unwind data; the map of -X perf does not. Or \
             build Python with -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer and record with -g"
        }
        UnwindingDump::NotRequested if has_perf_prof => {
            "run the program with --perf-prof-unwinding-info as well as --perf-prof, and keep the jitdump with the \
             unwind data"
        }
        UnwindingDump::NotRequested => NO_CALLERS,
    };
    remedy.to_owned()
}

/// Finds call chains that end before the start of the thread, because the code in which they end keeps no frame
/// pointers.
fn find_broken_chains(context: DoctorContext<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut jvms = Vec::new();
    for &pid in context.tally.processes.keys() {
        // `stops` says where these call chains end. `find_jvm_stops` returns `None` unless the process is a JVM that
        // lacks the option for frame pointers.
        let Some(stops) = find_jvm_stops(pid, context) else { continue };
        let process = context.process(pid);
        let Some(runtime) = process.runtime else { continue };
        // Variables and option files may also contain JVM options, but they aren't in a recording. So the options are
        // known only as far as the command line goes.
        let are_options_known = is_command_of(runtime, pid, context);
        // 1.0: these stacks are useless, so each sample counts in full.
        let share = context.share_of_samples(stops.samples, 1.0);
        found.push(jvm_frame_pointers(&process, share, are_options_known));
        jvms.push(pid);
    }
    if let Some(stops) = Stops::find(context, |process| &process.broken, |pid| !jvms.contains(&pid)) {
        found.push(if stops.in_go { go_frame_pointers(&stops, context) } else { frame_pointers(&stops, context) });
    }
    found
}

/// Reports that stacks end in compiled methods of a JVM, because these don't keep the frame pointer.
/// `are_options_known` is true if the JVM's command line is known, and lacks the option that makes them keep it.
pub(in super::super) fn jvm_frame_pointers(
    process: &ExaminedProcess,
    share: Share,
    are_options_known: bool,
) -> Finding {
    let why = if are_options_known {
        "the JVM ran without -XX:+PreserveFramePointer"
    } else {
        "the JVM apparently ran without -XX:+PreserveFramePointer (its options are not in the recording)"
    };
    Finding::new(
        FindingKind::JvmFramePointers,
        share,
        format!("stacks of {PROCESS} end early in compiled methods: {why}"),
        "record the program with `jitgraft record -- java …`, which runs java with -XX:+PreserveFramePointer",
    )
    .with_process(process)
    .solved_by_change(Some(Change::Program))
    .with_highlight(Highlight::AllStackEnds)
}

/// Reports stacks that end in Go programs without C code. Go has no option that would help, so the text only says why
/// it happens.
fn go_frame_pointers(stops: &Stops, context: DoctorContext<'_>) -> Finding {
    let (why, remedy) = match stops.machine {
        EM_X86_64 | EM_AARCH64 => (
            "Go's compiler keeps frame pointers, but the assembly code of its runtime doesn't always",
            "these callers cannot be recovered, and Go has no option that would help; the innermost frames are correct",
        ),
        _ => (
            "Go keeps no frame pointers on this architecture",
            "the innermost frames are correct; Go has no option to keep frame pointers here",
        ),
    };
    let cause = format!("stacks of {PROCESS} end early in {}, which Go built: {why}", list(&stops.files));
    // 1.0: these stacks are useless, so each sample counts in full.
    stops.finding(FindingKind::FramePointers, 1.0, cause, remedy.to_owned(), context)
}

/// Reports stacks that end in code without frame pointers. The remedy is a switch that makes the code keep them, or to
/// copy stacks, or nothing, depending on the code and the architecture.
fn frame_pointers(stops: &Stops, context: DoctorContext<'_>) -> Finding {
    if let Some(finding) = switch_for_frame_pointers(stops, context) {
        return finding;
    }
    let can_unwind_copies = Machine::is_any_known(stops.machine);
    // How callers of JIT code can be found if perf copies the stacks. `Unknown`: as far as is known, they can't be
    // found.
    let callers = callers(stops.pid, context);
    // `DWARF` is the advice to copy stacks, and `BUILD` the advice to compile with frame pointers.
    let remedy = if !stops.in_jit {
        if can_unwind_copies { DWARF.to_owned() } else { BUILD.to_owned() }
    } else if can_unwind_copies {
        match callers {
            Callers::Unknown => NO_CALLERS.to_owned(),
            Callers::InDump => format!(
                "{DWARF}, and make the runtime write a jitdump, which has unwind data for its code: {}",
                context.process(stops.pid).switch_advice()
            ),
            Callers::Found => DWARF.to_owned(),
        }
    } else {
        format!(
            "the innermost frames are correct; callers of JIT code cannot be found on {}",
            machine_name(stops.machine)
        )
    };
    // If a new recording can show the callers, a corrected command takes the place of the remedy.
    let can_find_callers = can_unwind_copies && (!stops.in_jit || callers != Callers::Unknown);
    let cause = format!("stacks of {PROCESS} end early in {}, where there are no frame pointers", stops.describe());
    // 1.0: these stacks are useless, so each sample counts in full.
    let finding = stops.finding(FindingKind::FramePointers, 1.0, cause, remedy, context);
    finding.solved_by_change(if can_find_callers { Some(Change::Stacks) } else { None })
}

/// Reports stacks that end in JIT code of a runtime that keeps frame pointers only with a certain switch. `None` if the
/// process can't use that switch or already received one, or if the stacks end in files, such as the runtime's own
/// program: the switch doesn't change how those were compiled.
fn switch_for_frame_pointers(stops: &Stops, context: DoctorContext<'_>) -> Option<Finding> {
    if !stops.in_jit {
        return None;
    }
    let runtime = context.process(stops.pid).runtime?;
    let switch = context.usable_switches(stops.pid, runtime).find(|switch| switch.keeps_frame_pointers)?;
    if context.given_switch(stops.pid, runtime).is_some() {
        return None;
    }
    let cause = format!("stacks of {PROCESS} end early in {}, where there are no frame pointers", stops.describe());
    let remedy = format!("turn on {}, which also makes {}'s code keep frame pointers", switch.name(), runtime.name);
    // 1.0: these stacks are useless, so each sample counts in full.
    Some(stops.finding(FindingKind::FramePointers, 1.0, cause, remedy, context).with_change(Some(Change::Program)))
}

/// Finds out where call chains of a JVM break off because it was started without the option for frame pointers. `None`
/// if the process isn't a JVM or received the option, or if at least half of the chains end outside JIT code: then the
/// option was probably set in a way that the recording doesn't show.
fn find_jvm_stops(pid: Pid, context: DoctorContext<'_>) -> Option<Stops> {
    // In the table of runtimes, only JVMs have an option for frame pointers.
    context.runtimes_of(pid).find(|runtime| runtime.frame_pointers.is_some())?;
    let runtime = context.process(pid).runtime?;
    let flag = runtime.frame_pointers?;
    let stops = Stops::find(context, |process| &process.broken, |other| other == pid)?;
    (stops.in_jit && !context.has_received(pid, runtime, flag)).then_some(stops)
}
