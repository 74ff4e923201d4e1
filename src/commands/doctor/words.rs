//! What is said of a problem. All names in it are printable.

use super::problem::{NamedFile, Problem, SourceFile, Who};
use crate::model::Pid;
use crate::model::printable::readable;
use crate::sources::{Account, ClockUse, Kind, SourceState};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What is wrong.
pub(super) fn cause(problem: &Problem) -> String {
    match problem {
        Problem::NoSamples => "there is no sample in it".to_owned(),
        Problem::FewSamples { samples } => format!("there are only {samples} samples in it: shares are chance"),
        Problem::Damaged { why } => format!("it is damaged: {}", text(why)),
        Problem::Lost { lost } => format!("perf record did not keep up and lost {lost} samples"),
        Problem::NoCallChains => "no call chains were recorded: only the innermost functions are known".to_owned(),
        Problem::Guest => "code of a virtual machine's guest ran".to_owned(),
        Problem::Nowhere { example } => {
            let example = example.map_or_else(String::new, |addr| format!(" (such as {:#x})", addr.0));
            format!("addresses where nothing was mapped{example}")
        }
        Problem::Kernel { hidden: true } => {
            "the kernel's functions have no names: perf record was not shown where the kernel is".to_owned()
        }
        Problem::Kernel { hidden: false } => "the recorded kernel's symbols are not known here".to_owned(),
        Problem::ChainsCut { .. }
        | Problem::TooDeep
        | Problem::CopiesShort { .. }
        | Problem::NotUnwound { .. }
        | Problem::JvmFramePointers { .. }
        | Problem::FramePointers { .. } => of_stacks(problem),
        Problem::FilesGone { .. }
        | Problem::OtherVersion { .. }
        | Problem::NotElf { .. }
        | Problem::Stripped { .. }
        | Problem::StrippedPackages { .. }
        | Problem::Symbolless { .. } => of_files(problem),
        _ => of_jit(problem),
    }
}

fn of_stacks(problem: &Problem) -> String {
    match problem {
        Problem::ChainsCut { limit } => {
            format!("stacks are cut: they have more than the {limit} frames that the kernel was allowed to record")
        }
        Problem::TooDeep => "stacks are cut: they have more frames than are unwound".to_owned(),
        Problem::CopiesShort { bytes } => {
            format!("stacks are cut where their copies end: {bytes} bytes do not hold them")
        }
        Problem::NotUnwound { process, files, in_jit } => {
            let place = if *in_jit { "JIT code".to_owned() } else { list(files) };
            format!("copied stacks of {} cannot be unwound beyond {place}: how to leave it is not known", who(process))
        }
        Problem::JvmFramePointers { process } => {
            format!("stacks of {} break off: its JVM ran without -XX:+PreserveFramePointer", who(process))
        }
        Problem::FramePointers { process, files, in_jit } => {
            let place = if *in_jit { "JIT code".to_owned() } else { list(files) };
            format!("stacks of {} break off in {place}: code without frame pointers", who(process))
        }
        _ => String::new(),
    }
}

fn of_files(problem: &Problem) -> String {
    match problem {
        Problem::FilesGone { files, .. } if files.iter().all(|file| file.path.ends_with(" (deleted)")) => {
            format!("{} deleted or replaced while it ran", was(files))
        }
        Problem::FilesGone { files, same_machine: true, .. } => {
            format!("{} deleted or moved since it ran", was(files))
        }
        Problem::FilesGone { files, .. } => format!("{} not here", is(files)),
        Problem::OtherVersion { files } => format!("{} here in another version than the one that ran", is(files)),
        Problem::NotElf { files, what, .. } => {
            let each = if files.len() == 1 { "" } else { "each " };
            format!("{} no ELF ({each}{}): symbols of such files cannot be read", is(files), what.name())
        }
        Problem::Stripped { files } => format!("{} built without symbols, or stripped of them", was(files)),
        Problem::StrippedPackages { files } => {
            format!("{} stripped: only the symbols for linking are left", is(files))
        }
        Problem::Symbolless { files } => format!("{} no symbol at some addresses", have(files)),
        _ => String::new(),
    }
}

