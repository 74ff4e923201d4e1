//! Reads measureme profiles: as stacks, as a timeline, or span by span. Each takes one pass from the end of the file to
//! its start.

use super::event::{Payload, RawEvent};
use super::profile::MeasuremeFile;
use super::strings::Labels;
use super::threads::ThreadNumbers;
use crate::analysis::timeline::{
    Arguments, CallSums, Clock, NO_NAME, Slice, SliceKind, Span, SpanFile, SpanHead, SpanRecord, SpanSink, Timeline,
};
use crate::contract::format::ReadOptions;
use crate::contract::rows::clamp;
use crate::contract::spans::SpanInput;
use crate::error::{Result, Warning, Warnings};
use crate::model::stacks::{Profile as Stacks, Track, Unit};
use crate::model::{Pid, Tid};

/// Sums the times of the intervals of each (virtual) thread by call path. Instants and integers take no time and are
/// left out.
pub(super) fn stacks(input: SpanInput<'_>, options: &ReadOptions, warnings: &mut Warnings) -> Result<Stacks> {
    let (bytes, done) = input.into_whole()?;
    let profile = MeasuremeFile::open(&bytes)?;
    // Times in the file are relative to the start of the recording, so the recording begins at 0.
    let calls = options.calls_between(0, profile.last_time())?;
    let mut sums = CallSums::new(calls);
    let mut labels = Labels::new(&profile.strings);
    let mut threads = ThreadNumbers::default();
    profile.for_each_event_reversed(&done, |event| {
        if let Payload::Interval { start, end } = event.payload {
            // `sums.track` adds the thread if it is new.
            let track = threads.number(event.thread, || sums.track());
            sums.call(track, labels.number(event.id), Span { start, end });
        }
    });
    warn(&profile, &sums, options, warnings);
    let tracks = threads.tracks(&profile);
    let (series, unit) = profile.metadata.unit();
    let series = match options.calls.clock {
        // With `Clock::Active`, only the time during which threads were running is summed, so the event isn't called
        // wall time. If the file counts something other than time, the event keeps the counter's name.
        Clock::Active(_) if unit == Unit::Nanos => "active-time",
        _ => series,
    };
    let mut stacks = sums.into_profile(&tracks, labels.texts.list(), series, unit);
    // The sums already cover only the time range that the user asked for, so nothing may filter them by time again.
    stacks.cut_to_time = true;
    warnings.extend(profile.skipped.into_warning());
    Ok(stacks)
}

/// Warns if names are lost, or if calls overlap without being nested.
fn warn(profile: &MeasuremeFile<'_>, sums: &CallSums, options: &ReadOptions, warnings: &mut Warnings) {
    if profile.names_are_lost() {
        warnings.push(Warning::new(
            "there is no string table (perhaps the recorded process was killed), so functions are shown as fn# and a \
             number",
        ));
    }
    let overlaps = sums.overlaps();
    if overlaps > 0 {
        let what = match options.calls.clock {
            Clock::Wall => "time in which calls overlap counts for each of them",
            Clock::Active(_) => "the times during which threads were active are estimates",
        };
        warnings.push(Warning::new(format!(
            "calls that partly overlap another call with the same thread ID: {overlaps} (perhaps several threads were \
             recorded with one ID). Each of these calls starts a new stack, and {what}"
        )));
    }
}

