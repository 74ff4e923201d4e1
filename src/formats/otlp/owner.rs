//! Finds a sample's process, thread and machine, from the attributes of its resource, profile and the sample itself.
//!
//! Attribute names follow the semantic conventions: <https://opentelemetry.io/docs/specs/semconv/registry/attributes/>.

use super::dictionary::{Attribute, Value, entry_at};
use super::labels;
use super::messages::{Dictionary, SampleMessage};
use crate::model::about::About;
use crate::model::stacks::{Profile, Track, TrackId};
use crate::model::{Pid, Tid};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What a resource says about the process and machine of its samples.
#[derive(Debug, Clone, Default)]
pub(super) struct Owner {
    track: Track,
    /// True if the caller wants labels: then samples of different machines stay separate, and attributes for which
    /// [`Track`] has no field become labels.
    keeps_labels: bool,
}

impl Owner {
    /// An owner about which nothing is known yet. With `keeps_labels`, samples of different machines stay separate, and
    /// attributes for which [`Track`] has no field become labels.
    pub(super) fn new(keeps_labels: bool) -> Self {
        let recording = if keeps_labels { Some(Arc::default()) } else { None };
        Self { track: Track { recording, ..Track::default() }, keeps_labels }
    }

    /// The name of the machine; `None` if it is unknown or machines aren't kept apart.
    pub(super) fn host(&self) -> Option<&str> {
        self.track.recording.as_ref()?.host.as_deref()
    }

    /// Adds an attribute of the resource. Facts about the whole recording go into `about`, unless an earlier resource
    /// has stated them.
    pub(super) fn add(&mut self, attribute: &Attribute, dictionary: &Dictionary, about: &mut About) {
        let text = attribute.text().map(|text| &text[..]).filter(|text| !text.is_empty());
        match &attribute.key[..] {
            b"host.name" => {
                set_if_none(&mut about.host, text);
                // A track has a recording only with `keeps_labels`. The recording's host then keeps samples of
                // different machines apart.
                if let Some(recording) = &mut self.track.recording {
                    Arc::make_mut(recording).host = text.map(|text| String::from_utf8_lossy(text).into());
                }
            }
            b"host.arch" => set_if_none(&mut about.arch, text.map(machine)),
            b"os.type" => set_if_none(&mut about.os, text.map(operating_system)),
            b"os.version" => set_if_none(&mut about.os_release, text),
            b"process.command_args" if about.command.is_empty() => {
                about.command = words(&attribute.value, dictionary);
            }
            _ => add_to_track(attribute, self.keeps_labels, &mut self.track),
        }
    }
}

fn set_if_none(fact: &mut Option<Vec<u8>>, text: Option<&[u8]>) {
    if fact.is_none() {
        *fact = text.map(<[u8]>::to_vec);
    }
}

/// Operating systems: the name that `uname -s` prints, and the `os.type` name.
const SYSTEMS: &[(&str, &str)] = &[("Linux", "linux"), ("Darwin", "darwin"), ("Windows", "windows")];

/// Converts an `os.type` name to the name that `uname -s` prints. Unknown names stay as they are.
fn operating_system(os_type: &[u8]) -> &[u8] {
    SYSTEMS.iter().find(|(_, name)| name.as_bytes() == os_type).map_or(os_type, |(system, _)| system.as_bytes())
}

/// Converts the name that `uname -s` prints to an `os.type` name. Unknown names stay as they are.
pub(super) fn os_type(system: &str) -> &str {
    SYSTEMS.iter().find(|(name, _)| *name == system).map_or(system, |(_, os_type)| os_type)
}

/// Processor architectures: the `uname -m` name, and the `host.arch` name.
pub(super) const MACHINES: &[(&str, &str)] =
    &[("x86_64", "amd64"), ("aarch64", "arm64"), ("i686", "x86"), ("armv7l", "arm32"), ("ppc64le", "ppc64")];

/// Converts a `host.arch` name to the `uname -m` name. Unknown names stay as they are.
fn machine(arch: &[u8]) -> &[u8] {
    match MACHINES.iter().find(|(_, name)| name.as_bytes() == arch) {
        Some((machine, _)) => machine.as_bytes(),
        None => arch,
    }
}

/// The texts of a list; empty if the value isn't a list.
fn words(value: &Value, dictionary: &Dictionary) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    if let Value::List(list) = value {
        for element in list {
            if let Value::Text(text) = dictionary.value(element.clone()) {
                words.push(text.to_vec());
            }
        }
    }
    words
}

/// Stores an attribute that describes a process or thread in `track`. With `keeps_labels`, other attributes become
/// labels.
fn add_to_track(attribute: &Attribute, keeps_labels: bool, track: &mut Track) {
    match &attribute.key[..] {
        b"process.pid" => track.pid = id(attribute).map(Pid),
        b"thread.id" => track.tid = id(attribute).map(Tid),
        b"thread.name" => track.comm = attribute.text().map(|text| text.to_vec()).unwrap_or_default(),
        b"cpu.logical_number" => track.cpu = id(attribute).and_then(|cpu| u32::try_from(cpu).ok()),
        _ if keeps_labels => labels::add(attribute, &mut track.labels),
        _ => {}
    }
}

fn id(attribute: &Attribute) -> Option<i32> {
    attribute.number().and_then(|number| i32::try_from(number).ok())
}

/// The threads of a profile's samples, cached by the samples' attributes.
#[derive(Debug)]
pub(super) struct Tracks {
    /// The thread of samples without attributes of their own.
    default: Track,
    keeps_labels: bool,
    /// The threads found so far, by the attribute indices and the link index of their samples.
    known: FxHashMap<(Vec<i32>, i32), TrackId>,
}

impl Tracks {
    /// Starts without any threads. `attributes` are those of the profile.
    pub(super) fn new(owner: &Owner, attributes: impl Iterator<Item = Attribute>) -> Self {
        let mut default = owner.track.clone();
        for attribute in attributes {
            add_to_track(&attribute, owner.keeps_labels, &mut default);
        }
        Self { default, keeps_labels: owner.keeps_labels, known: FxHashMap::default() }
    }

    /// The thread of a sample, which is added to the profile if it is new.
    pub(super) fn track_id(
        &mut self,
        sample: &SampleMessage,
        dictionary: &Dictionary,
        profile: &mut Profile,
    ) -> TrackId {
        // Links become labels only if labels are kept. Otherwise, samples with different links have the same thread.
        let link = if self.keeps_labels { sample.link_index } else { 0 };
        let key = (sample.attribute_indices.clone(), link);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let track = profile.track(self.track(sample, dictionary));
        self.known.insert(key, track);
        track
    }

    /// The process of a sample, if known.
    pub(super) fn pid(&self, sample: &SampleMessage, dictionary: &Dictionary) -> Option<Pid> {
        self.track(sample, dictionary).pid
    }

    /// The thread of a sample: what resource and profile state, overridden by the sample's own attributes.
    fn track(&self, sample: &SampleMessage, dictionary: &Dictionary) -> Track {
        let mut track = self.default.clone();
        for attribute in dictionary.attributes(&sample.attribute_indices) {
            add_to_track(&attribute, self.keeps_labels, &mut track);
        }
        if self.keeps_labels
            && let Some(link) = entry_at(&dictionary.link_table, sample.link_index)
        {
            labels::add_link(link, &mut track.labels);
        }
        track
    }
}
