//! Finds problems that concern a recording as a whole, such as lost samples or the wrong clock.

use super::super::context::{DoctorContext, RecordedStacks};
use super::super::finding::{Change, Finding, Highlight, Share};
use super::super::kind::FindingKind;
use super::super::process::ExaminedProcess;
use super::super::source::SourceFile;
use super::super::tally::percent;
use crate::jit::{ClockUse, Kind, SourceState};
use crate::model::Pid;
use crate::model::printable::readable;

/// Minimum number of samples for meaningful percentages. Even with 100 samples, a share that is shown as 10% may be off
/// by a third of itself.
const ENOUGH: u64 = 100;

/// If the times of a jitdump may be wrong by this many nanoseconds or less, this isn't reported: most code stays at its
/// address much longer, so it gets the right name anyway.
const EXACT: u64 = 100_000;

/// If perf took at least this many samples per second, don't advise to sample more often.
const OFTEN: u64 = 900;

/// The size of stack copies, in bytes, up to which we don't advise to make smaller ones.
const SMALL_COPY: u32 = 8192;

/// Advice on how to record so that the times of an engine's log can be converted exactly to the recording's clock.
const WHEN_IT_BEGAN: &str = "start the program with jitgraft record, and keep the original log file: a copy loses its \
                             creation time, even with cp --preserve";

/// The remedy for an engine's log whose times can't be converted any better. It says which names are right
/// nevertheless.
const NO_TIMES: &str = "recording again would not give the log better times. Names can only be wrong at addresses \
                        that held several functions over time";

/// Finds problems that concern the whole recording: damage, no or few samples, lost samples, missing call chains, and
/// clocks that don't fit. `damage` describes the part of the recording that could not be read; `None` if all of it was
/// read.
pub(super) fn findings(context: DoctorContext<'_>, damage: Option<String>) -> Vec<Finding> {
    let samples = context.tally.samples;
    let lost = context.examined.resolution.survey.processes.lost;
    let share = |percent| Share { percent, impact: percent, samples, frames: 0 };
    let mut found = Vec::new();
    if let Some(why) = damage {
        found.push(Finding::new(
            FindingKind::RecordingDamaged,
            share(100.0),
            format!("the recording is damaged: {}", readable(why.as_bytes())),
            "let perf record finish (stop it with Ctrl-C or kill -INT), with enough disk space, and copy the whole file",
        ));
    } else if samples == 0 && lost == 0 {
        found.push(report_no_samples(share(100.0), context));
    }
    if (1..ENOUGH).contains(&samples) {
        let remedy = match frequency(context) {
            // The rate was high enough already.
            Some(OFTEN..) => "record for longer",
            _ => "record for longer, or at a higher rate (jitgraft record takes 999 samples per second)",
        };
        found.push(Finding::new(
            FindingKind::FewSamples,
            // The fewer samples there are, the higher this finding is listed.
            Share { impact: (ENOUGH - samples) as f64, ..share(100.0) },
            format!("the recording has only {samples} samples, too few for meaningful percentages"),
            remedy,
        ));
    }
    if lost > 0 {
        let smaller_copies = match context.stacks {
            RecordedStacks::Copies(bytes) if bytes > SMALL_COPY => ", smaller copies (--call-graph dwarf,8192)",
            _ => "",
        };
        found.push(Finding::new(
            FindingKind::SamplesLost,
            share(percent(lost as f64, lost + samples)),
            format!("perf record did not keep up and lost {lost} samples"),
            format!("record less (a lower -F{smaller_copies}), or give perf larger buffers (-m)"),
        ));
    }
    if context.stacks == RecordedStacks::None && samples > 0 {
        let finding = Finding::new(
            FindingKind::NoCallChains,
            // Half of the recording counts as affected: without call chains, the innermost frames are still right.
            Share { impact: 50.0, ..share(100.0) },
            "no call chains were recorded, so only the innermost functions are known",
            "record with jitgraft record, which adds call chains",
        );
        found.push(finding.solved_by_change(Some(Change::Stacks)));
    }
    found.extend(find_clocks(context));
    found.extend(find_doubtful_logs(context));
    found
}

/// Reports a recording without samples.
fn report_no_samples(share: Share, context: DoctorContext<'_>) -> Finding {
    // A timer event takes samples whenever the program runs. If a recording with such an event has no samples, the
    // program was idle, and another event would not help.
    let counts_time = context.examined.resolution.survey.recording.events.iter().any(|event| is_clock(&event.name));
    let event = if counts_time { "" } else { ", or record another event (-e cpu-clock works everywhere)" };
    Finding::new(
        FindingKind::NoSamples,
        share,
        "the recording has no samples",
        format!("record for longer, while the program is busy (jitgraft record -a records all processes){event}"),
    )
}

/// True if the event is one of the kernel's timers, which work on every machine.
fn is_clock(event: &str) -> bool {
    event.starts_with("cpu-clock") || event.starts_with("task-clock")
}

/// The number of samples per second that perf was asked for. `None` if it was asked for something else, such as a
/// sample every N events.
fn frequency(context: DoctorContext<'_>) -> Option<u64> {
    let events = &context.examined.resolution.survey.recording.events;
    events.iter().filter_map(|event| event.attr.requested_frequency()).max()
}

/// True if the recording uses the clock that jitdumps use (`CLOCK_MONOTONIC`).
fn is_monotonic(context: DoctorContext<'_>) -> bool {
    /// The number of this clock in Linux's `time.h`.
    const CLOCK_MONOTONIC: i32 = 1;
    context.examined.resolution.survey.processes.clock.clockid == Some(CLOCK_MONOTONIC)
}

