//! Reads samples, in parallel over chunks of the recording.
//!
//! Each thread numbers the places, chains and threads that it meets, and keeps these numbers from chunk to chunk: a
//! chunk carries only what is new in it. Frames that a sample shares with the sample before are not looked up again.

use super::branches::{lbr_chain, put_history};
use super::chain_memo::{ChainKey, ChainMemo};
use super::chain_words::ChainWords;
use super::counted::{Counted, Member, own};
use super::locator::{LIMIT_FRAME, LocatedFrame, Locator, TRUNCATED_FRAME};
use super::merging::SampleChunk;
use super::samples::{Beside, KeptRegisters, SampleRow, Samples, StackEnd, Taken};
use crate::analysis::filter::PlacedFilter;
use crate::model::about::{self, TimeExtent};
use crate::model::chains::{ChainId, PlaceId};
use crate::model::interner::InternedNumbers;
use crate::model::near_map::near_hash;
use crate::model::process::CpuMode;
use crate::model::recorded::Labels;
use crate::model::stacks::{Keep, Track};
use crate::model::threads::Threads;
use crate::model::{Addr, FrameAddr, Nanos, Pid, Tid};
use crate::records::perf_data::{Branch, Branches, EventAttr, RawRecord, Recording, Sample, kind};
use crate::resolve::unwind::registers::{Machine, Registers};
use crate::resolve::unwind::{Cache, MAX_DEPTH, Moment, Unwinder, UnwoundChain, UserStack};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The number of frames that the kernel gives at most unless it is requested another number (`PERF_MAX_STACK_DEPTH`).
const KERNEL_LIMIT: u16 = 127;

/// A thread that has this many chains begins anew: its cache must not be as much as the whole.
const MOST_CHAINS: usize = 1 << 19;

/// The context for reading a sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) recording: &'a Recording,
    pub(super) threads: &'a Threads,
    pub(super) filter: &'a PlacedFilter<'a>,
    pub(super) spots: &'a Locator<'a>,
    /// Unwinds copies of user stacks; with the recording's `e_machine`.
    pub(super) unwinder: Option<(&'a Unwinder<'a>, u16)>,
    /// Events whose samples count, by index.
    pub(super) events: &'a [bool],
    /// True if each sample keeps a row of its own.
    pub(super) keep: Keep,
    /// True if samples of different processors are kept apart.
    pub(super) by_cpu: bool,
    /// The control groups, where samples of different ones are kept apart.
    pub(super) cgroups: Option<&'a FxHashMap<u64, Labels>>,
    /// True if branches are reported above the callers.
    pub(super) branch_stack: bool,
    /// The largest number of frames in a stack: stack of the kernel's call chain, and of unwound stacks.
    pub(super) max_stack: usize,
    /// True if branches are kept beside the stacks.
    pub(super) keep_branches: bool,
    /// True if what else a sample has is kept.
    pub(super) keep_beside: bool,
}

/// Process, thread, and processor and control group where they are kept apart.
type TrackKey = (Option<Pid>, Option<Tid>, Option<u32>, Option<u64>);

/// Of samples without a time: after everything that has one.
const UNTIMED: Nanos = Nanos(u64::MAX - 1);

/// Reads samples on one thread.
#[derive(Debug)]
pub(super) struct Reading<'a, 'data> {
    context: Context<'a>,
    /// The thread.
    reader: usize,
    samples: Samples,
    /// Chains that were read before.
    memo: ChainMemo<'data, ReadChain>,
    /// The number of places, chains and threads the chunks before have reported of.
    told: (usize, usize, usize),
    /// The frames of the sample available, innermost first.
    frames: Vec<(CpuMode, FrameAddr)>,
    unwound: UnwoundChain,
    cache: Cache,
    /// The stack of the sample before, outermost first.
    before: Vec<KeptFrame>,
    before_of: Option<(Pid, Nanos)>,
    /// The words of its frames, if they are nothing else.
    before_words: Option<ChainWords<'data>>,
    /// The results for addresses, each at its last time.
    found: Vec<SeenAddress>,
    /// The index of an address among them.
    seen: InternedNumbers,
    /// The one by which each chain was reached last: those of one stack stand side by side.
    reached: Vec<u32>,
    /// The tracks of threads, each while it had that name last.
    named: Vec<NamedThread>,
    /// The index of a thread among them.
    named_at: InternedNumbers,
}

