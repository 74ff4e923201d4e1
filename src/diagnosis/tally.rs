//! Measure while the samples are gone through once.

use super::causes::{Cause, Status};
use super::doubtful;
use super::places::{Owner, PlaceFacts, Runs};
use crate::model::{Nanos, Pid};
use crate::pipeline::recording::Examined;
use crate::pipeline::recording::StackEnd;
use crate::resolve::dso::DsoId;
use crate::runtimes::{RUNTIMES, Runtime};
use std::collections::{BTreeMap, BTreeSet};

/// The share that something affects.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spoilt {
    /// Frames without a name.
    pub(super) frames: u64,
    /// Samples that have one.
    pub(super) samples: u64,
    /// Samples whose innermost frame is one.
    pub(super) leaves: u64,
    /// The parts of the samples that are such frames, added up.
    parts: f64,
}

/// Measure of one process.
#[derive(Debug, Default)]
pub(super) struct ProcessTally {
    /// Its samples.
    pub(super) samples: u64,
    /// Frames in memory for JIT code that have a name, and that have none.
    pub(super) named: u64,
    pub(super) unnamed: u64,
    /// What each runtime interpreted, by its number in the table.
    pub(super) interpreted: BTreeMap<usize, Interpreted>,
    /// The files that it ran.
    pub(super) files: BTreeSet<DsoId>,
    /// The runtimes that functions of its program show, by their numbers in the table.
    pub(super) shown: BTreeSet<usize>,
    /// Frames without a name in memory for JIT code that called an interpreter, by the number of its runtime: the
    /// trampolines of that.
    pub(super) trampolines: BTreeMap<usize, u64>,
    /// Samples with a frame without a name in memory for JIT code.
    pub(super) with_unnamed: u64,
    /// The last sample's time.
    pub(super) last: Nanos,
    /// Stacks that break off, by what their outermost known frame is in.
    pub(super) broken: BTreeMap<Owner, u64>,
    /// Copied stacks that cannot be unwound to their end, likewise.
    pub(super) not_unwound: BTreeMap<Owner, u64>,
    /// When frames without a name in memory for JIT code were sampled.
    pub(super) unnamed_at: Vec<Nanos>,
}

/// Samples with frames of an interpreter.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Interpreted {
    pub(super) all: Spoilt,
    /// Those whose innermost function of the program is one that is interpreted.
    pub(super) innermost: u64,
}

/// All that is counted.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) samples: u64,
    pub(super) frames: u64,
    pub(super) named: u64,
    pub(super) causes: BTreeMap<Cause, Spoilt>,
    pub(super) processes: BTreeMap<Pid, ProcessTally>,
    /// Frames that each source of JIT code names, and samples that have one.
    pub(super) covered: Vec<(u64, u64)>,
    /// Frames that each log names and that may be of other code.
    pub(super) doubtful: Vec<u64>,
    /// Stacks that have as many frames as the kernel may record, and how many those are.
    pub(super) cut: (u64, u16),
    pub(super) copies_ended: u64,
    pub(super) too_deep: u64,
}

impl Spoilt {
    /// Adds one sample of `whole` frames, this many of which are meant.
    fn add(&mut self, frames: u64, whole: u64, leaf: bool) {
        self.frames += frames;
        self.samples += 1;
        self.leaves += u64::from(leaf);
        self.parts += frames as f64 / whole.max(1) as f64;
    }

    /// Takes over another one's.
    pub(super) fn merge(&mut self, other: Self) {
        self.frames += other.frames;
        self.samples += other.samples;
        self.leaves += other.leaves;
        self.parts += other.parts;
    }

    /// So much of all samples, in percent: what is innermost is what a profile is read for.
    pub(super) fn percent(&self, samples: u64) -> f64 {
        percent(self.parts.max(self.leaves as f64), samples)
    }
}

/// A part of the samples, in percent.
pub(super) fn percent(part: f64, samples: u64) -> f64 {
    if samples == 0 { 0.0 } else { 100.0 * part / samples as f64 }
}

/// True if a thread may begin in a frame for all that is known: it has no name.
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
    /// True if it is long because the kernel followed frame pointers through something else than a stack: where code
    /// uses the register for other things, they lead round in a circle, or from one object to the next.
    fn goes_astray(&self) -> bool {
        /// The number of outermost frames that are looked at: circles are shorter.
        const END: usize = 16;
        // Nothing was mapped there that could run: it is no return address, and what is outside of it no caller.
        self.frames.iter().rev().take(END).any(|frame| frame.owner == Owner::Nowhere)
    }
}

