//! Writes stacks as plain JSON with all their attributes, for other programs to process. There is no reader.
//!
//! ```text
//! {"about":{"command":[…],"host":…,"arch":…,"kernel":…,"cpus":…,"epoch":…,"first":…,"last":…,"lost":0,
//!   "modules":[{"path":…,"build_id":…},…],"processes":[{"pid":…,"parent":…,"started":…,"ended":…},…]},
//!  "frames":[{"name":…,"module":…,"file":…,"line":…,"start_file":…,"start_line":…,"start_column":…,
//!   "address":"0x…","kind":"jit","tier":"baseline"},…],
//!  "events":[{"name":"cycles","unit":"cycles","frequency":…,"stacks":[{"comm":…,"pid":…,"tid":…,"cpu":…,"time":…,
//!   "weight":…,"count":…,"frames":[root, …, leaf]},…]},…]}
//! ```
//!
//! The `frames` of a stack are indices in the list of frames. Times are nanoseconds on the recording's clock; `epoch`
//! is that clock's zero in nanoseconds since 1970. A frame without a known function is named after its module, such as
//! `[libc.so.6]`, and marked with `"unnamed":true`. `start_file` is only there if the function starts in another file
//! than `file`, or in an unknown file (`null`). An event has a `period` if it was not sampled at a `frequency`. Other
//! unknown values are left out.

use crate::analysis::label;
use crate::contract::format::WriteOptions;
use crate::error::Result;
use crate::model::Pid;
use crate::model::about::{About, Module, ProcessLife};
use crate::model::lazy_list::LazyList;
use crate::model::stacks::{Frame, NameId, Profile, Row, Sampling, Series, UNKNOWN, Weight};
use crate::model::tier::Tier;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::io::Write;

/// Writes all events of a profile.
pub fn write(profile: &Profile, _options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let mut serializer = serde_json::Serializer::new(&mut *out);
    write_document(profile, &mut serializer).map_err(std::io::Error::from)?;
    Ok(writeln!(out)?)
}

/// Writes the profile as an object with up to three members: facts about the recording, frames and events.
fn write_document<S: Serializer>(profile: &Profile, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    if profile.about != About::default() {
        map.serialize_entry("about", &AboutJson(&profile.about))?;
    }
    map.serialize_entry("frames", &LazyList(|| profile.frames().map(|(_, frame)| FrameJson(profile, frame))))?;
    map.serialize_entry("events", &LazyList(|| profile.series.iter().map(|series| EventJson(profile, series))))?;
    map.end()
}

/// Writes a field, or nothing for `None`.
fn put<M: SerializeMap>(map: &mut M, name: &str, value: Option<impl Serialize>) -> Result<(), M::Error> {
    match value {
        Some(value) => map.serialize_entry(name, &value),
        None => Ok(()),
    }
}

/// The line or column; `None` if it is 0, which stands for unknown.
fn unless_zero(number: u32) -> Option<u32> {
    if number > 0 { Some(number) } else { None }
}

struct FrameJson<'a>(&'a Profile, &'a Frame);
struct EventJson<'a>(&'a Profile, &'a Series);
struct RowJson<'a>(&'a Profile, &'a Row, i64);
/// Facts about the whole recording.
struct AboutJson<'a>(&'a About);

impl Serialize for FrameJson<'_> {
    /// Writes a frame as an object, without what is unknown.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(profile, frame) = *self;
        let text = |id: NameId| String::from_utf8_lossy(profile.name_of(id));
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &label::function(profile, frame))?;
        if profile.name_of(frame.name) == UNKNOWN {
            map.serialize_entry("unnamed", &true)?;
        }
        put(&mut map, "module", frame.module.map(text))?;
        put(&mut map, "file", frame.file.map(text))?;
        put(&mut map, "line", unless_zero(frame.line))?;
        // Without `start_file`, the function starts in `file`; `null` says that the file of its start is unknown.
        if frame.start.file != frame.file {
            map.serialize_entry("start_file", &frame.start.file.map(text))?;
        }
        put(&mut map, "start_line", unless_zero(frame.start.line))?;
        put(&mut map, "start_column", unless_zero(frame.start.column))?;
        put(&mut map, "address", frame.addr.map(|addr| format!("{addr:#x}")))?;
        map.serialize_entry("kind", frame.kind.key())?;
        put(&mut map, "tier", frame.tier.map(Tier::name))?;
        map.end()
    }
}

