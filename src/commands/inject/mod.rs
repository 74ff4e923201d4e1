//! `inject`: perf.data in, perf.data out, with mapping records that show perf the JIT code; or a profile of another
//! format that holds bare addresses (`profile`), with names for them.
//!
//! The phases of a recording, each borrowing from the ones before:
//!
//! ```text
//! survey     who ran, what was mapped where; the dumps and maps, and the JIT code that they tell of
//! coverage   which of this code samples use, and which sample is the first to do so
//! images     ELF images of the code that is used
//! edits      mapping records before the first uses; build IDs; call chains and addresses of samples
//! output     the recording with its edits
//! ```
//!
//! # What is changed
//!
//! Mapping records come in. Every other record and feature is passed on byte for byte and in order, FINISHED_ROUND
//! with them, but for this, each with a test in tests/end_to_end/inject:
//!
//! | what | why | test |
//! |---|---|---|
//! | the offsets in the AUXTRACE feature | its records move | `the_index_of_traces_points_at_them_wherever_they_move` |
//! | COMPRESSED records become what is in them, the COMPRESSED feature goes | markers are inside | `a_marker_inside_compressed_records_is_found` |
//! | a directory's streams follow one another, the DIR_FORMAT feature goes | the output is one stream | `a_directory_becomes_one_plain_file_and_that_is_reported` |
//! | file → pipe: header, attrs, features, trace point formats and build IDs become records; AUXTRACE, STAT and BRANCH_STACK features go | a pipe has no sections | `files_and_pipes_of_both_byte_orders_become_each_other` |
//! | pipe → file: the reverse; sections keep the padding that they had as records | a file has no such records | `trace_point_formats_pass_from_file_to_pipe_and_back` |
//! | build IDs: entries of the feature, records, MMAP2 in place of MMAP; those of the images in a BUILD_ID feature that
//! is there | an option requests them; perf archive | `build_ids_of_other_files_are_added_as_perf_inject_adds_them`,
//! `perf_archive_takes_cached_images_along` |
//! | samples and attrs lose copies of stacks | `--convert-callchain` | tests/end_to_end/convert_callchain.rs |
//! | call chains lose the entries for which perf would drop them whole | `--drop-bad-chain-entries` | `perf_prints_the_jit_frames_of_chains_without_their_bad_entries` |
//! | ips, call chains and branches in JIT code | `--relocate` | `hotspot_shows_what_ran_though_addresses_were_used_again_and_code_moved` |
//! | a last record that is not whole goes | nobody could read it | `every_prefix_of_a_recording_keeps_its_whole_samples` |

mod coverage;
mod edits;
mod images;
mod options;
mod output;
mod profile;
mod survey;

pub use options::{BuildIdMode, InjectOptions, KnownBuildIds};

use crate::error::Result;
use crate::io::{self, Output, Run};
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

/// The number of passes over the records: the survey, the coverage, the output.
const PASSES: u64 = 3;

/// Injects.
pub fn run(options: &InjectOptions, job: &Job) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    if options.output.is_terminal() {
        return Err(refuse_terminal("binary data"));
    }
    let run = Run::begin();
    let input = open::Input::open(&options.input).map_err(|error| error.in_file(&open::shown(&options.input)))?;
    match input.format.rewriter.and_then(|rewriter| rewriter.open) {
        Some(unsymbolized) => profile::run(&input, unsymbolized, options, job, &run, &mut outcome)?,
        None => {
            let options = &*options.for_input(&input);
            run_recording(input, options, job, &run, &mut outcome)?;
        }
    }
    Ok(outcome)
}

fn run_recording(
    input: open::Input,
    options: &InjectOptions,
    job: &Job,
    run: &Run,
    outcome: &mut Outcome,
) -> Result<()> {
    let input = PlainRecording::read(input, &open::shown(&options.input), &job.pool, &mut outcome.warnings)?;
    let output = Output::create_with_mode(&options.output, io::mode_of(&options.input), run)?;
    let progress = &Progress::new((input.records().len() as u64).saturating_mul(PASSES), job);
    let context = &mut InjectContext { options, job, run, progress, outcome };
    let survey = SurveyedRecording::read(&input, context);
    let sources = survey.find_sources(context);
    let code = JitCode::load(&sources, &survey, context);
    let coverage = Coverage::find(&survey, &code, context);
    let samples = SampleChanges::find(&survey, &code, context)?;
    let (selection, ids) = CodeSelection::new(code.map, coverage.uses, &survey, options)?;
    let images = JitImages::write(&selection, (code.machine, code.mode), &survey, context)?;
    let planned = PlannedEdits::new(&survey, &images, samples, &ids, context)?;
    let summary = Summary {
        survey: &survey,
        loaded: &code.loaded,
        samples: &coverage.counts,
        images: &images,
        inserted: planned.inserted,
    };
    output::write(&survey, planned, &images, output, context)?;
    summary.tell(context);
    output::fill_cache(&images, &sources, context);
    images.keep();
    Ok(())
}
