//! Reads samples, in parallel over chunks of the recording.
//!
//! Each worker assigns its own IDs to code locations, chains and threads. The worker keeps these IDs from chunk to
//! chunk, so that for each chunk, it only passes on what is new. A call chain that the worker has read before is taken
//! from a memo (`chain_memo`). The frames of other chains are looked up one by one, most of them in a cache
//! ([`RecentAnswers`]).

use super::branches::{lbr_chain, put_branch_history};
use super::chain_memo::{ChainKey, ChainMemo};
use super::counted::{Counted, Member, single_member};
use super::frame_location::{FrameLocation, LIMIT_FRAME, ModeFrame, TRUNCATED_FRAME};
use super::samples::{
    Access, KeptRegisters, OtherFields, SampleChunk, SampleRow, Samples, Sent, StackEnd, TakenBranch,
};
use crate::analysis::filter::PlacedFilter;
use crate::formats::perf_data::{Branch, DeferredChains, EventAttr, RawRecord, Recording, Sample, kind};
use crate::model::about::{self, TimeExtent};
use crate::model::chains::{ChainId, PlaceId};
use crate::model::lasting::{Lasting, LastingCache, RecentAnswers, UNTIMED};
use crate::model::process::CpuMode;
use crate::model::recorded::Labels;
use crate::model::stacks::{Keep, Track};
use crate::model::threads::Threads;
use crate::model::{Addr, FrameAddr, Nanos, Pid, Tid};
use crate::symbolize::symbolizer::Symbolizer;
use crate::symbolize::unwind::registers::{Machine, Registers};
use crate::symbolize::unwind::{Cache, MAX_DEPTH, Moment, Unwinder, UnwoundChain, UserStack};
use rustc_hash::FxHashMap;

/// The maximum number of frames that the kernel records by default (`PERF_MAX_STACK_DEPTH`).
const KERNEL_LIMIT: u16 = 127;

/// If a worker's tables have more call chains than this, the worker starts new tables before it reads the next chunk,
/// so that its tables stay smaller than the merged ones.
const MOST_CHAINS: usize = 1 << 19;

/// The data and options needed for reading samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) recording: &'a Recording,
    pub(super) threads: &'a Threads,
    /// The user parts of call chains that were recorded after their samples (deferred call chains).
    pub(super) deferred: &'a DeferredChains<'a>,
    pub(super) filter: &'a PlacedFilter<'a>,
    pub(super) symbolizer: Symbolizer<'a>,
    /// True if frames keep their addresses.
    pub(super) keep_addr: bool,
    /// Unwinds copies of user stacks; comes with the machine type (`e_machine`). `None` if the machine isn't supported.
    pub(super) unwinder: Option<(&'a Unwinder<'a>, u16)>,
    /// For each event of the recording, whether its samples are wanted.
    pub(super) events: &'a [bool],
    /// Whether to keep a row for each sample, or sums.
    pub(super) keep: Keep,
    /// Keep samples of different CPUs apart.
    pub(super) by_cpu: bool,
    /// The control groups by ID, if samples are kept apart by control group; otherwise `None`.
    pub(super) cgroups: Option<&'a FxHashMap<u64, Labels>>,
    /// Add the branches that the CPU recorded before a sample to the sample's stack, as its innermost frames.
    pub(super) branch_stack: bool,
    /// The maximum number of frames per stack or, if the user's part is unwound, in each of its two parts; `usize::MAX`
    /// for no limit.
    pub(super) max_stack: usize,
    /// Keep the branches that the CPU recorded before each sample in a list of their own ([`Samples::branches`]).
    pub(super) keep_branches: bool,
    /// Keep further fields of samples, such as registers, for commands that print them.
    pub(super) keep_other_fields: bool,
}

/// By which properties samples are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct TrackKey {
    pid: Option<Pid>,
    tid: Option<Tid>,
    /// The CPU; `None` unless samples are kept apart by CPU.
    cpu: Option<u32>,
    /// The control group's ID; `None` unless samples are kept apart by control group.
    cgroup: Option<u64>,
}

/// A worker that reads samples.
#[derive(Debug)]
pub(super) struct SampleReader<'a, 'data> {
    context: Context<'a>,
    /// The index of this worker.
    worker: usize,
    /// What has been read: the rows since the last chunk was passed on, and the worker's tables.
    pub(super) samples: Samples,
    sent: Sent,
    /// Call chains that have been looked up, for samples with the same chain.
    memo: ChainMemo<'data, ReadChain>,
    /// The frames of the current sample, innermost first.
    frames: Vec<ModeFrame>,
    /// The result of unwinding the current sample's copy of the stack.
    unwound: UnwoundChain,
    unwind_cache: Cache,
    /// Locations that were found recently.
    places: RecentAnswers<(Pid, ModeFrame), PlaceId>,
    /// The index of the track for each key, and the time for which the thread keeps its name.
    tracks: LastingCache<TrackKey, u32>,
}

