//! Texts about the problems of a process: its JIT code has no names or possibly wrong ones, or its stacks end too
//! early.

use super::text::{BUILD, MUCH, ORDINARY, ProblemText, SOME, covers, file, list, number, text, who};
use crate::diagnosis::problem::{OfProcess, SourceFile, UnwindingDump, Who};
use crate::model::abi::{EM_AARCH64, EM_ARM, EM_S390, EM_X86_64, machine_name};
use crate::resolve::unwind::registers::Machine;
use crate::runtimes::{Callers, Flag, Switch};
use crate::sources::Kind;

/// Below this percentage, unnamed code is probably code that runtimes never report, such as stubs and trampolines.
const STUBS: f64 = 5.0;

/// How to record so that a log's times can be related to the recording's.
const WHEN_IT_BEGAN: &str = "let perf record start the program, with -k mono, and keep the log's file as it was made (cp \
                             --preserve does not keep when); a dump of the same run is exact, too";

const COPY_AGAIN: &str = "copy the dump again, whole, when the process has ended by itself: one that is killed, or still runs, has \
                          not written all of it; or the disk was full";

const DWARF: &str = "record with perf record --call-graph dwarf";

const NO_TIMES: &str = "its log has no better times; names of code that never moved are right";

const NO_CALLERS: &str = "the innermost frames are right; their callers cannot be found where a runtime neither keeps frame pointers \
                          nor logs how to unwind its code";

