//! Finds the JIT code that each sample uses. For every address of the sample's stack, it looks up the code segment and
//! the epoch of the use. A mapping over the segment hides it from perf; an epoch is the time between two such mappings.

use super::code_uses::{CodeEpoch, CodeUse, CodeUses, FramePlace, UseId};
use super::jit_ranges::{AddrRanges, JitRanges};
use super::shadowings::{Epoch, ProcessShadowings, Shadowings};
use crate::commands::inject::survey::RecordOrder;
use crate::formats::perf_data::{
    DeferredChain, DeferredChains, RawRecord, Recording, Sample, Words, is_bad_entry, kind,
};
use crate::model::lasting::{ALWAYS, Lasting, RecentAnswers, intersect};
use crate::model::process::CpuMode;
use crate::model::{Addr, FrameAddr, Nanos, Pid};
use crate::pipeline::recording::chain_memo::{ChainKey, ChainMemo};
use crate::pipeline::recording::counted::{Member, single_member};
use crate::symbolize::code_map::{HitKind, SegmentId};
use crate::symbolize::symbolizer::{Located, Symbolizer};
use std::collections::BTreeMap;

/// Everything needed to tell which code was at an address and which mappings may have hidden it.
#[derive(Debug, Clone, Copy)]
pub(super) struct UseContext<'a, 'r> {
    pub(super) recording: &'a Recording,
    /// Deferred user call chains, which come in records of their own (PERF_RECORD_CALLCHAIN_DEFERRED).
    pub(super) deferred: &'a DeferredChains<'r>,
    pub(super) symbolizer: Symbolizer<'a>,
    pub(super) jit_ranges: &'a JitRanges,
    pub(super) shadowings: &'a Shadowings,
    /// The time of the last record in each process's jitdump.
    pub(super) dump_ends: &'a BTreeMap<Pid, Nanos>,
}

/// An address of a stack: a call chain's frame, or a word of a copied stack, which may be a return address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum StackAddr {
    Frame(FrameAddr),
    Word(Addr),
}

/// What was found at an address of a stack.
#[derive(Debug, Clone, Copy)]
struct StackAnswer {
    /// The code that perf must be able to name for this address: the code with the call and, if the return address is
    /// in other code, that code as well.
    uses: [Option<UseId>; 2],
    /// What the address is in.
    place: FramePlace,
}

/// Collects the JIT code that samples use, for one worker.
#[derive(Debug)]
pub(super) struct UseFinder<'a, 'r> {
    context: UseContext<'a, 'r>,
    found: CodeUses,
    /// What was found at addresses of stacks. The cache pays because consecutive samples share most of their stack.
    answers: RecentAnswers<(Pid, StackAddr), StackAnswer>,
    chains: ChainMemo<'r, ChainUses>,
    /// The code that the current call chain uses. The buffer is reused for each chain.
    chain_uses: Vec<UseId>,
}

/// The counts of one call chain. They are added to the totals each time the chain occurs.
#[derive(Debug, Clone, Copy, Default)]
struct ChainCounts {
    frames: FramesInMemory,
    /// The number of chain entries that make perf drop the whole chain.
    bad_entries: u64,
    /// What the innermost frame is in. `None` if there are no frames.
    innermost: Option<FramePlace>,
}

/// The cached result of looking up a call chain.
#[derive(Debug)]
struct ChainUses {
    /// The code that the chain uses.
    uses: Box<[UseId]>,
    counts: ChainCounts,
    /// The first and last sample that repeated this chain since it was cached. When the chain leaves the cache, these
    /// samples are added to the uses of the chain's code. `None` if no sample repeated it.
    again: Option<CodeUse>,
}

impl ChainUses {
    /// Adds the first and last sample that repeated the chain to the recorded use of each piece of code in the chain.
    fn note(self, found: &mut CodeUses) {
        if let Some(again) = self.again {
            for id in self.uses {
                found.note_again(id, again);
            }
        }
    }
}

/// The number of frames in known JIT code, and in other memory that may hold JIT code.
#[derive(Debug, Clone, Copy, Default)]
struct FramesInMemory {
    /// Frames in code that a jitdump, perf map or other source describes.
    known: u64,
    /// Frames in memory that no file backs, at addresses where no source ever has code.
    unknown: u64,
    /// Frames in memory that no file backs, at addresses where a source has code at other times, but not at the
    /// sample's.
    other_time: u64,
}

