//! Reads any input into a [`Profile`]: opens and decompresses it, detects the format, reads or symbolizes, filters,
//! merges.

use super::callgrind;
use super::complete::{Completion, Origin, complete};
use super::demangled;
use super::inputs::JobInputs;
use super::job::{Job, Outcome};
use super::lines;
use super::nothing_left;
use super::open::{Opened, check_further, shown};
use super::recording::{self, Inspect, RecordingOptions};
use super::script_text;
use super::sink::{Naming, Sink, Whole};
use super::spans::read_spans;
use super::texts::{self, InputSums, TextOptions};
use crate::analysis::filter::Filter;
use crate::contract::format::{Detail, Format, Read, ReadOptions};
use crate::error::{Error, ErrorKind, Result, Warning, Warnings};
use crate::formats::perf_script::read::Demangler;
use crate::io::{InPath, Stream};
use crate::jit::SourceOptions;
use crate::model::stacks::{Keep, Profile, Series};
use crate::symbolize::kernel::KernelOptions;
use crate::symbolize::symbols::SymbolOptions;
use std::path::Path;

/// The name of the callgrind format. In this format, JIT code gets its names while a file is read, from perf maps and
/// jitdumps next to the file.
const CALLGRIND: &str = "callgrind";

/// Options for loading inputs as a profile.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// The names of the events to keep, with or without modifiers (`cycles:u` or `cycles`); empty for all.
    pub event: Vec<String>,
    /// The samples to keep.
    pub filter: Filter,
    /// How much to find out about each frame, such as addresses and source lines.
    pub detail: Detail,
    /// Keep what is known of modules, such as where their files were mapped, even if frames keep neither addresses nor
    /// lines.
    pub keep_modules: bool,
    /// How names of JIT code are spelled.
    pub jit_names: Naming,
    /// True if the user chose `jit_names`. If false, a writer may use its own default instead.
    pub asks_for_names: bool,
    /// Keep samples of different CPUs in separate rows.
    pub by_cpu: bool,
    /// Keep samples of different inputs in separate rows ([`Track::input`](crate::model::stacks::Track::input)).
    pub by_input: bool,
    /// Add the branches that the CPU recorded before a sample to the sample's stack. They become its innermost frames,
    /// as if the sample's callers had called them.
    pub branch_stack: bool,
    /// The maximum number of frames per stack when reading perf.data (see `max_stack` of [`RecordingOptions`]).
    pub max_stack: Option<usize>,
    /// Where to find symbols of native code, and how to use them.
    pub symbols: SymbolOptions,
    /// Where to find kernel symbols.
    pub kernel: KernelOptions,
    /// Where to find names of JIT code.
    pub sources: SourceOptions,
    /// Options for the readers of other formats than recordings.
    pub read: ReadOptions,
}

/// Reads all inputs and merges them into one profile.
pub fn load<'a>(
    inputs: impl Into<JobInputs<'a>>,
    keep: Keep,
    options: &LoadOptions,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Profile> {
    load_and_inspect(inputs.into(), keep, options, &mut |_, _, _| {}, job, outcome)
}

/// Reads all inputs and merges them into one profile, like [`load`]. Calls `inspect` once per recording, before the
/// recording's samples are merged with those of other inputs. The rows that `inspect` gets have the same order as the
/// rows of the returned profile.
pub(crate) fn load_and_inspect(
    inputs: JobInputs<'_>,
    keep: Keep,
    options: &LoadOptions,
    inspect: &mut Inspect<'_>,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<Profile> {
    let mut sink = match options.by_input {
        true => Whole::by_input(keep, options.jit_names),
        false => Whole::new(keep, options.jit_names),
    };
    let paths = inputs.paths;
    run_and_inspect(inputs, options, &mut sink, inspect, job, outcome)?;
    let mut profile = sink.into_profile();
    profile.check()?;
    keep_events(&mut profile, &options.event)?;
    if profile.series.iter().all(Series::is_empty) {
        report_no_samples(paths, options, job, outcome)?;
    }
    Ok(profile)
}

