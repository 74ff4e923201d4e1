//! The table of runtimes. What is said of names is what recordings of them have, or, where none could be made, what
//! their sources write; where neither is certain, a name tells nothing.

use super::engines::{JSC_EXAMPLES, JSC_NAMES, V8_EXAMPLES, V8_INTERPRETERS, V8_NAMES, V8_PLAIN_NAMES, V8_UNNAMED};
use super::managed::{DOT_NET, MONO, OPENJDK};
use super::runtime::{Interpreter, PLAIN, Runtime, Switch};
use super::shape::Shape::{Around, Ends, Holds, Is, Starts};
use super::tracing::{LUAJIT, PYPY};
use super::translators::{GUILE, LLVM, QEMU, SBCL};
use crate::model::tier::Tier::{Baseline, Interpreted, Optimised, Stub, Wasm};

/// Every runtime that is known. They are asked in this order: what embeds another one stands before it.
pub const RUNTIMES: &[Runtime] = &[
    Runtime {
        name: "deno",
        programs: &["deno"],
        switches: &[
            Switch {
                word: "--perf-prof",
                how: "run deno with --v8-flags=--perf-prof,--interpreted-frames-native-stack",
                leaves: &["./jit-PID.dump"],
            },
            Switch {
                word: "--log-code",
                how: "with --v8-flags=--log-code,--log-source-position,--interpreted-frames-native-stack, which tells of inlined calls, too",
                leaves: &["./isolate-*-PID-v8.log"],
            },
        ],
        interpreter: Some(Interpreter {
            functions: V8_INTERPRETERS,
            frame_a_call: true,
            remedy: "run deno with --v8-flags=--perf-prof,--interpreted-frames-native-stack: each interpreted function then has a frame of its own",
            word: "--interpreted-frames-native-stack",
        }),
        unnamed: V8_UNNAMED,
        marked_names: V8_NAMES,
        plain_names: V8_PLAIN_NAMES,
        examples: V8_EXAMPLES,
        ..PLAIN
    },
    Runtime {
        name: "Bun",
        programs: &["bun", "bunx"],
        switches: &[Switch {
            word: "BUN_JSC_useJITDump=1",
            how: "run bun with BUN_JSC_useJITDump=1 BUN_JSC_jitDumpDirectory=DIR in its environment",
            leaves: &["DIR/jit-TID-PID.dump"],
        }],
        unnamed: "the interpreter's own code: bun is stripped",
        marked_names: JSC_NAMES,
        examples: JSC_EXAMPLES,
        ..PLAIN
    },
    Runtime {
        name: "Node.js",
        programs: &["node", "nodejs"],
        libraries: &["libnode.so*"],
        switches: &[
            Switch {
                word: "--perf-prof",
                how: "run node with --perf-prof --interpreted-frames-native-stack",
                leaves: &["./jit-PID.dump"],
            },
            Switch { word: "--perf-basic-prof", how: "with --perf-basic-prof", leaves: &["/tmp/perf-PID.map"] },
            Switch {
                word: "--log-code",
                how: "with --log-code --log-source-position --interpreted-frames-native-stack, which tells of inlined calls, too",
                leaves: &["./isolate-*-PID-v8.log"],
            },
        ],
        valgrind: Some("node --perf-basic-prof"),
        interpreter: Some(Interpreter {
            functions: V8_INTERPRETERS,
            frame_a_call: true,
            remedy: "run node with --interpreted-frames-native-stack, too: each interpreted function then has a frame of its own",
            word: "--interpreted-frames-native-stack",
        }),
        unnamed: V8_UNNAMED,
        marked_names: V8_NAMES,
        plain_names: V8_PLAIN_NAMES,
        examples: V8_EXAMPLES,
        ..PLAIN
    },
    Runtime {
        name: "Chromium",
        programs: &["chrome", "chromium"],
        libraries: &["libcef.so"],
        switches: &[
            Switch {
                word: "--perf-prof",
                how: "run it with --no-sandbox --js-flags='--perf-prof --interpreted-frames-native-stack'",
                leaves: &["./jit-PID.dump"],
            },
            Switch {
                word: "--log-code",
                how: "with --log-code --log-source-position added there, which tells of inlined calls, too",
                leaves: &["./isolate-*-PID-v8.log"],
            },
        ],
        interpreter: Some(Interpreter {
            functions: V8_INTERPRETERS,
            frame_a_call: true,
            remedy: "add --interpreted-frames-native-stack to --js-flags: each interpreted function then has a frame of its own",
            word: "--interpreted-frames-native-stack",
        }),
        unnamed: "the last code of a renderer that was killed",
        marked_names: V8_NAMES,
        plain_names: V8_PLAIN_NAMES,
        examples: V8_EXAMPLES,
        ..PLAIN
    },
    Runtime {
        name: "Firefox",
        programs: &["firefox", "firefox-esr", "firefox-bin"],
        libraries: &["libxul.so", "libmozjs*"],
        switches: &[Switch {
            word: "PERF_SPEW_DIR=",
            how: "run a build made with --enable-perf (distributions' are not), the sandbox off, with IONPERF=func PERF_SPEW_DIR=DIR in its environment",
            leaves: &["DIR/jit-PID.dump"],
        }],
        unnamed: "all JIT code of builds without --enable-perf, as distributions have them",
        // js/src/jit/PerfSpewer.cpp; no build that leaves them was to be had.
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
        programs: &["beam.smp", "beam.debug.smp", "beam.frmptr.smp", "erl"],
        switches: &[Switch {
            word: "JPperf true",
            how: "run erl with +JPperf true",
            leaves: &["/tmp/jit-PID.dump", "/tmp/perf-PID.map"],
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
        programs: &["php", "php-fpm*", "php7*", "php8*"],
        libraries: &["libphp*", "opcache.so"],
        switches: &[
            Switch {
                word: "opcache.jit_debug=48",
                how: "run php with -d opcache.jit_debug=48",
                leaves: &["/tmp/jit-PID.dump", "/tmp/perf-PID.map"],
            },
            Switch {
                word: "opcache.jit_debug=32",
                how: "with -d opcache.jit_debug=32",
                leaves: &["/tmp/jit-PID.dump"],
            },
            Switch {
                word: "opcache.jit_debug=16",
                how: "with -d opcache.jit_debug=16",
                leaves: &["/tmp/perf-PID.map"],
            },
        ],
        valgrind: Some("php -d opcache.jit_debug=48"),
        perf_record: "-k mono --call-graph dwarf",
        interpreter: Some(Interpreter {
            functions: &["execute_ex"],
            frame_a_call: false,
            remedy: "compile it: run php with -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M \
                      -d opcache.jit=tracing -d opcache.jit_debug=48; what is only interpreted has no names in perf",
            word: "",
        }),
        unnamed: "the interpreter's own functions where php is stripped",
        // PHP has one compiler; it optimises by types unless opcache.jit asks for its lowest level.
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
        // No `programs`: postgres runs JIT code only once it has loaded this.
        libraries: &["llvmjit.so"],
        switches: &[
            Switch {
                word: "",
                how: "set jit_profiling_support = on before the server starts, JITDUMPDIR in its environment",
                leaves: &["$JITDUMPDIR/.debug/jit/llvm-IR-jit-*/jit-PID.dump"],
            },
            Switch {
                word: "",
                how: "with jit_debugging_support = on and gcore PID while the query runs",
                leaves: &["./core.PID"],
            },
        ],
        perf_record: "-k mono --call-graph dwarf",
        unnamed: "the server's own functions where postgres is stripped",
        // The names do not tell whether the query was dear enough to be optimised (jit_optimize_above_cost).
        examples: &[("evalexpr_0_0", None), ("deform_0_1", None)],
        ..PLAIN
    },
    Runtime {
        name: "Wasmtime",
        programs: &["wasmtime"],
        libraries: &["_wasmtime*", "libwasmtime*", "_libwasmtime*"],
        switches: &[
            Switch {
                word: "--profile=jitdump",
                how: "run wasmtime with --profile=jitdump (Config::profiler where it is embedded)",
                leaves: &["./jit-PID.dump"],
            },
            Switch { word: "--profile=perfmap", how: "with --profile=perfmap", leaves: &["/tmp/perf-PID.map"] },
            Switch {
                word: "-D debug-info",
                how: "with -D debug-info (Config::debug_info where it is embedded) and gcore PID while it runs",
                leaves: &["./core.PID"],
            },
        ],
        valgrind: Some("wasmtime --profile=perfmap"),
        perf_record: "-k mono --call-graph dwarf",
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
        programs: &["wasmer"],
        libraries: &["wasmer.*", "libwasmer*", "wasmer_compiler_*"],
        switches: &[Switch {
            word: "--profiler=perfmap",
            how: "run wasmer (6 or newer: older ones leave nothing) with --profiler=perfmap (enable_perfmap of the compiler's configuration where it is embedded)",
            leaves: &["/tmp/perf-PID.map"],
        }],
        unnamed: "all WebAssembly code of older versions: they leave neither map nor dump and register nothing for debuggers",
        ..PLAIN
    },
    Runtime {
        name: "MoarVM",
        programs: &["rakudo-m", "moar"],
        libraries: &["libmoar.so*"],
        switches: &[Switch {
            word: "MVM_JIT_PERF_MAP=1",
            how: "run it with MVM_JIT_PERF_MAP=1 in its environment",
            leaves: &["/tmp/perf-PID.map"],
        }],
        valgrind: Some("MVM_JIT_PERF_MAP=1 MVM_JIT_DUMP_BYTECODE=1 rakudo-m"),
        perf_record: "-g",
        interpreter: Some(Interpreter {
            functions: &["MVM_interp_run"],
            frame_a_call: false,
            remedy: "run it with MVM_JIT_PERF_MAP=1 in its environment; what is only interpreted has no names in perf",
            word: "",
        }),
        unnamed: "what MoarVM interprets: its functions are all one `MVM_interp_run`",
        // Its compiler is given only what its specialiser has optimised.
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
        programs: &["julia"],
        libraries: &["libjulia*"],
        switches: &[Switch {
            word: "ENABLE_JITPROFILING=1",
            how: "run julia with ENABLE_JITPROFILING=1 in its environment",
            // Its listener is LLVM's.
            leaves: &["/tmp/.debug/jit/llvm-IR-jit-*/jit-PID.dump"],
        }],
        ..PLAIN
    },
    Runtime {
        name: "Ruby",
        programs: &["ruby", "ruby2*", "ruby3*", "ruby4*"],
        libraries: &["libruby*"],
        switches: &[Switch {
            word: "--yjit-perf",
            how: "run ruby (3.3 or newer) with --yjit --yjit-perf, if it is built with YJIT",
            leaves: &["/tmp/perf-PID.map"],
        }],
        perf_record: "-g",
        interpreter: Some(Interpreter {
            functions: &["vm_exec_core"],
            frame_a_call: false,
            remedy: "run ruby (3.3 or newer) with --yjit --yjit-perf, if it is built with YJIT; what is only \
                      interpreted has no names in perf",
            word: "",
        }),
        unnamed: "all JIT code of builds older than 3.3, whose YJIT tells perf nothing",
        ..PLAIN
    },
    PYPY,
    LUAJIT,
    Runtime {
        name: "JavaScriptCore",
        programs: &["jsc", "WebKitWebProcess"],
        libraries: &["libjavascriptcoregtk-*"],
        switches: &[Switch {
            word: "JSC_useJITDump=1",
            how: "run it with JSC_useJITDump=1 JSC_jitDumpDirectory=DIR in its environment",
            leaves: &["DIR/jit-PID.dump"],
        }],
        unnamed: "the interpreter's own code where the library is stripped",
        marked_names: JSC_NAMES,
        examples: JSC_EXAMPLES,
        ..PLAIN
    },
    Runtime {
        name: "CPython",
        programs: &["python3*"],
        libraries: &["libpython3*"],
        switches: &[
            Switch { word: "-X perf", how: "run python (3.12 or newer) with -X perf", leaves: &["/tmp/perf-PID.map"] },
            Switch { word: "-X perf_jit", how: "from 3.13 on with -X perf_jit", leaves: &["/tmp/jit-PID.dump"] },
        ],
        valgrind: Some("python -X perf"),
        perf_record: "-k mono --call-graph dwarf",
        interpreter: Some(Interpreter {
            functions: &["_PyEval_EvalFrameDefault"],
            frame_a_call: false,
            remedy: "run python with -X perf (3.12 or newer; older ones cannot tell perf of their functions)",
            word: "",
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
    // Many embed it.
    LLVM,
];
