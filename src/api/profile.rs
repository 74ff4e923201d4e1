//! Profiles as callers see them, and how they build their own.

use crate::error::{Error, ErrorKind, Result, Warning, Warnings};
use crate::model::mapping_kind::MappingKind;
use crate::model::printable::printable;
use crate::model::stacks::{self, FrameKind, Row, Series, StackId, Track, UNKNOWN, Unit};
use crate::model::tier::Tier;
use crate::model::{Addr, Nanos, Pid, Tid};
use std::fmt;

/// A profile: the samples of one or more events, each with the stack at which it was taken.
///
/// [`load`](crate::load()) and [`load_bytes`](crate::load_bytes) read one, [`ProfileBuilder`] makes one of your own
/// samples, and [`write`](Self::write), [`to_bytes`](Self::to_bytes) and [`flame_graph`](Self::flame_graph) write it.
///
/// ```
/// use jitgraft::{Frame, ProfileBuilder, Sample};
///
/// let mut builder = ProfileBuilder::new();
/// builder.add(Sample::new("samples", 3), ["parse", "main"]); // the innermost frame first
/// builder.add(Sample::new("samples", 4), ["main"]);
/// let profile = builder.build()?;
///
/// let event = profile.events().next().unwrap();
/// let in_parse = event.samples().filter(|sample| sample.frames().any(|frame| frame.name == b"parse"));
/// assert_eq!(in_parse.map(|sample| sample.weight).sum::<i64>(), 3);
/// assert_eq!(event.total_weight(), 7);
/// # Ok::<(), jitgraft::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Profile {
    pub(super) stacks: stacks::Profile,
    pub(super) warnings: Vec<Warning>,
}

impl Profile {
    pub(super) fn new(stacks: stacks::Profile, warnings: &Warnings) -> Self {
        Self { stacks, warnings: warnings.iter().cloned().collect() }
    }

    /// The events of the profile, such as `cycles`. Most profiles have one.
    pub fn events(&self) -> impl ExactSizeIterator<Item = Event<'_>> {
        let stacks = &self.stacks;
        stacks.series.iter().map(move |series| Event { stacks, series })
    }

    /// The event with this name; `None` if there is none.
    pub fn event(&self, name: &str) -> Option<Event<'_>> {
        self.events().find(|event| event.name() == name)
    }

    /// The samples of all events, one event after the other.
    pub fn samples(&self) -> impl Iterator<Item = Sample<'_>> {
        self.events().flat_map(Event::samples)
    }

    /// What was skipped, estimated or suspicious when the profile was read. Messages may name [flags of the
    /// program](Error#flags-in-messages), most of which are options in [`LoadOptions`](crate::LoadOptions).
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns a copy with only this event, for formats that hold a single event. Fails if the profile has no such
    /// event.
    pub fn with_event(&self, name: &str) -> Result<Self> {
        let mut only = self.clone();
        only.stacks.series.retain(|series| series.name == name);
        if only.stacks.series.is_empty() {
            let names: Vec<&str> = self.events().map(Event::name).collect();
            let message = format!("no event named {name}; the profile has {}", names.join(", "));
            return Err(Error::new(message).with_kind(ErrorKind::InvalidArgument));
        }
        Ok(only)
    }

    /// Adds the samples and warnings of another profile. Events with the same name and unit become one.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.stacks.merge(&other.stacks);
        self.warnings.extend(other.warnings.iter().cloned());
        self.stacks.check()
    }
}

/// One event of a [`Profile`] and its samples.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    stacks: &'a stacks::Profile,
    series: &'a Series,
}

