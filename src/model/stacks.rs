//! Profiles as weighted stacks: every converter reads its input into one, and every writer outputs one.
//!
//! Names, frames and stacks are interned: each distinct one gets an ID. A stack is a node of a prefix tree. IDs are
//! assigned in order of first appearance. If parts of an input are merged in input order, IDs are the same for any
//! number of threads.

mod calls;
mod ids;
mod part;
mod rename;

pub use calls::{Calls, SelfCost, ThreadCalls};
pub use ids::{FrameId, NameId, StackId, TrackId};
pub use part::{Part, Renumbered, Taken};
pub use rename::ChangedFrame;

use super::about::About;
use super::interner::{self, Interner};
use super::mapping_kind::MappingKind;
use super::prefix_tree::PrefixTree;
use super::recorded::{Labels, Recording};
use super::texts::Texts;
use super::tier::Tier;
use super::units::{Nanos, Pid, Tid};
use crate::error::Result;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::Arc;

/// The name of frames whose function is unknown. Their module, if known, says more.
pub const UNKNOWN: &[u8] = b"[unknown]";

/// Name of an extra outermost frame in stacks whose real outermost frames are missing.
pub const TRUNCATED: &[u8] = b"[truncated]";

/// An entry of a stack: a function, an inlined call, or a raw address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function's name as it should be shown. For a raw address, the address as text.
    pub name: NameId,
    /// The library, program or other object that contains the code, or a category of code; `None` if unknown.
    pub module: Option<NameId>,
    /// The module's build ID in hexadecimal digits, if the profile states it per frame: the same path may be another
    /// build on another machine or in another container.
    pub build: Option<NameId>,
    /// The source file that contains `line`; `None` if unknown.
    pub file: Option<NameId>,
    /// The source line being executed, from 1; 0 if unknown. It isn't the line where the function starts.
    pub line: u32,
    /// The column in `line`, from 1; 0 if unknown. Only set if source maps are to be applied.
    pub column: u32,
    /// Where the function starts.
    pub start: FunctionStart,
    /// The address: within the module or, if there is no module, in the process. `None` unless an output format needs
    /// addresses.
    pub addr: Option<u64>,
    /// The kind of code, which determines annotations and colors.
    pub kind: FrameKind,
    /// How the runtime executed the function; `None` if unknown or not JIT code.
    pub tier: Option<Tier>,
    /// True for an inlined call that was reported as part of the name of a piece of code: perf-map-agent lists inlined
    /// calls there ([`java_calls`](crate::runtimes::java_calls)).
    pub from_joined_name: bool,
}

impl Frame {
    /// Creates a frame of which only name and kind are known.
    pub fn new(name: NameId, kind: FrameKind) -> Self {
        Self {
            name,
            module: None,
            build: None,
            file: None,
            line: 0,
            column: 0,
            start: FunctionStart::default(),
            addr: None,
            kind,
            tier: None,
            from_joined_name: false,
        }
    }
}

/// Where a function starts in its source code, as far as the input says.
///
/// If an input only states the executed line, `line` and `column` stay 0: if they had the executed line, a function
/// that was sampled at several lines would become several functions. For recordings of addresses, `file` stays `None`,
/// too: debug information states the file of the executed line, which may be a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FunctionStart {
    /// The source file; `None` if unknown.
    pub file: Option<NameId>,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// The column, from 1, in UTF-16 units; 0 if unknown.
    pub column: u32,
}

impl FunctionStart {
    /// Replaces the file's ID by what `name` returns for it, which is the ID in another profile.
    fn map_names(self, name: impl Fn(NameId) -> NameId) -> Self {
        Self { file: self.file.map(name), ..self }
    }
}

/// The identity of a function ([`Profile::function_of`]): two frames belong to the same function if these fields are
/// equal. All tables, trees, pages and outputs follow this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Function {
    /// The function's name.
    pub name: NameId,
    /// The function's module; always `None` for JIT code, whose module (`perf-7.map`, `jitted-7-3.so`) is named after
    /// the process.
    pub module: Option<NameId>,
    /// Where the function starts in the source code.
    pub start: FunctionStart,
}

