//! Reads speedscope's JSON, which many profilers write in their own way (py-spy, rbspy, dotnet-trace, Austin, …).
//!
//! A file holds several profiles, usually one per thread. A sampled profile is a list of stacks with weights. An
//! evented profile is a list of frames being opened and closed; the time between two events counts for the stack that
//! is open then. Weights are decimal numbers in the profile's unit. They are rounded in such a way that their sum stays
//! exact. Weights without a unit are numbers of samples; if they have fractions, they are counted in millionths, like
//! those of folded stacks.

use crate::analysis::named_frames::{NamedFrames, StatedFrame};
use crate::analysis::namesakes::is_anonymous;
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::mapping_kind::base_name;
use crate::model::stacks::{Counting, FrameId, MILLION, MILLIONTHS, Profile, Row, StackId, Track, TrackId, Unit};
use crate::model::{Nanos, Pid, Tid};
use rustc_hash::FxHashSet;
use serde::Deserialize;

/// True if an input starts like a speedscope file: it names the format's schema, or its first key is one of the
/// format's.
pub fn sniff(head: &[u8]) -> bool {
    let Some(members) = head.trim_ascii_start().strip_prefix(b"{") else { return false };
    if memchr::memmem::find(head, b"speedscope.app/file-format-schema.json").is_some() {
        return true;
    }
    members.trim_ascii_start().starts_with(b"\"shared\"") && memchr::memmem::find(head, b"\"frames\"").is_some()
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
#[serde(rename_all = "camelCase", default)]
struct SharedFrame {
    name: String,
    file: Option<String>,
    line: Option<f64>,
    col: Option<f64>,
    /// The executed line (0 if unknown), in frames whose `line` is where the function starts. Only jitgraft writes this
    /// field.
    executed_line: Option<f64>,
    /// True if `file` is that of the executed line, and the function's own file is unknown. Only jitgraft writes this
    /// field.
    start_unknown: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct OneProfile {
    name: String,
    /// The event's name. Only jitgraft writes this field and `event_unit`.
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
    /// True if the weights have no unit and some of them have a fraction.
    fn has_fractions_without_unit(&self) -> bool {
        let times = self.events.iter().map(|event| event.at);
        let mut numbers = self.weights.iter().copied().chain(times);
        matches!(&*self.unit, "none" | "") && numbers.any(|number| number.fract() != 0.0)
    }

    /// True if each row may stand for several samples: no stack occurs twice, and weights differ.
    fn are_sums(&self) -> bool {
        let distinct: FxHashSet<&[u32]> = self.samples.iter().map(Vec::as_slice).collect();
        let first = self.weights.first();
        distinct.len() == self.samples.len() && self.weights.iter().any(|weight| Some(weight) != first)
    }
}

#[derive(Deserialize)]
struct FrameEvent {
    /// `O` if the event opens the frame, `C` if it closes the frame.
    r#type: char,
    at: f64,
    frame: u32,
}

/// Reads all profiles in a file.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let file: FileRead = serde_json::from_slice(bytes)
        .map_err(|error| Error::new("is not a complete speedscope file").because(error))?;
    let mut profile = Profile::empty(options.keep);
    let mut named = NamedFrames::default();
    let exporter = file.exporter.as_deref().unwrap_or_default();
    let is_ours = exporter.starts_with("jitgraft ");
    // In files of these two programs, a position with a column is where the function starts.
    let columns_are_starts = is_ours || exporter.starts_with("speedscope@");
    let mut frames = Vec::with_capacity(file.shared.frames.len());
    for frame in &file.shared.frames {
        frames.push(named.frame(&mut profile, stated_frame(frame, columns_are_starts, options.columns)));
    }
    // If any profile without a unit has fractions, all of them are read in millionths, so that their weights can be
    // compared.
    let has_fractions = file.profiles.iter().any(OneProfile::has_fractions_without_unit);
    let mut reading = SpeedscopeReading { profile, frames, has_fractions, skipped: Skipped::new("sample") };
    let events: FxHashSet<&Option<String>> = file.profiles.iter().map(|one_profile| &one_profile.event).collect();
    for one_profile in &file.profiles {
        let mut name = one_profile.name.as_str();
        // If jitgraft wrote several events, each profile's name begins with its event, followed by that of the thread.
        if is_ours
            && events.len() > 1
            && let Some(event) = &one_profile.event
        {
            name = name.strip_prefix(event.as_str()).and_then(|name| name.strip_prefix(' ')).unwrap_or(name);
        }
        // Files with several profiles have one per thread, named after the thread. A single profile may be named after
        // anything, such as the file, unless jitgraft wrote it.
        let track = if file.profiles.len() > 1 || is_ours { parse_track(name) } else { Track::default() };
        reading.add(one_profile, is_ours, track);
    }
    warnings.extend(reading.skipped.into_warning());
    Ok(reading.profile)
}

/// Converts a frame of the file.
///
/// In most files, `line` and `col` tell which line was sampled. If speedscope or jitgraft wrote the file
/// (`columns_are_starts`), a position with a column is where the function starts. The same is assumed for a function
/// without a name, because nothing else distinguishes it from others. The column of a sampled line is only kept with
/// `keep_columns` ([`ReadOptions::columns`]).
fn stated_frame(frame: &SharedFrame, columns_are_starts: bool, keep_columns: bool) -> StatedFrame<'_> {
    let file = frame.file.as_deref().unwrap_or_default().as_bytes();
    let line = frame.line.unwrap_or(0.0) as u32;
    // Profilers of native code write the module into the field for the source file. If the frame states a line, the
    // field does contain a source file.
    let (module, file) = if line == 0 && is_module(file) { (file, &b""[..]) } else { (&b""[..], file) };
    let column = frame.col.unwrap_or(0.0) as u32;
    let function = frame.name.as_bytes();
    let is_start_unknown = frame.start_unknown;
    let stated = StatedFrame { function, module, file, is_start_unknown, ..StatedFrame::default() };
    if let Some(executed) = frame.executed_line {
        return StatedFrame { line: executed as u32, start: (line, column), ..stated };
    }
    if column > 0 && line > 0 && (columns_are_starts || is_anonymous(&frame.name)) {
        return StatedFrame { start: (line, column), ..stated };
    }
    StatedFrame { line, column: if keep_columns { column } else { 0 }, ..stated }
}

