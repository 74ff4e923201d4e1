//! `jitgraft FILE`: a summary of a profile in five lines, for users who gave no command.

use crate::analysis::code_shares::CodeShares;
use crate::analysis::quantity::{counted, grouped, row_word};
use crate::contract::format::Read;
use crate::doctor::{self, Finding, Subject};
use crate::error::{Result, Warnings};
use crate::io::{self, InPath};
use crate::model::printable::readable;
use crate::model::shell::quoted;
use crate::model::stacks::{Keep, Profile, Series, Weight};
use crate::pipeline::any::{LoadOptions, load_and_inspect};
use crate::pipeline::inputs::JobInputs;
use crate::pipeline::open::{Opened, shown};
use crate::pipeline::recording::Examined;
use crate::pipeline::{Job, Outcome};
use std::os::unix::ffi::OsStrExt;

/// The options of `jitgraft FILE`: which profile to summarize.
#[derive(Debug)]
pub struct SummaryOptions {
    /// The profile to summarize.
    pub input: InPath,
    /// How to read the input.
    pub load: LoadOptions,
}

/// Prints five lines about the profile: its format, the number of samples, the shares of kinds of code, doctor's first
/// finding, and the next command to run.
pub fn run(options: &SummaryOptions, job: &Job) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let path = shown(&options.input);
    let opened = Opened::open(&options.input, job).map_err(|error| error.in_file(&path))?;
    let about = opened.format().about;
    // A line with doctor's first finding. Stays `None` if `doctor` can't examine inputs of this kind.
    let mut first_finding = None;
    let mut has_findings = false;
    // `load_and_inspect` calls `inspect` only for recordings. Callgrind files are examined after loading, further down.
    let is_callgrind = Subject::is_counted(opened.format(), &options.input);
    let mut inspect = |examined: &Examined<'_>, _: &Job, _: &mut Warnings| {
        let diagnosis = doctor::diagnose(examined);
        has_findings = !diagnosis.findings.is_empty();
        first_finding = Some(describe_first(&diagnosis.findings, "samples"));
    };
    let inputs = std::slice::from_ref(&options.input);
    // Load each sample of a recording, not only sums: doctor's percentages are shares of the number of samples.
    let keep = if matches!(opened.format().read, Read::Addresses) { Keep::EachRow } else { Keep::Sums };
    let profile = load_and_inspect(
        JobInputs::with_first(Some(opened), inputs),
        keep,
        &options.load,
        &mut inspect,
        job,
        &mut outcome,
    )?;
    if is_callgrind {
        // Examine the callgrind file in the same way as `doctor` does. This reads it a second time, so the warnings go
        // to an outcome that is dropped: `outcome` has those of the first reading.
        let subject = Subject::examine(&options.input, &options.load.recording(), job, &mut Outcome::default())?;
        has_findings = !subject.findings().is_empty();
        first_finding = Some(describe_first(subject.findings(), "cost"));
    }
    let file = path.as_os_str().as_bytes();
    io::print(|out| {
        writeln!(out, "{}: {about}", readable(file))?;
        writeln!(out, "{}", describe_samples(&profile))?;
        writeln!(out, "{}", describe_shares(&profile))?;
        writeln!(out, "doctor: {}", first_finding.as_deref().unwrap_or("cannot examine this kind of file"))?;
        let next = if has_findings { "doctor" } else { "view" };
        Ok(writeln!(out, "next: jitgraft {next} {}", quoted(file))?)
    })?;
    // The five lines replace what loading would print as its summary.
    Ok(Outcome { warnings: outcome.warnings, ..Outcome::default() })
}

/// A line with the first of the findings. `unit` says what the percentages are of: samples or cost.
fn describe_first(findings: &[Finding], unit: &str) -> String {
    match findings.first() {
        Some(finding) => format!("{:.1}% of the {unit}: {}", finding.share.percent, finding.cause()),
        None => "no findings".to_owned(),
    }
}

/// The event with the most samples; `None` if there are no events.
fn main_event(profile: &Profile) -> Option<&Series> {
    profile.series.iter().max_by_key(|series| count(series))
}

/// The number of samples of an event.
fn count(series: &Series) -> u64 {
    series.rows.iter().fold(0, |sum, row| sum.saturating_add(row.count))
}

/// A line with the number of samples of the main event, or with its cost if the input doesn't count samples.
fn describe_samples(profile: &Profile) -> String {
    let Some(series) = main_event(profile) else { return "no samples".to_owned() };
    let others = profile.series.len() - 1;
    let more = if others > 0 { format!(", {}", counted(others as u64, "more event")) } else { String::new() };
    let event = readable(series.name.as_bytes());
    match row_word(profile, series) {
        Some(word) if series.name == "samples" => format!("{}{more}", counted(count(series), word)),
        Some(word) => format!("{} of {event}{more}", counted(count(series), word)),
        None => {
            let weight = series.rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.weight));
            format!("{} {event}{more}", grouped(weight))
        }
    }
}

/// A line with the share of each kind of code in the main event.
fn describe_shares(profile: &Profile) -> String {
    let shares = main_event(profile).map(|series| CodeShares::count(profile, series, Weight::Period));
    shares.map_or_else(|| "no code".to_owned(), |shares| shares.to_string())
}