/// The kind of code that a frame is in. Unnamed user-space code has separate kinds. Kernel code is
/// [`Kernel`](Self::Kernel) with or without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FrameKind {
    /// A function in a program or library.
    User,
    /// Code of the kernel or a kernel module, with or without a name.
    Kernel,
    /// A function compiled by a JIT compiler, or interpreted.
    Jit,
    /// A call that the compiler inlined. In recordings, only calls in native code have this kind. See
    /// [`is_jit`](Self::is_jit).
    Inlined,
    /// Unnamed code in a program or library: the file has no symbol for it or isn't available.
    NativeUnnamed,
    /// Unnamed code in memory that no file backs, in a process that runs a JIT compiler: the process mapped a known
    /// runtime, or there is a jitdump, perf map or log of it.
    JitUnnamed,
    /// Unnamed code in memory that no file backs, in a process without any known JIT compiler.
    Anonymous,
    /// Neither the name nor the module is known. Nothing was mapped at the address, so it probably isn't code:
    /// unwinders that go wrong produce such addresses.
    Unknown,
}

impl FrameKind {
    /// The kind that code of this kind has if its function has no name.
    #[doc(hidden)]
    pub fn unnamed(self) -> Self {
        match self {
            Self::User => Self::NativeUnnamed,
            Self::Jit => Self::JitUnnamed,
            Self::Kernel | Self::Inlined | Self::NativeUnnamed | Self::JitUnnamed | Self::Anonymous | Self::Unknown => {
                self
            }
        }
    }

    /// The kind that code of this kind has if its function has a name. If it is in memory without a file, it becomes
    /// JIT code, because only code of a JIT compiler has names there.
    #[doc(hidden)]
    pub fn named(self) -> Self {
        match self {
            Self::NativeUnnamed => Self::User,
            Self::JitUnnamed | Self::Anonymous => Self::Jit,
            Self::User | Self::Jit | Self::Kernel | Self::Inlined | Self::Unknown => self,
        }
    }

    /// True for code of a JIT compiler, with or without a name.
    ///
    /// In recordings (`perf.data`, perf script's text) and in a code map, calls that were inlined into such code count,
    /// too. Other formats may say only that a call was inlined, so that its kind is [`Inlined`](Self::Inlined), for
    /// which this is false. What it was inlined into is then the next outer frame of another kind.
    pub fn is_jit(self) -> bool {
        matches!(self, Self::Jit | Self::JitUnnamed)
    }
}

/// When the samples of a profile were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timing {
    /// The time of the last sample. `None` if rows can't be shown on a timeline ([`Profile::has_times`]).
    pub last: Option<Nanos>,
}

/// What a row belongs to: a thread, or a group of threads.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Track {
    /// The name of the process, thread or group.
    pub comm: Vec<u8>,
    /// The process ID.
    pub pid: Option<Pid>,
    /// The thread ID.
    pub tid: Option<Tid>,
    /// The CPU; `None` unless rows of different CPUs are kept apart.
    pub cpu: Option<u32>,
    /// Labels of the samples; `None` unless rows with different labels are kept apart.
    pub labels: Labels,
    /// The recording; `None` unless the input contains rows of several recordings that are kept apart.
    pub recording: Option<Arc<Recording>>,
    /// The index of the input; `None` unless several inputs are kept apart.
    pub input: Option<u32>,
}

/// The unit name of weights with fractions, which are counted in millionths.
pub const MILLIONTHS: &str = "millionths";

/// How many [`MILLIONTHS`] a weight of 1 has.
pub const MILLION: u64 = 1_000_000;

/// The unit of the weights of an event's samples.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Unit {
    /// Samples, or anything else without a unit.
    #[default]
    Samples,
    /// Time in nanoseconds.
    Nanos,
    /// Any other unit, such as instructions or bytes.
    Named(String),
}