impl FramesInMemory {
    fn single(place: FramePlace) -> Self {
        let mut single = Self::default();
        single.add(place);
        single
    }

    fn add(&mut self, place: FramePlace) {
        match place {
            FramePlace::Known => self.known += 1,
            FramePlace::Unknown => self.unknown += 1,
            FramePlace::OtherTime => self.other_time += 1,
            FramePlace::Elsewhere => {}
        }
    }
}

/// The use of the code that was found at an address.
#[derive(Debug, Clone, Copy)]
struct UsedCode {
    id: UseId,
    /// The address from which on there may be other code: the end of the code segment or, if other code may be in the
    /// segment, the address after the one that was looked up.
    end: Addr,
}

/// The record whose addresses are being looked up, either a sample or a deferred call chain.
#[derive(Debug, Clone, Copy)]
struct UsingRecord<'a> {
    pid: Pid,
    /// The time of the sample. `None` if it states none.
    time: Option<Nanos>,
    /// The position of the record among all records.
    order: RecordOrder,
    /// The ranges in which the sample's process has JIT code.
    ranges: &'a AddrRanges,
    /// The mappings that may hide JIT code of the sample's process. `None` if there are none.
    shadowings: Option<&'a ProcessShadowings>,
}

impl UsingRecord<'_> {
    /// The first and last use of code, if this record were the only one that uses it.
    fn as_use(self) -> CodeUse {
        CodeUse { first: self.order, last: self.order }
    }
}

impl<'a, 'r> UseFinder<'a, 'r> {
    pub(super) fn new(context: UseContext<'a, 'r>) -> Self {
        Self {
            context,
            found: Default::default(),
            answers: RecentAnswers::default(),
            chains: ChainMemo::only_repeated(),
            chain_uses: Default::default(),
        }
    }

    /// Looks at all samples among `records` and ignores other records.
    pub(super) fn read(&mut self, records: impl Iterator<Item = RawRecord<'r>>) {
        for raw in records.filter(|raw| raw.kind == kind::SAMPLE) {
            match self.context.recording.sample(&raw) {
                Ok(sample) => self.read_sample(&sample, raw.offset),
                Err(_) => self.found.counts.unreadable += 1,
            }
        }
    }

    /// Finishes and returns everything the samples have used.
    pub(super) fn finish(mut self) -> CodeUses {
        for chain in self.chains.drain() {
            chain.note(&mut self.found);
        }
        self.found
    }

    /// Looks up all addresses of a sample: its call chain, branches, registers and copied stack.
    fn read_sample(&mut self, sample: &Sample<'r>, offset: u64) {
        self.found.counts.samples += 1;
        let Member { event, period } = single_member(self.context.recording, sample);
        let innermost = self.read_stacks(sample, offset);
        self.found.counts.add_innermost(event as usize, period, innermost);
    }

    /// Looks up all addresses of a sample, and notes the JIT code that they use. Returns the sample's process, and the
    /// kind of memory that its innermost frame is in. `None` if the sample is from a virtual machine, the hypervisor or
    /// an unknown process, so that the frame can't be in JIT code.
    fn read_stacks(&mut self, sample: &Sample<'r>, offset: u64) -> Option<(Pid, FramePlace)> {
        let is_virtual = matches!(sample.cpumode, CpuMode::GuestKernel | CpuMode::GuestUser | CpuMode::Hypervisor);
        let Some((pid, _)) = sample.pid_tid.filter(|_| !is_virtual) else {
            self.count_bad_entries(sample.bad_chain_entries() as u64);
            return None;
        };
        let record = self.using_record(pid, sample.time, offset);
        let innermost = match self.context.deferred.find(sample, offset) {
            Some(DeferredChain { sample: user_part, offset }) => {
                // The chain comes in two parts, each with a time of its own: the sample has the kernel's part, and a
                // later record has the user part. Like perf, look up each part at the time of its own record. If the
                // sample itself has no frames, it is skipped, because the user part has all of them. `read_chain`
                // would look up the sample's instruction pointer instead of the missing frames.
                let has_frames = sample.chain_frames().next().is_some();
                let kernel_innermost = if has_frames { self.read_chain(record, sample) } else { None };
                let (pid, _) = user_part.pid_tid.unwrap_or_default();
                let user_record = self.using_record(pid, user_part.time, *offset);
                let user_innermost = self.read_chain(user_record, user_part);
                kernel_innermost.or(user_innermost)
            }
            None => self.read_chain(record, sample),
        };
        // Branches and stack copies are only read to find used JIT code, so skip them if the process has none.
        if !record.ranges.is_empty() {
            self.read_branches(record, sample);
            self.read_stack_copy(record, sample);
        }
        innermost.map(|place| (pid, place))
    }

