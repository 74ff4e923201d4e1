//! Exports spans to a format that stores spans. They are copied one by one instead of being summed into stacks; filters
//! may leave some out.

use super::options::ExportOptions;
use super::synthetic_threads::{SyntheticThread, SyntheticThreads};
use crate::analysis::filter::{Filter, PlacedFilter};
use crate::analysis::timeline::{
    NumberOrName, OtherEvent, OtherKind, Sampling, SpanFile, SpanHead, SpanRecord, SpanSink, SpanWriter, UNFINISHED,
};
use crate::contract::format::{ReadOptions, StartSpansFn};
use crate::error::{Error, Result, Warnings};
use crate::io::{InPath, Output, Run};
use crate::model::Nanos;
use crate::model::shell::quoted;
use crate::model::stacks::Track;
use crate::pipeline::open::{Opened, shown};
use crate::pipeline::outputs::commit;
use crate::pipeline::spans::read_spans;
use crate::pipeline::{Job, Outcome};
use rustc_hash::FxHashMap;
use std::os::unix::ffi::OsStrExt;

/// Writes the selected spans of all inputs to one output. Fails if the filters match no spans of any input. `first` is
/// the first input, already open.
pub(super) fn run(
    first: Opened,
    start: StartSpansFn,
    options: &ExportOptions,
    run: &Run,
    job: &Job,
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut output = Output::create(&options.output, run)?;
    let mut writer = start(&mut output)?;
    let mut first = Some(first);
    // The start of the first input that states when it started. The times of later inputs are shifted by the difference
    // between their start and this one.
    let mut epoch = None;
    let mut has_written = false;
    // The error for the first input of which no spans were written.
    let mut first_without = None;
    for path in &options.inputs {
        let opened = first.take().map_or_else(|| Opened::open(path, job), Ok);
        let mut warnings = Warnings::new();
        let mut filter = SpanFilter::new(options, &mut *writer, &mut epoch);
        opened
            .and_then(|opened| read_input(opened, path, &mut filter, job, &mut warnings))
            .map_err(|error| error.in_file(&shown(path)))?;
        if let Some(reason) = filter.why_none_written() {
            let remedy = format!("jitgraft stats --all {} lists the spans", quoted(shown(path).as_os_str().as_bytes()));
            let error = Error::new(reason).in_file(&shown(path)).with_remedy(Some(remedy));
            first_without.get_or_insert(error);
        }
        // An input without any spans counts as written: it has none that the filters could have left out.
        has_written |= filter.written.all() > 0 || filter.read.all() == 0;
        outcome.warnings.append(warnings.in_file(&shown(path)));
        outcome.summary.push(filter.summary());
    }
    match first_without {
        // The filters matched spans of at least one input. So the output is written, and the input without matches is
        // only reported as failed.
        Some(error) if has_written => outcome.failed.push(error),
        Some(error) => return Err(error),
        None => {}
    }
    writer.finish()?;
    drop(writer);
    commit(output, &mut outcome)?;
    Ok(outcome)
}

/// Reads an input and passes its spans to the filter.
fn read_input(
    opened: Opened,
    path: &InPath,
    filter: &mut SpanFilter<'_>,
    job: &Job,
    warnings: &mut Warnings,
) -> Result<()> {
    let Some(spans) = opened.format().read.spans() else {
        return Err(Error::new("has no spans of time, unlike the inputs before it; export it separately"));
    };
    read_spans(opened.into_whole(path)?, job, |input| (spans.emit)(input, filter, warnings))
}

/// Passes the selected spans of one input to the writer.
#[derive(Debug)]
struct SpanFilter<'o> {
    options: &'o ReadOptions,
    selection: SpanSelection<'o>,
    threads: SyntheticThreads,
    writer: &'o mut dyn SpanWriter,
    /// The time 0 of the first input, in nanoseconds since 1970. All inputs count from this time, because times since
    /// 1970 are too large for the floating-point microseconds of trace viewers. `None` until an input states it.
    epoch: &'o mut Option<u64>,
    /// The nanoseconds to add to this input's times so that they count from `epoch`.
    offset: i64,
    /// The times at which this input starts and ends, in nanoseconds.
    bounds: (i64, i64),
    /// The spans of the input.
    read: SpanCounts,
    /// The spans that were passed to the writer.
    written: SpanCounts,
    /// The number of events that were left out because they aren't spans.
    others: u64,
}

/// Counts of spans by kind.
#[derive(Debug, Default)]
struct SpanCounts {
    spans: u64,
    instants: u64,
}

