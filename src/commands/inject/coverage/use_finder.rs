//! Finds the JIT code that samples use: what was at each address of their stacks, and which mapping records cover it.

use super::code_uses::{CodeEpoch, CodeUse, CodeUses, UseId};
use super::jit_ranges::{AddrRanges, JitRanges};
use super::memo::{Asked, FramePlace, Memo, StackAnswer};
use super::shadowings::{ProcessShadowings, Shadowings};
use crate::commands::inject::survey::RecordOrder;
use crate::model::lasting::{ALWAYS, Lasting, both};
use crate::model::process::CpuMode;
use crate::model::{Addr, FrameAddr, Nanos, Pid};
use crate::pipeline::recording::chain_memo::{ChainKey, ChainMemo};
use crate::records::perf_data::{
    DeferredChain, DeferredChains, RawRecord, Recording, Sample, Words, is_bad_entry, kind,
};
use crate::resolve::address_space::{AddressSpaces, Place};
use crate::resolve::code_map::{CodeMap, Hit, How, SegmentId};
use crate::resolve::dso::DsoKind;
use crate::resolve::precedence::is_told_of;
use std::collections::BTreeMap;
use std::ops::Range;

/// The facts by which the code at an address is found, and what may have shadowed it.
#[derive(Debug, Clone, Copy)]
pub(super) struct UseContext<'a, 'data, 'r> {
    pub(super) recording: &'a Recording,
    /// The user's part of call chains that samples lack.
    pub(super) deferred: &'a DeferredChains<'r>,
    pub(super) codes: &'a CodeMap<'data>,
    pub(super) jit_ranges: &'a JitRanges,
    pub(super) shadowings: &'a Shadowings,
    pub(super) spaces: &'a AddressSpaces,
    /// When the dumps of processes have their last records.
    pub(super) dump_ends: &'a BTreeMap<Pid, Nanos>,
    /// The mappings of files that JIT code may be claimed to be in.
    pub(super) files: &'a JitRanges,
}

impl UseContext<'_, '_, '_> {
    /// True if code of another time is what was there, and how long that stays so. Mostly no file is near it.
    fn is_told_of(&self, pid: Pid, addr: Addr, time: Option<Nanos>, hit: &Hit) -> Lasting<bool> {
        if !self.files.of(pid).contains(addr) {
            return Lasting { answer: true, holds: ALWAYS };
        }
        let answer = is_told_of(hit, self.codes, self.spaces, (pid, addr), time);
        let holds = time.map_or(NEVER, |time| self.spaces.user_lasting(pid, addr, time).holds);
        Lasting { answer, holds }
    }

    /// The code at an address.
    fn code(&self, pid: Pid, addr: Addr, time: Option<Nanos>) -> Lasting<Option<Hit>> {
        match time {
            Some(time) => self.codes.lookup_lasting(pid, addr, time),
            None => Lasting { answer: self.codes.lookup(pid, addr, None), holds: NEVER },
        }
    }

    /// True if an address is in memory of a process that no file backs, such as JIT code is in.
    fn is_anonymous(&self, pid: Pid, addr: Addr, time: Option<Nanos>) -> Lasting<bool> {
        let is_anonymous = |place: Place| self.spaces.dsos().get(place.dso).kind == DsoKind::Anonymous;
        let Some(time) = time else {
            let place = self.spaces.lookup(pid, addr, Nanos(u64::MAX), CpuMode::User);
            return Lasting { answer: place.is_some_and(is_anonymous), holds: NEVER };
        };
        let Lasting { answer, holds } = self.spaces.user_lasting(pid, addr, time);
        Lasting { answer: answer.is_some_and(is_anonymous), holds }
    }
}

/// Finds what the samples among some records use.
#[derive(Debug)]
pub(super) struct UseFinder<'a, 'data, 'r> {
    context: UseContext<'a, 'data, 'r>,
    found: CodeUses,
    memo: Memo,
    chains: ChainMemo<'r, ChainUses>,
    /// The code that the frames of the current chain use.
    chain_uses: Vec<UseId>,
}

/// The uses of a call chain, wherever it occurs.
#[derive(Debug, Clone, Copy, Default)]
struct ChainCounts {
    frames: FramesInMemory,
    /// The entries that make perf drop the chain.
    bad: u64,
    has_frames: bool,
}

/// A call chain that was looked up.
#[derive(Debug)]
struct ChainUses {
    uses: Box<[UseId]>,
    counts: ChainCounts,
    /// The first and the last sample that had the chain again.
    again: Option<CodeUse>,
}