/// The call chain of a sample.
#[derive(Debug, Clone, Copy)]
struct ReadChain {
    chain: Option<ChainId>,
    end: StackEnd,
    /// The address of the innermost frame.
    ip: Addr,
}

/// A frame of the sample before.
#[derive(Debug, Clone, Copy)]
struct KeptFrame {
    frame: (CpuMode, FrameAddr),
    chain: ChainId,
    /// Until when this and all frames outside of it are what they were.
    until: Nanos,
}

/// The name of a thread, and its period.
#[derive(Debug)]
struct NamedThread {
    key: TrackKey,
    track: u32,
    holds: Range<Nanos>,
}

/// The result for an address, and its time.
#[derive(Debug, Clone, Copy)]
struct SeenAddress {
    pid: Pid,
    frame: (CpuMode, FrameAddr),
    place: PlaceId,
    from: Nanos,
    until: Nanos,
}

impl SeenAddress {
    fn holds(&self, time: Nanos) -> bool {
        self.from <= time && time < self.until
    }
}

impl<'a, 'data> Reading<'a, 'data> {
    pub(super) fn new(context: Context<'a>, reader: usize) -> Self {
        Self {
            context,
            reader,
            samples: Samples::keeping(context.keep),
            memo: ChainMemo::default(),
            told: (0, 0, 0),
            frames: Vec::new(),
            unwound: UnwoundChain::default(),
            cache: Cache::default(),
            before: Vec::new(),
            before_of: None,
            before_words: None,
            found: Vec::new(),
            seen: InternedNumbers::default(),
            reached: Vec::new(),
            named: Vec::new(),
            named_at: InternedNumbers::default(),
        }
    }

    /// The samples of a chunk.
    pub(super) fn chunk(&mut self, records: impl Iterator<Item = RawRecord<'data>>, counted: &Counted) -> SampleChunk {
        if self.samples.chains.len() > MOST_CHAINS {
            *self = Self::new(self.context, self.reader);
        }
        self.read(records, counted);
        let samples = &mut self.samples;
        let (places, chains, tracks) = self.told;
        self.told = (samples.chains.places().len(), samples.chains.len(), samples.tracks.items().len());
        SampleChunk {
            reader: self.reader,
            begins: (places, chains, tracks) == (0, 0, 0),
            checked: samples.check(),
            places: samples.chains.places()[places..].to_vec(),
            chains: samples.chains.nodes_since(chains).collect(),
            tracks: samples.tracks.items()[tracks..].to_vec(),
            taken: samples.take_rows(),
        }
    }

    /// All that was read.
    pub(super) fn into_samples(self) -> Samples {
        self.samples
    }

    /// Reads the samples among these records.
    pub(super) fn read(&mut self, records: impl Iterator<Item = RawRecord<'data>>, counted: &Counted) {
        let mut with_values = 0;
        for record in records.filter(|record| record.kind == kind::SAMPLE) {
            match self.context.recording.sample(&record) {
                Ok(sample) if sample.read.is_some() => {
                    self.sample(&sample, counted.members(with_values));
                    with_values += 1;
                }
                Ok(sample) => self.sample(&sample, &[own(self.context.recording, &sample)]),
                Err(error) => self.samples.skipped.add(error),
            }
        }
    }

    /// Adds a row for each event that the sample stands for.
    fn sample(&mut self, sample: &Sample<'data>, members: &[Member]) {
        let Context { filter, events, by_cpu, .. } = self.context;
        let (pid, tid) = sample.pid_tid.unzip();
        let wanted = |&&(event, _): &&Member| events.get(event as usize).copied().unwrap_or(false);
        let counts = members.iter().any(|member| wanted(&member))
            && filter.pid(pid)
            && filter.tid(tid)
            && filter.cpu(sample.cpu)
            && filter.time(sample.time);
        if !counts {
            return;
        }
        let cgroup = sample.cgroup.filter(|_| self.context.cgroups.is_some());
        let track = self.track((pid, tid, sample.cpu.filter(|_| by_cpu), cgroup), sample.time);
        if !filter.comm(&self.samples.tracks.items()[track as usize].comm) {
            return;
        }
        let pid = pid.unwrap_or(Pid(-1));
        let ReadChain { chain, end, ip } = self.chain(sample, pid);
        let branches = self.branches(sample, pid);
        let row = |&(event, period): &Member| {
            let (time, cpu) = (sample.time, sample.cpu);
            SampleRow { event, track, time, period, count: 1, chain, ip, cpu, branches, end }
        };
        self.samples.sampled = about::joined(self.samples.sampled, sample.time.map(TimeExtent::at));
        let before = self.samples.rows.len();
        members.iter().filter(wanted).for_each(|member| self.samples.push(row(member)));
        if self.context.keep_beside {
            let beside = Beside {
                addr: sample.addr,
                interrupted: sample.intr_regs.map(KeptRegisters::of),
                user: sample.user_regs.map(KeptRegisters::of),
            };
            self.samples.beside.extend(std::iter::repeat_n(beside, self.samples.rows.len() - before));
        }
    }

