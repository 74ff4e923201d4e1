//! speedscope's own JSON: one sampled profile for each thread of each event, frames shared by all.
//!
//! Samples with times stand in their order, so that speedscope's "Time Order" view means something.
//! See <https://github.com/jlfwong/speedscope/blob/main/src/lib/file-format-spec.ts>.

mod read;

pub use read::{read, sniff};

use super::format::WriteOptions;
use crate::error::Result;
use crate::model::label;
use crate::model::stacks::{Profile, Row, Series, Unit, Weight};
use crate::model::thread_rows::{ThreadRows, threads};
use serde::Serialize;
use std::io::Write;

#[derive(Serialize)]
struct SpeedscopeFile<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    /// The one that is shown first: what weighs most of the first event.
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    shared: SharedFrames<'a>,
    profiles: Vec<Sampled>,
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
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled {
    r#type: &'static str,
    name: String,
    unit: String,
    start_value: u64,
    end_value: u64,
    samples: Vec<Vec<u32>>,
    weights: Vec<u64>,
}

/// Writes all events.
pub fn write(profile: &Profile, options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let text = |id| String::from_utf8_lossy(profile.name_of(id));
    let frames = profile.frames().map(|(_, frame)| {
        let line = (frame.line > 0).then_some(frame.line);
        FrameEntry { name: label::function(profile, frame), file: frame.file.or(frame.module).map(text), line }
    });
    let profiles: Vec<Sampled> = profile.series.iter().flat_map(|series| sampled(profile, series, options)).collect();
    let of_first_event = profile.series.first().map_or(0, |series| threads(profile, series).len());
    let weight = |sampled: &Sampled| sampled.end_value - sampled.start_value;
    // Of equal ones the first.
    let heaviest = profiles.iter().take(of_first_event).enumerate().rev().max_by_key(|(_, sampled)| weight(sampled));
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

fn sampled(profile: &Profile, series: &Series, options: &WriteOptions) -> Vec<Sampled> {
    threads(profile, series).iter().map(|rows| thread(profile, series, rows, options)).collect()
}

fn thread(profile: &Profile, series: &Series, of: &ThreadRows<'_>, options: &WriteOptions) -> Sampled {
    let weights: Vec<u64> = of.rows.iter().map(|row| options.weight.of(row)).collect();
    let unit = match (&series.unit, options.weight) {
        (Unit::Nanos, Weight::Period) => "nanoseconds",
        (Unit::Named(unit), Weight::Period) if unit == "bytes" => unit,
        _ => "none",
    };
    let stack = |row: &&Row| {
        let mut frames: Vec<u32> = profile.frames_up(row.stack).map(|frame| frame.0).collect();
        frames.reverse();
        frames
    };
    let name = thread_name(of);
    let start_value = if unit == "nanoseconds" { first(profile, of) } else { 0 };
    Sampled {
        r#type: "sampled",
        name: if profile.series.len() > 1 { format!("{} {name}", series.name) } else { name },
        unit: unit.to_owned(),
        start_value,
        // The viewer takes the difference for the sum of the weights.
        end_value: weights.iter().fold(start_value, |sum: u64, weight| sum.saturating_add(*weight)),
        samples: of.rows.iter().map(stack).collect(),
        weights,
    }
}

/// When the thread was first seen, from the first sample of all on.
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
