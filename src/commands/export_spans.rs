//! `export --to chrome` of inputs that hold spans of time: they stay spans, and there may be fewer of them.
//!
//! A trace is read twice: once to know its spans, then those that are kept are written with all that their events say.
//! A measureme profile is written while it is read, callers before what they called, so that its size does not matter.

use super::export::ExportOptions;
use super::synthetic_threads::{SyntheticThread, SyntheticThreads};
use crate::error::{Error, Result, Warning, Warnings};
use crate::formats::format::ReadOptions;
use crate::formats::measureme::{self, Labels, Payload};
use crate::formats::trace_event::{Arguments, Complete, Event, Who, Writer};
use crate::io::{self, Bytes, InPath, Output};
use crate::model::filter::Filter;
use crate::model::stacks::Track;
use crate::model::timeline::{NO_NAME, Sampling, Slice, SliceKind, Timeline, UNFINISHED};
use crate::model::{Nanos, Pid, Tid};
use crate::pipeline::open::{Input, Opened, shown};
use crate::pipeline::spans::spans;
use crate::pipeline::{Job, Outcome};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::io::Read;
use std::ops::Range;

/// Writes the inputs as trace events; `None`, with nothing done, if the first one holds no spans.
pub(super) fn run(options: &ExportOptions, job: &Job) -> Result<Option<Outcome>> {
    let mut outcome = Outcome::default();
    let mut writer: Option<Writer<Output>> = None;
    let mut epoch = None;
    for path in &options.inputs {
        let spans = open(path).map_err(|error| error.in_file(&shown(path)))?;
        let Some(spans) = spans else {
            return match writer {
                None => Ok(None),
                Some(_) => Err(Error::new("holds no spans of time, as the inputs before it do").in_file(&shown(path))),
            };
        };
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(Writer::new(Output::create(&options.output)?)?),
        };
        let mut warnings = Warnings::new();
        let written = match spans {
            Spans::Measureme(bytes) => one_profile(&bytes, &mut epoch, options, writer, &mut warnings),
            Spans::Trace(bytes) => one_trace(&bytes, options, job, writer, &mut warnings),
        };
        outcome.warnings.append(warnings.in_file(&shown(path)));
        outcome.summary.push(written.map_err(|error| error.in_file(&shown(path)))?);
    }
    if let Some(writer) = writer {
        writer.finish()?.commit()?;
    }
    Ok(Some(outcome))
}

enum Spans {
    Measureme(Bytes),
    Trace(Bytes),
}

fn open(path: &InPath) -> Result<Option<Spans>> {
    Ok(match Opened::open(path)? {
        Opened::Whole(Input { bytes, format, .. }) if format.name == "measureme" => Some(Spans::Measureme(bytes)),
        Opened::Stream { reader, format, plain } if format.name == "chrome" => {
            Some(Spans::Trace(if plain { io::open(path)? } else { io::spool(reader)? }))
        }
        _ => None,
    })
}

/// Which spans are kept, by more than one at a time.
struct Keep<'o> {
    read: &'o ReadOptions,
    filter: &'o Filter,
    times: Vec<(Nanos, Nanos)>,
    seen: FxHashMap<(u32, u32), (u64, i64)>,
}

impl<'o> Keep<'o> {
    fn new(options: &'o ExportOptions, first: i64, last: i64) -> Self {
        let filter = &options.load.filter;
        // Times before 0 are no times of the command line.
        let nanos = |time: i64| Nanos(u64::try_from(time).unwrap_or(0));
        let times = filter.time.iter().map(|range| range.placed(nanos(first), nanos(last))).collect();
        Self { read: &options.load.read, filter, times, seen: FxHashMap::default() }
    }

    fn track(&self, track: &Track) -> bool {
        self.filter.placed(Nanos(0), Nanos(0)).track(track)
    }

    fn within(&self, start: i64, end: i64) -> bool {
        let at = |time: Nanos| i64::try_from(time.0).unwrap_or(i64::MAX);
        self.times.is_empty() || self.times.iter().any(|&(from, to)| end > at(from) && start < at(to))
    }

    /// Whether a span of this track and name, by their numbers, is one of those that stand for the others.
    fn sampled(&mut self, track: u32, name: u32, start: i64) -> bool {
        if self.read.calls.sampling == Sampling::All {
            return true;
        }
        let known = self.seen.get(&(track, name)).copied();
        let (calls, last) = known.unwrap_or((0, start));
        let keep = match self.read.calls.sampling {
            Sampling::All => true,
            Sampling::Calls(every) => calls % every == 0,
            Sampling::Time(every) => known.is_none() || start.abs_diff(last) >= every,
        };
        self.seen.insert((track, name), (calls + 1, if keep { start } else { last }));
        keep
    }

