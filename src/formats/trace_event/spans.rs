//! Converts events to spans, by pairing starts with ends.
//!
//! The rules are those of Perfetto's trace processor. An end closes the innermost open span with its name and category.
//! Spans that are still open inside it end with it if time has passed. Two arbitrary behaviors of Perfetto are only
//! reproduced on request: thread 0 of a process shares the track of the thread whose ID is the process ID, and complete
//! spans that overlap others are dropped.
//!
//! A span in the timeline is called a *slice*, as in Perfetto. A track of spans that are identified by an ID instead of
//! a thread (`b`, `e`, `n`) is called an *async* track.

use super::event::{Owner, TraceEvent, is_other_phase, is_span_phase};
use super::reader::{DocumentRest, EventReader};
use super::samples::TraceSamples;
use super::stack::{OpenSpan, SpanStack};
use crate::analysis::namesakes::{StartPlace, namesake_locations};
use crate::analysis::quantity::counted;
use crate::analysis::timeline::{NO_NAME, NameNumber, Slice, SliceKind, SliceNames, Timeline, UNFINISHED, UNNAMED};
use crate::contract::format::ReadOptions;
use crate::error::{Result, Skipped};
use crate::model::stacks::Track;
use crate::model::{Pid, Tid};
use rustc_hash::{FxHashMap, FxHasher};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::hash::Hasher;
use std::io::Read;

/// How many events of a thread are held back, so that events which come too late can be sorted in. Writers get a few
/// events out of order when an end and a start coincide, but not thousands.
const WINDOW: usize = 64;

/// The maximum number of ends on async tracks that wait for a start that was written later.
const MAX_EARLY_ENDS: usize = 1 << 16;

/// The lane of all slices that aren't on an async track. Async tracks have the numbers from 1 on.
const THREAD_LANE: u32 = 0;

/// A process and a thread, as [`SpanBuilder::owner_number`] numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct ThreadKey {
    pub(super) pid: i64,
    pub(super) tid: i64,
}

/// A trace that was read: its spans, thread names and samples, and what had to be skipped.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) timeline: Timeline,
    pub(super) samples: TraceSamples,
    /// The parts that could not be read.
    pub(super) skipped: Option<Skipped>,
    /// The names of threads.
    names: FxHashMap<ThreadKey, Box<[u8]>>,
    /// The names of processes, by process ID.
    process_names: FxHashMap<i64, Box<[u8]>>,
    /// The number of clang's sums (`Total …`) that were ignored.
    clang_sums: u64,
}

impl Trace {
    /// The name of a thread, or of its process; `None` if the trace states neither.
    fn thread_name(&self, pid: i64, tid: i64) -> Option<Vec<u8>> {
        let name = self.names.get(&ThreadKey { pid, tid }).or_else(|| self.process_names.get(&pid));
        name.map(|name| name.to_vec())
    }

    /// The track of a thread. `default_name` is the track's name if the trace states none for the thread.
    pub(super) fn track(&self, pid: Option<i64>, tid: Option<i64>, default_name: &[u8]) -> Track {
        let name = tid.and_then(|tid| self.thread_name(pid.unwrap_or(0), tid));
        thread_track(name.as_deref(), pid, tid, &self.timeline.names, default_name)
    }

    /// A note for users on clang's sums that were left out; `None` if there were none.
    pub(super) fn notes(&self) -> Option<String> {
        if self.clang_sums == 0 {
            return None;
        }
        Some(format!("left out {} that clang adds (spans named Total …)", counted(self.clang_sums, "total")))
    }
}

/// Reads a trace. Memory only grows with the number of spans. With [`ReadOptions::perfetto_compat`], spans are counted
/// exactly as Perfetto's trace processor counts them, which requires keeping and sorting all events of threads. `other`
/// is called with each event that isn't part of a span (metadata, counters, flows, …), and its process and thread.
pub(super) fn read_trace(
    input: impl Read,
    options: &ReadOptions,
    mut other: impl FnMut(&TraceEvent<'_>, ThreadKey) -> Result<()>,
) -> Result<Trace> {
    let mut builder = SpanBuilder::new(options);
    let add = |event: &TraceEvent<'_>| {
        if builder.belongs_to_span(event) {
            builder.add_event(event);
            return Ok(());
        }
        if !is_span_phase(event.phase) && !is_other_phase(event.phase) {
            builder.timeline.oddities.unknown += 1;
        }
        let thread = builder.thread_key(event);
        if event.phase == b'M' {
            builder.add_metadata(event, thread);
        }
        other(event, thread)
    };
    let DocumentRest { skipped, samples } = EventReader::new(input).for_each(add)?;
    Ok(Trace { skipped: Some(skipped), samples, ..builder.finish() })
}

/// How many events to search for names of arguments. If no event has an argument by which the user sums time, a message
/// lists these names. There is a limit because listing arguments is slow.
const MAX_EXAMINED: u32 = 1000;

