//! PyPy's log of its tracing JIT: `PYPYLOG=jit-backend,jit-log-opt:FILE`.
//!
//! ```text
//! [3f857057e8f0] {jit-backend-dump                          the processor's time-stamp counter, a section begins
//! CODE_DUMP @7f82f0f51950 +0  4889…                         machine code at an address, `+` so many bytes
//! [3f8570582ade] jit-backend-dump}                          … and ends; sections may stand in sections
//! Loop 1 (fib;/a/work.py:3-5~#16 FOR_ITER) has address 0x… to 0x… (bootstrap 0x…)
//!        gc table: 0x…                                      what the block of machine code begins with
//!        function: 0x…                                      where code begins; of a bridge: `jump target: 0x…`
//!             end: 0x…
//! bridge out of Guard 0x7f82f0f1e920 has address 0x… to 0x…
//! # Loop 1 (…) : loop with 76 ops                           of section jit-log-opt-loop (or -bridge)
//! debug_merge_point(1, 2, 'add;/a/work.py:27-28~#4 LOAD_ATTR')   depth of the call and its number, bytecode
//! +698: guard_nonnull_class(p71, …, descr=<Guard0x7f82f0f1f6a0>) […]   so many bytes from the block's beginning
//! ```
//!
//! Facts that the reader must know:
//! * A place is `FUNCTION;FILE:LINE OF DEF-LINE~#BYTECODE OPERATION`; generators are `<code object …> <generator>`;
//!   drivers that are not bytecode loops write what they like.
//! * Calls that were traced through are in the loop with their depth: that is the tree of inlined calls. A bridge
//!   begins in the middle of one: the calls around it are those at its guard, which is in what was compiled before.
//! * Later dumps of a few bytes are patches: the jump to a bridge is written into the code that it leaves. That shows
//!   whose bridge it is even where nothing but the backend was logged.
//! * Dumps that no loop or bridge lies in are the backend's own helpers, which it makes when it starts.
//! * Freed code is not reported of (but by section jit-mem): of two pieces at one address the later one holds.
//! * Times are the counter's (`rdtsc`) on x86, elsewhere the thread's own processor time, which contains nothing about
//!   others.
//!
//! Memory: at most twice the log, for machine code and what belongs to it; operations are read again when asked for.
//!
//! See `rpython/translator/c/src/debug_print.c`, `rpython/jit/backend/x86/assembler.py`,
//! `rpython/jit/metainterp/logger.py` and `pypy/module/pypyjit/interp_jit.py` of PyPy.

mod lines;
mod machine_code;
mod place;
mod positions;
mod reader;
mod trace;

use super::{CodeLog, JitLog};
use crate::error::{Error, Result};
use memchr::memmem;

/// PyPy's log.
pub(super) const LOG: JitLog = JitLog {
    name: "PyPy log",
    id: "pypy-log",
    about: "PyPy's log of its tracing JIT (PYPYLOG=jit-backend,jit-log-opt:FILE)",
    files: &["pypy.log", "pypy-PID.log", "*.pypylog"],
    sniff,
    read,
    process: None,
};

fn sniff(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n').take(64);
    lines.any(|line| lines::bracket(line).is_some_and(|bracket| bracket.is_begin))
}

fn read(bytes: &[u8]) -> Result<CodeLog> {
    let log = reader::read(bytes);
    let tells = |word: &[u8]| memmem::find(bytes, word).is_some();
    if log.events.is_empty() && !tells(b"{jit-backend") && !tells(b"CODE_DUMP") {
        let way = "PyPy wrote this log without addresses: PYPYLOG=jit-backend,jit-log-opt:FILE has them";
        return Err(Error::new(way));
    }
    Ok(log)
}

#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod tests;
