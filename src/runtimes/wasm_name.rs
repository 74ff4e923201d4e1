//! Parses the names that engines give to native code of WebAssembly functions.
//!
//! | engine | with a name | without a name |
//! |---|---|---|
//! | V8 | `JS:fib-3-liftoff` | `JS:wasm-function[3]-3-liftoff` |
//! | Wasmtime | `wasm[0]::function[3]::fib` | `wasm[0]::function[3]` |
//! | SpiderMonkey | `Wasm: Function fib`, which has no index | `Wasm: Function wasm-function[3]` |
//!
//! None of these names says which module the function belongs to.

/// The parts of a name for a WebAssembly function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WasmName<'n> {
    /// The part of the name before the separator and the function's name: the engine's tag or, for Wasmtime, everything
    /// up to the index.
    prefix: &'n str,
    /// The text between `prefix` and the function's name.
    separator: &'static str,
    /// The function's name. `None` if its module has no name for it.
    pub function: Option<&'n str>,
    /// The function's index in its module.
    pub number: u32,
    /// The part of the name after the function's name: V8's index and compiler. Empty for other engines.
    suffix: &'n str,
}

/// Prefix of SpiderMonkey's names.
const SPIDERMONKEY: &str = "Wasm: Function ";

/// How the name that engines give to a nameless function starts. The function's index and `]` follow.
const NAMELESS: &str = "wasm-function[";

impl<'n> WasmName<'n> {
    /// Splits a name into its parts. `None` if it isn't that of a WebAssembly function, or if it contains no index.
    pub fn parse(name: &'n [u8]) -> Option<Self> {
        // A quick check that rules out most names of other code.
        let is_v8 = name.ends_with(b"-liftoff") || name.ends_with(b"-turbofan");
        let is_wasmtime = name.starts_with(b"wasm[");
        let is_spidermonkey = name.starts_with(SPIDERMONKEY.as_bytes());
        if !(is_v8 || is_wasmtime || is_spidermonkey) {
            return None;
        }
        let name = std::str::from_utf8(name).ok()?;
        parse_v8(name).or_else(|| parse_wasmtime(name)).or_else(|| parse_spidermonkey(name))
    }

    /// The function's index in the name that engines give to a nameless function, such as 3 in `wasm-function[3]`.
    /// `None` for other names.
    pub fn nameless_index(function: &str) -> Option<u32> {
        function.strip_prefix(NAMELESS)?.strip_suffix(']')?.parse().ok()
    }

    /// The name in the engine's notation, with `function` in place of the function's name, and `place` (its source
    /// location) appended.
    pub fn spell(&self, function: &str, place: &str) -> String {
        let Self { prefix, separator, suffix, .. } = self;
        format!("{prefix}{separator}{function}{suffix}{place}")
    }
}

/// Parses V8's name of a WebAssembly function, such as `JS:add-3-liftoff`.
fn parse_v8(name: &str) -> Option<WasmName<'_>> {
    let tag_len = ["JS:", "Function:"].iter().find(|tag| name.starts_with(**tag))?.len();
    let (rest, tier) = name.rsplit_once('-').filter(|(_, tier)| ["liftoff", "turbofan"].contains(tier))?;
    let (function, digits) = rest.get(tag_len..)?.rsplit_once('-')?;
    let number = digits.parse().ok()?;
    let is_nameless = WasmName::nameless_index(function) == Some(number);
    // The suffix is `-INDEX-TIER`.
    let suffix = &name[name.len() - tier.len() - digits.len() - 2..];
    let function = if is_nameless { None } else { Some(function) };
    Some(WasmName { prefix: &name[..tag_len], separator: "", function, number, suffix })
}

/// Parses SpiderMonkey's name of a WebAssembly function without a name: `Wasm: Function wasm-function[3]`. Other names
/// contain no index.
fn parse_spidermonkey(name: &str) -> Option<WasmName<'_>> {
    let rest = name.strip_prefix(SPIDERMONKEY)?.strip_prefix(NAMELESS)?;
    let (number, suffix) = rest.split_once(']')?;
    Some(WasmName { prefix: SPIDERMONKEY, separator: "", function: None, number: number.parse().ok()?, suffix })
}

/// Parses Wasmtime's name of a WebAssembly function, such as `wasm[0]::function[3]::add`. `None` for auxiliary code
/// such as trampolines, and for functions of a component's further modules (`wasm[1]` and so on).
fn parse_wasmtime(name: &str) -> Option<WasmName<'_>> {
    let rest = name.strip_prefix("wasm[0]::function[")?;
    let (number, rest) = rest.split_once(']')?;
    let function = rest.strip_prefix("::");
    // Only `::` and the function's name, or nothing, may follow the index.
    if function.is_none() && !rest.is_empty() {
        return None;
    }
    let prefix = &name[..name.len() - rest.len()];
    Some(WasmName { prefix, separator: "::", function, number: number.parse().ok()?, suffix: "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(name: &str) -> Option<(Option<&str>, u32, String)> {
        let name = WasmName::parse(name.as_bytes())?;
        Some((name.function, name.number, name.spell("f", " /a.c:1:2")))
    }

    #[test]
    fn a_name_has_a_number_and_perhaps_a_function() {
        let spelled = |text: &str| text.to_owned();
        assert_eq!(parts("JS:a-b-3-liftoff"), Some((Some("a-b"), 3, spelled("JS:f-3-liftoff /a.c:1:2"))));
        let nameless = parts("JS:wasm-function[7]-7-turbofan");
        assert_eq!(nameless, Some((None, 7, spelled("JS:f-7-turbofan /a.c:1:2"))));
        let named = parts("wasm[0]::function[3]::<T as U>::f");
        assert_eq!(named, Some((Some("<T as U>::f"), 3, spelled("wasm[0]::function[3]::f /a.c:1:2"))));
        assert_eq!(parts("wasm[0]::function[3]"), Some((None, 3, spelled("wasm[0]::function[3]::f /a.c:1:2"))));
        let nameless = parts("Wasm: Function wasm-function[12]");
        assert_eq!(nameless, Some((None, 12, spelled("Wasm: Function f /a.c:1:2"))));
        for other in [
            "JS:*f /a.js:1:2",
            "JS:f-turbofan",
            "wasm[1]::function[3]",
            "wasm[0]::array_to_wasm_trampoline[2]",
            "f]",
            "in",
        ] {
            assert_eq!(parts(other), None, "{other}");
        }
        assert_eq!((WasmName::nameless_index("wasm-function[2]"), WasmName::nameless_index("f")), (Some(2), None));
    }
}
