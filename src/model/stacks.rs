//! Profiles as weighted stacks: what every converter reads into and every writer writes from.
//!
//! Names, frames and stacks are interned: a stack is a node of a prefix tree and its identity is one number.
//! A [`Profile`] keeps the order of first appearance, so that merging parts in input order gives the same numbers
//! for any number of threads.

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

/// The name of a frame whose function is not known; its module, if known, states more.
pub const UNKNOWN: &[u8] = b"[unknown]";

/// Stands outside of all frames of a stack whose outermost frames are not known.
pub const TRUNCATED: &[u8] = b"[truncated]";

/// One function (or inlined call, or raw address) in a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function, as it must be shown; raw addresses are written out as names too.
    pub name: NameId,
    /// The DSO or category it belongs to.
    pub module: Option<NameId>,
    /// The build ID of the module, in hexadecimal digits, where the profile states it: a path may be another build on another
    /// machine or in another container.
    pub build: Option<NameId>,
    /// The source file of the line.
    pub file: Option<NameId>,
    /// The source line that ran, 0 if unknown. It says nothing about where the function starts.
    pub line: u32,
    /// The column of that line, from 1; 0 if unknown. Readers fill it for source maps only.
    pub column: u32,
    /// Where the function starts.
    pub start: FunctionStart,
    /// The address inside the module (or absolute for code without one), where a format wants it.
    pub addr: Option<u64>,
    /// Its kind of code: decides annotation and color.
    pub kind: FrameKind,
    /// The way its runtime came to run it so; `None` where that is not known, and for all that is not JIT code.
    pub tier: Option<Tier>,
    /// True if it is a call that was expanded into its caller, as the name of the caller's code reported
    /// ([`java_calls`](crate::runtimes::java_calls)).
    pub joined: bool,
}

impl Frame {
    /// A function of which nothing else is known.
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

/// Where a function starts in its source; what the input doesn't state is empty.
///
/// An input that states only which line ran leaves the line and the column empty: a function that ran at several lines
/// would become several. Recordings of addresses leave the file empty, too, because debug information states the file
/// of a line, which may be a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FunctionStart {
    /// The source file.
    pub file: Option<NameId>,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// The column, from 1, in UTF-16 units; 0 if unknown.
    pub column: u32,
}

impl FunctionStart {
    /// The same with its file in another profile's names.
    fn renumbered(self, name: impl Fn(NameId) -> NameId) -> Self {
        Self { file: self.file.map(name), ..self }
    }
}

/// A function. Two frames are of one function if these are equal ([`Profile::function_of`]); every table, tree, page
/// and output goes by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name.
    pub name: NameId,
    /// Its module. JIT code has none here: what holds it (`perf-7.map`, `jitted-7-3.so`) is called after the process.
    pub module: Option<NameId>,
    /// Where it starts.
    pub start: FunctionStart,
}

/// The kind of code of a frame. Code of programs without a name has kinds of its own; the kernel's stays the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameKind {
    /// A function of a program or library.
    User,
    /// The kernel or a module of it, with or without a name.
    Kernel,
    /// A function from a JIT compiler, or an interpreted one.
    Jit,
    /// A call that the compiler expanded into its caller.
    Inlined,
    /// Code without a name in a program or library: the file has no symbol for it, or is not here.
    NativeUnnamed,
    /// Code without a name in memory that no file backs, in a process that runs a JIT compiler: it has mapped a known
    /// runtime, or there is a dump, map or log of it.
    JitUnnamed,
    /// Code without a name in memory that no file backs, where no JIT compiler is known to run.
    Anonymous,
    /// Neither a name nor a module is known. Nothing was mapped at the address, so it is most likely not code: unwinders
    /// that lose their way produce such addresses.
    Unknown,
}

impl FrameKind {
    /// The kind of such code if its function is not known.
    pub fn unnamed(self) -> Self {
        match self {
            Self::User => Self::NativeUnnamed,
            Self::Jit => Self::JitUnnamed,
            Self::Kernel | Self::Inlined | Self::NativeUnnamed | Self::JitUnnamed | Self::Anonymous | Self::Unknown => {
                self
            }
        }
    }

    /// True if it is code from a JIT compiler, with or without a name.
    pub fn is_jit(self) -> bool {
        matches!(self, Self::Jit | Self::JitUnnamed)
    }
}