#[derive(Debug, Default)]
struct SpanBuilder<'o> {
    /// True to count spans exactly as Perfetto does ([`ReadOptions::perfetto_compat`]).
    perfetto_compat: bool,
    /// The names of the arguments by whose values the time of spans is summed.
    by_args: &'o [String],
    timeline: Timeline,
    threads: Vec<ThreadSpans>,
    /// The index in `threads` of each thread.
    thread_numbers: FxHashMap<ThreadKey, u32>,
    /// The names of threads, including threads without spans.
    thread_names: FxHashMap<ThreadKey, Box<[u8]>>,
    /// The names of processes, by process ID.
    process_names: FxHashMap<i64, Box<[u8]>>,
    /// The async tracks that have open spans.
    async_tracks: FxHashMap<AsyncTrackKey, AsyncTrack>,
    /// The number of async tracks so far. Each one gets the next number as its lane.
    lane_count: u32,
    /// Empty stacks for reuse, because most async tracks have only one span.
    spare_stacks: Vec<SpanStack>,
    /// Ends on async tracks that came before their start, and how often each occurred.
    early_ends: BTreeMap<EarlyEnd, u32>,
    /// True if clang wrote the trace.
    is_clang: bool,
    /// Indices of spans whose action is their `detail` argument. The action is removed again at the end if clang didn't
    /// write the trace.
    details: Vec<usize>,
    /// The slices that jitgraft wrote: the index of each slice, and that of its function in `functions`.
    function_slices: Vec<(usize, u32)>,
    /// The distinct functions of slices that jitgraft wrote.
    functions: Vec<StatedFunction>,
    /// The index in `functions` of each function.
    function_numbers: FxHashMap<StatedFunction, u32>,
    /// The number of clang's sums (`Total …`) that were ignored.
    clang_sums: u64,
    /// The number of events counted against [`MAX_EXAMINED`].
    examined: u32,
}

/// The open spans of an async track.
#[derive(Debug)]
struct AsyncTrack {
    stack: SpanStack,
    /// The number of the track, which tells its slices from those of other tracks.
    lane: u32,
}

#[derive(Debug, Default)]
struct ThreadSpans {
    key: ThreadKey,
    /// Events that are held back to be sorted, in the order of their times.
    waiting: VecDeque<SpanEvent>,
    /// The time of the latest event that was processed.
    latest: Option<i64>,
    stack: SpanStack,
    /// True if the thread has complete spans (`X`), which are only nested after all of them were read.
    has_complete_spans: bool,
}

/// An event that is part of a span, with interned names.
#[derive(Debug, Clone)]
struct SpanEvent {
    /// When the event occurred, in nanoseconds: the start or the end of a span, or an instant.
    time: i64,
    /// The duration of a complete span (`X`); 0 for other events.
    duration: i64,
    /// The name; an end with [`NO_NAME`] matches any span.
    name: NameNumber,
    cat: NameNumber,
    action: Action,
    /// For each argument that the user wants times for (`--by-arg`), its value in this event.
    args: Vec<NameNumber>,
    /// The index of the function in [`SpanBuilder::functions`], if jitgraft wrote the span.
    function: Option<u32>,
    /// The index of the thread in [`SpanBuilder::threads`].
    thread: u32,
    phase: u8,
    /// The offset of the event in the file.
    origin: u64,
}

/// A function as the arguments of its spans describe it, with the place where it starts. Only jitgraft writes such
/// arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StatedFunction {
    name: NameNumber,
    file: Option<String>,
    /// Line and column where the function starts, from 1; 0 if unknown.
    line: u32,
    column: u32,
}

/// The action of a span: a second name that its arguments state, such as the file that clang compiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    None,
    Name(NameNumber),
    /// The `detail` argument, which only counts if clang wrote the trace.
    Detail(NameNumber),
}

/// Identifies an async track by category, scope and ID. `pid` is `None` if the ID is unique in the whole trace, not
/// only within a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct AsyncTrackKey {
    cat: NameNumber,
    scope: NameNumber,
    pid: Option<i64>,
    id: i128,
}

/// An end on an async track that was written before its start: the track, the span's name, and the time.
type EarlyEnd = (AsyncTrackKey, NameNumber, i64);

impl<'o> SpanBuilder<'o> {
    fn new(options: &'o ReadOptions) -> Self {
        let timeline = Timeline { by_arg: vec![Vec::new(); options.by_args.len()], ..Timeline::default() };
        Self { perfetto_compat: options.perfetto_compat, by_args: &options.by_args, timeline, ..Self::default() }
    }

    /// True if the event is part of a span. Sums written by clang and whole V8 profiles look like spans but aren't.
    /// Also counts clang's sums.
    fn belongs_to_span(&mut self, event: &TraceEvent<'_>) -> bool {
        if !is_span_phase(event.phase) {
            return false;
        }
        // Perfetto counts clang's sums and whole V8 profiles as spans.
        if self.perfetto_compat {
            return true;
        }
        if is_clang_sum(event) {
            self.is_clang = true;
            self.clang_sums += 1;
            return false;
        }
        event.name != "CpuProfile"
    }

