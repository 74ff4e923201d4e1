//! Writes rows as messages. Each message has its own dictionary and is small enough for a Collector to accept.
//!
//! Each process is a resource, and each of its events a profile. Each stack of a thread is a sample with one value per
//! timestamp. Without timestamps, or with time buckets, values are sums; a second profile then holds the number of
//! samples in each sum.

use super::draft::{DictionaryTables, Draft, Identity, Observation, ProfileIndex, SameTime, TableKind, scope};
use super::framing::write_with_length;
use super::json;
use super::labels;
use super::messages::{number, text};
use super::resource::{RecordingFacts, resource};
use super::stack_writer::StackWriter;
use crate::contract::options::WriteOptions;
use crate::contract::rows::{RowOrigin, RowWriter, WrittenNames, clamp, interval_start};
use crate::error::Result;
use crate::model::stacks::{Profile, Row, Track, TrackId, Weight};
use crate::model::{Nanos, Pid};
use crate::runtimes::RuntimeSet;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io::Write;

/// Upper limit for a message, in bytes; only a single large sample may exceed it. Collectors use gRPC, whose default
/// limit is 4 MiB.
const LONGEST: usize = 4_000_000;

/// How messages are separated in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// A single message is written as it is. Several are each written after their length, as the Collector's `file`
    /// exporter does.
    Protobuf,
    /// One message per line.
    Json,
}

/// Writes rows as messages.
pub(super) struct OtlpWriter<'o> {
    messages: OutgoingMessages<'o>,
    bucket: Option<i64>,
    draft: Draft,
    input: WrittenInput,
}

/// The state for the input whose rows are being written.
#[derive(Debug, Default)]
struct WrittenInput {
    facts: RecordingFacts,
    names: WrittenNames,
    /// The runtimes of each process, recognized by the files that it mapped. `None` until they are needed.
    mapped: Option<FxHashMap<Pid, RuntimeSet>>,
    /// True if an earlier or the current message has the number of lost samples, which must occur only once.
    has_written_lost: bool,
    known: InMessage,
}

/// Identifies a resource of the current message: its process, and its attributes that come from labels.
type ResourceKey = (Option<Pid>, BTreeMap<Box<str>, Box<str>>);

/// The dictionary indices, resources and profiles that the current message already holds, so that later rows can refer
/// to them.
#[derive(Debug, Default)]
struct InMessage {
    stacks: StackWriter,
    resources: FxHashMap<ResourceKey, usize>,
    profiles: FxHashMap<ProfileKey, ProfileIndex>,
    owners: FxHashMap<TrackId, Owner>,
}

/// Identifies a profile of the current message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ProfileKey {
    resource: usize,
    series: usize,
    /// True if the samples have timestamps.
    is_timed: bool,
}

/// The resource, attributes and link that all samples of a thread have in common.
#[derive(Debug, Clone)]
struct Owner {
    resource: usize,
    attributes: Vec<i32>,
    link: i32,
}

impl<'o> OtlpWriter<'o> {
    pub(super) fn new(form: Framing, options: &WriteOptions, out: Box<dyn Write + 'o>) -> Self {
        let bucket = options.bucket.map(clamp);
        let messages = OutgoingMessages { form, out, first: None, count: 0 };
        Self { messages, bucket, draft: Draft::new(), input: WrittenInput::default() }
    }

    /// Adds a row to the current message. If the message would get too long, writes it first and starts a new one.
    fn add_row(&mut self, profile: &Profile, series: usize, row: &Row, weight: i64) -> Result<()> {
        let track = profile.track_of(row.track);
        let runtimes = track.pid.map_or_else(RuntimeSet::default, |pid| self.input.runtimes(pid, profile));
        // `flush` also makes `input.known` forget its indices, because they are only valid within one message.
        if !self.draft.is_empty && self.draft.len() + self.input.max_row_len(profile, row, runtimes) > LONGEST {
            self.flush()?;
        }
        let (draft, input) = (&mut self.draft, &mut self.input);
        let stack = input.known.stacks.stack(row.stack, runtimes, profile, &input.names, &mut draft.tables);
        let Owner { resource, attributes, link } = input.owner(row.track, profile, draft);
        let identity = Identity { stack, attributes, link };
        let key = ProfileKey { resource, series, is_timed: row.time.is_some() };
        let profiles = &mut input.known.profiles;
        let index =
            *profiles.entry(key).or_insert_with(|| draft.add_profile(resource, &profile.series[series], key.is_timed));
        let time = row.time.map(|time| unix_time(time, self.bucket, input.facts.epoch()));
        let observation = Observation { weight, count: clamp(row.count), time };
        // With buckets, the time is the start of a bucket, and a stack's rows in a bucket become one value.
        let same_time = if self.bucket.is_some() { SameTime::AddUp } else { SameTime::Keep };
        draft.observe(index, &identity, observation, same_time);
        Ok(())
    }