impl Unit {
    /// The unit of a perf event's periods, given the event's name, which may have modifiers (`cpu-clock:u`).
    pub fn from_event_name(name: &str) -> Self {
        // The periods of the two clock events are nanoseconds (kernel/events/core.c, perf_swevent_init_hrtimer).
        match name.split([':', '/']).next().unwrap_or(name) {
            "cpu-clock" | "task-clock" => Self::Nanos,
            // perf's BPF program measures how long a thread was off the CPU, in nanoseconds.
            "offcpu-time" => Self::Nanos,
            base => Self::Named(base.to_owned()),
        }
    }

    /// Parses the name of a unit in a file. Returns the unit, and the factor that converts the file's values to it. An
    /// unknown word becomes a unit of that name.
    #[doc(hidden)]
    pub fn parse_word(word: &str) -> (u64, Self) {
        match word {
            "nanoseconds" | "ns" => (1, Self::Nanos),
            "microseconds" | "us" => (1_000, Self::Nanos),
            "milliseconds" | "ms" => (1_000_000, Self::Nanos),
            "seconds" | "s" => (1_000_000_000, Self::Nanos),
            "count" | "" => (1, Self::Samples),
            word => (1, Self::Named(word.to_owned())),
        }
    }

    /// The unit's name in pprof and related formats.
    #[doc(hidden)]
    pub fn word(&self) -> &str {
        match self {
            Self::Samples => "count",
            unit => unit.name(),
        }
    }

    /// The unit with this name, as [`Unit::name`] returns it.
    pub fn from_name(name: &str) -> Self {
        match name {
            "samples" => Self::Samples,
            "nanoseconds" => Self::Nanos,
            name => Self::Named(name.to_owned()),
        }
    }

    /// The name of the unit: `samples`, `nanoseconds`, or that of another unit.
    pub fn name(&self) -> &str {
        match self {
            Self::Samples => "samples",
            Self::Nanos => "nanoseconds",
            Self::Named(name) => name,
        }
    }
}

/// Which of the two numbers in a [`Row`] to add up: its weight or its sample count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weight {
    /// The row's weight, in the series' unit (perf's period).
    #[default]
    Period,
    /// The row's number of samples.
    Samples,
}

impl Weight {
    /// Returns the selected number of a row.
    pub fn value(self, row: &Row) -> u64 {
        match self {
            Self::Period => row.weight,
            Self::Samples => row.count,
        }
    }
}

/// Which rows a [`Profile`] keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// Every row with its time, in input order, for outputs that need times.
    #[default]
    EachRow,
    /// One row per distinct thread and stack, in order of first appearance and without times. Memory grows with the
    /// number of distinct stacks, not of samples.
    Sums,
}

/// How often samples of an event were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// A sample was taken after this many occurrences of the event.
    Period(u64),
    /// The event was sampled this many times per second.
    Frequency(u64),
}

/// Where a row's sample count comes from. When two profiles are compared, this determines whether a difference may be
/// noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counting {
    /// Row counts are real numbers of samples.
    #[default]
    Sampled,
    /// Row counts aren't known: the input has only sums, and doesn't say over how many samples.
    Unknown,
    /// Every call or instruction was counted, so there is no sampling noise.
    Exact,
}

/// The rows of one event.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// The event's name (`cpu-clock`, `Ir`), unique in the profile.
    pub name: String,
    /// The unit of the weights.
    pub unit: Unit,
    /// How often the event was sampled; `None` if unknown.
    pub sampling: Option<Sampling>,
    /// True if the input doesn't say how many samples a weight stands for. Each row of such an input counts as 1
    /// sample.
    pub uncounted: bool,
    /// Where sample counts come from, and so whether differences from another profile may be noise.
    pub counting: Counting,
    /// Samples in input order, or sums (see [`Keep`]). [`Profile::push`] adds rows.
    pub rows: Vec<Row>,
    /// Rows whose weight must be subtracted, such as freed memory. The weight itself is positive. Tables and formats
    /// that support negative numbers include these rows; pictures leave them out.
    pub negative: Vec<Row>,
}

