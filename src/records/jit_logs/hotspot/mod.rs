//! The records of OpenJDK's HotSpot about its compiled methods, without a perf map.
//!
//! | artifact | how | holds |
//! |---|---|---|
//! | compilation log ([`COMPILATION`]) | `-XX:+UnlockDiagnosticVMOptions -XX:+LogCompilation`: `hotspot_pidPID.log` | every method compiled, with times, tiers and what was inlined |
//! | code list ([`CODE_LIST`]) | `jcmd PID Compiler.codelist` | the methods that are compiled now |
//!
//! Neither lists the interpreter, stubs, adapters and other code that is not a method: only the perf map of `jcmd PID
//! Compiler.perfmap` or `-XX:+DumpPerfMapAtExit` does. Names are put together as that map spells them, `int
//! java.lang.String.hashCode()`, with the compiler behind: ` [c1]` or ` [c2]`.

mod code_list;
mod compilation;
mod element;
mod inlining;
#[cfg(test)]
mod log_tests;
mod method;

use crate::records::jit_logs::code_log::JitLog;

/// The output of `-XX:+LogCompilation`.
pub(super) const COMPILATION: JitLog = JitLog {
    name: "HotSpot compilation log",
    id: "hotspot-log",
    about: "compiled methods of OpenJDK with times and tiers, written by java with -XX:+UnlockDiagnosticVMOptions -XX:+LogCompilation",
    files: &["hotspot_pidPID.log", "hotspot_PID.log", "hotspot.log"],
    sniff: compilation::sniff,
    read: compilation::read,
    process: None,
};

/// The output of `jcmd PID Compiler.codelist`.
pub(super) const CODE_LIST: JitLog = JitLog {
    name: "HotSpot code list",
    id: "hotspot-list",
    about: "methods of OpenJDK that are compiled now, printed by jcmd PID Compiler.codelist > codelist-PID.txt",
    files: &["codelist-PID.txt", "codelist.txt"],
    sniff: code_list::sniff,
    read: code_list::read,
    process: None,
};
