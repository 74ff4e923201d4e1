//! Counts everything that the rules of `doctor` need, in one pass over the samples.

use super::causes::{Cause, Status};
use super::doubtful;
use super::places::{FunctionRole, Owner, PlaceFacts};
use crate::model::{Nanos, Pid};
use crate::pipeline::recording::{Examined, StackEnd, goes_astray};
use crate::runtimes::{RUNTIMES, Runtime};
use crate::symbolize::dso::DsoId;
use std::collections::{BTreeMap, BTreeSet};

/// Counts of the frames and samples that one problem affects.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AffectedCounts {
    /// The number of affected frames.
    pub(super) frames: u64,
    /// The number of samples with at least one affected frame.
    pub(super) samples: u64,
    /// The number of samples whose innermost frame is an affected one.
    pub(super) leaves: u64,
    /// For each sample, the affected part of its frames (0 to 1), summed over all samples.
    parts: f64,
}

/// The counts for one process.
#[derive(Debug, Default)]
pub(super) struct ProcessTally {
    /// The number of the process's samples.
    pub(super) samples: u64,
    /// The number of JIT frames with a name.
    pub(super) named: u64,
    /// The number of JIT frames without a name: those in executable memory that no file backs.
    pub(super) unnamed: u64,
    /// Counts of samples with frames of an interpreter, by the index of its runtime in [`RUNTIMES`].
    pub(super) interpreted: BTreeMap<usize, Interpreted>,
    /// The files whose code the process ran.
    pub(super) files: BTreeSet<DsoId>,
    /// The runtimes of which the process ran native functions, recognized by the functions' names. They are indexes in
    /// [`RUNTIMES`].
    pub(super) runtimes_by_name: BTreeSet<usize>,
    /// The number of unnamed JIT frames that directly called the interpreter function of a runtime: these are
    /// trampolines of that runtime. The key is the runtime's index in [`RUNTIMES`].
    pub(super) trampolines: BTreeMap<usize, u64>,
    /// The number of samples with at least one unnamed JIT frame.
    pub(super) with_unnamed: u64,
    /// The time of the process's last sample.
    pub(super) last: Nanos,
    /// The number of call chains that end before the start of their thread, by the owner of the code in which they end.
    pub(super) broken: BTreeMap<Owner, u64>,
    /// The number of copied stacks that could not be unwound to the end, by the owner of the code in which unwinding
    /// stopped.
    pub(super) not_unwound: BTreeMap<Owner, u64>,
    /// The times of the samples with unnamed JIT frames.
    pub(super) unnamed_at: Vec<Nanos>,
}

/// Counts of samples in which an interpreter was running.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Interpreted {
    /// The counts of the interpreter's frames, and of the samples that contain at least one.
    pub(super) all: AffectedCounts,
    /// The number of samples whose innermost function of the profiled program was being interpreted, not compiled.
    pub(super) innermost: u64,
}

/// How many frames and samples of a recording have a name from one source of JIT code.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SourceCoverage {
    /// The number of frames that the source names.
    pub(super) frames: u64,
    /// The number of samples with at least one such frame.
    pub(super) samples: u64,
}

/// Call chains that have as many frames as the kernel was set to record, so that their outermost frames are missing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CutChains {
    /// The number of such call chains.
    pub(super) count: u64,
    /// The kernel's limit, in frames per call chain. If the limits of events differ, the largest of those that were
    /// reached.
    pub(super) limit: u16,
}

/// The counts of the whole recording.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The number of samples.
    pub(super) samples: u64,
    /// The number of frames in all samples.
    pub(super) frames: u64,
    /// The number of these frames that have a name.
    pub(super) named: u64,
    /// Counts of the frames without a name, by why they have none.
    pub(super) causes: BTreeMap<Cause, AffectedCounts>,
    pub(super) processes: BTreeMap<Pid, ProcessTally>,
    /// For each source of JIT code, how much of the recording it names. The order is that of [`Examined::accounts`].
    pub(super) coverage: Vec<SourceCoverage>,
    /// For each source of JIT code, the number of frames that may have the wrong name (see [`doubtful`]). The order is
    /// that of [`Examined::accounts`].
    pub(super) doubtful: Vec<u64>,
    pub(super) cut_chains: CutChains,
    /// The number of stacks that are larger than the copy that perf made of them.
    pub(super) copies_ended: u64,
    /// The number of copied stacks with more frames than jitgraft unwinds.
    pub(super) too_deep: u64,
}

impl AffectedCounts {
    /// Counts one sample, of whose `all` frames `affected` are affected (at least one). `is_leaf_affected` is true if
    /// the innermost frame is one of them.
    fn add(&mut self, affected: u64, all: u64, is_leaf_affected: bool) {
        self.frames += affected;
        self.samples += 1;
        self.leaves += u64::from(is_leaf_affected);
        self.parts += affected as f64 / all.max(1) as f64;
    }