/// Reads the intervals and instants. The first argument of an interval or instant becomes its action
/// ([`Slice::action`]).
pub(super) fn timeline(input: SpanInput<'_>, _options: &ReadOptions, warnings: &mut Warnings) -> Result<Timeline> {
    let (bytes, done) = input.into_whole()?;
    let profile = MeasuremeFile::open(&bytes)?;
    let mut timeline = Timeline::default();
    let mut labels = Labels::new(&profile.strings);
    let mut threads = ThreadNumbers::default();
    let mut thread_count = 0;
    // Events are read backwards, because a caller is written after its callees. If both have the same times, only this
    // order tells which is the caller.
    profile.for_each_event_reversed(&done, |event| {
        let (start, duration, kind) = match event.payload {
            Payload::Interval { start, end } => (clamp(start), clamp(end - start), SliceKind::Span),
            Payload::Instant(time) => (clamp(time), 0, SliceKind::Instant),
            Payload::Integer(_) => return,
        };
        // New threads are numbered from 0.
        let track = threads.number(event.thread, || {
            thread_count += 1;
            thread_count - 1
        }) as u32;
        let label = labels.number(event.id);
        let name = timeline.names.number(labels.text(label));
        let argument = profile.strings.event(event.id).and_then(|(_, arguments)| arguments.into_iter().next());
        let action = argument.map_or(NO_NAME, |argument| timeline.names.number(&argument));
        // `nest` sets lane and depth, when all slices are known.
        timeline.slices.push(Slice { start, duration, name, action, track, lane: 0, depth: 0, kind, origin: 0 });
    });
    timeline.tracks = threads.tracks(&profile);
    // Events don't state their callers, so the spans of every thread (`true`) have to be nested by their times.
    timeline.nest(&vec![true; thread_count]);
    // `labels` borrows `profile`, whose list of damage is taken next.
    drop(labels);
    warnings.extend(profile.skipped.into_warning());
    Ok(timeline)
}

/// Passes each interval to `sink` as soon as it is read, so that memory doesn't grow with the file.
pub(super) fn emit(input: SpanInput<'_>, sink: &mut dyn SpanSink, warnings: &mut Warnings) -> Result<()> {
    let (bytes, done) = input.into_whole()?;
    let profile = MeasuremeFile::open(&bytes)?;
    let metadata = &profile.metadata;
    let pid = metadata.process_id.unwrap_or(0);
    sink.file(&SpanFile {
        first: 0,
        last: profile.last_time().cast_signed(),
        since_1970: metadata.start_time,
        process: Some((i64::from(pid), metadata.crate_name().unwrap_or(metadata.program()))),
        threads: &[],
    })?;
    let mut passer = SpanPasser {
        profile: &profile,
        pid: Pid(pid as i32),
        labels: Labels::new(&profile.strings),
        // Categories come from the same string table as labels, but are numbered separately.
        kinds: Labels::new(&profile.strings),
    };
    // Reading events can't be stopped, so the events after an error are ignored.
    let mut result = Ok(());
    profile.for_each_event_reversed(&done, |event| {
        if result.is_ok() {
            result = passer.pass(event, sink);
        }
    });
    result?;
    drop(passer);
    warnings.extend(profile.skipped.into_warning());
    Ok(())
}

/// Passes intervals on to a sink.
struct SpanPasser<'p, 'data> {
    profile: &'p MeasuremeFile<'data>,
    pid: Pid,
    labels: Labels<'p, 'data>,
    kinds: Labels<'p, 'data>,
}

impl SpanPasser<'_, '_> {
    /// Passes an event on to the sink, if it is an interval that the sink wants.
    fn pass(&mut self, event: RawEvent, sink: &mut dyn SpanSink) -> Result<()> {
        let Payload::Interval { start, end } = event.payload else { return Ok(()) };
        let (label, kind) = (self.labels.number(event.id), self.kinds.number(event.kind));
        let thread = Track { pid: Some(self.pid), tid: Some(Tid(event.thread as i32)), ..Track::default() };
        let head = SpanHead {
            thread_no: event.thread,
            thread: &thread,
            name_no: label,
            name: self.labels.text(label),
            action: None,
            start: start.cast_signed(),
            duration: Some((end - start).cast_signed()),
        };
        if !sink.wants(&head) {
            return Ok(());
        }
        let arguments = self.profile.strings.event(event.id).map(|(_, arguments)| arguments).unwrap_or_default();
        // Arguments are only read for intervals that are wanted, since that takes time. The file has no names for them,
        // so they are numbered.
        let keys: Vec<String> = (0..arguments.len()).map(|number| format!("arg{number}")).collect();
        let args: Vec<_> = keys.iter().map(String::as_bytes).zip(arguments.iter().map(Vec::as_slice)).collect();
        let cat = Some(self.kinds.text(kind));
        sink.span(&head, &SpanRecord { cat, args: Arguments::Texts(&args), ..SpanRecord::from_head(&head) })
    }
}
