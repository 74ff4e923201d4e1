//! The table of runtimes. What it says about names comes from recordings or, where none could be made, from the
//! runtimes' sources. If neither shows what a name means, the table gives the name no tier.

use super::engines::{JSC, SPIDERMONKEY, V8, V8_INTERPRETERS};
use super::runtime::Shape::{Around, Ends, Holds, Is, Starts};
use super::runtime::{Callers, FlagVariable, Interpreter, PLAIN, Runtime, UnderValgrind};
use super::switch::{Flag, SWITCH, Stacks, Switch, Version};
use crate::model::tier::Tier::{Baseline, Interpreted, MidTier, Optimized, Stub, Wasm};

const fn php_debug(value: &'static str) -> Flag {
    Flag::Setting { option: "-d", key: "opcache.jit_debug", value, exact: true }
}

const PHP_CLI: Flag = Flag::Setting { option: "-d", key: "opcache.enable_cli", value: "1", exact: false };
const PHP_BUFFER: Flag = Flag::Setting { option: "-d", key: "opcache.jit_buffer_size", value: "64M", exact: false };
/// Makes PHP compile files that have just been written, too.
const PHP_NEW_FILES: Flag =
    Flag::Setting { option: "-d", key: "opcache.file_update_protection", value: "0", exact: false };
const PHP_TRACING: Flag = Flag::Setting { option: "-d", key: "opcache.jit", value: "tracing", exact: false };

/// An option that makes V8 leave built-in functions and stubs out of jitdumps and perf maps. In node 16, it leaves out
/// nearly everything.
const ONLY_FUNCTIONS: &str = "--perf-basic-prof-only-functions";

/// A switch for code that LLVM registers with the debugger interface. The registered ELF object is in the memory of the
/// process, so a core dump of the process has the names.
const REGISTERED: Switch = Switch {
    by_hand: "take a core dump with `gcore PID` while the process runs (its compiler registers all code for debuggers)",
    leaves: &["./core.PID"],
    stacks: Stacks::Copies,
    ..SWITCH
};