    /// Adds the counts of another problem. A sample that has both problems is then counted twice.
    pub(super) fn merge(&mut self, other: Self) {
        self.frames += other.frames;
        self.samples += other.samples;
        self.leaves += other.leaves;
        self.parts += other.parts;
    }

    /// The affected percentage of a recording with `samples` samples. Each sample counts by its share of affected
    /// frames. But if the number of samples whose innermost frame is affected is larger than that sum, it is taken
    /// instead, because profiles are mostly read for innermost frames.
    pub(super) fn percent(&self, samples: u64) -> f64 {
        percent(self.parts.max(self.leaves as f64), samples)
    }
}

/// `part` as a percentage of `whole`; 0 if `whole` is 0.
pub(super) fn percent(part: f64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part / whole as f64 }
}

/// True if the frame is a caller without a name, which might be the function in which its thread began: only a name
/// would tell.
fn may_begin_thread(frame: &PlaceFacts) -> bool {
    frame.is_return && matches!((frame.owner, frame.status), (Owner::File(_) | Owner::Memory, Status::Unnamed(_)))
}

/// One sample's stack, innermost frame first.
struct TalliedStack<'a> {
    pid: Pid,
    time: Option<Nanos>,
    end: StackEnd,
    frames: &'a [PlaceFacts],
}

impl TalliedStack<'_> {
    /// True if the outer frames of the stack are garbage, because something else than a frame pointer was followed
    /// ([`goes_astray`]).
    fn goes_astray(&self) -> bool {
        goes_astray(self.frames.iter().rev().map(|frame| frame.owner == Owner::Nowhere))
    }
}

impl Tally {
    /// Counts all samples of a recording. `facts` has the facts about each location, indexed by its ID.
    pub(super) fn new(examined: &Examined<'_>, facts: &[PlaceFacts]) -> Self {
        let samples = examined.samples;
        let coverage = vec![SourceCoverage::default(); examined.accounts().len()];
        let mut tally = Self { coverage, doubtful: doubtful::count_frames(examined), ..Self::default() };
        let mut frames = Vec::new();
        for row in &samples.rows {
            // Samples without a process are counted for process 0.
            let pid = samples.tracks.items()[row.track as usize].pid.unwrap_or_default();
            frames.clear();
            // The facts about the sample's frames, innermost first.
            let frame_facts = samples.chains.places_up(row.chain).map(|place| facts[place.0 as usize]);
            // The mark for a truncated stack isn't a frame. `row.end` says why the stack ends.
            frames.extend(frame_facts.filter(|facts| facts.status != Status::Truncated));
            let time = row.time.filter(|time| time.is_valid());
            tally.add(&TalliedStack { pid, time, end: row.end, frames: &frames });
        }
        tally
    }

    /// Counts the stack of one sample.
    fn add(&mut self, stack: &TalliedStack<'_>) {
        self.samples += 1;
        self.frames += stack.frames.len() as u64;
        self.count_names(stack);
        self.count_coverage(stack);
        self.count_end(stack);
        let process = self.processes.entry(stack.pid).or_default();
        process.samples += 1;
        // Samples without a time don't change the time of the last sample.
        process.last = process.last.max(stack.time.unwrap_or_default());
        for frame in stack.frames {
            if let Owner::File(dso) = frame.owner {
                process.files.insert(dso);
            }
            process.runtimes_by_name.extend(frame.runtime_by_name);
        }
        process.count_interpreters(stack.frames);
    }

