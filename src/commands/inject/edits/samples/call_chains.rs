//! `--convert-callchain`: copies of user stacks become plain call chains.
//!
//! Addresses are written as they stand on the stack: return addresses behind their calls, as in chains that the
//! kernel found by frame pointers.

use crate::error::{Skipped, Warnings};
use crate::formats::perf_data::{Edit, RawRecord, Recording, Sample, attr_record, copies_stacks, kind, with_chain};
use crate::model::{Nanos, Pid};
use crate::pipeline::Job;
use crate::pipeline::recording::streams::RecordChunks;
use crate::resolve::unwind::registers::{Machine, Registers};
use crate::resolve::unwind::{Cache, Chain, Unwinder, UserStack};
use linux_perf_event_reader::constants as abi;
use std::path::Path;

/// The edits that convert every sample that has a copy of its stack.
pub(in crate::commands) fn samples<'a>(
    recording: &Recording,
    pieces: &RecordChunks<'_>,
    unwinder: &'a Unwinder<'a>,
    machine: Machine,
    (shown, warnings): (&Path, &mut Warnings),
    job: &Job,
) -> Vec<Edit> {
    let parts = job.pool.map(pieces.list(), |records| {
        let mut converting =
            Converting { recording, unwinder, machine, cache: Cache::default(), chain: Chain::default() };
        let mut skipped = Skipped::new("sample");
        let mut edits = Vec::new();
        for raw in records.filter(|raw| raw.kind == kind::SAMPLE) {
            match converting.sample(&raw) {
                Ok(edit) => edits.extend(edit),
                Err(error) => skipped.add(error),
            }
        }
        (edits, skipped)
    });
    let mut all = Vec::new();
    let mut skipped = Skipped::new("sample");
    for (edits, damaged) in parts {
        all.extend(edits);
        skipped.append(damaged);
    }
    skipped.report(shown, warnings);
    all
}

/// In a pipe, the edits that make attrs say so. The recording's events are already converted.
pub(in crate::commands) fn attrs(recording: &Recording, pieces: &RecordChunks<'_>) -> Vec<Edit> {
    let attrs = pieces.list().into_iter().flatten().filter(|raw| raw.kind == kind::HEADER_ATTR);
    let changed = attrs.zip(&recording.events).filter_map(|(raw, event)| {
        let insert = attr_record(&raw, event)?;
        Some(Edit { at: raw.offset, remove: raw.bytes.len() as u64, insert })
    });
    changed.collect()
}

struct Converting<'r, 'a> {
    recording: &'r Recording,
    unwinder: &'a Unwinder<'a>,
    machine: Machine,
    cache: Cache,
    chain: Chain,
}

impl Converting<'_, '_> {
    fn sample(&mut self, raw: &RawRecord<'_>) -> crate::error::Result<Option<Edit>> {
        let sample = self.recording.sample(raw)?;
        let attr = &self.recording.events[sample.event].attr;
        if !copies_stacks(attr) {
            return Ok(None);
        }
        // What the kernel found of itself stays.
        let mut words: Vec<u64> = sample.callchain.iter().take_while(|&word| word != abi::PERF_CONTEXT_USER).collect();
        if self.unwind(&sample) {
            words.push(abi::PERF_CONTEXT_USER);
            words.extend(self.chain.frames.iter().map(|frame| frame.raw().0));
        }
        let insert = with_chain(raw, attr, &words)?;
        let insert = insert.ok_or_else(|| crate::error::Error::new("is too long with its chain").at(raw.offset))?;
        Ok(Some(Edit { at: raw.offset, remove: raw.bytes.len() as u64, insert }))
    }

    fn unwind(&mut self, sample: &Sample<'_>) -> bool {
        /// `PERF_SAMPLE_REGS_ABI_64`: registers of a 64-bit program.
        const ABI_64: u64 = 2;
        let (Some(regs), Some(stack)) = (sample.user_regs.filter(|regs| regs.abi == ABI_64), sample.user_stack) else {
            return false;
        };
        let registers = &Registers::from_perf(self.machine, regs.mask, regs.values.iter());
        let pid = sample.pid_tid.map_or(Pid(-1), |(pid, _)| pid);
        let time = sample.time.unwrap_or(Nanos(u64::MAX - 1));
        let stack = UserStack { pid, time, registers, bytes: stack.bytes };
        self.unwinder.unwind(&stack, &mut self.cache, &mut self.chain);
        !self.chain.frames.is_empty()
    }
}
