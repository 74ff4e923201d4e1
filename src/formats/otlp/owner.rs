//! Finds a sample's process, thread and machine, from the attributes of its resource, profile and the sample itself.
//!
//! Attribute names follow the semantic conventions: <https://opentelemetry.io/docs/specs/semconv/registry/attributes/>.

use super::dictionary::{Attribute, Dictionary, Value, at_place};
use super::labels;
use super::message::Sample;
use crate::bytes::protobuf::{FieldValue, inner};
use crate::model::about::About;
use crate::model::stacks::{Profile, Track, TrackId};
use crate::model::{Pid, Tid};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What a resource says about the process and machine of its samples.
#[derive(Debug, Clone, Default)]
pub(super) struct Owner {
    track: Track,
    /// See [`Owner::new`].
    apart: bool,
}

impl Owner {
    /// An owner without any facts. With `apart`, attributes that have no field of their own become labels, and samples
    /// of different machines stay separate.
    pub(super) fn new(apart: bool) -> Self {
        let recording = apart.then(Arc::default);
        Self { track: Track { recording, ..Track::default() }, apart }
    }

    /// The name of the machine; `None` unless machines are kept apart.
    pub(super) fn host(&self) -> Option<&str> {
        self.track.recording.as_ref()?.host.as_deref()
    }

    /// Adds an attribute of the resource. Facts about the whole recording go into `about`; the first resource that
    /// states one wins.
    pub(super) fn add(&mut self, attribute: &Attribute<'_>, dictionary: &Dictionary<'_>, about: &mut About) {
        let text = attribute.text().filter(|text| !text.is_empty());
        let tell = |to: &mut Option<Vec<u8>>| *to = to.take().or(text.map(<[u8]>::to_vec));
        match attribute.key {
            b"host.name" => {
                tell(&mut about.host);
                if let Some(recording) = &mut self.track.recording {
                    Arc::make_mut(recording).host = text.map(|text| String::from_utf8_lossy(text).into());
                }
            }
            b"host.arch" => about.arch = about.arch.take().or(text.map(|word| machine(word).to_vec())),
            b"os.version" => tell(&mut about.os_release),
            b"process.command_args" if about.command.is_empty() => about.command = words(attribute.value, dictionary),
            _ => take(attribute, self.apart, &mut self.track),
        }
    }
}

/// Processor architectures: the `uname -m` name, and the `host.arch` name.
pub(super) const MACHINES: &[(&str, &str)] =
    &[("x86_64", "amd64"), ("aarch64", "arm64"), ("i686", "x86"), ("armv7l", "arm32"), ("ppc64le", "ppc64")];

/// Converts a `host.arch` name to the `uname -m` name. Unknown names stay as they are.
fn machine(arch: &[u8]) -> &[u8] {
    MACHINES.iter().find(|(_, of)| of.as_bytes() == arch).map_or(arch, |(machine, _)| machine.as_bytes())
}

fn words(value: Value<'_>, dictionary: &Dictionary<'_>) -> Vec<Vec<u8>> {
    let Value::List(list) = value else { return Vec::new() };
    let values = inner(list).filter(|(tag, _)| *tag == 1).map(|(_, value)| dictionary.value(value.bytes()));
    values.filter_map(|value| if let Value::Text(text) = value { Some(text.to_vec()) } else { None }).collect()
}

/// Stores an attribute that describes a process or thread in `track`. With `apart`, other attributes become labels.
fn take(attribute: &Attribute<'_>, apart: bool, track: &mut Track) {
    let id = || attribute.number().and_then(|number| i32::try_from(number).ok());
    match attribute.key {
        b"process.pid" => track.pid = id().map(Pid),
        b"thread.id" => track.tid = id().map(Tid),
        b"thread.name" => track.comm = attribute.text().unwrap_or_default().to_vec(),
        b"cpu.logical_number" => track.cpu = id().and_then(|cpu| u32::try_from(cpu).ok()),
        _ if apart => labels::add(attribute, &mut track.labels),
        _ => {}
    }
}

/// The threads of a profile's samples, cached by the samples' attributes.
#[derive(Debug)]
pub(super) struct Tracks<'d> {
    usual: Track,
    apart: bool,
    /// By attribute list and link index.
    known: FxHashMap<(FieldValue<'d>, u64), TrackId>,
}

impl<'d> Tracks<'d> {
    pub(super) fn of<'a>(owner: &Owner, attributes: impl Iterator<Item = Attribute<'a>>) -> Self {
        let mut usual = owner.track.clone();
        attributes.for_each(|attribute| take(&attribute, owner.apart, &mut usual));
        Self { usual, apart: owner.apart, known: FxHashMap::default() }
    }

    pub(super) fn of_sample(
        &mut self,
        sample: &Sample<'d>,
        dictionary: &Dictionary<'_>,
        profile: &mut Profile,
    ) -> TrackId {
        let link = if self.apart { sample.link } else { 0 };
        let new = |tracks: &Self, profile: &mut Profile| profile.track(tracks.track(sample, dictionary));
        // Encoders pack the attribute indices into one field; only this case is cached.
        let [field] = sample.attributes[..] else { return new(self, profile) };
        if let Some(&known) = self.known.get(&(field, link)) {
            return known;
        }
        let track = new(self, profile);
        self.known.insert((field, link), track);
        track
    }

    /// The process of a sample, if known.
    pub(super) fn pid(&self, sample: &Sample<'d>, dictionary: &Dictionary<'_>) -> Option<Pid> {
        self.track(sample, dictionary).pid
    }

    /// The thread of a sample: what resource and profile state, overridden by the sample's own attributes.
    fn track(&self, sample: &Sample<'_>, dictionary: &Dictionary<'_>) -> Track {
        let mut track = self.usual.clone();
        let places = sample.attributes.iter().flat_map(|field| field.numbers());
        dictionary.attributes(places).for_each(|attribute| take(&attribute, self.apart, &mut track));
        if let Some(link) = at_place(&dictionary.links, sample.link).filter(|_| self.apart) {
            labels::add_link(link, &mut track.labels);
        }
        track
    }
}