    /// Adds an event that is part of a span.
    fn add_event(&mut self, event: &TraceEvent<'_>) {
        let Some(time) = event.time else {
            self.timeline.oddities.timeless += 1;
            return;
        };
        let names = &mut self.timeline.names;
        let name = if event.name.is_empty() { NO_NAME } else { names.number(event.name.as_bytes()) };
        let cat = event.cat.as_ref().map_or(NO_NAME, |cat| names.number(cat.as_bytes()));
        // `B` starts a span of a thread, `E` ends it, and `X` is a whole span. `b` and `e` (formerly `S` and `F`) start
        // and end a span of an async track. The other phases are instants.
        let begins = matches!(event.phase, b'B' | b'b' | b'X' | b'S');
        // The start of a span states its action. Only Perfetto also takes it from ends and instants.
        let action = if begins || self.perfetto_compat { self.action(event) } else { Action::None };
        let ends = matches!(event.phase, b'E' | b'e' | b'F');
        let args = if begins || ends { self.argument_values(event) } else { Vec::new() };
        if matches!(event.phase, b'i' | b'I' | b'n') && event.has_stack {
            self.timeline.oddities.stacks += 1;
        }
        let key = self.thread_key(event);
        let thread = self.thread_index(key);
        let mut duration = event.duration;
        if event.phase == b'X' && duration.is_none() && !self.perfetto_compat {
            // Without a duration (`dur`), the CPU time that the thread spent in the span is the best estimate.
            duration = event.cpu_duration;
            self.timeline.oddities.cpu_durations += u64::from(duration.is_some());
        }
        if event.phase == b'X' && duration.is_none_or(|duration| duration < 0) {
            self.timeline.oddities.endless += 1;
        }
        let duration = duration.unwrap_or(0).max(0);
        // Only events of jitgraft state a function, and jitgraft writes only complete spans.
        let function = if event.phase == b'X' { self.stated_function(event, name) } else { None };
        let (phase, origin) = (event.phase, event.offset);
        let span = SpanEvent { time, duration, name, cat, action, args, function, thread, phase, origin };
        // Events of async tracks, which are matched by ID. `S` and `F` are the older phases for start and end.
        if matches!(event.phase, b'b' | b'e' | b'n' | b'S' | b'F') {
            let pid = if event.id_is_local { Some(key.pid) } else { None };
            let scope = event.scope.as_ref().map_or(NO_NAME, |scope| self.timeline.names.number(scope.as_bytes()));
            self.add_async(&span, AsyncTrackKey { cat, scope, pid, id: id_number(event.id.as_bytes()) });
        } else {
            self.hold_back(span);
        }
    }

    /// The index in [`Self::functions`] of the function that the event states. Adds the function if it is new. `None`
    /// if jitgraft didn't write the event: jitgraft's events are recognized by the argument with the number of samples.
    fn stated_function(&mut self, event: &TraceEvent<'_>, name: NameNumber) -> Option<u32> {
        // Perfetto tells functions apart by their names alone. To count as it does, `--perfetto-compat` doesn't look at
        // their files and lines.
        if self.perfetto_compat || !event.args.contains("\"samples\":") {
            return None;
        }
        let [file, line, column, samples] = event.arguments(["file", "line", "column", "samples"]);
        samples?.parse::<u64>().ok()?;
        let number = |text: Option<Cow<'_, str>>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
        let (line, column) = (number(line), number(column));
        let function = StatedFunction { name, file: file.map(Cow::into_owned), line, column };
        let next_index = self.functions.len() as u32;
        let index = *self.function_numbers.entry(function).or_insert_with_key(|function| {
            self.functions.push(function.clone());
            next_index
        });
        Some(index)
    }

    /// If several functions have the same name, appends to each of these names the location where the function starts.
    /// Otherwise the functions would be taken for one, because spans are told apart by nothing but their names.
    fn tell_functions_apart(&mut self) {
        let names: Vec<String> = self
            .functions
            .iter()
            .map(|function| String::from_utf8_lossy(self.timeline.names.text(function.name)).into_owned())
            .collect();
        let functions = names.iter().zip(&self.functions).map(|(name, function)| {
            let StatedFunction { file, line, column, .. } = function;
            let file = file.as_ref().map(String::as_bytes);
            (&**name, file.map(|file| StartPlace { file, line: *line, column: *column }))
        });
        // The new name of each function; `None` if it keeps its name. `namesake_locations` returns a location only for
        // functions that share their name.
        let mut renamed = Vec::with_capacity(names.len());
        for (location, name) in namesake_locations(functions).into_iter().zip(&names) {
            let name = location.map(|location| format!("{name} ({location})"));
            renamed.push(name.map(|name| self.timeline.names.number(name.as_bytes())));
        }
        for &(slice, function) in &self.function_slices {
            if let Some(name) = renamed[function as usize] {
                self.timeline.slices[slice].name = name;
            }
        }
    }

    /// For each argument by which time is summed, its value in the event; [`NO_NAME`] if the event lacks it.
    fn argument_values(&mut self, event: &TraceEvent<'_>) -> Vec<NameNumber> {
        let mut values = Vec::new();
        for key in self.by_args {
            let value = event.argument(key);
            // If no event has the argument `key`, a message lists the arguments that events have, so collect their
            // names.
            if value.is_none() && !event.args.is_empty() && self.examined < MAX_EXAMINED {
                self.examined += 1;
                self.timeline.argument_names.extend(event.argument_names());
            }
            values.push(value.map_or(NO_NAME, |value| self.timeline.names.number(value.as_bytes())));
        }
        values
    }

    /// The action of a span: the argument that has the same name as the span, the message of Miri's `frame`, or clang's
    /// `detail`. Also notes in the timeline if Miri wrote the trace.
    fn action(&mut self, event: &TraceEvent<'_>) -> Action {
        if event.args.is_empty() {
            return Action::None;
        }
        let [same_name, message, detail] = event.arguments([&event.name, "message", "detail"]);
        // Other programs also write spans called `frame`, but without the argument `message`.
        let is_miri_frame = event.name == "frame" && message.is_some();
        self.timeline.is_miri |= is_miri_frame || event.name == "step" && same_name.is_some();
        let names = &mut self.timeline.names;
        if let Some(action) = same_name {
            return Action::Name(names.number(action.as_bytes()));
        }
        // Perfetto knows no other actions.
        if self.perfetto_compat {
            return Action::None;
        }
        if is_miri_frame && let Some(message) = message {
            return Action::Name(names.number(message.as_bytes()));
        }
        match detail {
            Some(detail) => Action::Detail(names.number(detail.as_bytes())),
            None => Action::None,
        }
    }