    fn track(&mut self, key: TrackKey, time: Option<Nanos>) -> u32 {
        let (now, (pid, tid, cpu, cgroup)) = (time.unwrap_or(UNTIMED), key);
        let hash = near_hash(&key);
        let known = self.named_at.find(hash, |number| self.named[number as usize].key == key);
        if let Some(named) = known.map(|at| &self.named[at as usize]).filter(|named| named.holds.contains(&now)) {
            return named.track;
        }
        let threads = self.context.threads;
        let comm = threads.name(pid, tid, time).into_owned();
        let labels = cgroup.and_then(|cgroup| self.context.cgroups?.get(&cgroup)?.clone());
        let track = self.samples.tracks.intern(Track { comm, pid, tid, cpu, labels, recording: None });
        let named = NamedThread { key, track, holds: now..threads.holds_until(pid, tid, now) };
        if let Some(at) = known {
            self.named[at as usize] = named;
        } else {
            self.named_at.insert(hash, self.named.len() as u32);
            self.named.push(named);
        }
        track
    }

    fn chain(&mut self, sample: &Sample<'data>, pid: Pid) -> ReadChain {
        let time = sample.time.unwrap_or(UNTIMED);
        let leaf_caller = self.leaf_caller(sample, pid, time);
        let key = self.is_call_chain(sample).then(|| ChainKey::of(sample, pid, leaf_caller)).flatten();
        if let Some(known) = key.as_ref().and_then(|key| self.memo.get(key, time)) {
            return known;
        }
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        // With a caller put in, the words of the chain are not all of its frames.
        let shared = if leaf_caller.is_none() { self.shared(sample, pid, time, &mut frames) } else { None };
        let (known, end) = match shared {
            Some((words, known)) => {
                self.before_words = Some(words);
                (known, StackEnd::Recorded)
            }
            None => {
                frames.clear();
                let end = self.look(sample, (pid, time), leaf_caller, &mut frames);
                let known = self.known(&frames, pid, time);
                frames.truncate(frames.len() - known);
                let is_plain = leaf_caller.is_none() && self.is_plain(sample);
                self.before_words = is_plain.then(|| ChainWords::of(sample.callchain));
                (known, end)
            }
        };
        let mut last = known.checked_sub(1).map(|last| self.before[last]);
        self.before.truncate(known);
        for &frame in frames.iter().rev() {
            let caller = last.map(|last| last.chain);
            let (chain, until) = match self.again(caller, pid, frame, time) {
                Some(reached) => reached,
                None => self.reach(caller, pid, frame, time),
            };
            let until = last.map_or(until, |last| last.until.min(until));
            let kept = KeptFrame { frame, chain, until };
            self.before.push(kept);
            last = Some(kept);
        }
        self.before_of = Some((pid, time));
        let ip = self.before.last().map_or(Addr(0), |innermost| innermost.frame.1.raw());
        self.frames = frames;
        let read = ReadChain { chain: last.map(|last| last.chain), end, ip };
        if let (Some(key), Some(last)) = (key, last) {
            self.memo.put(key, read, time..last.until);
        }
        read
    }

    /// True if the frames of a sample are those of its call chain and nothing else.
    fn is_call_chain(&self, sample: &Sample<'_>) -> bool {
        sample.branches.is_none() && (self.context.unwinder.is_none() || sample.user_stack.is_none())
    }

    /// True if they are all of its frames, with no mark that there were more.
    fn is_plain(&self, sample: &Sample<'_>) -> bool {
        let Context { recording, max_stack, .. } = self.context;
        let limit = usize::from(frames_limit(&recording.events[sample.event].attr));
        self.is_call_chain(sample) && sample.callchain.len() < limit.min(max_stack)
    }