    /// Collects what is needed to look up the addresses of a record. `offset` is the record's offset in the recording,
    /// which orders records of the same time.
    fn using_record(&self, pid: Pid, time: Option<Nanos>, offset: u64) -> UsingRecord<'a> {
        UsingRecord {
            pid,
            time,
            order: RecordOrder { time: time.unwrap_or_default(), offset },
            ranges: self.context.jit_ranges.get(pid),
            shadowings: self.context.shadowings.get(pid),
        }
    }

    /// Adds the number of invalid entries in a call chain to the counts. If there are any, also counts the chain as one
    /// that perf drops.
    fn count_bad_entries(&mut self, bad_entries: u64) {
        self.found.counts.bad_chains += u64::from(bad_entries > 0);
        self.found.counts.bad_entries += bad_entries;
    }

    /// Looks up a call chain, or the sample's own address if the chain is empty. Counts the frames, and notes the JIT
    /// code that they use. Returns the kind of memory that the innermost frame is in; `None` if there are no frames.
    fn read_chain(&mut self, record: UsingRecord<'_>, sample: &Sample<'r>) -> Option<FramePlace> {
        // A cached answer is valid for a range of times. So the chain of a sample without a time isn't cached.
        let key = ChainKey::from_sample(sample, record.pid, None).zip(record.time);
        let cached_chain = key.and_then(|(key, time)| self.chains.get(&key, time));
        let ChainCounts { frames, bad_entries, innermost } = match cached_chain {
            Some(cached) => {
                // `again` becomes the first and last sample that repeated the chain. Both are added to the uses of the
                // chain's code only when the chain leaves the cache.
                cached.again.get_or_insert(record.as_use()).join(record.as_use());
                cached.counts
            }
            None => {
                let Lasting { answer: counts, holds } = self.find_chain(record, sample);
                if let Some((key, _)) = key {
                    let uses = || ChainUses { uses: self.chain_uses[..].into(), counts, again: None };
                    self.chains.put(key, holds, uses, |removed| removed.note(&mut self.found));
                }
                counts
            }
        };
        self.count_bad_entries(bad_entries);
        self.count_frames(record, frames);
        // A chain without frames says nothing about where the sample was, so look up the sample's own address.
        match sample.ip {
            Some(ip) if innermost.is_none() && sample.cpumode == CpuMode::User => Some(self.read_ip(record, ip)),
            _ => innermost,
        }
    }

    /// Looks up a call chain that isn't cached, entry by entry. Leaves the used code in `self.chain_uses`. Returns the
    /// chain's counts, and the range of times in which all answers are valid.
    fn find_chain(&mut self, record: UsingRecord<'_>, sample: &Sample<'_>) -> Lasting<ChainCounts> {
        let mut context = sample.context();
        let mut counts = ChainCounts::default();
        let mut holds = ALWAYS;
        self.chain_uses.clear();
        for word in sample.callchain.iter() {
            match context.step(word) {
                Some((CpuMode::User, frame)) => {
                    let found = self.look_up_frame(record, frame);
                    let StackAnswer { uses, place } = found.answer;
                    self.note(record, uses);
                    self.chain_uses.extend(uses.into_iter().flatten());
                    holds = intersect(holds, found.holds);
                    // The first entry is the innermost frame.
                    counts.innermost.get_or_insert(place);
                    counts.frames.add(place);
                }
                // The frame isn't in user code, but in the kernel, for example. So it can't be in JIT code.
                Some(_) => {
                    counts.innermost.get_or_insert(FramePlace::Elsewhere);
                }
                None => counts.bad_entries += u64::from(is_bad_entry(word)),
            }
        }
        Lasting { answer: counts, holds }
    }

    /// Looks up the address of a sample without a call chain. Returns what it is in.
    fn read_ip(&mut self, record: UsingRecord<'_>, ip: Addr) -> FramePlace {
        let StackAnswer { uses, place } = self.look_up_frame(record, FrameAddr::Ip(ip)).answer;
        self.note(record, uses);
        self.count_frames(record, FramesInMemory::single(place));
        place
    }

    /// Looks up one frame of a call chain, or returns the cached answer for its address.
    #[inline]
    fn look_up_frame(&mut self, record: UsingRecord<'_>, frame: FrameAddr) -> Lasting<StackAnswer> {
        self.answer(record, StackAddr::Frame(frame), |finder| finder.find_frame(record, frame))
    }

    /// Returns the cached answer for an address of a stack, or calls `find` and caches its result. Without a time,
    /// nothing is cached.
    #[inline]
    fn answer(
        &mut self,
        record: UsingRecord<'_>,
        addr: StackAddr,
        find: impl FnOnce(&mut Self) -> Lasting<StackAnswer>,
    ) -> Lasting<StackAnswer> {
        let Some(time) = record.time else { return find(self) };
        let key = (record.pid, addr);
        if let Some(cached) = self.answers.get(&key, time) {
            return cached.clone();
        }
        let found = find(self);
        self.answers.insert(key, found.clone());
        found
    }

    /// Adds this record to the uses of code that an earlier lookup of the same address found.
    #[inline]
    fn note(&mut self, record: UsingRecord<'_>, uses: [Option<UseId>; 2]) {
        for id in uses.into_iter().flatten() {
            self.found.note_again(id, record.as_use());
        }
    }

    /// Looks up one frame without using the cache: finds the JIT code that it uses, and the kind of memory that it is
    /// in. The result states the range of times in which it holds.
    fn find_frame(&mut self, record: UsingRecord<'_>, frame: FrameAddr) -> Lasting<StackAnswer> {
        let Lasting { answer: located, holds } = self.locate(record, frame.for_lookup());
        let code = self.use_code(record, &located);
        let mut holds = intersect(holds, code.holds);
        let mut uses = [code.answer.map(|code| code.id), None];
        // Unlike us, perf looks up the return address itself, not the call before it. If no code is known at the call,
        // or if the return address isn't before the `end` of that code, the return address may be in other code. perf
        // then shows the name of the other code, if any, so that code counts as used, too.
        if let FrameAddr::Return(addr) = frame
            && code.answer.is_none_or(|code| addr >= code.end)
        {
            let returned_to = self.look_up_address(record, addr);
            holds = intersect(holds, returned_to.holds);
            uses[1] = returned_to.answer.map(|code| code.id);
        }
        let symbolizer = self.context.symbolizer;
        let place = if code.answer.is_some() {
            FramePlace::Known
        } else if !symbolizer.is_in_anonymous_memory(&located) {
            FramePlace::Elsewhere
        } else if symbolizer.codes.has_code_at_other_times(record.pid, located.addr) {
            FramePlace::OtherTime
        } else {
            FramePlace::Unknown
        };
        Lasting { answer: StackAnswer { uses, place }, holds }
    }

    /// Counts the frames of a call chain that are in known JIT code, and those in memory without a file where no JIT
    /// code is known.
    fn count_frames(&mut self, record: UsingRecord<'_>, frames: FramesInMemory) {
        let UsingRecord { pid, time, .. } = record;
        let FramesInMemory { known, unknown, other_time } = frames;
        self.found.counts.resolved += known;
        if unknown + other_time == 0 {
            return;
        }
        *self.found.counts.unresolved.entry(pid).or_default() += unknown + other_time;
        if other_time > 0 {
            *self.found.counts.other_time.entry(pid).or_default() += other_time;
        }
        // A frame sampled after the last record of the jitdump may be in code that was compiled after the jitdump
        // ended. The jitdump can't have that code, so the summary counts such frames separately.
        if unknown > 0
            && let Some(end) = self.context.dump_ends.get(&pid)
            && time.is_some_and(|time| time.is_valid() && time > *end)
        {
            *self.found.counts.late.entry(pid).or_default() += unknown;
        }
    }

    /// Notes the code at both ends of each branch that the CPU recorded.
    fn read_branches(&mut self, record: UsingRecord<'_>, sample: &Sample<'_>) {
        for branch in sample.branches.into_iter().flat_map(|branches| branches.iter()) {
            self.look_up_address(record, branch.from);
            self.look_up_address(record, branch.to);
        }
    }

    /// Notes all code that perf may find when it unwinds a copied stack. Any word of the stack may be a return address.
    fn read_stack_copy(&mut self, record: UsingRecord<'_>, sample: &Sample<'_>) {
        /// How many stack words are compared at once with the ranges of JIT code. If none of them may be in a range, as
        /// is mostly the case, all are skipped.
        const BLOCK: usize = 8;
        let endian = self.context.recording.header.endian;
        let registers = sample.user_regs.map(|registers| registers.values);
        let stack = sample.user_stack.map(|stack| Words::new(stack.bytes, endian));
        for words in [registers, stack].into_iter().flatten() {
            let read_word = |word| {
                if record.ranges.may_reach(Addr(word)) {
                    self.read_word(record, word);
                }
            };
            words.for_each_in_wanted_blocks(|block: &[u64; BLOCK]| record.ranges.may_reach_any(block), read_word);
        }
    }

    fn read_word(&mut self, record: UsingRecord<'_>, word: u64) {
        let found = self.answer(record, StackAddr::Word(Addr(word)), |finder| finder.find_word(record, word));
        self.note(record, found.answer.uses);
    }

    /// Looks up a word of a stack, without the cache. The word may be the address of an instruction or a return
    /// address.
    fn find_word(&mut self, record: UsingRecord<'_>, word: u64) -> Lasting<StackAnswer> {
        let code = self.look_up_address(record, Addr(word));
        let before = self.look_up_address(record, Addr(word.wrapping_sub(1)));
        let uses = [code.answer, before.answer].map(|code| code.map(|code| code.id));
        // The word need not be a frame. `Elsewhere` keeps it out of the counts of frames.
        let answer = StackAnswer { uses, place: FramePlace::Elsewhere };
        Lasting { answer, holds: intersect(code.holds, before.holds) }
    }

    /// Notes that the JIT code at an address was used, and returns it. `None` if there is no JIT code at the address.
    #[inline]
    fn look_up_address(&mut self, record: UsingRecord<'_>, addr: Addr) -> Lasting<Option<UsedCode>> {
        if !record.ranges.contains(addr) {
            return Lasting { answer: None, holds: ALWAYS };
        }
        let Lasting { answer: located, holds } = self.locate(record, addr);
        let code = self.use_code(record, &located);
        Lasting { holds: intersect(holds, code.holds), ..code }
    }

    fn locate(&self, record: UsingRecord<'_>, addr: Addr) -> Lasting<Located> {
        self.context.symbolizer.locate_address(record.pid, addr, record.time, CpuMode::User)
    }

    /// Notes that the record uses the JIT code at a located address, and returns that code; `None` if there is none, or
    /// if the process was injected before. The answer also states for which range of times it holds: from one mapping
    /// that hides the code to the next. `located` may hold for a shorter time, so the caller has to intersect the two
    /// ranges.
    fn use_code(&mut self, record: UsingRecord<'_>, located: &Located) -> Lasting<Option<UsedCode>> {
        let UsingRecord { pid, order, shadowings, ranges, .. } = record;
        // `ranges` are the addresses of the process's JIT code that needs names. For a process that was injected
        // before, there are none, although `located` may have its code.
        let Some(hit) = located.code.filter(|_| ranges.contains(located.addr)) else {
            return Lasting { answer: None, holds: ALWAYS };
        };
        let epoch_number = self.epoch(shadowings, hit.segment, order);
        let epoch = CodeEpoch { pid, segment: hit.segment, number: epoch_number.answer };
        let id = self.found.note(epoch, CodeUse { first: order, last: order });
        let segment = self.context.symbolizer.codes.segment(hit.segment);
        // `end` is the address up to which no other code can be. If the process's own code was live, that is the
        // segment's end, because such code has precedence over any other. Otherwise, only the address itself is
        // certain.
        let is_certain = hit.kind == HitKind::Live && segment.pid == pid;
        let end = if is_certain { segment.end } else { Addr(located.addr.0.saturating_add(1)) };
        Lasting { answer: Some(UsedCode { id, end }), holds: epoch_number.holds }
    }

    /// The number of a segment's epoch ([`CodeEpoch`]) at the moment `now`, and the range of times in which the number
    /// stays the same.
    fn epoch(&self, shadowings: Option<&ProcessShadowings>, id: SegmentId, now: RecordOrder) -> Lasting<u32> {
        let segment = self.context.symbolizer.codes.segment(id);
        let Epoch { number, last, next } = match shadowings {
            Some(shadowings) => shadowings.find_epoch(id, segment, now),
            None => Epoch::default(),
        };
        // A sample at the very time of the last mapping may come before or after it in the recording. So the answer
        // isn't reused at that time, but only from the next nanosecond on.
        let start = last.map_or(Nanos(0), |last| Nanos(last.time.0.saturating_add(1)));
        Lasting { answer: number, holds: start..next.map_or(Nanos(u64::MAX), |next| next.time) }
    }
}
