//! Profiles as weighted stacks: every converter reads its input into one, and every writer outputs one.
//!
//! Names, frames and stacks are interned. A stack is a node of a prefix tree, identified by a single ID. IDs are
//! assigned in order of first appearance; if parts are merged in input order, they are the same for any number of
//! threads.

mod calls;
mod ids;
mod part;
mod renamed;

pub use calls::{Calls, SelfCost, ThreadCalls};
pub use ids::{FrameId, NameId, StackId, TrackId};
pub use part::{Part, Renumbered, Taken};
pub use renamed::ChangedFrame;

use super::about::About;
use super::backing::Backing;
use super::interner::{self, Interner};
use super::prefix_tree::PrefixTree;
use super::recorded::{Labels, Recording};
use super::texts::Texts;
use super::tier::Tier;
use super::units::{Nanos, Pid, Tid};
use crate::error::Result;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::Arc;

/// Name of frames whose function is unknown. The frame's module, if known, says more.
pub const UNKNOWN: &[u8] = b"[unknown]";

/// Name of an extra outermost frame in stacks whose real outermost frames are missing.
pub const TRUNCATED: &[u8] = b"[truncated]";

/// An entry of a stack: a function, an inlined call, or a raw address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function's name as it should be shown. A raw address is a name, too.
    pub name: NameId,
    /// The library, program or other object that contains the code, or a category of code.
    pub module: Option<NameId>,
    /// The module's build ID in hexadecimal digits, if the profile has it per frame: on other machines or in other
    /// containers, a path may be a different build.
    pub build: Option<NameId>,
    /// The source file that contains `line`.
    pub file: Option<NameId>,
    /// The source line being executed, 0 if unknown. It doesn't say where the function starts.
    pub line: u32,
    /// The column in `line`, from 1; 0 if unknown. Only set for applying source maps.
    pub column: u32,
    /// Where the function starts.
    pub start: FunctionStart,
    /// The address within the module (absolute if there is no module), if an output format needs it.
    pub addr: Option<u64>,
    /// The kind of code, which determines annotations and colors.
    pub kind: FrameKind,
    /// How the runtime executed the function; `None` if unknown or not JIT code.
    pub tier: Option<Tier>,
    /// True if the frame is an inlined call that was reported in the name of the caller's code
    /// ([`java_calls`](crate::runtimes::java_calls)).
    pub joined: bool,
}

impl Frame {
    /// A frame with a name and kind only.
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
            joined: false,
        }
    }
}

/// Where a function starts in its source, as far as the input says.
///
/// If an input only says which line was executed, line and column stay empty: otherwise a function that was sampled at
/// several lines would become several functions. Recordings of addresses leave the file empty too, because debug
/// information gives the file of the executed line, which may be a header.
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
    /// Translates the file's ID to that of another profile.
    fn map_names(self, name: impl Fn(NameId) -> NameId) -> Self {
        Self { file: self.file.map(name), ..self }
    }
}

/// The identity of a function: two frames belong to the same function if these are equal ([`Profile::function_of`]).
/// All tables, trees, pages and outputs follow it.
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

/// The kind of code in a frame. Unnamed user-space code has kinds of its own; kernel code is [`Kernel`](Self::Kernel)
/// with or without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameKind {
    /// A function in a program or library.
    User,
    /// Code of the kernel or a kernel module, with or without a name.
    Kernel,
    /// A function compiled by a JIT compiler, or interpreted.
    Jit,
    /// A call that the compiler inlined.
    Inlined,
    /// Unnamed code in a program or library: the file has no symbol for it or isn't available.
    NativeUnnamed,
    /// Unnamed code in memory that no file backs, in a process that runs a JIT compiler: the process mapped a known
    /// runtime, or there is a jitdump, perf map or log of it.
    JitUnnamed,
    /// Unnamed code in memory that no file backs, in a process without any known JIT compiler.
    Anonymous,
    /// Neither name nor module is known. Nothing was mapped at the address, so it probably isn't code; unwinders that
    /// go astray produce such addresses.
    Unknown,
}

