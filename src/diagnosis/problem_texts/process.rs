//! Texts about the problems of a single process: its JIT code has no names or possibly wrong ones, or its stacks end
//! too early.

use super::text::{BUILD, MUCH, ORDINARY, ProblemText, SOME, covers, file, list, number, text, who};
use crate::analysis::quantity::counted;
use crate::diagnosis::problem::{OfProcess, SourceFile, UnwindingDump, Who};
use crate::model::abi::{EM_AARCH64, EM_ARM, EM_S390, EM_X86_64, machine_name};
use crate::resolve::unwind::registers::Machine;
use crate::runtimes::{Callers, Flag, Switch};
use crate::sources::Kind;

/// Below this percentage of unnamed frames, the unnamed code is probably code that runtimes never report, such as stubs
/// and trampolines.
const STUBS: f64 = 5.0;

/// Advice on how to record so that a log's times can be related to those of the recording.
const WHEN_IT_BEGAN: &str = "start the program with perf record -k mono, and keep the original log file: a copy loses \
                             its creation time, even with cp --preserve. A dump of the same run also has exact times";

const COPY_AGAIN: &str = "copy the whole dump again after the process has exited normally: a process that was killed \
                          or is still running has not written everything. Or the disk was full";

const DWARF: &str = "record with perf record --call-graph dwarf";

const NO_TIMES: &str = "the log has no better times; names of code that never moved are correct";

const NO_CALLERS: &str = "the innermost frames are correct; their callers cannot be found, because this runtime \
                          neither keeps frame pointers nor writes unwind data";