    /// The number of frames, outermost first, are those of the sample before, if their words alone give; the others go
    /// into `frames`, innermost first.
    fn shared(
        &self,
        sample: &Sample<'data>,
        pid: Pid,
        time: Nanos,
        frames: &mut Vec<(CpuMode, FrameAddr)>,
    ) -> Option<(ChainWords<'data>, usize)> {
        let before = self.before_words.filter(|_| self.is_before(pid, time) && self.is_plain(sample))?;
        let kept = |same: usize| Some(self.before.get(same - 1).filter(|kept| time < kept.until)?.frame);
        before.shared(sample.callchain, sample.context(), kept, frames)
    }

    /// The chain that continues another with a frame, if it was reached so before, and until when it is that one.
    #[inline]
    fn again(
        &self,
        caller: Option<ChainId>,
        pid: Pid,
        frame: (CpuMode, FrameAddr),
        time: Nanos,
    ) -> Option<(ChainId, Nanos)> {
        self.samples.chains.newest(caller).find_map(|(chain, place)| {
            let found = self.found[self.reached[chain.0 as usize] as usize];
            // The current code may be at another place than when the chain was reached.
            let is_it = found.place == place && found.frame == frame && found.pid == pid;
            (is_it && found.holds(time)).then_some((chain, found.until))
        })
    }

    fn reach(
        &mut self,
        caller: Option<ChainId>,
        pid: Pid,
        frame: (CpuMode, FrameAddr),
        time: Nanos,
    ) -> (ChainId, Nanos) {
        let at = self.find(pid, frame, time);
        let SeenAddress { place, until, .. } = self.found[at as usize];
        let chain = self.samples.chains.chain(caller, place);
        // Only the newest chain has no entry yet.
        match self.reached.get_mut(chain.0 as usize) {
            Some(reached) => *reached = at,
            None => self.reached.push(at),
        }
        (chain, until)
    }

    /// Keeps the branches of a sample, if asked for.
    fn branches(&mut self, sample: &Sample<'_>, pid: Pid) -> (u32, u32) {
        let time = sample.time.unwrap_or(UNTIMED);
        let start = self.samples.branches.len() as u32;
        let kept = sample.branches.filter(|_| self.context.keep_branches);
        for Branch { from, to, flags } in kept.into_iter().flat_map(Branches::iter) {
            let [from, to] = [from, to].map(|addr| self.place(pid, (CpuMode::Unknown, FrameAddr::Ip(addr)), time));
            self.samples.branches.push(Taken { from, to, flags });
        }
        (start, self.samples.branches.len() as u32)
    }

    /// The number of frames, outermost first, are those of the sample before.
    fn known(&self, frames: &[(CpuMode, FrameAddr)], pid: Pid, time: Nanos) -> usize {
        if !self.is_before(pid, time) {
            return 0;
        }
        let same = |(kept, frame): &(&KeptFrame, &(CpuMode, FrameAddr))| kept.frame == **frame && time < kept.until;
        self.before.iter().zip(frames.iter().rev()).take_while(same).count()
    }

    /// True if the sample before is of the same process, and not later.
    fn is_before(&self, pid: Pid, time: Nanos) -> bool {
        self.before_of.is_some_and(|(of, from)| of == pid && from <= time)
    }

    fn place(&mut self, pid: Pid, frame: (CpuMode, FrameAddr), time: Nanos) -> PlaceId {
        let at = self.find(pid, frame, time);
        self.found[at as usize].place
    }

    /// Its index among the results.
    fn find(&mut self, pid: Pid, frame: (CpuMode, FrameAddr), time: Nanos) -> u32 {
        let hash = near_hash(&(pid, frame));
        let is_it = |number: u32| {
            let SeenAddress { pid: of, frame: at, .. } = self.found[number as usize];
            (of, at) == (pid, frame)
        };
        let known = self.seen.find(hash, is_it);
        if let Some(at) = known.filter(|at| self.found[*at as usize].holds(time)) {
            return at;
        }
        let LocatedFrame { spot, until } = self.context.spots.find(pid, frame.0, frame.1, time);
        let found = SeenAddress { pid, frame, place: self.samples.chains.place(spot), from: time, until };
        let Some(at) = known else {
            let new = self.found.len() as u32;
            self.found.push(found);
            self.seen.insert(hash, new);
            return new;
        };
        self.found[at as usize] = found;
        at
    }

