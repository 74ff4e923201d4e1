//! The tier of JIT code: by which of its runtime's means a function ran.

/// The rungs of a runtime's ladder from the interpreter to its best compiler, and the code beside that ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// An interpreter ran it, be it under a trampoline of the function's own (V8's `~`, CPython's `py::`).
    Interpreted,
    /// A quick compiler made it, which translates without optimizing (V8's Sparkplug, .NET's tier 0, BeamAsm).
    Baseline,
    /// A compiler between the quick one and the best one made it (V8's Maglev, JavaScriptCore's DFG).
    MidTier,
    /// The runtime's best compiler made it (V8's TurboFan, .NET's tier 1, PHP's tracing JIT).
    Optimised,
    /// A function of the language's own library or runtime that was compiled with the runtime, not by the program.
    Builtin,
    /// Glue between functions: adapters, trampolines, entries, exits, handlers of exceptions.
    Stub,
    /// WebAssembly, by whichever compiler.
    Wasm,
    /// A compiled regular expression.
    RegExp,
}

impl Tier {
    /// The word for it in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interpreted => "interpreted",
            Self::Baseline => "baseline",
            Self::MidTier => "mid-tier",
            Self::Optimised => "optimised",
            Self::Builtin => "builtin",
            Self::Stub => "stub",
            Self::Wasm => "wasm",
            Self::RegExp => "regexp",
        }
    }
}