impl Series {
    /// The sampling period, in the event's unit; 0 if it varies or is unknown.
    pub fn period(&self) -> u64 {
        match (self.sampling, &self.unit) {
            (Some(Sampling::Period(period)), _) => period,
            (Some(Sampling::Frequency(hertz)), Unit::Nanos) => 1_000_000_000 / hertz.max(1),
            _ => 0,
        }
    }

    /// True if it makes sense to show sample counts next to weights: the counts are known, and the weights aren't
    /// sample counts themselves.
    pub fn is_counted(&self) -> bool {
        let is_the_weight = self.unit == Unit::Samples && self.name == "samples";
        !self.uncounted && !is_the_weight
    }

    /// All rows, each with the number that `weight` selects. Negative rows come last. Their weights are negative, but
    /// their sample counts aren't.
    pub fn signed_rows(&self, weight: Weight) -> impl Iterator<Item = (&Row, i64)> {
        let amount = move |row: &Row| i64::try_from(weight.value(row)).unwrap_or(i64::MAX);
        let sign = if weight == Weight::Period { -1 } else { 1 };
        let positive = self.rows.iter().map(move |row| (row, amount(row)));
        positive.chain(self.negative.iter().map(move |row| (row, sign * amount(row))))
    }

    /// True if the series has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.negative.is_empty()
    }

    /// The sum of all weights, including negative ones.
    pub fn signed_total(&self, weight: Weight) -> i64 {
        self.signed_rows(weight).fold(0, |sum, (_, weight)| sum.saturating_add(weight))
    }

    /// True if all weights can be multiplied by this factor without their sum exceeding 64 bits.
    fn can_be_scaled(&self, factor: u64) -> bool {
        let mut sum = 0u64;
        for row in self.rows.iter().chain(&self.negative) {
            sum = sum.saturating_add(row.weight);
        }
        sum.checked_mul(factor).is_some()
    }
}

/// A sample, or the sum of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The thread or group that the row belongs to.
    pub track: TrackId,
    /// The stack; `None` is the empty stack.
    pub stack: Option<StackId>,
    /// The weight, in the series' unit.
    pub weight: u64,
    /// The number of samples that the row stands for.
    pub count: u64,
    /// The sample's time; `None` for a sum, or if the input states no time.
    pub time: Option<Nanos>,
}

impl Row {
    /// Adds the weight and count of another row.
    fn add(&mut self, other: &Self) {
        self.weight = self.weight.saturating_add(other.weight);
        self.count = self.count.saturating_add(other.count);
    }
}

/// Stacks with weights, for any number of events, and facts about the profile.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    names: Texts<NameId>,
    frames: Interner<Frame, FrameId>,
    stacks: PrefixTree<FrameId>,
    tracks: Interner<Track, TrackId>,
    keep: Keep,
    /// For each series, the index in `rows` of the sum for a track and stack. Empty if every row is kept.
    sums: Vec<FxHashMap<(TrackId, Option<StackId>), u32>>,
    /// True if names are spelled as perf spells them. Writers that imitate inferno-collapse-perf then drop argument
    /// lists, as inferno does. Names from other formats are written unchanged.
    pub perf_names: bool,
    /// True if rows are sums that only cover the time range that the user asked for. They can't be filtered by time
    /// again.
    pub cut_to_time: bool,
    /// True if each row is a span, such as a call: it starts at the row's time, and the row's weight is its duration.
    /// False if rows are samples.
    pub rows_have_durations: bool,
    /// Facts about the profile as a whole.
    pub about: About,
    /// The samples of each event, in input order.
    pub series: Vec<Series>,
    /// The index of each series by its name. It only has the first `indexed_series` series, which
    /// [`Profile::find_series`] has entered, and is wrong if somebody has moved them since.
    by_name: FxHashMap<String, usize>,
    indexed_series: usize,
    /// Calls per thread, for inputs that record calls instead of stacks. See
    /// [`CallGraph`](crate::analysis::call_graph::CallGraph).
    pub calls: Vec<ThreadCalls>,
}

impl Profile {
    /// An empty profile.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty profile that keeps every row, or only sums.
    pub fn empty(keep: Keep) -> Self {
        Self { keep, ..Self::default() }
    }

