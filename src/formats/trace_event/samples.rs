//! Samples in addition to events: the keys `samples` and `stackFrames` of a trace, as Hermes and Chrome's perf sampling
//! write them. A sample refers to its innermost frame, and a frame to its caller.

use super::event::nanoseconds;
use crate::analysis::quantity::counted;
use crate::analysis::timeline::UNNAMED;
use crate::error::{Error, Skipped, Warning, Warnings};
use crate::model::Nanos;
use crate::model::stacks::{Counting, Frame, FrameKind, FunctionStart, Profile, Row, StackId, Track, Unit};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A sample: an element of `samples`. Some writers use strings for numbers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SampleRecord {
    name: Value,
    pid: Value,
    tid: Value,
    ts: Value,
    weight: Value,
    sf: Value,
}

/// A frame: a value in `stackFrames`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StackFrameRecord {
    name: String,
    category: String,
    parent: Value,
    /// The line where the function starts, from 1. Only Hermes writes the line and the column.
    #[serde(rename = "funcLine")]
    function_line: Value,
    #[serde(rename = "funcColumn")]
    function_column: Value,
}

/// The samples of a trace.
#[derive(Debug, Default)]
pub(super) struct TraceSamples {
    samples: Vec<Sample>,
    /// The frames by ID.
    frames: FxHashMap<String, StackFrameRecord>,
    /// The numbers of event names and frame IDs, by which samples refer to them.
    texts: FxHashMap<String, u32>,
    /// How many weights had fractions and were rounded.
    rounded: u64,
    /// How many weights were too large for 64 bits and became the largest number of 64 bits.
    capped: u64,
    /// How many weights weren't numbers and count as 1.
    invalid: u64,
}

#[derive(Debug)]
struct Sample {
    /// The event's name, as a number in [`TraceSamples::texts`].
    event: u32,
    /// The ID of the innermost frame, as a number in [`TraceSamples::texts`].
    frame: u32,
    pid: Option<i64>,
    tid: Option<i64>,
    /// When the sample was taken, in nanoseconds; `None` if unknown.
    time: Option<i64>,
    weight: i64,
}

impl TraceSamples {
    pub(super) fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    pub(super) fn len(&self) -> u64 {
        self.samples.len() as u64
    }

    /// Adds a sample.
    pub(super) fn add(&mut self, record: &SampleRecord) {
        let weight = self.parse_weight(&text(&record.weight));
        let sample = Sample {
            event: self.intern(text(&record.name)),
            frame: self.intern(text(&record.sf)),
            pid: text(&record.pid).parse().ok(),
            tid: text(&record.tid).parse().ok(),
            time: nanoseconds(&text(&record.ts)),
            weight,
        };
        self.samples.push(sample);
    }

    /// Parses a sample's weight: 1 if it is missing or not a number. Counts weights that can't be kept as they are.
    fn parse_weight(&mut self, text: &str) -> i64 {
        if text.is_empty() {
            return 1;
        }
        let weight = if let Ok(whole) = text.parse::<i128>() {
            whole
        } else if let Ok(number) = text.parse::<f64>()
            && !number.is_nan()
        {
            self.rounded += u64::from(number.is_finite() && number.fract() != 0.0);
            // The cast turns numbers beyond the range of `i128` into its limits.
            number.round() as i128
        } else {
            self.invalid += 1;
            return 1;
        };
        // Weights have 64 bits and a sign, so larger ones are capped.
        let kept = weight.clamp(-i128::from(i64::MAX), i128::from(i64::MAX));
        self.capped += u64::from(kept != weight);
        kept as i64
    }

    pub(super) fn add_frame(&mut self, id: String, frame: StackFrameRecord) {
        self.frames.insert(id, frame);
    }

    /// The number of a text, which is added if it is new.
    fn intern(&mut self, text: String) -> u32 {
        let next = self.texts.len() as u32;
        *self.texts.entry(text).or_insert(next)
    }

