//! Describes a process as a resource, with the attribute names of the semantic conventions.

use super::labels::{self, attribute_name, describes_resource};
use super::messages::{AnyValue, ArrayValue, Resource, attribute, number, text};
use super::owner::{MACHINES, os_type};
use crate::contract::rows::command_line;
use crate::model::about::About;
use crate::model::mapping_kind::base_name;
use crate::model::recorded::{Labels, Recording};
use crate::model::stacks::Track;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What is known about a recording, for the resources of its processes.
#[derive(Debug, Default)]
pub(super) struct RecordingFacts {
    recording: Recording,
    /// Holds only the recorded command and the operating system.
    about: About,
    /// Labels of the whole recording, as opposed to a thread.
    labels: Labels,
}

impl RecordingFacts {
    /// Describes a recording. The command is that of `about`, unless `about` is from a profile with several recordings
    /// and states the command of another one. In that case, the words of the command are guessed: the recording's whole
    /// command line is split at blanks.
    pub(super) fn new(recording: Recording, labels: Labels, about: &About) -> Self {
        let command = if recording.command == command_line(&about.command) {
            about.command.clone()
        } else {
            let words = recording.command.as_deref().unwrap_or_default().split(' ').filter(|word| !word.is_empty());
            words.map(|word| word.as_bytes().to_vec()).collect()
        };
        // The operating system is only in `about`; a `Recording` has no field for it.
        let about = About { command, os: about.os.clone(), ..About::default() };
        Self { recording, about, labels }
    }

    /// The wall clock's time when the recording's clock was 0, in nanoseconds since 1970; `None` if unknown.
    pub(super) fn epoch(&self) -> Option<i128> {
        self.recording.epoch.map(i128::from)
    }

    /// The resource attributes that come from labels: all labels of the recording, and those labels of a thread that
    /// describe its process, service or machine.
    pub(super) fn attributes(&self, track: &Track) -> BTreeMap<Box<str>, Box<str>> {
        let of_recording = self.labels.iter().flat_map(|labels| &**labels);
        let of_thread = track.labels.iter().flat_map(|labels| &**labels).filter(|(key, _)| describes_resource(key));
        of_recording.chain(of_thread).map(|(key, value)| (attribute_name(key).into(), value.clone())).collect()
    }
}

/// The resource for a thread's process. `executable` is the path of the process's program. `labels` become attributes
/// of the resource. Keys must be unique: a label replaces an attribute of the same key that comes from the recording.
pub(super) fn resource(
    facts: &RecordingFacts,
    track: &Track,
    executable: Option<&[u8]>,
    labels: &BTreeMap<Box<str>, Box<str>>,
) -> Resource {
    let (recording, comm) = (&facts.recording, &*track.comm);
    let executable = executable.map(lossy);
    let program = facts.about.program();
    let command = program.first().map(|path| base_name(path));
    let executable_name = executable.as_deref().map(|path| lossy(base_name(path.as_bytes())).into_owned());
    // Every resource needs a service name. The best one is the recorded command, then the process's own program, then
    // the name of the thread.
    let service = match (command, &executable_name) {
        (Some(command), _) => lossy(command).into_owned(),
        (None, Some(name)) => name.clone(),
        (None, None) if !comm.is_empty() => lossy(comm).into_owned(),
        // The specification's name for an unknown service.
        (None, None) => "unknown_service".to_owned(),
    };
    // Only a process that runs the recorded program gets the recorded arguments. Others, such as child processes, were
    // started with other arguments.
    let runs_recorded_program = command.is_some() && command.map(lossy).as_deref() == executable_name.as_deref();
    let derived: [(&str, Option<AnyValue>); 9] = [
        ("service.name", Some(text(service))),
        ("host.name", recording.host.as_deref().map(text)),
        ("host.arch", recording.arch.as_deref().map(|machine| text(arch(machine)))),
        ("os.type", facts.about.os.as_deref().map(|os| text(os_type(&lossy(os))))),
        ("os.version", recording.kernel.as_deref().map(text)),
        ("process.pid", track.pid.map(|pid| number(pid.0.into()))),
        ("process.executable.name", executable_name.map(text)),
        ("process.executable.path", executable.map(text)),
        ("process.command_args", runs_recorded_program.then(|| words(program))),
    ];
    let mut attributes = Vec::new();
    for (key, value) in derived {
        if let Some(value) = value
            && !labels.contains_key(key)
        {
            attributes.push(attribute(key, &value));
        }
    }
    attributes.extend(labels.iter().map(|(key, label)| attribute(key, &labels::value(key, label))));
    Resource { attributes, ..Resource::default() }
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Converts a `uname -m` name to the `host.arch` name. Unknown names stay as they are.
fn arch(machine: &str) -> &str {
    MACHINES.iter().find(|(name, _)| *name == machine).map_or(machine, |(_, arch)| arch)
}

fn words(words: &[Vec<u8>]) -> AnyValue {
    let values = words.iter().map(|word| text(lossy(word))).collect();
    AnyValue { array_value: Some(ArrayValue { values }), ..AnyValue::default() }
}
