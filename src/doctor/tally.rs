//! Counts everything that the rules of `doctor` need, in one pass over the samples.

use super::causes::{Cause, Status};
use super::doubtful;
use super::places::{FunctionRole, Owner, PlaceFacts};
use crate::model::{Nanos, Pid};
use crate::pipeline::recording::Examined;
use crate::pipeline::recording::StackEnd;
use crate::runtimes::{RUNTIMES, Runtime};
use crate::symbolize::dso::DsoId;
use std::collections::{BTreeMap, BTreeSet};

/// Counts of the frames and samples that one cause affects.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AffectedCounts {
    /// The number of affected frames.
    pub(super) frames: u64,
    /// The number of samples with at least one affected frame.
    pub(super) samples: u64,
    /// The number of samples whose innermost frame is affected.
    pub(super) leaves: u64,
    /// For each sample, the share of its frames that are affected (0 to 1), summed over all samples.
    parts: f64,
}

/// The counts for one process.
#[derive(Debug, Default)]
pub(super) struct ProcessTally {
    /// The number of the process's samples.
    pub(super) samples: u64,
    /// Frames in JIT code with a name.
    pub(super) named: u64,
    /// Frames without a name in memory for JIT code.
    pub(super) unnamed: u64,
    /// Samples in which a runtime interpreted code, by the runtime's index in [`RUNTIMES`].
    pub(super) interpreted: BTreeMap<usize, Interpreted>,
    /// The files whose code the process ran.
    pub(super) files: BTreeSet<DsoId>,
    /// Runtimes that were recognized by the names of their own functions, by index in [`RUNTIMES`].
    pub(super) shown: BTreeSet<usize>,
    /// Unnamed JIT frames that directly called a runtime's interpreter function, by the runtime's index in
    /// [`RUNTIMES`]. These frames are trampolines of the runtime.
    pub(super) trampolines: BTreeMap<usize, u64>,
    /// The number of samples with at least one unnamed frame in memory for JIT code.
    pub(super) with_unnamed: u64,
    /// The time of the process's last sample.
    pub(super) last: Nanos,
    /// Incomplete call chains, by the owner of the outermost known frame.
    pub(super) broken: BTreeMap<Owner, u64>,
    /// Copied stacks that could not be unwound to the end, by the owner of the outermost known frame.
    pub(super) not_unwound: BTreeMap<Owner, u64>,
    /// The times of samples with unnamed frames in memory for JIT code.
    pub(super) unnamed_at: Vec<Nanos>,
}

/// Counts of samples in which an interpreter was running.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Interpreted {
    pub(super) all: AffectedCounts,
    /// The number of samples in which the innermost function of the profiled program is interpreted, not compiled.
    pub(super) innermost: u64,
}

/// The counts of the whole recording.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) samples: u64,
    pub(super) frames: u64,
    pub(super) named: u64,
    pub(super) causes: BTreeMap<Cause, AffectedCounts>,
    pub(super) processes: BTreeMap<Pid, ProcessTally>,
    /// For each source of JIT code: the number of frames that it names, and the number of samples with at least one
    /// such frame.
    pub(super) covered: Vec<(u64, u64)>,
    /// For each source of JIT code: the number of frames that may have the wrong name (see [`doubtful`]).
    pub(super) doubtful: Vec<u64>,
    /// The number of call chains that were cut at the kernel's limit, and the limit in frames per stack.
    pub(super) cut: (u64, u16),
    pub(super) copies_ended: u64,
    pub(super) too_deep: u64,
}

impl AffectedCounts {
    /// Adds one sample. It has `whole` frames, of which `frames` are affected. `leaf` says whether the innermost frame
    /// is affected.
    fn add(&mut self, frames: u64, whole: u64, leaf: bool) {
        self.frames += frames;
        self.samples += 1;
        self.leaves += u64::from(leaf);
        self.parts += frames as f64 / whole.max(1) as f64;
    }

    /// Adds the counts of another cause.
    pub(super) fn merge(&mut self, other: Self) {
        self.frames += other.frames;
        self.samples += other.samples;
        self.leaves += other.leaves;
        self.parts += other.parts;
    }

    /// The affected part of `samples` samples, in percent. The larger of two measures counts: the sum of each sample's
    /// share of affected frames, or the number of samples whose innermost frame is affected. The second one matters
    /// because profiles are mostly read for innermost frames.
    pub(super) fn percent(&self, samples: u64) -> f64 {
        percent(self.parts.max(self.leaves as f64), samples)
    }
}

/// `part` as a percentage of `samples`; 0 if `samples` is 0.
pub(super) fn percent(part: f64, samples: u64) -> f64 {
    if samples == 0 { 0.0 } else { 100.0 * part / samples as f64 }
}

/// True if the frame might be the function in which its thread began. It is a caller without a name, so we can't tell.
fn may_begin(frame: &PlaceFacts) -> bool {
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
    /// True if the stack is only long because the kernel followed a register that is not a frame pointer. In code that
    /// uses this register for other things, the chain runs in a circle or from one object to the next.
    fn goes_astray(&self) -> bool {
        /// The number of outermost frames to check. The circles are shorter than this.
        const END: usize = 16;
        // No code was mapped at the frame's address, so it can't be a return address, and its callers are not real
        // either.
        self.frames.iter().rev().take(END).any(|frame| frame.owner == Owner::Nowhere)
    }
}

