//! The table of runtimes. The statements about names are based on recordings, or, where none could be made, what their
//! sources write; where neither is certain, a name contains nothing.

use super::embedded::{CHDB, JAX, LUPA, MINI_RACER, NUMBA, PCRE2, PYTHON_MONKEY, TAICHI};
use super::engines::{JSC_EXAMPLES, JSC_NAMES, V8_EXAMPLES, V8_INTERPRETERS, V8_NAMES, V8_PLAIN_NAMES, V8_UNNAMED};
use super::managed::{DOT_NET, MONO, OPENJDK};
use super::runtime::{FlagVariable, Interpreter, PLAIN, Runtime};
use super::shape::Shape::{Around, Ends, Holds, Is, Starts};
use super::switch::{Flag, SWITCH, Stacks, Switch, Version};
use super::tracing::{LUAJIT, PYPY};
use super::translators::{GUILE, LLVM, QEMU, SBCL};
use crate::model::tier::Tier::{Baseline, Interpreted, Optimised, Stub, Wasm};

const PHP_CLI: Flag = Flag::Setting { option: "-d", key: "opcache.enable_cli", value: "1", exact: false };
const PHP_BUFFER: Flag = Flag::Setting { option: "-d", key: "opcache.jit_buffer_size", value: "64M", exact: false };
const PHP_TRACING: Flag = Flag::Setting { option: "-d", key: "opcache.jit", value: "tracing", exact: false };

