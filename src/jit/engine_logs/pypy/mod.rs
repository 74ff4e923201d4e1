//! Reads PyPy's log of its tracing JIT: `PYPYLOG=jit-backend,jit-log-opt:FILE`.
//!
//! ```text
//! [3f857057e8f0] {jit-backend-dump                          time-stamp counter; a section begins
//! CODE_DUMP @7f82f0f51950 +0  4889…                         machine code at an address plus an offset
//! [3f8570582ade] jit-backend-dump}                          … and ends; sections may be nested
//! Loop 1 (fib;/a/work.py:3-5~#16 FOR_ITER) has address 0x… to 0x… (bootstrap 0x…)
//!        gc table: 0x…                                      start of the block of machine code
//!        function: 0x…                                      start of the code; for a bridge: `jump target: 0x…`
//!             end: 0x…
//! bridge out of Guard 0x7f82f0f1e920 has address 0x… to 0x…
//! # Loop 1 (…) : loop with 76 ops                           in section jit-log-opt-loop (or -bridge)
//! debug_merge_point(1, 2, 'add;/a/work.py:27-28~#4 LOAD_ATTR')   depth and number of the call, bytecode
//! +698: guard_nonnull_class(p71, …, descr=<Guard0x7f82f0f1f6a0>) […]   offset from the start of the block
//! ```
//!
//! What to know about the format:
//! * A location is `FUNCTION;FILE:LINE OF DEF-LINE~#BYTECODE OPERATION`. Generators are `<code object …> <generator>`;
//!   JIT drivers other than the bytecode loop write whatever they like.
//! * Calls that were traced through appear in the loop with their depth, which gives the tree of inlined calls. A
//!   bridge begins inside a call: the calls around it are those at its guard, in code that was compiled before.
//! * Later dumps of a few bytes are patches: the jump to a bridge is written into the code that the bridge leaves. This
//!   shows where a bridge belongs even if only the backend was logged.
//! * Dumps that contain no loop or bridge are the backend's own helpers, created at startup.
//! * Freed code is not logged (except in section jit-mem). Of two pieces at the same address, the later one counts.
//! * Times are the time-stamp counter (`rdtsc`) on x86. Elsewhere they are the thread's own CPU time, which can't be
//!   related to anything else.
//!
//! Memory: at most twice the size of the log, for machine code and what belongs to it. Operations are read again on
//! demand.
//!
//! See `rpython/translator/c/src/debug_print.c`, `rpython/jit/backend/x86/assembler.py`,
//! `rpython/jit/metainterp/logger.py` and `pypy/module/pypyjit/interp_jit.py` of PyPy.

mod lines;
mod machine_code;
mod positions;
mod reader;
mod source_location;
mod trace;

use super::{CodeLog, JitLog};
use crate::error::{Error, Result};
use memchr::memmem;

/// The table entry for PyPy's log.
pub(super) const LOG: JitLog = JitLog {
    name: "PyPy log",
    id: "pypy-log",
    about: "PyPy's log of its tracing JIT (PYPYLOG=jit-backend,jit-log-opt:FILE)",
    files: &["pypy.log", "pypy-PID.log", "*.pypylog"],
    sniff,
    read,
    find_process: None,
};

fn sniff(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n').take(64);
    lines.any(|line| lines::parse_bracket(line).is_some_and(|bracket| bracket.is_begin))
}

/// Reads a PyPy log. Fails if the log has no addresses because PyPy was asked for other sections only.
fn read(bytes: &[u8]) -> Result<CodeLog> {
    let log = reader::read(bytes);
    let contains = |word: &[u8]| memmem::find(bytes, word).is_some();
    if log.events.is_empty() && !contains(b"{jit-backend") && !contains(b"CODE_DUMP") {
        let message = "contains no addresses of machine code; run PyPy with PYPYLOG=jit-backend,jit-log-opt:FILE";
        return Err(Error::new(message));
    }
    Ok(log)
}

#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod tests;