fn of_jit(problem: &Problem) -> String {
    match problem {
        Problem::Clock { source, error: Some(error), .. } => format!(
            "{} has times of another clock than the recording: they are estimated to within {:.1} ms",
            file(&source.path),
            *error as f64 / 1e6
        ),
        Problem::Clock { source, error: None, .. } => format!(
            "{} has times of another clock than the recording: they cannot be used, and code that moved has wrong names",
            file(&source.path)
        ),
        Problem::Doubtful { source, error, .. } => format!(
            "{} of {} frames that {} names are at addresses that had other code, too, {}",
            source.doubtful,
            source.covered,
            file(&source.path),
            match error {
                Some(error) => format!("within {:.1} ms: so well are its times known", *error as f64 / 1e6),
                None => "at some time: nobody knows how well its times are known".to_owned(),
            }
        ),
        Problem::Silent { process, .. } => {
            format!("JIT code of {} has no names: there is no jitdump and no perf map of it", who(process))
        }
        Problem::SilentUnderValgrind { process, .. } => format!(
            "JIT code of {} has no names: there is no perf-{pid}.map and no jit-{pid}.dump beside it or in /tmp",
            who(process),
            pid = number(process.pid)
        ),
        Problem::NotNamedYet { process, .. } => {
            format!("JIT code of {} has no names in it, but they are there", who(process))
        }
        Problem::NoInstructions { process } => format!(
            "it has no instruction addresses: JIT code of {} is known by where it was entered only",
            who(process)
        ),
        Problem::NotWritten { process, word, leaves } => {
            format!("{} was told to leave {leaves} ({word}), and there is none", who(process))
        }
        Problem::Missing { process, path, .. } => {
            format!("JIT code of {} has no names: its jitdump {} is gone", who(process), file(path))
        }
        Problem::OtherProcess { process, path, kind, of, .. } => {
            format!("JIT code of {} has no names: the {} {} is of process {of}", who(process), kind.name(), file(path))
        }
        Problem::Refused { process, path, kind, why } => format!(
            "JIT code of {} has no names: its {} {} is not used: {}",
            who(process),
            kind.name(),
            file(path),
            text(why)
        ),
        Problem::Empty { process, source } => {
            format!("JIT code of {} has no names: {} tells of no code", who(process), file(&source.path))
        }
        Problem::Torn { process, source, skipped, at_end } => {
            let unit = if source.kind == Kind::PerfMap { "line" } else { "record" };
            let fault = match (*at_end, *skipped) {
                (true, 0 | 1) => format!("ends in the middle of a {unit}"),
                (true, more) => format!("has {more} damaged {unit}s, and ends in the middle of one"),
                (false, 1) => format!("has a damaged {unit}, and may lack what followed"),
                (false, more) => format!("has {more} damaged {unit}s, and may lack what followed"),
            };
            format!("{} of {} {fault}: {}", file(&source.path), who(process), covers(source))
        }
        Problem::OtherRun { process, source } => format!(
            "{} is not of this run of {}: it tells of memory that the process did not have",
            file(&source.path),
            who(process)
        ),
        Problem::EndsEarly { process, source, before } => format!(
            "{} ends {:.1} s before {} does: {}",
            file(&source.path),
            *before as f64 / 1e9,
            who(process),
            covers(source)
        ),
        Problem::Incomplete { process, source } => {
            format!("{} does not tell of all code of {}: {}", file(&source.path), who(process), covers(source))
        }
        Problem::ImagesGone { process, path, count } => {
            let more = if *count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            format!("names were injected for {}, but their images are gone: {}{more}", who(process), file(path))
        }
        Problem::Interpreted { process, too_old, .. } => {
            let version = too_old.as_ref().map_or_else(String::new, |version| format!(" {version}"));
            let runtime = process.runtime.map_or("its runtime", |runtime| runtime.name);
            format!("{} interpreted its program: of its functions {runtime}{version} told perf nothing", who(process))
        }
        _ => String::new(),
    }
}

