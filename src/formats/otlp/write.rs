//! Rows → messages, each small enough for a Collector, with a dictionary of its own.
//!
//! A process is a resource, an event of it a profile; a stack of a thread is a sample with a value for each time. Sums
//! have no times, or those of their stretches, and a second profile shows how many samples they are of.

use super::draft::{Draft, Identity, Observation, Slot, Tables, Which, scope};
use super::framing::behind_length;
use super::json;
use super::labels;
use super::messages::{number, text};
use super::places::Places;
use super::resource::{Described, resource};
use crate::contract::options::WriteOptions;
use crate::contract::rows::{RowOrigin, RowWriter, WrittenNames, clamp, stretch_of};
use crate::error::Result;
use crate::model::Pid;
use crate::model::stacks::{Frame, Profile, Row, Track, TrackId, Weight};
use crate::runtimes::RuntimeSet;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io::Write;

/// No message is longer, unless one sample of it is: gRPC, by which collectors take them, has a limit of 4 MiB.
const LONGEST: usize = 4_000_000;

/// The way that messages follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// One as it is; of several, each behind its length, as the Collector's `file` exporter has them.
    Protobuf,
    /// One a line.
    Json,
}

/// Writes rows as messages.
pub(super) struct OtlpWriter<'o> {
    messages: OutgoingMessages<'o>,
    bucket: Option<i64>,
    draft: Draft,
    input: WrittenInput,
}

/// The places of an input's rows in the message.
#[derive(Debug, Default)]
struct WrittenInput {
    described: Described,
    names: WrittenNames,
    /// The runtimes of processes, by what they have mapped.
    mapped: Option<FxHashMap<Pid, RuntimeSet>>,
    /// True if a message contains the number of lost samples.
    tells_lost: bool,
    known: InMessage,
}

/// A process, and the attributes of its resource.
type ResourceKey = (Option<Pid>, BTreeMap<Box<str>, Box<str>>);

/// The parts of an input that the current message contains.
#[derive(Debug, Default)]
struct InMessage {
    places: Places,
    resources: FxHashMap<ResourceKey, usize>,
    slots: FxHashMap<(usize, usize, bool), Slot>,
    owners: FxHashMap<TrackId, Owner>,
}

/// The resource, the attributes and the link of a thread's samples.
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

    fn row(&mut self, profile: &Profile, series: usize, row: &Row, weight: i64) -> Result<()> {
        let track = profile.track_of(row.track);
        let runtimes = track.pid.map_or_else(RuntimeSet::default, |pid| self.input.runtimes(pid, profile));
        if !self.draft.is_empty && self.draft.len() + self.input.cost(profile, row, runtimes) > LONGEST {
            self.flush()?;
        }
        let (draft, input) = (&mut self.draft, &mut self.input);
        let stack = input.known.places.stack((row.stack, runtimes), (profile, &input.names), &mut draft.tables);
        let Owner { resource, attributes, link } = input.owner(row.track, profile, draft);
        let identity = Identity { stack, attributes, link };
        let slot = *input
            .known
            .slots
            .entry((resource, series, row.time.is_some()))
            .or_insert_with(|| draft.profile(resource, &profile.series[series], row.time.is_some()));
        let time = row.time.map(|time| {
            let epoch = input.described.epoch();
            let own = match self.bucket {
                Some(bucket) => stretch_of(clamp(time.0), bucket, epoch).into(),
                None => i128::from(time.0),
            };
            u64::try_from((own + epoch.unwrap_or(0)).max(0)).unwrap_or(u64::MAX)
        });
        let one = Observation { weight, count: clamp(row.count), time };
        draft.observe(slot, &identity, one, self.bucket.is_some());
        Ok(())
    }

    /// The message is whole.
    fn flush(&mut self) -> Result<()> {
        let draft = std::mem::replace(&mut self.draft, Draft::new());
        // No message refers to another one.
        self.input.known = InMessage::default();
        self.messages.write(draft.encode())
    }
}

impl WrittenInput {
    /// The runtimes of a process, by what it has mapped, or what those had that it was forked from.
    fn runtimes(&mut self, pid: Pid, profile: &Profile) -> RuntimeSet {
        let mapped = self.mapped.get_or_insert_with(|| mapped(profile));
        let set = profile.about.lineage(pid).find_map(|pid| mapped.get(&pid).copied());
        set.unwrap_or_default()
    }

    /// The owner of a thread's samples.
    fn owner(&mut self, id: TrackId, profile: &Profile, draft: &mut Draft) -> Owner {
        if let Some(owner) = self.known.owners.get(&id) {
            return owner.clone();
        }
        let track = profile.track_of(id);
        let owner = Owner {
            resource: self.resource(track, profile, draft),
            attributes: attributes(track, &mut draft.tables),
            link: labels::link(&track.labels).map_or(0, |link| draft.tables.message(Which::Links, &link)),
        };
        self.known.owners.insert(id, owner.clone());
        owner
    }

