//! Any number of inputs, one after the other into one sum: memory grows with distinct stacks, not with inputs, and one
//! that cannot be read is left out and reported.
//!
//! Inputs are summed on any thread, a large one by itself; the sums are added in the order of the inputs.

use super::any::{LoadOptions, keep_events, run};
use super::inputs::JobInputs;
use super::job::{Job, Outcome};
use super::merged_about::MergedAbout;
use super::open::{Opened, shown};
use super::sink::Whole;
use super::texts::{self, InputSums, read_texts};
use crate::analysis::label::By;
use crate::analysis::quantity::{counted, grouped, quantity};
use crate::contract::format::Format;
use crate::error::{Error, Result, Warning};
use crate::io::InPath;
use crate::model::stacks::{Keep, Profile, Sampling, Series, Track, Weight};

/// The number of warnings that are reported one by one; all of them with `-v`.
const TOLD: usize = 20;

/// The first input that can be opened, and where it is among the inputs: standard input opens once.
pub(crate) struct FirstInput {
    at: usize,
    opened: Opened,
}

impl FirstInput {
    /// Opens one after the other, up to it.
    pub(crate) fn of(inputs: &[InPath], job: &Job) -> Option<Self> {
        let opened = inputs.iter().enumerate().map(|(at, path)| (at, Opened::open(path, job)));
        opened.into_iter().find_map(|(at, opened)| Some(Self { at, opened: opened.ok()? }))
    }

    /// Its format.
    pub(crate) fn format(&self) -> &'static Format {
        self.opened.format()
    }
}

/// Reads all inputs that can be read into one profile of sums. Of a thread's name and numbers it keeps what rows are
/// distinguished `by`: the numbers of one machine mean nothing on another.
pub(crate) fn load_merged(
    inputs: &[InPath],
    first: Option<FirstInput>,
    options: &LoadOptions,
    by: By,
    job: &Job,
) -> Result<(Profile, Outcome)> {
    let (mut first, mut merging) = (first, MergedSum::new(by));
    let mut given = inputs.iter().enumerate().map(|(at, path)| {
        let opened = first.take_if(|first| first.at == at).map(|first| first.opened);
        (path, opened)
    });
    let read_one = |path: &InPath, opened| read_one(path, opened, options, job);
    let read = |group| read_texts(group, options.texts(), job, |sums| sums, read_one);
    let mut add = |sums: Vec<_>| sums.into_iter().try_for_each(|input| merging.add(input));
    job.pool.stream(texts::groups(&mut given), read, &mut add)?;
    drop(given);
    let (mut profile, outcome) = merging.finish(inputs.len(), job)?;
    profile.check()?;
    keep_events(&mut profile, &options.event)?;
    Ok((profile, outcome))
}

/// An input that is not a small text.
fn read_one(path: &InPath, opened: Opened, options: &LoadOptions, job: &Job) -> InputSums {
    let (mut whole, mut outcome) = (Whole::new(Keep::Sums, options.jit_names), Outcome::default());
    let input = JobInputs::opened(Some(opened), std::slice::from_ref(path));
    let done = run(input, options, &mut whole, job, &mut outcome);
    let profile = done.map(|()| whole.into_profile()).map_err(|error| error.in_file(&shown(path)));
    InputSums { profile, outcome }
}

/// The sum so far.
struct MergedSum {
    by: By,
    /// Names were written as was requested when each input was read.
    sum: Profile,
    about: MergedAbout,
    outcome: Outcome,
    skipped: Vec<Error>,
}

impl MergedSum {
    fn new(by: By) -> Self {
        let (sum, about) = (Profile::keeping(Keep::Sums), MergedAbout::default());
        Self { by, sum, about, outcome: Outcome::default(), skipped: Vec::new() }
    }

    fn add(&mut self, InputSums { profile, outcome }: InputSums) -> Result<()> {
        self.outcome.frames += outcome.frames;
        self.outcome.count_code(outcome.shares);
        self.outcome.warnings.append(outcome.warnings);
        self.outcome.lacking = self.outcome.lacking.take().or(outcome.lacking);
        let mut profile = match profile {
            Ok(profile) => profile,
            Err(error) => {
                self.skipped.push(error);
                return Ok(());
            }
        };
        profile.map_tracks(|track| kept(track, self.by));
        self.about.take(&mut profile.about);
        let samplings: Vec<_> = profile.series.iter().map(|series| (series.identity(), series.sampling)).collect();
        self.sum.merge(&profile);
        for (identity, sampling) in samplings {
            if let Some(series) = self.sum.series.iter_mut().find(|series| series.identity() == identity) {
                series.sampling = rarer(series.sampling, sampling);
            }
        }
        Ok(())
    }

    fn finish(mut self, inputs: usize, job: &Job) -> Result<(Profile, Outcome)> {
        let skipped = self.skipped.len();
        if skipped == inputs {
            return Err(none_left(self.skipped));
        }
        let mut told = Vec::new();
        // What is missing from the sum is said even with -q.
        if let Some(first) = self.skipped.first() {
            let first = first.to_string();
            self.outcome
                .failed
                .push(Error::new(format!("{skipped} of {} skipped; {first}", counted(inputs as u64, "input"))));
        }
        told.extend(self.skipped.into_iter().map(|error| {
            let warning = error.into_warning();
            Warning { message: format!("skipped: {}", warning.message), ..warning }
        }));
        self.about.finish(&mut self.sum.about);
        told.extend(self.outcome.warnings.iter().cloned());
        if told.len() > TOLD && !job.verbose {
            let more = told.len() - TOLD;
            told.truncate(TOLD);
            told.push(Warning::new(format!("{} more (-v lists them all)", counted(more as u64, "warning"))));
        }
        self.outcome.warnings = told.into_iter().collect();
        self.outcome.summary.push(summary(inputs, skipped));
        self.outcome.summary.extend(self.sum.series.iter().map(total));
        Ok((self.sum, self.outcome))
    }
}

/// The kept part of a row's track.
fn kept(track: &Track, by: By) -> Track {
    let mut kept = Track { comm: track.comm.clone(), ..Track::default() };
    match by {
        By::Comm | By::Nothing => {}
        By::Pid => kept.pid = track.pid,
        By::Tid => (kept.pid, kept.tid) = (track.pid, track.tid),
        By::Cpu => kept.cpu = track.cpu,
    }
    kept
}

/// As pprof merges periods: the longest.
fn rarer(one: Option<Sampling>, other: Option<Sampling>) -> Option<Sampling> {
    match (one, other) {
        (Some(Sampling::Period(one)), Some(Sampling::Period(other))) => Some(Sampling::Period(one.max(other))),
        (one, other) => one.or(other),
    }
}

fn none_left(skipped: Vec<Error>) -> Error {
    let many = skipped.len();
    match skipped.into_iter().next() {
        Some(error) if many == 1 => error,
        first => {
            let first = first.map(|error| error.to_string()).unwrap_or_default();
            Error::new(format!("none of {} can be read; the first: {first}", counted(many as u64, "input")))
        }
    }
}

fn summary(inputs: usize, skipped: usize) -> String {
    let skipped_too = if skipped > 0 { format!(", {} skipped", grouped(skipped as u64)) } else { String::new() };
    let (merged, inputs) = ((inputs - skipped) as u64, inputs as u64);
    format!("{} of {} merged{skipped_too}", grouped(merged), counted(inputs, "input"))
}

fn total(series: &Series) -> String {
    let weight = series.rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.weight));
    let stacks = counted(series.rows.len() as u64, "stack");
    format!("{}: {} in {stacks}", series.name, quantity(weight, &series.unit, Weight::Period))
}
