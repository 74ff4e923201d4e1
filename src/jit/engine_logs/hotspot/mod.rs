//! Reads what OpenJDK's HotSpot records about its compiled methods, other than perf maps.
//!
//! | artifact | how | holds |
//! |---|---|---|
//! | compilation log ([`COMPILATION`]) | `-XX:+UnlockDiagnosticVMOptions -XX:+LogCompilation`: `hotspot_pidPID.log` | every compiled method, with times, tiers and inlined calls |
//! | code list ([`CODE_LIST`]) | `jcmd PID Compiler.codelist` | the methods that are compiled at that moment |
//!
//! Neither lists the interpreter, stubs, adapters and other code that is not a method; only the perf map of `jcmd PID
//! Compiler.perfmap` or `-XX:+DumpPerfMapAtExit` does. Names are spelled as in that map, `int
//! java.lang.String.hashCode()`, followed by the compiler: ` [c1]` or ` [c2]`.

mod code_list;
mod compilation;
mod element;
mod inlining;
#[cfg(test)]
mod log_tests;
mod method;

use crate::jit::engine_logs::code_log::JitLog;

/// The log of `-XX:+LogCompilation`.
pub(super) const COMPILATION: JitLog = JitLog {
    name: "HotSpot compilation log",
    id: "hotspot-log",
    about: "compiled methods of OpenJDK with times and tiers, from java -XX:+UnlockDiagnosticVMOptions \
            -XX:+LogCompilation",
    files: &["hotspot_pidPID.log", "hotspot_PID.log", "hotspot.log"],
    sniff: compilation::sniff,
    read: compilation::read,
    find_process: None,
};

/// The output of `jcmd PID Compiler.codelist`.
pub(super) const CODE_LIST: JitLog = JitLog {
    name: "HotSpot code list",
    id: "hotspot-list",
    about: "currently compiled methods of OpenJDK, from jcmd PID Compiler.codelist > codelist-PID.txt",
    files: &["codelist-PID.txt", "codelist.txt"],
    sniff: code_list::sniff,
    read: code_list::read,
    find_process: None,
};