/// The text about a problem of a process.
pub(super) fn process_text(process: &Who, problem: &OfProcess) -> ProblemText {
    match *problem {
        OfProcess::Clock { ref source, error, is_monotonic } => {
            let cause = match error {
                Some(error) => format!(
                    "{} uses a different clock than the recording; its times are estimated to within {:.1} ms",
                    file(&source.path),
                    error as f64 / 1e6
                ),
                None => format!(
                    "{} uses a different clock than the recording, so its times cannot be used and code that moved \
                     has wrong names",
                    file(&source.path)
                ),
            };
            let is_log = matches!(source.kind, Kind::Log(_));
            let remedy = match (is_log, is_monotonic) {
                (true, false) => WHEN_IT_BEGAN,
                (true, true) if has_dump(process) => "a dump of the same run has exact times",
                (true, true) => NO_TIMES,
                (false, false) => "record with perf record -k mono",
                (false, true) => {
                    "the recording uses CLOCK_MONOTONIC, as it should, but the runtime wrote its jitdump with another \
                     clock; names of code that never moved are correct"
                }
            };
            ProblemText::new(
                "clock",
                "the recording was made without `-k mono`, so a dump's times are estimated or not used, and some \
                 frames may have the name of other code that was at the same address",
                cause,
                remedy,
            )
        }
        OfProcess::Doubtful { ref source, error, is_best } => {
            let error = match error {
                Some(error) => format!("within {:.1} ms, which is as precise as its times are", error as f64 / 1e6),
                None => "at another time, and it is unknown how precise its times are".to_owned(),
            };
            let SourceFile { doubtful, covered, path, .. } = source;
            ProblemText::new(
                "log-clock",
                "an engine's log is aligned with the recording only approximately, and some frames may have the name \
                 of other code that was at the same address",
                format!(
                    "{doubtful} of {covered} frames named by {} may have the wrong name: their addresses had other \
                     code {error}",
                    file(path)
                ),
                match is_best {
                    true if has_dump(process) => "a log has no better times; a dump of the same run has exact ones",
                    true => NO_TIMES,
                    false => WHEN_IT_BEGAN,
                },
            )
        }
        OfProcess::Silent { inner, given, elsewhere, unmapped } => {
            let what = match (given, elsewhere) {
                (Some(switch), _) if unmapped => {
                    format!("it ran with {} but never mapped {}", switch.name(), switch.leaves.join(", "))
                }
                (Some(switch), _) => {
                    format!("it ran with {}, but {} is missing", switch.name(), switch.leaves.join(", "))
                }
                (None, Some(switch)) => not_reached(switch),
                (None, None) => "no jitdump, perf map or log was found".to_owned(),
            };
            let remedy = match (inner, given) {
                (_, Some(switch)) if unmapped => could_not_map(process, Some(switch)),
                (Some(inner), _) => format!(
                    "it ran in a container as process {inner}; copy /tmp/perf-{inner}.map or jit-{inner}.dump out of \
                     it (from /proc/{}/root/tmp/ while it runs) and pass it with --perf-map or --jitdump. If there is \
                     none: {}",
                    process.pid,
                    switches(process)
                ),
                (None, Some(switch)) => {
                    let at_end = if switch.at_end { " (complete only if the process exits normally)" } else { "" };
                    let left = switch.leaves.join(", ").replace("PID", &number(process.pid));
                    format!(
                        "copy {left}{at_end} next to the recording (or pass it with --jitdump, --perf-map or \
                         --jit-log)"
                    )
                }
                (None, None) => {
                    elsewhere.and_then(|switch| by_variable(process, switch)).unwrap_or_else(|| switches(process))
                }
            };
            ProblemText::new(
                "no-dump-or-map",
                "a runtime wrote nothing that names its code, or its file is missing",
                format!("JIT code of {} has no names: {what}", who(process)),
                remedy,
            )
        }
        OfProcess::SilentUnderValgrind { ref path } => {
            let command = process.runtime.and_then(|runtime| runtime.valgrind);
            let command = command.map_or_else(
                || "valgrind --tool=callgrind --dump-instr=yes PROGRAM with the runtime's switch for perf".to_owned(),
                |command| format!("{command} …"),
            );
            ProblemText::new(
                "no-dump-or-map",
                "a runtime wrote nothing that names its code, or its file is missing",
                format!(
                    "JIT code of {} has no names: there is no perf-{pid}.map or jit-{pid}.dump next to the file or in \
                     /tmp",
                    who(process),
                    pid = number(process.pid)
                ),
                format!("run it again with {command}, then jitgraft callgrind {}", file(path)),
            )
        }
        OfProcess::NotNamedYet { ref path } => ProblemText::new(
            "not-named-yet",
            "a callgrind file has no names yet: `jitgraft callgrind` was not run",
            format!("JIT code of {} is unnamed here, but its names are available", who(process)),
            format!("jitgraft callgrind {}", file(path)),
        ),
        OfProcess::NoInstructions => ProblemText::new(
            "no-instruction-addresses",
            "a callgrind file was recorded without `--dump-instr=yes`",
            format!(
                "it has no instruction addresses, so only the entry points of JIT code of {} are known",
                who(process)
            ),
            "run it again with valgrind --tool=callgrind --dump-instr=yes",
        ),
        OfProcess::NotWritten { ref word, leaves } => ProblemText::new(
            "not-written",
            "a running process was started with the option to write names, but wrote none",
            format!("{} was started with {word}, but {leaves} does not exist", who(process)),
            "it may lack permissions or disk space, or may not have compiled anything yet",
        ),
        OfProcess::Missing { ref path, inner } => {
            let container = inner.map_or_else(String::new, |inner| {
                format!(
                    "; it was written in a container as process {inner} (/proc/{}/root{} while it runs)",
                    process.pid,
                    file(path)
                )
            });
            ProblemText::new(
                "dump-missing",
                "the jitdump that a process mapped is gone",
                format!("JIT code of {} has no names: its jitdump {} is gone", who(process), file(path)),
                format!("pass its path with --jitdump, or record again and keep it{container}"),
            )
        }
        OfProcess::OtherProcess { ref path, kind, of, fits } => {
            let others = if fits > 1 {
                format!(", like those of {}", counted(fits as u64 - 1, "more file"))
            } else {
                String::new()
            };
            ProblemText::new(
                "source-of-other-process",
                "a dump or map next to the recording is from another process, but matches the addresses of unnamed \
                 code",
                format!(
                    "JIT code of {} has no names: the {} {} is from process {of}",
                    who(process),
                    kind.name(),
                    file(path)
                ),
                format!(
                    "its addresses match that code{others}. If it is from this process, which had another PID in its \
                     container, use {} {}@{}. Beware: processes forked from the same parent may have their code at \
                     the same addresses",
                    kind.option(),
                    file(path),
                    process.pid
                ),
            )
        }
        OfProcess::Refused { ref path, kind, ref why, unmapped } => {
            let why = if unmapped { "it is empty, and the process never mapped it" } else { why };
            let remedy = if unmapped {
                could_not_map(process, None)
            } else if why.contains("use -f") {
                format!(
                    "if you trust it, use -f or chown it to yourself, or pass a copy with {} ({})",
                    kind.option(),
                    file(path)
                )
            } else if why.contains("is empty") {
                let line_by_line = if process.runtime.is_some_and(|runtime| runtime.name == "CPython") {
                    " (sys.exit is fine), or use -X perf, whose map is written line by line"
                } else {
                    ""
                };
                format!("let the process exit normally, not by a signal or _exit{line_by_line}")
            } else {
                format!("record again and keep what the runtime writes: {}", switches(process))
            };
            ProblemText::new(
                "source-refused",
                "a dump or map cannot be used because of its owner, format or time",
                format!(
                    "JIT code of {} has no names: its {} {} was not used ({})",
                    who(process),
                    kind.name(),
                    file(path),
                    text(why)
                ),
                remedy,
            )
        }
        OfProcess::Empty { ref source } => ProblemText::new(
            "source-empty",
            "a dump or map contains no code",
            format!("JIT code of {} has no names: {} lists no code", who(process), file(&source.path)),
            "let the process exit normally (not by a signal or _exit), with enough disk space, and copy the file only \
             then",
        ),
        OfProcess::Torn { ref source, skipped, at_end } => {
            let is_map = source.kind == Kind::PerfMap;
            let unit = if is_map { "line" } else { "record" };
            let fault = match (at_end, skipped) {
                (true, 0 | 1) => format!("is truncated in the middle of a {unit}"),
                (true, more) => format!("has {more} damaged {unit}s, the last of them truncated"),
                (false, 1) => format!("has a damaged {unit}, and what followed may be missing"),
                (false, more) => format!("has {more} damaged {unit}s, and what followed may be missing"),
            };
            let remedy = if is_map {
                "copy the whole map again after the process has ended, or record again"
            } else {
                COPY_AGAIN
            };
            ProblemText::new(
                "source-torn",
                "a dump or map is damaged or truncated",
                format!("{} of {} {fault}: {}", file(&source.path), who(process), covers(source)),
                remedy,
            )
        }
        OfProcess::OtherRun { ref source } => ProblemText::new(
            "source-of-other-run",
            "a dump or map has addresses that the process never mapped",
            format!(
                "{} is not from this run of {}: it has addresses that the process never mapped",
                file(&source.path),
                who(process)
            ),
            format!(
                "find the {} that process {} wrote during the recording, or record again",
                source.kind.name(),
                process.pid
            ),
        ),
        OfProcess::Replaced { ref source } => ProblemText::new(
            "source-replaced",
            "a process ran another program (exec), whose dump or map overwrote that of the first one",
            format!(
                "{} only has the names of the last program of {}: the names of the program before it were \
                 overwritten, because exec keeps the PID",
                file(&source.path),
                who(process)
            ),
            "record the two programs separately, or let the first one start the second as a child process (fork)",
        ),
        OfProcess::EndsEarly { ref source, before } => ProblemText::new(
            "dump-ends-early",
            "a dump ends before most of the unnamed code ran: the runtime was killed, or had not written everything \
             yet",
            format!(
                "{} ends {:.1} s before {}: {}",
                file(&source.path),
                before as f64 / 1e9,
                who(process),
                covers(source)
            ),
            COPY_AGAIN,
        ),
        OfProcess::Incomplete { ref source, spoiler: Some(option), .. } => ProblemText::new(
            "source-incomplete",
            "a dump or map is intact, but lacks code that ran",
            format!(
                "{} lacks some code of {}: {}. {option} left it out",
                file(&source.path),
                who(process),
                covers(source)
            ),
            format!("don't use {option}; {}", switches(process)),
        )
        .above(STUBS),
        OfProcess::Overwritten { ref source, by, ref ways } => ProblemText::new(
            "source-overwritten",
            "two runtimes in a process wrote the same map, and one overwrote the names of the other",
            format!(
                "{} only has the names of {}, which wrote to the same file as {}: {}",
                file(&source.path),
                by.name,
                who(process),
                covers(source)
            ),
            format!("make one of them write to another file: {ways}"),
        ),
        OfProcess::Incomplete { ref source, given, .. } => {
            let runtime = process.runtime;
            let is_jvm = runtime.is_some_and(|runtime| runtime.frame_pointers.is_some());
            let remedy = match source.kind {
                Kind::PerfMap if is_jvm && given.is_some_and(|switch| switch.at_end) => {
                    "it was written when the JVM exited, so it lacks methods that were freed before. Use \
                     -XX:+LogCompilation (hotspot_pidPID.log) or perf's agent libperf-jvmti.so instead, which log \
                     methods as they are compiled"
                        .to_owned()
                }
                Kind::PerfMap if is_jvm => "it is a snapshot. Write it when the program ends (java \
                                            -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit), or run `jcmd PID \
                                            Compiler.perfmap` right after the recording"
                    .to_owned(),
                Kind::PerfMap => {
                    let unnamed = unnamed(process);
                    let dump = if has_dump(process) { "; a jitdump has both" } else { "" };
                    format!(
                        "it was written before that code was compiled, or after it was freed; copy it after the \
                         process has ended{dump}{unnamed}"
                    )
                }
                Kind::Log(_) if is_jvm => format!(
                    "HotSpot's logs lack the interpreter, stubs and adapters, but a perf map of the same run has them \
                     (jcmd PID Compiler.perfmap before it ends); pass both: --perf-map FILE@{} --jit-log {}",
                    process.pid,
                    file(&source.path)
                ),
                Kind::JitDump | Kind::PlacedElf | Kind::Log(_) => {
                    let unnamed = unnamed(process);
                    match given {
                        Some(switch) => {
                            format!(
                                "this must be code that the runtime never logs{unnamed}: {} was on from the start",
                                switch.name()
                            )
                        }
                        None => format!(
                            "this is code that the runtime never logs{unnamed}, or that it compiled before it began \
                             to log; switch the log on from the start"
                        ),
                    }
                }
            };
            ProblemText::new(
                "source-incomplete",
                "a dump or map is intact, but lacks code that ran",
                format!("{} lacks some code of {}: {}", file(&source.path), who(process), covers(source)),
                remedy,
            )
            .above(STUBS)
        }
        OfProcess::ImagesGone { ref path, count } => {
            let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            ProblemText::new(
                "injected-images-gone",
                "names were injected, but the images `jitted-*.so` are gone",
                format!("names were injected for {}, but their images are gone: {}{more}", who(process), file(path)),
                "run jitgraft inject again on the original recording, with its dumps: jitgraft inject -i perf.data -o \
                 new.data. Or restore the images to that path",
            )
        }
        OfProcess::Interpreted { ref too_old, ref switched_on, elsewhere, by_chains } => {
            let version = too_old.as_ref().map_or_else(String::new, |version| format!(" {version}"));
            let name = process.runtime.map_or("its runtime", |runtime| runtime.name);
            let interpreter = process.runtime.and_then(|runtime| runtime.interpreter.as_ref());
            let own_remedy = interpreter.map_or("", |interpreter| interpreter.remedy);
            let is_first = process.advice.as_ref().is_none_or(|advice| {
                let first = process.runtime.and_then(|runtime| runtime.switches.first()).map(Switch::name);
                first.is_none_or(|first| advice.contains(&first))
            });
            let remedy = match switched_on {
                Some(switch) if by_chains => {
                    format!("{switch} was on, but the code keeps no frame pointers; {DWARF}")
                }
                Some(switch) => {
                    format!("{switch} was on; the engine still gives some functions no frame of their own")
                }
                None => match elsewhere.and_then(|switch| by_variable(process, switch)) {
                    Some(by_variable) => by_variable,
                    None if is_first => own_remedy.to_owned(),
                    None => format!("{}; {own_remedy}", switches(process)),
                },
            };
            let why = match elsewhere {
                Some(switch) => not_reached(switch),
                None => format!("{name}{version} gave interpreted functions no names"),
            };
            ProblemText::new(
                "interpreted",
                "the profile shows a program's interpreter instead of its functions",
                format!("{} spent this time in its interpreter: {why}", who(process)),
                remedy,
            )
            .above(MUCH)
        }
        OfProcess::JvmFramePointers { is_known } => {
            let why = if is_known {
                "the JVM ran without -XX:+PreserveFramePointer"
            } else {
                "the JVM keeps no frame pointers there (the recording does not have its options)"
            };
            ProblemText::new(
                "jvm-frame-pointers",
                "stacks end early in compiled Java code, which has no frame pointers without \
                 `-XX:+PreserveFramePointer`",
                format!("stacks of {} end early in compiled methods: {why}", who(process)),
                "run java with -XX:+PreserveFramePointer (or JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer in its \
                 environment)",
            )
            .above(ORDINARY)
        }
        OfProcess::FramePointers { ref files, machine, in_go: true, .. } => {
            let (why, remedy) = match machine {
                EM_X86_64 | EM_AARCH64 => (
                    "Go's compiler keeps frame pointers, but the assembly code of its runtime doesn't always",
                    "these callers cannot be recovered, and Go has no option for it; the innermost frames are correct",
                ),
                _ => (
                    "Go keeps no frame pointers on this architecture",
                    "the innermost frames are correct; Go has no option to keep frame pointers here",
                ),
            };
            let cause = format!("stacks of {} end early in {}, built by Go: {why}", who(process), place(files, false));
            ProblemText::new("frame-pointers", "stacks end early in code without frame pointers", cause, remedy)
                .above(ORDINARY)
        }
        OfProcess::FramePointers { ref files, in_jit, callers, machine, in_go: false } => {
            // On 32-bit Arm and s390x, the kernel can't follow the frame pointers that compilers generate.
            let has_frame_pointers = !matches!(machine, EM_ARM | EM_S390);
            let remedy = match (Machine::is_any_known(machine), has_frame_pointers) {
                (true, true) if !in_jit => format!("{DWARF}, or {BUILD}"),
                (true, false) if !in_jit => DWARF.to_owned(),
                (true, _) if callers == Callers::Unknown => NO_CALLERS.to_owned(),
                (true, _) if callers == Callers::InDump => {
                    format!(
                        "{DWARF}, and make it write a dump, which has unwind data for its code: {}",
                        switches(process)
                    )
                }
                (true, _) => DWARF.to_owned(),
                (false, _) if !in_jit => BUILD.to_owned(),
                _ => format!(
                    "the innermost frames are correct; callers of JIT code cannot be found on {}",
                    machine_name(machine)
                ),
            };
            ProblemText::new(
                "frame-pointers",
                "stacks end early in code without frame pointers",
                format!(
                    "stacks of {} end early in {}, which has no frame pointers",
                    who(process),
                    place(files, in_jit)
                ),
                remedy,
            )
            .above(ORDINARY)
        }
        OfProcess::NotUnwound { ref files, in_jit, dump, are_here } => {
            let runtime = process.runtime;
            let remedy = match runtime {
                Some(_) if in_jit && dump == UnwindingDump::NotHere => {
                    "copy its dump next to the recording: it has the unwind data for its code"
                }
                Some(_) if in_jit && dump == UnwindingDump::Here => NO_CALLERS,
                Some(runtime) if in_jit && runtime.name == "CPython" => {
                    "only a complete dump of -X perf_jit (3.13 or newer) has unwind data; the map of -X perf does \
                     not. Or build Python with -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer and record with -g"
                }
                Some(runtime)
                    if in_jit
                        && runtime.switches.iter().any(|switch| switch.flags.contains(&Flag::Word("--perf-prof"))) =>
                {
                    "run it with --perf-prof-unwinding-info as well as --perf-prof, and keep the dump: it then has \
                     unwind data"
                }
                _ if in_jit => NO_CALLERS,
                _ if are_here => {
                    "these files have no unwind data, but their debugging information may (--debug-dir DIR). Or \
                     record with perf record -g if they keep frame pointers, or build them with \
                     -fasynchronous-unwind-tables"
                }
                _ => {
                    "provide the files that ran (--symfs DIR) or their debugging information (--debug-dir DIR), built \
                     with -fasynchronous-unwind-tables"
                }
            };
            ProblemText::new(
                "not-unwound",
                "copied stacks (`--call-graph dwarf`) cannot be unwound completely",
                format!(
                    "copied stacks of {} cannot be unwound beyond {}: there is no unwind data for it",
                    who(process),
                    place(files, in_jit)
                ),
                remedy,
            )
            .above(SOME)
        }
    }
}

