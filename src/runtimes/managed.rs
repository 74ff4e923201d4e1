//! Entries of the table for the virtual machines of Java and .NET.

use super::runtime::{FlagVariable, Interpreter, PLAIN, Runtime};
use super::shape::Shape::{Ends, Holds, Is, Starts};
use super::switch::{Flag, SWITCH, Switch, Version};
use crate::model::tier::Tier::{Baseline, Interpreted, MidTier, Optimised, Stub};

/// Java's.
pub(super) const OPENJDK: Runtime = Runtime {
    name: "OpenJDK",
    called: "java",
    carries: &["jruby", "clojure", "clj", "groovy", "scala", "kotlin", "kotlinc", "jshell"],
    flag_variables: &[FlagVariable::flags("JAVA_TOOL_OPTIONS"), FlagVariable::flags("JDK_JAVA_OPTIONS")],
    valued: &[
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
    version_behind: &["/java-", "/jdk-", "/jdk"],
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
        Switch { by_hand: "with `jcmd PID Compiler.perfmap` before it ends", leaves: &["/tmp/perf-PID.map"], ..SWITCH },
        Switch {
            flags: &[
                Flag::Needed("-XX:+UnlockDiagnosticVMOptions"),
                Flag::Word("-XX:+LogCompilation"),
                Flag::Word("-XX:+PreserveFramePointer"),
            ],
            note: ", which contains times, tiers and inlining, but not the interpreter and stubs",
            leaves: &["./hotspot_pidPID.log"],
            ..SWITCH
        },
        Switch {
            by_hand: "with `jcmd PID Compiler.codelist > codelist-PID.txt` before it ends, which contains tiers",
            leaves: &["./codelist-PID.txt"],
            ..SWITCH
        },
        Switch {
            by_hand: "before JDK 17 with perf-map-agent's create-java-perf-map.sh PID before it ends, which lists inlined calls with the option unfold",
            leaves: &["/tmp/perf-PID.map"],
            ..SWITCH
        },
        Switch {
            by_hand: "with perf's agent -agentpath:libperf-jvmti.so",
            leaves: &["~/.debug/jit/java-jit-*/jit-PID.dump"],
            ..SWITCH
        },
    ],
    valgrind: Some("java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"),
    interpreter: Some(Interpreter {
        functions: &["Interpreter"],
        frame_a_call: true,
        remedy: "nothing names interpreted methods to perf: let the program run longer, until its hot methods are \
                  compiled, without -Xint (-Xcomp compiles all of them at once)",
        flag: None,
    }),
    unnamed: "interpreted methods, which are all one `Interpreter`, and have no name in a compilation log, as stubs and adapters; in a map, methods that were freed before it was written",
    // Methods have their arguments in their names, and the compiler that made them only if a log of HotSpot's reported
    // it; what has no arguments is a blob (share/code/codeBlob.cpp).
    marked_names: &[
        (Baseline, &[Ends(") [c1]")]),
        (Optimised, &[Ends(") [c2]"), Ends(") [jvmci]")]),
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
    untold_names: &[Holds("("), Holds("::"), Holds(";.")],
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
        ("int java.lang.Object.hashCode() [c2]", Some(Optimised)),
        ("int java.lang.Object.hashCode() [jvmci]", Some(Optimised)),
        ("LW;work(I)J", None),
        // As perf-map-agent spells it, by its options.
        ("Ljava/lang/Object;::hashCode", None),
        ("Ljava/lang/Object;.hashCode", None),
        ("java.lang.Object::hashCode", None),
    ],
    ..PLAIN
};

/// .NET's own.
pub(super) const DOT_NET: Runtime = Runtime {
    name: ".NET",
    called: "dotnet",
    version_flag: "--version",
    version_behind: &["Microsoft.NETCore.App/"],
    frame_type: "dotnet",
    programs: &["dotnet"],
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
    unnamed: "code that was compiled ahead of time into PE files that are not available, or into one for several (composite): DOTNET_ReadyToRun=0 makes it JIT code; perfinfo-PID.map lists loaded files as the recording does, and is not read",
    // GetJitOptimizationTierStr in coreclr's vm/prestub.cpp; DOTNET_PerfMapShowOptimizationTiers=0 leaves them out.
    marked_names: &[
        (Baseline, &[Ends(")[QuickJitted]"), Ends(")[MinOptJitted]"), Ends(")[InstrumentedTier]")]),
        (MidTier, &[Ends(")[InstrumentedTierOptimized]")]),
        (Optimised, &[Ends(")[Optimized]"), Ends(")[OptimizedTier1]"), Ends(")[OptimizedTier1OSR]")]),
    ],
    plain_names: &[(Stub, &[Starts("stub<"), Starts("stub ")])],
    examples: &[
        ("void [System.Private.CoreLib] System.AppContext::.cctor()[QuickJitted]", Some(Baseline)),
        ("void [App] P::f(int32)[MinOptJitted]", Some(Baseline)),
        ("void [App] P::f(int32)[InstrumentedTier]", Some(Baseline)),
        ("void [App] P::f(int32)[InstrumentedTierOptimized]", Some(MidTier)),
        ("void [System.Private.CoreLib] System.AppContext::Setup(char**,char**,int32)[Optimized]", Some(Optimised)),
        ("void [App] P::f(int32)[OptimizedTier1]", Some(Optimised)),
        ("void [App] P::f(int32)[OptimizedTier1OSR]", Some(Optimised)),
        ("stub<9> AllocateTemporaryEntryPoints<PRECODE_FIXUP>", Some(Stub)),
        ("stub GenerateResolveStub<?>", Some(Stub)),
        ("void [App] P::f(int32)[PreJIT]", None),
        ("void [App] P::f(int32)", None),
    ],
    ..PLAIN
};

/// The older machine of .NET.
pub(super) const MONO: Runtime = Runtime {
    name: "Mono",
    called: "mono",
    flag_variables: &[FlagVariable::flags("MONO_ENV_OPTIONS")],
    frame_type: "dotnet",
    programs: &["mono", "mono-sgen"],
    libraries: &["libmonosgen*"],
    switches: &[Switch { flags: &[Flag::Word("--jitmap")], leaves: &["/tmp/perf-PID.map"], ..SWITCH }],
    unnamed: "pieces that its map calls `(null)`",
    examples: &[("(null)", None)],
    ..PLAIN
};
