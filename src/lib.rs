//! jitgraft repairs profiles of programs with just-in-time compiled code, offline.
//!
//! It reads what profilers write, names the code that JIT compilers made, and writes profiles for viewers. This is the
//! library behind the program of the same name. It runs on Linux only, and reads recordings of any Linux machine.
//!
//! ```toml
//! [dependencies]
//! jitgraft = { version = "0.1", default-features = false }
//! ```
//!
//! The library needs no feature. `cli`, the default, is the program: its commands and pages. `tables` adds Parquet.
//!
//! # How to use it
//!
//! | to | use |
//! |---|---|
//! | read a profile in any format, with names for its addresses | [`load()`], [`load_bytes`] |
//! | see a recording sample by sample, in bounded memory | [`for_each_sample`] |
//! | name addresses of your own | [`CodeMap`] |
//! | add names to a pprof, OpenTelemetry, Firefox or callgrind profile in memory | [`add_names`] |
//! | make a profile of your own samples | [`ProfileBuilder`] |
//! | write a profile in any format, or draw a flame graph | [`Profile::write`], [`Profile::flame_graph`] |
//! | read or write a format of your own beside the built-in ones | [`Format`], [`Formats`] |
//!
//! # Words
//!
//! | word | what it means here |
//! |---|---|
//! | recording | what `perf record` wrote, or another profile of raw addresses |
//! | profile | any input as stacks with weights, which belong to one or more events ([`Profile`], [`Event`]) |
//! | stack | the frames of a sample: its innermost frame comes first, then that of the caller, and so on |
//! | frame | an entry of a stack: a function, and where in it ([`Frame`]) |
//! | weight | what a sample stands for, in the event's unit; *self* weight is without callees, *total* weight with them |
//! | JIT code | code that a runtime generated in memory; *native* code is in files |
//! | runtime | what runs JIT code, such as Node.js or the JVM; an *engine* is the part with the compilers, such as V8 |
//! | jitdump, perf map | files in which a runtime lists its JIT code: `jit-PID.dump` with times and machine code, `perf-PID.map` without |
//! | code map | all JIT code of all processes, to be looked up by process, address and time ([`CodeMap`]) |
//! | tier | the compiler of a runtime (or its interpreter) that a function ran in ([`Tier`]) |
//!
//! # Examples
//!
//! The files that the examples read are in the repository. `perf.data` has three samples of process 77, and
//! `jit-77.dump` names the JIT code in it: `main`, and two functions that were at one address one after the other.
//!
//! List the hottest functions of a recording:
//!
//! ```
//! use jitgraft::{LoadOptions, load};
//! use std::collections::HashMap;
//!
//! let profile = load("src/api/examples/perf.data", &LoadOptions::new().sums(true))?;
//! let event = profile.events().next().unwrap();
//! let mut costs: HashMap<String, i64> = HashMap::new();
//! for sample in event.samples() {
//!     // The innermost frame is the first. All code without a name is called `[unknown]`.
//!     let leaf = sample.frames().next().map_or("[no stack]".to_owned(), |leaf| leaf.to_string());
//!     *costs.entry(leaf).or_default() += sample.weight;
//! }
//! let mut costs: Vec<(String, i64)> = costs.into_iter().collect();
//! costs.sort_by_key(|(_, cost)| -cost);
//! assert_eq!(costs, [("second".to_owned(), 2_000_000), ("first".to_owned(), 1_000_000)]);
//! assert_eq!((event.name(), event.unit().name()), ("cpu-clock", "nanoseconds"));
//! # Ok::<(), jitgraft::Error>(())
//! ```
//!
//! Count samples by thread, without keeping them:
//!
//! ```
//! use jitgraft::{LoadOptions, Nanos, Tid, for_each_sample};
//! use std::collections::BTreeMap;
//!
//! let (mut counts, mut last) = (BTreeMap::new(), None);
//! let warnings = for_each_sample("src/api/examples/perf.data", &LoadOptions::new(), |sample| {
//!     *counts.entry(sample.tid).or_insert(0) += sample.count;
//!     last = last.max(sample.time.filter(|time| time.is_valid()));
//!     Ok(())
//! })?;
//! assert_eq!(counts, BTreeMap::from([(Some(Tid(77)), 3)]));
//! assert_eq!((last, warnings), (Some(Nanos(260)), vec![]));
//! # Ok::<(), jitgraft::Error>(())
//! ```
//!
//! Name addresses of your own, by the time at which they were seen:
//!
//! ```
//! use jitgraft::{Addr, CodeMap, Nanos, Pid};
//!
//! let code_map = CodeMap::from_files(["src/api/examples/jit-77.dump"])?;
//! let mut named = Vec::new();
//! for (address, time) in [(0x1_0010, 150), (0x1_0010, 250), (0x1_0110, 250), (0x5_0000, 250)] {
//!     named.push(match code_map.lookup(Pid(77), Addr(address), Some(Nanos(time))) {
//!         Some(hit) => format!("{}+{:#x}", hit.frame(), hit.offset()),
//!         None => "[unknown]".to_owned(),
//!     });
//! }
//! assert_eq!(named, ["first+0x10", "second+0x10", "main+0x10", "[unknown]"]);
//! # Ok::<(), jitgraft::Error>(())
//! ```
//!
//! # What to rely on
//!
//! * The library installs no signal handler and no panic hook, doesn't print, and doesn't end the process. It reads
//!   `HOME`, `TMPDIR`, `JITDUMPDIR` and debuginfod's variables, but downloads nothing. It starts threads for the time
//!   of a call ([`LoadOptions::threads`]).
//! * No file is mapped that somebody else could truncate, so nothing raises SIGBUS: files are copied to memory or, from
//!   1 MiB, to a temporary file without a name (in `TMPDIR`).
//! * No input makes it panic. Damaged records are left out, counted and reported in the warnings. An [`Error`] has a
//!   [kind](Error::kind), and mostly a file and a remedy, which may name [flags of the
//!   program](Error#flags-in-messages).
//! * Files that name code are only used if root or the current user owns them ([`LoadOptions::trust_all_owners`]).
//! * Results are the same for any number of threads.
//! * Whatever is documented here changes only with the version. Structs that may get fields and enums that may get
//!   variants are `#[non_exhaustive]`; options have builders.
//!
//! People who change jitgraft find the map of its code further down in `src/lib.rs`.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::unwrap_used))]
// Without the commands, much of the code in the internal modules is unused, and nothing outside the crate can reach it.
#![cfg_attr(not(feature = "cli"), allow(dead_code, unused_imports, unreachable_pub))]
// Documentation in the internal modules links to private items, and the map of the code below links to these modules.
#![allow(rustdoc::private_intra_doc_links)]
#![cfg_attr(not(feature = "cli"), allow(rustdoc::broken_intra_doc_links))]