/// The result of looking up a sample's call chain.
#[derive(Debug, Clone, Copy)]
struct ReadChain {
    /// The call chain; `None` if the stack has no frames.
    chain: Option<ChainId>,
    end: StackEnd,
    /// The address of the innermost frame; 0 if the stack has no frames.
    ip: Addr,
}

/// A call chain, as far as it has been looked up: from the outermost frame inward.
#[derive(Debug, Clone, Copy)]
struct PartialChain {
    chain: ChainId,
    /// The address of the innermost frame so far.
    ip: Addr,
    /// The time (exclusive) until which all frames that have been looked up keep their locations.
    until: Nanos,
}

impl ReadChain {
    fn new(chain: Option<PartialChain>, end: StackEnd) -> Self {
        match chain {
            Some(PartialChain { chain, ip, .. }) => Self { chain: Some(chain), end, ip },
            None => Self { chain: None, end, ip: Addr(0) },
        }
    }
}

impl<'a, 'data> SampleReader<'a, 'data> {
    /// Creates a reader with empty tables. `worker` is the number of the worker that it belongs to.
    pub(super) fn new(context: Context<'a>, worker: usize) -> Self {
        Self {
            context,
            worker,
            samples: Samples::keeping(context.keep),
            sent: Sent::default(),
            memo: ChainMemo::default(),
            frames: Vec::new(),
            unwound: UnwoundChain::default(),
            unwind_cache: Cache::default(),
            places: RecentAnswers::default(),
            tracks: LastingCache::default(),
        }
    }

    /// Reads a chunk and returns its samples.
    pub(super) fn read_chunk(
        &mut self,
        records: impl Iterator<Item = RawRecord<'data>>,
        counted: &Counted,
    ) -> SampleChunk {
        // Starting again with empty tables bounds the memory of each worker. The merged tables keep all chains. `sent`
        // is reset as well, which tells `take_chunk` that the tables are new.
        if self.samples.chains.len() > MOST_CHAINS {
            *self = Self::new(self.context, self.worker);
        }
        self.read(records, counted);
        self.samples.take_chunk(self.worker, &mut self.sent)
    }

    /// Reads the samples among these records. `counted` has the weights of samples with counter values.
    pub(super) fn read(&mut self, records: impl Iterator<Item = RawRecord<'data>>, counted: &Counted) {
        // The number of samples with counter values so far. `counted` only has such samples, so this is the number of
        // the next one in it.
        let mut counted_samples = 0;
        for record in records.filter(|record| record.kind == kind::SAMPLE) {
            match self.context.recording.sample(&record) {
                Ok(sample) if sample.read.is_some() => {
                    self.add_sample(&sample, record.offset, counted.members(counted_samples));
                    counted_samples += 1;
                }
                Ok(sample) => {
                    let member = single_member(self.context.recording, &sample);
                    self.add_sample(&sample, record.offset, &[member]);
                }
                Err(error) => self.samples.skipped.add(error),
            }
        }
    }

