//! Deferred user call chains (`perf record --call-graph fp,defer`, Linux 6.19).
//!
//! The kernel can postpone recording the user stack. The call chain of a sample then ends with
//! `PERF_CONTEXT_USER_DEFERRED` and a cookie instead of the user frames. These follow in a record of their own when the
//! thread returns to user space. That record completes all samples of the thread with the same cookie:
//!
//! ```text
//! u64 cookie, u64 nr, u64 ips[nr], sample_id
//! ```
//!
//! The addresses are resolved as of the time of the deferred record, not of the sample. In between, the thread may have
//! slept for a long time and even called exec. perf resolves them the same way.

use super::kind;
use super::recording::Recording;
use super::sample::Sample;
use super::sample_id::SampleId;
use super::walk::RawRecord;
use super::words::Words;
use crate::error::{Result, Skipped, Warning, Warnings};
use crate::model::process::CpuMode;
use crate::model::{Addr, Nanos, Tid};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;

/// The flag `defer_callchain` of an attr: the user part of call chains may come in later records.
const DEFER_CALLCHAIN: u64 = 1 << 38;

/// A user call chain that completes earlier samples.
#[derive(Debug, Clone, Copy)]
pub struct DeferredChain<'data> {
    /// The CALLCHAIN_DEFERRED record in the form of a sample, with process, thread, time and call chain.
    pub sample: Sample<'data>,
    /// The offset in the file of the CALLCHAIN_DEFERRED record.
    pub offset: u64,
}

/// All deferred chains of a recording.
#[derive(Debug, Default)]
pub struct DeferredChains<'data> {
    /// Chains by thread and cookie. [`Self::settle`] sorts each list by time.
    by_cookie: FxHashMap<(Tid, u64), Vec<DeferredChain<'data>>>,
    skipped: Skipped,
}

/// A count of records that lack their counterpart: samples without a chain, or chains without a sample.
#[derive(Debug, Default)]
struct Unmatched {
    count: u64,
    /// The lowest file offset of a record that lacks its counterpart.
    first: Option<u64>,
}

impl Unmatched {
    fn add(&mut self, offset: u64) {
        self.count += 1;
        self.first = Some(self.first.map_or(offset, |first| first.min(offset)));
    }
}

impl<'data> DeferredChain<'data> {
    /// The key by which the chains of a thread are sorted: by time, then by file offset.
    fn sort_key(&self) -> (Nanos, u64) {
        (self.sample.time.unwrap_or_default(), self.offset)
    }
}

impl<'data> DeferredChains<'data> {
    /// Adds a CALLCHAIN_DEFERRED record; ignores all others. A record without a thread ID is ignored too, because it
    /// can't be matched with samples.
    pub fn add(&mut self, recording: &Recording, raw: &RawRecord<'data>) {
        if raw.kind != kind::CALLCHAIN_DEFERRED {
            return;
        }
        match recording.deferred_chain(raw) {
            Ok(sample) => {
                if let (Some((_, tid)), Some(cookie)) = (sample.pid_tid, sample.cookie) {
                    let chain = DeferredChain { sample, offset: raw.offset };
                    self.by_cookie.entry((tid, cookie)).or_default().push(chain);
                }
            }
            Err(error) => self.skipped.add(error),
        }
    }

