//! jitgraft repairs profiles of programs with just-in-time compiled code, offline.
//!
//! # The map
//!
//! ```text
//! main → cli → commands → { annotate | doctor } → pipeline → jit → { formats | symbolize }
//!      → { render | contract } → analysis → runtimes → { model | bytes | parallel | io } → error
//! ```
//!
//! The modules at the top level are called rooms. Imports only point from left to right. `tests/architecture/main.rs`
//! checks this, and lists which room may use which.
//!
//! | room | what it is for |
//! |---|---|
//! | [`cli`] | parses flags and checks them: from the command line to the options of a command |
//! | [`commands`] | runs the commands, one file or folder each; commands don't use each other |
//! | [`annotate`] | listings of hot code with costs, by instruction and source line, for the commands `annotate` and `view` |
//! | [`doctor`] | decides what is wrong with a recording and how to fix it (`rules`), for the commands `doctor` and `view` |
//! | [`pipeline`] | the way of a profile in every command: open, detect its format, survey it, look up its addresses (`recording`), filter, merge |
//! | [`jit`] | everything that names JIT code: finds the files (`search`), decides which to trust, converts their times to the recording's clock, and reads them (`jitdump`, `perf_map`, `engine_logs`) into one code map |
//! | [`formats`] | one folder per format of profiles (`perf_data`, `perf_script`, `callgrind`, `pprof` …) and of what is written beside them (`elf_image`), with all that reads, writes and rewrites bytes of that format; only the table [`formats::FORMATS`] knows all of them |
//! | [`symbolize`] | address → frames: what was at an address at a time, also for return addresses; code map, address spaces, symbols and debug information of files, the kernel, unwinding; bytes → instructions (`disasm`) |
//! | [`render`] | draws flame graphs and the page of `view` |
//! | [`contract`] | what each format has to provide, and what it gets: entries of the table, options, rows, spans |
//! | [`analysis`] | what is computed from a profile: call graphs and trees, groups, differences, categories, timelines |
//! | [`runtimes`] | what we know about each runtime: switches, names, tiers, where it leaves its files |
//! | [`model`] | plain data between readers and writers: stacks, code, processes, units |
//! | [`bytes`] | cursors, numbers, lines, escapes and protocol buffers, for all formats |
//! | [`parallel`] | all threads |
//! | [`io`] | the only place that opens files and maps memory: checks owner, type and links of each file first (`door`), replaces outputs atomically, limits memory |
//! | [`error`] | errors, warnings, reports of what was skipped |
//!
//! There are two kinds of commands. *Rewriters* (inject, script, callgrind) stream a file, and only change or add
//! what names code. All other bytes stay the same, and memory is bounded ([`commands::inject`] lists the few
//! exceptions). *Converters* (collapse, flamegraph, view, report, export, merge, stats) turn any input into stacks
//! ([`model::stacks::Profile`]), and stacks into any output. `doctor` loads a recording in the same way, or examines
//! a running process or a callgrind file; it reports problems, and why names are missing. `annotate` lists the
//! machine code of hot functions. All of them get their code map from `jit`, and ask `symbolize` what was at an address.
//!
//! # Words
//!
//! | word | what it means here |
//! |---|---|
//! | recording | what `perf record` wrote, or another profile of raw addresses |
//! | profile | any input as stacks with weights ([`Profile`]): one [`Series`] per event, whose [`Row`]s are samples or sums of samples |
//! | track | the thread, or group of threads, that a row belongs to ([`Track`]) |
//! | stack | the frames of a sample: its innermost frame, and a link to the stack of its caller |
//! | frame | an entry of a stack: a function, and where in it (line, address, inlined or not) ([`Frame`]) |
//! | location | what was at an address of a process at some time: JIT code, an offset in a file, or nothing ([`symbolize::Location`]) |
//! | JIT code | code that a runtime generated in memory; *native* code is in files |
//! | code range | a piece of JIT code at its address. A function has several if it was compiled several times (its *versions*) |
//! | segment | a code range, or what is left of it, during the time in which nothing overwrote it |
//! | code map | all code ranges of all processes, to be looked up by process, address and time ([`CodeMap`]) |
//! | source | a file that names JIT code: a jitdump, a perf map, the log of an engine, a core dump, an ELF object |
//! | runtime | what runs JIT code, such as Node.js or the JVM; an *engine* is the part with the compilers, such as V8 |
//! | tier | the compiler of a runtime (or its interpreter) that a function ran in ([`Tier`]) |
//! | span | an interval of time with a name in a trace; a *timeline* has all of them |
//! | weight | what a sample stands for, in the event's unit; *self* weight is without callees, *total* weight with them |
//!
//! # How to use it
//!
//! Read any profile into stacks, with names for addresses in JIT code:
//!
//! ```
//! use jitgraft::{FrameKind, InPath, Job, Keep, LoadOptions, Outcome, Row, load};
//!
//! let input = InPath::from(std::path::PathBuf::from("fixtures/php-recording/perf.data.zst"));
//! let mut outcome = Outcome::default();
//! let profile = load(&[input], Keep::Sums, &LoadOptions::default(), &Job::quiet()?, &mut outcome)?;
//!
//! let leaf_of = |row: &Row| profile.frames_up(row.stack).next().map(|frame| *profile.frame_of(frame));
//! let in_jit = |row: &&Row| leaf_of(row).is_some_and(|leaf| leaf.kind == FrameKind::Jit);
//! let hottest = profile.series[0].rows.iter().filter(in_jit).max_by_key(|row| row.weight).unwrap();
//! assert_eq!(profile.name_of(leaf_of(hottest).unwrap().name), br"TRACE-8$App\Deep\mandel$5");
//! assert_eq!((hottest.weight, hottest.count), (198_198_198, 198)); // nanoseconds, samples
//! # Ok::<(), jitgraft::Error>(())
//! ```
//!
//! Stream samples with resolved frames one by one. Memory doesn't grow with the number of samples ([`stream`]):
//!
//! ```
//! use jitgraft::{Batches, InPath, Job, LoadOptions, Outcome, stream};
//!
//! let input = InPath::from(std::path::PathBuf::from("fixtures/php-recording/perf.data.zst"));
//! let (job, mut outcome, mut in_mandel) = (Job::quiet()?, Outcome::default(), 0);
//! let mut batches = Batches {
//!     len: std::num::NonZeroUsize::MIN,
//!     each: |batch: &jitgraft::Profile| {
//!         for row in batch.series.iter().flat_map(|series| &series.rows) {
//!             let mut frames = batch.frames_up(row.stack).map(|frame| batch.frame_of(frame)); // the innermost first
//!             in_mandel += u64::from(frames.any(|frame| batch.name_of(frame.name).ends_with(b"mandel$5")));
//!         }
//!         Ok(())
//!     },
//! };
//! stream(&[input], &LoadOptions::default(), &mut batches, &job, &mut outcome)?;
//! assert_eq!(in_mandel, 209);
//! # Ok::<(), jitgraft::Error>(())
//! ```
//!
//! List the hottest functions: self cost by name, in the event's unit ([`Series::unit`]):
//!
//! ```
//! # use jitgraft::{InPath, Job, Keep, LoadOptions, Outcome, load};
//! # let input = InPath::from(std::path::PathBuf::from("fixtures/php-recording/perf.data.zst"));
//! # let profile = load(&[input], Keep::Sums, &LoadOptions::default(), &Job::quiet()?, &mut Outcome::default())?;
//! let mut costs = std::collections::HashMap::<&[u8], u64>::new();
//! for row in &profile.series[0].rows {
//!     let leaf = profile.frames_up(row.stack).next().map(|leaf| profile.frame_of(leaf));
//!     if let Some(leaf) = leaf.filter(|leaf| profile.name_of(leaf.name) != b"[unknown]") {
//!         *costs.entry(profile.name_of(leaf.name)).or_default() += row.weight;
//!     }
//! }
//! let hottest = costs.iter().max_by_key(|(_, cost)| **cost).unwrap();
//! assert_eq!(hottest, (&&br"TRACE-8$App\Deep\mandel$5"[..], &198_198_198)); // nanoseconds
//! # Ok::<(), jitgraft::Error>(())
//! ```
//!
//! Export a profile to any of the [`FORMATS`], such as pprof or the Firefox Profiler's format:
//!
//! ```
//! # use jitgraft::{InPath, Job, Keep, LoadOptions, Outcome, load};
//! # let input = InPath::from(std::path::PathBuf::from("fixtures/php-recording/perf.data.zst"));
//! use jitgraft::{FORMATS, WriteOptions};
//!
//! # let options = LoadOptions::default();
//! let profile = load(&[input], Keep::EachRow, &options, &Job::quiet()?, &mut Outcome::default())?;
//! for name in ["pprof", "firefox"] {
//!     let writer = FORMATS.iter().find(|format| format.name == name).and_then(|format| format.write).unwrap();
//!     let mut bytes = Vec::new();
//!     (writer.run)(&profile, &WriteOptions::default(), &mut bytes)?;
//!     assert!(bytes.len() > 1000);
//! }
//! # Ok::<(), jitgraft::Error>(())
//! ```
//!
//! Look up an address in the [`CodeMap`] of a jitdump:
//!
//! ```
//! use jitgraft::{Addr, Job, Pid, Processes, SourceOptions, Warnings, find_sources};
//!
//! let dump = "fixtures/php-recording/jit-31795.dump".into();
//! let options = SourceOptions { jitdump: vec![dump], ..SourceOptions::default() };
//! let (job, mut warnings) = (Job::quiet()?, Warnings::new());
//! let processes = Processes::default(); // a recording would tell of forks and clocks
//! let found = find_sources(&processes, &options, None, &mut warnings);
//! let code_map = found.load(&processes, &job.pool, &mut warnings).map;
//!
//! let hit = code_map.lookup(Pid(31795), Addr(0x5562_0040_00b0), None).unwrap();
//! assert_eq!(code_map.code(hit.code).name, b"JIT$$exception_handler_undef");
//! # Ok::<(), jitgraft::Error>(())
//! ```
//!
//! Add your own source of names. A list of events, each with process, time and code, becomes a [`CodeMap`]:
//!
//! ```
//! use jitgraft::{Addr, Code, CodeEvent, CodeEventKind, CodeList, CodeMap, Job, Nanos, OriginId, Pid, Processes, Tid};
//!
//! let mut list = CodeList::default();
//! for (time, name) in [(10, &b"first"[..]), (20, b"second")] {
//!     let code = Code::new(name, Addr(0x1000), &[0x90, 0xc3], OriginId(0));
//!     let (pid, tid, time) = (Pid(7), Tid(7), Some(Nanos(time)));
//!     list.push(CodeEvent { pid, tid, time, kind: CodeEventKind::Load(code) });
//! }
//! let code_map = CodeMap::build(vec![list], &Processes::default(), &Job::quiet()?.pool);
//! let name_at = |time| code_map.lookup(Pid(7), Addr(0x1001), Some(Nanos(time))).map(|hit| code_map.name(hit.code));
//! assert_eq!([5, 15, 25].map(name_at), [None, Some(&b"first"[..]), Some(b"second")]);
//! # Ok::<(), jitgraft::Error>(())
//! ```
//!
//! Write JIT code as an ELF image, for tools that read ELF:
//!
//! ```
//! use jitgraft::{Addr, Addressing, Code, ElfTarget, Endian, ImageBuilder, OriginId};
//!
//! let code = Code::new(b"answer", Addr(0x7f00_0000_1000), &[0xb8, 42, 0, 0, 0, 0xc3], OriginId(0));
//! let mut builder = ImageBuilder::new(ElfTarget::new(62, Endian::Little), Addressing::FileOffset); // 62: x86-64
//! builder.add(&code, code.addr);
//! let mut elf = std::io::Cursor::new(Vec::new());
//! let written = builder.build().write(&mut elf)?;
//! assert_eq!(&elf.get_ref()[..4], b"\x7fELF");
//! # Ok::<(), jitgraft::Error>(())
//! ```
//!
//! Only the API shown here is meant to be stable. The rooms are public for the program, its tests, benchmarks and fuzz
//! targets. They are hidden from these pages, and may change in any version.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::unwrap_used))]
// Without the commands, much of the code in the rooms is unused.
#![cfg_attr(not(feature = "cli"), allow(dead_code, unused_imports))]

