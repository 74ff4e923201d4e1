//! Reads speedscope's JSON, which many profilers write in their own way (py-spy, rbspy, dotnet-trace, Austin, …).
//!
//! A file holds several profiles, usually one per thread. A sampled profile is a list of stacks with weights. An
//! evented profile is a list of frames being opened and closed; the time between two events counts for the stack that
//! is open then. Weights are decimal numbers in the profile's unit. They are rounded in such a way that their sum stays
//! exact.

use crate::analysis::named_frames::{NamedFrames, StatedFrame};
use crate::analysis::namesakes::is_anonymous;
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::backing::base_name;
use crate::model::stacks::{Counting, FrameId, Profile, Row, StackId, Track, TrackId, Unit};
use crate::model::{Nanos, Pid, Tid};
use rustc_hash::FxHashSet;
use serde::Deserialize;

/// True if an input starts like a speedscope file: it names the format's schema, or its first key is one of the
/// format's.
pub fn sniff(head: &[u8]) -> bool {
    let has = |text: &[u8]| memchr::memmem::find(head, text).is_some();
    let Some(members) = head.trim_ascii_start().strip_prefix(b"{") else { return false };
    let shared_first = members.trim_ascii_start().starts_with(b"\"shared\"") && has(b"\"frames\"");
    has(b"speedscope.app/file-format-schema.json") || shared_first
}

#[derive(Deserialize)]
struct FileRead {
    shared: FileShared,
    profiles: Vec<OneProfile>,
    #[serde(default)]
    exporter: Option<String>,
}

#[derive(Deserialize)]
struct FileShared {
    frames: Vec<SharedFrame>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SharedFrame {
    name: String,
    file: Option<String>,
    line: Option<f64>,
    col: Option<f64>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct OneProfile {
    name: String,
    /// The event's name. Only jitgraft writes it, and `event_unit`.
    event: Option<String>,
    event_unit: Option<String>,
    unit: String,
    start_value: f64,
    end_value: f64,
    samples: Vec<Vec<u32>>,
    weights: Vec<f64>,
    events: Vec<FrameEvent>,
}

impl OneProfile {
    /// True if each row may stand for several samples: no stack occurs twice, and weights differ.
    fn are_sums(&self) -> bool {
        let distinct: FxHashSet<&[u32]> = self.samples.iter().map(Vec::as_slice).collect();
        let first = self.weights.first();
        distinct.len() == self.samples.len() && self.weights.iter().any(|weight| Some(weight) != first)
    }
}

#[derive(Deserialize)]
struct FrameEvent {
    /// `O` opens a frame, `C` closes it.
    r#type: char,
    at: f64,
    frame: u32,
}

/// Reads all profiles in a file.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let file: FileRead = serde_json::from_slice(bytes)
        .map_err(|error| Error::new("is not a complete speedscope file").because(error))?;
    let mut profile = Profile::keeping(options.keep);
    let mut named = NamedFrames::default();
    let exporter = file.exporter.as_deref().unwrap_or_default();
    let is_own = exporter.starts_with("jitgraft ");
    let are_starts = is_own || exporter.starts_with("speedscope@");
    let frames = file
        .shared
        .frames
        .iter()
        .map(|frame| stated_frame(frame, are_starts, options.columns))
        .map(|told| named.frame(&mut profile, told))
        .collect();
    let mut reading = SpeedscopeReading { profile, frames, skipped: Skipped::new("sample") };
    let events: FxHashSet<&Option<String>> = file.profiles.iter().map(|one| &one.event).collect();
    for one in &file.profiles {
        // In our files with several events, thread names are prefixed with the event.
        let prefix = one.event.as_deref().filter(|_| is_own && events.len() > 1);
        let own_name = prefix.and_then(|prefix| one.name.strip_prefix(prefix)?.strip_prefix(' '));
        let name = own_name.unwrap_or(&one.name);
        let track = if file.profiles.len() > 1 || is_own { track(name) } else { Track::default() };
        reading.add(one, is_own, track);
    }
    warnings.extend(reading.skipped.into_warning());
    Ok(reading.profile)
}

/// Converts a frame of the file.
///
/// `line` is usually the sampled line. Functions without a name are distinguished by line and column. If `are_starts`
/// is true, so are all functions: speedscope and jitgraft write a column only for the start of a function.
fn stated_frame(frame: &SharedFrame, are_starts: bool, columns: bool) -> StatedFrame<'_> {
    let file = frame.file.as_deref().unwrap_or_default().as_bytes();
    let line = frame.line.unwrap_or(0.0) as u32;
    // In the field for the source file, profilers of native code write the module. Only source files have lines.
    let (module, file) = if line == 0 && is_module(file) { (file, &b""[..]) } else { (&b""[..], file) };
    let column = frame.col.unwrap_or(0.0) as u32;
    let function = frame.name.as_bytes();
    let stated = StatedFrame { function, module, file, ..StatedFrame::default() };
    if column > 0 && line > 0 && (are_starts || is_anonymous(&frame.name)) {
        return StatedFrame { start: (line, column), ..stated };
    }
    StatedFrame { line, column: if columns { column } else { 0 }, ..stated }
}