/// Reports why the inputs have no samples. If the user chose events, spans or other filters, returns an error, because
/// they may be the reason, and an existing output file shouldn't be overwritten then. Otherwise, adds a warning.
pub(crate) fn report_no_samples(
    inputs: &[InPath],
    options: &LoadOptions,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<()> {
    let by_event = !options.event.is_empty();
    let names = &options.read.only;
    let why = explain_no_samples(inputs, &options.filter, by_event, names, job);
    if by_event || !names.is_empty() || options.filter != Filter::default() {
        return Err(Error::new(why).with_kind(ErrorKind::NoSamples));
    }
    outcome.warnings.push(Warning::new(&why));
    outcome.no_samples = Some(why);
    Ok(())
}

/// Explains why the inputs have no samples. If a filter may be the reason, reads the inputs again without it, to list
/// what the filter could have selected. `by_event` says whether the user also chose events, and `names` has the names
/// of spans that the user chose.
pub(crate) fn explain_no_samples(
    inputs: &[InPath],
    filter: &Filter,
    by_event: bool,
    names: &[String],
    job: &Job,
) -> String {
    nothing_left::explain(filter, by_event, names, || {
        let can_be_read_again =
            !inputs.is_empty() && inputs.iter().all(|input| input.is_file() || input.is_directory());
        if !can_be_read_again {
            return None;
        }
        // Reading is only to tell which processes, CPUs, times and so on have samples. Stacks don't matter for that, so
        // their innermost frames are enough.
        let mut options = LoadOptions { by_cpu: !filter.cpu.is_empty(), max_stack: Some(1), ..LoadOptions::default() };
        options.symbols.inlines = false;
        let keep = if filter.asks_time() { Keep::EachRow } else { Keep::Sums };
        load(inputs, keep, &options, job, &mut Outcome::default()).ok()
    })
}

/// Reads the inputs one after another, and pushes their rows into a sink.
pub fn run<'a>(
    inputs: impl Into<JobInputs<'a>>,
    options: &LoadOptions,
    sink: &mut dyn Sink,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<()> {
    run_and_inspect(inputs.into(), options, sink, &mut |_, _, _| {}, job, outcome)
}

/// Reads the inputs one after another, and pushes their rows into a sink, like [`run`]. Calls `inspect` once per
/// recording, as in [`load_and_inspect`].
fn run_and_inspect(
    JobInputs { mut first, paths: inputs }: JobInputs<'_>,
    options: &LoadOptions,
    sink: &mut dyn Sink,
    inspect: &mut Inspect<'_>,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<()> {
    // Fail before the first input is read if a later one can't be.
    check_further(inputs)?;
    // If the first of several inputs is a text of lines, small inputs are read in groups instead of one by one.
    if let [path, _, ..] = inputs {
        let opened = match first.take() {
            Some(opened) => opened,
            None => Opened::open(path, job).map_err(|error| error.in_file(&shown(path)))?,
        };
        if texts::are_small_texts(&opened, inputs, options.text_options(), sink.keep()) {
            return run_texts(opened, inputs, options, sink, inspect, job, outcome);
        }
        first = Some(opened);
    }
    for path in inputs {
        let opened = first.take().map_or_else(|| Opened::open(path, job), Ok);
        opened
            .and_then(|opened| run_one(opened, path, options, sink, inspect, job, outcome))
            .map_err(|error| error.in_file(&shown(path)))?;
    }
    Ok(())
}

/// Does the work of [`run_and_inspect`] if most inputs are small texts. Workers read them in groups and in parallel;
/// the results are pushed into the sink in the order of the inputs. `first` is the first input, which is open already.
fn run_texts(
    first: Opened,
    inputs: &[InPath],
    options: &LoadOptions,
    sink: &mut dyn Sink,
    inspect: &mut Inspect<'_>,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<()> {
    let mut first = Some(first);
    let mut paths_and_opened = inputs.iter().map(|path| (path, first.take()));
    // Workers return `Ok` with a profile for small texts, and `Err` with the path of any other input. Such an input is
    // opened again when its turn comes: if all inputs of a group stayed open, there could be too many open files.
    let read = |group| texts::read_texts(group, options.text_options(), job, Ok, |path, _| Err(path));
    job.pool.stream(texts::groups(&mut paths_and_opened), read, |group| {
        for input in group {
            match input {
                Ok(InputSums { profile, outcome: text_outcome }) => {
                    outcome.warnings.append(text_outcome.warnings);
                    outcome.summary.extend(text_outcome.summary);
                    let mut profile = profile?;
                    sink.take(&mut profile)?;
                    sink.end(&profile)?;
                }
                Err(path) => Opened::open(path, job)
                    .and_then(|opened| run_one(opened, path, options, sink, inspect, job, outcome))
                    .map_err(|error| error.in_file(&shown(path)))?,
            }
        }
        Ok(())
    })
}

/// Reads an opened input, and pushes its rows into a sink.
pub(super) fn run_one(
    opened: Opened,
    path: &InPath,
    options: &LoadOptions,
    sink: &mut dyn Sink,
    inspect: &mut Inspect<'_>,
    job: &Job,
    outcome: &mut Outcome,
) -> Result<()> {
    match opened {
        // Readers of recordings apply the filter before they symbolize an address. All other profiles are filtered
        // below, after reading.
        Opened::Whole(input) if matches!(input.format.read, Read::Addresses) => {
            recording::push(&input, &shown(path), &options.recording(), sink, inspect, job, outcome)
        }
        opened => {
            // Filtering by time requires single rows, because sums have no times.
            let keep = if options.filter.asks_time() { Keep::EachRow } else { sink.keep() };
            let is_script_text = matches!(opened.format().read, Read::Script);
            let mut profile = read_stacks(opened, path, keep, options, job, outcome)?;
            let mut completion = options.completion();
            if is_script_text {
                // The reader of perf script's text has applied source maps already, because only it knows which names
                // come from a code map.
                completion.source_maps = None;
            }
            let origin = Origin { input: Some(&shown(path)), directory: directory(path) };
            complete(&mut profile, completion, origin, outcome)?;
            // If rows were kept apart only to filter them by time, add them up now.
            if keep != sink.keep() {
                profile.aggregate();
            }
            sink.take(&mut profile)?;
            sink.end(&profile)
        }
    }
}

/// Reads an opened input of any format except recordings into a profile. How it is read depends on what kind of reader
/// the format has: one for spans, for a whole file, for a stream, for lines, or for perf script's text.
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
        // Columns only serve to look something up in a source map.
        columns: options.sources.source_maps.is_on(),
        ..options.read.clone()
    };
    if let Some(spans) = opened.format().read.spans() {
        let mut warnings = Warnings::new();
        let profile = read_spans(opened, job, |input| (spans.stacks)(input, &read_options, &mut warnings))?;
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
                // The names of JIT code are put into the text before it is read.
                let mut reader = callgrind::with_names(reader, path, &options.sources, job, &mut outcome.warnings)?;
                let profile = read(&mut reader, &read_options, &mut warnings)?;
                outcome.summary.extend(callgrind::report_unnamed(&profile, &shown(path)));
                profile
            }
            Read::Stream(read) => read(&mut reader, &read_options, &mut warnings)?,
            Read::Lines { open, .. } => lines::read(reader, open, &read_options, job, &mut warnings)?,
            Read::Script => {
                let text = Stream::new(reader);
                // Unlike the other readers, this one adds its warnings to `outcome` itself.
                return script_text::read_stacks(text, path, keep, &options.sources, options.demangler(), job, outcome);
            }
            _ => return Err(unreadable(format)),
        },
    };
    outcome.warnings.append(warnings.in_file(&shown(path)));
    Ok(profile)
}