/// Advice on how to make the process's runtime report its code.
fn switches(process: &Who) -> String {
    match process.runtime.map(|runtime| (runtime, process.advice.as_ref(), process.too_old.as_ref())) {
        Some((_, Some(how), _)) => format!("{how}; or pass the file with --jitdump, --perf-map or --jit-log"),
        Some((_, None, Some(too_old))) => too_old.clone(),
        Some((runtime, None, None)) => runtime.unnamed.to_owned(),
        None => "if this is a JIT compiler, make it write a jitdump, a perf map or another log that jitgraft reads \
                 (jitgraft formats), and pass it with --jitdump, --perf-map or --jit-log unless it is in a usual place"
            .to_owned(),
    }
}

/// True if the process's runtime can write a jitdump.
fn has_dump(process: &Who) -> bool {
    let is_dump = |switch: &Switch| switch.leaves.iter().any(|file| file.ends_with(".dump"));
    process.runtime.is_none_or(|runtime| runtime.switches.iter().any(is_dump))
}

/// A sentence about why a switch in the recorded command line did not reach a process.
fn not_reached(switch: &Switch) -> String {
    format!(
        "{} only reached the process that perf started; this one was started by another process, without it",
        switch.name()
    )
}

/// Advice to use an environment variable for the switch: it also reaches processes that are started by other processes.
/// `None` if the switch has no variable.
fn by_variable(process: &Who, switch: &Switch) -> Option<String> {
    let name = switch.name();
    let variable = match switch.variables {
        [(name, value), ..] => format!("{name}={value}"),
        [] => {
            let variable = process.runtime?.flag_variables.first()?;
            format!("{}, with {name},", variable.name)
        }
    };
    Some(format!(
        "set {variable} in the environment, which reaches every process; options such as {name} are not passed on to \
         child processes (python's subprocess and multiprocessing with spawn or forkserver, child_process.spawn)"
    ))
}