fn is_module(file: &[u8]) -> bool {
    let base = base_name(file);
    let has = |text: &[u8]| memchr::memmem::find(base, text).is_some();
    base.starts_with(b"[") || has(b".so") || base.ends_with(b".map") || base.ends_with(b".ko") || !has(b".")
}

/// Parses the name of a profile: `NAME PID/TID`, `NAME PID`, py-spy's `Process PID Thread TID "NAME"`, or any other
/// name.
fn track(name: &str) -> Track {
    let number = |text: &str| text.parse::<i32>().ok().filter(|number| *number >= 0);
    let track = |comm: &str, pid: Option<i32>, tid: Option<i32>| Track {
        comm: comm.as_bytes().to_vec(),
        pid: pid.map(Pid),
        tid: tid.map(Tid),
        ..Track::default()
    };
    if let Some((ids, comm)) = name.strip_suffix('"').and_then(|name| name.split_once(" \"")) {
        let words: Vec<&str> = ids.split(' ').collect();
        let behind = |word| words.windows(2).find(|pair| pair[0] == word).and_then(|pair| number(pair[1]));
        return track(comm, behind("Process"), behind("Thread"));
    }
    let (comm, ids) = name.rsplit_once(' ').unwrap_or((name, ""));
    match ids.split_once('/').map_or((number(ids), number(ids)), |(pid, tid)| (number(pid), number(tid))) {
        (None, None) => track(name, None, None),
        (pid, tid) => track(comm, pid, tid),
    }
}

struct SpeedscopeReading {
    profile: Profile,
    frames: Vec<FrameId>,
    skipped: Skipped,
}

impl SpeedscopeReading {
    fn add(&mut self, one: &OneProfile, is_own: bool, track: Track) {
        let track = self.profile.track(track);
        let (name, unit, scale) = match one.unit.as_str() {
            "nanoseconds" => ("time", Unit::Nanos, 1.0),
            "microseconds" => ("time", Unit::Nanos, 1e3),
            "milliseconds" => ("time", Unit::Nanos, 1e6),
            "seconds" => ("time", Unit::Nanos, 1e9),
            "none" | "" => ("samples", Unit::Samples, 1.0),
            unit => (unit, Unit::Named(unit.to_owned()), 1.0),
        };
        let (name, unit) = match (&one.event, &one.event_unit) {
            (Some(event), Some(unit)) if is_own => (&**event, Unit::Named(unit.clone())),
            (Some(event), None) if is_own => (&**event, unit),
            _ => (name, unit),
        };
        let start = (unit == Unit::Nanos).then_some(one.start_value * scale);
        let series = self.profile.series_named(name, unit);
        let mut weights = Rounded { series, track, scale, start, rest: 0.0, sum: 0.0 };
        self.sampled(one, &mut weights);
        self.evented(one, &mut weights);
        if !one.events.is_empty() || one.are_sums() {
            self.profile.series[series].counting = Counting::Unknown;
        }
    }

