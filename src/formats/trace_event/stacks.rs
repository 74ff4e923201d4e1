//! Writes stacks as trace events: each thread's samples in real time. Frames that consecutive samples have in common
//! become one span.
//!
//! Each sample stands for the time before it, as long as its weight:
//!
//! ```text
//! samples        |      |      |              |      |      (at their times)
//! intervals  [------|------|------]       [------|------]   (as long as the weights; adjacent while the thread ran)
//! main       =====================        ==============
//! f          =======       =======        ==============
//! ```
//!
//! If a sample's interval starts late by less than half its length, it is moved to the end of the previous one. Spans
//! then aren't interrupted, and all durations still add up to the weights. For an event that doesn't count time,
//! intervals are as long as the time between samples, and the weight goes into the arguments. If no sample has a time,
//! the sums of the stacks are laid out one after the other.

use super::layout::{self, EventWriting, StackSpan};
use super::write::{TraceWriter, quote};
use crate::analysis::category::Category;
use crate::analysis::label;
use crate::analysis::thread_rows::{ThreadRows, middle_distance, threads};
use crate::analysis::timeline::{Arguments, NumberOrName, SpanRecord, SpanWriter};
use crate::contract::format::WriteOptions;
use crate::contract::rows::{clamp, command_line};
use crate::error::Result;
use crate::model::Nanos;
use crate::model::process::{Moment, MomentKind};
use crate::model::stacks::{Frame, FrameId, Profile, Row, Sampling, Series, Timing, Unit, Weight};
use rustc_hash::FxHashSet;
use serde_json::{Value, json};
use std::io::Write;

/// Writes the event that the options select ([`WriteOptions::series`]).
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    // Frames must not differ by line, so that a function that ran at several lines is one span.
    let has_lines = profile.frames().any(|(_, frame)| *frame != without_line(frame));
    let without_lines;
    let profile = if has_lines {
        without_lines = profile.with_frames(|copy, _, frame| profile.frame_in(copy, &without_line(frame)));
        &without_lines
    } else {
        profile
    };
    let mut writer = TraceWriter::new(out)?;
    let Some(series) = profile.series.get(options.series) else { return writer.finish() };
    let threads = threads(profile, series);
    let counts_time = (&series.unit, options.weight) == (&Unit::Nanos, Weight::Period);
    let sample_duration = choose_sample_duration(series, &threads);
    let writing = EventWriting { profile, weight: options.weight, counts_time, sample_duration };
    // The time of the last sample of any event; `None` if the samples have no times. A caller that writes each event to
    // a file of its own determines it once, and passes it in the options.
    let Timing { mut last } = options.timing.unwrap_or_else(|| profile.timing());
    // An event may have no times although others have.
    if series.rows.iter().all(|row| row.time.is_none()) {
        last = None;
    }
    let mut named_processes = FxHashSet::default();
    for (number, thread) in threads.iter().enumerate() {
        let pid = thread.pid.map_or(1, |pid| i64::from(pid.0));
        // A thread without an ID is numbered by its position, a process without one is number 1.
        let tid = thread.tid.map_or(number as i64 + 1, |tid| i64::from(tid.0));
        if named_processes.insert(pid) {
            writer.process_name(pid, &String::from_utf8_lossy(thread.comm))?;
        }
        writer.thread_name(pid, tid, &String::from_utf8_lossy(thread.comm))?;
        let spans = match last {
            Some(last) => spans_in_time(writing, &thread.rows, last),
            // Without times, the spans are as long as the sums of their weights.
            None => layout::lay_out_spans(writing, &thread.rows),
        };
        for span in &spans {
            write_span(writing, span, pid, tid, &mut writer)?;
        }
    }
    for moment in &profile.about.moments {
        write_moment(moment, &mut writer)?;
    }
    writer.finish_with_metadata(&recording_facts(profile, series, options.weight))
}

/// A copy of a frame without its source line and its address, which differ between samples of one function.
fn without_line(frame: &Frame) -> Frame {
    Frame { file: None, line: 0, column: 0, addr: None, ..*frame }
}