    /// Writes the current message and starts a new one.
    fn flush(&mut self) -> Result<()> {
        let draft = std::mem::replace(&mut self.draft, Draft::new());
        // The new message can't refer to elements of the old one's dictionary.
        let mut stacks = std::mem::take(&mut self.input.known.stacks);
        stacks.forget_message();
        self.input.known = InMessage { stacks, ..InMessage::default() };
        self.messages.write(draft.encode())
    }
}

/// A row's time in nanoseconds since 1970; with buckets, that of the start of its bucket. `epoch` is the wall clock's
/// time when the recording's clock was 0. If it is `None`, the result is on the recording's own clock.
fn unix_time(time: Nanos, bucket: Option<i64>, epoch: Option<i128>) -> u64 {
    let time = match bucket {
        Some(bucket) => interval_start(clamp(time.0), bucket, epoch).into(),
        None => i128::from(time.0),
    };
    u64::try_from((time + epoch.unwrap_or(0)).max(0)).unwrap_or(u64::MAX)
}

impl WrittenInput {
    /// The runtimes of a process, recognized by the files that the process mapped. If it mapped none, the runtimes of
    /// its nearest ancestor that mapped some.
    fn runtimes(&mut self, pid: Pid, profile: &Profile) -> RuntimeSet {
        let mapped = self.mapped.get_or_insert_with(|| mapped_runtimes(profile));
        profile.about.lineage(pid).find_map(|pid| mapped.get(&pid).copied()).unwrap_or_default()
    }

    /// The resource, attributes and link for a thread, added to the message if they are new.
    fn owner(&mut self, id: TrackId, profile: &Profile, draft: &mut Draft) -> Owner {
        if let Some(owner) = self.known.owners.get(&id) {
            return owner.clone();
        }
        let track = profile.track_of(id);
        let owner = Owner {
            resource: self.resource(track, profile, draft),
            attributes: attributes(track, &mut draft.tables),
            link: labels::link(&track.labels).map_or(0, |link| draft.tables.message(TableKind::Links, &link)),
        };
        self.known.owners.insert(id, owner.clone());
        owner
    }

    /// The index of the resource for a thread's process. Adds the resource to the message if it is new.
    fn resource(&mut self, track: &Track, profile: &Profile, draft: &mut Draft) -> usize {
        let attributes = self.facts.attributes(track);
        let Self { facts, has_written_lost, known, .. } = self;
        *known.resources.entry((track.pid, attributes.clone())).or_insert_with(|| {
            let executable = track.pid.and_then(|pid| profile.about.executable(pid, &track.comm));
            // Only one resource states the number of lost samples, or readers would add it up.
            let lost = if std::mem::replace(has_written_lost, true) { 0 } else { profile.about.lost };
            let scope = scope(profile, facts.epoch().is_some(), lost);
            draft.add_resource(&resource(facts, track, executable, &attributes), &scope)
        })
    }

    /// Upper bound for the number of bytes that a row adds to the message.
    fn max_row_len(&self, profile: &Profile, row: &Row, runtimes: RuntimeSet) -> usize {
        /// Upper bound for the fixed-size parts of a frame, its mapping and their attributes, in bytes.
        const OF_FRAME: usize = 400;
        /// Upper bound for the resource, scope, profile and sample of a row, in bytes.
        const OF_ROW: usize = 4000;
        let mut len = OF_ROW;
        for (key, value) in profile.track_of(row.track).labels.iter().flat_map(|labels| &**labels) {
            // The label counts twice, as a margin: its attribute may have a longer name than the label.
            len += 2 * (key.len() + value.len());
        }
        // If the message already has this stack, the row adds no frames.
        if self.known.stacks.has(row.stack, runtimes) {
            return len;
        }
        let name_len = |name| profile.name_of(name).len();
        for id in profile.frames_up(row.stack) {
            let frame = profile.frame_of(id);
            // The function's name counts twice, because it may be written as the system name, too.
            let texts = 2 * name_len(frame.name) + frame.module.map_or(0, name_len) + frame.file.map_or(0, name_len);
            // Each invalid UTF-8 byte becomes a replacement character of three bytes.
            len += OF_FRAME + 3 * texts;
        }
        len
    }
}

