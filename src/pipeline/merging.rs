//! Merges any number of inputs into one profile of sums. Memory grows with the number of distinct stacks rather than
//! with the number of inputs. Inputs that can't be read are skipped and reported.
//!
//! Several threads read inputs, each input on a single thread. Results are added in the order of the inputs.

use super::any::{LoadOptions, keep_events, report_no_samples, run};
use super::inputs::JobInputs;
use super::job::{Job, Outcome};
use super::merged_about::MergedAbout;
use super::open::{Opened, shown};
use super::sink::Whole;
use super::texts::{self, InputSums, read_texts};
use crate::analysis::filter::Filter;
use crate::analysis::label::RootFrame;
use crate::analysis::quantity::{counted, grouped, quantity};
use crate::contract::format::Format;
use crate::error::{Error, Result, Warning};
use crate::io::InPath;
use crate::model::stacks::{Keep, Profile, Sampling, Series, StackId, Track, Unit, Weight};
use rustc_hash::FxHashSet;

/// The maximum number of warnings to show. With `-v`, all are shown.
const MOST_WARNINGS: usize = 20;

/// The first input that could be opened, and its index. It is kept open, because standard input can only be opened
/// once.
pub(crate) struct FirstInput {
    /// The index of the input in the list of inputs.
    index: usize,
    opened: Opened,
}

impl FirstInput {
    /// Opens inputs in order until one succeeds. `None` if none can be opened.
    pub(crate) fn open(inputs: &[InPath], job: &Job) -> Option<Self> {
        for (index, path) in inputs.iter().enumerate() {
            if let Ok(opened) = Opened::open(path, job) {
                return Some(Self { index, opened });
            }
        }
        None
    }

    /// The format of this input.
    pub(crate) fn format(&self) -> &'static Format {
        self.opened.format()
    }
}

/// Reads all inputs and adds them up in one profile. Skips inputs that can't be read. Samples are kept in separate rows
/// by one property of their thread (`by`); the thread's other properties are dropped, because IDs from one machine mean
/// nothing on another.
pub(crate) fn load_merged(
    inputs: &[InPath],
    mut first: Option<FirstInput>,
    options: &LoadOptions,
    by: RootFrame,
    job: &Job,
) -> Result<(Profile, Outcome)> {
    let mut merged = MergedSum::new(by);
    // Pair each path with its input, if the input is open already. That is only the case for the first input that could
    // be opened.
    let mut paths_and_opened = inputs.iter().enumerate().map(|(index, path)| {
        let opened = first.take_if(|first| first.index == index).map(|first| first.opened);
        (path, opened)
    });
    // Each worker reads a group of inputs. Small texts that follow each other are added up at once, all others one by
    // one.
    let read_other = |path: &InPath, opened| read_one(path, opened, options, job);
    let read_group = |group| read_texts(group, options.text_options(), job, |sums| sums, read_other);
    job.pool.stream(texts::groups(&mut paths_and_opened), read_group, |sums: Vec<InputSums>| {
        for input in sums {
            merged.add(input)?;
        }
        Ok(())
    })?;
    drop(paths_and_opened);
    let (mut profile, mut outcome) = merged.finish(inputs.len(), job)?;
    profile.check()?;
    keep_events(&mut profile, &options.event)?;
    let is_filtered = !options.event.is_empty() || !options.read.only.is_empty() || options.filter != Filter::default();
    if is_filtered && profile.series.iter().all(Series::is_empty) {
        // The message lists what the filters could select, for which all inputs are read again. Don't do that if some
        // were skipped, because they would fail again.
        let readable = if outcome.failed.is_empty() { inputs } else { &[] };
        report_no_samples(readable, options, job, &mut outcome)?;
    }
    Ok((profile, outcome))
}

/// Reads an input that isn't a small text, and adds up its rows.
fn read_one(path: &InPath, opened: Opened, options: &LoadOptions, job: &Job) -> InputSums {
    let mut sink = Whole::new(Keep::Sums, options.jit_names);
    let mut outcome = Outcome::default();
    let input = JobInputs::with_first(Some(opened), std::slice::from_ref(path));
    let profile = match run(input, options, &mut sink, job, &mut outcome) {
        Ok(()) => Ok(sink.into_profile()),
        Err(error) => Err(error.in_file(&shown(path))),
    };
    InputSums { profile, outcome }
}

/// The merged profile, to which inputs are being added.
struct MergedSum {
    /// The property of threads by which samples are kept in separate rows.
    by: RootFrame,
    /// The sum of the inputs so far. Its names of JIT code are already in their final spelling.
    sum: Profile,
    about: MergedAbout,
    outcome: Outcome,
    /// For each input that was skipped, the reason.
    skipped: Vec<Error>,
}

impl MergedSum {
    /// Starts with an empty sum of samples. Samples of threads that differ in the property `by`, such as the process
    /// ID, will be kept in separate rows.
    fn new(by: RootFrame) -> Self {
        Self {
            by,
            sum: Profile::empty(Keep::Sums),
            about: MergedAbout::default(),
            outcome: Outcome::default(),
            skipped: Vec::new(),
        }
    }

