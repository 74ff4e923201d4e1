//! `inject`: perf.data in, perf.data out, with mapping records that show perf the JIT code.
//!
//! Two passes over the records. The first tells the processes, finds the code that samples use (`coverage`) and,
//! with it, the images (`images`) and the list of edits (`edits`). The second passes the records on with these edits
//! (`output`). Code can also be given addresses of its own (`edits::samples::relocations`).
//!
//! # What is changed
//!
//! Mapping records come in. Every other record and feature is passed on byte for byte and in order, FINISHED_ROUND
//! with them, but for this, each with a test in tests/inject:
//!
//! | what | why | test |
//! |---|---|---|
//! | the offsets in the AUXTRACE feature | its records move | `the_index_of_traces_points_at_them_wherever_they_move` |
//! | COMPRESSED records become what is in them, the COMPRESSED feature goes | markers are inside | `a_marker_inside_compressed_records_is_found` |
//! | a directory's streams follow one another, the DIR_FORMAT feature goes | the output is one stream | `a_directory_becomes_one_plain_file_and_that_is_said` |
//! | file → pipe: header, attrs, features, trace point formats and build IDs become records; AUXTRACE, STAT and BRANCH_STACK features go | a pipe has no sections | `files_and_pipes_of_both_byte_orders_become_each_other` |
//! | pipe → file: the reverse; sections keep the padding that they had as records | a file has no such records | `trace_point_formats_pass_from_file_to_pipe_and_back` |
//! | build IDs: entries of the feature, records, MMAP2 in place of MMAP; those of the images in a BUILD_ID feature that is there | an option asks for them; perf archive | `build_ids_of_other_files_are_added_as_perf_inject_adds_them`, `perf_archive_takes_cached_images_along` |
//! | samples and attrs lose copies of stacks | `--convert-callchain` | tests/convert_callchain.rs |
//! | ips, call chains and branches in JIT code | `--relocate` | `hotspot_shows_what_ran_though_addresses_were_used_again_and_code_moved` |
//! | a last record that is not whole goes | nobody could read it | `every_prefix_of_a_recording_keeps_its_whole_samples` |

mod coverage;
mod edits;
mod images;
mod options;
mod output;
mod survey;

pub use options::{BuildIdMode, InjectOptions, KnownBuildIds};

use crate::error::{Error, Result, Warning};
use crate::formats::elf_image::Target;
use crate::io::{self, InPath, OutPath, Output};
use crate::model::Pid;
use crate::model::process::Processes;
use crate::pipeline::progress::Progress;
use crate::pipeline::recording::streams::RecordBytes;
use crate::pipeline::recording::survey::Survey;
use crate::pipeline::{Job, Outcome};
use crate::resolve::address_space::AddressSpaces;
use crate::sources::{self, Loaded};
use coverage::keep_wanted;
use coverage::search::Search;
use edits::build_ids;
use edits::mapping_records::Plan;
use edits::samples::{Samples, has_user_stacks};
use images::{AddressAllocator, Images, Wanted};
use output::{build_id_cache, summary};
use std::path::{Path, PathBuf};
use survey::input::Input;

/// What most recordings are of, where they do not say.
const EM_X86_64: u16 = 62;
/// Records go by three times: told, looked at, written.
const PASSES: u64 = 3;

