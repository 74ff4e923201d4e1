//! Which JIT code some samples use, as each worker finds it.
//!
//! perf knows what is at an address by the mapping records that it has seen up to a sample's time. So code needs one
//! before the first sample that uses it, and another one before the first that does so after something else was
//! mapped over it: runtimes let their anonymous memory grow, and every growth is a record that covers all of it.
//!
//! The stretches of time between such records are *epochs* of a segment. Each worker notes the earliest use of
//! every (process, segment, epoch): as much as there is distinct code, whatever the length of the recording.

use super::jit_ranges::{JitRanges, contains};
use super::shadowings::Shadowings;
use crate::commands::inject::survey::record_order::RecordOrder;
use crate::formats::perf_data::{RawRecord, Recording, Sample, Words, kind};
use crate::model::process::CpuMode;
use crate::model::{Addr, FrameAddr, Nanos, Pid};
use crate::resolve::address_space::AddressSpaces;
use crate::resolve::code_map::{CodeMap, Hit, How, SegmentId};
use crate::resolve::dso::DsoKind;
use crate::resolve::precedence::is_told_of;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// Code of one process in one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::commands::inject) struct CodeEpoch {
    pub(in crate::commands::inject) pid: Pid,
    pub(in crate::commands::inject) segment: SegmentId,
    number: u32,
}

/// The first and the last sample that uses code in an epoch.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands::inject) struct CodeUse {
    pub(in crate::commands::inject) first: RecordOrder,
    pub(in crate::commands::inject) last: RecordOrder,
}

impl CodeUse {
    fn join(&mut self, other: Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}

/// How many samples and frames there were.
#[derive(Debug, Default)]
pub(in crate::commands::inject) struct SampleCounts {
    pub(in crate::commands::inject) samples: u64,
    /// Samples that have at least one frame in JIT code.
    pub(in crate::commands::inject) with_jit: u64,
    /// Frames in code that the dumps and maps know.
    pub(in crate::commands::inject) resolved: u64,
    /// By process: frames in memory that no file backs and that no dump or map knows.
    pub(in crate::commands::inject) unresolved: BTreeMap<Pid, u64>,
    /// Those of them that were sampled when the process's dump had its last record.
    pub(in crate::commands::inject) late: BTreeMap<Pid, u64>,
    /// Samples whose call chains perf drops whole.
    pub(in crate::commands::inject) bad_chains: u64,
    /// The entries in them that make it do so.
    pub(in crate::commands::inject) bad_entries: u64,
    /// Samples that could not be read.
    pub(in crate::commands::inject) unreadable: u64,
}

impl SampleCounts {
    fn append(&mut self, more: Self) {
        self.samples += more.samples;
        self.with_jit += more.with_jit;
        self.resolved += more.resolved;
        for (all, more) in [(&mut self.unresolved, more.unresolved), (&mut self.late, more.late)] {
            for (pid, count) in more {
                *all.entry(pid).or_default() += count;
            }
        }
        self.bad_chains += more.bad_chains;
        self.bad_entries += more.bad_entries;
        self.unreadable += more.unreadable;
    }
}

/// What the samples of some records use.
#[derive(Debug, Default)]
pub(super) struct CodeUses {
    by_epoch: FxHashMap<CodeEpoch, CodeUse>,
    pub(super) counts: SampleCounts,
}

impl CodeUses {
    /// Adds what another worker found.
    pub(super) fn append(&mut self, other: Self) {
        for (epoch, found) in other.by_epoch {
            self.note(epoch, found);
        }
        self.counts.append(other.counts);
    }

    fn note(&mut self, epoch: CodeEpoch, found: CodeUse) {
        self.by_epoch.entry(epoch).and_modify(|known| known.join(found)).or_insert(found);
    }

    /// All uses, in the order of their first samples.
    pub(super) fn in_order(self) -> Vec<(CodeEpoch, CodeUse)> {
        let mut list: Vec<_> = self.by_epoch.into_iter().collect();
        list.sort_unstable_by_key(|(epoch, of)| (of.first, *epoch));
        list
    }
}

/// What tells which code is at an address, and what may have shadowed it.
#[derive(Debug, Clone, Copy)]
pub(super) struct UseContext<'a, 'data> {
    pub(super) recording: &'a Recording,
    pub(super) codes: &'a CodeMap<'data>,
    pub(super) jit_ranges: &'a JitRanges,
    pub(super) shadowings: &'a Shadowings,
    pub(super) spaces: &'a AddressSpaces,
    /// When the dumps of processes have their last records.
    pub(super) dump_ends: &'a BTreeMap<Pid, Nanos>,
    /// Where files were mapped that JIT code may be said to be in.
    pub(super) files: &'a JitRanges,
}

impl UseContext<'_, '_> {
    /// Whether code of another time is what was there. Mostly no file is near it.
    fn is_told_of(&self, pid: Pid, addr: Addr, time: Option<Nanos>, hit: &Hit) -> bool {
        !contains(self.files.of(pid), addr) || is_told_of(hit, self.codes, self.spaces, (pid, addr), time)
    }