    /// Adds a row to the series with index `series`.
    pub fn push(&mut self, series: usize, row: Row) {
        let rows = &mut self.series[series].rows;
        match self.keep {
            Keep::EachRow => rows.push(row),
            Keep::Sums => {
                if self.sums.len() <= series {
                    self.sums.resize_with(series + 1, FxHashMap::default);
                }
                add_to_sum(rows, &mut self.sums[series], row);
            }
        }
    }

    /// Adds a row with a negative weight to the series with index `series`. `row.weight` is the absolute value. If the
    /// profile keeps sums, the row is only added to the previous one, and only if both have the same track and stack.
    /// There is no table of sums (`sums`) for negative rows.
    pub fn push_negative(&mut self, series: usize, row: Row) {
        let rows = &mut self.series[series].negative;
        if self.keep == Keep::Sums
            && let Some(last) = rows.last_mut()
            && (last.track, last.stack) == (row.track, row.stack)
        {
            last.add(&row);
        } else {
            rows.push(row);
        }
    }

    /// Returns the ID of a name, and adds the name if it is new.
    pub fn name(&mut self, name: &[u8]) -> NameId {
        self.names.intern(name)
    }

    /// Returns the ID of a frame, and adds the frame if it is new.
    pub fn frame(&mut self, frame: Frame) -> FrameId {
        self.frames.intern(frame)
    }

    /// Returns the ID of the stack of `parent` (`None`: the empty stack) extended by one callee. Adds the stack if it
    /// is new.
    pub fn stack(&mut self, parent: Option<StackId>, frame: FrameId) -> StackId {
        StackId(self.stacks.child(parent.map(|parent| parent.0), frame))
    }

    /// Returns the ID of a stack whose only frame is `[unknown]`, for samples of which no frame is known.
    pub fn unknown_stack(&mut self) -> StackId {
        let name = self.name(UNKNOWN);
        let frame = self.frame(Frame::new(name, FrameKind::Unknown));
        self.stack(None, frame)
    }

    /// Returns the ID of a track, and adds the track if it is new.
    pub fn track(&mut self, track: Track) -> TrackId {
        self.tracks.intern(track)
    }

    /// Fails if the profile has more entries than there are IDs. Call it after reading and before using the profile.
    pub fn check(&self) -> Result<()> {
        let full = [
            (self.names.is_full(), "names"),
            (self.frames.is_full(), "frames"),
            (self.stacks.is_full(), "stacks"),
            (self.tracks.is_full(), "threads"),
        ];
        match full.iter().find(|(is_full, _)| *is_full) {
            Some((_, what)) => Err(interner::full(what)),
            None => Ok(()),
        }
    }

    /// The name with this ID.
    pub fn name_of(&self, id: NameId) -> &[u8] {
        self.names.get(id)
    }

