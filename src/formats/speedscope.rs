//! Writes speedscope's JSON: one profile per thread and event, with frames shared by all. A profile is sampled, which
//! means that it lists the frames of each stack. If that would take far more space than the changes between stacks, it
//! is evented instead, which means that it lists when frames open and close.
//!
//! Samples with times are sorted by time, so that speedscope's "Time Order" view is meaningful. See
//! <https://github.com/jlfwong/speedscope/blob/main/src/lib/file-format-spec.ts>.

mod lists;
mod read;

pub use read::{read, sniff};

use crate::analysis::label;
use crate::analysis::thread_rows::{ThreadRows, threads};
use crate::contract::format::WriteOptions;
use crate::error::Result;
use crate::model::stacks::{Frame, Profile, Series, Unit, Weight};
use lists::{Changes, Depths, StackLists};
use serde::Serialize;
use std::io::Write;

#[derive(Serialize)]
struct SpeedscopeFile<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    /// The index of the profile to show first: the heaviest one of the first event.
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    shared: SharedFrames<'a>,
    profiles: Vec<ThreadProfile<'a>>,
}

#[derive(Serialize)]
struct SharedFrames<'a> {
    frames: Vec<FrameEntry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FrameEntry<'a> {
    name: std::borrow::Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<std::borrow::Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    col: Option<u32>,
    /// The executed line (0 if unknown), in frames whose `line` is where the function starts. speedscope ignores this
    /// field; our reader uses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    executed_line: Option<u32>,
    /// True if `file` is that of the executed line, and the function's own file is unknown. speedscope ignores this
    /// field; our reader uses it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    start_unknown: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThreadProfile<'a> {
    r#type: &'static str,
    name: String,
    /// The event's name and, in `event_unit`, its unit if speedscope has no name for it. speedscope ignores both
    /// fields; our reader uses them.
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_unit: Option<&'a str>,
    unit: String,
    start_value: u64,
    end_value: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<StackLists<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weights: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Changes<'a>>,
}

/// Writes all events of a profile.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let depths = Depths::new(profile);
    let mut profiles: Vec<ThreadProfile<'_>> = Vec::new();
    // The index of the heaviest profile of the first event. Of equally heavy ones, the first.
    let mut active = 0;
    for (number, series) in profile.series.iter().enumerate() {
        for rows in threads(profile, series) {
            let thread = thread_profile(profile, series, rows, &depths, options);
            let is_heaviest = profiles.get(active).is_none_or(|heaviest| thread.weight() > heaviest.weight());
            if number == 0 && is_heaviest {
                active = profiles.len();
            }
            profiles.push(thread);
        }
    }
    let file = SpeedscopeFile {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: concat!("jitgraft ", env!("CARGO_PKG_VERSION")),
        shared: SharedFrames { frames: profile.frames().map(|(_, frame)| frame_entry(profile, frame)).collect() },
        active,
        profiles,
    };
    serde_json::to_writer(&mut *out, &file).map_err(std::io::Error::from)?;
    Ok(writeln!(out)?)
}

/// Converts a frame. speedscope's frames have a single position, and the viewer takes frames with different positions
/// for different functions. So the position is the function's start with its column if that is known, otherwise the
/// sampled line without a column. Without either, the field for the file has the module.
fn frame_entry<'a>(profile: &'a Profile, frame: &Frame) -> FrameEntry<'a> {
    let name = label::function(profile, frame);
    let has_start = frame.start.file.is_some() && frame.start.line > 0;
    let (file, line, column) = if has_start {
        (frame.start.file, frame.start.line, frame.start.column)
    } else if let Some((file, line)) = profile.place_of(frame) {
        // The file and the line that were sampled, as far as they are known.
        (Some(file), line, 0)
    } else {
        (frame.module, 0, 0)
    };
    FrameEntry {
        name,
        file: file.map(|file| String::from_utf8_lossy(profile.name_of(file))),
        line: unless_zero(line),
        col: unless_zero(column),
        executed_line: has_start.then_some(frame.line),
        start_unknown: frame.file.is_some() && frame.start.file.is_none(),
    }
}

/// The line or column; `None` if it is 0, which stands for unknown.
fn unless_zero(number: u32) -> Option<u32> {
    if number > 0 { Some(number) } else { None }
}

/// The profile of one thread and event: sampled, or evented if lists of frames would be far longer than the changes
/// between stacks.
fn thread_profile<'a>(
    profile: &'a Profile,
    series: &'a Series,
    thread: ThreadRows<'a>,
    depths: &Depths,
    options: &WriteOptions,
) -> ThreadProfile<'a> {
    let weights: Vec<u64> = thread.rows.iter().map(|row| options.weight.value(row)).collect();
    let unit = match (&series.unit, options.weight) {
        (Unit::Nanos, Weight::Period) => "nanoseconds",
        (Unit::Named(unit), Weight::Period) if unit == "bytes" => unit,
        _ => "none",
    };
    // A unit that the format doesn't have is written as a field of its own.
    let event_unit = match &series.unit {
        Unit::Named(name) if options.weight == Weight::Period && name != unit => Some(&**name),
        _ => None,
    };
    let name = thread_name(&thread);
    // Only times have a place on a time axis; other weights count from 0.
    let start_value = if unit == "nanoseconds" { first_sample(profile, &thread) } else { 0 };
    // The viewer computes the total weight as the difference between end and start.
    let end_value = weights.iter().fold(start_value, |sum: u64, weight| sum.saturating_add(*weight));
    let sampled = ThreadProfile {
        r#type: "sampled",
        name: if profile.series.len() > 1 { format!("{} {name}", series.name) } else { name },
        event: &series.name,
        event_unit,
        unit: unit.to_owned(),
        start_value,
        end_value,
        samples: None,
        weights: None,
        events: None,
    };
    let lists = StackLists { profile, rows: thread.rows };
    if depths.lists_are_long(&lists) {
        let events = Some(Changes { lists, weights, start: start_value });
        return ThreadProfile { r#type: "evented", events, ..sampled };
    }
    ThreadProfile { samples: Some(lists), weights: Some(weights), ..sampled }
}

impl ThreadProfile<'_> {
    fn weight(&self) -> u64 {
        self.end_value - self.start_value
    }
}

/// The time of the thread's first sample, in nanoseconds since the first sample of the profile; 0 if unknown.
fn first_sample(profile: &Profile, thread: &ThreadRows<'_>) -> u64 {
    match (thread.rows.iter().find_map(|row| row.time), profile.about.sampled) {
        (Some(time), Some(sampled)) => time.0.saturating_sub(sampled.first.0),
        _ => 0,
    }
}

/// The name to show for a thread: its name, followed by the IDs that are known, as `PID/TID`. If both IDs are equal,
/// only one is written. `/TID` is a thread of an unknown process.
fn thread_name(thread: &ThreadRows<'_>) -> String {
    let mut name = String::from_utf8_lossy(thread.comm).into_owned();
    match (thread.pid, thread.tid) {
        (Some(pid), Some(tid)) if pid.0 != tid.0 => name += &format!(" {pid}/{tid}"),
        (Some(pid), _) => name += &format!(" {pid}"),
        (None, Some(tid)) => name += &format!(" /{tid}"),
        (None, None) => {}
    }
    name
}
