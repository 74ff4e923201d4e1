//! Which JIT code the samples touch, and before which of them perf must be told of it.
//!
//! perf knows what is at an address by the mapping records that it has seen up to a sample's time. So code needs one
//! before the first sample that touches it, and another one before the first that does so after something else was
//! mapped over it: runtimes let their anonymous memory grow, and every growth is a record that covers all of it.
//!
//! The stretches of time between such records are *epochs* of a segment. Each worker notes the earliest touch of
//! every (process, segment, epoch): as much as there is distinct code, whatever the length of the recording.

use super::jit_ranges::{JitRanges, contains};
use super::shadowings::{Covers, When};
use crate::formats::perf_data::{RawRecord, Recording, Sample, kind};
use crate::model::process::CpuMode;
use crate::model::{Addr, FrameAddr, Nanos, Pid};
use crate::resolve::address_space::AddressSpaces;
use crate::resolve::code_map::{CodeMap, How, SegmentId};
use crate::resolve::dso::DsoKind;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Code of one process in one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::commands) struct Key {
    pub(in crate::commands) pid: Pid,
    pub(in crate::commands) segment: SegmentId,
    epoch: u32,
}

/// The first and last time that code was touched in an epoch.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Touch {
    pub(in crate::commands) first: When,
    pub(in crate::commands) last: When,
}

/// How many samples and frames there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::commands) struct Counts {
    pub(in crate::commands) samples: u64,
    /// Samples that have at least one frame in JIT code.
    pub(in crate::commands) with_jit: u64,
    /// Frames in code that the dumps and maps know.
    pub(in crate::commands) resolved: u64,
    /// Samples that could not be read.
    pub(in crate::commands) unreadable: u64,
}

/// What a worker finds.
#[derive(Debug, Default)]
pub(in crate::commands) struct Touched {
    touches: FxHashMap<Key, Touch>,
    pub(in crate::commands) counts: Counts,
    /// Frames of user space that no dump or map knows and no file backs, by process and page.
    pub(in crate::commands) unresolved: BTreeMap<Pid, u64>,
    epochs: FxHashMap<(Pid, SegmentId), Vec<When>>,
}

/// What the search looks at.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Context<'a, 'data> {
    pub(in crate::commands) recording: &'a Recording,
    pub(in crate::commands) codes: &'a CodeMap<'data>,
    pub(in crate::commands) jit_ranges: &'a JitRanges,
    pub(in crate::commands) covers: &'a Covers,
    pub(in crate::commands) spaces: &'a AddressSpaces,
}

impl Context<'_, '_> {
    /// Whether an address is in memory of a process that no file backs, such as JIT code is in.
    fn is_anonymous(&self, pid: Pid, addr: Addr, time: Option<Nanos>) -> bool {
        let place = self.spaces.lookup(pid, addr, time.unwrap_or(Nanos(u64::MAX)), CpuMode::User);
        place.is_some_and(|place| self.spaces.dsos().get(place.dso).kind == DsoKind::Anonymous)
    }
}