/// The duration to give to each sample if the event doesn't count time, in nanoseconds: the sampling interval as
/// requested when recording, or else the median distance of samples in a thread.
fn choose_sample_duration(series: &Series, threads: &[ThreadRows<'_>]) -> i64 {
    /// The shortest duration, which is also used if no thread has two samples.
    const MICROSECOND: u64 = 1000;
    if let Some(Sampling::Frequency(hertz)) = series.sampling {
        return (1_000_000_000 / hertz.max(1)) as i64;
    }
    middle_distance(threads).unwrap_or(0).max(MICROSECOND) as i64
}

/// The spans of a thread, in the order of their starts and outer ones first. `rows` must be sorted by time, those
/// without a time last; these become empty spans at `last`, the time of the profile's last sample.
fn spans_in_time(writing: EventWriting<'_>, rows: &[&Row], last: Nanos) -> Vec<StackSpan> {
    let mut spans: Vec<StackSpan> = Vec::new();
    // Indices of the spans that may continue with the next sample, outermost first.
    let mut open: Vec<usize> = Vec::new();
    // The end of the previous sample's interval.
    let mut last_end: Option<i64> = None;
    for row in rows {
        let weight = writing.weight.value(row);
        let (start, length) = match row.time {
            Some(time) => {
                let length = if writing.counts_time { clamp(weight) } else { writing.sample_duration };
                (interval_start(clamp(time.0), length, last_end), length)
            }
            // A sample without a time comes after all other spans, even if the last of them ends after `last`.
            None => (last_end.unwrap_or(i64::MIN).max(clamp(last.0)), 0),
        };
        let mut frames: Vec<FrameId> = writing.profile.frames_up(row.stack).collect();
        frames.reverse();
        // If the intervals touch, the outermost frames that both samples have in common continue. An interval may be
        // empty, but a sample without a time has none.
        let is_adjacent = last_end == Some(start) && row.time.is_some();
        if is_adjacent {
            let common = open.iter().zip(&frames).take_while(|&(&index, &frame)| spans[index].frame == frame).count();
            open.truncate(common);
        } else {
            open.clear();
        }
        for &frame in &frames[open.len()..] {
            open.push(spans.len());
            spans.push(StackSpan { frame, start, duration: 0, samples: 0, weight: 0 });
        }
        for &index in &open {
            let span = &mut spans[index];
            span.duration = start.saturating_add(length).saturating_sub(span.start);
            span.samples = span.samples.saturating_add(row.count);
            span.weight = span.weight.saturating_add(weight);
        }
        last_end = Some(start.saturating_add(length));
    }
    spans
}

/// The start of a sample's interval, which should end at `time`. If it would overlap the previous interval, or start
/// less than half its length after that, it starts at the end of the previous interval instead. It then doesn't end at
/// `time`, because its length stays the same.
fn interval_start(time: i64, length: i64, previous_end: Option<i64>) -> i64 {
    let start = time.saturating_sub(length);
    match previous_end {
        Some(end) if start.saturating_sub(end) < length / 2 => end,
        _ => start,
    }
}

/// Writes a span. Its arguments are the module, the file, line and column where the function starts, the number of
/// samples and, if the event doesn't count time, the weight.
fn write_span(
    writing: EventWriting<'_>,
    span: &StackSpan,
    pid: i64,
    tid: i64,
    writer: &mut TraceWriter<'_>,
) -> Result<()> {
    let profile = writing.profile;
    let frame = profile.frame_of(span.frame);
    let mut args = b"{".to_vec();
    if let Some(module) = frame.module {
        args.extend(b"\"module\":");
        quote(&mut args, profile.name_of(module));
        args.push(b',');
    }
    if let Some(file) = frame.start.file {
        args.extend(b"\"file\":");
        quote(&mut args, profile.name_of(file));
        args.push(b',');
        for (key, number) in [("line", frame.start.line), ("column", frame.start.column)] {
            if number > 0 {
                args.extend(format!("\"{key}\":{number},").bytes());
            }
        }
    }
    args.extend(format!("\"samples\":{}", span.samples).bytes());
    if !writing.counts_time {
        args.extend(format!(",\"weight\":{}", span.weight).bytes());
    }
    args.push(b'}');
    writer.span(&SpanRecord {
        name: label::function(profile, frame).as_bytes(),
        cat: Some(Category::from_frame(frame).name().as_bytes()),
        start: span.start,
        duration: Some(span.duration),
        pid: NumberOrName::Number(pid),
        tid: NumberOrName::Number(tid),
        id: None,
        args: Arguments::Json(&args),
    })
}

/// Writes an event other than a sample, such as a fork or an exit, as an instant.
fn write_moment(moment: &Moment, writer: &mut TraceWriter<'_>) -> Result<()> {
    let name = match &moment.kind {
        MomentKind::Named(name) => [b"comm ", &name[..]].concat(),
        MomentKind::Executed(name) => [b"exec ", &name[..]].concat(),
        MomentKind::Forked(child) => format!("fork of process {child}").into_bytes(),
        MomentKind::Exited => b"exit".to_vec(),
        MomentKind::Lost(count) => format!("{count} records lost").into_bytes(),
    };
    writer.span(&SpanRecord {
        name: &name,
        cat: Some(b"record"),
        start: clamp(moment.time.0),
        duration: None,
        pid: NumberOrName::Number(moment.pid.0.into()),
        tid: NumberOrName::Number(moment.tid.0.into()),
        id: None,
        args: Arguments::Texts(&[]),
    })
}

/// The contents of `otherData`: facts about the recording and the event.
fn recording_facts(profile: &Profile, series: &Series, weight: Weight) -> Value {
    let unit = match weight {
        Weight::Period => series.unit.name(),
        Weight::Samples => Unit::Samples.name(),
    };
    let mut facts = json!({"event": series.name, "unit": unit, "lost": profile.about.lost});
    if let Some(command) = command_line(&profile.about.command) {
        facts["command"] = Value::String(command.into());
    }
    for (key, value) in [("host", &profile.about.host), ("kernel", &profile.about.os_release)] {
        if let Some(value) = value {
            facts[key] = Value::String(String::from_utf8_lossy(value).into_owned());
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Nanos;
    use crate::model::stacks::{FrameKind, StackId, Track};

    /// The spans for samples of 10 ns each, given as their stacks and times.
    fn spans(samples: &[(&str, u64)]) -> Vec<(String, i64, i64, u64)> {
        weighted_spans(&samples.iter().map(|&(names, time)| (names, time, 10)).collect::<Vec<_>>())
    }

    /// The spans for samples, given as their stacks, times and weights.
    fn weighted_spans(samples: &[(&str, u64, u64)]) -> Vec<(String, i64, i64, u64)> {
        let mut profile = Profile::new();
        let track = profile.track(Track::default());
        let mut rows = Vec::new();
        for &(names, time, weight) in samples {
            let stack = names.split(';').fold(None, |stack: Option<StackId>, name| {
                let name = profile.name(name.as_bytes());
                let frame = profile.frame(Frame::new(name, FrameKind::User));
                Some(profile.stack(stack, frame))
            });
            rows.push(Row { track, stack, weight, count: 1, time: Some(Nanos(time)) });
        }
        let writing = EventWriting { profile: &profile, weight: Weight::Period, counts_time: true, sample_duration: 1 };
        let rows: Vec<&Row> = rows.iter().collect();
        let last = Nanos(samples.iter().map(|&(_, time, _)| time).max().unwrap_or(0));
        let mut spans = Vec::new();
        for span in spans_in_time(writing, &rows, last) {
            let name = String::from_utf8_lossy(profile.name_of(profile.frame_of(span.frame).name)).into_owned();
            spans.push((name, span.start, span.duration, span.samples));
        }
        spans
    }

    #[test]
    fn neighbors_are_one_span_and_gaps_stay() {
        let expected = [("a", 90, 30, 3), ("f", 90, 20, 2), ("g", 110, 10, 1), ("a", 1000, 10, 1)];
        let expected = expected.map(|(name, start, duration, samples)| (name.to_owned(), start, duration, samples));
        // The second sample is 3 ns late, the third 1 ns early.
        assert_eq!(spans(&[("a;f", 100), ("a;f", 113), ("a;g", 119), ("a", 1010)]), expected);
    }

    #[test]
    fn samples_of_no_weight_do_not_divide_a_span() {
        let expected = [("a", 90, 20, 4), ("f", 90, 10, 2), ("g", 100, 10, 2)];
        let expected = expected.map(|(name, start, duration, samples)| (name.to_owned(), start, duration, samples));
        let samples = [("a;f", 100, 10), ("a;f", 100, 0), ("a;g", 100, 0), ("a;g", 110, 10)];
        assert_eq!(weighted_spans(&samples), expected);
    }

    #[test]
    fn an_event_that_comes_later_and_later_is_not_moved_further_and_further() {
        let late: Vec<(&str, u64)> = (0..100).map(|at| ("a", 100 + 12 * at)).collect();
        let found = spans(&late);
        let end = found.last().map(|(_, start, duration, _)| start + duration).unwrap();
        assert!((100 + 12 * 99 - end) < 5, "{found:?}");
        assert_eq!(found.iter().map(|(_, _, duration, _)| duration).sum::<i64>(), 1000);
    }

    /// Off-CPU samples of perf and allocations in OpenTelemetry profiles have no times, while other events do.
    #[test]
    fn an_event_without_times_is_laid_out_by_weight_whatever_other_events_have() {
        let mut profile = Profile::new();
        let track = profile.track(Track::default());
        let mut stacks = Vec::new();
        for name in [b"a", b"b"] {
            let name = profile.name(name);
            let frame = profile.frame(Frame::new(name, FrameKind::User));
            stacks.push(Some(profile.stack(None, frame)));
        }
        let timed = profile.series_with_unit("cpu", &Unit::Nanos);
        let untimed = profile.series_with_unit("off-cpu", &Unit::Nanos);
        for (series, times) in [(timed, [Some(Nanos(5_000)), Some(Nanos(90_000))]), (untimed, [None, None])] {
            for (&stack, time) in stacks.iter().zip(times) {
                profile.push(series, Row { track, stack, weight: 4_000, count: 1, time });
            }
        }
        let durations = |series| {
            let mut text = Vec::new();
            write(&profile, &WriteOptions { series, ..WriteOptions::default() }, &mut text).unwrap();
            let document: serde_json::Value = serde_json::from_slice(&text).unwrap();
            let events = document["traceEvents"].as_array().unwrap();
            let spans = events.iter().filter(|event| event["ph"] == "X");
            spans.map(|span| span["dur"].as_f64().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(durations(untimed), [4.0, 4.0]);
        assert_eq!(durations(timed).len(), 2);
    }
}