/// The thread or group that a row belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Track {
    /// The process's or group's name.
    pub comm: Vec<u8>,
    /// The process.
    pub pid: Option<Pid>,
    /// The thread.
    pub tid: Option<Tid>,
    /// The processor, where rows are kept apart by it.
    pub cpu: Option<u32>,
    /// The labels that keep rows apart, if the output has room for them.
    pub labels: Labels,
    /// The recording, where an input holds rows of several machines and the output keeps them apart.
    pub recording: Option<Arc<Recording>>,
    /// The number of the input, where the output keeps the rows of several inputs apart.
    pub input: Option<u32>,
}

/// The unit of the weights of a [`Series`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Unit {
    /// Samples, or anything else without a unit.
    #[default]
    Samples,
    /// Nanoseconds.
    Nanos,
    /// Something named, such as instructions or bytes.
    Named(String),
}

impl Unit {
    /// The unit of the periods of a perf event; its name may carry modifiers.
    pub fn of_event(name: &str) -> Self {
        // The periods of the two clocks are nanoseconds (kernel/events/core.c, perf_swevent_init_hrtimer).
        match name.split([':', '/']).next().unwrap_or(name) {
            "cpu-clock" | "task-clock" => Self::Nanos,
            // perf's own program in the kernel measures how long a thread slept.
            "offcpu-time" => Self::Nanos,
            base => Self::Named(base.to_owned()),
        }
    }

    /// The unit that a file's word stands for, and its factor.
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

    /// The word for it in files of pprof's family.
    pub fn word(&self) -> &str {
        match self {
            Self::Samples => "count",
            unit => unit.name(),
        }
    }

    /// The unit that [`Unit::name`] is the word for.
    pub fn named(name: &str) -> Self {
        match name {
            "samples" => Self::Samples,
            "nanoseconds" => Self::Nanos,
            name => Self::Named(name.to_owned()),
        }
    }

    /// The word for it in files.
    pub fn name(&self) -> &str {
        match self {
            Self::Samples => "samples",
            Self::Nanos => "nanoseconds",
            Self::Named(name) => name,
        }
    }
}

/// The part of a [`Row`] that is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weight {
    /// Its weight, in the series' unit (perf's period).
    #[default]
    Period,
    /// The number of samples.
    Samples,
}

impl Weight {
    /// The weight of a row.
    pub fn of(self, row: &Row) -> u64 {
        match self {
            Self::Period => row.weight,
            Self::Samples => row.count,
        }
    }
}

/// The parts of rows that a [`Profile`] keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// Every row with its time, in the order of the input: for outputs in order of time.
    #[default]
    EachRow,
    /// One row for all of equal thread and stack, in order of first appearance, without times: memory grows with
    /// distinct stacks, not with samples.
    Sums,
}

/// The rate at which an event was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// Each time that it had been counted this many times.
    Period(u64),
    /// Times per second.
    Frequency(u64),
}

/// What a row's count of samples is worth when two profiles are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counting {
    /// Rows count samples.
    #[default]
    Sampled,
    /// The input has sums only: nobody knows of how many samples.
    Unknown,
    /// Every call or instruction was measured: there is no noise of sampling.
    Exact,
}

/// The samples of one event.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// The event's name (`cpu-clock`, `Ir`), unique in its profile.
    pub name: String,
    /// The unit of `weight`.
    pub unit: Unit,
    /// The rate at which it was sampled, if that is known.
    pub sampling: Option<Sampling>,
    /// True if the input does not show how many samples its weights are of: a row's count is 1 then for each of its
    /// own.
    pub uncounted: bool,
    /// Whether a change between two of them may be chance.
    pub counting: Counting,
    /// Samples in the order read, or sums: see [`Keep`]. They come in by [`Profile::push`].
    pub rows: Vec<Row>,
    /// Rows whose weight is to be subtracted, such as memory that was freed; each has the amount. Tables and formats
    /// with negative numbers count them, pictures can't.
    pub negative: Vec<Row>,
}

impl Series {
    /// From sample to sample, in the event's unit; 0 where it varies or is not known.
    pub fn period(&self) -> u64 {
        match (self.sampling, &self.unit) {
            (Some(Sampling::Period(period)), _) => period,
            (Some(Sampling::Frequency(hertz)), Unit::Nanos) => 1_000_000_000 / hertz.max(1),
            _ => 0,
        }
    }

    /// True if the number of samples is a number by itself: it is known, and not the weight.
    pub fn is_counted(&self) -> bool {
        let is_the_weight = self.unit == Unit::Samples && self.name == "samples";
        !self.uncounted && !is_the_weight
    }

