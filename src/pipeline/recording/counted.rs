//! Weights of samples that contain counter values (`PERF_SAMPLE_READ`; `perf record -e '{cycles,misses}:S'`).
//!
//! Only the group's leader is sampled. Each of its samples contains the values of all counters and counts as a sample
//! of every member, weighted with what that counter counted since the previous sample. Members that counted nothing are
//! left out. perf does the same (`deliver_sample_group` in tools/perf/util/session.c).

use super::streams::RecordChunks;
use crate::model::Tid;
use crate::records::perf_data::{RawRecord, Recording, Sample, kind};
use linux_perf_event_reader::constants as abi;
use rustc_hash::FxHashMap;

/// The index of an event, and the weight of its sample.
pub(super) type Member = (u32, u64);

/// For each sample with counter values, in order, the samples that it stands for.
#[derive(Debug, Clone, Default)]
pub(super) struct Counted {
    members: Vec<Member>,
    /// Where the members of each sample end.
    ends: Vec<usize>,
}

impl Counted {
    /// One per chunk; empty if no event records counter values. Samples that a filter drops are included, because the
    /// next sample's count starts from them.
    pub(super) fn new(recording: &Recording, chunks: &RecordChunks<'_>) -> Vec<Self> {
        if !recording.events.iter().any(|event| event.attr.samples(abi::PERF_SAMPLE_READ)) {
            return Vec::new();
        }
        let mut counters = Counters { recording, before: FxHashMap::default() };
        let list = chunks.list().into_iter();
        list.map(|records| counters.chunk(records.filter(|record| record.kind == kind::SAMPLE))).collect()
    }

    /// The samples that the `index`th sample with counter values stands for.
    pub(super) fn members(&self, index: usize) -> &[Member] {
        let end = self.ends.get(index).copied().unwrap_or(0);
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.members.get(start..end).unwrap_or_default()
    }
}

/// The event and weight of a sample without counter values.
pub(super) fn own(recording: &Recording, sample: &Sample<'_>) -> Member {
    let attr = &recording.events[sample.event].attr;
    let fixed = if attr.is_frequency() { 1 } else { attr.period_or_frequency };
    (sample.event as u32, sample.period.unwrap_or(fixed))
}

struct Counters<'a> {
    recording: &'a Recording,
    /// The last value of each counter. If child threads inherit the counter, there is a value per thread.
    before: FxHashMap<(u64, Option<Tid>), u64>,
}

impl Counters<'_> {
    fn chunk<'data>(&mut self, records: impl Iterator<Item = RawRecord<'data>>) -> Counted {
        let mut counted = Counted::default();
        for sample in records.filter_map(|record| self.recording.sample(&record).ok()) {
            if sample.read.is_some() {
                self.sample(&sample, &mut counted.members);
                counted.ends.push(counted.members.len());
            }
        }
        counted
    }

    fn sample(&mut self, sample: &Sample<'_>, members: &mut Vec<Member>) {
        let tid = sample.pid_tid.map(|(_, tid)| tid);
        let values = sample.read.map(|read| read.values()).unwrap_or_default();
        if values.iter().all(|value| value.id.is_none()) {
            members.push(own(self.recording, sample));
        }
        for value in values {
            let Some((id, event)) = value.id.and_then(|id| Some((id, self.recording.event_with(id)?))) else {
                continue;
            };
            let inherited = self.recording.events[event].attr.is_inherited();
            let before = self.before.entry((id, tid.filter(|_| inherited))).or_default();
            let period = value.value.wrapping_sub(std::mem::replace(before, value.value));
            if period != 0 {
                members.push((event as u32, period));
            }
        }
    }
}
