//! The machine on which a recording was made, and whether it is this machine.

use crate::jit::is_this_machine;
use crate::model::abi::{EM_386, EM_X86_64, HOST_MACHINE, machine_name};
use crate::model::printable::readable;
use crate::pipeline::recording::Survey;
use crate::pipeline::recording::survey::host;

/// The machine on which a recording was made, as far as the recording states it. `None` means unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// The processor architecture, as in ELF's `e_machine`.
    pub(super) machine: Option<u16>,
    /// The kernel release, such as `6.1.0`.
    pub(super) os_release: Option<String>,
    /// The host name.
    pub(super) host: Option<String>,
    /// True unless the host name or the architecture shows that the recording is from another machine.
    pub(super) is_here: bool,
}

impl Origin {
    /// Reads the description of the machine from a recording's headers.
    pub(super) fn from_survey(survey: &Survey<'_>) -> Self {
        let machine = survey.processes.machine;
        let host = host(survey.recording);
        let os_release = survey.processes.os_release.as_deref();
        Self {
            machine,
            os_release: os_release.map(|release| readable(release).into_owned()),
            host: host.map(|host| readable(host).into_owned()),
            is_here: is_this_machine(host) && machine.is_none_or(can_run_here),
        }
    }

    /// A sentence that says on which machine the recording was made, and on which kind of machine it is read. `None` if
    /// both are this machine.
    pub(super) fn sentence(&self) -> Option<String> {
        if self.is_here {
            return None;
        }
        let mut details = Vec::new();
        details.extend(self.os_release.as_ref().map(|release| format!("Linux {release}")));
        details.extend(self.host.as_ref().map(|host| format!("host {host}")));
        let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
        let machine = self.machine.map_or_else(|| "another machine".to_owned(), machine_name);
        Some(format!("recorded on {machine}{details}, read on {}", machine_name(HOST_MACHINE)))
    }
}

/// True if this machine can run programs of this architecture (ELF's `e_machine`).
fn can_run_here(machine: u16) -> bool {
    machine == HOST_MACHINE || (machine, HOST_MACHINE) == (EM_386, EM_X86_64)
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