#[doc(hidden)]
pub mod analysis;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod annotate;
#[doc(hidden)]
pub mod bytes;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod commands;
#[doc(hidden)]
pub mod contract;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod doctor;
#[doc(hidden)]
pub mod error;
#[doc(hidden)]
pub mod formats;
#[doc(hidden)]
pub mod io;
#[doc(hidden)]
pub mod jit;
#[doc(hidden)]
pub mod model;
#[doc(hidden)]
pub mod parallel;
#[doc(hidden)]
pub mod pipeline;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod render;
#[doc(hidden)]
pub mod runtimes;
#[doc(hidden)]
pub mod symbolize;

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

pub use bytes::cursor::Endian;
pub use contract::options::WriteOptions;
pub use error::{Error, Result, Warning, Warnings};
pub use formats::FORMATS;
pub use formats::elf_image::{Addressing, Image, ImageBuilder, Target as ElfTarget};
pub use io::InPath;
pub use jit::{Found, SourceOptions, find as find_sources};
pub use model::about::About;
pub use model::code::{Code, CodeEvent, CodeEventKind, OriginId};
pub use model::process::Processes;
pub use model::stacks::{Frame, FrameKind, Keep, Profile, Row, Sampling, Series, Track, Unit};
pub use model::tier::Tier;
pub use model::{Addr, Nanos, Pid, Tid};
pub use parallel::Pool;
pub use pipeline::any::{LoadOptions, load, run as stream};
pub use pipeline::inputs::JobInputs;
pub use pipeline::sink::{Batches, Sink};
pub use pipeline::{Job, Outcome};
pub use symbolize::code_map::{CodeList, CodeMap, Hit};