impl SpanCounts {
    fn add(&mut self, head: &SpanHead<'_>) {
        match head.duration {
            Some(_) => self.spans += 1,
            None => self.instants += 1,
        }
    }

    fn all(&self) -> u64 {
        self.spans + self.instants
    }
}

impl<'o> SpanFilter<'o> {
    /// Creates a filter for the next input. What depends on the input is set when it starts ([`SpanSink::file`]).
    fn new(options: &'o ExportOptions, writer: &'o mut dyn SpanWriter, epoch: &'o mut Option<u64>) -> Self {
        let load = &options.load;
        Self {
            options: &load.read,
            selection: SpanSelection::new(&load.read, &load.filter, 0, 0),
            threads: SyntheticThreads::default(),
            writer,
            epoch,
            offset: 0,
            bounds: (0, 0),
            read: SpanCounts::default(),
            written: SpanCounts::default(),
            others: 0,
        }
    }

    /// Says how many spans were written, and how many events were left out.
    fn summary(&self) -> String {
        let Self { read, written, others, .. } = self;
        let instants = match read.instants {
            0 => String::new(),
            read => format!(", {} of {read} instants", written.instants),
        };
        let others = match others {
            0 => String::new(),
            1 => "; left out 1 event that is not a span".to_owned(),
            others => format!("; left out {others} events that are not spans"),
        };
        format!("wrote {} of {} spans{instants}{others}", written.spans, read.spans)
    }

    /// Why no spans were written, although the input has some. It states the time range of the input in seconds, the
    /// unit of `--time`.
    fn why_none_written(&self) -> Option<String> {
        const SECOND: i64 = 1_000_000_000;
        let read = self.read.all();
        if self.written.all() > 0 || read == 0 {
            return None;
        }
        let [first, last] = [self.bounds.0, self.bounds.1]
            .map(|time| format!("{}.{:09}", time.div_euclid(SECOND), time.rem_euclid(SECOND)));
        Some(format!("no spans match the filters; the input has {read}, from {first} s to {last} s"))
    }

    /// The ID of the synthetic thread for a span that is on a track with an ID ([`SpanRecord::id`]) and so belongs to
    /// no thread. If the synthetic thread is new, its name is written first, unless `pid` is a name: names of threads
    /// can only be written for processes with a number.
    fn synthetic_thread(&mut self, head: &SpanHead<'_>, pid: &NumberOrName<'_>) -> Result<i64> {
        let SyntheticThread { tid, is_new } = self.threads.place(head);
        if let (true, NumberOrName::Number(pid)) = (is_new, pid) {
            self.writer.thread_name(*pid, tid, &thread_name(head.name, head.thread))?;
        }
        Ok(tid)
    }
}

impl SpanSink for SpanFilter<'_> {
    /// Prepares the filter for the spans of an input, and writes the name of the input's process if it is known.
    fn file(&mut self, file: &SpanFile<'_>) -> Result<()> {
        // Selection by percentages of the time needs this input's bounds, which `new` didn't know.
        self.bounds = (file.first, file.last);
        self.selection = SpanSelection::new(self.options, self.selection.filter, file.first, file.last);
        self.threads = SyntheticThreads::new(file.threads);
        // The first input that states its start gives the epoch, and so has offset 0. An input that doesn't state it
        // isn't shifted.
        if let Some(start) = file.since_1970 {
            self.offset = start.wrapping_sub(*self.epoch.get_or_insert(start)).cast_signed();
        }
        match file.process {
            Some((pid, name)) => self.writer.process_name(pid, name),
            None => Ok(()),
        }
    }

    fn wants(&mut self, head: &SpanHead<'_>) -> bool {
        self.read.add(head);
        self.selection.keeps(head)
    }

    /// Writes a span that the filter has selected, with its time shifted by `offset`.
    fn span(&mut self, head: &SpanHead<'_>, record: &SpanRecord<'_>) -> Result<()> {
        self.written.add(head);
        let mut record = SpanRecord { start: record.start.saturating_add(self.offset), ..record.clone() };
        // The user may ask that spans of a certain name (Miri's `frame`, for example) are called what their arguments
        // say they did: the action, such as the function that a frame runs.
        let is_named_by_action = self.options.named_by_action.iter().any(|name| name.as_bytes() == head.name);
        if let Some(action) = head.action.filter(|_| is_named_by_action) {
            record.name = action;
            // If the span is on a track with an ID of its own, it becomes a call on a synthetic thread, where viewers
            // nest it.
            if record.id.is_some() && head.duration.is_some() {
                record.tid = NumberOrName::Number(self.synthetic_thread(head, &record.pid)?);
                record.id = None;
            }
        }
        self.writer.span(&record)
    }

    /// Writes an event that isn't a span, or counts it as left out.
    fn other(&mut self, event: &OtherEvent<'_>) -> Result<()> {
        let keep = match event.kind {
            // Names of threads and processes are needed whatever the filters select.
            OtherKind::Metadata => true,
            OtherKind::Counter => event.time.is_some_and(|time| self.selection.overlaps_times(time, time)),
            OtherKind::Unknown => false,
        };
        if keep {
            return self.writer.other(event);
        }
        self.others += 1;
        Ok(())
    }
}