impl ChainUses {
    /// Notes what the samples used that had the chain again.
    fn note(self, found: &mut CodeUses) {
        if let Some(again) = self.again {
            self.uses.iter().for_each(|id| found.note_again(*id, again));
        }
    }
}

/// The number of frames that are in memory where JIT code may be.
#[derive(Debug, Clone, Copy, Default)]
struct FramesInMemory {
    known: u64,
    unknown: u64,
    /// In unknown code, where code is known of other times.
    other_time: u64,
}

impl FramesInMemory {
    fn one(place: FramePlace) -> Self {
        let mut one = Self::default();
        one.add(place);
        one
    }

    fn add(&mut self, place: FramePlace) {
        match place {
            FramePlace::Known => self.known += 1,
            FramePlace::Unknown => self.unknown += 1,
            FramePlace::OtherTime => self.other_time += 1,
            FramePlace::Elsewhere => {}
        }
    }

    /// Those in JIT code, with a name or without.
    fn in_jit_code(self) -> u64 {
        self.known + self.unknown + self.other_time
    }
}

/// The code at an address that perf must know.
#[derive(Debug, Clone, Copy)]
struct UsedCode {
    id: UseId,
    /// The first address behind the one looked up that may have another answer.
    end: Addr,
}

/// The sample whose addresses are looked up.
#[derive(Debug, Clone, Copy)]
struct UsingSample<'a> {
    pid: Pid,
    /// As the sample states it.
    time: Option<Nanos>,
    order: RecordOrder,
    /// The ranges where the process may have JIT code.
    ranges: &'a AddrRanges,
    /// The mappings that may shadow it.
    shadowings: Option<&'a ProcessShadowings>,
}

impl UsingSample<'_> {
    /// The use of code by this sample alone.
    fn as_use(self) -> CodeUse {
        CodeUse { first: self.order, last: self.order }
    }
}

impl<'a, 'data, 'r> UseFinder<'a, 'data, 'r> {
    /// Nothing is found yet.
    pub(super) fn new(context: UseContext<'a, 'data, 'r>) -> Self {
        let (found, memo, chain_uses) = Default::default();
        Self { context, found, memo, chains: ChainMemo::of_repeated(), chain_uses }
    }

    /// Looks at the samples among some records.
    pub(super) fn read(&mut self, records: impl Iterator<Item = RawRecord<'r>>) {
        for raw in records.filter(|raw| raw.kind == kind::SAMPLE) {
            match self.context.recording.sample(&raw) {
                Ok(sample) => self.sample(&sample, raw.offset),
                Err(_) => self.found.counts.unreadable += 1,
            }
        }
    }

    /// The code that the samples read so far have used.
    pub(super) fn found(mut self) -> CodeUses {
        self.chains.into_values().for_each(|chain| chain.note(&mut self.found));
        self.found
    }

    fn sample(&mut self, sample: &Sample<'r>, offset: u64) {
        self.found.counts.samples += 1;
        let is_other = matches!(sample.cpumode, CpuMode::GuestKernel | CpuMode::GuestUser | CpuMode::Hypervisor);
        let Some((pid, _)) = sample.pid_tid.filter(|_| !is_other) else {
            return self.bad_entries(sample.bad_chain_entries() as u64);
        };
        let user = self.using(pid, sample.time, offset);
        let is_jit = match self.context.deferred.find(sample, offset) {
            Some(DeferredChain { sample: later, offset }) => {
                // The part that was deferred uses what is there when its own record is written.
                let own = sample.chain_frames().next().is_some() && self.chain(user, sample);
                let (pid, _) = later.pid_tid.unwrap_or_default();
                self.chain(self.using(pid, later.time, *offset), later) || own
            }
            None => self.chain(user, sample),
        };
        self.found.counts.with_jit += u64::from(is_jit);
        if !user.ranges.is_empty() {
            self.branches(user, sample);
            self.stack_copy(user, sample);
        }
    }

