//! Reading the plain JSON that is written here.

use crate::analysis::named_frames::{NamedFrames, StatedFrame};
use crate::contract::format::ReadOptions;
use crate::error::{Error, Result, Skipped, Warnings};
use crate::model::stacks::{FrameId, FrameKind, Profile, Row, Sampling, Track, Unit};
use crate::model::tier::Tier;
use crate::model::{Nanos, Pid, Tid};
use serde::{Deserialize, Deserializer};

/// True if an input begins as such a file does: with its frames, or what is known of the whole before them.
pub fn sniff(head: &[u8]) -> bool {
    let head: Vec<u8> = head.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).take(4096).collect();
    let has = |text: &[u8]| memchr::memmem::find(&head, text).is_some();
    let frames = head.starts_with(b"{\"frames\":[{\"name\":") && has(b"\"kind\":\"");
    frames
        || head.starts_with(b"{\"frames\":[],\"events\":[")
        || (head.starts_with(b"{\"about\":{") && has(b"\"lost\":"))
}

#[derive(Deserialize)]
struct JsonFile {
    #[serde(default)]
    frames: Vec<JsonFrame>,
    #[serde(default)]
    events: Vec<EventEntry>,
}

#[derive(Deserialize)]
struct JsonFrame {
    name: String,
    #[serde(default)]
    module: String,
    #[serde(default)]
    file: String,
    #[serde(default)]
    line: u32,
    #[serde(default, deserialize_with = "stated")]
    start_file: Option<Option<String>>,
    #[serde(default)]
    start_line: u32,
    #[serde(default)]
    start_column: u32,
    #[serde(default)]
    address: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    tier: Option<String>,
}

/// A member that is there, `null` or not.
fn stated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
struct EventEntry {
    name: String,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    period: Option<u64>,
    #[serde(default)]
    frequency: Option<u64>,
    #[serde(default)]
    stacks: Vec<StackEntry>,
}

#[derive(Deserialize)]
struct StackEntry {
    #[serde(default)]
    comm: String,
    pid: Option<i32>,
    tid: Option<i32>,
    cpu: Option<u32>,
    time: Option<u64>,
    weight: i64,
    #[serde(default)]
    count: u64,
    #[serde(default)]
    frames: Vec<u32>,
}

/// Reads all events.
pub fn read(bytes: &[u8], options: &ReadOptions, warnings: &mut Warnings) -> Result<Profile> {
    let file: JsonFile = serde_json::from_slice(bytes)
        .map_err(|error| Error::new("is not a complete file of stacks in JSON").because(error))?;
    let mut profile = Profile::keeping(options.keep);
    let mut named = NamedFrames::default();
    let frames: Vec<FrameId> = file.frames.iter().map(|entry| frame(entry, &mut named, &mut profile)).collect();
    let mut skipped = Skipped::new("stack");
    for event in &file.events {
        let series = profile
            .series_named(&event.name, if event.unit.is_empty() { Unit::Samples } else { Unit::named(&event.unit) });
        profile.series[series].sampling =
            event.frequency.map(Sampling::Frequency).or(event.period.map(Sampling::Period));
        for (at, entry) in event.stacks.iter().enumerate() {
            let Some(row) = row(entry, &frames, &mut profile) else {
                skipped.add(Error::new(format!("stack {at} of {} has a frame that the file has not", event.name)));
                continue;
            };
            if entry.weight < 0 {
                profile.push_negative(series, row);
            } else {
                profile.push(series, row);
            }
        }
    }
    warnings.extend(skipped.into_warning());
    Ok(profile)
}

fn frame(entry: &JsonFrame, named: &mut NamedFrames, profile: &mut Profile) -> FrameId {
    let id = named.frame(
        profile,
        StatedFrame {
            function: entry.name.as_bytes(),
            module: entry.module.as_bytes(),
            file: entry.file.as_bytes(),
            line: entry.line,
            start: (entry.start_line, entry.start_column),
            addr: entry.address.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()),
            kind: FrameKind::of_key(&entry.kind),
            tier: entry.tier.as_deref().and_then(Tier::named),
            ..StatedFrame::default()
        },
    );
    let Some(start_file) = &entry.start_file else { return id };
    let mut frame = *profile.frame_of(id);
    frame.start.file = start_file.as_ref().map(|file| profile.name(file.as_bytes()));
    profile.frame(frame)
}

fn row(entry: &StackEntry, frames: &[FrameId], profile: &mut Profile) -> Option<Row> {
    let mut stack = None;
    for at in &entry.frames {
        stack = Some(profile.stack(stack, *frames.get(*at as usize)?));
    }
    let track = profile.track(Track {
        comm: entry.comm.as_bytes().to_vec(),
        pid: entry.pid.map(Pid),
        tid: entry.tid.map(Tid),
        cpu: entry.cpu,
        ..Track::default()
    });
    Some(Row { track, stack, weight: entry.weight.unsigned_abs(), count: entry.count, time: entry.time.map(Nanos) })
}
