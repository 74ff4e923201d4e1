//! The texts about files that ran.

use super::entry::{ANY, MUCH, ProblemText, SOME};
use super::text::{have, is, was};
use crate::diagnosis::problem::NamedFile;
use crate::model::Pid;
use crate::resolve::symbols::no_elf::NoElf;
use crate::runtimes::Runtime;

pub(super) fn gone(files: &[NamedFile], same_machine: bool, container: Option<Pid>) -> ProblemText {
    let is_deleted = files.iter().all(|file| file.path.ends_with(" (deleted)"));
    let cause = match (is_deleted, same_machine) {
        (true, _) => format!("{} deleted or replaced while it ran", was(files)),
        (false, true) => format!("{} deleted or moved since it ran", was(files)),
        (false, false) => format!("{} not here", is(files)),
    };
    let remedy = match (container, is_deleted, same_machine) {
        (Some(_), ..) => "they are in a container: pass its root with --symfs DIR (while it runs /proc/PID/root)",
        (_, true, _) => "do not build while it is recorded; start the new version, and record that",
        (.., true) => {
            "put back what ran, or give the directory that holds it at the recorded path: --symfs DIR; or record again"
        }
        _ => {
            "pack the recording there with all that it needs, and read the archive here: jitgraft pack perf.data; or give that \
             machine's root: --symfs DIR"
        }
    };
    ProblemText {
        key: "files-missing",
        about: "files that ran are not here: deleted, of another machine, in a container",
        threshold: ANY,
        cause,
        remedy: remedy.to_owned(),
    }
}

fn build_id(files: &[NamedFile]) -> &str {
    files.iter().find_map(|file| file.build_id.as_deref()).unwrap_or("BUILD-ID")
}

pub(super) fn other_version(files: &[NamedFile]) -> ProblemText {
    ProblemText {
        key: "other-version",
        about: "files that ran are here in another version",
        threshold: ANY,
        cause: format!("{} here in another version than the one that ran", is(files)),
        remedy: format!(
            "find the version that ran (perf archive on the recorded machine, or debuginfod-find executable {}), and put it into ~/.debug or pass its root with --symfs DIR; or record again",
            build_id(files)
        ),
    }
}

pub(super) fn not_elf(files: &[NamedFile], what: NoElf, runtime: Option<&'static Runtime>) -> ProblemText {
    let (kind, each) = if files.len() == 1 { ("an ELF file", "") } else { ("ELF files", "each ") };
    let unnamed = runtime.map(|runtime| runtime.unnamed).filter(|unnamed| !unnamed.is_empty());
    let remedy = match (unnamed, what) {
        (Some(unnamed), _) => unnamed,
        (None, NoElf::DotNet) => {
            "run with DOTNET_PerfMapEnabled=1 DOTNET_ReadyToRun=0 (before .NET 6 COMPlus_…) in the environment: its code is then compiled at run time and reported to perf"
        }
        (None, _) => "only what made them can name their code: it may write a perf map or a jitdump",
    };
    ProblemText {
        key: "not-elf",
        about: "code ran in files of a format that is not read: SBCL's core, .NET's PE",
        threshold: ANY,
        cause: format!("{} not {kind} ({each}{}): no symbols can be read", is(files), what.name()),
        remedy: remedy.to_owned(),
    }
}

pub(super) fn stripped(files: &[NamedFile]) -> ProblemText {
    ProblemText {
        key: "stripped",
        about: "a program of one's own has no symbols",
        threshold: ANY,
        cause: format!("{} built without symbols, or stripped of them", was(files)),
        remedy: "build with -g (Rust: debug = true in the profile), do not strip (no -s), and record that; or keep the file with \
                 the symbols beside it (objcopy --add-gnu-debuglink) or pass its directory with --debug-dir"
            .to_owned(),
    }
}

pub(super) fn stripped_packages(files: &[NamedFile]) -> ProblemText {
    ProblemText {
        key: "stripped-packages",
        about: "programs and libraries of packages have no symbols",
        threshold: SOME,
        cause: format!("{} stripped: only the symbols for linking are left", is(files)),
        remedy: format!(
            "install the debugging symbols of these (Debian: the packages' -dbgsym), or fetch them by build ID (debuginfod-find \
             debuginfo {}) and pass their directory with --debug-dir",
            build_id(files)
        ),
    }
}

pub(super) fn symbolless(files: &[NamedFile]) -> ProblemText {
    ProblemText {
        key: "no-symbol-there",
        about: "a file has symbols, and none at addresses that ran",
        threshold: MUCH,
        cause: format!("{} no symbol at some addresses", have(files)),
        remedy:
            "padding, or code that its authors gave no symbol: debugging information may contain more (--debug-dir DIR)"
                .to_owned(),
    }
}
