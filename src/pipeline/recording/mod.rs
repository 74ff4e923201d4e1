//! Reads perf.data: symbolizes the samples and turns them into a profile.
//!
//! The phases, each of which borrows from the previous ones:
//!
//! ```text
//! Streams         the records, decompressed
//! Survey          processes, threads, mappings; where to split the records into chunks
//! Memory          address spaces, and the jitdumps and perf maps that name JIT code
//! Resolution      what an address belongs to
//! Samples         rows and call chains of locations, read in parallel
//! Named           names of each distinct location
//! ProfileTables   the locations and call chains as frames and stacks of a profile
//! ```

mod about;
mod branches;
pub(crate) mod chain_memo;
pub(crate) mod counted;
mod examined;
mod frame_location;
mod named;
mod one_by_one;
mod options;
mod profile;
#[cfg(test)]
mod profile_tests;
mod reading;
mod record_starts;
pub(crate) mod replaced;
mod resolution;
mod samples;
pub(crate) mod streams;
pub(crate) mod survey;
mod text;
mod truncation;

pub(crate) use examined::Examined;
pub(crate) use frame_location::FrameLocation;
pub(crate) use named::Named;
pub(crate) use one_by_one::{OneSample, for_each_sample};
pub use options::RecordingOptions;
pub(crate) use resolution::{Resolution, check_events, is_wanted};
pub(crate) use samples::{Samples, StackEnd};
pub(crate) use streams::Streams;
pub(crate) use survey::{Memory, Survey};
pub use text::TextOptions;
pub(crate) use text::{unrecorded_fields, write_text};
pub(crate) use truncation::goes_astray;

use super::job::{Job, Outcome};
use super::open::Input;
use super::sink::Sink;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::formats::perf_data::{Event, Recording};
use crate::formats::tracepoint::TracepointFormats;
use crate::model::chains::PlaceId;
use crate::model::stacks::Keep;
use crate::parallel::join;
use crate::symbolize::symbols::data::Variable;
use examined::{code_shares, count_frames};
use profile::ProfileTables;
use rustc_hash::FxHashMap;
use std::path::Path;

/// A recording with samples and names, in memory.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The recording's events.
    pub(crate) events: Vec<Event>,
    /// The samples as rows, with their call chains.
    pub(crate) samples: Samples,
    /// The names of all code locations that occur in `samples`.
    pub(crate) named: Named,
    /// The recorded machine type (`e_machine` of ELF).
    pub(crate) machine: u16,
    /// The variables at data addresses of samples, by location.
    pub(crate) variables: FxHashMap<PlaceId, Variable>,
    /// The formats of tracepoints, if tracepoint data is kept; otherwise empty.
    pub(crate) tracepoints: TracepointFormats,
    /// The paths of control groups, by ID.
    pub(crate) cgroups: FxHashMap<u64, Box<[u8]>>,
}

/// Reads and symbolizes the samples that the options ask for, for commands that print them one by one. Each sample has
/// its own row. Also names the variables that samples accessed, and the kernel functions that tracepoints print.
pub(crate) fn load(
    input: &Input,
    path: &Path,
    options: &RecordingOptions,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Loaded> {
    let Outcome { warnings, summary, .. } = outcome;
    let (loaded, counts, shares) = with_resolution(input, path, options, job, warnings, |resolution, warnings| {
        resolution.check_events()?;
        summary.extend(resolution.sources.remarks());
        let recording = resolution.survey.recording;
        let (samples, named) = resolution.named_samples(Keep::EachRow, job, warnings)?;
        // The distinct locations of data that samples accessed, to name the variables there.
        let mut data_places: Vec<PlaceId> =
            samples.other_fields.iter().filter_map(|other_fields| other_fields.addr_place).collect();
        data_places.sort_unstable();
        data_places.dedup();
        let variables = resolution.variables(&samples.chains, &data_places);
        let mut tracepoints =
            if options.keep_trace { tracepoints(recording, path, warnings) } else { Default::default() };
        // Some tracepoints print kernel functions by name, so find the functions' addresses in their samples.
        let mut function_addresses = Vec::new();
        for (row, other_fields) in samples.rows.iter().zip(&samples.other_fields) {
            if let Some(raw) = &other_fields.trace {
                let attr = &recording.events[row.event as usize].attr;
                if attr.is_tracepoint() {
                    function_addresses.extend(tracepoints.function_addresses(attr.config, raw));
                }
            }
        }
        tracepoints.set_functions(resolution.kernel_functions(function_addresses));
        let counts = count_frames(&samples, &named);
        let shares = code_shares(&samples, &named, &recording.events);
        let loaded = Loaded {
            events: recording.events.clone(),
            samples,
            named,
            machine: resolution.machine(),
            variables,
            tracepoints,
            cgroups: resolution.survey.processes.cgroup_paths.clone(),
        };
        Ok((loaded, counts, shares))
    })?;
    outcome.count_frames(counts, path);
    outcome.count_code(shares);
    Ok(loaded)
}

/// Parses the formats of a recording's tracepoints, which say how to print their fields. Empty, with a warning, if they
/// can't be read; empty without a warning if the recording has no tracepoint events.
fn tracepoints(recording: &Recording, path: &Path, warnings: &mut Warnings) -> TracepointFormats {
    if !recording.has_tracepoints() {
        return TracepointFormats::default();
    }
    let mut skipped = Skipped::new("tracepoint format");
    let formats = match recording.tracing_data() {
        Some(section) => TracepointFormats::parse(&section.bytes, section.offset, &mut skipped),
        None => Err(Error::new("the recording does not contain them")),
    };
    skipped.report(path, warnings);
    formats.unwrap_or_else(|error| {
        let message = "tracepoints are printed without their fields, because the formats of the fields (TRACING_DATA) \
                       cannot be read";
        warnings.push(Error::new(message).because(error).in_file(path).into_warning());
        TracepointFormats::default()
    })
}

/// A callback for commands that need more of a recording than stacks. It is called once per recording, before the
/// recording's rows are passed on.
pub(crate) type Inspect<'a> = dyn FnMut(&Examined<'_>, &Job, &mut Warnings) + 'a;

