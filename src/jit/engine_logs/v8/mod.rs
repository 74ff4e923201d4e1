//! Reads V8's log. `node --log-code` or `--prof` writes an `isolate-0x…-PID-v8.log` per isolate (such as a worker).
//!
//! ```text
//! v8-version,11,3,244,8,-node.38,0
//! code-creation,JS,13,206481,0x7f9a6c026500,696,middle /a.js:5:16,0x29296bbd1190,*
//! code-source-info,0x7f9a6c026500,81,280,321,C0O280C53O293C72O243I1,F0O307F0O293,S0x29296bbd1140
//! script-source,81,/a.js,'use strict';\nfunction inner(a\x2C b) { …
//! code-move,0x7f9a6c026500,0x7f9a6c0a6500
//! ```
//!
//! A line is a keyword and comma-separated fields. What to know about them (measured with Node.js 18, 20, 22 and 25):
//! * `code-creation`: tag, kind, µs, address, size, name. Functions also have the address of their SharedFunctionInfo,
//!   which identifies the function, and the mark of the tier. `--perf-prof` composes its names of tag, `:`, mark and
//!   name. Kinds are numbers that differ between versions.
//! * **A function's name is not escaped**, so it may contain commas and line feeds. The file after it, and everything
//!   else, is escaped: `\n`, `\\`, `\x2C`, and UTF-16 units `\ud83d`. The fields after the name are found from the
//!   line's end.
//! * The code of an interpreted function is bytecode on the heap, not machine code, and is left out. With
//!   `--interpreted-frames-native-stack` it also has a trampoline, with the same kind as builtins.
//! * WebAssembly functions have no number in their name unless they are otherwise unnamed. `--perf-prof` calls
//!   `wasm-function[3]` `wasm-function[3]-3-liftoff`; any other name becomes `NAME-liftoff` here.
//! * Moves and deletions have **no times**; they happened between the lines around them that have. V8 moves code into
//!   free memory, so moved code is assumed to be at both addresses from the time of the line before, until other code
//!   is created at its old address. Functions (SharedFunctionInfos) move too (`sfi-move`).
//! * Times are relative to when the isolate began to log, so they are on no clock of a recording. `jit` relates
//!   them.
//! * `code-source-info` (`--log-source-position`; Node.js 18: `--log-source-code`) follows the creation: script, the
//!   function's start and end; then C(ode offset)O(ffset in the script)I(nlined call); for each inlined call its
//!   F(unction), O(ffset of the call) and the I(nlined call that contains it); then the functions. Offsets in scripts
//!   count UTF-16 units. Sparkplug's code has no such line.
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

/// The table entry for V8's log.
pub(super) const V8_LOG: JitLog = JitLog {
    name: "V8 log",
    id: "v8-log",
    about: "V8's log of its code (node --log-code or --prof); with --log-source-position, also lines and inlined calls",
    files: &["isolate-*-PID-v8.log", "isolate-*-PID-v8-*.log", "v8.log"],
    sniff,
    read: reader::read,
    find_process: None,
};

/// True if a file that starts with `head` is a log of V8.
fn sniff(head: &[u8]) -> bool {
    head.starts_with(b"v8-version,")
}