    fn sampled(&mut self, one: &OneProfile, weights: &mut Rounded) {
        for (at, sample) in one.samples.iter().enumerate() {
            // If there are no weights, each sample counts 1.
            let Some(weight) = one.weights.get(at).copied().or(one.weights.is_empty().then_some(1.0)) else {
                self.skipped.add(Error::new(format!("sample {at} of {} has no weight", one.name)));
                continue;
            };
            let frame = |index: &u32| self.frames.get(*index as usize).copied();
            let frames: Option<Vec<FrameId>> = sample.iter().map(frame).collect();
            let Some(frames) = frames else {
                self.skipped.add(Error::new(format!(
                    "sample {at} of {} has a frame that is not in the \
                                                     file",
                    one.name
                )));
                continue;
            };
            let stack = frames.into_iter().fold(None, |stack, frame| Some(self.profile.stack(stack, frame)));
            let stack = stack.or_else(|| Some(self.profile.unknown_stack()));
            weights.push(&mut self.profile, stack, weight);
        }
        for at in one.samples.len()..one.weights.len() {
            self.skipped.add(Error::new(format!("weight {at} of {} belongs to no sample", one.name)));
        }
    }

    fn evented(&mut self, one: &OneProfile, weights: &mut Rounded) {
        let (mut stack, mut last) = (None, one.start_value);
        for (at, event) in one.events.iter().enumerate() {
            if event.at < last {
                self.skipped.add(Error::new(format!("event {at} of {} is earlier than the one before it", one.name)));
            }
            let now = event.at.max(last);
            if stack.is_some() {
                weights.push(&mut self.profile, stack, now - last);
            } else {
                weights.pass(now - last);
            }
            last = now;
            match self.after(stack, event) {
                Some(after) => stack = after,
                None => self.skipped.add(Error::new(format!(
                    "event {at} of {} closes a frame that is not \
                                                             open",
                    one.name
                ))),
            }
        }
        // Frames that are never closed stay open until the end of the profile.
        if stack.is_some() && one.end_value > last {
            weights.push(&mut self.profile, stack, one.end_value - last);
        }
    }

    /// The stack after an event; `None` if the event doesn't fit the current stack.
    fn after(&mut self, stack: Option<StackId>, event: &FrameEvent) -> Option<Option<StackId>> {
        let frame = *self.frames.get(event.frame as usize)?;
        if event.r#type == 'O' {
            return Some(Some(self.profile.stack(stack, frame)));
        }
        let (parent, open) = self.profile.stack_of(stack?);
        (open == frame).then_some(parent)
    }
}

/// Adds rows with decimal weights. Rounding errors are carried over to the next row.
struct Rounded {
    series: usize,
    track: TrackId,
    scale: f64,
    /// The start of the profile; `None` if its weights aren't times.
    start: Option<f64>,
    rest: f64,
    sum: f64,
}

impl Rounded {
    fn push(&mut self, profile: &mut Profile, stack: Option<StackId>, weight: f64) {
        let time = self.start.map(|start| Nanos((start + self.sum) as u64));
        let exact = weight * self.scale + self.rest;
        let weight = exact.round();
        self.rest = exact - weight;
        self.sum += weight.max(0.0);
        let row = Row { track: self.track, stack, weight: weight.abs() as u64, count: 1, time };
        if weight < 0.0 {
            profile.push_negative(self.series, row);
        } else {
            profile.push(self.series, row);
        }
    }

