//! `--convert-callchain`: copies of user stacks become plain call chains.
//!
//! Addresses are written as they stand on the stack: return addresses behind their calls, as in chains that the
//! kernel found by frame pointers.

use crate::commands::inject::options::InjectContext;
use crate::commands::inject::survey::{JitCode, SurveyedRecording};
use crate::error::{Error, Result, Skipped};
use crate::model::abi::machine_name;
use crate::model::{Nanos, Pid};
use crate::records::perf_data::{
    Edit, RawRecord, Recording, Records, Sample, attr_record, copies_stacks, kind, with_chain,
};
use crate::resolve::symbols::{files::SearchOptions, images::Images};
use crate::resolve::unwind::registers::{Machine, Registers};
use crate::resolve::unwind::{Cache, MAX_DEPTH, Unwinder, UnwoundChain, UserStack};
use linux_perf_event_reader::constants as abi;

/// A recording whose user stacks became call chains.
#[derive(Debug)]
pub(super) struct PlainChains {
    /// The recording as it is then: its events say that samples have call chains.
    pub(super) recording: Recording,
    /// What makes it so.
    pub(super) edits: Vec<Edit>,
}

impl PlainChains {
    /// Unwinds every copy of a stack.
    pub(super) fn unwind(
        survey: &SurveyedRecording<'_>,
        code: &JitCode<'_>,
        context: &mut InjectContext<'_>,
    ) -> Result<Self> {
        let JitCode { map, machine, .. } = code;
        if !Machine::is_any_known(*machine) {
            return Err(Error::new(format!("stacks of {} cannot be unwound", machine_name(*machine))));
        }
        let search = SearchOptions { machine: Some(*machine), ..SearchOptions::default() };
        let files = Images::new(survey.spaces.dsos().iter(), search);
        let unwinder = Unwinder::new(&survey.spaces, map, &files, MAX_DEPTH);
        let mut edits = samples(survey, &unwinder, *machine, context);
        let mut recording = survey.input.recording.clone();
        recording.plain_chains();
        if survey.input.is_pipe() && context.options.to_pipe() {
            edits.extend(attrs(&recording, survey));
        }
        Ok(Self { recording, edits })
    }
}

/// The edits that convert every sample that has a copy of its stack.
fn samples<'a>(
    survey: &SurveyedRecording<'_>,
    unwinder: &'a Unwinder<'a>,
    machine: u16,
    context: &mut InjectContext<'_>,
) -> Vec<Edit> {
    let recording = &survey.input.recording;
    let parts = context.job.pool.map(survey.chunks.stretches(), |records| {
        ChainConverter { recording, unwinder, machine, cache: Cache::default(), chain: UnwoundChain::default() }
            .read(records)
    });
    let mut all = Vec::new();
    let mut skipped = Skipped::new("sample");
    for (edits, damaged) in parts {
        all.extend(edits);
        skipped.append(damaged);
    }
    skipped.report(&survey.input.shown, &mut context.outcome.warnings);
    all
}

/// In a pipe, the edits that make attrs say so. The recording's events are already converted.
fn attrs(recording: &Recording, survey: &SurveyedRecording<'_>) -> Vec<Edit> {
    let attrs = survey.chunks.stretches().into_iter().flatten().filter(|raw| raw.kind == kind::HEADER_ATTR);
    let changed = attrs.zip(&recording.events).filter_map(|(raw, event)| {
        let insert = attr_record(&raw, event)?;
        Some(Edit { at: raw.offset, remove: raw.bytes.len() as u64, insert })
    });
    changed.collect()
}

struct ChainConverter<'r, 'a> {
    recording: &'r Recording,
    unwinder: &'a Unwinder<'a>,
    machine: u16,
    cache: Cache,
    chain: UnwoundChain,
}

impl ChainConverter<'_, '_> {
    /// The edits of all samples among some records, and the samples that are damaged.
    fn read(mut self, records: Records<'_>) -> (Vec<Edit>, Skipped) {
        let mut skipped = Skipped::new("sample");
        let mut edits = Vec::new();
        for raw in records.filter(|raw| raw.kind == kind::SAMPLE) {
            match self.sample(&raw) {
                Ok(edit) => edits.extend(edit),
                Err(error) => skipped.add(error),
            }
        }
        (edits, skipped)
    }

    fn sample(&mut self, raw: &RawRecord<'_>) -> Result<Option<Edit>> {
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
        let insert = insert.ok_or_else(|| Error::new("is too long with its chain").at(raw.offset))?;
        Ok(Some(Edit { at: raw.offset, remove: raw.bytes.len() as u64, insert }))
    }

    /// Unwinds a sample's copy of its stack into `chain`. Whether there was anything to unwind.
    fn unwind(&mut self, sample: &Sample<'_>) -> bool {
        let (Some(regs), Some(stack)) = (sample.user_regs, sample.user_stack) else { return false };
        let Some(machine) = Machine::of_sample(self.machine, regs.abi) else { return false };
        let registers = &Registers::from_perf(machine, regs.mask, regs.values.iter());
        let pid = sample.pid_tid.map_or(Pid(-1), |(pid, _)| pid);
        let time = sample.time.unwrap_or(Nanos(u64::MAX - 1));
        let stack = UserStack { pid, time, registers, bytes: stack.bytes };
        self.unwinder.unwind(&stack, &mut self.cache, &mut self.chain);
        !self.chain.frames.is_empty()
    }
}
