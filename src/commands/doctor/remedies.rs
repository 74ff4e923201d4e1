//! What to do about a problem. All names in it are printable.

use super::problem::{Problem, Who};
use super::words::file;
use crate::resolve::symbols::no_elf::NoElf;
use crate::sources::Kind;

/// The greatest copy of a stack that perf takes.
const LARGEST_COPY: u32 = 65528;

/// What ties a log to a recording.
const WHEN_IT_BEGAN: &str = "let perf record start the program, with -k mono, and keep the log's file as it was made (cp --preserve does not keep \
                             when); a dump of the same run is exact, too";

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
        Problem::Interpreted { switched_on: Some(switch), .. } => format!(
            "{switch} was given: what is left are functions that the engine gave no frame of their own all the same"
        ),
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
        Some((_, Some(how))) => format!("{how}; or give what it left by --jitdump, --perf-map or --jit-log"),
        Some((runtime, None)) => runtime.unnamed.to_owned(),
        None => "if a JIT compiler runs there, make it write a perf map, a jitdump or a log that is read (jitgraft formats), and give \
                 it by --perf-map, --jitdump or --jit-log if it is not in a usual place"
            .to_owned(),
    }
}

/// Whether a runtime has a switch for that.
fn logs_unwinding(process: &Who) -> bool {
    process.runtime.is_some_and(|runtime| runtime.flag_variables.iter().any(|variable| variable.name == "NODE_OPTIONS"))
}

fn is_python(process: &Who) -> bool {
    process.runtime.is_some_and(|runtime| runtime.name == "CPython")
}