/// The text about a problem of a process.
pub(super) fn process_text(process: &Who, problem: &OfProcess) -> ProblemText {
    match *problem {
        OfProcess::Clock { ref source, error, is_monotonic } => {
            let cause = match error {
                Some(error) => format!(
                    "{} has times of another clock than the recording: they are estimated to within {:.1} ms",
                    file(&source.path),
                    error as f64 / 1e6
                ),
                None => format!(
                    "{} has times of another clock than the recording: they cannot be used, and code that moved has wrong names",
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
                    "the recording has CLOCK_MONOTONIC, as jitdumps should have: its runtime wrote times of another clock; names of \
                     code that never moved are right"
                }
            };
            ProblemText::new(
                "clock",
                "the recording was made without `-k mono`: a dump's times are estimated, or not used, and frames are at addresses \
                        that had other code within the error",
                cause,
                remedy,
            )
        }
        OfProcess::Doubtful { ref source, error, is_best } => {
            let error = match error {
                Some(error) => format!("within {:.1} ms: so well are its times known", error as f64 / 1e6),
                None => "at some time: the error of its times is unknown".to_owned(),
            };
            let SourceFile { doubtful, covered, path, .. } = source;
            ProblemText::new(
                "log-clock",
                "an engine's log is tied to the recording by estimate, and some frames are at addresses that had other code \
                        within the error",
                format!(
                    "{doubtful} of {covered} frames that {} names are at addresses that had other code, too, {error}",
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
                    format!("it was run with {}, and never mapped {}", switch.name(), switch.leaves.join(", "))
                }
                (Some(switch), _) => {
                    format!("it was run with {}, and {} is not here", switch.name(), switch.leaves.join(", "))
                }
                (None, Some(switch)) => not_reached(switch),
                (None, None) => "no jitdump, perf map or log that names it was found".to_owned(),
            };
            let remedy = match (inner, given) {
                (_, Some(switch)) if unmapped => could_not_map(process, Some(switch)),
                (Some(inner), _) => format!(
                    "it ran in a container, as process {inner}: bring its /tmp/perf-{inner}.map or jit-{inner}.dump (while it runs: \
                     /proc/{}/root/tmp/), and pass it with --perf-map or --jitdump; if it wrote none: {}",
                    process.pid,
                    switches(process)
                ),
                (None, Some(switch)) => {
                    let at_end = if switch.at_end { ", which is whole only if the process ends by itself" } else { "" };
                    let left = switch.leaves.join(", ").replace("PID", &number(process.pid));
                    format!(
                        "bring {left}{at_end}, and put it beside the recording (or pass it with --jitdump, --perf-map or --jit-log)"
                    )
                }
                (None, None) => {
                    elsewhere.and_then(|switch| by_variable(process, switch)).unwrap_or_else(|| switches(process))
                }
            };
            ProblemText::new(
                "no-dump-or-map",
                "a runtime wrote nothing that names its code, or its file is not here",
                format!("JIT code of {} has no names: {what}", who(process)),
                remedy,
            )
        }
        OfProcess::SilentUnderValgrind { ref path } => {
            let command = process.runtime.and_then(|runtime| runtime.valgrind);
            let command = command.map_or_else(
                || "valgrind --tool=callgrind --dump-instr=yes PROGRAM, with its switch for perf".to_owned(),
                |command| format!("{command} …"),
            );
            ProblemText::new(
                "no-dump-or-map",
                "a runtime wrote nothing that names its code, or its file is not here",
                format!(
                    "JIT code of {} has no names: there is no perf-{pid}.map and no jit-{pid}.dump beside it or in /tmp",
                    who(process),
                    pid = number(process.pid)
                ),
                format!("run it again: {command}; then jitgraft callgrind {}", file(path)),
            )
        }
        OfProcess::NotNamedYet { ref path } => ProblemText::new(
            "not-named-yet",
            "of callgrind files: `jitgraft callgrind` was not run",
            format!("JIT code of {} has no names in it, but they are there", who(process)),
            format!("jitgraft callgrind {}", file(path)),
        ),
        OfProcess::NoInstructions => ProblemText::new(
            "no-instruction-addresses",
            "of callgrind files: `--dump-instr=yes` was not given",
            format!(
                "it has no instruction addresses: JIT code of {} is known by where it was entered only",
                who(process)
            ),
            "run it again with valgrind --tool=callgrind --dump-instr=yes",
        ),
        OfProcess::NotWritten { ref word, leaves } => ProblemText::new(
            "not-written",
            "a running process was started with the option to write names, but wrote none",
            format!("{} was started with {word} to write {leaves}, but the file does not exist", who(process)),
            "it may lack permission or disk space, or has not compiled anything yet",
        ),
        OfProcess::Missing { ref path, inner } => {
            let container = inner.map_or_else(String::new, |inner| {
                format!(
                    "; it was written in a container, as process {inner}: look at /proc/{}/root{} while it runs",
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
            let others = if fits > 1 { format!(", as {} more do", fits - 1) } else { String::new() };
            ProblemText::new(
                "source-of-other-process",
                "next to the recording is a dump or map of another process, which fits the addresses of unnamed code",
                format!(
                    "JIT code of {} has no names: the {} {} is of process {of}",
                    who(process),
                    kind.name(),
                    file(path)
                ),
                format!(
                    "it fits where that code ran{others}. If it belongs to this process under another process ID, use {} {}@{}; the code of \
                     one that was forked from the same parent may lie at the same places",
                    kind.option(),
                    file(path),
                    process.pid
                ),
            )
        }
        OfProcess::Refused { ref path, kind, ref why, unmapped } => {
            let why = if unmapped { "is empty, and the process never mapped it" } else { why };
            let remedy = if unmapped {
                could_not_map(process, None)
            } else if why.contains("use -f") {
                format!(
                    "if you trust it: -f, or chown it to yourself; or copy it, and give the copy by {} ({})",
                    kind.option(),
                    file(path)
                )
            } else if why.contains("is empty") {
                let line_by_line = if process.runtime.is_some_and(|runtime| runtime.name == "CPython") {
                    " (sys.exit does); or use -X perf, whose map is written line by line"
                } else {
                    ""
                };
                format!("let the runtime end by itself: not by a signal, nor by _exit{line_by_line}")
            } else {
                format!("record again and keep what the runtime writes: {}", switches(process))
            };
            ProblemText::new(
                "source-refused",
                "a dump or map is there, and cannot be used: its owner, its format, its time",
                format!(
                    "JIT code of {} has no names: its {} {} is not used: {}",
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
            "let the runtime end by itself (its process must not be killed, nor leave by _exit), with room on the disk; copy \
                     the file only then",
        ),
        OfProcess::Torn { ref source, skipped, at_end } => {
            let is_map = source.kind == Kind::PerfMap;
            let unit = if is_map { "line" } else { "record" };
            let fault = match (at_end, skipped) {
                (true, 0 | 1) => format!("ends in the middle of a {unit}"),
                (true, more) => format!("has {more} damaged {unit}s, and ends in the middle of one"),
                (false, 1) => format!("has a damaged {unit}, and may lack what followed"),
                (false, more) => format!("has {more} damaged {unit}s, and may lack what followed"),
            };
            let remedy = if is_map {
                "copy the map again, whole, when the process has ended; or record again"
            } else {
                COPY_AGAIN
            };
            ProblemText::new(
                "source-torn",
                "records or lines of a dump or map are damaged, or its end is missing",
                format!("{} of {} {fault}: {}", file(&source.path), who(process), covers(source)),
                remedy,
            )
        }
        OfProcess::OtherRun { ref source } => ProblemText::new(
            "source-of-other-run",
            "a dump or map contains addresses of memory that the process did not have",
            format!(
                "{} is not of this run of {}: it lists addresses that the process had not mapped",
                file(&source.path),
                who(process)
            ),
            format!(
                "bring the {} that process {} wrote when it was recorded, or record again",
                source.kind.name(),
                process.pid
            ),
        ),
        OfProcess::Replaced { ref source } => ProblemText::new(
            "source-replaced",
            "a process ran another program (exec), whose dump or map took the place of the first one's",
            format!(
                "{} names only the last program of {}: it ran another one before (exec), whose names were overwritten by those of \
                 the last, which has the same number",
                file(&source.path),
                who(process)
            ),
            "record the two programs one by one, or let the first one start the second as a child of its own (fork)",
        ),
        OfProcess::EndsEarly { ref source, before } => ProblemText::new(
            "dump-ends-early",
            "a dump's last record is older than most code without a name: the runtime was killed, or had not written all",
            format!(
                "{} ends {:.1} s before {} does: {}",
                file(&source.path),
                before as f64 / 1e9,
                who(process),
                covers(source)
            ),
            COPY_AGAIN,
        ),
        OfProcess::Incomplete { ref source, spoiler: Some(option), .. } => ProblemText::new(
            "source-incomplete",
            "a dump or map is sound, and lacks code that ran",
            format!(
                "{} lacks some of the code of {}: {}; {option} left it out",
                file(&source.path),
                who(process),
                covers(source)
            ),
            format!("leave {option} out: {}", switches(process)),
        )
        .above(STUBS),
        OfProcess::Overwritten { ref source, by, ref ways } => ProblemText::new(
            "source-overwritten",
            "two runtimes of a process wrote the same map: the names of the last one replaced those of the other",
            format!(
                "{} has the names of {} only, which wrote to the same file as {}: {}",
                file(&source.path),
                by.name,
                who(process),
                covers(source)
            ),
            format!("make one of them write another file: {ways}"),
        ),
        OfProcess::Incomplete { ref source, given, .. } => {
            let runtime = process.runtime;
            let is_jvm = runtime.is_some_and(|runtime| runtime.frame_pointers.is_some());
            let remedy = match source.kind {
                Kind::PerfMap if is_jvm && given.is_some_and(|switch| switch.at_end) => {
                    "it is the state of the end: what was freed before is in no map. -XX:+LogCompilation instead logs methods as they \
                     are compiled (hotspot_pidPID.log), as perf's agent libperf-jvmti.so does"
                        .to_owned()
                }
                Kind::PerfMap if is_jvm => "it is the state of one moment: write it when the program ends (java \
                                            -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit), or `jcmd PID Compiler.perfmap` right \
                                            behind the recording"
                    .to_owned(),
                Kind::PerfMap => {
                    let unnamed = unnamed(process);
                    let dump = if has_dump(process) { "; a jitdump has times and holds both" } else { "" };
                    format!(
                        "it was written before that code was compiled, or after it was freed: copy it when the process has \
                         ended{dump}{unnamed}"
                    )
                }
                Kind::Log(_) if is_jvm => format!(
                    "the interpreter, stubs and adapters are in no log of HotSpot's: a perf map of the same run has them (jcmd PID \
                     Compiler.perfmap before it ends); give both, --perf-map FILE@{} --jit-log {}",
                    process.pid,
                    file(&source.path)
                ),
                Kind::JitDump | Kind::PlacedElf | Kind::Log(_) => {
                    let unnamed = unnamed(process);
                    match given {
                        Some(switch) => {
                            format!("code that the runtime does not log{unnamed}: {} was given from the start", switch.name())
                        }
                        None => format!(
                            "code that the runtime does not log{unnamed}, or that it made before it began to log: switch it on from \
                             the start"
                        ),
                    }
                }
            };
            ProblemText::new(
                "source-incomplete",
                "a dump or map is sound, and lacks code that ran",
                format!("{} lacks some of the code of {}: {}", file(&source.path), who(process), covers(source)),
                remedy,
            )
            .above(STUBS)
        }
        OfProcess::ImagesGone { ref path, count } => {
            let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            ProblemText::new(
                "injected-images-gone",
                "names were injected, and the images `jitted-*.so` are gone",
                format!("names were injected for {}, but their images are gone: {}{more}", who(process), file(path)),
                "inject again: jitgraft inject -i perf.data -o new.data, with the recording as it was and its dumps; or bring the \
                         images back to that path",
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
                    format!("{switch} was given, but its code keeps no frame pointers: {DWARF}")
                }
                Some(switch) => {
                    format!(
                        "{switch} was given: what is left are functions that the engine gave no frame of their own all the same"
                    )
                }
                None => match elsewhere.and_then(|switch| by_variable(process, switch)) {
                    Some(by_variable) => by_variable,
                    None if is_first => own_remedy.to_owned(),
                    None => format!("{}; {own_remedy}", switches(process)),
                },
            };
            let why = match elsewhere {
                Some(switch) => not_reached(switch),
                None => format!("{name}{version} exposed no names for interpreted functions"),
            };
            ProblemText::new(
                "interpreted",
                "all that is seen of the program is its interpreter",
                format!("{} interpreted its program: {why}", who(process)),
                remedy,
            )
            .above(MUCH)
        }
        OfProcess::JvmFramePointers { is_known } => {
            let why = if is_known {
                "its JVM ran without -XX:+PreserveFramePointer"
            } else {
                "its JVM keeps no frame pointers there (its options are not in the recording)"
            };
            ProblemText::new(
                "jvm-frame-pointers",
                "stacks break off in compiled Java code: it keeps no frame pointers without `-XX:+PreserveFramePointer`",
                format!("stacks of {} break off in compiled methods: {why}", who(process)),
                "run java with -XX:+PreserveFramePointer (or have JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer in its environment)",
            )
            .above(ORDINARY)
        }
        OfProcess::FramePointers { ref files, machine, in_go: true, .. } => {
            let (why, remedy) = match machine {
                EM_X86_64 | EM_AARCH64 => (
                    "its compiler keeps frame pointers, its runtime's assembler not everywhere",
                    "nothing brings these callers back: no option of Go's changes its runtime; what they called is right",
                ),
                _ => (
                    "on this machine Go keeps no frame pointers",
                    "the innermost frames are right; Go has no option that keeps frame pointers here",
                ),
            };
            let cause = format!("stacks of {} break off in {}, made by Go: {why}", who(process), place(files, false));
            ProblemText::new("frame-pointers", "stacks break off in code without frame pointers", cause, remedy)
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
                        "{DWARF}, and make it write a dump, which contains how to leave its code: {}",
                        switches(process)
                    )
                }
                (true, _) => DWARF.to_owned(),
                (false, _) if !in_jit => BUILD.to_owned(),
                _ => format!(
                    "the innermost frames are right; the callers of JIT code cannot be found on {}",
                    machine_name(machine)
                ),
            };
            ProblemText::new(
                "frame-pointers",
                "stacks break off in code without frame pointers",
                format!(
                    "stacks of {} break off in {}: code without frame pointers",
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
                    "bring its dump, and keep it beside the recording: it contains how to leave its code"
                }
                Some(_) if in_jit && dump == UnwindingDump::Here => NO_CALLERS,
                Some(runtime) if in_jit && runtime.name == "CPython" => {
                    "only a whole dump of -X perf_jit (3.13 or newer) contains unwind data; the map of -X perf does not. Or \
                     build Python with -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer and record with -g"
                }
                Some(runtime)
                    if in_jit
                        && runtime.switches.iter().any(|switch| switch.flags.contains(&Flag::Word("--perf-prof"))) =>
                {
                    "run it with --perf-prof-unwinding-info beside --perf-prof, and keep the dump: it contains unwind data"
                }
                _ if in_jit => NO_CALLERS,
                _ if are_here => {
                    "these files contain nothing that tells how: their debugging information may (--debug-dir DIR); or record with \
                     perf record -g, if they keep frame pointers; or build them with -fasynchronous-unwind-tables"
                }
                _ => {
                    "bring these files as they ran (--symfs DIR), or their debugging information (--debug-dir DIR); build them with \
                     -fasynchronous-unwind-tables"
                }
            };
            ProblemText::new(
                "not-unwound",
                "copies of stacks cannot be unwound to their end",
                format!(
                    "copied stacks of {} cannot be unwound beyond {}: how to leave it is not known",
                    who(process),
                    place(files, in_jit)
                ),
                remedy,
            )
            .above(SOME)
        }
    }
}

/// How to make the process's runtime report its code.
fn switches(process: &Who) -> String {
    match process.runtime.map(|runtime| (runtime, process.advice.as_ref(), process.too_old.as_ref())) {
        Some((_, Some(how), _)) => format!("{how}; or pass its file with --jitdump, --perf-map or --jit-log"),
        Some((_, None, Some(too_old))) => too_old.clone(),
        Some((runtime, None, None)) => runtime.unnamed.to_owned(),
        None => "if a JIT compiler runs there, make it write a perf map, a jitdump or a log that is read (jitgraft formats), and pass it with --perf-map, --jitdump or --jit-log if it is not in a usual place"
            .to_owned(),
    }
}

/// True if the process's runtime can write a jitdump.
fn has_dump(process: &Who) -> bool {
    let is_dump = |switch: &Switch| switch.leaves.iter().any(|file| file.ends_with(".dump"));
    process.runtime.is_none_or(|runtime| runtime.switches.iter().any(is_dump))
}

/// Says why a switch in the recorded command line did not reach a process.
fn not_reached(switch: &Switch) -> String {
    format!("{} reached only what perf started: another process executed this one, without it", switch.name())
}

/// The environment variable that also reaches processes that other processes start.
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
        "{variable} in the environment of what is recorded reaches every process; options such as {name} are not handed on by those \
         that start others (python's multiprocessing by spawn and forkserver, subprocess, child_process.spawn)"
    ))
}

