//! `--convert-callchain`: turns copies of user stacks into plain call chains.
//!
//! The new chains contain return addresses as they are on the stack: each is the address after a call instruction. The
//! kernel writes chains in the same way when it records with frame pointers.

use crate::commands::inject::edits::build_ids::finder::counted_files;
use crate::commands::inject::options::InjectContext;
use crate::commands::inject::survey::{JitCode, SurveyedRecording};
use crate::error::{Error, Result, Skipped, Warning, Warnings};
use crate::formats::perf_data::{
    Edit, RawRecord, Recording, Records, Sample, USER_DEFERRED, attr_record, copies_stacks, kind, with_chain,
};
use crate::model::Pid;
use crate::model::abi::machine_name;
use crate::model::lasting::UNTIMED;
use crate::model::process::CpuMode;
use crate::symbolize::address_space::AddressSpaces;
use crate::symbolize::dso::{DsoId, DsoKind};
use crate::symbolize::symbolizer::Symbolizer;
use crate::symbolize::symbols::{files::SearchOptions, images::Images};
use crate::symbolize::unwind::registers::{Machine, Registers};
use crate::symbolize::unwind::{Cache, MAX_DEPTH, Unwinder, UnwoundChain, UserStack};
use linux_perf_event_reader::constants as abi;
use rustc_hash::FxHashMap;

/// A recording whose stack copies have become call chains.
#[derive(Debug)]
pub(super) struct PlainChains {
    /// The output's header and events. The events now announce call chains instead of stack copies.
    pub(super) recording: Recording,
    /// The edits to the records.
    pub(super) edits: Vec<Edit>,
}

impl PlainChains {
    /// Unwinds all stack copies. Fails if unwinding isn't supported for the recorded machine.
    pub(super) fn unwind(
        survey: &SurveyedRecording<'_>,
        code: &JitCode<'_>,
        context: &mut InjectContext<'_>,
    ) -> Result<Self> {
        let JitCode { loaded, machine, .. } = code;
        if !Machine::is_any_known(*machine) {
            return Err(Error::new(format!(
                "jitgraft cannot unwind stacks of the recorded CPU architecture ({})",
                machine_name(*machine)
            )));
        }
        let search = SearchOptions { machine: Some(*machine), ..context.search(&survey.first_pass.processes) };
        let files = Images::new(survey.spaces.dsos().iter(), search);
        let symbolizer = Symbolizer { spaces: &survey.spaces, codes: &loaded.map };
        let unwinder = Unwinder::new(symbolizer, &files, MAX_DEPTH);
        let converted = convert_samples(survey, &unwinder, *machine, context)?;
        let mut edits = converted.edits;
        converted.skipped.report(&survey.input.shown, &mut context.outcome.warnings);
        warn_about_missing(survey, &converted.stopped_in, &files, &mut context.outcome.warnings);
        context.outcome.warnings.append(files.into_warnings());
        let mut recording = survey.input.recording.clone();
        recording.convert_to_plain_chains();
        // If input and output are both pipes, the records with the attrs are copied to the output, so edit these
        // records. Otherwise, the output's attrs are built from `recording`.
        if survey.input.is_pipe() && context.options.writes_pipe() {
            edits.extend(edit_attrs(&recording, survey));
        }
        Ok(Self { recording, edits })
    }
}

/// Warns about files that aren't on this machine: without their unwind data, unwound stacks end early in them.
/// `stopped_in` has the number of stacks that end early in each file, whether the file is here or not.
fn warn_about_missing(
    survey: &SurveyedRecording<'_>,
    stopped_in: &FxHashMap<DsoId, u64>,
    files: &Images<'_>,
    warnings: &mut Warnings,
) {
    let mut missing = Vec::new();
    for (id, stacks) in stopped_in {
        let dso = survey.spaces.dsos().get(*id);
        let is_file = dso.kind == DsoKind::File || dso.is_vdso();
        if is_file && files.get(*id).is_none() {
            missing.push((dso.label(), *stacks));
        }
    }
    if !missing.is_empty() {
        let message = format!(
            "unwound stacks end early in {}, because the files that ran are missing; pass the recorded machine's root \
             with --symfs DIR, or a directory of files by build ID with --debug-dir DIR",
            counted_files(missing, "stack")
        );
        warnings.push(Warning::new(message));
    }
}

/// What became of the samples of a chunk, or of the whole recording: edits that replace stack copies by call chains,
/// and counts for warnings.
struct ConvertedSamples {
    edits: Vec<Edit>,
    /// Samples that couldn't be read, and those whose new call chain would make the record too long.
    skipped: Skipped,
    /// The number of stacks that end before the thread's entry function, by the file in which they end.
    stopped_in: FxHashMap<DsoId, u64>,
}

impl ConvertedSamples {
    fn new() -> Self {
        Self { edits: Vec::new(), skipped: Skipped::new("sample"), stopped_in: FxHashMap::default() }
    }
}