    fn long_enough(&self, duration: Option<i64>) -> bool {
        let least = i64::try_from(self.read.calls.min_duration).unwrap_or(i64::MAX);
        least == 0 || duration.is_some_and(|duration| duration >= least || duration == UNFINISHED)
    }
}

fn one_profile(
    bytes: &Bytes,
    epoch: &mut Option<u64>,
    options: &ExportOptions,
    writer: &mut Writer<Output>,
    warnings: &mut Warnings,
) -> Result<String> {
    let profile = measureme::Profile::open(bytes)?;
    let metadata = profile.metadata().clone();
    let start_time = metadata.start_time.unwrap_or(0);
    // Times since 1970 do not fit into a viewer's floating-point microseconds: they count from the first profile.
    let offset = start_time.wrapping_sub(*epoch.get_or_insert(start_time)).cast_signed();
    let pid = i64::from(metadata.process_id.unwrap_or(0));
    let mut keep = Keep::new(options, 0, profile.last_time().cast_signed());
    let only: Vec<&[u8]> = options.load.read.only.iter().map(String::as_bytes).collect();
    let mut labels = Labels::new(profile.strings());
    let mut kinds = Labels::new(profile.strings());
    let (before, mut spans, mut failed) = (writer.count(), 0, None);
    if let Some(name) = metadata.crate_name().or(Some(metadata.program())) {
        writer.metadata("process_name", pid, 0, "name", name)?;
    }
    let mut one = |event: measureme::Event| {
        let Payload::Interval { start, end } = event.payload else { return Ok(()) };
        spans += 1;
        let (label, kind) = (labels.of(event.id), kinds.of(event.kind));
        let (start, duration) = (start.cast_signed(), (end - start).cast_signed());
        let tid = i64::from(event.thread);
        let track = Track { pid: Some(Pid(pid as i32)), tid: Some(Tid(tid as i32)), ..Track::default() };
        let wanted = only.is_empty() || only.contains(&labels.text(label));
        if !wanted
            || !keep.long_enough(Some(duration))
            || !keep.within(start, start + duration)
            || !keep.track(&track)
            || !keep.sampled(event.thread, label, start)
        {
            return Ok(());
        }
        let arguments = profile.strings().event(event.id).map(|(_, arguments)| arguments).unwrap_or_default();
        let keys: Vec<String> = (0..arguments.len()).map(|number| format!("arg{number}")).collect();
        let args: Vec<_> = keys.iter().map(String::as_bytes).zip(arguments.iter().map(Vec::as_slice)).collect();
        writer.complete(&Complete {
            name: labels.text(label),
            cat: Some(kinds.text(kind)),
            start: start.saturating_add(offset),
            duration: Some(duration),
            pid,
            tid,
            args: Arguments::Texts(&args),
        })
    };
    let release = bytes.releaser();
    profile.backwards(
        |event| {
            if failed.is_none() {
                failed = one(event).err();
            }
        },
        release,
    );
    if let Some(error) = failed {
        return Err(error);
    }
    let (last, written) = (profile.last_time().cast_signed(), writer.count() - before - 1);
    warnings.extend(profile.into_skipped().into_warning());
    warnings.extend(none_left(written, spans, 0, last));
    Ok(format!("{written} of {spans} spans written"))
}

