//! V8's log: `node --log-code` or `--prof` leaves `isolate-0x…-PID-v8.log`, one for each isolate (a worker is one).
//!
//! ```text
//! v8-version,11,3,244,8,-node.38,0
//! code-creation,JS,13,206481,0x7f9a6c026500,696,middle /a.js:5:16,0x29296bbd1190,*
//! code-source-info,0x7f9a6c026500,81,280,321,C0O280C53O293C72O243I1,F0O307F0O293,S0x29296bbd1140
//! script-source,81,/a.js,'use strict';\nfunction inner(a\x2C b) { …
//! code-move,0x7f9a6c026500,0x7f9a6c0a6500
//! ```
//!
//! A line is a word and fields behind commas. Facts about them that the reader must know (measured with node 18, 20, 22
//! and 25):
//! * `code-creation`: tag, kind, µs, address, size, name; of functions also the address of the SharedFunctionInfo,
//!   which is the function's identity, and the mark of the tier. Tag, `:`, mark and name are what `--perf-prof` calls
//!   the code. Kinds are numbers that differ from version to version.
//! * **A function's name is written as it is**, with commas and line feeds; the file behind it, and everything else, is
//!   escaped: `\n`, `\\`, `\x2C`, and UTF-16 units `\ud83d`. The fields behind the name are found from the line's end.
//! * An interpreted function's code is bytecode on the heap, which is not a machine code: it is left out. With
//!   `--interpreted-frames-native-stack` there is a trampoline besides, of the kind that builtins have.
//! * WebAssembly has no number in its name, but for functions without one: `wasm-function[3]` is
//!   `wasm-function[3]-3-liftoff` to `--perf-prof`, any other name `NAME-liftoff` here.
//! * Moves and deletions have **no times**: they lie between the lines around them that have. As V8 moves code into
//!   free memory, moved code is taken to be at both places from the time of the line before; what comes there later
//!   ends it. Functions move, too (`sfi-move`).
//! * Times count from when the isolate began to log: no clock that a recording has. `sources` ties them.
//! * `code-source-info` (`--log-source-position`; node 18: `--log-source-code`) follows its creation: script, the
//!   function's start and end, then C(ode offset)O(ffset in the script)I(nlined call), and of inlined calls the
//!   F(unction), O(ffset of the call) and I(nlined call that this one is in), and the functions. Offsets in scripts
//!   count UTF-16 units. Sparkplug's code has none.
//!
//! See V8's `src/logging/log.cc` and `tools/tickprocessor.mjs`.

mod names;
mod positions;
mod reader;
mod records;
mod sources;

#[cfg(test)]
mod tests;

use super::JitLog;

/// V8's log.
pub(super) const V8_LOG: JitLog = JitLog {
    name: "V8 log",
    id: "v8-log",
    about: "what V8 logs of its code: node --log-code (or --prof), with --log-source-position lines and inlined calls",
    files: &["isolate-*-PID-v8.log", "isolate-*-PID-v8-*.log", "v8.log"],
    sniff,
    read: reader::read,
    process: None,
};

/// True if a file begins as V8's logs do.
fn sniff(head: &[u8]) -> bool {
    head.starts_with(b"v8-version,")
}