impl Touched {
    /// Looks at the samples among some records.
    pub(in crate::commands) fn read<'a>(
        context: Context<'_, '_>,
        records: impl Iterator<Item = RawRecord<'a>>,
    ) -> Self {
        let mut touched = Self::default();
        for raw in records.filter(|raw| raw.kind == kind::SAMPLE) {
            match context.recording.sample(&raw) {
                Ok(sample) => touched.sample(context, &sample, raw.offset),
                Err(_) => touched.counts.unreadable += 1,
            }
        }
        touched
    }

    fn sample(&mut self, context: Context<'_, '_>, sample: &Sample<'_>, offset: u64) {
        self.counts.samples += 1;
        let Some((pid, _)) = sample.pid_tid else { return };
        if matches!(sample.cpumode, CpuMode::GuestKernel | CpuMode::GuestUser | CpuMode::Hypervisor) {
            return;
        }
        let ranges = context.jit_ranges.of(pid);
        let mut has_jit = false;
        for (mode, frame) in sample.frames() {
            if mode != CpuMode::User {
                continue;
            }
            let found = if contains(ranges, frame.for_lookup()) {
                self.touch(context, sample, pid, frame.for_lookup(), offset)
            } else {
                None
            };
            // perf looks a return address up as it is: it may be the first of other code, or the only one with a name.
            if let FrameAddr::Return(addr) = frame
                && found.is_none_or(|end| addr >= end)
                && contains(ranges, addr)
            {
                self.touch(context, sample, pid, addr, offset);
            }
            if found.is_some() {
                has_jit = true;
                self.counts.resolved += 1;
            } else if context.is_anonymous(pid, frame.for_lookup(), sample.time) {
                *self.unresolved.entry(pid).or_default() += 1;
            }
        }
        self.counts.with_jit += u64::from(has_jit);
        if !ranges.is_empty() {
            self.other_addresses(context, sample, pid, ranges, offset);
        }
    }

    /// Addresses that become frames only later: branches, and what perf may find when it unwinds the stack copy.
    fn other_addresses(
        &mut self,
        context: Context<'_, '_>,
        sample: &Sample<'_>,
        pid: Pid,
        ranges: &[(Addr, Addr)],
        offset: u64,
    ) {
        let branches = sample.branches.into_iter().flat_map(|branches| branches.iter());
        let registers = sample.user_regs.into_iter().flat_map(|registers| registers.values.iter());
        let endian = context.recording.header.endian;
        let stack = sample.user_stack.map(|stack| crate::formats::perf_data::Words::new(stack.bytes, endian));
        let words = stack.into_iter().flat_map(|words| words.iter());
        let returns = registers
            .chain(words)
            .filter(|&word| contains(ranges, Addr(word)) || contains(ranges, Addr(word.wrapping_sub(1))));
        let returns = returns.flat_map(|word| [Addr(word), Addr(word.wrapping_sub(1))]);
        for addr in branches.flat_map(|branch| [branch.from, branch.to]).chain(returns) {
            if contains(ranges, addr) {
                self.touch(context, sample, pid, addr, offset);
            }
        }
    }

    /// Notes that a sample touches what is at an address. If there is JIT code, gives the first address behind it that
    /// may have another answer.
    fn touch(
        &mut self,
        context: Context<'_, '_>,
        sample: &Sample<'_>,
        pid: Pid,
        addr: Addr,
        offset: u64,
    ) -> Option<Addr> {
        let hit = context.codes.lookup(pid, addr, sample.time)?;
        let when = When { time: sample.time.unwrap_or_default(), offset };
        let epoch = self.epoch(context, pid, hit.segment, when);
        let key = Key { pid, segment: hit.segment, epoch };
        let touch = Touch { first: when, last: when };
        self.touches.entry(key).and_modify(|known| known.join(touch)).or_insert(touch);
        let segment = context.codes.segment(hit.segment);
        // Nothing has precedence over a process's own live code.
        let sure = hit.how == How::Live && segment.pid == pid;
        Some(if sure { segment.end } else { Addr(addr.0.saturating_add(1)) })
    }

    /// How often something else was mapped over a segment before a moment.
    fn epoch(&mut self, context: Context<'_, '_>, pid: Pid, id: SegmentId, when: When) -> u32 {
        /// So many mappings are looked through faster than a list for each segment is found.
        const FEW: usize = 8;
        let all = || context.covers.over(pid, id, context.codes.segment(id));
        let before = |epochs: &[When]| epochs.partition_point(|cover| *cover < when) as u32;
        match context.covers.count(pid) {
            0 => 0,
            1..=FEW => before(&all()),
            _ => before(self.epochs.entry((pid, id)).or_insert_with(all)),
        }
    }

    /// Adds what another worker found.
    pub(in crate::commands) fn append(&mut self, other: Self) {
        for (key, touch) in other.touches {
            self.touches.entry(key).and_modify(|known| known.join(touch)).or_insert(touch);
        }
        for (pid, count) in other.unresolved {
            *self.unresolved.entry(pid).or_default() += count;
        }
        let (all, more) = (&mut self.counts, other.counts);
        all.samples += more.samples;
        all.with_jit += more.with_jit;
        all.resolved += more.resolved;
        all.unreadable += more.unreadable;
    }

    /// Takes the touches out, in order.
    pub(in crate::commands) fn take(&mut self) -> Vec<(Key, Touch)> {
        let mut list: Vec<_> = std::mem::take(&mut self.touches).into_iter().collect();
        list.sort_unstable_by_key(|(key, touch)| (touch.first, *key));
        list
    }
}

impl Touch {
    fn join(&mut self, other: Self) {
        let last = self.last.max(other.last);
        if other.first < self.first {
            *self = other;
        }
        self.last = last;
    }
}