    /// The build ID of a frame's module, in hexadecimal digits: the one that the frame states, or the module's if all
    /// its mappings agree. `None` if unknown.
    pub fn build_of(&self, frame: &Frame) -> Option<Cow<'_, [u8]>> {
        if let Some(build) = frame.build {
            return Some(Cow::Borrowed(self.name_of(build)));
        }
        let module = self.about.modules.get(self.name_of(frame.module?))?;
        Some(Cow::Owned(module.build_id.into_option()?.to_string().into_bytes()))
    }

    /// The function that a frame belongs to.
    pub fn function_of(&self, frame: &Frame) -> Function {
        let module =
            frame.module.filter(|module| !frame.kind.is_jit() && !is_named_after_process(self.name_of(*module)));
        Function { name: frame.name, module, start: frame.start }
    }

    /// The source location of a frame, for outputs that show only one: the executed line or, if that is unknown, where
    /// the function starts. `None` if the file is unknown; the line is 0 if unknown.
    pub fn place_of(&self, frame: &Frame) -> Option<(NameId, u32)> {
        match (frame.file, frame.start.file) {
            (Some(file), _) if frame.line > 0 => Some((file, frame.line)),
            (_, Some(file)) => Some((file, frame.start.line)),
            (file, None) => file.map(|file| (file, 0)),
        }
    }

    /// The source location to show for a frame's function in a table: where the function starts or, if that is unknown,
    /// the executed line. `None` if neither is known.
    pub fn definition_of(&self, frame: &Frame) -> Option<(NameId, u32)> {
        match frame.start {
            FunctionStart { file: Some(file), line: line @ 1.., .. } => Some((file, line)),
            _ => self.place_of(frame),
        }
    }

    /// The frame with this ID.
    pub fn frame_of(&self, id: FrameId) -> &Frame {
        &self.frames.items()[id.index()]
    }

    /// A stack as two parts: the stack of the caller (`None`: the empty stack), whose ID is always smaller, and the
    /// innermost frame.
    pub fn stack_of(&self, id: StackId) -> (Option<StackId>, FrameId) {
        let (parent, frame) = self.stacks.get(id.0);
        (parent.map(StackId), frame)
    }

    /// All stacks in the order of their IDs, each as [`Profile::stack_of`] returns it.
    pub fn stacks(&self) -> impl Iterator<Item = (Option<StackId>, FrameId)> + '_ {
        self.stacks.iter().map(|(parent, frame)| (parent.map(StackId), frame))
    }

    /// The track with this ID.
    pub fn track_of(&self, id: TrackId) -> &Track {
        &self.tracks.items()[id.index()]
    }

    /// The number of stacks. Their IDs are 0 up to, but not including, this number.
    pub fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    /// The number of frames. Their IDs are 0 up to, but not including, this number.
    pub fn frame_count(&self) -> usize {
        self.frames.items().len()
    }

    /// The number of names. Their IDs are 0 up to, but not including, this number.
    pub fn name_count(&self) -> usize {
        self.names.len()
    }

    /// All names in the order of their IDs.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.names.list().iter()
    }

    /// All frames in the order of their IDs.
    pub fn frames(&self) -> impl Iterator<Item = (FrameId, &Frame)> + '_ {
        (0..).map(FrameId).zip(self.frames.items())
    }

    /// All frames except the first `known` ones, for callers that only want to see what is new since they looked last.
    pub fn frames_after(&self, known: usize) -> &[Frame] {
        self.frames.items().get(known..).unwrap_or_default()
    }

    /// All tracks, indexed by ID.
    pub fn tracks(&self) -> &[Track] {
        self.tracks.items()
    }

    /// True if rows can be shown on a timeline, because every input has rows with times. Single rows may still lack
    /// one, for example perf's off-CPU samples, which are summed while recording.
    pub fn has_times(&self) -> bool {
        let mut inputs: FxHashMap<Option<u32>, bool> = FxHashMap::default();
        for row in self.series.iter().flat_map(|series| &series.rows) {
            *inputs.entry(self.track_of(row.track).input).or_default() |= row.time.is_some();
        }
        !inputs.is_empty() && inputs.values().all(|has_times| *has_times)
    }

    /// Whether rows can be shown on a timeline ([`Self::has_times`]), and if so, where it ends.
    pub fn timing(&self) -> Timing {
        let times = self.series.iter().flat_map(|series| &series.rows).filter_map(|row| row.time);
        Timing { last: if self.has_times() { times.max() } else { None } }
    }

    /// The frames of a stack, innermost first.
    pub fn frames_up(&self, stack: Option<StackId>) -> impl Iterator<Item = FrameId> + '_ {
        let mut next = stack;
        std::iter::from_fn(move || {
            let (parent, frame) = self.stack_of(next?);
            next = parent;
            Some(frame)
        })
    }

    /// The index of the series with this name. If there is none, creates it with this unit.
    pub fn series_named(&mut self, name: &str, unit: Unit) -> usize {
        if let Some(index) = self.find_series(name) {
            return index;
        }
        self.series.push(Series { name: name.to_owned(), unit, ..Series::default() });
        self.series.len() - 1
    }

    /// The index of the series with this name; `None` if there is none. Uses a hash table, because an input may have a
    /// hundred thousand series.
    pub(crate) fn find_series(&mut self, name: &str) -> Option<usize> {
        // `series` is public, so somebody may have moved or removed some. Then the hash table is built anew.
        let is_moved = match self.by_name.get(name) {
            Some(index) => self.series.get(*index).is_none_or(|series| series.name != name),
            None => false,
        };
        if is_moved || self.series.len() < self.indexed_series {
            (self.indexed_series, self.by_name) = (0, FxHashMap::default());
        }
        for (index, series) in self.series.iter().enumerate().skip(self.indexed_series) {
            self.by_name.entry(series.name.clone()).or_insert(index);
        }
        self.indexed_series = self.series.len();
        self.by_name.get(name).copied()
    }

    /// The index of the series with this name and unit; creates it if there is none. If a series with another unit
    /// already has the name, appends the unit to the name: values with different units are never added up.
    pub(crate) fn series_with_unit(&mut self, name: &str, unit: &Unit) -> usize {
        let mut name = name.to_owned();
        while let Some(index) = self.find_series(&name)
            && self.series[index].unit != *unit
        {
            name = format!("{name} ({})", unit.name());
        }
        self.series_named(&name, unit.clone())
    }

    /// Chooses the series to which the rows of `other` are added. Returns its index, and the factor by which to
    /// multiply the weights of these rows. Usually, that is the series with the same name and unit, and the weights
    /// stay as they are (a factor of 1). But folded stacks state no unit, so whole weights and weights with fractions,
    /// which are counted in millionths, are the same measure: both become millionths.
    fn series_to_join(&mut self, other: &Series) -> (usize, u64) {
        let millionths = Unit::Named(MILLIONTHS.to_owned());
        let is_whole = |series: &Series| series.unit == Unit::Samples && series.counting == Counting::Unknown;
        if let Some(index) = self.find_series(&other.name) {
            let existing = &mut self.series[index];
            if existing.unit == millionths && is_whole(other) && other.can_be_scaled(MILLION) {
                return (index, MILLION);
            }
            if other.unit == millionths && is_whole(existing) && existing.can_be_scaled(MILLION) {
                for row in existing.rows.iter_mut().chain(&mut existing.negative) {
                    row.weight *= MILLION;
                }
                existing.unit = millionths;
                return (index, 1);
            }
        }
        (self.series_with_unit(&other.name, &other.unit), 1)
    }

    /// Switches to [`Keep::Sums`]: adds up existing rows and future ones. Negative rows stay as they are.
    pub fn aggregate(&mut self) {
        self.keep = Keep::Sums;
        self.sums = vec![FxHashMap::default(); self.series.len()];
        for (series, indices) in self.series.iter_mut().zip(&mut self.sums) {
            let mut sums = Vec::new();
            for row in series.rows.drain(..) {
                add_to_sum(&mut sums, indices, row);
            }
            series.rows = sums;
        }
    }

    /// Merges another profile into this one. Names, frames, stacks, tracks and series that are equal become one.
    pub fn merge(&mut self, other: &Self) {
        self.merge_renamed(other, |_, name| Cow::Borrowed(name));
    }

    /// Adds another profile's rows. `stacks` and `tracks` translate the other profile's IDs.
    fn add_rows(&mut self, series: &[Series], stacks: &[StackId], tracks: &[TrackId]) {
        for other in series {
            let (index, factor) = self.series_to_join(other);
            let translate = |row: &Row| {
                let stack = row.stack.map(|stack| stacks[stack.index()]);
                Row { track: tracks[row.track.index()], stack, weight: row.weight * factor, ..*row }
            };
            // If the rows of the two series were counted in different ways, it is no longer known what the counts mean.
            let series = &mut self.series[index];
            if series.rows.is_empty() {
                series.counting = other.counting;
            } else if series.counting != other.counting && !other.rows.is_empty() {
                series.counting = Counting::Unknown;
            }
            series.sampling = series.sampling.or(other.sampling);
            series.uncounted |= other.uncounted;
            for row in &other.rows {
                self.push(index, translate(row));
            }
            for row in &other.negative {
                self.push_negative(index, translate(row));
            }
        }
    }
}