    /// The runtime that owns the unnamed JIT code of a process, if more than half of the unnamed frames are trampolines
    /// of this runtime: small pieces of JIT code that call its interpreter. `None` if that is so for none of
    /// `runtimes`.
    pub(super) fn owner_of_unnamed(
        &self,
        pid: Pid,
        mut runtimes: impl Iterator<Item = &'static Runtime>,
    ) -> Option<&'static Runtime> {
        let process = self.processes.get(&pid)?;
        let (number, frames) = process.trampolines.iter().max_by_key(|(_, frames)| **frames)?;
        // Trampolines are counted for the first runtime in the table that has this interpreter. The process may run
        // another one that shares it.
        let interpreter = RUNTIMES.get(*number)?;
        if frames.saturating_mul(2) <= process.unnamed {
            return None;
        }
        runtimes.find(|runtime| runtime.shares_interpreter(interpreter))
    }

    /// Counts the frames of a stack that have a name. Frames without a name are counted by the cause for which they
    /// lack it. Each cause also counts the samples in whose stack it occurs.
    fn count_names(&mut self, stack: &TalliedStack<'_>) {
        let process = self.processes.entry(stack.pid).or_default();
        let mut frames_by_cause = BTreeMap::<Cause, u64>::new();
        let mut leaf_cause = None;
        for (depth, frame) in stack.frames.iter().enumerate() {
            match frame.status {
                Status::Named { jit } => {
                    self.named += 1;
                    process.named += u64::from(jit);
                }
                Status::Unnamed(cause) => {
                    let cause = cause.with_process(stack.pid);
                    *frames_by_cause.entry(cause).or_default() += 1;
                    if depth == 0 {
                        leaf_cause = Some(cause);
                    }
                }
                Status::Truncated => {}
            }
        }
        for (cause, frames) in frames_by_cause {
            // Problems of innermost frames count more (`AffectedCounts::percent`).
            let is_leaf = leaf_cause == Some(cause);
            self.causes.entry(cause).or_default().add(frames, stack.frames.len() as u64, is_leaf);
            if matches!(cause, Cause::Memory(_)) {
                process.unnamed += frames;
                process.with_unnamed += 1;
                process.unnamed_at.extend(stack.time);
            }
        }
    }

    /// Counts the frames that get their name from each source of JIT code, and the samples with such frames.
    fn count_coverage(&mut self, stack: &TalliedStack<'_>) {
        let mut sources_in_stack = BTreeSet::new();
        for frame in stack.frames {
            let Owner::Code(origin) = frame.owner else { continue };
            let Some(coverage) = self.coverage.get_mut(origin.0 as usize) else { continue };
            coverage.frames += 1;
            if sources_in_stack.insert(origin) {
                coverage.samples += 1;
            }
        }
    }

    /// If the stack is incomplete, adds it to the count of stacks that end for the same reason. For some reasons, there
    /// is a count for each owner of the code in which the stacks end.
    fn count_end(&mut self, stack: &TalliedStack<'_>) {
        let process = self.processes.entry(stack.pid).or_default();
        // Outer frames at addresses where nothing is mapped aren't real, so the stack ends before them.
        let outermost = stack.frames.iter().rev().find(|frame| frame.owner != Owner::Nowhere);
        let owner = outermost.map_or(Owner::Nowhere, |frame| frame.owner);
        match stack.end {
            StackEnd::Whole => {}
            // The stack is complete: it just happens to have as many frames as the kernel was set to record.
            StackEnd::Limit(_) if stack.frames.last().is_some_and(|frame| frame.begins_thread) => {}
            // A chain whose outermost frames are garbage reached the limit only because of them. It is counted as
            // broken below.
            StackEnd::Limit(limit) if !stack.goes_astray() => {
                self.cut_chains.count += 1;
                self.cut_chains.limit = self.cut_chains.limit.max(limit);
            }
            StackEnd::CopyEnd => self.copies_ended += 1,
            StackEnd::TooDeep => self.too_deep += 1,
            StackEnd::NoWayOn => {
                *process.not_unwound.entry(owner).or_default() += 1;
            }
            // A call chain is broken if it ends neither in a function in which threads begin nor in the kernel. If perf
            // recorded no call chains, every stack seems broken here, but then no rule looks at this count.
            StackEnd::Recorded | StackEnd::Limit(_) => {
                // If the outermost frame has no name, threads may begin in its function: only the name would tell.
                let may_be_whole = stack.end == StackEnd::Recorded && outermost.is_some_and(may_begin_thread);
                let is_whole = may_be_whole || stack.frames.iter().any(|frame| frame.begins_thread);
                if !is_whole && !matches!(owner, Owner::Kernel | Owner::Nowhere) {
                    *process.broken.entry(owner).or_default() += 1;
                }
            }
        }
    }
}

impl ProcessTally {
    /// Counts the frames of interpreters in a stack, and the trampolines that called them. A trampoline is a small
    /// piece of unnamed JIT code that calls the interpreter, as CPython's perf support makes one per function. `frames`
    /// starts with the innermost frame.
    fn count_interpreters(&mut self, frames: &[PlaceFacts]) {
        let mut frames_by_runtime = BTreeMap::<usize, u64>::new();
        for frame in frames {
            if let FunctionRole::Interpreter(runtime) = frame.role {
                *frames_by_runtime.entry(runtime).or_default() += 1;
            }
        }
        let innermost_role = frames.iter().map(|frame| frame.role).find(|role| *role != FunctionRole::Other);
        for (runtime, count) in frames_by_runtime {
            let interpreted = self.interpreted.entry(runtime).or_default();
            // `false` keeps the sample out of `all.leaves`, which counts samples whose innermost frame is the
            // interpreter itself. Rules use `innermost` instead (see below): it also counts samples in native functions
            // that the interpreter called.
            interpreted.all.add(count, frames.len() as u64, false);
            if innermost_role == Some(FunctionRole::Interpreter(runtime)) {
                interpreted.innermost += 1;
            }
        }
        for pair in frames.windows(2) {
            let (callee, caller) = (&pair[0], &pair[1]);
            if let FunctionRole::Interpreter(runtime) = callee.role
                && matches!(caller.status, Status::Unnamed(Cause::Memory(_)))
            {
                *self.trampolines.entry(runtime).or_default() += 1;
            }
        }
    }
}