    /// All rows with their weights, those below zero at the end.
    pub fn signed_rows(&self, weight: Weight) -> impl Iterator<Item = (&Row, i64)> {
        let amount = move |row: &Row| i64::try_from(weight.of(row)).unwrap_or(i64::MAX);
        let sign = if weight == Weight::Period { -1 } else { 1 };
        let above = self.rows.iter().map(move |row| (row, amount(row)));
        above.chain(self.negative.iter().map(move |row| (row, sign * amount(row))))
    }

    /// True if it has no samples.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.negative.is_empty()
    }

    /// The sum of all weights.
    pub fn signed_total(&self, weight: Weight) -> i64 {
        self.signed_rows(weight).fold(0, |sum, (_, weight)| sum.saturating_add(weight))
    }

    /// The identity that series must share for their rows to be added.
    pub fn identity(&self) -> (&str, &Unit) {
        (&self.name, &self.unit)
    }
}

/// One sample, or the sum of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The track.
    pub track: TrackId,
    /// The stack; `None` is an empty stack.
    pub stack: Option<StackId>,
    /// The weight, in the series' unit.
    pub weight: u64,
    /// The number of samples that it stands for.
    pub count: u64,
    /// When; `None` for sums.
    pub time: Option<Nanos>,
}

/// Stacks with weights, for any number of events.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    names: Texts<NameId>,
    frames: Interner<Frame, FrameId>,
    stacks: PrefixTree<FrameId>,
    tracks: Interner<Track, TrackId>,
    keep: Keep,
    /// Of each series, where the sum of a thread and stack is; empty where every row is kept.
    sums: Vec<FxHashMap<(TrackId, Option<StackId>), u32>>,
    /// True if names are spelled as perf spells them: where a writer follows inferno-collapse-perf, it then drops
    /// argument lists as that does. Other formats' names are written as they are.
    pub perf_names: bool,
    /// True if the rows are sums over what lies within the times asked for: each by itself has no time to ask for.
    pub cut_to_time: bool,
    /// True if rows begin at their time and last as long as they weigh (calls), instead of being of one moment
    /// (samples).
    pub rows_last: bool,
    /// The facts about it as a whole.
    pub about: About,
    /// One for each event, in the input's order.
    pub series: Vec<Series>,
    /// Where the series of a name is: those of the first `numbered` series, as long as nobody moves them.
    by_name: FxHashMap<String, usize>,
    numbered: usize,
    /// The calls of each thread, of inputs that state calls instead of stacks; see
    /// [`CallGraph`](crate::analysis::call_graph::CallGraph).
    pub calls: Vec<ThreadCalls>,
}

impl Profile {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty one that keeps so much of its rows.
    pub fn keeping(keep: Keep) -> Self {
        Self { keep, ..Self::default() }
    }

    /// Takes a row of the series of that index.
    pub fn push(&mut self, series: usize, row: Row) {
        let rows = &mut self.series[series].rows;
        match self.keep {
            Keep::EachRow => rows.push(row),
            Keep::Sums => {
                if self.sums.len() <= series {
                    self.sums.resize_with(series + 1, FxHashMap::default);
                }
                sum(rows, &mut self.sums[series], row);
            }
        }
    }

    /// Takes a row of the series of that index whose weight is below zero; `row` has the amount.
    pub fn push_negative(&mut self, series: usize, row: Row) {
        let rows = &mut self.series[series].negative;
        let is_same = |other: &&mut Row| (other.track, other.stack) == (row.track, row.stack);
        match rows.last_mut().filter(|other| self.keep == Keep::Sums && is_same(other)) {
            Some(sum) => {
                sum.weight = sum.weight.saturating_add(row.weight);
                sum.count = sum.count.saturating_add(row.count);
            }
            None => rows.push(row),
        }
    }

    /// The number of a name.
    pub fn name(&mut self, name: &[u8]) -> NameId {
        self.names.intern(name)
    }

    /// The number of a frame.
    pub fn frame(&mut self, frame: Frame) -> FrameId {
        self.frames.intern(frame)
    }

    /// The stack that continues `parent` (`None`: the root) with a callee.
    pub fn stack(&mut self, parent: Option<StackId>, frame: FrameId) -> StackId {
        StackId(self.stacks.child(parent.map(|parent| parent.0), frame))
    }

    /// The stack of a sample of which no frame is known.
    pub fn unknown_stack(&mut self) -> StackId {
        let name = self.name(UNKNOWN);
        let frame = self.frame(Frame::new(name, FrameKind::Unknown));
        self.stack(None, frame)
    }

