//! Part of the crate in tests and under the fuzzer only (`cfg(fuzzing)`), because targets call its inner readers.
//!
//! The checks of any bytes: one function a target. The fuzzer (`targets/all.rs`) feeds them with what it thinks up,
//! `replay` with what it once found.
//!
//! A target may refuse its input, but not panic, run long or take more memory than the input can ask for; where what
//! was read or written has a bound or can be read again, that is asserted.

#![allow(unreachable_pub, reason = "the fuzzer's program is another crate, the tests are not")]

#[cfg(test)]
mod archive;
mod code;
pub mod commands;
#[cfg(test)]
mod cut;
mod framed;
mod logged;
mod maps;
mod nested;
mod packs;
mod pairs;
#[cfg(test)]
mod properties;
mod readers;
mod recordings;
#[cfg(test)]
mod replay;
pub mod scene;
pub mod scratch;
mod spans;

/// The work on an input.
pub type Run = fn(bytes: &[u8]);

/// Runs commands for `tests/tools/pairs.py`. Not a target of its own, because its inputs are whole command lines.
pub const PAIRS: (&str, Run) = ("pairs", pairs::pairs);

/// Each target by its name, in the order of the table in README.md.
pub const TARGETS: &[(&str, Run)] = &[
    ("perf_data", recordings::perf_data),
    ("framed", framed::framed),
    ("scene", scene::scene),
    ("inject", commands::inject),
    ("script", commands::script),
    ("callgrind_command", commands::callgrind),
    ("merge", commands::merge),
    ("convert", commands::convert),
    ("jitdump", recordings::jitdump),
    ("perf_map", recordings::perf_map),
    ("jit_logs", recordings::jit_logs),
    ("hotspot", recordings::hotspot),
    ("core", logged::core),
    ("logged", logged::logged),
    ("elf", code::elf),
    ("unwind", code::unwind),
    ("ready_to_run", code::ready_to_run),
    ("kallsyms", code::kallsyms),
    ("disasm", code::disasm),
    ("source_map", maps::source_map),
    ("wasm", maps::wasm),
    ("demangle", code::demangle),
    ("measureme", spans::measureme),
    ("trace_event", spans::trace_event),
    ("perf_script", readers::perf_script),
    ("callgrind", readers::callgrind),
    ("folded", readers::folded),
    ("cpuprofile", readers::cpuprofile),
    ("pprof", readers::pprof),
    ("otlp", readers::otlp),
    ("inject_pprof", readers::inject_pprof),
    ("firefox", readers::firefox),
    ("inject_firefox", readers::inject_firefox),
    ("speedscope", readers::speedscope),
    ("texts", readers::texts),
    ("archive", packs::archive),
    ("nested_dwarf", nested::nested_dwarf),
    ("nested_otlp", nested::nested_otlp),
    ("nested_json", nested::nested_json),
];