impl FrameKind {
    /// The kind of this code if its function has no name.
    pub fn unnamed(self) -> Self {
        match self {
            Self::User => Self::NativeUnnamed,
            Self::Jit => Self::JitUnnamed,
            Self::Kernel | Self::Inlined | Self::NativeUnnamed | Self::JitUnnamed | Self::Anonymous | Self::Unknown => {
                self
            }
        }
    }

    /// The kind of this code if its function has a name. Only a compiler's code has names in memory without a file.
    pub fn named(self) -> Self {
        match self {
            Self::NativeUnnamed => Self::User,
            Self::JitUnnamed | Self::Anonymous => Self::Jit,
            Self::User | Self::Jit | Self::Kernel | Self::Inlined | Self::Unknown => self,
        }
    }

    /// True for code of a JIT compiler, with or without a name.
    pub fn is_jit(self) -> bool {
        matches!(self, Self::Jit | Self::JitUnnamed)
    }
}

/// The thread or group that a row belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Track {
    /// Name of the process, thread or group.
    pub comm: Vec<u8>,
    /// The process ID.
    pub pid: Option<Pid>,
    /// The thread ID.
    pub tid: Option<Tid>,
    /// The CPU, if rows are kept apart by CPU.
    pub cpu: Option<u32>,
    /// Labels that keep rows apart, if the output has room for them.
    pub labels: Labels,
    /// The recording, if the input contains rows of several machines and the output keeps them apart.
    pub recording: Option<Arc<Recording>>,
    /// Index of the input, if the output keeps several inputs apart.
    pub input: Option<u32>,
}

/// The unit of a [`Series`]' weights.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
    /// The unit of a perf event's periods. The event's name may have modifiers.
    pub fn of_event(name: &str) -> Self {
        // The periods of the two clock events are nanoseconds (kernel/events/core.c, perf_swevent_init_hrtimer).
        match name.split([':', '/']).next().unwrap_or(name) {
            "cpu-clock" | "task-clock" => Self::Nanos,
            // perf's BPF program measures how long a thread was off the CPU, in nanoseconds.
            "offcpu-time" => Self::Nanos,
            base => Self::Named(base.to_owned()),
        }
    }

    /// Parses a unit from a file. Returns a factor that converts the file's values, and the unit.
    pub fn of_word(word: &str) -> (u64, Self) {
        match word {
            "nanoseconds" | "ns" => (1, Self::Nanos),
            "microseconds" | "us" => (1_000, Self::Nanos),
            "milliseconds" | "ms" => (1_000_000, Self::Nanos),
            "seconds" | "s" => (1_000_000_000, Self::Nanos),
            "count" | "" => (1, Self::Samples),
            word => (1, Self::Named(word.to_owned())),
        }
    }

    /// The name of the unit in pprof and related formats.
    pub fn word(&self) -> &str {
        match self {
            Self::Samples => "count",
            unit => unit.name(),
        }
    }

    /// The unit with this [`Unit::name`].
    pub fn named(name: &str) -> Self {
        match name {
            "samples" => Self::Samples,
            "nanoseconds" => Self::Nanos,
            name => Self::Named(name.to_owned()),
        }
    }

    /// The name of the unit in most formats.
    pub fn name(&self) -> &str {
        match self {
            Self::Samples => "samples",
            Self::Nanos => "nanoseconds",
            Self::Named(name) => name,
        }
    }
}

/// Which of a [`Row`]'s two numbers to add up.
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
    pub fn of(self, row: &Row) -> u64 {
        match self {
            Self::Period => row.weight,
            Self::Samples => row.count,
        }
    }
}

/// What a [`Profile`] keeps of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// Every row with its time, in input order: for output that needs times.
    #[default]
    EachRow,
    /// One row per distinct thread and stack, in order of first appearance and without times. Memory grows with the
    /// number of distinct stacks, not of samples.
    Sums,
}

/// How often an event was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// A sample was taken after this many occurrences of the event.
    Period(u64),
    /// The event was sampled this many times per second.
    Frequency(u64),
}

/// How reliable a row's sample count is when two profiles are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counting {
    /// The counts of rows are real numbers of samples.
    #[default]
    Sampled,
    /// The input only has sums, and doesn't say of how many samples.
    Unknown,
    /// Every call or instruction was counted, so there is no sampling noise.
    Exact,
}