/// The attributes of a thread's samples, except those that its resource has.
fn attributes(track: &Track, tables: &mut DictionaryTables) -> Vec<i32> {
    let name = if track.comm.is_empty() { None } else { Some(text(String::from_utf8_lossy(&track.comm))) };
    let fields = [
        ("thread.name", name),
        ("thread.id", track.tid.map(|tid| number(tid.0.into()))),
        ("cpu.logical_number", track.cpu.map(|cpu| number(cpu.into()))),
    ];
    let mut attributes = Vec::new();
    for (key, value) in fields {
        // Keys must be unique. If a label has this key, the label wins.
        let is_label = track.labels.as_ref().is_some_and(|labels| labels.contains_key(key));
        if let Some(value) = value
            && !is_label
        {
            attributes.push(tables.attribute(key, value));
        }
    }
    // The IDs of a trace and a span are written as a link, so they need no attributes.
    let is_linked = labels::link(&track.labels).is_some();
    for (key, label) in track.labels.iter().flat_map(|labels| &**labels) {
        let is_in_link = is_linked && labels::is_link_id(key);
        if !labels::describes_resource(key) && !is_in_link {
            attributes.push(tables.attribute(key, labels::value(key, label)));
        }
    }
    attributes
}

impl RowWriter for OtlpWriter<'_> {
    fn begin(&mut self, origin: RowOrigin, profile: &Profile) -> Result<()> {
        let facts = RecordingFacts::new(origin.recording, origin.labels, &profile.about);
        let names = WrittenNames::new(origin.jit_names, profile);
        self.input = WrittenInput { facts, names, ..WrittenInput::default() };
        Ok(())
    }

    fn rows(&mut self, profile: &Profile) -> Result<()> {
        for (index, series) in profile.series.iter().enumerate() {
            for (row, weight) in series.signed_rows(Weight::Period) {
                self.add_row(profile, index, row, weight)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, _profile: &Profile) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if !self.draft.is_empty || self.messages.count == 0 {
            self.flush()?;
        }
        self.messages.finish()
    }
}

/// The runtimes of each process, recognized by the files that it mapped.
fn mapped_runtimes(profile: &Profile) -> FxHashMap<Pid, RuntimeSet> {
    let mut mapped: FxHashMap<Pid, RuntimeSet> = FxHashMap::default();
    for (name, module) in &profile.about.modules {
        let set = RuntimeSet::from_files(std::iter::once(&name[..]));
        for range in &module.mapped {
            let runtimes = mapped.entry(range.pid).or_default();
            *runtimes = runtimes.union(set);
        }
    }
    mapped
}

/// Writes finished messages.
struct OutgoingMessages<'o> {
    form: Framing,
    out: Box<dyn Write + 'o>,
    /// The first message, held back until we know whether it is the only one.
    first: Option<Vec<u8>>,
    count: u64,
}

impl OutgoingMessages<'_> {
    /// Writes a message. The first protocol buffer is kept until another one follows or the output ends, because
    /// lengths are only written if there are several messages.
    fn write(&mut self, message: Vec<u8>) -> Result<()> {
        self.count += 1;
        match self.form {
            Framing::Json => {
                json::write(message, &mut self.out)?;
                Ok(self.out.write_all(b"\n")?)
            }
            Framing::Protobuf if self.count == 1 => {
                self.first = Some(message);
                Ok(())
            }
            Framing::Protobuf => {
                if let Some(first) = self.first.take() {
                    write_with_length(&first, &mut self.out)?;
                }
                write_with_length(&message, &mut self.out)
            }
        }
    }

    fn finish(&mut self) -> Result<()> {
        if let Some(only) = self.first.take() {
            self.out.write_all(&only)?;
        }
        Ok(self.out.flush()?)
    }
}
