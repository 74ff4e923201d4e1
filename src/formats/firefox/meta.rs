//! `meta`: what was recorded, and how.

use super::categories::Categories;
use super::columns::Object;
use super::markers;
use super::writing::{Counted, Writing, millis};
use crate::analysis::thread_rows::{ThreadRows, middle_distance};
use crate::contract::rows::command_line;
use crate::model::mapping_kind::base_name;
use crate::model::stacks::{Sampling, Series, Unit};
use serde_json::{Value, json};
use std::io;

/// Writes the fields of `meta`: facts about the program, the recording and its units, and settings of the viewer.
/// `threads` are those whose samples are written.
pub(super) fn write(
    meta: &mut Object<'_>,
    writing: &Writing<'_>,
    threads: &[ThreadRows<'_>],
    categories: &Categories,
) -> io::Result<()> {
    let about = &writing.profile.about;
    let program = about.program().first().map(|path| String::from_utf8_lossy(base_name(path)));
    let epoch = about.epoch.map_or(0, |epoch| epoch + i128::from(writing.start));
    let os = about.os.as_deref().map(String::from_utf8_lossy);
    let release = about.os_release.as_deref().map(String::from_utf8_lossy);
    // The versions of the format that the file conforms to. Newer viewers convert the file to their own version.
    meta.field("version", &24)?;
    meta.field("preprocessedProfileVersion", &55)?;
    meta.field("product", program.as_deref().unwrap_or("jitgraft"))?;
    // The sampling interval, in milliseconds.
    meta.field("interval", &interval(writing.series, threads))?;
    // The wall-clock time of the first sample, which has the time 0 in the file: in milliseconds since 1970, or 0 if
    // unknown.
    meta.field("startTime", &(epoch as f64 / 1e6))?;
    // The format requires the next three fields, which describe how Firefox itself was recorded.
    meta.field("processType", &0)?;
    meta.field("stackwalk", &1)?;
    meta.field("debug", &false)?;
    // `symbolicated` tells the viewer not to look for more names.
    meta.field("symbolicated", &true)?;
    meta.field("usesOnlyOneStackType", &false)?;
    meta.field("sourceCodeIsNotOnSearchfox", &true)?;
    meta.field("extensions", &json!({"length": 0, "baseURL": [], "id": [], "name": []}))?;
    meta.field("categories", categories)?;
    meta.field("markerSchema", &markers::schema())?;
    let delta = cpu_delta_unit(writing.counted);
    meta.field("sampleUnits", &json!({"time": "ms", "eventDelay": "ms", "threadCPUDelta": delta}))?;
    meta.optional_field("platform", os.as_deref().map(platform_name))?;
    if let (Some(os), Some(release)) = (&os, release) {
        meta.field("oscpu", &format!("{os} {release}"))?;
    }
    meta.optional_field("abi", about.arch.as_deref().map(String::from_utf8_lossy))?;
    meta.optional_field("logicalCPUs", about.cpus)?;
    meta.field("arguments", &*command_line(&about.command).unwrap_or_default())?;
    meta.field("extra", &extra(writing))?;
    meta.field("importer", concat!("jitgraft ", env!("CARGO_PKG_VERSION")))
}

/// Operating systems: the name that `uname -s` prints, and the name that Firefox uses.
const PLATFORMS: &[(&str, &str)] = &[("Darwin", "Macintosh")];

/// Converts the name of an operating system, as `uname -s` prints it, to the name that Firefox uses for it. Names that
/// aren't in [`PLATFORMS`] are the same.
fn platform_name(os: &str) -> &str {
    PLATFORMS.iter().find(|(name, _)| *name == os).map_or(os, |(_, platform)| platform)
}

/// Converts the name that Firefox uses for an operating system to the one that `uname -s` prints.
pub(super) fn os_of_platform(platform: &str) -> &str {
    PLATFORMS.iter().find(|(_, name)| *name == platform).map_or(platform, |(os, _)| os)
}

fn cpu_delta_unit(counted: Counted) -> &'static str {
    match counted {
        Counted::Time | Counted::Other => "ns",
        Counted::Cycles => "variable CPU cycles",
    }
}

/// Facts about the recording for the viewer's info panel.
fn extra(writing: &Writing<'_>) -> Value {
    let about = &writing.profile.about;
    let mut entries = vec![extra_entry("Event", &writing.series.name)];
    match writing.series.sampling {
        Some(Sampling::Frequency(hertz)) => entries.push(extra_entry("Sampled", &format!("{hertz} Hz"))),
        Some(Sampling::Period(period)) => entries.push(extra_entry("Sampled", &format!("every {period}"))),
        None => {}
    }
    if let Some(host) = &about.host {
        entries.push(extra_entry("Host", &String::from_utf8_lossy(host)));
    }
    entries.push(extra_entry("Lost samples", &about.lost.to_string()));
    entries.extend(about.notes.iter().map(|note| extra_entry("Note", note)));
    json!([{"label": "Recording", "entries": entries}])
}

fn extra_entry(label: &str, value: &str) -> Value {
    json!({"label": label, "format": "string", "value": value})
}

/// The milliseconds between samples: as requested when recording, or else the median of the times between two samples
/// of the same thread.
fn interval(series: &Series, threads: &[ThreadRows<'_>]) -> f64 {
    match (series.sampling, &series.unit) {
        (Some(Sampling::Frequency(hertz)), _) => return 1000.0 / hertz as f64,
        (Some(Sampling::Period(nanos)), Unit::Nanos) => return nanos as f64 / 1e6,
        _ => {}
    }
    middle_distance(threads).filter(|nanos| *nanos > 0).map_or(1.0, millis)
}