/// True for a module that stands for JIT code. The names of most of them contain the ID of their process
/// (`perf-7.map`).
fn is_named_after_process(module: &[u8]) -> bool {
    let kind = MappingKind::from_path(module);
    kind.is_jit_object() || kind.is_perf_map() || kind.may_hold_jit_code()
}

/// Adds a row to the sum for its track and stack. `indices` has the index of each sum in `sums`.
fn add_to_sum(sums: &mut Vec<Row>, indices: &mut FxHashMap<(TrackId, Option<StackId>), u32>, row: Row) {
    let index = *indices.entry((row.track, row.stack)).or_insert(sums.len() as u32);
    match sums.get_mut(index as usize) {
        Some(sum) => sum.add(&row),
        None => sums.push(Row { time: None, ..row }),
    }
}

/// Creates a profile for tests: one thread and the event `cycles`, from stacks such as `main;f` and their weights.
#[cfg(test)]
pub(crate) fn profile_of(stacks: &[(&str, u64)]) -> Profile {
    let mut profile = Profile::new();
    let track = profile.track(Track::default());
    for &(names, weight) in stacks {
        let mut stack = None;
        for name in names.split(';') {
            let name = profile.name(name.as_bytes());
            let frame = profile.frame(Frame::new(name, FrameKind::User));
            stack = Some(profile.stack(stack, frame));
        }
        let row = Row { track, stack, weight, count: 1, time: Some(Nanos(weight)) };
        let series = profile.series_named("cycles", Unit::Samples);
        profile.push(series, row);
    }
    profile
}

