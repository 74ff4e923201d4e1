//! Entries of the table for runtimes that compile traces: what a loop did, through all calls in it.

use super::runtime::{PLAIN, Runtime};
use super::shape::Shape::{Is, Starts};
use super::switch::{Flag, SWITCH, Stacks, Switch};
use crate::model::tier::Tier::{Optimised, Stub};

/// Python's second implementation.
pub(super) const PYPY: Runtime = Runtime {
    name: "PyPy",
    called: "pypy3",
    frame_type: "pypy",
    programs: &["pypy*"],
    libraries: &["libpypy*"],
    switches: &[Switch {
        variables: &[("PYPYLOG", "jit-backend,jit-log-opt:pypy-%d.log")],
        leaves: &["./pypy-PID.log"],
        stacks: Stacks::Copies,
        ..SWITCH
    }],
    unnamed: "what PyPy interprets, where its library is stripped; its own profiler vmprof has that",
    // As the reader of its log puts them together: all code is traced and optimized but what the backend needs.
    plain_names: &[(Stub, &[Is("PyPy helper"), Is("Loop -1")])],
    other_names: Some(Optimised),
    examples: &[
        ("PyPy helper", Some(Stub)),
        ("Loop -1", Some(Stub)),
        ("fib work.py:5 #16 FOR_ITER", Some(Optimised)),
        ("fib work.py:6 #24 LOAD_FAST bridge", Some(Optimised)),
    ],
    ..PLAIN
};

/// Lua's second implementation, also inside of other programs.
pub(super) const LUAJIT: Runtime = Runtime {
    name: "LuaJIT",
    called: "luajit",
    valued: &["-e", "-l"],
    frame_type: "luajit",
    programs: &["luajit*"],
    libraries: &["libluajit*"],
    switches: &[
        Switch {
            flags: &[Flag::Word("-jdump=m,luajit.dump")],
            note: " (where another program embeds it: let that run require('jit.dump').on('m', 'luajit.dump') first, with \
                   LuaJIT's own Lua files in its package.path)",
            leaves: &["./luajit.dump"],
            stacks: Stacks::Copies,
            ..SWITCH
        },
        Switch {
            by_hand: "build LuaJIT with -DLUAJIT_USE_PERFTOOLS",
            leaves: &["/tmp/perf-PID.map"],
            stacks: Stacks::Copies,
            ..SWITCH
        },
    ],
    unnamed: "interpreted functions: the interpreter is one piece of assembler",
    // perftools_addtrace in src/lj_trace.c; the reader of its dump calls them likewise.
    plain_names: &[(Optimised, &[Starts("TRACE_")])],
    examples: &[("TRACE_12::w.lua:7", Some(Optimised))],
    ..PLAIN
};