    /// The process and thread of the event.
    fn thread_key(&mut self, event: &TraceEvent<'_>) -> ThreadKey {
        let pid = self.owner_number(event.process());
        let tid = self.owner_number(event.thread());
        // In Perfetto, thread 0 shares the track of the thread whose ID is the process ID.
        if self.perfetto_compat && tid == 0 && pid != 0 {
            return ThreadKey { pid, tid: pid };
        }
        ThreadKey { pid, tid }
    }

    /// The number that identifies a process or thread: its ID. If the trace has a name instead of an ID, the number is
    /// [`i64::MIN`] plus the number of the name, far below any ID that a system assigns. [`owner_name`] turns it back.
    fn owner_number(&mut self, owner: Owner<'_>) -> i64 {
        match owner {
            Owner::Number(number) => number,
            Owner::Named(name) => i64::MIN + i64::from(self.timeline.names.number(name.as_bytes())),
        }
    }

    /// The index of a thread, which is added if it is new.
    fn thread_index(&mut self, key: ThreadKey) -> u32 {
        *self.thread_numbers.entry(key).or_insert_with(|| {
            self.threads.push(ThreadSpans { key, ..ThreadSpans::default() });
            (self.threads.len() - 1) as u32
        })
    }

    /// Stores the name of a process or thread.
    fn add_metadata(&mut self, event: &TraceEvent<'_>, key: ThreadKey) {
        let Some(name) = event.argument("name") else { return };
        match &*event.name {
            "thread_name" => {
                // Adds the thread, so that it is listed even if it has no spans.
                self.thread_index(key);
                self.thread_names.insert(key, name.as_bytes().into());
            }
            "process_name" => {
                self.is_clang |= name.starts_with("clang");
                self.process_names.insert(key.pid, name.as_bytes().into());
            }
            _ => {}
        }
    }

    /// Holds the event back, sorted by time among the latest events of its thread, and processes the earliest of these
    /// if there are too many. Complete spans are added to the timeline at once, because their end is known. To count as
    /// Perfetto does, all events are held back until [`Self::finish`] sorts them.
    fn hold_back(&mut self, event: SpanEvent) {
        let thread = &mut self.threads[event.thread as usize];
        if event.phase == b'X' && !self.perfetto_compat {
            thread.has_complete_spans = true;
            let slice = Slice { duration: event.duration, ..event.slice(SliceKind::Span, THREAD_LANE) };
            return self.add_slice(slice, &event);
        }
        thread.waiting.push_back(event);
        if self.perfetto_compat {
            return;
        }
        // Sort the event into its place among those that are held back.
        let mut index = thread.waiting.len() - 1;
        while index > 0 && thread.waiting[index - 1].time > thread.waiting[index].time {
            thread.waiting.swap(index - 1, index);
            index -= 1;
        }
        // Once enough later events are held back, the earliest one can be processed: no event before it is expected any
        // more.
        if thread.waiting.len() > WINDOW
            && let Some(first) = thread.waiting.pop_front()
        {
            self.process_event(&first);
        }
    }

    /// Adds an event of a thread to the timeline, or ends the span that it closes. Must be called in the order of the
    /// events' times, as far as possible.
    fn process_event(&mut self, event: &SpanEvent) {
        let thread = &mut self.threads[event.thread as usize];
        if thread.latest.is_some_and(|latest| latest > event.time) {
            self.timeline.oddities.late += 1;
        }
        thread.latest = thread.latest.max(Some(event.time));
        let Timeline { slices, oddities, by_arg, .. } = &mut self.timeline;
        let (kind, duration) = match event.phase {
            b'B' | b'E' => (SliceKind::Span, UNFINISHED),
            b'X' => (SliceKind::Span, event.duration),
            _ => (SliceKind::Instant, 0),
        };
        // Spans that are over by now leave the stack first, so that the event isn't nested in them. When a span is over
        // depends on whether the event is an instant. A complete span without a duration counts as one.
        let is_instant = duration == 0;
        oddities.misplaced_ends += thread.stack.remove_finished(event.time, is_instant, slices);
        if event.phase == b'E' {
            match thread.stack.end(event.time, event.name, event.cat, slices) {
                Some(slice) => {
                    set_action(&mut slices[slice], event);
                    add_arguments(by_arg, slice, event);
                }
                None => oddities.unmatched_ends += 1,
            }
            return;
        }
        let depth = thread.stack.depth();
        // Perfetto drops spans that are nested more deeply.
        if self.perfetto_compat && depth >= PERFETTO_MAX_DEPTH {
            return;
        }
        // Perfetto drops a complete span that would outlast the one around it. (Complete spans only get here to be
        // counted as Perfetto does; otherwise, `hold_back` adds them.)
        if event.phase == b'X' && thread.stack.top_ends_before(event.time.saturating_add(duration)) {
            oddities.overlaps += 1;
            return;
        }
        thread.stack.begin(OpenSpan::new(slices.len(), event.name, event.cat, event.time, duration));
        self.add_slice(Slice { duration, depth, ..event.slice(kind, THREAD_LANE) }, event);
    }