/// True if this path is that of a module rather than a source file.
fn is_module(file: &[u8]) -> bool {
    let base = base_name(file);
    base.starts_with(b"[")
        || base.ends_with(b".map")
        || base.ends_with(b".ko")
        || memchr::memmem::find(base, b".so").is_some()
        || !base.contains(&b'.')
}

/// Parses the name of a profile: `NAME PID/TID`, `NAME PID`, py-spy's `Process PID Thread TID "NAME"`, or any other
/// name.
fn parse_track(name: &str) -> Track {
    if let Some((ids, comm)) = name.strip_suffix('"').and_then(|name| name.split_once(" \"")) {
        return new_track(comm, number_after("Process", ids), number_after("Thread", ids));
    }
    let Some((comm, ids)) = name.rsplit_once(' ') else { return new_track(name, None, None) };
    // A single ID is that of the process. The main thread has the same ID, and the samples are taken for its samples.
    let (pid, tid) = ids.split_once('/').unwrap_or((ids, ids));
    match (parse_id(pid), parse_id(tid)) {
        (None, None) => new_track(name, None, None),
        (pid, tid) => new_track(comm, pid, tid),
    }
}

fn new_track(comm: &str, pid: Option<i32>, tid: Option<i32>) -> Track {
    Track { comm: comm.as_bytes().to_vec(), pid: pid.map(Pid), tid: tid.map(Tid), ..Track::default() }
}

/// The number after the first occurrence of `word` in a text of words separated by spaces; `None` if there is none.
fn number_after(word: &str, text: &str) -> Option<i32> {
    let words: Vec<&str> = text.split(' ').collect();
    let pair = words.windows(2).find(|pair| pair[0] == word)?;
    parse_id(pair[1])
}

