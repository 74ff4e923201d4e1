//! The text that `perf script` prints: written from samples.

pub mod write;