    /// Adds the samples to a profile. `thread_track` returns the track for a process ID and a thread ID.
    pub(super) fn push_to(
        &self,
        profile: &mut Profile,
        thread_track: impl Fn(Option<i64>, Option<i64>) -> Track,
        warnings: &mut Warnings,
    ) {
        let texts: BTreeMap<u32, &str> = self.texts.iter().map(|(text, number)| (*number, text.as_str())).collect();
        let mut stacks = FxHashMap::default();
        let mut skipped = Skipped::new("sample");
        for (number, sample) in self.samples.iter().enumerate() {
            let stack = *stacks.entry(sample.frame).or_insert_with(|| match texts[&sample.frame] {
                // The sample states no frame (`sf`).
                "" => Some(profile.unknown_stack()),
                frame => self.make_stack(frame, profile),
            });
            let Some(stack) = stack else {
                skipped.add(Error::new(format!("sample {number} refers to a stack frame that is not in the file")));
                continue;
            };
            let (event, unit) = match texts[&sample.event] {
                // The sample states no event (`name`).
                "" => ("samples", Unit::Samples),
                event => (event, Unit::from_event_name(event)),
            };
            let series = profile.series_named(event, unit);
            profile.series[series].counting = Counting::Sampled;
            // A sample without a thread ID belongs to the thread whose ID is the process ID.
            let track = profile.track(thread_track(sample.pid, sample.tid.or(sample.pid)));
            let time = sample.time.and_then(|time| u64::try_from(time).ok()).map(Nanos);
            let row = Row { track, stack: Some(stack), weight: sample.weight.unsigned_abs(), count: 1, time };
            if sample.weight < 0 {
                profile.push_negative(series, row);
            } else {
                profile.push(series, row);
            }
        }
        warnings.extend(skipped.into_warning());
        for (count, problem) in [
            (self.rounded, "with a fraction: rounded to whole numbers"),
            (self.capped, "too large: counted as 9223372036854775807"),
            (self.invalid, "not a number: counted as 1"),
        ] {
            if count > 0 {
                warnings.push(Warning::new(format!("{} {problem}", counted(count, "sample weight"))));
            }
        }
        let orphans = self.frames.values().filter(|frame| !self.has_caller_in_file(frame)).count() as u64;
        if orphans > 0 {
            let orphans = counted(orphans, "stack frame");
            warnings.push(Warning::new(format!(
                "stack frames whose parent is not in the file are shown as the outermost frames of their stacks \
                 ({orphans})"
            )));
        }
    }

    /// True if the frame is an outermost one, or its caller is in the file.
    fn has_caller_in_file(&self, frame: &StackFrameRecord) -> bool {
        let parent = text(&frame.parent);
        parent.is_empty() || self.frames.contains_key(&parent)
    }

    /// The stack whose innermost frame has this ID; `None` if the file doesn't contain the frame. If the file lacks the
    /// caller of a frame, that frame becomes the outermost one of the stack.
    fn make_stack(&self, innermost: &str, profile: &mut Profile) -> Option<StackId> {
        let mut frames = Vec::new();
        let mut next = Some(innermost.to_owned());
        while let Some(id) = next {
            // In a damaged file, a frame may be its own ancestor, so stop when there are more frames than in the file.
            if frames.len() > self.frames.len() {
                break;
            }
            let Some(frame) = self.frames.get(&id) else { break };
            frames.push(frame);
            let parent = text(&frame.parent);
            next = if parent.is_empty() { None } else { Some(parent) };
        }
        let mut stack = None;
        for frame in frames.into_iter().rev() {
            let frame = frame.to_frame(profile);
            let frame = profile.frame(frame);
            stack = Some(profile.stack(stack, frame));
        }
        stack
    }
}

impl StackFrameRecord {
    /// Converts the frame to one of the profile. Hermes puts function, file and line into the names of frames of
    /// scripts; these are split.
    fn to_frame(&self, profile: &mut Profile) -> Frame {
        let is_script = self.category == "JavaScript";
        let kind = if is_script { FrameKind::Jit } else { FrameKind::User };
        if is_script && let Some(HermesName { function, file, line }) = HermesName::parse(&self.name) {
            let function = if function.is_empty() { "(anonymous)" } else { function };
            let mut frame = Frame::new(profile.name(function.as_bytes()), kind);
            frame.file = Some(profile.name(file.as_bytes()));
            frame.line = line;
            let start_line = text(&self.function_line).parse().unwrap_or(0);
            if start_line > 0 {
                let column = text(&self.function_column).parse().unwrap_or(0);
                frame.start = FunctionStart { file: frame.file, line: start_line, column };
            }
            return frame;
        }
        let name = if self.name.is_empty() { UNNAMED } else { &self.name };
        Frame::new(profile.name(name.as_bytes()), kind)
    }
}