fn parse_id(text: &str) -> Option<i32> {
    text.parse().ok().filter(|id| *id >= 0)
}

struct SpeedscopeReading {
    profile: Profile,
    frames: Vec<FrameId>,
    /// True if weights without a unit have fractions in some profile of the file.
    has_fractions: bool,
    skipped: Skipped,
}

impl SpeedscopeReading {
    /// Adds the samples of one profile of the file to the thread `track`. `is_ours` is true if jitgraft wrote the file;
    /// then the profile states its event.
    fn add(&mut self, one_profile: &OneProfile, is_ours: bool, track: Track) {
        let track = self.profile.track(track);
        let (mut name, mut unit, scale) = match one_profile.unit.as_str() {
            "nanoseconds" => ("time", Unit::Nanos, 1.0),
            "microseconds" => ("time", Unit::Nanos, 1e3),
            "milliseconds" => ("time", Unit::Nanos, 1e6),
            "seconds" => ("time", Unit::Nanos, 1e9),
            "none" | "" if self.has_fractions => ("samples", Unit::Named(MILLIONTHS.to_owned()), MILLION as f64),
            "none" | "" => ("samples", Unit::Samples, 1.0),
            unit => (unit, Unit::Named(unit.to_owned()), 1.0),
        };
        if is_ours && let Some(event) = &one_profile.event {
            name = event;
            if let Some(event_unit) = &one_profile.event_unit {
                unit = Unit::Named(event_unit.clone());
            }
        }
        let start = if unit == Unit::Nanos { Some(one_profile.start_value * scale) } else { None };
        let series = self.profile.series_named(name, unit);
        let mut rows = RoundedRows { series, track, scale, start, rounding_error: 0.0, sum: 0.0 };
        // One of these two adds nothing: a sampled profile has no events, and an evented one no samples.
        self.add_samples(one_profile, &mut rows);
        self.add_events(one_profile, &mut rows);
        // The file doesn't tell how many samples a row stands for if the row is a time between two events, if the rows
        // may be sums (`are_sums`), or if weights without a unit have fractions.
        if !one_profile.events.is_empty() || one_profile.are_sums() || self.has_fractions {
            self.profile.series[series].counting = Counting::Unknown;
        }
    }

    /// Adds the samples of a sampled profile.
    fn add_samples(&mut self, one_profile: &OneProfile, rows: &mut RoundedRows) {
        for (number, sample) in one_profile.samples.iter().enumerate() {
            // If the profile has no weights at all, each sample counts as 1.
            let weight =
                if one_profile.weights.is_empty() { Some(1.0) } else { one_profile.weights.get(number).copied() };
            let Some(weight) = weight else {
                let message = format!("sample {number} of profile '{}' has no weight", one_profile.name);
                self.skipped.add(Error::new(message));
                continue;
            };
            match self.stack(sample) {
                Some(stack) => rows.push(&mut self.profile, Some(stack), weight),
                None => {
                    let message = format!(
                        "sample {number} of profile '{}' has a frame that is not in the file",
                        one_profile.name
                    );
                    self.skipped.add(Error::new(message));
                }
            }
        }
        for number in one_profile.samples.len()..one_profile.weights.len() {
            let message = format!("weight {number} of profile '{}' belongs to no sample", one_profile.name);
            self.skipped.add(Error::new(message));
        }
    }

    /// The stack of the frames with these indices, outermost first. `None` if the file lacks one of them. Without any
    /// frames, the stack is an unknown function.
    fn stack(&mut self, indices: &[u32]) -> Option<StackId> {
        if indices.iter().any(|index| *index as usize >= self.frames.len()) {
            return None;
        }
        let mut stack = None;
        for index in indices {
            stack = Some(self.profile.stack(stack, self.frames[*index as usize]));
        }
        Some(stack.unwrap_or_else(|| self.profile.unknown_stack()))
    }

