//! Reads traces: as stacks, as a timeline, or span by span.

use super::event::{Owner, TraceEvent};
use super::repair::repair;
use super::spans::{ThreadKey, Trace, read_trace};
use crate::analysis::quantity::counted;
use crate::analysis::timeline::{
    Arguments, NumberOrName, Oddities, OtherEvent, OtherKind, SpanId, SpanRecord, SpanSink, Timeline,
};
use crate::contract::format::ReadOptions;
use crate::contract::spans::{SpanInput, stacks as stacks_of};
use crate::error::{Result, Warning, Warnings};
use crate::formats::cpuprofile::ProfileChunks;
use crate::model::stacks::Profile;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Sums the spans by call path, and returns the sums as a profile. Miri's interpreted calls (`frame`) are shown by
/// their function's name. If a trace has samples, they become series of their own in the profile.
pub(super) fn stacks(input: SpanInput<'_>, options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let mut v8_profiles: BTreeMap<(i64, ProfileId), V8Profile> = BTreeMap::new();
    let mut unread_samples = 0;
    let trace = read(input, options, warnings, |event, ThreadKey { pid, tid }| {
        unread_samples += u64::from(is_unread_sample(event));
        // The event is a part of a profile of V8: `Profile`, `ProfileChunk` or `CpuProfile`.
        if ProfileChunks::EVENTS.contains(&event.name.as_bytes()) {
            let is_whole = event.name == "CpuProfile";
            let id = if is_whole { ProfileId::Whole(event.offset) } else { ProfileId::Chunks(event.id.to_owned()) };
            let thread = v8_profiles.entry((pid, id)).or_insert_with(|| V8Profile::new(tid));
            // The events `Profile` and `CpuProfile` are on the thread that they describe. The event `ProfileChunk` may
            // be on any thread, and the first one may be written before `Profile`.
            if is_whole || event.name == "Profile" {
                thread.tid = tid;
            }
            thread.chunks.add(event.time, event.args.as_bytes());
        }
        Ok(())
    })?;
    warn_about_unread(unread_samples, warnings);
    // Spans with these names are shown by their action instead of their name. In Miri's traces, these are the spans
    // called `frame`, whose action is the interpreted function.
    let shown_by_action: &[&[u8]] = if trace.timeline.is_miri { &[b"frame"] } else { &[] };
    let mut spans = stacks_of(&trace.timeline, shown_by_action, options, warnings)?;
    spans.about.notes.extend(trace.notes());
    let has_samples = !v8_profiles.is_empty() || !trace.samples.is_empty();
    // If the user asked for spans with certain names, samples are left out.
    if !has_samples || !options.only.is_empty() {
        return Ok(spans);
    }
    // In the profile, the series of the spans usually comes before those of the samples. But Hermes writes spans that
    // take no time, only to declare its threads; then the samples come first.
    let takes_time = spans.series.iter().flat_map(|series| &series.rows).any(|row| row.weight > 0);
    let mut profile = if takes_time { std::mem::take(&mut spans) } else { Profile::empty(options.keep) };
    for ((pid, _), V8Profile { tid, chunks }) in v8_profiles {
        chunks.push_to(&mut profile, trace.track(Some(pid), Some(tid), b"JavaScript"), warnings);
    }
    trace.samples.push_to(&mut profile, |pid, tid| trace.track(pid, tid, b"samples"), warnings);
    if !takes_time {
        // `cut_to_time` says that the rows of a profile were cut to the user's time range when they were read, so that
        // they must not be filtered by time any more. The samples still must be, and spans without time have nothing to
        // cut.
        spans.cut_to_time = false;
        profile.merge(&spans);
    }
    Ok(profile)
}

/// Identifies a profile of V8 within its process.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum ProfileId {
    /// The ID of a profile that is split into several events.
    Chunks(String),
    /// The offset of an event with a whole profile, which has no ID.
    Whole(u64),
}

/// V8's profile of one thread.
struct V8Profile {
    /// The thread's ID. Until the event `Profile` is read, the ID of a thread that wrote a chunk.
    tid: i64,
    chunks: ProfileChunks,
}

impl V8Profile {
    fn new(tid: i64) -> Self {
        Self { tid, chunks: ProfileChunks::default() }
    }
}

/// Reads the spans of a trace as a timeline. Samples are left out with a warning.
pub(super) fn timeline(input: SpanInput<'_>, options: &ReadOptions, warnings: &mut Warnings) -> Result<Timeline> {
    let mut unread_samples = 0;
    let trace = read(input, options, warnings, |event, _| {
        unread_samples += u64::from(is_unread_sample(event));
        Ok(())
    })?;
    warn_about_unread(unread_samples, warnings);
    Ok(trace.timeline)
}

/// True for samples (events of the phase `P`) that aren't read: all but those of V8's profiles.
fn is_unread_sample(event: &TraceEvent<'_>) -> bool {
    event.phase == b'P' && !ProfileChunks::EVENTS.contains(&event.name.as_bytes())
}

fn warn_about_unread(samples: u64, warnings: &mut Warnings) {
    if samples > 0 {
        warnings.push(Warning::new(format!(
            "skipped {}, because jitgraft reads sample events (ph P) only if V8 wrote them",
            counted(samples, "sample")
        )));
    }
}