    /// Adds an event of an async track.
    fn add_async(&mut self, event: &SpanEvent, id: AsyncTrackKey) {
        if matches!(event.phase, b'e' | b'F') {
            self.end_async(event, id);
        } else {
            self.begin_async(event, id);
        }
    }

    /// Ends a span on an async track. If no such span is open, keeps the end for a start that was written later.
    fn end_async(&mut self, event: &SpanEvent, id: AsyncTrackKey) {
        let Timeline { slices, oddities, by_arg, .. } = &mut self.timeline;
        let Some(AsyncTrack { stack, .. }) = self.async_tracks.get_mut(&id) else {
            return self.add_early_end(id, event.name, event.time);
        };
        // `false`: the event isn't an instant.
        oddities.misplaced_ends += stack.remove_finished(event.time, false, slices);
        let ended = stack.end(event.time, event.name, id.cat, slices);
        if let Some(slice) = ended {
            set_action(&mut slices[slice], event);
            add_arguments(by_arg, slice, event);
        }
        self.remove_if_empty(id);
        if ended.is_none() {
            self.add_early_end(id, event.name, event.time);
        }
    }

    /// Adds the start of a span, or an instant, on an async track.
    fn begin_async(&mut self, event: &SpanEvent, id: AsyncTrackKey) {
        let time = event.time;
        let Timeline { slices, oddities, .. } = &mut self.timeline;
        let track = self.async_tracks.entry(id).or_insert_with(|| {
            self.lane_count = self.lane_count.saturating_add(1);
            // The empty stack of a removed track is reused, which saves an allocation.
            AsyncTrack { stack: self.spare_stacks.pop().unwrap_or_default(), lane: self.lane_count }
        });
        oddities.misplaced_ends += track.stack.remove_finished(time, event.phase == b'n', slices);
        let (depth, lane) = (track.stack.depth(), track.lane);
        let (mut duration, kind) =
            if event.phase == b'n' { (0, SliceKind::Instant) } else { (UNFINISHED, SliceKind::Async) };
        // The end of this span may have been written earlier in the file.
        if kind == SliceKind::Async
            && let Some(end) = take_early_end(&mut self.early_ends, id, event.name, time)
        {
            duration = end - time;
            oddities.unmatched_ends -= 1; // the end was counted as unmatched when it was read
        } else {
            track.stack.begin(OpenSpan::new(slices.len(), event.name, id.cat, time, duration));
        }
        // If the span's end was read before, nothing was opened on the track. If the track is also new, it has no open
        // spans.
        self.remove_if_empty(id);
        self.add_slice(Slice { duration, depth, ..event.slice(kind, lane) }, event);
    }

    /// Adds a slice, with the action and arguments that its event states.
    fn add_slice(&mut self, mut slice: Slice, event: &SpanEvent) {
        let index = self.timeline.slices.len();
        if slice.name == NO_NAME && !self.perfetto_compat {
            slice.name = self.timeline.names.number(UNNAMED.as_bytes());
        }
        // Only clang's `detail` is an action. Whether clang wrote the trace may not be known yet, so `finish` decides.
        if let Action::Detail(_) = event.action {
            self.details.push(index);
        }
        self.function_slices.extend(event.function.map(|function| (index, function)));
        add_arguments(&mut self.timeline.by_arg, index, event);
        self.timeline.slices.push(slice);
    }

    /// Removes an async track if it has no open spans. If its ID occurs again, that is another track.
    fn remove_if_empty(&mut self, id: AsyncTrackKey) {
        if self.async_tracks.get(&id).is_some_and(|track| track.stack.depth() == 0) {
            self.spare_stacks.extend(self.async_tracks.remove(&id).map(|track| track.stack));
        }
    }

    /// Keeps an end that has no start yet; the start may have been written later.
    fn add_early_end(&mut self, id: AsyncTrackKey, name: NameNumber, time: i64) {
        self.timeline.oddities.unmatched_ends += 1;
        if self.early_ends.len() < MAX_EARLY_ENDS {
            *self.early_ends.entry((id, name, time)).or_default() += 1;
        }
    }

    /// Ends reading: processes the latest events of each thread, which [`Self::hold_back`] kept so that late ones could
    /// be sorted in, and nests the spans.
    fn finish(mut self) -> Trace {
        for number in 0..self.threads.len() {
            let mut waiting = std::mem::take(&mut self.threads[number].waiting);
            waiting.make_contiguous().sort_by_key(|event| event.time);
            for event in waiting {
                self.process_event(&event);
            }
        }
        // Perfetto doesn't end open spans inside an ended one, so counting as Perfetto does leaves them open.
        if !self.perfetto_compat {
            self.end_spans_inside_ended_ones();
        }
        // The argument `detail` was taken for the span's action, but that is only right if clang wrote the trace.
        if !self.is_clang {
            for &index in &self.details {
                self.timeline.slices[index].action = NO_NAME;
            }
        }
        // Renames functions that share their name with others, because spans only have names.
        self.tell_functions_apart();
        // If the start and the end of a span both state an argument, the value in the end wins. It was added last, so
        // after reversing, it is the first of its slice, which `dedup_by_key` keeps.
        for values in &mut self.timeline.by_arg {
            values.reverse();
            values.sort_by_key(|(slice, _)| *slice);
            values.dedup_by_key(|(slice, _)| *slice);
        }
        let has_complete_spans: Vec<bool> = self.threads.iter().map(|thread| thread.has_complete_spans).collect();
        self.timeline.tracks = self.threads.iter().map(|thread| self.make_track(thread.key)).collect();
        // Complete spans (`X`) weren't held back but added at once, without a depth, so depths are computed for their
        // threads. On other threads, `process_event` has set the depths.
        self.timeline.nest(&has_complete_spans);
        let (names, process_names) = (self.thread_names, self.process_names);
        Trace { timeline: self.timeline, names, process_names, clang_sums: self.clang_sums, ..Trace::default() }
    }