/// Advice for the case that a process could not map its jitdump. perf only finds jitdumps that are mapped.
fn could_not_map(process: &Who, given: Option<&Switch>) -> String {
    let name = given.map_or_else(String::new, |switch| format!(" ({})", switch.leaves.join(", ")));
    let switches = process.runtime.map_or(&[][..], |runtime| runtime.switches);
    let is_map = |switch: &&Switch| switch.leaves.iter().all(|file| file.ends_with(".map")) && switch.can_be_set();
    let by_map = switches.iter().find(is_map).filter(|_| given.is_none_or(|given| !is_map(&given)));
    let by_map =
        by_map.map_or_else(String::new, |switch| format!(", or use {}, whose map need not be mapped", switch.name()));
    format!(
        "its directory{name} is probably mounted noexec (check with findmnt -T DIRECTORY) or not writable; let the \
         runtime write elsewhere{by_map}"
    )
}

/// A sentence about code of the process's runtime that never gets a name. It is appended to other texts.
fn unnamed(process: &Who) -> String {
    let unnamed = process.runtime.map(|runtime| runtime.unnamed).filter(|unnamed| !unnamed.is_empty());
    unnamed.map_or_else(String::new, |unnamed| format!(" (it never names {unnamed})"))
}

fn place(files: &[String], in_jit: bool) -> String {
    if in_jit { "JIT code".to_owned() } else { list(files) }
}
