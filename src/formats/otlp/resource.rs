//! The facts about a process: the attributes of its resource, by the names of the semantic conventions.

use super::messages::{AnyValue, KeyValueMessage, ListMessage, ResourceMessage, ValueMessage, attribute, number, text};
use super::owner::MACHINES;
use crate::model::Pid;
use crate::model::about::About;
use crate::model::backing::base_name;
use std::borrow::Cow;

/// The resource of a process; `comm` is the name of a thread of it.
pub(super) fn resource(about: &About, pid: Option<Pid>, comm: &[u8]) -> ResourceMessage {
    let executable = pid.and_then(|pid| about.executable(pid, comm)).map(lossy);
    let program = about.program();
    let command = program.first().map(|path| base_name(path));
    let executable_name = executable.as_deref().map(|path| lossy(base_name(path.as_bytes())).into_owned());
    let service = command.map(|name| lossy(name).into_owned()).or_else(|| executable_name.clone());
    let service = service.or_else(|| (!comm.is_empty()).then(|| lossy(comm).into_owned()));
    let is_the_program = command.is_some() && command.map(lossy).as_deref() == executable_name.as_deref();
    let machine = about.arch.as_deref().map(lossy).map(|machine| arch(&machine).to_owned());
    let of_text = |key: &str, value: Option<String>| value.map(|value| attribute(key, text(value)));
    let attributes: [Option<KeyValueMessage>; 9] = [
        // The name that the specification has for what is not known.
        of_text("service.name", Some(service.unwrap_or_else(|| "unknown_service".to_owned()))),
        of_text("host.name", about.host.as_deref().map(|host| lossy(host).into_owned())),
        of_text("host.arch", machine),
        of_text("os.type", about.os_release.is_some().then(|| "linux".to_owned())),
        of_text("os.version", about.os_release.as_deref().map(|release| lossy(release).into_owned())),
        pid.map(|pid| attribute("process.pid", number(pid.0.into()))),
        of_text("process.executable.name", executable_name),
        of_text("process.executable.path", executable.map(Cow::into_owned)),
        is_the_program.then(|| attribute("process.command_args", words(program))),
    ];
    ResourceMessage { attributes: attributes.into_iter().flatten().collect() }
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The `host.arch` for the output of `uname -m`.
fn arch(machine: &str) -> &str {
    MACHINES.iter().find(|(of, _)| *of == machine).map_or(machine, |(_, arch)| arch)
}

fn words(words: &[Vec<u8>]) -> ValueMessage {
    let values = words.iter().map(|word| text(lossy(word))).collect();
    ValueMessage { value: Some(AnyValue::List(ListMessage { values })) }
}
