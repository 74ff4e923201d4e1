//! What is said of a problem, and what to do about it. All names in it are printable.

use super::problem::{NamedFile, Problem, SourceFile, Who};
use crate::model::Pid;
use crate::model::printable::readable;
use crate::resolve::symbols::no_elf::NoElf;
use crate::sources::{Account, ClockUse, Kind, SourceState};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The greatest copy of a stack that perf takes.
const LARGEST_COPY: u32 = 65528;

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
        Problem::Interpreted { process, too_old } => {
            let version = too_old.as_ref().map_or_else(String::new, |version| format!(" {version}"));
            let runtime = process.runtime.map_or("its runtime", |runtime| runtime.name);
            format!("{} interpreted its program: of its functions {runtime}{version} told perf nothing", who(process))
        }
        _ => String::new(),
    }
}

/// What to do.
pub(super) fn remedy(problem: &Problem) -> String {
    match problem {
        Problem::NoSamples => {
            "record longer, what works and does not wait (perf record -a records all processes), or another event: \
                               -e cpu-clock counts everywhere"
                .to_owned()
        }
        Problem::FewSamples { .. } => "record longer, or more often: perf record -F 999".to_owned(),
        Problem::Damaged { .. } => {
            "let perf record end by itself (stop it by Ctrl-C, or kill -INT), with room on the disk; copy the whole \
                                    file"
                .to_owned()
        }
        Problem::Lost { .. } => {
            "record less: a lower -F, smaller copies (--call-graph dwarf,8192); or give perf more room: -m 1024"
                .to_owned()
        }
        Problem::NoCallChains => "record with perf record -g, or --call-graph dwarf".to_owned(),
        Problem::Guest => "its symbols are inside the guest: record there".to_owned(),
        Problem::Nowhere { .. } => {
            "no return addresses, most likely, or memory that was never reported: nothing can name these".to_owned()
        }
        Problem::Kernel { hidden: true } => "record as root, with sysctl kernel.kptr_restrict=0".to_owned(),
        Problem::Kernel { hidden: false } => {
            "give --kallsyms a copy of the recorded machine's /proc/kallsyms, read by root (kernel.kptr_restrict hides \
                                              its addresses from others)"
                .to_owned()
        }
        Problem::Clock { source, .. } if matches!(source.kind, Kind::Log(_)) => WHEN_IT_BEGAN.to_owned(),
        Problem::Doubtful { .. } => WHEN_IT_BEGAN.to_owned(),
        Problem::Clock { .. } => "record with perf record -k mono".to_owned(),
        Problem::Interpreted { process, .. } => {
            process.runtime.and_then(|runtime| runtime.interpreter.as_ref()).map_or("", |it| it.remedy).to_owned()
        }
        Problem::ImagesGone { .. } => {
            "inject again: jitgraft inject -i perf.data -o new.data, with the recording as it was and its dumps; \
                                       or bring the images back to that path"
                .to_owned()
        }
        Problem::ChainsCut { .. }
        | Problem::TooDeep
        | Problem::CopiesShort { .. }
        | Problem::NotUnwound { .. }
        | Problem::JvmFramePointers { .. }
        | Problem::FramePointers { .. } => for_stacks(problem),
        Problem::FilesGone { .. }
        | Problem::OtherVersion { .. }
        | Problem::NotElf { .. }
        | Problem::Stripped { .. }
        | Problem::StrippedPackages { .. }
        | Problem::Symbolless { .. } => for_files(problem),
        _ => for_jit(problem),
    }
}

fn for_stacks(problem: &Problem) -> String {
    match problem {
        Problem::ChainsCut { limit } => format!(
            "as root: sysctl kernel.perf_event_max_stack={}, then record again (without max-stack={limit}, if that was asked for)",
            (u32::from(*limit) * 8).max(1024)
        ),
        Problem::TooDeep => "give --max-stack 1024: so many frames are unwound then".to_owned(),
        Problem::CopiesShort { bytes } if *bytes * 2 > LARGEST_COPY => {
            "no copy may be longer: build with -fno-omit-frame-pointer and record with -g instead".to_owned()
        }
        Problem::CopiesShort { .. } => format!("record with longer copies: --call-graph dwarf,{LARGEST_COPY}"),
        Problem::NotUnwound { in_jit: true, process, .. } if is_python(process) => {
            "run python (3.13 or newer) with -X perf_jit instead of -X perf: its dump tells how to leave each function; or build \
             Python with -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer and record with -g"
                .to_owned()
        }
        Problem::NotUnwound { in_jit: true, process, .. } if logs_unwinding(process) => {
            "run it with --perf-prof-unwinding-info beside --perf-prof, and keep the dump: it tells how to leave each function"
                .to_owned()
        }
        Problem::NotUnwound { in_jit: true, .. } => {
            "the innermost frames are right; their callers are not to be had where a runtime neither keeps frame pointers \
             nor logs how to unwind its code"
                .to_owned()
        }
        Problem::NotUnwound { .. } => {
            "bring these files as they ran (--symfs DIR), or their debugging information (--debug-dir DIR); \
                                       build them with -fasynchronous-unwind-tables"
                .to_owned()
        }
        Problem::JvmFramePointers { .. } => {
            "run java with -XX:+PreserveFramePointer (or have JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer in its environment)"
                .to_owned()
        }
        Problem::FramePointers { in_jit: true, .. } => "record with perf record --call-graph dwarf".to_owned(),
        _ => "record with perf record --call-graph dwarf, or build with -fno-omit-frame-pointer (Rust: -C \
              force-frame-pointers=yes)"
            .to_owned(),
    }
}