/// Decides which spans are kept. A span must pass every filter.
#[derive(Debug)]
struct SpanSelection<'o> {
    options: &'o ReadOptions,
    filter: &'o Filter,
    /// The filter by thread. The time ranges in it are ignored: `times` replaces them.
    threads: PlacedFilter<'o>,
    /// Start and end of each selected time range.
    times: Vec<(Nanos, Nanos)>,
    /// For each thread and span name: the number of spans so far, and the start of the last span that was kept.
    seen: FxHashMap<(u32, u32), (u64, i64)>,
}

impl<'o> SpanSelection<'o> {
    /// `first` and `last` are the start and end of the input in nanoseconds. Relative times of the filter refer to
    /// them.
    fn new(options: &'o ReadOptions, filter: &'o Filter, first: i64, last: i64) -> Self {
        // Command line times can't be negative, so earlier times count as 0.
        let nanos = |time: i64| Nanos(u64::try_from(time).unwrap_or(0));
        let times = filter.time.iter().map(|range| range.times(nanos(first), nanos(last))).collect();
        Self { options, filter, threads: filter.place(Nanos(0), Nanos(0)), times, seen: FxHashMap::default() }
    }

    /// True if the span passes all filters. Call it once for each span, in order, because sampling counts the spans.
    fn keeps(&mut self, head: &SpanHead<'_>) -> bool {
        self.has_wanted_name(head.name)
            && self.is_long_enough(head.duration)
            && self.overlaps_times(head.start, head.end())
            && self.threads.track(head.thread)
            && self.is_sampled(head)
    }

    fn has_wanted_name(&self, name: &[u8]) -> bool {
        let only = &self.options.only;
        only.is_empty() || only.iter().any(|wanted| wanted.as_bytes() == name)
    }

    fn is_long_enough(&self, duration: Option<i64>) -> bool {
        let least = i64::try_from(self.options.calls.min_duration).unwrap_or(i64::MAX);
        least == 0 || duration.is_some_and(|duration| duration >= least || duration == UNFINISHED)
    }

    /// True if the interval overlaps one of the selected time ranges, or if no times are selected.
    fn overlaps_times(&self, start: i64, end: i64) -> bool {
        if self.times.is_empty() {
            return true;
        }
        self.times.iter().any(|(from, to)| {
            let from = i64::try_from(from.0).unwrap_or(i64::MAX);
            let to = i64::try_from(to.0).unwrap_or(i64::MAX);
            end > from && start < to
        })
    }

    /// True if sampling keeps the span. Of the spans with the same thread and name, it keeps the first and then every
    /// n-th, or the first and then at most one per time interval.
    fn is_sampled(&mut self, head: &SpanHead<'_>) -> bool {
        let sampling = self.options.calls.sampling;
        if sampling == Sampling::All {
            return true;
        }
        let earlier = self.seen.get(&(head.thread_no, head.name_no)).copied();
        // The number of earlier spans of this thread and name, and the start of the last of them that was kept.
        let (calls, last) = earlier.unwrap_or((0, head.start));
        let keep = match sampling {
            Sampling::All => true,
            Sampling::Calls(every) => calls % every == 0,
            Sampling::Time(every) => earlier.is_none() || head.start.abs_diff(last) >= every,
        };
        self.seen.insert((head.thread_no, head.name_no), (calls + 1, if keep { head.start } else { last }));
        keep
    }
}

/// The name of a synthetic thread: `frame of main`.
fn thread_name(name: &[u8], thread: &Track) -> String {
    let name = String::from_utf8_lossy(name);
    match (&thread.comm[..], thread.tid) {
        ([], Some(tid)) => format!("{name} of thread {tid}"),
        ([], None) => name.into_owned(),
        (comm, _) => format!("{name} of {}", String::from_utf8_lossy(comm)),
    }
}