/// Reads and symbolizes the samples that the options ask for, and pushes their rows into a sink. An event that the
/// options name may be missing, because another input may have it.
pub(super) fn push(
    input: &Input,
    path: &Path,
    options: &RecordingOptions,
    sink: &mut dyn Sink,
    inspect: &mut Inspect<'_>,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<()> {
    let Outcome { warnings, summary, estimates, .. } = outcome;
    let (counts, shares) = with_resolution(input, path, options, job, warnings, |resolution, warnings| {
        summary.extend(resolution.sources.remarks());
        let recording = resolution.survey.recording;
        if !recording.has_stacks() {
            let estimate =
                "no call chains were recorded, so stacks only have the innermost function; record with jitgraft record";
            estimates.push(format!("{}: {estimate}", path.display()));
        }
        // If the sink wants batches, this first pass only reads sums, to find and name all stacks. A second pass
        // (`each_chunk` below) reads the rows.
        let first_keep = if sink.wants_batches() { Keep::Sums } else { sink.keep() };
        let (samples, named) = resolution.named_samples(first_keep, job, warnings)?;
        let input_len = input.bytes.len() as u64;
        let examined = Examined { resolution, samples: &samples, named: &named, input_len };
        inspect(&examined, job, warnings);
        // Why stacks are truncated, if so many are that it matters.
        let truncation = truncation::describe(&examined);
        estimates.extend(truncation.as_ref().map(|sentence| format!("{}: {sentence}", path.display())));
        let final_keep = sink.keep();
        let (counts, mut tables) = job.pool.install(|| {
            join(|| count_frames(&samples, &named), || ProfileTables::new(recording, &samples, &named, final_keep))
        });
        let shares = code_shares(&samples, &named, &recording.events);
        tables.profile.check()?;
        tables.profile.about = about::collect_facts(resolution, &samples, counts, options);
        tables.profile.about.truncation = truncation;
        if sink.wants_batches() {
            let tables = resolution.each_chunk(samples, tables, job, |rows| sink.take(rows))?;
            sink.end(&tables.profile)?;
        } else {
            let rows = samples.rows;
            tables.push(&rows);
            // The profile has a copy of all rows now. Free the rows here before the sink makes a second copy.
            drop(rows);
            sink.take(&mut tables.profile)?;
            sink.end(&tables.profile)?;
        }
        Ok((counts, shares))
    })?;
    outcome.count_frames(counts, path);
    outcome.count_code(shares);
    Ok(())
}

/// Surveys a recording and reads the files that name its JIT code, then calls `work` with what is needed to resolve its
/// addresses. No sample has been read yet.
pub(crate) fn with_resolution<O>(
    input: &Input,
    path: &Path,
    options: &RecordingOptions,
    job: &Job,
    warnings: &mut Warnings,
    work: impl FnOnce(&Resolution<'_>, &mut Warnings) -> Result<O>,
) -> Result<O> {
    // If the input is an archive, its files are searched, too.
    let options = &*options.for_input(input);
    let streams = Streams::open(input, path, &job.pool, warnings)?;
    let survey = Survey::new(&streams.recording, &streams.list, path, warnings);
    let memory = Memory::find(&survey, &options.sources, warnings);
    let resolution = Resolution::new(&survey, &memory, options, job, warnings);
    let result = work(&resolution, warnings)?;
    // Only now is it known which files were opened for symbols, and what was wrong with them.
    resolution.finish(warnings);
    Ok(result)
}

/// Reads and names the samples that the options ask for, and calls `work` with the result. Like [`with_resolution`], it
/// surveys the recording before, and reports afterwards what was wrong with files that were opened. Fails if the
/// options name an event that the recording lacks.
pub(crate) fn with_samples<O>(
    input: &Input,
    path: &Path,
    options: &RecordingOptions,
    keep: Keep,
    job: &Job,
    warnings: &mut Warnings,
    work: impl FnOnce(&Examined<'_>, &mut Warnings) -> Result<O>,
) -> Result<O> {
    with_resolution(input, path, options, job, warnings, |resolution, warnings| {
        resolution.check_events()?;
        let (samples, named) = resolution.named_samples(keep, job, warnings)?;
        let input_len = input.bytes.len() as u64;
        work(&Examined { resolution, samples: &samples, named: &named, input_len }, warnings)
    })
}