impl<'a> Event<'a> {
    /// The event's name, such as `cpu-clock`.
    pub fn name(self) -> &'a str {
        &self.series.name
    }

    /// The unit of the samples' weights.
    pub fn unit(self) -> &'a Unit {
        &self.series.unit
    }

    /// The samples, in the order of the input.
    pub fn samples(self) -> impl Iterator<Item = Sample<'a>> {
        let Self { stacks, series } = self;
        let positive = series.rows.iter().map(|row| (row, 1));
        let negative = series.negative.iter().map(|row| (row, -1));
        positive.chain(negative).map(move |(row, sign)| Sample::from_row(stacks, series, row, sign))
    }

    /// The sum of all weights.
    pub fn total_weight(self) -> i64 {
        self.samples().fold(0, |total, sample| total.saturating_add(sample.weight))
    }
}

/// A sample, or the sum of several with equal stacks.
///
/// [`Sample::new`] and the methods named `with_…` make one for [`ProfileBuilder::add`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The name of the event.
    pub event: &'a str,
    /// The weight, in the event's [`Unit`]. Negative only in profiles of differences and of memory
    /// that was freed.
    pub weight: i64,
    /// The number of samples that this one stands for.
    pub count: u64,
    /// The process; `None` if unknown.
    pub pid: Option<Pid>,
    /// The thread; `None` if unknown.
    pub tid: Option<Tid>,
    /// The name of the thread, or of the process in profiles without threads. Empty if unknown. Threads may change
    /// their names, so count by `tid` where that is known.
    pub thread: &'a [u8],
    /// The CPU that the sample was taken on. Only known from [`for_each_sample`](crate::for_each_sample()), and from
    /// formats that keep the samples of CPUs apart.
    pub cpu: Option<u32>,
    /// When the sample was taken, on the profile's clock. `None` for sums, and if the input has no times. perf's
    /// off-CPU samples have times that mean nothing ([`Nanos::is_valid`]).
    pub time: Option<Nanos>,
    stack: Frames<'a>,
}

impl<'a> Sample<'a> {
    /// A sample of an event, to be added to a [`ProfileBuilder`].
    pub fn new(event: &'a str, weight: i64) -> Self {
        let (pid, tid, cpu, time) = (None, None, None, None);
        Self { event, weight, count: 1, pid, tid, thread: b"", cpu, time, stack: Frames::default() }
    }

    /// Sets the process and the thread, and the thread's name.
    #[must_use]
    pub fn with_thread(self, pid: Pid, tid: Tid, name: &'a [u8]) -> Self {
        Self { pid: Some(pid), tid: Some(tid), thread: name, ..self }
    }

    /// Sets the time.
    #[must_use]
    pub fn with_time(self, time: Nanos) -> Self {
        Self { time: Some(time), ..self }
    }

    /// Sets the CPU.
    #[must_use]
    pub fn with_cpu(self, cpu: u32) -> Self {
        Self { cpu: Some(cpu), ..self }
    }

    /// Sets how many samples this one stands for.
    #[must_use]
    pub fn with_count(self, count: u64) -> Self {
        Self { count, ..self }
    }

    /// The frames of the stack, the innermost first.
    ///
    /// A sample without a call chain has one frame, at the sampled address. If that isn't known either, there is no
    /// frame, or in some formats one that is called `[unknown]`.
    pub fn frames(&self) -> Frames<'a> {
        self.stack
    }

    /// The sample of a row. A row stores its weight without a sign, so `sign` states it: -1 or 1.
    fn from_row(stacks: &'a stacks::Profile, series: &'a Series, row: &Row, sign: i64) -> Self {
        let track = stacks.track_of(row.track);
        Self {
            event: &series.name,
            weight: sign * i64::try_from(row.weight).unwrap_or(i64::MAX),
            count: row.count,
            pid: track.pid,
            tid: track.tid,
            thread: &track.comm,
            cpu: track.cpu,
            time: row.time,
            stack: Frames { stacks: Some(stacks), next: row.stack, addresses: &[] },
        }
    }

    /// A sample of a recording, whose frames have these addresses, the innermost first.
    pub(super) fn from_recording(
        stacks: &'a stacks::Profile,
        event: usize,
        row: &Row,
        cpu: Option<u32>,
        addresses: &'a [Option<Addr>],
    ) -> Self {
        let sample = Self::from_row(stacks, &stacks.series[event], row, 1);
        Self { cpu: cpu.or(sample.cpu), stack: Frames { addresses, ..sample.stack }, ..sample }
    }
}