impl Tally {
    pub(super) fn new(examined: &Examined<'_>, facts: &[PlaceFacts]) -> Self {
        let samples = examined.samples;
        let covered = vec![(0, 0); examined.accounts().len()];
        let mut tally = Self { covered, doubtful: doubtful::count_frames(examined), ..Self::default() };
        let mut frames = Vec::new();
        for row in &samples.rows {
            let pid = samples.tracks.items()[row.track as usize].pid.unwrap_or_default();
            frames.clear();
            let places = samples.chains.places_up(row.chain).map(|place| facts[place.0 as usize]);
            frames.extend(places.filter(|facts| facts.status != Status::Truncated));
            let time = row.time.filter(|time| time.is_valid());
            tally.add(&TalliedStack { pid, time, end: row.end, frames: &frames });
        }
        tally
    }

    fn add(&mut self, stack: &TalliedStack<'_>) {
        self.samples += 1;
        self.frames += stack.frames.len() as u64;
        self.count_names(stack);
        self.count_covered(stack);
        self.count_end(stack);
        let process = self.processes.entry(stack.pid).or_default();
        process.samples += 1;
        process.last = process.last.max(stack.time.unwrap_or_default());
        let mut interpreted = BTreeMap::<usize, u64>::new();
        for frame in stack.frames {
            if let FunctionRole::Interpreter(runtime) = frame.role {
                *interpreted.entry(runtime).or_default() += 1;
            }
            if let Owner::File(dso) = frame.owner {
                process.files.insert(dso);
            }
            process.shown.extend(frame.shows);
        }
        let innermost = stack.frames.iter().map(|frame| frame.role).find(|role| *role != FunctionRole::Other);
        for (runtime, frames) in interpreted {
            let sum = process.interpreted.entry(runtime).or_default();
            sum.all.add(frames, stack.frames.len() as u64, false);
            sum.innermost += u64::from(innermost == Some(FunctionRole::Interpreter(runtime)));
        }
        for pair in stack.frames.windows(2) {
            if let (FunctionRole::Interpreter(runtime), Status::Unnamed(Cause::Memory(_))) =
                (pair[0].role, pair[1].status)
            {
                *process.trampolines.entry(runtime).or_default() += 1;
            }
        }
    }

    /// The runtime that owns the unnamed JIT code of a process: more than half of this code are trampolines of the
    /// runtime. `None` if no runtime fits.
    pub(super) fn owner_of_unnamed(
        &self,
        pid: Pid,
        mut runtimes: impl Iterator<Item = &'static Runtime>,
    ) -> Option<&'static Runtime> {
        let process = self.processes.get(&pid)?;
        let (number, frames) = process.trampolines.iter().max_by_key(|(_, frames)| **frames)?;
        let interpreter = RUNTIMES.get(*number)?;
        runtimes.find(|runtime| runtime.shares_interpreter(interpreter) && frames.saturating_mul(2) > process.unnamed)
    }

    /// Counts named frames, and the causes of unnamed ones.
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
            let is_leaf = leaf_cause == Some(cause);
            self.causes.entry(cause).or_default().add(frames, stack.frames.len() as u64, is_leaf);
            if matches!(cause, Cause::Memory(_)) {
                process.unnamed += frames;
                process.with_unnamed += 1;
                process.unnamed_at.extend(stack.time);
            }
        }
    }

    /// Counts the frames that each source of JIT code names.
    fn count_covered(&mut self, stack: &TalliedStack<'_>) {
        let mut seen = BTreeSet::new();
        for frame in stack.frames {
            let Owner::Code(origin) = frame.owner else { continue };
            let Some((frames, samples)) = self.covered.get_mut(origin.0 as usize) else { continue };
            *frames += 1;
            *samples += u64::from(seen.insert(origin));
        }
    }

    /// Counts stacks that are not complete, by the code in which they break off.
    fn count_end(&mut self, stack: &TalliedStack<'_>) {
        let process = self.processes.entry(stack.pid).or_default();
        let outermost = stack.frames.iter().rev().find(|frame| frame.owner != Owner::Nowhere);
        let owner = outermost.map_or(Owner::Nowhere, |frame| frame.owner);
        match stack.end {
            StackEnd::Whole => {}
            StackEnd::Limit(_) if stack.frames.last().is_some_and(|frame| frame.begins_thread) => {}
            StackEnd::Limit(limit) if !stack.goes_astray() => self.cut = (self.cut.0 + 1, self.cut.1.max(limit)),
            StackEnd::CopyEnd => self.copies_ended += 1,
            StackEnd::TooDeep => self.too_deep += 1,
            StackEnd::NoWayOn => {
                *process.not_unwound.entry(owner).or_default() += 1;
            }
            // A chain is broken if it ends neither at the start of a thread nor in the kernel. If perf recorded no call
            // chains, all stacks are counted here, but the rules then ignore this count.
            StackEnd::Recorded | StackEnd::Limit(_) => {
                let may_begin = stack.end == StackEnd::Recorded && outermost.is_some_and(may_begin);
                let begins = stack.frames.iter().any(|frame| frame.begins_thread) || may_begin;
                if !begins && !matches!(owner, Owner::Kernel | Owner::Nowhere) {
                    *process.broken.entry(owner).or_default() += 1;
                }
            }
        }
    }
}
