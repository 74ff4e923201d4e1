//! `inject` reads a perf.data file and writes another one, with mapping records that let perf name JIT code. It also
//! adds names to profiles of other formats that contain bare addresses (`profile`).
//!
//! The phases for a recording, each borrowing from the ones before:
//!
//! ```text
//! survey     processes and their mappings; jitdumps and perf maps, and the JIT code in them
//! coverage   which of this code samples use, and which sample uses it first
//! images     ELF images of the used code
//! edits      mapping records before the first uses; build IDs; call chains and addresses of samples
//! output     the recording with its edits
//! ```
//!
//! # What changes
//!
//! Mapping records are inserted. All other records and features, including FINISHED_ROUND, are copied byte for byte and
//! in order, with the exceptions below. Each of them has a test in tests/end_to_end/inject:
//!
//! | what changes | why | test |
//! |---|---|---|
//! | the offsets in the AUXTRACE feature | the records they point to move | `the_index_of_traces_points_at_them_wherever_they_move` |
//! | COMPRESSED records are unpacked, and the COMPRESSED feature is removed | jitdump mappings may be inside | `a_marker_inside_compressed_records_is_found` |
//! | the streams of a directory are concatenated, and the DIR_FORMAT feature is removed | the output is one stream | `a_directory_becomes_one_plain_file_and_that_is_reported` |
//! | file → pipe: header, attrs, features, tracepoint formats and build IDs become records; the AUXTRACE, STAT and BRANCH_STACK features are removed | a pipe has no sections | `files_and_pipes_of_both_byte_orders_become_each_other` |
//! | pipe → file: the reverse; sections keep the padding that they had as records | a file has no such records | `trace_point_formats_pass_from_file_to_pipe_and_back` |
//! | build IDs are added: feature entries, records, or MMAP2 in place of MMAP; the images are added to a BUILD_ID feature that exists | options request them; perf archive needs them | `build_ids_of_other_files_are_added_as_perf_inject_adds_them`, `perf_archive_takes_cached_images_along` |
//! | samples and attrs lose their stack copies | `--convert-callchain` | tests/end_to_end/convert_callchain.rs |
//! | call chains lose entries for which perf would drop the whole chain | `--drop-bad-chain-entries` | `perf_prints_the_jit_frames_of_chains_without_their_bad_entries` |
//! | instruction pointers, call chains and branches in JIT code get new addresses | `--relocate` | `hotspot_shows_what_ran_though_addresses_were_used_again_and_code_moved` |
//! | an incomplete last record is removed | no reader could use it | `every_prefix_of_a_recording_keeps_its_whole_samples` |

mod coverage;
mod edits;
mod images;
mod options;
mod output;
mod profile;
mod survey;

pub use options::{BuildIdMode, InjectOptions, KnownBuildIds};

use crate::error::{Error, Result};
use crate::io::{OutPath, Output, Run};
use crate::pipeline::open;
use crate::pipeline::progress::Progress;
use crate::pipeline::terminal::refuse_terminal;
use crate::pipeline::{Job, Outcome};
use coverage::{CodeSelection, Coverage};
use edits::PlannedEdits;
use edits::samples::SampleChanges;
use images::JitImages;
use options::InjectContext;
use output::summary::Summary;
use survey::{JitCode, PlainRecording, SurveyedRecording};

/// The number of passes over the records (survey, coverage, output), for the progress display.
const PASSES: u64 = 3;

/// Injects JIT code into a recording, or names into another profile, and returns the summary and warnings.
pub fn run(options: &InjectOptions, job: &Job) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    if options.output.is_terminal() {
        return Err(refuse_terminal("binary data"));
    }
    // `begin_copying`: the output is a copy of the input with names, so only users who may read the input may read it.
    let run = Run::begin_copying();
    let input = open::Input::open(&options.input).map_err(|error| error.in_file(&open::shown(&options.input)))?;
    check_output(input.format.name, &options.output)?;
    // `open` parses a profile with unnamed addresses. An input of a format without it must be perf.data;
    // `run_recording` refuses all others.
    match input.format.rewriter.and_then(|rewriter| rewriter.open) {
        Some(unsymbolized) => profile::run(&input, unsymbolized, options, job, &run, &mut outcome)?,
        None => {
            let options = &*options.for_input(&input);
            run_recording(&input, options, job, &run, &mut outcome)?;
        }
    }
    Ok(outcome)
}

/// Fails if the output's file name has the extension of another format than the input's: `inject` writes the format
/// that it reads.
fn check_output(format: &str, output: &OutPath) -> Result<()> {
    /// The file extensions of all formats that `inject` writes.
    const ENDINGS: &[&str] = &["data", "json", "otlp", "pb", "pprof"];
    let OutPath::Path(path) = output else { return Ok(()) };
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    // The extension of the compression doesn't matter: the output is compressed like the input.
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    let Some((_, ending)) = name.rsplit_once('.') else { return Ok(()) };
    let own_endings: &[&str] = match format {
        "firefox" => &["json"],
        "otlp" => &["otlp", "pb"],
        "pprof" => &["pb", "pprof"],
        _ => &["data"],
    };
    if own_endings.contains(&ending) || !ENDINGS.contains(&ending) {
        return Ok(());
    }
    let message =
        format!("the input is {format}, and inject keeps the format of its input, so it cannot write a .{ending} file");
    let error = Error::usage(message);
    Err(error.with_remedy(Some("jitgraft export converts profiles".to_owned())))
}

/// Injects into a perf.data file, running all phases in order.
fn run_recording(
    input: &open::Input,
    options: &InjectOptions,
    job: &Job,
    run: &Run,
    outcome: &mut Outcome,
) -> Result<()> {
    let input = PlainRecording::read(input, &open::shown(&options.input), &job.pool, &mut outcome.warnings)?;
    let output = Output::create(&options.output, run)?;
    let progress = &Progress::new((input.records().len() as u64).saturating_mul(PASSES), job);
    let context = &mut InjectContext { options, job, run, progress, outcome };
    // Read the recording, and find the JIT code that its samples use.
    let survey = SurveyedRecording::read(&input, context);
    let sources = survey.find_sources(context);
    let code = JitCode::load(&sources, &survey, context);
    let coverage = Coverage::find(&survey, &code, context);
    let samples = SampleChanges::find(&survey, &code, context)?;
    let selection = CodeSelection::new(&code.loaded.map, coverage.uses, &survey, options);
    // Write the code to ELF images, and plan the mapping records that refer to them.
    let images = JitImages::write(&selection, code.machine, code.mode, &survey, context)?;
    let planned = PlannedEdits::new(&survey, &images, samples, context)?;
    let summary = Summary {
        survey: &survey,
        loaded: &code.loaded,
        samples: &coverage.counts,
        images: &images,
        inserted: planned.inserted,
    };
    output::write(&survey, planned, &images, output, context)?;
    summary.report(context);
    output::fill_cache(&images, &sources, context);
    // If anything failed before this line, the images that this run created are deleted.
    images.keep();
    Ok(())
}