/// Iterates over the frames of a [`Sample`], the innermost first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Frames<'a> {
    /// `None` for a sample from [`Sample::new`], which has no frames of its own.
    stacks: Option<&'a stacks::Profile>,
    /// The stack whose innermost frame comes next; `None` at the end.
    next: Option<StackId>,
    /// The addresses of the next frames in the process's memory, as far as they are known.
    addresses: &'a [Option<Addr>],
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    /// Returns the frame whose turn it is, and goes on to its caller.
    fn next(&mut self) -> Option<Frame<'a>> {
        let stacks = self.stacks?;
        let (caller, frame) = stacks.stack_of(self.next?);
        self.next = caller;
        let frame = Frame::from_stacks(stacks, stacks.frame_of(frame));
        // If each frame's address in memory is known, `addresses` has those of the remaining frames. It is empty
        // otherwise.
        let Some((address, rest)) = self.addresses.split_first() else { return Some(frame) };
        self.addresses = rest;
        Some(Frame { address: address.or(frame.address), ..frame })
    }
}

/// An entry of a stack: a function, an inlined call, or an address without a name.
///
/// Names and paths are bytes, because runtimes and file systems don't guarantee UTF-8. `to_string()` returns the name
/// as text that is safe to print. All code without a name is called `[unknown]`, so tell it apart by its module
/// ([`is_named`](Self::is_named)).
///
/// Frames are equal if all fields are. Two of them are in the same function if their names and modules are equal, or
/// only their names for [JIT code](FrameKind::is_jit), whose module is named after the process. Where names aren't
/// unique, compare `file`, too.
///
/// [`Frame::new`] (or a string) and the methods named `with_…` make one for [`ProfileBuilder::add`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Frame<'a> {
    /// The function's name; `[unknown]` if it has none. See [`Frame::is_named`].
    pub name: &'a [u8],
    /// The library, program or other object with the code, such as `/usr/lib/libc.so.6`. The kernel is
    /// `[kernel.kallsyms]`, and a module of it `[ext4]`.
    ///
    /// For JIT code in recordings, this is a file that need not exist: `jitted-PID.so`, which `jitgraft inject` would
    /// make of a jitdump's code, or `perf-PID.map`, where the process would have written the names.
    pub module: Option<&'a [u8]>,
    /// The source file.
    pub file: Option<&'a [u8]>,
    /// The line in `file`, from 1: the line that ran or, if the input doesn't say, where the function starts.
    ///
    /// In recordings, it is the line of the call for a caller, and only known with
    /// [`LoadOptions::lines`](crate::LoadOptions::lines) or [`addresses`](crate::LoadOptions::addresses).
    pub line: Option<u32>,
    /// The address in the process's memory. For a caller, the return address. For the first frame outside of the
    /// kernel, the next instruction to run ([how to look it up](crate::CodeMap#which-look-up-for-which-frame)).
    ///
    /// With [`LoadOptions::addresses`](crate::LoadOptions::addresses), all frames of recordings have one in
    /// [`for_each_sample`](crate::for_each_sample()). In a loaded profile, code in files has none, because one frame
    /// stands for the same code in all processes.
    pub address: Option<Addr>,
    /// The offset in the module's file. Only with [`LoadOptions::addresses`](crate::LoadOptions::addresses).
    pub module_offset: Option<u64>,
    /// The kind of code.
    pub kind: FrameKind,
    /// The compiler of the runtime, or its interpreter, that the function ran in. `None` if unknown.
    pub tier: Option<Tier>,
}