/// Passes the spans to a sink. The trace is read twice: first to find the spans and nest them, then to read the
/// remaining data of those spans that the sink wants.
pub(super) fn emit(input: SpanInput<'_>, sink: &mut dyn SpanSink, warnings: &mut Warnings) -> Result<()> {
    let (bytes, done) = input.into_whole()?;
    let input = SpanInput::Whole { bytes: &bytes, done };
    let trace = read(input, &ReadOptions::default(), warnings, |event, _| sink.other(&other_event(event)))?;
    if !trace.samples.is_empty() {
        let samples = counted(trace.samples.len() as u64, "sample");
        warnings.push(Warning::new(format!("left out {samples}, because only spans can be written to this format")));
    }
    let mut timeline = trace.timeline;
    timeline.emit(sink, |slice, record, pass_on| {
        // `origin` is the offset of the span's first event in the file.
        let Some(bytes) = usize::try_from(slice.origin).ok().and_then(|offset| bytes.get(offset..)) else {
            return Ok(());
        };
        if let Ok((event, _)) = TraceEvent::parse_bytes(bytes) {
            return pass_on(&with_event(record, &event));
        }
        // The first pass must have repaired this event to read it, so repair it again.
        let Ok((json, _)) = repair(bytes) else { return Ok(()) };
        match TraceEvent::parse(&json) {
            Ok((event, _)) => pass_on(&with_event(record, &event)),
            Err(_) => Ok(()),
        }
    })
}

/// Completes a span's record with the data that the timeline doesn't keep: category, IDs and arguments of its event.
fn with_event<'a>(record: SpanRecord<'a>, event: &'a TraceEvent<'a>) -> SpanRecord<'a> {
    SpanRecord {
        cat: event.cat.as_deref().map(str::as_bytes),
        pid: number_or_name(event.process()),
        tid: number_or_name(event.thread()),
        id: span_id(event),
        args: Arguments::Json(event.args.as_bytes()),
        ..record
    }
}

/// The ID of the track that an event is on; `None` if the event is on the track of a thread.
fn span_id<'a>(event: &'a TraceEvent<'a>) -> Option<SpanId<'a>> {
    if !event.is_by_id() {
        return None;
    }
    Some(SpanId {
        text: event.id.as_bytes(),
        is_text: event.id_is_text,
        is_local: event.id_is_local,
        scope: event.scope.as_deref().map(str::as_bytes),
    })
}

/// Reads a trace and adds warnings. `other` is called with each event that isn't a span, and its process and thread.
fn read(
    input: SpanInput<'_>,
    options: &ReadOptions,
    warnings: &mut Warnings,
    other: impl FnMut(&TraceEvent<'_>, ThreadKey) -> Result<()>,
) -> Result<Trace> {
    let mut trace = read_trace(input.into_stream(), options, other)?;
    warnings.extend(std::mem::take(&mut trace.skipped).and_then(|skipped| skipped.into_warning()));
    warn(&trace.timeline, warnings);
    Ok(trace)
}

/// Converts a process or thread to the type of span records.
fn number_or_name(owner: Owner<'_>) -> NumberOrName<'_> {
    match owner {
        Owner::Number(number) => NumberOrName::Number(number),
        Owner::Named(Cow::Borrowed(name)) => NumberOrName::Name(Cow::Borrowed(name.as_bytes())),
        Owner::Named(Cow::Owned(name)) => NumberOrName::Name(Cow::Owned(name.into_bytes())),
    }
}

/// Converts an event that isn't a span for the sink.
fn other_event<'a>(event: &TraceEvent<'a>) -> OtherEvent<'a> {
    let kind = match event.phase {
        b'M' => OtherKind::Metadata,
        b'C' => OtherKind::Counter,
        _ => OtherKind::Unknown,
    };
    OtherEvent { kind, time: event.time, json: event.raw }
}

/// Warns about spans that don't nest properly, and about data that isn't read.
fn warn(timeline: &Timeline, warnings: &mut Warnings) {
    // Overlapping spans are only dropped, and counted in `overlaps`, if the user asked to count as Perfetto does. That
    // needs no warning.
    let Oddities {
        misplaced_ends,
        unmatched_ends,
        overlaps: _,
        late,
        timeless,
        endless,
        cpu_durations,
        stacks,
        unknown,
    } = timeline.oddities;
    let unfinished = timeline.unfinished_count();
    let findings = [
        (unfinished, "span", "without an end, counted up to the thread's last event (perhaps the program was killed)"),
        (misplaced_ends, "span", "that ended before inner spans, which were cut off at that time"),
        (unmatched_ends, "end event", "ignored, because no matching span was open"),
        (late, "event", "too far out of order to be sorted, so spans at that time may be wrong"),
        (timeless, "event", "without a time (ts), ignored"),
        (endless, "complete span", "(ph X) without a valid duration (dur), counted as zero"),
        (cpu_durations, "complete span", "(ph X) without a duration (dur); the CPU time (tdur) was taken instead"),
        (stacks, "instant", "with a call stack (stack, sf), which jitgraft does not read"),
        (unknown, "event", "without a known phase (ph), ignored"),
    ];
    for (count, what, problem) in findings {
        if count > 0 {
            warnings.push(Warning::new(format!("{} {problem}", counted(count, what))));
        }
    }
}