    /// Adds the profile of the next input to the merged one, or remembers the input's error.
    fn add(&mut self, InputSums { profile, outcome }: InputSums) -> Result<()> {
        self.outcome.frames += outcome.frames;
        self.outcome.count_code(outcome.shares);
        self.outcome.warnings.append(outcome.warnings);
        // The first recording with too few names is the one to report.
        self.outcome.lacking = self.outcome.lacking.take().or(outcome.lacking);
        let mut profile = match profile {
            Ok(profile) => profile,
            Err(error) => {
                self.skipped.push(error);
                return Ok(());
            }
        };
        profile.map_tracks(|track| reduce_track(track, self.by));
        // Facts are combined separately, because only those on which all inputs agree stay.
        self.about.take(&mut profile.about);
        self.sum.merge(&profile);
        for input_series in &profile.series {
            let index = self.sum.series_with_unit(&input_series.name, &input_series.unit);
            let sum_series = &mut self.sum.series[index];
            sum_series.sampling = merge_samplings(sum_series.sampling, input_series.sampling);
        }
        Ok(())
    }

    /// Completes the merged profile, after all inputs were added. Fails if every input was skipped; `inputs` is their
    /// number. Errors and warnings beyond the first [`MOST_WARNINGS`] are only counted, except with `-v`. Adds totals
    /// to the summary.
    fn finish(mut self, inputs: usize, job: &Job) -> Result<(Profile, Outcome)> {
        let skipped = self.skipped.len();
        if skipped == inputs {
            return Err(all_skipped(self.skipped));
        }
        self.outcome.failed = self.skipped.into_iter().map(skipped_input).collect();
        if skipped > MOST_WARNINGS && !job.verbose {
            let more = counted((skipped - MOST_WARNINGS) as u64, "more input");
            self.outcome.failed.truncate(MOST_WARNINGS);
            self.outcome.failed.push(Error::new(format!("{more} could not be read (-v lists them all)")));
        }
        self.about.finish(&mut self.sum.about);
        let mut warnings: Vec<Warning> = self.outcome.warnings.iter().cloned().collect();
        if warnings.len() > MOST_WARNINGS && !job.verbose {
            let more = counted((warnings.len() - MOST_WARNINGS) as u64, "more warning");
            warnings.truncate(MOST_WARNINGS);
            warnings.push(Warning::new(format!("{more} (-v lists them all)")));
        }
        self.outcome.warnings = warnings.into_iter().collect();
        self.outcome.summary.push(summary(inputs, skipped));
        self.outcome.summary.extend(self.sum.series.iter().map(describe_total));
        Ok((self.sum, self.outcome))
    }
}

/// A copy of a track that only has the thread's name, the labels, and the property that `by` names.
fn reduce_track(track: &Track, by: RootFrame) -> Track {
    let mut kept = Track { comm: track.comm.clone(), labels: track.labels.clone(), ..Track::default() };
    match by {
        RootFrame::Comm | RootFrame::Nothing => {}
        RootFrame::Pid => kept.pid = track.pid,
        RootFrame::Tid => (kept.pid, kept.tid) = (track.pid, track.tid),
        RootFrame::Cpu => kept.cpu = track.cpu,
    }
    kept
}

/// Combines the sampling parameters of two profiles: the longer of two periods, as when pprof merges profiles. If they
/// aren't both periods, the first one that is known.
fn merge_samplings(one: Option<Sampling>, other: Option<Sampling>) -> Option<Sampling> {
    match (one, other) {
        (Some(Sampling::Period(one)), Some(Sampling::Period(other))) => Some(Sampling::Period(one.max(other))),
        (one, other) => one.or(other),
    }
}

/// Turns the error of an input into the error that reports the input as skipped.
fn skipped_input(error: Error) -> Error {
    let warning = error.into_warning();
    Warning { message: format!("skipped: {}", warning.message), ..warning }.into_error()
}

/// The error to return if no input could be read.
fn all_skipped(skipped: Vec<Error>) -> Error {
    let count = skipped.len();
    match skipped.into_iter().next() {
        Some(error) if count == 1 => error,
        first => {
            let first = first.map(|error| error.to_string()).unwrap_or_default();
            Error::new(format!("none of {} can be read; the first one: {first}", counted(count as u64, "input")))
        }
    }
}

fn summary(inputs: usize, skipped: usize) -> String {
    let skipped_too = if skipped > 0 { format!(", {} skipped", grouped(skipped as u64)) } else { String::new() };
    let (merged, inputs) = ((inputs - skipped) as u64, inputs as u64);
    format!("{} of {} merged{skipped_too}", grouped(merged), counted(inputs, "input"))
}

/// A line for the summary: an event's total weight and its number of different stacks.
fn describe_total(series: &Series) -> String {
    let weight = series.rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.weight));
    // A stack may have several rows, because rows with different threads or labels are kept apart. Count each stack
    // once.
    let stacks: FxHashSet<Option<StackId>> = series.rows.iter().map(|row| row.stack).collect();
    let stacks = counted(stacks.len() as u64, "stack");
    let total = match &series.unit {
        // The event's name already says what was counted.
        Unit::Named(unit) if unit == "count" => grouped(weight),
        unit => quantity(weight, unit, Weight::Period),
    };
    format!("{}: {total} in {stacks}", series.name)
}