/// All known runtimes. They are tried in this order, so that a runtime comes before those that it embeds.
pub const RUNTIMES: &[Runtime] = &[
    // Numba, and whatever else compiles through llvmlite (LLVM for Python).
    Runtime {
        name: "numba",
        aliases: &["llvmlite"],
        frame_type: "llvm",
        called: "python",
        libraries: &["libllvmlite.so"],
        switches: &[REGISTERED],
        unnamed: "code of processes that left no core dump (numba writes no perf map or jitdump)",
        ..PLAIN
    },
    // JAX compiles array operations with XLA.
    Runtime {
        name: "JAX",
        frame_type: "llvm",
        called: "python",
        aliases: &["xla"],
        libraries: &["libjax_common.so", "xla_extension.so", "_jax.so"],
        switches: &[REGISTERED],
        unnamed: "code of processes that left no core dump (XLA writes no perf map or jitdump)",
        ..PLAIN
    },
    // Taichi compiles kernels written in Python with LLVM.
    Runtime {
        name: "Taichi",
        frame_type: "llvm",
        called: "python",
        libraries: &["taichi_python*"],
        unnamed: "all kernels (Taichi writes no perf map or jitdump)",
        ..PLAIN
    },
    // chDB is ClickHouse in a Python process.
    Runtime {
        name: "chDB",
        frame_type: "llvm",
        called: "python",
        libraries: &["_chdb*"],
        unnamed: "all compiled expressions (ClickHouse writes no perf map or jitdump; SETTINGS compile_expressions = \
                  0 interprets them instead)",
        ..PLAIN
    },
    // mini-racer is V8 in a Python process.
    Runtime {
        name: "mini-racer",
        called: "python",
        libraries: &["libmini_racer.so"],
        switches: &[Switch {
            by_hand: "call py_mini_racer.init_mini_racer(flags=(\"--single-threaded\", \"--perf-prof\", \
                      \"--interpreted-frames-native-stack\")) before the first MiniRacer()",
            leaves: &["./jit-PID.dump"],
            ..SWITCH
        }],
        unnamed: "V8's own functions (mini-racer's library is stripped)",
        ..V8
    },
    // PythonMonkey is SpiderMonkey in a Python process.
    Runtime {
        name: "PythonMonkey",
        frame_type: "spidermonkey",
        called: "python",
        libraries: &["pythonmonkey.so"],
        unnamed: "all JavaScript code (PythonMonkey's SpiderMonkey is built without --enable-perf)",
        ..PLAIN
    },
    // Lupa is LuaJIT in a Python process.
    Runtime {
        name: "Lupa",
        frame_type: "luajit",
        called: "python",
        libraries: &["luajit20.*", "luajit21.*"],
        switches: &[Switch {
            by_hand: "first run require('jit.dump').on('m', 'luajit.dump') in the Lua runtime, with the Lua files of \
                      the same LuaJIT version in its package.path",
            leaves: &["./luajit.dump"],
            stacks: Stacks::Copies,
            ..SWITCH
        }],
        unnamed: "interpreted functions (the interpreter is one block of assembly code)",
        ..PLAIN
    },
    Runtime {
        name: "deno",
        called: "deno",
        flag_variables: &[FlagVariable { name: "DENO_V8_FLAGS", list_of: Some("--v8-flags=") }],
        subcommands: &["run", "test", "bench", "eval", "serve", "task"],
        options_with_value: &["-c", "--config", "-L", "--log-level"],
        // deno's executable has no unwind tables, so copied stacks can't be unwound from JIT code through deno to the
        // end.
        callers: Callers::Unknown,
        programs: &["deno"],
        threads: &["V8 DefaultWorke"],
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
                note: "; this log also has inlined calls",
                leaves: &["./isolate-*-PID-v8.log"],
                ..SWITCH
            },
        ],
        interpreter: Some(Interpreter {
            functions: V8_INTERPRETERS,
            has_frame_per_call: true,
            remedy: "run deno with --v8-flags=--perf-prof,--interpreted-frames-native-stack: each interpreted \
                     function then gets its own frame",
            why_uncompiled: "",
            flag: Some(Flag::Item { option: "--v8-flags=", separator: ',', item: "--interpreted-frames-native-stack" }),
        }),
        ..V8
    },
    Runtime {
        name: "Bun",
        called: "bun",
        // As with deno, stacks that perf copied can't be unwound through Bun's executable.
        callers: Callers::Unknown,
        programs: &["bun", "bunx", "bun.exe", "bunx.exe"],
        // `JITWorker` is a thread of JavaScriptCore. If JavaScriptCore's library isn't mapped, the program is Bun.
        threads: &["Bun Pool *", "JITWorker"],
        in_elf: &[".bun", ".bun_builtins"],
        switches: &[Switch {
            variables: &[("BUN_JSC_useJITDump", "1"), ("BUN_JSC_jitDumpDirectory", "DIR")],
            leaves: &["DIR/jit-TID-PID.dump"],
            ..SWITCH
        }],
        unnamed: "the interpreter's own code (bun is stripped)",
        ..JSC
    },
    Runtime {
        name: "Node.js",
        called: "node",
        source_extensions: &["js", "mjs", "cjs"],
        aliases: &["js", "javascript", "ts", "typescript", "v8"],
        launchers: &["npm", "npx", "yarn", "pnpm", "tsc", "tsx", "ts-node"],
        flag_variables: &[FlagVariable::flags("NODE_OPTIONS")],
        options_with_value: &[
            "-r",
            "--require",
            "-C",
            "--conditions",
            "--import",
            "--loader",
            "--experimental-loader",
            "--env-file",
        ],
        programs: &["node", "nodejs"],
        libraries: &["libnode.so*"],
        in_elf: &["_ZN4node5StartEiPPc"],
        functions: &["node::"],
        switches: &[
            Switch {
                flags: &[Flag::Word("--perf-prof"), Flag::Word("--interpreted-frames-native-stack")],
                spoiling_options: &[ONLY_FUNCTIONS],
                leaves: &["./jit-PID.dump"],
                ..SWITCH
            },
            Switch {
                flags: &[Flag::Word("--perf-basic-prof")],
                spoiling_options: &[ONLY_FUNCTIONS],
                leaves: &["/tmp/perf-PID.map"],
                ..SWITCH
            },
            Switch {
                flags: &[
                    Flag::Word("--log-code"),
                    Flag::Word("--log-source-position"),
                    Flag::Word("--interpreted-frames-native-stack"),
                ],
                note: "; this log also has inlined calls",
                leaves: &["./isolate-*-PID-v8.log"],
                ..SWITCH
            },
        ],
        valgrind: Some(UnderValgrind::program("node --perf-basic-prof")),
        interpreter: Some(Interpreter {
            functions: V8_INTERPRETERS,
            has_frame_per_call: true,
            remedy: "also run node with --interpreted-frames-native-stack: each interpreted function then gets its \
                     own frame",
            why_uncompiled: "",
            flag: Some(Flag::Word("--interpreted-frames-native-stack")),
        }),
        ..V8
    },
    Runtime {
        name: "Chromium",
        called: "chromium",
        programs: &["chrome", "chromium", "electron"],
        threads: &["CrRendererMain", "Chrome_ChildIOT", "Chrome_IOThread"],
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
                note: "; this log also has inlined calls",
                leaves: &["./isolate-*-PID-v8.log"],
                ..SWITCH
            },
        ],
        interpreter: Some(Interpreter {
            functions: V8_INTERPRETERS,
            has_frame_per_call: true,
            remedy: "add --interpreted-frames-native-stack to --js-flags: each interpreted function then gets its own \
                     frame",
            why_uncompiled: "",
            flag: Some(Flag::Item { option: "--js-flags=", separator: ' ', item: "--interpreted-frames-native-stack" }),
        }),
        unnamed: "the last code of a renderer that was killed",
        ..V8
    },
    Runtime {
        name: "QtWebEngine",
        called: "PROGRAM",
        programs: &["QtWebEngineProcess"],
        libraries: &["libQt5WebEngineCore.so*", "libQt6WebEngineCore.so*"],
        // QtWebEngine's processes end by being killed, which loses the part of a jitdump that isn't written yet. So
        // only a perf map is requested: it is written line by line.
        switches: &[Switch {
            variables: &[(
                "QTWEBENGINE_CHROMIUM_FLAGS",
                "--no-sandbox --js-flags=--perf-basic-prof,--interpreted-frames-native-stack",
            )],
            leaves: &["/tmp/perf-PID.map"],
            ..SWITCH
        }],
        ..V8
    },
    // QML is the language of Qt's user interfaces, and has an engine of its own.
    Runtime {
        name: "QML",
        called: "qmlscene",
        aliases: &["qt"],
        frame_type: "qml",
        programs: &["qmlscene*", "qml", "qml6", "qmltestrunner*"],
        libraries: &["libQt5Qml.so*", "libQt6Qml.so*"],
        is_library: true,
        // The complete name is `/memfd:JITCode:QtQml (deleted)`.
        memory: "JITCode:QtQml",
        switches: &[Switch {
            variables: &[("QV4_PROFILE_WRITE_PERF_MAP", "1")],
            leaves: &["/tmp/perf-PID.map"],
            ..SWITCH
        }],
        unnamed: "interpreted functions (Qt's interpreter is one function, and its library is stripped)",
        ..PLAIN
    },
    Runtime {
        name: "Firefox",
        called: "firefox",
        programs: &["firefox", "firefox-esr", "firefox-bin"],
        libraries: &["libxul.so"],
        switches: &[Switch {
            variables: &[("PERF_SPEW_DIR", "DIR"), ("IONPERF", "func")],
            is_rare: true,
            note: ", if it was built with --enable-perf (builds from distributions are not) and its sandbox is off",
            leaves: &["DIR/jit-PID.dump"],
            ..SWITCH
        }],
        unnamed: "all JIT code of builds without --enable-perf, such as those from distributions",
        ..SPIDERMONKEY
    },
    // GNOME's and Cinnamon's programs in JavaScript, and others that link Firefox's engine as a library.
    Runtime {
        name: "SpiderMonkey",
        called: "gjs",
        programs: &["gjs", "gjs-console", "cjs", "cjs-console"],
        libraries: &["libmozjs*"],
        switches: &[Switch {
            variables: &[("PERF_SPEW_DIR", "DIR"), ("IONPERF", "func")],
            is_rare: true,
            note: ", if its libmozjs was built with --enable-perf (those of distributions are not)",
            leaves: &["DIR/jit-PID.dump"],
            ..SWITCH
        }],
        unnamed: "all JIT code with a libmozjs that was built without --enable-perf, such as those from distributions",
        ..SPIDERMONKEY
    },
    Runtime {
        name: "OpenJDK",
        callers: Callers::Found,
        called: "java",
        source_extensions: &["java"],
        aliases: &["jvm", "jdk", "jre", "hotspot", "graalvm", "maven"],
        launchers: &[
            "jruby", "clojure", "clj", "groovy", "scala", "kotlin", "kotlinc", "jshell", "gradle", "mvn", "sbt", "ant",
        ],
        flag_variables: &[FlagVariable::flags("JAVA_TOOL_OPTIONS"), FlagVariable::flags("JDK_JAVA_OPTIONS")],
        options_with_value: &[
            "-cp",
            "-classpath",
            "--class-path",
            "-p",
            "--module-path",
            "--add-modules",
            "--add-opens",
            "--add-exports",
        ],
        version_flag: "-version",
        version_prefixes: &["/java-", "/jdk-", "/jdk"],
        frame_pointers: Some(Flag::Word("-XX:+PreserveFramePointer")),
        frame_type: "jvm",
        programs: &["java"],
        libraries: &["libjvm.so"],
        switches: &[
            Switch {
                flags: &[
                    Flag::Needed("-XX:+UnlockDiagnosticVMOptions"),
                    Flag::Word("-XX:+DumpPerfMapAtExit"),
                    Flag::Word("-XX:+PreserveFramePointer"),
                ],
                since: Some(Version(17, 0)),
                leaves: &["/tmp/perf-PID.map"],
                at_end: true,
                ..SWITCH
            },
            Switch {
                by_hand: "with `jcmd PID Compiler.perfmap` before the JVM exits",
                leaves: &["/tmp/perf-PID.map"],
                ..SWITCH
            },
            Switch {
                flags: &[
                    Flag::Needed("-XX:+UnlockDiagnosticVMOptions"),
                    Flag::Word("-XX:+LogCompilation"),
                    Flag::Word("-XX:+PreserveFramePointer"),
                ],
                note: "; unlike a perf map, this log has times, tiers and inlining, but not the interpreter and \
                       stubs",
                leaves: &["./hotspot_pidPID.log"],
                ..SWITCH
            },
            Switch {
                by_hand: "with `jcmd PID Compiler.codelist > codelist-PID.txt` before the JVM exits",
                note: "; unlike a perf map, this list has the methods' tiers, but not the interpreter and stubs",
                leaves: &["./codelist-PID.txt"],
                ..SWITCH
            },
            Switch {
                by_hand: "with perf-map-agent's create-java-perf-map.sh PID before the JVM exits, for JDK 16 or older \
                          (its option unfold adds inlined calls)",
                leaves: &["/tmp/perf-PID.map"],
                ..SWITCH
            },
            Switch {
                by_hand: "with perf's agent -agentpath:libperf-jvmti.so",
                leaves: &["~/.debug/jit/java-jit-*/jit-PID.dump"],
                ..SWITCH
            },
        ],
        valgrind: Some(UnderValgrind::program("java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit")),
        interpreter: Some(Interpreter {
            functions: &["Interpreter"],
            has_frame_per_call: true,
            remedy: "interpreted methods cannot be named; let the program run until its hot methods are compiled, \
                     without -Xint (-Xcomp compiles everything at once)",
            why_uncompiled: "",
            flag: None,
        }),
        unnamed: "interpreted methods, which all show as `Interpreter`. Compilation logs also lack the interpreter, \
                  stubs and adapters, and perf maps lack methods that were freed before the map was written",
        // Names of methods end with their parameter types or, if they are from a HotSpot log, with the compiler. Names
        // without parameters are those of HotSpot's own code, such as stubs (share/code/codeBlob.cpp).
        marked_names: &[
            (Baseline, &[Ends(") [c1]")]),
            (Optimized, &[Ends(") [c2]"), Ends(") [jvmci]")]),
            (
                Stub,
                &[
                    Starts("StubRoutines ("),
                    Starts("Shared Runtime "),
                    Starts("C1 Runtime "),
                    Starts("C2 Runtime "),
                    Ends(" Runtime1 stub"),
                    Is("I2C/C2I adapters"),
                ],
            ),
        ],
        plain_names: &[(Interpreted, &[Is("Interpreter")])],
        tierless_names: &[Holds("("), Holds("::"), Holds(";.")],
        other_names: Some(Stub),
        examples: &[
            ("Interpreter", Some(Interpreted)),
            ("StubRoutines (1)", Some(Stub)),
            ("Shared Runtime ic_miss_blob", Some(Stub)),
            ("C1 Runtime new_instance_blob", Some(Stub)),
            ("C2 Runtime slow_arraycopy", Some(Stub)),
            ("throw_div0_exception Runtime1 stub", Some(Stub)),
            ("I2C/C2I adapters", Some(Stub)),
            ("MethodHandles adapters", Some(Stub)),
            ("adapters", Some(Stub)),
            ("native signature handlers", Some(Stub)),
            ("jni_fast_GetIntField", Some(Stub)),
            ("vtable stub", Some(Stub)),
            ("ic_miss_stub", Some(Stub)),
            ("SafepointBlob", Some(Stub)),
            ("NullPointerException at call throw_exception", Some(Stub)),
            ("resolve_opt_virtual_call", Some(Stub)),
            ("_complete_monitor_locking_Java", Some(Stub)),
            ("jbyte_disjoint_arraycopy_avx3", Some(Stub)),
            ("int java.lang.Object.hashCode()", None),
            ("int java.lang.Object.hashCode() [c1]", Some(Baseline)),
            ("int java.lang.Object.hashCode() [c2]", Some(Optimized)),
            ("int java.lang.Object.hashCode() [jvmci]", Some(Optimized)),
            ("LW;work(I)J", None),
            // Names as perf-map-agent writes them, depending on its options.
            ("Ljava/lang/Object;::hashCode", None),
            ("Ljava/lang/Object;.hashCode", None),
            ("java.lang.Object::hashCode", None),
        ],
        ..PLAIN
    },
    Runtime {
        name: "Erlang",
        called: "erl",
        aliases: &["beam"],
        launchers: &["elixir", "iex", "gleam"],
        flag_variables: &[
            FlagVariable::flags("ERL_FLAGS"),
            FlagVariable::flags("ERL_AFLAGS"),
            FlagVariable::flags("ERL_ZFLAGS"),
        ],
        frame_type: "beam",
        programs: &["beam.smp", "beam.debug.smp", "beam.frmptr.smp", "erl"],
        switches: &[Switch {
            flags: &[Flag::Choice("+JPperf", "true")],
            // With `+JPperf dump` alone, Erlang's code keeps no frame pointers.
            keeps_frame_pointers: true,
            leaves: &["/tmp/jit-PID.dump", "/tmp/perf-PID.map"],
            ..SWITCH
        }],
        // `erl` is a shell script, so valgrind must follow child processes.
        valgrind: Some(UnderValgrind { options: "--trace-children=yes", ..UnderValgrind::program("erl +JPperf true") }),
        unnamed: "the emulator's own functions if beam.smp is stripped",
        marked_names: &[(Stub, &[Starts("$global::")])],
        plain_names: &[(
            Stub,
            &[Starts("global::"), Ends("::codeHeader"), Ends("::codeFooter"), Ends("-CodeInfoPrologue")],
        )],
        // When Erlang loads a module, its JIT compiler translates the whole module, instruction by instruction.
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
        source_extensions: &["php"],
        aliases: &["laravel", "symfony"],
        launchers: &["composer"],
        shares_memory: true,
        options_with_value: &["-d", "-c", "-z"],
        version_flag: "--version",
        version_prefixes: &["/php"],
        frame_type: "php",
        programs: &["php", "php-fpm*", "php7*", "php8*"],
        libraries: &["libphp*", "opcache.so"],
        switches: &[
            Switch {
                flags: &[php_debug("48"), PHP_CLI, PHP_BUFFER, PHP_TRACING, PHP_NEW_FILES],
                leaves: &["/tmp/jit-PID.dump", "/tmp/perf-PID.map"],
                stacks: Stacks::Copies,
                ..SWITCH
            },
            Switch {
                flags: &[php_debug("32"), PHP_CLI, PHP_BUFFER, PHP_TRACING, PHP_NEW_FILES],
                leaves: &["/tmp/jit-PID.dump"],
                stacks: Stacks::Copies,
                ..SWITCH
            },
            Switch {
                flags: &[php_debug("16"), PHP_CLI, PHP_BUFFER, PHP_TRACING, PHP_NEW_FILES],
                leaves: &["/tmp/perf-PID.map"],
                stacks: Stacks::Copies,
                ..SWITCH
            },
        ],
        valgrind: Some(UnderValgrind::program(
            "php -d opcache.jit_debug=48 -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M -d opcache.jit=tracing \
             -d opcache.file_update_protection=0",
        )),
        interpreter: Some(Interpreter {
            functions: &["execute_ex"],
            has_frame_per_call: false,
            remedy: "compile the code: run php with -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M \
                      -d opcache.jit=tracing -d opcache.jit_debug=48; interpreted code has no names",
            why_uncompiled: "PHP compiles only code that runs often, and no file that changed less than 2 seconds \
                             before PHP started; run it again later, or with -d opcache.file_update_protection=0",
            flag: None,
        }),
        unnamed: "the interpreter's own functions if php is stripped, and compiled regular expressions, which are \
                  PCRE2's",
        // PHP has a single compiler. It optimizes by types unless opcache.jit selects the lowest level.
        marked_names: &[
            (Stub, &[Starts("JIT$$"), Starts("jit$$"), Starts("ESCAPE-")]),
            (Optimized, &[Starts("TRACE-"), Starts("JIT$")]),
        ],
        examples: &[
            ("JIT$$exception_handler_free_op1_op2", Some(Stub)),
            ("jit$$trace_exit_0", Some(Stub)),
            ("ESCAPE-12-3", Some(Stub)),
            ("TRACE-46$/tmp/w.php$19", Some(Optimized)),
            ("TRACE-1$App\\Deep\\Sq::area$9", Some(Optimized)),
            ("JIT$App\\Deep\\{closure}", Some(Optimized)),
        ],
        ..PLAIN
    },
    Runtime {
        name: "PostgreSQL",
        called: "postgres",
        aliases: &["pg", "postgres"],
        frame_type: "llvm",
        // No `programs`: a postgres process runs JIT code only once it has loaded this library.
        libraries: &["llvmjit.so"],
        switches: &[
            Switch {
                by_hand: "set jit_profiling_support = on before the server starts, with JITDUMPDIR in its environment",
                leaves: &["$JITDUMPDIR/.debug/jit/llvm-IR-jit-*/jit-PID.dump"],
                stacks: Stacks::Copies,
                ..SWITCH
            },
            Switch {
                by_hand: "set jit_debugging_support = on, then run gcore PID while the query runs",
                leaves: &["./core.PID"],
                stacks: Stacks::Copies,
                ..SWITCH
            },
        ],
        unnamed: "the server's own functions if postgres is stripped",
        // The names indicate no tier: they don't show whether the query was expensive enough to be optimized
        // (jit_optimize_above_cost).
        examples: &[("evalexpr_0_0", None), ("deform_0_1", None)],
        ..PLAIN
    },
    Runtime {
        name: "Wasmtime",
        callers: Callers::Found,
        called: "wasmtime",
        source_extensions: &["wasm", "wat"],
        aliases: &["wasm", "webassembly"],
        subcommands: &["run", "serve"],
        options_with_value: &["-C", "-O", "-D", "-W", "-S"],
        frame_type: "wasm",
        programs: &["wasmtime"],
        libraries: &["_wasmtime*", "libwasmtime*", "_libwasmtime*"],
        switches: &[
            Switch {
                flags: &[Flag::Word("--profile=jitdump")],
                note: " (in a program that embeds it: Config::profiler)",
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
                by_hand: "(in a program that embeds it: Config::debug_info), then run gcore PID while the program runs",
                leaves: &["./core.PID"],
                stacks: Stacks::Copies,
                ..SWITCH
            },
        ],
        valgrind: Some(UnderValgrind::program("wasmtime --profile=perfmap")),
        unnamed: "the host program's functions if that program is stripped (jitgraft can also read Firefox profiles \
                  from Wasmtime's own sampler, --profile=guest)",
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
            note: " (in a program that embeds it: enable_perfmap in the compiler's configuration)",
            leaves: &["/tmp/perf-PID.map"],
            ..SWITCH
        }],
        unnamed: "all WebAssembly code before Wasmer 6: older versions write no perf map or jitdump and register \
                  nothing for debuggers",
        ..PLAIN
    },
    Runtime {
        name: "MoarVM",
        callers: Callers::Found,
        called: "raku",
        source_extensions: &["raku", "p6"],
        aliases: &["perl6"],
        programs: &["raku", "rakudo", "rakudo-m", "moar"],
        frame_type: "raku",
        libraries: &["libmoar.so*"],
        switches: &[Switch { variables: &[("MVM_JIT_PERF_MAP", "1")], leaves: &["/tmp/perf-PID.map"], ..SWITCH }],
        valgrind: Some(UnderValgrind {
            variables: "MVM_JIT_PERF_MAP=1 MVM_JIT_DUMP_BYTECODE=1",
            ..UnderValgrind::program("rakudo-m")
        }),
        interpreter: Some(Interpreter {
            functions: &["MVM_interp_run"],
            has_frame_per_call: false,
            remedy: "run the program with MVM_JIT_PERF_MAP=1 in its environment; interpreted code has no names",
            why_uncompiled: "",
            flag: None,
        }),
        unnamed: "interpreted functions, which all show as `MVM_interp_run`",
        // MoarVM's JIT compiler only compiles code that the specializer has optimized before.
        other_names: Some(Optimized),
        examples: &[
            ("find_method(gen/moar/stage2/nqpmo.nqp:1391)", Some(Optimized)),
            ("(gen/moar/BOOTSTRAP/v6c.nqp:2473)", Some(Optimized)),
            ("!cursor_start(gen/moar/stage2/QRegex.nqp:1482)", Some(Optimized)),
        ],
        ..PLAIN
    },
    Runtime {
        name: ".NET",
        callers: Callers::Found,
        called: "dotnet",
        aliases: &["csharp", "c#", "fsharp", "f#", "net", ".net core", "clr", "coreclr", "powershell"],
        launchers: &["pwsh"],
        version_flag: "--version",
        version_prefixes: &["Microsoft.NETCore.App/"],
        frame_type: "dotnet",
        programs: &["dotnet"],
        threads: &[".NET *"],
        libraries: &["libcoreclr.so"],
        switches: &[
            Switch {
                variables: &[("DOTNET_PerfMapEnabled", "1")],
                since: Some(Version(6, 0)),
                leaves: &["/tmp/perf-PID.map"],
                ..SWITCH
            },
            Switch {
                variables: &[("COMPlus_PerfMapEnabled", "1")],
                since: Some(Version(2, 0)),
                leaves: &["/tmp/perf-PID.map"],
                ..SWITCH
            },
        ],
        unnamed: "code compiled ahead of time into PE files that are missing or composite (with DOTNET_ReadyToRun=0, \
                  it is compiled at run time instead). jitgraft does not need perfinfo-PID.map: the recording lists \
                  the same files",
        // The names are from GetJitOptimizationTierStr in coreclr's vm/prestub.cpp. With
        // DOTNET_PerfMapShowOptimizationTiers=0, names have no tier.
        marked_names: &[
            (Baseline, &[Ends(")[QuickJitted]"), Ends(")[MinOptJitted]"), Ends(")[InstrumentedTier]")]),
            (MidTier, &[Ends(")[InstrumentedTierOptimized]")]),
            (Optimized, &[Ends(")[Optimized]"), Ends(")[OptimizedTier1]"), Ends(")[OptimizedTier1OSR]")]),
        ],
        plain_names: &[(Stub, &[Starts("stub<"), Starts("stub ")])],
        examples: &[
            ("void [System.Private.CoreLib] System.AppContext::.cctor()[QuickJitted]", Some(Baseline)),
            ("void [App] P::f(int32)[MinOptJitted]", Some(Baseline)),
            ("void [App] P::f(int32)[InstrumentedTier]", Some(Baseline)),
            ("void [App] P::f(int32)[InstrumentedTierOptimized]", Some(MidTier)),
            ("void [System.Private.CoreLib] System.AppContext::Setup(char**,char**,int32)[Optimized]", Some(Optimized)),
            ("void [App] P::f(int32)[OptimizedTier1]", Some(Optimized)),
            ("void [App] P::f(int32)[OptimizedTier1OSR]", Some(Optimized)),
            ("stub<9> AllocateTemporaryEntryPoints<PRECODE_FIXUP>", Some(Stub)),
            ("stub GenerateResolveStub<?>", Some(Stub)),
            ("void [App] P::f(int32)[PreJIT]", None),
            ("void [App] P::f(int32)", None),
        ],
        ..PLAIN
    },
    // Mono is the older implementation of .NET.
    Runtime {
        name: "Mono",
        called: "mono",
        flag_variables: &[FlagVariable::flags("MONO_ENV_OPTIONS")],
        frame_type: "dotnet",
        programs: &["mono", "mono-sgen"],
        libraries: &["libmonosgen*"],
        switches: &[Switch { flags: &[Flag::Word("--jitmap")], leaves: &["/tmp/perf-PID.map"], ..SWITCH }],
        unnamed: "code that Mono's map calls `(null)`",
        examples: &[("(null)", None)],
        ..PLAIN
    },
    Runtime {
        name: "Julia",
        called: "julia",
        source_extensions: &["jl"],
        aliases: &["jl"],
        frame_type: "julia",
        programs: &["julia"],
        libraries: &["libjulia*"],
        switches: &[Switch {
            variables: &[("ENABLE_JITPROFILING", "1")],
            // Julia compiles with LLVM, which writes the jitdump.
            leaves: &["/tmp/.debug/jit/llvm-IR-jit-*/jit-PID.dump"],
            ..SWITCH
        }],
        ..PLAIN
    },
    Runtime {
        name: "Ruby",
        called: "ruby",
        source_extensions: &["rb"],
        aliases: &["yjit", "zjit"],
        launchers: &["rails", "rake", "irb", "bundle"],
        options_with_value: &["-I", "-r", "-C"],
        version_flag: "--version",
        version_prefixes: &["libruby-", "libruby.so.", "/ruby"],
        frame_type: "ruby",
        programs: &["ruby", "ruby2*", "ruby3*", "ruby4*"],
        libraries: &["libruby*"],
        flag_variables: &[FlagVariable::flags("RUBYOPT")],
        switches: &[
            Switch {
                flags: &[Flag::Word("--yjit-perf"), Flag::Word("--yjit")],
                since: Some(Version(3, 3)),
                note: ", if it was built with YJIT",
                leaves: &["/tmp/perf-PID.map"],
                incompatible_options: &["--zjit", "--rjit", "--mjit"],
                memory: "Ruby:rb_yjit",
                ..SWITCH
            },
            // The switch for Ruby's other JIT compiler, ZJIT. Only one of the two compilers can be enabled (ruby.c).
            Switch {
                flags: &[Flag::Word("--zjit-perf"), Flag::Word("--zjit")],
                since: Some(Version(4, 0)),
                note: ", if it was built with ZJIT",
                leaves: &["/tmp/perf-PID.map"],
                incompatible_options: &["--yjit", "--jit", "--rjit", "--mjit"],
                memory: "Ruby:rb_zjit",
                ..SWITCH
            },
        ],
        interpreter: Some(Interpreter {
            functions: &["vm_exec_core"],
            has_frame_per_call: false,
            remedy: "run ruby (3.3 or newer) with --yjit --yjit-perf, if it was built with YJIT; interpreted code has \
                     no names",
            why_uncompiled: "",
            flag: None,
        }),
        unnamed: "all JIT code before Ruby 3.3, whose YJIT writes nothing for perf",
        ..PLAIN
    },
    // PyPy is an alternative implementation of Python.
    Runtime {
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
        unnamed: "interpreted functions if PyPy's library is stripped (its own profiler, vmprof, has them)",
        // The names are those that jitgraft's reader for PyPy's log composes. All code is traced and optimized, except
        // for the backend's helpers.
        plain_names: &[(Stub, &[Is("PyPy helper"), Is("Loop -1")])],
        other_names: Some(Optimized),
        examples: &[
            ("PyPy helper", Some(Stub)),
            ("Loop -1", Some(Stub)),
            ("fib work.py:5 #16 FOR_ITER", Some(Optimized)),
            ("fib work.py:6 #24 LOAD_FAST bridge", Some(Optimized)),
        ],
        ..PLAIN
    },
    // LuaJIT is an alternative implementation of Lua, often embedded in other programs.
    Runtime {
        name: "LuaJIT",
        called: "luajit",
        source_extensions: &["lua"],
        aliases: &["lua"],
        options_with_value: &["-e", "-l"],
        frame_type: "luajit",
        programs: &["luajit*"],
        libraries: &["libluajit*"],
        switches: &[
            Switch {
                flags: &[Flag::Word("-jdump=m,luajit.dump")],
                note: " (if embedded in another program, run require('jit.dump').on('m', 'luajit.dump') there first, \
                       with LuaJIT's own Lua files in package.path)",
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
        unnamed: "interpreted functions (the interpreter is one block of assembly code)",
        // The names are from perftools_addtrace in src/lj_trace.c. jitgraft's reader for LuaJIT's dump uses the same
        // form.
        plain_names: &[(Optimized, &[Starts("TRACE_")])],
        examples: &[("TRACE_12::w.lua:7", Some(Optimized))],
        ..PLAIN
    },
    Runtime {
        name: "JavaScriptCore",
        called: "jsc",
        aliases: &["webkit", "safari"],
        programs: &["jsc", "WebKitWebProcess"],
        libraries: &["libjavascriptcoregtk-*"],
        switches: &[Switch {
            variables: &[("JSC_useJITDump", "1"), ("JSC_jitDumpDirectory", "DIR")],
            leaves: &["DIR/jit-PID.dump"],
            ..SWITCH
        }],
        unnamed: "the interpreter's own code if the library is stripped",
        ..JSC
    },
    Runtime {
        name: "CPython",
        callers: Callers::InDump,
        ignoring_variables: "EI",
        letters_with_value: "cmWX",
        called: "python",
        source_extensions: &["py"],
        aliases: &["py"],
        options_with_value: &["-X", "-W", "--check-hash-based-pycs"],
        version_flag: "--version",
        version_prefixes: &["/python", "/libpython"],
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
        valgrind: Some(UnderValgrind::program("python -X perf")),
        interpreter: Some(Interpreter {
            functions: &["_PyEval_EvalFrameDefault"],
            has_frame_per_call: false,
            remedy: "run python with -X perf (3.12 or newer; older versions cannot name their functions for perf)",
            why_uncompiled: "",
            flag: None,
        }),
        marked_names: &[(Interpreted, &[Around("py::", ".py")])],
        plain_names: &[(Interpreted, &[Starts("py::")])],
        examples: &[
            ("py::WeakSet.__init__.<locals>._remove:/usr/lib/python3.12/_weakrefset.py", Some(Interpreted)),
            ("py::_ModuleLock.acquire:<frozen importlib._bootstrap>", Some(Interpreted)),
        ],
        ..PLAIN
    },
    // QEMU emulates programs for other processors.
    Runtime {
        name: "QEMU",
        called: "qemu-x86_64",
        options_with_value: &["-L", "-cpu", "-E", "-U", "-s", "-B", "-R", "-0", "-g", "-d", "-D"],
        version_flag: "--version",
        frame_type: "qemu",
        programs: &["qemu-*"],
        switches: &[
            Switch {
                flags: &[Flag::Word("-jitdump")],
                since: Some(Version(8, 0)),
                leaves: &["./jit-PID.dump"],
                ..SWITCH
            },
            Switch {
                flags: &[Flag::Word("-perfmap")],
                since: Some(Version(8, 0)),
                leaves: &["/tmp/perf-PID.map"],
                ..SWITCH
            },
        ],
        unnamed: "functions of a guest whose ELF file is not found from the recorded command line; they show as \
                  guest-0x… (pass --guest FILE)",
        examples: &[("guest-0x401136", None), ("mix", None)],
        ..PLAIN
    },
    // Guile is GNU's implementation of Scheme.
    Runtime {
        name: "Guile",
        called: "guile",
        source_extensions: &["scm"],
        aliases: &["scheme"],
        frame_type: "guile",
        programs: &["guile", "guile-*"],
        libraries: &["libguile-*"],
        unnamed: "all JIT code (Guile writes no perf map or jitdump; with GUILE_JIT_THRESHOLD=-1 in its environment \
                  it only interprets)",
        ..PLAIN
    },
    // SBCL is Steel Bank Common Lisp.
    Runtime {
        name: "SBCL",
        called: "sbcl",
        source_extensions: &["lisp"],
        aliases: &["lisp", "common-lisp"],
        frame_type: "sbcl",
        programs: &["sbcl"],
        unnamed: "all Lisp code (SBCL writes no perf map or jitdump, and its core file with the code is not ELF; its \
                  own profiler sb-sprof has the names)",
        ..PLAIN
    },
    // From here on, the runtimes are libraries that many programs load. The first one is LLVM, for programs that
    // compile code with it while they run.
    Runtime {
        name: "LLVM",
        called: "lli",
        frame_type: "llvm",
        programs: &["lli", "lli-*"],
        libraries: &["libLLVM*"],
        is_library: true,
        switches: &[
            Switch {
                flags: &[Flag::Word("--jit-kind=mcjit")],
                note: "; in your own program, register llvm::JITEventListener::createPerfJITEventListener() (MCJIT, \
                       ORC's RTDyldObjectLinkingLayer)",
                // LLVM writes the file to `$JITDUMPDIR` instead if that is set.
                leaves: &["/tmp/.debug/jit/llvm-IR-jit-*/jit-PID.dump"],
                ..SWITCH
            },
            Switch {
                by_hand: "take a core dump with gcore PID while the program runs, if it registers code for debuggers \
                          (lli and MCJIT do)",
                leaves: &["./core.PID"],
                ..SWITCH
            },
        ],
        unnamed: "all JIT code of programs that register neither code for debuggers nor a listener (which needs an \
                  LLVM that was built with LLVM_USE_PERF)",
        ..PLAIN
    },
    // PCRE2 compiles regular expressions in `grep -P`, git, PHP and many other programs.
    Runtime {
        name: "PCRE2",
        frame_type: "pcre2",
        called: "grep -P",
        aliases: &["pcre", "regex"],
        libraries: &["libpcre2-*"],
        is_library: true,
        unnamed: "compiled regular expressions (PCRE2 writes no perf map or jitdump); the functions that call them \
                  have names",
        ..PLAIN
    },
];
