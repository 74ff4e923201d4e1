//! Firefox Profiler's processed-profile JSON, through the crate that samply writes its own with.
//!
//! Threads stand under their processes, samples in the order of their times; functions are labels with a category
//! for their kind of code and a subcategory for their module. The format has no place for more than one event: the
//! samples of the others are left out.
//! See <https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md>.

mod read;

pub use read::{read, sniff};

use super::format::WriteOptions;
use crate::error::{Error, Result};
use crate::model::label;
use crate::model::stacks::{FrameId, FrameKind, NameId, Profile, Row, StackId, Track, TrackId, Unit, Weight};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CategoryPairHandle, CpuDelta, Frame, FrameFlags, FrameInfo, ProcessHandle,
    Profile as Firefox, ReferenceTimestamp, SamplingInterval, StackHandle, ThreadHandle, Timestamp, WeightType,
};
use rustc_hash::FxHashMap;
use std::io::Write;
use std::time::Duration;

/// Writes one event.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let Some(series) = profile.series.get(options.series) else {
        return Err(Error::new("no samples to write"));
    };
    let mut rows: Vec<&Row> = series.rows.iter().collect();
    rows.sort_by_key(|row| row.time);
    // Recordings tell times since boot, not since the epoch: the first sample stands at 0.
    let start = rows.first().and_then(|row| row.time).map_or(0, |time| time.0);
    let mut writing = ProfileBuilder::new(profile, interval(&rows));
    for row in rows {
        let weight = options.weight.of(row);
        let traced = matches!((&series.unit, options.weight), (Unit::Nanos, Weight::Period));
        writing.sample(row, start, weight, traced);
    }
    serde_json::to_writer(&mut *out, &writing.firefox).map_err(std::io::Error::from)?;
    Ok(writeln!(out)?)
}

/// The middle of the distances between samples of a thread: what the recording's frequency came to.
fn interval(rows: &[&Row]) -> SamplingInterval {
    let mut last: FxHashMap<TrackId, u64> = FxHashMap::default();
    let mut distances: Vec<u64> = Vec::new();
    for row in rows {
        let Some(time) = row.time else { continue };
        if let Some(before) = last.insert(row.track, time.0) {
            distances.push(time.0 - before);
        }
    }
    distances.sort_unstable();
    let middle = distances.get(distances.len() / 2).copied().unwrap_or(0);
    SamplingInterval::from_nanos(if middle == 0 { 1_000_000 } else { middle })
}

struct ProfileBuilder<'a> {
    profile: &'a Profile,
    firefox: Firefox,
    processes: FxHashMap<Option<i32>, ProcessHandle>,
    threads: FxHashMap<TrackId, ThreadHandle>,
    stacks: FxHashMap<(TrackId, StackId), StackHandle>,
    categories: FxHashMap<FrameKind, CategoryHandle>,
    modules: FxHashMap<(FrameKind, Option<NameId>), CategoryPairHandle>,
}

impl<'a> ProfileBuilder<'a> {
    fn new(profile: &'a Profile, interval: SamplingInterval) -> Self {
        let epoch = ReferenceTimestamp::from_duration_since_unix_epoch(Duration::ZERO);
        Self {
            profile,
            firefox: Firefox::new("jitgraft", epoch, interval),
            processes: FxHashMap::default(),
            threads: FxHashMap::default(),
            stacks: FxHashMap::default(),
            categories: FxHashMap::default(),
            modules: FxHashMap::default(),
        }
    }

    fn sample(&mut self, row: &Row, start: u64, weight: u64, traced: bool) {
        let thread = self.thread(row.track, traced);
        let time = Timestamp::from_nanos_since_reference(row.time.map_or(0, |time| time.0.saturating_sub(start)));
        let stack = row.stack.map(|stack| self.stack(row.track, thread, stack));
        // The weights of traced times are in milliseconds there; whole samples otherwise.
        let weight = if traced { weight / 1_000_000 } else { weight };
        let weight = i32::try_from(weight.max(1)).unwrap_or(i32::MAX);
        self.firefox.add_sample(thread, time, stack, CpuDelta::ZERO, weight);
    }

    fn thread(&mut self, id: TrackId, traced: bool) -> ThreadHandle {
        if let Some(&thread) = self.threads.get(&id) {
            return thread;
        }
        let Track { comm, pid, tid, .. } = self.profile.track_of(id);
        let name = String::from_utf8_lossy(comm);
        let start = Timestamp::from_nanos_since_reference(0);
        let pid = pid.map(|pid| pid.0);
        let number = |id: i32| u32::try_from(id).unwrap_or(0);
        let firefox = &mut self.firefox;
        let process = self.processes.entry(pid);
        let process = *process.or_insert_with(|| firefox.add_process(&name, pid.map_or(0, number), start));
        let main = tid.is_none() || tid.map(|tid| tid.0) == pid;
        let thread = firefox.add_thread(process, tid.map_or(0, |tid| number(tid.0)), start, main);
        firefox.set_thread_name(thread, &name);
        firefox
            .set_thread_samples_weight_type(thread, if traced { WeightType::TracingMs } else { WeightType::Samples });
        self.threads.insert(id, thread);
        thread
    }

    fn stack(&mut self, track: TrackId, thread: ThreadHandle, stack: StackId) -> StackHandle {
        // Up to the nearest caller that is known, then down again.
        let mut down = Vec::new();
        let mut at = Some(stack);
        let mut above = None;
        while let Some(id) = at {
            if let Some(&known) = self.stacks.get(&(track, id)) {
                above = Some(known);
                break;
            }
            let (parent, frame) = self.profile.stack_of(id);
            down.push((id, frame));
            at = parent;
        }
        let mut last = above;
        for (id, frame) in down.into_iter().rev() {
            let frame = self.frame(frame);
            let frame = self.firefox.intern_frame(thread, frame);
            let handle = self.firefox.intern_stack(thread, last, frame);
            self.stacks.insert((track, id), handle);
            last = Some(handle);
        }
        last.expect("a stack has at least the frame that it was asked for")
    }

    fn frame(&mut self, id: FrameId) -> FrameInfo {
        let profile = self.profile;
        let frame = profile.frame_of(id);
        let mut name = label::function(profile, frame).into_owned();
        if let (Some(file), true) = (frame.file, frame.line > 0) {
            name += &format!(" ({}:{})", String::from_utf8_lossy(profile.name_of(file)), frame.line);
        }
        let category_pair = self.category(frame.kind, frame.module);
        let flags = if frame.kind == FrameKind::Jit { FrameFlags::IS_JS } else { FrameFlags::empty() };
        FrameInfo { frame: Frame::Label(self.firefox.intern_string(&name)), category_pair, flags }
    }

    fn category(&mut self, kind: FrameKind, module: Option<NameId>) -> CategoryPairHandle {
        let (name, color) = match kind {
            FrameKind::User => ("User", CategoryColor::Yellow),
            FrameKind::Kernel => ("Kernel", CategoryColor::Orange),
            FrameKind::Jit => ("JIT", CategoryColor::Green),
            FrameKind::Inlined => ("Inlined", CategoryColor::LightBlue),
            FrameKind::Unknown => ("Unknown", CategoryColor::Gray),
        };
        let (firefox, profile) = (&mut self.firefox, self.profile);
        let category = *self.categories.entry(kind).or_insert_with(|| firefox.add_category(name, color));
        *self.modules.entry((kind, module)).or_insert_with(|| match module {
            Some(module) => firefox.add_subcategory(category, &String::from_utf8_lossy(profile.name_of(module))),
            None => category.into(),
        })
    }
}
