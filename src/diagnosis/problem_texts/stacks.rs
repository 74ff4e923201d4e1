//! The texts about stacks that end too soon.

use super::entry::{ANY, ORDINARY, ProblemText, SOME};
use super::text::{list, who};
use crate::diagnosis::problem::Who;
use crate::model::abi::{EM_ARM, EM_S390, machine_name};
use crate::resolve::unwind::registers::Machine;
use crate::runtimes::Flag;

/// The greatest copy of a stack that perf takes.
const LARGEST_COPY: u32 = 65528;

const DWARF: &str = "record with perf record --call-graph dwarf";
const BUILD: &str = "build with -fno-omit-frame-pointer (Rust: -C force-frame-pointers=yes)";

fn place(files: &[String], in_jit: bool) -> String {
    if in_jit { "JIT code".to_owned() } else { list(files) }
}

pub(super) fn jvm_frame_pointers(process: &Who, is_known: bool) -> ProblemText {
    let why = if is_known {
        "its JVM ran without -XX:+PreserveFramePointer"
    } else {
        "its JVM keeps no frame pointers there (its options are not in the recording)"
    };
    ProblemText {
        key: "jvm-frame-pointers",
        about: "stacks break off in compiled Java code: it keeps no frame pointers without `-XX:+PreserveFramePointer`",
        threshold: ORDINARY,
        cause: format!("stacks of {} break off in compiled methods: {why}", who(process)),
        remedy: "run java with -XX:+PreserveFramePointer (or have JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer in its environment)"
            .to_owned(),
    }
}

pub(super) fn frame_pointers(process: &Who, files: &[String], in_jit: bool, machine: u16) -> ProblemText {
    // Call chains of 32-bit Arm and s390x lead through no frame pointers that compilers make there.
    let has_frame_pointers = !matches!(machine, EM_ARM | EM_S390);
    let remedy = match (Machine::is_any_known(machine), has_frame_pointers) {
        (true, true) if !in_jit => format!("{DWARF}, or {BUILD}"),
        (true, true) => DWARF.to_owned(),
        (true, false) if !in_jit => DWARF.to_owned(),
        (false, _) if !in_jit => BUILD.to_owned(),
        _ => format!(
            "the innermost frames are right; the callers of JIT code cannot be found on {}",
            machine_name(machine)
        ),
    };
    ProblemText {
        key: "frame-pointers",
        about: "stacks break off in code without frame pointers",
        threshold: ORDINARY,
        cause: format!("stacks of {} break off in {}: code without frame pointers", who(process), place(files, in_jit)),
        remedy,
    }
}

pub(super) fn no_unwinder(machine: u16) -> ProblemText {
    ProblemText {
        key: "no-unwinder",
        about: "stacks were copied on a machine whose copies cannot be unwound",
        threshold: ANY,
        cause: format!(
            "stacks were copied, but copies of {} cannot be unwound: callers are missing",
            machine_name(machine)
        ),
        remedy: format!("record with -g, and {BUILD}"),
    }
}

pub(super) fn chains_cut(limit: u16) -> ProblemText {
    ProblemText {
        key: "call-chains-cut",
        about: "stacks have more frames than the kernel may record (`kernel.perf_event_max_stack`, or `max-stack` of the event)",
        threshold: ANY,
        cause: format!("stacks are cut: they have more than the {limit} frames that the kernel was allowed to record"),
        remedy: format!(
            "as root: sysctl kernel.perf_event_max_stack={}, then record again (without max-stack={limit}, if that was given)",
            (u32::from(limit) * 8).max(1024)
        ),
    }
}

pub(super) fn too_deep() -> ProblemText {
    ProblemText {
        key: "stacks-too-deep",
        about: "stacks have more frames than are unwound (`--max-stack`)",
        threshold: ANY,
        cause: "stacks are cut: they have more frames than are unwound".to_owned(),
        remedy: "give --max-stack 1024: this many frames are then unwound".to_owned(),
    }
}

pub(super) fn copies_short(bytes: u32) -> ProblemText {
    let remedy = match bytes.saturating_mul(2) > LARGEST_COPY {
        true => "no copy may be longer: build with -fno-omit-frame-pointer and record with -g instead".to_owned(),
        false => format!("record with longer copies: --call-graph dwarf,{LARGEST_COPY}"),
    };
    ProblemText {
        key: "stack-copies-short",
        about: "stacks are cut where their copies end (`--call-graph dwarf,BYTES`)",
        threshold: ANY,
        cause: format!("stacks are cut where their copies end: {bytes} bytes do not hold them"),
        remedy,
    }
}

pub(super) fn not_unwound(process: &Who, files: &[String], in_jit: bool) -> ProblemText {
    let runtime = process.runtime;
    let remedy = match runtime {
        Some(runtime) if in_jit && runtime.name == "CPython" => {
            "only a whole dump of -X perf_jit (3.13 or newer) contains unwind data; the map of -X perf does not. Or \
             build Python with -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer and record with -g"
        }
        Some(runtime)
            if in_jit && runtime.switches.iter().any(|switch| switch.flags.contains(&Flag::Word("--perf-prof"))) =>
        {
            "run it with --perf-prof-unwinding-info beside --perf-prof, and keep the dump: it contains unwind data"
        }
        _ if in_jit => {
            "the innermost frames are right; their callers cannot be found where a runtime neither keeps frame pointers nor logs \
             how to unwind its code"
        }
        _ => {
            "bring these files as they ran (--symfs DIR), or their debugging information (--debug-dir DIR); build them with \
             -fasynchronous-unwind-tables"
        }
    };
    ProblemText {
        key: "not-unwound",
        about: "copies of stacks cannot be unwound to their end",
        threshold: SOME,
        cause: format!(
            "copied stacks of {} cannot be unwound beyond {}: how to leave it is not known",
            who(process),
            place(files, in_jit)
        ),
        remedy: remedy.to_owned(),
    }
}
