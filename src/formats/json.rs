//! Stacks as plain JSON, for programs of one's own: every row with all that is known of it.
//!
//! ```text
//! {"about":{"command":[…],"host":…,"arch":…,"kernel":…,"cpus":…,"epoch":…,"first":…,"last":…,"lost":0,
//!   "modules":[{"path":…,"build_id":…},…],"processes":[{"pid":…,"parent":…,"started":…,"ended":…},…]},
//!  "frames":[{"name":…,"module":…,"file":…,"line":…,"address":"0x…","kind":"jit","tier":"baseline"},…],
//!  "events":[{"name":"cycles","unit":"cycles","frequency":…,"stacks":[{"comm":…,"pid":…,"tid":…,"cpu":…,"time":…,
//!   "weight":…,"count":…,"frames":[root, …, leaf]},…]},…]}
//! ```
//!
//! `frames` of a stack are positions in the list of frames; times are in nanoseconds of the recording's clock, of which
//! `epoch` is the zero in nanoseconds since 1970. A frame of which no function is known is called after its module,
//! `[libc.so.6]`, and is marked `"unnamed":true`. Unknown values are left out.

mod about;
mod read;

pub use read::{read, sniff};

use crate::analysis::label;
use crate::contract::format::WriteOptions;
use crate::error::Result;
use crate::model::about::About;
use crate::model::stacks::{Frame, NameId, Profile, Row, Sampling, Series, UNKNOWN};
use about::AboutJson;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use std::io::Write;

/// Writes all events.
pub fn write(profile: &Profile, _options: &WriteOptions, out: &mut dyn Write) -> Result<()> {
    let mut serializer = serde_json::Serializer::new(&mut *out);
    document(profile, &mut serializer).map_err(std::io::Error::from)?;
    Ok(writeln!(out)?)
}

fn document<S: Serializer>(profile: &Profile, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    if profile.about != About::default() {
        map.serialize_entry("about", &AboutJson::new(&profile.about))?;
    }
    map.serialize_entry("frames", &FramesJson(profile))?;
    map.serialize_entry("events", &EventsJson(profile))?;
    map.end()
}

struct FramesJson<'a>(&'a Profile);
struct OneFrame<'a>(&'a Profile, &'a Frame);
struct EventsJson<'a>(&'a Profile);
struct EventJson<'a>(&'a Profile, &'a Series);
struct JsonRows<'a>(&'a Profile, &'a [Row]);
struct OneRow<'a>(&'a Profile, &'a Row);

impl Serialize for FramesJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.frames().map(|(_, frame)| OneFrame(self.0, frame)))
    }
}

impl Serialize for OneFrame<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(profile, frame) = *self;
        let text = |id: NameId| String::from_utf8_lossy(profile.name_of(id));
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &label::function(profile, frame))?;
        if profile.name_of(frame.name) == UNKNOWN {
            map.serialize_entry("unnamed", &true)?;
        }
        if let Some(module) = frame.module {
            map.serialize_entry("module", &text(module))?;
        }
        if let Some(file) = frame.file {
            map.serialize_entry("file", &text(file))?;
        }
        if frame.line > 0 {
            map.serialize_entry("line", &frame.line)?;
        }
        if let Some(addr) = frame.addr {
            map.serialize_entry("address", &format_args!("{addr:#x}"))?;
        }
        map.serialize_entry("kind", frame.kind.key())?;
        if let Some(tier) = frame.tier {
            map.serialize_entry("tier", tier.name())?;
        }
        map.end()
    }
}

impl Serialize for EventsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.series.iter().map(|series| EventJson(self.0, series)))
    }
}

impl Serialize for EventJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.1.name)?;
        map.serialize_entry("unit", self.1.unit.name())?;
        match self.1.sampling {
            Some(Sampling::Frequency(hertz)) => map.serialize_entry("frequency", &hertz)?,
            Some(Sampling::Period(period)) => map.serialize_entry("period", &period)?,
            None => {}
        }
        map.serialize_entry("stacks", &JsonRows(self.0, &self.1.rows))?;
        map.end()
    }
}

impl Serialize for JsonRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.1.len()))?;
        for row in self.1 {
            list.serialize_element(&OneRow(self.0, row))?;
        }
        list.end()
    }
}

impl Serialize for OneRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(profile, row) = *self;
        let track = profile.track_of(row.track);
        let mut map = serializer.serialize_map(None)?;
        if !track.comm.is_empty() {
            map.serialize_entry("comm", &String::from_utf8_lossy(&track.comm))?;
        }
        if let Some(pid) = track.pid {
            map.serialize_entry("pid", &pid.0)?;
        }
        if let Some(tid) = track.tid {
            map.serialize_entry("tid", &tid.0)?;
        }
        if let Some(cpu) = track.cpu {
            map.serialize_entry("cpu", &cpu)?;
        }
        if let Some(time) = row.time {
            map.serialize_entry("time", &time.0)?;
        }
        map.serialize_entry("weight", &row.weight)?;
        map.serialize_entry("count", &row.count)?;
        let mut frames: Vec<u32> = profile.frames_up(row.stack).map(|frame| frame.0).collect();
        frames.reverse();
        map.serialize_entry("frames", &frames)?;
        map.end()
    }
}