    /// At the end of the trace, ends spans that are still open inside a span that has ended. Until then, the next event
    /// of the same track does this.
    fn end_spans_inside_ended_ones(&mut self) {
        let Timeline { slices, oddities, .. } = &mut self.timeline;
        let async_stacks = self.async_tracks.values_mut().map(|track| &mut track.stack);
        for stack in self.threads.iter_mut().map(|thread| &mut thread.stack).chain(async_stacks) {
            oddities.misplaced_ends += stack.remove_finished(i64::MAX, false, slices);
        }
    }

    /// The track of a thread, with the thread's name.
    fn make_track(&self, key: ThreadKey) -> Track {
        let name = self.thread_names.get(&key).or_else(|| self.process_names.get(&key.pid));
        thread_track(name.map(|name| &**name), Some(key.pid), Some(key.tid), &self.timeline.names, b"thread")
    }
}

/// Converts a number from [`SpanBuilder::owner_number`] back to the text that the trace has instead of the ID of a
/// process or thread. `None` if the number is an ID that the trace states.
fn owner_name(number: i64, names: &SliceNames) -> Option<&[u8]> {
    if number >= 0 {
        return None;
    }
    let name = NameNumber::try_from(number.wrapping_sub(i64::MIN)).ok()?;
    Some(names.text(name))
}

/// The track of a thread. It gets the first of these names that exists: `name`, which the trace's metadata state; the
/// text that the trace has in the place of the thread's or process's ID; or `default_name`. An ID that exceeds 32 bits
/// becomes a part of the name, so that threads stay distinct and none gets an ID that the trace doesn't state.
fn thread_track(
    name: Option<&[u8]>,
    pid: Option<i64>,
    tid: Option<i64>,
    names: &SliceNames,
    default_name: &[u8],
) -> Track {
    // In some traces, `tid` or `pid` is a text instead of a number. Of the two, the thread's describes the track
    // better.
    let owner = tid.and_then(|tid| owner_name(tid, names)).or_else(|| owner_name(pid?, names));
    let base = name.or(owner).unwrap_or(default_name);
    let mut comm = base.to_vec();
    for (word, number) in [("pid", pid), ("tid", tid)] {
        let Some(number) = number else { continue };
        match owner_name(number, names) {
            // A text in the place of an ID is a part of the name, too, unless it is the name already.
            Some(owner) if base != owner => comm.extend([b" (", owner, b")"].concat()),
            Some(_) => {}
            None if i32::try_from(number).is_err() => comm.extend(format!(" ({word} {number})").bytes()),
            None => {}
        }
    }
    let id_of_32_bits = |number: Option<i64>| number.and_then(|number| i32::try_from(number).ok());
    Track { comm, pid: id_of_32_bits(pid).map(Pid), tid: id_of_32_bits(tid).map(Tid), ..Track::default() }
}

/// True for a sum that clang writes in the form of a span, after the real spans.
fn is_clang_sum(event: &TraceEvent<'_>) -> bool {
    event.phase == b'X'
        && event.name.starts_with("Total ")
        && event.arguments(["avg ms", "count"]).iter().all(Option::is_some)
}

impl SpanEvent {
    /// A slice that starts at this event, with duration 0 and depth 0. `lane` is the number of its async track, or
    /// [`THREAD_LANE`].
    fn slice(&self, kind: SliceKind, lane: u32) -> Slice {
        let action = match self.action {
            Action::None => NO_NAME,
            Action::Name(action) | Action::Detail(action) => action,
        };
        let Self { time, name, thread, origin, .. } = *self;
        Slice { start: time, duration: 0, name, action, track: thread, lane, depth: 0, kind, origin }
    }
}

/// If the end event of a slice states an action, that replaces the action of the start event. Perfetto does the same.
fn set_action(slice: &mut Slice, end: &SpanEvent) {
    if let Action::Name(action) = end.action {
        slice.action = action;
    }
}

/// Stores for a slice the values of the arguments by which time is summed.
fn add_arguments(by_arg: &mut [Vec<(u32, NameNumber)>], slice: usize, event: &SpanEvent) {
    for (values, &value) in by_arg.iter_mut().zip(&event.args) {
        if value != NO_NAME {
            values.push((slice as u32, value));
        }
    }
}

/// The maximum nesting depth in Perfetto.
const PERFETTO_MAX_DEPTH: u16 = 512;

/// Finds the end of the span that starts at the time `from`, if the end was read before the start: the earliest end in
/// `ends` with the span's track and name that isn't before `from`. Removes it and returns its time; `None` if there is
/// none.
fn take_early_end(ends: &mut BTreeMap<EarlyEnd, u32>, id: AsyncTrackKey, name: NameNumber, from: i64) -> Option<i64> {
    // The ends with this track and name are next to each other, sorted by time, so the first one is the earliest.
    let (&end, count) = ends.range_mut((id, name, from)..=(id, name, i64::MAX)).next()?;
    let (_, _, time) = end;
    *count -= 1;
    if *count == 0 {
        ends.remove(&end);
    }
    Some(time)
}

