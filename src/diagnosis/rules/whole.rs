//! Finds problems that concern a recording as a whole, such as lost samples or the wrong clock.

use super::super::context::{DoctorContext, RecordedStacks};
use super::super::problem::{Finding, OfProcess, Problem};
use super::super::tally::percent;
use crate::model::Pid;
use crate::sources::{ClockUse, Kind, SourceState};

/// Minimum number of samples. With fewer, percentages are mostly chance: at 100 samples, a share of 10% is known to
/// within a third of itself.
const ENOUGH: u64 = 100;

/// An error of times in nanoseconds. If a dump's times have a smaller error, they are good enough, because most code
/// lives longer.
const EXACT: u64 = 100_000;

pub(super) fn findings(context: DoctorContext<'_>, damage: Option<String>) -> Vec<Finding> {
    let samples = context.tally.samples;
    let lost = context.examined.resolution.survey.processes.lost;
    let finding = |problem, percent| Finding::new(problem, percent, samples, 0);
    let mut found = Vec::new();
    if let Some(why) = damage {
        found.push(finding(Problem::Damaged { why }, 100.0));
    } else if samples == 0 && lost == 0 {
        let is_clock = context.examined.resolution.survey.recording.events.iter().any(|event| is_clock(&event.name));
        found.push(finding(Problem::NoSamples { is_clock }, 100.0));
    }
    if (1..ENOUGH).contains(&samples) {
        let frequency = frequency(context);
        found.push(finding(Problem::FewSamples { samples, frequency }, (ENOUGH - samples) as f64));
    }
    if lost > 0 {
        let copied = if let RecordedStacks::Copies(bytes) = context.stacks { bytes } else { 0 };
        found.push(finding(Problem::Lost { lost, copied }, percent(lost as f64, lost + samples)));
    }
    if context.stacks == RecordedStacks::None && samples > 0 {
        // Count half of the recording: without call chains, the innermost frames are still right.
        found.push(finding(Problem::NoCallChains, 50.0));
    }
    found.extend(find_clocks(context));
    found.extend(find_doubtful_logs(context));
    found
}

/// True if the event is one of the kernel's timers, which work on every machine.
fn is_clock(event: &str) -> bool {
    event.starts_with("cpu-clock") || event.starts_with("task-clock")
}

/// The requested number of samples per second. `None` if perf was asked for something else, such as a sampling period.
fn frequency(context: DoctorContext<'_>) -> Option<u64> {
    let events = &context.examined.resolution.survey.recording.events;
    events.iter().filter_map(|event| event.attr.requested_frequency()).max()
}

/// True if the recording uses the clock that jitdumps use (`CLOCK_MONOTONIC`).
fn is_monotonic(context: DoctorContext<'_>) -> bool {
    /// The value in Linux's `time.h`.
    const CLOCK_MONOTONIC: i32 = 1;
    context.examined.resolution.survey.processes.clock.clockid == Some(CLOCK_MONOTONIC)
}

/// Finds logs with estimated times that name addresses where other code was at around the same time.
fn find_doubtful_logs(context: DoctorContext<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let is_started = context.command().is_some_and(|perf| !perf.records_others);
    let is_best = is_started && is_monotonic(context);
    for (number, account) in context.examined.accounts().iter().enumerate() {
        let source = context.source_file(number, account);
        let frames = source.doubtful;
        if let SourceState::Loaded { clock: Some(ClockUse::Estimated { error }), .. } = account.state
            && matches!(account.kind, Kind::Log(_))
            && frames > 0
        {
            let problem = Problem::OfProcess(context.who(account.pid), OfProcess::Doubtful { source, error, is_best });
            found.push(Finding::new(problem, percent(frames as f64, context.tally.frames), 0, 0));
        }
    }
    found
}

/// Finds dumps whose times are on another clock, and sources whose times can't be used.
fn find_clocks(context: DoctorContext<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let is_monotonic = is_monotonic(context);
    for (number, account) in context.examined.accounts().iter().enumerate() {
        if account.pid <= Pid(0) {
            continue;
        }
        let error = match account.state {
            SourceState::Loaded { clock: Some(ClockUse::Estimated { error: Some(error) }), .. }
                if account.kind == Kind::JitDump && error > EXACT =>
            {
                Some(error)
            }
            SourceState::Loaded { clock: Some(ClockUse::Dropped), codes: 1.., .. } => None,
            _ => continue,
        };
        let samples = context.tally.covered.get(number).map_or(0, |(_, samples)| *samples);
        let source = context.source_file(number, account);
        let percent = match error {
            // Names can only be wrong at addresses that held other code around that time.
            Some(_) => percent(source.doubtful as f64, context.tally.frames),
            // Without usable times, we don't know which code was at an address when. Most code never moves, so most
            // names are right, and only half of the samples count.
            None => percent(samples as f64 / 2.0, context.tally.samples),
        };
        let problem = Problem::OfProcess(context.who(account.pid), OfProcess::Clock { source, error, is_monotonic });
        found.push(Finding::new(problem, percent, samples, 0));
    }
    found
}