/// The samples of one event.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// The event's name (`cpu-clock`, `Ir`), unique in the profile.
    pub name: String,
    /// The unit of the rows' weights.
    pub unit: Unit,
    /// How often the event was sampled; `None` if unknown.
    pub sampling: Option<Sampling>,
    /// True if the input doesn't say how many samples its weights stand for. Each of its rows then counts as 1.
    pub uncounted: bool,
    /// Whether differences between this profile and another one may be sampling noise.
    pub counting: Counting,
    /// Samples in input order, or sums (see [`Keep`]). [`Profile::push`] adds rows.
    pub rows: Vec<Row>,
    /// Rows whose weight must be subtracted, such as freed memory; the weight itself is positive. Tables and formats
    /// that support negative numbers include them, pictures can't.
    pub negative: Vec<Row>,
}

impl Series {
    /// The sampling period in the event's unit; 0 if it varies or isn't known.
    pub fn period(&self) -> u64 {
        match (self.sampling, &self.unit) {
            (Some(Sampling::Period(period)), _) => period,
            (Some(Sampling::Frequency(hertz)), Unit::Nanos) => 1_000_000_000 / hertz.max(1),
            _ => 0,
        }
    }

    /// True if the sample count is worth showing beside the weight: it is known, and isn't the same number.
    pub fn is_counted(&self) -> bool {
        let is_the_weight = self.unit == Unit::Samples && self.name == "samples";
        !self.uncounted && !is_the_weight
    }

    /// All rows with their weights; negative rows come last. Sample counts of negative rows stay positive.
    pub fn signed_rows(&self, weight: Weight) -> impl Iterator<Item = (&Row, i64)> {
        let amount = move |row: &Row| i64::try_from(weight.of(row)).unwrap_or(i64::MAX);
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

    /// Series may only be added up if their identities (name and unit) are equal.
    pub fn identity(&self) -> (&str, &Unit) {
        (&self.name, &self.unit)
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
    /// The sample's time; `None` for sums, and for samples without one.
    pub time: Option<Nanos>,
}

impl Row {
    /// Adds the weight and count of another row.
    fn add(&mut self, other: &Self) {
        self.weight = self.weight.saturating_add(other.weight);
        self.count = self.count.saturating_add(other.count);
    }
}

/// Weighted stacks of any number of events.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    names: Texts<NameId>,
    frames: Interner<Frame, FrameId>,
    stacks: PrefixTree<FrameId>,
    tracks: Interner<Track, TrackId>,
    keep: Keep,
    /// For each series, the index of the row for a thread and stack; empty if all rows are kept.
    sums: Vec<FxHashMap<(TrackId, Option<StackId>), u32>>,
    /// True if names are spelled like perf's. Writers that imitate inferno-collapse-perf then drop argument lists, as
    /// it does. Names from other formats are written as they are.
    pub perf_names: bool,
    /// True if rows are sums over the time range that the user asked for. They can't be filtered by time any more.
    pub cut_to_time: bool,
    /// True if a row is a span, such as a call: it starts at its time and lasts as long as its weight. False if it is a
    /// sample.
    pub rows_last: bool,
    /// Facts about the profile as a whole.
    pub about: About,
    /// The samples of each event, in input order.
    pub series: Vec<Series>,
    /// The index of each series, by name. Covers the first `numbered` series, as long as these stay at their indices.
    by_name: FxHashMap<String, usize>,
    numbered: usize,
    /// Calls per thread, for inputs that record calls instead of stacks. See
    /// [`CallGraph`](crate::analysis::call_graph::CallGraph).
    pub calls: Vec<ThreadCalls>,
}

impl Profile {
    /// An empty profile.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty profile that keeps rows as specified.
    pub fn keeping(keep: Keep) -> Self {
        Self { keep, ..Self::default() }
    }

    /// Adds a row to the series with this index.
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

    /// Adds a row whose weight is negative; `row.weight` is the absolute value.
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

    /// Interns a name.
    pub fn name(&mut self, name: &[u8]) -> NameId {
        self.names.intern(name)
    }

    /// Interns a frame.
    pub fn frame(&mut self, frame: Frame) -> FrameId {
        self.frames.intern(frame)
    }