/// Converts the stack copies of all samples to call chains. Chunks of the recording are converted in parallel; each
/// worker has one converter for all its chunks.
fn convert_samples<'a>(
    survey: &SurveyedRecording<'_>,
    unwinder: &'a Unwinder<'a>,
    machine: u16,
    context: &InjectContext<'_>,
) -> Result<ConvertedSamples> {
    let new_converter = || ChainConverter {
        recording: &survey.input.recording,
        spaces: &survey.spaces,
        unwinder,
        machine,
        cache: Cache::default(),
        chain: UnwoundChain::default(),
        converted: ConvertedSamples::new(),
    };
    let mut all = ConvertedSamples::new();
    context.job.pool.stream_with(
        survey.first_pass.chunks.list().into_iter(),
        new_converter,
        ChainConverter::convert,
        |chunk| {
            all.edits.extend(chunk.edits);
            all.skipped.append(chunk.skipped);
            for (dso, stacks) in chunk.stopped_in {
                *all.stopped_in.entry(dso).or_default() += stacks;
            }
            Ok(())
        },
    )?;
    Ok(all)
}

/// Plans edits to the attr records of a pipe: each gets the attributes of its event in `recording`, where the events
/// have call chains instead of stack copies.
fn edit_attrs(recording: &Recording, survey: &SurveyedRecording<'_>) -> Vec<Edit> {
    let attrs = survey.first_pass.chunks.list().into_iter().flatten().filter(|raw| raw.kind == kind::HEADER_ATTR);
    let mut edits = Vec::new();
    // HEADER_ATTR records come in the order of the events.
    for (raw, event) in attrs.zip(&recording.events) {
        if let Some(insert) = attr_record(&raw, event) {
            edits.push(Edit { at: raw.offset, remove: raw.bytes.len() as u64, insert });
        }
    }
    edits
}

/// Converts samples, for one worker.
struct ChainConverter<'r, 'a> {
    recording: &'r Recording,
    spaces: &'r AddressSpaces,
    unwinder: &'a Unwinder<'a>,
    /// The recorded machine, as ELF's `e_machine`.
    machine: u16,
    cache: Cache,
    /// The result of unwinding the current sample.
    chain: UnwoundChain,
    /// What has been converted since the last chunk was returned.
    converted: ConvertedSamples,
}

impl ChainConverter<'_, '_> {
    /// Converts all samples among the records of a chunk, and returns the results.
    fn convert(&mut self, records: Records<'_>) -> ConvertedSamples {
        for raw in records {
            if raw.kind != kind::SAMPLE {
                continue;
            }
            match self.convert_sample(&raw) {
                Ok(edit) => self.converted.edits.extend(edit),
                Err(error) => self.converted.skipped.add(error),
            }
        }
        std::mem::replace(&mut self.converted, ConvertedSamples::new())
    }

    /// The edit that replaces a sample's stack copy by a call chain. `None` if the sample's event doesn't copy stacks.
    fn convert_sample(&mut self, raw: &RawRecord<'_>) -> Result<Option<Edit>> {
        let sample = self.recording.sample(raw)?;
        let attr = &self.recording.events[sample.event].attr;
        if !copies_stacks(attr) {
            return Ok(None);
        }
        // The kernel's part of the chain stays as it is.
        let mut words: Vec<u64> = sample.callchain.iter().take_while(|&word| word != abi::PERF_CONTEXT_USER).collect();
        if self.unwind(&sample) {
            words.push(abi::PERF_CONTEXT_USER);
            words.extend(self.chain.frames.iter().map(|frame| frame.raw().0));
        } else if let Some(cookie) = sample.cookie {
            // The sample has no stack copy. Its user part may be in a separate record (PERF_RECORD_CALLCHAIN_DEFERRED),
            // and the cookie says in which. Keep the reference.
            words.extend([USER_DEFERRED, cookie]);
        }
        let insert = with_chain(raw, attr, &words)?;
        let too_long =
            || Error::new("the sample's record would be too long with the unwound call chain").at_offset(raw.offset);
        let insert = insert.ok_or_else(too_long)?;
        Ok(Some(Edit { at: raw.offset, remove: raw.bytes.len() as u64, insert }))
    }

    /// Unwinds the sample's stack copy into `self.chain`. Returns false if the sample has nothing to unwind.
    fn unwind(&mut self, sample: &Sample<'_>) -> bool {
        let (Some(regs), Some(stack)) = (sample.user_regs, sample.user_stack) else { return false };
        let Some(machine) = Machine::from_sample(self.machine, regs.abi) else { return false };
        let registers = &Registers::from_perf(machine, regs.mask, regs.values.iter());
        // A sample without a process gets an ID that no process has, so that no mapping is found for its addresses.
        let pid = sample.pid_tid.map_or(Pid(-1), |(pid, _)| pid);
        let time = sample.time.unwrap_or(UNTIMED);
        let stack = UserStack { pid, time, registers, bytes: stack.bytes };
        self.unwinder.unwind(&stack, &mut self.cache, &mut self.chain);
        // If the unwound stack ends before the thread's first function (`truncated`), count the file of its last frame:
        // the unwind data of that file may be missing.
        if self.chain.truncated
            && let Some(last) = self.chain.frames.last()
            && let Some(place) = self.spaces.lookup(pid, last.for_lookup(), time, CpuMode::User)
        {
            *self.converted.stopped_in.entry(place.dso).or_default() += 1;
        }
        !self.chain.frames.is_empty()
    }
}