    /// Sorts the chains that were added, as [`Self::find`] needs them. Call this after the last [`Self::add`] and
    /// before the first `find`. Also warns about samples without their chain and chains without a sample. `records`
    /// must yield all records of the recording.
    pub fn settle<'r>(
        &mut self,
        recording: &Recording,
        records: impl Iterator<Item = RawRecord<'r>>,
        path: &Path,
        warnings: &mut Warnings,
    ) {
        std::mem::take(&mut self.skipped).report(path, warnings);
        for chains in self.by_cookie.values_mut() {
            chains.sort_by_key(DeferredChain::sort_key);
        }
        // If the recording can't have deferred chains, save the time to parse all samples.
        let may_defer = recording.events.iter().any(|event| event.attr.flags & DEFER_CALLCHAIN != 0);
        if !may_defer && self.by_cookie.is_empty() {
            return;
        }
        let mut without_chain = Unmatched::default();
        // The chains that complete a sample, by file offset and thread. The offset alone doesn't identify a chain: in
        // directory form, records of different threads can have the same offset in different files.
        let mut used: FxHashSet<(u64, Tid)> = FxHashSet::default();
        for raw in records.filter(|raw| raw.kind == kind::SAMPLE) {
            let Ok(sample) = recording.sample(&raw) else { continue };
            if sample.cookie.is_none() {
                continue;
            }
            match (self.find(&sample, raw.offset), sample.pid_tid) {
                (Some(chain), Some((_, tid))) => {
                    used.insert((chain.offset, tid));
                }
                _ => without_chain.add(raw.offset),
            }
        }
        let mut unused = Unmatched::default();
        for (&(tid, _), chains) in &self.by_cookie {
            for chain in chains {
                if !used.contains(&(chain.offset, tid)) {
                    unused.add(chain.offset);
                }
            }
        }
        if let Some(first) = without_chain.first {
            let message = format!(
                "samples without their user call chain: {} (no later PERF_RECORD_CALLCHAIN_DEFERRED record has their \
                 thread and cookie)",
                without_chain.count
            );
            warnings.push(Warning::new(message).in_file(path, Some(first)));
        }
        if let Some(first) = unused.first {
            let message = format!(
                "PERF_RECORD_CALLCHAIN_DEFERRED records that were ignored, because they belong to no sample: {}",
                unused.count
            );
            warnings.push(Warning::new(message).in_file(path, Some(first)));
        }
    }

    /// Finds the user part of a sample's call chain: the first CALLCHAIN_DEFERRED record after the sample that has the
    /// sample's thread and cookie. `offset` is the file offset of the SAMPLE record. `None` if the chain wasn't
    /// deferred, or its record is missing.
    pub fn find(&self, sample: &Sample<'_>, offset: u64) -> Option<&DeferredChain<'data>> {
        let (_, tid) = sample.pid_tid?;
        let chains = self.by_cookie.get(&(tid, sample.cookie?))?;
        let sample_key = (sample.time.unwrap_or_default(), offset);
        chains.get(chains.partition_point(|chain| chain.sort_key() < sample_key))
    }
}

impl Recording {
    /// Parses a CALLCHAIN_DEFERRED record into the form of a sample. The record has no instruction pointer, so that of
    /// the sample is the first address of the chain, or 0 if the chain is empty.
    fn deferred_chain<'data>(&self, raw: &RawRecord<'data>) -> Result<Sample<'data>> {
        let event = self.event_of(raw).unwrap_or(0);
        // Thread, time and event are in the `sample_id` at the record's end.
        let trailer = self.sample_id(raw).unwrap_or_default();
        let mut body = raw.body();
        let cookie = body.u64("cookie")?;
        let count = body.u64("length of the call chain")?;
        let chain = body.bytes(count.saturating_mul(8), "call chain")?;
        if body.left() < self.trailer_len(event) {
            return Err(body.error("the call chain leaves no room for the sample_id"));
        }
        let callchain = Words::new(chain, raw.endian);
        let mut sample = Sample {
            event,
            cpumode: CpuMode::User,
            id: trailer.id,
            pid_tid: trailer.pid_tid,
            time: trailer.time,
            stream_id: trailer.stream_id,
            cpu: trailer.cpu,
            callchain,
            cookie: Some(cookie),
            ..Sample::default()
        };
        let first = sample.chain().next();
        sample.ip = Some(first.map_or(Addr(0), |(_, _, frame)| frame.raw()));
        Ok(sample)
    }

    /// Length in bytes of the `sample_id` trailer that the event's records have; 0 if they have none.
    fn trailer_len(&self, event: usize) -> usize {
        let attr = self.events.get(event).map(|event| &event.attr).filter(|attr| attr.sample_id_all());
        attr.map_or(0, |attr| SampleId::size(attr.sample_type))
    }

    /// Parses a record that has a call chain: SAMPLE or, in the form of a sample, CALLCHAIN_DEFERRED. `None` for other
    /// kinds of records.
    pub fn chain_sample<'data>(&self, raw: &RawRecord<'data>) -> Option<Result<Sample<'data>>> {
        match raw.kind {
            kind::SAMPLE => Some(self.sample(raw)),
            kind::CALLCHAIN_DEFERRED => Some(self.deferred_chain(raw)),
            _ => None,
        }
    }
}
