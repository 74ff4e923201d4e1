//! The event that is written, and how its times and weights are represented.

use super::categories::collects_garbage;
use crate::model::stacks::{Frame, FunctionStart, NameId, Profile, Row, Series, Unit, Weight};
use crate::model::{Nanos, Pid};
use rustc_hash::FxHashMap;

/// What the weights of the event count, as far as the format distinguishes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    /// CPU time. Weights are in milliseconds and also tell how long the thread ran.
    Time,
    /// CPU cycles. Weights also tell how much the thread ran.
    Cycles,
    /// Anything else, such as numbers of samples or cache misses.
    Other,
}

/// The event that is written, and facts about the profile that all threads need.
pub(super) struct Writing<'a> {
    pub(super) profile: &'a Profile,
    pub(super) series: &'a Series,
    pub(super) weight: Weight,
    pub(super) counted: Counted,
    /// The time shown as 0, in nanoseconds: that of the first sample. (Times in recordings are usually since boot.)
    pub(super) start: u64,
    /// The time of the last sample, in nanoseconds.
    last: u64,
    /// The name of each process's main thread.
    main_threads: FxHashMap<Option<Pid>, &'a [u8]>,
    /// For functions for which it is unknown in which file they start: the file of the first frame that has one.
    files_of_frames: FxHashMap<FunctionKey, NameId>,
}

/// What tells functions apart: name, module and start.
pub(super) type FunctionKey = (NameId, Option<NameId>, FunctionStart);

impl<'a> Writing<'a> {
    /// Determines the times of the first and last sample, and the names of the main threads.
    pub(super) fn new(profile: &'a Profile, series: &'a Series, weight: Weight) -> Self {
        let times = series.rows.iter().filter_map(|row| row.time);
        // Without times, all samples are at time 0.
        let start = times.clone().min().map_or(0, |time| time.0);
        let last = times.max().map_or(0, |time| time.0);
        let mut main_threads = FxHashMap::default();
        for track in profile.tracks() {
            // A process's main thread has the ID of the process.
            if track.tid.map(|tid| tid.0) == track.pid.map(|pid| pid.0) {
                main_threads.insert(track.pid, &*track.comm);
            }
        }
        let mut files_of_frames = FxHashMap::default();
        for (_, frame) in profile.frames() {
            if frame.start.file.is_none()
                && let Some(file) = frame.file
            {
                files_of_frames.entry(function_key(frame)).or_insert(file);
            }
        }
        let counted = Counted::new(series, weight);
        Self { profile, series, weight, counted, start, last, main_threads, files_of_frames }
    }

    /// The file of a frame's function. If it is unknown in which file the function starts, the file of the first of its
    /// frames that has one. `None` if no frame has a file.
    pub(super) fn function_file(&self, frame: &Frame) -> Option<NameId> {
        frame.start.file.or_else(|| self.files_of_frames.get(&function_key(frame)).copied())
    }

    /// Whether a function, and everything that it calls, is part of garbage collection.
    pub(super) fn collects_garbage(&self, name: NameId) -> bool {
        collects_garbage(self.profile.name_of(name))
    }

    /// The name of a process's main thread, if that has samples.
    pub(super) fn main_thread_name(&self, pid: Option<Pid>) -> Option<&'a [u8]> {
        self.main_threads.get(&pid).copied()
    }

    /// Nanoseconds since the first sample. A sample without a time gets the time of the last sample.
    pub(super) fn time(&self, row: &Row) -> u64 {
        row.time.map_or(self.last, |time| time.0) - self.start
    }

    /// Milliseconds since the first sample; negative before it.
    pub(super) fn since_start(&self, time: Nanos) -> f64 {
        if time.0 < self.start { -millis(self.start - time.0) } else { millis(time.0 - self.start) }
    }
}

/// The key of a frame's function.
pub(super) fn function_key(frame: &Frame) -> FunctionKey {
    (frame.name, frame.module, frame.start)
}

pub(super) fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

impl Counted {
    fn new(series: &Series, weight: Weight) -> Self {
        match (&series.unit, weight) {
            (Unit::Nanos, Weight::Period) => Self::Time,
            (Unit::Named(name), Weight::Period) if name.contains("cycles") => Self::Cycles,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stacks::FrameKind;

    #[test]
    fn a_function_has_the_first_file_that_any_of_its_frames_has() {
        let mut profile = Profile::new();
        let [function, other, file, header] =
            ["function", "other", "a.lisp", "a.h"].map(|text| profile.name(text.as_bytes()));
        let frame = |name, file, line| Frame { file, line, ..Frame::new(name, FrameKind::Jit) };
        let frames = [
            frame(function, None, 0),
            frame(function, Some(file), 7),
            frame(function, Some(header), 8),
            frame(other, None, 0),
        ];
        for frame in frames {
            profile.frame(frame);
        }
        let series = Series::default();
        let writing = Writing::new(&profile, &series, Weight::Period);
        assert_eq!(frames.map(|frame| writing.function_file(&frame)), [Some(file), Some(file), Some(file), None]);
        let started = FunctionStart { file: Some(header), ..FunctionStart::default() };
        assert_eq!(writing.function_file(&Frame { start: started, ..frames[1] }), Some(header));
    }
}
