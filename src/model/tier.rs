//! Tiers: how a runtime executed a function of JIT code.

/// How a runtime executed code: tiers from the interpreter to the best compiler, and kinds of code that are no tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
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
    /// The tier's name in output files: `interpreted`, `baseline`, `mid-tier`, `optimized`, `builtin`, `stub`, `wasm` or
    /// `regexp`.
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

    /// True for the tiers through which a function passes as it gets hotter. False for kinds of code such as stubs.
    pub fn is_step(self) -> bool {
        matches!(self, Self::Interpreted | Self::Baseline | Self::MidTier | Self::Optimized)
    }

    /// The tier with this name; `None` if there is none. The British spelling of `optimized` is accepted, because
    /// jitdumps and profiles contain it.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "interpreted" => Self::Interpreted,
            "baseline" => Self::Baseline,
            "mid-tier" => Self::MidTier,
            "optimized" | "optimised" => Self::Optimized,
            "builtin" => Self::Builtin,
            "stub" => Self::Stub,
            "wasm" => Self::Wasm,
            "regexp" => Self::RegExp,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_in_either_spelling() {
        for tier in [Tier::Interpreted, Tier::Baseline, Tier::MidTier, Tier::Optimized] {
            assert_eq!((Tier::from_name(tier.name()), tier.is_step()), (Some(tier), true));
        }
        for kind in [Tier::Builtin, Tier::Stub, Tier::Wasm, Tier::RegExp] {
            assert_eq!((Tier::from_name(kind.name()), kind.is_step()), (Some(kind), false));
        }
        assert_eq!(Tier::from_name("optimised"), Some(Tier::Optimized));
        assert_eq!(Tier::from_name("OPTIMIZED"), None);
    }
}
