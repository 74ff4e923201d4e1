//! The events as a timeline: for questions about single spans, which take memory by their number.

use super::event::Payload;
use super::labels::Labels;
use super::profile::MeasuremeFile;
use super::summing::ThreadNumbers;
use crate::analysis::timeline::{NO_NAME, Slice, SliceKind, Timeline};
use crate::contract::format::ReadOptions;
use crate::contract::spans::SpanInput;
use crate::error::{Result, Warnings};

/// Reads intervals and instants; what a span did is its first argument.
pub(super) fn timeline(input: SpanInput<'_>, _options: &ReadOptions, warnings: &mut Warnings) -> Result<Timeline> {
    let (bytes, done) = input.bytes.into_whole()?;
    let profile = MeasuremeFile::open(&bytes)?;
    let mut timeline = Timeline::default();
    let mut labels = Labels::new(profile.strings());
    let mut threads = ThreadNumbers::default();
    let mut count = 0;
    let time = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    // Backwards, so that of equal intervals the caller comes first.
    profile.backwards(
        |event| {
            let (start, duration, kind) = match event.payload {
                Payload::Interval { start, end } => (time(start), time(end - start), SliceKind::Span),
                Payload::Instant(at) => (time(at), 0, SliceKind::Instant),
                Payload::Integer(_) => return,
            };
            let track = threads.number(event.thread, || {
                count += 1;
                count - 1
            }) as u32;
            let label = labels.of(event.id);
            let name = timeline.names.number(labels.text(label));
            let argument = profile.strings().event(event.id).and_then(|(_, arguments)| arguments.into_iter().next());
            let sub = argument.map_or(NO_NAME, |argument| timeline.names.number(&argument));
            timeline.slices.push(Slice { start, duration, name, sub, track, depth: 0, kind, origin: 0 });
        },
        |range| done.with(range),
    );
    timeline.tracks = threads.tracks(&profile);
    timeline.nest(&vec![true; count]);
    drop(labels);
    warnings.extend(profile.into_skipped().into_warning());
    Ok(timeline)
}