/// A process in words.
pub(super) fn who(process: &Who) -> String {
    let runtime = process.runtime.map_or_else(String::new, |runtime| format!(", {}", runtime.name));
    format!("process {} ({}{runtime})", process.pid, text(&process.comm))
}

/// What became of a dump or map.
pub(super) fn source(account: &Account, covered: Option<SourceFile>) -> String {
    let state = match &account.state {
        SourceState::Missing { looked_at } => {
            let places: Vec<_> = looked_at.iter().map(|path| file(path)).collect();
            format!("missing; looked for at {}", places.join(", "))
        }
        SourceState::Refused(why) | SourceState::Offered(why) => format!("not used: {}", text(why)),
        SourceState::Loaded { codes, skipped, clock, torn, lent, .. } => {
            let lent = if *lent > 0 {
                format!(", lines and inlined calls of {lent} pieces of the jitdump's")
            } else {
                String::new()
            };
            let skipped = if *skipped > 0 { format!(", {skipped} records skipped") } else { String::new() };
            let torn = if *torn { ", cut at its end" } else { "" };
            let doubtful = covered.as_ref().map_or(0, |source| source.doubtful);
            let doubtful = match doubtful {
                0 => String::new(),
                frames => format!(" ({frames} of them perhaps of other code)"),
            };
            let covered = covered.map_or_else(String::new, |source| format!(", names {} frames", source.covered));
            format!("{codes} pieces of code{skipped}{torn}{}{covered}{doubtful}{lent}", clock_used(*clock))
        }
    };
    format!("{} {}: {state}", account.kind.name(), file(&account.path))
}

fn clock_used(clock: Option<ClockUse>) -> String {
    match clock {
        Some(ClockUse::Same) => String::new(),
        None => ", without times".to_owned(),
        Some(ClockUse::Tsc) => ", times converted from the processor's counter".to_owned(),
        Some(ClockUse::Estimated { error: Some(error) }) => {
            format!(", times estimated to within {:.3} ms", error as f64 / 1e6)
        }
        Some(ClockUse::Estimated { error: None }) => ", times estimated, nobody knows how well".to_owned(),
        Some(ClockUse::Dropped) => ", times not usable".to_owned(),
    }
}

fn covers(source: &SourceFile) -> String {
    format!("it names {} of {} frames ({:.1}%)", source.covered, source.frames, source.percent())
}

fn text(text: &str) -> String {
    readable(text.as_bytes()).into_owned()
}

pub(super) fn file(path: &Path) -> String {
    readable(path.as_os_str().as_bytes()).into_owned()
}

fn list(names: &[String]) -> String {
    /// More are only counted.
    const SHOWN: usize = 4;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| text(name)).collect();
    match (names.len(), &shown[..]) {
        (0, _) => "code".to_owned(),
        (1..=SHOWN, [one]) => one.clone(),
        (1..=SHOWN, [first @ .., last]) => format!("{} and {last}", first.join(", ")),
        (all, _) => format!("{} and {} more", shown.join(", "), all - SHOWN),
    }
}

fn paths(files: &[NamedFile]) -> String {
    list(&files.iter().map(|file| file.path.clone()).collect::<Vec<_>>())
}

fn is(files: &[NamedFile]) -> String {
    format!("{} {}", paths(files), if files.len() == 1 { "is" } else { "are" })
}

fn was(files: &[NamedFile]) -> String {
    format!("{} {}", paths(files), if files.len() == 1 { "was" } else { "were" })
}

fn have(files: &[NamedFile]) -> String {
    format!("{} {}", paths(files), if files.len() == 1 { "has" } else { "have" })
}

/// Which process a file's number names, for messages.
pub(super) fn number(pid: Pid) -> String {
    if pid.0 < 0 { "none".to_owned() } else { pid.to_string() }
}