mod api;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod commands;

/// The internal modules, called rooms below. They are public in here for `internals`, and private otherwise. This page
/// is for people who change jitgraft.
///
/// # The map of the code
///
/// ```text
/// main → { cli → commands → { annotate | doctor } | api } → pipeline → jit → { formats | symbolize }
///      → { render | contract } → analysis → runtimes → { model | bytes | parallel | io } → error
/// ```
///
/// The modules at the top level are called rooms. Imports only point from left to right. `tests/architecture/main.rs`
/// checks this, and lists which room may use which.
///
/// | room | what it is for |
/// |---|---|
/// | [`api`] | the public library: what the documentation of the crate describes, around the rooms below |
/// | [`cli`](rooms::cli) | parses flags and checks them: from the command line to the options of a command |
/// | [`commands`] | runs the commands, one file or folder each; commands don't use each other |
/// | [`annotate`] | listings of hot code with costs, by instruction and source line, for the commands `annotate` and `view` |
/// | [`doctor`] | decides what is wrong with a recording and how to fix it (`rules`), for the commands `doctor` and `view` |
/// | [`pipeline`] | the way of a profile in every command: open, detect its format, survey it, look up its addresses (`recording`), filter, merge |
/// | [`jit`] | everything that names JIT code: finds the files (`search`), decides which to trust, converts their times to the recording's clock, and reads them (`jitdump`, `perf_map`, `engine_logs`) into one code map |
/// | [`formats`] | one folder per format of profiles (`perf_data`, `perf_script`, `callgrind`, `pprof` …) and of what is written beside them (`elf_image`), with all that reads, writes and rewrites bytes of that format; only the table [`formats::FORMATS`] knows all of them |
/// | [`symbolize`] | address → frames: what was at an address at a time, also for return addresses; code map, address spaces, symbols and debug information of files, the kernel, unwinding; bytes → instructions (`disasm`) |
/// | [`render`] | draws flame graphs and the page of `view` |
/// | [`contract`] | what each format has to provide, and what it gets: entries of the table, options, rows, spans |
/// | [`analysis`] | what is computed from a profile: call graphs and trees, groups, differences, categories, timelines |
/// | [`runtimes`] | what we know about each runtime: switches, names, tiers, where it leaves its files |
/// | [`model`] | plain data between readers and writers: stacks, code, processes, units |
/// | [`bytes`] | cursors, numbers, lines, escapes and protocol buffers, for all formats |
/// | [`parallel`] | all threads |
/// | [`io`] | the only place that opens files and maps memory: checks owner, type and links of each file first (`door`), replaces outputs atomically, limits memory |
/// | [`error`] | errors, warnings, reports of what was skipped |
///
/// There are two kinds of commands. *Rewriters* (inject, script, callgrind) stream a file, and only change or add what
/// names code. All other bytes stay the same, and memory is bounded ([`commands::inject`] lists the few exceptions).
/// *Converters* (collapse, flamegraph, view, report, export, merge, stats) turn any input into stacks
/// ([`model::stacks::Profile`]), and stacks into any output. `doctor` loads a recording in the same way, or examines a
/// running process or a callgrind file; it reports problems, and why names are missing. `annotate` lists the machine
/// code of hot functions. All of them get their code map from `jit`, and ask `symbolize` what was at an address.
///
/// # Words
///
/// In addition to those in the documentation of the crate:
///
/// | word | what it means here |
/// |---|---|
/// | profile | any input as stacks with weights ([`model::stacks::Profile`]): one `Series` per event, whose `Row`s are samples or sums of samples |
/// | track | the thread, or group of threads, that a row belongs to (`Track`) |
/// | stack | the frames of a sample: its innermost frame, and a link to the stack of its caller |
/// | frame | an entry of a stack: a function, and where in it (line, address, inlined or not) ([`model::stacks::Frame`]) |
/// | location | what was at an address of a process at some time: JIT code, an offset in a file, or nothing ([`symbolize::Location`]) |
/// | code range | a piece of JIT code at its address. A function has several if it was compiled several times (its *versions*) |
/// | segment | a code range, or what is left of it, during the time in which nothing overwrote it |
/// | code map | all code ranges of all processes, to be looked up by process, address and time ([`symbolize::code_map`]) |
/// | source | a file that names JIT code: a jitdump, a perf map, the log of an engine, a core dump, an ELF object |
/// | span | an interval of time with a name in a trace; a *timeline* has all of them |
#[path = "."]
mod rooms {
    pub mod analysis;
    #[cfg(feature = "cli")]
    pub mod annotate;
    pub mod bytes;
    #[cfg(feature = "cli")]
    pub mod cli;
    pub mod contract;
    #[cfg(feature = "cli")]
    pub mod doctor;
    pub mod error;
    pub mod formats;
    pub mod io;
    pub mod jit;
    pub mod model;
    pub mod parallel;
    pub mod pipeline;
    pub mod render;
    pub mod runtimes;
    pub mod symbolize;
}