impl Tally {
    pub(super) fn new(examined: &Examined<'_>, facts: &[PlaceFacts]) -> Self {
        let samples = examined.samples;
        let covered = vec![(0, 0); examined.accounts().len()];
        let mut tally = Self { covered, doubtful: doubtful::frames(examined), ..Self::default() };
        let mut frames = Vec::new();
        for row in &samples.rows {
            let pid = samples.tracks.items()[row.track as usize].pid.unwrap_or_default();
            frames.clear();
            let places = samples.chains.up(row.chain).map(|place| facts[place.0 as usize]);
            frames.extend(places.filter(|facts| facts.status != Status::Truncated));
            let time = row.time.filter(|time| time.is_valid());
            tally.add(&TalliedStack { pid, time, end: row.end, frames: &frames });
        }
        tally
    }

    fn add(&mut self, stack: &TalliedStack<'_>) {
        self.samples += 1;
        self.frames += stack.frames.len() as u64;
        self.names(stack);
        self.covered(stack);
        self.end(stack);
        let process = self.processes.entry(stack.pid).or_default();
        process.samples += 1;
        process.last = process.last.max(stack.time.unwrap_or_default());
        let mut interpreted = BTreeMap::<usize, u64>::new();
        for frame in stack.frames {
            if let Runs::Interpreter(runtime) = frame.runs {
                *interpreted.entry(runtime).or_default() += 1;
            }
            if let Owner::File(dso) = frame.owner {
                process.files.insert(dso);
            }
            process.shown.extend(frame.shows);
        }
        let innermost = stack.frames.iter().map(|frame| frame.runs).find(|runs| *runs != Runs::Other);
        for (runtime, frames) in interpreted {
            let sum = process.interpreted.entry(runtime).or_default();
            sum.all.add(frames, stack.frames.len() as u64, false);
            sum.innermost += u64::from(innermost == Some(Runs::Interpreter(runtime)));
        }
        for pair in stack.frames.windows(2) {
            if let (Runs::Interpreter(runtime), Status::Unnamed(Cause::Memory(_))) = (pair[0].runs, pair[1].status) {
                *process.trampolines.entry(runtime).or_default() += 1;
            }
        }
    }

    /// The runtime whose trampolines most frames without a name in memory for JIT code of a process are.
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

    /// Counts what has a name, and why others have none.
    fn names(&mut self, stack: &TalliedStack<'_>) {
        let cause = |frame: &PlaceFacts| match frame.status {
            Status::Unnamed(cause) => Some(cause.of(stack.pid)),
            _ => None,
        };
        let process = self.processes.entry(stack.pid).or_default();
        let whole = stack.frames.len() as u64;
        let causes: BTreeSet<Cause> = stack.frames.iter().filter_map(cause).collect();
        for one in causes {
            let frames = stack.frames.iter().filter(|frame| cause(frame) == Some(one)).count() as u64;
            self.causes.entry(one).or_default().add(frames, whole, stack.frames.first().and_then(cause) == Some(one));
            if matches!(one, Cause::Memory(_)) {
                process.unnamed += frames;
                process.with_unnamed += 1;
                process.unnamed_at.extend(stack.time);
            }
        }
        let jit = |frame: &&PlaceFacts| frame.status == Status::Named { jit: true };
        process.named += stack.frames.iter().filter(jit).count() as u64;
        self.named += stack.frames.iter().filter(|frame| matches!(frame.status, Status::Named { .. })).count() as u64;
    }

    /// Counts what each source names.
    fn covered(&mut self, stack: &TalliedStack<'_>) {
        let mut seen = BTreeSet::new();
        for frame in stack.frames {
            let Owner::Code(origin) = frame.owner else { continue };
            let Some((frames, samples)) = self.covered.get_mut(origin.0 as usize) else { continue };
            *frames += 1;
            *samples += u64::from(seen.insert(origin));
        }
    }

    /// Counts how the stack ends.
    fn end(&mut self, stack: &TalliedStack<'_>) {
        let process = self.processes.entry(stack.pid).or_default();
        let outermost = stack.frames.iter().rev().find(|frame| frame.owner != Owner::Nowhere);
        let known = outermost.map(|frame| frame.owner);
        match stack.end {
            StackEnd::Whole => {}
            StackEnd::Limit(_) if stack.frames.last().is_some_and(|frame| frame.begins_thread) => {}
            StackEnd::Limit(limit) if !stack.goes_astray() => self.cut = (self.cut.0 + 1, self.cut.1.max(limit)),
            StackEnd::CopyEnd => self.copies_ended += 1,
            StackEnd::TooDeep => self.too_deep += 1,
            StackEnd::NoWayOn => {
                *process.not_unwound.entry(known.unwrap_or(Owner::Nowhere)).or_default() += 1;
            }
            // A single frame is not broken off where no call chain was requested.
            StackEnd::Recorded | StackEnd::Limit(_) => {
                let may_begin = stack.end == StackEnd::Recorded && outermost.is_some_and(may_begin);
                let begins = stack.frames.iter().any(|frame| frame.begins_thread) || may_begin;
                if let Some(owner) = known.filter(|owner| !begins && *owner != Owner::Kernel) {
                    *process.broken.entry(owner).or_default() += 1;
                }
            }
        }
    }
}
