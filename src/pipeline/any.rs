//! Any input → one [`Profile`]: open, decompress, find the format, read or resolve, filter, merge.

use super::authored;
use super::callgrind;
use super::demangled;
use super::estimate;
use super::inputs::JobInputs;
use super::job::{Job, Outcome};
use super::lines;
use super::nothing_left;
use super::open::{Opened, check_further, shown};
use super::recording::{self, Ask, RecordingOptions};
use super::script_text;
use super::sink::{Naming, Sink, Whole};
use super::spans::read_spans;
use super::texts::{self, InputSums, TextOptions};
use crate::analysis::filter::Filter;
use crate::contract::format::{Detail, Format, Read, ReadOptions};
use crate::error::{Error, Result, Warning, Warnings};
use crate::io::{InPath, Stream};
use crate::model::stacks::{Keep, Profile, Series};
use crate::records::perf_script::read::Readable;
use crate::resolve::kernel::KernelOptions;
use crate::resolve::symbols::SymbolOptions;
use crate::sources::SourceOptions;
use std::path::Path;

/// The format whose JIT code is named by what lies beside it, as that of recordings is.
const CALLGRIND: &str = "callgrind";

/// The input to load, and the options.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// The events to keep, by name with or without modifiers; empty: all.
    pub event: Vec<String>,
    /// The samples that count.
    pub filter: Filter,
    /// The part of a frame that is needed.
    pub detail: Detail,
    /// True if what was mapped is reported, though neither addresses nor lines are.
    pub keep_modules: bool,
    /// The way names of JIT code are written.
    pub jit_names: Naming,
    /// True if the user asked for that: else a writer's own usage goes before.
    pub asks_for_names: bool,
    /// True if samples of different processors are kept apart.
    pub by_cpu: bool,
    /// True if rows of several inputs are kept apart ([`Track::input`](crate::model::stacks::Track::input)).
    pub by_input: bool,
    /// True if the last branches are reported above the callers.
    pub branch_stack: bool,
    /// The number of frames that a stack from perf.data may have.
    pub max_stack: Option<usize>,
    /// The sources of names of native code, and its options.
    pub symbols: SymbolOptions,
    /// The sources of kernel symbols.
    pub kernel: KernelOptions,
    /// The sources of names of JIT code.
    pub sources: SourceOptions,
    /// The options for reading.
    pub read: ReadOptions,
}

/// Reads all inputs into one profile.
pub fn load<'a>(
    inputs: impl Into<JobInputs<'a>>,
    keep: Keep,
    options: &LoadOptions,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Profile> {
    load_and_ask(inputs.into(), keep, options, &mut |_, _, _| {}, job, outcome)
}

/// The same, and of each recording of addresses what `ask` wants to know, in the order of the inputs. The rows that
/// it is shown become, in their order, the rows of the profile's series.
pub(crate) fn load_and_ask(
    inputs: JobInputs<'_>,
    keep: Keep,
    options: &LoadOptions,
    ask: &mut Ask<'_>,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Profile> {
    let whole = if options.by_input { Whole::by_input } else { Whole::new };
    let mut whole = whole(keep, options.jit_names);
    let paths = inputs.paths;
    run_and_ask(inputs, options, (&mut whole, ask), job, outcome)?;
    let mut whole = whole.into_profile();
    whole.check()?;
    keep_events(&mut whole, &options.event)?;
    if whole.series.iter().all(Series::is_empty) {
        no_samples(paths, options, job, outcome)?;
    }
    Ok(whole)
}

/// Reports the reason why inputs have no samples. It is an error if filters leave none: that is not what was asked for,
/// and no output takes the place of an older one.
pub(crate) fn no_samples(inputs: &[InPath], options: &LoadOptions, job: &Job, outcome: &mut Outcome) -> Result<()> {
    let by_event = !options.event.is_empty();
    let why = why_no_samples(inputs, &options.filter, by_event, job);
    if by_event || options.filter != Filter::default() {
        return Err(Error::new(why));
    }
    outcome.warnings.push(Warning::new(&why));
    outcome.no_samples = Some(why);
    Ok(())
}