#[cfg(test)]
mod tests {
    use super::profile_of as profile;
    use super::*;

    fn lines(profile: &Profile) -> Vec<String> {
        let mut lines = Vec::new();
        for row in &profile.series[0].rows {
            let frames = profile.frames_up(row.stack);
            let names = frames.map(|frame| String::from_utf8_lossy(profile.name_of(profile.frame_of(frame).name)));
            let mut names: Vec<_> = names.collect();
            names.reverse();
            lines.push(format!("{} {}", names.join(";"), row.weight));
        }
        lines
    }

    #[test]
    fn a_value_too_large_to_number_is_an_error() {
        let mut few = Profile { names: Texts::with_limit(2), ..Profile::new() };
        few.merge(&profile(&[("a;b", 1)]));
        few.check().unwrap();
        few.merge(&profile(&[("a;c", 2)]));
        assert!(few.check().unwrap_err().to_string().contains("different names"));
        assert_eq!(lines(&few), ["a;b 1", "a;a 2"]);
    }

    #[test]
    fn a_hundred_thousand_series_are_found_by_name_even_if_some_are_taken_out() {
        let mut profile = Profile::new();
        let find = |profile: &mut Profile, at: usize| profile.series_with_unit(&format!("event{at}"), &Unit::Samples);
        for at in 0..100_000 {
            assert_eq!(find(&mut profile, at), at);
        }
        profile.series.remove(1);
        assert_eq!([0, 2, 99_999, 1].map(|at| find(&mut profile, at)), [0, 1, 99_998, 99_999]);
        profile.series.swap(0, 1);
        assert_eq!([0, 2].map(|at| find(&mut profile, at)), [1, 0]);
        let other = (0..3).map(|_| profile.series_with_unit("event0", &Unit::Nanos)).collect::<Vec<_>>();
        assert!(other.iter().all(|at| profile.series[*at].name == "event0 (nanoseconds)"));
    }

    #[test]
    fn equal_stacks_are_one_and_sums_keep_their_order() {
        let mut both = profile(&[("a;b", 1), ("a;c", 2), ("a;b", 4)]);
        both.merge(&profile(&[("a;c", 8), ("z", 16)]));
        both.aggregate();
        assert_eq!(lines(&both), ["a;b 5", "a;c 10", "z 16"]);
        assert_eq!(both.stack_count(), 4);
    }
}