    /// The number of a track.
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

    /// True if everything got a number of its own. A profile must be checked after reading and before it is used.
    pub fn check(&self) -> Result<()> {
        let full = [
            (self.names.is_full(), "names"),
            (self.frames.is_full(), "frames"),
            (self.stacks.is_full(), "stacks"),
            (self.tracks.is_full(), "threads"),
        ];
        full.iter().find(|(full, _)| *full).map_or(Ok(()), |(_, what)| Err(interner::full(what)))
    }

    /// The bytes of a name.
    pub fn name_of(&self, id: NameId) -> &[u8] {
        self.names.get(id)
    }

    /// The build ID of a frame's module, in hexadecimal digits: its own, or that on which all mappings of the module agree.
    pub fn build_of(&self, frame: &Frame) -> Option<Cow<'_, [u8]>> {
        let agreed = || self.about.modules.get(self.name_of(frame.module?))?.build_id.into_option();
        let own = frame.build.map(|build| Cow::Borrowed(self.name_of(build)));
        own.or_else(|| Some(Cow::Owned(agreed()?.to_string().into_bytes())))
    }

    /// The function that a frame is of.
    pub fn function_of(&self, frame: &Frame) -> Function {
        let module = frame.module.filter(|module| !frame.kind.is_jit() && !is_of_process(self.name_of(*module)));
        Function { name: frame.name, module, start: frame.start }
    }

    /// File and line of a frame for outputs that have room for one place: the line that ran, else where the function
    /// starts.
    pub fn place_of(&self, frame: &Frame) -> Option<(NameId, u32)> {
        match (frame.file, frame.start.file) {
            (Some(file), _) if frame.line > 0 => Some((file, frame.line)),
            (_, Some(file)) => Some((file, frame.start.line)),
            (file, None) => file.map(|file| (file, 0)),
        }
    }

    /// The place that a table gives for the function of a frame: where it starts, or else the frame's own.
    pub fn home_of(&self, frame: &Frame) -> Option<(NameId, u32)> {
        match frame.start {
            FunctionStart { file: Some(file), line: line @ 1.., .. } => Some((file, line)),
            _ => self.place_of(frame),
        }
    }

    /// The frame of that number.
    pub fn frame_of(&self, id: FrameId) -> &Frame {
        &self.frames.items()[id.index()]
    }

    /// Parent and last frame of a stack. A parent's number is always smaller than its child's.
    pub fn stack_of(&self, id: StackId) -> (Option<StackId>, FrameId) {
        let (parent, frame) = self.stacks.get(id.0);
        (parent.map(StackId), frame)
    }

    /// All stacks as [`Profile::stack_of`] gives them, in the order of their numbers.
    pub fn stacks(&self) -> impl Iterator<Item = (Option<StackId>, FrameId)> + '_ {
        self.stacks.iter().map(|(parent, frame)| (parent.map(StackId), frame))
    }

    /// The track of that number.
    pub fn track_of(&self, id: TrackId) -> &Track {
        &self.tracks.items()[id.index()]
    }

    /// The number of stacks; their numbers run from 0.
    pub fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    /// The number of frames; their numbers run from 0.
    pub fn frame_count(&self) -> usize {
        self.frames.items().len()
    }

    /// The number of names; their numbers run from 0.
    pub fn name_count(&self) -> usize {
        self.names.len()
    }

    /// All names, in the order of their numbers.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.names.list().iter()
    }

    /// All frames, in the order of their numbers.
    pub fn frames(&self) -> impl Iterator<Item = (FrameId, &Frame)> + '_ {
        (0..).map(FrameId).zip(self.frames.items())
    }

    /// All tracks; the position is the number.
    pub fn tracks(&self) -> &[Track] {
        self.tracks.items()
    }

    /// True if there is an axis of time: every input has rows with times. Single rows may lack one, as off-CPU samples of
    /// perf do that were summed while recording.
    pub fn has_times(&self) -> bool {
        let mut inputs: FxHashMap<Option<u32>, bool> = FxHashMap::default();
        for row in self.series.iter().flat_map(|series| &series.rows) {
            *inputs.entry(self.track_of(row.track).input).or_default() |= row.time.is_some();
        }
        !inputs.is_empty() && inputs.values().all(|has_times| *has_times)
    }

    /// The frames of a stack, leaf first.
    pub fn frames_up(&self, stack: Option<StackId>) -> impl Iterator<Item = FrameId> + '_ {
        let mut next = stack;
        std::iter::from_fn(move || {
            let (parent, frame) = self.stack_of(next?);
            next = parent;
            Some(frame)
        })
    }

    /// The index of the series of that name, made if it is new.
    pub fn series_named(&mut self, name: &str, unit: Unit) -> usize {
        self.find_series(name).unwrap_or_else(|| {
            self.series.push(Series { name: name.to_owned(), unit, ..Series::default() });
            self.series.len() - 1
        })
    }

    /// The index of the series of that name. An input may have a hundred thousand.
    pub(crate) fn find_series(&mut self, name: &str) -> Option<usize> {
        let is_moved = |(name, at): (&String, &usize)| self.series.get(*at).is_none_or(|series| series.name != *name);
        let found = self.by_name.get_key_value(name);
        if self.series.len() < self.numbered || found.is_some_and(is_moved) {
            (self.numbered, self.by_name) = (0, FxHashMap::default());
        }
        for (at, series) in self.series.iter().enumerate().skip(self.numbered) {
            self.by_name.entry(series.name.clone()).or_insert(at);
        }
        self.numbered = self.series.len();
        self.by_name.get(name).copied()
    }

    /// The series of that name and unit. Where the name is taken by one of another unit, the unit follows it: what is
    /// counted in different units is never added.
    pub(crate) fn series_of(&mut self, (name, unit): (&str, &Unit)) -> usize {
        let mut name = name.to_owned();
        while self.find_series(&name).is_some_and(|at| self.series[at].unit != *unit) {
            name = format!("{name} ({})", unit.name());
        }
        self.series_named(&name, unit.clone())
    }

    /// Sums the rows from now on and those that are there: see [`Keep::Sums`].
    pub fn aggregate(&mut self) {
        self.keep = Keep::Sums;
        self.sums = vec![FxHashMap::default(); self.series.len()];
        for (series, places) in self.series.iter_mut().zip(&mut self.sums) {
            let mut rows = Vec::new();
            series.rows.drain(..).for_each(|row| sum(&mut rows, places, row));
            series.rows = rows;
        }
    }

    /// Appends another profile: equal names, frames, stacks, tracks and series become one.
    pub fn merge(&mut self, other: &Self) {
        self.merge_renamed(other, |_, name| Cow::Borrowed(name));
    }

    /// Appends the rows of another profile, of whose stacks and tracks it is given what they became here.
    fn add_rows(&mut self, series: &[Series], stacks: &[StackId], tracks: &[TrackId]) {
        for series in series {
            let to = self.series_of(series.identity());
            if self.series[to].rows.is_empty() {
                self.series[to].counting = series.counting;
            } else if self.series[to].counting != series.counting && !series.rows.is_empty() {
                self.series[to].counting = Counting::Unknown;
            }
            self.series[to].sampling = self.series[to].sampling.or(series.sampling);
            self.series[to].uncounted |= series.uncounted;
            for row in &series.rows {
                let stack = row.stack.map(|stack| stacks[stack.index()]);
                self.push(to, Row { track: tracks[row.track.index()], stack, ..*row });
            }
            for row in &series.negative {
                let stack = row.stack.map(|stack| stacks[stack.index()]);
                self.push_negative(to, Row { track: tracks[row.track.index()], stack, ..*row });
            }
        }
    }
}

/// True if a module is called after the process that made its code.
fn is_of_process(module: &[u8]) -> bool {
    let backing = Backing::of(module);
    backing.is_jit_object() || backing.is_perf_map() || backing.may_hold_jit_code()
}

/// Adds a row to the sum of its thread and stack.
fn sum(rows: &mut Vec<Row>, places: &mut FxHashMap<(TrackId, Option<StackId>), u32>, row: Row) {
    let at = *places.entry((row.track, row.stack)).or_insert(rows.len() as u32);
    match rows.get_mut(at as usize) {
        Some(sum) => {
            sum.weight = sum.weight.saturating_add(row.weight);
            sum.count = sum.count.saturating_add(row.count);
        }
        None => rows.push(Row { time: None, ..row }),
    }
}

/// For tests: a profile of one thread, its event `cycles`, from stacks such as `main;f`.
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
        let line = |row: &Row| {
            let up = profile.frames_up(row.stack);
            let names = up.map(|frame| String::from_utf8_lossy(profile.name_of(profile.frame_of(frame).name)));
            let mut names: Vec<_> = names.collect();
            names.reverse();
            format!("{} {}", names.join(";"), row.weight)
        };
        profile.series[0].rows.iter().map(line).collect()
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