impl Serialize for EventJson<'_> {
    /// Writes an event as an object with all its stacks.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(profile, series) = *self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &series.name)?;
        map.serialize_entry("unit", series.unit.name())?;
        match series.sampling {
            Some(Sampling::Frequency(hertz)) => map.serialize_entry("frequency", &hertz)?,
            Some(Sampling::Period(period)) => map.serialize_entry("period", &period)?,
            None => {}
        }
        map.serialize_entry(
            "stacks",
            &LazyList(|| series.signed_rows(Weight::Period).map(|(row, weight)| RowJson(profile, row, weight))),
        )?;
        map.end()
    }
}

impl Serialize for RowJson<'_> {
    /// Writes a row as an object: the thread, the weight, and the indices of the frames, outermost first.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(profile, row, weight) = *self;
        let track = profile.track_of(row.track);
        let mut map = serializer.serialize_map(None)?;
        if !track.comm.is_empty() {
            map.serialize_entry("comm", &String::from_utf8_lossy(&track.comm))?;
        }
        put(&mut map, "pid", track.pid.map(|pid| pid.0))?;
        put(&mut map, "tid", track.tid.map(|tid| tid.0))?;
        put(&mut map, "cpu", track.cpu)?;
        put(&mut map, "time", row.time.map(|time| time.0))?;
        map.serialize_entry("weight", &weight)?;
        map.serialize_entry("count", &row.count)?;
        let mut frames: Vec<u32> = profile.frames_up(row.stack).map(|frame| frame.0).collect();
        frames.reverse();
        map.serialize_entry("frames", &frames)?;
        map.end()
    }
}

impl Serialize for AboutJson<'_> {
    /// Writes the facts as an object, without what is unknown.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let about = self.0;
        let mut map = serializer.serialize_map(None)?;
        put_list(&mut map, "command", about.command.iter().map(|word| String::from_utf8_lossy(word)))?;
        put(&mut map, "host", about.host.as_deref().map(String::from_utf8_lossy))?;
        put(&mut map, "arch", about.arch.as_deref().map(String::from_utf8_lossy))?;
        put(&mut map, "kernel", about.os_release.as_deref().map(String::from_utf8_lossy))?;
        put(&mut map, "cpus", about.cpus)?;
        put(&mut map, "epoch", about.epoch.and_then(|epoch| i64::try_from(epoch).ok()))?;
        put(&mut map, "first", about.sampled.map(|sampled| sampled.first.0))?;
        put(&mut map, "last", about.sampled.map(|sampled| sampled.last.0))?;
        map.serialize_entry("lost", &about.lost)?;
        put_list(&mut map, "modules", about.modules.iter().map(|(path, module)| ModuleJson(path, module)))?;
        put_list(&mut map, "processes", about.processes.iter().map(|(pid, life)| ProcessJson(*pid, life)))?;
        map.end()
    }
}

/// Writes a field with a list, or nothing if the list is empty.
fn put_list<M: SerializeMap>(
    map: &mut M,
    name: &str,
    list: impl Iterator<Item = impl Serialize>,
) -> Result<(), M::Error> {
    let list: Vec<_> = list.collect();
    if list.is_empty() { Ok(()) } else { map.serialize_entry(name, &list) }
}

struct ModuleJson<'a>(&'a [u8], &'a Module);
struct ProcessJson<'a>(Pid, &'a ProcessLife);

impl Serialize for ModuleJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(path, module) = *self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("path", &String::from_utf8_lossy(path))?;
        put(&mut map, "build_id", module.build_id.into_option().map(|id| id.to_string()))?;
        map.end()
    }
}

impl Serialize for ProcessJson<'_> {
    /// Writes a process as an object, without what is unknown.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(pid, life) = *self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("pid", &pid.0)?;
        put(&mut map, "parent", life.parent.map(|parent| parent.0))?;
        put(&mut map, "started", life.started.map(|time| time.0))?;
        put(&mut map, "ended", life.ended.map(|time| time.0))?;
        map.end()
    }
}