fn one_trace(
    bytes: &Bytes,
    options: &ExportOptions,
    job: &Job,
    writer: &mut Writer<Output>,
    warnings: &mut Warnings,
) -> Result<String> {
    let whole = Keep::new(options, 0, 0);
    let mut others = 0u64;
    let mut timeline = spans(Once::new(bytes), false, job, warnings, |event| match event.phase {
        b'M' => writer.pass(event),
        b'C' if event.time.is_some_and(|time| whole.within(time, time)) => writer.pass(event),
        _ => {
            others += 1;
            Ok(())
        }
    })?;
    timeline.sort();
    let kept = kept(&timeline, options);
    let read = &options.load.read;
    let number = |name: &String| timeline.names.find(name.as_bytes());
    let by_sub: Vec<_> = read.by_sub.iter().filter_map(number).collect();
    let mut threads = SyntheticThreads::of(&timeline);
    for &at in &kept {
        let slice = &timeline.slices[at as usize];
        let Some(mut event) = Event::find(bytes, slice.origin) else { continue };
        let by_sub = slice.sub != NO_NAME && by_sub.contains(&slice.name);
        let name = timeline.names.text(if by_sub { slice.sub } else { slice.name });
        if by_sub && slice.kind == SliceKind::Async {
            let SyntheticThread { tid, is_new } = threads.place(slice);
            if let (true, Who::Number(pid)) = (is_new, event.pid) {
                let thread = &timeline.tracks[slice.track as usize];
                writer.metadata(
                    "thread_name",
                    pid,
                    tid,
                    "name",
                    &thread_name(timeline.names.text(slice.name), thread),
                )?;
            }
            event = Event { phase: b'X', tid: Who::Number(tid), ..event };
        }
        let duration = (slice.kind != SliceKind::Instant).then_some(slice.duration);
        writer.span_of(&event, name, slice.start, duration)?;
    }
    let (spans, (first, last)) = (timeline.slices.len(), timeline.bounds());
    warnings.extend(none_left(kept.len() as u64, spans as u64, first, last));
    let left_out = if others == 0 { String::new() } else { format!("; {others} events that are no spans left out") };
    Ok(format!("{} of {spans} spans and instants written{left_out}", kept.len()))
}

/// Says that nothing is left of an input, and when what was in it took place, in the seconds that `--time` wants.
fn none_left(written: u64, spans: u64, first: i64, last: i64) -> Option<Warning> {
    const SECOND: i64 = 1_000_000_000;
    let seconds = |time: i64| format!("{}.{:09}", time.div_euclid(SECOND), time.rem_euclid(SECOND));
    match (written, spans) {
        (0, 0) => Some(Warning::new("no spans: none was recorded")),
        (0, _) => {
            let (first, last) = (seconds(first), seconds(last));
            Some(Warning::new(format!(
                "no spans written: the filters leave none of {spans}, from {first} s to {last} s"
            )))
        }
        _ => None,
    }
}

/// `frame of main`
fn thread_name(name: &[u8], thread: &Track) -> String {
    let name = String::from_utf8_lossy(name);
    match (&thread.comm[..], thread.tid) {
        ([], Some(tid)) => format!("{name} of thread {tid}"),
        ([], None) => name.into_owned(),
        (comm, _) => format!("{name} of {}", String::from_utf8_lossy(comm)),
    }
}

/// The slices to write, in order of time; of equal begins the outer one first.
fn kept(timeline: &Timeline, options: &ExportOptions) -> Vec<u32> {
    let (first, last) = timeline.bounds();
    let mut keep = Keep::new(options, first, last);
    let only = &options.load.read.only;
    let numbers: Vec<_> = only.iter().filter_map(|name| timeline.names.find(name.as_bytes())).collect();
    let tracks: Vec<bool> = timeline.tracks.iter().map(|track| keep.track(track)).collect();
    let mut kept: Vec<u32> = Vec::new();
    for (at, slice) in timeline.slices.iter().enumerate() {
        let duration = (slice.kind != SliceKind::Instant).then_some(slice.duration);
        if tracks[slice.track as usize]
            && (only.is_empty() || numbers.contains(&slice.name))
            && keep.long_enough(duration)
            && keep.within(slice.start, slice.end().max(slice.start))
            && keep.sampled(slice.track, slice.name, slice.start)
        {
            kept.push(at as u32);
        }
    }
    let end = |slice: &Slice| if slice.duration == UNFINISHED { i64::MAX } else { slice.end() };
    kept.sort_by_key(|&at| {
        let slice = &timeline.slices[at as usize];
        (slice.start, Reverse(end(slice)))
    });
    kept
}

/// Reads mapped bytes once, and lets go of those that were read.
struct Once<'b, F> {
    bytes: &'b [u8],
    at: usize,
    release: F,
}

impl<'b> Once<'b, ()> {
    fn new(bytes: &'b Bytes) -> Once<'b, impl Fn(Range<usize>)> {
        Once { bytes, at: 0, release: bytes.releaser() }
    }
}

impl<F: Fn(Range<usize>)> Read for Once<'_, F> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let read = (&self.bytes[self.at..]).read(to)?;
        (self.release)(self.at..self.at + read);
        self.at += read;
        Ok(read)
    }
}
