//! The process of a sample: attributes of resources, profiles and samples with process, thread and machine.
//!
//! Their names are those of the semantic conventions: <https://opentelemetry.io/docs/specs/semconv/registry/attributes/>.

use super::dictionary::{Attribute, Dictionary, Value};
use super::sample::Sample;
use crate::bytes::protobuf::{FieldValue, inner};
use crate::model::about::About;
use crate::model::stacks::{Profile, Track, TrackId};
use crate::model::{Pid, Tid};
use rustc_hash::FxHashMap;

/// The process and thread that a resource names for its samples.
#[derive(Debug, Clone, Default)]
pub(super) struct Owner {
    track: Track,
}

impl Owner {
    /// Takes an attribute of the resource. A fact about the whole recording is taken from the first resource that
    /// states it.
    pub(super) fn add(&mut self, attribute: &Attribute<'_>, dictionary: &Dictionary<'_>, about: &mut About) {
        let text = attribute.text().filter(|text| !text.is_empty());
        let tell = |to: &mut Option<Vec<u8>>| *to = to.take().or(text.map(<[u8]>::to_vec));
        match attribute.key {
            b"host.name" => tell(&mut about.host),
            b"host.arch" => about.arch = about.arch.take().or(text.map(|word| machine(word).to_vec())),
            b"os.version" => tell(&mut about.os_release),
            b"process.command_args" if about.command.is_empty() => about.command = words(attribute.value, dictionary),
            _ => take(attribute, &mut self.track),
        }
    }
}

/// The processors as `uname -m` calls them and as `host.arch` does.
pub(super) const MACHINES: &[(&str, &str)] =
    &[("x86_64", "amd64"), ("aarch64", "arm64"), ("i686", "x86"), ("armv7l", "arm32"), ("ppc64le", "ppc64")];

/// The name of such a processor in `uname -m`.
fn machine(arch: &[u8]) -> &[u8] {
    MACHINES.iter().find(|(_, of)| of.as_bytes() == arch).map_or(arch, |(machine, _)| machine.as_bytes())
}

fn words(value: Value<'_>, dictionary: &Dictionary<'_>) -> Vec<Vec<u8>> {
    let Value::List(list) = value else { return Vec::new() };
    let values = inner(list).filter(|(tag, _)| *tag == 1).map(|(_, value)| dictionary.value(value.bytes()));
    values.filter_map(|value| if let Value::Text(text) = value { Some(text.to_vec()) } else { None }).collect()
}

/// The part of an attribute that identifies a thread.
fn take(attribute: &Attribute<'_>, track: &mut Track) {
    let id = || attribute.number().and_then(|number| i32::try_from(number).ok());
    match attribute.key {
        b"process.pid" => track.pid = id().map(Pid),
        b"thread.id" => track.tid = id().map(Tid),
        b"thread.name" => track.comm = attribute.text().unwrap_or_default().to_vec(),
        b"cpu.logical_number" => track.cpu = id().and_then(|cpu| u32::try_from(cpu).ok()),
        _ => {}
    }
}

/// The threads of a profile, by the attributes of its samples.
#[derive(Debug)]
pub(super) struct Tracks<'d> {
    usual: Track,
    known: FxHashMap<FieldValue<'d>, TrackId>,
}

impl<'d> Tracks<'d> {
    pub(super) fn of<'a>(owner: &Owner, attributes: impl Iterator<Item = Attribute<'a>>) -> Self {
        let mut usual = owner.track.clone();
        attributes.for_each(|attribute| take(&attribute, &mut usual));
        Self { usual, known: FxHashMap::default() }
    }

    pub(super) fn of_sample(
        &mut self,
        sample: &Sample<'d>,
        dictionary: &Dictionary<'_>,
        profile: &mut Profile,
    ) -> TrackId {
        let usual = &self.usual;
        match sample.attributes[..] {
            // As encoders have them: packed.
            [field] => *self.known.entry(field).or_insert_with(|| profile.track(track(usual, sample, dictionary))),
            _ => profile.track(track(usual, sample, dictionary)),
        }
    }

    /// The process of a sample.
    pub(super) fn pid(&self, sample: &Sample<'d>, dictionary: &Dictionary<'_>) -> Option<Pid> {
        track(&self.usual, sample, dictionary).pid
    }
}

/// The thread of a sample, by what is usual and by its own attributes.
fn track(usual: &Track, sample: &Sample<'_>, dictionary: &Dictionary<'_>) -> Track {
    let mut track = usual.clone();
    let places = sample.attributes.iter().flat_map(|field| field.numbers());
    dictionary.attributes(places).for_each(|attribute| take(&attribute, &mut track));
    track
}