/// The parts of a name that Hermes gives to a frame of a script: `render(/app/main.js:12:34)`. Line and column are
/// those of the code that ran, so that one function has a different name at each of its lines.
#[derive(Debug, PartialEq, Eq)]
struct HermesName<'n> {
    /// Empty for a function without a name.
    function: &'n str,
    file: &'n str,
    /// The line that ran, from 1.
    line: u32,
}

impl<'n> HermesName<'n> {
    /// Splits a name into its parts. `None` if it doesn't end with a position in a file.
    fn parse(name: &'n str) -> Option<Self> {
        let (function, position) = name.strip_suffix(')')?.split_once('(')?;
        let (position, column) = position.rsplit_once(':')?;
        let (file, line) = position.rsplit_once(':')?;
        column.parse::<u32>().ok()?;
        if file.is_empty() {
            return None;
        }
        Some(Self { function, file, line: line.parse().ok()? })
    }
}

/// The contents of a string, or the digits of a number; empty for other values.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_name_their_innermost_frame_and_numbers_may_be_strings() {
        let mut samples = TraceSamples::default();
        for json in [
            r#"{"cpu":"-1","name":"","ts":"1000","pid":7,"tid":"9","weight":"2","sf":5}"#,
            r#"{"tid":9,"pid":7,"ts":2.5,"sf":"6"}"#,
            r#"{"tid":9,"pid":7,"ts":3,"sf":99}"#,
        ] {
            samples.add(&serde_json::from_str(json).unwrap());
        }
        for (id, json) in [("5", r#"{"name":"g","category":"JavaScript","parent":6}"#), ("6", r#"{"name":""}"#)] {
            samples.add_frame(id.to_owned(), serde_json::from_str(json).unwrap());
        }
        let (mut profile, mut warnings) = (Profile::new(), Warnings::new());
        let thread = |pid: Option<i64>, tid: Option<i64>| Track {
            comm: format!("{}/{}", pid.unwrap(), tid.unwrap()).into_bytes(),
            ..Track::default()
        };
        samples.push_to(&mut profile, thread, &mut warnings);
        let name = |id| profile.name_of(profile.frame_of(id).name);
        let rows = profile.series[0].rows.iter();
        let shown: Vec<_> =
            rows.map(|row| (profile.frames_up(row.stack).map(name).collect::<Vec<_>>(), row.weight)).collect();
        assert_eq!(shown, [(vec![&b"g"[..], b"[unnamed]"], 2), (vec![b"[unnamed]"], 1)]);
        assert_eq!(profile.series[0].rows[1].time, Some(Nanos(2500)));
        assert_eq!(profile.track_of(profile.series[0].rows[0].track).comm, b"7/9");
        assert!(warnings.iter().next().unwrap().to_string().contains("sample 2 refers to a stack frame"));
    }

    #[test]
    fn hermes_names_are_split_into_function_and_position() {
        let parsed = |name| HermesName::parse(name).map(|name| (name.function, name.file, name.line));
        for (name, parts) in [
            ("render(/app/main.js:12:34)", Some(("render", "/app/main.js", 12))),
            ("f(http://localhost:8081/index.bundle?platform=ios:1:2)", {
                Some(("f", "http://localhost:8081/index.bundle?platform=ios", 1))
            }),
            ("get x(a (copy).js:3:4)", Some(("get x", "a (copy).js", 3))),
            ("(main.js:1:1)", Some(("", "main.js", 1))),
            ("[HostFunction] now", None),
            ("f(x)", None),
            ("f(a:b:c)", None),
            ("f(:1:2)", None),
            ("f(a.js:1)", None),
            ("f(a.js:1:2", None),
            ("(garbage collector)", None),
        ] {
            assert_eq!(parsed(name), parts, "{name}");
        }
    }

    #[test]
    fn a_function_of_hermes_is_one_function_at_all_of_its_lines() {
        let mut samples = TraceSamples::default();
        let frames = [
            r#"{"name":"f(a.js:4:9)","category":"JavaScript","line":"4","column":"9","funcLine":"3","funcColumn":"1"}"#,
            r#"{"name":"f(a.js:5:2)","category":"JavaScript","funcLine":3,"funcColumn":1}"#,
            r#"{"name":"(a.js:1:1)","category":"JavaScript"}"#,
            r#"{"name":"f(a.js:4:9)","category":"Native"}"#,
        ];
        for (id, frame) in frames.iter().enumerate() {
            samples.add(&serde_json::from_str(&format!(r#"{{"sf":{id}}}"#)).unwrap());
            samples.add_frame(id.to_string(), serde_json::from_str(frame).unwrap());
        }
        let mut profile = Profile::new();
        samples.push_to(&mut profile, |_, _| Track::default(), &mut Warnings::new());
        let mut shown = Vec::new();
        for row in &profile.series[0].rows {
            let frame = profile.frame_of(profile.frames_up(row.stack).next().unwrap());
            let name = String::from_utf8_lossy(profile.name_of(frame.name)).into_owned();
            shown.push((name, frame.file.is_some(), frame.line, frame.start.line, frame.start.column));
        }
        let expected = [("f", true, 4, 3, 1), ("f", true, 5, 3, 1), ("(anonymous)", true, 1, 0, 0)];
        assert_eq!(
            shown[..3],
            expected.map(|(name, file, line, start, column)| (name.to_owned(), file, line, start, column))
        );
        assert_eq!(shown[3], ("f(a.js:4:9)".to_owned(), false, 0, 0, 0), "native code has other names");
    }

    #[test]
    fn weights_that_are_changed_are_counted() {
        let mut samples = TraceSamples::default();
        samples.add_frame("5".to_owned(), serde_json::from_str(r#"{"name":"a"}"#).unwrap());
        for weight in
            ["1.5", "2.0", "9223372036854775809", r#""18446744073709551616""#, "1e300", r#""x""#, "-3", "null"]
        {
            samples.add(&serde_json::from_str(&format!(r#"{{"sf":5,"weight":{weight}}}"#)).unwrap());
        }
        let (mut profile, mut warnings) = (Profile::new(), Warnings::new());
        samples.push_to(&mut profile, |_, _| Track::default(), &mut warnings);
        let weights: Vec<u64> = profile.series[0].rows.iter().map(|row| row.weight).collect();
        let largest = i64::MAX as u64;
        assert_eq!(weights, [2, 2, largest, largest, largest, 1, 1]);
        assert_eq!(profile.series[0].negative[0].weight, 3);
        let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        let counts = ["1 sample weight with a fraction", "3 sample weights too large", "1 sample weight not a number"];
        assert!(said.len() == 3 && said.iter().zip(counts).all(|(said, count)| said.starts_with(count)), "{said:?}");
    }

    #[test]
    fn frames_whose_caller_is_missing_are_counted() {
        for (parent, count) in [("", 0), (r#","parent":6"#, 1), (r#","parent":"x""#, 1), (r#","parent":5"#, 0)] {
            let mut samples = TraceSamples::default();
            samples.add(&serde_json::from_str(r#"{"sf":5}"#).unwrap());
            samples.add_frame("5".to_owned(), serde_json::from_str(&format!(r#"{{"name":"a"{parent}}}"#)).unwrap());
            let (mut profile, mut warnings) = (Profile::new(), Warnings::new());
            samples.push_to(&mut profile, |_, _| Track::default(), &mut warnings);
            assert_eq!((profile.series[0].rows.len(), warnings.iter().count()), (1, count), "{parent}");
        }
    }

    #[test]
    fn a_frame_that_is_its_own_caller_ends_somewhere() {
        let mut samples = TraceSamples::default();
        samples.add(&serde_json::from_str(r#"{"sf":1}"#).unwrap());
        samples.add_frame("1".to_owned(), serde_json::from_str(r#"{"name":"a","parent":1}"#).unwrap());
        let mut profile = Profile::new();
        samples.push_to(&mut profile, |_, _| Track::default(), &mut Warnings::new());
        assert_eq!(profile.series[0].rows.len(), 1);
    }
}