/// Every runtime that is known. They are queried in this order: what embeds another one precedes it.
pub const RUNTIMES: &[Runtime] = &[
    NUMBA,
    JAX,
    TAICHI,
    CHDB,
    MINI_RACER,
    PYTHON_MONKEY,
    LUPA,
    Runtime {
        name: "deno",
        called: "deno",
        flag_variables: &[FlagVariable { name: "DENO_V8_FLAGS", list_of: Some("--v8-flags=") }],
        subcommands: &["run", "test", "bench", "eval", "serve", "task"],
        valued: &["-c", "--config", "-L", "--log-level"],
        frame_type: "v8js",
        programs: &["deno"],
        switches: &[
            Switch {
                flags: &[
                    Flag::Item { option: "--v8-flags=", separator: ',', item: "--perf-prof" },
                    Flag::Item { option: "--v8-flags=", separator: ',', item: "--interpreted-frames-native-stack" },
                ],
                leaves: &["./jit-PID.dump"],
                ..SWITCH
            },
            Switch {
                flags: &[
                    Flag::Item { option: "--v8-flags=", separator: ',', item: "--log-code" },
                    Flag::Item { option: "--v8-flags=", separator: ',', item: "--log-source-position" },
                    Flag::Item { option: "--v8-flags=", separator: ',', item: "--interpreted-frames-native-stack" },
                ],
                note: ", which contains inlined calls, too",
                leaves: &["./isolate-*-PID-v8.log"],
                ..SWITCH
            },
        ],
        interpreter: Some(Interpreter {
            functions: V8_INTERPRETERS,
            frame_a_call: true,
            remedy: "run deno with --v8-flags=--perf-prof,--interpreted-frames-native-stack: each interpreted function then has a frame of its own",
            flag: Some(Flag::Item { option: "--v8-flags=", separator: ',', item: "--interpreted-frames-native-stack" }),
        }),
        unnamed: V8_UNNAMED,
        marked_names: V8_NAMES,
        plain_names: V8_PLAIN_NAMES,
        examples: V8_EXAMPLES,
        ..PLAIN
    },
    Runtime {
        name: "Bun",
        called: "bun",
        frame_type: "jsc",
        programs: &["bun", "bunx"],
        switches: &[Switch {
            variables: &[("BUN_JSC_useJITDump", "1"), ("BUN_JSC_jitDumpDirectory", "DIR")],
            leaves: &["DIR/jit-TID-PID.dump"],
            ..SWITCH
        }],
        unnamed: "the interpreter's own code: bun is stripped",
        marked_names: JSC_NAMES,
        examples: JSC_EXAMPLES,
        ..PLAIN
    },
    Runtime {
        name: "Node.js",
        called: "node",
        flag_variables: &[FlagVariable::flags("NODE_OPTIONS")],
        valued: &[
            "-r",
            "--require",
            "-C",
            "--conditions",
            "--import",
            "--loader",
            "--experimental-loader",
            "--env-file",
        ],
        frame_type: "v8js",
        programs: &["node", "nodejs"],
        libraries: &["libnode.so*"],
        switches: &[
            Switch {
                flags: &[Flag::Word("--perf-prof"), Flag::Word("--interpreted-frames-native-stack")],
                leaves: &["./jit-PID.dump"],
                ..SWITCH
            },
            Switch { flags: &[Flag::Word("--perf-basic-prof")], leaves: &["/tmp/perf-PID.map"], ..SWITCH },
            Switch {
                flags: &[
                    Flag::Word("--log-code"),
                    Flag::Word("--log-source-position"),
                    Flag::Word("--interpreted-frames-native-stack"),
                ],
                note: ", which contains inlined calls, too",
                leaves: &["./isolate-*-PID-v8.log"],
                ..SWITCH
            },
        ],
        valgrind: Some("node --perf-basic-prof"),
        interpreter: Some(Interpreter {
            functions: V8_INTERPRETERS,
            frame_a_call: true,
            remedy: "run node with --interpreted-frames-native-stack, too: each interpreted function then has a frame of its own",
            flag: Some(Flag::Word("--interpreted-frames-native-stack")),
        }),
        unnamed: V8_UNNAMED,
        marked_names: V8_NAMES,
        plain_names: V8_PLAIN_NAMES,
        examples: V8_EXAMPLES,
        ..PLAIN
    },
    Runtime {
        name: "Chromium",
        called: "chromium",
        frame_type: "v8js",
        programs: &["chrome", "chromium", "electron"],
        libraries: &["libcef.so"],
        switches: &[
            Switch {
                flags: &[
                    Flag::Needed("--no-sandbox"),
                    Flag::Item { option: "--js-flags=", separator: ' ', item: "--perf-prof" },
                    Flag::Item { option: "--js-flags=", separator: ' ', item: "--interpreted-frames-native-stack" },
                ],
                leaves: &["./jit-PID.dump"],
                ..SWITCH
            },
            Switch {
                flags: &[
                    Flag::Needed("--no-sandbox"),
                    Flag::Item { option: "--js-flags=", separator: ' ', item: "--log-code" },
                    Flag::Item { option: "--js-flags=", separator: ' ', item: "--log-source-position" },
                    Flag::Item { option: "--js-flags=", separator: ' ', item: "--interpreted-frames-native-stack" },
                ],
                note: ", which contains inlined calls, too",
                leaves: &["./isolate-*-PID-v8.log"],
                ..SWITCH
            },
        ],
        interpreter: Some(Interpreter {
            functions: V8_INTERPRETERS,
            frame_a_call: true,
            remedy: "add --interpreted-frames-native-stack to --js-flags: each interpreted function then has a frame of its own",
            flag: Some(Flag::Item { option: "--js-flags=", separator: ' ', item: "--interpreted-frames-native-stack" }),
        }),
        unnamed: "the last code of a renderer that was killed",
        marked_names: V8_NAMES,
        plain_names: V8_PLAIN_NAMES,
        examples: V8_EXAMPLES,
        ..PLAIN
    },
    Runtime {
        name: "QtWebEngine",
        called: "PROGRAM",
        frame_type: "v8js",
        programs: &["QtWebEngineProcess"],
        libraries: &["libQt5WebEngineCore.so*", "libQt6WebEngineCore.so*"],
        // Its processes are killed, so that a jitdump loses what was not written yet; a map is written line by line.
        switches: &[Switch {
            variables: &[(
                "QTWEBENGINE_CHROMIUM_FLAGS",
                "--no-sandbox --js-flags=--perf-basic-prof,--interpreted-frames-native-stack",
            )],
            leaves: &["/tmp/perf-PID.map"],
            ..SWITCH
        }],
        unnamed: V8_UNNAMED,
        marked_names: V8_NAMES,
        plain_names: V8_PLAIN_NAMES,
        examples: V8_EXAMPLES,
        ..PLAIN
    },
    Runtime {
        name: "Firefox",
        called: "firefox",
        frame_type: "spidermonkey",
        programs: &["firefox", "firefox-esr", "firefox-bin"],
        libraries: &["libxul.so", "libmozjs*"],
        switches: &[Switch {
            variables: &[("PERF_SPEW_DIR", "DIR"), ("IONPERF", "func")],
            is_rare: true,
            note: ", if it is a build made with --enable-perf (distributions' are not), and its sandbox is off",
            leaves: &["DIR/jit-PID.dump"],
            ..SWITCH
        }],
        unnamed: "all JIT code of builds without --enable-perf, as distributions have them",
        // js/src/jit/PerfSpewer.cpp; no build that writes them was available.
        marked_names: &[
            (Interpreted, &[Starts("BaselineInterpreter: "), Starts("BlinterpOp: ")]),
            (Baseline, &[Starts("Baseline: ")]),
            (Optimised, &[Starts("Ion: ")]),
            (Stub, &[Starts("BaselineIC: "), Starts("IonIC: "), Starts("VMWrapper: ")]),
        ],
        plain_names: &[
            (Interpreted, &[Is("BaselineInterpreter"), Starts("Interpreter: ")]),
            (Stub, &[Starts("IC: "), Starts("Trampoline: "), Starts("WasmTrampoline: ")]),
            (Wasm, &[Starts("Wasm: ")]),
        ],
        examples: &[
            ("BaselineInterpreter", Some(Interpreted)),
            ("BaselineInterpreter: main (/a/list.js:10:5)", Some(Interpreted)),
            ("BlinterpOp: GetElem", Some(Interpreted)),
            ("Interpreter: main (/a/list.js:10:5)", Some(Interpreted)),
            ("Baseline: main (/a/list.js:10:5)", Some(Baseline)),
            ("Ion: main (/a/list.js:10:5)", Some(Optimised)),
            ("BaselineIC: GetProp", Some(Stub)),
            ("IonIC: GetElem : main (/a/list.js:10:5)", Some(Stub)),
            ("IC: GetProp", Some(Stub)),
            ("VMWrapper: InterruptCheck", Some(Stub)),
            ("Trampoline: EnterJIT", Some(Stub)),
            ("WasmTrampoline: Function enter", Some(Stub)),
            ("Wasm: Function f", Some(Wasm)),
            ("main", None),
        ],
        ..PLAIN
    },
    OPENJDK,
    Runtime {
        name: "Erlang",
        called: "erl",
        carries: &["elixir", "iex"],
        flag_variables: &[
            FlagVariable::flags("ERL_FLAGS"),
            FlagVariable::flags("ERL_AFLAGS"),
            FlagVariable::flags("ERL_ZFLAGS"),
        ],
        frame_type: "beam",
        programs: &["beam.smp", "beam.debug.smp", "beam.frmptr.smp", "erl"],
        switches: &[Switch {
            flags: &[Flag::Pair("+JPperf", "true")],
            leaves: &["/tmp/jit-PID.dump", "/tmp/perf-PID.map"],
            ..SWITCH
        }],
        valgrind: Some("erl +JPperf true"),
        unnamed: "the emulator's own functions where beam.smp is stripped",
        marked_names: &[(Stub, &[Starts("$global::")])],
        plain_names: &[(
            Stub,
            &[Starts("global::"), Ends("::codeHeader"), Ends("::codeFooter"), Ends("-CodeInfoPrologue")],
        )],
        // All code is translated, instruction by instruction, when its module is loaded; there is no other way.
        other_names: Some(Baseline),
        examples: &[
            ("$global::garbage_collect", Some(Stub)),
            ("global::garbage_collect", Some(Stub)),
            ("$lists::codeHeader", Some(Stub)),
            ("lists::codeFooter", Some(Stub)),
            ("lists:keyfind/3-CodeInfoPrologue", Some(Stub)),
            ("lists:keyfind/3", Some(Baseline)),
            ("$global:whereis_name/1", Some(Baseline)),
            ("$global_group:'-init/1-fun-1-'/2", Some(Baseline)),
        ],
        ..PLAIN
    },
    Runtime {
        name: "PHP",
        called: "php",
        shares_memory: true,
        valued: &["-d", "-c", "-z"],
        version_flag: "--version",
        version_behind: &["/php"],
        frame_type: "php",
        programs: &["php", "php-fpm*", "php7*", "php8*"],
        libraries: &["libphp*", "opcache.so"],
        switches: &[
            Switch {
                flags: &[
                    Flag::Setting { option: "-d", key: "opcache.jit_debug", value: "48", exact: true },
                    PHP_CLI,
                    PHP_BUFFER,
                    PHP_TRACING,
                ],
                leaves: &["/tmp/jit-PID.dump", "/tmp/perf-PID.map"],
                stacks: Stacks::Copies,
                ..SWITCH
            },
            Switch {
                flags: &[
                    Flag::Setting { option: "-d", key: "opcache.jit_debug", value: "32", exact: true },
                    PHP_CLI,
                    PHP_BUFFER,
                    PHP_TRACING,
                ],
                leaves: &["/tmp/jit-PID.dump"],
                stacks: Stacks::Copies,
                ..SWITCH
            },
            Switch {
                flags: &[
                    Flag::Setting { option: "-d", key: "opcache.jit_debug", value: "16", exact: true },
                    PHP_CLI,
                    PHP_BUFFER,
                    PHP_TRACING,
                ],
                leaves: &["/tmp/perf-PID.map"],
                stacks: Stacks::Copies,
                ..SWITCH
            },
        ],
        valgrind: Some("php -d opcache.jit_debug=48"),
        interpreter: Some(Interpreter {
            functions: &["execute_ex"],
            frame_a_call: false,
            remedy: "compile it: run php with -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M \
                      -d opcache.jit=tracing -d opcache.jit_debug=48; what is only interpreted has no names in perf",
            flag: None,
        }),
        unnamed: "the interpreter's own functions where php is stripped, nor compiled regular expressions: those are PCRE2's",
        // PHP has one compiler; it optimizes by types unless opcache.jit requests its lowest level.
        marked_names: &[
            (Stub, &[Starts("JIT$$"), Starts("jit$$"), Starts("ESCAPE-")]),
            (Optimised, &[Starts("TRACE-"), Starts("JIT$")]),
        ],
        examples: &[
            ("JIT$$exception_handler_free_op1_op2", Some(Stub)),
            ("jit$$trace_exit_0", Some(Stub)),
            ("ESCAPE-12-3", Some(Stub)),
            ("TRACE-46$/tmp/w.php$19", Some(Optimised)),
            ("TRACE-1$App\\Deep\\Sq::area$9", Some(Optimised)),
            ("JIT$App\\Deep\\{closure}", Some(Optimised)),
        ],
        ..PLAIN
    },
    Runtime {
        name: "PostgreSQL",
        called: "postgres",
        frame_type: "llvm",
        // No `programs`: postgres runs JIT code only once it has loaded this.
        libraries: &["llvmjit.so"],
        switches: &[
            Switch {
                by_hand: "set jit_profiling_support = on before the server starts, JITDUMPDIR in its environment",
                leaves: &["$JITDUMPDIR/.debug/jit/llvm-IR-jit-*/jit-PID.dump"],
                stacks: Stacks::Copies,
                ..SWITCH
            },
            Switch {
                by_hand: "with jit_debugging_support = on and gcore PID while the query runs",
                leaves: &["./core.PID"],
                stacks: Stacks::Copies,
                ..SWITCH
            },
        ],
        unnamed: "the server's own functions where postgres is stripped",
        // The names do not show whether the query was dear enough to be optimized (jit_optimize_above_cost).
        examples: &[("evalexpr_0_0", None), ("deform_0_1", None)],
        ..PLAIN
    },
    Runtime {
        name: "Wasmtime",
        called: "wasmtime",
        subcommands: &["run", "serve"],
        valued: &["-C", "-O", "-D", "-W", "-S"],
        frame_type: "wasm",
        programs: &["wasmtime"],
        libraries: &["_wasmtime*", "libwasmtime*", "_libwasmtime*"],
        switches: &[
            Switch {
                flags: &[Flag::Word("--profile=jitdump")],
                note: " (Config::profiler where it is embedded)",
                leaves: &["./jit-PID.dump"],
                stacks: Stacks::Copies,
                ..SWITCH
            },
            Switch {
                flags: &[Flag::Word("--profile=perfmap")],
                leaves: &["/tmp/perf-PID.map"],
                stacks: Stacks::Copies,
                ..SWITCH
            },
            Switch {
                flags: &[Flag::Pair("-D", "debug-info")],
                by_hand: "(Config::debug_info where it is embedded) and gcore PID while it runs",
                leaves: &["./core.PID"],
                stacks: Stacks::Copies,
                ..SWITCH
            },
        ],
        valgrind: Some("wasmtime --profile=perfmap"),
        unnamed: "the host's functions where it is stripped; what its own sampler writes (--profile=guest) is a Firefox profile, and read as one",
        marked_names: &[
            (
                Stub,
                &[
                    Holds("]::array_to_wasm_trampoline"),
                    Holds("]::wasm_to_array_trampoline"),
                    Starts("wasmtime_builtin_"),
                ],
            ),
            (Wasm, &[Starts("wasm[")]),
        ],
        other_names: Some(Wasm),
        examples: &[
            ("wasm[0]::array_to_wasm_trampoline[3]", Some(Stub)),
            ("signatures[2]::wasm_to_array_trampoline", Some(Stub)),
            ("wasmtime_builtin_table_get_lazy_init_func_ref", Some(Stub)),
            ("wasm[0]::function[3]", Some(Wasm)),
            ("wasm[0]::function[3]::weird <T as Trait>::g4", Some(Wasm)),
            ("weird <T as Trait>::g4 name with spaces", Some(Wasm)),
            ("fib", Some(Wasm)),
        ],
        ..PLAIN
    },
    Runtime {
        name: "Wasmer",
        called: "wasmer",
        subcommands: &["run"],
        version_flag: "--version",
        frame_type: "wasm",
        programs: &["wasmer"],
        libraries: &["wasmer.*", "libwasmer*", "wasmer_compiler_*"],
        switches: &[Switch {
            flags: &[Flag::Word("--profiler=perfmap")],
            since: Some(Version(6, 0)),
            note: " (enable_perfmap of the compiler's configuration where it is embedded)",
            leaves: &["/tmp/perf-PID.map"],
            ..SWITCH
        }],
        unnamed: "all WebAssembly code of older versions: they leave neither map nor dump and register nothing for debuggers",
        ..PLAIN
    },
    Runtime {
        name: "MoarVM",
        called: "raku",
        programs: &["raku", "rakudo", "rakudo-m", "moar"],
        frame_type: "raku",
        libraries: &["libmoar.so*"],
        switches: &[Switch { variables: &[("MVM_JIT_PERF_MAP", "1")], leaves: &["/tmp/perf-PID.map"], ..SWITCH }],
        valgrind: Some("MVM_JIT_PERF_MAP=1 MVM_JIT_DUMP_BYTECODE=1 rakudo-m"),
        interpreter: Some(Interpreter {
            functions: &["MVM_interp_run"],
            frame_a_call: false,
            remedy: "run it with MVM_JIT_PERF_MAP=1 in its environment; what is only interpreted has no names in perf",
            flag: None,
        }),
        unnamed: "what MoarVM interprets: its functions are all one `MVM_interp_run`",
        // Its compiler is given only what its specialiser has optimized.
        other_names: Some(Optimised),
        examples: &[
            ("find_method(gen/moar/stage2/nqpmo.nqp:1391)", Some(Optimised)),
            ("(gen/moar/BOOTSTRAP/v6c.nqp:2473)", Some(Optimised)),
            ("!cursor_start(gen/moar/stage2/QRegex.nqp:1482)", Some(Optimised)),
        ],
        ..PLAIN
    },
    DOT_NET,
    MONO,
    Runtime {
        name: "Julia",
        called: "julia",
        frame_type: "julia",
        programs: &["julia"],
        libraries: &["libjulia*"],
        switches: &[Switch {
            variables: &[("ENABLE_JITPROFILING", "1")],
            // Its listener is LLVM's.
            leaves: &["/tmp/.debug/jit/llvm-IR-jit-*/jit-PID.dump"],
            ..SWITCH
        }],
        ..PLAIN
    },
    Runtime {
        name: "Ruby",
        called: "ruby",
        valued: &["-I", "-r", "-C"],
        version_flag: "--version",
        version_behind: &["libruby-", "libruby.so.", "/ruby"],
        frame_type: "ruby",
        programs: &["ruby", "ruby2*", "ruby3*", "ruby4*"],
        libraries: &["libruby*"],
        switches: &[Switch {
            flags: &[Flag::Word("--yjit-perf"), Flag::Word("--yjit")],
            since: Some(Version(3, 3)),
            note: ", if it is built with YJIT",
            leaves: &["/tmp/perf-PID.map"],
            ..SWITCH
        }],
        interpreter: Some(Interpreter {
            functions: &["vm_exec_core"],
            frame_a_call: false,
            remedy: "run ruby (3.3 or newer) with --yjit --yjit-perf, if it is built with YJIT; what is only \
                      interpreted has no names in perf",
            flag: None,
        }),
        unnamed: "all JIT code of builds older than 3.3, whose YJIT writes nothing for perf",
        ..PLAIN
    },
    PYPY,
    LUAJIT,
    Runtime {
        name: "JavaScriptCore",
        called: "jsc",
        frame_type: "jsc",
        programs: &["jsc", "WebKitWebProcess"],
        libraries: &["libjavascriptcoregtk-*"],
        switches: &[Switch {
            variables: &[("JSC_useJITDump", "1"), ("JSC_jitDumpDirectory", "DIR")],
            leaves: &["DIR/jit-PID.dump"],
            ..SWITCH
        }],
        unnamed: "the interpreter's own code where the library is stripped",
        marked_names: JSC_NAMES,
        examples: JSC_EXAMPLES,
        ..PLAIN
    },
    Runtime {
        name: "CPython",
        called: "python",
        valued: &["-X", "-W", "--check-hash-based-pycs"],
        version_flag: "--version",
        version_behind: &["/python", "/libpython"],
        programs: &["python", "python3*"],
        frame_type: "cpython",
        libraries: &["libpython3*"],
        switches: &[
            Switch {
                flags: &[Flag::Pair("-X", "perf_jit")],
                variables: &[("PYTHON_PERF_JIT_SUPPORT", "1")],
                since: Some(Version(3, 13)),
                leaves: &["/tmp/jit-PID.dump"],
                stacks: Stacks::Copies,
                at_end: true,
                ..SWITCH
            },
            Switch {
                flags: &[Flag::Pair("-X", "perf")],
                variables: &[("PYTHONPERFSUPPORT", "1")],
                since: Some(Version(3, 12)),
                leaves: &["/tmp/perf-PID.map"],
                stacks: Stacks::Copies,
                ..SWITCH
            },
        ],
        valgrind: Some("python -X perf"),
        interpreter: Some(Interpreter {
            functions: &["_PyEval_EvalFrameDefault"],
            frame_a_call: false,
            remedy: "run python with -X perf (3.12 or newer; older versions cannot name their functions for perf)",
            flag: None,
        }),
        unnamed: "nothing of Python: each function has a trampoline of its own, which the interpreter runs under",
        marked_names: &[(Interpreted, &[Around("py::", ".py")])],
        plain_names: &[(Interpreted, &[Starts("py::")])],
        examples: &[
            ("py::WeakSet.__init__.<locals>._remove:/usr/lib/python3.12/_weakrefset.py", Some(Interpreted)),
            ("py::_ModuleLock.acquire:<frozen importlib._bootstrap>", Some(Interpreted)),
        ],
        ..PLAIN
    },
    QEMU,
    GUILE,
    SBCL,
    // Many embed them.
    LLVM,
    PCRE2,
];