/// What to do if a process could not map its jitdump. perf only finds jitdumps that are mapped.
fn could_not_map(process: &Who, given: Option<&Switch>) -> String {
    let name = given.map_or_else(String::new, |switch| format!(" ({})", switch.leaves.join(", ")));
    let switches = process.runtime.map_or(&[][..], |runtime| runtime.switches);
    let is_map = |switch: &&Switch| switch.leaves.iter().all(|file| file.ends_with(".map")) && switch.can_be_set();
    let by_map = switches.iter().find(is_map).filter(|_| given.is_none_or(|given| !is_map(&given)));
    let by_map =
        by_map.map_or_else(String::new, |switch| format!(", or use {}, whose map is not mapped", switch.name()));
    format!(
        "its directory{name} is mounted noexec, most likely (findmnt -T DIRECTORY shows that), or cannot be written to: let the \
         runtime write elsewhere{by_map}"
    )
}

/// A sentence about code of a runtime that stays unnamed in any case, to be appended to others.
fn unnamed(process: &Who) -> String {
    let unnamed = process.runtime.map(|runtime| runtime.unnamed).filter(|unnamed| !unnamed.is_empty());
    unnamed.map_or_else(String::new, |unnamed| format!(" (it never names {unnamed})"))
}

fn place(files: &[String], in_jit: bool) -> String {
    if in_jit { "JIT code".to_owned() } else { list(files) }
}
