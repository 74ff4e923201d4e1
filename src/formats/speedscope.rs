//! Writes speedscope's JSON: one sampled profile per thread and event, with frames shared by all. If listing the frames
//! of each stack would take far more space than the changes between stacks, the profile is evented instead.
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
use crate::model::stacks::{Profile, Series, Unit, Weight};
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
struct FrameEntry<'a> {
    name: std::borrow::Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<std::borrow::Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    col: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThreadProfile<'a> {
    r#type: &'static str,
    name: String,
    /// The event, and its unit if speedscope has no name for it. speedscope ignores both; our reader uses them.
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

/// Writes all events.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let text = |id| String::from_utf8_lossy(profile.name_of(id));
    // A frame has a single position, and the viewer takes different positions for different functions. So the position
    // is the function's start if its column is known. Only a start gets a column.
    let known = |number: u32| (number > 0).then_some(number);
    let frames = profile.frames().map(|(_, frame)| {
        let name = label::function(profile, frame);
        if frame.start.column > 0 {
            let (file, line, col) = (frame.start.file.map(text), known(frame.start.line), known(frame.start.column));
            return FrameEntry { name, file, line, col };
        }
        let place = profile.place_of(frame);
        let file = place.map(|(file, _)| file).or(frame.module).map(text);
        FrameEntry { name, file, line: place.and_then(|(_, line)| known(line)), col: None }
    });
    let depths = Depths::of(profile);
    let of_series = |series| of_series(profile, series, &depths, options);
    let profiles: Vec<ThreadProfile<'_>> = profile.series.iter().flat_map(of_series).collect();
    let of_first_event = profile.series.first().map_or(0, |series| threads(profile, series).len());
    let weight = |thread: &ThreadProfile<'_>| thread.end_value - thread.start_value;
    // Of equally heavy profiles, the first one is shown.
    let heaviest = profiles.iter().take(of_first_event).enumerate().rev().max_by_key(|(_, thread)| weight(thread));
    let file = SpeedscopeFile {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: concat!("jitgraft ", env!("CARGO_PKG_VERSION")),
        shared: SharedFrames { frames: frames.collect() },
        active: heaviest.map_or(0, |(at, _)| at),
        profiles,
    };
    serde_json::to_writer(&mut *out, &file).map_err(std::io::Error::from)?;
    Ok(writeln!(out)?)
}

fn of_series<'a>(
    profile: &'a Profile,
    series: &'a Series,
    depths: &Depths,
    options: &WriteOptions,
) -> Vec<ThreadProfile<'a>> {
    threads(profile, series).into_iter().map(|rows| thread(profile, series, rows, depths, options)).collect()
}

fn thread<'a>(
    profile: &'a Profile,
    series: &'a Series,
    of: ThreadRows<'a>,
    depths: &Depths,
    options: &WriteOptions,
) -> ThreadProfile<'a> {
    let weights: Vec<u64> = of.rows.iter().map(|row| options.weight.of(row)).collect();
    let unit = match (&series.unit, options.weight) {
        (Unit::Nanos, Weight::Period) => "nanoseconds",
        (Unit::Named(unit), Weight::Period) if unit == "bytes" => unit,
        _ => "none",
    };
    let event_unit = match &series.unit {
        Unit::Named(own) if options.weight == Weight::Period && own != unit => Some(&**own),
        _ => None,
    };
    let name = thread_name(&of);
    let start_value = if unit == "nanoseconds" { first(profile, &of) } else { 0 };
    // The viewer takes the difference between end and start for the total weight.
    let end_value = weights.iter().fold(start_value, |sum: u64, weight| sum.saturating_add(*weight));
    let lists = StackLists { profile, rows: of.rows };
    let is_long = depths.lists_are_long(&lists);
    let (samples, weights, events) = match is_long {
        true => (None, None, Some(Changes { lists, weights, start: start_value })),
        false => (Some(lists), Some(weights), None),
    };
    ThreadProfile {
        r#type: if is_long { "evented" } else { "sampled" },
        name: if profile.series.len() > 1 { format!("{} {name}", series.name) } else { name },
        event: &series.name,
        event_unit,
        unit: unit.to_owned(),
        start_value,
        end_value,
        samples,
        weights,
        events,
    }
}

/// When the thread was first sampled, relative to the first sample of the profile.
fn first(profile: &Profile, of: &ThreadRows<'_>) -> u64 {
    let own = of.rows.iter().find_map(|row| row.time);
    let all = profile.about.sampled.map(|sampled| sampled.first);
    own.zip(all).map_or(0, |(own, all)| own.0.saturating_sub(all.0))
}

fn thread_name(of: &ThreadRows<'_>) -> String {
    let mut name = String::from_utf8_lossy(of.comm).into_owned();
    match (of.pid, of.tid) {
        (Some(pid), Some(tid)) if pid.0 != tid.0 => name += &format!(" {pid}/{tid}"),
        (Some(pid), _) => name += &format!(" {pid}"),
        (None, Some(tid)) => name += &format!(" /{tid}"),
        (None, None) => {}
    }
    name
}