    /// Adds the time between each two events of an evented profile to the stack that is open then.
    fn add_events(&mut self, one_profile: &OneProfile, rows: &mut RoundedRows) {
        let (mut stack, mut last) = (None, one_profile.start_value);
        for (number, event) in one_profile.events.iter().enumerate() {
            // A time that goes back is reported. Its event still opens or closes a frame, at the time of the event
            // before it.
            if event.at < last {
                let message =
                    format!("event {number} of profile '{}' is earlier than the previous event", one_profile.name);
                self.skipped.add(Error::new(message));
            }
            let now = event.at.max(last);
            if stack.is_some() {
                rows.push(&mut self.profile, stack, now - last);
            } else {
                rows.skip_time(now - last);
            }
            last = now;
            if !self.apply_event(event, &mut stack) {
                self.skipped.add(Error::new(format!(
                    "event {number} of profile '{}' closes a frame that is not open",
                    one_profile.name
                )));
            }
        }
        // Frames that are never closed stay open until the end of the profile.
        if stack.is_some() && one_profile.end_value > last {
            rows.push(&mut self.profile, stack, one_profile.end_value - last);
        }
    }

    /// Opens or closes the event's frame in `stack`. Returns false and leaves `stack` as it is if the file has no such
    /// frame, or if the event closes a frame that isn't the innermost open one.
    fn apply_event(&mut self, event: &FrameEvent, stack: &mut Option<StackId>) -> bool {
        let Some(&frame) = self.frames.get(event.frame as usize) else { return false };
        if event.r#type == 'O' {
            *stack = Some(self.profile.stack(*stack, frame));
            return true;
        }
        let Some(open_stack) = *stack else { return false };
        let (parent, innermost) = self.profile.stack_of(open_stack);
        if innermost != frame {
            return false;
        }
        *stack = parent;
        true
    }
}

/// Adds rows with decimal weights. Rounding errors are carried over to the next row.
struct RoundedRows {
    series: usize,
    track: TrackId,
    /// The factor that converts the file's weights to the series' unit.
    scale: f64,
    /// The start of the profile in nanoseconds; `None` if its weights aren't times.
    start: Option<f64>,
    /// The rounding error of the rows so far, in the series' unit. It is added to the next weight.
    rounding_error: f64,
    /// The sum of the weights so far, in the series' unit.
    sum: f64,
}

impl RoundedRows {
    /// Adds a row with this weight, in the unit of the file. The row's time is the start of the profile plus the
    /// weights of all rows before.
    fn push(&mut self, profile: &mut Profile, stack: Option<StackId>, weight: f64) {
        let time = self.start.map(|start| Nanos((start + self.sum) as u64));
        let exact = weight * self.scale + self.rounding_error;
        let weight = exact.round();
        self.rounding_error = exact - weight;
        // A negative weight takes no time.
        self.sum += weight.max(0.0);
        let row = Row { track: self.track, stack, weight: weight.abs() as u64, count: 1, time };
        if weight < 0.0 {
            profile.push_negative(self.series, row);
        } else {
            profile.push(self.series, row);
        }
    }

    /// Passes over a time during which no frame is open, so that later rows get the right times.
    fn skip_time(&mut self, weight: f64) {
        self.sum += (weight * self.scale).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Warnings;

    /// The rows, each with its event, thread, frames (innermost first), weight and time; and the warnings.
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
        let track = |name| {
            let Track { comm, pid, tid, .. } = parse_track(name);
            (String::from_utf8(comm).unwrap(), pid.map(|pid| pid.0), tid.map(|tid| tid.0))
        };
        assert_eq!(track("V8 Worker 7/9"), ("V8 Worker".to_owned(), Some(7), Some(9)));
        assert_eq!(track("node 7"), ("node".to_owned(), Some(7), Some(7)));
        assert_eq!(track("node"), ("node".to_owned(), None, None));
        assert_eq!(track("a b"), ("a b".to_owned(), None, None));
        assert_eq!(track("Process 7 Thread 9 \"Main Thread\""), ("Main Thread".to_owned(), Some(7), Some(9)));
        assert_eq!(track("Thread 0x7F3A \"worker\""), ("worker".to_owned(), None, None));
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
            said[0].contains("2 samples skipped") && said[0].contains("closes a frame that is not open"),
            "{said:?}"
        );
    }
}