    /// The stack that extends `parent` (`None`: the empty stack) by a callee.
    pub fn stack(&mut self, parent: Option<StackId>, frame: FrameId) -> StackId {
        StackId(self.stacks.child(parent.map(|parent| parent.0), frame))
    }

    /// A stack for samples without any known frame.
    pub fn unknown_stack(&mut self) -> StackId {
        let name = self.name(UNKNOWN);
        let frame = self.frame(Frame::new(name, FrameKind::Unknown));
        self.stack(None, frame)
    }

    /// Interns a track.
    pub fn track(&mut self, track: Track) -> TrackId {
        self.tracks.intern(track)
    }

    /// Removes rows and stacks. Names, frames, tracks and series stay.
    pub fn forget_rows(&mut self) {
        self.stacks.clear();
        self.calls.clear();
        for series in &mut self.series {
            series.rows.clear();
            series.negative.clear();
        }
        self.sums.iter_mut().for_each(FxHashMap::clear);
    }

    /// Fails if IDs ran out. Call it after reading and before using the profile.
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

    /// The build ID of a frame's module in hexadecimal digits: the frame's own, or that of the module if all its
    /// mappings agree.
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

    /// File and line of a frame, for output that shows only one location: the executed line, or else where the function
    /// starts. The line is 0 if unknown.
    pub fn place_of(&self, frame: &Frame) -> Option<(NameId, u32)> {
        match (frame.file, frame.start.file) {
            (Some(file), _) if frame.line > 0 => Some((file, frame.line)),
            (_, Some(file)) => Some((file, frame.start.line)),
            (file, None) => file.map(|file| (file, 0)),
        }
    }

    /// The source location that a table gives for a frame's function: where the function starts, or else the frame's
    /// own location. `None` if neither is known.
    pub fn home_of(&self, frame: &Frame) -> Option<(NameId, u32)> {
        match frame.start {
            FunctionStart { file: Some(file), line: line @ 1.., .. } => Some((file, line)),
            _ => self.place_of(frame),
        }
    }

    /// The frame with this ID.
    pub fn frame_of(&self, id: FrameId) -> &Frame {
        &self.frames.items()[id.index()]
    }

    /// The caller's stack and the innermost frame. A caller's stack always has a smaller ID.
    pub fn stack_of(&self, id: StackId) -> (Option<StackId>, FrameId) {
        let (parent, frame) = self.stacks.get(id.0);
        (parent.map(StackId), frame)
    }

    /// All stacks in the order of their IDs, as [`Profile::stack_of`] returns them.
    pub fn stacks(&self) -> impl Iterator<Item = (Option<StackId>, FrameId)> + '_ {
        self.stacks.iter().map(|(parent, frame)| (parent.map(StackId), frame))
    }

    /// The track with this ID.
    pub fn track_of(&self, id: TrackId) -> &Track {
        &self.tracks.items()[id.index()]
    }

    /// The number of stacks. IDs run from 0.
    pub fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    /// The number of frames. IDs run from 0.
    pub fn frame_count(&self) -> usize {
        self.frames.items().len()
    }

    /// The number of names. IDs run from 0.
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

    /// All frames except the first ones, for callers that look at new frames again and again.
    pub fn frames_after(&self, known: usize) -> &[Frame] {
        self.frames.items().get(known..).unwrap_or_default()
    }

    /// All tracks, indexed by ID.
    pub fn tracks(&self) -> &[Track] {
        self.tracks.items()
    }