    /// The resource of a thread's process.
    fn resource(&mut self, track: &Track, profile: &Profile, draft: &mut Draft) -> usize {
        let attributes = self.described.attributes(track);
        let Self { described, tells_lost, known, .. } = self;
        *known.resources.entry((track.pid, attributes.clone())).or_insert_with(|| {
            let executable = track.pid.and_then(|pid| profile.about.executable(pid, &track.comm));
            let lost = if std::mem::replace(tells_lost, true) { 0 } else { profile.about.lost };
            let scope = scope(profile, described.epoch().is_some(), lost);
            draft.resource(&resource(described, track, executable, &attributes), &scope)
        })
    }

    /// The number of bytes that a row needs at most.
    fn cost(&self, profile: &Profile, row: &Row, runtimes: RuntimeSet) -> usize {
        /// The numbers of a frame, a mapping and their attributes.
        const OF_FRAME: usize = 400;
        /// The resource, the scope, the profile and the sample.
        const OF_ROW: usize = 4000;
        let labels = profile.track_of(row.track).labels.iter().flat_map(|labels| &**labels);
        let of_row = OF_ROW + labels.map(|(key, value)| 2 * (key.len() + value.len())).sum::<usize>();
        if self.known.places.has(row.stack, runtimes) {
            return of_row;
        }
        let len = |name| profile.name_of(name).len();
        let frames = profile.frames_up(row.stack).map(|frame| profile.frame_of(frame));
        // A value that is not text becomes text, and is three times as long.
        let texts = |frame: &Frame| {
            OF_FRAME + 3 * (2 * len(frame.name) + frame.module.map_or(0, len) + frame.file.map_or(0, len))
        };
        of_row + frames.map(texts).sum::<usize>()
    }
}

/// The attributes of the samples of a thread, without those of its process.
fn attributes(track: &Track, tables: &mut Tables) -> Vec<i32> {
    let name = (!track.comm.is_empty()).then(|| text(String::from_utf8_lossy(&track.comm)));
    let own = [
        ("thread.name", name),
        ("thread.id", track.tid.map(|tid| number(tid.0.into()))),
        ("cpu.logical_number", track.cpu.map(|cpu| number(cpu.into()))),
    ];
    // No attribute may be there twice.
    let is_label = |key: &str| track.labels.as_ref().is_some_and(|labels| labels.contains_key(key));
    let own = own.into_iter().filter(|(key, _)| !is_label(key)).filter_map(|(key, value)| Some((key, value?)));
    let is_linked = labels::link(&track.labels).is_some();
    let is_elsewhere = |key: &str| labels::is_of_resource(key) || is_linked && labels::is_of_link(key);
    let labels = track.labels.iter().flat_map(|labels| &**labels).filter(|(key, _)| !is_elsewhere(key));
    let labels = labels.map(|(key, label)| (&**key, labels::value(key, label)));
    own.chain(labels).map(|(key, value)| tables.attribute(key, value)).collect()
}

impl RowWriter for OtlpWriter<'_> {
    fn begin(&mut self, origin: RowOrigin, profile: &Profile) -> Result<()> {
        let described = Described::new(origin.recording, origin.labels, &profile.about);
        let names = WrittenNames::new(origin.jit_names, profile);
        self.input = WrittenInput { described, names, ..WrittenInput::default() };
        Ok(())
    }

    fn rows(&mut self, profile: &Profile) -> Result<()> {
        for (at, series) in profile.series.iter().enumerate() {
            series.signed_rows(Weight::Period).try_for_each(|(row, weight)| self.row(profile, at, row, weight))?;
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

fn mapped(profile: &Profile) -> FxHashMap<Pid, RuntimeSet> {
    let mut mapped: FxHashMap<Pid, RuntimeSet> = FxHashMap::default();
    for (name, module) in &profile.about.modules {
        let set = RuntimeSet::of_files(std::iter::once(&name[..]));
        for range in &module.mapped {
            let of = mapped.entry(range.pid).or_default();
            *of = of.with(set);
        }
    }
    mapped
}

/// Messages on their way out.
struct OutgoingMessages<'o> {
    form: Framing,
    out: Box<dyn Write + 'o>,
    /// The first, until it is known whether it is the only one.
    first: Option<Vec<u8>>,
    count: u64,
}

impl OutgoingMessages<'_> {
    fn write(&mut self, message: Vec<u8>) -> Result<()> {
        self.count += 1;
        match self.form {
            Framing::Json => {
                json::write(&message, &mut self.out)?;
                Ok(self.out.write_all(b"\n")?)
            }
            Framing::Protobuf if self.count == 1 => {
                self.first = Some(message);
                Ok(())
            }
            Framing::Protobuf => {
                if let Some(first) = self.first.take() {
                    behind_length(&first, &mut self.out)?;
                }
                behind_length(&message, &mut self.out)
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
