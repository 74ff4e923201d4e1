//! How much a test tries: little in a quick run, everything with `tests/run.sh --all`.

/// True with `tests/run.sh --all`. Loops over every prefix or byte and large inputs are whole only then.
pub(crate) fn is_thorough() -> bool {
    std::env::var_os("JITGRAFT_THOROUGH").is_some()
}

/// The step of a loop that is whole in a thorough run, and takes every `quick`th item otherwise.
pub(crate) fn step(quick: usize) -> usize {
    if is_thorough() { 1 } else { quick }
}
