//! Entries of the table for what translates machine code or is a library for compilers, and for Lisps that report to
//! perf nothing.

use super::runtime::{PLAIN, Runtime};
use super::switch::{Flag, SWITCH, Switch, Version};

/// Translates programs of another processor.
pub(super) const QEMU: Runtime = Runtime {
    name: "QEMU",
    called: "qemu-x86_64",
    valued: &["-L", "-cpu", "-E", "-U", "-s", "-B", "-R", "-0", "-g", "-d", "-D"],
    version_flag: "--version",
    frame_type: "qemu",
    programs: &["qemu-*"],
    switches: &[
        Switch { flags: &[Flag::Word("-jitdump")], since: Some(Version(8, 0)), leaves: &["./jit-PID.dump"], ..SWITCH },
        Switch {
            flags: &[Flag::Word("-perfmap")],
            since: Some(Version(8, 0)),
            leaves: &["/tmp/perf-PID.map"],
            ..SWITCH
        },
    ],
    unnamed: "functions of a guest whose ELF file is not found by the recorded command line (--guest FILE): guest-0x…",
    examples: &[("guest-0x401136", None), ("mix", None)],
    ..PLAIN
};

/// Programs that compile with LLVM while they run.
pub(super) const LLVM: Runtime = Runtime {
    name: "LLVM",
    called: "lli",
    frame_type: "llvm",
    programs: &["lli", "lli-*"],
    libraries: &["libLLVM*"],
    is_library: true,
    switches: &[
        Switch {
            flags: &[Flag::Word("--jit-kind=mcjit")],
            note: "; in a program of one's own, register llvm::JITEventListener::createPerfJITEventListener() (MCJIT, ORC's \
                   RTDyldObjectLinkingLayer)",
            // Below JITDUMPDIR, if that is in the environment.
            leaves: &["/tmp/.debug/jit/llvm-IR-jit-*/jit-PID.dump"],
            ..SWITCH
        },
        Switch {
            by_hand: "take a core dump with gcore PID while it runs, where code is registered for debuggers (lli does, MCJIT does)",
            leaves: &["./core.PID"],
            ..SWITCH
        },
    ],
    unnamed: "all JIT code of programs that register no listener (LLVM must be built with LLVM_USE_PERF), nor for debuggers",
    ..PLAIN
};

/// GNU's Scheme.
pub(super) const GUILE: Runtime = Runtime {
    name: "Guile",
    called: "guile",
    frame_type: "guile",
    programs: &["guile", "guile-*"],
    libraries: &["libguile-*"],
    unnamed: "all JIT code: Guile leaves neither map nor dump; with GUILE_JIT_THRESHOLD=-1 in its environment it only interprets",
    ..PLAIN
};

/// Steel Bank Common Lisp.
pub(super) const SBCL: Runtime = Runtime {
    name: "SBCL",
    called: "sbcl",
    frame_type: "sbcl",
    programs: &["sbcl"],
    unnamed: "all Lisp code: SBCL leaves neither map nor dump, and its core file, which holds the code, is not ELF; its own profiler sb-sprof has the names",
    ..PLAIN
};