    /// True if a timeline makes sense: every input has rows with times. Single rows may lack one, such as perf's
    /// off-CPU samples, which are summed up while recording.
    pub fn has_times(&self) -> bool {
        let mut inputs: FxHashMap<Option<u32>, bool> = FxHashMap::default();
        for row in self.series.iter().flat_map(|series| &series.rows) {
            *inputs.entry(self.track_of(row.track).input).or_default() |= row.time.is_some();
        }
        !inputs.is_empty() && inputs.values().all(|has_times| *has_times)
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

    /// The index of the series with this name; creates it if necessary.
    pub fn series_named(&mut self, name: &str, unit: Unit) -> usize {
        if let Some(index) = self.find_series(name) {
            return index;
        }
        self.series.push(Series { name: name.to_owned(), unit, ..Series::default() });
        self.series.len() - 1
    }

    /// The index of the series with this name. Uses a hash table because an input may have a hundred thousand series.
    pub(crate) fn find_series(&mut self, name: &str) -> Option<usize> {
        let is_moved = match self.by_name.get(name) {
            Some(index) => self.series.get(*index).is_none_or(|series| series.name != name),
            None => false,
        };
        if is_moved || self.series.len() < self.numbered {
            (self.numbered, self.by_name) = (0, FxHashMap::default());
        }
        for (index, series) in self.series.iter().enumerate().skip(self.numbered) {
            self.by_name.entry(series.name.clone()).or_insert(index);
        }
        self.numbered = self.series.len();
        self.by_name.get(name).copied()
    }

    /// The series with this name and unit. If the name is taken by a series with another unit, the unit is appended to
    /// the name: values with different units are never added up.
    pub(crate) fn series_of(&mut self, (name, unit): (&str, &Unit)) -> usize {
        let mut name = name.to_owned();
        while let Some(index) = self.find_series(&name)
            && self.series[index].unit != *unit
        {
            name = format!("{name} ({})", unit.name());
        }
        self.series_named(&name, unit.clone())
    }

    /// Switches to [`Keep::Sums`]: adds up existing rows and future ones.
    pub fn aggregate(&mut self) {
        self.keep = Keep::Sums;
        self.sums = vec![FxHashMap::default(); self.series.len()];
        for (series, places) in self.series.iter_mut().zip(&mut self.sums) {
            let mut sums = Vec::new();
            for row in series.rows.drain(..) {
                add_to_sum(&mut sums, places, row);
            }
            series.rows = sums;
        }
    }

    /// Merges another profile into this one. Equal names, frames, stacks, tracks and series become one.
    pub fn merge(&mut self, other: &Self) {
        self.merge_renamed(other, |_, name| Cow::Borrowed(name));
    }

    /// Adds the rows of another profile. `stacks` and `tracks` translate its IDs.
    fn add_rows(&mut self, series: &[Series], stacks: &[StackId], tracks: &[TrackId]) {
        let translate = |row: &Row| {
            let stack = row.stack.map(|stack| stacks[stack.index()]);
            Row { track: tracks[row.track.index()], stack, ..*row }
        };
        for other in series {
            let index = self.series_of(other.identity());
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

/// True if the module is named after the process that created its code.
fn is_named_after_process(module: &[u8]) -> bool {
    let backing = Backing::of(module);
    backing.is_jit_object() || backing.is_perf_map() || backing.may_hold_jit_code()
}

/// Adds a row to the sum for its thread and stack. `places` has the index of each sum.
fn add_to_sum(sums: &mut Vec<Row>, places: &mut FxHashMap<(TrackId, Option<StackId>), u32>, row: Row) {
    let index = *places.entry((row.track, row.stack)).or_insert(sums.len() as u32);
    match sums.get_mut(index as usize) {
        Some(sum) => sum.add(&row),
        None => sums.push(Row { time: None, ..row }),
    }
}

/// For tests: a profile with one thread and the event `cycles`, from stacks like `main;f`.
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
        let mut few = Profile { names: Texts::of_most(2), ..Profile::new() };
        few.merge(&profile(&[("a;b", 1)]));
        few.check().unwrap();
        few.merge(&profile(&[("a;c", 2)]));
        assert!(few.check().unwrap_err().to_string().contains("different names"));
        assert_eq!(lines(&few), ["a;b 1", "a;a 2"]);
    }

    #[test]
    fn a_hundred_thousand_series_are_found_by_name_even_if_some_are_taken_out() {
        let mut profile = Profile::new();
        let find = |profile: &mut Profile, at: usize| profile.series_of((&format!("event{at}"), &Unit::Samples));
        for at in 0..100_000 {
            assert_eq!(find(&mut profile, at), at);
        }
        profile.series.remove(1);
        assert_eq!([0, 2, 99_999, 1].map(|at| find(&mut profile, at)), [0, 1, 99_998, 99_999]);
        profile.series.swap(0, 1);
        assert_eq!([0, 2].map(|at| find(&mut profile, at)), [1, 0]);
        let other = (0..3).map(|_| profile.series_of(("event0", &Unit::Nanos))).collect::<Vec<_>>();
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