    /// Adds a row for each event to which the sample belongs (`members`), if the user wants the event and the filter
    /// doesn't drop the sample. `offset` is the offset of the sample's record. If the user part of the call chain was
    /// recorded later, it is found by this offset.
    fn add_sample(&mut self, sample: &Sample<'data>, offset: u64, members: &[Member]) {
        let Context { filter, events, by_cpu, .. } = self.context;
        let (pid, tid) = sample.pid_tid.unzip();
        let valid_time = sample.time.filter(|time| time.is_valid());
        // `events` says for each event whether its samples are wanted.
        let is_read = |member: &Member| events.get(member.event as usize).copied().unwrap_or(false);
        let is_wanted = members.iter().any(is_read)
            && filter.pid(pid)
            && filter.tid(tid)
            && filter.cpu(sample.cpu)
            && filter.time(valid_time);
        if !is_wanted {
            return;
        }
        let cpu = sample.cpu.filter(|_| by_cpu);
        let cgroup = sample.cgroup.filter(|_| self.context.cgroups.is_some());
        let track = self.find_track(TrackKey { pid, tid, cpu, cgroup }, sample.time);
        // Threads may change their names. The track has the name at the time of the sample.
        if !filter.comm(&self.samples.tracks.items()[track as usize].comm) {
            return;
        }
        // If the process is unknown, the sample must not get names from any process. None has the ID -1.
        let pid = pid.unwrap_or(Pid(-1));
        let ReadChain { chain, end, ip } = match self.context.deferred.find(sample, offset) {
            Some(user) => self.read_joined_chain(sample, &user.sample, pid),
            None => self.read_chain(sample, pid),
        };
        let branches = self.keep_branches(sample, pid);
        self.samples.sampled = about::join_extents(self.samples.sampled, valid_time.map(TimeExtent::from_moment));
        let first_row = self.samples.rows.len();
        for &Member { event, period } in members.iter().filter(|member| is_read(member)) {
            self.samples.push(SampleRow {
                event,
                track,
                time: sample.time,
                period,
                count: 1,
                chain,
                ip,
                cpu: sample.cpu,
                branches,
                end,
            });
        }
        if self.context.keep_other_fields {
            let other_fields = OtherFields {
                addr: sample.addr,
                addr_place: self.addr_place(sample, pid),
                trace: self.trace(sample),
                interrupted: sample.intr_regs.map(KeptRegisters::copy),
                user: sample.user_regs.map(KeptRegisters::copy),
                mode: sample.cpumode,
                access: Access::from_sample(sample),
                cgroup: sample.cgroup,
            };
            // Each of the sample's rows gets a copy of these fields.
            self.samples.other_fields.extend(std::iter::repeat_n(other_fields, self.samples.rows.len() - first_row));
        }
    }

    /// The location of the sample's data address. `None` if the sample has none, or if perf symbolizes no data
    /// addresses of this event: it only does so for page faults.
    fn addr_place(&mut self, sample: &Sample<'_>, pid: Pid) -> Option<PlaceId> {
        let event = &self.context.recording.events[sample.event];
        let addr = sample.addr.filter(|_| event.attr.is_page_fault())?;
        // The address decides between user and kernel memory, not the sample's CPU mode: the kernel may fault on user
        // memory.
        let mode = if addr.0 >> 63 == 0 { CpuMode::User } else { CpuMode::Kernel };
        Some(self.place(pid, (mode, FrameAddr::Ip(addr)), sample.time.unwrap_or(UNTIMED)))
    }

    /// The raw data of a tracepoint, or what a BPF program wrote. `None` if it isn't kept.
    fn trace(&self, sample: &Sample<'_>) -> Option<Box<[u8]>> {
        let attr = &self.context.recording.events[sample.event].attr;
        sample.raw.filter(|_| attr.is_tracepoint() || attr.is_bpf_output()).map(Into::into)
    }

    /// The index of the track for `key`, which is added if it is new. A track is a thread under one name and, if samples
    /// are kept apart by CPU or control group, on one CPU or in one group. As a thread may change its name, the answer
    /// is only kept until the next change.
    fn find_track(&mut self, key: TrackKey, time: Option<Nanos>) -> u32 {
        let TrackKey { pid, tid, cpu, cgroup } = key;
        let now = time.unwrap_or(UNTIMED);
        let Context { threads, cgroups, .. } = self.context;
        // The closure is only called if the cache has no answer for `key` that is valid at `now`.
        let number = self.tracks.number(key, now, || {
            let comm = threads.name(pid, tid, time).into_owned();
            let labels = cgroup.and_then(|cgroup| cgroups?.get(&cgroup)?.clone());
            let answer = self.samples.tracks.intern(Track { comm, pid, tid, cpu, labels, ..Track::default() });
            Lasting { answer, holds: now..threads.holds_until(pid, tid, now) }
        });
        self.tracks.entry(number).1.answer
    }

    /// Looks up the call chain of a sample, or takes it from the memo.
    fn read_chain(&mut self, sample: &Sample<'data>, pid: Pid) -> ReadChain {
        let time = sample.time.unwrap_or(UNTIMED);
        // The caller of the innermost function, if the chain lacks it.
        let leaf_caller = self.leaf_caller(sample, pid, time);
        // The memo's key is the call chain. If frames also depend on branches or on a copy of the stack, samples with
        // the same chain may have other frames. So such samples aren't kept in the memo.
        let key = if self.is_call_chain(sample) { ChainKey::from_sample(sample, pid, leaf_caller) } else { None };
        if let Some(key) = &key
            && let Some(known) = self.memo.get(key, time)
        {
            return *known;
        }
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        let end = self.find_frames(sample, pid, time, leaf_caller, &mut frames);
        // A chain is built from its outermost frame inward.
        let mut chain = None;
        for &frame in frames.iter().rev() {
            chain = Some(self.extend_chain(chain, pid, frame, time));
        }
        self.frames = frames;
        let read = ReadChain::new(chain, end);
        if let (Some(key), Some(chain)) = (key, chain) {
            // `|_| ()`: chains that are removed for this one need no further work.
            self.memo.put(key, time..chain.until, || read, |_| ());
        }
        read
    }

