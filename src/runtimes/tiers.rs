//! Determines the tier of JIT code from its name.

use super::runtime::{Runtime, find_tier};
use super::set::RuntimeSet;
use super::table::RUNTIMES;
use crate::model::stacks::NameId;
use crate::model::tier::Tier;
use rustc_hash::FxHashMap;

/// The tier of JIT code with this name, in a process with these runtimes (empty if unknown). `None` if the name
/// indicates no tier.
///
/// Names that only one runtime writes are tried first, for all runtimes: the process may contain one that isn't in
/// `runtimes`. If no pattern matches, the code is taken for that of the first (outermost) runtime.
pub fn tier(name: &[u8], runtimes: RuntimeSet) -> Option<Tier> {
    // Names that only one runtime writes: first those of the process's runtimes, then those of all others.
    for runtime in runtimes.iter().chain(RUNTIMES) {
        if let Some(tier) = find_tier(runtime.marked_names, name) {
            return Some(tier);
        }
    }
    for runtime in runtimes.iter() {
        if let Some(tier) = find_tier(runtime.plain_names, name) {
            return Some(tier);
        }
    }
    // No pattern matches. For some runtimes, all such code has the same tier (`other_names`), except code that has no
    // tier at all (`tierless_names`).
    if let Some(first) = runtimes.first()
        && let Some(tier) = first.other_names
        && !first.tierless_names.iter().any(|shape| shape.fits(name))
    {
        return Some(tier);
    }
    // Names that jitgraft wrote itself have the tier in brackets: `function [baseline]`.
    tier_in_brackets(name)
}

/// The value of `profile.frame.type` for JIT code with this name, in a process with these runtimes (empty if unknown).
/// A name that only one runtime writes identifies that runtime in any process. Other names identify the first of the
/// process's runtimes with a pattern that fits or, if no pattern fits, the outermost runtime. `jit` if the process has
/// no known runtime.
pub fn frame_type(name: &[u8], runtimes: RuntimeSet) -> &'static str {
    let has_marked_name = |runtime: &&Runtime| find_tier(runtime.marked_names, name).is_some();
    if let Some(runtime) = runtimes.iter().chain(RUNTIMES).find(has_marked_name) {
        return runtime.frame_type;
    }
    let has_plain_name = |runtime: &&Runtime| find_tier(runtime.plain_names, name).is_some();
    match runtimes.iter().find(has_plain_name).or_else(|| runtimes.first()) {
        Some(runtime) => runtime.frame_type,
        None => "jit",
    }
}

/// The tier of names like `function [baseline]`, which jitgraft writes for runtimes that have no notation of their own.
fn tier_in_brackets(name: &[u8]) -> Option<Tier> {
    let (_, word) = std::str::from_utf8(name).ok()?.strip_suffix(']')?.rsplit_once(" [")?;
    Tier::from_name(word).filter(|tier| tier.is_step())
}

/// Caches the tiers of a profile's names.
#[derive(Debug, Default)]
pub struct Tiers(FxHashMap<(NameId, RuntimeSet), Option<Tier>>);

impl Tiers {
    /// The tier of JIT code called `name`, in a process with these runtimes. `id` is the name's ID in its profile.
    pub fn find(&mut self, id: NameId, name: &[u8], runtimes: RuntimeSet) -> Option<Tier> {
        *self.0.entry((id, runtimes)).or_insert_with(|| tier(name, runtimes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(runtime: &Runtime) -> RuntimeSet {
        let file = runtime.programs.iter().chain(runtime.libraries).next().unwrap().replace('*', "");
        RuntimeSet::from_files(std::iter::once(file.as_bytes()))
    }

    #[test]
    fn every_example_is_of_the_tier_beside_it() {
        for runtime in RUNTIMES {
            for (name, wanted) in runtime.examples {
                assert_eq!(tier(name.as_bytes(), running(runtime)), *wanted, "{}: {name}", runtime.name);
            }
        }
    }

    #[test]
    fn every_shape_has_an_example_and_needs_it() {
        for runtime in RUNTIMES {
            for (tier, shape) in [runtime.marked_names, runtime.plain_names]
                .concat()
                .into_iter()
                .flat_map(|(tier, shapes)| shapes.iter().map(move |shape| (tier, *shape)))
            {
                let mut examples = runtime.examples.iter().filter(|(_, wanted)| *wanted == Some(tier));
                assert!(examples.any(|(name, _)| shape.fits(name.as_bytes())), "{}: {shape:?}", runtime.name);
            }
        }
    }

    #[test]
    fn without_a_runtime_only_marked_names_show() {
        let tier = |name: &str| tier(name.as_bytes(), RuntimeSet::default());
        assert_eq!(tier("JS:*push /a/list.js:10:5"), Some(Tier::Optimized));
        assert_eq!(tier("TRACE-1$App\\fib$19"), Some(Tier::Optimized));
        assert_eq!(tier("sort [baseline]"), Some(Tier::Baseline));
        for plain in ["Interpreter", "lists:reverse/1", "evalexpr_0_0", "push(a.raku:1)", "fib", ""] {
            assert_eq!(tier(plain), None, "{plain}");
        }
    }

    #[test]
    fn an_embedded_runtime_keeps_its_names() {
        let both = RuntimeSet::from_files([&b"/usr/bin/python3.13"[..], b"/x/_libwasmtime.so"].into_iter());
        assert_eq!(tier(b"py::run:<frozen runpy>", both), Some(Tier::Interpreted));
        assert_eq!(tier(b"fib", both), Some(Tier::Wasm));
    }

    #[test]
    fn no_runtime_claims_the_marked_names_of_another() {
        for runtime in RUNTIMES {
            for (name, wanted) in
                runtime.examples.iter().filter(|(name, _)| find_tier(runtime.marked_names, name.as_bytes()).is_some())
            {
                for other in RUNTIMES {
                    let claimed = find_tier(other.marked_names, name.as_bytes());
                    assert!(
                        claimed.is_none() || claimed == *wanted,
                        "{} claims {name} of {}",
                        other.name,
                        runtime.name
                    );
                }
            }
        }
    }

    #[test]
    fn code_is_of_the_type_that_its_name_marks_or_its_process_runs() {
        assert!(RUNTIMES.iter().all(|runtime| !runtime.frame_type.is_empty()));
        let (nothing, java) = (RuntimeSet::default(), RuntimeSet::from_program(b"java"));
        assert_eq!(frame_type(b"JS:*push /a/list.js:10:5", nothing), "v8js");
        assert_eq!(frame_type(b"JS:*push /a/list.js:10:5", java), "v8js");
        assert_eq!(frame_type(b"Interpreter", java), "jvm");
        assert_eq!(frame_type(b"push", nothing), "jit");
        let both = RuntimeSet::from_files([&b"/usr/bin/python3.13"[..], b"/x/_libwasmtime.so"].into_iter());
        assert_eq!((frame_type(b"py::run:<frozen runpy>", both), frame_type(b"fib", both)), ("cpython", "wasm"));
    }

    #[test]
    fn a_name_is_looked_up_once_for_each_runtime() {
        let mut tiers = Tiers::default();
        let java = RuntimeSet::from_program(b"java");
        assert_eq!(tiers.find(NameId(0), b"Interpreter", java), Some(Tier::Interpreted));
        assert_eq!(tiers.find(NameId(0), b"not looked at", java), Some(Tier::Interpreted));
        assert_eq!(tiers.find(NameId(0), b"Interpreter", RuntimeSet::default()), None);
    }
}