impl<'a> Frame<'a> {
    /// A frame of which only the function's name is known. Its kind is [`FrameKind::User`].
    pub fn new(name: &'a [u8]) -> Self {
        Self {
            name,
            module: None,
            file: None,
            line: None,
            address: None,
            module_offset: None,
            kind: FrameKind::User,
            tier: None,
        }
    }

    /// A frame without a name, at an address in memory that no file backs. Its kind is [`FrameKind::Anonymous`].
    pub fn unnamed(address: Addr) -> Self {
        Self { kind: FrameKind::Anonymous, ..Self::new(UNKNOWN) }.with_address(address)
    }

    /// Sets the module.
    #[must_use]
    pub fn with_module(self, module: &'a [u8]) -> Self {
        Self { module: Some(module), ..self }
    }

    /// Sets the source file, and the line in it.
    #[must_use]
    pub fn with_line(self, file: &'a [u8], line: u32) -> Self {
        Self { file: Some(file), line: Some(line), ..self }
    }

    /// Sets the address in the process's memory.
    #[must_use]
    pub fn with_address(self, address: Addr) -> Self {
        Self { address: Some(address), ..self }
    }

    /// Sets the kind of code.
    #[must_use]
    pub fn with_kind(self, kind: FrameKind) -> Self {
        Self { kind, ..self }
    }

    /// True if the function's name is known.
    pub fn is_named(&self) -> bool {
        self.name != UNKNOWN
    }

    /// The frame of a profile, as callers see it.
    fn from_stacks(stacks: &'a stacks::Profile, frame: &stacks::Frame) -> Self {
        let place = stacks.place_of(frame);
        let module = frame.module.map(|module| stacks.name_of(module));
        let (address, module_offset) = match AddressSpace::from_frame(frame.kind, module) {
            AddressSpace::Memory => (frame.addr.map(Addr), None),
            AddressSpace::Module => (None, frame.addr),
            AddressSpace::Unclear => (None, None),
        };
        Self {
            name: stacks.name_of(frame.name),
            module,
            file: place.map(|(file, _)| stacks.name_of(file)),
            line: place.map(|(_, line)| line).filter(|line| *line > 0),
            address,
            module_offset,
            kind: frame.kind,
            tier: frame.tier,
        }
    }
}

/// What the number [`stacks::Frame::addr`] of a frame means. If the frame's module is a file, it is an offset in that
/// file, otherwise an address in the process.
enum AddressSpace {
    /// `Frame::addr` is an address in the process's memory.
    Memory,
    /// `Frame::addr` is an offset in the module.
    Module,
    /// It is unknown whether `Frame::addr` is an address in memory or an offset. Named JIT code may have an image of
    /// JIT code (`jitted-PID.so`) as its module because the image was mapped, or because jitgraft shows code as being
    /// in the image that it would write. In the latter case, the code is only in memory.
    Unclear,
}

impl AddressSpace {
    /// Determines what `addr` of a frame means, from the frame's kind and the name of its module.
    fn from_frame(kind: FrameKind, module: Option<&[u8]>) -> Self {
        let Some(module) = module.map(MappingKind::from_path) else { return Self::Memory };
        // If the module is a perf map, the code is in memory: a perf map contains names, but no code.
        if module.is_perf_map() {
            return Self::Memory;
        }
        match kind {
            FrameKind::Jit if module.is_jit_object() => Self::Unclear,
            // Unnamed code of these kinds is in memory that no file backs. Its module is the name of that memory.
            FrameKind::JitUnnamed | FrameKind::Anonymous => Self::Memory,
            _ => Self::Module,
        }
    }
}

impl<'a> From<&'a str> for Frame<'a> {
    /// A frame of which only the function's name is known.
    fn from(name: &'a str) -> Self {
        Self::new(name.as_bytes())
    }
}

impl<'a> From<&'a [u8]> for Frame<'a> {
    /// A frame of which only the function's name is known.
    fn from(name: &'a [u8]) -> Self {
        Self::new(name)
    }
}

