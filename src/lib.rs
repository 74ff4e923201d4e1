//! jitgraft repairs profiles of programs with just-in-time compiled code, offline.
//!
//! # The map of the house
//!
//! ```text
//! main → cli → commands → pipeline → sources → { formats | resolve } → { model | parallel | io } → error
//! ```
//!
//! Imports point from left to right (`tests/architecture.rs` keeps it so).
//!
//! | room | what it is for |
//! |---|---|
//! | [`commands`] | one file a job, the whole run of it on one screen |
//! | [`pipeline`] | the way of a profile, for every job alike: open, detect, survey, read or resolve, filter, merge |
//! | [`sources`] | finds, trusts, dates and loads what names JIT code: jitdumps, perf maps, ELF objects → one code map |
//! | [`formats`] | bytes ↔ typed records; knows no files, no threads, no other format |
//! | [`resolve`] | address → frames: code map, address spaces, symbols, unwinding |
//! | [`model`] | what readers fill and writers get: stacks, code events, processes, units; no I/O |
//! | [`parallel`] | the only threads |
//! | [`io`] | inputs, outputs, the only memory maps |
//! | [`error`] | errors, warnings, what was skipped |
//!
//! Two kinds of job share the house. *Rewriters* (inject, script, callgrind) stream a file through and touch only
//! what they name: everything else is passed on byte for byte, in bounded memory ([`commands::inject`] lists the few
//! exceptions). *Converters* (collapse, flamegraph, report, export, stats) turn any input into stacks
//! ([`model::stacks::Profile`]) and stacks into any output. `doctor` loads a recording as they do, and tells what
//! stayed without a name and why. All get their code map from `sources` and ask `resolve` the same question.

pub mod cli;
pub mod commands;
pub mod error;
pub mod formats;
pub mod io;
pub mod model;
pub mod parallel;
pub mod pipeline;
pub mod resolve;
pub mod sources;