    /// Whether an address is in memory of a process that no file backs, such as JIT code is in.
    fn is_anonymous(&self, pid: Pid, addr: Addr, time: Option<Nanos>) -> bool {
        let place = self.spaces.lookup(pid, addr, time.unwrap_or(Nanos(u64::MAX)), CpuMode::User);
        place.is_some_and(|place| self.spaces.dsos().get(place.dso).kind == DsoKind::Anonymous)
    }
}

/// Finds what samples use.
#[derive(Debug)]
pub(super) struct UseFinder<'a, 'data> {
    context: UseContext<'a, 'data>,
    found: CodeUses,
    /// When something else was mapped over a segment, for those of processes with many mappings.
    shadowed: FxHashMap<(Pid, SegmentId), Vec<RecordOrder>>,
}

/// The sample whose addresses are looked up.
#[derive(Debug, Clone, Copy)]
struct UsingSample<'a> {
    pid: Pid,
    /// As the sample says it.
    time: Option<Nanos>,
    order: RecordOrder,
    /// Where the process may have JIT code.
    ranges: &'a [Range<Addr>],
}

impl<'a, 'data> UseFinder<'a, 'data> {
    /// Nothing is found yet.
    pub(super) fn new(context: UseContext<'a, 'data>) -> Self {
        Self { context, found: CodeUses::default(), shadowed: FxHashMap::default() }
    }

    /// Looks at the samples among some records.
    pub(super) fn read<'r>(mut self, records: impl Iterator<Item = RawRecord<'r>>) -> CodeUses {
        for raw in records.filter(|raw| raw.kind == kind::SAMPLE) {
            match self.context.recording.sample(&raw) {
                Ok(sample) => self.sample(&sample, raw.offset),
                Err(_) => self.found.counts.unreadable += 1,
            }
        }
        self.found
    }

    fn sample(&mut self, sample: &Sample<'_>, offset: u64) {
        self.found.counts.samples += 1;
        let bad_entries = sample.bad_chain_entries();
        self.found.counts.bad_chains += u64::from(bad_entries > 0);
        self.found.counts.bad_entries += bad_entries as u64;
        let Some((pid, _)) = sample.pid_tid else { return };
        if matches!(sample.cpumode, CpuMode::GuestKernel | CpuMode::GuestUser | CpuMode::Hypervisor) {
            return;
        }
        let order = RecordOrder { time: sample.time.unwrap_or_default(), offset };
        let user = UsingSample { pid, time: sample.time, order, ranges: self.context.jit_ranges.of(pid) };
        let mut has_jit = false;
        for (mode, frame) in sample.frames() {
            if mode == CpuMode::User {
                has_jit |= self.frame(user, frame);
            }
        }
        self.found.counts.with_jit += u64::from(has_jit);
        if !user.ranges.is_empty() {
            self.branches(user, sample);
            self.stack_copy(user, sample);
        }
    }

    /// Whether a frame of user space is in JIT code.
    fn frame(&mut self, user: UsingSample<'_>, frame: FrameAddr) -> bool {
        let end = self.address(user, frame.for_lookup());
        // perf looks a return address up as it is: it may be the first of other code, or the only one with a name.
        if let FrameAddr::Return(addr) = frame
            && end.is_none_or(|end| addr >= end)
        {
            self.address(user, addr);
        }
        if end.is_some() {
            self.found.counts.resolved += 1;
        } else if self.context.is_anonymous(user.pid, frame.for_lookup(), user.time) {
            self.unresolved(user);
        }
        end.is_some()
    }

    fn unresolved(&mut self, UsingSample { pid, time, .. }: UsingSample<'_>) {
        *self.found.counts.unresolved.entry(pid).or_default() += 1;
        let end = self.context.dump_ends.get(&pid);
        if end.zip(time).is_some_and(|(end, time)| time > *end) {
            *self.found.counts.late.entry(pid).or_default() += 1;
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
        let registers = sample.user_regs.into_iter().flat_map(|registers| registers.values.iter());
        let endian = self.context.recording.header.endian;
        let stack = sample.user_stack.map(|stack| Words::new(stack.bytes, endian));
        for word in registers.chain(stack.into_iter().flat_map(|words| words.iter())) {
            self.address(user, Addr(word));
            self.address(user, Addr(word.wrapping_sub(1)));
        }
    }

    /// Notes the code at an address, if it is JIT code. Gives the first address behind it that may have another
    /// answer.
    #[inline]
    fn address(&mut self, user: UsingSample<'_>, addr: Addr) -> Option<Addr> {
        if contains(user.ranges, addr) { self.address_in_range(user, addr) } else { None }
    }

    fn address_in_range(&mut self, user: UsingSample<'_>, addr: Addr) -> Option<Addr> {
        let UsingSample { pid, time, order, .. } = user;
        let hit = self.context.codes.lookup(pid, addr, time)?;
        if hit.how != How::Live && !self.context.is_told_of(pid, addr, time, &hit) {
            return None;
        }
        let epoch = CodeEpoch { pid, segment: hit.segment, number: self.epoch(pid, hit.segment, order) };
        self.found.note(epoch, CodeUse { first: order, last: order });
        let segment = self.context.codes.segment(hit.segment);
        // Nothing has precedence over a process's own live code.
        let sure = hit.how == How::Live && segment.pid == pid;
        Some(if sure { segment.end } else { Addr(addr.0.saturating_add(1)) })
    }

    /// How often something else was mapped over a segment before a moment.
    fn epoch(&mut self, pid: Pid, id: SegmentId, now: RecordOrder) -> u32 {
        /// So many mappings are looked through faster than a list for each segment is found.
        const FEW: usize = 8;
        let UseContext { codes, shadowings, .. } = self.context;
        let all = || shadowings.over(pid, id, codes.segment(id));
        let before = |list: &[RecordOrder]| list.partition_point(|order| *order < now) as u32;
        match shadowings.count(pid) {
            0 => 0,
            1..=FEW => before(&all()),
            _ => before(self.shadowed.entry((pid, id)).or_insert_with(all)),
        }
    }
}