    /// Looks up the call chain of a sample whose user part (`user`) was recorded later. User frames are looked up at
    /// the time of that part.
    fn read_joined_chain(&mut self, sample: &Sample<'_>, user: &Sample<'_>, pid: Pid) -> ReadChain {
        let Context { recording, max_stack, branch_stack, .. } = self.context;
        let mut end = StackEnd::Recorded;
        let mut frames: Vec<ModeFrame> = sample.chain_frames().chain(user.chain_frames()).take(max_stack).collect();
        let limit = frames_limit(&recording.events[sample.event].attr);
        // The outermost frames are in the user part. If that is as long as the kernel allows, further frames may be
        // missing.
        if user.chain_len() >= usize::from(limit) {
            end = StackEnd::Limit(limit);
            // If `--max-stack` truncates the stack itself, a mark that says the kernel may have done so would mislead.
            if sample.chain_len() + user.chain_len() <= max_stack {
                frames.push(LIMIT_FRAME);
            }
        }
        if let (true, Some(branches)) = (branch_stack, sample.branches) {
            // `put_branch_history` replaces the innermost frames by the recorded branches.
            put_branch_history(branches, &mut frames);
        }
        let time = sample.time.unwrap_or(UNTIMED);
        let user_time = user.time.unwrap_or(UNTIMED);
        let user_pid = user.pid_tid.map_or(pid, |(pid, _)| pid);
        // A chain is built from its outermost frame inward.
        let mut chain = None;
        for &frame in frames.iter().rev() {
            chain = Some(match frame.0 {
                CpuMode::User => self.extend_chain(chain, user_pid, frame, user_time),
                _ => self.extend_chain(chain, pid, frame, time),
            });
        }
        ReadChain::new(chain, end)
    }

    /// True if the sample's frames come from its call chain only, rather than from branches or from a copy of the
    /// stack.
    fn is_call_chain(&self, sample: &Sample<'_>) -> bool {
        sample.branches.is_none() && (self.context.unwinder.is_none() || sample.user_stack.is_none())
    }

    /// Looks up a frame and adds it to the chain of its callers. `callers` is `None` for the outermost frame.
    #[inline]
    fn extend_chain(&mut self, callers: Option<PartialChain>, pid: Pid, frame: ModeFrame, time: Nanos) -> PartialChain {
        let Lasting { answer: place, holds } = self.find_place(pid, frame, time);
        let chain = self.samples.chains.chain(callers.map(|callers| callers.chain), place);
        let until = callers.map_or(holds.end, |callers| callers.until.min(holds.end));
        PartialChain { chain, ip: frame.1.raw(), until }
    }

    /// Stores the branches of the sample if they are kept. Returns their range in [`Samples::branches`].
    fn keep_branches(&mut self, sample: &Sample<'_>, pid: Pid) -> (u32, u32) {
        let time = sample.time.unwrap_or(UNTIMED);
        let start = self.samples.branches.len() as u32;
        if let Some(branches) = sample.branches
            && self.context.keep_branches
        {
            for Branch { from, to, flags } in branches.iter() {
                // The CPU doesn't record whether it ran kernel or user code at a branch, so the mode is unknown.
                let from = self.place(pid, (CpuMode::Unknown, FrameAddr::Ip(from)), time);
                let to = self.place(pid, (CpuMode::Unknown, FrameAddr::Ip(to)), time);
                self.samples.branches.push(TakenBranch { from, to, flags });
            }
        }
        (start, self.samples.branches.len() as u32)
    }

    fn place(&mut self, pid: Pid, frame: ModeFrame, time: Nanos) -> PlaceId {
        self.find_place(pid, frame, time).answer
    }

    /// Finds the location of a frame, and how long it stays the same. Looks at recent answers first.
    #[inline]
    fn find_place(&mut self, pid: Pid, frame: ModeFrame, time: Nanos) -> Lasting<PlaceId> {
        let key = (pid, frame);
        if let Some(known) = self.places.get(&key, time) {
            return known.clone();
        }
        let Context { symbolizer, keep_addr, .. } = self.context;
        let Lasting { answer, holds } = FrameLocation::find(symbolizer, keep_addr, pid, frame, time);
        let found = Lasting { answer: self.samples.chains.place(answer), holds };
        self.places.insert(key, found.clone());
        found
    }

