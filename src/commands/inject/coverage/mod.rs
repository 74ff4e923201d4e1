//! Which JIT code the samples use, and before which of them perf must be told of it.

pub(in crate::commands) mod code_uses;
mod insertions;
mod jit_ranges;
pub(in crate::commands) mod search;
mod selection;
pub(in crate::commands) mod shadowings;

pub(in crate::commands) use selection::keep_wanted;
