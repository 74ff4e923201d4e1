//! speedscope's own JSON: one sampled profile for each thread of each event, frames shared by all.
//!
//! Samples with times stand in their order, so that speedscope's "Time Order" view means something.
//! See <https://github.com/jlfwong/speedscope/blob/main/src/lib/file-format-spec.ts>.

mod read;

pub use read::{read, sniff};

use super::format::WriteOptions;
use crate::error::Result;
use crate::model::label;
use crate::model::stacks::{Profile, Row, Series, TrackId, Unit, Weight};
use serde::Serialize;
use std::io::Write;

#[derive(Serialize)]
struct SpeedscopeFile<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
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
    unit: &'static str,
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
    let file = SpeedscopeFile {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: concat!("jitgraft ", env!("CARGO_PKG_VERSION")),
        shared: SharedFrames { frames: frames.collect() },
        profiles: profile.series.iter().flat_map(|series| threads(profile, series, options)).collect(),
    };
    serde_json::to_writer(&mut *out, &file).map_err(std::io::Error::from)?;
    Ok(writeln!(out)?)
}

fn threads(profile: &Profile, series: &Series, options: &WriteOptions) -> Vec<Sampled> {
    let mut rows: Vec<&Row> = series.rows.iter().collect();
    rows.sort_by_key(|row| (row.track, row.time));
    let of_threads = rows.chunk_by(|a, b| a.track == b.track);
    of_threads.map(|rows| thread(profile, series, rows, options)).collect()
}

fn thread(profile: &Profile, series: &Series, rows: &[&Row], options: &WriteOptions) -> Sampled {
    let weights: Vec<u64> = rows.iter().map(|row| options.weight.of(row)).collect();
    let unit = match (&series.unit, options.weight) {
        (Unit::Nanos, Weight::Period) => "nanoseconds",
        _ => "none",
    };
    let stack = |row: &&Row| {
        let mut frames: Vec<u32> = profile.frames_up(row.stack).map(|frame| frame.0).collect();
        frames.reverse();
        frames
    };
    let name = rows.first().map_or_else(String::new, |row| thread_name(profile, row.track));
    Sampled {
        r#type: "sampled",
        name: if profile.series.len() > 1 { format!("{} {name}", series.name) } else { name },
        unit,
        start_value: 0,
        end_value: weights.iter().fold(0, |sum: u64, weight| sum.saturating_add(*weight)),
        samples: rows.iter().map(stack).collect(),
        weights,
    }
}

fn thread_name(profile: &Profile, id: TrackId) -> String {
    let track = profile.track_of(id);
    let mut name = String::from_utf8_lossy(&track.comm).into_owned();
    match (track.pid, track.tid) {
        (Some(pid), Some(tid)) if pid.0 != tid.0 => name += &format!(" {pid}/{tid}"),
        (Some(pid), _) => name += &format!(" {pid}"),
        (None, Some(tid)) => name += &format!(" /{tid}"),
        (None, None) => {}
    }
    name
}