use rooms::{
    analysis, bytes, contract, error, formats, io, jit, model, parallel, pipeline, render, runtimes, symbolize,
};
#[cfg(feature = "cli")]
use rooms::{annotate, doctor};

/// The internal modules, for the program, its benchmarks and fuzz targets. Anything in here may change in any version.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod internals {
    pub use crate::commands;
    pub use crate::rooms::*;
}

/// Writers of recordings for unit tests and fuzz targets. They share no code with the readers.
#[cfg(any(test, fuzzing))]
#[path = "../tests/support/writers/mod.rs"]
mod test_writers;

#[cfg(test)]
#[path = "../tests/support/effort.rs"]
mod test_effort;

/// Second readers of fixtures, to check ours.
#[cfg(test)]
#[path = "../tests/support/second_readers/mod.rs"]
mod second_readers;

/// The fuzz targets. Each calls a reader or a whole command with arbitrary bytes.
#[cfg(all(any(test, fuzzing), feature = "cli"))]
#[doc(hidden)]
#[path = "../tests/fuzz/harness/mod.rs"]
pub mod fuzz;

pub use api::{
    CodeHit, CodeMap, CodeMapBuilder, Event, FlameGraph, Format, FormatInfo, Formats, Frame, Frames, JitFunction,
    LoadOptions, NamedFile, Profile, ProfileBuilder, Sample, add_names, for_each_sample, load, load_bytes,
};
pub use error::{Error, ErrorKind, Result, Warning};
pub use model::stacks::{FrameKind, Unit};
pub use model::tier::Tier;
pub use model::{Addr, Nanos, Pid, Tid};