    /// Adds all frames of a sample to `frames`, innermost first. Kernel frames come from the call chain. User frames
    /// come from the best that the sample has: a copy of the stack, else a stack of calls (LBR), else the call chain.
    /// Returns why the stack ends where it does.
    fn find_frames(
        &mut self,
        sample: &Sample<'_>,
        pid: Pid,
        time: Nanos,
        leaf_caller: Option<Addr>,
        frames: &mut Vec<ModeFrame>,
    ) -> StackEnd {
        let Context { recording, max_stack, branch_stack, .. } = self.context;
        let attr = &recording.events[sample.event].attr;
        let mut end = StackEnd::Recorded;
        // `unwind` returns true if the sample has a copy of the stack and at least one frame was found in it. The
        // frames are then in `self.unwound`.
        if self.unwind(sample, pid, time) {
            end = self.unwound_end(sample);
            // `max_stack` limits the kernel's and the user's part of the stack separately.
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
                // The missing caller goes directly after the innermost user frame.
                frames.insert(leaf + 1, (CpuMode::User, FrameAddr::Return(caller)));
                frames.truncate(max_stack);
            }
            let limit = frames_limit(attr);
            let recorded = sample.chain_len();
            if recorded >= usize::from(limit) {
                end = StackEnd::Limit(limit);
                // If `--max-stack` truncates the stack itself, a mark that says the kernel may have done so would
                // mislead.
                if recorded <= max_stack {
                    frames.push(LIMIT_FRAME);
                }
            }
        }
        if let (true, Some(branches)) = (branch_stack, sample.branches) {
            // `put_branch_history` replaces the innermost frames by the recorded branches.
            put_branch_history(branches, frames);
        }
        end
    }

    /// Why unwinding the sample's stack copy ended where it did. If several reasons apply, returns the one that the
    /// user can do most about: recording a larger copy, then unwinding more frames.
    fn unwound_end(&self, sample: &Sample<'_>) -> StackEnd {
        // The kernel copies up to `room` bytes. If it copied less, the stack had no more, and the copy is complete.
        let is_full = sample.user_stack.is_some_and(|stack| stack.bytes.len() as u64 >= stack.room);
        let chain = &self.unwound;
        if !chain.truncated {
            StackEnd::Whole
        } else if chain.copy_ended && is_full {
            StackEnd::CopyEnd
        } else if chain.frames.len() >= self.context.max_stack.min(MAX_DEPTH) {
            StackEnd::TooDeep
        } else {
            StackEnd::NoWayOn
        }
    }

    /// Unwinds the sample's stack copy into `self.unwound`. Returns false if the sample has none or no frame was found.
    fn unwind(&mut self, sample: &Sample<'_>, pid: Pid, time: Nanos) -> bool {
        let Some((unwinder, machine)) = self.context.unwinder else { return false };
        let (Some(regs), Some(stack)) = (sample.user_regs, sample.user_stack) else { return false };
        let Some(machine) = Machine::from_sample(machine, regs.abi) else { return false };
        let registers = &Registers::from_perf(machine, regs.mask, regs.values.iter());
        let stack = UserStack { pid, time, registers, bytes: stack.bytes };
        unwinder.unwind(&stack, &mut self.unwind_cache, &mut self.unwound);
        !self.unwound.frames.is_empty()
    }

    /// The caller of the innermost user frame, if it has to be determined because the call chain lacks it. On Arm,
    /// `perf record -g` records the link register for this purpose.
    #[inline]
    fn leaf_caller(&mut self, sample: &Sample<'_>, pid: Pid, time: Nanos) -> Option<Addr> {
        let (unwinder, machine) = self.context.unwinder?;
        // If there is a copy of the stack, it is unwound instead, and no caller is missing.
        let regs = sample.user_regs.filter(|_| sample.user_stack.is_none() && !sample.callchain.is_empty())?;
        let machine = Machine::from_sample(machine, regs.abi)?;
        let link = Registers::from_perf(machine, regs.mask, regs.values.iter()).link()?;
        let user_frames = sample.frames().filter(|(mode, _)| *mode == CpuMode::User);
        let mut addresses = user_frames.map(|(_, frame)| frame.raw());
        let leaf = addresses.next()?;
        // The caller that the chain states. `code_address` clears the bits that mark an address, such as Thumb's.
        let stated_caller = addresses.next().map(|addr| Addr(machine.code_address(addr.0)));
        unwinder.leaf_caller(Moment { pid, time, machine }, leaf, link, stated_caller, &mut self.unwind_cache)
    }
}

/// The maximum number of frames that the kernel records for a sample of this event.
fn frames_limit(attr: &EventAttr) -> u16 {
    if attr.sample_max_stack == 0 { KERNEL_LIMIT } else { attr.sample_max_stack }
}