    /// Skips time that belongs to no stack.
    fn pass(&mut self, weight: f64) {
        self.sum += (weight * self.scale).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Warnings;

    fn lines(text: &str) -> (Vec<String>, Vec<String>) {
        assert!(sniff(text.as_bytes()), "{text}");
        let mut warnings = Warnings::new();
        let profile = read(text.as_bytes(), &ReadOptions::default(), &mut warnings).unwrap();
        let mut lines = Vec::new();
        for series in &profile.series {
            for row in &series.rows {
                let name = |id| String::from_utf8_lossy(profile.name_of(profile.frame_of(id).name)).into_owned();
                let names: Vec<_> = profile.frames_up(row.stack).map(name).collect();
                let comm = String::from_utf8_lossy(&profile.track_of(row.track).comm).into_owned();
                let time = row.time.map(|time| time.0);
                lines.push(format!("{} {comm} {} {} {time:?}", series.name, names.join("<"), row.weight));
            }
        }
        (lines, warnings.iter().map(ToString::to_string).collect())
    }

    const SCHEMA: &str = r#""$schema":"https://www.speedscope.app/file-format-schema.json""#;
    const FRAMES: &str = r#""shared":{"frames":[{"name":"main","file":"a.py","line":1},{"name":"f"}]}"#;

    #[test]
    fn rounding_loses_no_time() {
        let text = format!(
            r#"{{{SCHEMA},{FRAMES},"profiles":[{{"type":"sampled","name":"x","unit":"nanoseconds","startValue":5,
                "endValue":6,"samples":[[0],[0,1],[0]],"weights":[0.4,0.4,0.4]}}]}}"#
        );
        let expected = ["time  main 0 Some(5)", "time  f<main 1 Some(5)", "time  main 0 Some(6)"];
        assert_eq!(lines(&text), (expected.map(str::to_owned).to_vec(), Vec::new()));
    }

    #[test]
    fn frames_that_stay_open_last_until_the_end_and_time_goes_one_way() {
        let text = format!(
            r#"{{{FRAMES},{SCHEMA},"profiles":[{{"type":"evented","name":"x","unit":"nanoseconds","startValue":0,"endValue":9,
                "events":[{{"type":"O","frame":0,"at":1}},{{"type":"O","frame":1,"at":3}},{{"type":"C","frame":1,"at":2}}]}},
                {{"type":"sampled","name":"y","unit":"nanoseconds","samples":[[1]],"weights":[3,1]}}]}}"#
        );
        let (rows, said) = lines(&text);
        assert_eq!(
            rows,
            ["time x main 2 Some(1)", "time x f<main 0 Some(3)", "time x main 6 Some(3)", "time y f 3 Some(0)"]
        );
        assert!(said[0].contains("2 samples skipped"), "{said:?}");
    }

    #[test]
    fn names_of_profiles_show_whose_they_are() {
        let of = |name| {
            let Track { comm, pid, tid, .. } = track(name);
            (String::from_utf8(comm).unwrap(), pid.map(|pid| pid.0), tid.map(|tid| tid.0))
        };
        assert_eq!(of("V8 Worker 7/9"), ("V8 Worker".to_owned(), Some(7), Some(9)));
        assert_eq!(of("node 7"), ("node".to_owned(), Some(7), Some(7)));
        assert_eq!(of("node"), ("node".to_owned(), None, None));
        assert_eq!(of("a b"), ("a b".to_owned(), None, None));
        assert_eq!(of("Process 7 Thread 9 \"Main Thread\""), ("Main Thread".to_owned(), Some(7), Some(9)));
        assert_eq!(of("Thread 0x7F3A \"worker\""), ("worker".to_owned(), None, None));
    }

    #[test]
    fn an_evented_profile_shows_which_stack_was_open() {
        let text = format!(
            r#"{{{FRAMES},{SCHEMA},"profiles":[{{"type":"evented","name":"x","unit":"milliseconds","startValue":10,
                "endValue":20,"events":[{{"type":"O","frame":0,"at":10}},{{"type":"O","frame":1,"at":12}},
                {{"type":"C","frame":1,"at":15.5}},{{"type":"C","frame":0,"at":16}},{{"type":"O","frame":1,"at":18}},
                {{"type":"C","frame":0,"at":19}},{{"type":"C","frame":1,"at":20}}]}},
                {{"type":"sampled","name":"worker 7/9","unit":"none","samples":[[1],[7]],"weights":[3,1]}}]}}"#
        );
        let (rows, said) = lines(&text);
        let expected = [
            "time x main 2000000 Some(10000000)",
            "time x f<main 3500000 Some(12000000)",
            "time x main 500000 Some(15500000)",
            "time x f 1000000 Some(18000000)",
            "time x f 1000000 Some(19000000)",
            "samples worker f 3 None",
        ];
        assert_eq!(rows, expected);
        assert!(
            said[0].contains("2 samples skipped")
                && said[0].contains(
                    "closes a frame that is not \
                                                                           open"
                ),
            "{said:?}"
        );
    }
}