    /// A record that uses what is at its addresses.
    fn using(&self, pid: Pid, time: Option<Nanos>, offset: u64) -> UsingSample<'a> {
        let order = RecordOrder { time: time.unwrap_or_default(), offset };
        let (ranges, shadowings) = (self.context.jit_ranges.of(pid), self.context.shadowings.of(pid));
        UsingSample { pid, time, order, ranges, shadowings }
    }

    fn bad_entries(&mut self, bad_entries: u64) {
        self.found.counts.bad_chains += u64::from(bad_entries > 0);
        self.found.counts.bad_entries += bad_entries;
    }

    /// True if any frame is in JIT code.
    fn chain(&mut self, user: UsingSample<'_>, sample: &Sample<'r>) -> bool {
        let key = ChainKey::of(sample, user.pid, None).zip(user.time);
        let ChainCounts { frames, bad, has_frames } = match key.and_then(|(key, time)| self.chains.get(&key, time)) {
            Some(known) => {
                known.again.get_or_insert(user.as_use()).join(user.as_use());
                known.counts
            }
            None => {
                let Lasting { answer: counts, holds } = self.find_chain(user, sample);
                if let Some((key, _)) = key {
                    let uses = || ChainUses { uses: self.chain_uses[..].into(), counts, again: None };
                    self.chains.put(key, holds, uses, |before| before.note(&mut self.found));
                }
                counts
            }
        };
        self.bad_entries(bad);
        self.resolved(user, frames);
        // A chain without frames leaves the sample's own address.
        let alone = sample.ip.filter(|_| !has_frames && sample.cpumode == CpuMode::User);
        frames.in_jit_code() > 0 || alone.is_some_and(|ip| self.ip(user, ip))
    }

    /// Looks at each word of a chain. What its frames use is in `self.chain_uses` then.
    fn find_chain(&mut self, user: UsingSample<'_>, sample: &Sample<'_>) -> Lasting<ChainCounts> {
        let (mut context, mut counts, mut holds) = (sample.context(), ChainCounts::default(), ALWAYS);
        self.chain_uses.clear();
        for word in sample.callchain.iter() {
            match context.step(word) {
                Some((CpuMode::User, frame)) => {
                    let found = self.frame(user, frame);
                    let StackAnswer { uses, kind } = found.answer;
                    self.note(user, uses);
                    self.chain_uses.extend(uses.into_iter().flatten());
                    holds = both(holds, found.holds);
                    counts.has_frames = true;
                    counts.frames.add(kind);
                }
                Some(_) => counts.has_frames = true,
                None => counts.bad += u64::from(is_bad_entry(word)),
            }
        }
        Lasting { answer: counts, holds }
    }

    /// True if the address of a sample without a chain is in JIT code.
    fn ip(&mut self, user: UsingSample<'_>, ip: Addr) -> bool {
        let StackAnswer { uses, kind } = self.frame(user, FrameAddr::Ip(ip)).answer;
        self.note(user, uses);
        self.resolved(user, FramesInMemory::one(kind));
        kind != FramePlace::Elsewhere
    }

    #[inline]
    fn frame(&mut self, user: UsingSample<'_>, frame: FrameAddr) -> Lasting<StackAnswer> {
        self.answer(user, Asked::frame(frame), |finder| finder.find_frame(user, frame))
    }

    /// The stored answer for an address of a stack, or else the one that `find` finds.
    #[inline]
    fn answer(
        &mut self,
        user: UsingSample<'_>,
        asked: Asked,
        find: impl FnOnce(&mut Self) -> Lasting<StackAnswer>,
    ) -> Lasting<StackAnswer> {
        if let Some(known) = user.time.and_then(|time| self.memo.get(user.pid, asked, time)) {
            return known.clone();
        }
        let found = find(self);
        self.memo.put(user.pid, asked, found.clone());
        found
    }

    /// Notes what the sample uses.
    #[inline]
    fn note(&mut self, user: UsingSample<'_>, uses: [Option<UseId>; 2]) {
        uses.into_iter().flatten().for_each(|id| self.found.note_again(id, user.as_use()));
    }

    fn find_frame(&mut self, user: UsingSample<'_>, frame: FrameAddr) -> Lasting<StackAnswer> {
        let code = self.address(user, frame.for_lookup());
        let mut holds = code.holds;
        let mut uses = [code.answer.map(|code| code.id), None];
        // perf looks a return address up as it is: it may be the first of other code, or the only one with a name.
        if let FrameAddr::Return(addr) = frame
            && code.answer.is_none_or(|code| addr >= code.end)
        {
            let behind = self.address(user, addr);
            holds = both(holds, behind.holds);
            uses[1] = behind.answer.map(|code| code.id);
        }
        let kind = if code.answer.is_some() {
            FramePlace::Known
        } else {
            let anonymous = self.context.is_anonymous(user.pid, frame.for_lookup(), user.time);
            holds = both(holds, anonymous.holds);
            let known_then = || self.context.codes.has_code_at_other_times(user.pid, frame.for_lookup());
            match anonymous.answer {
                true if known_then() => FramePlace::OtherTime,
                true => FramePlace::Unknown,
                false => FramePlace::Elsewhere,
            }
        };
        Lasting { answer: StackAnswer { uses, kind }, holds }
    }

    /// Counts frames in code that is known, and those in none that is, in memory that no file backs.
    fn resolved(&mut self, UsingSample { pid, time, .. }: UsingSample<'_>, frames: FramesInMemory) {
        let FramesInMemory { known, unknown, other_time } = frames;
        self.found.counts.resolved += known;
        if unknown + other_time == 0 {
            return;
        }
        *self.found.counts.unresolved.entry(pid).or_default() += unknown + other_time;
        if other_time > 0 {
            *self.found.counts.other_time.entry(pid).or_default() += other_time;
        }
        let end = self.context.dump_ends.get(&pid);
        let time = time.filter(|time| time.is_valid());
        if unknown > 0 && end.zip(time).is_some_and(|(end, time)| time > *end) {
            *self.found.counts.late.entry(pid).or_default() += unknown;
        }
    }

    fn branches(&mut self, user: UsingSample<'_>, sample: &Sample<'_>) {
        for branch in sample.branches.into_iter().flat_map(|branches| branches.iter()) {
            self.address(user, branch.from);
            self.address(user, branch.to);
        }
    }

    /// Notes what perf may find when it unwinds the copy of a stack: any word may be a return address.
    fn stack_copy(&mut self, user: UsingSample<'_>, sample: &Sample<'_>) {
        /// The number of words that are looked at together first: most point to somewhere else.
        const BLOCK: usize = 8;
        let endian = self.context.recording.header.endian;
        let registers = sample.user_regs.map(|registers| registers.values);
        let stack = sample.user_stack.map(|stack| Words::new(stack.bytes, endian));
        for words in [registers, stack].into_iter().flatten() {
            let act = |word| {
                if user.ranges.may_reach(Addr(word)) {
                    self.word(user, word);
                }
            };
            words.for_each_in(|block: &[u64; BLOCK]| user.ranges.may_reach_any(block), act);
        }
    }

    fn word(&mut self, user: UsingSample<'_>, word: u64) {
        let found = self.answer(user, Asked::word(Addr(word)), |finder| finder.find_word(user, word));
        self.note(user, found.answer.uses);
    }

    fn find_word(&mut self, user: UsingSample<'_>, word: u64) -> Lasting<StackAnswer> {
        let (own, before) = (self.address(user, Addr(word)), self.address(user, Addr(word.wrapping_sub(1))));
        let uses = [own.answer, before.answer].map(|code| code.map(|code| code.id));
        let answer = StackAnswer { uses, kind: FramePlace::Elsewhere };
        Lasting { answer, holds: both(own.holds, before.holds) }
    }

    /// Notes the code at an address, if it is JIT code.
    #[inline]
    fn address(&mut self, user: UsingSample<'_>, addr: Addr) -> Lasting<Option<UsedCode>> {
        match user.ranges.contains(addr) {
            true => self.address_in_range(user, addr),
            false => Lasting { answer: None, holds: ALWAYS },
        }
    }

    fn address_in_range(&mut self, user: UsingSample<'_>, addr: Addr) -> Lasting<Option<UsedCode>> {
        let UsingSample { pid, time, order, shadowings, .. } = user;
        let Lasting { answer: hit, mut holds } = self.context.code(pid, addr, time);
        let Some(hit) = hit else { return Lasting { answer: None, holds } };
        if hit.how != How::Live {
            let is_told_of = self.context.is_told_of(pid, addr, time, &hit);
            holds = both(holds, is_told_of.holds);
            if !is_told_of.answer {
                return Lasting { answer: None, holds };
            }
        }
        let number = self.epoch(shadowings, hit.segment, order);
        let epoch = CodeEpoch { pid, segment: hit.segment, number: number.answer };
        let id = self.found.note(epoch, CodeUse { first: order, last: order });
        let segment = self.context.codes.segment(hit.segment);
        // Nothing has precedence over a process's own live code.
        let sure = hit.how == How::Live && segment.pid == pid;
        let end = if sure { segment.end } else { Addr(addr.0.saturating_add(1)) };
        Lasting { answer: Some(UsedCode { id, end }), holds: both(holds, number.holds) }
    }

    /// The number of a stretch of time in which nothing else is mapped over a segment.
    fn epoch(&self, shadowings: Option<&ProcessShadowings>, id: SegmentId, now: RecordOrder) -> Lasting<u32> {
        let segment = self.context.codes.segment(id);
        let (last, next, number) = shadowings.map_or((None, None, 0), |all| all.around(id, segment, now));
        // Records of equal time come in the order of the stream: such a moment is looked up again.
        let start = last.map_or(Nanos(0), |last| Nanos(last.time.0.saturating_add(1)));
        Lasting { answer: number, holds: start..next.map_or(Nanos(u64::MAX), |next| next.time) }
    }
}

/// The mark of a use without a time.
const NEVER: Range<Nanos> = Nanos(0)..Nanos(0);