/// Converts an ID to a number: decimal (possibly negative) or hexadecimal. Other IDs are hashed to numbers outside that
/// range.
fn id_number(id: &[u8]) -> i128 {
    let text = std::str::from_utf8(id).unwrap_or_default();
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(i128::from),
        None => text.parse::<i64>().ok().map(i128::from).or_else(|| text.parse::<u64>().ok().map(i128::from)),
    };
    parsed.unwrap_or_else(|| {
        let mut hasher = FxHasher::default();
        hasher.write(id);
        i128::from(hasher.finish()) + (1 << 64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(json: &str) -> Trace {
        read_trace(json.as_bytes(), &ReadOptions::default(), |_, _| Ok(())).unwrap()
    }

    /// The name, start and duration (in microseconds) and async track of all spans.
    fn spans(json: &str) -> Vec<(String, i64, i64, u32)> {
        let Trace { timeline, .. } = trace(json);
        let mut spans = Vec::new();
        for slice in &timeline.slices {
            let name = String::from_utf8_lossy(timeline.names.text(slice.name)).into_owned();
            spans.push((name, slice.start / 1000, slice.duration / 1000, slice.lane));
        }
        spans
    }

    #[test]
    fn each_id_has_a_track_of_its_own() {
        let found = spans(
            r#"[{"ph":"b","name":"a","id":1,"ts":0},{"ph":"b","name":"b","id":2,"ts":1},{"ph":"b","name":"c","id":1,"ts":2},
            {"ph":"e","name":"c","id":1,"ts":3},{"ph":"e","name":"b","id":2,"ts":4},{"ph":"e","name":"a","id":1,"ts":5},
            {"ph":"S","name":"d","id":"x","ts":6},{"ph":"F","name":"d","id":"x","ts":7}]"#,
        );
        let expected = [("a", 0, 5, 1), ("b", 1, 3, 2), ("c", 2, 1, 1), ("d", 6, 1, 3)];
        assert_eq!(found, expected.map(|(name, start, duration, lane)| (name.to_owned(), start, duration, lane)));
    }

    #[test]
    fn ids_that_are_too_large_or_names_are_no_ids_of_other_threads() {
        let json = r#"[{"ph":"X","name":"a","pid":4294967297,"tid":1,"ts":0,"dur":5},
            {"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":5},{"ph":"X","name":"a","pid":1,"tid":8589934593,"ts":0,"dur":5},
            {"ph":"X","name":"a","pid":"P","tid":"T","ts":0,"dur":5},{"ph":"X","name":"a","pid":-7,"tid":2,"ts":0,"dur":5}]"#;
        let mut tracks = Vec::new();
        for track in trace(json).timeline.tracks {
            let comm = String::from_utf8(track.comm).unwrap();
            tracks.push((comm, track.pid.map(|pid| pid.0), track.tid.map(|tid| tid.0)));
        }
        let expected = [
            ("thread (pid 4294967297)", None, Some(1)),
            ("thread", Some(1), Some(1)),
            ("thread (tid 8589934593)", Some(1), None),
            ("T (P)", None, None),
            ("thread", Some(-7), Some(2)),
        ];
        assert_eq!(tracks, expected.map(|(comm, pid, tid)| (comm.to_owned(), pid, tid)));
    }

    #[test]
    fn a_span_ends_at_the_latest_with_the_span_around_it() {
        // Whether or not an event follows on the track.
        let open = r#"{"ph":"B","name":"a","ts":0},{"ph":"B","name":"b","ts":1},{"ph":"B","name":"c","ts":2},{"ph":"E","name":"a","ts":10}"#;
        let ids = open.replace(r#""B","#, r#""b","id":1,"#).replace(r#""E","#, r#""e","id":1,"#);
        let ended = |lane| [("a".to_owned(), 0, 10, lane), ("b".to_owned(), 1, 9, lane), ("c".to_owned(), 2, 8, lane)];
        assert_eq!(spans(&format!("[{open}]")), ended(0));
        assert_eq!(spans(&format!("[{ids}]")), ended(1));
        let complete = r#"{"ph":"X","name":"x","ts":10,"dur":1}"#;
        // Complete spans are added at once, the others when their order is known.
        assert_eq!(spans(&format!("[{open},{complete}]"))[1..], ended(0));
        let instant = r#"{"ph":"i","name":"i","ts":11}"#;
        assert_eq!(spans(&format!("[{open},{instant}]"))[..3], ended(0));
        assert_eq!(trace(&format!("[{open}]")).timeline.oddities.misplaced_ends, 1);
    }

    #[test]
    fn a_span_that_starts_or_ends_at_an_instant_is_not_inside_it() {
        // For each event its phase, name and time.
        let cases: [&[(&str, &str, i64)]; 4] = [
            &[("i", "i", 10), ("B", "b", 10), ("E", "b", 20)],
            &[("i", "i", 10), ("i", "j", 10), ("B", "b", 10), ("E", "b", 20)],
            &[("B", "a", 0), ("i", "i", 10), ("E", "a", 10), ("B", "b", 10), ("E", "b", 20)],
            &[("B", "a", 0), ("B", "b", 10), ("i", "i", 10), ("E", "b", 20), ("E", "a", 30)],
        ];
        for events in cases {
            for async_id in [false, true] {
                let mut json = Vec::new();
                for (phase, name, time) in events {
                    let (phase, id) = match (async_id, *phase) {
                        (true, "i") => ("n".to_owned(), r#","id":1"#),
                        (true, phase) => (phase.to_lowercase(), r#","id":1"#),
                        (false, phase) => (phase.to_owned(), ""),
                    };
                    json.push(format!(r#"{{"ph":"{phase}","name":"{name}","ts":{time}{id}}}"#));
                }
                for perfetto_compat in [false, true] {
                    let options = ReadOptions { perfetto_compat, ..ReadOptions::default() };
                    let json = format!("[{}]", json.join(","));
                    let timeline = read_trace(json.as_bytes(), &options, |_, _| Ok(())).unwrap().timeline;
                    let oddities = &timeline.oddities;
                    assert_eq!((oddities.misplaced_ends, oddities.unmatched_ends), (0, 0), "{json}");
                    for slice in &timeline.slices {
                        let name = String::from_utf8_lossy(timeline.names.text(slice.name)).into_owned();
                        let time = |phase| {
                            events.iter().find(|event| (event.0, event.1) == (phase, &*name)).map(|event| event.2)
                        };
                        let duration = time("E").map_or(0, |end| end - time("B").unwrap());
                        assert_eq!(slice.duration / 1000, duration, "{name} in {json}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_complete_span_without_a_duration_takes_the_cpu_time_of_its_thread() {
        let json = r#"[{"ph":"X","name":"a","ts":0,"tdur":4},{"ph":"X","name":"b","ts":10,"dur":5,"tdur":3},
            {"ph":"X","name":"c","ts":20},{"ph":"X","name":"d","ts":30,"tdur":-1},{"ph":"X","name":"e","ts":40,"tdur":"2"}]"#;
        let durations: Vec<i64> = spans(json).into_iter().map(|(_, _, duration, _)| duration).collect();
        assert_eq!(durations, [4, 5, 0, 0, 2]);
        let oddities = trace(json).timeline.oddities;
        assert_eq!((oddities.cpu_durations, oddities.endless), (3, 2));
        let compat = ReadOptions { perfetto_compat: true, ..ReadOptions::default() };
        let trace = read_trace(json.as_bytes(), &compat, |_, _| Ok(())).unwrap();
        assert_eq!((trace.timeline.oddities.cpu_durations, trace.timeline.oddities.endless), (0, 4));
    }

    #[test]
    fn an_id_of_two_scopes_is_two() {
        let found = spans(
            r#"[{"ph":"b","name":"a","scope":"A","id":1,"ts":0},{"ph":"b","name":"a","scope":"B","id":1,"ts":1},
            {"ph":"e","name":"a","scope":"A","id":1,"ts":5},{"ph":"e","name":"a","scope":"B","id":1,"ts":7}]"#,
        );
        assert_eq!(found, [("a".to_owned(), 0, 5, 1), ("a".to_owned(), 1, 6, 2)]);
    }

    #[test]
    fn spans_without_a_name_are_unnamed_and_an_end_without_one_ends_any() {
        let found =
            spans(r#"[{"ph":"B","ts":0},{"ph":"E","name":"x","ts":2},{"ph":"B","name":"x","ts":3},{"ph":"E","ts":4}]"#);
        assert_eq!(found, [(UNNAMED.to_owned(), 0, 2, 0), ("x".to_owned(), 3, 1, 0)]);
    }

    #[test]
    fn only_miris_frames_are_miris() {
        let is_miri = |name: &str, args: &str| {
            trace(&format!(r#"[{{"ph":"b","name":"{name}","id":1,"ts":0,"args":{{{args}}}}}]"#)).timeline.is_miri
        };
        assert!(is_miri("frame", r#""message":"f""#) && is_miri("step", r#""step":"eval_place""#));
        assert!(!is_miri("frame", "") && !is_miri("frame", r#""frame":"7""#) && !is_miri("step", r#""message":"7""#));
        assert!(!is_miri("request", r#""message":"f""#));
    }

    #[test]
    fn clangs_sums_are_no_work_and_its_details_are_actions() {
        let events = r#"{"ph":"X","name":"Source","ts":0,"dur":5,"args":{"detail":"a.h"}},{"ph":"X","name":"Total cost","ts":5,"dur":1}"#;
        let sum = r#"{"ph":"X","name":"Total Source","tid":9,"ts":0,"dur":5,"args":{"count":1,"avg ms":0}}"#;
        let subs = |json: &str| {
            let trace = trace(json);
            let action = |slice: &Slice| String::from_utf8_lossy(trace.timeline.names.text(slice.action)).into_owned();
            (trace.timeline.slices.iter().map(action).collect::<Vec<_>>(), trace.clang_sums)
        };
        assert_eq!(subs(&format!("[{events},{sum}]")), (vec!["a.h".to_owned(), String::new()], 1));
        // For other producers, `detail` is an ordinary argument.
        assert_eq!(subs(&format!("[{events}]")), (vec![String::new(), String::new()], 0));
    }

    #[test]
    fn metadata_counters_and_samples_are_passed_on() {
        let json = r#"[{"ph":"M","name":"process_name","pid":"p","args":{"name":"late \u0041"}},{"ph":"C","ts":8,"pid":3},
            {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"t"}},{"ph":"P","name":"Profile","pid":1,"tid":2}]"#;
        let mut others = Vec::new();
        let trace = read_trace(json.as_bytes(), &ReadOptions::default(), |event, thread| {
            others.push((event.phase, thread.tid));
            Ok(())
        });
        assert_eq!(trace.unwrap().thread_name(1, 2), Some(b"t".to_vec()));
        assert_eq!(others[1..], [(b'C', 3), (b'M', 2), (b'P', 2)]);
    }
}
