//! The machine on which a recording was made, and whether it is this machine.

use crate::model::abi::{EM_386, EM_X86_64, HOST_MACHINE, machine_name};
use crate::model::printable::readable;
use crate::pipeline::recording::Survey;
use crate::pipeline::recording::survey::host;
use crate::sources::is_this_machine;

/// What a recording says about its machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// The processor architecture, as in ELF's `e_machine`.
    pub(super) machine: Option<u16>,
    /// The kernel release, such as `6.1.0`.
    pub(super) os_release: Option<String>,
    /// The host name.
    pub(super) host: Option<String>,
    /// True unless the host name or the architecture shows that it was another machine.
    pub(super) is_here: bool,
}

impl Origin {
    pub(super) fn of(survey: &Survey<'_>) -> Self {
        let (machine, host) = (survey.processes.machine, host(survey.recording));
        let text = |text: &[u8]| readable(text).into_owned();
        let can_run = |machine: u16| machine == HOST_MACHINE || (machine, HOST_MACHINE) == (EM_386, EM_X86_64);
        let is_here = is_this_machine(host) && machine.is_none_or(can_run);
        Self { machine, os_release: survey.processes.os_release.as_deref().map(text), host: host.map(text), is_here }
    }

    /// Names the recorded machine and this one, for a person. `None` if the recording was made here.
    pub(super) fn sentence(&self) -> Option<String> {
        let system = self.os_release.as_ref().map(|release| format!("Linux {release}"));
        let host = self.host.as_ref().map(|host| format!("host {host}"));
        let about: Vec<String> = system.into_iter().chain(host).collect();
        let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
        let machine = self.machine.map_or_else(|| "another machine".to_owned(), machine_name);
        (!self.is_here).then(|| format!("recorded on {machine}{about}, read on {}", machine_name(HOST_MACHINE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_of_a_recording_is_printed_in_names() {
        let elsewhere = |machine, host: Option<&str>| Origin {
            machine,
            os_release: Some("6.1.0".into()),
            host: host.map(str::to_owned),
            is_here: false,
        };
        let here = machine_name(HOST_MACHINE);
        let sentence = elsewhere(Some(183), Some("qemu")).sentence().unwrap();
        assert_eq!(sentence, format!("recorded on aarch64 (Linux 6.1.0, host qemu), read on {here}"));
        let sentence = elsewhere(None, None).sentence().unwrap();
        assert_eq!(sentence, format!("recorded on another machine (Linux 6.1.0), read on {here}"));
        assert_eq!(Origin { is_here: true, ..elsewhere(None, None) }.sentence(), None);
    }
}
