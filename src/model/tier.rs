//! Tiers: how a runtime executed a function of JIT code.

/// How a runtime executed code: tiers from the interpreter to the best compiler, and kinds of code that are no tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Interpreted, possibly through a trampoline that each function has (V8's `~`, CPython's `py::`).
    Interpreted,
    /// From a fast compiler that translates without optimizing (V8's Sparkplug, .NET's tier 0, BeamAsm).
    Baseline,
    /// From a compiler between the fast one and the best one (V8's Maglev, JavaScriptCore's DFG).
    MidTier,
    /// From the runtime's best compiler (V8's TurboFan, .NET's tier 1, PHP's tracing JIT).
    Optimized,
    /// A function of the language's library or runtime, compiled together with the runtime instead of by the program.
    Builtin,
    /// Code between functions: adapters, trampolines, entries, exits, exception handlers.
    Stub,
    /// WebAssembly, from any compiler.
    Wasm,
    /// A compiled regular expression.
    RegExp,
}

impl Tier {
    /// The tier's name in output files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interpreted => "interpreted",
            Self::Baseline => "baseline",
            Self::MidTier => "mid-tier",
            Self::Optimized => "optimized",
            Self::Builtin => "builtin",
            Self::Stub => "stub",
            Self::Wasm => "wasm",
            Self::RegExp => "regexp",
        }
    }
}