fn for_files(problem: &Problem) -> String {
    match problem {
        Problem::FilesGone { container: Some(_), .. } => "they are in a container: give its root by --symfs DIR (while it runs /proc/PID/root)".to_owned(),
        Problem::FilesGone { files, .. } if files.iter().all(|file| file.path.ends_with(" (deleted)")) => {
            "do not build while it is recorded; start the new version, and record that".to_owned()
        }
        Problem::FilesGone { same_machine: true, .. } => {
            "put back what ran, or give the directory that holds it at the recorded path: --symfs DIR; or \
             record again"
                .to_owned()
        }
        Problem::FilesGone { .. } => "bring the recorded machine's files: --symfs DIR; or there `perf archive`, unpacked into ~/.debug".to_owned(),
        Problem::OtherVersion { files } => {
            let id = files.iter().find_map(|file| file.build_id.as_deref()).unwrap_or("BUILD-ID");
            format!(
                "find the version that ran (perf archive on the recorded machine, or debuginfod-find executable {id}), and \
                 put it into ~/.debug or give its root by --symfs DIR; or record again"
            )
        }
        Problem::NotElf { runtime: Some(runtime), .. } if !runtime.unnamed.is_empty() => runtime.unnamed.to_owned(),
        Problem::NotElf { what: NoElf::DotNet, .. } => {
            "run with DOTNET_PerfMapEnabled=1 DOTNET_ReadyToRun=0 (before .NET 6 COMPlus_…) in the environment: its code is \
             compiled when it runs then, and told of"
                .to_owned()
        }
        Problem::NotElf { .. } => "only what made them can name their code: it may write a perf map or a jitdump".to_owned(),
        Problem::Stripped { .. } => "build with -g (Rust: debug = true in the profile), do not strip (no -s), and record that; or keep the file \
                                     with the symbols beside it (objcopy --add-gnu-debuglink) or give its directory by --debug-dir"
            .to_owned(),
        Problem::StrippedPackages { files } => {
            let id = files.iter().find_map(|file| file.build_id.as_deref()).unwrap_or("BUILD-ID");
            format!(
                "install the debugging symbols of these (Debian: the packages' -dbgsym), or fetch them by build ID \
                 (debuginfod-find debuginfo {id}) and give their directory by --debug-dir"
            )
        }
        _ => "padding, or code that its authors gave no symbol: debugging information may tell more (--debug-dir DIR)".to_owned(),
    }
}