impl fmt::Display for Frame<'_> {
    /// Writes the function's name, `[unknown]` if it has none. Bytes that aren't UTF-8 and control characters are
    /// escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(self.name))
    }
}

/// Makes a [`Profile`] of your own samples.
///
/// ```
/// use jitgraft::{Addr, Frame, Nanos, Pid, ProfileBuilder, Sample, Tid, Unit};
///
/// let mut builder = ProfileBuilder::new();
/// builder.set_unit("wall", Unit::Nanos);
/// let sample = Sample::new("wall", 1_000_000).with_thread(Pid(7), Tid(8), b"worker").with_time(Nanos(500));
/// builder.add(sample, [Frame::new(b"read").with_module(b"libc.so.6"), Frame::new(b"main").with_line(b"a.c", 12)]);
/// let profile = builder.build()?;
/// assert_eq!(profile.to_bytes("folded")?, b"worker;main;read 1000000\n");
/// # Ok::<(), jitgraft::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ProfileBuilder {
    stacks: stacks::Profile,
    warnings: Warnings,
}

impl ProfileBuilder {
    /// An empty profile.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the unit of an event's weights. Without this, it is [`Unit::Samples`].
    pub fn set_unit(&mut self, event: &str, unit: Unit) -> &mut Self {
        let series = self.stacks.series_named(event, unit.clone());
        self.stacks.series[series].unit = unit;
        self
    }

    /// Adds a sample with these frames, the innermost first. Events are added when they first occur.
    pub fn add<'f, F: Into<Frame<'f>>>(
        &mut self,
        sample: Sample<'_>,
        frames: impl IntoIterator<Item = F>,
    ) -> &mut Self {
        let innermost_first: Vec<Frame<'f>> = frames.into_iter().map(Into::into).collect();
        let mut stack = None;
        for frame in innermost_first.iter().rev() {
            let frame = self.intern(frame);
            stack = Some(self.stacks.stack(stack, frame));
        }
        let Sample { pid, tid, cpu, .. } = sample;
        let track = self.stacks.track(Track { comm: sample.thread.to_vec(), pid, tid, cpu, ..Track::default() });
        let series = self.stacks.series_named(sample.event, Unit::Samples);
        let row = Row { track, stack, weight: sample.weight.unsigned_abs(), count: sample.count, time: sample.time };
        if sample.weight < 0 {
            self.stacks.push_negative(series, row);
        } else {
            self.stacks.push(series, row);
        }
        self
    }

    /// Adds a warning, for something that was skipped or estimated.
    pub fn warn(&mut self, message: impl Into<String>) -> &mut Self {
        self.warnings.push(Warning::new(message));
        self
    }

    /// Completes the profile. Fails if it has more than four billion different stacks, functions or threads.
    pub fn build(self) -> Result<Profile> {
        self.stacks.check()?;
        Ok(Profile::new(self.stacks, &self.warnings))
    }

    /// Adds a frame to the profile, unless the profile already has it. The profile keeps either the frame's address or
    /// its offset in the module, as [`AddressSpace::from_frame`] decides.
    fn intern(&mut self, frame: &Frame<'_>) -> stacks::FrameId {
        let name = self.stacks.name(frame.name);
        let module = frame.module.map(|module| self.stacks.name(module));
        let file = frame.file.map(|file| self.stacks.name(file));
        let addr = match AddressSpace::from_frame(frame.kind, frame.module) {
            AddressSpace::Memory => frame.address.map(|address| address.0),
            AddressSpace::Module => frame.module_offset,
            AddressSpace::Unclear => None,
        };
        self.stacks.frame(stacks::Frame {
            module,
            file,
            line: frame.line.unwrap_or(0),
            addr,
            tier: frame.tier,
            ..stacks::Frame::new(name, frame.kind)
        })
    }
}