/// Injects.
pub fn run(options: &InjectOptions, job: &Job) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    refuse_own_input(&options.input, &options.output)?;
    let mut input = Input::open(&options.input, &mut outcome.warnings)?;
    let mut output = Output::create(&options.output)?;
    let progress = Progress::new((input.records().len() as u64).saturating_mul(PASSES), job);
    progress.phase("reading records");
    let Survey { processes, chunks: pieces, .. } = survey(&input, job, &mut outcome);
    progress.done(input.records().len() as u64);
    progress.phase("looking for JIT code");
    let injected = already_injected(&processes);
    let found = match options.jit {
        true => sources::find(&processes, &options.sources, beside(&options.input), &job.pool, &mut outcome.warnings),
        false => sources::Found::none(),
    };
    let Loaded { map: codes, accounts, machine } = found.load(&processes, &job.pool, &mut outcome.warnings);
    let loaded = summary::Loaded { functions: codes.code_count(), processes: codes.pids().count(), accounts };
    let spaces = AddressSpaces::new(&processes);
    let search = Search { input: &input, codes: &codes, processes: &processes, spaces: &spaces, injected: &injected };
    let (mut touches, touched) = search.run(&pieces, &progress, (job, &mut outcome.warnings))?;
    let machine = processes.machine.or(machine).unwrap_or(EM_X86_64);
    let mut samples = Samples::find(search, &pieces, machine, options, (job, &mut outcome))?;
    let converted = samples.are_converted();
    let (codes, numbers, pieces_touched) = keep_wanted(codes, &touches, options.all_functions || converted, &injected);
    touches.iter_mut().for_each(|(key, _)| key.segment = numbers[key.segment.0 as usize].unwrap_or(key.segment));
    samples.renumber(&numbers);
    drop(numbers);
    let unwinding = (has_user_stacks(&input.recording) && !converted).then_some(&processes);
    let target = Target::new(machine, input.recording.header.endian);
    progress.phase("writing images");
    let wanted = Wanted { codes: &codes, target, relocate: options.relocate, unwinding };
    let mut images = Images::write(wanted, &image_dir(options), &job.pool)?;
    if options.relocate {
        let mut room = AddressAllocator::new(&processes, &codes, target.is_64);
        images.set_bases(|len| room.take(len))?;
    }
    let mut plan = Plan::new(&input.recording, &codes, &images, &processes, (input.records(), input.base()));
    plan.insert(&touches, &mut outcome.warnings);
    let mut edits = plan.edits;
    drop(touches);
    let other = build_ids::edits(&input, options, &spaces, &mut outcome.warnings)?;
    let inserted = edits.len();
    edits.extend(other.edits);
    let end = pieces.end();
    samples.apply(&mut input, &codes, &images, &mut edits);
    let build_ids = &other.entries;
    let parts = output::Parts { input: &input, end, edits, build_ids, images: &images, new_attrs: converted };
    progress.phase("writing records");
    let written = output::write(parts, options, &mut output, &mut outcome.warnings).and_then(|()| output.commit());
    written.map_err(|error| error.in_file(&options.output.shown()))?;
    drop(progress);
    if options.cache {
        images.iter().for_each(|image| build_id_cache::add(image, &mut outcome.warnings));
    }
    let facts = summary::Facts {
        loaded: &loaded,
        touched: &touched,
        pieces: pieces_touched,
        images: &images,
        inserted,
        injected: &injected,
        processes: &processes,
        was: input.was.as_deref(),
    };
    summary::report(&facts, options, job, &mut outcome);
    images.keep();
    Ok(outcome)
}

/// Rewriting a file in place would leave neither the old one nor the new one if it failed.
fn refuse_own_input(input: &InPath, output: &OutPath) -> Result<()> {
    let (InPath::Path(from), OutPath::Path(to)) = (input, output) else { return Ok(()) };
    let inside = from.is_dir() && to.parent().is_some_and(|parent| io::same_file(parent, from));
    if io::same_file(from, to) || inside {
        return Err(Error::usage("input and output are the same: choose another output (-o)").in_file(to));
    }
    Ok(())
}

fn beside(input: &InPath) -> Option<&Path> {
    match input {
        InPath::Stdin => None,
        // A directory holds the recording; what was left beside it stands with it, not in it.
        InPath::Path(path) => path.parent(),
    }
}

fn survey<'data>(input: &'data Input, job: &Job, outcome: &mut Outcome) -> Survey<'data> {
    let stream = RecordBytes { bytes: input.records(), base: input.base() };
    let survey = Survey::new(&input.recording, &[stream], &input.shown, job, &mut outcome.warnings);
    let end = survey.chunks.end();
    let cut = (input.base() + input.records().len() as u64).saturating_sub(end);
    if cut > 0 && survey.chunks.damage.is_none() {
        let message = format!("the last record is not whole: its {cut} bytes are left out");
        outcome.warnings.push(Warning::new(message).in_file(&input.shown, Some(end)));
    }
    survey
}

/// The processes whose code perf or jitgraft has injected before.
fn already_injected(processes: &Processes) -> Vec<Pid> {
    processes.by_pid.iter().filter(|(_, process)| process.is_injected()).map(|(pid, _)| *pid).collect()
}

fn image_dir(options: &InjectOptions) -> PathBuf {
    let beside = match &options.output {
        OutPath::Stdout => None,
        OutPath::Path(path) => path.parent().filter(|parent| !parent.as_os_str().is_empty()),
    };
    options.image_dir.as_deref().or(beside).unwrap_or(Path::new(".")).to_owned()
}