fn for_jit(problem: &Problem) -> String {
    match problem {
        Problem::Silent { process, inner: Some(inner) } => {
            format!(
                "it ran in a container, as process {inner}: bring its /tmp/perf-{inner}.map or jit-{inner}.dump \
                 (while it runs: /proc/{}/root/tmp/), and give it by --perf-map or --jitdump; if it wrote none: {}",
                process.pid,
                switches(process)
            )
        }
        Problem::Silent { process, inner: None } => switches(process),
        Problem::SilentUnderValgrind { process, path } => {
            let program = process.runtime.and_then(|runtime| runtime.valgrind).unwrap_or("PROGRAM with its switch for perf");
            format!(
                "run it again: valgrind --tool=callgrind --dump-instr=yes -- {program} …; then jitgraft callgrind {}",
                file(path)
            )
        }
        Problem::NotNamedYet { path, .. } => format!("jitgraft callgrind {}", file(path)),
        Problem::NoInstructions { .. } => "run it again with valgrind --tool=callgrind --dump-instr=yes".to_owned(),
        Problem::NotWritten { .. } => {
            "it may not write there, or there is no room, or it has not compiled anything yet".to_owned()
        }
        Problem::Missing { path, inner, process } => {
            let container = inner.map_or_else(String::new, |inner| {
                format!(
                    "; it was written in a container, as process {inner}: look at /proc/{}/root{} while it runs",
                    process.pid,
                    file(path)
                )
            });
            format!("say where it is by --jitdump, or record again and keep it{container}")
        }
        Problem::OtherProcess { process, path, kind, fits: fits @ 1.., .. } => {
            let option = kind.option();
            let others = if *fits > 1 { format!(", as {} more do", fits - 1) } else { String::new() };
            format!("it fits where that code ran{others}: say whose it is by {option} {}@{}", file(path), process.pid)
        }
        Problem::OtherProcess { process, .. } => {
            format!("bring the one of process {}: {}", process.pid, switches(process))
        }
        Problem::Refused { kind, path, why, .. } if why.contains("use -f") => {
            let option = kind.option();
            format!("if you trust it: -f, or chown it to yourself; or copy it, and give the copy by {option} ({})", file(path))
        }
        Problem::Refused { process, why, .. } if why.contains("is empty") => {
            let line_by_line = if is_python(process) { " (sys.exit does); or use -X perf, whose map is written line by line" } else { "" };
            format!("let the runtime end by itself: not by a signal, nor by _exit {line_by_line}")
        }
        Problem::Refused { process, .. } => format!("record again and keep what the runtime writes: {}", switches(process)),
        Problem::Empty { .. } => "let the runtime end by itself (its process must not be killed, nor leave by _exit), with room on the disk; \
                                  copy the file only then"
            .to_owned(),
        Problem::Torn { source, .. } if source.kind == Kind::PerfMap => {
            "copy the map again, whole, when the process has ended; or record again".to_owned()
        }
        Problem::Torn { .. } | Problem::EndsEarly { .. } => "copy the dump again, whole, when the process has ended by itself: one that is killed, or still runs, has \
                                                             not written all of it; or the disk was full"
            .to_owned(),
        Problem::OtherRun { source, process } => format!(
            "bring the {} that process {} wrote when it was recorded, or record again",
            source.kind.name(),
            process.pid
        ),
        Problem::Incomplete { source, process } if source.kind == Kind::PerfMap => incomplete_map(process),
        Problem::Incomplete { source, process } if process.runtime.is_some_and(|runtime| runtime.name == "OpenJDK") && matches!(source.kind, Kind::Log(_)) => format!(
            "the interpreter, stubs and adapters are in no log of HotSpot's: a perf map of the same run has them (jcmd PID \
             Compiler.perfmap before it ends); give both, --perf-map FILE@{} --jit-log {}",
            process.pid,
            file(&source.path)
        ),
        Problem::Incomplete { process, .. } => {
            let unnamed = process.runtime.map(|runtime| runtime.unnamed).filter(|unnamed| !unnamed.is_empty());
            let unnamed = unnamed.map_or_else(String::new, |unnamed| format!(" ({unnamed})"));
            format!(
                "code that the runtime does not log{unnamed}, or that it made before it began to log: switch it on from the start"
            )
        }
        _ => String::new(),
    }
}

fn incomplete_map(process: &Who) -> String {
    match process.runtime.map(|runtime| runtime.name) {
        Some("OpenJDK") => "it is the state of one moment: write it when the program ends (java -XX:+UnlockDiagnosticVMOptions \
                            -XX:+DumpPerfMapAtExit), or `jcmd PID Compiler.perfmap` right behind the recording"
            .to_owned(),
        _ => "it was written before that code was compiled, or after it was freed: copy it when the process has ended; a jitdump has \
              times and holds both"
            .to_owned(),
    }
}

/// How a process is made to tell of its code.
fn switches(process: &Who) -> String {
    match process.runtime.map(|runtime| (runtime, runtime.advice())) {
        Some((_, Some(how))) => format!("{how}; or give what it left by --jitdump or --perf-map"),
        Some((runtime, None)) => runtime.unnamed.to_owned(),
        None => "if a JIT compiler runs there, make it write a perf map or a jitdump, and give it by --perf-map or --jitdump \
                 if it is not in a usual place"
            .to_owned(),
    }
}

/// Whether a runtime has a switch for that.
fn logs_unwinding(process: &Who) -> bool {
    process.runtime.is_some_and(|runtime| runtime.switches.iter().any(|switch| switch.word == "--perf-prof"))
}

fn is_python(process: &Who) -> bool {
    process.runtime.is_some_and(|runtime| runtime.name == "CPython")
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

/// What ties a log to a recording.
const WHEN_IT_BEGAN: &str = "let perf record start the program, with -k mono, and keep the log's file as it was made (cp --preserve does not keep \
                             when); a dump of the same run is exact, too";

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

fn file(path: &Path) -> String {
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