    /// The frames of a sample, innermost first, and why there are no more.
    fn look(
        &mut self,
        sample: &Sample<'_>,
        (pid, time): (Pid, Nanos),
        leaf_caller: Option<Addr>,
        frames: &mut Vec<(CpuMode, FrameAddr)>,
    ) -> StackEnd {
        let Context { recording, max_stack, branch_stack, .. } = self.context;
        let attr = &recording.events[sample.event].attr;
        let mut end = StackEnd::Recorded;
        if self.unwind(sample, pid, time) {
            end = self.unwound_end(sample);
            let unwound = self.unwound.frames.iter().map(|&frame| (CpuMode::User, frame));
            frames.extend(sample.frames().filter(|(mode, _)| *mode != CpuMode::User).take(max_stack));
            frames.extend(unwound.take(max_stack));
            if self.unwound.truncated && self.unwound.frames.len() < max_stack {
                frames.push(TRUNCATED_FRAME);
            }
        } else if let Some(chain) = lbr_chain(sample, attr) {
            frames.extend(chain.take(max_stack));
        } else {
            frames.extend(sample.frames().take(max_stack));
            if let Some(caller) = leaf_caller
                && let Some(leaf) = frames.iter().position(|(mode, _)| *mode == CpuMode::User)
            {
                frames.insert(leaf + 1, (CpuMode::User, FrameAddr::Return(caller)));
                frames.truncate(max_stack);
            }
            let limit = frames_limit(attr);
            let recorded = sample.chain_len();
            if recorded >= usize::from(limit) {
                end = StackEnd::Limit(limit);
                // Nothing is reported about what the reader wants no more frames of.
                frames.extend((recorded <= max_stack).then_some(LIMIT_FRAME));
            }
        }
        if let (true, Some(branches)) = (branch_stack, sample.branches) {
            put_history(branches, frames);
        }
        end
    }

    fn unwound_end(&self, sample: &Sample<'_>) -> StackEnd {
        // If less was copied than there was room for, the stack has no more.
        let full = sample.user_stack.is_some_and(|stack| stack.bytes.len() as u64 >= stack.room);
        match &self.unwound {
            chain if !chain.truncated => StackEnd::Whole,
            chain if chain.copy_ended && full => StackEnd::CopyEnd,
            chain if chain.frames.len() >= self.context.max_stack.min(MAX_DEPTH) => StackEnd::TooDeep,
            _ => StackEnd::NoWayOn,
        }
    }

    /// True if the sample has a copy of the user stack; its frames are in `self.unwound` then.
    fn unwind(&mut self, sample: &Sample<'_>, pid: Pid, time: Nanos) -> bool {
        let Some((unwinder, machine)) = self.context.unwinder else { return false };
        let (Some(regs), Some(stack)) = (sample.user_regs, sample.user_stack) else { return false };
        let Some(machine) = Machine::of_sample(machine, regs.abi) else { return false };
        let registers = &Registers::from_perf(machine, regs.mask, regs.values.iter());
        let stack = UserStack { pid, time, registers, bytes: stack.bytes };
        unwinder.unwind(&stack, &mut self.cache, &mut self.unwound);
        !self.unwound.frames.is_empty()
    }

    /// The caller of the innermost user frame where the call chain misses it: on Arm, `perf record -g` records the link
    /// register beside it.
    #[inline]
    fn leaf_caller(&mut self, sample: &Sample<'_>, pid: Pid, time: Nanos) -> Option<Addr> {
        let (unwinder, machine) = self.context.unwinder?;
        let regs = sample.user_regs.filter(|_| sample.user_stack.is_none() && !sample.callchain.is_empty())?;
        let machine = Machine::of_sample(machine, regs.abi)?;
        let link = Registers::from_perf(machine, regs.mask, regs.values.iter()).link()?;
        let mut frames = sample.frames().filter(|(mode, _)| *mode == CpuMode::User).map(|(_, frame)| frame.raw());
        let (leaf, next) = (frames.next()?, frames.next().map(|next| Addr(machine.plain(next.0))));
        unwinder.leaf_caller(Moment { pid, time, machine }, leaf, link, next, &mut self.cache)
    }
}

/// The number of frames that the kernel reports an event at most.
fn frames_limit(attr: &EventAttr) -> u16 {
    if attr.sample_max_stack == 0 { KERNEL_LIMIT } else { attr.sample_max_stack }
}