impl LoadOptions {
    /// The options for reading small texts.
    pub(super) fn text_options(&self) -> TextOptions<'_> {
        TextOptions { read: &self.read, jit_names: self.jit_names.given, completion: self.completion() }
    }

    /// What is done to a profile after it was read: filters, demangling, source maps.
    fn completion(&self) -> Completion<'_> {
        Completion { filter: &self.filter, demangle: self.symbols.demangle, source_maps: Some(&self.sources) }
    }

    /// A function that demangles a name, or returns `None` for all names if the options don't ask for demangling.
    pub(super) fn demangler(&self) -> Demangler {
        if self.symbols.demangle { demangled::readable } else { |_| None }
    }

    /// The options for reading recordings.
    pub fn recording(&self) -> RecordingOptions {
        RecordingOptions {
            event: self.event.clone(),
            filter: self.filter.clone(),
            keep_addr: self.detail >= Detail::Addresses,
            keep_modules: self.keep_modules,
            symbols: SymbolOptions { lines: self.detail >= Detail::Lines, ..self.symbols.clone() },
            kernel: self.kernel.clone(),
            by_cpu: self.by_cpu,
            // Control groups become labels of tracks, so they are only kept apart if labels are.
            by_cgroup: self.read.apart,
            branch_stack: self.branch_stack,
            max_stack: self.max_stack,
            // Profiles have no place for these details of samples. The command `script` prints them, so it sets these
            // options itself.
            keep_branches: false,
            keep_other_fields: false,
            keep_trace: false,
            sources: self.sources.clone(),
        }
    }
}

/// The directory of the input file; `None` for standard input.
fn directory(path: &InPath) -> Option<&Path> {
    path.path()?.parent()
}

/// The error for an input in a format that has nothing to read as stacks.
fn unreadable(format: &Format) -> Error {
    Error::new(format!("{} has no stacks", format.name))
}

/// Removes the events that the user doesn't want. Fails if the profile lacks an event that the user named.
pub(crate) fn keep_events(profile: &mut Profile, wanted: &[String]) -> Result<()> {
    if wanted.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = profile.series.iter().map(|series| series.name.as_str()).collect();
    recording::check_events(&names, wanted)?;
    profile.series.retain(|series| recording::is_wanted(&series.name, wanted));
    Ok(())
}
