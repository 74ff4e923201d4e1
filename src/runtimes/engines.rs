//! Table entries for JavaScript engines that several runtimes embed.

use super::runtime::Shape::{After, Around, Holds, Is, Starts};
use super::runtime::{Callers, PLAIN, Runtime, TierRule};
use crate::model::tier::Tier;
use crate::model::tier::Tier::{Baseline, Builtin, Interpreted, MidTier, Optimized, RegExp, Stub, Wasm};

pub(super) const V8: Runtime = Runtime {
    frame_type: "v8js",
    callers: Callers::Found,
    unnamed: "the last code of a process that was killed before V8 wrote it",
    marked_names: V8_NAMES,
    plain_names: &[(Stub, &[Starts("Stub:"), Starts("Handler:")])],
    examples: V8_EXAMPLES,
    ..PLAIN
};

pub(super) const JSC: Runtime =
    Runtime { frame_type: "jsc", callers: Callers::Found, marked_names: JSC_NAMES, examples: JSC_EXAMPLES, ..PLAIN };

pub(super) const SPIDERMONKEY: Runtime = Runtime {
    frame_type: "spidermonkey",
    // The names are from SpiderMonkey's js/src/jit/PerfSpewer.cpp. They are untested, because we had no build that
    // writes them.
    marked_names: &[
        (Interpreted, &[Starts("BaselineInterpreter: "), Starts("BlinterpOp: ")]),
        (Baseline, &[Starts("Baseline: ")]),
        (Optimized, &[Starts("Ion: ")]),
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
        ("Ion: main (/a/list.js:10:5)", Some(Optimized)),
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
};

/// The function with which V8 interprets bytecode: what jitdumps and perf maps call it, and what node's symbol table
/// calls it.
pub(super) const V8_INTERPRETERS: &[&str] =
    &["Builtin:InterpreterEntryTrampoline", "Builtins_InterpreterEntryTrampoline"];

/// The tags that V8 writes before the mark for the tier. They depend on V8's version (src/logging/code-events.h).
const V8_TAGS: &[&str] = &["JS:", "Script:", "Eval:", "LazyCompile:", "Function:"];

/// The marks for tiers in V8's names, from `CodeKindToMarker` in src/objects/code-kind.cc. An `o` before the mark means
/// that the code was entered by on-stack replacement.
const V8_NAMES: &[TierRule] = &[
    (Interpreted, &[After(V8_TAGS, "~"), Starts("BytecodeHandler:")]),
    (Baseline, &[After(V8_TAGS, "^")]),
    (MidTier, &[After(V8_TAGS, "+"), After(V8_TAGS, "o+")]),
    (Optimized, &[After(V8_TAGS, "*"), After(V8_TAGS, "o*")]),
    (
        Wasm,
        &[
            Around("JS:", "-liftoff"),
            Around("JS:", "-turbofan"),
            Around("Function:", "-liftoff"),
            Around("Function:", "-turbofan"),
            // Names of WebAssembly functions to which jitgraft appended a source location.
            Holds("-liftoff /"),
            Holds("-turbofan /"),
        ],
    ),
    (Builtin, &[Starts("Builtin:"), Starts("Builtins_")]),
    // The second form is that of V8 14 and later, with the flags of the expression: `RegExp.> src: '\w' flags: 'g'`.
    (RegExp, &[Starts("RegExp:"), Starts("RegExp.> src: ")]),
];

const V8_EXAMPLES: &[(&str, Option<Tier>)] = &[
    ("JS:~push /a/list.js:10:5", Some(Interpreted)),
    ("Eval:~ /a/list.js:1:1", Some(Interpreted)),
    ("Script:~ /a/list.js:1:1", Some(Interpreted)),
    ("LazyCompile:~ node:fs:1:2", Some(Interpreted)),
    ("BytecodeHandler:LdaSmi.Wide", Some(Interpreted)),
    ("JS:^push /a/list.js:10:5", Some(Baseline)),
    ("JS:+push /a/list.js:10:5", Some(MidTier)),
    ("JS:+'push /a/list.js:10:5", Some(MidTier)),
    ("JS:o+push /a/list.js:10:5", Some(MidTier)),
    ("JS:* :1:1", Some(Optimized)),
    ("JS:*'push /a/list.js:10:5", Some(Optimized)),
    ("JS:o*push /a/list.js:10:5", Some(Optimized)),
    ("LazyCompile:*push /a/list.js:10:5", Some(Optimized)),
    ("JS:wasm-function[0]-0-liftoff", Some(Wasm)),
    ("JS:wasm-function[0]-0-turbofan", Some(Wasm)),
    ("JS:fib-3-liftoff /a/fib.rs:4:1", Some(Wasm)),
    ("JS:fib-3-turbofan /a/fib.rs:4:1", Some(Wasm)),
    ("Function:fib-3-liftoff", Some(Wasm)),
    ("Function:fib-3-turbofan", Some(Wasm)),
    ("Builtin:ArrayPush", Some(Builtin)),
    ("Builtins_ArrayPush", Some(Builtin)),
    ("RegExp:(\\w+)\\s*=\\s*(\"[^\"]*\"|\\d+)[;,]?", Some(RegExp)),
    ("RegExp:^[A-Z][a-zA-Z0-9]+$", Some(RegExp)),
    ("RegExp.> src: '\\w' flags: 'g'", Some(RegExp)),
    ("Stub:js-to-wasm:i:i", Some(Stub)),
    ("Handler:LoadHandler", Some(Stub)),
    ("JS:push /a/list.js:10:5", None),
    ("JS:?push /a/list.js:10:5", None),
];

/// Names in JavaScriptCore's jitdumps (Source/JavaScriptCore/assembler/LinkBuffer.cpp) and in its older perf maps.
const JSC_NAMES: &[TierRule] = &[
    (Baseline, &[Starts("JSC-Baseline: "), Starts("Baseline JIT code for ")]),
    (MidTier, &[Starts("JSC-DFG: "), Starts("DFG JIT code for ")]),
    (Optimized, &[Starts("JSC-FTL: "), Starts("FTL B3 code for ")]),
    (Wasm, &[Starts("JSC-WasmBBQ: "), Starts("JSC-WasmOMG: ")]),
    (RegExp, &[Starts("JSC-YarrJIT: ")]),
    (
        Stub,
        &[
            After(&["JSC-", "JSC-ExtraCTI", "JSC-LLInt", "JSC-DFG", "JSC-FTL", "JSC-Wasm"], "Thunk: "),
            After(&["JSC-DFG", "JSC-FTL"], "OSRE"),
            Starts("JSC-InlineCache: "),
            Starts("JSC-JumpIsland: "),
        ],
    ),
];

const JSC_EXAMPLES: &[(&str, Option<Tier>)] = &[
    ("JSC-Baseline: hot#An5f6s", Some(Baseline)),
    ("Baseline JIT code for hot#An5f6s:[0x7f1->0x7f2, BaselineFunctionCall, 61]", Some(Baseline)),
    ("JSC-DFG: /a/list.js#CAj2pM", Some(MidTier)),
    ("DFG JIT code for DFG: hot#An5f6s", Some(MidTier)),
    ("JSC-FTL: hot#An5f6s", Some(Optimized)),
    ("FTL B3 code for FTL: hot#An5f6s", Some(Optimized)),
    ("JSC-WasmBBQ: .wasm-function[0]#BmhKNQ", Some(Wasm)),
    ("JSC-WasmOMG: .wasm-function[0]#BmhKNQ", Some(Wasm)),
    ("JSC-YarrJIT: /(a+)+b/", Some(RegExp)),
    ("JSC-Thunk: DefaultCall", Some(Stub)),
    ("JSC-ExtraCTIThunk: get_from_scope", Some(Stub)),
    ("JSC-LLIntThunk: function for call", Some(Stub)),
    ("JSC-WasmThunk: JSToWasm", Some(Stub)),
    ("JSC-FTLThunk: unspecified", Some(Stub)),
    ("JSC-DFGOSREntry: unspecified", Some(Stub)),
    ("JSC-FTLOSRExit: unspecified", Some(Stub)),
    ("JSC-InlineCache: GetById handler", Some(Stub)),
    ("JSC-JumpIsland: unspecified", Some(Stub)),
    ("JSC-CSSJIT: selector", None),
    ("JSC-Uncategorized: unspecified", None),
];
