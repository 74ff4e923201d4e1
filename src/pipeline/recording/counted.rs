//! Determines the weights of samples that contain counter values (`PERF_SAMPLE_READ`; `perf record -e
//! '{cycles,misses}:S'`).
//!
//! In a group of events, only the leader takes samples. Each of its samples contains the values of all counters. It
//! counts as a sample of every event in the group, weighted with how much that event's counter grew since the previous
//! sample. Events whose counter didn't grow are left out. perf does the same (`deliver_sample_group` in
//! tools/perf/util/session.c).

use super::streams::RecordChunks;
use crate::formats::perf_data::{RawRecord, Recording, Sample, kind};
use crate::model::Tid;
use linux_perf_event_reader::constants as abi;
use rustc_hash::FxHashMap;

/// One of the events to which a sample belongs, and its weight for this event. If perf read a group of events with
/// their leader (`perf record -e '{…}:S'`), a sample of the leader belongs to each event in the group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    /// The index of the event in the recording.
    pub(crate) event: u32,
    /// The weight of the sample for this event.
    pub(crate) period: u64,
}

/// For each sample with counter values, in the order of a chunk, the events to which it belongs.
#[derive(Debug, Clone, Default)]
pub(super) struct Counted {
    /// The events of all samples, one sample after the other.
    members: Vec<Member>,
    /// For each sample, the index in `members` directly after its own entries.
    ends: Vec<usize>,
}

impl Counted {
    /// Computes the weights of samples with counter values, for each chunk of records. Returns an empty list if no
    /// event records counter values. Samples that a filter drops are included, because the next sample's counters are
    /// compared with theirs.
    pub(super) fn new(recording: &Recording, chunks: &RecordChunks<'_>) -> Vec<Self> {
        if !recording.events.iter().any(|event| event.attr.has_field(abi::PERF_SAMPLE_READ)) {
            return Vec::new();
        }
        let mut counters = Counters { recording, last_values: FxHashMap::default() };
        let mut counted = Vec::new();
        for records in chunks.list() {
            counted.push(counters.count_chunk(records.filter(|record| record.kind == kind::SAMPLE)));
        }
        counted
    }

    /// The events to which a sample with counter values belongs, with its weight for each. `index` numbers such samples
    /// within the chunk.
    pub(super) fn members(&self, index: usize) -> &[Member] {
        let end = self.ends.get(index).copied().unwrap_or(0);
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.members.get(start..end).unwrap_or_default()
    }
}

/// The only event to which a sample without counter values belongs: its own. The weight is the sample's period. If that
/// wasn't recorded, it is the fixed period of the event, or 1 if the event is sampled at a fixed frequency, because
/// periods then vary.
pub(crate) fn single_member(recording: &Recording, sample: &Sample<'_>) -> Member {
    let attr = &recording.events[sample.event].attr;
    let default = if attr.is_frequency() { 1 } else { attr.period_or_frequency };
    Member { event: sample.event as u32, period: sample.period.unwrap_or(default) }
}

struct Counters<'a> {
    recording: &'a Recording,
    /// The last value of each counter, by its ID and thread. The thread is `None` unless child threads inherit the
    /// counter: then each thread counts on its own.
    last_values: FxHashMap<(u64, Option<Tid>), u64>,
}

impl Counters<'_> {
    /// Lists, for each sample with counter values, the events to which it belongs, each with its weight. In a group of
    /// events, a sample of the leader also belongs to every other event whose counter grew. Samples without counter
    /// values are skipped.
    fn count_chunk<'data>(&mut self, records: impl Iterator<Item = RawRecord<'data>>) -> Counted {
        let mut counted = Counted::default();
        for sample in records.filter_map(|record| self.recording.sample(&record).ok()) {
            if sample.read.is_some() {
                self.count_sample(&sample, &mut counted.members);
                counted.ends.push(counted.members.len());
            }
        }
        counted
    }

    /// Adds to `members` the events to which a sample with counter values belongs. The weight for each event is the
    /// amount by which its counter has grown since the previous sample. Counters that didn't change are left out. If
    /// the values come without the IDs of their counters, the sample only belongs to its own event.
    fn count_sample(&mut self, sample: &Sample<'_>, members: &mut Vec<Member>) {
        let tid = sample.pid_tid.map(|(_, tid)| tid);
        let values = sample.read.map(|read| read.values()).unwrap_or_default();
        if values.iter().all(|value| value.id.is_none()) {
            members.push(single_member(self.recording, sample));
        }
        for value in values {
            let Some(id) = value.id else { continue };
            let Some(event) = self.recording.event_by_id(id) else { continue };
            let inherited = self.recording.events[event].attr.is_inherited();
            // Threads that inherit an event share its ID, but each has a counter of its own.
            let last_value = self.last_values.entry((id, tid.filter(|_| inherited))).or_default();
            let previous = std::mem::replace(last_value, value.value);
            let period = value.value.wrapping_sub(previous);
            if period != 0 {
                members.push(Member { event: event as u32, period });
            }
        }
    }
}
