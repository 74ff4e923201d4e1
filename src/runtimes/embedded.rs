//! Entries of the table for compilers that other programs load as libraries: a process is known to have one by the
//! library that it maps, whatever its program is.

use super::engines::{V8_EXAMPLES, V8_NAMES, V8_PLAIN_NAMES};
use super::runtime::{PLAIN, Runtime};
use super::switch::{SWITCH, Stacks, Switch};

/// Code that LLVM registered for debuggers: it is in the memory of the process, and in a core dump.
const REGISTERED: Switch = Switch {
    by_hand: "take a core dump with `gcore PID` while it runs (its compiler registers all code for debuggers)",
    leaves: &["./core.PID"],
    stacks: Stacks::Copies,
    ..SWITCH
};

/// Compiles functions of Python by LLVM, as does whatever else uses llvmlite.
pub(super) const NUMBA: Runtime = Runtime {
    name: "numba",
    carries: &["llvmlite"],
    frame_type: "llvm",
    called: "python",
    libraries: &["libllvmlite.so"],
    switches: &[REGISTERED],
    unnamed: "code of processes that have ended without a core dump: numba writes neither a map nor a jitdump",
    ..PLAIN
};

/// Compiles what its arrays go through by XLA.
pub(super) const JAX: Runtime = Runtime {
    name: "JAX",
    frame_type: "llvm",
    called: "python",
    libraries: &["libjax_common.so", "xla_extension.so", "_jax.so"],
    switches: &[REGISTERED],
    unnamed: "code of processes that have ended without a core dump: XLA writes neither a map nor a jitdump",
    ..PLAIN
};

/// Compiles kernels of Python by LLVM.
pub(super) const TAICHI: Runtime = Runtime {
    name: "Taichi",
    frame_type: "llvm",
    called: "python",
    libraries: &["taichi_python*"],
    unnamed: "all its kernels: Taichi writes neither a map nor a jitdump",
    ..PLAIN
};

/// ClickHouse in a process of Python.
pub(super) const CHDB: Runtime = Runtime {
    name: "chDB",
    frame_type: "llvm",
    called: "python",
    libraries: &["_chdb*"],
    unnamed: "all compiled expressions: ClickHouse writes neither a map nor a jitdump; SETTINGS compile_expressions = 0 interprets them",
    ..PLAIN
};

/// V8 in a process of Python.
pub(super) const MINI_RACER: Runtime = Runtime {
    name: "mini-racer",
    frame_type: "v8js",
    called: "python",
    libraries: &["libmini_racer.so"],
    switches: &[Switch {
        by_hand: "call py_mini_racer.init_mini_racer(flags=(\"--single-threaded\", \"--perf-prof\", \
                  \"--interpreted-frames-native-stack\")) before the first MiniRacer()",
        leaves: &["./jit-PID.dump"],
        ..SWITCH
    }],
    unnamed: "V8's own functions: its library is stripped",
    marked_names: V8_NAMES,
    plain_names: V8_PLAIN_NAMES,
    examples: V8_EXAMPLES,
    ..PLAIN
};

/// SpiderMonkey in a process of Python.
pub(super) const PYTHON_MONKEY: Runtime = Runtime {
    name: "PythonMonkey",
    frame_type: "spidermonkey",
    called: "python",
    libraries: &["pythonmonkey.so"],
    unnamed: "all JavaScript code: its SpiderMonkey is built without --enable-perf",
    ..PLAIN
};

/// LuaJIT in a process of Python.
pub(super) const LUPA: Runtime = Runtime {
    name: "Lupa",
    frame_type: "luajit",
    called: "python",
    libraries: &["luajit20.*", "luajit21.*"],
    switches: &[Switch {
        by_hand: "run require('jit.dump').on('m', 'luajit.dump') in the Lua runtime first, with the Lua files of a LuaJIT of the \
                  same version in its package.path",
        leaves: &["./luajit.dump"],
        stacks: Stacks::Copies,
        ..SWITCH
    }],
    unnamed: "interpreted functions: the interpreter is one piece of assembler",
    ..PLAIN
};

/// Regular expressions, in `grep -P`, git, PHP and many others.
pub(super) const PCRE2: Runtime = Runtime {
    name: "PCRE2",
    frame_type: "pcre2",
    called: "grep -P",
    libraries: &["libpcre2-*"],
    is_library: true,
    unnamed: "compiled regular expressions: PCRE2 writes neither a map nor a jitdump; the functions that call them have names",
    ..PLAIN
};