/// Why inputs have no samples. If it is for a filter, they are read once more to show what it could leave.
pub(crate) fn why_no_samples(inputs: &[InPath], filter: &Filter, by_event: bool, job: &Job) -> String {
    nothing_left::why(filter, by_event, || {
        let again = |input: &InPath| input.is_file() || input.is_directory();
        if !inputs.iter().all(again) {
            return None;
        }
        let mut options = LoadOptions { by_cpu: !filter.cpu.is_empty(), max_stack: Some(1), ..LoadOptions::default() };
        options.symbols.inlines = false;
        let keep = if filter.asks_time() { Keep::EachRow } else { Keep::Sums };
        load(inputs, keep, &options, job, &mut Outcome::default()).ok()
    })
}

/// Reads one input after the other and pushes its rows into a sink.
pub fn run<'a>(
    inputs: impl Into<JobInputs<'a>>,
    options: &LoadOptions,
    sink: &mut dyn Sink,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<()> {
    run_and_ask(inputs.into(), options, (sink, &mut |_, _, _| {}), job, outcome)
}

/// The same, with the questions of [`load_and_ask`].
fn run_and_ask(
    JobInputs { mut first, paths: inputs }: JobInputs<'_>,
    options: &LoadOptions,
    (sink, ask): (&mut dyn Sink, &mut Ask<'_>),
    job: &Job,
    outcome: &mut Outcome,
) -> Result<()> {
    check_further(inputs)?;
    if let [path, _, ..] = inputs {
        let opened =
            first.take().map_or_else(|| Opened::open(path, job), Ok).map_err(|error| error.in_file(&shown(path)))?;
        if texts::shares(&opened, inputs, options.texts(), sink.keep()) {
            return push_texts(opened, inputs, options, (sink, ask), job, outcome);
        }
        first = Some(opened);
    }
    for path in inputs {
        let opened = first.take().map_or_else(|| Opened::open(path, job), Ok);
        let pushed = opened.and_then(|opened| run_one(opened, path, options, (sink, ask), job, outcome));
        pushed.map_err(|error| error.in_file(&shown(path)))?;
    }
    Ok(())
}

/// The same of inputs that are mostly small texts, which are read in groups.
fn push_texts(
    first: Opened,
    inputs: &[InPath],
    options: &LoadOptions,
    (sink, ask): (&mut dyn Sink, &mut Ask<'_>),
    job: &Job,
    outcome: &mut Outcome,
) -> Result<()> {
    let mut first = Some(first);
    let mut given = inputs.iter().map(|path| (path, first.take()));
    // An input that is not such a text is opened again in its turn: a group may have more inputs than can be open at
    // once.
    let read = |group| texts::read_texts(group, options.texts(), job, Ok, |path, _| Err(path));
    job.pool.stream(texts::groups(&mut given), read, |group| {
        group.into_iter().try_for_each(|input| match input {
            Ok(InputSums { profile, outcome: of_texts }) => {
                outcome.warnings.append(of_texts.warnings);
                let mut profile = profile?;
                if options.symbols.demangle {
                    demangled::apply(&mut profile);
                }
                authored::apply(&mut profile, &options.sources, None, outcome);
                sink.take(&mut profile)?;
                sink.end(&profile)
            }
            Err(path) => Opened::open(path, job)
                .and_then(|opened| run_one(opened, path, options, (&mut *sink, &mut *ask), job, outcome))
                .map_err(|error| error.in_file(&shown(path))),
        })
    })
}

pub(super) fn run_one(
    opened: Opened,
    path: &InPath,
    options: &LoadOptions,
    (sink, ask): (&mut dyn Sink, &mut Ask<'_>),
    job: &Job,
    outcome: &mut Outcome,
) -> Result<()> {
    match opened {
        // These are filtered before anything is looked up.
        Opened::Whole(input) if matches!(input.format.read, Read::Addresses) => {
            recording::push(&input, &shown(path), &options.recording(), (sink, ask), job, outcome)
        }
        opened => {
            // Sums have no times to filter by.
            let keep = if options.filter.asks_time() { Keep::EachRow } else { sink.keep() };
            let mut profile = read_stacks(opened, path, keep, options, job, outcome)?;
            profile.check()?;
            if options.symbols.demangle {
                demangled::apply(&mut profile);
            }
            authored::apply(&mut profile, &options.sources, directory(path), outcome);
            options.filter.apply(&mut profile);
            if let Some(note) = estimate::note(&profile) {
                outcome.estimates.push(format!("{}: {note}", shown(path).display()));
                profile.about.notes.push(note);
            }
            if keep != sink.keep() {
                profile.aggregate();
            }
            sink.take(&mut profile)?;
            sink.end(&profile)
        }
    }
}

fn read_stacks(
    opened: Opened,
    path: &InPath,
    keep: Keep,
    options: &LoadOptions,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Profile> {
    let read_options = ReadOptions {
        keep,
        detail: Some(options.detail),
        columns: options.sources.source_maps.is_on(),
        ..options.read.clone()
    };
    if let Some(of) = opened.format().read.spans() {
        let mut warnings = Warnings::new();
        let profile = read_spans(opened, job, |input| (of.stacks)(input, &read_options, &mut warnings))?;
        outcome.warnings.append(warnings.in_file(&shown(path)));
        return Ok(profile);
    }
    let mut warnings = Warnings::new();
    let profile = match opened {
        Opened::Whole(input) => match input.format.read {
            Read::Stacks(read) => read(&input.bytes, &read_options, &mut warnings)?,
            _ => return Err(unreadable(input.format)),
        },
        Opened::Stream { mut reader, format, .. } => match format.read {
            Read::Stream(read) if format.name == CALLGRIND => {
                let mut reader = callgrind::with_names(reader, path, &options.sources, job, &mut outcome.warnings)?;
                let profile = read(&mut reader, &read_options, &mut warnings)?;
                outcome.summary.extend(callgrind::unnamed(&profile, &shown(path)));
                profile
            }
            Read::Stream(read) => read(&mut reader, &read_options, &mut warnings)?,
            Read::Lines { open, .. } => lines::read(reader, open, &read_options, job, &mut warnings)?,
            Read::Script(_) => {
                let text = Stream::new(reader);
                let profile =
                    script_text::stacks((text, path), keep, &options.sources, options.readable(), job, outcome)?;
                return Ok(profile);
            }
            _ => return Err(unreadable(format)),
        },
    };
    outcome.warnings.append(warnings.in_file(&shown(path)));
    Ok(profile)
}

impl LoadOptions {
    /// Its part about texts.
    pub(super) fn texts(&self) -> TextOptions<'_> {
        TextOptions { read: &self.read, filter: &self.filter, jit_names: self.jit_names.given }
    }

    /// The readable form of a linker name, if that is wanted.
    pub(super) fn readable(&self) -> Readable {
        if self.symbols.demangle { demangled::readable } else { |_| None }
    }

    /// Its part about recordings of addresses.
    pub fn recording(&self) -> RecordingOptions {
        RecordingOptions {
            event: self.event.clone(),
            filter: self.filter.clone(),
            keep_addr: self.detail >= Detail::Addresses,
            keep_modules: self.keep_modules,
            symbols: SymbolOptions { lines: self.detail >= Detail::Lines, ..self.symbols.clone() },
            kernel: self.kernel.clone(),
            by_cpu: self.by_cpu,
            by_cgroup: self.read.apart,
            branch_stack: self.branch_stack,
            max_stack: self.max_stack,
            keep_branches: false,
            keep_beside: false,
            keep_trace: false,
            sources: self.sources.clone(),
        }
    }
}

/// The directory that an input is in.
fn directory(path: &InPath) -> Option<&Path> {
    path.path()?.parent()
}

fn unreadable(format: &Format) -> Error {
    Error::new(format!("{} cannot be read as stacks", format.name))
}

/// Keeps the events asked for, in the order of the recording.
pub(super) fn keep_events(profile: &mut Profile, wanted: &[String]) -> Result<()> {
    if wanted.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = profile.series.iter().map(|series| series.name.as_str()).collect();
    recording::check_events(&names, wanted)?;
    profile.series.retain(|series| recording::is_wanted(&series.name, wanted));
    Ok(())
}