/// Finds logs that may give some frames the wrong name: their times are only estimated, and other code was at the same
/// address shortly before or after a sample.
fn find_doubtful_logs(context: DoctorContext<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let perf_started_program = context.command().is_some_and(|perf| !perf.records_others);
    // True if a new recording couldn't estimate a log's times any better.
    let is_best = perf_started_program && is_monotonic(context);
    for (number, account) in context.examined.accounts().iter().enumerate() {
        let source = context.source_file(number, account);
        let frames = source.doubtful;
        // Only look at logs: `find_clocks` reports jitdumps with inexact times.
        if let SourceState::Loaded { clock: Some(ClockUse::Estimated { error }), .. } = account.state
            && matches!(account.kind, Kind::Log(_))
            && frames > 0
        {
            let share = Share::from_percent(percent(frames as f64, context.tally.frames));
            found.push(log_clock(&context.process(account.pid), share, &source, error, is_best));
        }
    }
    found
}

/// Finds jitdumps whose times come from another clock than the recording's, and files whose times can't be used at all.
fn find_clocks(context: DoctorContext<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let is_monotonic = is_monotonic(context);
    for (number, account) in context.examined.accounts().iter().enumerate() {
        // The findings name a process, so skip files whose process isn't known.
        if account.pid <= Pid(0) {
            continue;
        }
        let error = match account.state {
            // `find_doubtful_logs` reports logs with inexact times. Files without code can't name anything wrongly.
            SourceState::Loaded { clock: Some(ClockUse::Estimated { error: Some(error) }), .. }
                if account.kind == Kind::JitDump && error > EXACT =>
            {
                Some(error)
            }
            SourceState::Loaded { clock: Some(ClockUse::Dropped), codes: 1.., .. } => None,
            _ => continue,
        };
        let samples = context.tally.coverage.get(number).map_or(0, |coverage| coverage.samples);
        let source = context.source_file(number, account);
        let share = match error {
            // With estimated times, names can only be wrong at addresses that held other code around the time of a
            // sample.
            Some(_) => Share { samples, ..Share::from_percent(percent(source.doubtful as f64, context.tally.frames)) },
            // Without usable times, we don't know which code was at an address when. Most code never moves, so most
            // names are right, and the impact is only half.
            None => context.share_of_samples(samples, 0.5),
        };
        found.push(clock(&context.process(account.pid), share, &source, error, is_monotonic));
    }
    found
}

/// Reports a dump or log whose times come from another clock than those of the recording. `error` is the possible error
/// of the converted times in nanoseconds; `None` if they could not be converted at all. `is_monotonic` is true if the
/// recording uses the clock of jitdumps.
fn clock(
    process: &ExaminedProcess,
    share: Share,
    source: &SourceFile,
    error: Option<u64>,
    is_monotonic: bool,
) -> Finding {
    let path = source.printable_path();
    let effect = match error {
        Some(error) => format!("; its times are estimated to within {:.1} ms", error as f64 / 1e6),
        None => ", so its times cannot be used, and functions that shared an address may be confused".to_owned(),
    };
    let is_log = matches!(source.kind, Kind::Log(_));
    let remedy = match (is_log, is_monotonic) {
        (true, false) => WHEN_IT_BEGAN,
        (true, true) if process.can_write_dump() => "record again with a jitdump, which has exact times",
        (true, true) => NO_TIMES,
        (false, false) => "record with jitgraft record, which uses the clock of jitdumps (-k mono)",
        (false, true) => {
            "the recording uses CLOCK_MONOTONIC, as it should, but the runtime wrote its jitdump with another clock. \
             Names can only be wrong at addresses that held several functions over time"
        }
    };
    let cause = format!("{path} uses a different clock than the recording{effect}");
    let change = if is_monotonic { None } else { Some(Change::Clock) };
    let finding = Finding::new(FindingKind::Clock, share, cause, remedy);
    // For a dump, a new recording with the right clock solves the problem. For a log, more is needed than that, so its
    // remedy must stay.
    let finding = if is_log { finding.with_change(change) } else { finding.solved_by_change(change) };
    finding.with_process(process).with_highlight(Highlight::Jit)
}

/// Reports a log that may give some frames the wrong name: its times are not exact, and addresses held other code
/// around the time of samples. `error` is how far the times may be off, in nanoseconds; `None` if unknown. `is_best` is
/// true if a new recording can't convert the times any better, because perf started the program and used the clock of
/// jitdumps.
fn log_clock(
    process: &ExaminedProcess,
    share: Share,
    source: &SourceFile,
    error: Option<u64>,
    is_best: bool,
) -> Finding {
    let when = match error {
        Some(error) => {
            format!(
                "the code at their addresses changed less than {:.1} ms before or after the sample, and the log's \
                 times may be off by as much",
                error as f64 / 1e6
            )
        }
        None => {
            "other code was at the same addresses at other times, and it is unknown how precise the log's times are"
                .to_owned()
        }
    };
    let SourceFile { doubtful, covered, .. } = source;
    let cause =
        format!("{doubtful} of {covered} frames named by {} may have the wrong name: {when}", source.printable_path());
    let remedy = if !is_best {
        WHEN_IT_BEGAN
    } else if process.can_write_dump() {
        "recording again would not give the log better times; record with a jitdump instead, which has exact times"
    } else {
        NO_TIMES
    };
    let change = if is_best { None } else { Some(Change::Clock) };
    Finding::new(FindingKind::LogClock, share, cause, remedy).with_process(process).with_change(change)
}
