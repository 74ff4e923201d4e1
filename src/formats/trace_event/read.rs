//! The questions about a trace.

use super::chunks::{TraceChunk, TraceChunks};
use super::event::{FRAME, OwnerText, TraceEvent};
use super::json::Text;
use super::spans::join_spans;
use crate::analysis::timeline::{
    Arguments, NumberOrName, Oddities, OtherEvent, OtherKind, SpanId, SpanRecord, SpanSink, Timeline,
};
use crate::contract::format::ReadOptions;
use crate::contract::spans::{SpanBytes, SpanInput, stacks as stacks_of};
use crate::error::{Result, Warning, Warnings};
use crate::formats::cpuprofile::ProfileChunks;
use crate::model::stacks::{Profile, Track};
use crate::model::{Pid, Tid};
use std::collections::BTreeMap;

/// Sums the spans by call path. Interpreted calls (`frame`) are shown by the function. V8's own samples, if a trace has
/// them, are an event of their own.
pub(super) fn stacks(input: SpanInput<'_>, options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let mut sampled: BTreeMap<(String, String), SampledThread> = BTreeMap::new();
    let timeline = read(input, options.perfetto_compat, warnings, |event| {
        if ProfileChunks::EVENTS.contains(&&*event.name.text()) {
            let id = String::from_utf8_lossy(event.id).into_owned();
            let thread = sampled.entry((owner(event.pid), id)).or_default();
            // A profile starts on the thread that it is of, and goes on on any.
            thread.tid.get_or_insert_with(|| owner(event.tid));
            thread.chunks.add(event.args);
        }
        Ok(())
    })?;
    let mut profile = stacks_of(&timeline, &[FRAME], options, warnings)?;
    for ((pid, _), SampledThread { tid, chunks }) in sampled.into_iter().filter(|_| options.only.is_empty()) {
        let tid = tid.unwrap_or_default();
        let track = Track {
            comm: b"JavaScript".to_vec(),
            pid: pid.parse().ok().map(Pid),
            tid: tid.parse().ok().map(Tid),
            ..Track::default()
        };
        chunks.push_to(&mut profile, track, warnings);
    }
    Ok(profile)
}

/// V8's profile of one thread.
#[derive(Default)]
struct SampledThread {
    tid: Option<String>,
    chunks: ProfileChunks,
}

fn owner(who: OwnerText<'_>) -> String {
    match who {
        OwnerText::Number(number) => number.to_string(),
        OwnerText::Named(name) => String::from_utf8_lossy(&name.text()).into_owned(),
    }
}

/// Reads the spans.
pub(super) fn timeline(input: SpanInput<'_>, options: &ReadOptions, warnings: &mut Warnings) -> Result<Timeline> {
    read(input, options.perfetto_compat, warnings, |_| Ok(()))
}

/// Reports the spans. The trace is read twice: to know its spans, and to find what else it states about those that are
/// wanted.
pub(super) fn tell(input: SpanInput<'_>, sink: &mut dyn SpanSink, warnings: &mut Warnings) -> Result<()> {
    let (bytes, done) = input.bytes.into_whole()?;
    let input = SpanInput { bytes: SpanBytes::Whole { bytes: &bytes, done }, ..input };
    let mut timeline = read(input, false, warnings, |event| sink.other(&other(event)))?;
    timeline.tell(sink, |slice, record, tell| {
        let Some(event) = TraceEvent::find(&bytes, slice.origin) else { return Ok(()) };
        let cat = event.cat.map(Text::text);
        tell(&SpanRecord {
            cat: cat.as_deref(),
            pid: number_or_name(event.pid),
            tid: number_or_name(event.tid),
            id: event.is_by_id().then_some(SpanId {
                text: event.id,
                is_text: event.id_is_text,
                is_local: event.id_is_local,
            }),
            args: Arguments::Json(event.args),
            ..record
        })
    })
}

/// Reads the spans and shows what does not fit. `compat` and `other` are those of [`join_spans`].
fn read(
    input: SpanInput<'_>,
    compat: bool,
    warnings: &mut Warnings,
    other: impl FnMut(&TraceEvent<'_>) -> Result<()>,
) -> Result<Timeline> {
    let chunks = TraceChunks::new(input.bytes.into_stream());
    let parse = |chunk: Result<TraceChunk>| Ok(chunk?.parse(compat));
    let joined = input.workers.map(chunks, parse, |parsed| join_spans(parsed, compat, other));
    let (timeline, skipped) = joined?;
    warnings.extend(skipped.into_warning());
    warn(&timeline, warnings);
    Ok(timeline)
}

fn number_or_name(who: OwnerText<'_>) -> NumberOrName<'_> {
    match who {
        OwnerText::Number(number) => NumberOrName::Number(number),
        OwnerText::Named(name) => NumberOrName::Name(name.text()),
    }
}

fn other<'a>(event: &TraceEvent<'a>) -> OtherEvent<'a> {
    let kind = match event.phase {
        b'M' => OtherKind::Metadata,
        b'C' => OtherKind::Counter,
        _ => OtherKind::Unknown,
    };
    OtherEvent { kind, time: event.time, json: event.raw }
}

/// Warns of spans that do not nest as they should.
fn warn(timeline: &Timeline, warnings: &mut Warnings) {
    let Oddities { misplaced_ends, unmatched_ends, overlaps: _, late, timeless } = timeline.oddities;
    let unfinished = timeline.unfinished();
    let findings = [
        (unfinished, "spans never end (the program was killed?): they are taken to end with their thread"),
        (misplaced_ends, "ends close a span while others are open in it: those end there, too"),
        (unmatched_ends, "ends of spans that are not open are ignored"),
        (late, "events stand so far behind later ones of their thread that they could not be put in order"),
        (timeless, "events have no time (ts) and are ignored"),
    ];
    let said = findings.into_iter().filter(|(count, _)| *count > 0);
    warnings.extend(said.map(|(count, what)| Warning::new(format!("{count} {what}"))));
}
