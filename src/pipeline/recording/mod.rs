//! perf.data → samples whose addresses are known → names.
//!
//! Phases, each borrowing from the ones before:
//!
//! ```text
//! Streams      the records, decompressed
//! Survey       processes, threads, mappings; where the records can be cut
//! Memory       what was mapped, and the dumps and maps that tell of JIT code
//! Resolution   what an address belongs to
//! Samples      rows and chains of places, read in parallel
//! Named        each distinct place named once
//! Tables       the same as a profile
//! ```

mod about;
mod branches;
pub(crate) mod chain_memo;
mod chain_words;
mod counted;
mod examined;
mod locator;
mod merging;
mod named;
mod newest_answers;
mod options;
mod previous_stack;
mod profile;
#[cfg(test)]
mod profile_tests;
mod reading;
pub(crate) mod replaced;
mod resolution;
mod samples;
pub(crate) mod streams;
pub(crate) mod survey;
mod text;
pub(crate) mod walk;

pub(crate) use examined::Examined;
pub(crate) use locator::FrameLocation;
pub(crate) use named::Named;
pub use options::RecordingOptions;
pub(crate) use resolution::{Resolution, check_events, is_wanted};
pub(crate) use samples::{Samples, StackEnd};
pub(crate) use streams::Streams;
pub(crate) use survey::{Memory, Survey};
pub use text::TextOptions;
pub(crate) use text::write_text;

use super::job::{Job, Outcome};
use super::open::Input;
use super::sink::Sink;
use crate::error::{Result, Warnings};
use crate::model::stacks::Keep;
use crate::parallel::join;
use crate::records::perf_data::Recording;
use examined::{code_shares, count_frames};
use profile::Tables;
use std::path::Path;

/// A recording's samples, named.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// Events and features.
    pub(crate) recording: Recording,
    /// Rows and stacks.
    pub(crate) samples: Samples,
    /// The names of the stacks' spots.
    pub(crate) named: Named,
    /// The processor, as ELF's `e_machine`.
    pub(crate) machine: u16,
}

/// Reads and names what the options ask for, with a row for each sample.
pub(crate) fn load(
    input: &Input,
    path: &Path,
    options: &RecordingOptions,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Loaded> {
    let (options, warnings) = (&*options.for_input(input), &mut outcome.warnings);
    let streams = Streams::open(input, path, &job.pool, warnings)?;
    check_events(
        &streams.recording.events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(),
        &options.event,
    )?;
    let survey = Survey::new(&streams.recording, &streams.list(), path, warnings);
    let memory = Memory::find(&survey, &options.sources, warnings);
    let resolution = Resolution::new(&survey, &memory, options, job, warnings);
    outcome.summary.extend(resolution.sources.remarks());
    let samples = resolution.samples(Keep::EachRow, job, warnings)?;
    let named = resolution.name(&samples.chains, job, warnings);
    let machine = resolution.machine();
    resolution.finish(warnings);
    outcome.count_frames(count_frames(&samples, &named), path);
    outcome.count_code(code_shares(&samples, &named, &streams.recording.events));
    Ok(Loaded { recording: streams.recording, samples, named, machine })
}

/// Requests for more than stacks, once for each recording, before its rows go on.
pub(crate) type Ask<'a> = dyn FnMut(&Examined<'_>, &Job, &mut Warnings) + 'a;

/// Reads and names what the options ask for, and pushes the rows into a sink.
pub(super) fn push(
    input: &Input,
    path: &Path,
    options: &RecordingOptions,
    (sink, ask): (&mut dyn Sink, &mut Ask<'_>),
    job: &Job,
    outcome: &mut Outcome,
) -> Result<()> {
    let (options, warnings) = (&*options.for_input(input), &mut outcome.warnings);
    let streams = Streams::open(input, path, &job.pool, warnings)?;
    let survey = Survey::new(&streams.recording, &streams.list(), path, warnings);
    let memory = Memory::find(&survey, &options.sources, warnings);
    let resolution = Resolution::new(&survey, &memory, options, job, warnings);
    outcome.summary.extend(resolution.sources.remarks());
    // Rows that go on in batches are read again when all stacks are known and named.
    let keep = if sink.in_batches() { Keep::Sums } else { sink.keep() };
    if !survey.recording.has_stacks() {
        let said =
            "no call chains were recorded: each stack is its innermost function alone (perf record -g records them)";
        outcome.estimates.push(format!("{}: {said}", path.display()));
    }
    let samples = resolution.samples(keep, job, warnings)?;
    let named = resolution.name(&samples.chains, job, warnings);
    let input_len = input.bytes.len() as u64;
    ask(&Examined { resolution: &resolution, samples: &samples, named: &named, input_len }, job, warnings);
    let (recording, keep) = (survey.recording, sink.keep());
    let (counts, mut tables) =
        job.pool.install(|| join(|| count_frames(&samples, &named), || Tables::new(recording, &samples, &named, keep)));
    let shares = code_shares(&samples, &named, &recording.events);
    tables.profile.check()?;
    tables.profile.about = about::about(&resolution, &samples, counts, options);
    if sink.in_batches() {
        let tables = resolution.each_chunk(samples, tables, job, |rows| sink.take(rows))?;
        sink.end(&tables.profile)?;
    } else {
        let rows = samples.rows;
        tables.push(&rows);
        drop(rows);
        sink.take(&mut tables.profile)?;
        sink.end(&tables.profile)?;
    }
    resolution.finish(warnings);
    outcome.count_frames(counts, path);
    outcome.count_code(shares);
    Ok(())
}
